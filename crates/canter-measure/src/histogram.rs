//! A histogram of latencies with fixed buckets, so that recording neither allocates nor faults.
//!
//! Five significant digits: up to 262 µs every nanosecond has a bucket, up to 134 ms a bucket is at most
//! 512 ns wide, at the bound 8 µs. That costs 15 × 131 072 counters of 4 bytes, 7.9 MB a histogram, all of it
//! touched once by [`Histogram::new`].

use crate::result::Latency;
use hdrhistogram::Histogram as Buckets;

/// The longest latency that has a bucket: 2.147 s. A frame is given up as lost after 1 s.
pub const BOUND_NS: u64 = (1 << 31) - 1;
const SIGNIFICANT_DIGITS: u8 = 5;

/// A distribution of latencies in ns.
///
/// Percentiles are by nearest rank: p90 of n latencies is the `⌈0.9 · n⌉`-th in ascending order, a latency that
/// occurred, given as the upper edge of its bucket: never too small, and exact up to 262 µs.
/// `min` and `max` are exact.
pub struct Histogram {
    buckets: Buckets<u32>,
    min: u64,
    max: u64,
    negative: u64,
    above: u64,
}

impl Histogram {
    /// An empty histogram, with every counter written once.
    pub fn new() -> Self {
        let buckets = Buckets::new_with_bounds(1, BOUND_NS, SIGNIFICANT_DIGITS);
        let mut buckets = buckets.expect("the bounds are constants that hdrhistogram accepts");
        buckets.reset(); // writes every counter: no page is mapped on the frame path
        Self { buckets, min: u64::MAX, max: 0, negative: 0, above: 0 }
    }

    /// Counts one latency. A negative one (the two stamps were taken in the wrong order) is recorded as 0 and
    /// counted; one above [`BOUND_NS`] is counted in the last bucket, and `max` has the exact value.
    pub fn record(&mut self, ns: i64) {
        self.negative += u64::from(ns < 0);
        let ns = u64::try_from(ns).unwrap_or(0);
        self.above += u64::from(ns > BOUND_NS);
        self.min = self.min.min(ns);
        self.max = self.max.max(ns);
        self.buckets.saturating_record(ns);
    }

    /// The number of recorded latencies.
    pub fn count(&self) -> u64 {
        self.buckets.len()
    }

    /// The number of latencies above [`BOUND_NS`].
    pub fn above(&self) -> u64 {
        self.above
    }

    /// The distribution for the result file. Allocates: call it after the run.
    pub fn to_latency(&self) -> Latency {
        let edge = |ns: u64| ns.min(self.max);
        let buckets: Vec<[u64; 2]> = self
            .buckets
            .iter_recorded()
            .map(|step| {
                [
                    edge(self.buckets.highest_equivalent(step.value_iterated_to())),
                    step.count_at_value().into(),
                ]
            })
            .collect();
        let count = self.count();
        let min = if count == 0 { 0 } else { self.min };
        let latency =
            Latency { count, min, max: self.max, negative: self.negative, buckets, ..Latency::default() };
        let [p50, p90, p99, p999] = [500, 900, 990, 999].map(|per_mille| latency.at_per_mille(per_mille));
        Latency { p50, p90, p99, p999, ..latency }
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn latency(latencies: &[i64]) -> Latency {
        let mut histogram = Histogram::new();
        latencies.iter().for_each(|&ns| histogram.record(ns));
        histogram.to_latency()
    }

    #[test]
    fn nothing_recorded_is_all_zeros() {
        assert_eq!(latency(&[]), Latency::default());
    }

    #[test]
    fn one_latency_is_every_percentile() {
        let one = latency(&[12_345_678]);
        for ns in [one.min, one.p50, one.p90, one.p99, one.p999, one.max] {
            assert_eq!(ns, 12_345_678);
        }
        assert_eq!(one.buckets, [[12_345_678, 1]]);
    }

    #[test]
    fn percentiles_are_the_nearest_rank() {
        let ten = latency(&[10, 20, 30, 40, 50, 60, 70, 80, 90, 100]);
        assert_eq!([ten.min, ten.p50, ten.p90, ten.p99, ten.p999, ten.max], [10, 50, 90, 100, 100, 100]);
    }

    #[test]
    fn a_negative_latency_is_zero_and_counted() {
        let latency = latency(&[-5, 7]);
        assert_eq!((latency.negative, latency.min, latency.buckets), (1, 0, vec![[0, 1], [7, 1]]));
    }

    #[test]
    fn a_latency_above_the_bound_is_counted_at_the_bound() {
        let mut histogram = Histogram::new();
        histogram.record(i64::MAX);
        assert_eq!((histogram.count(), histogram.above()), (1, 1));
        let latency = histogram.to_latency();
        assert_eq!((latency.max, latency.buckets), (i64::MAX as u64, vec![[BOUND_NS, 1]]));
    }

    #[test]
    fn a_bucket_is_finer_than_a_microsecond_up_to_100_ms() {
        let histogram = Histogram::new();
        assert_eq!(histogram.buckets.equivalent_range(262_143), 1);
        assert_eq!(histogram.buckets.equivalent_range(100_000_000), 512);
        assert_eq!(histogram.buckets.distinct_values() * size_of::<u32>(), 7_864_320);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn every_latency_is_in_a_bucket(mut latencies in prop::collection::vec(0..3_000_000_000_i64, 1..200)) {
            let latency = latency(&latencies);
            latencies.sort_unstable();
            let n = latencies.len();
            prop_assert_eq!(latency.buckets.iter().map(|bucket| bucket[1]).sum::<u64>(), n as u64);
            prop_assert!(latency.buckets.is_sorted_by(|a, b| a[0] < b[0]));
            prop_assert_eq!(latency.min, latencies[0] as u64);
            prop_assert_eq!(latency.max, latencies[n - 1] as u64);
            let p90 = (latencies[(n * 9).div_ceil(10) - 1] as u64).min(BOUND_NS);
            prop_assert!(latency.p90 >= p90 && latency.p90 - p90 <= p90 >> 16, "{} for {}", latency.p90, p90);
        }
    }
}

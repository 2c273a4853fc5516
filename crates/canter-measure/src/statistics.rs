//! The uncertainty of a difference: estimates with 95 % intervals, without assumptions about the distribution of
//! latencies and without random numbers: the same files give the same verdict.

use crate::result::Latency;

/// The confidence of an interval: how many standard deviations of a normal distribution it spans to either side.
#[derive(Clone, Copy, Debug)]
pub struct Confidence(f64);

impl Confidence {
    /// A confidence of 95 %, for a single statistic.
    pub const ONE: Self = Self(1.96);

    /// All intervals of `count` statistics together contain their values with 95 % (Bonferroni).
    pub fn joint(count: usize) -> Self {
        Self(normal_quantile(1.0 - 0.025 / count.max(1) as f64))
    }
}

/// The value below which a normal variable lies with this probability, above one half (Abramowitz and Stegun, 26.2.23:
/// the error is below 0.00045).
fn normal_quantile(probability: f64) -> f64 {
    let t = (-2.0 * (1.0 - probability).ln()).sqrt();
    let above = 2.515_517 + t * (0.802_853 + t * 0.010_328);
    let below = 1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308));
    t - above / below
}

/// Two percentiles are compared when at least this number of latencies lies above each.
const ABOVE_MIN: u64 = 10;
/// The probability outside of an interval at each side.
const TAIL: f64 = 0.025;

/// A statistic and its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The statistic.
    pub value: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}

impl Estimate {
    /// A statistic that repeats exactly, or whose spread is unknown.
    pub fn exact(value: f64) -> Self {
        Self { value, low: value, high: value }
    }

    /// `[value, low, high]`.
    pub fn interval(self) -> [f64; 3] {
        [self.value, self.low, self.high]
    }

    /// `self` divided by `base`. The limits of the ratio follow from both intervals (the method of
    /// variance estimates recovery, on logarithms: Donner and Zou, 2012). A time of 0 ns counts as half of one; the low limit
    /// of a share as a thousandth of its value at least.
    pub fn ratio_to(self, base: Self) -> Self {
        let is_share = |one: Self| one.value > 0.0 && one.value < 1.0;
        let least = |one: Self| if is_share(one) { one.value / 1000.0 } else { 0.5 };
        let ln = |one: Self| [one.value, one.low, one.high].map(|value| value.max(least(one)).ln());
        let ([a, a_low, a_high], [b, b_low, b_high]) = (ln(base), ln(self));
        let low = (b - a) - ((b - b_low).powi(2) + (a_high - a).powi(2)).sqrt();
        let high = (b - a) + ((b_high - b).powi(2) + (a - a_low).powi(2)).sqrt();
        Self { value: (b - a).exp(), low: low.exp(), high: high.exp() }
    }

    /// `self` minus `base`, for shares (Newcombe, 1998, method 10).
    pub fn minus(self, base: Self) -> Self {
        let value = self.value - base.value;
        let low = value - ((self.value - self.low).powi(2) + (base.high - base.value).powi(2)).sqrt();
        let high = value + ((self.high - self.value).powi(2) + (base.value - base.low).powi(2)).sqrt();
        Self { value, low, high }
    }
}

/// A percentile with its interval by order statistics. `None` when too few latencies lie above it.
pub fn percentile(latency: &Latency, per_mille: u64, confidence: Confidence) -> Option<Estimate> {
    percentile_beside(latency, per_mille, 0, confidence)
}

/// A [`percentile`] when `doubtful` of the latencies might be any others: its interval is that number of ranks wider at both ends.
pub fn percentile_beside(
    latency: &Latency,
    per_mille: u64,
    doubtful: u64,
    Confidence(z): Confidence,
) -> Option<Estimate> {
    let (n, p) = (latency.count as f64, per_mille as f64 / 1000.0);
    if latency.count * (1000 - per_mille.min(1000)) < ABOVE_MIN * 1000 {
        return None;
    }
    let half = z * (n * p * (1.0 - p)).sqrt() + doubtful as f64;
    // An interval that reaches the greatest latency would depend on a single frame.
    if (n * p + half).ceil() + 1.0 >= n {
        return None;
    }
    let latency_at = |rank: f64| latency.at_rank(rank.clamp(1.0, n) as u64) as f64;
    let value = latency_at((n * p).ceil());
    Some(Estimate {
        value,
        low: latency_at((n * p - half).floor()).min(value),
        high: latency_at((n * p + half).ceil() + 1.0).max(value),
    })
}

/// `part` of `all` as a share with Wilson's interval.
pub fn share(part: u64, all: u64, Confidence(z): Confidence) -> Option<Estimate> {
    let n = all as f64;
    let value = (all > 0).then(|| part as f64 / n)?;
    let centre = value + z * z / (2.0 * n);
    let half = z * (value * (1.0 - value) / n + z * z / (4.0 * n * n)).sqrt();
    let limit = |end: f64| (end / (1.0 + z * z / n)).clamp(0.0, 1.0);
    // At 0 and 1 the limits would equal the value, except for rounding.
    let low = if part == 0 { 0.0 } else { limit(centre - half).min(value) };
    let high = if part == all { 1.0 } else { limit(centre + half).max(value) };
    Some(Estimate { value, low, high })
}

/// By how much the repeats of `b` are above those of `a`: the median of all differences and the interval of the
/// Mann–Whitney test (Hodges and Lehmann, 1963). `None` when there are too few of them: four and four suffice.
pub fn shift(a: &[f64], b: &[f64]) -> Option<Estimate> {
    let mut differences: Vec<f64> = b.iter().flat_map(|b| a.iter().map(move |a| b - a)).collect();
    differences.sort_by(f64::total_cmp);
    let cut = rank_cut(a.len(), b.len())?;
    let n = differences.len();
    Some(Estimate { value: middle(&differences)?, low: differences[cut], high: differences[n - 1 - cut] })
}

/// The median of sorted values; `None` without any.
pub fn middle(sorted: &[f64]) -> Option<f64> {
    let upper = sorted.get(sorted.len() / 2)?;
    Some((sorted[(sorted.len() - 1) / 2] + upper) / 2.0)
}

/// The median of a few ratios with the interval of the sign test; `None` below six.
pub fn median(values: &[f64]) -> Option<Estimate> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let n = values.len();
    let mut chance = 0.5_f64.powi(n as i32);
    let (mut sum, mut cut) = (0.0, None);
    for k in 0..n / 2 {
        sum += chance;
        if sum > TAIL {
            break;
        }
        cut = Some(k);
        chance *= (n - k) as f64 / (k + 1) as f64;
    }
    let cut = cut?;
    Some(Estimate { value: middle(&values)?, low: values[cut], high: values[n - 1 - cut] })
}

/// How many of the sorted differences to leave out at each end for a probability of at most 2.5 % beyond it.
fn rank_cut(n: usize, m: usize) -> Option<usize> {
    let orders = rank_sums(n, m);
    let total: f64 = orders.iter().sum();
    let mut below = 0.0;
    let within = orders.iter().take_while(|&&count| {
        below += count;
        below / total <= TAIL
    });
    within.count().checked_sub(1)
}

/// The number of orders of n and m values whose Mann–Whitney statistic is 0, 1, 2…: the coefficients of the Gaussian
/// binomial, the product of (1 − q^(m+i)) / (1 − q^i) for i = 1…n.
fn rank_sums(n: usize, m: usize) -> Vec<f64> {
    let mut orders = vec![0.0; n * m + 1];
    orders[0] = 1.0;
    for i in 1..=n {
        for u in (m + i..orders.len()).rev() {
            orders[u] -= orders[u - m - i];
        }
        for u in i..orders.len() {
            orders[u] += orders[u - i];
        }
    }
    orders
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::Histogram;
    use proptest::prelude::*;

    fn latency(values: impl IntoIterator<Item = i64>) -> Latency {
        let mut histogram = Histogram::new();
        values.into_iter().for_each(|ns| histogram.record(ns));
        histogram.to_latency()
    }

    #[test]
    fn rank_sums_are_those_of_the_tables() {
        assert_eq!(rank_sums(2, 2), [1.0, 1.0, 2.0, 1.0, 1.0]);
        assert_eq!(rank_sums(3, 4).iter().sum::<f64>(), 35.0);
        // Critical values of the two-sided test at 5 %: 3 and 3 none, 4 and 4: 0, 5 and 5: 2, 6 and 6: 5, 10 and 10: 23.
        let cuts = [(3, 3), (4, 4), (5, 5), (6, 6), (10, 10)].map(|(n, m)| rank_cut(n, m));
        assert_eq!(cuts, [None, Some(0), Some(2), Some(5), Some(23)]);
    }

    #[test]
    fn a_ratio_of_shares_below_one_half_is_not_one() {
        let share = |value| Estimate { value, low: value - 0.01, high: value + 0.01 };
        let ratio = share(0.2).ratio_to(share(0.4));
        assert!((ratio.value - 0.5).abs() < 1e-9 && ratio.low < 0.48 && ratio.high > 0.52, "{ratio:?}");
        assert!(Estimate { low: 0.0, ..share(0.2) }.ratio_to(share(0.4)).low < 0.01);
        let nothing = Estimate::exact(0.0).ratio_to(Estimate::exact(10.0));
        assert!((nothing.value - 0.05).abs() < 1e-9, "{nothing:?}");
    }

    #[test]
    fn intervals_of_many_statistics_are_wider() {
        let near = |confidence: Confidence, z: f64| (confidence.0 - z).abs() < 0.001;
        assert!(near(Confidence::joint(1), 1.960) && near(Confidence::joint(100), 3.481));
        assert!(near(Confidence::joint(1000), 4.056));
    }

    #[test]
    fn repeats_that_overlap_show_no_shift() {
        let estimate = shift(&[1.0, 2.0, 3.0, 4.0], &[1.1, 2.1, 2.9, 4.2]).expect("four and four suffice");
        assert!(estimate.low < 0.0 && estimate.high > 0.0, "{estimate:?}");
        let estimate = shift(&[1.0, 1.1, 1.2, 1.3], &[2.0, 2.1, 2.2, 2.3]).expect("four and four suffice");
        assert!(estimate.low > 0.0 && (estimate.value - 1.0).abs() < 1e-9, "{estimate:?}");
    }

    #[test]
    fn a_percentile_needs_latencies_above_it() {
        let thousand = latency(0..1000);
        assert!(
            percentile(&thousand, 990, Confidence::ONE).is_some()
                && percentile(&thousand, 999, Confidence::ONE).is_none()
        );
        assert!(percentile(&latency([]), 500, Confidence::ONE).is_none());
        let median = percentile(&thousand, 500, Confidence::ONE).expect("a median");
        assert_eq!((median.value, median.low, median.high), (499.0, 468.0, 531.0));
    }

    #[test]
    fn an_interval_of_a_share_is_wilson_s() {
        let none = share(0, 1000, Confidence::ONE).expect("a share");
        assert!(none.low == 0.0 && (none.high - 0.003_827).abs() < 1e-5, "{none:?}");
        let few = share(5, 1000, Confidence::ONE).expect("a share");
        assert!(few.minus(none).low > 0.0, "5 of 1000 are more than none");
        assert!(
            share(3, 1000, Confidence::ONE).expect("a share").minus(none).low < 0.0,
            "3 of 1000 may be chance"
        );
        assert_eq!(share(1, 0, Confidence::ONE), None);
    }

    #[test]
    fn a_few_ratios_have_an_interval_from_six_on() {
        assert_eq!(median(&[1.0; 5]), None);
        let six = median(&[1.0, 1.2, 1.1, 1.3, 1.05, 1.15]).expect("six suffice");
        assert_eq!((six.low, six.high), (1.0, 1.3));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn an_interval_holds_its_value(a in prop::collection::vec(0..2_000_000_i64, 20..200),
                                       b in prop::collection::vec(0..2_000_000_i64, 20..200)) {
            let (a, b) = (percentile(&latency(a), 500, Confidence::ONE), percentile(&latency(b), 500, Confidence::ONE));
            let ratio = b.expect("a median").ratio_to(a.expect("a median"));
            prop_assert!(ratio.low <= ratio.value && ratio.value <= ratio.high && ratio.high.is_finite());
        }
    }

    #[test]
    fn the_interval_of_a_median_contains_the_true_median_in_95_percent() {
        // 400 samples of 300 from one skewed distribution, by a fixed generator: about 5 % may miss its median.
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        let truth = 10_000.0 / 0.5;
        let misses = (0..400).filter(|_| {
            let sample = latency((0..300).map(|_| (10_000.0 / (1.0 - random())) as i64));
            let median = percentile(&sample, 500, Confidence::ONE).expect("a median");
            !(median.low..=median.high).contains(&truth)
        });
        let misses = misses.count();
        assert!((4..=32).contains(&misses), "{misses} of 400");
    }
}

//! The times between frames of one identifier, in bounded memory: a histogram whose classes are 1.6 % wide and exist only
//! where times occurred. Each class knows the sum of its times, so the median of a steady period is exact to the stamp.

/// The classes of each doubling of the time: 2⁶.
const CLASS_BITS: u32 = 6;
/// Fewer times do not make a period.
const GAPS_MIN: u64 = 8;

/// A class of times of about the same length.
#[derive(Clone, Copy, Debug)]
struct Class {
    number: u16,
    count: u64,
    sum_ns: u128,
}

impl Class {
    fn mean_ns(&self) -> u64 {
        u64::try_from(self.sum_ns / u128::from(self.count.max(1))).unwrap_or(u64::MAX)
    }

    /// How many periods the time is, rounded, and the rest in ns.
    fn periods(&self, period_ns: u64) -> (u64, u64) {
        let (mean_ns, period_ns) = (self.mean_ns(), period_ns.max(1));
        let periods = mean_ns.saturating_add(period_ns / 2) / period_ns;
        (periods, mean_ns.abs_diff(periods.saturating_mul(period_ns)))
    }
}

/// Times between frames.
#[derive(Clone, Debug, Default)]
pub struct Gaps {
    /// Sorted by their numbers.
    classes: Vec<Class>,
    count: u64,
    longest_ns: u64,
}

/// The number of the class of a time: its logarithm with [`CLASS_BITS`] binary digits.
fn class_number(gap_ns: u64) -> u16 {
    let bits = u64::BITS - gap_ns.leading_zeros();
    let shift = bits.saturating_sub(CLASS_BITS + 1);
    ((shift << CLASS_BITS) as u64 + (gap_ns >> shift)) as u16
}

/// The period of an identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    /// The median time between frames.
    pub median_ns: u64,
    /// The times that 5 % and 95 % do not exceed lie so far apart; of a steady period, without missing frames.
    pub jitter_ns: u64,
    /// Frames probably missing; `None` when the period is not steady.
    pub missing: Option<u64>,
}

impl Gaps {
    /// The period; `None` without times.
    pub fn period(&self) -> Option<Period> {
        let median_ns = self.percentile_ns(50)?;
        let missing = self.is_periodic(median_ns).then(|| self.missing(median_ns));
        let spread = if missing.is_some() { self.single(median_ns).spread_ns() } else { self.spread_ns() };
        Some(Period { median_ns, jitter_ns: spread.unwrap_or(0), missing })
    }

    /// Adds a time between two frames.
    #[inline]
    pub fn add(&mut self, gap_ns: u64) {
        let number = class_number(gap_ns);
        let at = self.classes.binary_search_by_key(&number, |class| class.number);
        let at = at.unwrap_or_else(|at| {
            self.classes.insert(at, Class { number, count: 0, sum_ns: 0 });
            at
        });
        let class = &mut self.classes[at];
        class.count += 1;
        class.sum_ns += u128::from(gap_ns);
        self.count += 1;
        self.longest_ns = self.longest_ns.max(gap_ns);
    }

    /// The times of both histograms.
    pub fn merged(&self, other: &Self) -> Self {
        let mut merged = self.clone();
        for class in &other.classes {
            match merged.classes.binary_search_by_key(&class.number, |one| one.number) {
                Ok(at) => {
                    merged.classes[at].count += class.count;
                    merged.classes[at].sum_ns += class.sum_ns;
                }
                Err(at) => merged.classes.insert(at, *class),
            }
        }
        merged.count += other.count;
        merged.longest_ns = merged.longest_ns.max(other.longest_ns);
        merged
    }

    /// The number of times.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The longest time, in ns.
    pub fn longest_ns(&self) -> u64 {
        self.longest_ns
    }

    /// The time that `percent` of all times do not exceed, as the mean of its class, in ns; `None` without times.
    pub fn percentile_ns(&self, percent: u64) -> Option<u64> {
        let rank = (u128::from(self.count) * u128::from(percent)).div_ceil(100).max(1);
        let mut passed = 0;
        self.classes.iter().find_map(|class| {
            passed += u128::from(class.count);
            (passed >= rank).then(|| class.mean_ns())
        })
    }

    /// The difference of the times that 95 % and 5 % do not exceed, in ns: the spread without rare outliers.
    pub fn spread_ns(&self) -> Option<u64> {
        Some(self.percentile_ns(95)?.saturating_sub(self.percentile_ns(5)?))
    }

    /// The times shorter than 1.5 periods: those between which no frame is missing.
    pub fn single(&self, period_ns: u64) -> Self {
        let is_single = |class: &&Class| class.periods(period_ns).0 <= 1;
        let classes: Vec<Class> = self.classes.iter().filter(is_single).copied().collect();
        let count = classes.iter().map(|class| class.count).sum();
        let longest_ns = classes.last().map_or(0, Class::mean_ns);
        Self { classes, count, longest_ns }
    }

    /// Whether the frames come in a steady period, some of them perhaps missing: few times are much shorter than the
    /// median, and most of the longer ones are multiples of it.
    pub fn is_periodic(&self, period_ns: u64) -> bool {
        if self.count < GAPS_MIN || self.percentile_ns(10).is_none_or(|short| short < period_ns / 4 * 3) {
            return false;
        }
        let (mut longer, mut multiples) = (0, 0);
        for class in &self.classes {
            let (periods, rest_ns) = class.periods(period_ns);
            // The rest of many periods says nothing: a small error of the period adds up.
            if (2..=10).contains(&periods) {
                longer += class.count;
                multiples += if rest_ns <= period_ns / 4 { class.count } else { 0 };
            }
        }
        multiples * 4 >= longer * 3
    }

    /// The frames missing from a steady period: a time of about two periods lacks one frame, and so on.
    pub fn missing(&self, period_ns: u64) -> u64 {
        let lacking =
            |class: &Class| class.count.saturating_mul(class.periods(period_ns).0.saturating_sub(1));
        self.classes.iter().map(lacking).fold(0, u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    fn gaps(times: impl IntoIterator<Item = u64>) -> Gaps {
        let mut gaps = Gaps::default();
        times.into_iter().for_each(|ns| gaps.add(ns));
        gaps
    }

    #[test]
    fn a_steady_period_is_exact_and_outliers_move_only_the_longest() {
        let gaps = gaps((0..1000).map(|n| if n == 500 { 40 * MS } else { 10 * MS }));
        assert_eq!(gaps.percentile_ns(50), Some(10 * MS));
        assert_eq!((gaps.spread_ns(), gaps.longest_ns(), gaps.count()), (Some(0), 40 * MS, 1000));
        assert_eq!(gaps.missing(10 * MS), 3);
    }

    #[test]
    fn jitter_of_a_period_lacks_no_frame() {
        let gaps = gaps((0..1000).map(|n| 10 * MS - 4 * MS * (n % 2) + 2 * MS));
        assert_eq!(gaps.missing(10 * MS), 0);
        assert_eq!(gaps.spread_ns(), Some(4 * MS));
    }

    #[test]
    fn a_period_is_steady_though_frames_are_missing_and_events_have_none() {
        let lossy = gaps((0..1000).map(|n| if n % 4 == 0 { 20 * MS } else { 10 * MS + n % 3 * MS }));
        let period_ns = lossy.percentile_ns(50).unwrap();
        assert!(lossy.is_periodic(period_ns), "{period_ns}");
        assert_eq!(lossy.missing(period_ns), 250);
        assert_eq!(lossy.single(period_ns).count(), 750);
        // At least 10 ms apart, at any time after.
        let events = gaps((0..1000).map(|n| 10 * MS + if n % 3 == 0 { n * n * 7919 % (60 * MS) } else { 0 }));
        assert!(!events.is_periodic(events.percentile_ns(50).unwrap()));
        // Two at once, then a pause.
        let pairs = gaps((0..1000).map(|n| if n % 2 == 0 { MS } else { 19 * MS }));
        assert!(!pairs.is_periodic(pairs.percentile_ns(60).unwrap()));
    }

    proptest! {
        #[test]
        fn a_percentile_is_within_a_class_of_the_exact_one(mut times in prop::collection::vec(any::<u64>(), 1..200), percent in 1..=100u64) {
            let gaps = gaps(times.iter().copied());
            times.sort_unstable();
            let rank = (times.len() as u64 * percent).div_ceil(100).max(1) as usize;
            let exact = times[rank - 1];
            let found = gaps.percentile_ns(percent).unwrap();
            prop_assert!(found.abs_diff(exact) <= exact >> CLASS_BITS, "{found} {exact}");
        }

        #[test]
        fn merged_times_are_those_of_one_histogram(one in prop::collection::vec(any::<u64>(), 0..50), other in prop::collection::vec(any::<u64>(), 1..50)) {
            let merged = gaps(one.iter().copied()).merged(&gaps(other.iter().copied()));
            let together = gaps(one.into_iter().chain(other));
            prop_assert_eq!(merged.count(), together.count());
            for percent in [5, 50, 95, 100] {
                prop_assert_eq!(merged.percentile_ns(percent), together.percentile_ns(percent));
            }
        }
    }
}

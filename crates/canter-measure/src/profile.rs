//! The latency profile: how many frames took longer than t, for every t. The 2011 paper's plot (a reverse
//! cumulative histogram): the median hides the rare late frame, the profile shows it and how rare it is. A frame that
//! never arrived took longer than any t, so lost frames are a plateau that the profile does not fall below.

use crate::result::Latency;

/// The number of frames that took longer than t: it falls from `count` to the number of lost frames in steps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// The number of frames, lost ones included: all took longer than any time below the first step.
    pub count: u64,
    /// `(t in ns, how many took longer than t)`: t ascends, the number descends and ends at the lost ones.
    pub steps: Vec<(u64, u64)>,
}

impl Profile {
    /// The profile of a latency, whose buckets may be in any order, and of lost frames.
    pub fn new(latency: &Latency, lost: u64) -> Self {
        let mut buckets: Vec<[u64; 2]> =
            latency.buckets.iter().copied().filter(|bucket| bucket[1] > 0).collect();
        buckets.sort_unstable();
        let count = buckets.iter().fold(lost, |sum, bucket| sum.saturating_add(bucket[1]));
        let mut steps: Vec<(u64, u64)> = Vec::with_capacity(buckets.len());
        let mut slower = count;
        for [t, n] in buckets {
            slower = slower.saturating_sub(n);
            match steps.last_mut() {
                Some(last) if last.0 == t => last.1 = slower,
                _ => steps.push((t, slower)),
            }
        }
        if let Some(last) = steps.last_mut() {
            last.1 = lost; // differs only when the sum exceeds u64
        }
        Self { count, steps }
    }

    /// How many frames took longer than `t` ns.
    pub fn slower_than(&self, t: u64) -> u64 {
        match self.steps.partition_point(|step| step.0 <= t) {
            0 => self.count,
            n => self.steps[n - 1].1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn profile(buckets: Vec<[u64; 2]>) -> Profile {
        Profile::new(&Latency { buckets, ..Latency::default() }, 0)
    }

    #[test]
    fn it_counts_the_frames_that_took_longer() {
        let profile = profile(vec![[10, 3], [20, 1]]);
        assert_eq!(profile, Profile { count: 4, steps: vec![(10, 1), (20, 0)] });
        assert_eq!([9, 10, 19, 20].map(|t| profile.slower_than(t)), [4, 1, 1, 0]);
    }

    #[test]
    fn lost_frames_are_a_plateau() {
        let latency = Latency { buckets: vec![[10, 3], [20, 1]], ..Latency::default() };
        assert_eq!(Profile::new(&latency, 5), Profile { count: 9, steps: vec![(10, 6), (20, 5)] });
    }

    #[test]
    fn nothing_measured_is_a_profile_without_steps() {
        assert_eq!(profile(vec![]), Profile::default());
        assert_eq!(profile(vec![[5, 0]]), Profile::default());
    }

    #[test]
    fn counts_beyond_64_bits_still_end_at_0() {
        assert_eq!(profile(vec![[1, u64::MAX], [2, u64::MAX]]).steps.last(), Some(&(2, 0)));
    }

    proptest! {
        #[test]
        fn it_falls_from_the_count_to_0(buckets in prop::collection::vec([0..60_u64, 0..9_u64], 0..40), t in 0..70_u64) {
            let profile = profile(buckets.clone());
            prop_assert_eq!(profile.count, buckets.iter().map(|bucket| bucket[1]).sum::<u64>());
            prop_assert!(profile.steps.is_sorted_by(|a, b| a.0 < b.0 && a.1 > b.1), "{:?}", profile);
            prop_assert!(profile.steps.first().is_none_or(|step| step.1 < profile.count));
            prop_assert!(profile.steps.last().is_none_or(|step| step.1 == 0));
            let slower: u64 = buckets.iter().filter(|bucket| bucket[0] > t).map(|bucket| bucket[1]).sum();
            prop_assert_eq!(profile.slower_than(t), slower);
        }
    }
}

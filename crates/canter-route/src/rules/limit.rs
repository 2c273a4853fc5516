//! Rate limits of each identifier, by the generic cell rate algorithm: each frame advances its identifier's theoretical
//! arrival time by one period. A frame that arrives earlier than this time minus the allowed burst and the tolerance is
//! over the limit.
//!
//! The tolerance is half a period: frames sent at exactly the limit's rate pass, as long as they jitter by less. Without
//! it every second of them would be dropped. The mean rate stays that of the limit.

use super::Limit;
use canter_io::{
    Frame, Meta,
    batch::Clock,
    clock,
    frame::{EFF_FLAG, SFF_MASK},
};
use std::collections::HashMap;

/// Extended identifiers with their own limit. Further ones share one limit until some have been quiet.
const EXTENDED_MAX: usize = 4096;

/// The tolerance as a part of the period.
const TOLERANCE_PART: u64 = 2;

/// A stamp older than this was read from a clock that has been set since.
const AGE_NS_MAX: u64 = 10_000_000_000;

/// Converts stamps of reception to the monotonic clock, which nobody sets.
#[derive(Clone, Copy, Debug)]
pub struct Arrivals {
    monotonic_ns: u64,
    realtime_ns: u64,
}

impl Arrivals {
    /// For frames that have been received just now.
    pub fn now() -> Self {
        Self { monotonic_ns: clock::monotonic_ns(), realtime_ns: clock::realtime_ns() }
    }

    /// When a frame was received; now, when it has no stamp of the real-time clock or that clock has been set since.
    pub fn arrival_ns(&self, meta: &Meta) -> u64 {
        let age_ns = match meta.clock {
            Clock::Software => self.realtime_ns.saturating_sub(meta.stamp_ns),
            Clock::None | Clock::Hardware | Clock::Simulated => 0,
        };
        self.monotonic_ns.saturating_sub(if age_ns > AGE_NS_MAX { 0 } else { age_ns })
    }
}

/// When the next frame of each identifier is due, in ns.
#[derive(Debug)]
pub struct Limiter {
    limit: Limit,
    standard: Box<[u64]>,
    extended: HashMap<u32, u64>,
    /// Shared by the extended identifiers without their own limit.
    shared: u64,
}

impl Limiter {
    pub fn new(limit: Limit) -> Self {
        let standard = vec![0; SFF_MASK as usize + 1].into_boxed_slice();
        Self { limit, standard, extended: HashMap::with_capacity(EXTENDED_MAX), shared: 0 }
    }

    /// Whether a frame that arrives at `now_ns` is within the limit.
    pub fn passes(&mut self, frame: &Frame, now_ns: u64) -> bool {
        let Limit { period_ns, burst } = self.limit;
        let due_ns = if frame.can_id & EFF_FLAG == 0 {
            &mut self.standard[(frame.can_id & SFF_MASK) as usize]
        } else {
            self.extended_due(frame.can_id, now_ns)
        };
        if now_ns + u64::from(burst - 1) * period_ns + period_ns / TOLERANCE_PART < *due_ns {
            return false;
        }
        *due_ns = now_ns.max(*due_ns) + period_ns;
        true
    }

    /// Takes over how much of the allowance another limiter has used up, if its limit is the same.
    pub fn inherit(&mut self, used: Self) {
        if self.limit == used.limit {
            *self = used;
        }
    }

    fn extended_due(&mut self, can_id: u32, now_ns: u64) -> &mut u64 {
        if self.extended.len() >= EXTENDED_MAX && !self.extended.contains_key(&can_id) {
            self.extended.retain(|_, due_ns| *due_ns > now_ns);
            if self.extended.len() >= EXTENDED_MAX {
                return &mut self.shared;
            }
        }
        self.extended.entry(can_id).or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frame(id: &str) -> Frame {
        format!("{id}#").parse().unwrap()
    }

    #[test]
    fn each_identifier_has_its_own_allowance() {
        let mut limiter = Limiter::new(Limit { period_ns: 100, burst: 2 });
        let passed: Vec<_> =
            [0, 0, 0, 49, 50, 149, 150, 1000, 1000, 1000].map(|at| limiter.passes(&frame("123"), at)).into();
        assert_eq!(passed, [true, true, false, false, true, false, true, true, true, false]);
        assert!(limiter.passes(&frame("124"), 0) && limiter.passes(&frame("00000123"), 0));
    }

    #[test]
    fn memory_stays_bounded_however_many_identifiers_come() {
        let mut limiter = Limiter::new(Limit { period_ns: 1000, burst: 1 });
        let passed = (0..10_000).filter(|id| limiter.passes(&frame(&format!("{id:08X}")), 0)).count();
        assert_eq!((passed, limiter.extended.len()), (EXTENDED_MAX + 1, EXTENDED_MAX));
        assert!(limiter.passes(&frame("1FFFFFFF"), 1000), "quiet identifiers make room");
    }

    #[test]
    fn arrivals_follow_the_stamps_and_survive_a_clock_that_is_set() {
        let arrivals = Arrivals { monotonic_ns: 50_000_000_000, realtime_ns: 1_000_000_000_000 };
        let arrival = |clock, stamp_ns| arrivals.arrival_ns(&Meta { clock, stamp_ns, ..Meta::default() });
        assert_eq!(arrival(Clock::Software, 999_999_999_000), 49_999_999_000);
        assert_eq!(arrival(Clock::Software, 1_000_000_000_001), 50_000_000_000, "set back since");
        assert_eq!(arrival(Clock::Software, 900_000_000_000), 50_000_000_000, "set forward since");
        assert_eq!(arrival(Clock::None, 0), 50_000_000_000);
    }

    proptest! {
        #[test]
        fn frames_at_the_limits_rate_pass_though_they_jitter(
            jitter in prop::collection::vec(0u64..=50, 1..200), burst in 1u32..5,
        ) {
            let mut limiter = Limiter::new(Limit { period_ns: 100, burst });
            for (number, late) in jitter.iter().enumerate() {
                prop_assert!(limiter.passes(&frame("123"), 100 * number as u64 + late), "frame {number}");
            }
        }

        #[test]
        fn no_window_has_more_than_the_limit_allows(
            gaps in prop::collection::vec(0u64..200, 1..100), period_ns in 1u64..100, burst in 1u32..5,
        ) {
            let mut limiter = Limiter::new(Limit { period_ns, burst });
            let mut at = 0;
            let mut passed = Vec::new();
            for gap in gaps {
                at += gap;
                if limiter.passes(&frame("123"), at) {
                    passed.push(at);
                }
            }
            for (from, first) in passed.iter().enumerate() {
                for (to, last) in passed.iter().enumerate().skip(from) {
                    let most = u64::from(burst) + (last - first + period_ns / 2) / period_ns;
                    prop_assert!((to - from + 1) as u64 <= most);
                }
            }
        }
    }
}

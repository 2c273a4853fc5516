//! Rate limits of each identifier, by the generic cell rate algorithm: each frame advances its identifier's theoretical
//! arrival time by one period. A frame that arrives earlier than this time minus the allowed burst is over the limit.

use super::Limit;
use canter_io::{
    Frame,
    frame::{EFF_FLAG, SFF_MASK},
};
use std::collections::HashMap;

/// Extended identifiers with their own limit. Further ones share one limit until some have been quiet.
const EXTENDED_MAX: usize = 4096;

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
        if now_ns + u64::from(burst - 1) * period_ns < *due_ns {
            return false;
        }
        *due_ns = now_ns.max(*due_ns) + period_ns;
        true
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
            [0, 0, 0, 50, 100, 199, 200, 1000, 1000, 1000].map(|at| limiter.passes(&frame("123"), at)).into();
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

    proptest! {
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
                    let most = u64::from(burst) + (last - first) / period_ns;
                    prop_assert!((to - from + 1) as u64 <= most);
                }
            }
        }
    }
}

//! The relation of two clocks, from the stamps of the same frames on both: knots, one for some seconds, and lines between them.
//!
//! Both stamps of a frame are late by a delay of their machine. The median of some seconds is not moved by the few that are
//! very late, and follows a drift that changes with temperature.

use super::matching::Pair;

/// The time that a knot stands for, in ns, and how many pairs it needs.
const KNOT_NS: u64 = 5_000_000_000;
const KNOT_PAIRS: usize = 20;
/// A difference that changes by more than a crystal's drift and this, in ns, between two knots: a clock was set.
const JUMP_NS: f64 = 50e6;
const DRIFT_MAX: f64 = 500e-6;

/// When, on the second clock, and how much that is ahead of the first, in ns.
#[derive(Clone, Copy, Debug)]
struct Knot {
    b_ns: u64,
    ahead_ns: i64,
}

/// What the second clock is ahead of the first.
#[derive(Clone, Debug)]
pub struct Relation {
    knots: Vec<Knot>,
}

/// How far the pairs are from the relation, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Residual {
    pub p50_ns: u64,
    pub p99_ns: u64,
    pub max_ns: u64,
}

/// Why there is no relation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unrelated {
    /// There are only so many frames in common.
    TooFew(usize),
    /// A clock was set at this time of the second one, in ns.
    ClockSet(u64),
}

fn ahead_ns(pair: &Pair) -> i64 {
    (i128::from(pair.b_ns) - i128::from(pair.a_ns)).clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
}

impl Relation {
    /// The relation that follows from pairs, which are in the order of time.
    pub fn new(pairs: &[Pair]) -> Result<Self, Unrelated> {
        if pairs.len() < KNOT_PAIRS {
            return Err(Unrelated::TooFew(pairs.len()));
        }
        let mut knots: Vec<Knot> = Vec::new();
        let mut rest = pairs;
        while !rest.is_empty() {
            let until = rest[0].b_ns.saturating_add(KNOT_NS);
            let count =
                rest.iter().take_while(|pair| pair.b_ns < until).count().max(KNOT_PAIRS).min(rest.len());
            // The last few join the knot before.
            let count = if rest.len() - count < KNOT_PAIRS { rest.len() } else { count };
            let (these, others) = rest.split_at(count);
            knots.push(knot(these));
            rest = others;
        }
        let jump = knots.windows(2).find(|two| {
            let (time, change) =
                (two[1].b_ns.abs_diff(two[0].b_ns) as f64, two[1].ahead_ns.abs_diff(two[0].ahead_ns));
            change as f64 > JUMP_NS + DRIFT_MAX * time
        });
        match jump {
            Some(two) => Err(Unrelated::ClockSet(two[1].b_ns)),
            None => Ok(Self { knots }),
        }
    }

    /// A stamp of the second clock on the first one.
    pub fn on_first(&self, b_ns: u64) -> u64 {
        let at = self.knots.partition_point(|knot| knot.b_ns <= b_ns);
        let last = self.knots.len() - 1;
        let ahead_ns = match (at.saturating_sub(1).min(last.saturating_sub(1)), last) {
            (_, 0) => self.knots[0].ahead_ns,
            (first, _) => {
                let (a, b) = (self.knots[first], self.knots[first + 1]);
                let passed = (i128::from(b_ns) - i128::from(a.b_ns)) as f64;
                let slope = (b.ahead_ns - a.ahead_ns) as f64 / (b.b_ns.saturating_sub(a.b_ns)).max(1) as f64;
                a.ahead_ns + (passed * slope) as i64
            }
        };
        b_ns.saturating_add_signed(ahead_ns.saturating_neg())
    }

    /// What the second clock is ahead at the beginning, in ns.
    pub fn ahead_ns(&self) -> i64 {
        self.knots[0].ahead_ns
    }

    /// What the second clock gains on the first, in parts per billion; `None`: too short to say.
    pub fn drift_ppb(&self) -> Option<i64> {
        let (first, last) = (self.knots.first()?, self.knots.last()?);
        let time = last.b_ns.checked_sub(first.b_ns).filter(|&time| time > 0)?;
        Some(((last.ahead_ns - first.ahead_ns) as f64 / time as f64 * 1e9) as i64)
    }

    /// How far the pairs are from it.
    pub fn residual(&self, pairs: &[Pair]) -> Residual {
        let mut far: Vec<u64> =
            pairs.iter().map(|pair| self.on_first(pair.b_ns).abs_diff(pair.a_ns)).collect();
        far.sort_unstable();
        let at =
            |part: usize| far.get((far.len().saturating_sub(1)) * part / 100).copied().unwrap_or_default();
        Residual { p50_ns: at(50), p99_ns: at(99), max_ns: at(100) }
    }
}

fn knot(pairs: &[Pair]) -> Knot {
    let mut ahead: Vec<i64> = pairs.iter().map(ahead_ns).collect();
    ahead.sort_unstable();
    Knot { b_ns: pairs[pairs.len() / 2].b_ns, ahead_ns: ahead[ahead.len() / 2] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const START: u64 = 1_790_000_000_000_000_000;

    /// Pairs every 10 ms, on a second clock that is ahead and drifts, with delays up to 40 µs.
    fn pairs(count: u64, ahead_ns: i64, ppm: f64) -> Vec<Pair> {
        let pair = |at: u64| {
            let passed = at * 10_000_000;
            let truth = START + passed;
            let b = truth.wrapping_add_signed(ahead_ns + (passed as f64 * ppm * 1e-6) as i64);
            Pair { a_ns: truth + at * 7919 % 40_000, b_ns: b + at * 104_729 % 40_000 }
        };
        (0..count).map(pair).collect()
    }

    #[test]
    fn a_clock_that_was_set_and_too_few_frames_have_no_relation() {
        assert_eq!(Relation::new(&pairs(19, 0, 0.0)).err(), Some(Unrelated::TooFew(19)));
        let mut set = pairs(3000, 0, 0.0);
        set[1500..].iter_mut().for_each(|pair| pair.b_ns += 1_000_000_000);
        assert!(matches!(Relation::new(&set), Err(Unrelated::ClockSet(_))));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(50))]
        #[test]
        fn stamps_come_within_the_delays_onto_the_other_clock(
            count in 20u64..6000, ahead_ns in -10_000_000_000_000i64..10_000_000_000_000, ppm in -100.0..100.0f64,
        ) {
            let pairs = pairs(count, ahead_ns, ppm);
            let relation = Relation::new(&pairs).unwrap();
            let residual = relation.residual(&pairs);
            prop_assert!(residual.max_ns < 600_000 && residual.p50_ns <= residual.p99_ns, "{residual:?}");
            if count > 2000 {
                prop_assert!(residual.p99_ns < 60_000, "{residual:?}");
                let drift = relation.drift_ppb().unwrap() as f64 / 1000.0;
                prop_assert!((drift - ppm).abs() < 5.0, "{drift} {ppm}");
            }
        }
    }
}

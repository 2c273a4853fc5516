//! When each frame is due, in whole ns from the start. Each time is computed from the frame's number, so errors do not add
//! up. The meter and `canter generate` use the same schedules.

use super::pattern::Traffic;

const SECOND_NS: u128 = 1_000_000_000;

/// The deadlines of a [`Traffic`], one frame after the other.
#[derive(Clone, Debug)]
pub struct Schedule {
    traffic: Traffic,
    /// Frames sent so far.
    frames: u64,
    /// Sum of their durations on the bus.
    busy_ns: u128,
}

impl Schedule {
    pub fn new(traffic: Traffic) -> Self {
        Self { traffic, frames: 0, busy_ns: 0 }
    }

    /// When the next frame is due, in ns from the start, rounded down. `None`: as soon as the interface accepts it or, for
    /// one at a time, the last one has arrived.
    pub fn due_ns(&self) -> Option<u64> {
        let frames = u128::from(self.frames);
        let due = match self.traffic {
            Traffic::OneAtATime | Traffic::Flood => return None,
            Traffic::Period(period_ns) => frames * u128::from(period_ns),
            Traffic::Load(percent) => self.busy_ns * 100 / u128::from(percent),
            Traffic::Burst { frames: burst, every_ns } => frames / u128::from(burst) * u128::from(every_ns),
            Traffic::Ramp { from, to, over_ns } => ramp_ns(from.into(), to.into(), over_ns.into(), frames),
        };
        Some(u64::try_from(due).unwrap_or(u64::MAX))
    }

    /// Goes on to the next frame; this one and its interframe space take `frame_ns` of the bus.
    pub fn sent(&mut self, frame_ns: u64) {
        self.frames += 1;
        self.busy_ns += u128::from(frame_ns);
    }
}

/// When a ramp has sent `frames` frames. In the ramp, after t ns, frames·10⁹ = from·t + (to − from)·t²/(2·over); t is the
/// root of this equation.
fn ramp_ns(from: u128, to: u128, over_ns: u128, frames: u128) -> u128 {
    let scaled = frames * SECOND_NS;
    let in_ramp = (from + to) * over_ns; // twice the frames of the whole ramp, scaled
    if 2 * scaled > in_ramp {
        return over_ns + (2 * scaled - in_ramp) / (2 * to);
    }
    let linear = from * over_ns;
    let square = 2 * over_ns * scaled;
    if to >= from {
        let root = (linear * linear + (to - from) * square).isqrt();
        square.checked_div(root + linear).unwrap_or(0)
    } else {
        let root = (linear * linear - (from - to) * square).isqrt();
        square / (linear + root)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::pattern::{RAMP_NS_MAX, RAMP_RATE_MAX};
    use proptest::prelude::*;

    /// The deadlines of the first frames, each of which takes `frame_ns`.
    fn dues(traffic: &str, frame_ns: u64, count: usize) -> Vec<u64> {
        let mut schedule = Schedule::new(traffic.parse().unwrap());
        let mut next = || {
            let due = schedule.due_ns().unwrap();
            schedule.sent(frame_ns);
            due
        };
        (0..count).map(|_| next()).collect()
    }

    #[test]
    fn deadlines_are_those_of_the_pattern() {
        assert_eq!(dues("period=120us", 1, 4), [0, 120_000, 240_000, 360_000]);
        assert_eq!(dues("load=50%", 65_000, 4), [0, 130_000, 260_000, 390_000]);
        assert_eq!(dues("burst=3/1ms", 1, 7), [0, 0, 0, 1_000_000, 1_000_000, 1_000_000, 2_000_000]);
        assert_eq!(dues("ramp=10..10/1s", 1, 4), [0, 100_000_000, 200_000_000, 300_000_000]);
        // Half of t² frames after t s: frame n at the root of 2n, and from 10 s on ten a second.
        let ramp = dues("ramp=0..10/10s", 1, 53);
        assert_eq!([ramp[0], ramp[2], ramp[8], ramp[50]], [0, 2_000_000_000, 4_000_000_000, 10_000_000_000]);
        assert_eq!([ramp[51], ramp[52]], [10_100_000_000, 10_200_000_000]);
        assert_eq!(dues("ramp=9..1/2s", 1, 13)[10..], [2_000_000_000, 3_000_000_000, 4_000_000_000]);
        assert_eq!(Schedule::new(Traffic::Flood).due_ns(), None);
    }

    proptest! {
        /// Each frame is due when the integral of the rate reaches its number, to within 2 ns.
        #[test]
        fn a_ramp_integrates_its_rate(
            from in 0..=RAMP_RATE_MAX,
            to in 1..=RAMP_RATE_MAX,
            over_ns in 1..=RAMP_NS_MAX,
            part in 0.0..1.5,
        ) {
            let (from, to, over) = (i128::from(from), i128::from(to), i128::from(over_ns));
            // Twice the frames until t, times 10⁹ and times `over`.
            let earned = |t: i128| match t {
                t if t <= over => 2 * from * over * t + (to - from) * t * t,
                t => (from + to) * over * over + 2 * to * (t - over) * over,
            };
            let all = (from + to) * over / 2 / 1_000_000_000;
            let frames = (all as f64 * part) as i128;
            let due = ramp_ns(from as u128, to as u128, over as u128, frames as u128);
            let (due, wanted) = (due as i128, 2 * frames * 1_000_000_000 * over);
            prop_assert!(earned(due - 2) <= wanted || due < 2, "{due} is late");
            prop_assert!(earned(due + 2) >= wanted, "{due} is early");
        }

        /// For all lengths of frames, the load is as requested to within one frame.
        #[test]
        fn a_load_is_kept_to_within_one_frame(percent in 1..=100_u32, lengths in prop::collection::vec(47_000..700_000_u64, 1..300)) {
            let mut schedule = Schedule::new(Traffic::Load(percent));
            let mut busy_ns = 0;
            for length in lengths {
                let due_ns = schedule.due_ns().unwrap();
                let asked_ns = due_ns * u64::from(percent) / 100;
                prop_assert!(busy_ns - asked_ns <= 1, "{busy_ns} of {asked_ns}");
                schedule.sent(length);
                busy_ns += length;
            }
        }

        #[test]
        fn a_period_never_drifts(period_ns in 1..10_000_000_000_u64, frames in 0..1_000_000_u64) {
            let schedule = Schedule { traffic: Traffic::Period(period_ns), frames, busy_ns: 0 };
            prop_assert_eq!(schedule.due_ns(), Some(frames * period_ns));
        }
    }
}

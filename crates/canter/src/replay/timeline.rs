//! When a recorded frame is sent: its stamp minus that of the first frame, divided by the speed. Each time is computed
//! from the stamp itself, so errors do not add up. Frames keep the recording's order even when stamps go backwards.

use std::str::FromStr;

/// A stamp that goes backwards by more than this means that the clock was set; the timeline continues from the new stamp.
const CLOCK_STEP_NS: u64 = 1_000_000_000;

/// A multiple of the recorded speed, in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speed(u64);

const MILLION: u64 = 1_000_000;

impl Default for Speed {
    fn default() -> Self {
        Self(MILLION)
    }
}

impl FromStr for Speed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let error = || format!("{text:?} is not a factor from 0.000001 to 1000000 (2, 0.5)");
        let number = text.strip_suffix('x').unwrap_or(text);
        let (integer, part) = number.split_once('.').unwrap_or((number, "0"));
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !digits(integer) || !digits(part) || part.len() > 6 || integer.len() > 7 {
            return Err(error());
        }
        let millionths: u64 = format!("{part:0<6}").parse().map_err(|_| error())?;
        let speed = integer.parse::<u64>().map_err(|_| error())? * MILLION + millionths;
        if (1..=MILLION * MILLION).contains(&speed) { Ok(Self(speed)) } else { Err(error()) }
    }
}

/// The rule for the time of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Each frame by its stamp. A pause longer than `pause_ns_max` is skipped.
    Stamps { speed: Speed, pause_ns_max: Option<u64> },
    /// A constant time from frame to frame, in ns.
    Gap(u64),
    /// As fast as the interfaces accept frames.
    Flood,
}

/// The times of a recording's frames.
#[derive(Clone, Debug)]
pub struct Timeline {
    pace: Pace,
    /// A stamp and its due time, from which all other due times follow. `None`: the next frame is due at once.
    base: Option<(u64, u64)>,
    /// The newest stamp since the base.
    stamp_ns: u64,
    /// When the last frame was due.
    due_ns: u64,
    /// Frames so far.
    frames: u64,
    pub oddities: Oddities,
}

/// Counts of irregular stamps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Oddities {
    /// Stamps that went backwards by more than a second: the timeline continued from there.
    pub clock_steps: u64,
    /// Frames with an older stamp than a frame before: sent directly after it.
    pub out_of_order: u64,
    /// Pauses skipped.
    pub pauses: u64,
}

impl Timeline {
    pub fn new(pace: Pace) -> Self {
        Self { pace, base: None, stamp_ns: 0, due_ns: 0, frames: 0, oddities: Oddities::default() }
    }

    /// Starts another round: its first frame is due at the same time as the last one.
    pub fn restart(&mut self) {
        self.base = None;
    }

    /// When the next frame is due, in ns from the start; `None`: at once.
    pub fn due_ns(&mut self, stamp_ns: u64) -> Option<u64> {
        let (speed, pause_ns_max) = match self.pace {
            Pace::Flood => return None,
            Pace::Gap(gap_ns) => {
                let due_ns = self.frames.saturating_mul(gap_ns);
                self.frames += 1;
                return Some(due_ns);
            }
            Pace::Stamps { speed, pause_ns_max } => (speed, pause_ns_max),
        };
        let back_ns = self.stamp_ns.saturating_sub(stamp_ns);
        let pause_ns = stamp_ns.saturating_sub(self.stamp_ns);
        if self.base.is_some() && back_ns > CLOCK_STEP_NS {
            self.oddities.clock_steps += 1;
            self.base = None;
        } else if self.base.is_some() && pause_ns_max.is_some_and(|most| pause_ns > most) {
            self.oddities.pauses += 1;
            self.base = None;
        } else if self.base.is_some() && back_ns > 0 {
            self.oddities.out_of_order += 1;
            return Some(self.due_ns);
        }
        let (base_ns, base_due_ns) = *self.base.get_or_insert((stamp_ns, self.due_ns));
        self.stamp_ns = stamp_ns;
        let passed = u128::from(stamp_ns - base_ns) * u128::from(MILLION) / u128::from(speed.0);
        self.due_ns = base_due_ns.saturating_add(u64::try_from(passed).unwrap_or(u64::MAX));
        Some(self.due_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const S: u64 = 1_000_000_000;

    fn dues(pace: Pace, stamps: &[u64]) -> (Vec<u64>, Oddities) {
        let mut timeline = Timeline::new(pace);
        let dues = stamps.iter().map(|&stamp| timeline.due_ns(stamp).unwrap()).collect();
        (dues, timeline.oddities)
    }

    fn stamps(speed: &str, pause_ns_max: Option<u64>) -> Pace {
        Pace::Stamps { speed: speed.parse().unwrap(), pause_ns_max }
    }

    #[test]
    fn frames_are_due_at_the_recorded_speed_or_a_multiple_of_it() {
        let recorded = [5 * S, 5 * S + 7, 6 * S, 6 * S];
        assert_eq!(dues(stamps("1", None), &recorded).0, [0, 7, S, S]);
        assert_eq!(dues(stamps("2", None), &recorded).0, [0, 3, S / 2, S / 2]);
        assert_eq!(dues(stamps("0.5x", None), &recorded).0, [0, 14, 2 * S, 2 * S]);
        assert_eq!(dues(Pace::Gap(10), &recorded).0, [0, 10, 20, 30]);
        assert_eq!(Timeline::new(Pace::Flood).due_ns(5), None);
    }

    #[test]
    fn a_clock_that_was_set_back_and_a_long_pause_do_not_stop_the_replay() {
        let (due, odd) = dues(stamps("1", None), &[100 * S, 101 * S, 10 * S, 11 * S]);
        assert_eq!((due, odd.clock_steps), (vec![0, S, S, 2 * S], 1));
        let (due, odd) = dues(stamps("1", Some(5 * S)), &[0, S, 3601 * S, 3602 * S]);
        assert_eq!((due, odd.pauses), (vec![0, S, S, 2 * S], 1));
        let (due, odd) = dues(stamps("1", None), &[0, 50, 20, 60]);
        assert_eq!((due, odd.out_of_order), (vec![0, 50, 50, 60], 1));
    }

    #[test]
    fn a_second_round_follows_the_first() {
        let mut timeline = Timeline::new(stamps("1", None));
        let round = |timeline: &mut Timeline| [7, 9].map(|stamp| timeline.due_ns(stamp).unwrap());
        assert_eq!(round(&mut timeline), [0, 2]);
        timeline.restart();
        assert_eq!(round(&mut timeline), [2, 4]);
        assert_eq!(timeline.oddities, Oddities::default());
    }

    #[test]
    fn a_speed_is_a_factor() {
        for text in ["", "0", "-1", "1e3", "x", "1.", ".5", "0.0000001", "10000000"] {
            assert!(text.parse::<Speed>().is_err(), "{text}");
        }
        assert_eq!("1.5".parse(), Ok(Speed(1_500_000)));
    }

    proptest! {
        /// The order is kept for all stamps; ascending stamps keep their pauses, to the ns.
        #[test]
        fn order_is_kept_and_pauses_are_exact(recorded in prop::collection::vec(0..5 * S, 1..100), sorted: bool) {
            let mut recorded = recorded;
            if sorted {
                recorded.sort_unstable();
            }
            let (due, _) = dues(stamps("1", None), &recorded);
            prop_assert!(due.is_sorted());
            if sorted {
                prop_assert!(due.iter().zip(&recorded).all(|(due, stamp)| *due == stamp - recorded[0]));
            }
        }
    }
}

//! Matches the frames of two buses of a recording by identifier and data, in bounded memory.
//!
//! Frames with the same identifier and data are alike, so a run of them is matched as a whole: when as many frames of the
//! run came out of the gateway as went in, each belongs to the one in its place, because a gateway keeps the order of like
//! frames. A run that lacks a frame cannot tell which one, so its delays are unknown and only the loss is counted. A run
//! begins anew as soon as all of its frames have arrived.

use super::stamps::Stamp;
use canter_frame::Frame;
use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
};

/// Runs longer than this end: a frame has been lost long ago, and memory is bounded.
const RUN_MAX: usize = 1 << 14;
/// Frames between two searches for runs that have ended.
const SWEEP_FRAMES: u64 = 1 << 14;

/// What became of the frames of an identifier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Frames on the direct bus.
    pub direct: u64,
    /// Frames whose delay is known.
    pub matched: u64,
    /// Frames that arrived, but it is unknown which ones: like frames of the same run are lost.
    pub unclear: u64,
    /// Frames that did not arrive.
    pub lost: u64,
    /// The sum of all known delays, in ns.
    pub delay_ns: u64,
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.direct += other.direct;
        self.matched += other.matched;
        self.unclear += other.unclear;
        self.lost += other.lost;
        self.delay_ns = self.delay_ns.saturating_add(other.delay_ns);
    }

    /// The mean delay, if one is known.
    pub fn mean_ns(&self) -> Option<u64> {
        (self.matched > 0).then(|| self.delay_ns / self.matched)
    }

    /// The sum of all tallies.
    pub fn sum<'a>(tallies: impl IntoIterator<Item = &'a Self>) -> Self {
        tallies.into_iter().fold(Self::default(), |mut sum, tally| {
            sum.add(*tally);
            sum
        })
    }

    /// Whether a frame of the identifier was forwarded.
    pub fn is_forwarded(&self) -> bool {
        self.matched + self.unclear > 0
    }
}

/// Like frames on their way.
#[derive(Debug, Default)]
struct Run {
    can_id: u32,
    /// The stamps of the frames on the direct bus that have no partner yet, or of a whole run.
    direct: Vec<Stamp>,
    routed: Vec<Stamp>,
    /// The frame's time on the routed bus.
    frame_ns: u64,
}

/// The frames on their way, by identifier and data.
pub struct Runs<F> {
    delay_max_ns: u64,
    runs: HashMap<u64, Run>,
    tallies: HashMap<u32, Tally>,
    /// Frames on the routed bus that did not come from the direct one.
    strange: u64,
    longest_ns: u64,
    seen: u64,
    delay: F,
}

/// What identifies a frame. Flags of FD frames count: a gateway does not change them by itself.
fn identity(frame: &Frame) -> u64 {
    let mut hasher = DefaultHasher::new();
    (frame.can_id, frame.len, frame.flags, frame.is_fd(), frame.data()).hash(&mut hasher);
    hasher.finish()
}

impl<F: FnMut(&Stamp, &Stamp, u64)> Runs<F> {
    /// Frames that take longer than `delay_max_ns`, by their recorded stamps, count as lost. `delay` receives both stamps of
    /// each matched frame and its time on the routed bus.
    pub fn new(delay_max_ns: u64, delay: F) -> Self {
        let (runs, tallies) = (HashMap::new(), HashMap::new());
        Self { delay_max_ns, runs, tallies, strange: 0, longest_ns: 0, seen: 0, delay }
    }

    /// A frame on the direct bus, as the gateway sends it.
    pub fn direct(&mut self, frame: &Frame, stamp: Stamp) {
        self.sweep(stamp.recorded_ns);
        self.tallies.entry(frame.can_id).or_default().direct += 1;
        let mut run = self.runs.remove(&identity(frame)).unwrap_or_default();
        run.can_id = frame.can_id;
        self.expire(&mut run, stamp.recorded_ns);
        if run.direct.len() == run.routed.len() || run.direct.len() >= RUN_MAX {
            self.close(&mut run);
        }
        run.direct.push(stamp);
        self.runs.insert(identity(frame), run);
    }

    /// A frame on the routed bus, which it occupied for `frame_ns`.
    pub fn routed(&mut self, frame: &Frame, stamp: Stamp, frame_ns: u64) {
        self.sweep(stamp.recorded_ns);
        let Some(mut run) = self.runs.remove(&identity(frame)) else {
            self.strange += 1;
            return;
        };
        run.frame_ns = frame_ns;
        self.expire(&mut run, stamp.recorded_ns);
        if run.direct.len() > run.routed.len() {
            run.routed.push(stamp);
        } else {
            self.strange += 1; // it arrived again, or another node sends the same
        }
        if run.direct.len() == run.routed.len() {
            self.close(&mut run);
        }
        if !run.direct.is_empty() {
            self.runs.insert(identity(frame), run);
        }
    }

    /// Ends all runs.
    pub fn finish(mut self) -> Found {
        for (_, mut run) in std::mem::take(&mut self.runs) {
            self.close(&mut run);
        }
        Found { tallies: self.tallies, strange: self.strange, longest_ns: self.longest_ns }
    }

    /// Gives up the first frames that no frame can belong to any more, or the whole run.
    fn expire(&mut self, run: &mut Run, now_ns: u64) {
        let is_old = |stamp: &Stamp| now_ns.saturating_sub(stamp.recorded_ns) > self.delay_max_ns;
        if run.routed.is_empty() {
            let old = run.direct.iter().take_while(|stamp| is_old(stamp)).count();
            run.direct.drain(..old);
            self.tallies.entry(run.can_id).or_default().lost += old as u64;
        } else if run.direct.last().is_some_and(is_old) {
            self.close(run);
        }
    }

    /// Counts the frames of a run that has ended, and empties it.
    fn close(&mut self, run: &mut Run) {
        let (direct, routed) = (run.direct.len() as u64, run.routed.len() as u64);
        let tally = self.tallies.entry(run.can_id).or_default();
        if direct == routed {
            tally.matched += direct;
            for (direct, routed) in run.direct.iter().zip(&run.routed) {
                let delay_ns = routed.recorded_ns.saturating_sub(direct.recorded_ns);
                tally.delay_ns = tally.delay_ns.saturating_add(delay_ns);
                self.longest_ns = self.longest_ns.max(delay_ns);
                (self.delay)(direct, routed, run.frame_ns);
            }
        } else {
            tally.unclear += routed;
            tally.lost += direct - routed;
        }
        run.direct.clear();
        run.routed.clear();
    }

    /// Ends runs whose frames come no more, so that memory holds the frames of a short time only.
    fn sweep(&mut self, now_ns: u64) {
        self.seen += 1;
        if !self.seen.is_multiple_of(SWEEP_FRAMES) {
            return;
        }
        let mut runs = std::mem::take(&mut self.runs);
        runs.retain(|_, run| {
            self.expire(run, now_ns);
            !run.direct.is_empty()
        });
        self.runs = runs;
    }
}

/// What became of all frames.
#[derive(Debug, Default)]
pub struct Found {
    /// By identifier, with its flags.
    pub tallies: HashMap<u32, Tally>,
    /// Frames on the routed bus that did not come from the direct one.
    pub strange: u64,
    /// The longest time between both stamps of a frame.
    pub longest_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Delays and tallies of frames: bus (`d`, `r`), text, stamp.
    fn matched(delay_max_ns: u64, frames: &[(char, &str, u64)]) -> (Vec<u64>, Tally, u64) {
        let mut delays = Vec::new();
        let mut runs = Runs::new(delay_max_ns, |direct: &Stamp, routed: &Stamp, _| {
            delays.push(routed.recorded_ns - direct.recorded_ns)
        });
        for &(bus, text, stamp_ns) in frames {
            let frame = text.parse().unwrap();
            let stamp = Stamp::recorded(stamp_ns);
            if bus == 'd' { runs.direct(&frame, stamp) } else { runs.routed(&frame, stamp, 0) }
        }
        let Found { tallies, strange, .. } = runs.finish();
        let sum = Tally::sum(tallies.values());
        assert_eq!(sum.delay_ns, delays.iter().sum::<u64>());
        (delays, Tally { delay_ns: 0, ..sum }, strange)
    }

    fn tally(direct: u64, matched: u64, unclear: u64, lost: u64) -> Tally {
        Tally { direct, matched, unclear, lost, ..Tally::default() }
    }

    #[test]
    fn frames_with_their_own_data_are_matched_in_any_order() {
        let frames = [
            ('d', "001#01", 0),
            ('d', "001#02", 10),
            ('r', "001#02", 15),
            ('r', "001#01", 20),
            ('d', "001#03", 30),
            ('r', "777#03", 35),
        ];
        assert_eq!(matched(100, &frames), (vec![5, 20], tally(3, 2, 0, 1), 1));
    }

    #[test]
    fn like_frames_are_matched_while_none_is_lost() {
        let frames = [
            ('d', "001#", 0),
            ('d', "001#", 2),
            ('r', "001#", 5),
            ('r', "001#", 7),
            ('d', "001#", 10),
            ('r', "001#", 16),
        ];
        assert_eq!(matched(100, &frames), (vec![5, 5, 6], tally(3, 3, 0, 0), 0));
    }

    #[test]
    fn a_loss_among_like_frames_is_counted_and_gives_no_wrong_delay() {
        // The frame of 10 is lost; a wrong match would have a delay of 95.
        let frames =
            [('d', "001#", 0), ('r', "001#", 5), ('d', "001#", 10), ('d', "001#", 100), ('r', "001#", 105)];
        assert_eq!(matched(1000, &frames), (vec![5], tally(3, 1, 1, 1), 0));
        // With a bound below the period, it is known which one is lost.
        assert_eq!(matched(50, &frames), (vec![5, 5], tally(3, 2, 0, 1), 0));
    }

    #[test]
    fn a_frame_that_arrives_again_is_strange() {
        let frames = [('d', "001#", 0), ('r', "001#", 5), ('r', "001#", 6)];
        assert_eq!(matched(50, &frames), (vec![5], tally(1, 1, 0, 0), 1));
    }

    proptest! {
        /// A gateway that keeps the order, with constant and counted data, losses and a delay below the bound.
        #[test]
        fn every_frame_has_one_fate_and_known_delays_are_true(
            lost in prop::collection::vec(prop::bool::weighted(0.1), 1..200), counted: bool
        ) {
            let mut events = Vec::new();
            let mut arrived = 0;
            for (n, &lost) in lost.iter().enumerate() {
                let (stamp_ns, data) = (n as u64 * 100, if counted { n as u8 } else { 0 });
                let frame: Frame = format!("123#{data:02X}").parse().unwrap();
                let delay_ns = 7 + n as u64 % 50;
                events.push((stamp_ns, false, frame, delay_ns));
                if !lost {
                    arrived += 1;
                    events.push((stamp_ns + delay_ns, true, frame, delay_ns));
                }
            }
            events.sort_by_key(|event| event.0);
            let mut delays = Vec::new();
            let mut runs = Runs::new(90, |direct: &Stamp, routed: &Stamp, _| {
                let (direct_ns, routed_ns) = (direct.recorded_ns, routed.recorded_ns);
                delays.push((direct_ns / 100, routed_ns - direct_ns));
            });
            for (stamp_ns, routed, frame, _) in &events {
                let stamp = Stamp::recorded(*stamp_ns);
                if *routed { runs.routed(frame, stamp, 0) } else { runs.direct(frame, stamp) }
            }
            let found = runs.finish();
            let sum = Tally::sum(found.tallies.values());
            prop_assert_eq!(sum.direct, lost.len() as u64);
            prop_assert_eq!((sum.matched, sum.unclear, found.strange), (arrived, 0, 0));
            prop_assert_eq!(sum.lost, lost.len() as u64 - arrived);
            for (n, delay_ns) in delays {
                prop_assert_eq!(delay_ns, 7 + n % 50);
            }
        }
    }
}

//! Sources of frames to send: one kind of frame by a schedule, or all frames of a bus by their periods.

use super::{
    pattern::Traffic,
    random::Random,
    recipe::{Maker, Recipe},
    schedule::Schedule,
};
use canter_io::{Frame, frame::BitRate};
use std::{cmp::Reverse, collections::BinaryHeap};

/// A frame and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// In ns from the start; `None`: as soon as there is room.
    pub at_ns: Option<u64>,
    pub frame: Frame,
}

/// An endless sequence of frames, in the order in which they are due.
pub type Source = Box<dyn Iterator<Item = Due> + Send>;

/// Frames of one recipe, by one schedule.
pub struct Steady {
    maker: Maker,
    schedule: Schedule,
    rate: BitRate,
}

impl Steady {
    /// Only a load uses the bit rates.
    pub fn new(recipe: Recipe, seed: u64, traffic: Traffic, rate: BitRate) -> Self {
        Self { maker: Maker::new(recipe, seed), schedule: Schedule::new(traffic), rate }
    }
}

impl Iterator for Steady {
    type Item = Due;

    fn next(&mut self) -> Option<Due> {
        let frame = self.maker.make();
        let at_ns = self.schedule.due_ns();
        self.schedule.sent(frame.duration_with_interframe_ns(self.rate));
        Some(Due { at_ns, frame })
    }
}

/// A periodic frame.
#[derive(Clone, Copy, Debug)]
pub struct Periodic {
    pub recipe: Recipe,
    /// Longer than 0.
    pub period_ns: u64,
    /// When the first is due.
    pub phase_ns: u64,
    /// Each frame is delayed by a random time up to this; less than the period. The delay does not shift later frames.
    pub jitter_ns: u64,
}

/// All frames of a bus.
pub struct Timetable {
    lines: Vec<Line>,
    /// When each line's next frame is due, and the index of the line.
    next: BinaryHeap<Reverse<(u64, usize)>>,
}

struct Line {
    periodic: Periodic,
    maker: Maker,
    random: Random,
    sent: u64,
}

impl Line {
    /// When its next frame is due.
    fn due_ns(&mut self) -> u64 {
        let Periodic { period_ns, phase_ns, jitter_ns, .. } = self.periodic;
        let nominal = period_ns.saturating_mul(self.sent).saturating_add(phase_ns);
        nominal.saturating_add(self.random.below(jitter_ns.saturating_add(1)))
    }
}

impl Timetable {
    pub fn new(frames: &[Periodic], seed: u64) -> Self {
        let mut seeds = Random(seed);
        let line = |&periodic: &Periodic| Line {
            periodic,
            maker: Maker::new(periodic.recipe, seeds.next()),
            random: Random(seeds.next()),
            sent: 0,
        };
        let mut lines: Vec<Line> = frames.iter().map(line).collect();
        let next = lines.iter_mut().enumerate().map(|(at, line)| Reverse((line.due_ns(), at))).collect();
        Self { lines, next }
    }
}

impl Iterator for Timetable {
    type Item = Due;

    fn next(&mut self) -> Option<Due> {
        let Reverse((due_ns, at)) = self.next.pop()?;
        let line = &mut self.lines[at];
        line.sent += 1;
        self.next.push(Reverse((line.due_ns(), at)));
        Some(Due { at_ns: Some(due_ns), frame: line.maker.make() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::content::{Data, Ids, Lengths};
    use proptest::prelude::*;

    fn periodic(id: u32, period_ns: u64, phase_ns: u64, jitter_ns: u64) -> Periodic {
        let recipe = Recipe {
            ids: Ids::Fixed(id),
            extended: false,
            lengths: Lengths::Fixed(8),
            data: Data::Increment,
            fd: false,
            flags: 0,
            rtr: false,
            len8_dlc: false,
            mix: false,
        };
        Periodic { recipe, period_ns, phase_ns, jitter_ns }
    }

    proptest! {
        /// Every frame of every line is due at its time, and all frames are in order.
        #[test]
        fn a_timetable_keeps_every_period(
            lines in prop::collection::vec((1_000..1_000_000_u64, 0..1_000_000_u64, 0..1_000_u64), 1..20),
            seed: u64,
        ) {
            let lines: Vec<Periodic> = lines
                .into_iter()
                .enumerate()
                .map(|(id, (period, phase, jitter))| periodic(id as u32, period, phase, jitter.min(period - 1)))
                .collect();
            let mut sent = vec![0; lines.len()];
            let mut last_ns = 0;
            for due in Timetable::new(&lines, seed).take(500) {
                let at_ns = due.at_ns.unwrap();
                prop_assert!(at_ns >= last_ns);
                last_ns = at_ns;
                let id = due.frame.can_id as usize;
                let nominal_ns = lines[id].phase_ns + sent[id] * lines[id].period_ns;
                prop_assert!((nominal_ns..=nominal_ns + lines[id].jitter_ns).contains(&at_ns));
                prop_assert_eq!(due.frame.data(), sent[id].to_le_bytes());
                sent[id] += 1;
            }
            // Nothing that was due is missing.
            for (line, sent) in lines.iter().zip(sent) {
                prop_assert!(line.phase_ns + sent * line.period_ns + line.jitter_ns >= last_ns);
            }
        }
    }

    #[test]
    fn the_same_seed_makes_the_same_traffic() {
        let lines = [periodic(1, 1000, 0, 900), periodic(2, 1500, 0, 900)];
        let take = |seed| Timetable::new(&lines, seed).take(50).collect::<Vec<_>>();
        assert_eq!(take(5), take(5));
        assert_ne!(take(5), take(6));
    }
}

//! Latencies in order of time, thinned during the measurement: slots of equal length with their minimum and maximum.
//!
//! A histogram does not show one late frame per second, or losses while another program runs. A fixed number of slots,
//! merged in pairs as time goes on, shows them at the same memory cost for a second and a day, without allocating on
//! the frame path.

use crate::result::{Slot, Timeline};

/// The number of slots.
const SLOTS: usize = 1024;
/// The initial length of a slot: 10 µs, shorter than any frame.
const SLOT_NS: u64 = 10_000;

/// Records arrivals of numbered frames. When a later frame arrives, frames with skipped numbers count as lost until they
/// arrive.
pub struct TimelineRecorder {
    slots: Vec<Slot>,
    slot_ns: u64,
    start_ns: Option<u64>,
    /// The latest frame so far: its position in the order of sending, and its stamp.
    latest: (u64, u64),
}

impl Default for TimelineRecorder {
    fn default() -> Self {
        Self { slots: vec![Slot::default(); SLOTS], slot_ns: SLOT_NS, start_ns: None, latest: (0, 0) }
    }
}

impl TimelineRecorder {
    /// Records a frame: its number (the lowest 16 bits of its position in the order of sending), its first stamp, and
    /// its latency in ns.
    pub fn arrived(&mut self, number: u16, stamp_ns: u64, latency_ns: i64) {
        let first = self.start_ns.is_none();
        let start_ns = *self.start_ns.get_or_insert(stamp_ns);
        // The position with this number that is nearest to the latest one.
        let (latest, latest_ns) = self.latest;
        let step = i64::from(number.wrapping_sub(latest as u16) as i16);
        let order = if first { u64::from(number) } else { latest.saturating_add_signed(step) };
        let slot = self.slot(stamp_ns.saturating_sub(start_ns));
        let latency = u64::try_from(latency_ns).unwrap_or(0);
        let arrival = Slot { arrived: 1, min_ns: latency, max_ns: latency, ..Slot::default() };
        self.slots[slot] = self.slots[slot].merge(arrival);
        if first {
            self.slots[slot].lost += order; // all frames before it
            self.latest = (order, stamp_ns);
        } else if order > latest {
            self.lost_between(latest_ns, stamp_ns, order - latest - 1);
            self.latest = (order, stamp_ns);
        } else {
            self.take_back(slot);
        }
    }

    /// Spreads `lost` frames evenly over the time from one stamp to another.
    fn lost_between(&mut self, from_ns: u64, to_ns: u64, lost: u64) {
        let start_ns = self.start_ns.unwrap_or(from_ns);
        for n in 1..=lost {
            let share = u128::from(to_ns.saturating_sub(from_ns)) * u128::from(n) / u128::from(lost + 1);
            let slot = self.slot(from_ns.saturating_add(share as u64).saturating_sub(start_ns));
            self.slots[slot].lost += 1;
        }
    }

    /// Removes one lost frame from a slot near `near`: the frame arrived late.
    fn take_back(&mut self, near: usize) {
        let by_distance = (0..SLOTS).flat_map(|distance| [near.checked_sub(distance), Some(near + distance)]);
        let mut slots = by_distance.flatten().filter(|&slot| slot < SLOTS);
        if let Some(slot) = slots.find(|&slot| self.slots[slot].lost > 0) {
            self.slots[slot].lost -= 1;
        }
    }

    /// The slot of a time since the start; merges slots until there is one.
    fn slot(&mut self, since_ns: u64) -> usize {
        while since_ns / self.slot_ns >= SLOTS as u64 {
            for n in 0..SLOTS / 2 {
                self.slots[n] = self.slots[2 * n].merge(self.slots[2 * n + 1]);
            }
            self.slots[SLOTS / 2..].fill(Slot::default());
            self.slot_ns *= 2;
        }
        (since_ns / self.slot_ns) as usize
    }

    /// The timeline for the result file; `sent` is the total of sent frames.
    pub fn finish(mut self, sent: u64) -> Timeline {
        let (latest, latest_ns) = self.latest;
        if let (Some(start_ns), Some(rest)) = (self.start_ns, sent.checked_sub(latest + 1)) {
            let slot = self.slot(latest_ns.saturating_sub(start_ns));
            self.slots[slot].lost += rest; // frames after the last arrival
        }
        let happened = self.slots.iter().enumerate().filter(|(_, slot)| slot.arrived + slot.lost > 0);
        let slots = happened.map(|(n, slot)| Slot { number: n as u64, ..*slot });
        Timeline { slot_ns: self.slot_ns, slots: slots.collect(), load: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_slot_keeps_its_extremes_and_a_gap_in_the_numbers_is_a_loss() {
        let mut recorder = TimelineRecorder::default();
        for (number, stamp_ns, latency_ns) in [(0, 1_000, 50), (1, 2_000, 70), (4, 41_000, 60)] {
            recorder.arrived(number, stamp_ns, latency_ns);
        }
        let timeline = recorder.finish(5);
        assert_eq!(timeline.slot_ns, 10_000);
        assert_eq!(
            timeline.slots,
            [[0, 2, 50, 70, 0], [1, 0, 0, 0, 1], [2, 0, 0, 0, 1], [4, 1, 60, 60, 0]].map(Slot::from)
        );
    }

    #[test]
    fn a_frame_that_is_only_late_is_not_lost() {
        let mut recorder = TimelineRecorder::default();
        for number in [0, 2, 1] {
            recorder.arrived(number, 1_000 * u64::from(number), 9);
        }
        assert_eq!(recorder.finish(3).slots, [[0, 3, 9, 9, 0]].map(Slot::from));
    }

    proptest! {
        #[test]
        fn every_frame_is_in_a_slot_and_the_extremes_are_exact(
            came in prop::collection::vec(any::<bool>(), 1..3000), step_ns in 1..50_000_000_u64
        ) {
            let mut recorder = TimelineRecorder::default();
            let latency = |n: usize| (n * 7919 % 1000) as i64;
            let arrived: Vec<usize> = (0..came.len()).filter(|&n| came[n]).collect();
            for &n in &arrived {
                recorder.arrived(n as u16, n as u64 * step_ns, latency(n));
            }
            let timeline = recorder.finish(came.len() as u64);
            let sum = |count: fn(&Slot) -> u64| timeline.slots.iter().map(count).sum::<u64>();
            prop_assert_eq!(sum(|slot| slot.arrived), arrived.len() as u64);
            prop_assert_eq!(sum(|slot| slot.lost), if arrived.is_empty() { 0 } else { (came.len() - arrived.len()) as u64 });
            let longest = arrived.iter().map(|&n| latency(n) as u64).max().unwrap_or(0);
            prop_assert_eq!(timeline.slots.iter().map(|slot| slot.max_ns).max().unwrap_or(0), longest);
            prop_assert!(timeline.slots.iter().all(|slot| slot.number < SLOTS as u64));
        }
    }
}

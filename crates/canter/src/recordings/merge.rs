//! Merges several recordings by stamp. Frames of the same recording keep their order, unless they are to be sorted.

use super::input::Inputs;
use canter_cli::failure;
use canter_frame::{BusId, ControllerStamp, Record};
use std::{
    cmp::Reverse,
    collections::{BinaryHeap, binary_heap::PeekMut},
};

/// A frame and the index of its recording. Ordered by stamp; frames with the same stamp keep their order.
struct Held {
    stamp_ns: u64,
    /// Number in the order of reading.
    sequence: u64,
    input: usize,
    entry: Record,
}

impl PartialEq for Held {
    fn eq(&self, other: &Self) -> bool {
        self.sequence == other.sequence
    }
}

impl Eq for Held {}

impl PartialOrd for Held {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Held {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.stamp_ns, self.sequence).cmp(&(other.stamp_ns, other.sequence))
    }
}

/// The recordings, in the order of their next frames.
pub struct Merge {
    inputs: Inputs,
    /// The inputs by the stamp of their next frame; those with the same stamp in their order.
    order: BinaryHeap<Reverse<(u64, usize)>>,
    /// To sort, frames are held back until a stamp is newer by this, in ns; `None`: frames are not sorted.
    window_ns: Option<u64>,
    held: BinaryHeap<Reverse<Held>>,
    /// The frame that [`next`](Self::next) has found last.
    record: Record,
    newest_ns: u64,
    frames_read: u64,
    last_ns: u64,
    backwards: u64,
}

impl Merge {
    pub fn new(inputs: Inputs, window_ns: Option<u64>) -> Self {
        let stamp = |at| Some(Reverse((inputs.stamp_ns(at)?, at)));
        Self {
            order: (0..inputs.len()).filter_map(stamp).collect(),
            inputs,
            window_ns,
            held: BinaryHeap::new(),
            record: Record::default(),
            newest_ns: 0,
            frames_read: 0,
            last_ns: 0,
            backwards: 0,
        }
    }

    /// Finds the next frame, and returns the index of its recording.
    #[inline]
    pub fn next(&mut self) -> failure::Result<Option<usize>> {
        let next = if self.window_ns.is_some() { self.sorted()? } else { self.oldest()? };
        if next.is_some() {
            self.backwards += u64::from(self.record.stamp_ns < self.last_ns);
            self.last_ns = self.record.stamp_ns;
        }
        Ok(next)
    }

    /// The frame that [`next`](Self::next) has found last.
    #[inline]
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// Puts that frame onto another bus.
    #[inline]
    pub fn put_onto(&mut self, bus: BusId) {
        self.record.bus = bus;
    }

    /// Finds the oldest of the recordings' next frames.
    #[inline]
    fn oldest(&mut self) -> failure::Result<Option<usize>> {
        self.inputs.check()?;
        let Some(mut first) = self.order.peek_mut() else { return Ok(None) };
        let at = first.0.1;
        let is_there = self.inputs.take(at, &mut self.record)?;
        match self.inputs.stamp_ns(at) {
            Some(stamp_ns) => first.0.0 = stamp_ns,
            None => drop(PeekMut::pop(first)),
        }
        Ok(is_there.then_some(at))
    }

    /// Finds the oldest held frame, once no frame within the window can precede it.
    fn sorted(&mut self) -> failure::Result<Option<usize>> {
        let window_ns = self.window_ns.unwrap_or(0);
        loop {
            let is_settled =
                |held: &Reverse<Held>| held.0.stamp_ns.saturating_add(window_ns) < self.newest_ns;
            if self.held.peek().is_some_and(is_settled) {
                break;
            }
            let Some(input) = self.oldest()? else { break };
            let (entry, stamp_ns) = (self.record, self.record.stamp_ns);
            self.newest_ns = self.newest_ns.max(stamp_ns);
            self.held.push(Reverse(Held { stamp_ns, sequence: self.frames_read, input, entry }));
            self.frames_read += 1;
        }
        Ok(self.held.pop().map(|Reverse(held)| {
            self.record = held.entry;
            held.input
        }))
    }

    /// The controller's stamp of the frame that [`next`](Self::next) has found last, if its recording has one and frames are
    /// not sorted.
    #[inline]
    pub fn controller_stamp(&self) -> Option<ControllerStamp> {
        self.inputs.controller_stamp().filter(|_| self.window_ns.is_none())
    }

    pub fn name(&self, input: usize, bus: BusId) -> &str {
        self.inputs.name(input, bus)
    }

    /// The names of the buses of all recordings, sorted: can2 before can10. Complete when all frames are read.
    pub fn names(&self) -> Vec<String> {
        self.inputs.names()
    }

    /// Bytes read from all recordings.
    pub fn bytes(&self) -> u64 {
        self.inputs.bytes()
    }

    /// Number of frames whose stamp is older than that of the frame before.
    pub fn backwards(&self) -> u64 {
        self.backwards
    }

    pub fn into_inputs(self) -> Inputs {
        self.inputs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recordings::Opening;

    /// A merge of logs with these stamps.
    fn merge(logs: &[&[u64]], window_ns: Option<u64>) -> Merge {
        let folder = tempfile::tempdir().unwrap();
        let line =
            |stamp: &u64| format!("({:010}.{:09}) can0 123#\n", stamp / 1_000_000_000, stamp % 1_000_000_000);
        let file = |(at, stamps): (usize, &&[u64])| {
            let path = folder.path().join(at.to_string());
            std::fs::write(&path, stamps.iter().map(line).collect::<String>()).unwrap();
            path
        };
        let paths: Vec<_> = logs.iter().enumerate().map(file).collect();
        Merge::new(Inputs::open(&paths, Opening::default()).unwrap(), window_ns)
    }

    fn stamps(mut merge: Merge) -> (Vec<(usize, u64)>, u64) {
        let mut stamps = Vec::new();
        while let Some(input) = merge.next().unwrap() {
            stamps.push((input, merge.record().stamp_ns));
        }
        (stamps, merge.backwards())
    }

    #[test]
    fn recordings_are_merged_by_stamp_and_keep_their_own_order() {
        let merged = stamps(merge(&[&[1, 5, 3, 9], &[2, 4, 9]], None));
        assert_eq!(merged, (vec![(0, 1), (1, 2), (1, 4), (0, 5), (0, 3), (0, 9), (1, 9)], 1));
    }

    #[test]
    fn frames_out_of_order_by_less_than_the_window_are_sorted() {
        let sorted = stamps(merge(&[&[10, 50, 30, 90, 95], &[20, 9, 200]], Some(20)));
        assert_eq!(
            sorted.0.iter().map(|&(_, stamp)| stamp).collect::<Vec<_>>(),
            [9, 10, 20, 30, 50, 90, 95, 200]
        );
        assert_eq!(sorted.1, 0);
        let short = stamps(merge(&[&[10, 50, 60, 30]], Some(1)));
        assert_eq!(short, (vec![(0, 10), (0, 50), (0, 30), (0, 60)], 1));
    }
}

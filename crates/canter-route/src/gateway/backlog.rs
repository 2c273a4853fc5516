//! The bounded queue of frames while an output is full and the input continues. Its policy decides which frame is dropped.

use canter_io::{
    Frame,
    frame::{EFF_FLAG, EFF_MASK, RTR_FLAG, SFF_MASK},
};
use std::collections::{BTreeMap, VecDeque};

/// The policy while the output is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum WhenFull {
    /// The input waits too; a frame that finds no room within a second is dropped
    #[default]
    Wait,
    /// Frames wait in a backlog; when it is full, new frames are dropped
    DropNew,
    /// Frames wait in a backlog; when it is full, the oldest frames are dropped
    DropOld,
}

/// Frames that wait, in the order in which they will be sent.
#[derive(Debug)]
pub struct Backlog {
    frames_max: usize,
    drop_old: bool,
    queue: Queue,
}

#[derive(Debug)]
enum Queue {
    /// In the order of arrival.
    Arrival(VecDeque<Frame>),
    /// The most urgent first, as on the bus; frames of the same identifier in the order of arrival.
    Priority { frames: BTreeMap<(u64, u64), Frame>, arrived: u64 },
}

impl Backlog {
    /// A queue of up to `frames_max` frames; `None` when the input waits instead.
    pub fn new(policy: WhenFull, by_priority: bool, frames_max: usize) -> Option<Self> {
        let queue = if by_priority {
            Queue::Priority { frames: BTreeMap::new(), arrived: 0 }
        } else {
            Queue::Arrival(VecDeque::with_capacity(frames_max))
        };
        let backlog = Self { frames_max, drop_old: policy == WhenFull::DropOld, queue };
        (policy != WhenFull::Wait).then_some(backlog)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn len(&self) -> usize {
        match &self.queue {
            Queue::Arrival(frames) => frames.len(),
            Queue::Priority { frames, .. } => frames.len(),
        }
    }

    /// Adds a frame. False: the queue was full and a frame was dropped, either the oldest or the new one; by priority the
    /// oldest or newest of the least urgent.
    pub fn push(&mut self, frame: &Frame) -> bool {
        let full = self.len() == self.frames_max;
        match &mut self.queue {
            Queue::Arrival(_) if full && !self.drop_old => return false,
            Queue::Arrival(frames) => {
                if full {
                    frames.pop_front();
                }
                frames.push_back(*frame);
            }
            Queue::Priority { frames, arrived } => {
                *arrived += 1;
                frames.insert((urgency(frame), *arrived), *frame);
                if full {
                    drop_least_urgent(frames, self.drop_old);
                }
            }
        }
        !full
    }

    /// The next frames to send; `None` when the queue is empty.
    pub fn first(&mut self) -> Option<&[Frame]> {
        match &mut self.queue {
            Queue::Arrival(frames) => Some(&*frames.make_contiguous()).filter(|frames| !frames.is_empty()),
            Queue::Priority { frames, .. } => {
                frames.first_key_value().map(|(_, frame)| std::slice::from_ref(frame))
            }
        }
    }

    /// Removes the first `count` frames, which were sent.
    pub fn remove(&mut self, count: usize) {
        match &mut self.queue {
            Queue::Arrival(frames) => drop(frames.drain(..count)),
            Queue::Priority { frames, .. } => (0..count).for_each(|_| {
                let _ = frames.pop_first();
            }),
        }
    }

    /// Empties the queue; returns the number of removed frames.
    pub fn clear(&mut self) -> usize {
        let count = self.len();
        match &mut self.queue {
            Queue::Arrival(frames) => frames.clear(),
            Queue::Priority { frames, .. } => frames.clear(),
        }
        count
    }
}

fn drop_least_urgent(frames: &mut BTreeMap<(u64, u64), Frame>, oldest: bool) {
    let Some(&(least, newest)) = frames.keys().next_back() else { return };
    let first = frames.range((least, 0)..).next().map(|(key, _)| *key);
    frames.remove(&if oldest { first.unwrap_or((least, newest)) } else { (least, newest) });
}

/// The lower value wins arbitration. ISO 11898-1: the first 11 bits, RTR or SRR, IDE, the other 18 bits, RTR.
fn urgency(frame: &Frame) -> u64 {
    let remote = u64::from(frame.can_id & RTR_FLAG != 0);
    if frame.can_id & EFF_FLAG == 0 {
        return u64::from(frame.can_id & SFF_MASK) << 21 | remote << 20;
    }
    let id = u64::from(frame.can_id & EFF_MASK);
    id >> 18 << 21 | 1 << 20 | 1 << 19 | (id & 0x3_ffff) << 1 | remote
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(policy: WhenFull, by_priority: bool, frames: &[&str]) -> (Vec<String>, usize) {
        let mut backlog = Backlog::new(policy, by_priority, 3).unwrap();
        let lost = frames.iter().filter(|text| !backlog.push(&text.parse().unwrap())).count();
        let mut left = Vec::new();
        while let Some(frames) = backlog.first() {
            left.push(frames[0].to_string());
            backlog.remove(1);
        }
        (left, lost)
    }

    #[test]
    fn a_full_backlog_drops_the_new_or_the_old_or_the_least_urgent() {
        let frames = ["300#01", "100#02", "200#03", "300#04", "100#05"];
        assert_eq!(
            after(WhenFull::DropNew, false, &frames),
            (vec!["300#01".into(), "100#02".into(), "200#03".into()], 2)
        );
        assert_eq!(
            after(WhenFull::DropOld, false, &frames),
            (vec!["200#03".into(), "300#04".into(), "100#05".into()], 2)
        );
        assert_eq!(
            after(WhenFull::DropNew, true, &frames),
            (vec!["100#02".into(), "100#05".into(), "200#03".into()], 2)
        );
        let equal = ["300#01", "300#02", "300#03", "300#04"];
        assert_eq!(after(WhenFull::DropOld, true, &equal).0, ["300#02", "300#03", "300#04"]);
        assert_eq!(after(WhenFull::DropNew, true, &equal).0, ["300#01", "300#02", "300#03"]);
        assert!(Backlog::new(WhenFull::Wait, false, 3).is_none());
    }

    #[test]
    fn urgency_is_the_order_of_arbitration() {
        let order = ["000#", "0FF#", "0FF#R", "03FC0000#", "03FC0001#", "100#", "7FF#R", "1FFFFFFF#"];
        let urgencies: Vec<_> = order.iter().map(|text| urgency(&text.parse().unwrap())).collect();
        assert!(urgencies.is_sorted_by(|a, b| a < b), "{urgencies:x?}");
    }
}

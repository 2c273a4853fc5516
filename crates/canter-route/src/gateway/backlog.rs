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

/// The settings of a backlog.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub policy: WhenFull,
    pub by_priority: bool,
    pub frames_max: usize,
    /// The longest wait of a frame, in ns: on a bus, an old frame is a wrong one.
    pub age_ns_max: u64,
}

/// Frames that wait, in the order in which they will be sent.
#[derive(Debug)]
pub struct Backlog {
    limits: Limits,
    queue: Queue,
}

#[derive(Debug)]
enum Queue {
    /// Frames and their times of arrival, in their order.
    Arrival { frames: VecDeque<Frame>, arrived_ns: VecDeque<u64> },
    /// The most urgent first, as on the bus; frames of the same identifier in the order of arrival.
    Priority { frames: BTreeMap<(u64, u64), (Frame, u64)>, arrived: u64 },
}

impl Backlog {
    /// An empty queue; `None` when the input waits instead.
    pub fn new(limits: Limits) -> Option<Self> {
        let Limits { policy, by_priority, frames_max, .. } = limits;
        let queue = if by_priority {
            Queue::Priority { frames: BTreeMap::new(), arrived: 0 }
        } else {
            Queue::Arrival {
                frames: VecDeque::with_capacity(frames_max),
                arrived_ns: VecDeque::with_capacity(frames_max),
            }
        };
        (policy != WhenFull::Wait).then_some(Self { limits, queue })
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn len(&self) -> usize {
        match &self.queue {
            Queue::Arrival { frames, .. } => frames.len(),
            Queue::Priority { frames, .. } => frames.len(),
        }
    }

    /// The longest wait of a frame, in ns.
    pub fn age_ns_max(&self) -> u64 {
        self.limits.age_ns_max
    }

    /// Drops the frames that have waited for too long at `now_ns`, and returns how many.
    pub fn expire(&mut self, now_ns: u64) -> usize {
        let (before, oldest_ns) = (self.len(), now_ns.saturating_sub(self.limits.age_ns_max));
        match &mut self.queue {
            Queue::Arrival { frames, arrived_ns } => {
                let old = arrived_ns.partition_point(|&ns| ns < oldest_ns);
                frames.drain(..old);
                arrived_ns.drain(..old);
            }
            Queue::Priority { frames, .. } => frames.retain(|_, (_, ns)| *ns >= oldest_ns),
        }
        before - self.len()
    }

    /// Adds a frame that arrives at `now_ns`. False: the queue was full and a frame was dropped, either the oldest or the new one; by priority the
    /// oldest or newest of the least urgent.
    pub fn push(&mut self, frame: &Frame, now_ns: u64) -> bool {
        let full = self.len() == self.limits.frames_max;
        let drop_old = self.limits.policy == WhenFull::DropOld;
        match &mut self.queue {
            Queue::Arrival { .. } if full && !drop_old => return false,
            Queue::Arrival { frames, arrived_ns } => {
                if full {
                    frames.pop_front();
                    arrived_ns.pop_front();
                }
                frames.push_back(*frame);
                arrived_ns.push_back(now_ns);
            }
            Queue::Priority { frames, arrived } => {
                *arrived += 1;
                frames.insert((urgency(frame), *arrived), (*frame, now_ns));
                if full {
                    drop_least_urgent(frames, drop_old);
                }
            }
        }
        !full
    }

    /// The next frames to send; `None` when the queue is empty.
    pub fn first(&mut self) -> Option<&[Frame]> {
        match &mut self.queue {
            Queue::Arrival { frames, .. } => {
                Some(&*frames.make_contiguous()).filter(|frames| !frames.is_empty())
            }
            Queue::Priority { frames, .. } => {
                frames.first_key_value().map(|(_, (frame, _))| std::slice::from_ref(frame))
            }
        }
    }

    /// Removes the first `count` frames, which were sent.
    pub fn remove(&mut self, count: usize) {
        match &mut self.queue {
            Queue::Arrival { frames, arrived_ns } => {
                frames.drain(..count);
                arrived_ns.drain(..count);
            }
            Queue::Priority { frames, .. } => (0..count).for_each(|_| {
                let _ = frames.pop_first();
            }),
        }
    }

    /// Empties the queue; returns the number of removed frames.
    pub fn clear(&mut self) -> usize {
        let count = self.len();
        match &mut self.queue {
            Queue::Arrival { frames, arrived_ns } => {
                frames.clear();
                arrived_ns.clear();
            }
            Queue::Priority { frames, .. } => frames.clear(),
        }
        count
    }
}

fn drop_least_urgent(frames: &mut BTreeMap<(u64, u64), (Frame, u64)>, oldest: bool) {
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
        let mut backlog = Backlog::new(Limits { policy, by_priority, frames_max: 3, age_ns_max: 1 }).unwrap();
        let lost = frames.iter().filter(|text| !backlog.push(&text.parse().unwrap(), 0)).count();
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
        let policy = WhenFull::Wait;
        assert!(Backlog::new(Limits { policy, by_priority: false, frames_max: 3, age_ns_max: 1 }).is_none());
    }

    #[test]
    fn a_frame_that_has_waited_for_too_long_is_dropped_by_every_policy() {
        for (policy, by_priority) in [
            (WhenFull::DropNew, false),
            (WhenFull::DropOld, false),
            (WhenFull::DropNew, true),
            (WhenFull::DropOld, true),
        ] {
            let mut backlog =
                Backlog::new(Limits { policy, by_priority, frames_max: 8, age_ns_max: 1000 }).unwrap();
            for (text, arrived_ns) in [("100#", 0), ("300#", 400), ("200#", 900)] {
                assert!(backlog.push(&text.parse().unwrap(), arrived_ns));
            }
            assert_eq!([1000, 1001, 1001, 1400].map(|now_ns| backlog.expire(now_ns)), [0, 1, 0, 0]);
            assert_eq!((backlog.expire(1401), backlog.first().unwrap()[0].to_string()), (1, "200#".into()));
            assert_eq!((backlog.expire(u64::MAX), backlog.first()), (1, None));
        }
    }

    #[test]
    fn urgency_is_the_order_of_arbitration() {
        let order = ["000#", "0FF#", "0FF#R", "03FC0000#", "03FC0001#", "100#", "7FF#R", "1FFFFFFF#"];
        let urgencies: Vec<_> = order.iter().map(|text| urgency(&text.parse().unwrap())).collect();
        assert!(urgencies.is_sorted_by(|a, b| a < b), "{urgencies:x?}");
    }
}

//! Frames that wait in memory for an event: the last seconds, in blocks of bytes. When its memory is full, the oldest block
//! goes, and what it held is remembered as long as an event could ask for it.

use canter_frame::{
    BusId, Direction, RawRecord,
    frame::{CAN_MTU, CANFD_MTU},
};
use std::collections::VecDeque;

/// The size of a block in bytes.
const BLOCK_BYTES: usize = 64 << 10;
/// Memory beside the waiting frames, in bytes: a block that is being filled, and one whose frames are not all too old.
pub const SLACK_BYTES: usize = 2 * BLOCK_BYTES;
/// A waiting frame takes this much, in bytes: classic, and FD or with its direction.
pub const CLASSIC_BYTES: usize = HEAD_BYTES + CAN_MTU;
pub const OTHER_BYTES: usize = HEAD_BYTES + 12 + CANFD_MTU;

const HEAD_BYTES: usize = 16;
/// Flags of a waiting frame.
const LATE: u8 = 1;
const NOTED: u8 = 2;
const RECEIVED: u8 = 4;
const SENT: u8 = 8;

/// Waiting frames, in the order in which they were handed out.
pub struct Waiting {
    blocks: VecDeque<Block>,
    /// Empty memory for reuse.
    spare: Option<Vec<u8>>,
    limit: usize,
    high_water: usize,
    /// Blocks that had to go too early.
    gone: VecDeque<Gone>,
}

struct Block {
    /// What a stamp is ahead of the time.
    offset_ns: i64,
    /// The latest time of its frames.
    last: u64,
    bytes: Vec<u8>,
}

/// What a block held.
struct Gone {
    last: u64,
    frames: Vec<u64>,
}

/// A waiting frame.
pub struct Entry<'a> {
    pub time: u64,
    pub record: RawRecord<'a>,
    pub late: bool,
}

impl Waiting {
    /// Room for `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self { blocks: VecDeque::new(), spare: None, limit, high_water: 0, gone: VecDeque::new() }
    }

    /// Adds a frame of this time, whose stamp is `offset_ns` ahead of it. Frames before `oldest` may go.
    #[inline]
    pub fn push(&mut self, record: &RawRecord<'_>, late: bool, time: u64, offset_ns: i64, oldest: u64) {
        let fits = |block: &&mut Block| {
            block.offset_ns == offset_ns && block.bytes.len() + OTHER_BYTES <= BLOCK_BYTES
        };
        let block = match self.blocks.back_mut().filter(fits) {
            Some(block) => block,
            None => self.next_block(offset_ns, oldest),
        };
        block.last = block.last.max(time);
        block.push(record, late);
    }

    #[cold]
    fn next_block(&mut self, offset_ns: i64, oldest: u64) -> &mut Block {
        while self.blocks.front().is_some_and(|block| block.last < oldest) {
            self.spare = self.blocks.pop_front().map(|block| block.bytes);
        }
        while (self.blocks.len() + 1) * BLOCK_BYTES > self.limit.max(BLOCK_BYTES) {
            let Some(block) = self.blocks.pop_front() else { break };
            self.gone.push_back(Gone { last: block.last, frames: block.frames() });
            self.spare = Some(block.bytes);
        }
        while self.gone.front().is_some_and(|gone| gone.last < oldest) {
            self.gone.pop_front();
        }
        let mut bytes = self.spare.take().unwrap_or_else(|| Vec::with_capacity(BLOCK_BYTES));
        bytes.clear();
        self.blocks.push_back(Block { offset_ns, last: 0, bytes });
        self.high_water = self.high_water.max(self.blocks.len() * BLOCK_BYTES);
        let last = self.blocks.len() - 1;
        &mut self.blocks[last]
    }

    /// Takes all frames out, in their order.
    pub fn drain(&mut self, mut each: impl FnMut(Entry<'_>)) {
        for block in self.blocks.drain(..) {
            block.each(&mut each);
        }
        self.spare = None;
    }

    /// Takes out what an event would have needed from this time on, and what has gone: its frames, of each bus. Of a block
    /// that is partly older, all frames count.
    pub fn take_gone(&mut self, from: u64) -> Vec<u64> {
        let mut sum = Vec::new();
        for gone in self.gone.drain(..).filter(|gone| gone.last >= from) {
            sum.resize(gone.frames.len().max(sum.len()), 0);
            gone.frames.iter().zip(&mut sum).for_each(|(frames, sum)| *sum += frames);
        }
        sum
    }

    /// The most memory that was in use, in bytes.
    pub fn high_water(&self) -> usize {
        self.high_water
    }
}

impl Block {
    #[inline]
    fn push(&mut self, record: &RawRecord<'_>, late: bool) {
        let is_plain = !late && record.direction.is_none() && record.hardware_ns == 0;
        match <&[u8; CAN_MTU]>::try_from(record.bytes) {
            Ok(bytes) if is_plain => {
                let mut entry = [0; CLASSIC_BYTES];
                entry[..8].copy_from_slice(&record.stamp_ns.to_ne_bytes());
                entry[8..12].copy_from_slice(&record.bus.0.to_ne_bytes());
                entry[12] = CAN_MTU as u8;
                entry[HEAD_BYTES..].copy_from_slice(bytes);
                self.bytes.extend_from_slice(&entry);
            }
            _ => self.push_noted(record, late),
        }
    }

    fn push_noted(&mut self, record: &RawRecord<'_>, late: bool) {
        let direction = match record.direction {
            None => 0,
            Some(Direction::Received) => RECEIVED,
            Some(Direction::Sent) => SENT,
        };
        let bytes = &record.bytes[..record.bytes.len().min(CANFD_MTU)];
        self.bytes.extend_from_slice(&record.stamp_ns.to_ne_bytes());
        self.bytes.extend_from_slice(&record.bus.0.to_ne_bytes());
        let late = if late { LATE } else { 0 };
        self.bytes.extend_from_slice(&[bytes.len() as u8, NOTED | direction | late, 0, 0]);
        self.bytes.extend_from_slice(&record.hardware_ns.to_ne_bytes());
        self.bytes.extend_from_slice(&record.bound_ns.to_ne_bytes());
        self.bytes.extend_from_slice(bytes);
    }

    fn each(&self, mut each: impl FnMut(Entry<'_>)) {
        let mut rest = self.bytes.as_slice();
        while let Some((head, after)) = rest.split_first_chunk::<HEAD_BYTES>() {
            let [a, b, c, d, e, f, g, h, i, j, k, l, len, flags, _, _] = *head;
            let stamp_ns = u64::from_ne_bytes([a, b, c, d, e, f, g, h]);
            let (mut hardware_ns, mut bound_ns, mut after) = (0, 0, after);
            if flags & NOTED != 0
                && let Some((word, behind)) = after.split_first_chunk()
                && let Some((bound, behind)) = behind.split_first_chunk()
            {
                (hardware_ns, bound_ns) = (u64::from_ne_bytes(*word), u32::from_ne_bytes(*bound));
                after = behind;
            }
            let Some((bytes, behind)) = after.split_at_checked(len.into()) else { return };
            let direction = match flags & (RECEIVED | SENT) {
                RECEIVED => Some(Direction::Received),
                SENT => Some(Direction::Sent),
                _ => None,
            };
            let bus = BusId(u32::from_ne_bytes([i, j, k, l]));
            let record =
                RawRecord { direction, hardware_ns, bound_ns, ..RawRecord::new(stamp_ns, bus, bytes) };
            let time = stamp_ns.wrapping_add_signed(self.offset_ns.wrapping_neg());
            each(Entry { time, record, late: flags & LATE != 0 });
            rest = behind;
        }
    }

    /// How many frames of each bus it has.
    fn frames(&self) -> Vec<u64> {
        let mut frames = Vec::new();
        self.each(|entry| {
            let bus = entry.record.bus.index();
            frames.resize(frames.len().max(bus + 1), 0);
            frames[bus] += 1;
        });
        frames
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn drained(waiting: &mut Waiting) -> Vec<(u64, u64, u32)> {
        let mut all = Vec::new();
        waiting.drain(|Entry { time, record, .. }| all.push((time, record.stamp_ns, record.bus.0)));
        all
    }

    #[test]
    fn what_is_too_old_goes_and_what_goes_too_early_is_counted() {
        // Two blocks of memory.
        let mut waiting = Waiting::new(2 * BLOCK_BYTES);
        let in_block = (BLOCK_BYTES - OTHER_BYTES) / CLASSIC_BYTES + 1;
        let push = |waiting: &mut Waiting, time: u64, oldest| {
            waiting.push(
                &RawRecord::new(time, BusId((time % 2) as u32), &[0; CAN_MTU]),
                false,
                time,
                0,
                oldest,
            );
        };
        let all = 2 * in_block as u64;
        (0..all).for_each(|time| push(&mut waiting, time, 0));
        assert_eq!(waiting.high_water(), 2 * BLOCK_BYTES);
        push(&mut waiting, all, in_block as u64); // the first block is too old
        assert_eq!(waiting.take_gone(0).iter().sum::<u64>(), 0);
        (all + 1..=all + in_block as u64).for_each(|time| push(&mut waiting, time, 0));
        let gone = waiting.take_gone(0);
        assert_eq!(
            (gone.iter().sum::<u64>(), gone.len()),
            (in_block as u64, 2),
            "the second block had to go"
        );
        assert_eq!(waiting.take_gone(0), Vec::<u64>::new());
        assert_eq!(drained(&mut waiting).len(), in_block + 1);
        assert_eq!(drained(&mut waiting), []);
    }

    proptest! {
        #[test]
        fn frames_come_out_as_they_went_in(
            frames in prop::collection::vec(
                (any::<u64>(), 0u32..9, any::<bool>(), any::<bool>(), 0u64..3, 0u8..3, any::<u8>()), 0..3000),
        ) {
            let mut waiting = Waiting::new(1 << 20);
            let payload = |fill: u8, fd: bool| [fill; CANFD_MTU][..if fd { CANFD_MTU } else { CAN_MTU }].to_vec();
            for &(stamp_ns, bus, late, fd, hardware_ns, direction, fill) in &frames {
                let direction = [None, Some(Direction::Sent), Some(Direction::Received)][usize::from(direction)];
                let bytes = payload(fill, fd);
                let bound_ns = hardware_ns as u32 * 7;
                let record = RawRecord { direction, hardware_ns, bound_ns, ..RawRecord::new(stamp_ns, BusId(bus), &bytes) };
                waiting.push(&record, late, stamp_ns, 0, 0);
            }
            let mut at = 0;
            waiting.drain(|entry| {
                let (stamp_ns, bus, late, fd, hardware_ns, direction, fill) = frames[at];
                let direction = [None, Some(Direction::Sent), Some(Direction::Received)][usize::from(direction)];
                let bytes = payload(fill, fd);
                let bound_ns = hardware_ns as u32 * 7;
                let record = RawRecord { direction, hardware_ns, bound_ns, ..RawRecord::new(stamp_ns, BusId(bus), &bytes) };
                assert_eq!((entry.record, entry.late, entry.time), (record, late, stamp_ns));
                at += 1;
            });
            prop_assert_eq!(at, frames.len());
        }
    }
}

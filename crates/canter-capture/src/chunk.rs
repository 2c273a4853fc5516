//! Chunks: the frames of one block of the ring on their way to the file, stored in as little memory as possible.

use canter_frame::{
    BusId, Direction, RawRecord,
    frame::{CAN_MTU, CANFD_MTU},
};
use std::ops::Range;

/// A frame of one size.
pub struct Entry<const BYTES: usize> {
    stamp_ns: u64,
    bus: BusId,
    bytes: [u8; BYTES],
}

/// A frame of either size with its direction and hardware stamp, as a socket reports them.
pub struct NotedEntry {
    frame: Entry<CANFD_MTU>,
    len: u8,
    direction: Option<Direction>,
    bound_ns: u32,
    hardware_ns: u64,
}

// The memory per second at full bus load follows from these sizes.
const _: () = assert!(size_of::<Entry<CAN_MTU>>() == 32 && size_of::<Entry<CANFD_MTU>>() == 88);
const _: () = assert!(size_of::<NotedEntry>() == 104);

/// A container that frames can be added to.
pub trait Hold {
    /// Adds a frame. Returns false, and adds nothing, if the frame is too large for an entry.
    fn hold(&mut self, record: &RawRecord<'_>) -> bool;
}

impl<const BYTES: usize> Hold for Vec<Entry<BYTES>> {
    #[inline]
    fn hold(&mut self, record: &RawRecord<'_>) -> bool {
        let Ok(&bytes) = record.bytes.try_into() else { return false };
        self.push(Entry { stamp_ns: record.stamp_ns, bus: record.bus, bytes });
        true
    }
}

impl Hold for Vec<NotedEntry> {
    fn hold(&mut self, record: &RawRecord<'_>) -> bool {
        let RawRecord { stamp_ns, bus, bytes, direction, hardware_ns, bound_ns } = *record;
        let mut frame = Entry { stamp_ns, bus, bytes: [0; CANFD_MTU] };
        let Some(place) = frame.bytes.get_mut(..bytes.len()) else { return false };
        place.copy_from_slice(bytes);
        self.push(NotedEntry { frame, len: bytes.len() as u8, direction, bound_ns, hardware_ns });
        true
    }
}

/// Frames of one kind; [`sort`](Self::sort) sorts them by stamp.
pub enum Chunk {
    Classic(Vec<Entry<CAN_MTU>>),
    Fd(Vec<Entry<CANFD_MTU>>),
    /// Classic and FD frames, with direction and hardware stamps.
    Noted(Vec<NotedEntry>),
}

/// The memory of a chunk besides its frames, in bytes.
const CHUNK_BYTES: usize = 64;

impl Chunk {
    /// An empty chunk with room for `frames` frames, either all FD or all classic.
    pub fn new(fd: bool, frames: usize) -> Self {
        if fd { Self::Fd(Vec::with_capacity(frames)) } else { Self::Classic(Vec::with_capacity(frames)) }
    }

    /// An empty chunk with room for `frames` frames with direction and hardware stamps.
    pub fn noted(frames: usize) -> Self {
        Self::Noted(Vec::with_capacity(frames))
    }

    /// Empties the chunk for reuse, if its memory fits `frames` frames of this kind and is not much larger: the queue counts
    /// the memory of its chunks. Returns whether it did.
    pub fn reuse(&mut self, fd: bool, frames: usize) -> bool {
        let fits = |capacity: usize| (frames..=2 * frames).contains(&capacity);
        match self {
            Self::Classic(entries) if !fd && fits(entries.capacity()) => entries.clear(),
            Self::Fd(entries) if fd && fits(entries.capacity()) => entries.clear(),
            _ => return false,
        }
        true
    }

    pub fn len(&self) -> usize {
        match self {
            Self::Classic(entries) => entries.len(),
            Self::Fd(entries) => entries.len(),
            Self::Noted(entries) => entries.len(),
        }
    }

    /// The frame at `at`, which is below `len`.
    #[inline]
    pub fn record(&self, at: usize) -> RawRecord<'_> {
        match self {
            Self::Classic(entries) => view(&entries[at]),
            Self::Fd(entries) => view(&entries[at]),
            Self::Noted(entries) => {
                let NotedEntry { frame, len, direction, bound_ns, hardware_ns } = &entries[at];
                let bytes = &frame.bytes[..usize::from(*len)];
                let record = RawRecord::new(frame.stamp_ns, frame.bus, bytes);
                RawRecord { direction: *direction, hardware_ns: *hardware_ns, bound_ns: *bound_ns, ..record }
            }
        }
    }

    /// The stamp of the frame at `at`, which is below `len`.
    #[inline]
    pub fn stamp_ns(&self, at: usize) -> u64 {
        match self {
            Self::Classic(entries) => entries[at].stamp_ns,
            Self::Fd(entries) => entries[at].stamp_ns,
            Self::Noted(entries) => entries[at].frame.stamp_ns,
        }
    }

    /// Passes the frames at these positions, which are below `len`, to `take`.
    #[inline]
    pub fn each(&self, places: Range<usize>, mut take: impl FnMut(&RawRecord<'_>)) {
        match self {
            Self::Classic(entries) => entries[places].iter().for_each(|entry| take(&view(entry))),
            Self::Fd(entries) => entries[places].iter().for_each(|entry| take(&view(entry))),
            Self::Noted(_) => places.for_each(|at| take(&self.record(at))),
        }
    }

    /// The position of the first of these frames that is sought, or their end.
    #[inline]
    pub fn find(&self, places: Range<usize>, is_sought: impl Fn(&RawRecord<'_>) -> bool) -> usize {
        let Range { start, end } = places;
        let found = match self {
            Self::Classic(entries) => entries[places].iter().position(|entry| is_sought(&view(entry))),
            Self::Fd(entries) => entries[places].iter().position(|entry| is_sought(&view(entry))),
            Self::Noted(_) => places.into_iter().position(|at| is_sought(&self.record(at))),
        };
        found.map_or(end, |found| start + found)
    }

    /// How many frames of a sorted chunk have stamps of at most `limit_ns`.
    pub fn until(&self, limit_ns: u64) -> usize {
        let all = self.len();
        if all > 0 && self.stamp_ns(all - 1) <= limit_ns {
            return all;
        }
        self.before(limit_ns.saturating_add(1))
    }

    /// How many frames of a sorted chunk have stamps below `limit_ns`.
    pub fn before(&self, limit_ns: u64) -> usize {
        match self {
            Self::Classic(entries) => entries.partition_point(|entry| entry.stamp_ns < limit_ns),
            Self::Fd(entries) => entries.partition_point(|entry| entry.stamp_ns < limit_ns),
            Self::Noted(entries) => entries.partition_point(|entry| entry.frame.stamp_ns < limit_ns),
        }
    }

    pub fn records(&self) -> impl Iterator<Item = RawRecord<'_>> {
        (0..self.len()).map(|at| self.record(at))
    }

    /// Sorts by stamp; frames with equal stamps keep their order.
    pub fn sort(&mut self) {
        match self {
            Self::Classic(entries) => entries.sort_by_key(|entry| entry.stamp_ns),
            Self::Fd(entries) => entries.sort_by_key(|entry| entry.stamp_ns),
            Self::Noted(entries) => entries.sort_by_key(|entry| entry.frame.stamp_ns),
        }
    }

    /// Where a stamp is more than `step_ns` below the one before it, the clock was set back: splits the frames there, and
    /// returns the later ones.
    pub fn split_where_clock_was_set_back(&mut self, step_ns: u64) -> Option<Self> {
        let back = |at: &usize| self.stamp_ns(*at).saturating_add(step_ns) < self.stamp_ns(*at - 1);
        let at = (1..self.len()).find(back)?;
        Some(match self {
            Self::Classic(entries) => Self::Classic(entries.split_off(at)),
            Self::Fd(entries) => Self::Fd(entries.split_off(at)),
            Self::Noted(entries) => Self::Noted(entries.split_off(at)),
        })
    }

    /// Whether stamps only grow.
    pub fn is_sorted(&self) -> bool {
        match self {
            Self::Classic(entries) => entries.is_sorted_by_key(|entry| entry.stamp_ns),
            Self::Fd(entries) => entries.is_sorted_by_key(|entry| entry.stamp_ns),
            Self::Noted(entries) => entries.is_sorted_by_key(|entry| entry.frame.stamp_ns),
        }
    }

    /// The memory that the chunk takes, in bytes.
    pub fn bytes(&self) -> usize {
        CHUNK_BYTES
            + match self {
                Self::Classic(entries) => entries.capacity() * size_of::<Entry<CAN_MTU>>(),
                Self::Fd(entries) => entries.capacity() * size_of::<Entry<CANFD_MTU>>(),
                Self::Noted(entries) => entries.capacity() * size_of::<NotedEntry>(),
            }
    }
}

#[inline]
fn view<const BYTES: usize>(entry: &Entry<BYTES>) -> RawRecord<'_> {
    RawRecord::new(entry.stamp_ns, entry.bus, &entry.bytes)
}

#[cfg(test)]
impl Hold for Chunk {
    fn hold(&mut self, record: &RawRecord<'_>) -> bool {
        match self {
            Self::Classic(entries) => entries.hold(record),
            Self::Fd(entries) => entries.hold(record),
            Self::Noted(entries) => entries.hold(record),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames per second of 20 buses at 1 Mbit/s with 47-bit frames only: the maximum.
    const WORST: u64 = 425_540;

    #[test]
    fn the_default_buffers_survive_the_worst_case_as_long_as_documented() {
        use crate::queue::{Item, Queue};
        use canter_io::capture_ring::{BLOCK_BYTES, RING_BYTES};
        assert_eq!(20 * 1_000_000_u64.div_ceil(47), WORST);
        // Fills the queue with full blocks, like the receiver while the disk stalls.
        const HEAD_BYTES: usize = 48; // of a block
        const PART: usize = 16; // of the queue is filled, to save memory
        let queue = Queue::new(crate::QUEUE_BYTES / PART);
        let fill = |fd: bool, slot: usize| {
            let a_block = (BLOCK_BYTES - HEAD_BYTES) / slot;
            let bytes = if fd { CANFD_MTU } else { CAN_MTU };
            let mut frames = 0u64;
            loop {
                let mut chunk = Chunk::new(fd, a_block);
                (0..a_block).for_each(|_| {
                    assert!(chunk.hold(&RawRecord::new(0, BusId(0), &[0; CANFD_MTU][..bytes])))
                });
                if queue.push(chunk).is_err() {
                    break frames;
                }
                frames += a_block as u64;
            }
        };
        let classic = fill(false, 112);
        let (mut items, used) = (std::collections::VecDeque::<Item>::new(), queue.used().0);
        queue.take(&mut items, std::time::Duration::ZERO);
        drop(items);
        queue.release(used);
        let fd = fill(true, 168);
        let tenths = |frames: u64| frames * PART as u64 * 10 / WORST;
        assert_eq!((tenths(classic), tenths(fd)), (196, 71), "19.6 s and 7.1 s");
        // The ring: with an FD interface one lane of half the memory for each kind, else one lane of all memory.
        let ring =
            |bytes: usize, slot: usize| (bytes / BLOCK_BYTES * ((BLOCK_BYTES - HEAD_BYTES) / slot)) as u64;
        let ms = |frames: u64| frames * 1000 / WORST;
        let lanes = (ms(ring(RING_BYTES / 2, 112)), ms(ring(RING_BYTES / 2, 168)));
        assert_eq!((ms(ring(RING_BYTES, 112)), lanes), (1405, (702, 468)));
    }

    #[test]
    fn direction_and_hardware_stamp_are_kept_and_frames_are_sorted() {
        let record = |stamp_ns, len, hardware_ns| RawRecord {
            direction: Some(Direction::Sent),
            hardware_ns,
            bound_ns: 3,
            ..RawRecord::new(stamp_ns, BusId(7), &[3; CANFD_MTU][..len])
        };
        let (later, earlier) = (record(9, CAN_MTU, 1), record(8, CANFD_MTU, 0));
        let mut chunk = Chunk::noted(2);
        assert!(
            chunk.hold(&later) && chunk.hold(&earlier) && !chunk.hold(&RawRecord::new(0, BusId(0), &[0; 73]))
        );
        chunk.sort();
        assert_eq!(chunk.records().collect::<Vec<_>>(), [earlier, later]);
    }
}

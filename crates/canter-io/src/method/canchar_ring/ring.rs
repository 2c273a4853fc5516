//! One ring of a canchar device's mapping and this process's cursor in it: memory shared with the driver. Mapping it is
//! the only system call.
//!
//! Barriers are lettered as in kernel/canchar/ring.h: A publishes a slot and pairs with B, C hands it back and pairs
//! with D. The full barrier between publishing a slot and reading `need_wakeup` pairs with the driver's barrier between
//! setting `need_wakeup` and reading the ring for the last time.
#![allow(unsafe_code)]

use super::super::canchar::append;
use crate::{
    Batch,
    sys::{
        canchar::{Device, RawFrame},
        map::Map,
    },
    uapi::canchar::{MAP_MAGIC, MAP_VERSION, MapHeader, RING_HEAD, RING_NEED_WAKEUP, RING_SLOTS, RING_TAIL},
};
use std::{
    io,
    os::fd::AsFd,
    sync::atomic::{AtomicU32, Ordering, fence},
};

/// The bytes of a mapping's header.
const HEADER_BYTES: usize = 4096;
/// The alignment of a ring, in bytes.
const ALIGNMENT: u32 = 64;

/// One ring of a mapping.
pub(super) struct Ring {
    map: Map,
    /// Where it begins, in bytes from the map's start.
    offset: usize,
    slots: u32,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Direction {
    Receive,
    Transmit,
}

impl Ring {
    /// Maps an open device's ring of one direction.
    ///
    /// # Errors
    /// The error of mmap(2); `Unsupported` for rings of another version, `InvalidData` for a ring that is not inside
    /// of its mapping.
    pub fn map(device: &Device, direction: Direction) -> io::Result<Self> {
        let header = Map::read_write(device.as_fd(), HEADER_BYTES)?;
        // SAFETY: a page holds a whole header, which the driver wrote before the mapping.
        let about = unsafe { header.start().cast::<MapHeader>().read_volatile() };
        let bytes = bytes_of(&about)?;
        Self::inside(Map::read_write(device.as_fd(), bytes)?, &about, direction)
    }

    /// The ring of one direction inside of a map with this description.
    fn inside(map: Map, about: &MapHeader, direction: Direction) -> io::Result<Self> {
        let (offset, slots) = match direction {
            Direction::Receive => (about.rx_offset, about.rx_slots),
            Direction::Transmit => (about.tx_offset, about.tx_slots),
        };
        // In 64 bits, which no value from the driver overflows.
        let slot_bytes = u64::from(slots) * size_of::<RawFrame>() as u64;
        let end = u64::from(offset) + RING_SLOTS as u64 + slot_bytes;
        let aligned = offset.is_multiple_of(ALIGNMENT);
        if !slots.is_power_of_two() || !aligned || end > map.bytes() as u64 {
            let why = format!("the driver describes an invalid ring: {slots} slots at byte {offset}");
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        Ok(Self { map, offset: offset as usize, slots })
    }

    /// A word of the ring's head lines.
    #[inline]
    fn word(&self, at: usize) -> &AtomicU32 {
        // SAFETY: the ring lies within the map.
        let word = unsafe { self.map.start().as_ptr().add(self.offset + at) };
        // SAFETY: the ring is 64-aligned and each word 4-aligned; it lives as long as the map, and the driver changes
        // it as one word.
        unsafe { AtomicU32::from_ptr(word.cast()) }
    }

    /// The slot of index `at`.
    #[inline]
    fn slot(&self, at: u32) -> *mut RawFrame {
        let index = (at & (self.slots - 1)) as usize;
        // SAFETY: the index is below the number of slots, which lie within the map.
        unsafe { self.map.start().as_ptr().add(self.offset + RING_SLOTS + index * size_of::<RawFrame>()) }
            .cast()
    }
}

/// The bytes of a mapping with this description.
fn bytes_of(about: &MapHeader) -> io::Result<usize> {
    let known = about.magic == MAP_MAGIC && about.version == MAP_VERSION;
    if !known || about.slot_size as usize != size_of::<RawFrame>() {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "rings of another version of canchar"));
    }
    let bytes = usize::try_from(about.bytes);
    bytes.map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "the driver's rings are larger than memory"))
}

/// This process's end of a receive ring.
pub(super) struct Consumer {
    ring: Ring,
    /// The next slot to read.
    tail: u32,
}

impl Consumer {
    /// Continues after the frames that read(2) has taken from the ring before it was mapped.
    pub fn new(ring: Ring) -> Self {
        let tail = ring.word(RING_TAIL).load(Ordering::Relaxed); // from now on only this process writes it
        Self { ring, tail }
    }

    /// Moves waiting frames to the batch while it has room.
    ///
    /// # Errors
    /// `InvalidData` when the driver reports more frames than slots.
    #[inline]
    pub fn take(&mut self, batch: &mut Batch, index: u32, stamps: bool) -> io::Result<usize> {
        let head = self.ring.word(RING_HEAD).load(Ordering::Acquire); // B, pairs with A in canchar_ring_publish()
        let waiting = head.wrapping_sub(self.tail);
        if waiting > self.ring.slots {
            return Err(nonsense(waiting, self.ring.slots));
        }
        let count = waiting.min(batch.room() as u32);
        for at in 0..count {
            // SAFETY: slots from tail to head are ours until the tail is published.
            let raw = unsafe { self.ring.slot(self.tail.wrapping_add(at)).read() };
            append(batch, &raw, index, stamps);
        }
        if count > 0 {
            self.tail = self.tail.wrapping_add(count);
            self.ring.word(RING_TAIL).store(self.tail, Ordering::Release); // C, pairs with D in canchar_ring_put()
        }
        Ok(count as usize)
    }
}

#[cold]
fn nonsense(waiting: u32, slots: u32) -> io::Error {
    let why = format!("the driver reports {waiting} frames in {slots} slots");
    io::Error::new(io::ErrorKind::InvalidData, why)
}

/// This process's end of a transmit ring.
pub(super) struct Producer {
    ring: Ring,
    /// The next slot to fill.
    head: u32,
}

impl Producer {
    /// Continues after the frames that write(2) has put into the ring before it was mapped.
    pub fn new(ring: Ring) -> Self {
        let head = ring.word(RING_HEAD).load(Ordering::Relaxed); // from now on only this process writes it
        Self { ring, head }
    }

    /// Slots that the driver has not sent yet.
    #[inline]
    pub fn waiting(&self) -> u32 {
        // D, pairs with C in canchar_ring_get()
        self.head.wrapping_sub(self.ring.word(RING_TAIL).load(Ordering::Acquire))
    }

    /// Whether all slots are full.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.waiting() >= self.ring.slots
    }

    /// Fills the next slot; false when the ring is full.
    #[inline]
    pub fn put(&mut self, raw: RawFrame) -> bool {
        if self.is_full() {
            return false;
        }
        // SAFETY: the driver's tail says that the slot is ours until the head is published.
        unsafe { self.ring.slot(self.head).write(raw) };
        self.head = self.head.wrapping_add(1);
        self.ring.word(RING_HEAD).store(self.head, Ordering::Release); // A, pairs with B in canchar_ring_get()
        true
    }

    /// Whether the driver needs a call to look at the ring.
    #[inline]
    pub fn needs_kick(&self) -> bool {
        fence(Ordering::SeqCst);
        self.ring.word(RING_NEED_WAKEUP).load(Ordering::Relaxed) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOTS: u32 = 4;
    const OFFSET: u32 = 64;
    const BYTES: usize = OFFSET as usize + RING_SLOTS + SLOTS as usize * size_of::<RawFrame>();

    fn about() -> MapHeader {
        MapHeader {
            magic: MAP_MAGIC,
            version: MAP_VERSION,
            slot_size: size_of::<RawFrame>() as u32,
            rx_offset: OFFSET,
            rx_slots: SLOTS,
            bytes: BYTES as u64,
            ..MapHeader::default()
        }
    }

    /// A ring whose indexes are at this value.
    fn ring(head: u32, tail: u32) -> Ring {
        let ring = Ring::inside(Map::plain(BYTES), &about(), Direction::Receive).unwrap();
        ring.word(RING_HEAD).store(head, Ordering::Relaxed);
        ring.word(RING_TAIL).store(tail, Ordering::Relaxed);
        ring
    }

    fn raw(number: u32) -> RawFrame {
        RawFrame { can_id: number, len: 1, stamp_ns: number.into(), ..RawFrame::default() }
    }

    /// Does what the driver does with a received frame.
    fn receive(ring: &Ring, number: u32) {
        let head = ring.word(RING_HEAD).load(Ordering::Relaxed);
        assert!(head.wrapping_sub(ring.word(RING_TAIL).load(Ordering::Acquire)) < SLOTS);
        // SAFETY: the tail says that the slot is the driver's.
        unsafe { ring.slot(head).write(raw(number)) };
        ring.word(RING_HEAD).store(head.wrapping_add(1), Ordering::Release);
    }

    fn ids(batch: &Batch) -> Vec<u32> {
        batch.frames().iter().map(|frame| frame.can_id).collect()
    }

    #[test]
    fn frames_come_out_in_order_past_the_largest_index() {
        let start = u32::MAX - 2;
        let mut consumer = Consumer::new(ring(start, start));
        let mut batch = Batch::new(3);
        for number in 0..10 {
            receive(&consumer.ring, 2 * number);
            receive(&consumer.ring, 2 * number + 1);
            batch.clear();
            assert_eq!(consumer.take(&mut batch, 7, true).unwrap(), 2);
            assert_eq!(ids(&batch), [2 * number, 2 * number + 1]);
            assert_eq!(batch.meta()[1].stamp_ns, u64::from(2 * number) + 1);
        }
    }

    #[test]
    fn what_was_read_before_the_ring_was_mapped_does_not_come_again() {
        let ring = ring(3, 3);
        receive(&ring, 9);
        let mut batch = Batch::new(8);
        assert_eq!(Consumer::new(ring).take(&mut batch, 7, true).unwrap(), 1);
        assert_eq!(ids(&batch), [9]);
    }

    #[test]
    fn a_head_that_cannot_be_is_an_error() {
        let mut batch = Batch::new(8);
        for head in [SLOTS + 1, u32::MAX] {
            let error = Consumer::new(ring(head, 0)).take(&mut batch, 7, true).unwrap_err();
            assert_eq!((error.kind(), batch.len()), (io::ErrorKind::InvalidData, 0), "{head}");
        }
    }

    #[test]
    fn a_ring_that_is_not_inside_of_its_mapping_is_an_error() {
        let refused = |change: fn(&mut MapHeader)| {
            let mut about = about();
            change(&mut about);
            let ring =
                bytes_of(&about).and_then(|_| Ring::inside(Map::plain(BYTES), &about, Direction::Receive));
            ring.err().unwrap().kind()
        };
        assert_eq!(refused(|about| about.magic = 0), io::ErrorKind::Unsupported);
        assert_eq!(refused(|about| about.slot_size = 16), io::ErrorKind::Unsupported);
        for change in [
            (|about| about.rx_slots = 3) as fn(&mut MapHeader),
            |about| about.rx_slots = 0,
            |about| about.rx_slots = 2 * SLOTS,
            |about| about.rx_slots = 1 << 31,
            |about| about.rx_offset = OFFSET + 64,
            |about| about.rx_offset = OFFSET - 4,
            |about| about.rx_offset = !63,
        ] {
            assert_eq!(refused(change), io::ErrorKind::InvalidData);
        }
    }

    #[test]
    fn a_full_transmit_ring_takes_no_more_until_the_driver_has_taken_a_slot() {
        let mut producer = Producer::new(ring(u32::MAX, u32::MAX));
        (0..SLOTS).for_each(|number| assert!(producer.put(raw(number))));
        assert!(!producer.put(raw(9)) && producer.is_full());
        assert_eq!((producer.waiting(), producer.needs_kick()), (SLOTS, false));
        // SAFETY: the head says that the slot is the driver's.
        assert_eq!(unsafe { producer.ring.slot(u32::MAX).read() }, raw(0));
        producer.ring.word(RING_TAIL).store(0, Ordering::Release);
        producer.ring.word(RING_NEED_WAKEUP).store(1, Ordering::Relaxed);
        assert!(producer.put(raw(9)) && producer.needs_kick());
        assert_eq!(producer.waiting(), SLOTS);
    }

    #[test]
    fn two_threads_hand_over_every_frame_once_and_in_order() {
        const FRAMES: u32 = if cfg!(miri) { 100 } else { 50_000 };
        let mut producer = Producer::new(ring(0, 0));
        let other = Ring::inside(producer.ring.map.other_end(), &about(), Direction::Receive).unwrap();
        let mut consumer = Consumer::new(other);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let (mut batch, mut next) = (Batch::new(3), 0);
                while next < FRAMES {
                    batch.clear();
                    consumer.take(&mut batch, 7, false).unwrap();
                    for (frame, expected) in batch.frames().iter().zip(next..) {
                        assert_eq!(frame.can_id, expected);
                    }
                    next += batch.len() as u32;
                    crate::sys::thread::relax();
                }
            });
            for number in 0..FRAMES {
                while !producer.put(raw(number)) {
                    crate::sys::thread::relax();
                }
            }
            while producer.waiting() > 0 {
                crate::sys::thread::relax();
            }
        });
    }
}

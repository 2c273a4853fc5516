//! `canchar-ring`: the rings of a canchar device, mapped. The interrupt handler, or a call that polls the controller,
//! fills the receive ring; sending takes a system call only when the driver would not look by itself.
//!
//! Barriers are lettered as in kernel/canchar/ring.h: A publishes a slot and pairs with B, C hands it back and pairs
//! with D. The full barrier between a published slot and the look at `need_wakeup` pairs with the driver's between its
//! setting of `need_wakeup` and its last look at the ring.
#![allow(unsafe_code)]

use super::{
    Receive, ReceiveOptions, Transmit, TransmitOptions, Wait,
    canchar::{append, open_receiver, open_transmitter, to_raw},
    read_write::short_count,
};
use crate::{
    Batch, Error, Frame, Interface, Result,
    sys::{
        canchar::{Device, FOREVER, RawFrame},
        map::Map,
        poll,
    },
    uapi::canchar::{MAP_MAGIC, MAP_VERSION, MapHeader, RING_HEAD, RING_NEED_WAKEUP, RING_SLOTS, RING_TAIL},
};
use std::{
    io,
    os::fd::{AsFd, BorrowedFd},
    sync::atomic::{AtomicU32, Ordering, fence},
};

/// Bytes that hold the header of every mapping.
const HEADER_BYTES: usize = 4096;
/// Slots of the receive ring of a transmitter: as few as there can be.
const UNUSED_SLOTS: u32 = 2;
/// How many empty looks a spinning receiver takes before it asks the device whether it still runs.
const LOOKS_PER_CHECK: u32 = 1 << 12;

/// One ring of a mapping.
struct Ring {
    map: Map,
    /// Where it begins, in bytes from the map's start.
    offset: usize,
    slots: u32,
}

#[derive(Clone, Copy)]
enum Direction {
    Receive,
    Transmit,
}

impl Ring {
    fn map(device: &Device, direction: Direction) -> io::Result<Self> {
        let header = Map::of(device.as_fd(), HEADER_BYTES)?;
        // SAFETY: a page holds a whole header, which the driver wrote before the mapping.
        let about = unsafe { header.start().cast::<MapHeader>().read_volatile() };
        let known = about.magic == MAP_MAGIC && about.version == MAP_VERSION;
        if !known || about.slot_size as usize != size_of::<RawFrame>() {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "rings of another version of canchar"));
        }
        let map = Map::of(device.as_fd(), about.bytes as usize)?;
        let (offset, slots) = match direction {
            Direction::Receive => (about.rx_offset, about.rx_slots),
            Direction::Transmit => (about.tx_offset, about.tx_slots),
        };
        let end = offset as usize + RING_SLOTS + slots as usize * size_of::<RawFrame>();
        assert!(slots.is_power_of_two() && end <= about.bytes as usize, "the driver promises so");
        Ok(Self { map, offset: offset as usize, slots })
    }

    /// A word of the ring's head lines.
    fn word(&self, at: usize) -> &AtomicU32 {
        // SAFETY: the ring lies within the map.
        let word = unsafe { self.map.start().as_ptr().add(self.offset + at) };
        // SAFETY: the ring is 64-aligned and each word 4-aligned; it lives as long as the map, and the driver changes it
        // as one word.
        unsafe { AtomicU32::from_ptr(word.cast()) }
    }

    /// The slot of index `at`.
    fn slot(&self, at: u32) -> *mut RawFrame {
        let index = (at & (self.slots - 1)) as usize;
        // SAFETY: the index is below the number of slots, which lie within the map.
        unsafe { self.map.start().as_ptr().add(self.offset + RING_SLOTS + index * size_of::<RawFrame>()) }
            .cast()
    }
}

pub(super) fn receiver(interface: &Interface, options: &ReceiveOptions) -> Result<Box<dyn Receive>> {
    let wait = options.wait.unwrap_or(Wait::Block);
    let device = open_receiver(interface, options, wait)?;
    let ring = Ring::map(&device, Direction::Receive);
    let ring = ring.map_err(|error| Error::new(&interface.name, "mmap", error))?;
    let (index, stamps) = (interface.index, options.stamps);
    Ok(Box::new(RingReceiver { ring, device, wait, tail: 0, looks: 0, index, stamps }))
}

struct RingReceiver {
    ring: Ring,
    device: Device,
    wait: Wait,
    /// The next slot to read.
    tail: u32,
    /// Empty looks since the device was last asked.
    looks: u32,
    index: u32,
    stamps: bool,
}

impl RingReceiver {
    fn take(&mut self, batch: &mut Batch) -> usize {
        let head = self.ring.word(RING_HEAD).load(Ordering::Acquire); // B, pairs with A in canchar_ring_publish()
        let count = head.wrapping_sub(self.tail).min(batch.room() as u32);
        for at in 0..count {
            // SAFETY: slots from tail to head are ours until the tail is published.
            let raw = unsafe { self.ring.slot(self.tail.wrapping_add(at)).read() };
            append(batch, &raw, self.index, self.stamps);
        }
        if count > 0 {
            self.tail = self.tail.wrapping_add(count);
            self.ring.word(RING_TAIL).store(self.tail, Ordering::Release); // C, pairs with D in canchar_ring_put()
        }
        count as usize
    }

    /// Waits until something may be there; false when a signal came or nothing did.
    fn wait(&mut self) -> io::Result<bool> {
        match self.wait {
            Wait::Spin => {
                std::hint::spin_loop();
                self.looks += 1;
                if self.looks < LOOKS_PER_CHECK {
                    return Ok(false);
                }
                self.looks = 0;
                self.ask(0)
            }
            Wait::Poll => {
                let ready = poll::readable(&[self.device.as_fd()], None)?;
                // Ready may mean trouble, of which only the device tells.
                if ready == 0 { Ok(false) } else { self.ask(0) }
            }
            _ => self.ask(FOREVER),
        }
    }

    fn ask(&self, timeout_ns: u64) -> io::Result<bool> {
        match self.device.wait(1, timeout_ns) {
            Ok(waiting) => Ok(waiting > 0),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl Receive for RingReceiver {
    fn receive(&mut self, batch: &mut Batch) -> io::Result<usize> {
        if batch.room() == 0 {
            return Ok(0);
        }
        match self.take(batch) {
            0 if self.wait()? => Ok(self.take(batch)),
            count => Ok(count),
        }
    }

    fn drops(&mut self) -> io::Result<u64> {
        self.device.lost()
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.device.as_fd())
    }
}

pub(super) fn transmitter(interface: &Interface, options: &TransmitOptions) -> Result<Box<dyn Transmit>> {
    let device = open_transmitter(interface, options)?;
    let set = device.change(|set| set.rx_slots = UNUSED_SLOTS);
    set.map_err(|error| Error::new(&interface.name, "set options", error))?;
    let ring = Ring::map(&device, Direction::Transmit);
    let ring = ring.map_err(|error| Error::new(&interface.name, "mmap", error))?;
    Ok(Box::new(RingTransmitter { ring, device, wait: !options.no_wait, head: 0 }))
}

struct RingTransmitter {
    ring: Ring,
    device: Device,
    wait: bool,
    /// The next slot to fill.
    head: u32,
}

impl RingTransmitter {
    /// Slots that the driver has not taken yet.
    fn waiting(&self) -> u32 {
        // D, pairs with C in canchar_ring_get()
        self.head.wrapping_sub(self.ring.word(RING_TAIL).load(Ordering::Acquire))
    }

    /// Fills the next slot; false when the ring is full.
    fn put(&mut self, raw: RawFrame) -> bool {
        if self.waiting() >= self.ring.slots {
            return false;
        }
        // SAFETY: the driver's tail says that the slot is ours until the head is published.
        unsafe { self.ring.slot(self.head).write(raw) };
        self.head = self.head.wrapping_add(1);
        self.ring.word(RING_HEAD).store(self.head, Ordering::Release); // A, pairs with B in canchar_ring_get()
        true
    }

    fn needs_kick(&self) -> bool {
        fence(Ordering::SeqCst);
        self.ring.word(RING_NEED_WAKEUP).load(Ordering::Relaxed) != 0
    }

    /// Waits for a free slot; false when a signal came.
    fn wait_for_room(&mut self) -> io::Result<bool> {
        if self.pending() > 0 {
            self.flush()?;
        }
        if self.waiting() < self.ring.slots {
            return Ok(true);
        }
        Ok(poll::writable(self.device.as_fd(), None)? > 0)
    }
}

impl Transmit for RingTransmitter {
    fn transmit(&mut self, frames: &[Frame]) -> io::Result<usize> {
        for (taken, frame) in frames.iter().enumerate() {
            let raw = match to_raw(frame) {
                Ok(raw) => raw,
                Err(error) => return short_count(taken, error),
            };
            while !self.put(raw) {
                if !self.wait {
                    return Ok(taken);
                }
                match self.wait_for_room() {
                    Ok(true) => {}
                    Ok(false) => return Ok(taken),
                    Err(error) => return short_count(taken, error),
                }
            }
        }
        Ok(frames.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.waiting() == 0 {
            return Ok(());
        }
        match self.device.kick() {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// What the driver would not take by itself.
    fn pending(&self) -> usize {
        let waiting = self.waiting();
        if waiting > 0 && self.needs_kick() { waiting as usize } else { 0 }
    }

    fn lost(&self) -> u64 {
        self.device.statistics().map_or(0, |counted| counted.file_tx_lost)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.device.as_fd())
    }
}

//! An analyzer's tap on a virtual wire: every frame with its start and its end in ns, and what went wrong with it, from
//! memory that the module canwire shares. Reading costs no system call and disturbs nobody; a reader that is slower
//! than the ring is told how many records it has missed.
//!
//! kernel/uapi/canwire.h, `struct canwire_ring` and `struct canwire_record`. The kernel writes a record, then the head
//! (A: release in kernel/canwire); a reader loads the head (B: acquire, pairs with A), copies, and looks whether the
//! head has come so far meanwhile that its copy may be of two records.

mod receiver;
mod record;

use crate::{
    Error, Result,
    netlink::wire::{self, BusStats},
    sys::{map::Map, poll},
    uapi::canwire::{CANWIRE_GENL_VERSION, CANWIRE_RING_MAGIC, canwire_record, canwire_ring},
};
use std::{
    fs::File,
    io,
    mem::offset_of,
    os::fd::{AsFd, BorrowedFd},
    sync::atomic::{Ordering, fence},
};

pub use receiver::{Edge, TapReceiver};
pub use record::{Marks, Record};

/// Words of a record.
const RECORD_WORDS: usize = size_of::<canwire_record>() / 8;

/// A tap on one bus.
#[derive(Debug)]
pub struct Tap {
    bus: String,
    device: File,
    map: Map,
    /// Records that the ring holds.
    records: u64,
    record_offset: usize,
    /// The next record to read, counted from the first one of the bus.
    next: u64,
    missed: u64,
}

impl Tap {
    /// Opens the tap of a bus; what was on it before is not read.
    ///
    /// # Errors
    /// `Unsupported` without the module, `ENOENT` when there is no such bus, `PermissionDenied` when the device may not
    /// be read, `InvalidData` when it is of another version.
    pub fn open(bus: &str) -> Result<Self> {
        let about = wire::bus(bus)?;
        let path = format!("/dev/canwire-{bus}");
        let device =
            File::open(&path).map_err(|error| Error::new(&path, "open", error).hint("it needs root"))?;
        let map = Map::read_only(device.as_fd(), about.tap_bytes as usize)
            .map_err(|error| Error::new(&path, "map", error))?;
        let header = Header::read(&map);
        let record_offset = header.record_offset as usize;
        let bytes = u64::from(header.records) * size_of::<canwire_record>() as u64 + record_offset as u64;
        if !header.is_known() || bytes > u64::from(about.tap_bytes) {
            let no = io::Error::new(io::ErrorKind::InvalidData, "not a ring that this canter knows");
            return Err(Error::new(path, "map", no).hint("canter and canwire must be of the same version"));
        }
        let (bus, records) = (bus.to_owned(), u64::from(header.records));
        let mut tap = Self { bus, device, map, records, record_offset, next: 0, missed: 0 };
        tap.next = tap.head();
        Ok(tap)
    }

    /// The bus it is on.
    pub fn bus(&self) -> &str {
        &self.bus
    }

    /// How many records the ring holds before the oldest is overwritten.
    pub fn capacity(&self) -> u64 {
        self.records
    }

    /// Records that were overwritten before they were read.
    pub fn missed(&self) -> u64 {
        self.missed
    }

    /// What the bus has counted up to now.
    pub fn stats(&self) -> BusStats {
        let at = offset_of!(canwire_ring, stats);
        BusStats::from_words(|word| self.map.word(at + 8 * word, Ordering::Relaxed))
    }

    /// The next record, in the order of the wire; `None` when all have been read.
    pub fn next_record(&mut self) -> Option<Record> {
        loop {
            let head = self.head();
            if self.next == head {
                return None;
            }
            if head - self.next < self.records {
                let words = self.copy(self.next);
                fence(Ordering::Acquire); // the copy is made before the head is loaded again
                let head = self.map.word(offset_of!(canwire_ring, head), Ordering::Relaxed);
                if head - self.next < self.records {
                    self.next += 1;
                    return Some(Record::from_words(&words));
                }
            }
            // The writer may already be in the oldest place, so that one is gone too; and a quarter of the ring more,
            // or the next one would be gone before it is read.
            let keep = self.records - self.records / 4;
            let oldest = self.head() - keep;
            self.missed += oldest - self.next;
            self.next = oldest;
        }
    }

    /// Waits until there are records that were not there at the last wait, for at most `timeout_ns` (`None`: for ever).
    /// False: time-out or a signal. True at once when the bus has gone; see [`is_gone`](Self::is_gone).
    ///
    /// # Errors
    /// What ppoll(2) answers.
    pub fn wait(&self, timeout_ns: Option<u64>) -> io::Result<bool> {
        poll::readable(&[self.device.as_fd()], timeout_ns).map(|ready| ready > 0)
    }

    /// Whether its bus has gone; what was on it last can still be read.
    pub fn is_gone(&self) -> bool {
        poll::hung_up(self.device.as_fd()).unwrap_or(true)
    }

    fn head(&self) -> u64 {
        self.map.word(offset_of!(canwire_ring, head), Ordering::Acquire) // B, pairs with A
    }

    fn copy(&self, number: u64) -> [u64; RECORD_WORDS] {
        let at = self.record_offset + (number % self.records) as usize * size_of::<canwire_record>();
        std::array::from_fn(|word| self.map.word(at + 8 * word, Ordering::Relaxed))
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

/// The start of the ring.
#[derive(Clone, Copy, Debug)]
struct Header {
    magic: u32,
    version: u16,
    record_size: u16,
    record_offset: u32,
    records: u32,
}

impl Header {
    fn read(map: &Map) -> Self {
        let bytes = [0, 8].map(|at| map.word(at, Ordering::Relaxed).to_ne_bytes()).concat();
        let word = |at| crate::netlink::attribute::u32_at(&bytes, at).unwrap_or_default();
        let half = |at| crate::netlink::attribute::u16_at(&bytes, at).unwrap_or_default();
        Self {
            magic: word(offset_of!(canwire_ring, magic)),
            version: half(offset_of!(canwire_ring, version)),
            record_size: half(offset_of!(canwire_ring, record_size)),
            record_offset: word(offset_of!(canwire_ring, record_offset)),
            records: word(offset_of!(canwire_ring, records)),
        }
    }

    fn is_known(self) -> bool {
        self.magic == CANWIRE_RING_MAGIC
            && self.version == u16::from(CANWIRE_GENL_VERSION)
            && usize::from(self.record_size) == size_of::<canwire_record>()
            && self.record_offset as usize >= size_of::<canwire_ring>()
            && self.record_offset.is_multiple_of(8)
            && self.records.is_power_of_two()
    }
}

#[cfg(test)]
mod tests;

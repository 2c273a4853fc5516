//! A tap's ring, which the module canwire writes and any number of programs read. Writer and reader do not wait for
//! each other; after each copy, the reader checks whether the writer has overwritten the record.
//!
//! kernel/uapi/canwire.h, `struct canwire_ring` and `struct canwire_record`. Barriers are lettered as in
//! kernel/canwire/tap.c:
//! - The writer fills a record, then publishes the head (E: store-release). The reader loads the head and keeps what it
//!   reads of records behind that (a relaxed load and an acquire fence, which pair with E): records below the head are
//!   whole, unless they have been overwritten.
//! - The writer publishes the head, then fills the next record (F: full barrier between the two). The reader copies a
//!   record and keeps a second load of the head behind that (an acquire fence, which pairs with F): if its copy has
//!   anything of a record that overwrote the one it wanted, it sees the head that was published before that.
//!
//! Fences, because the memory is read-only: there only relaxed loads are promised to work.

use super::{RECORD_WORDS, Record};
use crate::{
    netlink::wire::BusStats,
    sys::map::Map,
    uapi::canwire::{CANWIRE_GENL_VERSION, CANWIRE_RING_MAGIC, canwire_record, canwire_ring},
};
use std::{
    mem::offset_of,
    sync::atomic::{Ordering, fence},
};

/// Memory that another thread or the kernel writes.
pub(super) trait Words {
    /// The eight bytes at byte `at`, loaded as a whole and relaxed.
    fn word(&self, at: usize) -> u64;
}

impl Words for Map {
    fn word(&self, at: usize) -> u64 {
        Self::word(self, at)
    }
}

/// The reader's side of a ring.
#[derive(Debug)]
pub(super) struct Ring<M> {
    memory: M,
    /// Records that it holds.
    records: u64,
    record_offset: usize,
    /// The next record to read, counted from the first one of the bus.
    next: u64,
    missed: u64,
}

impl<M: Words> Ring<M> {
    /// The ring in this memory of `bytes` bytes, read from the next record that is written; `None` when the memory
    /// holds no ring of a known version.
    pub fn new(memory: M, bytes: u64) -> Option<Self> {
        let header = Header::read(&memory);
        let records = u64::from(header.records);
        let end = u64::from(header.record_offset) + records * size_of::<canwire_record>() as u64;
        if !header.is_known() || end > bytes {
            return None;
        }
        let record_offset = header.record_offset as usize;
        let mut ring = Self { memory, records, record_offset, next: 0, missed: 0 };
        ring.next = ring.head();
        Some(ring)
    }

    /// How many records it holds before the oldest is overwritten.
    pub fn capacity(&self) -> u64 {
        self.records
    }

    /// Records that were overwritten before they were read.
    pub fn missed(&self) -> u64 {
        self.missed
    }

    /// The bus's counters, each read at its own time.
    pub fn stats(&self) -> BusStats {
        let at = offset_of!(canwire_ring, stats);
        BusStats::from_words(|word| self.memory.word(at + 8 * word))
    }

    /// The next record, in the order of the wire; `None` when all have been read.
    pub fn next_record(&mut self) -> Option<Record> {
        loop {
            let head = self.head();
            if self.next == head {
                return None;
            }
            if head.wrapping_sub(self.next) < self.records {
                let words = self.copy(self.next);
                fence(Ordering::Acquire); // pairs with F: the copy is made before the head is loaded again
                let head = self.memory.word(offset_of!(canwire_ring, head));
                if head.wrapping_sub(self.next) < self.records {
                    self.next += 1;
                    return Some(Record::from_words(&words));
                }
            }
            // The writer may already overwrite the oldest record, so that one is lost too. Skips another quarter of the
            // ring: otherwise the next record would be overwritten before it is read.
            let keep = self.records - self.records / 4;
            let oldest = self.head().saturating_sub(keep);
            self.missed += oldest.saturating_sub(self.next);
            self.next = oldest;
        }
    }

    /// How many records have been written. Records are read after this load.
    pub fn head(&self) -> u64 {
        let head = self.memory.word(offset_of!(canwire_ring, head));
        fence(Ordering::Acquire); // pairs with E
        head
    }

    fn copy(&self, number: u64) -> [u64; RECORD_WORDS] {
        let at = self.record_offset + (number % self.records) as usize * size_of::<canwire_record>();
        std::array::from_fn(|word| self.memory.word(at + 8 * word))
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
    fn read(memory: &impl Words) -> Self {
        let bytes = [0, 8].map(|at| memory.word(at).to_ne_bytes()).concat();
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

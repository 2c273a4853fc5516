//! Frames on their way from the ring to the file: what a block of the ring held, in as little memory as it takes.

use canter_io::{
    capture_ring::Record,
    frame::{CAN_MTU, CANFD_MTU},
};

/// A frame of one size. `interface` is the place of its interface in the recording.
pub struct Entry<const BYTES: usize> {
    stamp_ns: u64,
    interface: u32,
    bytes: [u8; BYTES],
}

// What a second of full buses takes in memory follows from these.
const _: () = assert!(size_of::<Entry<CAN_MTU>>() == 32 && size_of::<Entry<CANFD_MTU>>() == 88);

/// Frames of one kind, in the order of their stamps once it is sorted.
pub enum Chunk {
    Classic(Vec<Entry<CAN_MTU>>),
    Fd(Vec<Entry<CANFD_MTU>>),
}

/// What a chunk itself takes beside its frames.
const CHUNK_BYTES: usize = 64;

impl Chunk {
    /// An empty one with room for `frames`.
    pub fn new(fd: bool, frames: usize) -> Self {
        if fd { Self::Fd(Vec::with_capacity(frames)) } else { Self::Classic(Vec::with_capacity(frames)) }
    }

    /// Adds a frame; one of the other kind is refused.
    #[inline]
    pub fn push(&mut self, record: &Record<'_>) -> bool {
        match self {
            Self::Classic(entries) => push(entries, record),
            Self::Fd(entries) => push(entries, record),
        }
    }

    pub fn len(&self) -> usize {
        match self {
            Self::Classic(entries) => entries.len(),
            Self::Fd(entries) => entries.len(),
        }
    }

    /// The frame at `at`, which is below `len`.
    #[inline]
    pub fn record(&self, at: usize) -> Record<'_> {
        match self {
            Self::Classic(entries) => view(&entries[at]),
            Self::Fd(entries) => view(&entries[at]),
        }
    }

    pub fn records(&self) -> impl Iterator<Item = Record<'_>> {
        (0..self.len()).map(|at| self.record(at))
    }

    /// Sorts by stamp; frames of one stamp keep their order. Mostly there is nothing to do.
    pub fn sort(&mut self) {
        match self {
            Self::Classic(entries) => sort(entries),
            Self::Fd(entries) => sort(entries),
        }
    }

    /// Memory that it takes, in bytes.
    pub fn bytes(&self) -> usize {
        CHUNK_BYTES
            + match self {
                Self::Classic(entries) => entries.capacity() * size_of::<Entry<CAN_MTU>>(),
                Self::Fd(entries) => entries.capacity() * size_of::<Entry<CANFD_MTU>>(),
            }
    }
}

#[inline]
fn push<const BYTES: usize>(entries: &mut Vec<Entry<BYTES>>, record: &Record<'_>) -> bool {
    let Ok(&bytes) = record.bytes.try_into() else { return false };
    entries.push(Entry { stamp_ns: record.stamp_ns, interface: record.interface, bytes });
    true
}

#[inline]
fn view<const BYTES: usize>(entry: &Entry<BYTES>) -> Record<'_> {
    Record::new(entry.stamp_ns, entry.interface, &entry.bytes)
}

fn sort<const BYTES: usize>(entries: &mut [Entry<BYTES>]) {
    if !entries.is_sorted_by_key(|entry| entry.stamp_ns) {
        entries.sort_by_key(|entry| entry.stamp_ns);
    }
}

//! The reader of the ring against a writer in this process, on memory of both.

use super::{ring::Words, *};
use crate::{
    Frame, Identifier,
    uapi::canwire::{CANWIRE_RING_MAGIC, canwire_ring},
};
use std::{
    mem::offset_of,
    os::unix::fs::FileExt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering, fence},
    },
};

const RECORDS: u64 = 8;
const OFFSET: usize = 256;
const BYTES: usize = OFFSET + RECORDS as usize * 128;

/// Memory in the mapping's stead.
#[derive(Clone)]
struct Memory(Arc<[AtomicU64]>);

impl Words for Memory {
    fn word(&self, at: usize) -> u64 {
        self.0[at / 8].load(Ordering::Relaxed)
    }
}

/// A ring as the module lays it out, and its writer.
struct Writer {
    memory: Memory,
    head: u64,
}

impl Writer {
    fn new() -> Self {
        let writer = Self { memory: Memory((0..BYTES / 8).map(|_| AtomicU64::new(0)).collect()), head: 0 };
        let mut header = CANWIRE_RING_MAGIC.to_ne_bytes().to_vec();
        header.extend(1u16.to_ne_bytes());
        header.extend(128u16.to_ne_bytes());
        header.extend((OFFSET as u32).to_ne_bytes());
        header.extend((RECORDS as u32).to_ne_bytes());
        writer.store(0, &header);
        writer
    }

    fn store(&self, at: usize, bytes: &[u8]) {
        for (word, bytes) in self.memory.0[at / 8..].iter().zip(bytes.chunks_exact(8)) {
            word.store(u64::from_ne_bytes(bytes.try_into().unwrap()), Ordering::Relaxed);
        }
    }

    fn reader(&self) -> Ring<Memory> {
        Ring::new(self.memory.clone(), BYTES as u64).unwrap()
    }

    /// Writes a frame whose identifier is its number.
    fn write(&mut self, error: u8) {
        let mut bytes = [0; 128];
        bytes[..8].copy_from_slice(&(self.head * 1000).to_ne_bytes());
        bytes[8..16].copy_from_slice(&(self.head * 1000 + 65).to_ne_bytes());
        bytes[40..44].copy_from_slice(&(self.head as u32).to_ne_bytes());
        bytes[44..48].copy_from_slice(&7u32.to_ne_bytes());
        bytes[48..52].copy_from_slice(&9u32.to_ne_bytes());
        (bytes[56], bytes[57], bytes[59], bytes[62], bytes[63]) = (2, 2, error, 3, 4);
        (bytes[64], bytes[65]) = (0xaa, 0xbb);
        bytes[120..].copy_from_slice(&self.head.to_ne_bytes());
        self.store(OFFSET + (self.head % RECORDS) as usize * 128, &bytes);
        self.head += 1;
        self.memory.0[offset_of!(canwire_ring, head) / 8].store(self.head, Ordering::Release); // E
        fence(Ordering::SeqCst); // F
    }

    /// The memory as a file has it.
    fn bytes(&self) -> Vec<u8> {
        self.memory.0.iter().flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes()).collect()
    }
}

#[test]
fn a_record_is_read_field_by_field() {
    let mut ring = Writer::new();
    let mut tap = ring.reader();
    assert_eq!(tap.next_record(), None);
    ring.write(0);
    ring.write(4);
    let first = tap.next_record().unwrap();
    assert_eq!(first.frame, Frame::classic(Identifier::Sff(0), &[0xaa, 0xbb]).unwrap());
    assert_eq!((first.sof_ns, first.end_ns, first.duration_ns(), first.error), (0, 65, 65, None));
    assert_eq!((first.sender, first.slot, first.marks), (Some(7), Some(3), Marks::SLIPPED));
    assert_eq!(tap.next_record().unwrap().error, Some(wire::Fault::Crc));
    assert_eq!((tap.next_record(), tap.missed()), (None, 0));
}

#[test]
fn a_reader_slower_than_the_ring_learns_the_lost_records_and_continues_in_order() {
    let mut ring = Writer::new();
    let mut tap = ring.reader();
    for _ in 0..3 * RECORDS + 1 {
        ring.write(0);
    }
    let mut read = Vec::new();
    while let Some(record) = tap.next_record() {
        read.push(u64::from(record.frame.can_id));
        if read.len() == 2 {
            ring.write(0); // while it reads
        }
    }
    assert_eq!(tap.missed() + read.len() as u64, ring.head);
    assert_eq!(read.last(), Some(&(ring.head - 1)));
    assert!(read.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{read:?}");
}

#[test]
fn a_ring_that_is_exactly_full_has_lost_its_oldest_record_only_when_it_is_written_on() {
    let mut ring = Writer::new();
    let mut tap = ring.reader();
    for _ in 0..RECORDS - 1 {
        ring.write(0);
    }
    assert_eq!(std::iter::from_fn(|| tap.next_record()).count() as u64, RECORDS - 1);
    assert_eq!(tap.missed(), 0);
}

#[test]
fn a_record_that_is_overwritten_while_it_is_copied_is_never_handed_out() {
    const WRITTEN: u64 = if cfg!(miri) { 400 } else { 200_000 };
    let mut ring = Writer::new();
    let mut tap = ring.reader();
    let writer = std::thread::spawn(move || (0..WRITTEN).for_each(|_| ring.write(0)));
    let (mut read, mut done) = (0, false);
    while !done {
        done = writer.is_finished(); // before the look, or the last ones would be left
        while let Some(record) = tap.next_record() {
            let number = record.sof_ns / 1000;
            assert_eq!((record.end_ns, u64::from(record.frame.can_id)), (number * 1000 + 65, number));
            assert_eq!(record.frame.data[56..], number.to_ne_bytes());
            read += 1;
        }
    }
    writer.join().unwrap();
    assert_eq!(tap.missed() + read, WRITTEN);
}

#[test]
fn a_ring_of_another_kind_or_behind_the_memory_s_end_is_refused() {
    for (at, value) in [(0, 0), (4, 2), (6, 64), (8, 8), (12, 16), (12, 7)] {
        let ring = Writer::new();
        let mut bytes = ring.bytes();
        bytes[at..at + 2].copy_from_slice(&u16::to_ne_bytes(value));
        ring.store(0, &bytes);
        assert!(Ring::new(ring.memory.clone(), BYTES as u64).is_none(), "{value} at byte {at}");
    }
}

#[test]
#[cfg_attr(miri, ignore = "system calls")]
fn as_a_receiver_it_stamps_starts_or_ends_and_leaves_errors_and_others_out() {
    use crate::{Batch, method::Receive};
    for (edge, stamps) in [(Edge::Start, [0, 2000]), (Edge::End, [65, 2065]), (Edge::Delivery, [74, 2074])] {
        let mut ring = Writer::new();
        let path = std::env::temp_dir().join(format!("canter-tap-{}-{edge:?}", std::process::id()));
        let device = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        device.write_all_at(&ring.bytes(), 0).unwrap();
        let map = Map::read_only(device.as_fd(), BYTES).unwrap();
        let tap = Tap { bus: "A".to_owned(), device, ring: Ring::new(map, BYTES as u64).unwrap() };
        [0, 4, 0, 0].into_iter().for_each(|error| ring.write(error));
        tap.device.write_all_at(&ring.bytes(), 0).unwrap();
        let mut receiver = TapReceiver::new(tap, edge, |record: &Record| record.sof_ns != 3000);
        let mut batch = Batch::new(8);
        assert_eq!(receiver.receive(&mut batch).unwrap(), 2);
        assert_eq!([batch.meta()[0].stamp_ns, batch.meta()[1].stamp_ns], stamps);
        assert_eq!((receiver.receive(&mut batch).unwrap(), receiver.drops().unwrap()), (0, 0));
    }
}

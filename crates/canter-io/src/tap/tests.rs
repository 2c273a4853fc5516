//! The reader of the ring against a writer in this process.

use super::*;
use crate::{Frame, Identifier};
use std::{io::Write, os::unix::fs::FileExt};

const RECORDS: u64 = 8;
const OFFSET: usize = 256;

/// A ring in a file, as the module lays it out.
struct Ring {
    file: File,
    head: u64,
}

impl Ring {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("canter-tap-{}-{name}", std::process::id()));
        let mut file =
            File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        file.write_all(&vec![0; OFFSET + RECORDS as usize * 128]).unwrap();
        let mut header = CANWIRE_RING_MAGIC.to_ne_bytes().to_vec();
        header.extend(1u16.to_ne_bytes());
        header.extend(128u16.to_ne_bytes());
        header.extend((OFFSET as u32).to_ne_bytes());
        header.extend((RECORDS as u32).to_ne_bytes());
        file.write_all_at(&header, 0).unwrap();
        Self { file, head: 0 }
    }

    fn tap(&self) -> Tap {
        let device = self.file.try_clone().unwrap();
        let map = Map::read_only(device.as_fd(), OFFSET + RECORDS as usize * 128).unwrap();
        assert!(Header::read(&map).is_known());
        let (bus, record_offset) = ("A".to_owned(), OFFSET);
        Tap { bus, device, map, records: RECORDS, record_offset, next: 0, missed: 0 }
    }

    /// Writes a frame whose identifier is its number.
    fn write(&mut self, error: u8) {
        let mut bytes = [0; 128];
        bytes[..8].copy_from_slice(&(self.head * 1000).to_ne_bytes());
        bytes[8..16].copy_from_slice(&(self.head * 1000 + 65).to_ne_bytes());
        bytes[40..44].copy_from_slice(&(self.head as u32).to_ne_bytes());
        bytes[44..48].copy_from_slice(&7u32.to_ne_bytes());
        (bytes[56], bytes[57], bytes[59], bytes[62], bytes[63]) = (2, 2, error, 3, 4);
        (bytes[64], bytes[65]) = (0xaa, 0xbb);
        let at = OFFSET as u64 + self.head % RECORDS * 128;
        self.file.write_all_at(&bytes, at).unwrap();
        self.head += 1;
        self.file.write_all_at(&self.head.to_ne_bytes(), 64).unwrap();
    }
}

#[test]
fn a_record_is_read_field_by_field() {
    let mut ring = Ring::new("fields");
    let mut tap = ring.tap();
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
fn a_reader_slower_than_the_ring_is_told_what_it_missed_and_goes_on_in_order() {
    let mut ring = Ring::new("slow");
    let mut tap = ring.tap();
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
    let mut ring = Ring::new("full");
    let mut tap = ring.tap();
    for _ in 0..RECORDS - 1 {
        ring.write(0);
    }
    assert_eq!(std::iter::from_fn(|| tap.next_record()).count() as u64, RECORDS - 1);
    assert_eq!(tap.missed(), 0);
}

#[test]
fn as_a_receiver_it_stamps_starts_or_ends_and_leaves_errors_and_others_out() {
    use crate::{Batch, method::Receive};
    for (edge, stamps) in [(Edge::Start, [0, 2000]), (Edge::End, [65, 2065])] {
        let mut ring = Ring::new(&format!("{edge:?}"));
        let mut receiver = TapReceiver::new(ring.tap(), edge, |record: &Record| record.sof_ns != 3000);
        [0, 4, 0, 0].into_iter().for_each(|error| ring.write(error));
        let mut batch = Batch::new(8);
        assert_eq!(receiver.receive(&mut batch).unwrap(), 2);
        assert_eq!([batch.meta()[0].stamp_ns, batch.meta()[1].stamp_ns], stamps);
        assert_eq!((receiver.receive(&mut batch).unwrap(), receiver.drops().unwrap()), (0, 0));
    }
}

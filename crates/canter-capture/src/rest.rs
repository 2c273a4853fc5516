//! The frames that a file has no room for, because files may not be larger (FAT's 4 GiB, `ulimit -f`): the next one gets them.

use canter_formats::Reader;
use std::io::Cursor;

/// An entry of a buffer: where it ends, and the interface of its frame, or `NO_FRAME`.
pub type Entry = (u32, u32);

/// Stands for the interface in an entry that is no frame.
pub const NO_FRAME: u32 = u32::MAX;

/// Formatted frames, and the stamps of the first of them, the last of them and the one before, if these can be read.
pub struct Rest {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    pub first_ns: Option<u64>,
    pub last_ns: Option<u64>,
    pub before_ns: Option<u64>,
}

impl Rest {
    /// Takes the frames behind the first `whole` bytes out of a buffer. `head` is how a file begins, with all interfaces:
    /// entries that are no frames stand there, so the rest needs none.
    #[cold]
    pub fn split_off(buffer: &[u8], entries: &mut Vec<Entry>, whole: usize, head: &[u8]) -> Self {
        let first = entries.partition_point(|&(end, _)| end as usize <= whole);
        let frame = |at: usize| {
            let begin = if at == 0 { 0 } else { entries[at - 1].0 as usize };
            &buffer[begin..entries[at].0 as usize]
        };
        let frames: Vec<usize> = (0..entries.len()).filter(|&at| entries[at].1 != NO_FRAME).collect();
        let (before, rest) = frames.split_at(frames.partition_point(|&at| at < first));
        let stamp_of = |at: Option<&usize>| stamp_ns(head, frame(*at?));
        let (first_ns, last_ns, before_ns) =
            (stamp_of(rest.first()), stamp_of(rest.last()), stamp_of(before.last()));
        let mut bytes = Vec::new();
        let mut moved = |&at: &usize| {
            bytes.extend_from_slice(frame(at));
            (bytes.len() as u32, entries[at].1)
        };
        let rest = rest.iter().map(&mut moved).collect();
        entries.truncate(first);
        Self { bytes, entries: rest, first_ns, last_ns, before_ns }
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The interface of each frame.
    pub fn interfaces(&self) -> impl Iterator<Item = u32> + '_ {
        self.entries.iter().map(|&(_, interface)| interface)
    }

    /// Appends the frames to a buffer and its entries.
    pub fn append_to(&self, buffer: &mut Vec<u8>, entries: &mut Vec<Entry>) {
        let begin = buffer.len() as u32;
        buffer.extend_from_slice(&self.bytes);
        entries.extend(self.entries.iter().map(|&(end, interface)| (begin + end, interface)));
    }
}

/// The stamp of a formatted frame.
#[cold]
fn stamp_ns(head: &[u8], frame: &[u8]) -> Option<u64> {
    let file = Cursor::new([head, frame].concat());
    let mut reader = Reader::from_read("rest", Box::new(file), canter_formats::FORMATS).ok()?;
    Some(reader.next_ref().ok()??.stamp_ns)
}

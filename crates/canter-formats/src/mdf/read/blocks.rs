//! Blocks of MDF 4: `##` and two letters, length, count of links, links, data. Little endian.

use super::ahead::{Ahead, Pending};
use crate::{
    format::Whole,
    linktype::Order,
    trouble::{Trouble, wrong},
};
use std::collections::HashSet;

pub const LE: Order = Order::Little;
const HEAD_BYTES: u64 = 24;
/// The largest block that is read into memory, in bytes; writers split data into blocks of up to 4 MB.
const BLOCK_BYTES_MAX: u64 = 64 << 20;

/// The file, and the offsets of the blocks read.
pub struct Blocks {
    whole: Whole,
    /// Every block belongs to one list: reading a block again would be an endless loop.
    read_before: HashSet<u64>,
    /// The offset of the block requested last, for errors.
    pub at: u64,
    /// The logger was stopped before it had written counts and lengths.
    pub is_unfinished: bool,
    ahead: Ahead,
}

/// The header of a block: its type, offset, length and number of links.
#[derive(Clone, Copy)]
pub struct Head {
    pub kind: [u8; 2],
    at: u64,
    length: u64,
    links: u64,
}

impl Head {
    fn read(at: u64, whole: &Whole) -> Result<Self, Trouble> {
        let mut head = [0; HEAD_BYTES as usize];
        if at.checked_add(HEAD_BYTES).is_none_or(|end| end > whole.length) {
            return Err(Trouble::Cut);
        }
        whole.read(at, &mut head)?;
        let [b'#', b'#', a, b, ..] = head else {
            return wrong("no block where one is expected (a damaged file?)");
        };
        let word = |at| u64::from(LE.word(&head, at + 4)) << 32 | u64::from(LE.word(&head, at));
        let (length, links) = (word(8), word(16));
        if length < HEAD_BYTES || links > (length - HEAD_BYTES) / 8 || links < links_min([a, b]) {
            return wrong(format!("a block of {length} bytes with {links} links (a damaged file?)"));
        }
        if length > whole.length - at {
            return Err(Trouble::Cut);
        }
        Ok(Self { kind: [a, b], at, length, links })
    }

    /// Refuses a block of another type.
    fn of_kind(self, kind: &[u8; 2]) -> Result<Self, Trouble> {
        if self.kind != *kind {
            let (is, must) = (String::from_utf8_lossy(&self.kind), String::from_utf8_lossy(kind));
            return wrong(format!("a block of type {is:?} instead of {must:?} (a damaged file?)"));
        }
        Ok(self)
    }

    /// The offsets of its data's beginning, after the links, and end.
    pub fn data(&self) -> (u64, u64) {
        (self.at + HEAD_BYTES + 8 * self.links, self.at + self.length)
    }
}

/// A block in memory.
pub struct Block {
    pub links: Vec<u64>,
    pub data: Vec<u8>,
}

impl Block {
    /// The link with this number; 0: there is none.
    pub fn link(&self, place: usize) -> u64 {
        self.links.get(place).copied().unwrap_or(0)
    }

    pub fn u64(&self, at: usize) -> u64 {
        u64::from(LE.word(&self.data, at + 4)) << 32 | u64::from(LE.word(&self.data, at))
    }

    pub fn f64(&self, at: usize) -> f64 {
        f64::from_bits(self.u64(at))
    }

    pub fn u32(&self, at: usize) -> u32 {
        LE.word(&self.data, at)
    }

    pub fn u8(&self, at: usize) -> u8 {
        self.data.get(at).copied().unwrap_or(0)
    }
}

/// The longest text that is kept, in bytes, more than any name that this reader looks for. Any number of blocks may link to one.
const TEXT_BYTES_MAX: u64 = 4096;

/// How many links a block of this type has at least, by the standard.
fn links_min(kind: [u8; 2]) -> u64 {
    match &kind {
        b"CN" => 8,
        b"HD" | b"CG" => 6,
        b"DG" => 4,
        b"HL" | b"DL" => 1,
        _ => 0,
    }
}

impl Blocks {
    pub fn new(whole: Whole) -> Self {
        Self { whole, read_before: HashSet::new(), at: 0, is_unfinished: false, ahead: Ahead::default() }
    }

    /// The length of the file in bytes.
    pub fn file_length(&self) -> u64 {
        self.whole.length
    }

    /// Fills `bytes` from offset `at` on; `Cut` if the file ends before.
    pub fn read(&self, at: u64, bytes: &mut [u8]) -> Result<(), Trouble> {
        Ok(self.whole.read(at, bytes)?)
    }

    /// Reads the header of a block that several blocks may link to: a text, a source.
    fn shared(&mut self, at: u64) -> Result<Head, Trouble> {
        self.at = at;
        Head::read(at, &self.whole)
    }

    /// Reads the header of a block that only one block links to.
    pub fn head(&mut self, at: u64) -> Result<Head, Trouble> {
        if !self.read_before.insert(at) {
            self.at = at;
            return wrong("two links lead to this block (a damaged file?)");
        }
        self.shared(at)
    }

    /// Reads a block's links and data.
    pub fn body(&mut self, head: Head) -> Result<Block, Trouble> {
        let length = head.length - HEAD_BYTES;
        if length > BLOCK_BYTES_MAX {
            return wrong(format!("a block of {length} bytes, which is too large (a damaged file?)"));
        }
        let mut bytes = vec![0; length as usize];
        self.read(head.at + HEAD_BYTES, &mut bytes)?;
        let data = bytes.split_off(8 * head.links as usize);
        let link = |link: &[u8]| u64::from(LE.word(link, 4)) << 32 | u64::from(LE.word(link, 0));
        Ok(Block { links: bytes.chunks_exact(8).map(link).collect(), data })
    }

    /// Starts to unpack a deflated block while others are read, if there is room for it. What is wrong with the block is
    /// reported when its records are due: `None` here, or an error in the answer.
    pub fn unpack_ahead(&mut self, link: u64) -> Option<Pending> {
        let head = Head::read(link, &self.whole).ok()?.of_kind(b"DZ").ok()?;
        let (start, end) = head.data();
        let mut lengths = [0; 16];
        self.read(start + 8, &mut lengths).ok()?;
        let unpacked = u64::from_le_bytes(*lengths.first_chunk()?);
        let bytes = unpacked.checked_add(end - start)?;
        if !self.ahead.takes(bytes) {
            return None;
        }
        let mut block = vec![0; (end - start) as usize];
        self.read(start, &mut block).ok()?;
        self.ahead.unpack(link, block, bytes)
    }

    /// Waits for a block that is unpacked ahead; `None` if that died of it.
    pub fn unpacked(&mut self, pending: Pending) -> Option<Result<Vec<u8>, Trouble>> {
        self.ahead.wait(pending)
    }

    /// Reads the block at `at`, which must have this type.
    pub fn block(&mut self, at: u64, kind: &[u8; 2]) -> Result<Block, Trouble> {
        let head = self.head(at)?.of_kind(kind)?;
        self.body(head)
    }

    /// Like [`block`](Self::block), for blocks that several blocks may link to.
    pub fn shared_block(&mut self, at: u64, kind: &[u8; 2]) -> Result<Block, Trouble> {
        let head = self.shared(at)?.of_kind(kind)?;
        self.body(head)
    }

    /// The number of blocks of this type to which no link has led, in a file whose blocks follow each other from `at` on.
    pub fn without_link(&self, mut at: u64, kind: &[u8; 2]) -> u64 {
        let mut count = 0;
        while let Ok(head) = Head::read(at, &self.whole) {
            count += u64::from(head.kind == *kind && !self.read_before.contains(&at));
            at = (at + head.length).next_multiple_of(8);
        }
        count
    }

    /// Reads a text, the beginning of a long one; empty if there is none.
    pub fn text(&mut self, at: u64) -> Result<String, Trouble> {
        if at == 0 {
            return Ok(String::new());
        }
        let (start, end) = self.shared(at)?.of_kind(b"TX")?.data();
        let mut data = vec![0; (end - start).min(TEXT_BYTES_MAX) as usize];
        self.read(start, &mut data)?;
        let end = data.iter().position(|&byte| byte == 0).unwrap_or(data.len());
        Ok(String::from_utf8_lossy(&data[..end]).into_owned())
    }
}

//! The records of a channel group: collected, transposed, deflated, and written as data blocks.

use super::blocks::{Block, put};
use crate::format::Output;
use flate2::{Compression, write::ZlibEncoder};
use std::io::{self, Write};

/// Records of this size, in bytes, are written as a data block; the standard allows 4 MB.
const BLOCK_BYTES: usize = 512 << 10;
/// DZ: transposed, then deflated.
const TRANSPOSED: u8 = 1;

/// The records of a group that is being written.
pub struct Records {
    width: usize,
    count: u64,
    bytes: Vec<u8>,
    columns: Vec<u8>,
    /// The offset of each data block in the file, and of its first record in the group's data.
    blocks: Vec<(u64, u64)>,
    written: u64,
}

impl Records {
    /// Records of `width` bytes.
    pub fn new(width: usize) -> Self {
        Self { width, count: 0, bytes: Vec::new(), columns: Vec::new(), blocks: Vec::new(), written: 0 }
    }

    pub fn width(&self) -> usize {
        self.width
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    /// Appends a record, which has parts.
    #[inline]
    pub fn push(&mut self, parts: &[&[u8]]) {
        parts.iter().for_each(|part| self.bytes.extend_from_slice(part));
        self.count += 1;
    }

    pub fn is_full(&self) -> bool {
        self.bytes.len() >= BLOCK_BYTES
    }

    /// Writes the records as a data block.
    pub fn write(&mut self, output: &mut Output) -> io::Result<()> {
        let (width, length) = (self.width, self.bytes.len());
        let rows = length / width;
        self.columns.resize(length, 0);
        for (row, record) in self.bytes.chunks_exact(width).enumerate() {
            for (column, &byte) in record.iter().enumerate() {
                self.columns[column * rows + row] = byte;
            }
        }
        let mut packer = ZlibEncoder::new(Vec::with_capacity(length / 4), Compression::fast());
        packer.write_all(&self.columns)?;
        let packed = packer.finish()?;
        let block = Block::new(b"DZ", &[])
            .bytes(b"DT")
            .bytes(&[TRANSPOSED, 0])
            .u32(width as u32)
            .u64(length as u64)
            .u64(packed.len() as u64)
            .bytes(&packed);
        let place = put(output, &block.done());
        self.blocks.push((place, self.written));
        self.written += length as u64;
        self.bytes.clear();
        output.ready()
    }

    /// Writes the records that are left, and the list of the data blocks; returns the list's offset.
    pub fn finish(&mut self, output: &mut Output) -> io::Result<u64> {
        if !self.bytes.is_empty() {
            self.write(output)?;
        }
        let mut links = vec![0];
        links.extend(self.blocks.iter().map(|&(place, _)| place));
        let mut list = Block::new(b"DL", &links).bytes(&[0; 4]).u32(self.blocks.len() as u32);
        for &(_, offset) in &self.blocks {
            list = list.u64(offset);
        }
        let list = put(output, &list.done());
        let head = Block::new(b"HL", &[list]).u16(0).bytes(&[TRANSPOSED, 0, 0, 0, 0, 0]);
        Ok(put(output, &head.done()))
    }
}

//! The bytes of a group, which may be in one block (`DT`, `SD`), deflated (`DZ`), or in lists of these (`DL`, `HL`).

use super::{
    ahead::Pending,
    blocks::{Blocks, Head},
};
use crate::trouble::{Trouble, wrong};
use flate2::{Decompress, FlushDecompress, Status};
use std::collections::VecDeque;

/// The size of one read from a block that is not deflated, in bytes.
const READ_BYTES: u64 = 256 << 10;
/// The largest block that is unpacked into memory, in bytes; the standard allows 4 MB.
const UNPACKED_BYTES_MAX: u64 = 8 << 20;

/// The rows that are transposed together.
const TILE_ROWS: usize = 256;
/// How many bytes a byte of deflated data unpacks to at most, by zlib's technical details.
const DEFLATED_RATIO_MAX: u64 = 1032;

/// The bytes of a group, read from beginning to end.
#[derive(Default)]
pub struct Data {
    /// Offsets of the next blocks.
    links: VecDeque<u64>,
    /// The offset of the next list of blocks; 0: there is none.
    list: u64,
    /// The range left to read of a block that is not deflated.
    plain: (u64, u64),
    /// The next block, if it is unpacked meanwhile.
    ahead: Option<Pending>,
    buffer: Vec<u8>,
    at: usize,
}

impl Data {
    /// The data that `link` leads to; 0: no data.
    pub fn new(link: u64) -> Self {
        Self { links: (link != 0).then_some(link).into_iter().collect(), ..Self::default() }
    }

    /// Whether all data was taken. An error, when more should follow and the file ends before.
    pub fn has_ended(&mut self, blocks: &mut Blocks) -> Result<bool, Trouble> {
        while self.buffer.len() == self.at {
            if self.plain.0 >= self.plain.1 && self.links.is_empty() && self.list == 0 {
                return Ok(true);
            }
            self.fill(blocks)?;
        }
        Ok(false)
    }

    /// Returns the next `count` bytes; `Cut` if there are fewer.
    #[inline]
    pub fn take(&mut self, count: usize, blocks: &mut Blocks) -> Result<&[u8], Trouble> {
        while self.buffer.len() - self.at < count {
            self.fill(blocks)?;
        }
        self.at += count;
        Ok(&self.buffer[self.at - count..self.at])
    }

    #[cold]
    fn fill(&mut self, blocks: &mut Blocks) -> Result<(), Trouble> {
        self.buffer.drain(..self.at);
        self.at = 0;
        let (start, end) = self.plain;
        if start < end {
            let (filled, now) = (self.buffer.len(), READ_BYTES.min(end - start));
            self.buffer.resize(filled + now as usize, 0);
            self.plain.0 += now;
            return blocks.read(start, &mut self.buffer[filled..]);
        }
        let Some(link) = self.links.pop_front() else {
            if self.list == 0 {
                return Err(Trouble::Cut);
            }
            let list = blocks.block(self.list, b"DL")?;
            self.list = list.link(0);
            self.links.extend(list.links.iter().skip(1).filter(|&&link| link != 0));
            return Ok(());
        };
        let head = blocks.head(link)?;
        match &head.kind {
            b"DT" | b"SD" => {
                self.plain = head.data();
                // A logger that was stopped has not written the length of its last block, which ends with the file.
                if blocks.is_unfinished && self.links.is_empty() && self.list == 0 && head.kind == *b"DT" {
                    self.plain.1 = self.plain.1.max(blocks.file_length());
                }
            }
            b"DZ" => self.unpack(link, head, blocks)?,
            b"HL" => self.list = blocks.body(head)?.link(0),
            b"DL" => {
                let list = blocks.body(head)?;
                self.list = list.link(0);
                self.links.extend(list.links.iter().skip(1).filter(|&&link| link != 0));
            }
            b"LD" | b"DV" => {
                return wrong("stores data by columns, as MDF 4.2 may (save it as MDF 4.11 to read it here)");
            }
            other => {
                let kind = String::from_utf8_lossy(other);
                return wrong(format!("a block of type {kind:?} instead of data (a damaged file?)"));
            }
        }
        Ok(())
    }

    /// Appends the data of a `DZ` block, and has the next one unpacked while the records of this one are taken.
    fn unpack(&mut self, link: u64, head: Head, blocks: &mut Blocks) -> Result<(), Trouble> {
        let pending = self.ahead.take().filter(|pending| pending.link == link);
        let mut bytes = match pending.and_then(|pending| blocks.unpacked(pending)) {
            Some(unpacked) => unpacked?,
            None => unpack(&blocks.body(head)?.data)?,
        };
        self.ahead = self.links.front().and_then(|&next| blocks.unpack_ahead(next));
        if self.buffer.is_empty() {
            self.buffer = bytes;
        } else {
            self.buffer.append(&mut bytes);
        }
        Ok(())
    }
}

/// Returns the data of a `DZ` block, which is deflated and may be transposed.
pub fn unpack(block: &[u8]) -> Result<Vec<u8>, Trouble> {
    let damaged = |reason: &str| Trouble::Wrong(format!("{reason} (a damaged file?)"));
    let Some((head, packed)) = block.split_at_checked(24) else {
        return Err(damaged("a block shorter than its header"));
    };
    let number =
        |at: usize| head[at..at + 8].iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte));
    let (length, packed_length) = (number(8), number(16));
    let width = number(0) >> 32;
    if length > UNPACKED_BYTES_MAX {
        return Err(damaged("a block that is too large"));
    }
    let packed = usize::try_from(packed_length).ok().and_then(|length| packed.get(..length));
    let packed = packed.ok_or_else(|| damaged("a block shorter than its data"))?;
    if length / DEFLATED_RATIO_MAX > packed_length {
        return Err(damaged("a block that cannot be unpacked"));
    }
    // A block that is unpacked by one call goes to its place without a window between.
    let mut bytes = Vec::with_capacity(length as usize + 1);
    let unpacked = Decompress::new(true).decompress_vec(packed, &mut bytes, FlushDecompress::Finish);
    if !matches!(unpacked, Ok(Status::StreamEnd)) || bytes.len() as u64 != length {
        return Err(damaged("a block that cannot be unpacked"));
    }
    match head[2] {
        0 => Ok(bytes),
        1 if width > 0 => Ok(transpose(&bytes, width as usize)),
        _ => Err(damaged("a block compressed in a way that canter cannot read")),
    }
}

/// Returns the records whose columns are `bytes`; the bytes of an incomplete record follow the columns and are not
/// transposed.
fn transpose(bytes: &[u8], width: usize) -> Vec<u8> {
    let rows = bytes.len() / width;
    let mut out = vec![0; rows * width];
    // Some rows at a time, so that they stay in the processor's cache for all columns.
    for (tile, records) in out.chunks_mut(width.saturating_mul(TILE_ROWS)).enumerate() {
        for (at, column) in bytes.chunks_exact(rows).take(width).enumerate() {
            for (record, &byte) in records.chunks_exact_mut(width).zip(&column[tile * TILE_ROWS..]) {
                record[at] = byte;
            }
        }
    }
    out.extend_from_slice(&bytes[rows * width..]);
    out
}

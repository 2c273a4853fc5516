//! Blocks of MDF 4: `##` and two letters, length, links to other blocks, data. Little endian, at multiples of 8 bytes.

use crate::format::Output;

/// A block under construction.
pub struct Block(Vec<u8>);

impl Block {
    pub fn new(kind: &[u8; 2], links: &[u64]) -> Self {
        let mut bytes = Vec::with_capacity(256);
        bytes.extend_from_slice(b"##");
        bytes.extend_from_slice(kind);
        bytes.extend_from_slice(&[0; 12]);
        bytes.extend_from_slice(&(links.len() as u64).to_le_bytes());
        links.iter().for_each(|link| bytes.extend_from_slice(&link.to_le_bytes()));
        Self(bytes)
    }

    pub fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    pub fn u16(self, value: u16) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    pub fn u32(self, value: u32) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    pub fn u64(self, value: u64) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    /// Returns the block's bytes, with its length filled in.
    pub fn done(mut self) -> Vec<u8> {
        let length = self.0.len() as u64;
        self.0[8..16].copy_from_slice(&length.to_le_bytes());
        self.0
    }
}

/// Pads the output to a multiple of 8 bytes, and returns its position.
pub fn align(output: &mut Output) -> u64 {
    let missing = output.position().wrapping_neg() % 8;
    output.buffer().extend_from_slice(&[0; 8][..missing as usize]);
    output.position()
}

/// Writes a block, and returns its offset.
pub fn put(output: &mut Output, block: &[u8]) -> u64 {
    let place = align(output);
    output.buffer().extend_from_slice(block);
    place
}

/// Writes a text (`TX`) or XML (`MD`) block, and returns its offset.
pub fn text(output: &mut Output, kind: &[u8; 2], text: &str) -> u64 {
    let padding = 8 - text.len() % 8;
    put(output, &Block::new(kind, &[]).bytes(text.as_bytes()).bytes(&[0; 8][..padding]).done())
}

/// Writes a data group of one channel group, and returns its offset.
pub fn data_group(output: &mut Output, next: u64, channel_group: u64, data: u64) -> u64 {
    put(output, &Block::new(b"DG", &[next, channel_group, data, 0]).bytes(&[0; 8]).done())
}

/// A channel: its name, its type and its place in a record.
pub struct Channel {
    pub name: String,
    /// 0: a value; 2: the time of the record.
    pub kind: u8,
    /// 0: an unsigned number; 4: a floating-point number; 10: bytes.
    pub data: u8,
    pub byte: u32,
    pub bits: u32,
    pub unit: Option<&'static str>,
    /// The offset of its first member; 0: it has none.
    pub members: u64,
}

/// The flag of channels of bus logging.
const BUS_EVENT: u32 = 1 << 10;

impl Channel {
    /// Writes the channel with a link to the channel `next`, and returns its offset.
    pub fn put(&self, output: &mut Output, next: u64) -> u64 {
        let name = text(output, b"TX", &self.name);
        let unit = self.unit.map_or(0, |unit| text(output, b"TX", unit));
        let time = self.kind == 2;
        let block = Block::new(b"CN", &[next, self.members, name, 0, 0, 0, unit, 0])
            .bytes(&[self.kind, u8::from(time), self.data, 0])
            .u32(self.byte)
            .u32(self.bits)
            .u32(if time { 0 } else { BUS_EVENT })
            .bytes(&[0; 4])
            .bytes(&[0; 4])
            .bytes(&[0; 48]);
        put(output, &block.done())
    }
}

//! MDF4 of measured values, as any program for measurements reads it: groups of channels with names and units over time. A
//! value that a row does not have is marked by its invalidation bit.

use super::{
    IDENTIFICATION_BYTES,
    blocks::{Block, align, data_group, put, text},
    head, history, identification,
    records::Records,
};
use crate::format::Output;
use std::{io, path::Path};

/// A value, and the type of its channel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// A signed integer.
    Signed(i64),
    /// An unsigned integer.
    Unsigned(u64),
    /// A double.
    Double(f64),
}

impl Number {
    fn bytes(self) -> [u8; 8] {
        match self {
            Self::Signed(value) => value.to_le_bytes(),
            Self::Unsigned(value) => value.to_le_bytes(),
            Self::Double(value) => value.to_le_bytes(),
        }
    }

    /// CN: the type of data.
    fn data_type(self) -> u8 {
        match self {
            Self::Unsigned(_) => 0,
            Self::Signed(_) => 2,
            Self::Double(_) => FLOATING,
        }
    }
}

/// A channel of a group.
#[derive(Clone, Debug)]
pub struct Channel {
    /// The name.
    pub name: String,
    /// The unit; may be empty.
    pub unit: String,
    /// Any value of the channel's type.
    pub number: Number,
}

/// A group of a [`File`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupId(usize);

struct Group {
    name: String,
    bus: String,
    channels: Vec<Channel>,
    records: Records,
    record: Vec<u8>,
}

/// A file being written. It gets its name in [`finish`](Self::finish): a file that is dropped before leaves nothing.
pub struct File {
    output: Output,
    groups: Vec<Group>,
}

/// Bytes of the time and of each value.
const NUMBER_BYTES: usize = 8;
const FLOATING: u8 = 4;
/// CN: an invalidation bit says of each value whether it is there.
const MAY_BE_INVALID: u32 = 2;
const SOURCE_BUS: u8 = 2;
const BUS_CAN: u8 = 2;

impl File {
    /// Creates a file.
    ///
    /// # Errors
    /// When it exists and may not be replaced, or cannot be created.
    pub fn create(path: &Path, overwrite: bool) -> io::Result<Self> {
        if crate::output::is_stream(path) || crate::output::is_zst(path) {
            return Err(io::Error::new(
                io::ErrorKind::NotSeekable,
                "MDF needs a file: its header is written last",
            ));
        }
        let mut output = Output::create(path, overwrite)?;
        output.buffer().extend_from_slice(&identification());
        output.buffer().extend_from_slice(&head(0, 0, 0));
        Ok(Self { output, groups: Vec::new() })
    }

    /// Adds a group: the message and the bus that its channels come from.
    pub fn group(&mut self, name: &str, bus: &str, channels: Vec<Channel>) -> GroupId {
        let width = NUMBER_BYTES * (1 + channels.len()) + channels.len().div_ceil(8);
        let (name, bus) = (name.to_owned(), bus.to_owned());
        self.groups.push(Group { name, bus, channels, records: Records::new(width), record: Vec::new() });
        GroupId(self.groups.len() - 1)
    }

    /// Appends a row: a value for each channel of the group.
    ///
    /// # Errors
    /// What the operating system reports.
    pub fn push(&mut self, group: GroupId, seconds: f64, values: &[Option<Number>]) -> io::Result<()> {
        let Some(group) = self.groups.get_mut(group.0) else { return Ok(()) };
        let record = &mut group.record;
        record.clear();
        record.extend_from_slice(&seconds.to_le_bytes());
        let count = group.channels.len();
        for at in 0..count {
            let value = values.get(at).copied().flatten();
            record.extend_from_slice(&value.map_or([0; NUMBER_BYTES], Number::bytes));
        }
        for byte in 0..count.div_ceil(8) {
            let bits = (0..8).filter(|bit| values.get(8 * byte + bit).copied().flatten().is_none());
            record.push(bits.fold(0, |bits, bit| bits | 1 << bit));
        }
        group.records.push(&[&group.record]);
        if group.records.is_full() { group.records.write(&mut self.output) } else { Ok(()) }
    }

    /// Ends the file; `start_ns` is the time 0 of all groups, in ns since 1970. Returns its size in bytes.
    ///
    /// # Errors
    /// What the operating system reports.
    pub fn finish(mut self, start_ns: u64) -> io::Result<u64> {
        let mut next = 0;
        for mut group in std::mem::take(&mut self.groups).into_iter().rev() {
            let data = group.records.finish(&mut self.output)?;
            let channel_group = group.describe(&mut self.output);
            next = data_group(&mut self.output, next, channel_group, data);
        }
        let history = history(&mut self.output, "canter decode", start_ns);
        align(&mut self.output);
        self.output.patch(IDENTIFICATION_BYTES, &head(next, history, start_ns))?;
        self.output.finish()
    }
}

impl Group {
    /// Writes the group's description; returns its offset.
    fn describe(&self, output: &mut Output) -> u64 {
        let mut next = 0;
        for (at, channel) in self.channels.iter().enumerate().rev() {
            let byte = (NUMBER_BYTES * (1 + at)) as u32;
            next = channel.put(output, next, [0, channel.number.data_type()], byte, Some(at as u32));
        }
        let time = Channel { name: "time".to_owned(), unit: "s".to_owned(), number: Number::Double(0.0) };
        let first = time.put(output, next, [2, FLOATING], 0, None);
        let name = text(output, b"TX", &self.name);
        let bus = text(output, b"TX", &self.bus);
        let source = Block::new(b"SI", &[bus, bus, 0]).bytes(&[SOURCE_BUS, BUS_CAN, 0, 0, 0, 0, 0, 0]);
        let source = put(output, &source.done());
        let invalid_bytes = self.channels.len().div_ceil(8);
        let group = Block::new(b"CG", &[0, first, name, source, 0, 0])
            .u64(0)
            .u64(self.records.count())
            .u16(0)
            .u16(0)
            .u32(0)
            .u32((self.records.width() - invalid_bytes) as u32)
            .u32(invalid_bytes as u32);
        put(output, &group.done())
    }
}

impl Channel {
    /// Writes the channel with a link to the channel `next`; its kind and type, its byte in the record, its invalidation bit.
    fn put(
        &self,
        output: &mut Output,
        next: u64,
        [kind, data]: [u8; 2],
        byte: u32,
        invalid: Option<u32>,
    ) -> u64 {
        let name = text(output, b"TX", &self.name);
        let unit = if self.unit.is_empty() { 0 } else { text(output, b"TX", &self.unit) };
        let block = Block::new(b"CN", &[next, 0, name, 0, 0, 0, unit, 0])
            .bytes(&[kind, u8::from(kind == 2), data, 0])
            .u32(byte)
            .u32(8 * NUMBER_BYTES as u32)
            .u32(if invalid.is_some() { MAY_BE_INVALID } else { 0 })
            .u32(invalid.unwrap_or(0))
            .bytes(&[0; 4])
            .bytes(&[0; 48]);
        put(output, &block.done())
    }
}

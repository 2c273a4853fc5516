//! A channel group of bus logging: the frames of one kind of one bus.

use super::{
    blocks::{Block, Channel, put, text},
    records::Records,
};
use crate::{fields::Fields, format::Output};
use canter_frame::Frame;
use std::io;

/// The kinds of frames; each has one group per bus. FD frames are separate from classic ones, whose records are
/// shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Data,
    FdData,
    Remote,
    Error,
}

impl Kind {
    pub const ALL: [Self; 4] = [Self::Data, Self::FdData, Self::Remote, Self::Error];

    pub fn from_fields(fields: &Fields) -> Self {
        match fields {
            Fields { error: true, .. } => Self::Error,
            Fields { rtr: true, .. } => Self::Remote,
            Fields { fd: true, .. } => Self::FdData,
            _ => Self::Data,
        }
    }

    /// The standard's name of these frames.
    fn name(self) -> &'static str {
        match self {
            Self::Data | Self::FdData => "CAN_DataFrame",
            Self::Remote => "CAN_RemoteFrame",
            Self::Error => "CAN_ErrorFrame",
        }
    }

    fn data_bytes(self) -> usize {
        match self {
            Self::Remote => 0,
            Self::FdData => 64,
            Self::Data | Self::Error => 8,
        }
    }

    fn record_bytes(self) -> usize {
        HEAD_BYTES + self.data_bytes()
    }
}

/// Bytes of a record before the data: the time, and the members below.
const HEAD_BYTES: usize = 8 + 12;
/// Each member's name, first byte and number of bits.
const MEMBERS: [(&str, u32, u32); 9] = [
    ("BusChannel", 8, 8),
    ("ID", 9, 32),
    ("IDE", 13, 8),
    ("DLC", 14, 8),
    ("DataLength", 15, 8),
    ("Dir", 16, 8),
    ("EDL", 17, 8),
    ("BRS", 18, 8),
    ("ESI", 19, 8),
];

/// CG flags: bus event, plain bus event.
const BUS_EVENT: u16 = 0b110;
/// SI: the source is a bus, and its type is CAN.
const SOURCE_BUS: u8 = 2;
const BUS_CAN: u8 = 2;
/// A group that is being written.
pub struct Group {
    kind: Kind,
    records: Records,
}

impl Group {
    pub fn new(kind: Kind) -> Self {
        Self { kind, records: Records::new(kind.record_bytes()) }
    }

    pub fn count(&self) -> u64 {
        self.records.count()
    }

    #[inline]
    pub fn push(&mut self, seconds: f64, channel: u8, fields: &Fields, sent: bool, frame: &Frame) {
        let id = fields.id.to_le_bytes();
        let flags = [fields.extended, false, false, sent, fields.fd, fields.brs, fields.esi].map(u8::from);
        let mut head = [0; HEAD_BYTES];
        head[..8].copy_from_slice(&seconds.to_le_bytes());
        head[8] = channel;
        head[9..13].copy_from_slice(&id);
        head[13..].copy_from_slice(&flags);
        (head[14], head[15]) = (fields.dlc, fields.len);
        let data = &frame.data()[..usize::from(fields.len).min(self.kind.data_bytes())];
        self.records.push(&[&head, data, &[0; 64][..self.kind.data_bytes() - data.len()]]);
    }

    pub fn is_full(&self) -> bool {
        self.records.is_full()
    }

    /// Writes the records as a data block.
    pub fn write(&mut self, output: &mut Output) -> io::Result<()> {
        self.records.write(output)
    }

    /// Writes the records that are left, and the list of the data blocks; returns the list's offset.
    pub fn finish(&mut self, output: &mut Output) -> io::Result<u64> {
        self.records.finish(output)
    }

    /// Writes the group's description; returns its offset.
    pub fn describe(&self, output: &mut Output, interface: &str) -> u64 {
        let frame = self.frame(output);
        let time = Channel {
            name: "Timestamp".to_owned(),
            kind: 2,
            data: 4,
            byte: 0,
            bits: 64,
            unit: Some("s"),
            members: 0,
        };
        let first = time.put(output, frame);
        let name = text(output, b"TX", interface);
        let path = text(output, b"TX", interface);
        let source = Block::new(b"SI", &[name, path, 0]).bytes(&[SOURCE_BUS, BUS_CAN, 0, 0, 0, 0, 0, 0]);
        let source = put(output, &source.done());
        let group = Block::new(b"CG", &[0, first, name, source, 0, 0])
            .u64(0)
            .u64(self.count())
            .u16(BUS_EVENT)
            .u16(b'.'.into())
            .u32(0)
            .u32(self.kind.record_bytes() as u32)
            .u32(0);
        put(output, &group.done())
    }

    /// Writes the channel that holds a frame, and its members; returns its offset.
    fn frame(&self, output: &mut Output) -> u64 {
        let (name, data_bytes) = (self.kind.name(), self.kind.data_bytes() as u32);
        let member = |member: &str, data, byte, bits| Channel {
            name: format!("{name}.{member}"),
            kind: 0,
            data,
            byte,
            bits,
            unit: None,
            members: 0,
        };
        let mut members = 0;
        if data_bytes > 0 {
            members = member("DataBytes", 10, HEAD_BYTES as u32, 8 * data_bytes).put(output, members);
        }
        for &(part, byte, bits) in MEMBERS.iter().rev() {
            members = member(part, 0, byte, bits).put(output, members);
        }
        let bits = 8 * (self.kind.record_bytes() as u32 - 8);
        let frame = Channel { name: name.to_owned(), kind: 0, data: 10, byte: 8, bits, unit: None, members };
        frame.put(output, 0)
    }
}

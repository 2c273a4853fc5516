//! Vector BLF, as python-can and Vector's programs read it: a header, which is rewritten at the end, and containers of
//! objects, compressed by zlib.

use super::{
    layout::{APP_TEXT, CAN_ERROR_EXT, CAN_FD_MESSAGE, CAN_MESSAGE, LOG_CONTAINER, OBJECT_BASE, OBJECT_HEAD},
    systemtime,
};
use crate::{
    channels::{self, ChannelOfBus},
    fields::Fields,
    format::{Detail, NotKept, Output, Sink, Written},
};
use canter_frame::{BusId, Direction, Record, frame::EFF_FLAG};
use flate2::{Compress, Compression, FlushCompress, Status};
use std::io;

const HEAD_BYTES: u32 = 144;
/// The size of Vector's containers, in bytes.
const CONTAINER_BYTES: usize = 128 << 10;
const STAMP_NS: u32 = 2;
const ZLIB: u16 = 2;
/// In an APP_TEXT object: a comment of the measurement.
const SOURCE_COMMENT: u32 = 0;

/// The encoder.
pub struct Blf {
    output: Output,
    channels: ChannelOfBus,
    objects: Vec<u8>,
    /// What compresses each container: a new one for each would clear more tables than it uses.
    packer: Compress,
    count: u32,
    /// The size of the file without compression, in bytes.
    unpacked: u64,
    start_ns: Option<u64>,
    end_ns: u64,
    /// Notes of channels that are written before the next frame.
    waiting: Vec<String>,
    not_kept: NotKept,
}

impl Blf {
    pub fn new(mut output: Output) -> io::Result<Self> {
        output.buffer().extend_from_slice(&[0; HEAD_BYTES as usize]);
        Ok(Self {
            output,
            channels: ChannelOfBus::default(),
            objects: Vec::with_capacity(2 * CONTAINER_BYTES),
            // The fastest level: with the next one a file is 17 % smaller, and writing takes two thirds more instructions.
            packer: Compress::new(Compression::fast(), true),
            count: 0,
            unpacked: HEAD_BYTES.into(),
            start_ns: None,
            end_ns: 0,
            waiting: Vec::new(),
            not_kept: NotKept::default(),
        })
    }

    /// Appends the header of an object with a body of `bytes` bytes.
    fn object(&mut self, kind: u32, bytes: usize, since_ns: u64) {
        let mut head = [0; OBJECT_HEAD];
        head[..4].copy_from_slice(b"LOBJ");
        head[4..6].copy_from_slice(&(OBJECT_HEAD as u16).to_le_bytes());
        head[6..8].copy_from_slice(&1u16.to_le_bytes());
        head[8..12].copy_from_slice(&((OBJECT_HEAD + bytes) as u32).to_le_bytes());
        head[12..16].copy_from_slice(&kind.to_le_bytes());
        head[16..20].copy_from_slice(&STAMP_NS.to_le_bytes());
        head[24..].copy_from_slice(&since_ns.to_le_bytes());
        self.objects.extend_from_slice(&head);
        self.count += 1;
    }

    fn note(&mut self, note: &str) {
        let length = note.len().next_multiple_of(4);
        self.object(APP_TEXT, 16 + length, 0);
        let out = &mut self.objects;
        out.extend_from_slice(&SOURCE_COMMENT.to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&(length as u32).to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(note.as_bytes());
        out.extend_from_slice(&[0; 4][..length - note.len()]);
    }

    /// Compresses the objects into a container.
    fn container(&mut self) -> io::Result<()> {
        if self.objects.is_empty() {
            return Ok(());
        }
        let out = self.output.buffer();
        let start = out.len();
        out.extend_from_slice(b"LOBJ");
        out.extend_from_slice(&(OBJECT_BASE as u16).to_le_bytes());
        out.extend_from_slice(&1u16.to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&LOG_CONTAINER.to_le_bytes());
        out.extend_from_slice(&ZLIB.to_le_bytes());
        out.extend_from_slice(&[0; 6]);
        out.extend_from_slice(&(self.objects.len() as u32).to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        self.packer.reset();
        loop {
            let rest = &self.objects[self.packer.total_in() as usize..];
            out.reserve(rest.len() / 2 + 64);
            if self.packer.compress_vec(rest, out, FlushCompress::Finish)? == Status::StreamEnd {
                break;
            }
        }
        let length = out.len() - start;
        out[start + 8..start + 12].copy_from_slice(&(length as u32).to_le_bytes());
        // Readers expect `length % 4` bytes of padding, not the bytes missing to a multiple of 4.
        out.extend_from_slice(&[0; 4][..length % 4]);
        self.unpacked += (OBJECT_BASE + 16 + self.objects.len()) as u64;
        self.objects.clear();
        self.output.ready()
    }

    fn head(&self, size: u64) -> Vec<u8> {
        let mut head = Vec::with_capacity(HEAD_BYTES as usize);
        head.extend_from_slice(b"LOGG");
        head.extend_from_slice(&HEAD_BYTES.to_le_bytes());
        // The application is unknown; the format's version is 2.6.8.1.
        head.extend_from_slice(&[0, 0, 0, 0, 2, 6, 8, 1]);
        head.extend_from_slice(&size.to_le_bytes());
        head.extend_from_slice(&self.unpacked.to_le_bytes());
        head.extend_from_slice(&self.count.to_le_bytes());
        head.extend_from_slice(&[0; 4]);
        for ns in [self.start_ns.unwrap_or(0), self.end_ns] {
            systemtime::from_ns(ns).iter().for_each(|part| head.extend_from_slice(&part.to_le_bytes()));
        }
        head.resize(HEAD_BYTES as usize, 0);
        head
    }

    fn since(&mut self, stamp_ns: u64) -> u64 {
        let start_ns = *self.start_ns.get_or_insert(stamp_ns - stamp_ns % 1_000_000);
        self.end_ns = self.end_ns.max(stamp_ns);
        stamp_ns.checked_sub(start_ns).unwrap_or_else(|| {
            self.not_kept.count(Detail::BeforeStart);
            0
        })
    }
}

impl Sink for Blf {
    fn interface(&mut self, name: &str) -> io::Result<()> {
        let channel = self.channels.add(name);
        self.waiting.push(channels::note(channel, name));
        Ok(())
    }

    #[inline]
    fn frame(&mut self, entry: &Record) -> io::Result<()> {
        let since = self.since(entry.stamp_ns);
        for note in std::mem::take(&mut self.waiting) {
            self.note(&note);
        }
        let (fields, frame) = (Fields::from_frame(&entry.frame), &entry.frame);
        let channel = (self.channels.known(entry.bus) as u16).to_le_bytes();
        if entry.direction.is_none() && !fields.error {
            self.not_kept.count(Detail::DirectionUnknown);
        }
        let sent = u8::from(entry.direction == Some(Direction::Sent));
        let flags = if fields.rtr { 0x80 | sent } else { sent };
        let id = fields.id | if fields.extended || fields.error { EFF_FLAG } else { 0 };
        let data = if fields.rtr { &[0; 64] } else { &frame.data };
        match (fields.error, fields.fd) {
            (true, _) => {
                self.object(CAN_ERROR_EXT, 32, since);
                let out = &mut self.objects;
                out.extend_from_slice(&channel);
                out.extend_from_slice(&[0; 8]);
                out.extend_from_slice(&[fields.dlc.min(8), 0, 0, 0, 0, 0]);
                out.extend_from_slice(&id.to_le_bytes());
                out.extend_from_slice(&[0; 4]);
                out.extend_from_slice(&data[..8]);
            }
            (_, true) => {
                self.object(CAN_FD_MESSAGE, 88, since);
                let out = &mut self.objects;
                out.extend_from_slice(&channel);
                out.extend_from_slice(&[flags, fields.dlc]);
                out.extend_from_slice(&id.to_le_bytes());
                out.extend_from_slice(&[0; 5]);
                let fd = 1 | if fields.brs { 2 } else { 0 } | if fields.esi { 4 } else { 0 };
                out.extend_from_slice(&[fd, frame.len, 0, 0, 0, 0, 0]);
                out.extend_from_slice(&data[..frame.len.into()]);
                out.extend_from_slice(&[0; 68][frame.len.into()..]);
            }
            _ => {
                self.object(CAN_MESSAGE, 16, since);
                let out = &mut self.objects;
                out.extend_from_slice(&channel);
                out.extend_from_slice(&[flags, fields.dlc]);
                out.extend_from_slice(&id.to_le_bytes());
                out.extend_from_slice(&data[..8]);
            }
        }
        if self.objects.len() >= CONTAINER_BYTES - 128 { self.container() } else { Ok(()) }
    }

    fn channel(&self, bus: BusId) -> Option<u32> {
        self.channels.channel(bus)
    }

    fn finish(mut self: Box<Self>) -> io::Result<Written> {
        self.container()?;
        let head = self.head(self.output.position());
        self.output.patch(0, &head)?;
        Ok(Written { bytes: self.output.finish()?, files: 1, not_kept: self.not_kept })
    }
}

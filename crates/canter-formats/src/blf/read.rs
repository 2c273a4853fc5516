//! Vector BLF: a header, then containers compressed by zlib, which hold a stream of objects. An object may continue in
//! the next container. The layouts are those of python-can's and Vector's own files.
//!
//! Channels are numbers from 1, named as in ASC; canter's names are in an APP_TEXT object.

use super::{
    layout::{APP_TEXT, CAN_ERROR_EXT, CAN_FD_MESSAGE, CAN_MESSAGE, LOG_CONTAINER, OBJECT_BASE, OBJECT_HEAD},
    systemtime,
};
use crate::{
    channels::{self, BusOfChannel},
    fields::{error_frame, fd_length},
    format::{Context, Decode, Source},
    linktype::Order,
    trouble::{Trouble, wrong},
};
use canter_frame::{
    Direction, Frame, Record,
    frame::{BRS, EFF_FLAG, EFF_MASK, ERR_FLAG, ESI, FDF, RTR_FLAG, len_of_dlc},
};
use flate2::read::ZlibDecoder;
use std::io::Read;

const CAN_ERROR: u32 = 2;
const CAN_MESSAGE2: u32 = 86;
const CAN_FD_MESSAGE_64: u32 = 101;
const CAN_FD_ERROR_64: u32 = 104;

const STAMP_TEN_US: u32 = 1;

/// The largest container accepted, in bytes; Vector's have 128 KiB.
const CONTAINER_BYTES_MAX: u32 = 64 << 20;
/// The longest object that is read, in bytes; longer ones are skipped.
const OBJECT_BYTES_MAX: usize = 64 << 10;

/// The most bytes of padding that may be missing after the last object.
const PADDING_BYTES_MAX: u64 = 7;

/// The decoder.
#[derive(Default)]
pub struct Blf {
    open: bool,
    /// The file's size in bytes and its number of objects, as the header states them; 0 if the writer does not set them
    /// or was killed before.
    size: u64,
    count: u32,
    /// Objects and containers read so far: some writers count containers as objects.
    objects_read: u64,
    start_ns: u64,
    channels: BusOfChannel,
    /// Decompressed objects; the next one begins at `at`.
    objects: Vec<u8>,
    at: usize,
    /// Bytes left to skip of an object that is too long.
    to_skip: u64,
    /// The file ends inside the current container: no objects follow those in `objects`.
    cut: bool,
}

const LE: Order = Order::Little;

impl Blf {
    fn open(&mut self, source: &mut Source) -> Result<(), Trouble> {
        let head = source.want(144)?;
        let length = LE.word(head, 4);
        if head.len() < 72 {
            return Err(Trouble::Cut);
        }
        if !(72..=4096).contains(&length) {
            return wrong(format!("a head of {length} bytes (a damaged file?)"));
        }
        (self.size, self.count) =
            (u64::from(LE.word(head, 20)) << 32 | u64::from(LE.word(head, 16)), LE.word(head, 32));
        let time: [u16; 8] = std::array::from_fn(|n| LE.half(head, 40 + 2 * n));
        self.start_ns = systemtime::to_ns(time).unwrap_or(0);
        self.open = true;
        if source.skip(length.into())? { Ok(()) } else { Err(Trouble::Cut) }
    }

    /// Decompresses the next container after the rest of the previous one; `false` at the end of the file.
    fn unpack(&mut self, source: &mut Source) -> Result<bool, Trouble> {
        if self.cut {
            return Err(Trouble::Cut);
        }
        self.objects.drain(..self.at);
        self.at = 0;
        loop {
            let head = source.want(OBJECT_BASE + 16)?;
            if head.len() < OBJECT_BASE {
                // Padding may follow the last object.
                return if head.iter().all(|&byte| byte == 0) { Ok(false) } else { Err(Trouble::Cut) };
            }
            let Some(padding) = padding(head) else {
                return wrong("no object where one is expected (a damaged file?)");
            };
            if padding > 0 {
                source.consume(padding);
                continue;
            }
            let (length, kind) = (LE.word(head, 8), LE.word(head, 12));
            if length < OBJECT_BASE as u32 {
                return wrong(format!("an object of {length} bytes (a damaged file?)"));
            }
            if kind != LOG_CONTAINER {
                if self.bare(source, length as usize)? {
                    return Ok(true);
                }
                continue;
            }
            if head.len() < OBJECT_BASE + 16 {
                return Err(Trouble::Cut);
            }
            // The decompressed size is not used: vblf writes a time there.
            if !(32..=CONTAINER_BYTES_MAX).contains(&length) {
                return wrong(format!("a container of {length} bytes (a damaged file?)"));
            }
            let method = LE.half(head, 16);
            return self.container(source, length as usize, method);
        }
    }

    fn container(&mut self, source: &mut Source, length: usize, method: u16) -> Result<bool, Trouble> {
        let container = source.want(length)?;
        let present = container.len().min(length);
        self.objects_read += 1;
        self.cut = present < length;
        let packed = &container[OBJECT_BASE + 16..present];
        match method {
            0 => self.objects.extend_from_slice(packed),
            2 => {
                let unpacked =
                    ZlibDecoder::new(packed).take(CONTAINER_BYTES_MAX.into()).read_to_end(&mut self.objects);
                if let (Err(error), false) = (unpacked, self.cut) {
                    return wrong(format!("a container that cannot be unpacked: {error} (a damaged file?)"));
                }
            }
            other => {
                return wrong(format!("a container compressed by method {other}, which canter cannot read"));
            }
        }
        source.consume(present);
        Ok(true)
    }

    /// Whether the file has the size that its header states: a cut between two containers has no other sign. Padding
    /// may be missing.
    fn is_whole(&self, source: &Source) -> bool {
        match self.size {
            0 => self.objects_read >= self.count.into(),
            size => source.offset() + source.buffered().len() as u64 + PADDING_BYTES_MAX >= size,
        }
    }

    /// Reads an object outside of containers; `false`: it was skipped.
    fn bare(&mut self, source: &mut Source, length: usize) -> Result<bool, Trouble> {
        if length > OBJECT_BYTES_MAX {
            self.objects_read += 1;
            return if source.skip(length as u64)? { Ok(false) } else { Err(Trouble::Cut) };
        }
        let object = source.want(length)?;
        if object.len() < length {
            return Err(Trouble::Cut);
        }
        self.objects.extend_from_slice(&object[..length]);
        source.consume(length);
        Ok(true)
    }

    /// Returns the length of the next complete object, at `at` in `objects`; `None`: the next container is needed.
    fn whole(&mut self) -> Result<Option<usize>, Trouble> {
        loop {
            let now = self.to_skip.min((self.objects.len() - self.at) as u64);
            self.to_skip -= now;
            self.at += now as usize;
            let rest = &self.objects[self.at..];
            if rest.len() < OBJECT_BASE {
                return Ok(None);
            }
            match padding(rest) {
                Some(0) => {}
                Some(padding) => {
                    self.at += padding;
                    continue;
                }
                None => return wrong("no object where one is expected (a damaged file?)"),
            }
            let length = LE.word(rest, 8) as usize;
            if length < OBJECT_BASE {
                return wrong(format!("an object of {length} bytes (a damaged file?)"));
            }
            if length <= OBJECT_BYTES_MAX {
                return Ok((rest.len() >= length).then_some(length));
            }
            self.to_skip = length as u64;
            self.objects_read += 1;
        }
    }
}

/// The content of an object; a frame with its channel and direction.
enum Object {
    Frame(u32, Option<Direction>, Frame),
    Name(u32, String),
    Other(&'static str),
    Nothing,
}

/// Returns the padding before the next object, in bytes: writers align to 4 or 8 bytes, counted from the object or from
/// the file's start.
fn padding(bytes: &[u8]) -> Option<usize> {
    bytes[..11].windows(4).position(|four| four == b"LOBJ")
}

fn sent(bit: bool) -> Option<Direction> {
    Some(if bit { Direction::Sent } else { Direction::Received })
}

fn can_id(id: u32, remote: bool) -> u32 {
    let extended = if id & EFF_FLAG != 0 { EFF_FLAG } else { 0 };
    id & EFF_MASK | extended | if remote { RTR_FLAG } else { 0 }
}

/// Reads `CAN_MESSAGE`, or `CAN_MESSAGE2`, which has the same fields and more after them.
fn classic(body: &[u8]) -> Option<Object> {
    let head: &[u8; 16] = body.first_chunk()?;
    let (channel, flags, dlc) = (LE.half(head, 0), head[2], head[3]);
    let mut frame = Frame::default();
    frame.can_id = can_id(LE.word(head, 4), flags & 0x80 != 0);
    frame.len = dlc.min(8);
    frame.len8_dlc = if (9..=15).contains(&dlc) { dlc } else { 0 };
    if flags & 0x80 == 0 {
        frame.data[..8].copy_from_slice(&head[8..]);
    }
    Some(Object::Frame(channel.into(), sent(flags & 1 != 0), frame))
}

fn fd_flags(edl: bool, brs: bool, esi: bool) -> u8 {
    if edl { FDF | if brs { BRS } else { 0 } | if esi { ESI } else { 0 } } else { 0 }
}

/// Fills a frame from an FD object, which holds an FD or a classic frame.
fn fill(frame: &mut Frame, dlc: u8, data: &[u8]) {
    let len = data.len().min(64);
    frame.data[..len].copy_from_slice(&data[..len]);
    frame.len = match (frame.is_fd(), frame.is_rtr()) {
        (true, _) => fd_length(len.max(len_of_dlc(dlc & 15))),
        (_, true) => dlc.min(8),
        _ => len.min(8) as u8,
    };
}

fn fd_message(body: &[u8]) -> Option<Object> {
    let head: &[u8; 20] = body.first_chunk()?;
    let (channel, flags, dlc) = (LE.half(head, 0), head[2], head[3]);
    let (fd, valid) = (head[13], usize::from(head[14]));
    let mut frame = Frame::default();
    frame.can_id = can_id(LE.word(head, 4), flags & 0x80 != 0);
    frame.flags = fd_flags(fd & 1 != 0, fd & 2 != 0, fd & 4 != 0);
    let data = body.get(20..).unwrap_or_default();
    fill(&mut frame, dlc, &data[..valid.min(data.len())]);
    Some(Object::Frame(channel.into(), sent(flags & 1 != 0), frame))
}

fn fd_message_64(body: &[u8], head_bytes: usize) -> Option<Object> {
    let head: &[u8; 40] = body.first_chunk()?;
    let (channel, dlc, valid) = (head[0], head[1], usize::from(head[2]));
    let (flags, direction, extra) = (LE.word(head, 12), head[34], usize::from(head[35]));
    let mut frame = Frame::default();
    frame.can_id = can_id(LE.word(head, 4), flags & 0x10 != 0);
    frame.flags = fd_flags(flags & 0x1000 != 0, flags & 0x2000 != 0, flags & 0x4000 != 0);
    // The offset of the extra part counts from the object's start.
    let end = if extra > 0 { extra.saturating_sub(head_bytes).min(body.len()) } else { body.len() };
    let data = body.get(40..end).unwrap_or_default();
    fill(&mut frame, dlc, &data[..valid.min(data.len())]);
    Some(Object::Frame(channel.into(), sent(direction != 0), frame))
}

/// Reads an error frame. canter and python-can store the kernel's error class and data in it and leave the error codes
/// 0; then class and data are read.
fn error(body: &[u8]) -> Option<Object> {
    let head: &[u8; 32] = body.first_chunk()?;
    let channel = LE.half(head, 0);
    let plain = LE.word(head, 4) == 0 && head[8] == 0 && head[9] == 0;
    let mut frame = error_frame();
    if plain {
        frame.can_id = ERR_FLAG | LE.word(head, 16) & EFF_MASK;
        frame.len = head[10].min(8);
        frame.data[..8].copy_from_slice(&head[24..]);
    }
    Some(Object::Frame(channel.into(), None, frame))
}

fn app_text(body: &[u8]) -> Option<Object> {
    let length = LE.word(body, 8) as usize;
    let text = String::from_utf8_lossy(body.get(16..)?.get(..length)?).into_owned();
    let (channel, name) = channels::parse_note(text.trim_end_matches('\0'))?;
    Some(Object::Name(channel, name.to_owned()))
}

fn object(kind: u32, body: &[u8], head_bytes: usize) -> Result<Object, Trouble> {
    let found = match kind {
        CAN_MESSAGE | CAN_MESSAGE2 => classic(body),
        CAN_FD_MESSAGE => fd_message(body),
        CAN_FD_MESSAGE_64 => fd_message_64(body, head_bytes),
        CAN_ERROR_EXT => error(body),
        CAN_ERROR => Some(Object::Frame(LE.half(body, 0).into(), None, error_frame())),
        CAN_FD_ERROR_64 => {
            Some(Object::Frame(body.first().copied().unwrap_or_default().into(), None, error_frame()))
        }
        APP_TEXT => return Ok(app_text(body).unwrap_or(Object::Nothing)),
        _ => Some(Object::Other("other objects")),
    };
    found.map_or_else(|| wrong(format!("an object of type {kind} that is too short (a damaged file?)")), Ok)
}

impl Decode for Blf {
    fn next(
        &mut self,
        source: &mut Source,
        context: &mut Context,
        entry: &mut Record,
    ) -> Result<bool, Trouble> {
        if !self.open {
            self.open(source)?;
        }
        loop {
            let Some(length) = self.whole()? else {
                if !self.unpack(source)? {
                    let rest = &self.objects[self.at..];
                    let ended = self.to_skip == 0 && rest.iter().all(|&byte| byte == 0);
                    let whole = ended && self.is_whole(source);
                    return if whole { Ok(false) } else { Err(Trouble::Cut) };
                }
                continue;
            };
            let bytes = &self.objects[self.at..self.at + length];
            let (head_bytes, version) = (usize::from(LE.half(bytes, 4)), LE.half(bytes, 6));
            let kind = LE.word(bytes, 12);
            self.at += length;
            self.objects_read += 1;
            let (Some(body), 1 | 2) = (bytes.get(head_bytes.max(OBJECT_HEAD)..), version) else {
                context.skipped.count("other objects");
                continue;
            };
            let units = u64::from(LE.word(bytes, 28)) << 32 | u64::from(LE.word(bytes, 24));
            let ns = units.saturating_mul(if LE.word(bytes, 16) == STAMP_TEN_US { 10_000 } else { 1 });
            match object(kind, body, head_bytes.max(OBJECT_HEAD))? {
                Object::Nothing => {}
                Object::Other(kind) => context.skipped.count(kind),
                Object::Name(channel, name) => self.channels.name(channel, &name, &mut context.names)?,
                Object::Frame(channel, direction, frame) => {
                    let bus = self.channels.number(channel, &mut context.names)?;
                    let stamp_ns = self.start_ns.saturating_add(ns);
                    *entry = Record { stamp_ns, bus, frame, direction };
                    return Ok(true);
                }
            }
        }
    }
}

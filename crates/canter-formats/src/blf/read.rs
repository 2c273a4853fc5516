//! Vector BLF: a header, then containers compressed by zlib, which hold a stream of objects. An object may continue in
//! the next container. The layouts are those of python-can's and Vector's own files.
//!
//! Channels are numbers from 1, named as in ASC; canter's names are in an APP_TEXT object.
//!
//! The header's date names no time zone: CANoe writes local time, canter and python-can since 4.6 UTC
//! (hardbyte/python-can#2010). It is taken for UTC unless the reader was given another one. canter's files are recognised by
//! their names of channels, and are in UTC.

use super::{
    layout::{LOG_CONTAINER, OBJECT_BASE, OBJECT_HEAD, OBJECT_HEAD_2},
    object::{self, Object},
    systemtime,
};
use crate::{
    channels::BusOfChannel,
    format::{Context, Decode, Flawed, Source},
    linktype::Order,
    trouble::{Trouble, wrong},
    zone::{HeaderDate, Zone},
};
use canter_frame::Record;
use flate2::read::ZlibDecoder;
use std::{
    collections::HashSet,
    io::{self, Read},
};

const SIGNATURE: &[u8] = b"LOBJ";
const STAMP_TEN_US: u32 = 1;
/// A container's method of compression.
const ZLIB: u16 = 2;

/// The largest container accepted, in bytes, packed and unpacked; Vector's have 128 KiB.
const CONTAINER_BYTES_MAX: u32 = 8 << 20;
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
    /// Objects read so far, without containers.
    objects_read: u64,
    /// Where the container of the last of `objects` ends in the file.
    end: u64,
    /// In files with canter's names of channels it is in UTC.
    date: HeaderDate,
    /// The header has a date that is none.
    without_date: bool,
    start_ns: u64,
    channels: BusOfChannel,
    /// Decompressed objects; the next one begins at `at`.
    objects: Vec<u8>,
    at: usize,
    /// Bytes left to skip of an object that is too long.
    to_skip: u64,
    /// The file ends inside the current container: no objects follow those in `objects`.
    cut: bool,
    /// Damage was skipped: `objects` begin in the middle of an object.
    torn: bool,
    /// The container at the source's window could not be unpacked.
    failed: bool,
    /// The object before `at` is being read.
    in_object: bool,
}

const LE: Order = Order::Little;

impl Blf {
    fn start(&mut self, zone: &Zone) {
        self.start_ns = self.date.ns(zone).and_then(|ns| u64::try_from(ns).ok()).unwrap_or(0);
    }

    fn open(&mut self, source: &mut Source, zone: &Zone) -> Result<(), Trouble> {
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
        self.date.date = systemtime::date(time);
        self.without_date = self.date.date.is_none() && time != [0; 8];
        self.start(zone);
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
        self.cut = present < length;
        self.failed = true;
        let packed = &container[OBJECT_BASE + 16..present];
        match method {
            0 => self.objects.extend_from_slice(packed),
            ZLIB => {
                let limit = u64::from(CONTAINER_BYTES_MAX) + 1;
                match ZlibDecoder::new(packed).take(limit).read_to_end(&mut self.objects) {
                    Ok(count) if count as u64 == limit => {
                        return wrong("a container of more than 8 MiB when it is unpacked (a damaged file?)");
                    }
                    Err(error) if !self.cut => {
                        return wrong(format!(
                            "a container that cannot be unpacked: {error} (a damaged file?)"
                        ));
                    }
                    _ => {}
                }
            }
            other => {
                return wrong(format!("a container compressed by method {other}, which canter cannot read"));
            }
        }
        source.consume(present);
        self.end = source.offset();
        self.failed = false;
        Ok(true)
    }

    /// Checks that the file has the size and the objects that its header states: a cut between two containers has no other
    /// sign. Padding may be missing. No program is known that counts containers; some leave out objects of their own.
    fn check_whole(&self, source: &Source) -> Result<(), Trouble> {
        let size = source.offset() + source.buffered().len() as u64 + PADDING_BYTES_MAX;
        let (read, stated) = (self.objects_read, u64::from(self.count));
        if size < self.size || read < stated && self.size == 0 {
            return Err(Trouble::Cut);
        }
        if read < stated {
            return wrong(format!("{read} objects of the {stated} that the header counts (a damaged file?)"));
        }
        Ok(())
    }

    /// Whether the header tells of the object before `at` neither by its size nor by its count: it is older than the object.
    fn is_behind_head(&self) -> bool {
        self.objects_read > self.count.into() && self.end > self.size.saturating_add(PADDING_BYTES_MAX)
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
        self.end = source.offset();
        Ok(true)
    }

    /// Behind damage: moves to the first object that begins in `objects`, which others follow up to the end.
    fn mend(&mut self) {
        match first_sound(&self.objects[self.at..]) {
            Some(at) => {
                self.at += at;
                self.torn = false;
            }
            None => self.at = self.objects.len(),
        }
    }

    /// Returns the length of the next complete object, at `at` in `objects`; `None`: the next container is needed.
    fn next_object(&mut self) -> Result<Option<usize>, Trouble> {
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

/// Where the first whole object begins that others follow up to the end; the last of those may be incomplete. Looks at each
/// place once, from the end on, since bytes that an attacker chose may look like an object anywhere.
fn first_sound(objects: &[u8]) -> Option<usize> {
    let starts: Vec<usize> = memchr::memmem::find_iter(objects, SIGNATURE).collect();
    let (mut sound, mut first) = (HashSet::new(), None);
    for &at in starts.iter().rev().filter(|&&at| objects.len() - at >= OBJECT_BASE) {
        let object = &objects[at..];
        let (head_bytes, length) = (usize::from(LE.half(object, 4)), LE.word(object, 8) as usize);
        if padding(object) != Some(0) || head_bytes < OBJECT_BASE || length < head_bytes {
            continue;
        }
        let behind = object.get(length..).unwrap_or_default();
        let next = objects.len() - behind.len() + padding(behind).unwrap_or(0);
        if objects.len() - next < OBJECT_BASE || sound.contains(&next) {
            sound.insert(at);
            first = (length <= object.len()).then_some(at).or(first);
        }
    }
    first
}

/// Whether a container that is checked by a sum begins here.
fn is_container(head: &[u8]) -> bool {
    head.len() >= OBJECT_BASE + 16
        && head.starts_with(SIGNATURE)
        && usize::from(LE.half(head, 4)) == OBJECT_BASE
        && (32..=CONTAINER_BYTES_MAX).contains(&LE.word(head, 8))
        && LE.word(head, 12) == LOG_CONTAINER
        && LE.half(head, 16) == ZLIB
}

/// Returns the padding before the next object, in bytes: writers align to 4 or 8 bytes, counted from the object or from
/// the file's start.
fn padding(bytes: &[u8]) -> Option<usize> {
    bytes.get(..11)?.windows(4).position(|four| four == SIGNATURE)
}

impl Decode for Blf {
    fn next(
        &mut self,
        source: &mut Source,
        context: &mut Context,
        entry: &mut Record,
    ) -> Result<bool, Trouble> {
        if !self.open {
            self.open(source, &context.zone)?;
        }
        loop {
            self.in_object = false;
            let Some(length) = self.next_object()? else {
                if !self.unpack(source)? {
                    let rest = &self.objects[self.at..];
                    let ended = self.to_skip == 0 && rest.iter().all(|&byte| byte == 0);
                    return if ended { self.check_whole(source).map(|()| false) } else { Err(Trouble::Cut) };
                }
                if self.torn {
                    self.mend();
                }
                continue;
            };
            let bytes = &self.objects[self.at..self.at + length];
            let (head_bytes, version) = (usize::from(LE.half(bytes, 4)), LE.half(bytes, 6));
            let kind = LE.word(bytes, 12);
            self.at += length;
            self.in_object = true;
            self.objects_read += 1;
            let (Some(body), 1 | 2) = (bytes.get(head_bytes.max(OBJECT_HEAD)..), version) else {
                context.skipped.count("other objects");
                continue;
            };
            let units = u64::from(LE.word(bytes, 28)) << 32 | u64::from(LE.word(bytes, 24));
            let ns = units.saturating_mul(if LE.word(bytes, 16) == STAMP_TEN_US { 10_000 } else { 1 });
            match object::read(kind, body, head_bytes.max(OBJECT_HEAD))? {
                Object::Other(kind) => context.skipped.count(kind),
                Object::Name(channel, name) => {
                    self.channels.name(channel, &name, &mut context.names)?;
                    self.date.utc = true;
                    self.start(&context.zone);
                }
                Object::Frame { channel, direction, frame, flaw } => {
                    let unusual = head_bytes != if version == 1 { OBJECT_HEAD } else { OBJECT_HEAD_2 };
                    if let Some(flaw) = flaw.or(unusual.then_some(Flawed::HEADER)) {
                        context.flawed.count(flaw);
                    }
                    if self.is_behind_head() {
                        context.flawed.count(Flawed::UNCLOSED);
                    }
                    if self.without_date {
                        context.flawed.count(Flawed::DATE);
                    }
                    let bus = self.channels.number(channel, &mut context.names)?;
                    context.zone_used |= self.date.needs_zone();
                    let stamp_ns = self.start_ns.saturating_add(ns);
                    *entry = Record { stamp_ns, bus, frame, direction };
                    return Ok(true);
                }
            }
        }
    }

    /// At the next container with a checksum. Without the file's head, stamps have no date.
    fn resume(&mut self, source: &mut Source) -> io::Result<bool> {
        if self.cut || !self.open {
            return Ok(false);
        }
        // The object's header gave its end, so reading goes on there.
        if std::mem::take(&mut self.in_object) {
            return Ok(true);
        }
        self.objects.clear();
        (self.at, self.to_skip, self.torn) = (0, 0, true);
        // The container that could not be unpacked, unless the damage is in the objects of the one before.
        if std::mem::take(&mut self.failed) {
            source.consume(SIGNATURE.len());
        }
        loop {
            let window = source.want(OBJECT_BASE + 16)?;
            let length = window.len();
            match memchr::memmem::find(window, SIGNATURE) {
                Some(0) if is_container(window) => return Ok(true),
                Some(0) => source.consume(SIGNATURE.len()),
                Some(at) => source.consume(at),
                None if length < OBJECT_BASE + 16 => return Ok(false),
                // A signature may begin in the last bytes.
                None => source.consume(length - SIGNATURE.len()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_search_for_the_first_sound_object_looks_at_each_place_once() {
        let object = |length: u32| {
            [b"LOBJ\x10\0\x01\0".to_vec(), length.to_le_bytes().into(), vec![1, 0, 0, 0]].concat()
        };
        let many = object(16).repeat(200_000);
        assert_eq!(first_sound(&many), Some(0));
        // From no place do objects follow up to the end: a walk from each would be 20 billion steps.
        assert_eq!(first_sound(&[many.clone(), object(3)].concat()), None);
        assert_eq!(first_sound(&[object(3), many, object(100)].concat()), Some(16));
        assert_eq!(first_sound(b"LOBJ"), None);
    }
}

//! A channel group of bus logging: the channels of its records, and the frame of each record.

use super::{
    blocks::{Block, Blocks},
    data::Data,
};
use crate::{
    fields::{Fields, error_frame, fd_length},
    format::Flawed,
    trouble::{Trouble, wrong},
};
use canter_frame::{
    Direction, Frame,
    frame::{EFF_FLAG, EFF_MASK, SFF_MASK, dlc_of_len, len_of_dlc},
};

/// The kind of a group's frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Data,
    Remote,
    Error,
}

/// The standard's names of the channel that holds a frame; its members are `CAN_DataFrame.ID` and so on.
const KINDS: [(&str, Kind); 3] =
    [("CAN_DataFrame", Kind::Data), ("CAN_RemoteFrame", Kind::Remote), ("CAN_ErrorFrame", Kind::Error)];

/// CN: the channel's values have variable length and are stored outside of the records.
const VARIABLE_LENGTH: u8 = 1;
const TIME: u8 = 2;
/// CN: the values are not in the records; they follow from the number of the record.
const VIRTUAL: u8 = 6;
/// CN: types of data.
const FLOATING: u8 = 4;
const UNSIGNED: u8 = 0;
/// CN: every value is invalid; a bit of the record says so of each.
const ALL_INVALID: u32 = 1;
const MAY_BE_INVALID: u32 = 2;
/// CC: `a + b * x`.
const LINEAR: u8 = 1;
/// CC: a number for each of some numbers, with and without interpolation between these.
const TABLE_INTERPOLATED: u8 = 4;
const TABLE: u8 = 5;
/// CC: the last type whose result is a number; the others are texts for the number that is in the record.
const LAST_OF_NUMBERS: u8 = 6;
/// The channels that make a frame, but for its payload.
const MEMBERS: [&str; 9] = ["BusChannel", "ID", "IDE", "DLC", "DataLength", "Dir", "EDL", "BRS", "ESI"];
/// The longest record accepted, in bytes: a frame and what a logger adds to it.
const RECORD_BYTES_MAX: u64 = 64 << 10;

/// A channel of a group.
struct Channel {
    name: String,
    kind: u8,
    data: u8,
    bit: u8,
    byte: u32,
    bits: u32,
    flags: u32,
    /// With [`MAY_BE_INVALID`], the bit in the record's invalidation bytes.
    invalid_bit: u32,
    conversion: u64,
    /// The offset of the values of variable length.
    values: u64,
}

/// The place of a number in a record: it begins at bit `bit` of byte `byte`; `mask` has its width.
#[derive(Clone, Copy, Debug)]
struct Place {
    byte: usize,
    bytes: usize,
    bit: u8,
    mask: u64,
}

impl Place {
    /// The number, where the record has eight bytes from its first one on, and it is in these: one load has it, and the mask
    /// takes off the other columns. Most numbers are there.
    #[inline]
    fn quick_value_in(self, record: &[u8]) -> Option<u64> {
        let eight = record.get(self.byte..)?.first_chunk()?;
        (self.bytes <= 8).then(|| u64::from_le_bytes(*eight) >> self.bit & self.mask)
    }

    #[inline]
    fn value_in(self, record: &[u8]) -> u64 {
        if let Some(value) = self.quick_value_in(record) {
            return value;
        }
        let bytes = &record[self.byte..self.byte + self.bytes];
        if let [byte] = *bytes {
            return u64::from(byte) >> self.bit & self.mask;
        }
        let number = bytes.iter().rev().fold(0u128, |number, &byte| number << 8 | u128::from(byte));
        (number >> self.bit) as u64 & self.mask
    }
}

/// A number of a record, as its conversion makes it.
#[derive(Clone, Debug)]
enum Number {
    Raw(Place),
    /// `offset + factor * raw`.
    Linear(Place, f64, f64),
    /// A number for each raw one: a length for each DLC.
    Table(Place, Vec<(u64, u64)>),
    /// A virtual channel with a factor of 0 has one value in all records.
    Constant(u64),
}

impl Number {
    #[inline(always)] // a frame has ten numbers
    fn value_in(&self, record: &[u8]) -> u64 {
        if let Self::Raw(place) = self
            && let Some(value) = place.quick_value_in(record)
        {
            return value;
        }
        self.any_value_in(record)
    }

    #[inline(never)]
    fn any_value_in(&self, record: &[u8]) -> u64 {
        match self {
            Self::Raw(place) => place.value_in(record),
            Self::Constant(value) => *value,
            Self::Linear(place, offset, factor) => (offset + factor * place.value_in(record) as f64) as u64,
            Self::Table(place, table) => {
                let raw = place.value_in(record);
                table.iter().find(|(from, _)| *from == raw).map_or(raw, |(_, to)| *to)
            }
        }
    }
}

/// The time of a record: where it is, and its conversion to seconds.
struct Time {
    raw: RawTime,
    offset: f64,
    factor: f64,
}

/// The place of the time in a record.
enum RawTime {
    Double(usize),
    Single(usize),
    Integer(Place),
}

/// The place of the payload.
#[derive(Clone, Copy)]
enum Payload {
    None,
    /// In the record: its first byte, and its maximum length.
    Inside(usize, usize),
    /// Outside of the records, at an offset that is in the record; and the link of the channel to the values.
    Separate {
        place: Place,
        values: u64,
    },
}

/// A group, and the position of its next record.
pub struct Group {
    pub layout: Layout,
    records: Data,
    /// Bytes of the identifier before each record.
    id_bytes: usize,
    left: u64,
    /// The logger has not written how many records there are: they end with the data.
    is_open: bool,
    /// Payloads outside of the records, and the offset of the next one.
    separate: Data,
    passed: u64,
}

/// The records of a group.
pub struct Layout {
    kind: Kind,
    /// The group's name.
    pub name: String,
    /// The identifier before each record.
    pub record_id: u64,
    pub record_bytes: usize,
    time: Time,
    channel: Option<Number>,
    /// Error frames may have no identifier.
    id: Option<Number>,
    extended: Option<Number>,
    dlc: Option<Number>,
    len: Option<Number>,
    direction: Option<Number>,
    fd: Option<Number>,
    brs: Option<Number>,
    esi: Option<Number>,
    payload: Payload,
    /// Where a record says that a value of its frame is invalid: byte and bit.
    invalid: Vec<(usize, u32)>,
}

/// A frame with its time in seconds since the file's beginning.
pub struct Logged {
    pub seconds: f64,
    pub channel: u32,
    pub frame: Frame,
    pub direction: Option<Direction>,
    /// The kind of flaw, if the fields of the frame contradict each other.
    pub flaw: Option<&'static str>,
}

/// Reads all channels of a list, and the members of each channel.
fn channels(first: u64, blocks: &mut Blocks, found: &mut Vec<Channel>) -> Result<(), Trouble> {
    let mut lists = vec![first];
    while let Some(mut next) = lists.pop() {
        while next != 0 {
            let head = blocks.head(next)?;
            // The description of an array is not needed: the elements are bytes, one after the other.
            if head.kind != *b"CN" {
                break;
            }
            let block = blocks.body(head)?;
            lists.extend(Some(block.link(1)).filter(|&link| link != 0));
            found.push(Channel {
                name: blocks.text(block.link(2))?,
                kind: block.u8(0),
                data: block.u8(2),
                bit: block.u8(3),
                byte: block.u32(4),
                bits: block.u32(8),
                flags: block.u32(12),
                invalid_bit: block.u32(16),
                conversion: block.link(4),
                values: block.link(5),
            });
            next = block.link(0);
        }
    }
    Ok(())
}

impl Channel {
    fn place(&self, record_bytes: usize) -> Result<Place, Trouble> {
        let bytes = (u64::from(self.bit) + u64::from(self.bits)).div_ceil(8) as usize;
        let fits = (self.byte as usize).checked_add(bytes).is_some_and(|end| end <= record_bytes);
        if !fits || !(1..=64).contains(&self.bits) || self.bit > 7 {
            return wrong(format!("channel {}: not within its record (a damaged file?)", self.name));
        }
        if self.data != UNSIGNED && self.bits > 8 {
            return wrong(format!(
                "channel {}: is not a little-endian number, so canter cannot read it",
                self.name
            ));
        }
        let mask = u64::MAX >> (64 - self.bits);
        Ok(Place { byte: self.byte as usize, bytes, bit: self.bit, mask })
    }

    /// The number of the channel, as its conversion makes it.
    fn number(&self, record_bytes: usize, blocks: &mut Blocks) -> Result<Number, Trouble> {
        let unknown = |kind: u8| {
            wrong(format!("channel {}: has a conversion of type {kind}, which canter cannot read", self.name))
        };
        let conversion = match self.conversion {
            0 => None,
            link => Some(blocks.shared_block(link, b"CC")?),
        };
        let kind = conversion.as_ref().map_or(0, |conversion| conversion.u8(0));
        let linear =
            conversion.as_ref().map_or((0.0, 1.0), |conversion| (conversion.f64(24), conversion.f64(32)));
        if self.kind == VIRTUAL {
            // The raw value is the number of the record, from 0 on.
            return match (kind, linear) {
                (LINEAR, (value, 0.0)) if (0.0..=f64::from(u32::MAX)).contains(&value) => {
                    Ok(Number::Constant(value as u64))
                }
                _ => wrong(format!("channel {}: counts records, so canter cannot read it", self.name)),
            };
        }
        let place = self.place(record_bytes)?;
        match (kind, conversion) {
            (LINEAR, _) if linear == (0.0, 1.0) => Ok(Number::Raw(place)),
            (LINEAR, _) if linear.0.is_finite() && linear.1.is_finite() => {
                Ok(Number::Linear(place, linear.0, linear.1))
            }
            (TABLE_INTERPOLATED | TABLE, Some(conversion)) => {
                let values: Vec<u64> =
                    (24..conversion.data.len()).step_by(8).map(|at| conversion.f64(at) as u64).collect();
                Ok(Number::Table(place, values.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect()))
            }
            (kind @ LINEAR..=LAST_OF_NUMBERS, _) => unknown(kind),
            _ => Ok(Number::Raw(place)),
        }
    }

    fn time(&self, record_bytes: usize, blocks: &mut Blocks) -> Result<Time, Trouble> {
        let end = |bytes| (self.byte as usize).checked_add(bytes).is_some_and(|end| end <= record_bytes);
        let raw = match (self.data, self.bits) {
            (FLOATING, 64) if end(8) => RawTime::Double(self.byte as usize),
            (FLOATING, 32) if end(4) => RawTime::Single(self.byte as usize),
            _ => RawTime::Integer(self.place(record_bytes)?),
        };
        let (offset, factor) = match self.conversion {
            0 => (0.0, 1.0),
            link => {
                let conversion = blocks.shared_block(link, b"CC")?;
                match conversion.u8(0) {
                    0 => (0.0, 1.0),
                    LINEAR => (conversion.f64(24), conversion.f64(32)),
                    other => {
                        return wrong(format!(
                            "a time with a conversion of type {other}, which canter cannot read"
                        ));
                    }
                }
            }
        };
        Ok(Time { raw, offset, factor })
    }

    fn payload(&self, record_bytes: usize) -> Result<Payload, Trouble> {
        if self.kind == VARIABLE_LENGTH {
            let place = Self { data: UNSIGNED, name: self.name.clone(), ..*self }.place(record_bytes)?;
            return Ok(Payload::Separate { place, values: self.values });
        }
        match record_bytes.checked_sub(self.byte as usize) {
            // For an array of bytes, `bits` is the size of one element: the payload has the rest of the record.
            Some(room) => Ok(Payload::Inside(
                self.byte as usize,
                if self.bits > 8 { room.min(self.bits as usize / 8) } else { room },
            )),
            None => wrong(format!("channel {}: not within its record (a damaged file?)", self.name)),
        }
    }
}

impl Layout {
    /// The records of the group that `block` describes; `None` if they are not CAN frames.
    pub fn open(block: &Block, blocks: &mut Blocks) -> Result<Option<Self>, Trouble> {
        let mut all = Vec::new();
        channels(block.link(1), blocks, &mut all)?;
        let has_members = |name: &str| {
            all.iter()
                .any(|channel| channel.name.strip_prefix(name).is_some_and(|rest| rest.starts_with('.')))
        };
        let Some(&(frame, kind)) = KINDS.iter().find(|(name, _)| has_members(name)) else { return Ok(None) };
        // The invalidation bytes follow the data of a record.
        let (data_bytes, invalid_bytes) = (u64::from(block.u32(24)), u64::from(block.u32(28)));
        let record_bytes = data_bytes + invalid_bytes;
        if record_bytes > RECORD_BYTES_MAX {
            return wrong(format!("records of {record_bytes} bytes (a damaged file?)"));
        }
        let width = data_bytes as usize;
        let member = |name: &str| {
            let is = |channel: &&Channel| {
                channel.name.strip_prefix(frame).and_then(|rest| rest.strip_prefix('.')) == Some(name)
            };
            all.iter().find(is).filter(|channel| channel.flags & ALL_INVALID == 0)
        };
        let mut number = |name: &str| member(name).map(|channel| channel.number(width, blocks)).transpose();
        let [channel, id, extended, dlc, len, direction, fd, brs, esi] = MEMBERS.map(&mut number);
        let Some(time) = all.iter().find(|channel| channel.kind == TIME) else {
            return wrong("a group of frames without a time (a damaged file?)");
        };
        let id = id?;
        if id.is_none() && kind != Kind::Error {
            return wrong("a group of frames without identifiers (a damaged file?)");
        }
        let payload = match (kind, member("DataBytes")) {
            (Kind::Remote, _) | (_, None) => Payload::None,
            (_, Some(channel)) => channel.payload(width)?,
        };
        let named = MEMBERS.iter().chain(&["DataBytes"]).filter_map(|name| member(name));
        let doubtful = named.chain([time]).filter(|channel| channel.flags & MAY_BE_INVALID != 0);
        let invalid: Vec<_> = doubtful
            .map(|channel| (width + channel.invalid_bit as usize / 8, channel.invalid_bit % 8))
            .collect();
        if invalid.iter().any(|&(byte, _)| byte as u64 >= record_bytes) {
            return wrong("an invalidation bit that is not within its record (a damaged file?)");
        }
        let time = time.time(width, blocks)?;
        Ok(Some(Self {
            kind,
            name: blocks.text(block.link(2))?,
            record_id: block.u64(0),
            record_bytes: record_bytes as usize,
            time,
            channel: channel?,
            id,
            extended: extended?,
            dlc: dlc?,
            len: len?,
            direction: direction?,
            fd: fd?,
            brs: brs?,
            esi: esi?,
            payload,
            invalid,
        }))
    }

    /// The link of the channel whose values are outside of the records; 0: none are.
    pub fn values(&self) -> u64 {
        if let Payload::Separate { values, .. } = self.payload { values } else { 0 }
    }

    /// The frame of a record; `separate` gives the payload at an offset, of which it copies the beginning, and its length.
    /// `kernel_classes`: an error frame's identifier has the kernel's error classes, as canter writes it.
    #[inline]
    pub fn logged(
        &self,
        record: &[u8],
        kernel_classes: bool,
        separate: impl FnOnce(u64, &mut [u8; 64]) -> Result<usize, Trouble>,
    ) -> Result<Logged, Trouble> {
        let number = |number: &Option<Number>| number.as_ref().map(|number| number.value_in(record));
        let flag = |place| number(place).unwrap_or(0) != 0;
        let raw_time = match self.time.raw {
            RawTime::Double(at) => f64::from_le_bytes(array(&record[at..])),
            RawTime::Single(at) => f32::from_le_bytes(array(&record[at..])).into(),
            RawTime::Integer(place) => place.value_in(record) as f64,
        };
        let seconds = self.time.offset + self.time.factor * raw_time;
        let invalid = self.invalid.iter().any(|&(byte, bit)| record[byte] >> bit & 1 != 0);
        let raw_id = number(&self.id).unwrap_or(0) as u32;
        let id = raw_id & EFF_MASK;
        // Without the member IDE, bit 31 or an identifier above 7FF means extended.
        let wide = id > SFF_MASK;
        let marked = number(&self.extended).map_or(raw_id > SFF_MASK, |flag| flag != 0);
        let extended = marked || wide;
        let len = number(&self.len).map(|len| len.min(255) as u8);
        let fields = Fields {
            id,
            extended,
            rtr: self.kind == Kind::Remote,
            // Without the member EDL, more than 8 bytes are an FD frame.
            fd: self.kind == Kind::Data
                && number(&self.fd).map_or(len.is_some_and(|len| len > 8), |fd| fd != 0),
            brs: flag(&self.brs),
            esi: flag(&self.esi),
            error: self.kind == Kind::Error,
            dlc: number(&self.dlc).or(number(&self.len)).unwrap_or(0).min(255) as u8,
            len: len.unwrap_or(u8::MAX),
        };
        let channel = number(&self.channel).unwrap_or(1) as u32;
        let direction = match number(&self.direction) {
            _ if fields.error => None,
            None => None,
            Some(0) => Some(Direction::Received),
            Some(_) => Some(Direction::Sent),
        };
        let (frame, flaw) = match self.classic(&fields, record) {
            Some(frame) => (frame, None),
            None => self.any_frame(fields, record, kernel_classes, separate)?,
        };
        let flaw = flaw.or((!marked && wide && !fields.error).then_some(Flawed::IDENTIFIER));
        let flaw = flaw.or((invalid && (!fields.error || kernel_classes)).then_some(Flawed::INVALID));
        Ok(Logged { seconds, channel, frame, direction, flaw })
    }

    /// The frame of a record, if it is a classic data frame that has a length, no other DLC, and its payload in the record.
    #[inline]
    fn classic(&self, fields: &Fields, record: &[u8]) -> Option<Frame> {
        let Payload::Inside(start, room) = self.payload else { return None };
        let is_classic = !(fields.rtr || fields.fd || fields.error);
        if !is_classic || fields.len > 8 || fields.dlc != fields.len || room < usize::from(fields.len) {
            return None;
        }
        let eight = u64::from_le_bytes(*record.get(start..)?.first_chunk()?);
        let beyond = u64::MAX.checked_shl(8 * u32::from(fields.len)).unwrap_or(0);
        let mut frame = Frame::default();
        (frame.can_id, frame.len) = (fields.id | if fields.extended { EFF_FLAG } else { 0 }, fields.len);
        frame.data[..8].copy_from_slice(&(eight & !beyond).to_le_bytes());
        Some(frame)
    }

    /// The frame of any record, and the kind of its flaw.
    fn any_frame(
        &self,
        fields: Fields,
        record: &[u8],
        kernel_classes: bool,
        separate: impl FnOnce(u64, &mut [u8; 64]) -> Result<usize, Trouble>,
    ) -> Result<(Frame, Option<&'static str>), Trouble> {
        let mut bytes = [0; 64];
        let mut apart = None;
        let count = match self.payload {
            Payload::None => 0,
            Payload::Inside(start, room) => copy(&mut bytes, &record[start..start + room]),
            Payload::Separate { place, .. } => {
                let length = separate(place.value_in(record), &mut bytes)?;
                apart = Some(length);
                length.min(bytes.len())
            }
        };
        match fields.error && !kernel_classes {
            true => Ok((error_frame(), None)),
            false => frame(fields, self.dlc.is_some(), &bytes[..count], apart),
        }
    }
}

impl Group {
    /// The group that `block` describes, with its records in `data`, each behind an identifier of `id_bytes`; `None` if they
    /// are not CAN frames.
    pub fn open(
        block: &Block,
        id_bytes: usize,
        data: u64,
        blocks: &mut Blocks,
    ) -> Result<Option<Self>, Trouble> {
        let Some(layout) = Layout::open(block, blocks)? else { return Ok(None) };
        let is_open = blocks.is_unfinished;
        let separate = Data::new(layout.values());
        let left = block.u64(8);
        Ok(Some(Self { layout, records: Data::new(data), id_bytes, left, is_open, separate, passed: 0 }))
    }

    /// How many records the data has behind the number that the group states.
    pub fn count_records_behind(&mut self, blocks: &mut Blocks) -> Result<u64, Trouble> {
        let (mut behind, bytes) = (0, self.id_bytes + self.layout.record_bytes);
        if bytes == 0 || self.is_open {
            return Ok(0);
        }
        loop {
            match self.records.take(bytes, blocks) {
                Ok(_) => behind += 1,
                Err(Trouble::Cut) => return Ok(behind),
                Err(other) => return Err(other),
            }
        }
    }

    /// Reads the next frame; `kernel_classes`: an error frame's identifier has the kernel's error classes, as canter
    /// writes it.
    #[inline]
    pub fn next(&mut self, kernel_classes: bool, blocks: &mut Blocks) -> Result<Option<Logged>, Trouble> {
        if self.is_open {
            if self.records.has_ended(blocks)? {
                return Ok(None);
            }
        } else if self.left == 0 {
            return Ok(None);
        }
        let (id_bytes, id) = (self.id_bytes, self.layout.record_id);
        let (found, record) =
            self.records.take(id_bytes + self.layout.record_bytes, blocks)?.split_at(id_bytes);
        if id_bytes > 0 && number(found) != id {
            return wrong("a record of another group (a damaged file?)");
        }
        self.left = self.left.saturating_sub(1);
        let (separate, passed) = (&mut self.separate, &mut self.passed);
        let logged = self
            .layout
            .logged(record, kernel_classes, |at, bytes| read_separate(at, separate, passed, bytes, blocks));
        logged.map(Some)
    }
}

/// A little-endian number of up to 8 bytes.
pub fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.first_chunk().copied().unwrap_or([0; N])
}

pub fn copy(to: &mut [u8; 64], from: &[u8]) -> usize {
    let count = from.len().min(to.len());
    to[..count].copy_from_slice(&from[..count]);
    count
}

/// Reads a payload that is outside of the record, which follows the previous record's, and returns its length: `bytes` gets
/// its beginning.
fn read_separate(
    at: u64,
    data: &mut Data,
    passed: &mut u64,
    bytes: &mut [u8; 64],
    blocks: &mut Blocks,
) -> Result<usize, Trouble> {
    if at < *passed || at - *passed > RECORD_BYTES_MAX {
        return wrong("payloads that are not in the order of their frames, so canter cannot read them");
    }
    data.take((at - *passed) as usize, blocks)?;
    let length = u32::from_le_bytes(array(data.take(4, blocks)?));
    if u64::from(length) > RECORD_BYTES_MAX {
        return wrong(format!("a payload of {length} bytes (a damaged file?)"));
    }
    *passed = at + 4 + u64::from(length);
    copy(bytes, data.take(length as usize, blocks)?);
    Ok(length as usize)
}

/// Returns the frame of these fields, and the kind of its flaw. A missing length follows from the DLC, and a missing DLC
/// from the length; `apart` is the length of a payload outside of the record, which writers may pad with 0.
fn frame(
    mut fields: Fields,
    has_dlc: bool,
    data: &[u8],
    apart: Option<usize>,
) -> Result<(Frame, Option<&'static str>), Trouble> {
    let damaged = |reason: &str| Trouble::Wrong(format!("{reason} (a damaged file?)"));
    if fields.rtr {
        fields.len = 0;
        return Ok((fields.frame(&[]).map_err(damaged)?, None));
    }
    let dlc_len = |fields: &Fields| match fields.fd {
        true => len_of_dlc(fields.dlc.min(15)),
        false => usize::from(fields.dlc.min(8)),
    };
    let len = if fields.len == u8::MAX { dlc_len(&fields) } else { fields.len.into() };
    if len > if fields.fd { 64 } else { 8 } {
        return Err(damaged(&format!("a frame of {len} bytes")));
    }
    if data.len() < len {
        return Err(damaged("a frame with less data than its length"));
    }
    let flawed =
        has_dlc && len != dlc_len(&fields) || apart.is_some() && data[len..].iter().any(|&byte| byte != 0);
    let mut bytes = [0; 64];
    bytes[..len].copy_from_slice(&data[..len]);
    if fields.fd {
        fields.len = fd_length(len);
        fields.dlc = dlc_of_len(fields.len.into()).unwrap_or(15);
    } else {
        fields.len = len as u8;
        fields.dlc = if len == 8 && (9..=15).contains(&fields.dlc) { fields.dlc } else { fields.len };
    }
    let frame = fields.frame(&bytes[..fields.len.into()]).map_err(damaged)?;
    Ok((frame, flawed.then_some(Flawed::LENGTH)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Records of a frame's payload of this many bytes; the other columns are not looked at.
    fn layout(room: usize, dlc: bool) -> Layout {
        let place = Place { byte: 0, bytes: 1, bit: 0, mask: 0xFF };
        Layout {
            kind: Kind::Data,
            name: String::new(),
            record_id: 0,
            record_bytes: 16,
            time: Time { raw: RawTime::Double(0), offset: 0.0, factor: 1.0 },
            channel: None,
            id: None,
            extended: None,
            dlc: dlc.then_some(Number::Raw(place)),
            len: None,
            direction: None,
            fd: None,
            brs: None,
            esi: None,
            payload: Payload::Inside(2, room),
            invalid: Vec::new(),
        }
    }

    proptest! {
        #[test]
        fn a_classic_frame_is_the_one_that_any_frame_would_be(
            record: [u8; 16], id in 0..=EFF_MASK, extended: bool, dlc in 0..12u8, len in 0..12u8,
            kinds in 0..16u8, room in 0..=14usize, has_dlc: bool,
        ) {
            let [rtr, fd, error, same] = [0, 1, 2, 3].map(|bit| kinds >> bit & 1 != 0);
            let is_plain = dlc % 2 == 0;
            let fields = Fields {
                id: if extended { id } else { id & SFF_MASK },
                extended,
                rtr: rtr && !is_plain,
                fd: fd && !is_plain,
                brs: false,
                esi: false,
                error: error && !is_plain,
                dlc: if same { len } else { dlc },
                len,
            };
            let layout = layout(room, has_dlc);
            if let Some(found) = layout.classic(&fields, &record) {
                let any = layout.any_frame(fields, &record, true, |_, _| unreachable!());
                prop_assert_eq!(any.ok(), Some((found, None)));
            }
            if is_plain && same && len <= 8 && room >= usize::from(len) {
                prop_assert!(layout.classic(&fields, &record).is_some());
            }
        }

        #[test]
        fn a_number_with_eight_bytes_behind_it_is_the_same_as_one_at_the_end(
            record: [u8; 16], byte in 0..7usize, bit in 0..8u8, bits in 1..=64u32,
        ) {
            let bytes = (u32::from(bit) + bits).div_ceil(8) as usize;
            let place = Place { byte, bytes, bit, mask: u64::MAX >> (64 - bits) };
            prop_assert_eq!(place.value_in(&record), place.value_in(&record[..byte + bytes]));
        }
    }
}

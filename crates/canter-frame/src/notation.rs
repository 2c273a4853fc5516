//! candump and cansend notation, both ways: the one place that reads or writes frames as text.
//!
//! | text | frame |
//! | --- | --- |
//! | `123#DEADBEEF`, `123#DE.AD.BE.EF`, `123#` | standard identifier: 3 hex digits |
//! | `12345678#DEADBEEF` | extended identifier: 8 hex digits |
//! | `20000004#0000000000000000` | error frame: 8 digits with 20000000 |
//! | `123#R`, `123#R5` | RTR, and how many bytes it asks for |
//! | `123#1122334455667788_B`, `123#R8_E` | 8 bytes sent with a DLC of 9…F |
//! | `123##1AABB` | FD; the digit has 1 for BRS, 2 for ESI, 4 for FDF |
//!
//! A printed frame reads back as the same frame. The text is that of `candump -L`, with FDF always set (as Linux does
//! since 6.1): `123##5AABB`. Everything that cansend accepts is accepted, with the same meaning:
//! - Digits and `R` of either case; a `.` before any byte and after the last.
//! - FD data whose length has no DLC is filled with zeros to the next length that has one.
//! - FDF is implied, bit 8 of the digit means nothing.
//!
//! Text of which cansend silently ignores or alters a part is refused: a ninth byte, `R9`, `_` without 8 bytes or with
//! another digit than 9…F, characters after the frame, `FFF#`, and identifiers that smuggle in an EFF or RTR flag.

use std::fmt;
use std::str::FromStr;

use crate::frame::{BRS, EFF_FLAG, EFF_MASK, ERR_FLAG, ESI, FDF, RTR_FLAG, SFF_MASK, dlc_of_len};
use crate::frame::{Frame, Identifier};
use crate::record::Direction;

/// The longest text of a frame in bytes: 8 digits, `##`, flags, 64 bytes.
pub const TEXT_BYTES_MAX: usize = 8 + 2 + 1 + 2 * 64;

/// What a parser expected at the position of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Expected {
    /// An identifier.
    Identifier,
    /// An identifier of 11 bits.
    Sff,
    /// An identifier of 29 bits, or an error frame.
    Eff,
    /// A hex digit.
    Digit,
    /// The flags of an FD frame.
    Flags,
    /// Data: error frames are neither RTR nor FD.
    ErrorData,
    /// A length of 0…8.
    RtrLength,
    /// A DLC of 9…F.
    Dlc,
    /// The end of the frame.
    End,
    /// A time stamp.
    Stamp,
    /// A time stamp below 2⁶⁴ ns.
    StampRange,
    /// The name of an interface.
    Interface,
    /// The mark of a received or sent frame, or nothing.
    Direction,
    /// A filter.
    Filter,
    /// A filter's identifier, mask or error mask: a hex number below 2³².
    Word,
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Identifier => "an identifier of 3 (SFF) or 8 (EFF) hex digits and '#'",
            Self::Sff => "an identifier of 11 bits, 000…7FF (EFF has 8 digits)",
            Self::Eff => "an identifier of 29 bits, 00000000…1FFFFFFF (error frames: 20000000…3FFFFFFF)",
            Self::Digit => "a hex digit",
            Self::Flags => "the FD flags, one hex digit (1 BRS, 2 ESI, 4 FDF)",
            Self::ErrorData => "data: an error frame is neither RTR nor FD",
            Self::RtrLength => "the length that the RTR frame asks for, 0…8",
            Self::Dlc => "a DLC of 9…F",
            Self::End => "the end of the frame (8 bytes, FD 64; '_' and a DLC only behind 8 bytes)",
            Self::Stamp => "a stamp of seconds, '.', 6 or 9 digits and ')'",
            Self::StampRange => "a stamp before the year 2554",
            Self::Interface => "an interface name of 1…15 bytes",
            Self::Direction => "R, T or the end of the line",
            Self::Filter => "a filter: 123, 12345678, ID:MASK, ID~MASK, #ERRORMASK or j",
            Self::Word => "a hex number below 100000000",
        })
    }
}

/// Why a text is not a frame, log line or filter: the position of the error, and what was expected there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TextError {
    /// The position in bytes from the start of the text, from 0.
    pub position: usize,
    /// What was expected there.
    pub expected: Expected,
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "position {}: expected {}", self.position, self.expected)
    }
}

impl std::error::Error for TextError {}

pub(crate) fn expected<T>(position: usize, expected: Expected) -> Result<T, TextError> {
    Err(TextError { position, expected })
}

/// The value of each hex digit of either case; of other bytes 0xFF. A processor cannot guess whether the next digit is a
/// letter, so that comparing costs more than one load.
pub const NIBBLES: [u8; 256] = {
    let mut values = [0xFF; 256];
    let mut value = 0;
    while value < 16 {
        values[b"0123456789abcdef"[value] as usize] = value as u8;
        values[b"0123456789ABCDEF"[value] as usize] = value as u8;
        value += 1;
    }
    values
};

/// The value of a hex digit of either case.
#[inline]
pub(crate) fn nibble(byte: u8) -> Option<u8> {
    let value = NIBBLES[usize::from(byte)];
    (value < 16).then_some(value)
}

impl FromStr for Frame {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        parse_frame(text.as_bytes())
    }
}

/// Reads one frame from exactly these bytes.
///
/// # Errors
/// The position of the first byte that does not fit, and what was expected there.
pub fn parse_frame(text: &[u8]) -> Result<Frame, TextError> {
    let mut cursor = Cursor { text, at: 0 };
    let can_id = cursor.identifier()?;
    let mut frame = Frame::default();
    frame.can_id = can_id;
    match cursor.peek() {
        Some(b'R' | b'r' | b'#') if frame.is_error() => return expected(cursor.at, Expected::ErrorData),
        Some(b'R' | b'r') => {
            cursor.at += 1;
            cursor.rtr(&mut frame)?;
        }
        Some(b'#') => {
            cursor.at += 1;
            cursor.fd(&mut frame)?;
        }
        _ => {
            frame.len = cursor.data(&mut frame.data[..8])?;
            cursor.len8_dlc(&mut frame)?;
        }
    }
    if cursor.at == text.len() { Ok(frame) } else { expected(cursor.at, Expected::End) }
}

struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
}

impl Cursor<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// Reads a hex digit; `otherwise` is what the error names as expected.
    fn digit(&mut self, otherwise: Expected) -> Result<u8, TextError> {
        match self.peek().and_then(nibble) {
            Some(value) => {
                self.at += 1;
                Ok(value)
            }
            None => expected(self.at, otherwise),
        }
    }

    /// Reads an identifier and its `#`; returns the value for `can_id`.
    fn identifier(&mut self) -> Result<u32, TextError> {
        let digits = match self.text {
            [_, _, _, b'#', ..] => 3,
            [_, _, _, _, _, _, _, _, b'#', ..] => 8,
            _ => return expected(0, Expected::Identifier),
        };
        let mut id = 0;
        while self.at < digits {
            id = id << 4 | u32::from(self.digit(Expected::Digit)?);
        }
        self.at += 1;
        match (digits, id) {
            (3, ..=SFF_MASK) => Ok(id),
            (3, _) => expected(0, Expected::Sff),
            (_, ..=EFF_MASK) => Ok(id | EFF_FLAG),
            (_, ERR_FLAG..0x4000_0000) => Ok(id),
            _ => expected(0, Expected::Eff),
        }
    }

    fn rtr(&mut self, frame: &mut Frame) -> Result<(), TextError> {
        frame.can_id |= RTR_FLAG;
        if self.peek().is_none() {
            return Ok(());
        }
        match self.digit(Expected::RtrLength)? {
            len @ 0..=8 => frame.len = len,
            _ => return expected(self.at - 1, Expected::RtrLength),
        }
        self.len8_dlc(frame)
    }

    fn fd(&mut self, frame: &mut Frame) -> Result<(), TextError> {
        frame.flags = self.digit(Expected::Flags)? & (BRS | ESI) | FDF;
        let len = self.data(&mut frame.data)?;
        frame.len = (len..=64).find(|&len| dlc_of_len(len.into()).is_some()).unwrap_or(64);
        Ok(())
    }

    /// Fills `data` with bytes of two digits until it is full or the text ends; returns how many.
    fn data(&mut self, data: &mut [u8]) -> Result<u8, TextError> {
        let mut len = 0;
        loop {
            if self.peek() == Some(b'.') {
                self.at += 1;
            }
            if self.at == self.text.len() || len == data.len() {
                return Ok(len as u8);
            }
            let high = self.digit(Expected::Digit)?;
            data[len] = high << 4 | self.digit(Expected::Digit)?;
            len += 1;
        }
    }

    fn len8_dlc(&mut self, frame: &mut Frame) -> Result<(), TextError> {
        if frame.len != 8 || self.peek() != Some(b'_') {
            return Ok(());
        }
        self.at += 1;
        match self.digit(Expected::Dlc)? {
            dlc @ 9..=15 => frame.len8_dlc = dlc,
            _ => return expected(self.at - 1, Expected::Dlc),
        }
        Ok(())
    }
}

/// A frame's text in an array: nothing allocates.
struct Text {
    bytes: [u8; TEXT_BYTES_MAX],
    len: usize,
}

impl Text {
    fn new(frame: &Frame) -> Self {
        let mut text = Self { bytes: [0; TEXT_BYTES_MAX], len: 0 };
        let (id, digits) = printed_id(frame);
        for shift in (0..digits).rev() {
            text.digit((id >> (4 * shift)) as u8);
        }
        text.byte(b'#');
        if frame.is_fd() && !frame.is_error() {
            text.byte(b'#');
            text.digit(frame.flags);
        }
        if frame.is_rtr() {
            text.byte(b'R');
            if (1..=8).contains(&frame.len) {
                text.digit(frame.len);
            }
        }
        for &byte in frame.data() {
            text.digit(byte >> 4);
            text.digit(byte);
        }
        if !frame.is_fd() && frame.len == 8 && (9..=15).contains(&frame.len8_dlc) {
            text.byte(b'_');
            text.digit(frame.len8_dlc);
        }
        text
    }

    fn byte(&mut self, byte: u8) {
        self.bytes[self.len] = byte;
        self.len += 1;
    }

    fn digit(&mut self, value: u8) {
        self.byte(b"0123456789ABCDEF"[usize::from(value & 15)]);
    }

    fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.len]).unwrap_or_default()
    }
}

/// The identifier as printed, and its number of digits.
fn printed_id(frame: &Frame) -> (u32, u32) {
    match frame.id() {
        _ if frame.is_error() => (frame.can_id & (EFF_MASK | ERR_FLAG), 8),
        Identifier::Eff(id) => (id, 8),
        Identifier::Sff(id) => (id.into(), 3),
    }
}

impl fmt::Display for Frame {
    /// The notation of `candump -L`, which cansend reads: `123#DEADBEEF`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(Text::new(self).as_str())
    }
}

impl fmt::Debug for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(Text::new(self).as_str())
    }
}

/// A frame as candump prints it for people: `  can0  123   [4]  DE AD BE EF`.
#[derive(Clone, Copy, Debug)]
pub struct CandumpLine<'a> {
    /// The interface of the frame.
    pub interface: &'a str,
    /// The frame.
    pub frame: &'a Frame,
    /// Puts standard identifiers under the last digits of extended ones; candump does so from the first extended
    /// identifier on.
    pub indent_sff: bool,
}

impl fmt::Display for CandumpLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let frame = self.frame;
        let (id, digits) = printed_id(frame);
        let digits = digits as usize;
        let width = if self.indent_sff { 8 } else { digits };
        write!(f, "  {}  {:width$}{id:0digits$X}", self.interface, "", width = width - digits)?;
        if frame.is_fd() {
            write!(f, "  [{:02}] ", frame.len)?;
        } else {
            write!(f, "   [{}] ", frame.len)?;
        }
        if frame.is_rtr() {
            return f.write_str(" remote request");
        }
        for byte in frame.data() {
            write!(f, " {byte:02X}")?;
        }
        if frame.is_error() {
            let missing = 3 * 8usize.saturating_sub(frame.data().len());
            write!(f, "{:missing$}   ERRORFRAME", "")?;
        }
        Ok(())
    }
}

/// One line of a candump log: `(1700000000.123456) can0 123#DEADBEEF R`.
///
/// It prints stamps with 6 digits after the decimal point, which every reader understands, and with 9 digits as `{:.9}`
/// (`candump -N`). Further digits are cut off, not rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogLine<'a> {
    /// Nanoseconds; for candump, since 1970.
    pub stamp_ns: u64,
    /// Where the frame was received or sent.
    pub interface: &'a str,
    /// The frame.
    pub frame: Frame,
    /// Whether it was received or sent; `None` if the log does not have the direction.
    pub direction: Option<Direction>,
}

impl<'a> LogLine<'a> {
    /// Reads a line, with or without its line break. `None` for a comment, which is any line that does not start with
    /// `(`, as in canplayer; candump's `DROPCOUNT` lines are comments.
    ///
    /// # Errors
    /// The position of the first byte that does not fit, and what was expected there.
    pub fn parse(line: &'a str) -> Result<Option<Self>, TextError> {
        let Some(rest) = line.strip_prefix('(') else { return Ok(None) };
        let Some((stamp, rest)) = rest.split_once(')') else { return expected(1, Expected::Stamp) };
        let stamp_ns = parse_stamp(stamp)?;
        let mut words = rest.split_ascii_whitespace();
        let position = |word: &str| word.as_ptr() as usize - line.as_ptr() as usize;

        let Some(interface) = words.next() else {
            return expected(line.trim_end().len(), Expected::Interface);
        };
        if !is_interface_name(interface) {
            return expected(position(interface), Expected::Interface);
        }
        let Some(text) = words.next() else { return expected(line.trim_end().len(), Expected::Identifier) };
        let frame = parse_frame(text.as_bytes())
            .map_err(|error| TextError { position: position(text) + error.position, ..error })?;
        let direction = match words.next() {
            None => None,
            Some("R") => Some(Direction::Received),
            Some("T") => Some(Direction::Sent),
            Some(other) => return expected(position(other), Expected::Direction),
        };
        match words.next() {
            None => Ok(Some(Self { stamp_ns, interface, frame, direction })),
            Some(more) => expected(position(more), Expected::Direction),
        }
    }
}

/// Reads `seconds.fraction`, the text after the `(` of a line.
fn parse_stamp(text: &str) -> Result<u64, TextError> {
    let digits = |text: &str| -> Option<u64> {
        text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
    };
    let Some((seconds, fraction)) = text.split_once('.') else { return expected(1, Expected::Stamp) };
    let unit = match fraction.len() {
        6 => 1000,
        9 => 1,
        _ => return expected(2 + seconds.len(), Expected::Stamp),
    };
    if seconds.is_empty() || !seconds.bytes().all(|byte| byte.is_ascii_digit()) {
        return expected(1, Expected::Stamp);
    }
    let Some(fraction) = digits(fraction) else { return expected(2 + seconds.len(), Expected::Stamp) };
    let stamp =
        digits(seconds).and_then(|seconds| seconds.checked_mul(1_000_000_000)?.checked_add(fraction * unit));
    stamp.map_or_else(|| expected(1, Expected::StampRange), Ok)
}

/// Whether the kernel accepts the text as an interface name: 1…15 bytes (IFNAMSIZ has room for a final NUL), no space,
/// no slash.
pub(crate) fn is_interface_name(text: &str) -> bool {
    (1..16).contains(&text.len()) && !text.contains(|c: char| c == '/' || c.is_ascii_whitespace())
}

impl fmt::Display for LogLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, ns) = (self.stamp_ns / 1_000_000_000, self.stamp_ns % 1_000_000_000);
        match f.precision() {
            Some(9) => write!(f, "({seconds:010}.{ns:09}) ")?,
            _ => write!(f, "({seconds:010}.{:06}) ", ns / 1000)?,
        }
        f.write_str(self.interface)?;
        f.write_str(" ")?;
        f.write_str(Text::new(&self.frame).as_str())?;
        f.write_str(match self.direction {
            None => "",
            Some(Direction::Received) => " R",
            Some(Direction::Sent) => " T",
        })
    }
}

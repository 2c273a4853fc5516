//! Formats of lines that are read only: a row says how a line becomes a frame, and everything else is the same.

use crate::{
    format::{Context, Decode, Line, Source},
    trouble::Trouble,
};
use canter_frame::{Record, notation::NIBBLES};
use std::{borrow::Cow, io, str::FromStr};

/// Reads the lines of a format.
pub trait ReadLine: Send {
    /// Looks at the beginning of the file, as far as it was read.
    fn begin(&mut self, _head: &[u8]) {}

    /// Reads what most lines of the format look like, in a fraction of the time; `None`: [`read`](Self::read) has to. Line breaks
    /// are cut off, outer blanks are not.
    fn quick(&mut self, _line: &[u8], _context: &mut Context, _entry: &mut Record) -> Option<()> {
        None
    }

    /// Reads a line without its line break and outer blanks; whether it is a frame. Blank lines do not come here. A frame is
    /// ASCII; comments may be in any encoding.
    fn read(&mut self, line: &[u8], context: &mut Context, entry: &mut Record) -> Result<bool, Trouble>;
}

/// The decoder of such a format.
pub struct Lines<R> {
    line: u64,
    reader: R,
}

impl<R: ReadLine> Lines<R> {
    pub fn new(reader: R) -> Self {
        Self { line: 0, reader }
    }
}

impl<R: ReadLine> Decode for Lines<R> {
    fn next(
        &mut self,
        source: &mut Source,
        context: &mut Context,
        entry: &mut Record,
    ) -> Result<bool, Trouble> {
        if self.line == 0 {
            self.reader.begin(source.want(1)?);
        }
        loop {
            let (length, is_last) = match source.line(&mut self.line)? {
                None => return Ok(false),
                Some(Line::Whole(length)) => (length, false),
                Some(Line::Last(length)) => (length, true),
            };
            let line = &source.buffered()[..length];
            if self.reader.quick(line.strip_suffix(b"\r").unwrap_or(line), context, entry).is_some() {
                source.consume(length + 1);
                return Ok(true);
            }
            let line = line.trim_ascii();
            let is_frame = if line.is_empty() { Ok(false) } else { self.reader.read(line, context, entry) };
            // PEAK-Converter ends its files without a line break, behind a frame. A line of these formats states its length, so
            // that what is left of a longer one is no frame.
            let is_frame = match is_frame {
                Err(Trouble::Wrong(_)) | Ok(false) if is_last && length > 0 => return Err(Trouble::Cut),
                other => other?,
            };
            source.consume(length + 1);
            if is_frame {
                return Ok(true);
            }
        }
    }

    fn place(&self, _source: &Source) -> String {
        format!("line {}", self.line)
    }

    fn resume(&mut self, source: &mut Source) -> io::Result<bool> {
        source.skip_line().map(|()| true)
    }
}

/// The error of a line, with the way out.
pub fn bad(reason: &str) -> Trouble {
    Trouble::Wrong(format!("{reason} (delete the line to read the rest)"))
}

/// A line without the byte order marks that a file, or a file in a file, begins with.
pub fn without_byte_order_marks(mut line: &[u8]) -> &[u8] {
    while let Some(rest) = line.strip_prefix(b"\xef\xbb\xbf") {
        line = rest;
    }
    line
}

/// The text of a line, which may be in any encoding.
pub fn text(line: &[u8]) -> Cow<'_, str> {
    str::from_utf8(line).map_or_else(|_| String::from_utf8_lossy(line), Cow::Borrowed)
}

/// A text without the blanks around it, of which `str::trim` knows more than those of ASCII.
pub fn trimmed(text: &[u8]) -> &[u8] {
    let is_graphic = |byte: Option<&u8>| byte.is_none_or(u8::is_ascii_graphic);
    if is_graphic(text.first()) && is_graphic(text.last()) {
        return text;
    }
    str::from_utf8(text).map_or(text, |text| text.trim().as_bytes())
}

/// Reads a number as Rust does. Most have one digit.
#[inline]
pub fn decimal<N: FromStr + From<u8>>(text: &[u8]) -> Option<N> {
    match text {
        [digit @ b'0'..=b'9'] => Some(N::from(digit - b'0')),
        text => str::from_utf8(text).ok()?.parse().ok(),
    }
}

/// Reads any number of decimal digits; `None` if there are others, or if the number is too large.
fn digits(text: &[u8]) -> Option<u64> {
    text.iter().try_fold(0u64, |number, &byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

/// The powers of 10, up to the ns of a second.
pub const POWERS: [u64; 10] =
    [1, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000];

/// Reads a decimal number with a fraction, such as `12.345`, in units of which each has `10^places` ns, as ns. Further digits
/// are cut off.
#[inline]
pub fn decimal_ns(text: &[u8], places: usize) -> Option<u64> {
    let point = memchr::memchr(b'.', text).unwrap_or(text.len());
    let (whole, fraction) = (&text[..point], text.get(point + 1..).unwrap_or_default());
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let (kept, cut) = fraction.split_at(fraction.len().min(places));
    let ns = digits(kept)? * POWERS[places - kept.len()];
    let is_wrong = cut.iter().any(|byte| !byte.is_ascii_digit());
    if is_wrong { None } else { digits(whole)?.checked_mul(POWERS[places])?.checked_add(ns) }
}

/// The greatest value of a hex digit; other bytes have a bit above it.
pub const HEX_MAX: u8 = 15;

/// The byte of two hex digits.
#[inline]
fn hex_byte(high: u8, low: u8) -> Option<u8> {
    let (high, low) = (NIBBLES[usize::from(high)], NIBBLES[usize::from(low)]);
    ((high | low) <= HEX_MAX).then_some(high << 4 | low)
}

/// Reads words of two hex digits each as bytes; how many.
pub fn hex_bytes<'a>(words: impl Iterator<Item = &'a [u8]>, data: &mut [u8; 64]) -> Option<usize> {
    let mut count = 0;
    for word in words {
        let [high, low] = *word else { return None };
        *data.get_mut(count)? = hex_byte(high, low)?;
        count += 1;
    }
    Some(count)
}

/// Reads bytes of two hex digits each between blanks; how many. Nearly always there is one blank, which is read without
/// looking for words.
#[inline]
pub fn spaced_hex_bytes(text: &[u8], data: &mut [u8; 64]) -> Option<usize> {
    match separated_hex_bytes(text.trim_ascii(), b' ', data) {
        None => hex_bytes(Words { rest: text }, data),
        count => count,
    }
}

/// Reads bytes of two hex digits each with one `separator` between two of them; how many.
pub fn separated_hex_bytes(text: &[u8], separator: u8, data: &mut [u8; 64]) -> Option<usize> {
    let Some((bytes, last)) = text.split_last_chunk::<2>() else {
        return text.is_empty().then_some(0);
    };
    let count = bytes.len() / 3;
    if !bytes.len().is_multiple_of(3) {
        return None;
    }
    let (data, end) = data.get_mut(..=count)?.split_at_mut(count);
    // One look at the end costs less than one at each byte.
    let (mut digits, mut others) = (0, 0);
    for (byte, &[high, low, between]) in data.iter_mut().zip(bytes.as_chunks().0) {
        let (high, low) = (NIBBLES[usize::from(high)], NIBBLES[usize::from(low)]);
        digits |= high | low;
        others |= between ^ separator;
        *byte = high << 4 | low & HEX_MAX;
    }
    end[0] = hex_byte(last[0], last[1])?;
    (digits <= HEX_MAX && others == 0).then_some(count + 1)
}

/// Reads a hex number of at most 8 digits.
#[inline]
pub fn hex_number(text: &[u8]) -> Option<u32> {
    let (mut number, mut all) = (0u32, 0);
    for &digit in text {
        let value = NIBBLES[usize::from(digit)];
        all |= value;
        number = number << 4 | u32::from(value & HEX_MAX);
    }
    (all <= HEX_MAX && matches!(text.len(), 1..=8)).then_some(number)
}

/// Whether a byte is a blank: `u8::is_ascii_whitespace`, by one load.
const BLANK: [bool; 256] = {
    let mut blank = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        blank[byte] = (byte as u8).is_ascii_whitespace();
        byte += 1;
    }
    blank
};

/// The words of a line, between blanks; and what is left of it.
#[derive(Clone)]
pub struct Words<'a> {
    pub rest: &'a [u8],
}

impl<'a> Iterator for Words<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let text = self.rest.trim_ascii_start();
        let length = text.iter().position(|&byte| is_blank(byte)).unwrap_or(text.len());
        let (word, rest) = text.split_at(length);
        self.rest = rest;
        (!word.is_empty()).then_some(word)
    }
}

#[inline]
fn is_blank(byte: u8) -> bool {
    BLANK[usize::from(byte)]
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Bytes that separate or end what a line has, and others.
    const BYTES: &[u8] = b" \t\r\x0b,;.:-+=xX/#09afAF\x00\x80\xff";

    /// Changes of a line: a place, and whether a byte is put there, in front of it, or the byte is removed.
    pub fn any_changes() -> impl Strategy<Value = Vec<(usize, u8, Option<bool>)>> {
        let byte = prop_oneof![prop::sample::select(BYTES), any::<u8>()];
        prop::collection::vec((any::<usize>(), byte, any::<Option<bool>>()), 0..3)
    }

    fn changed(line: &str, changes: &[(usize, u8, Option<bool>)]) -> Vec<u8> {
        let mut line = line.as_bytes().to_vec();
        for &(at, byte, change) in changes.iter().filter(|(_, byte, _)| *byte != b'\n') {
            let at = at % line.len();
            match change {
                Some(true) => line[at] = byte,
                Some(false) => line.insert(at, byte),
                None => drop(line.remove(at)),
            }
        }
        line
    }

    /// Checks that the quick way reads the same as the other one, or nothing; whether it reads the line. `make` makes a reader
    /// that has read what is in front of the line.
    pub fn check_quick<R: ReadLine>(
        make: impl Fn(&mut Context) -> R,
        line: &str,
        changes: &[(usize, u8, Option<bool>)],
    ) -> bool {
        let line = changed(line, changes);
        let [(quick, quick_names), (usual, usual_names)] = [true, false].map(|is_quick| {
            let (mut context, mut entry) = (Context::default(), Record::default());
            let mut reader = make(&mut context);
            let is_frame = match is_quick {
                true => reader.quick(&line, &mut context, &mut entry).is_some(),
                false => matches!(reader.read(line.trim_ascii(), &mut context, &mut entry), Ok(true)),
            };
            (is_frame.then_some(entry), context.names.list().to_vec())
        });
        if quick.is_some() {
            let text = String::from_utf8_lossy(&line);
            assert_eq!((quick, quick_names), (usual, usual_names), "{text:?}");
        }
        quick.is_some()
    }

    #[test]
    fn decimal_numbers_become_ns() {
        for (text, places, ns) in [
            ("17535.4", 6, Some(17_535_400_000)),
            ("1.0000000019", 9, Some(1_000_000_001)),
            ("1.000000001x", 9, None),
            ("1.5.5", 9, None),
            (".5", 9, Some(500_000_000)),
            ("5.", 9, Some(5_000_000_000)),
            ("5", 3, Some(5000)),
            ("-1", 3, None),
            ("", 3, None),
            (".", 3, None),
            ("00000000000000000000018446744073.709551615", 9, Some(u64::MAX)),
            ("18446744073.709551616", 9, None),
            ("99999999999999999999", 0, None),
        ] {
            assert_eq!(decimal_ns(text.as_bytes(), places), ns, "{text}");
        }
    }

    #[test]
    fn hex_bytes_are_read_between_blanks_of_any_number() {
        for (text, bytes) in [
            ("", Some(&[][..])),
            ("1f", Some(&[0x1F])),
            (" 01 Ab\tff ", Some(&[1, 0xAB, 0xFF])),
            ("01  02", Some(&[1, 2])),
            ("01 2", None),
            ("0102", None),
            ("01 0g", None),
            ("01 \u{e9}", None),
        ] {
            let mut data = [0; 64];
            let read = spaced_hex_bytes(text.as_bytes(), &mut data).map(|count| &data[..count]);
            assert_eq!(read, bytes, "{text}");
        }
        let mut data = [0; 64];
        assert_eq!(spaced_hex_bytes("11 ".repeat(64).as_bytes(), &mut data), Some(64));
        assert_eq!(spaced_hex_bytes("11 ".repeat(65).as_bytes(), &mut data), None);
        assert_eq!(separated_hex_bytes(b"01,02", b',', &mut data), Some(2));
        for other in ["01,02,", "01 02", "01,2", "01,,02", ",01", "0g,02", "01,0g", "0", ","] {
            assert_eq!(separated_hex_bytes(other.as_bytes(), b',', &mut data), None, "{other}");
        }
    }

    #[test]
    fn hex_numbers_have_up_to_8_digits() {
        for (text, number) in
            [("0", Some(0)), ("7fF", Some(0x7FF)), ("FFFFFFFF", Some(u32::MAX)), ("00000001", Some(1))]
        {
            assert_eq!(hex_number(text.as_bytes()), number, "{text}");
        }
        for other in ["", "g", "+1", "0x1", "000000001", "1 ", "\u{e9}"] {
            assert_eq!(hex_number(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn words_are_those_between_blanks_with_the_rest_behind() {
        let mut words = Words { rest: b"  1)\t 0.5 \xe9 Rx  01 02 " };
        assert_eq!(words.by_ref().take(4).collect::<Vec<_>>(), [&b"1)"[..], b"0.5", b"\xe9", b"Rx"]);
        assert_eq!(words.rest, b"  01 02 ");
        assert_eq!(words.count(), 2);
    }
}

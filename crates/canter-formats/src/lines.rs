//! Formats of lines that are read only: a row says how a line becomes a frame, and everything else is the same.

use crate::{
    format::{Context, Decode, Line, Source},
    trouble::Trouble,
};
use canter_frame::Record;
use std::io;

/// Reads the lines of a format.
pub trait ReadLine: Send {
    /// Looks at the beginning of the file, as far as it was read.
    fn begin(&mut self, _head: &[u8]) {}

    /// Reads a line without its line break and outer blanks; whether it is a frame. Blank lines do not come here.
    fn read(&mut self, line: &str, context: &mut Context, entry: &mut Record) -> Result<bool, Trouble>;
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
            let bytes = source.buffered()[..length].trim_ascii();
            // Comments may be in any encoding; a frame is ASCII.
            let is_frame = match std::str::from_utf8(bytes) {
                Ok("") => Ok(false),
                Ok(line) => self.reader.read(line, context, entry),
                Err(_) => self.reader.read(&String::from_utf8_lossy(bytes), context, entry),
            };
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

/// Reads a decimal number of units with a fraction, such as `12.345`, as thousandth parts of `unit_ns / 1000`: ns. Further
/// digits are cut off.
pub fn decimal_ns(text: &str, unit_ns: u64) -> Option<u64> {
    let (mut whole, mut unit, mut ns, mut has_digit) = (0u64, unit_ns, 0u64, false);
    let mut bytes = text.bytes();
    for byte in bytes.by_ref().take_while(|&byte| byte != b'.') {
        whole = whole.checked_mul(10)?.checked_add(decimal_digit(byte)?)?;
        has_digit = true;
    }
    for byte in bytes {
        unit /= 10;
        ns += decimal_digit(byte)? * unit;
        has_digit = true;
    }
    if has_digit { whole.checked_mul(unit_ns)?.checked_add(ns) } else { None }
}

#[inline]
fn decimal_digit(byte: u8) -> Option<u64> {
    byte.is_ascii_digit().then(|| u64::from(byte - b'0'))
}

/// The value of each hex digit; others have a bit above [`HEX_MAX`].
const HEX: [u8; 256] = hex_values();
const HEX_MAX: u8 = 15;

const fn hex_values() -> [u8; 256] {
    let mut values = [0xFF; 256];
    let mut byte = 0;
    while byte < 256 {
        if let Some(value) = (byte as u8 as char).to_digit(16) {
            values[byte] = value as u8;
        }
        byte += 1;
    }
    values
}

/// The byte of two hex digits.
#[inline]
fn hex_byte(high: u8, low: u8) -> Option<u8> {
    let (high, low) = (HEX[usize::from(high)], HEX[usize::from(low)]);
    ((high | low) <= HEX_MAX).then_some(high << 4 | low)
}

/// Reads words of two hex digits each as bytes; how many.
pub fn hex_bytes<'a>(words: impl Iterator<Item = &'a str>, data: &mut [u8; 64]) -> Option<usize> {
    let mut count = 0;
    for word in words {
        let [high, low] = *word.as_bytes() else { return None };
        *data.get_mut(count)? = hex_byte(high, low)?;
        count += 1;
    }
    Some(count)
}

/// Reads bytes of two hex digits each between blanks; how many. Nearly always there is one blank, which is read without
/// looking for words.
pub fn spaced_hex_bytes(text: &str, data: &mut [u8; 64]) -> Option<usize> {
    match separated_hex_bytes(text.trim_ascii(), b' ', data) {
        None => hex_bytes(text.split_ascii_whitespace(), data),
        count => count,
    }
}

/// Reads bytes of two hex digits each with one `separator` between two of them; how many.
pub fn separated_hex_bytes(text: &str, separator: u8, data: &mut [u8; 64]) -> Option<usize> {
    let Some((bytes, last)) = text.as_bytes().split_last_chunk::<2>() else {
        return text.is_empty().then_some(0);
    };
    let count = bytes.len() / 3;
    let mut is_wrong = !bytes.len().is_multiple_of(3);
    let (data, end) = data.get_mut(..=count)?.split_at_mut(count);
    // One look at the end costs less than one at each byte.
    for (byte, part) in data.iter_mut().zip(bytes.chunks_exact(3)) {
        let (high, low) = (HEX[usize::from(part[0])], HEX[usize::from(part[1])]);
        is_wrong |= (high | low) > HEX_MAX || part[2] != separator;
        *byte = high << 4 | low & HEX_MAX;
    }
    end[0] = hex_byte(last[0], last[1])?;
    (!is_wrong).then_some(count + 1)
}

/// Reads a hex number of at most 8 digits.
#[inline]
pub fn hex_number(text: &str) -> Option<u32> {
    let (mut number, mut all) = (0u32, 0);
    for &digit in text.as_bytes() {
        let value = HEX[usize::from(digit)];
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
    pub rest: &'a str,
}

impl<'a> Iterator for Words<'a> {
    type Item = &'a str;

    #[inline]
    fn next(&mut self) -> Option<&'a str> {
        let text = self.rest.as_bytes();
        let is_blank = |byte: &u8| BLANK[usize::from(*byte)];
        let begin = text.iter().position(|byte| !is_blank(byte)).unwrap_or(text.len());
        let length = text[begin..].iter().position(is_blank).unwrap_or(text.len() - begin);
        let (word, rest) = self.rest[begin..].split_at(length);
        self.rest = rest;
        (!word.is_empty()).then_some(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_numbers_become_ns() {
        for (text, unit, ns) in [
            ("17535.4", 1_000_000, Some(17_535_400_000)),
            ("1.0000000019", 1_000_000_000, Some(1_000_000_001)),
            (".5", 1_000_000_000, Some(500_000_000)),
            ("5", 1000, Some(5000)),
            ("-1", 1000, None),
            ("", 1000, None),
            (".", 1000, None),
            ("99999999999999999999", 1, None),
        ] {
            assert_eq!(decimal_ns(text, unit), ns, "{text}");
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
            let read = spaced_hex_bytes(text, &mut data).map(|count| &data[..count]);
            assert_eq!(read, bytes, "{text}");
        }
        let mut data = [0; 64];
        assert_eq!(spaced_hex_bytes(&"11 ".repeat(64), &mut data), Some(64));
        assert_eq!(spaced_hex_bytes(&"11 ".repeat(65), &mut data), None);
        assert_eq!(separated_hex_bytes("01,02", b',', &mut data), Some(2));
        for other in ["01,02,", "01 02", "01,2", "01,,02", ",01", "0g,02", "01,0g", "0", ","] {
            assert_eq!(separated_hex_bytes(other, b',', &mut data), None, "{other}");
        }
    }

    #[test]
    fn hex_numbers_have_up_to_8_digits() {
        for (text, number) in
            [("0", Some(0)), ("7fF", Some(0x7FF)), ("FFFFFFFF", Some(u32::MAX)), ("00000001", Some(1))]
        {
            assert_eq!(hex_number(text), number, "{text}");
        }
        for other in ["", "g", "+1", "0x1", "000000001", "1 ", "\u{e9}"] {
            assert_eq!(hex_number(other), None, "{other}");
        }
    }

    #[test]
    fn words_are_those_between_blanks_with_the_rest_behind() {
        let mut words = Words { rest: "  1)\t 0.5 \u{e9} Rx  01 02 " };
        assert_eq!(words.by_ref().take(4).collect::<Vec<_>>(), ["1)", "0.5", "\u{e9}", "Rx"]);
        assert_eq!(words.rest, "  01 02 ");
        assert_eq!(words.count(), 2);
    }
}

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
            // PEAK-Converter ends its files without a line break. A line of these formats states its length, so that what is
            // left of a longer one is no frame.
            let is_frame = match is_frame {
                Err(Trouble::Wrong(_)) if is_last => return Err(Trouble::Cut),
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
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if !(whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit())
        && !text.is_empty()
        && text != ".")
    {
        return None;
    }
    let mut ns = if whole.is_empty() { 0 } else { whole.parse::<u64>().ok()?.checked_mul(unit_ns)? };
    let mut unit = unit_ns;
    for digit in fraction.bytes() {
        unit /= 10;
        ns = ns.checked_add(u64::from(digit - b'0') * unit)?;
    }
    Some(ns)
}

/// Reads bytes of two hex digits each, which blanks may separate; how many.
pub fn hex_bytes<'a>(words: impl Iterator<Item = &'a str>, data: &mut [u8; 64]) -> Option<usize> {
    let mut count = 0;
    for word in words {
        let [high, low] = *word.as_bytes() else { return None };
        let digit = |byte: u8| char::from(byte).to_digit(16);
        *data.get_mut(count)? = (digit(high)? << 4 | digit(low)?) as u8;
        count += 1;
    }
    Some(count)
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
}

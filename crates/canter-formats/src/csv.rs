//! CSV as canter writes it, for spreadsheets and scripts: a header line of column names, then one line per frame. The
//! columns are those of the Parquet data set.

use crate::{
    fields::Fields,
    format::{Context, Decode, Format, Keeps, NotKept, Output, Sink, Source, Write, Written},
    hex,
    trouble::Trouble,
};
use canter_frame::{Direction, Record};
use std::io;

/// The row of this format.
pub(crate) const ROW: Format = Format {
    name: "csv",
    title: "CSV",
    about: "One line per frame, with a header of column names",
    extensions: &["csv"],
    recognise: Some(looks_like),
    read: Some(|_| Box::new(Decoder::default())),
    write: Some(Write::File(|output, _| Ok(Box::new(Encoder::new(output))))),
    grows: true,
    keeps: Some(Keeps::ALL),
    ..Format::PLAIN
};

/// The first line: the columns' names.
const HEAD: &[u8] = b"stamp,interface,id,extended,rtr,fd,brs,esi,error,dlc,len,data,direction\n";

/// The number of columns after the interface's name.
const COLUMNS: usize = 11;

/// The decoder.
#[derive(Default)]
struct Decoder {
    line: u64,
}

fn without_byte_order_mark(head: &[u8]) -> &[u8] {
    head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head)
}

/// Whether the first line has the names of our columns.
fn looks_like(head: &[u8]) -> bool {
    without_byte_order_mark(head).strip_prefix(HEAD.trim_ascii_end()).is_some_and(|rest| {
        let rest = rest.strip_prefix(b"\r").unwrap_or(rest);
        rest.is_empty() || rest.starts_with(b"\n")
    })
}

/// Reads `1700000000.123456789` as ns.
fn stamp_ns(text: &[u8]) -> Option<u64> {
    let point = memchr::memchr(b'.', text)?;
    let (seconds, fraction) = (&text[..point], &text[point + 1..]);
    if fraction.len() > 9 {
        return None;
    }
    let ns = number(fraction, 10)? * 10u64.pow(9 - fraction.len() as u32);
    number(seconds, 10)?.checked_mul(1_000_000_000)?.checked_add(ns)
}

/// Reads a number of 1…11 digits.
fn number(text: &[u8], radix: u32) -> Option<u64> {
    let digit = |number: u64, &byte: &u8| {
        Some(number * u64::from(radix) + u64::from(char::from(byte).to_digit(radix)?))
    };
    if text.is_empty() || text.len() > 11 { None } else { text.iter().try_fold(0, digit) }
}

/// Splits off the first field, quoted or not, and its comma; `None` without a comma.
fn field<'a>(rest: &mut &'a [u8]) -> Option<std::borrow::Cow<'a, str>> {
    if let Some(quoted) = rest.strip_prefix(b"\"") {
        let mut at = 0;
        loop {
            at += memchr::memchr(b'"', &quoted[at..])?;
            match quoted.get(at + 1) {
                Some(b'"') => at += 2,
                Some(b',') => break,
                _ => return None,
            }
        }
        *rest = &quoted[at + 2..];
        return Some(std::str::from_utf8(&quoted[..at]).ok()?.replace("\"\"", "\"").into());
    }
    let end = memchr::memchr(b',', rest)?;
    let name = std::str::from_utf8(&rest[..end]).ok()?;
    *rest = &rest[end + 1..];
    Some(name.into())
}

/// Splits the rest of a line into the columns from the identifier on.
fn columns(rest: &[u8]) -> Option<[&[u8]; COLUMNS]> {
    let mut fields = rest.split(|&byte| byte == b',');
    let columns = [(); COLUMNS].map(|()| fields.next());
    match fields.next() {
        None if columns.iter().all(Option::is_some) => Some(columns.map(Option::unwrap_or_default)),
        _ => None,
    }
}

/// Reads a line into `entry`.
fn read(line: &[u8], context: &mut Context, entry: &mut Record) -> Result<(), Trouble> {
    let bad = |reason: &str| Trouble::Wrong(format!("{reason} (delete the line to read the rest)"));
    let mut rest = line;
    let stamp = field(&mut rest).and_then(|text| stamp_ns(text.as_bytes()));
    entry.stamp_ns = stamp.ok_or_else(|| bad("no stamp of seconds and up to 9 digits"))?;
    let name = field(&mut rest).filter(|name| !name.is_empty());
    entry.bus = context.names.number(&name.ok_or_else(|| bad("no interface"))?)?;
    let Some([id, flags @ .., dlc, len, data, direction]) = columns(rest) else {
        return Err(bad("not as many columns as the header has"));
    };
    let small = |text| number(text, 10).and_then(|number| u8::try_from(number).ok());
    let flag = |at: usize| match flags[at] {
        b"0" => Ok(false),
        b"1" => Ok(true),
        _ => Err(bad("a flag that is not 0 or 1")),
    };
    let id = number(id, 16).and_then(|id| u32::try_from(id).ok());
    let fields = Fields {
        id: id.ok_or_else(|| bad("an identifier that is not hex"))?,
        extended: flag(0)?,
        rtr: flag(1)?,
        fd: flag(2)?,
        brs: flag(3)?,
        esi: flag(4)?,
        error: flag(5)?,
        dlc: small(dlc).ok_or_else(|| bad("no DLC"))?,
        len: small(len).ok_or_else(|| bad("no length"))?,
    };
    let mut bytes = [0; 64];
    let pairs = data.chunks(2);
    if pairs.len() > bytes.len() {
        return Err(bad("more than 64 bytes of data"));
    }
    let count = pairs.len();
    for (byte, pair) in bytes.iter_mut().zip(pairs) {
        let value = if pair.len() == 2 { number(pair, 16) } else { None };
        *byte = value.ok_or_else(|| bad("data that is not hex"))? as u8;
    }
    entry.frame = fields.frame(&bytes[..count]).map_err(bad)?;
    entry.direction = match direction {
        b"" => None,
        b"R" => Some(Direction::Received),
        b"T" => Some(Direction::Sent),
        _ => return Err(bad("a direction that is not R, T or nothing")),
    };
    Ok(())
}

impl Decode for Decoder {
    fn next(
        &mut self,
        source: &mut Source,
        context: &mut Context,
        entry: &mut Record,
    ) -> Result<bool, Trouble> {
        loop {
            let Some(length) = source.whole_line(&mut self.line)? else { return Ok(false) };
            let line = source.buffered()[..length].trim_ascii_end();
            // The header was checked when the format was recognised.
            let frame = self.line > 1 && !line.is_empty();
            if frame {
                read(line, context, entry)?;
            }
            source.consume(length + 1);
            if frame {
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

/// The encoder.
struct Encoder {
    output: Output,
    names: Vec<Vec<u8>>,
}

impl Encoder {
    fn new(mut output: Output) -> Self {
        output.buffer().extend_from_slice(HEAD);
        Self { output, names: Vec::new() }
    }
}

/// Returns a field, in quotes if it has a quote, a comma or a line break.
fn quoted(name: &str) -> Vec<u8> {
    if name.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", name.replace('"', "\"\"")).into_bytes()
    } else {
        name.as_bytes().to_vec()
    }
}

impl Sink for Encoder {
    fn interface(&mut self, name: &str) -> io::Result<()> {
        self.names.push(quoted(name));
        Ok(())
    }

    #[inline]
    fn frame(&mut self, entry: &Record) -> io::Result<()> {
        let fields = Fields::from_frame(&entry.frame);
        let out = self.output.buffer();
        hex::decimal(out, entry.stamp_ns / 1_000_000_000, 1);
        out.push(b'.');
        hex::decimal(out, entry.stamp_ns % 1_000_000_000, 9);
        out.push(b',');
        out.extend_from_slice(self.names.get(entry.bus.index()).map_or(b"?", Vec::as_slice));
        out.push(b',');
        hex::number(out, fields.id, if fields.extended || fields.error { 8 } else { 3 });
        for flag in [fields.extended, fields.rtr, fields.fd, fields.brs, fields.esi, fields.error] {
            out.extend_from_slice(if flag { b",1" } else { b",0" });
        }
        out.push(b',');
        hex::decimal(out, fields.dlc.into(), 1);
        out.push(b',');
        hex::decimal(out, fields.len.into(), 1);
        out.push(b',');
        entry.frame.data().iter().for_each(|&byte| hex::byte(out, byte));
        out.extend_from_slice(match entry.direction {
            None => b",\n",
            Some(Direction::Received) => b",R\n",
            Some(Direction::Sent) => b",T\n",
        });
        self.output.ready()
    }

    fn finish(self: Box<Self>) -> io::Result<Written> {
        Ok(Written { bytes: self.output.finish()?, files: 1, not_kept: NotKept::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Result<(Record, String), String> {
        let (mut context, mut entry) = (Context::default(), Record::default());
        match read(text.as_bytes(), &mut context, &mut entry) {
            Ok(()) => Ok((entry, context.names.list()[0].clone())),
            Err(Trouble::Wrong(reason)) => Err(reason.split(" (").next().unwrap_or_default().to_owned()),
            Err(_) => Err("?".to_owned()),
        }
    }

    #[test]
    fn a_line_is_a_frame_and_a_quoted_name_may_have_commas() {
        let (entry, name) = line("1.5,\"a,\"\"b\",123,0,0,0,0,0,0,2,2,1122,T").unwrap();
        let parsed = (entry.stamp_ns, name.as_str(), entry.frame.to_string(), entry.direction);
        assert_eq!(parsed, (1_500_000_000, "a,\"b", "123#1122".to_owned(), Some(Direction::Sent)));
    }

    #[test]
    fn an_invalid_line_is_refused_with_the_reason() {
        for (text, reason) in [
            ("x", "no stamp of seconds and up to 9 digits"),
            ("1.0,\"can0,1", "no interface"),
            ("1.0,can0,123,0,0,0,0,0,0,0,0,", "not as many columns as the header has"),
            ("1.0,can0,xyz,0,0,0,0,0,0,0,0,,", "an identifier that is not hex"),
            ("1.0,can0,123,2,0,0,0,0,0,0,0,,", "a flag that is not 0 or 1"),
            ("1.0,can0,123,0,0,0,0,0,0,1,1,1,", "data that is not hex"),
            ("1.0,can0,123,0,0,0,0,0,0,1,1,1122,", "data that is shorter or longer than the length"),
            ("1.0,can0,123,0,0,0,0,0,0,1,1,11,X", "a direction that is not R, T or nothing"),
        ] {
            assert_eq!(line(text).unwrap_err(), reason, "{text}");
        }
    }
}

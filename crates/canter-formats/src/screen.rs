//! What candump prints for people, kept in a file: `  can0  123   [4]  DE AD BE EF`, with stamps as its option -t makes
//! them (absolute, delta, zero, date) or without, and with what -x, -a, -e and -8 add. Flags of FD frames are in it with -x
//! only; without stamps all frames have the stamp 0.

use crate::{
    fields::{Fields, fd_length},
    format::{Context, Format},
    lines::{Lines, ReadLine, bad, decimal_ns, hex_number, spaced_hex_bytes, text},
    trouble::Trouble,
};
use canter_frame::{
    Direction, Frame, Record,
    frame::{BRS, EFF_MASK, ERR_FLAG, ESI, SFF_MASK, dlc_of_len},
};
use jiff::civil::DateTime;

/// The row of this format.
pub(crate) const ROW: Format = Format {
    name: "candump",
    title: "candump's screen output",
    about: "What `candump` prints without -l and -L",
    extensions: &[],
    recognise: Some(looks_like),
    read: Some(|_| Box::new(Lines::new(Screen::default()))),
    ..Format::PLAIN
};

/// Whether the first line that is not blank is such a frame.
fn looks_like(head: &[u8]) -> bool {
    let mut lines = head.split(|&byte| byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
    let first = lines.next().and_then(|line| std::str::from_utf8(line).ok());
    first.is_some_and(|line| Line::parse(line.trim()).is_some_and(|line| line.is_frame()))
}

#[derive(Default)]
struct Screen {
    /// Stamps count from the frame before (`-t d`).
    is_delta: bool,
    sum_ns: u64,
}

/// The words of a line.
#[derive(Debug)]
struct Line<'a> {
    stamp: Option<&'a str>,
    interface: &'a str,
    direction: Option<Direction>,
    flags: u8,
    id: &'a str,
    /// The text between the brackets.
    length: &'a str,
    rest: &'a str,
}

impl<'a> Line<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (stamp, line) = match line.strip_prefix('(') {
            Some(rest) => {
                let (stamp, rest) = rest.split_once(')')?;
                (Some(stamp), rest)
            }
            None => (None, line),
        };
        let (before, rest) = line.split_once('[')?;
        let (length, rest) = rest.split_once(']')?;
        let mut words = before.split_ascii_whitespace();
        let interface = words.next()?;
        let mut id = words.next()?;
        let (mut direction, mut flags) = (None, 0);
        // -x: `RX - -`, `TX B E`.
        if let "RX" | "TX" = id {
            direction = Some(if id == "RX" { Direction::Received } else { Direction::Sent });
            flags = if words.next()? == "B" { BRS } else { 0 } | if words.next()? == "E" { ESI } else { 0 };
            id = words.next()?;
        }
        let line = Self { stamp, interface, direction, flags, id, length, rest: rest.trim() };
        words.next().is_none().then_some(line)
    }

    fn is_frame(&self) -> bool {
        let digits = |text: &str, radix| text.chars().all(|digit| digit.is_digit(radix));
        matches!(self.id.len(), 3 | 8)
            && digits(self.id, 16)
            && matches!(self.length.len(), 1 | 2)
            && digits(self.length, 10)
            && self.stamp.is_none_or(|stamp| stamp.starts_with(|first: char| first.is_ascii_digit()))
    }

    fn frame(&self) -> Option<Frame> {
        let number = hex_number(self.id.as_bytes())?;
        let length = self.length.parse::<u8>().ok()?;
        let is_fd = self.length.len() == 2;
        let is_rtr = self.rest == "remote request";
        let is_extended = self.id.len() == 8;
        let is_error = is_extended && number & ERR_FLAG != 0;
        if !is_error && number > if is_extended { EFF_MASK } else { SFF_MASK } {
            return None;
        }
        let rest = self.rest.strip_suffix("ERRORFRAME").unwrap_or(self.rest);
        // -a: the bytes as letters.
        let (bytes, letters) =
            rest.split_once('\'').map_or((rest, None), |(bytes, rest)| (bytes, Some(rest)));
        if letters.is_some_and(|letters| letters.trim_end().chars().count() != usize::from(length) + 1) {
            return None;
        }
        let mut data = [0; 64];
        let count = if is_rtr { 0 } else { spaced_hex_bytes(bytes.as_bytes(), &mut data)? };
        let fields = Fields {
            id: number & if is_error { EFF_MASK } else { u32::MAX },
            extended: is_extended && !is_error,
            rtr: is_rtr,
            fd: is_fd,
            brs: is_fd && self.flags & BRS != 0,
            esi: is_fd && self.flags & ESI != 0,
            error: is_error,
            dlc: if is_fd { dlc_of_len(fd_length(length.into()).into())? } else { length },
            len: if is_rtr {
                0
            } else if is_fd {
                fd_length(length.into())
            } else {
                length
            },
        };
        fields.frame(&data[..count]).ok()
    }
}

/// The ns of a stamp in seconds.
fn seconds_ns(stamp: &str) -> Option<u64> {
    decimal_ns(stamp.trim().as_bytes(), 9)
}

impl Screen {
    /// The ns of a stamp; those of `-t d` are summed up.
    fn stamp_ns(&mut self, stamp: &str, context: &mut Context) -> Result<u64, Trouble> {
        if stamp.contains('-')
            && let Ok(date) = DateTime::strptime("%F %T%.f", stamp)
        {
            context.zone_used = true;
            let ns = context.zone.ns(date).and_then(|ns| u64::try_from(ns).ok());
            return ns.ok_or_else(|| bad("a date before 1970"));
        }
        let ns = seconds_ns(stamp).ok_or_else(|| bad("no stamp of seconds"))?;
        self.sum_ns = if self.is_delta { self.sum_ns.saturating_add(ns) } else { ns };
        Ok(self.sum_ns)
    }
}

impl ReadLine for Screen {
    /// `-t d` and `-t z` look the same, three digits before the point; but stamps from zero never go back.
    fn begin(&mut self, head: &[u8]) {
        let text = String::from_utf8_lossy(head);
        let stamp = |line: &str| Some(Line::parse(line.trim())?.stamp?.trim().to_owned());
        let stamps: Vec<String> = text.lines().filter_map(stamp).collect();
        let is_short = stamps.iter().all(|stamp| stamp.find('.') == Some(3));
        let ns: Vec<u64> = stamps.iter().filter_map(|stamp| seconds_ns(stamp)).collect();
        self.is_delta = is_short && !ns.is_sorted();
    }

    fn read(&mut self, line: &[u8], context: &mut Context, entry: &mut Record) -> Result<bool, Trouble> {
        let line = text(line);
        let Some(line) = Line::parse(&line).filter(Line::is_frame) else {
            // -e prints what an error frame reports below it; candump itself prints comments on losses.
            context.skipped.count("lines that are no frames");
            return Ok(false);
        };
        let stamp_ns = line.stamp.map_or(Ok(0), |stamp| self.stamp_ns(stamp, context))?;
        let frame = line.frame().ok_or_else(|| bad("no frame behind the interface"))?;
        let bus = context.names.number(line.interface)?;
        *entry = Record { stamp_ns, bus, frame, direction: line.direction };
        Ok(true)
    }
}

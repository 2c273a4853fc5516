//! Vector ASC: text with a date in its header and one line per event. Its stamps count from that date or, with
//! `timestamps relative`, from the line before. The date names no time zone; it is taken for UTC unless the reader was given
//! another one. canter writes UTC and a comment that says so.
//!
//! Channels are numbers from 1. A comment `// canter: channel 1 = vcan0`, which canter writes, gives one a name;
//! without it channel 1 is can0.

use crate::{
    channels::{self, BusOfChannel},
    fields::{error_frame, fd_length},
    format::{Context, Decode, Flawed, Line, Source},
    trouble::{Trouble, wrong},
    zone::{HeaderDate, Zone},
};
use canter_frame::{
    Direction, Frame, Record,
    frame::{BRS, EFF_FLAG, EFF_MASK, ESI, FDF, RTR_FLAG, SFF_MASK, len_of_dlc},
};
use jiff::civil;
use std::{io, str::SplitAsciiWhitespace};

/// The end of the comment by which canter says that the date is in UTC.
const IN_UTC: &str = ", dates in UTC";
/// Flags of a `CANFD` line.
const ASC_RTR: u32 = 1 << 4;
const ASC_EDL: u32 = 1 << 12;
/// Words of a `CANFD` line after the data: durations, flags, CRC, bit timing.
const WORDS_AFTER_DATA: usize = 8;

/// The decoder.
pub struct Asc {
    line: u64,
    radix: u32,
    relative: bool,
    /// `Begin Triggerblock` without `End TriggerBlock` so far.
    in_block: bool,
    /// A comment may say that it is in UTC.
    date: HeaderDate,
    start_ns: i128,
    /// The stamp of the last event, from the start; negative before a trigger.
    last_ns: i64,
    channels: BusOfChannel,
    /// The kind of the last frame's flaw, if it has one.
    flaw: Option<&'static str>,
}

impl Default for Asc {
    fn default() -> Self {
        Self {
            line: 0,
            radix: 16,
            relative: false,
            in_block: false,
            date: HeaderDate::default(),
            start_ns: 0,
            last_ns: 0,
            channels: BusOfChannel::default(),
            flaw: None,
        }
    }
}

pub fn looks_like(head: &[u8]) -> bool {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let line = head.split(|&byte| byte == b'\n').next().unwrap_or_default().to_ascii_lowercase();
    line.starts_with(b"date ") || line.starts_with(b"base hex") || line.starts_with(b"base dec")
}

/// Reads `Sat Nov 22 12:34:56.789 am 2026`; the day of the week is skipped.
fn date(text: &str) -> Option<civil::DateTime> {
    const MONTHS: [&str; 12] =
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    const GERMAN: [(&str, i8); 4] = [("mär", 3), ("mai", 5), ("okt", 10), ("dez", 12)];
    let lower = text.to_lowercase();
    let mut words = lower.split_ascii_whitespace().skip(1);
    let month = words.next()?;
    let month = MONTHS
        .iter()
        .position(|&name| month.starts_with(name))
        .map(|at| at as i8 + 1)
        .or_else(|| GERMAN.iter().find(|(name, _)| month.starts_with(name)).map(|&(_, number)| number))?;
    let day = words.next()?.parse().ok()?;
    let time = words.next()?;
    let (half, year) = match words.next()? {
        half @ ("am" | "pm") => (Some(half), words.next()?),
        year => (None, year),
    };
    let (clock, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let mut parts = clock.split(':').map(str::parse::<i8>);
    let (hour, minute, second) = (parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?);
    let hour = match half {
        Some("am") => hour % 12,
        Some(_) => hour % 12 + 12,
        None => hour,
    };
    let ns = i32::try_from(fraction_ns(fraction)?).ok()?;
    civil::DateTime::new(year.parse().ok()?, month, day, hour, minute, second, ns).ok()
}

/// Reads the digits after a decimal point as ns; further digits are cut off.
fn fraction_ns(digits: &str) -> Option<u64> {
    let digits = digits.as_bytes();
    let value = |ns: u64, &byte: &u8| byte.is_ascii_digit().then(|| ns * 10 + u64::from(byte - b'0'));
    let ns = digits.iter().take(9).try_fold(0, value)?;
    Some(ns * 10u64.pow(9 - digits.len().min(9) as u32))
}

/// Reads `12.345678` as ns; also `-0.5`, before a trigger, and `.5`.
fn stamp_ns(text: &str) -> Option<i64> {
    let digits = text.trim_start_matches(['-', '+']);
    let (seconds, fraction) = digits.split_once('.')?;
    let seconds = if seconds.is_empty() { 0 } else { seconds.parse::<u32>().ok()?.into() };
    let ns = i64::checked_mul(seconds, 1_000_000_000)?.checked_add(fraction_ns(fraction)? as i64)?;
    match text.len() - digits.len() {
        0 => Some(ns),
        1 => Some(if text.starts_with('-') { -ns } else { ns }),
        _ => None,
    }
}

/// Whether a line that is no event has the words of one: a damaged event.
fn looks_like_event(line: &str) -> bool {
    let words = || line.split_ascii_whitespace();
    words().skip(1).zip(words().skip(2)).any(|(_, word)| direction(word).is_some())
        || words().any(|word| word == "CANFD" || word.eq_ignore_ascii_case("ErrorFrame"))
}

/// Whether an event begins among words that follow one: the end of its line is damaged.
fn has_event(words: SplitAsciiWhitespace<'_>) -> bool {
    let mut rest = words;
    while let Some(word) = rest.next() {
        let mut next = rest.clone();
        if stamp_ns(word).is_some()
            && next.next().is_some_and(|channel| channel == "CANFD" || channel.parse::<u32>().is_ok())
            && next.take(3).any(|word| direction(word).is_some() || word.eq_ignore_ascii_case("ErrorFrame"))
        {
            return true;
        }
    }
    false
}

fn direction(word: &str) -> Option<Direction> {
    match word {
        "Rx" | "rx" => Some(Direction::Received),
        "Tx" | "tx" => Some(Direction::Sent),
        _ => None,
    }
}

/// The content of a line.
enum Event {
    Frame(u32, Option<Direction>, Frame),
    Other(&'static str),
    /// Not an event.
    Nothing,
}

/// What begins and ends a block of events.
const BLOCK: [(&str, bool); 2] = [("begin triggerblock", true), ("end triggerblock", false)];
const TWO_EVENTS: &str = "two events in one line (a damaged file?)";
const CUT_EVENT: &str = "an event that ends too early (delete the line to read the rest)";

impl Asc {
    fn start(&mut self, zone: &Zone) {
        self.start_ns = self.date.ns(zone).unwrap_or(0);
    }

    /// Reads a line that is not an event: a header line or a comment.
    fn note(&mut self, line: &str, context: &mut Context) -> Result<(), Trouble> {
        const HEADER: &[&str] =
            &["", "internal events logged", "no internal events logged", "end triggerblock"];
        let words = line.trim_start_matches('\u{feff}');
        if let Some(note) = words.strip_prefix("//") {
            if has_event(note.split_ascii_whitespace()) {
                context.skipped.count("comments with an event in them");
                return Ok(());
            }
            if let Some((channel, name)) = channels::parse_note(note) {
                self.channels.name(channel, name, &mut context.names)?;
            } else if note.trim_ascii().starts_with("canter ") && note.trim_ascii().ends_with(IN_UTC) {
                self.date.utc = true;
                self.start(&context.zone);
            }
            return Ok(());
        }
        let lower = words.to_ascii_lowercase();
        if let Some((_, edge)) = BLOCK.iter().find(|(words, _)| lower.starts_with(words)) {
            self.in_block = *edge;
        }
        if let Some(text) = lower.strip_prefix("date ").or_else(|| lower.strip_prefix("begin triggerblock")) {
            match date(text) {
                Some(date) => {
                    (self.date.date, self.last_ns) = (Some(date), 0);
                    self.start(&context.zone);
                }
                None if text.trim_ascii().is_empty() => {}
                None => return wrong(format!("a date that canter cannot read: {}", text.trim_ascii())),
            }
            return Ok(());
        }
        if let Some(base) = lower.strip_prefix("base ") {
            self.radix = if base.trim_ascii_start().starts_with("dec") { 10 } else { 16 };
            self.relative = base.contains("relative");
        } else if looks_like_event(line) {
            return wrong("an event without a stamp (delete the line to read the rest)");
        } else if !HEADER.contains(&lower.as_str()) {
            context.skipped.count("lines that are no events");
        }
        Ok(())
    }

    fn event(&mut self, line: &str) -> Result<Event, Trouble> {
        self.flaw = None;
        let mut words = line.split_ascii_whitespace();
        let Some(stamp) = words.next().and_then(stamp_ns) else {
            return match looks_like_event(line) {
                true => wrong("an event with a damaged stamp (delete the line to read the rest)"),
                false => Ok(Event::Other("other events")),
            };
        };
        self.last_ns = if self.relative { self.last_ns.saturating_add(stamp) } else { stamp };
        let behind_stamp = words.clone();
        let event = match words.next() {
            Some("CANFD") => self.fd(words)?,
            Some(channel) => match channel.parse() {
                Ok(channel) => self.classic(channel, words, line)?,
                Err(_) => Event::Other("other events"),
            },
            None => return wrong(CUT_EVENT),
        };
        match event {
            Event::Other(_) if has_event(behind_stamp) => wrong(TWO_EVENTS),
            event => Ok(event),
        }
    }

    /// Reads an identifier; extended ones end in `x`.
    fn identifier(&self, word: &str) -> Option<u32> {
        match word.strip_suffix(['x', 'X']) {
            Some(digits) => {
                let id = u32::from_str_radix(digits, self.radix).ok()?;
                (id <= EFF_MASK).then_some(id | EFF_FLAG)
            }
            None => u32::from_str_radix(word, self.radix).ok().filter(|&id| id <= SFF_MASK),
        }
    }

    fn number(&self, word: Option<&str>) -> Option<u32> {
        u32::from_str_radix(word?, self.radix).ok()
    }

    /// Fills `data`, one word per byte.
    fn data(&self, words: &mut SplitAsciiWhitespace<'_>, data: &mut [u8]) -> Result<(), Trouble> {
        for byte in data {
            match self.number(words.next()).map(u8::try_from) {
                Some(Ok(value)) => *byte = value,
                _ => {
                    return wrong(
                        "a frame with less data than its length (delete the line to read the rest)",
                    );
                }
            }
        }
        Ok(())
    }

    /// Reads `1  123x  Rx   d 8 01 02 03 04 05 06 07 08`, or `1  ErrorFrame`.
    fn classic(
        &mut self,
        channel: u32,
        mut words: SplitAsciiWhitespace<'_>,
        line: &str,
    ) -> Result<Event, Trouble> {
        let Some(id) = words.next() else { return wrong(CUT_EVENT) };
        if id.eq_ignore_ascii_case("ErrorFrame") {
            return Ok(Event::Frame(channel, None, error_frame()));
        }
        let Some(direction) = words.next().and_then(direction) else {
            return Ok(Event::Other("other events"));
        };
        let mut frame = Frame::default();
        // With a database, the message's name is here, and the identifier is in decimal at the end of the line. A name may
        // look like a number (AC), but it never begins with a digit.
        let may_be_name = !id.starts_with(|first: char| first.is_ascii_digit());
        let named = if may_be_name { named_identifier(line) } else { None };
        let Some(can_id) = named.or_else(|| self.identifier(id)) else {
            return wrong(format!("{id} is not an identifier (delete the line to read the rest)"));
        };
        frame.can_id = can_id;
        match words.next() {
            Some("d" | "D") => {
                let Some(dlc @ 0..=15) = self.number(words.next()) else {
                    return wrong("a frame without DLC (delete the line to read the rest)");
                };
                frame.len = dlc.min(8) as u8;
                frame.len8_dlc = if dlc > 8 { dlc as u8 } else { 0 };
                let len = usize::from(frame.len);
                self.data(&mut words, &mut frame.data[..len])?;
                if has_event(words.clone()) {
                    return wrong(TWO_EVENTS);
                }
                // What follows the data is text: `Length = …`.
                if words.next().is_some_and(|word| self.number(Some(word)).is_some()) {
                    self.flaw = Some(Flawed::LENGTH);
                }
            }
            Some("r" | "R") => {
                frame.can_id |= RTR_FLAG;
                // The DLC may be missing, and the next event follow.
                if has_event(words.clone()) {
                    return wrong(TWO_EVENTS);
                }
                let dlc = self.number(words.next()).unwrap_or(0);
                frame.len = dlc.min(8) as u8;
                frame.len8_dlc = if (9..=15).contains(&dlc) { dlc as u8 } else { 0 };
                self.flaw = (dlc > 15).then_some(Flawed::LENGTH);
            }
            _ => return Ok(Event::Other("other events")),
        }
        Ok(Event::Frame(channel, Some(direction), frame))
    }

    /// `CANFD 1 Rx 123 [name] 1 0 9 12 01 … 0c duration length flags …`: bit rate switch, error state, DLC, bytes.
    fn fd(&mut self, mut words: SplitAsciiWhitespace<'_>) -> Result<Event, Trouble> {
        let bad =
            || Trouble::Wrong("a CANFD line that ends too early (delete it to read the rest)".to_owned());
        let Some(Ok(channel)) = words.next().map(str::parse) else { return Ok(Event::Other("other events")) };
        let direction = words.next().and_then(direction);
        let id = words.next().ok_or_else(bad)?;
        if id.eq_ignore_ascii_case("ErrorFrame") {
            return Ok(Event::Frame(channel, direction, error_frame()));
        }
        let Some(direction) = direction else { return Ok(Event::Other("other events")) };
        let mut frame = Frame::default();
        frame.can_id = self.identifier(id).ok_or_else(|| {
            Trouble::Wrong(format!("{id} is not an identifier (delete the line to read the rest)"))
        })?;
        let name_or_brs = words.next().ok_or_else(bad)?;
        let brs =
            if matches!(name_or_brs, "0" | "1") { name_or_brs } else { words.next().ok_or_else(bad)? };
        let esi = words.next().filter(|esi| matches!(*esi, "0" | "1")).ok_or_else(bad)?;
        let dlc = self.number(words.next()).filter(|&dlc| dlc <= 15).ok_or_else(bad)?;
        let len: usize = words.next().and_then(|len| len.parse().ok()).ok_or_else(bad)?;
        if len > 64 {
            return wrong(format!("a frame of {len} bytes (delete the line to read the rest)"));
        }
        self.data(&mut words, &mut frame.data[..len])?;
        if has_event(words.clone()) {
            return wrong(TWO_EVENTS);
        }
        self.flaw = (words.clone().count() > WORDS_AFTER_DATA).then_some(Flawed::LENGTH);
        let flags = words.nth(2).and_then(|flags| u32::from_str_radix(flags, 16).ok());
        let flags = flags.unwrap_or(ASC_EDL);
        // More than 8 bytes are an FD frame, marked as one or not.
        if flags & ASC_EDL != 0 || len > 8 {
            frame.flags = FDF | if brs == "1" { BRS } else { 0 } | if esi == "1" { ESI } else { 0 };
            frame.len = fd_length(len.max(len_of_dlc(dlc as u8)));
            self.flaw = self.flaw.or((len != len_of_dlc(dlc as u8)).then_some(Flawed::LENGTH));
            return Ok(Event::Frame(channel, Some(direction), frame));
        }
        // A classic frame on an FD channel; a remote one has a DLC and no data.
        let dlc_len = dlc.min(8) as u8;
        if flags & ASC_RTR != 0 {
            frame.can_id |= RTR_FLAG;
        }
        if frame.is_rtr() && len == 0 {
            frame.len = dlc_len;
        } else {
            frame.len = dlc_len.max(len as u8);
            let differ = frame.is_rtr() || len != usize::from(dlc_len);
            self.flaw = self.flaw.or(differ.then_some(Flawed::LENGTH));
        }
        frame.len8_dlc = if frame.len == 8 && dlc > 8 { dlc as u8 } else { 0 };
        Ok(Event::Frame(channel, Some(direction), frame))
    }
}

/// Reads the identifier at the end of a line: `… ID = 291` or `… ID = 291x`.
fn named_identifier(line: &str) -> Option<u32> {
    let id = line.rsplit_once(" ID = ")?.1.split_ascii_whitespace().next()?;
    match id.strip_suffix('x') {
        Some(digits) => digits.parse().ok().filter(|&id: &u32| id <= EFF_MASK).map(|id| id | EFF_FLAG),
        None => id.parse().ok().filter(|&id: &u32| id <= SFF_MASK),
    }
}

impl Decode for Asc {
    fn next(
        &mut self,
        source: &mut Source,
        context: &mut Context,
        entry: &mut Record,
    ) -> Result<bool, Trouble> {
        loop {
            let (length, is_whole) = match source.line(&mut self.line)? {
                // What begins a block also writes its end, unless it is stopped.
                None if std::mem::take(&mut self.in_block) => return Err(Trouble::Cut),
                None => return Ok(false),
                Some(Line::Whole(length)) => (length, true),
                Some(Line::Last(length)) => (length, false),
            };
            // Comments may be in any encoding; frames are ASCII.
            let text = String::from_utf8_lossy(&source.buffered()[..length]);
            let line = text.trim_ascii();
            let event = if !is_whole && !line.eq_ignore_ascii_case("End TriggerBlock") {
                return Err(Trouble::Cut);
            } else if line.starts_with(|first: char| first.is_ascii_digit() || "-+.".contains(first)) {
                self.event(line)?
            } else {
                self.note(line, context)?;
                Event::Nothing
            };
            drop(text);
            let found = match event {
                Event::Nothing => false,
                Event::Other(kind) => {
                    context.skipped.count(kind);
                    false
                }
                Event::Frame(channel, direction, frame) => {
                    let Ok(stamp_ns) = u64::try_from(self.start_ns + i128::from(self.last_ns)) else {
                        return wrong("a stamp outside of 1970…2554");
                    };
                    let bus = self.channels.number(channel, &mut context.names)?;
                    if let Some(flaw) = self.flaw.take() {
                        context.flawed.count(flaw);
                    }
                    context.zone_used |= self.date.needs_zone();
                    *entry = Record { stamp_ns, bus, frame, direction };
                    true
                }
            };
            source.consume(length + 1);
            if found {
                return Ok(true);
            }
        }
    }

    fn place(&self, _source: &Source) -> String {
        format!("line {}", self.line)
    }

    /// Stamps that count from the line before are lost with a line.
    fn resume(&mut self, source: &mut Source) -> io::Result<bool> {
        source.skip_line().map(|()| !self.relative)
    }
}

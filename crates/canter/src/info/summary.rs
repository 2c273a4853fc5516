//! The summary of a recording on a terminal.

use super::{
    census::{Bus, Census, Key, Row},
    names::Names,
};
use crate::recordings::{Outcome, identifier, utc};
use canter_cli::{
    terminal::{COLUMNS_MAX, FAINT, Ink, PLAIN, Style, Table, YELLOW, clip, paragraph, plain},
    units::{self, counted, grouped},
};
use canter_frame::frame::{EFF_FLAG, EFF_MASK, RTR_FLAG};
use std::io::{self, IsTerminal};

/// Narrower terminals get fewer columns.
const WIDE: usize = 76;
const MEDIUM: usize = 56;
/// The longest name of a message, in characters, beside which the columns of jitter and of the longest time fit.
const BESIDE_JITTER: usize = 12;
const BESIDE_LONGEST: usize = 21;
/// The characters of a name on narrower terminals than [`MEDIUM`].
const NARROW_NAME: usize = 12;

/// The width of the terminal that reads the output; a file or a pipe counts as wide.
pub fn terminal_columns() -> usize {
    let size = if io::stdout().is_terminal() { crossterm::terminal::size().ok() } else { None };
    // A terminal of 0 columns does not know its size.
    size.map_or(COLUMNS_MAX, |(columns, _)| usize::from(columns)).clamp(1, usize::MAX).min(COLUMNS_MAX)
}

/// The text of a summary.
pub struct Summary<'a> {
    pub title: String,
    pub census: &'a Census,
    pub names: &'a Names<'a>,
    pub rows: Vec<(&'a Key, &'a Row)>,
    pub remarks: &'a [String],
    pub outcomes: &'a [Outcome],
    pub columns: usize,
    pub ink: Ink,
}

impl Summary<'_> {
    /// The whole text.
    pub fn text(&self) -> String {
        let mut out = String::new();
        self.head(&mut out);
        if !self.census.buses.is_empty() {
            out.push('\n');
            self.buses(&mut out);
            self.identifiers(&mut out);
        }
        self.errors(&mut out);
        self.events(&mut out);
        for remark in self.remarks {
            paragraph(&mut out, remark, 2, self.ink, YELLOW);
        }
        out.truncate(out.trim_end().len());
        out.push('\n');
        out
    }

    fn head(&self, out: &mut String) {
        let census = self.census;
        let frames = census.buses.iter().map(|bus| bus.frames).sum();
        let identifiers = counted(self.rows.len() as u64, "identifier");
        let buses = counted_buses(census.buses.len());
        let mut head = format!("{}: {}, {identifiers}, {buses}", self.title, counted(frames, "frame"));
        if let Some((first, last)) = census.span_ns {
            let times = format!("{}: {} to {}", duration(census.duration_ns()), utc(first), utc(last));
            head.push('\n');
            head += &times;
        }
        head.lines().for_each(|line| paragraph(out, line, 2, self.ink, PLAIN));
    }

    /// One row per bus. Without a bit rate the load is in kbit/s.
    fn buses(&self, out: &mut String) {
        let (wide, medium) = (self.columns >= WIDE, self.columns >= MEDIUM);
        let headings = ["<bus", "frames", "frames/s", "load", "busiest s", "errors", "pauses", "silence"];
        let mut table = Table::new(&headings);
        let mut buses: Vec<&Bus> = self.census.buses.iter().collect();
        buses.sort_by_key(|bus| crate::recordings::natural_order(&bus.name));
        for bus in buses {
            let errors = if bus.error_frames > 0 { YELLOW } else { PLAIN };
            table.row([
                (bus.name.clone(), PLAIN),
                (grouped(bus.frames), PLAIN),
                shown(medium, rate(bus.frames, bus.duration_ns()), PLAIN),
                (load(bus), PLAIN),
                shown(medium, busiest(bus), PLAIN),
                (grouped(bus.error_frames), errors),
                shown(wide, grouped(bus.pauses), PLAIN),
                shown(wide, units::span(bus.silence.0), PLAIN),
            ]);
        }
        table.print(out, self.ink);
    }

    fn identifiers(&self, out: &mut String) {
        let (wide, medium) = (self.columns >= WIDE, self.columns >= MEDIUM);
        let headings =
            ["<bus", "<id", "<name", "frames", "len", "period", "jitter", "longest", "missing", "<changing"];
        let mut table = Table::new(&headings);
        // Names take the place of columns, the last one first.
        let names = self.rows.iter().filter_map(|(key, _)| self.names.name(key));
        let width = names.map(|name| name.chars().count()).max().unwrap_or(0);
        let name_max = if medium { COLUMNS_MAX } else { NARROW_NAME };
        let (wide, jitter, longest) =
            (wide && width == 0, medium && width <= BESIDE_JITTER, width <= BESIDE_LONGEST);
        let several = self.census.buses.len() > 1;
        for (key, row) in &self.rows {
            let period = row.period();
            let missing = period.and_then(|period| period.missing);
            let alarm = if missing.is_some_and(|count| count > 0) { YELLOW } else { PLAIN };
            let span = |ns: Option<u64>| ns.map_or("–".to_owned(), units::span);
            table.row([
                shown(several, self.census.buses[key.bus].name.clone(), PLAIN),
                (name(key.id), PLAIN),
                (clip(self.names.name(key).unwrap_or_default(), name_max), PLAIN),
                (grouped(row.count), PLAIN),
                shown(medium, lengths(row), PLAIN),
                (span(period.map(|period| period.median_ns)), PLAIN),
                shown(jitter, span(period.map(|period| period.jitter_ns)), PLAIN),
                shown(longest && (medium || !several), span(period.map(|_| row.longest_ns())), PLAIN),
                shown(medium, missing.map_or("–".to_owned(), grouped), alarm),
                shown(wide, changing(row), FAINT),
            ]);
        }
        table.print(out, self.ink);
        if self.census.beyond > 0 {
            let text = format!("{} of further identifiers have no row", counted(self.census.beyond, "frame"));
            paragraph(out, &text, 2, self.ink, YELLOW);
        }
    }

    /// What the recordings report beside their frames.
    fn events(&self, out: &mut String) {
        for outcome in self.outcomes {
            for event in &outcome.events {
                let text = format!("{}: {}", utc(event.at_ns), event.what);
                paragraph(out, &plain(&text), 2, self.ink, YELLOW);
            }
            if outcome.events_left_out > 0 {
                let text = format!("{}: {} more events", outcome.file, outcome.events_left_out);
                paragraph(out, &text, 2, self.ink, YELLOW);
            }
        }
    }

    fn errors(&self, out: &mut String) {
        for bus in self.census.buses.iter().filter(|bus| bus.error_frames > 0) {
            let kinds: Vec<String> =
                bus.errors.iter().map(|(kind, count)| format!("{kind} {}", grouped(*count))).collect();
            let text = format!("errors of {}: {}", bus.name, kinds.join(", "));
            paragraph(out, &text, 2, self.ink, YELLOW);
        }
    }
}

/// A cell of a column that narrow terminals leave out.
fn shown(fits: bool, text: String, style: Style) -> (String, Style) {
    (if fits { text } else { String::new() }, style)
}

fn counted_buses(count: usize) -> String {
    format!("{count} {}", if count == 1 { "bus" } else { "buses" })
}

/// A duration with its unit; minutes and hours from two minutes on.
pub fn duration(ns: u64) -> String {
    let s = ns / 1_000_000_000;
    match s {
        0..120 => units::span(ns),
        120..7200 => format!("{} min {} s", s / 60, s % 60),
        _ => format!("{} h {} min", s / 3600, s / 60 % 60),
    }
}

fn rate(count: u64, duration_ns: u64) -> String {
    let Some(duration) = std::num::NonZero::new(duration_ns) else { return "–".to_owned() };
    format!("{:.1}", count as f64 * 1e9 / duration.get() as f64)
}

/// The part of a time, in percent.
pub fn percent(part_ps: u64, whole_ns: u64) -> Option<f64> {
    (whole_ns > 0).then(|| part_ps as f64 / 1000.0 / whole_ns as f64 * 100.0)
}

fn load(bus: &Bus) -> String {
    let duration_ns = bus.duration_ns();
    match (bus.rate, percent(bus.total.busy_ps, duration_ns)) {
        (_, None) => "–".to_owned(),
        (Some(_), Some(load)) => format!("{load:.1} %"),
        (None, _) => kbit(bus.total.bits, duration_ns),
    }
}

/// The load of the busiest second; of a shorter recording there is none.
fn busiest(bus: &Bus) -> String {
    match bus.rate {
        _ if bus.duration_ns() < super::census::WINDOW_NS => "–".to_owned(),
        Some(_) => format!("{:.1} %", bus.busiest.busy_ps as f64 / 1e10),
        None => kbit(bus.busiest.bits, super::census::WINDOW_NS),
    }
}

fn kbit(bits: u64, duration_ns: u64) -> String {
    format!("{:.1} kbit/s", bits as f64 * 1e6 / duration_ns as f64)
}

/// An identifier; remote requests have `#R`, as in candump's logs.
pub fn name(id: u32) -> String {
    let remote = if id & RTR_FLAG != 0 { "#R" } else { "" };
    format!("{}{remote}", identifier(id & (EFF_FLAG | EFF_MASK)))
}

/// The lengths of an identifier's frames: `8`, `2–8`, `64 FD`.
pub fn lengths(row: &Row) -> String {
    let fd = if row.fd { " FD" } else { "" };
    match row.len {
        (shortest, longest) if shortest == longest => format!("{longest}{fd}"),
        (shortest, longest) => format!("{shortest}–{longest}{fd}"),
    }
}

/// The bytes that change: `01..4...` for up to 8 bytes, else ranges.
fn changing(row: &Row) -> String {
    let is_changing = |at: usize| row.changing >> at & 1 != 0;
    let len = usize::from(row.len.1).min(64);
    if len <= 8 {
        return (0..len).map(|at| if is_changing(at) { char::from(b'0' + at as u8) } else { '.' }).collect();
    }
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for at in (0..len).filter(|&at| is_changing(at)) {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == at => *last = at,
            _ => ranges.push((at, at)),
        }
    }
    let range = |&(first, last): &(usize, usize)| {
        if first == last { first.to_string() } else { format!("{first}–{last}") }
    };
    ranges.iter().map(range).collect::<Vec<_>>().join(",")
}

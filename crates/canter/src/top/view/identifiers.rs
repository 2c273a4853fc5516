//! The identifiers on the screen: the columns of `canter info` that a live view has, as many as fit, and the data of the last
//! frame behind them.

use super::{Line, Style};
use crate::top::census::{Census, Content, Key, Row};
use canter_cli::{
    terminal::{clip, plain},
    units,
};
use canter_io::frame::{EFF_FLAG, EFF_MASK};

/// How long a changed byte is highlighted.
const CHANGED_NS: u64 = 1_000_000_000;

/// A column between the identifier and the data.
struct Column {
    name: &'static str,
    width: usize,
    /// Screens that have fewer columns for identifiers and data lack it. With 80, 8 bytes of data fit.
    least: usize,
    text: fn(&Row<'_>) -> String,
}

/// The widest column of names, in characters.
const NAME_MAX: usize = 24;
/// The widest column of names on a narrow terminal.
const NARROW_NAME: usize = 12;
/// The characters of an identifier, the columns that every screen has, and 8 bytes of data.
const ALWAYS: usize = 58;

const COLUMNS: [Column; 7] = [
    Column { name: "FRAMES", width: 7, least: 30, text: |row| row.count.to_string() },
    Column { name: "LEN", width: 5, least: 64, text: len },
    Column { name: "FRAMES/S", width: 8, least: 0, text: |row| format!("{:.1}", row.frames_per_s) },
    Column {
        name: "PERIOD",
        width: 7,
        least: 0,
        text: |row| span(row.period.map(|period| period.median_ns)),
    },
    Column {
        name: "JITTER",
        width: 7,
        least: 72,
        text: |row| span(row.period.map(|period| period.jitter_ns)),
    },
    Column { name: "LONGEST", width: 7, least: 80, text: |row| span(row.longest_ns()) },
    Column {
        name: "MISSING",
        width: 7,
        least: 88,
        text: |row| {
            row.period.and_then(|period| period.missing).map_or("–".to_owned(), |count| count.to_string())
        },
    },
];

fn len(row: &Row<'_>) -> String {
    match &row.last {
        Content::Frame(frame) => format!("{}{}", frame.len, if frame.is_fd() { " FD" } else { "" }),
        Content::Transported(bytes) => bytes.len().to_string(),
    }
}

fn span(ns: Option<u64>) -> String {
    ns.map_or("–".to_owned(), units::span)
}

/// An identifier in candump's notation.
pub fn identifier(key: &Key) -> String {
    let id = key.id & EFF_MASK;
    if key.id & EFF_FLAG != 0 { format!("{id:08X}") } else { format!("{id:03X}") }
}

/// What an identifier had last, in candump's notation.
pub fn notation(key: &Key, last: &Content) -> String {
    match last {
        Content::Frame(frame) => frame.to_string(),
        Content::Transported(bytes) => {
            let hex: String = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
            format!("{}#{hex}", identifier(key))
        }
    }
}

/// The columns of a screen.
pub struct Layout {
    /// The width of the column of buses; `None`: the buses are headings.
    bus: Option<usize>,
    /// The width of the column of names; `None`: there are no databases.
    name: Option<usize>,
    columns: Vec<&'static Column>,
}

impl Layout {
    /// The layout of a screen that has this number of columns. `name` is the width of the longest name.
    pub fn new(bus: Option<usize>, name: Option<usize>, columns: usize) -> Self {
        let room = columns.saturating_sub(bus.map_or(0, |width| width + 1));
        let name_max = room.saturating_sub(ALWAYS + 1).clamp(NARROW_NAME, NAME_MAX);
        let name = name.map(|width| width.clamp("NAME".len(), name_max));
        let room = room.saturating_sub(name.map_or(0, |width| width + 1));
        Self { bus, name, columns: COLUMNS.iter().filter(|column| column.least <= room).collect() }
    }

    fn line(&self, bus: &str, id: &str, name: &str, cells: impl Fn(&Column) -> String) -> String {
        let mut line = self.bus.map_or(String::new(), |width| format!("{bus:width$} "));
        line += &format!("{id:<8}");
        if let Some(width) = self.name {
            line += &format!(" {:width$}", clip(name, width));
        }
        for column in &self.columns {
            line += &format!(" {:>width$}", cells(column), width = column.width);
        }
        line
    }

    pub fn head(&self) -> Line {
        let line = self.line("BUS", "ID", "NAME", |column| column.name.to_owned());
        vec![(Style::Head, format!("{line}  DATA"))]
    }

    pub fn row(&self, census: &Census<'_>, key: &Key, row: &Row<'_>) -> Line {
        let bus = super::name(census, key);
        let name = row.signals.as_ref().map_or("–", |signals| &signals.message.name);
        let cells = self.line(bus, &identifier(key), &plain(name), |column| (column.text)(row));
        let mut line = vec![(Style::Plain, cells + " ")];
        if row.last.is_rtr() {
            line.push((Style::Plain, " remote request".to_owned()));
        }
        let since_ns = census.now_ns.saturating_sub(CHANGED_NS);
        for (at, byte) in row.last.bytes().iter().enumerate() {
            let style = if row.changed_since(at, since_ns) { Style::Changed } else { Style::Plain };
            line.push((Style::Plain, " ".to_owned()));
            line.push((style, format!("{byte:02X}")));
        }
        line
    }
}

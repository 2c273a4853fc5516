//! The output of `canter top`: lines of styled text from a census and the user's settings. Does not access the terminal.

mod buses;

use super::census::{Census, Key, Row};
pub use buses::Buses;
use canter_cli::units;
use canter_io::frame::{EFF_FLAG, EFF_MASK};
use clap::ValueEnum;

/// How long a changed byte is highlighted.
const CHANGED_NS: u64 = 1_000_000_000;

/// The style of a piece of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    Plain,
    /// Heads of tables.
    Head,
    /// A byte that has changed.
    Changed,
    /// An error or a loss.
    Alarm,
}

/// Size of the terminal, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    pub lines: usize,
    pub columns: usize,
}

impl Size {
    /// No limit, for a printed table.
    pub const TABLE: Self = Self { lines: usize::MAX, columns: usize::MAX };
}

/// Why there is nothing to show.
pub const NO_INTERFACE: &str =
    "this machine has no CAN interface (ip link add vcan0 type vcan, or canter lab)";

/// A line of the screen.
pub type Line = Vec<(Style, String)>;

/// Sort key of the rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Sort {
    /// Bus, then identifier
    #[default]
    Bus,
    /// Identifier
    Id,
    /// Frames per second, highest first
    Rate,
    /// Time between frames, shortest first
    Period,
    /// Spread of the time between frames, widest first
    Jitter,
    /// Number of frames, highest first
    Count,
    /// Time of the last frame, latest first
    Last,
}

impl Sort {
    const ALL: [Self; 7] =
        [Self::Bus, Self::Id, Self::Rate, Self::Period, Self::Jitter, Self::Count, Self::Last];

    /// The next key.
    pub fn next(self) -> Self {
        let place = Self::ALL.iter().position(|&sort| sort == self).unwrap_or(0);
        Self::ALL[(place + 1) % Self::ALL.len()]
    }

    fn name(self) -> &'static str {
        match self {
            Self::Bus => "bus",
            Self::Id => "id",
            Self::Rate => "rate",
            Self::Period => "period",
            Self::Jitter => "jitter",
            Self::Count => "count",
            Self::Last => "last",
        }
    }
}

/// The user's settings.
#[derive(Clone, Debug, Default)]
pub struct View {
    pub sort: Sort,
    pub reverse: bool,
    /// Only rows whose bus or identifier contains this.
    pub filter: String,
    /// Whether the filter is being typed.
    pub typing: bool,
    pub paused: bool,
    pub buses: Buses,
    /// The first row on the screen.
    pub first: usize,
}

impl View {
    /// The rows that pass the filter, sorted.
    pub fn rows<'a>(&self, census: &'a Census) -> Vec<(&'a Key, &'a Row)> {
        let wanted = self.filter.to_uppercase();
        let shown = |key: &Key| {
            identifier(key).contains(&wanted) || name(census, key).to_uppercase().contains(&wanted)
        };
        let mut rows: Vec<(&Key, &Row)> = census.rows.iter().filter(|(key, _)| shown(key)).collect();
        let order = |(key, row): &(&Key, &Row)| -> (u64, u64) {
            let id = u64::from(key.id & EFF_MASK) << 1 | u64::from(key.id & EFF_FLAG != 0);
            match self.sort {
                Sort::Bus => (key.interface.into(), id),
                Sort::Id => (id, key.interface.into()),
                Sort::Rate => (u64::MAX - (row.frames_per_s * 1000.0) as u64, id),
                Sort::Period => (row.period_ns().unwrap_or(u64::MAX), id),
                Sort::Jitter => (u64::MAX - row.jitter_ns(), id),
                Sort::Count => (u64::MAX - row.count, id),
                Sort::Last => (u64::MAX - row.last_ns, id),
            }
        };
        rows.sort_by_key(|row| (order(row), *row.0));
        if self.reverse {
            rows.reverse();
        }
        rows
    }

    /// The lines above the identifiers' rows.
    fn head(&self, census: &Census, size: Size) -> Vec<Line> {
        let mut lines = vec![self.summary(census)];
        // The summary, an empty line, the head of the identifiers and the keys always take four lines.
        let buses = self.buses.lines(census, size.lines.saturating_sub(4), size.columns);
        if !buses.is_empty() {
            lines.extend(buses);
            lines.push(Line::new());
        }
        let width = width(census);
        let head = cells(["LEN", "RATE/S", "PERIOD", "JITTER", "COUNT"]);
        lines.push(vec![(Style::Head, format!("{:width$} {:<8} {head}  DATA", "BUS", "ID"))]);
        lines
    }

    /// Number of identifiers' rows that fit on the screen.
    pub fn room(&self, census: &Census, size: Size) -> usize {
        size.lines.saturating_sub(self.head(census, size).len() + 1)
    }

    /// All lines, with the identifiers' rows that fit on the screen.
    pub fn lines(&self, census: &Census, size: Size) -> Vec<Line> {
        let mut lines = self.head(census, size);
        if census.buses.is_empty() {
            lines.push(vec![(Style::Alarm, NO_INTERFACE.to_owned())]);
        }
        let (width, rows) = (width(census), self.rows(census));
        let room = size.lines.saturating_sub(lines.len() + 1);
        let first = self.first.min(rows.len().saturating_sub(room));
        for (key, row) in rows.iter().skip(first).take(room) {
            lines.push(row_line(census, key, row, width));
        }
        if size != Size::TABLE {
            lines.truncate(size.lines.saturating_sub(1));
            lines.resize(size.lines.saturating_sub(1), Line::new());
            lines.push(self.keys(rows.len(), first, room));
        }
        lines
    }

    fn summary(&self, census: &Census) -> Line {
        let rate = census.buses.values().fold(0.0, |sum, bus| sum + bus.frames_per_s);
        let since = census.now_ns.saturating_sub(census.since_ns) / 1_000_000_000;
        let text = format!(
            "{}, {}, {rate:.0} frames/s, for {since} s",
            plural(census.buses.len(), "bus", "buses"),
            plural(census.rows.len(), "identifier", "identifiers"),
        );
        let mut line = vec![(Style::Plain, text)];
        let mut alarm = |count: u64, text: &str| {
            if count > 0 {
                line.push((Style::Alarm, format!(", {count} {text}")));
            }
        };
        alarm(census.lost, "frames not received");
        alarm(census.beyond, "frames of identifiers without a row");
        if self.paused {
            line.push((Style::Alarm, ", PAUSED".to_owned()));
        }
        line
    }

    fn keys(&self, rows: usize, first: usize, room: usize) -> Line {
        let shown = if rows > room {
            format!("  {}–{} of {rows}", first + 1, rows.min(first + room))
        } else {
            String::new()
        };
        let filter = match (self.typing, self.filter.as_str()) {
            (true, text) => format!("{text}▏ (Enter)"),
            (false, "") => "filter".to_owned(),
            (false, text) => format!("filter: {text}"),
        };
        let order = if self.reverse { ", reversed" } else { "" };
        // A narrow screen clips the end.
        let text = format!(
            "q quit  s sort: {}{order}  r reverse  / {filter}{shown}  b buses  z zero  space pause  ↑↓",
            self.sort.name()
        );
        vec![(Style::Head, text)]
    }
}

fn plural(count: usize, one: &str, more: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { more })
}

/// Width of the column of buses.
fn width(census: &Census) -> usize {
    census.buses.values().map(|bus| bus.interface.name.chars().count()).max().unwrap_or(0).max(3)
}

fn name<'a>(census: &'a Census, key: &Key) -> &'a str {
    census.buses.get(&key.interface).map_or("?", |bus| &bus.interface.name)
}

/// An identifier in candump's notation.
fn identifier(key: &Key) -> String {
    let id = key.id & EFF_MASK;
    if key.id & EFF_FLAG != 0 { format!("{id:08X}") } else { format!("{id:03X}") }
}

/// The columns before the data, so narrow that 8 bytes of data fit into 80 characters.
fn cells(cells: [impl AsRef<str>; 5]) -> String {
    let [len, rate, period, jitter, count] = cells.each_ref().map(AsRef::as_ref);
    format!("{len:>5} {rate:>7} {period:>7} {jitter:>7} {count:>8}")
}

fn row_line(census: &Census, key: &Key, row: &Row, width: usize) -> Line {
    let frame = &row.frame;
    let len = format!("{}{}", frame.len, if frame.is_fd() { " FD" } else { "" });
    let span = |ns: Option<u64>| ns.map_or("–".to_owned(), units::span);
    let cells = cells([
        len,
        format!("{:.1}", row.frames_per_s),
        span(row.period_ns()),
        span(row.gap_ns.map(|_| row.jitter_ns())),
        row.count.to_string(),
    ]);
    let mut line =
        vec![(Style::Plain, format!("{:width$} {:<8} {cells} ", name(census, key), identifier(key)))];
    if frame.is_rtr() {
        line.push((Style::Plain, " remote request".to_owned()));
    }
    let since_ns = census.now_ns.saturating_sub(CHANGED_NS);
    for (at, byte) in frame.data().iter().enumerate() {
        let style = if row.changed_since(at, since_ns) { Style::Changed } else { Style::Plain };
        line.push((Style::Plain, " ".to_owned()));
        line.push((style, format!("{byte:02X}")));
    }
    line
}

/// The text of lines, without styles and without spaces at their ends.
pub fn plain(lines: &[Line]) -> String {
    let text = |line: &Line| {
        line.iter().map(|(_, text)| text.as_str()).collect::<String>().trim_end().to_owned() + "\n"
    };
    lines.iter().map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::{
        super::census::tests::{bus, received},
        *,
    };
    use canter_io::{
        frame::BitRate,
        interface::{Controller, Counters, State},
    };
    use std::{env, fs, path::Path};

    /// Three buses in different states, and frames of every kind for two seconds.
    fn census() -> Census {
        let mut census = Census::new(0, 1_000_000_000);
        let rate = Some(BitRate::classic(500_000));
        for (index, name, state) in
            [(1, "can0", Some(State::ErrorActive)), (2, "can1", Some(State::BusOff)), (3, "vcan0", None)]
        {
            let mut interface = bus(name, index, state);
            interface.controller =
                state.map(|state| Controller { state: Some(state), ..Controller::default() });
            let rate = rate.filter(|_| state.is_some());
            census.update_bus(interface.clone(), None, rate, Counters::default());
            let lost = if index == 2 { 7 } else { 0 };
            census.update_bus(
                interface,
                None,
                rate,
                Counters { rx_over_errors: lost, ..Counters::default() },
            );
        }
        for ms in 0..2000 {
            if ms == 1000 {
                census.end_interval(1_100_000_000, 0);
            }
            if ms % 10 == 0 {
                census.count(&received(
                    1,
                    ms + ms / 10 % 2,
                    &format!("0C9#00{:02X}CCCCCCCCCCCC", ms / 10 % 256),
                ));
            }
            if ms % 100 == 0 {
                census.count(&received(1, ms, "18DA10F1#0210"));
                census.count(&received(3, ms, &format!("123##5{}", "AB".repeat(12))));
            }
            if ms % 500 == 0 {
                census.count(&received(3, ms, "7FF#R4"));
                census.count(&received(2, ms, "20000004#0000000000000000"));
            }
        }
        census.count(&received(3, 1999, "001#"));
        census.end_interval(2_100_000_000, 0);
        census
    }

    fn size(lines: usize) -> Size {
        Size { lines, columns: 80 }
    }

    /// `count` buses of 500 kbit/s with one identifier each; one is bus-off, one lost frames, the last one had errors.
    fn many(count: u32) -> Census {
        let mut census = Census::new(0, 1_000_000_000);
        for index in 0..count {
            let state = if index == 3 { State::BusOff } else { State::ErrorActive };
            let mut interface = bus(&format!("vcan{index}"), index, Some(state));
            interface.controller = Some(Controller { state: Some(state), ..Controller::default() });
            let rate = Some(BitRate::classic(500_000));
            census.update_bus(interface.clone(), None, rate, Counters::default());
            let lost = if index == 5 { 12 } else { 0 };
            census.update_bus(
                interface,
                None,
                rate,
                Counters { rx_over_errors: lost, ..Counters::default() },
            );
            for ms in (0..1000).step_by(index as usize + 1) {
                census.count(&received(index, ms, &format!("{:03X}#0011223344556677", 0x100 + index)));
            }
        }
        census.count(&received(count - 1, 500, "20000004#0000000000000000"));
        census.end_interval(1_100_000_000, 0);
        census
    }

    /// Changed bytes in brackets, alarms in exclamation marks.
    fn marked(lines: &[Line]) -> String {
        let mark = |(style, text): &(Style, String)| match style {
            Style::Plain | Style::Head => text.clone(),
            Style::Changed => format!("[{text}]"),
            Style::Alarm => format!("!{text}!"),
        };
        let text = |line: &Line| line.iter().map(mark).collect::<String>().trim_end().to_owned() + "\n";
        lines.iter().map(text).collect()
    }

    #[test]
    fn the_screen_equals_the_golden_file() {
        let census = census();
        let paused = View { sort: Sort::Rate, filter: "c".into(), paused: true, first: 1, ..View::default() };
        let mut beyond = census.clone();
        (beyond.lost, beyond.beyond) = (5, 904);
        let screens = [
            ("as a table", View::default().lines(&census, Size::TABLE)),
            ("on a screen of 14 lines", View::default().lines(&census, size(14))),
            ("on a screen of 10 lines, by rate, only what has a c, paused", paused.lines(&beyond, size(10))),
            ("20 buses on a screen of 24 lines", View::default().lines(&many(20), size(24))),
            ("70 buses on a screen of 24 lines", View::default().lines(&many(70), size(24))),
            ("20 buses on a screen of 50 lines", View::default().lines(&many(20), size(50))),
            ("20 buses, hidden", View { buses: Buses::Hidden, ..View::default() }.lines(&many(20), size(8))),
            ("nothing there", View::default().lines(&Census::new(0, 1_000_000_000), size(6))),
        ];
        let text: String =
            screens.iter().map(|(title, lines)| format!("── {title} ──\n{}\n", marked(lines))).collect();
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/top.txt");
        if env::var_os("UPDATE").is_some() {
            fs::write(&path, &text).unwrap();
        }
        assert_eq!(text, fs::read_to_string(path).unwrap(), "UPDATE=1 records it");
    }

    #[test]
    fn a_screen_has_as_many_lines_as_there_is_room_for() {
        let census = census();
        for height in 1..40 {
            assert_eq!(View::default().lines(&census, size(height)).len(), height);
            assert_eq!(View::default().lines(&many(20), size(height)).len(), height);
        }
    }

    #[test]
    fn rows_are_sorted_by_each_key() {
        let census = census();
        for (sort, first) in [
            (Sort::Bus, "0C9"),
            (Sort::Id, "001"),
            (Sort::Rate, "0C9"),
            (Sort::Period, "0C9"),
            (Sort::Jitter, "0C9"),
            (Sort::Count, "0C9"),
            (Sort::Last, "001"),
        ] {
            let rows = View { sort, ..View::default() }.rows(&census).len();
            let top = |reverse| identifier(View { sort, reverse, ..View::default() }.rows(&census)[0].0);
            assert_eq!((top(false).as_str(), rows), (first, 5), "{sort:?}");
            assert_ne!(top(true), first, "{sort:?}");
        }
    }
}

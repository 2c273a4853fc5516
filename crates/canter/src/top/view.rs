//! The output of `canter top`: lines of styled text from a census and the user's settings. Does not access the terminal.

mod buses;
mod identifiers;
mod signals;

use super::{
    census::{Bus, Census, Key, Row},
    names::{Shown, Signals},
};
pub use buses::Buses;
use canter_io::frame::{EFF_FLAG, EFF_MASK};
use clap::ValueEnum;
pub use identifiers::notation;
use identifiers::{Layout, identifier};

/// The style of a piece of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    Plain,
    /// Heads of tables.
    Head,
    /// The heading of a bus.
    Bus,
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
    /// A printed table, with the columns of such a terminal and as many lines as there are.
    pub fn table(columns: usize) -> Self {
        Self { lines: usize::MAX, columns }
    }

    fn is_table(self) -> bool {
        self.lines == usize::MAX
    }
}

/// Why there is nothing to show.
pub const NO_INTERFACE: &str =
    "this machine has no CAN interface (ip link add vcan0 type vcan, or canter lab)";

/// A line of the screen.
pub type Line = Vec<(Style, String)>;

/// A line of the list of identifiers.
pub enum Item<'a> {
    /// A bus, above its identifiers.
    Bus(&'a Bus),
    Row(&'a Key, &'a Row<'a>),
    /// Signals, below the row of their identifier.
    Signals(Line),
}

/// Sort key of the rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Sort {
    /// Bus, then identifier: each bus is a heading above its identifiers
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
    /// Only rows whose bus, identifier or name contains this, and signals whose name contains it.
    pub filter: String,
    /// Whether the filter is being typed.
    pub typing: bool,
    pub paused: bool,
    pub buses: Buses,
    /// Whether rows are without their signals.
    pub names_only: bool,
    /// The first row on the screen.
    pub first: usize,
}

impl View {
    /// Whether the filter passes a row with all of its signals.
    fn passes(&self, census: &Census<'_>, key: &Key, row: &Row<'_>) -> bool {
        let wanted = self.filter.to_uppercase();
        let message = row.signals.as_ref().map_or("", |signals| &signals.message.name);
        identifier(key).contains(&wanted)
            || [name(census, key), message].iter().any(|name| name.to_uppercase().contains(&wanted))
    }

    /// The signals of a row that pass the filter: all, unless the row is shown because of the names of its signals.
    pub fn signals<'a>(&self, census: &Census<'_>, key: &Key, row: &'a Row<'a>) -> Vec<Shown<'a>> {
        let is_whole = self.passes(census, key, row);
        let wanted = self.filter.to_uppercase();
        let signals = row.signals.iter().flat_map(Signals::shown);
        signals.filter(|one| is_whole || one.name.to_uppercase().contains(&wanted)).collect()
    }

    /// The rows that pass the filter, sorted.
    pub fn rows<'a>(&self, census: &'a Census<'a>) -> Vec<(&'a Key, &'a Row<'a>)> {
        let wanted = self.filter.to_uppercase();
        let is_shown = |key: &Key, row: &Row<'_>| {
            let has_signal = || row.signals.as_ref().is_some_and(|signals| signals.has_signal_with(&wanted));
            self.passes(census, key, row) || has_signal()
        };
        let mut rows: Vec<(&Key, &Row<'_>)> =
            census.rows.iter().filter(|(key, row)| is_shown(key, row)).collect();
        let order = |(key, row): &(&Key, &Row<'_>)| -> (u64, u64) {
            let id = u64::from(key.id & EFF_MASK) << 1 | u64::from(key.id & EFF_FLAG != 0);
            match self.sort {
                Sort::Bus => (key.interface.into(), id),
                Sort::Id => (id, key.interface.into()),
                Sort::Rate => (u64::MAX - (row.frames_per_s * 1000.0) as u64, id),
                Sort::Period => (row.period.map_or(u64::MAX, |period| period.median_ns), id),
                Sort::Jitter => (u64::MAX - row.period.map_or(0, |period| period.jitter_ns), id),
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

    /// Whether the list has the buses as headings.
    fn is_grouped(&self) -> bool {
        self.sort == Sort::Bus
    }

    /// The list: rows, with a heading above those of each bus when they are sorted by bus, and signals below. A bus without
    /// rows has a heading, too, unless the filter leaves it out.
    pub fn items<'a>(&self, census: &'a Census<'a>, size: Size) -> Vec<Item<'a>> {
        let mut rows = self.rows(census);
        let mut items = Vec::new();
        let append = |items: &mut Vec<Item<'a>>, (key, row): (&'a Key, &'a Row<'a>)| {
            items.push(Item::Row(key, row));
            if let Some(signals) = row.signals.as_ref().filter(|_| !self.names_only) {
                let shown = self.signals(census, key, row);
                items.extend(signals::lines(signals, shown, census.now_ns, size.columns).map(Item::Signals));
            }
        };
        if !self.is_grouped() {
            rows.into_iter().for_each(|row| append(&mut items, row));
            return items;
        }
        let wanted = self.filter.to_uppercase();
        let mut buses = buses::in_order(census);
        if self.reverse {
            buses.reverse();
        }
        for bus in buses {
            let mine: Vec<_> = rows.extract_if(.., |(key, _)| key.interface == bus.interface.index).collect();
            if !mine.is_empty() || bus.interface.name.to_uppercase().contains(&wanted) {
                items.push(Item::Bus(bus));
                mine.into_iter().for_each(|row| append(&mut items, row));
            }
        }
        items
    }

    fn layout(&self, census: &Census<'_>, size: Size) -> Layout {
        let names = census.rows.values().filter_map(|row| row.signals.as_ref());
        let longest = names.map(|signals| signals.message.name.chars().count()).max();
        let name = census.has_names().then(|| longest.unwrap_or(0));
        Layout::new((!self.is_grouped()).then(|| width(census)), name, size.columns)
    }

    /// The lines above the list. The buses are in it already when all of it fits on the screen.
    fn head(&self, census: &Census<'_>, size: Size, items: usize) -> Vec<Line> {
        let mut lines = vec![self.summary(census)];
        // The summary, an empty line, the head of the identifiers and the keys always take four lines.
        let room = size.lines.saturating_sub(4);
        let is_grouped = self.is_grouped();
        let fits = is_grouped && self.buses == Buses::Fit && items <= room.saturating_add(1);
        let buses = if fits { Vec::new() } else { self.buses.lines(census, room, size.columns, is_grouped) };
        if !buses.is_empty() {
            lines.extend(buses);
            lines.push(Line::new());
        }
        lines.push(self.layout(census, size).head());
        lines
    }

    /// The number of the list's lines by which a page scrolls: the heading of a bus stays.
    pub fn room(&self, census: &Census<'_>, size: Size) -> usize {
        let head = self.head(census, size, self.items(census, size).len());
        size.lines.saturating_sub(head.len() + 1 + usize::from(self.is_grouped()))
    }

    /// All lines, with those of the list that fit on the screen.
    pub fn lines(&self, census: &Census<'_>, size: Size) -> Vec<Line> {
        let items = self.items(census, size);
        let mut lines = self.head(census, size, items.len());
        if census.buses.is_empty() {
            lines.push(vec![(Style::Alarm, NO_INTERFACE.to_owned())]);
        }
        let (layout, width) = (self.layout(census, size), width(census));
        let mut room = size.lines.saturating_sub(lines.len() + 1);
        let page = if items.len() > room { room - usize::from(self.is_grouped() && room > 1) } else { room };
        let first = self.first.min(items.len().saturating_sub(page));
        if let Some(bus) = heading(&items, first)
            && page < room
        {
            lines.push(buses::heading(bus, width, size.columns));
            room = page;
        }
        for item in items.iter().skip(first).take(room) {
            lines.push(match item {
                Item::Bus(bus) => buses::heading(bus, width, size.columns),
                Item::Row(key, row) => layout.row(census, key, row),
                Item::Signals(line) => line.clone(),
            });
        }
        if !size.is_table() {
            lines.truncate(size.lines.saturating_sub(1));
            lines.resize(size.lines.saturating_sub(1), Line::new());
            lines.push(self.keys(census.has_names(), items.len(), first, room));
        }
        lines
    }

    fn summary(&self, census: &Census<'_>) -> Line {
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
        alarm(census.broken(), "transported messages not complete");
        if census.is_unknown() {
            line.push((Style::Alarm, ", the databases know no identifier: wrong database?".to_owned()));
        }
        if self.paused {
            line.push((Style::Alarm, ", PAUSED".to_owned()));
        }
        line
    }

    fn keys(&self, has_names: bool, rows: usize, first: usize, room: usize) -> Line {
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
        let values = match (has_names, self.names_only) {
            (false, _) => "",
            (true, false) => "  v names only",
            (true, true) => "  v values",
        };
        // A narrow screen clips the end.
        let text = format!(
            "q quit  s sort: {}{order}  r reverse  / {filter}{shown}{values}  b buses  z zero  space pause  ↑↓",
            self.sort.name()
        );
        vec![(Style::Head, text)]
    }
}

fn plural(count: usize, one: &str, more: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { more })
}

/// Width of the column of buses.
fn width(census: &Census<'_>) -> usize {
    census.buses.values().map(|bus| bus.interface.name.chars().count()).max().unwrap_or(0).max(3)
}

fn name<'a>(census: &'a Census<'_>, key: &Key) -> &'a str {
    census.buses.get(&key.interface).map_or("?", |bus| &bus.interface.name)
}

/// The bus of the first row on the screen, when its heading is above the screen.
fn heading<'a>(items: &[Item<'a>], first: usize) -> Option<&'a Bus> {
    if matches!(items.get(first), None | Some(Item::Bus(_))) {
        return None;
    }
    let above = items[..first].iter().rev();
    above.into_iter().find_map(|item| if let Item::Bus(bus) = item { Some(*bus) } else { None })
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
        super::{
            census::tests::{bus, received},
            names::Names,
        },
        *,
    };
    use crate::databases::Databases;
    use canter_io::{
        frame::BitRate,
        interface::{Controller, Counters, State},
    };
    use std::{env, fs, path::Path};

    const DATABASE: &str = "\
BO_ 201 EngineData: 8 ECU
 SG_ EngineSpeed : 8|16@1+ (0.25,0) [0|0] \"rpm\" Dash
 SG_ Temperature : 24|8@1+ (1,-40) [0|0] \"°C\" Dash
 SG_ Gear : 0|4@1+ (1,0) [0|0] \"\" Dash
 SG_ FuelConsumptionSinceTheLastStartOfTheEngine : 32|32@1+ (0.001,0) [0|0] \"l\" Dash

BO_ 2564428017 Diagnosis: 2 ECU
 SG_ Service M : 0|8@1+ (1,0) [0|0] \"\" Dash
 SG_ Session m16 : 8|8@1+ (1,0) [0|0] \"\" Dash

BO_ 291 AMessageWithANameOf30Letters0: 16 ECU
 SG_ First : 0|8@1+ (1,0) [0|0] \"\" Dash
 SG_ Last : 120|8@1+ (1,0) [0|0] \"\" Dash

BO_ 2047 Asked: 8 ECU
 SG_ Answer : 0|8@1+ (1,0) [0|0] \"\" Dash

VAL_ 201 Gear 0 \"Neutral\" 1 \"First\" ;
";

    /// The messages of a database file with this text.
    fn names(text: &str) -> &'static Names<'static> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("car.dbc");
        fs::write(&path, text).unwrap();
        let databases = Databases::open(&[path.to_str().unwrap().parse().unwrap()]).unwrap();
        Box::leak(Box::new(Names::new(Box::leak(Box::new(databases)))))
    }

    fn census() -> Census<'static> {
        filled(Census::new(0, 1_000_000_000))
    }

    /// Three buses in different states, and frames of every kind for two seconds.
    fn filled(mut census: Census<'static>) -> Census<'static> {
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
    fn many(count: u32) -> Census<'static> {
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
            Style::Plain | Style::Head | Style::Bus => text.clone(),
            Style::Changed => format!("[{text}]"),
            Style::Alarm if text.is_empty() => String::new(),
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
        let named = filled(Census::new(0, 1_000_000_000).with_names(names(DATABASE)));
        let other = names("BO_ 5 Other: 8 ECU\n");
        let screens = [
            ("as a table", View::default().lines(&census, Size::table(80))),
            ("on a screen of 100 columns", View::default().lines(&census, Size { lines: 14, columns: 100 })),
            ("as a table of 40 columns", View::default().lines(&census, Size::table(40))),
            ("on a screen of 14 lines", View::default().lines(&census, size(14))),
            ("on a screen of 10 lines, by rate, only what has a c, paused", paused.lines(&beyond, size(10))),
            ("20 buses on a screen of 24 lines", View::default().lines(&many(20), size(24))),
            (
                "20 buses on a screen of 24 lines, scrolled",
                View { first: 3, ..View::default() }.lines(&many(20), size(24)),
            ),
            (
                "20 buses on a screen of 24 lines, at the end",
                View { first: 1000, ..View::default() }.lines(&many(20), size(24)),
            ),
            (
                "20 buses on a screen of 24 lines, by rate",
                View { sort: Sort::Rate, ..View::default() }.lines(&many(20), size(24)),
            ),
            ("70 buses on a screen of 24 lines", View::default().lines(&many(70), size(24))),
            ("20 buses on a screen of 50 lines", View::default().lines(&many(20), size(50))),
            ("20 buses, hidden", View { buses: Buses::Hidden, ..View::default() }.lines(&many(20), size(8))),
            ("with names", View::default().lines(&named, size(20))),
            ("with names, 120 columns", View::default().lines(&named, Size { lines: 20, columns: 120 })),
            ("with names, 40 columns", View::default().lines(&named, Size { lines: 24, columns: 40 })),
            (
                "with names only, by rate",
                View { names_only: true, sort: Sort::Rate, ..View::default() }.lines(&named, size(13)),
            ),
            (
                "with names, only speed",
                View { filter: "speed".into(), ..View::default() }.lines(&named, size(10)),
            ),
            (
                "with names, only Diagnosis, as a table",
                View { filter: "diagnosis".into(), ..View::default() }.lines(&named, Size::table(80)),
            ),
            (
                "with the names of another car",
                View::default().lines(&filled(Census::new(0, 1_000_000_000).with_names(other)), size(14)),
            ),
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
        let named = filled(Census::new(0, 1_000_000_000).with_names(names(DATABASE)));
        for height in 1..40 {
            assert_eq!(View::default().lines(&census, size(height)).len(), height);
            assert_eq!(View::default().lines(&many(20), size(height)).len(), height);
            assert_eq!(View::default().lines(&named, size(height)).len(), height);
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

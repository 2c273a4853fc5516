//! Two recordings compared: identifiers that are new or vanished, periods and lengths that changed.

use super::{
    census::{Census, Key, Row},
    order::{Sort, sorted},
    summary::{lengths, name},
};
use crate::databases::{Databases, known_message};
use canter_cli::{
    terminal::{GREEN, Ink, PLAIN, RED, Style, Table, YELLOW},
    units::{self, counted},
};
use serde::Serialize;
use std::collections::HashMap;

/// The kind of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    New,
    Vanished,
    Period,
    Length,
}

/// A difference of an identifier.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    pub change: Change,
    pub bus: String,
    pub id: String,
    /// The identifier with its flags.
    #[serde(skip)]
    number: u32,
    /// The name of the message, by the databases of `--dbc`.
    pub name: Option<String>,
    /// The value in the first recording.
    pub before: String,
    /// The value in the second recording.
    pub after: String,
}

/// The document of `canter info --compare --json`.
#[derive(Serialize)]
pub struct Comparison {
    pub max_change_percent: f64,
    /// Identifiers that both recordings have.
    pub common: u64,
    pub differences: Vec<Difference>,
}

impl Comparison {
    /// Compares periods with a bound in percent; lengths must be the same. Periods of identifiers that are not periodic in
    /// both recordings are not compared.
    pub fn new(before: &Census, after: &Census, max_change_percent: f64) -> Self {
        let named = |census: &Census, key: &Key| (census.buses[key.bus].name.clone(), key.id);
        let known: HashMap<(String, u32), &Row> =
            before.rows.iter().map(|(key, row)| (named(before, key), row)).collect();
        let mut found = HashMap::new();
        let mut comparison = Self { max_change_percent, common: 0, differences: Vec::new() };
        for (key, row) in sorted(after, Sort::Bus, false) {
            let place = named(after, key);
            match known.get(&place) {
                None => comparison.add(Change::New, &place, String::new(), content(row)),
                Some(old) => comparison.compare(&place, old, row),
            }
            found.insert(place, ());
        }
        for (key, row) in sorted(before, Sort::Bus, false) {
            let place = named(before, key);
            if !found.contains_key(&place) {
                comparison.add(Change::Vanished, &place, content(row), String::new());
            }
        }
        comparison.differences.sort_by_key(|difference| difference.change as u8);
        comparison
    }

    fn compare(&mut self, place: &(String, u32), old: &Row, new: &Row) {
        self.common += 1;
        if (old.len, old.fd) != (new.len, new.fd) {
            self.add(Change::Length, place, lengths(old), lengths(new));
        }
        let steady = |row: &Row| row.period().filter(|period| period.missing.is_some());
        if let (Some(one), Some(other)) = (steady(old), steady(new)) {
            let (before, after) = (one.median_ns.max(1), other.median_ns.max(1));
            let change = before.abs_diff(after) as f64 / before as f64 * 100.0;
            if change > self.max_change_percent {
                self.add(Change::Period, place, units::span(before), units::span(after));
            }
        }
    }

    fn add(&mut self, change: Change, place: &(String, u32), before: String, after: String) {
        let (bus, id) = (place.0.clone(), name(place.1));
        self.differences.push(Difference { change, bus, id, number: place.1, name: None, before, after });
    }

    /// Gives the differences the names of their messages.
    pub fn name_messages(&mut self, databases: &Databases) {
        let mut codebooks = HashMap::new();
        for one in self.differences.iter_mut().filter(|_| !databases.is_empty()) {
            let codebook = codebooks.entry(one.bus.clone()).or_insert_with_key(|bus| databases.codebook(bus));
            one.name = known_message(codebook, one.number).map(|message| message.name.clone());
        }
    }

    /// A table of the differences, and a sentence.
    pub fn text(&self, ink: Ink) -> String {
        let mut out = String::new();
        let mut table = Table::new(&["<change", "<bus", "<id", "<name", "before", "after"]);
        for difference in &self.differences {
            let (word, style) = difference.change.word();
            let Difference { bus, id, name, before, after, .. } = difference.clone();
            let cells = [bus, id, name.unwrap_or_default(), before, after].map(|text| (text, PLAIN));
            let [bus, id, name, before, after] = cells;
            table.row([(word.to_owned(), style), bus, id, name, before, after]);
        }
        if !self.differences.is_empty() {
            table.print(&mut out, ink);
        }
        let differences = match self.differences.len() {
            0 => "no differences".to_owned(),
            count => counted(count as u64, "difference"),
        };
        let identifiers = counted(self.common, "identifier");
        out += &format!("{differences}; both recordings have {identifiers} in common\n");
        out.replace('\u{202f}', " ")
    }
}

impl Change {
    fn word(self) -> (&'static str, Style) {
        match self {
            Self::New => ("new", GREEN),
            Self::Vanished => ("vanished", RED),
            Self::Period => ("period", YELLOW),
            Self::Length => ("length", YELLOW),
        }
    }
}

/// An identifier's frames: how many, how long, how often.
fn content(row: &Row) -> String {
    let every = row.period().filter(|period| period.missing.is_some());
    let every = every.map_or(String::new(), |period| format!(" every {}", units::span(period.median_ns)));
    format!("{}{every}", counted(row.count, "frame"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use canter_frame::{BusId, Record};

    /// Identifiers with their period in ms, and their data.
    fn census(bus: &str, frames: &[(&str, u64)]) -> Census {
        let mut census = Census::default();
        census.add_bus(bus, None);
        for (text, period_ms) in frames {
            for n in 0..20 {
                let frame = text.parse().unwrap();
                let stamp_ns = n * period_ms * 1_000_000;
                census.count(&Record { stamp_ns, bus: BusId(0), frame, direction: None });
            }
        }
        census.finish();
        census
    }

    #[test]
    fn each_kind_of_difference_is_found_and_small_changes_are_none() {
        let before = census("can0", &[("001#", 10), ("002#00", 10), ("003#", 10), ("004#", 100)]);
        let after = census("can0", &[("001#", 20), ("002#0000", 10), ("004#", 105), ("18DA10F1#", 10)]);
        let comparison = Comparison::new(&before, &after, 10.0);
        let found: Vec<_> = comparison.differences.iter().map(|one| (one.change, one.id.as_str())).collect();
        let wanted = [
            (Change::New, "18DA10F1"),
            (Change::Vanished, "003"),
            (Change::Period, "001"),
            (Change::Length, "002"),
        ];
        assert_eq!((found.as_slice(), comparison.common), (&wanted[..], 3));
        let text = comparison.text(Ink::none());
        assert!(text.contains("  period    can0  001"), "{text}");
        assert!(text.ends_with("4 differences; both recordings have 3 identifiers in common\n"), "{text}");
        let same = Comparison::new(&before, &before, 10.0);
        assert_eq!(same.text(Ink::none()), "no differences; both recordings have 4 identifiers in common\n");
    }
}

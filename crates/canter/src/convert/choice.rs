//! Selects frames and names their buses. Interfaces are renamed first, so filters use the new names.

use super::time_point::TimePoint;
use canter_formats::Zone;
use canter_frame::{BusId, Record};
use canter_io::{Filters, InterfaceFilters};
use std::str::FromStr;

/// A new name of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rename {
    old: String,
    new: String,
}

impl FromStr for Rename {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let valid = |name: &str| !name.is_empty() && !name.contains(['/', ' ', '\t', '\n', '=']);
        match text.split_once('=') {
            Some((old, new)) if valid(old) && valid(new) && new.len() < 16 => {
                Ok(Self { old: old.to_owned(), new: new.to_owned() })
            }
            _ => Err(format!("{text:?} is not OLD=NEW with names of at most 15 bytes (can0=body)")),
        }
    }
}

/// The decision on an interface of a recording.
#[derive(Clone, Debug)]
enum Decision {
    /// Drop all frames of the interface.
    Drop,
    /// Keep the frames that pass the filters. The number is the index of the interface's new name in `names`.
    Keep(usize, Option<Filters>),
}

/// The selection of frames.
pub struct Choice<'a> {
    renames: &'a [Rename],
    filters: &'a [InterfaceFilters],
    from: Option<TimePoint>,
    to: Option<TimePoint>,
    /// The zone of dates without one.
    zone: Zone,
    /// The stamps of `from` and `to`, once the first frame is known.
    range: Option<(u64, u64)>,
    /// What was decided, by recording and interface.
    decisions: Vec<Vec<Option<Decision>>>,
    names: Vec<String>,
    /// The bus of each name; a bus gets its number with its first frame.
    buses: Vec<Option<BusId>>,
    /// The index in `names` of each bus.
    name_of_bus: Vec<usize>,
}

impl<'a> Choice<'a> {
    pub fn new(
        renames: &'a [Rename],
        filters: &'a [InterfaceFilters],
        from: Option<TimePoint>,
        to: Option<TimePoint>,
        zone: Zone,
    ) -> Self {
        Self {
            renames,
            filters,
            from,
            to,
            zone,
            range: None,
            decisions: Vec::new(),
            names: Vec::new(),
            buses: Vec::new(),
            name_of_bus: Vec::new(),
        }
    }

    /// The bus of a frame; `None` when the frame is not selected. Buses are numbered in the order of their first frames.
    #[inline]
    pub fn bus<'n>(
        &mut self,
        input: usize,
        entry: &Record,
        name: impl FnOnce(BusId) -> &'n str,
    ) -> Option<BusId> {
        let (from, to) = match self.range {
            Some(range) => range,
            None => self.begin(entry.stamp_ns),
        };
        if entry.stamp_ns < from || entry.stamp_ns >= to {
            return None;
        }
        let interface = entry.bus.index();
        if self.decisions.get(input).and_then(|decisions| decisions.get(interface)?.as_ref()).is_none() {
            let decision = self.decide(name(entry.bus));
            store(&mut self.decisions, input, interface, decision);
        }
        let Some(Decision::Keep(at, filters)) = &self.decisions[input][interface] else { return None };
        if filters.as_ref().is_some_and(|filters| !filters.matches(&entry.frame)) {
            return None;
        }
        if self.buses[*at].is_none() {
            self.buses[*at] = Some(BusId(self.name_of_bus.len() as u32));
            self.name_of_bus.push(*at);
        }
        self.buses[*at]
    }

    #[cold]
    fn begin(&mut self, first_ns: u64) -> (u64, u64) {
        let from = self.from.map_or(0, |from| from.ns(first_ns, &self.zone));
        let to = self.to.map_or(u64::MAX, |to| to.ns(first_ns, &self.zone));
        *self.range.insert((from, to))
    }

    #[cold]
    fn decide(&mut self, name: &str) -> Decision {
        let name = self.renames.iter().find(|rename| rename.old == name).map_or(name, |rename| &rename.new);
        let named = |wanted: &str| self.filters.iter().find(|one| one.interface == wanted);
        let filters = match (self.filters, named(name).or_else(|| named("any"))) {
            ([], _) => None,
            (_, None) => return Decision::Drop,
            // Without filters everything passes, error frames too.
            (_, Some(wanted)) => {
                Some(wanted.filters.clone()).filter(|filters| *filters != Filters::default())
            }
        };
        let at = self.names.iter().position(|known| known == name).unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.buses.push(None);
            self.names.len() - 1
        });
        Decision::Keep(at, filters)
    }

    /// The name of a bus.
    pub fn name(&self, bus: BusId) -> &str {
        self.name_of_bus.get(bus.index()).map_or("?", |&at| &self.names[at])
    }
}

fn store(decisions: &mut Vec<Vec<Option<Decision>>>, input: usize, interface: usize, decision: Decision) {
    if decisions.len() <= input {
        decisions.resize(input + 1, Vec::new());
    }
    let interfaces = &mut decisions[input];
    if interfaces.len() <= interface {
        interfaces.resize(interface + 1, None);
    }
    interfaces[interface] = Some(decision);
}

#[cfg(test)]
mod tests {
    use super::*;
    use canter_io::Frame;

    fn entry(bus: u32, frame: &str, stamp_ns: u64) -> Record {
        Record { stamp_ns, bus: BusId(bus), frame: frame.parse::<Frame>().unwrap(), direction: None }
    }

    #[test]
    fn buses_are_numbered_by_their_first_selected_frame_and_renamed_before_they_are_filtered() {
        let renames: Vec<Rename> = ["can0=body", "can2=body"].map(|text| text.parse().unwrap()).into();
        let filters: Vec<InterfaceFilters> =
            ["body,100:700", "can1"].map(|text| InterfaceFilters::parse(text).unwrap()).into();
        let mut choice = Choice::new(&renames, &filters, None, None, Zone::default());
        let names = ["can0", "can1", "can2", "can3"];
        let mut bus = |bus: u32, frame| choice.bus(0, &entry(bus, frame, 5), |bus| names[bus.index()]);
        assert_eq!(bus(0, "300#"), None); // no frame passes: no bus
        assert_eq!(bus(1, "20000004#0000000000000000"), Some(BusId(0)));
        assert_eq!(bus(2, "123#"), Some(BusId(1)));
        assert_eq!(bus(0, "124#"), Some(BusId(1)));
        assert_eq!(bus(3, "123#"), None);
        assert_eq!([choice.name(BusId(0)), choice.name(BusId(1))], ["can1", "body"]);
    }

    #[test]
    fn a_range_counts_from_the_first_frame_and_excludes_its_end() {
        let (from, to) = ("+10ns".parse().unwrap(), "+20ns".parse().unwrap());
        let mut choice = Choice::new(&[], &[], Some(from), Some(to), Zone::default());
        let taken: Vec<bool> = [1000, 1009, 1010, 1019, 1020]
            .map(|stamp| choice.bus(0, &entry(0, "001#", stamp), |_| "can0").is_some())
            .into();
        assert_eq!(taken, [false, false, true, true, false]);
    }
}

//! Which frames are taken, and what their buses are called: renamed first, so that filters know the new names.

use super::moment::Moment;
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
        let whole = |name: &str| !name.is_empty() && !name.contains(['/', ' ', '\t', '\n', '=']);
        match text.split_once('=') {
            Some((old, new)) if whole(old) && whole(new) && new.len() < 16 => {
                Ok(Self { old: old.to_owned(), new: new.to_owned() })
            }
            _ => Err(format!("{text:?} is not OLD=NEW, names of at most 15 bytes (can0=body)")),
        }
    }
}

/// What becomes of a recording's interface.
#[derive(Clone, Debug)]
enum Fate {
    /// No frames of it.
    Left,
    /// Its name's place in `names`, and what passes.
    Taken(usize, Option<Filters>),
}

/// The choice.
pub struct Choice<'a> {
    renames: &'a [Rename],
    filters: &'a [InterfaceFilters],
    from: Option<Moment>,
    to: Option<Moment>,
    /// The stamps of `from` and `to`, once the first frame is known.
    range: Option<(u64, u64)>,
    /// By recording and interface.
    fates: Vec<Vec<Option<Fate>>>,
    names: Vec<String>,
    /// The numbers of the names whose frames were taken: buses are numbered when they have a frame.
    buses: Vec<Option<BusId>>,
    taken: Vec<usize>,
}

impl<'a> Choice<'a> {
    pub fn new(
        renames: &'a [Rename],
        filters: &'a [InterfaceFilters],
        from: Option<Moment>,
        to: Option<Moment>,
    ) -> Self {
        Self {
            renames,
            filters,
            from,
            to,
            range: None,
            fates: Vec::new(),
            names: Vec::new(),
            buses: Vec::new(),
            taken: Vec::new(),
        }
    }

    /// The bus of a frame, numbered in the order of their first frames; `None`: it is not wanted.
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
        let at = entry.bus.index();
        if self.fates.get(input).and_then(|fates| fates.get(at)?.as_ref()).is_none() {
            let fate = self.fate(name(entry.bus));
            remember(&mut self.fates, input, at, fate);
        }
        let Some(Fate::Taken(place, filters)) = &self.fates[input][at] else { return None };
        if filters.as_ref().is_some_and(|filters| !filters.matches(&entry.frame)) {
            return None;
        }
        if self.buses[*place].is_none() {
            self.buses[*place] = Some(BusId(self.taken.len() as u32));
            self.taken.push(*place);
        }
        self.buses[*place]
    }

    #[cold]
    fn begin(&mut self, first_ns: u64) -> (u64, u64) {
        let from = self.from.map_or(0, |moment| moment.ns(first_ns));
        let to = self.to.map_or(u64::MAX, |moment| moment.ns(first_ns));
        *self.range.insert((from, to))
    }

    #[cold]
    fn fate(&mut self, name: &str) -> Fate {
        let name = self.renames.iter().find(|rename| rename.old == name).map_or(name, |rename| &rename.new);
        let named = |wanted: &str| self.filters.iter().find(|one| one.interface == wanted);
        let filters = match (self.filters, named(name).or_else(|| named("any"))) {
            ([], _) => None,
            (_, None) => return Fate::Left,
            // Without filters everything passes, error frames too.
            (_, Some(wanted)) => {
                Some(wanted.filters.clone()).filter(|filters| *filters != Filters::default())
            }
        };
        let place = self.names.iter().position(|known| known == name).unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.buses.push(None);
            self.names.len() - 1
        });
        Fate::Taken(place, filters)
    }

    /// The name of a bus.
    pub fn name(&self, bus: BusId) -> &str {
        self.taken.get(bus.index()).map_or("?", |&place| &self.names[place])
    }
}

fn remember(fates: &mut Vec<Vec<Option<Fate>>>, input: usize, bus: usize, fate: Fate) {
    if fates.len() <= input {
        fates.resize(input + 1, Vec::new());
    }
    let of_input = &mut fates[input];
    if of_input.len() <= bus {
        of_input.resize(bus + 1, None);
    }
    of_input[bus] = Some(fate);
}

#[cfg(test)]
mod tests {
    use super::*;
    use canter_io::Frame;

    fn entry(bus: u32, frame: &str, stamp_ns: u64) -> Record {
        Record { stamp_ns, bus: BusId(bus), frame: frame.parse::<Frame>().unwrap(), direction: None }
    }

    #[test]
    fn buses_are_numbered_by_their_first_wanted_frame_and_renamed_before_they_are_filtered() {
        let renames: Vec<Rename> = ["can0=body", "can2=body"].map(|text| text.parse().unwrap()).into();
        let filters: Vec<InterfaceFilters> =
            ["body,100:700", "can1"].map(|text| InterfaceFilters::parse(text).unwrap()).into();
        let mut choice = Choice::new(&renames, &filters, None, None);
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
    fn a_range_counts_from_the_first_frame_and_leaves_out_its_end() {
        let (from, to) = ("+10ns".parse().unwrap(), "+20ns".parse().unwrap());
        let mut choice = Choice::new(&[], &[], Some(from), Some(to));
        let taken: Vec<bool> = [1000, 1009, 1010, 1019, 1020]
            .map(|stamp| choice.bus(0, &entry(0, "001#", stamp), |_| "can0").is_some())
            .into();
        assert_eq!(taken, [false, false, true, true, false]);
    }
}

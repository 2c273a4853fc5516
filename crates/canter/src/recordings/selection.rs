//! Selects frames of recordings and names their buses, in the same words for every command that reads recordings.
//! Interfaces are renamed first, so filters use the new names.

use super::{FrameFilter, Merge, Opening, TimePoint};
use crate::databases::Databases;
use canter_cli::{
    failure::{self, Exit, Failure},
    units,
};
use canter_formats::Zone;
use canter_frame::{BusId, Frame, Record};
use canter_io::{
    Filters, InterfaceFilters,
    frame::{EFF_FLAG, EFF_MASK},
};
use clap::Args;
use std::{collections::BTreeSet, fmt::Write, path::PathBuf, str::FromStr};

/// The options that select frames of recordings.
#[derive(Args, Clone, Debug, Default)]
pub struct Selection {
    /// Rename interfaces; --filter uses the new names. Interfaces with the same new name become one bus
    #[arg(long, value_name = "OLD=NEW,…", value_delimiter = ',')]
    pub interfaces: Vec<Rename>,
    /// Only these frames: identifiers (123, 12345678, 100:700), with --dbc also names of messages, or an interface and
    /// these (can0,123; any means all others); repeatable
    #[arg(long, value_name = "[IFACE,]FILTERS")]
    pub filter: Vec<FrameFilter>,
    /// Start at this time: 10m after the first frame, 2026-11-22 09:30:00 in --zone, 2026-11-22T08:30:00Z, or seconds
    /// since 1970
    #[arg(long, value_name = "WHEN", allow_hyphen_values = true)]
    pub from: Option<TimePoint>,
    /// End before this time
    #[arg(long, value_name = "WHEN", allow_hyphen_values = true)]
    pub to: Option<TimePoint>,
    /// Time zone of dates that name none, in ASC, BLF, --from and --to: Europe/Prague, +01:00, local; UTC unless given
    #[arg(long, value_name = "ZONE", allow_hyphen_values = true)]
    pub zone: Option<Zone>,
    /// Skip what is damaged and read the rest; without it, damage is an error
    #[arg(long)]
    pub salvage: bool,
    /// Whether `--interfaces` may name buses that only other recordings have.
    #[arg(skip)]
    pub renames_elsewhere: bool,
}

impl Selection {
    /// How the recordings are opened.
    pub fn opening(&self) -> Opening {
        Opening { salvage: self.salvage, zone: self.zone.clone() }
    }

    /// Replaces the names of messages in the filters by their frames' identifiers.
    pub fn resolve(&mut self, databases: &Databases) -> failure::Result<()> {
        self.filter.iter_mut().try_for_each(|one| one.resolve(databases))
    }

    /// All filters, by interface.
    ///
    /// # Errors
    /// When a word is not a filter, and no database has explained it as the name of a message.
    pub fn filters(&self) -> failure::Result<impl Iterator<Item = &InterfaceFilters>> {
        self.filter.iter().try_for_each(FrameFilter::refuse_unknown)?;
        Ok(self.named_filters())
    }

    fn named_filters(&self) -> impl Iterator<Item = &InterfaceFilters> {
        self.filter.iter().flat_map(|one| &one.filters)
    }

    /// Refuses a new name for an interface that a recording does not have.
    pub fn refuse_unknown_renames(&self, thing: &str, names: &[String]) -> failure::Result<()> {
        let unknown = self.interfaces.iter().find(|rename| !names.contains(&rename.old));
        let Some(Rename { old, .. }) = unknown else { return Ok(()) };
        let reason = format!("has no interface {old:?} of --interfaces (it has {})", names.join(", "));
        Err(Failure::new(Exit::Usage, format!("{thing}: {reason}")))
    }
}

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

impl Selection {
    /// The filters of an interface's frames, which pass when they match one of them; without filters, all pass. Filters of
    /// `any` are for interfaces without filters of their own. `None`: no frame passes.
    pub fn filters_of(&self, interface: &str) -> Option<Vec<Filters>> {
        let is_named = |one: &InterfaceFilters| one.interface == interface;
        let interface = if self.named_filters().any(is_named) { interface } else { "any" };
        let of_interface = self.named_filters().filter(|one| one.interface == interface);
        let mut filters: Vec<Filters> = of_interface.map(|one| one.filters.clone()).collect();
        if filters.is_empty() && !self.filter.is_empty() {
            return None;
        }
        // Without filters everything passes, error frames too.
        if filters.contains(&Filters::default()) {
            filters.clear();
        }
        Some(filters)
    }
}

/// The decision on an interface of a recording.
#[derive(Clone, Debug)]
enum Decision {
    /// Drop all frames of the interface.
    Drop,
    /// Keep the frames that pass one of the filters; without filters, all. The number is the index of the interface's new
    /// name in `names`.
    Keep(usize, Vec<Filters>),
}

/// The stamps that are selected, from the first on and before the second; without a second to the end.
#[derive(Clone, Copy)]
struct Range {
    from_ns: u64,
    to_ns: Option<u64>,
}

impl Range {
    #[inline]
    fn contains(self, stamp_ns: u64) -> bool {
        stamp_ns >= self.from_ns && self.to_ns.is_none_or(|to_ns| stamp_ns < to_ns)
    }
}

/// Identifiers that an error lists.
const LISTED_MAX: usize = 6;

/// The selection of frames, as it runs.
pub struct Choice<'a> {
    options: &'a Selection,
    /// The stamps of `from` and `to`, once the first frame is known.
    range: Option<Range>,
    /// What was decided, by recording and interface.
    decisions: Vec<Vec<Option<Decision>>>,
    names: Vec<String>,
    /// The bus of each name; a bus gets its number with its first frame.
    buses: Vec<Option<BusId>>,
    /// The index in `names` of each bus.
    name_of_bus: Vec<usize>,
    read: u64,
    selected: u64,
    /// The stamps of the first and the last frame, selected or not.
    span_ns: Option<(u64, u64)>,
    /// Some identifiers that the filters did not select.
    unselected: Vec<u32>,
}

impl<'a> Choice<'a> {
    /// # Errors
    /// When `--to` is not after `--from`, or a word of `--filter` is unknown.
    pub fn new(options: &'a Selection) -> failure::Result<Self> {
        let zone = options.zone.clone().unwrap_or_default();
        options.filters().map(drop)?;
        TimePoint::refuse_empty_range(options.from, options.to, &zone)?;
        Ok(Self {
            options,
            range: None,
            decisions: Vec::new(),
            names: Vec::new(),
            buses: Vec::new(),
            name_of_bus: Vec::new(),
            read: 0,
            selected: 0,
            span_ns: None,
            unselected: Vec::new(),
        })
    }

    /// The bus of a frame; `None` when the frame is not selected. Buses are numbered in the order of their first frames.
    #[inline]
    pub fn bus<'n>(
        &mut self,
        input: usize,
        entry: &Record,
        name: impl FnOnce(BusId) -> &'n str,
    ) -> Option<BusId> {
        let stamp_ns = entry.stamp_ns;
        self.read += 1;
        let (first, last) = self.span_ns.unwrap_or((stamp_ns, stamp_ns));
        self.span_ns = Some((first.min(stamp_ns), last.max(stamp_ns)));
        let range = match self.range {
            Some(range) => range,
            None => self.begin(stamp_ns),
        };
        if !range.contains(stamp_ns) {
            return None;
        }
        let interface = entry.bus.index();
        if self.decisions.get(input).and_then(|decisions| decisions.get(interface)?.as_ref()).is_none() {
            let decision = self.decide(name(entry.bus));
            store(&mut self.decisions, input, interface, decision);
        }
        let Some(Decision::Keep(at, filters)) = &self.decisions[input][interface] else { return None };
        if !filters.is_empty() && !filters.iter().any(|filters| filters.matches(&entry.frame)) {
            self.note_unselected(&entry.frame);
            return None;
        }
        self.selected += 1;
        if self.buses[*at].is_none() {
            self.buses[*at] = Some(BusId(self.name_of_bus.len() as u32));
            self.name_of_bus.push(*at);
        }
        self.buses[*at]
    }

    fn note_unselected(&mut self, frame: &Frame) {
        let id = frame.can_id & (EFF_FLAG | EFF_MASK);
        if self.unselected.len() < LISTED_MAX && !frame.is_error() && !self.unselected.contains(&id) {
            self.unselected.push(id);
        }
    }

    #[cold]
    fn begin(&mut self, first_ns: u64) -> Range {
        let zone = self.options.zone.clone().unwrap_or_default();
        let from_ns = self.options.from.map_or(0, |from| from.ns(first_ns, &zone));
        let to_ns = self.options.to.map(|to| to.ns(first_ns, &zone));
        *self.range.insert(Range { from_ns, to_ns })
    }

    /// The new name of an interface.
    fn renamed<'n>(&'n self, name: &'n str) -> &'n str {
        self.options.interfaces.iter().find(|rename| rename.old == name).map_or(name, |rename| &rename.new)
    }

    /// The new names of all buses that the recordings have, as far as they are read.
    pub fn renamed_all(&self, merge: &Merge) -> Vec<String> {
        let mut names: Vec<String> = merge.names().iter().map(|name| self.renamed(name).to_owned()).collect();
        let mut seen = BTreeSet::new();
        names.retain(|name| seen.insert(name.clone()));
        names
    }

    #[cold]
    fn decide(&mut self, name: &str) -> Decision {
        let name = self.renamed(name).to_owned();
        let Some(filters) = self.options.filters_of(&name) else { return Decision::Drop };
        let at = self.names.iter().position(|known| *known == name).unwrap_or_else(|| {
            self.names.push(name);
            self.buses.push(None);
            self.names.len() - 1
        });
        Decision::Keep(at, filters)
    }

    /// The name of a bus.
    pub fn name(&self, bus: BusId) -> &str {
        self.name_of_bus.get(bus.index()).map_or("?", |&at| &self.names[at])
    }

    /// Frames that were read, selected or not.
    pub fn read(&self) -> u64 {
        self.read
    }

    /// Refuses options that selected nothing, when all frames are read: an interface that the recordings do not have, or
    /// filters and times without a frame. `paths` are the recordings' names.
    pub fn check(&self, merge: &Merge, paths: &[PathBuf]) -> failure::Result<()> {
        let thing = match paths {
            [one] => one.display().to_string(),
            _ => format!("{} recordings", paths.len()),
        };
        let usage = |message: String| Err(Failure::new(Exit::Usage, format!("{thing}: {message}")));
        let old = merge.names();
        if !self.options.renames_elsewhere {
            self.options.refuse_unknown_renames(&thing, &old)?;
        }
        let names = self.renamed_all(merge);
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let is_unknown =
            |one: &InterfaceFilters| one.interface != "any" && !names.contains(&one.interface.as_str());
        for FrameFilter { filters, message_hint, .. } in &self.options.filter {
            if let Some(InterfaceFilters { interface, .. }) = filters.iter().find(|one| is_unknown(one)) {
                let names = names.join(", ");
                return usage(format!(
                    "has no interface {interface:?} of --filter (it has {names}){message_hint}"
                ));
            }
        }
        if self.selected > 0 || self.read == 0 {
            return Ok(());
        }
        usage(format!("no frame of {} was selected (it has {})", self.read, self.content(&names)))
    }

    /// What the recordings have, for an error: buses, identifiers, times.
    fn content(&self, names: &[&str]) -> String {
        let mut text = names.join(", ");
        let mut ids = self.unselected.clone();
        ids.sort_unstable_by_key(|id| (id & EFF_FLAG, id & EFF_MASK));
        if let Some((last, before)) = ids.split_last() {
            let shown: String = before.iter().map(|&id| format!("{}, ", identifier(id))).collect();
            let more = if ids.len() == LISTED_MAX { ", …" } else { "" };
            let _ = write!(text, "; identifiers {shown}{}{more}", identifier(*last));
        }
        if let (true, Some((first, last))) =
            (self.options.from.is_some() || self.options.to.is_some(), self.span_ns)
        {
            let _ = write!(text, "; {} from {}", units::span(last - first), utc(first));
        }
        text
    }
}

/// An identifier in candump's notation, of its EFF flag and its number.
pub fn identifier(id: u32) -> String {
    if id & EFF_FLAG != 0 { format!("{:08X}", id & EFF_MASK) } else { format!("{id:03X}") }
}

/// A stamp as a date in UTC; a stamp of a recording without a date as seconds.
pub fn utc(stamp_ns: u64) -> String {
    // Before 1971 a stamp counts from the start of the recording, not from 1970.
    const YEAR_NS: u64 = 365 * 86_400 * 1_000_000_000;
    let stamp = jiff::Timestamp::from_nanosecond((stamp_ns - stamp_ns % 1_000_000).into());
    match stamp {
        Ok(stamp) if stamp_ns >= YEAR_NS => format!("{stamp:.3}"),
        _ => format!("{}.{:03} s", stamp_ns / 1_000_000_000, stamp_ns / 1_000_000 % 1000),
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
    use crate::recordings::parse_filters;

    fn entry(bus: u32, frame: &str, stamp_ns: u64) -> Record {
        Record { stamp_ns, bus: BusId(bus), frame: frame.parse::<Frame>().unwrap(), direction: None }
    }

    #[test]
    fn buses_are_numbered_by_their_first_selected_frame_and_renamed_before_they_are_filtered() {
        let options = Selection {
            interfaces: ["can0=body", "can2=body"].map(|text| text.parse().unwrap()).into(),
            filter: ["body,100:700", "can1"].map(|text| text.parse().unwrap()).into(),
            ..Selection::default()
        };
        let mut choice = Choice::new(&options).unwrap();
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
        let (from, to) = ("+10ns".parse().ok(), "20ns".parse().ok());
        let options = Selection { from, to, ..Selection::default() };
        let mut choice = Choice::new(&options).unwrap();
        let taken: Vec<bool> = [1000, 1009, 1010, 1019, 1020]
            .map(|stamp| choice.bus(0, &entry(0, "001#", stamp), |_| "can0").is_some())
            .into();
        assert_eq!(taken, [false, false, true, true, false]);
    }

    #[test]
    fn without_an_end_the_last_stamp_that_there_is_is_selected() {
        let options = Selection::default();
        let mut choice = Choice::new(&options).unwrap();
        assert!(choice.bus(0, &entry(0, "001#", u64::MAX), |_| "can0").is_some());
    }

    #[test]
    fn filters_without_an_interface_apply_to_every_interface_and_add_up() {
        for (text, same) in [
            ("123", "any,123"),
            ("0C9:7FF,12345678", "any,0C9:7FF,12345678"),
            ("#FFFFFFFF", "any,#FFFFFFFF"),
            ("can0,123", "can0,123"),
            ("body", "body"),
        ] {
            assert_eq!(parse_filters(text), Ok(InterfaceFilters::parse(same).unwrap()), "{text}");
        }
        for text in ["12", "123,", "can0,1x", "can0 can1"] {
            assert!(text.parse::<FrameFilter>().is_err(), "{text}");
        }
        let filter = ["can0,100:7FF", "can0,200", "300"].map(|text| text.parse().unwrap()).into();
        let options = Selection { filter, ..Selection::default() };
        let mut choice = Choice::new(&options).unwrap();
        let names = ["can0", "can1"];
        let mut passes =
            |bus, frame| choice.bus(0, &entry(bus, frame, 5), |bus| names[bus.index()]).is_some();
        assert_eq!(["100#", "200#", "300#"].map(|frame| passes(0, frame)), [true, true, false]);
        assert_eq!(["100#", "200#", "300#"].map(|frame| passes(1, frame)), [false, false, true]);
    }
}

//! The buses of a recording: which interfaces are recorded, their counters, and changes of their state. An interface that
//! is deleted and created again with the same name continues its bus; a renamed interface keeps its bus and the bus's name.

use crate::{
    chunk::{Chunk, Hold},
    live::{Busy, Live},
    queue::{Item, Queue},
};
use canter_frame::BusId;
use canter_io::{
    BitRate, Filters, Interface, InterfaceFilters,
    captured::Captured,
    carrier::Access,
    clock,
    error_frame::ErrorFrame,
    frame::ERR_FLAG,
    interface::{Counters, State},
    monitor::Change,
};
use std::{collections::BTreeMap, io, sync::atomic::Ordering};

/// The greatest difference, in ns, between a frame's stamp and the time when the interface counts the frame.
const COUNTING_NS: u64 = 1_000_000;
/// Interface indexes count up from 1. Indexes above this limit are searched in the list instead of the table `places`.
const INDEX_MAX: u32 = 1 << 20;
const UNKNOWN: u32 = u32::MAX;
const UNWANTED: u32 = u32::MAX - 1;

/// A recorded interface and the counts of its frames.
pub struct Bus {
    /// Its name in the file: the interface's name when it was found; for a device, without `/dev/`.
    pub name: String,
    pub interface: Interface,
    /// The frames to record; `None`: all, error frames included.
    filters: Option<Filters>,
    /// The interface's counters when its counting began; `None`: the interface does not exist now.
    counters: Option<Counters>,
    /// The interface's counts up to its last removal; `None`: unknown.
    past: Option<Counters>,
    /// Frames with stamps from `from_ns` to `until_ns` belong to the recording. Each limit is a range: for a frame in
    /// this range, it is unknown whether the interface counted it before or after the counters were read.
    from_ns: (u64, u64),
    until_ns: (u64, u64),
    /// Its bit rate; `None`: unknown, or the bus load is not computed.
    rate: Option<BitRate>,
    busy_ns: u64,
    /// Frames lost in its sockets or device files that are closed now.
    own_lost: u64,
    /// How often its error frames reported each kind of error.
    pub errors: BTreeMap<&'static str, u64>,
    pub tally: Tally,
}

/// The counts of an interface's frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Frames received from the kernel.
    pub seen: u64,
    /// Error frames among them.
    pub errors: u64,
    /// Rejected by a filter.
    pub filtered: u64,
    /// Lost because the queue of its socket or device file was full.
    pub own_lost: u64,
    /// Lost because the RAM queue was full.
    pub queue_lost: u64,
    /// So close to the start or end that the interface may have counted them before or after the recording.
    pub ambiguous: u64,
    /// The interface's counts from start to end; `None`: it was removed and its counters are unknown.
    pub counted: Option<Counters>,
}

/// A change of the interfaces that the source of frames must follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// This interface is to be received from now on.
    Found(Box<Interface>),
    /// The interface with this index no longer exists.
    Gone(u32),
}

/// All buses of a recording.
pub struct Buses<'a> {
    queue: &'a Queue,
    live: &'a Live,
    wanted: Vec<InterfaceFilters>,
    pub list: Vec<Bus>,
    /// For each interface index, the position of its bus in `list`, or `UNKNOWN` or `UNWANTED`.
    places: Vec<u32>,
    /// The highest interface index when the recording began: interfaces with a higher one were created later.
    newest: u32,
    /// The recording has begun: a device that is found now was created later.
    begun: bool,
}

/// Reads an interface's counters, and the range of stamps for which it is unknown whether they include the frame.
fn read_counters(interface: &Interface) -> (Option<Counters>, (u64, u64)) {
    let before = clock::realtime_ns();
    let counters = interface.counters().ok();
    (counters, (before.saturating_sub(COUNTING_NS), clock::realtime_ns() + COUNTING_NS))
}

/// The name of an interface in files: `canchar0` for /dev/canchar0.
fn name_in_file(name: &str) -> &str {
    name.strip_prefix("/dev/").unwrap_or(name)
}

/// The filters of an interface; `None`: record all frames.
fn filters(wanted: &InterfaceFilters) -> Option<Filters> {
    Some(wanted.filters.clone()).filter(|filters| *filters != Filters::default())
}

fn is_off(interface: &Interface) -> bool {
    interface.controller.as_ref().is_some_and(|controller| controller.state == Some(State::BusOff))
}

impl<'a> Buses<'a> {
    /// Starts counting. `wanted` has the names to record, possibly `any`; `found` has the interfaces that exist.
    pub fn new(
        queue: &'a Queue,
        live: &'a Live,
        wanted: Vec<InterfaceFilters>,
        found: Vec<Interface>,
    ) -> Self {
        let newest = Interface::list().unwrap_or_default().iter().map(|one| one.index).max().unwrap_or(0);
        let mut buses =
            Self { queue, live, wanted, list: Vec::new(), places: Vec::new(), newest, begun: false };
        for interface in found {
            buses.adopt(interface);
        }
        buses.begun = true;
        buses
    }

    /// `Some` if an interface of this name is to be recorded, with its filters.
    fn wants(&self, name: &str) -> Option<Option<Filters>> {
        let by = |wanted: &str| self.wanted.iter().find(|one| one.interface == wanted).map(filters);
        by(name).or_else(|| by("any"))
    }

    /// Adds a bus for an interface that is to be recorded, or continues the bus of the same name. Returns its position.
    fn adopt(&mut self, interface: Interface) -> Option<u32> {
        let index = interface.index;
        let Some(filters) = self.wants(&interface.name) else {
            self.remember(index, UNWANTED);
            return None;
        };
        let created_later = if is_device(&interface) { self.begun } else { index > self.newest };
        let (counters, from_ns) = if created_later {
            (Some(Counters::default()), (0, 0)) // all that it counts belongs to the recording
        } else {
            read_counters(&interface)
        };
        let name = name_in_file(&interface.name).to_owned();
        let known = self.list.iter().position(|bus| bus.name == name);
        let place = known.unwrap_or(self.list.len());
        self.remember(index, place as u32);
        let rate = self.rate(&interface);
        if let Some(bus) = self.list.get_mut(place) {
            self.live.log(format!("{}: appeared again", bus.name));
            bus.add_counted(None);
            (bus.interface, bus.counters, bus.from_ns, bus.rate) = (interface, counters, (0, 0), rate);
            return Some(place as u32);
        }
        self.queue.send(Item::Interface(name.clone()));
        self.list.push(Bus {
            name,
            interface,
            filters,
            counters,
            past: Some(Counters::default()),
            from_ns,
            until_ns: (u64::MAX, u64::MAX),
            rate,
            busy_ns: 0,
            own_lost: 0,
            errors: BTreeMap::new(),
            tally: Tally::default(),
        });
        Some(place as u32)
    }

    fn rate(&self, interface: &Interface) -> Option<BitRate> {
        let wanted = self.live.show_load.load(Ordering::Relaxed);
        let nominal = interface.bitrate().filter(|_| wanted)?;
        Some(BitRate { nominal, data: interface.data_bitrate().unwrap_or(0) })
    }

    fn remember(&mut self, index: u32, place: u32) {
        if index < INDEX_MAX && self.places.len() <= index as usize {
            self.places.resize(index as usize + 1, UNKNOWN);
        }
        if let Some(known) = self.places.get_mut(index as usize) {
            *known = place;
        }
    }

    /// The position in `list` of the bus of the interface with this index; no valid position if it is not recorded.
    #[inline]
    pub fn place(&mut self, index: u32) -> u32 {
        match self.places.get(index as usize) {
            Some(&place) if place != UNKNOWN => place,
            _ => self.discover(index),
        }
    }

    /// Copies the records that are to be recorded into `chunk`, with the positions of their buses.
    pub fn copy_wanted<'r>(&mut self, chunk: &mut Chunk, records: impl Iterator<Item = Captured<'r>>) {
        // Matches once per chunk, not once per frame.
        match chunk {
            Chunk::Classic(entries) => self.copy_wanted_to(entries, records),
            Chunk::Fd(entries) => self.copy_wanted_to(entries, records),
            Chunk::Noted(entries) => self.copy_wanted_to(entries, records),
        }
    }

    #[inline]
    fn copy_wanted_to<'r>(&mut self, to: &mut impl Hold, records: impl Iterator<Item = Captured<'r>>) {
        for record in records {
            let place = self.place(record.interface);
            let Some(bus) = self.list.get_mut(place as usize) else { continue };
            if bus.wants(&record) {
                to.hold(&record.on_bus(BusId(place)));
            }
        }
    }

    /// Looks up an index that `places` does not have: the first frame of an interface may arrive before the kernel's report
    /// of the interface, and the indexes of devices are above the table.
    #[cold]
    fn discover(&mut self, index: u32) -> u32 {
        if let Some(place) = self.list.iter().position(|bus| bus.interface.index == index) {
            return place as u32;
        }
        let found = Interface::by_index(index).ok();
        if found.is_none() {
            self.remember(index, UNWANTED);
        }
        found.and_then(|interface| self.adopt(interface)).unwrap_or(UNWANTED)
    }

    /// Updates the buses after a change, and returns the changes that the source must follow.
    pub fn change(&mut self, change: Change) -> Vec<News> {
        match change {
            Change::Is(interface, _) => self.note_present(interface).into_iter().collect(),
            Change::Gone(interface, counters) => {
                self.note_gone(interface.index, Some(counters)).into_iter().collect()
            }
            Change::Missed => {
                let Ok(existing) = Interface::list() else { return Vec::new() };
                let lost = |bus: &Bus| {
                    let index = bus.interface.index;
                    let exists = is_device(&bus.interface) || existing.iter().any(|one| one.index == index);
                    (bus.counters.is_some() && !exists).then_some(index)
                };
                let lost: Vec<u32> = self.list.iter().filter_map(lost).collect();
                let mut news: Vec<News> =
                    lost.into_iter().filter_map(|index| self.note_gone(index, None)).collect();
                news.extend(existing.into_iter().filter_map(|interface| self.note_present(interface)));
                news
            }
        }
    }

    /// Updates the bus of an interface that exists, in this state; logs changes of its name and state.
    pub fn note_present(&mut self, interface: Interface) -> Option<News> {
        let rate = self.rate(&interface);
        let index = interface.index;
        // A device that is plugged in again gets the same index.
        let known = |bus: &&mut Bus| {
            bus.interface.index == index && (bus.counters.is_some() || !is_device(&interface))
        };
        let Some(bus) = self.list.iter_mut().find(known) else {
            let before = self.list.len();
            let place = self.adopt(interface.clone())? as usize;
            if place == before {
                self.live.log(format!("{}: found", self.list[place].name));
            }
            return Some(News::Found(Box::new(interface)));
        };
        bus.counters?; // a late report about a removed interface
        let (name, was) = (&bus.name, &bus.interface);
        if was.name != interface.name {
            let now = &interface.name;
            self.live.log(format!("{name}: was renamed to {now}; it is still recorded as {name}"));
        }
        match (was.up, interface.up) {
            (true, false) => self.live.log(format!("{name}: is down")),
            (false, true) => self.live.log(format!("{name}: is up")),
            _ => {}
        }
        match (is_off(was), is_off(&interface)) {
            (false, true) => self.live.log(format!("{name}: is off the bus")),
            (true, false) => self.live.log(format!("{name}: is on the bus again")),
            _ => {}
        }
        (bus.interface, bus.rate) = (interface, rate);
        None
    }

    /// Updates the bus of an interface or device that was removed; `counters` are its last counters.
    pub fn note_gone(&mut self, index: u32, counters: Option<Counters>) -> Option<News> {
        let bus = self.list.iter_mut().find(|bus| bus.interface.index == index && bus.counters.is_some())?;
        self.live.log(format!("{}: is gone", bus.name));
        bus.add_counted(counters);
        Some(News::Gone(index))
    }

    /// The index of the device with this path, if it is recorded and exists.
    pub fn index_of(&self, path: &str) -> Option<u32> {
        let bus = self.list.iter().find(|bus| bus.interface.name == path && bus.counters.is_some())?;
        Some(bus.interface.index)
    }

    /// Adds the frames lost by the socket or device file of this index, which is being closed.
    pub fn keep_own_losses(&mut self, index: u32, lost: u64) {
        if let Some(bus) = self.list.iter_mut().find(|bus| bus.interface.index == index) {
            bus.own_lost += lost;
        }
    }

    /// Reads the losses of each bus's own queue with `lost`, and returns the sum.
    pub fn count_own_losses(&mut self, mut lost: impl FnMut(u32) -> io::Result<u64>) -> io::Result<u64> {
        self.list.iter_mut().try_fold(0, |sum, bus| {
            bus.tally.own_lost = bus.own_lost + lost(bus.interface.index)?;
            Ok(sum + bus.tally.own_lost)
        })
    }

    /// Ends the counting: reads all counters. Frames with later stamps do not belong to the recording.
    pub fn end(&mut self) {
        for bus in &mut self.list {
            let (counters, until_ns) = read_counters(&bus.interface);
            if bus.counters.is_some() {
                bus.add_counted(counters);
            }
            (bus.tally.counted, bus.until_ns) = (bus.past, until_ns);
        }
    }

    /// Accepts all stamps from now on: those before and after a clock step cannot be compared.
    pub fn clock_was_set(&mut self) {
        self.list.iter_mut().for_each(|bus| bus.from_ns = (0, 0));
    }

    /// The names in the settings whose interfaces never existed.
    pub fn missing(&self) -> impl Iterator<Item = &str> {
        let names = self.wanted.iter().map(|one| one.interface.as_str()).filter(|&name| name != "any");
        names.filter(|name| self.list.iter().all(|bus| bus.name != name_in_file(name)))
    }

    pub fn busy(&self) -> Vec<Busy> {
        let busy = |bus: &Bus| Busy { name: bus.name.clone(), busy_ns: bus.rate.map(|_| bus.busy_ns) };
        self.list.iter().map(busy).collect()
    }
}

fn is_device(interface: &Interface) -> bool {
    interface.carrier.access == Access::File
}

impl Bus {
    /// Whether it is a canchar device, not a network interface.
    pub fn is_device(&self) -> bool {
        is_device(&self.interface)
    }

    /// Adds the interface's counts to `past`, because it was removed or the recording ends.
    fn add_counted(&mut self, counters: Option<Counters>) {
        if let Some(begun) = self.counters.take() {
            let grown = counters.map(|counters| counters.since(&begun));
            self.past = self.past.zip(grown).map(|(past, grown)| past.plus(&grown));
        }
    }

    /// Counts a frame, and returns whether to record it. Inlined, because a call would cost a tenth of receiving the frame.
    #[inline(always)]
    fn wants(&mut self, record: &Captured<'_>) -> bool {
        let stamp_ns = record.stamp_ns;
        let near = stamp_ns <= self.from_ns.1 || stamp_ns >= self.until_ns.0;
        if near && !self.is_inside(stamp_ns) {
            return false;
        }
        self.tally.seen += 1;
        // struct can_frame: the identifier and its flags are the first word.
        let can_id = record.bytes.first_chunk().map_or(0, |word| u32::from_ne_bytes(*word));
        if can_id & ERR_FLAG != 0 {
            self.count_error(record);
        }
        let plain = self.rate.is_none() && self.filters.is_none();
        plain || self.add_load_and_filter(record)
    }

    /// Whether a frame near the start or the end of the recording belongs to it.
    #[cold]
    fn is_inside(&mut self, stamp_ns: u64) -> bool {
        let inside = stamp_ns >= self.from_ns.0 && stamp_ns <= self.until_ns.1;
        self.tally.ambiguous += u64::from(inside);
        inside
    }

    /// Adds the frame's duration to the bus load, and returns whether the frame passes the filters.
    fn add_load_and_filter(&mut self, record: &Captured<'_>) -> bool {
        let frame = record.frame();
        if let Some(rate) = self.rate {
            self.busy_ns += frame.duration_with_interframe_ns(rate);
        }
        let passes = self.filters.as_ref().is_none_or(|filters| filters.matches(&frame));
        self.tally.filtered += u64::from(!passes);
        passes
    }

    #[cold]
    fn count_error(&mut self, record: &Captured<'_>) {
        self.tally.errors += 1;
        for kind in ErrorFrame::of(&record.frame()).iter().flat_map(ErrorFrame::kinds) {
            *self.errors.entry(kind).or_default() += 1;
        }
    }
}

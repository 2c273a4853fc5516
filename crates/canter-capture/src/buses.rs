//! The interfaces of a recording: which are wanted, what each has counted, and what happens to them. An interface that
//! is removed and made again under its name is the same bus; one that is renamed stays the bus that it was.

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

/// How far a stamp and the interface's counting of the same frame may lie apart.
const COUNTING_NS: u64 = 1_000_000;
/// Interface indexes count up from 1; one beyond is not looked up in a table.
const INDEX_MAX: u32 = 1 << 20;
const UNKNOWN: u32 = u32::MAX;
const UNWANTED: u32 = u32::MAX - 1;

/// An interface that is recorded, and what became of its frames.
pub struct Bus {
    /// What it is called in the file: its name when it was found, of a device without the folder.
    pub name: String,
    pub interface: Interface,
    /// What is wanted; `None`: everything, error frames too.
    filters: Option<Filters>,
    /// It is there, and had counted so much at the beginning; `None`: it is gone.
    counters: Option<Counters>,
    /// What it has counted before it was removed; `None`: nobody knows.
    past: Option<Counters>,
    /// Between these stamps a frame belongs to the recording; near to them the interface's counters may disagree.
    from_ns: (u64, u64),
    until_ns: (u64, u64),
    /// Its bit rate, where somebody wants to know how busy it is.
    rate: Option<BitRate>,
    busy_ns: u64,
    /// Lost in sockets or files that were closed since.
    own_lost: u64,
    /// What its error frames reported.
    pub errors: BTreeMap<&'static str, u64>,
    pub tally: Tally,
}

/// Frames of an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Out of the ring, whatever became of them.
    pub seen: u64,
    /// Error frames among them.
    pub errors: u64,
    /// Passed over by a filter.
    pub filtered: u64,
    /// Lost because its own queue was full: a socket's, or that of a device's file.
    pub own_lost: u64,
    /// Lost because the RAM queue was full.
    pub queue_lost: u64,
    /// So near to the start or the end that the interface may have counted them on the other side.
    pub ambiguous: u64,
    /// What the interface has counted from start to end; `None` when it is gone and nobody knows.
    pub counted: Option<Counters>,
}

/// What a change of interfaces asks of whoever receives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// A bus can be received, under this index.
    Found(Box<Interface>),
    /// The index is no more.
    Gone(u32),
}

/// All of them.
pub struct Buses<'a> {
    queue: &'a Queue,
    live: &'a Live,
    wanted: Vec<InterfaceFilters>,
    pub list: Vec<Bus>,
    /// The bus of each interface index, `UNKNOWN` or `UNWANTED`.
    places: Vec<u32>,
    /// The highest index when the recording began: whatever has a higher one was made since.
    newest: u32,
    /// The recording has begun: a device that is found now was made since.
    begun: bool,
}

/// Reads counters, and when: before, after.
fn count(interface: &Interface) -> (Option<Counters>, (u64, u64)) {
    let before = clock::realtime_ns();
    let counters = interface.counters().ok();
    (counters, (before.saturating_sub(COUNTING_NS), clock::realtime_ns() + COUNTING_NS))
}

/// What an interface is called in files: `canchar0` for /dev/canchar0.
fn name_in_file(name: &str) -> &str {
    name.strip_prefix("/dev/").unwrap_or(name)
}

/// Filters as they were asked for; none at all wants everything.
fn filters(wanted: &InterfaceFilters) -> Option<Filters> {
    Some(wanted.filters.clone()).filter(|filters| *filters != Filters::default())
}

fn is_off(interface: &Interface) -> bool {
    interface.controller.as_ref().is_some_and(|controller| controller.state == Some(State::BusOff))
}

impl<'a> Buses<'a> {
    /// `wanted` are names, `any` among them; `found` their interfaces. Counting begins.
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

    /// Whether an interface of this name is wanted, and which of its frames.
    fn wants(&self, name: &str) -> Option<Option<Filters>> {
        let by = |wanted: &str| self.wanted.iter().find(|one| one.interface == wanted).map(filters);
        by(name).or_else(|| by("any"))
    }

    /// Makes an interface a bus, if it is wanted; one of a bus's name that is new continues that bus.
    fn adopt(&mut self, interface: Interface) -> Option<u32> {
        let index = interface.index;
        let Some(filters) = self.wants(&interface.name) else {
            self.remember(index, UNWANTED);
            return None;
        };
        let made_since = if is_device(&interface) { self.begun } else { index > self.newest };
        let (counters, from_ns) = if made_since {
            (Some(Counters::default()), (0, 0)) // so all of it belongs to the recording
        } else {
            count(&interface)
        };
        let name = name_in_file(&interface.name).to_owned();
        let known = self.list.iter().position(|bus| bus.name == name);
        let place = known.unwrap_or(self.list.len());
        self.remember(index, place as u32);
        let rate = self.rate(&interface);
        if let Some(bus) = self.list.get_mut(place) {
            self.live.say(format!("{}: is there again", bus.name));
            bus.lose(None);
            (bus.interface, bus.counters, bus.from_ns, bus.rate) = (interface, counters, (0, 0), rate);
            return Some(place as u32);
        }
        self.queue.tell(Item::Interface(name.clone()));
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

    /// Which bus an interface is, as a place in `list`; one beyond it is none.
    #[inline]
    pub fn place(&mut self, index: u32) -> u32 {
        match self.places.get(index as usize) {
            Some(&place) if place != UNKNOWN => place,
            _ => self.discover(index),
        }
    }

    /// Moves those of `records` that are wanted to `chunk`, with the places of their buses.
    pub fn sift<'r>(&mut self, chunk: &mut Chunk, records: impl Iterator<Item = Captured<'r>>) {
        // The kind is looked at once and not for every frame.
        match chunk {
            Chunk::Classic(entries) => self.sift_to(entries, records),
            Chunk::Fd(entries) => self.sift_to(entries, records),
            Chunk::Noted(entries) => self.sift_to(entries, records),
        }
    }

    #[inline]
    fn sift_to<'r>(&mut self, to: &mut impl Hold, records: impl Iterator<Item = Captured<'r>>) {
        for record in records {
            let place = self.place(record.interface);
            let Some(bus) = self.list.get_mut(place as usize) else { continue };
            if bus.wants(&record) {
                to.hold(&record.on_bus(BusId(place)));
            }
        }
    }

    /// The first frame of an interface may come before the news of it. Devices have indexes beyond the table, and no news.
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

    /// Takes note of a change, and answers what follows from it.
    pub fn change(&mut self, change: Change) -> Vec<News> {
        match change {
            Change::Is(interface, _) => self.is(interface).into_iter().collect(),
            Change::Gone(interface, counters) => {
                self.gone(interface.index, Some(counters)).into_iter().collect()
            }
            Change::Missed => {
                let Ok(there) = Interface::list() else { return Vec::new() };
                let lost = |bus: &Bus| {
                    let index = bus.interface.index;
                    let there = is_device(&bus.interface) || there.iter().any(|one| one.index == index);
                    (bus.counters.is_some() && !there).then_some(index)
                };
                let lost: Vec<u32> = self.list.iter().filter_map(lost).collect();
                let mut news: Vec<News> =
                    lost.into_iter().filter_map(|index| self.gone(index, None)).collect();
                news.extend(there.into_iter().filter_map(|interface| self.is(interface)));
                news
            }
        }
    }

    /// An interface or device is there, and so.
    pub fn is(&mut self, interface: Interface) -> Option<News> {
        let rate = self.rate(&interface);
        let index = interface.index;
        // A device that comes back has its index again.
        let known = |bus: &&mut Bus| {
            bus.interface.index == index && (bus.counters.is_some() || !is_device(&interface))
        };
        let Some(bus) = self.list.iter_mut().find(known) else {
            let before = self.list.len();
            let place = self.adopt(interface.clone())? as usize;
            if place == before {
                self.live.say(format!("{}: found", self.list[place].name));
            }
            return Some(News::Found(Box::new(interface)));
        };
        bus.counters?; // news of one that is gone
        let (name, was) = (&bus.name, &bus.interface);
        if was.name != interface.name {
            let now = &interface.name;
            self.live.say(format!("{name}: is called {now} now, and recorded on as {name}"));
        }
        match (was.up, interface.up) {
            (true, false) => self.live.say(format!("{name}: is down")),
            (false, true) => self.live.say(format!("{name}: is up")),
            _ => {}
        }
        match (is_off(was), is_off(&interface)) {
            (false, true) => self.live.say(format!("{name}: is off the bus")),
            (true, false) => self.live.say(format!("{name}: is on the bus again")),
            _ => {}
        }
        (bus.interface, bus.rate) = (interface, rate);
        None
    }

    /// An interface or device is no longer there, and had counted so much.
    pub fn gone(&mut self, index: u32, counters: Option<Counters>) -> Option<News> {
        let bus = self.list.iter_mut().find(|bus| bus.interface.index == index && bus.counters.is_some())?;
        self.live.say(format!("{}: is gone", bus.name));
        bus.lose(counters);
        Some(News::Gone(index))
    }

    /// The index of the bus that is this device, as far as that is known.
    pub fn index_of(&self, path: &str) -> Option<u32> {
        let bus = self.list.iter().find(|bus| bus.interface.name == path && bus.counters.is_some())?;
        Some(bus.interface.index)
    }

    /// The socket or file of this index is closed, and has lost so many frames.
    pub fn keep_own_losses(&mut self, index: u32, lost: u64) {
        if let Some(bus) = self.list.iter_mut().find(|bus| bus.interface.index == index) {
            bus.own_lost += lost;
        }
    }

    /// Asks what each bus's own queue has lost, and answers the sum.
    pub fn count_own_losses(&mut self, mut lost: impl FnMut(u32) -> io::Result<u64>) -> io::Result<u64> {
        self.list.iter_mut().try_fold(0, |sum, bus| {
            bus.tally.own_lost = bus.own_lost + lost(bus.interface.index)?;
            Ok(sum + bus.tally.own_lost)
        })
    }

    /// Draws the line: reads all counters. Frames of later stamps do not belong to the recording.
    pub fn end(&mut self) {
        for bus in &mut self.list {
            let (counters, until_ns) = count(&bus.interface);
            if bus.counters.is_some() {
                bus.lose(counters);
            }
            (bus.tally.counted, bus.until_ns) = (bus.past, until_ns);
        }
    }

    /// The clock was set: stamps of before and after cannot be compared, and the recording has begun long ago.
    pub fn clock_was_set(&mut self) {
        self.list.iter_mut().for_each(|bus| bus.from_ns = (0, 0));
    }

    /// Names that were waited for in vain.
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
    /// Whether it is a device and no interface of the network.
    pub fn is_device(&self) -> bool {
        is_device(&self.interface)
    }

    /// It is gone, or no longer recorded, and has counted so much.
    fn lose(&mut self, counters: Option<Counters>) {
        if let Some(begun) = self.counters.take() {
            let grown = counters.map(|counters| counters.since(&begun));
            self.past = self.past.zip(grown).map(|(past, grown)| past.plus(&grown));
        }
    }

    /// Counts a frame, and says whether it is to be recorded. A call would take a tenth of what receiving it takes.
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
        plain || self.look_into(record)
    }

    /// Whether a frame near the start or the end of the recording belongs to it.
    #[cold]
    fn is_inside(&mut self, stamp_ns: u64) -> bool {
        let inside = stamp_ns >= self.from_ns.0 && stamp_ns <= self.until_ns.1;
        self.tally.ambiguous += u64::from(inside);
        inside
    }

    /// What needs more of a frame than its head: how long it takes on the wire, and what the filters say.
    fn look_into(&mut self, record: &Captured<'_>) -> bool {
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

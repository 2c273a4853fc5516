//! The buses of a recording: which interfaces are recorded, and changes of their state. An interface that leaves, deleted
//! or moved to another network namespace, and returns under its name continues its bus; a renamed interface keeps its
//! bus and the bus's name.

use crate::{
    aligner::Aligner,
    bus::{Bus, is_device, name_in_file},
    chunk::{Chunk, Hold},
    counting::{self, Reading, Span},
    live::{Busy, Live},
    queue::{Item, Queue},
};
use canter_frame::{BusId, RawRecord};
use canter_io::{
    BitRate, Filters, Interface, InterfaceFilters,
    captured::Captured,
    interface::{FrameCounters, State},
    monitor::{Change, Monitor},
};
use std::{
    io,
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

/// Interface indexes count up from 1. Indexes above this limit are searched in the list instead of the table `places`.
const INDEX_MAX: u32 = 1 << 20;
const UNKNOWN: u32 = u32::MAX;
const UNWANTED: u32 = u32::MAX - 1;
/// The interface no longer existed when the kernel was asked for its name: nobody knows whether it is to be recorded.
const UNNAMED: u32 = u32::MAX - 2;
/// The longest wait for the list of interfaces at the end, and when a frame comes from an unknown one.
const LISTED: Duration = Duration::from_secs(1);
/// The largest `struct canfd_frame`: an interface with a larger MTU can carry CAN XL frames.
const CANFD_MTU: u32 = canter_io::frame::CANFD_MTU as u32;

/// A change of the interfaces that the source of frames must follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// This interface is to be received from now on. The source prints `told` when it receives from it.
    Found { interface: Box<Interface>, told: Option<String> },
    /// The interface with this index, of the bus at this position, no longer exists.
    Gone { index: u32, place: usize },
    /// The interface with this index exists and is not to be recorded.
    Unwanted { index: u32 },
}

/// All buses of a recording.
pub struct Buses<'a> {
    queue: &'a Queue,
    live: &'a Live,
    /// Reports changes of network interfaces.
    monitor: Option<Monitor>,
    wanted: Vec<InterfaceFilters>,
    pub list: Vec<Bus>,
    /// For each interface index, the position of its bus in `list`, or `UNKNOWN`, `UNWANTED` or `UNNAMED`.
    places: Vec<u32>,
    /// Frames of interfaces that nobody could name.
    pub unnamed: u64,
    /// Changes that the source has not followed yet.
    news: Vec<News>,
    /// The kernel has dropped reports of changes, and the list of interfaces was not asked for since.
    missed: bool,
    /// The list, as soon as the kernel has answered.
    listing: Option<Receiver<Vec<Interface>>>,
    /// The interface with this index, as soon as the kernel has answered.
    asked: Option<(u32, Receiver<canter_io::Result<Interface>>)>,
    /// A frame has waited in vain for the list or the interface.
    has_waited: bool,
    /// The highest interface index when the recording began: interfaces with a higher one were created later.
    newest: u32,
    /// Whether frames are stamped by their controllers' clocks.
    aligns: bool,
    /// Whether the load of each bus is computed.
    computes_load: bool,
    /// The recording has begun: a device that is found now was created later.
    begun: bool,
    /// The recording has ended: an interface that is found now does not belong to it.
    ended: bool,
}

/// The filters of an interface; `None`: record all frames.
fn filters(wanted: &InterfaceFilters) -> Option<Filters> {
    Some(wanted.filters.clone()).filter(|filters| *filters != Filters::default())
}

/// Asks for the list of interfaces in a thread of its own: the kernel answers only when nobody changes an interface, and the
/// caller has a ring to empty. The answer is missing if the kernel refuses.
fn list() -> Receiver<Vec<Interface>> {
    answer("list", || Interface::list().ok())
}

/// Asks for the interface with this index, likewise.
fn by_index(index: u32) -> Receiver<canter_io::Result<Interface>> {
    answer("interface", move || Some(Interface::by_index(index)))
}

/// The answer of a thread of this name, if it has one.
fn answer<T: Send + 'static>(name: &str, ask: impl FnOnce() -> Option<T> + Send + 'static) -> Receiver<T> {
    let (sender, receiver) = mpsc::channel();
    let asking = move || drop(ask().map(|answer| sender.send(answer)));
    drop(thread::Builder::new().name(name.to_owned()).spawn(asking));
    receiver
}

fn is_off(interface: &Interface) -> bool {
    interface.controller.as_ref().is_some_and(|controller| controller.state == Some(State::BusOff))
}

impl<'a> Buses<'a> {
    /// Starts counting. `wanted` has the names to record, possibly `any`; `found` has the interfaces that exist, and what they
    /// had counted before anything was received.
    pub fn new(
        queue: &'a Queue,
        live: &'a Live,
        monitor: Option<Monitor>,
        wanted: Vec<InterfaceFilters>,
        found: Vec<(Interface, Reading)>,
        aligns: bool,
    ) -> Self {
        let existing = Interface::list().unwrap_or_default();
        let newest = existing.iter().map(|one| one.index).max().unwrap_or(0);
        let mut buses = Self {
            queue,
            live,
            monitor,
            wanted,
            list: Vec::new(),
            places: Vec::new(),
            unnamed: 0,
            news: Vec::new(),
            missed: false,
            listing: None,
            asked: None,
            has_waited: false,
            newest,
            aligns,
            computes_load: live.wants_load(),
            begun: false,
            ended: false,
        };
        let readings = counting::read(&found.iter().map(|(interface, _)| interface).collect::<Vec<_>>());
        for ((interface, before), reading) in found.into_iter().zip(readings) {
            if let Some(place) = buses.place_for(&interface) {
                buses.attach(place, interface, reading.counters, Span::begin(&reading, Some(&before)));
            }
        }
        // Those that are not to be recorded need no request when their first frame comes.
        for interface in &existing {
            if buses.wants(&interface.name).is_none() {
                buses.remember(interface.index, UNWANTED);
            }
        }
        buses.begun = true;
        buses
    }

    /// `Some` if an interface of this name is to be recorded, with its filters.
    fn wants(&self, name: &str) -> Option<Option<Filters>> {
        let setting = |wanted: &str| self.wanted.iter().find(|one| one.interface == wanted).map(filters);
        setting(name).or_else(|| setting("any"))
    }

    /// The position of the bus for an interface that appeared: the one that it continues, or a new one. `None`: it is not
    /// to be recorded.
    fn place_for(&mut self, interface: &Interface) -> Option<usize> {
        let Interface { name, index, .. } = interface;
        let is_absent = |bus: &&Bus| !bus.is_present();
        // A renamed interface returns under its index and its last name.
        let is_renamed = |bus: &Bus| bus.interface.index == *index && bus.interface.name == *name;
        if let Some(place) = self.list.iter().position(|bus| is_absent(&bus) && is_renamed(bus)) {
            return Some(place);
        }
        let Some(filters) = self.wants(name) else {
            self.news.push(News::Unwanted { index: *index });
            self.remember(*index, UNWANTED);
            return None;
        };
        let has_name = |bus: &Bus, name: &str| bus.name == name_in_file(name);
        if let Some(place) = self.list.iter().position(|bus| is_absent(&bus) && has_name(bus, name)) {
            return Some(place);
        }
        let mut unused = name_in_file(name).to_owned();
        let mut number = 2;
        while self.list.iter().any(|bus| bus.name == unused) {
            unused = format!("{}.{number}", name_in_file(name));
            number += 1;
        }
        if unused != name_in_file(name) {
            self.live.log(format!("{name}: is a second interface of this name; it is recorded as {unused}"));
        }
        self.queue.send(Item::Interface(unused.clone()));
        let mut bus = Bus::new(interface.clone(), unused, filters, self.rate(interface));
        bus.aligner = self.aligns.then(Aligner::default);
        self.list.push(bus);
        Some(self.list.len() - 1)
    }

    /// The interface carries the bus at `place` from now on; `counters` are those when its counting began.
    fn attach(&mut self, place: usize, interface: Interface, counters: Option<FrameCounters>, span: Span) {
        self.remember(interface.index, place as u32);
        let rate = self.rate(&interface);
        let bus = &mut self.list[place];
        if interface.mtu > CANFD_MTU {
            self.live.log(format!("{}: can carry CAN XL frames, which are not recorded", bus.name));
        }
        (bus.interface, bus.counters, bus.span, bus.rate) = (interface, counters, span, rate);
        bus.is_received = true;
    }

    /// Adds an interface that appeared, if it is to be recorded. `reported` are its counters in the report of the change.
    fn adopt(&mut self, interface: Interface, reported: Option<FrameCounters>) {
        let index = interface.index;
        let was_known = self.places.get(index as usize).is_some_and(|&place| place != UNKNOWN);
        let before = self.list.len();
        let Some(place) = self.place_for(&interface) else { return };
        // While it is down it counts nothing: all that it counts later belongs to the recording.
        let at_report = reported.filter(|_| !interface.up);
        let created_later =
            if is_device(&interface) { self.begun } else { index > self.newest && !was_known };
        let at_creation = created_later.then(FrameCounters::default);
        let (counters, span) = match at_report.or(at_creation) {
            Some(counters) => (Some(counters), Span::default()),
            None => {
                let reading = counting::read(&[&interface])[0];
                (reading.counters, Span::begin(&reading, None))
            }
        };
        self.attach(place, interface.clone(), counters, span);
        let how = if place == before { "found" } else { "appeared again" };
        let text = format!("{}: {how}", self.list[place].name);
        // Frames of a device are lost until the source has opened its file, so the source prints the text after that. Of a
        // network interface it is printed now, before the reports that come after this one.
        let told = if is_device(&interface) {
            Some(text)
        } else {
            self.live.log(text);
            None
        };
        self.news.push(News::Found { interface: Box::new(interface), told });
    }

    fn rate(&self, interface: &Interface) -> Option<BitRate> {
        let nominal = interface.bitrate().filter(|_| self.computes_load)?;
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
        // Matches once per chunk, not once per frame. Only frames with notes have a stamp of their controller.
        match chunk {
            Chunk::Classic(entries) => self.copy_wanted_to(entries, records, |_, record| record),
            Chunk::Fd(entries) => self.copy_wanted_to(entries, records, |_, record| record),
            Chunk::Noted(entries) => self.copy_wanted_to(entries, records, Bus::aligned),
        }
    }

    #[inline]
    fn copy_wanted_to<'r>(
        &mut self,
        to: &mut impl Hold,
        records: impl Iterator<Item = Captured<'r>>,
        stamped: impl Fn(&mut Bus, RawRecord<'r>) -> RawRecord<'r>,
    ) {
        for record in records {
            let place = self.place(record.interface);
            let Some(bus) = self.list.get_mut(place as usize) else {
                self.unnamed += u64::from(place == UNNAMED);
                continue;
            };
            if bus.wants(&record) {
                to.hold(&stamped(bus, record.on_bus(BusId(place))));
            }
        }
    }

    /// Looks up an index that `places` does not have: a frame may arrive before the kernel's report of its interface was
    /// read, or after the report of its removal; the indexes of devices are above the table.
    #[cold]
    fn discover(&mut self, index: u32) -> u32 {
        if let Some(place) = self.find_place(index, true) {
            return place;
        }
        if !self.ended {
            // The report of an interface precedes its first frame: the index of one that is gone may be another's now.
            self.follow_changes();
        }
        if let Some(place) = self.find_place(index, true).or_else(|| self.find_place(index, false)) {
            return place;
        }
        if self.ended {
            return if self.may_lack_some() { UNNAMED } else { UNWANTED };
        }
        // Once: while the kernel answers nobody, the ring fills.
        let deadline = Instant::now() + if self.has_waited { Duration::ZERO } else { LISTED };
        self.follow_changes_until(deadline);
        let mut place = self.find_place(index, true).or_else(|| self.find_place(index, false));
        if place.is_none() && self.listing.is_none() {
            match self.ask(index, deadline) {
                Some(Ok(interface)) => self.adopt(interface, None),
                Some(Err(error)) if !error.is_transient() => self.remember(index, UNNAMED),
                Some(Err(_)) | None => {} // asked again at its next frame
            }
            place = self.find_place(index, true);
        }
        self.has_waited = self.listing.is_some() || self.asked.is_some();
        place.unwrap_or(UNNAMED)
    }

    /// Whether there may be interfaces that it does not know: the kernel reports none, or has dropped reports and not yet
    /// answered what there is.
    fn may_lack_some(&self) -> bool {
        self.monitor.is_none() || self.missed || self.listing.is_some()
    }

    /// The interface with this index, or why there is none. `None`: the kernel has not answered before the deadline.
    fn ask(&mut self, index: u32, deadline: Instant) -> Option<canter_io::Result<Interface>> {
        let (asked, answer) = self.asked.take().unwrap_or_else(|| (index, by_index(index)));
        match answer.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(found) => Some(found).filter(|_| asked == index),
            Err(RecvTimeoutError::Timeout) => {
                self.asked = Some((asked, answer));
                None
            }
            Err(RecvTimeoutError::Disconnected) => None,
        }
    }

    /// What is known of the interface with this index, which exists, or existed before.
    fn find_place(&self, index: u32, exists: bool) -> Option<u32> {
        let is_it = |bus: &Bus| match exists {
            true => bus.interface.index == index && bus.is_present(),
            false => bus.former.contains(&index),
        };
        let known = self.places.get(index as usize).copied().filter(|&place| place != UNKNOWN);
        known.or_else(|| self.list.iter().position(is_it).map(|place| place as u32))
    }

    /// Reads the kernel's reports of changes, in their order. If it has dropped some, the buses are compared with the list of
    /// interfaces as soon as that is there.
    pub fn follow_changes(&mut self) {
        self.follow_changes_until(Instant::now());
    }

    /// Waits until then for a list that is needed.
    fn follow_changes_until(&mut self, deadline: Instant) {
        loop {
            self.missed |= self.read_changes();
            if let Some(listing) = &self.listing {
                let left = deadline.saturating_duration_since(Instant::now());
                match listing.recv_timeout(left) {
                    Err(RecvTimeoutError::Timeout) => return,
                    // Reports that the kernel dropped meanwhile may be newer than the list.
                    Ok(existing) if !self.read_changes() && !self.missed => self.resync(existing),
                    Ok(_) | Err(RecvTimeoutError::Disconnected) => self.missed = true,
                }
                self.listing = None;
            }
            if !std::mem::take(&mut self.missed) {
                return;
            }
            self.listing = Some(list());
            if Instant::now() >= deadline {
                return; // the answer is taken up by the next call
            }
        }
    }

    /// Follows the waiting reports; whether the kernel has dropped some.
    fn read_changes(&mut self) -> bool {
        let Some(monitor) = &mut self.monitor else { return false };
        let (mut changes, mut missed) = (Vec::new(), false);
        let read = monitor.changes(|change| match change {
            Change::Missed => missed = true,
            change => changes.push(change),
        });
        if let Err(error) = read {
            self.live.alarm(format!(
                "interfaces: listen for changes: {error}; new interfaces are found by their first frame"
            ));
            self.monitor = None;
        }
        if missed {
            self.live.log(
                "interfaces: the kernel has dropped reports of changes; canter asks for the list of interfaces instead".to_owned(),
            );
        }
        self.follow(changes);
        missed
    }

    /// Follows changes that were reported at the same time.
    fn follow(&mut self, changes: Vec<Change>) {
        let mut gone: Vec<u32> = Vec::new();
        for change in changes {
            match change {
                Change::Is(interface, counters) => {
                    if gone.contains(&interface.index) {
                        self.note_reuse(&interface);
                    }
                    self.note_present(interface, Some(counters.into()));
                }
                Change::Gone(interface, counters) => {
                    gone.push(interface.index);
                    self.note_gone(interface.index, Some(counters.into()));
                }
                Change::Missed => {}
            }
        }
    }

    /// Another interface has the index of one that has just gone: the frames that were received since the last look at the
    /// reports may be of either.
    fn note_reuse(&mut self, interface: &Interface) {
        let is_other =
            |bus: &&mut Bus| bus.interface.index == interface.index && bus.interface.name != interface.name;
        for bus in self.list.iter_mut().filter(is_other).filter(|bus| !bus.is_present() && !bus.is_mixed) {
            bus.is_mixed = true;
            let (name, other) = (&bus.name, &interface.name);
            self.live.log(format!(
                "{name}: {other} has its index now; frames of {other} may be recorded as {name}"
            ));
        }
    }

    /// Compares the buses with the list of existing interfaces.
    fn resync(&mut self, existing: Vec<Interface>) {
        let exists = |bus: &Bus| existing.iter().any(|one| one.index == bus.interface.index);
        let gone = |bus: &&Bus| bus.is_present() && !bus.is_device() && !exists(bus);
        let gone: Vec<u32> = self.list.iter().filter(gone).map(|bus| bus.interface.index).collect();
        gone.into_iter().for_each(|index| self.note_gone(index, None));
        // Those that left and returned meanwhile are no longer received: the source starts anew with all.
        for (place, bus) in
            self.list.iter().enumerate().filter(|(_, bus)| bus.is_present() && !bus.is_device())
        {
            self.news.push(News::Gone { index: bus.interface.index, place });
            self.news.push(News::Found { interface: Box::new(bus.interface.clone()), told: None });
        }
        existing.into_iter().for_each(|interface| self.note_present(interface, None));
    }

    /// The changes since the last call that the source must follow.
    pub fn take_news(&mut self) -> Vec<News> {
        std::mem::take(&mut self.news)
    }

    /// Updates the bus of an interface that exists, in this state; logs changes of its name and state. `reported` are its
    /// counters at that time.
    pub fn note_present(&mut self, interface: Interface, reported: Option<FrameCounters>) {
        let rate = self.rate(&interface);
        let is_it = |bus: &&mut Bus| bus.interface.index == interface.index && bus.is_present();
        let Some(bus) = self.list.iter_mut().find(is_it) else {
            return self.adopt(interface, reported);
        };
        let (name, was, mut is_mixed) = (&bus.name, &bus.interface, bus.is_mixed);
        if was.name != interface.name {
            let now = &interface.name;
            self.live.log(format!("{name}: was renamed to {now}; it is still recorded as {name}"));
            // Without the report, nobody knows whether the interface was renamed or another one has its index.
            is_mixed |= reported.is_none();
        }
        let change = |before: bool, now: bool, off: &str, on: &str| {
            if before != now {
                self.live.log(format!("{name}: {}", if now { on } else { off }));
            }
        };
        change(was.up, interface.up, "is down", "is up");
        change(is_off(was), is_off(&interface), "is on the bus again", "is off the bus");
        change(
            was.supports_fd(),
            interface.supports_fd(),
            "carries classic frames only",
            "carries FD frames",
        );
        let xl = |interface: &Interface| interface.mtu > CANFD_MTU;
        change(
            xl(was),
            xl(&interface),
            "carries no CAN XL frames",
            "can carry CAN XL frames, which are not recorded",
        );
        (bus.interface, bus.rate, bus.is_mixed) = (interface, rate, is_mixed);
    }

    /// Updates the bus of an interface or device that was removed; `counters` are its last counters.
    pub fn note_gone(&mut self, index: u32, counters: Option<FrameCounters>) {
        // Another interface may get this index.
        if (index as usize) < self.places.len() {
            self.remember(index, UNKNOWN);
        }
        let is_it = |bus: &Bus| bus.interface.index == index && bus.is_present();
        let Some(place) = self.list.iter().position(is_it) else { return };
        let bus = &mut self.list[place];
        self.live.log(format!("{}: is gone", bus.name));
        bus.lose_interface(counters);
        self.news.push(News::Gone { index, place });
    }

    /// The index of the device with this path, if it is recorded and exists.
    pub fn index_of(&self, path: &str) -> Option<u32> {
        let bus = self.list.iter().find(|bus| bus.interface.name == path && bus.is_present())?;
        Some(bus.interface.index)
    }

    /// Reads the losses of each bus's own queue with `lost`, and returns the sum.
    pub fn count_own_losses(&mut self, mut lost: impl FnMut(u32) -> io::Result<u64>) -> io::Result<u64> {
        self.list.iter_mut().try_fold(0, |sum, bus| {
            let of_open = if bus.is_received { lost(bus.interface.index)? } else { 0 };
            bus.tally.own_lost = bus.own_lost + of_open;
            Ok(sum + bus.tally.own_lost)
        })
    }

    /// Ends the counting: reads all counters. Frames with later stamps do not belong to the recording; after the clock
    /// was set, stamps do not tell.
    pub fn end(&mut self, clock_was_set: bool) {
        let present: Vec<Option<u32>> =
            self.list.iter().map(|bus| bus.is_present().then_some(bus.interface.index)).collect();
        let interfaces: Vec<&Interface> = self.list.iter().map(|bus| &bus.interface).collect();
        let readings = counting::read(&interfaces);
        // An interface that was removed meanwhile reported its last counters.
        self.follow_changes_until(Instant::now() + LISTED);
        self.ended = true;
        for ((bus, reading), before) in self.list.iter_mut().zip(readings).zip(present) {
            match before {
                Some(index) if bus.is_present() && bus.interface.index == index => {
                    bus.add_counted(reading.counters);
                }
                _ => bus.counters = None, // one that returned at the last moment has no frames yet
            }
            bus.span.end(&reading, clock_was_set);
            bus.tally.counted = bus.past;
        }
        self.list.iter_mut().for_each(|bus| bus.tally.counted = bus.past);
    }

    /// Accepts all stamps from now on: those before and after a clock step cannot be compared.
    pub fn clock_was_set(&mut self, step_ns: i64) {
        for bus in &mut self.list {
            bus.span.clock_was_set();
            bus.aligner.iter_mut().for_each(|aligner| aligner.clock_was_set(step_ns));
        }
    }

    /// Adds up the counters, before one of 32 bits can wrap twice.
    pub fn count_on(&mut self) {
        self.list.iter_mut().for_each(Bus::count_on);
    }

    /// The names in the settings whose interfaces never existed.
    pub fn missing(&self) -> impl Iterator<Item = &str> {
        let names = self.wanted.iter().map(|one| one.interface.as_str()).filter(|&name| name != "any");
        names.filter(|name| self.list.iter().all(|bus| bus.name != name_in_file(name)))
    }

    /// Begins or ends to compute the load of each bus.
    pub fn compute_load(&mut self, wanted: bool) {
        if self.computes_load == wanted {
            return;
        }
        self.computes_load = wanted;
        let rates: Vec<Option<BitRate>> = self.list.iter().map(|bus| self.rate(&bus.interface)).collect();
        self.list.iter_mut().zip(rates).for_each(|(bus, rate)| bus.rate = rate);
    }

    pub fn busy(&self) -> Vec<Busy> {
        let busy = |bus: &Bus| Busy {
            name: bus.name.clone(),
            frames: bus.tally.seen,
            busy_ns: bus.rate.map(|_| bus.busy_ns),
        };
        self.list.iter().map(busy).collect()
    }
}

#[cfg(test)]
#[path = "buses/tests.rs"]
pub mod tests;

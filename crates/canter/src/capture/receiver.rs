//! The receiver's thread: ring → queue, and the count of every frame on the way. Between the ring's memory and the
//! queue it does as little as it can, so that the ring stays empty.

use super::{
    chunk::Chunk,
    queue::{Item, Queue},
};
use canter_io::{
    Filters, Interface, InterfaceFilters,
    capture_ring::{Block, CaptureRing, Record},
    frame::ERR_FLAG,
    interface::Counters,
    loss::Watch,
    sys::clock,
};
use std::{
    io,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
};

/// How long it sleeps at most without a block: how soon it sees that it is to stop.
const LOOK_NS: u64 = 50_000_000;
/// How far a stamp and the interface's counting of the same frame may lie apart.
const COUNTING_NS: u64 = 1_000_000;
/// How long a frame may be on its way between its stamp and its block.
const IN_FLIGHT_NS: u64 = 20_000_000;
/// How far the real-time clock may run from the monotonic one between two looks before it counts as set.
const CLOCK_STEP_NS: u64 = 50_000_000;

/// An interface that is recorded, and what became of its frames.
pub struct Bus {
    pub interface: Interface,
    /// What is wanted; `None`: everything, error frames too.
    filters: Option<Filters>,
    counters: Counters,
    /// Between these stamps a frame belongs to the recording; near to them the interface's counters may disagree.
    from_ns: (u64, u64),
    until_ns: (u64, u64),
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
    /// Lost because the RAM queue was full.
    pub queue_lost: u64,
    /// So near to the start or the end that the interface may have counted them on the other side.
    pub ambiguous: u64,
    /// What the interface has counted from start to end; `None` when it is gone.
    pub counted: Option<Counters>,
}

/// What the receiver leaves behind.
pub struct Report {
    pub buses: Vec<Bus>,
    /// Frames that found no room in the ring, of all interfaces.
    pub ring_lost: u64,
    /// Frames that found no room in a processor's backlog, of all interfaces.
    pub backlog_lost: u64,
    /// How often the clock was set.
    pub clock_steps: u64,
    pub started_ns: u64,
    pub ended_ns: u64,
    /// Why it ended by itself.
    pub error: Option<String>,
}

/// What others may look at while it runs.
#[derive(Default)]
pub struct Live {
    pub stop: AtomicBool,
    /// The writer has as many frames as were asked for.
    pub enough: AtomicBool,
    pub frames: AtomicU64,
    pub queue_lost: AtomicU64,
    pub ring_lost: AtomicU64,
}

/// The ring and what is made of it.
pub struct Receiver<'a> {
    ring: CaptureRing,
    keeper: Keeper<'a>,
    live: &'a Live,
    backlog: Option<Watch>,
    started_ns: u64,
    clock_steps: u64,
}

/// Takes the frames that are wanted, and counts them all.
struct Keeper<'a> {
    queue: &'a Queue,
    buses: Vec<Bus>,
    /// The bus of each interface index, `UNKNOWN` or `UNWANTED`.
    places: Vec<u32>,
    /// What `any` stands for, if it was asked for.
    any: Option<Option<Filters>>,
    kept: u64,
    queue_lost: u64,
}

const UNKNOWN: u32 = u32::MAX;
const UNWANTED: u32 = u32::MAX - 1;
/// Interface indexes count up from 1; one beyond is not looked up in a table.
const INDEX_MAX: u32 = 1 << 20;

/// Real-time less monotonic time.
fn clock_offset_ns() -> u64 {
    clock::realtime_ns().wrapping_sub(clock::monotonic_ns())
}

/// Reads counters, and when: before, after.
fn count(interface: &Interface) -> (Option<Counters>, (u64, u64)) {
    let before = clock::realtime_ns();
    let counters = interface.counters().ok();
    (counters, (before.saturating_sub(COUNTING_NS), clock::realtime_ns() + COUNTING_NS))
}

/// Filters as they were asked for; none at all wants everything.
fn filters(wanted: &InterfaceFilters) -> Option<Filters> {
    Some(wanted.filters.clone()).filter(|filters| *filters != Filters::default())
}

impl Keeper<'_> {
    fn add(&mut self, interface: Interface, filters: Option<Filters>) -> u32 {
        self.queue.tell(Item::Interface(interface.name.clone()));
        let (counters, from_ns) = count(&interface);
        let place = self.buses.len() as u32;
        self.remember(interface.index, place);
        let (counters, until_ns) = (counters.unwrap_or_default(), (u64::MAX, u64::MAX));
        self.buses.push(Bus { interface, filters, counters, from_ns, until_ns, tally: Tally::default() });
        place
    }

    fn remember(&mut self, index: u32, place: u32) {
        if index < INDEX_MAX && self.places.len() <= index as usize {
            self.places.resize(index as usize + 1, UNKNOWN);
        }
        if let Some(known) = self.places.get_mut(index as usize) {
            *known = place;
        }
    }

    /// Which bus an interface is; with `any`, one that was made since the start becomes one.
    #[inline]
    fn place(&mut self, index: u32) -> u32 {
        match self.places.get(index as usize) {
            Some(&place) if place != UNKNOWN => place,
            _ => self.discover(index),
        }
    }

    fn discover(&mut self, index: u32) -> u32 {
        if let Some(place) = self.buses.iter().position(|bus| bus.interface.index == index) {
            return place as u32;
        }
        let found = self.any.clone().and_then(|filters| Some((Interface::by_index(index).ok()?, filters)));
        let Some((interface, filters)) = found else {
            self.remember(index, UNWANTED);
            return UNWANTED;
        };
        let place = self.add(interface, filters);
        // It did not exist when the recording began, so all that it has counted belongs to it.
        let bus = &mut self.buses[place as usize];
        (bus.counters, bus.from_ns) = (Counters::default(), (0, 0));
        place
    }

    fn keep(&mut self, block: Block<'_>) {
        let mut chunk = Chunk::new(block.is_fd(), block.len());
        for record in block.records() {
            let place = self.place(record.interface);
            let Some(bus) = self.buses.get_mut(place as usize) else { continue };
            if bus.wants(&record) {
                self.kept += 1;
                chunk.push(&Record { interface: place, ..record });
            }
        }
        if chunk.len() == 0 {
            return;
        }
        if let Err(chunk) = self.queue.push(chunk) {
            for record in chunk.records() {
                self.buses[record.interface as usize].tally.queue_lost += 1;
                self.queue_lost += 1;
            }
        }
    }
}

impl Bus {
    /// Counts a frame, and says whether it is to be recorded.
    #[inline]
    fn wants(&mut self, record: &Record<'_>) -> bool {
        let Self { tally, .. } = self;
        let stamp_ns = record.stamp_ns;
        if stamp_ns <= self.from_ns.1 || stamp_ns >= self.until_ns.0 {
            if stamp_ns < self.from_ns.0 || stamp_ns > self.until_ns.1 {
                return false;
            }
            tally.ambiguous += 1;
        }
        tally.seen += 1;
        // struct can_frame: the identifier and its flags are the first word.
        let can_id = record.bytes.first_chunk().map_or(0, |word| u32::from_ne_bytes(*word));
        tally.errors += u64::from(can_id & ERR_FLAG != 0);
        let passes = self.filters.as_ref().is_none_or(|filters| filters.matches(&record.frame()));
        tally.filtered += u64::from(!passes);
        passes
    }
}

impl<'a> Receiver<'a> {
    /// Starts to receive and to count. `wanted` are names, `any` among them; `found` their interfaces.
    pub fn new(
        ring: CaptureRing,
        wanted: &[InterfaceFilters],
        found: Vec<Interface>,
        queue: &'a Queue,
        live: &'a Live,
    ) -> Self {
        let any = wanted.iter().find(|one| one.interface == "any").map(filters);
        let (backlog, started_ns) = (Watch::start(&[]).ok(), clock::realtime_ns());
        let mut keeper = Keeper { queue, buses: Vec::new(), places: Vec::new(), any, kept: 0, queue_lost: 0 };
        for interface in found {
            let named = wanted.iter().find(|one| one.interface == interface.name).map(filters);
            let filters = named.or_else(|| keeper.any.clone()).flatten();
            keeper.add(interface, filters);
        }
        Self { ring, keeper, live, backlog, started_ns, clock_steps: 0 }
    }

    /// Until it is told to stop, or fails.
    pub fn run(mut self) -> Report {
        let mut error = None;
        let mut offset_ns = clock_offset_ns();
        while !self.live.stop.load(Ordering::Acquire) {
            match self.receive() {
                // If it comes up again, so do its frames.
                Err(down) if down.kind() == io::ErrorKind::NetworkDown => {}
                Err(other) => {
                    error = Some(format!("receive: {other}"));
                    break;
                }
                Ok(()) => {}
            }
            let now_ns = clock_offset_ns();
            if now_ns.wrapping_sub(offset_ns).cast_signed().unsigned_abs() > CLOCK_STEP_NS {
                self.clock_steps += 1;
                self.keeper.queue.tell(Item::ClockStep);
                // Stamps of before and after cannot be compared; the recording has begun long ago.
                self.keeper.buses.iter_mut().for_each(|bus| bus.from_ns = (0, 0));
            }
            offset_ns = now_ns;
        }
        self.finish(error)
    }

    fn receive(&mut self) -> io::Result<()> {
        let Self { ring, keeper, live, .. } = self;
        ring.next(LOOK_NS, |block| keeper.keep(block))?;
        keeper.queue.set_complete_until(ring.complete_until_ns().saturating_sub(IN_FLIGHT_NS));
        live.ring_lost.store(ring.drops()?, Ordering::Relaxed);
        live.frames.store(keeper.kept, Ordering::Relaxed);
        live.queue_lost.store(keeper.queue_lost, Ordering::Relaxed);
        Ok(())
    }

    /// Draws the line: reads all counters, then takes what came before that out of the ring.
    fn finish(self, mut error: Option<String>) -> Report {
        let Self { mut ring, mut keeper, backlog, started_ns, clock_steps, .. } = self;
        for bus in &mut keeper.buses {
            let (counters, until_ns) = count(&bus.interface);
            bus.tally.counted = counters.map(|counters| counters.since(&bus.counters));
            bus.until_ns = until_ns;
        }
        let ended_ns = clock::realtime_ns();
        let drained = ring.drain(|block| keeper.keep(block)).and_then(|()| ring.drops());
        let ring_lost = drained.unwrap_or_else(|failed| {
            error.get_or_insert(format!("drain: {failed}"));
            0
        });
        let backlog_lost = backlog.and_then(|watch| watch.losses().ok()).map_or(0, |losses| losses.backlog);
        Report { buses: keeper.buses, ring_lost, backlog_lost, clock_steps, started_ns, ended_ns, error }
    }
}

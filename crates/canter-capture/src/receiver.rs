//! The receiver's thread: moves frames from the ring, the sockets or the devices to the queue, and counts every frame. It
//! does as little work per frame as possible, so that the ring does not fill.

use crate::{bus::Bus, judge::RingLoss, keeper::Keeper, live::Live, source::Source, verdict::Method};
use canter_io::{clock, loss::Watch};
use std::{
    io,
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

/// The longest wait for frames, in ns, and therefore the longest delay of a request to stop.
const WAIT_NS: u64 = 100_000_000;
/// The interval at which it reads loss counters and follows devices that appear and disappear.
const CHORES: Duration = Duration::from_millis(100);
/// So long after the clock was set, frames with stamps of the earlier time may still wait in the kernel.
const CLOCK_SETTLED: Duration = Duration::from_secs(2);
/// The interval at which it adds up the interfaces' counters: one of 32 bits wraps after 56 h on a full bus.
const COUNT_ON: Duration = Duration::from_secs(600);

/// The receiver's result.
pub struct Report {
    pub buses: Vec<Bus>,
    pub method: Method,
    pub ring_bytes: u64,
    /// Frames lost because the ring was full; the buses count those of sockets and devices.
    pub ring: RingLoss,
    /// Frames lost because a processor's backlog was full, of all interfaces.
    pub backlog_lost: u64,
    /// Frames of interfaces that nobody could name, which are not in the files.
    pub unnamed: u64,
    /// How often the real-time clock was set.
    pub clock_steps: u64,
    pub started_ns: u64,
    pub ended_ns: u64,
    /// Why it ended without a request to stop.
    pub error: Option<String>,
}

/// The receiver's thread: a source of frames and their keeper.
pub struct Receiver<'a> {
    source: Source,
    keeper: Keeper<'a>,
    live: &'a Live,
    backlog: Option<Watch>,
    started_ns: u64,
    chores_done: Instant,
    counted_on: Instant,
}

impl<'a> Receiver<'a> {
    /// Starts counting backlog losses.
    pub fn new(source: Source, keeper: Keeper<'a>, live: &'a Live) -> Self {
        let (backlog, started_ns) = (Watch::start(&[]).ok(), clock::realtime_ns());
        let now = Instant::now();
        Self { source, keeper, live, backlog, started_ns, chores_done: now, counted_on: now }
    }

    /// Receives until a request to stop or an error.
    pub fn run(mut self) -> Report {
        let mut error = None;
        while !self.live.stop.load(Ordering::Acquire) {
            let received = self.receive();
            match received.and(self.chores()) {
                // Reception continues when the interface comes up again.
                Err(down) if down.kind() == io::ErrorKind::NetworkDown => {}
                Err(other) => {
                    error = Some(format!("receive: {other}"));
                    break;
                }
                Ok(()) => {}
            }
            self.live.rounds.fetch_add(1, Ordering::Relaxed);
            self.keeper.check_clock();
        }
        self.finish(error)
    }

    fn receive(&mut self) -> io::Result<()> {
        let Self { source, keeper, .. } = self;
        let received = source.next(WAIT_NS, keeper);
        self.follow_changes();
        received?;
        let Self { source, keeper, live, .. } = self;
        keeper.queue.set_complete_until(source.complete_until_ns());
        live.frames.store(keeper.kept, Ordering::Relaxed);
        live.queue_lost.store(keeper.queue_lost, Ordering::Relaxed);
        Ok(())
    }

    /// The work that is not needed for every block.
    fn chores(&mut self) -> io::Result<()> {
        if self.chores_done.elapsed() < CHORES {
            return Ok(());
        }
        self.chores_done = Instant::now();
        let Self { source, keeper, live, .. } = self;
        source.note_devices(&mut keeper.buses);
        if self.counted_on.elapsed() > COUNT_ON {
            self.counted_on = Instant::now();
            keeper.buses.count_on();
        }
        let wants_load = live.wants_load();
        keeper.buses.compute_load(wants_load);
        // If a reader holds the lock now, the next round publishes.
        if wants_load && let Ok(mut shown) = live.busy.try_lock() {
            *shown = keeper.buses.busy();
        }
        let lost = source.ring_drops()? + source.own_drops(&mut keeper.buses)?;
        live.ring_lost.store(lost, Ordering::Relaxed);
        Ok(())
    }

    /// Follows interfaces that appeared, disappeared, changed state or were renamed.
    fn follow_changes(&mut self) {
        let Self { source, keeper, live, .. } = self;
        keeper.buses.follow_changes();
        for news in keeper.buses.take_news() {
            source.follow(&news, keeper, live);
        }
    }

    /// Ends the recording: reads all counters, then takes the frames received before that out of the kernel.
    fn finish(mut self, mut error: Option<String>) -> Report {
        self.keeper.check_clock();
        let clock_was_set = self.keeper.clock_set.is_some_and(|when| when.elapsed() < CLOCK_SETTLED);
        self.source.note_devices(&mut self.keeper.buses);
        self.follow_changes();
        let Self { mut source, mut keeper, live, backlog, started_ns, .. } = self;
        for name in keeper.buses.missing() {
            live.log(format!("{name}: never appeared"));
        }
        let before_end = source.ring_drops().unwrap_or_default();
        keeper.buses.end(clock_was_set);
        let ended_ns = clock::realtime_ns();
        // Read before draining: sockets and devices still receive, and lose frames that arrive after the end; the ring is
        // closed first.
        let own_lost = source.own_drops(&mut keeper.buses);
        let drained = source.drain(&mut keeper);
        let lost = source.ring_drops();
        let frames = own_lost.and(drained).and(lost).unwrap_or_else(|failed| {
            error.get_or_insert(format!("drain: {failed}"));
            before_end
        });
        let ring = RingLoss { frames, before_end, is_shared: source.has_shared_ring() };
        let backlog_lost = backlog.and_then(|watch| watch.losses().ok()).map_or(0, |losses| losses.backlog);
        Report {
            unnamed: keeper.buses.unnamed,
            buses: keeper.buses.list,
            method: source.method(),
            ring_bytes: source.bytes() as u64,
            ring,
            backlog_lost,
            clock_steps: keeper.clock_steps,
            started_ns,
            ended_ns,
            error,
        }
    }
}

//! The receiver's thread: moves frames from the ring, the sockets or the devices to the queue, and counts every frame. It
//! does as little work per frame as possible, so that the ring does not fill.

use crate::{
    bus::Bus,
    counting::{clock_offset_ns, clock_step},
    judge::RingLoss,
    keeper::Keeper,
    live::Live,
    queue::Item,
    source::Source,
    verdict::Method,
};
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
/// The interval at which it publishes the bus load.
const BUSY: Duration = Duration::from_millis(200);

/// The receiver's result.
pub struct Report {
    pub buses: Vec<Bus>,
    pub method: Method,
    pub ring_bytes: u64,
    /// Frames lost because the ring was full; the buses count those of sockets and devices.
    pub ring: RingLoss,
    /// Frames lost because a processor's backlog was full, of all interfaces.
    pub backlog_lost: u64,
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
    clock_steps: u64,
    /// When the clock was set last.
    clock_set: Option<Instant>,
    chores_done: Instant,
    counted_on: Instant,
    busy_shown: Instant,
}

impl<'a> Receiver<'a> {
    /// Starts counting backlog losses.
    pub fn new(source: Source, keeper: Keeper<'a>, live: &'a Live) -> Self {
        let (backlog, started_ns) = (Watch::start(&[]).ok(), clock::realtime_ns());
        let now = Instant::now();
        Self {
            source,
            keeper,
            live,
            backlog,
            started_ns,
            clock_steps: 0,
            clock_set: None,
            chores_done: now,
            counted_on: now,
            busy_shown: now,
        }
    }

    /// Receives until a request to stop or an error.
    pub fn run(mut self) -> Report {
        let mut error = None;
        let mut offset_ns = clock_offset_ns();
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
            let now_ns = clock_offset_ns();
            if let Some(step_ns) = clock_step(offset_ns, now_ns) {
                self.clock_was_set(step_ns);
            }
            offset_ns = now_ns;
        }
        self.finish(error, offset_ns)
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
        if live.show_load.load(Ordering::Relaxed) && self.busy_shown.elapsed() > BUSY {
            // If a reader holds the lock now, the next round publishes.
            if let Ok(mut shown) = live.busy.try_lock() {
                *shown = keeper.buses.busy();
            }
            self.busy_shown = Instant::now();
        }
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

    fn clock_was_set(&mut self, step_ns: i64) {
        let (way, ms) = (if step_ns < 0 { "back" } else { "forward" }, step_ns.unsigned_abs() / 1_000_000);
        let text = format!("the clock was set {way} by {}.{:03} s", ms / 1000, ms % 1000);
        self.live.log(text.clone());
        self.clock_steps += 1;
        self.clock_set = Some(Instant::now());
        self.keeper.queue.send(Item::ClockStep(text));
        self.keeper.buses.clock_was_set();
    }

    /// Ends the recording: reads all counters, then takes the frames received before that out of the kernel.
    fn finish(mut self, mut error: Option<String>, offset_ns: u64) -> Report {
        if let Some(step_ns) = clock_step(offset_ns, clock_offset_ns()) {
            self.clock_was_set(step_ns);
        }
        let clock_was_set = self.clock_set.is_some_and(|when| when.elapsed() < CLOCK_SETTLED);
        self.source.note_devices(&mut self.keeper.buses);
        self.follow_changes();
        let Self { mut source, mut keeper, live, backlog, started_ns, clock_steps, .. } = self;
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
            buses: keeper.buses.list,
            method: source.method(),
            ring_bytes: source.bytes() as u64,
            ring,
            backlog_lost,
            clock_steps,
            started_ns,
            ended_ns,
            error,
        }
    }
}

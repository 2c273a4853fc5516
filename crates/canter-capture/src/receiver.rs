//! The receiver's thread: moves frames from the ring, the sockets or the devices to the queue, and counts every frame. It
//! does as little work per frame as possible, so that the ring does not fill.

use crate::{buses::Bus, keeper::Keeper, live::Live, queue::Item, source::Source};
use canter_io::{clock, loss::Watch, monitor::Monitor};
use std::{
    io,
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

/// The longest wait for frames, in ns, and therefore the longest delay of a request to stop.
const WAIT_NS: u64 = 100_000_000;
/// The interval at which it reads loss counters and follows interfaces that appear and disappear.
const CHORES: Duration = Duration::from_millis(100);
/// If the real-time clock differs from the monotonic clock by more than this, in ns, since the last round, it was set.
const CLOCK_STEP_NS: u64 = 50_000_000;
/// The interval at which it publishes the bus load.
const BUSY: Duration = Duration::from_millis(200);

/// The receiver's result.
pub struct Report {
    pub buses: Vec<Bus>,
    /// How frames were received: `ring`, `sockets`, `devices` or a combination.
    pub method: String,
    pub ring_bytes: u64,
    /// Frames lost because the ring was full, of all interfaces; the buses count those of sockets and devices.
    pub ring_lost: u64,
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
    monitor: Option<Monitor>,
    backlog: Option<Watch>,
    started_ns: u64,
    clock_steps: u64,
    chores_done: Instant,
    busy_shown: Instant,
}

/// Real time minus monotonic time, in ns. A preemption between the two readings would look like a clock step, so the
/// clocks are read again then.
fn clock_offset_ns() -> u64 {
    loop {
        let before_ns = clock::monotonic_ns();
        let offset_ns = clock::realtime_ns().wrapping_sub(before_ns);
        if clock::monotonic_ns() - before_ns < CLOCK_STEP_NS / 2 {
            return offset_ns;
        }
    }
}

impl<'a> Receiver<'a> {
    /// Starts counting backlog losses.
    pub fn new(source: Source, keeper: Keeper<'a>, monitor: Option<Monitor>, live: &'a Live) -> Self {
        let (backlog, started_ns) = (Watch::start(&[]).ok(), clock::realtime_ns());
        let now = Instant::now();
        let (chores_done, busy_shown) = (now, now);
        Self { source, keeper, live, monitor, backlog, started_ns, clock_steps: 0, chores_done, busy_shown }
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
            let step_ns = now_ns.wrapping_sub(offset_ns).cast_signed();
            if step_ns.unsigned_abs() > CLOCK_STEP_NS {
                self.clock_was_set(step_ns);
            }
            offset_ns = now_ns;
        }
        self.finish(error)
    }

    fn receive(&mut self) -> io::Result<()> {
        let Self { source, keeper, live, .. } = self;
        source.next(WAIT_NS, keeper)?;
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
        self.follow_changes();
        let Self { source, keeper, live, .. } = self;
        let lost = source.ring_drops()? + source.own_drops(&mut keeper.buses)?;
        live.ring_lost.store(lost, Ordering::Relaxed);
        Ok(())
    }

    /// Follows interfaces that appeared, disappeared, changed state or were renamed.
    fn follow_changes(&mut self) {
        let Self { source, keeper, live, monitor, .. } = self;
        source.follow_devices(&mut keeper.buses, live);
        let Some(listening) = monitor else { return };
        let mut changes = Vec::new();
        if let Err(error) = listening.changes(|change| changes.push(change)) {
            live.log(format!(
                "interfaces: listen for changes: {error}; later ones are found by their frames"
            ));
            *monitor = None;
        }
        for change in changes {
            for news in keeper.buses.change(change) {
                source.follow(&news, &mut keeper.buses, live);
            }
        }
    }

    fn clock_was_set(&mut self, step_ns: i64) {
        let (way, ms) = (if step_ns < 0 { "back" } else { "forward" }, step_ns.unsigned_abs() / 1_000_000);
        let text = format!("the clock was set {way} by {}.{:03} s", ms / 1000, ms % 1000);
        self.live.log(text.clone());
        self.clock_steps += 1;
        self.keeper.queue.send(Item::ClockStep(text));
        self.keeper.buses.clock_was_set();
    }

    /// Ends the recording: reads all counters, then takes the frames received before that out of the kernel.
    fn finish(mut self, mut error: Option<String>) -> Report {
        self.follow_changes();
        let Self { mut source, mut keeper, live, backlog, started_ns, clock_steps, .. } = self;
        for name in keeper.buses.missing() {
            live.log(format!("{name}: never appeared"));
        }
        keeper.buses.end();
        let ended_ns = clock::realtime_ns();
        // Read before draining: sockets and devices still receive, and lose frames that arrive after the end; the ring is
        // closed first.
        let own = source.own_drops(&mut keeper.buses);
        let drained = source.drain(&mut keeper);
        let lost = source.ring_drops();
        let ring_lost = own.and(drained).and(lost).unwrap_or_else(|failed| {
            error.get_or_insert(format!("drain: {failed}"));
            0
        });
        let backlog_lost = backlog.and_then(|watch| watch.losses().ok()).map_or(0, |losses| losses.backlog);
        let (method, ring_bytes) = (source.method(), source.bytes() as u64);
        let buses = keeper.buses.list;
        Report {
            buses,
            method,
            ring_bytes,
            ring_lost,
            backlog_lost,
            clock_steps,
            started_ns,
            ended_ns,
            error,
        }
    }
}

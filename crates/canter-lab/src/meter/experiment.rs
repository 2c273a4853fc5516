//! The loop of the latency meter: sends numbered frames at the times of the traffic, collects the stamps of both buses,
//! and reports their differences. It runs on the machine or in a simulation, with different surroundings.

use canter_io::{
    Batch, Frame,
    batch::BATCH_FRAMES,
    clock,
    frame::BitRate,
    method::{Receive, Transmit},
    poll,
};
use canter_measure::matcher::{LOST_NS, Matcher, Passage, Tally};
use canter_route::traffic::{pattern::Traffic, random::Random, schedule, template};
use std::{
    io,
    os::fd::BorrowedFd,
    sync::atomic::{AtomicBool, Ordering},
};

/// The clock and the waiting of the meter.
pub trait Surroundings {
    /// The time in ns.
    fn now_ns(&self) -> u64;
    /// Waits until `until_ns`, or until one of the receivers may have a frame.
    fn wait(&mut self, until_ns: u64, receivers: [&dyn Receive; 2]) -> io::Result<()>;
}

/// The machine itself.
pub struct Machine;

/// How long the meter spins before it sleeps, in `pause` instructions. In a virtual clock each `pause` lets the other
/// processors run, so that the meter's code for sleeping does not delay a gateway there.
const PAUSES_BEFORE_SLEEP: u32 = 400;

/// The shortest wait in which the meter sleeps; for a shorter one it spins, because sleeping and waking up takes as long.
const SPIN_NS: u64 = 100_000;

impl Surroundings for Machine {
    fn now_ns(&self) -> u64 {
        clock::monotonic_ns()
    }

    fn wait(&mut self, until_ns: u64, receivers: [&dyn Receive; 2]) -> io::Result<()> {
        if until_ns.saturating_sub(self.now_ns()) < SPIN_NS {
            while self.now_ns() < until_ns {
                canter_io::thread::relax();
            }
            return Ok(());
        }
        for _ in 0..PAUSES_BEFORE_SLEEP {
            canter_io::thread::relax();
        }
        let descriptors: Vec<BorrowedFd<'_>> = receivers.iter().filter_map(|one| one.descriptor()).collect();
        let left_ns = until_ns.saturating_sub(self.now_ns()).saturating_sub(SPIN_NS / 2);
        poll::readable(&descriptors, Some(left_ns)).map(drop)
    }
}

/// The meter collects stamps at least once per this number of frames, also in dense traffic.
const UNCOLLECTED_MAX: u64 = 4096;

/// The wait when the interface's queue is full.
const QUEUE_FULL_NS: u64 = 50_000;

/// After this time without a sent frame the bus counts as dead. Longer than [`LOST_NS`], so that the meter first
/// reports that none of the first frames arrived.
const QUEUE_STUCK_NS: u64 = 2 * LOST_NS;

/// The side whose system call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Port {
    Send,
    Direct,
    Routed,
}

/// The sender of the frames.
pub enum Sending {
    /// The meter sends frame by frame.
    Frames(Box<dyn Transmit>),
    /// A sender with a schedule sends.
    Schedule(Box<dyn Schedule>),
}

/// A sender that numbers its frames from 0. The meter learns of each frame from the direct receiver.
pub trait Schedule {
    /// Starts the schedule.
    fn start(&mut self) -> io::Result<()>;
    /// Whether frames remain to be sent.
    fn is_running(&mut self) -> io::Result<bool>;
    /// Ends the schedule.
    fn stop(&mut self) -> io::Result<()>;
    /// The course of a schedule whose stamps are kept until its end; `None`: they are read from time to time.
    fn kept(&mut self) -> io::Result<Option<Kept>> {
        Ok(None)
    }
}

/// The course of a schedule whose stamps are kept until its end, so that no reader takes the gateway's processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The time after which all frames should be sent, in ns.
    pub lasts_ns: u64,
    /// The number of frames that have come through so far, counted without reading a stamp.
    pub through: u64,
}

/// One measurement.
pub struct Experiment {
    pub direct: Box<dyn Receive>,
    pub routed: Box<dyn Receive>,
    pub traffic: Traffic,
    /// The average duration of a frame on the sender's bus, with the interframe space, in ns: for loads in per cent.
    pub frame_ns: u64,
    /// The pause before the next frame, in ns, of frames one at a time.
    pub gap_ns: u64,
    /// The largest random addition to the pause, in ns.
    pub jitter_ns: u64,
    /// The seed of the random additions.
    pub seed: u64,
    pub frame: Frame,
    pub count: u64,
    /// The bit rates at which a frame takes the time that is taken off its latency: those of the routed bus; of cards the half,
    /// for both buses. `None` where a frame takes no time.
    pub wire: Option<BitRate>,
}

/// A frame that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    pub number: u16,
    pub passage: Passage,
    /// The time between the two stamps, less the frame's on the wires: [`Passage::latency_ns`].
    pub latency_ns: i64,
}

/// The outcome of an experiment.
pub struct Outcome {
    pub tally: Tally,
    /// Frames that the meter's own receive queues lost.
    pub queue_drops: u64,
    /// Frames that the meter sent more than [`LATE_PART`] of their period after they were due.
    pub late: u64,
    /// Whether somebody ended the experiment before all frames were sent. A hopeless one ends too; its tally says so.
    pub interrupted: bool,
}

/// A frame is late when it comes after this part of its period, or of its duration on a wire: its latency is not one of the
/// traffic that was asked for.
pub const LATE_PART: u64 = 10;

/// The experiment ends when none of this number of first frames has arrived.
const HOPELESS_FRAMES: u64 = 3;

impl Experiment {
    /// Sends all frames and waits until each has arrived or is lost. `record` takes every arrival; it runs between
    /// frames, so it must not allocate.
    pub fn run(
        mut self,
        mut sending: Sending,
        surroundings: &mut dyn Surroundings,
        stop: &AtomicBool,
        record: &mut dyn FnMut(Arrival),
        progress: &mut dyn FnMut(Tally),
    ) -> Result<Outcome, (Port, io::Error)> {
        let mut running = Running::new(self.traffic, self.seed, surroundings.now_ns());
        match &mut sending {
            Sending::Frames(sender) => {
                self.send_all(&mut **sender, &mut running, surroundings, stop, record, progress)?;
            }
            Sending::Schedule(schedule) => {
                self.follow(&mut **schedule, &mut running, surroundings, stop, record, progress)?;
            }
        }
        running.matcher.expire(u64::MAX); // a hopeless experiment does not wait for the last frames
        let drops = |receiver: &mut dyn Receive| receiver.drops().unwrap_or(0);
        let queue_drops = drops(&mut *self.direct) + drops(&mut *self.routed);
        let tally = running.matcher.tally();
        let interrupted = stop.load(Ordering::Acquire) && tally.sent < self.count;
        Ok(Outcome { tally, queue_drops, late: running.late, interrupted })
    }

    /// Sends frame by frame, at the times of the traffic.
    fn send_all(
        &mut self,
        sender: &mut dyn Transmit,
        running: &mut Running,
        surroundings: &mut dyn Surroundings,
        stop: &AtomicBool,
        record: &mut dyn FnMut(Arrival),
        progress: &mut dyn FnMut(Tally),
    ) -> Result<(), (Port, io::Error)> {
        loop {
            let now_ns = surroundings.now_ns();
            let next = self.next(running, now_ns, stop);
            let idle_ns = if let Next::At(at_ns) = next { at_ns.saturating_sub(now_ns) } else { 0 };
            if idle_ns >= SPIN_NS || running.overdue(now_ns) || next == Next::End {
                let before = running.matcher.tally().received;
                self.collect(running, record)?;
                running.matcher.expire(now_ns);
                running.collected_ns = now_ns;
                progress(running.matcher.tally());
                if running.matcher.tally().received > before && self.traffic == Traffic::OneAtATime {
                    let jitter_ns = running.random.below(self.jitter_ns.saturating_add(1));
                    running.not_before_ns =
                        surroundings.now_ns().saturating_add(self.gap_ns).saturating_add(jitter_ns);
                    continue;
                }
            }
            match next {
                Next::Now => {
                    let sent = self.send(sender, running, now_ns)?;
                    if sent && self.traffic == Traffic::OneAtATime {
                        // Only waits: no other code should run beside the gateway.
                        self.wait(surroundings, now_ns + LOST_NS / 10)?;
                    }
                }
                Next::At(at_ns) => self.wait(surroundings, at_ns)?,
                Next::End => return Ok(()),
            }
        }
    }

    /// Lets a schedule run, and collects stamps from time to time.
    fn follow(
        &mut self,
        schedule: &mut dyn Schedule,
        running: &mut Running,
        surroundings: &mut dyn Surroundings,
        stop: &AtomicBool,
        record: &mut dyn FnMut(Arrival),
        progress: &mut dyn FnMut(Tally),
    ) -> Result<(), (Port, io::Error)> {
        let failed = |error| (Port::Send, error);
        running.followed = true;
        schedule.start().map_err(failed)?;
        if let Some(kept) = schedule.kept().map_err(failed)? {
            self.let_through(schedule, kept, surroundings, stop, progress)?;
        }
        loop {
            let until_ns = surroundings.now_ns() + LOST_NS / 10;
            self.wait(surroundings, until_ns)?;
            let is_running = schedule.is_running().map_err(failed)?;
            let now_ns = surroundings.now_ns();
            self.collect(running, record)?;
            running.matcher.expire(now_ns);
            progress(running.matcher.tally());
            if !is_running && running.matcher.open() == 0 {
                return Ok(());
            }
            let tally = running.matcher.tally();
            let hopeless = tally.received == 0 && tally.lost >= HOPELESS_FRAMES;
            if is_running && (hopeless || stop.load(Ordering::Acquire)) {
                schedule.stop().map_err(failed)?;
            }
        }
    }

    /// Sleeps until a schedule has ended and the gateway sends no more. Once a second the meter looks whether anything comes
    /// through at all.
    fn let_through(
        &self,
        schedule: &mut dyn Schedule,
        at_start: Kept,
        surroundings: &mut dyn Surroundings,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(Tally),
    ) -> Result<(), (Port, io::Error)> {
        let failed = |error| (Port::Send, error);
        let through = |schedule: &mut dyn Schedule| {
            schedule.kept().map(|kept| kept.map_or(0, |kept| kept.through)).map_err(failed)
        };
        let begin_ns = surroundings.now_ns();
        let end_ns = begin_ns.saturating_add(at_start.lasts_ns);
        let mut stopped = false;
        while surroundings.now_ns() < end_ns && !stopped {
            let until_ns = end_ns.min(surroundings.now_ns() + LOST_NS);
            self.wait(surroundings, until_ns)?;
            let silent =
                surroundings.now_ns() >= begin_ns + LOST_NS && through(schedule)? == at_start.through;
            stopped = silent || stop.load(Ordering::Acquire);
        }
        while !stopped && schedule.is_running().map_err(failed)? {
            stopped = stop.load(Ordering::Acquire);
            let until_ns = surroundings.now_ns() + LOST_NS / 10;
            self.wait(surroundings, until_ns)?;
        }
        // All is sent; the rest of the time is waiting and reading.
        progress(Tally { sent: self.count, ..Tally::default() });
        if stopped {
            schedule.stop().map_err(failed)?;
        }
        loop {
            let before = through(schedule)?;
            let until_ns = surroundings.now_ns() + LOST_NS / 10;
            self.wait(surroundings, until_ns)?;
            if through(schedule)? == before {
                return Ok(());
            }
        }
    }

    /// The next step of the meter.
    fn next(&self, running: &Running, now_ns: u64, stop: &AtomicBool) -> Next {
        let (tally, open) = (running.matcher.tally(), running.matcher.open());
        let hopeless = tally.received == 0 && tally.lost >= HOPELESS_FRAMES;
        let over = tally.sent == self.count || stop.load(Ordering::Acquire) || hopeless;
        if over && (open == 0 || hopeless) {
            return Next::End;
        }
        // Wakes up soon enough to see the next arrival or loss.
        let later = Next::At(now_ns + LOST_NS / 10);
        let due_ns = match running.schedule.due_ns() {
            Some(due_ns) => running.start_ns.saturating_add(due_ns),
            None if self.traffic == Traffic::OneAtATime && open > 0 => return later,
            None => 0,
        };
        if over || running.matcher.next_number().is_none() {
            return later;
        }
        let due_ns = due_ns.max(running.not_before_ns);
        if due_ns > now_ns { Next::At(due_ns) } else { Next::Now }
    }

    fn wait(&self, surroundings: &mut dyn Surroundings, until_ns: u64) -> Result<(), (Port, io::Error)> {
        surroundings.wait(until_ns, [&*self.direct, &*self.routed]).map_err(|error| (Port::Routed, error))
    }

    /// Sends the next frame; false when the interface's queue is full.
    fn send(
        &mut self,
        sender: &mut dyn Transmit,
        running: &mut Running,
        now_ns: u64,
    ) -> Result<bool, (Port, io::Error)> {
        let Some(number) = running.matcher.next_number() else { return Ok(false) };
        template::set_number(&mut self.frame, number);
        running.matcher.sending(now_ns);
        let frames = std::slice::from_ref(&self.frame);
        let taken = sender.transmit(frames).and_then(|count| sender.flush().map(|()| count));
        let sent = taken.map_err(|error| (Port::Send, error))? > 0;
        if sent {
            running.late += u64::from(self.is_late(running, now_ns));
            running.schedule.sent(self.frame_ns);
            running.uncollected += 1;
            running.full_since_ns = None;
        } else {
            running.matcher.not_sent();
            running.not_before_ns = now_ns + QUEUE_FULL_NS;
            if now_ns >= *running.full_since_ns.get_or_insert(now_ns) + QUEUE_STUCK_NS {
                let stuck = "the queue was full for 2 s: no frame leaves for the bus";
                return Err((Port::Send, io::Error::new(io::ErrorKind::TimedOut, stuck)));
            }
        }
        canter_io::thread::relax(); // lets the other processors run in a virtual clock
        Ok(sent)
    }

    /// Whether the next frame of a regular traffic is sent late.
    fn is_late(&self, running: &Running, now_ns: u64) -> bool {
        let (Traffic::Period(_) | Traffic::Load(_)) = self.traffic else { return false };
        let (Some(due_ns), Some(period_ns)) =
            (running.schedule.due_ns(), self.traffic.period_ns(self.frame_ns))
        else {
            return false;
        };
        now_ns > running.start_ns.saturating_add(due_ns).saturating_add(period_ns / LATE_PART)
    }

    /// Reads the frames that have arrived on both buses.
    fn collect(
        &mut self,
        running: &mut Running,
        record: &mut dyn FnMut(Arrival),
    ) -> Result<(), (Port, io::Error)> {
        running.uncollected = 0;
        let Running { matcher, batch, followed, .. } = running;
        let (wire, like) = (self.wire, self.frame);
        let mut arrived = |number, passage: Option<Passage>, frame: &Frame| {
            if let Some(passage) = passage {
                let taken_ns = wire.map_or(0, |rate| frame.duration_ns(rate));
                record(Arrival { number, passage, latency_ns: passage.latency_ns(taken_ns) });
            }
        };
        drain(&mut *self.direct, batch, &like, |number, stamp_ns, frame| {
            if *followed {
                matcher.sent_up_to(number, stamp_ns);
            }
            arrived(number, matcher.direct(number, stamp_ns), frame)
        })
        .map_err(|error| (Port::Direct, error))?;
        drain(&mut *self.routed, batch, &like, |number, stamp_ns, frame| {
            if *followed {
                matcher.sent_up_to(number, stamp_ns); // its direct stamp came after the direct frames were read
            }
            arrived(number, matcher.routed(number, stamp_ns), frame)
        })
        .map_err(|error| (Port::Routed, error))
    }
}

/// Reads a receiver until it is empty; skips frames of others.
pub(super) fn drain(
    receiver: &mut dyn Receive,
    batch: &mut Batch,
    like: &Frame,
    mut take: impl FnMut(u16, u64, &Frame),
) -> io::Result<()> {
    loop {
        batch.clear();
        if receiver.receive(batch)? == 0 {
            return Ok(());
        }
        for (frame, meta) in batch.iter() {
            if let Some(number) = template::number(frame, like) {
                take(number, meta.stamp_ns, frame);
            }
        }
    }
}

/// The state of a running experiment.
struct Running {
    matcher: Matcher,
    batch: Batch,
    schedule: schedule::Schedule,
    random: Random,
    start_ns: u64,
    not_before_ns: u64,
    uncollected: u64,
    collected_ns: u64,
    full_since_ns: Option<u64>,
    late: u64,
    /// Whether the sender has a schedule: then the meter learns from the direct receiver that a frame was sent.
    followed: bool,
}

impl Running {
    fn new(traffic: Traffic, seed: u64, now_ns: u64) -> Self {
        Self {
            matcher: Matcher::new(),
            batch: Batch::new(BATCH_FRAMES),
            schedule: schedule::Schedule::new(traffic),
            random: Random(seed),
            start_ns: now_ns,
            not_before_ns: 0,
            uncollected: 0,
            collected_ns: now_ns,
            full_since_ns: None,
            late: 0,
            followed: false,
        }
    }

    /// Stamps must be collected even in dense traffic: when there are many, or when nothing can be sent, because losses
    /// would stay undetected.
    fn overdue(&self, now_ns: u64) -> bool {
        self.uncollected >= UNCOLLECTED_MAX || now_ns >= self.collected_ns + LOST_NS
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Now,
    At(u64),
    End,
}

#[cfg(test)]
mod tests;

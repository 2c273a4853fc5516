//! A route: forwards frames from one interface to another by a receiver, rules and a transmitter. Measurements run this
//! loop, too.

pub mod together;

use super::{backlog::Backlog, control::Control};
use crate::rules::{counts::Counts, engine::Engine, limit::Arrivals};
use canter_io::{
    Batch, Frame, clock,
    method::{Receive, Transmit},
    poll,
};
use std::{
    io,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

/// Timeout of a full output. After it, the frames that wait for the output are dropped and counted.
pub const ROOM_TIMEOUT_NS: u64 = 1_000_000_000;

/// How long a sending call waits for room, so that the route stays responsive. One tick of the slowest kernel, at least.
pub const ROOM_WAIT: Duration = Duration::from_millis(10);

/// Delay before a full output is tried again, when the kernel cannot wait for room (`ENOBUFS`). Doubles each time.
pub const ROOM_RETRY_NS: u64 = 50_000;

/// The longest delay before a full output is tried again.
const ROOM_RETRY_NS_MAX: u64 = 5_000_000;

/// How long a route that is stopped continues to receive frames that have arrived.
const DRAIN_RECEIVE_NS: u64 = 500_000_000;

/// The most frames that a route collects before it makes the kernel send them, and so how long it collects: a receiver that
/// spins finds as many in as many looks.
pub const GATHERED_MAX: usize = 64;

/// The side on which a route failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    In,
    Out,
}

/// The result of moving a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// There were no frames.
    Idle,
    /// Frames moved.
    Moved,
    /// The output has no room for the rest, which stays in the batch.
    Full,
}

/// One direction of a gateway.
pub struct Route {
    pub receive: Box<dyn Receive>,
    pub transmit: Box<dyn Transmit>,
    /// Collect frames until no more arrive, at most [`GATHERED_MAX`], and only then make the kernel send them. For receivers that spin, as in the
    /// 2014 paper's mmap and readnb gateways; a receiver that blocks would block while frames are unsent.
    pub gather: bool,
    pub batch: Batch,
    pub counts: Counts,
    /// The rules; `None`: every frame is forwarded unchanged.
    pub engine: Option<Engine>,
    /// The queue of frames while the output is full; `None`: the input waits, too.
    pub backlog: Option<Backlog>,
    /// The connection to other threads.
    pub control: Option<Control>,
    /// Number of frames of the batch to send, after the rules.
    ready: usize,
    /// Number of these frames that the transmitter has taken over.
    accepted: usize,
    /// Pending frames must be sent before more are received.
    flushing: bool,
    /// Since when the output has been full, in the caller's clock.
    full_since_ns: Option<u64>,
    /// The output has been full for [`ROOM_TIMEOUT_NS`] and has accepted no frame since: frames that find no room are
    /// dropped at once, so that none is old when the output recovers.
    stuck: bool,
    /// Delay before the next attempt to send.
    retry_ns: u64,
}

impl Route {
    pub fn new(
        receive: Box<dyn Receive>,
        transmit: Box<dyn Transmit>,
        batch_frames: usize,
        gather: bool,
    ) -> Self {
        Self {
            receive,
            transmit,
            gather,
            batch: Batch::new(batch_frames),
            counts: Counts::default(),
            engine: None,
            backlog: None,
            control: None,
            ready: 0,
            accepted: 0,
            flushing: false,
            full_since_ns: None,
            stuck: false,
            retry_ns: ROOM_RETRY_NS,
        }
    }

    /// Routes until `stop` is set or a side fails. Frames that arrived before `stop` are still routed. Afterwards the
    /// counts include every received frame.
    pub fn run(&mut self, stop: &AtomicBool) -> Result<(), (Side, io::Error)> {
        let ended = self.route(stop, Self::wait_for_room);
        let ended = ended.and_then(|()| self.drain(clock::monotonic_ns()));
        self.end(ended)
    }

    /// Runs with another way to wait for room, and without receiving more frames after `stop`.
    #[cfg(test)]
    pub fn run_with(
        &mut self,
        stop: &AtomicBool,
        wait_for_room: impl FnMut(&mut Self) -> io::Result<()>,
    ) -> Result<(), (Side, io::Error)> {
        let ended = self.route(stop, wait_for_room);
        self.end(ended)
    }

    fn end(&mut self, ended: Result<(), (Side, io::Error)>) -> Result<(), (Side, io::Error)> {
        if matches!(ended, Err((Side::Out, _))) {
            self.count_waiting();
        }
        self.close_account();
        ended
    }

    /// Counts the frames that wait in the receiver of a route whose output has failed: they go with it.
    fn count_waiting(&mut self) {
        let begun_ns = clock::monotonic_ns();
        loop {
            let not_taken = self.ready - self.accepted;
            self.counts.drop_as(not_taken as u64, |drops| &mut drops.unsent);
            self.accepted = self.ready;
            let spins = self.receive.descriptor().is_none();
            if clock::monotonic_ns() - begun_ns > DRAIN_RECEIVE_NS || !spins && !self.has_more() {
                return;
            }
            if !matches!(self.receive_batch(), Ok(1..)) {
                return;
            }
        }
    }

    fn route(
        &mut self,
        stop: &AtomicBool,
        mut wait_for_room: impl FnMut(&mut Self) -> io::Result<()>,
    ) -> Result<(), (Side, io::Error)> {
        while !stop.load(Ordering::Acquire) {
            if let Some(control) = &self.control {
                control.answer(&self.counts, self.engine.as_ref());
            }
            if self.pump()? == Step::Full {
                wait_for_room(self).map_err(|error| (Side::Out, error))?;
            }
        }
        Ok(())
    }

    /// Sends waiting and arrived frames, within [`ROOM_TIMEOUT_NS`] from `begun_ns` on.
    fn drain(&mut self, begun_ns: u64) -> Result<(), (Side, io::Error)> {
        let mut receiving = true;
        loop {
            let passed_ns = clock::monotonic_ns() - begun_ns;
            if passed_ns > ROOM_TIMEOUT_NS {
                return Ok(());
            }
            receiving &= passed_ns < DRAIN_RECEIVE_NS;
            let unsent = self.accepted < self.ready || self.has_backlog();
            let more = unsent || receiving && self.has_more();
            if !more && self.transmit.pending() == 0 {
                return Ok(());
            }
            let step = if more { self.pump()? } else { self.last_flush()? };
            if step == Step::Full {
                self.wait_for_room().map_err(|error| (Side::Out, error))?;
            }
        }
    }

    /// Whether a frame can be received without waiting.
    fn has_more(&self) -> bool {
        let Some(descriptor) = self.receive.descriptor() else { return false };
        poll::readable(&[descriptor], Some(0)).is_ok_and(|ready| ready > 0)
    }

    fn last_flush(&mut self) -> Result<Step, (Side, io::Error)> {
        self.flushing = true;
        self.send().map_err(|error| (Side::Out, error))
    }

    /// Moves one batch, or the rest of the last one. Only the receiver may wait: the caller decides how to wait for room.
    pub fn pump(&mut self) -> Result<Step, (Side, io::Error)> {
        if self.has_backlog() {
            return self.pump_backlog();
        }
        if self.accepted == self.ready && !self.flushing {
            let count = self.receive_batch()?;
            let gathers = self.gather && count > 0 && self.transmit.pending() + self.ready < GATHERED_MAX;
            self.flushing = !gathers && (self.ready > 0 || self.transmit.pending() > 0);
            if self.ready == 0 && !self.flushing {
                return Ok(Step::Idle); // a receiver that spins has already executed a pause
            }
        }
        let step = self.send().map_err(|error| (Side::Out, error))?;
        let step = if step == Step::Full { self.move_to_backlog() } else { step };
        // In a virtual clock processors take turns, and a pause ends a turn: without it, the receiver of the frame would
        // run only when this thread sleeps. On real processors a pause costs a few tens of ns.
        canter_io::thread::relax();
        if let Some(control) = &self.control {
            control.publish(&self.counts, self.engine.as_ref());
        }
        Ok(step)
    }

    /// Receives a batch and applies the rules to it; returns the number of received frames.
    fn receive_batch(&mut self) -> Result<usize, (Side, io::Error)> {
        self.batch.clear();
        (self.accepted, self.ready) = (0, 0);
        let count = self.receive.receive(&mut self.batch).map_err(|error| (Side::In, error))?;
        self.counts.received += count as u64;
        self.ready = count;
        if let Some(engine) = &mut self.engine {
            if let Some(control) = &self.control {
                control.renew(engine, &mut self.counts);
            }
            let arrivals = engine.needs_time().then(Arrivals::now);
            engine.apply(&mut self.batch, |meta| arrivals.map_or(0, |arrivals| arrivals.arrival_ns(meta)));
            self.ready = engine.ready();
        }
        Ok(count)
    }

    /// Passes the batch to the transmitter, and flushes it when that is due.
    fn send(&mut self) -> io::Result<Step> {
        if self.is_bus_off() {
            let waits = self.accepted < self.ready || self.transmit.pending() > 0;
            return Ok(if waits { Step::Full } else { Step::Moved });
        }
        if self.accepted < self.ready {
            let outgoing = match &self.engine {
                Some(engine) => engine.outgoing(&self.batch),
                None => self.batch.frames(),
            };
            match take_over(self.transmit.as_mut(), &outgoing[self.accepted..])? {
                Taken::Some(count) => {
                    self.accepted += count;
                    self.counts.transmitted += count as u64;
                    self.note_room(count > 0 && self.transmit.pending() == 0);
                }
                Taken::RefusedFirst => {
                    self.accepted += 1;
                    self.counts.drop_as(1, |drops| &mut drops.refused);
                    return Ok(Step::Moved);
                }
            }
        }
        let accepted_all = self.accepted == self.ready;
        let before = if self.flushing || !accepted_all { self.transmit.pending() } else { 0 };
        if before > 0 {
            self.transmit.flush()?;
            let pending = self.transmit.pending();
            self.note_room(pending < before);
            if !accepted_all && pending < before {
                return Ok(Step::Moved); // the flush made room, so the rest follows at once
            }
            if accepted_all && pending > 0 {
                return Ok(Step::Full);
            }
        }
        if !accepted_all {
            return Ok(Step::Full);
        }
        self.flushing = false;
        Ok(Step::Moved)
    }

    /// Whether the output is bus-off. It then counts as full, because the kernel would discard frames.
    fn is_bus_off(&self) -> bool {
        self.control.as_ref().is_some_and(Control::is_bus_off)
    }

    /// Notes whether the kernel accepted a frame.
    fn note_room(&mut self, room: bool) {
        if room {
            self.full_since_ns = None;
            self.retry_ns = ROOM_RETRY_NS;
            if self.stuck {
                self.set_stuck(false);
            }
        }
    }

    fn set_stuck(&mut self, stuck: bool) {
        self.stuck = stuck;
        self.transmit.set_waiting(!stuck);
    }

    /// Whether to try again after the output was full at `now_ns`. Drops the waiting frames after [`ROOM_TIMEOUT_NS`], and
    /// from then on at once, until the output accepts a frame.
    pub fn try_again(&mut self, now_ns: u64) -> bool {
        let since_ns = *self.full_since_ns.get_or_insert(now_ns);
        let in_time = !self.stuck && now_ns.saturating_sub(since_ns) <= ROOM_TIMEOUT_NS;
        if !in_time {
            if !self.stuck {
                self.set_stuck(true);
            }
            self.drop_rest();
        }
        in_time
    }

    /// Waits for room, for a short time.
    fn wait_for_room(&mut self) -> io::Result<()> {
        if !self.try_again(clock::monotonic_ns()) {
            return Ok(());
        }
        let wait_ns = self.next_wait_ns();
        if let Some(descriptor) = self.transmit.descriptor() {
            // Returns at once when the socket has room but the interface's queue is full, so sleep as well.
            poll::writable(descriptor, Some(wait_ns))?;
        }
        std::thread::sleep(Duration::from_nanos(wait_ns));
        Ok(())
    }

    /// The delay before the next attempt; doubles each time.
    fn next_wait_ns(&mut self) -> u64 {
        let wait_ns = self.retry_ns;
        self.retry_ns = (2 * wait_ns).min(ROOM_RETRY_NS_MAX);
        wait_ns
    }

    /// Drops the frames that the kernel has not got.
    fn drop_rest(&mut self) {
        let abandoned = self.transmit.abandon();
        self.counts.transmitted -= abandoned as u64;
        let dropped = abandoned + self.ready - self.accepted;
        self.counts.drop_as(dropped as u64, |drops| &mut drops.no_room);
        self.accepted = self.ready;
        self.flushing = false;
        self.full_since_ns = None;
    }

    /// Closes the account: frames that the transmitter took over but did not send count as dropped, not transmitted.
    fn close_account(&mut self) {
        let waiting = self.backlog.as_mut().map_or(0, Backlog::clear);
        let not_taken = self.ready - self.accepted;
        self.accepted = self.ready;
        (self.flushing, self.full_since_ns) = (false, None);
        self.counts.drop_as((not_taken + waiting) as u64, |drops| &mut drops.unsent);
        let _ = self.transmit.flush(); // after an error, the frames stay pending
        let pending = self.transmit.pending() as u64;
        let lost = self.transmit.lost();
        self.counts.transmitted -= pending + lost;
        self.counts.drop_as(pending, |drops| &mut drops.unsent);
        self.counts.drop_as(lost, |drops| &mut drops.refused);
        self.counts.overrun += self.receive.drops().unwrap_or(0);
        if let Some(engine) = &mut self.engine {
            self.counts.take(&mut engine.outcome);
        }
        self.counts.assert_balance();
        if let Some(control) = &self.control {
            control.publish(&self.counts, None);
        }
    }
}

/// A route whose input continues while its output is full.
impl Route {
    /// Whether frames wait that must be sent before all others. The rest of a batch does not: it follows those that the
    /// transmitter holds.
    fn has_backlog(&self) -> bool {
        let waits = |backlog: &Backlog| !backlog.is_empty() || self.flushing;
        self.accepted == self.ready && self.backlog.as_ref().is_some_and(waits)
    }

    /// Moves the rest of the batch to the backlog, if the route has one, to continue receiving while the output is full.
    fn move_to_backlog(&mut self) -> Step {
        let Some(backlog) = &mut self.backlog else { return Step::Full };
        let now_ns = clock::monotonic_ns();
        let outgoing = match &self.engine {
            Some(engine) => engine.outgoing(&self.batch),
            None => self.batch.frames(),
        };
        let dropped: u64 = outgoing[self.accepted..self.ready]
            .iter()
            .map(|frame| u64::from(!backlog.push(frame, now_ns)))
            .sum();
        self.accepted = self.ready;
        self.counts.drop_as(dropped, |drops| &mut drops.no_room);
        Step::Moved
    }

    /// Sends from the backlog, and appends frames that arrive meanwhile.
    fn pump_backlog(&mut self) -> Result<Step, (Side, io::Error)> {
        let now_ns = clock::monotonic_ns();
        self.drop_old(now_ns);
        let moved = self.send_backlog().map_err(|error| (Side::Out, error))?;
        self.note_room(moved);
        let timeout_ns = if moved { 0 } else { self.next_wait_ns() };
        let more = match self.receive.descriptor() {
            Some(descriptor) => {
                poll::readable(&[descriptor], Some(timeout_ns)).map_err(|error| (Side::In, error))? > 0
            }
            None => true, // it spins
        };
        if more {
            self.receive_batch()?;
            self.move_to_backlog();
        }
        if let Some(control) = &self.control {
            control.publish(&self.counts, self.engine.as_ref());
        }
        Ok(Step::Moved)
    }

    /// Drops the frames that have waited for too long: those of the backlog, and those that the transmitter holds when the
    /// output has accepted none for so long. From then on the transmitter gets one at a time, so that none is old when the
    /// output recovers.
    fn drop_old(&mut self, now_ns: u64) {
        let Some(backlog) = &mut self.backlog else { return };
        let expired = backlog.expire(now_ns);
        self.counts.drop_as(expired as u64, |drops| &mut drops.no_room);
        let since_ns = *self.full_since_ns.get_or_insert(now_ns);
        if now_ns.saturating_sub(since_ns) <= backlog.age_ns_max() {
            return;
        }
        let abandoned = self.transmit.abandon() as u64;
        self.counts.transmitted -= abandoned;
        self.counts.drop_as(abandoned, |drops| &mut drops.no_room);
        self.full_since_ns = None;
        if !self.stuck {
            self.set_stuck(true);
        }
    }

    /// Hands frames to the transmitter, no more than it gathers otherwise: in a backlog they grow old and are dropped. Returns
    /// whether the output accepted a frame.
    fn send_backlog(&mut self) -> io::Result<bool> {
        let before = self.transmit.pending();
        self.flushing = before > 0;
        if self.is_bus_off() {
            return Ok(false);
        }
        let Some(backlog) = &mut self.backlog else { return Ok(false) };
        let (mut taken_over, mut refused) = (0, false);
        while let Some(frames) = backlog.first() {
            let holds_max = if self.stuck { 1 } else { GATHERED_MAX };
            let room = holds_max.saturating_sub(before + taken_over).min(frames.len());
            if room == 0 {
                break;
            }
            match take_over(self.transmit.as_mut(), &frames[..room])? {
                Taken::Some(0) => break,
                Taken::Some(count) => {
                    backlog.remove(count);
                    self.counts.transmitted += count as u64;
                    taken_over += count;
                }
                Taken::RefusedFirst => {
                    backlog.remove(1);
                    self.counts.drop_as(1, |drops| &mut drops.refused);
                    refused = true;
                }
            }
        }
        self.transmit.flush()?;
        let pending = self.transmit.pending();
        self.flushing = pending > 0;
        Ok(refused || pending < before + taken_over)
    }
}

enum Taken {
    Some(usize),
    /// The interface refused the first frame, such as an FD frame on a classic interface. Routing continues.
    RefusedFirst,
}

fn take_over(transmit: &mut dyn Transmit, frames: &[Frame]) -> io::Result<Taken> {
    match transmit.transmit(frames) {
        Ok(count) => Ok(Taken::Some(count)),
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(Taken::RefusedFirst),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests;

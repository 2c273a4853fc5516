//! A route: frames from one interface to another by a receiver, rules and a transmitter. The loop that is measured is
//! the loop that runs.

use super::{backlog::Backlog, control::Control};
use crate::rules::{counts::Counts, engine::Engine};
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

/// How long an output may take nothing at all before the frames that wait for it are dropped and counted.
pub const ROOM_PATIENCE_NS: u64 = 1_000_000_000;

/// How long to wait before a full output is tried again, when the kernel offers nothing to wait for (`ENOBUFS`).
pub const ROOM_AGAIN_NS: u64 = 50_000;

/// How long at most: an output that stays full is tried less and less often, down to this.
const ROOM_AGAIN_NS_MAX: u64 = 5_000_000;

/// For how long a route that is told to stop still receives what has come.
const DRAIN_RECEIVE_NS: u64 = 500_000_000;

/// On which side a route failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    In,
    Out,
}

/// What came of moving a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing was there.
    Idle,
    /// Frames moved.
    Moved,
    /// The output has no room for the rest, which keeps its place.
    Full,
}

/// One direction of a gateway.
pub struct Route {
    pub receive: Box<dyn Receive>,
    pub transmit: Box<dyn Transmit>,
    /// Put sent frames together until nothing more is there, and only then make the kernel send them. For receivers
    /// that spin, as the 2014 paper's mmap and readnb gateways do; one that waits would wait with frames unsent.
    pub gather: bool,
    pub batch: Batch,
    pub counts: Counts,
    /// What the rules are; `None`: every frame is handed on as it is.
    pub engine: Option<Engine>,
    /// Where frames wait while the output is full; `None`: the input waits with it.
    pub backlog: Option<Backlog>,
    /// What others say to it and want to know.
    pub control: Option<Control>,
    /// How much of the batch, after the rules, there is to send.
    ready: usize,
    /// How much of that the transmitter has taken over.
    handed: usize,
    /// What is pending must be sent before more is received.
    flushing: bool,
    /// Since when the output has had no room, by whichever clock the caller reads.
    full_since_ns: Option<u64>,
    /// How long to wait for room the next time.
    again_ns: u64,
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
            handed: 0,
            flushing: false,
            full_since_ns: None,
            again_ns: ROOM_AGAIN_NS,
        }
    }

    /// Routes until `stop` is set or a side fails; either way every received frame is in the counts afterwards. What
    /// had come when it was told to stop is still routed.
    pub fn run(&mut self, stop: &AtomicBool) -> Result<(), (Side, io::Error)> {
        let ended = self.route(stop, Self::wait_for_room).and_then(|()| self.drain());
        self.settle();
        ended
    }

    /// The same with another way to wait for room, and without looking for more when told to stop.
    #[cfg(test)]
    pub fn run_with(
        &mut self,
        stop: &AtomicBool,
        wait_for_room: impl FnMut(&mut Self) -> io::Result<()>,
    ) -> Result<(), (Side, io::Error)> {
        let ended = self.route(stop, wait_for_room);
        self.settle();
        ended
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

    /// Sends what waits and what has come, as long as the output takes it within [`ROOM_PATIENCE_NS`].
    fn drain(&mut self) -> Result<(), (Side, io::Error)> {
        let begun_ns = clock::monotonic_ns();
        let mut receiving = true;
        loop {
            let passed_ns = clock::monotonic_ns() - begun_ns;
            if passed_ns > ROOM_PATIENCE_NS {
                return Ok(());
            }
            receiving &= passed_ns < DRAIN_RECEIVE_NS;
            let unsent = self.handed < self.ready || self.waits();
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

    /// Moves one batch, or what is left of the last one. Waits nowhere but in the receiver: the caller decides how to
    /// wait for room.
    pub fn pump(&mut self) -> Result<Step, (Side, io::Error)> {
        if self.waits() {
            return self.pump_backlog();
        }
        if self.handed == self.ready && !self.flushing {
            let count = self.take_in()?;
            self.flushing = (count == 0 || !self.gather) && (self.ready > 0 || self.transmit.pending() > 0);
            if self.ready == 0 && !self.flushing {
                return Ok(Step::Idle); // a receiver that spins has paused already
            }
        }
        let step = self.send().map_err(|error| (Side::Out, error))?;
        let step = if step == Step::Full { self.set_aside() } else { step };
        // Processors of a virtual clock take turns, and a pause ends this one's: without it, whoever waits for the
        // frame would learn of it only when this thread sleeps. On real processors it costs a few tens of ns.
        std::hint::spin_loop();
        if let Some(control) = &self.control {
            control.publish(&self.counts, self.engine.as_ref());
        }
        Ok(step)
    }

    /// Receives a batch and applies the rules to it; answers how many frames came.
    fn take_in(&mut self) -> Result<usize, (Side, io::Error)> {
        self.batch.clear();
        (self.handed, self.ready) = (0, 0);
        let count = self.receive.receive(&mut self.batch).map_err(|error| (Side::In, error))?;
        self.counts.received += count as u64;
        self.ready = count;
        if let Some(engine) = &mut self.engine {
            if let Some(control) = &self.control {
                control.renew(engine, &mut self.counts);
            }
            let now_ns = if engine.needs_time() { clock::monotonic_ns() } else { 0 };
            engine.apply(&mut self.batch, now_ns);
            self.ready = engine.ready();
        }
        Ok(count)
    }

    /// Hands the batch to the transmitter, and makes it send when that is due.
    fn send(&mut self) -> io::Result<Step> {
        if self.is_off_bus() {
            let waits = self.handed < self.ready || self.transmit.pending() > 0;
            return Ok(if waits { Step::Full } else { Step::Moved });
        }
        if self.handed < self.ready {
            let outgoing = match &self.engine {
                Some(engine) => engine.outgoing(&self.batch),
                None => self.batch.frames(),
            };
            match take_over(self.transmit.as_mut(), &outgoing[self.handed..])? {
                Taken::Some(count) => {
                    self.handed += count;
                    self.counts.transmitted += count as u64;
                    self.has_room(count > 0);
                }
                Taken::RefusedFirst => {
                    self.handed += 1;
                    self.counts.drop_as(1, |drops| &mut drops.refused);
                    return Ok(Step::Moved);
                }
            }
        }
        let handed_all = self.handed == self.ready;
        let before = if self.flushing || !handed_all { self.transmit.pending() } else { 0 };
        if before > 0 {
            self.transmit.flush()?;
            let pending = self.transmit.pending();
            self.has_room(pending < before);
            if !handed_all && pending < before {
                return Ok(Step::Moved); // which made room: the rest follows at once
            }
            if handed_all && pending > 0 {
                return Ok(Step::Full);
            }
        }
        if !handed_all {
            return Ok(Step::Full);
        }
        self.flushing = false;
        self.has_room(true);
        Ok(Step::Moved)
    }

    /// The output is off the bus, where the kernel would throw frames away: it has no room.
    fn is_off_bus(&self) -> bool {
        self.control.as_ref().is_some_and(Control::is_off_bus)
    }

    fn has_room(&mut self, room: bool) {
        if room {
            self.full_since_ns = None;
            self.again_ns = ROOM_AGAIN_NS;
        }
    }

    /// The output was full at `now_ns`: whether to try again. After [`ROOM_PATIENCE_NS`] what found no room is dropped.
    pub fn try_again(&mut self, now_ns: u64) -> bool {
        let since_ns = *self.full_since_ns.get_or_insert(now_ns);
        let again = now_ns.saturating_sub(since_ns) <= ROOM_PATIENCE_NS;
        if !again {
            self.drop_rest();
        }
        again
    }

    /// Waits a little for room, but not for ever.
    fn wait_for_room(&mut self) -> io::Result<()> {
        if !self.try_again(clock::monotonic_ns()) {
            return Ok(());
        }
        let wait_ns = self.next_wait_ns();
        if let Some(descriptor) = self.transmit.descriptor() {
            // Says "writable" at once when it is the interface's queue that is full, so sleep besides.
            poll::writable(descriptor, Some(wait_ns))?;
        }
        std::thread::sleep(Duration::from_nanos(wait_ns));
        Ok(())
    }

    /// Twice as long each time that there was no room.
    fn next_wait_ns(&mut self) -> u64 {
        let wait_ns = self.again_ns;
        self.again_ns = (2 * wait_ns).min(ROOM_AGAIN_NS_MAX);
        wait_ns
    }

    /// Gives up what the transmitter has not taken over.
    fn drop_rest(&mut self) {
        self.counts.drop_as((self.ready - self.handed) as u64, |drops| &mut drops.no_room);
        self.handed = self.ready;
        self.flushing = false;
        self.full_since_ns = None;
    }

    /// Closes the account: what was handed over and not sent after all is dropped, not transmitted.
    fn settle(&mut self) {
        let waiting = self.backlog.as_mut().map_or(0, Backlog::clear);
        let unhanded = self.ready - self.handed;
        self.handed = self.ready;
        (self.flushing, self.full_since_ns) = (false, None);
        self.counts.drop_as((unhanded + waiting) as u64, |drops| &mut drops.unsent);
        let _ = self.transmit.flush(); // a failure shows in what is pending
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

/// A route whose output may be full while its input goes on.
impl Route {
    /// Whether frames wait that go before any others.
    fn waits(&self) -> bool {
        self.backlog.as_ref().is_some_and(|backlog| !backlog.is_empty() || self.flushing)
    }

    /// The output is full: puts the rest of the batch aside, if it may, to go on receiving.
    fn set_aside(&mut self) -> Step {
        let Some(backlog) = &mut self.backlog else { return Step::Full };
        let outgoing = match &self.engine {
            Some(engine) => engine.outgoing(&self.batch),
            None => self.batch.frames(),
        };
        let dropped: u64 =
            outgoing[self.handed..self.ready].iter().map(|frame| u64::from(!backlog.push(frame))).sum();
        self.handed = self.ready;
        self.counts.drop_as(dropped, |drops| &mut drops.no_room);
        Step::Moved
    }

    /// Sends what waits, and lets what comes meanwhile wait behind it.
    fn pump_backlog(&mut self) -> Result<Step, (Side, io::Error)> {
        let moved = self.send_backlog().map_err(|error| (Side::Out, error))?;
        self.has_room(moved);
        let patience_ns = if moved { 0 } else { self.next_wait_ns() };
        let more = match self.receive.descriptor() {
            Some(descriptor) => {
                poll::readable(&[descriptor], Some(patience_ns)).map_err(|error| (Side::In, error))? > 0
            }
            None => true, // it spins
        };
        if more {
            self.take_in()?;
            self.set_aside();
        }
        if let Some(control) = &self.control {
            control.publish(&self.counts, self.engine.as_ref());
        }
        Ok(Step::Moved)
    }

    /// Whether anything could be sent.
    fn send_backlog(&mut self) -> io::Result<bool> {
        if self.is_off_bus() {
            return Ok(false);
        }
        let Some(backlog) = &mut self.backlog else { return Ok(false) };
        let before = self.transmit.pending();
        let mut moved = false;
        while let Some(frames) = backlog.first() {
            match take_over(self.transmit.as_mut(), frames)? {
                Taken::Some(0) => break,
                Taken::Some(count) => {
                    backlog.remove(count);
                    self.counts.transmitted += count as u64;
                }
                Taken::RefusedFirst => {
                    backlog.remove(1);
                    self.counts.drop_as(1, |drops| &mut drops.refused);
                }
            }
            moved = true;
        }
        self.transmit.flush()?;
        let pending = self.transmit.pending();
        self.flushing = pending > 0;
        Ok(moved || pending < before)
    }
}

enum Taken {
    Some(usize),
    /// An FD frame on a classic interface: no fault of the route, whose other frames go on.
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

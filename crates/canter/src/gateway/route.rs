//! A route: frames from one interface to another by a receiver and a transmitter. The loop that is measured is the
//! loop that runs.

use canter_io::{
    Batch,
    method::{Receive, Transmit},
    sys::{clock, poll},
};
use serde::Serialize;
use std::{
    io,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

/// How long an output may take nothing at all before the frames that wait for it are dropped and counted.
pub const ROOM_PATIENCE_NS: u64 = 1_000_000_000;

/// How long to wait before a full output is tried again, when the kernel offers nothing to wait for (`ENOBUFS`).
pub const ROOM_AGAIN_NS: u64 = 50_000;

/// What happened to the frames: `received = transmitted + filtered + dropped`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, serde::Deserialize)]
pub struct Counts {
    pub received: u64,
    pub transmitted: u64,
    /// Not wanted by a rule.
    pub filtered: u64,
    /// Wanted, and not sent: no room at the output in time, refused by the kernel, or stopped before.
    pub dropped: u64,
    /// Never received: this gateway's own receive queue was full.
    pub overrun: u64,
}

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
    /// How much of the batch the transmitter has taken over.
    handed: usize,
    /// What is pending must be sent before more is received.
    flushing: bool,
    /// Since when the output has had no room, by whichever clock the caller reads.
    full_since_ns: Option<u64>,
}

impl Route {
    pub fn new(
        receive: Box<dyn Receive>,
        transmit: Box<dyn Transmit>,
        batch_frames: usize,
        gather: bool,
    ) -> Self {
        let (batch, counts) = (Batch::new(batch_frames), Counts::default());
        Self { receive, transmit, gather, batch, counts, handed: 0, flushing: false, full_since_ns: None }
    }

    /// Routes until `stop` is set or a side fails; either way every received frame is in the counts afterwards.
    pub fn run(&mut self, stop: &AtomicBool) -> Result<(), (Side, io::Error)> {
        self.run_with(stop, Self::wait_for_room)
    }

    /// The same, with another way to wait for room.
    pub fn run_with(
        &mut self,
        stop: &AtomicBool,
        mut wait_for_room: impl FnMut(&mut Self) -> io::Result<()>,
    ) -> Result<(), (Side, io::Error)> {
        let mut ended = Ok(());
        while ended.is_ok() && !stop.load(Ordering::Acquire) {
            ended = match self.pump() {
                Ok(Step::Full) => wait_for_room(self).map_err(|error| (Side::Out, error)),
                done => done.map(drop),
            };
        }
        self.settle();
        ended
    }

    /// Moves one batch, or what is left of the last one. Waits nowhere but in the receiver: the caller decides how to
    /// wait for room.
    pub fn pump(&mut self) -> Result<Step, (Side, io::Error)> {
        if self.handed == self.batch.len() && !self.flushing {
            self.batch.clear();
            self.handed = 0;
            let count = self.receive.receive(&mut self.batch).map_err(|error| (Side::In, error))?;
            self.counts.received += count as u64;
            self.flushing = (count == 0 || !self.gather) && self.transmit.pending() + count > 0;
            if count == 0 && !self.flushing {
                return Ok(Step::Idle); // a receiver that spins has paused already
            }
        }
        let step = self.send().map_err(|error| (Side::Out, error))?;
        // Processors of a virtual clock take turns, and a pause ends this one's: without it, whoever waits for the
        // frame would learn of it only when this thread sleeps. On real processors it costs a few tens of ns.
        std::hint::spin_loop();
        Ok(step)
    }

    /// Hands the batch to the transmitter, and makes it send when that is due.
    fn send(&mut self) -> io::Result<Step> {
        if self.handed < self.batch.len() {
            match self.transmit.transmit(&self.batch.frames()[self.handed..]) {
                Ok(0) => {}
                Ok(count) => {
                    self.handed += count;
                    self.counts.transmitted += count as u64;
                    self.full_since_ns = None;
                }
                // An FD frame on a classic interface: no fault of the route, whose other frames go on.
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                    self.handed += 1;
                    self.counts.dropped += 1;
                    return Ok(Step::Moved);
                }
                Err(error) => return Err(error),
            }
        }
        let handed_all = self.handed == self.batch.len();
        if (self.flushing || !handed_all) && self.transmit.pending() > 0 {
            let before = self.transmit.pending();
            self.transmit.flush()?;
            let pending = self.transmit.pending();
            if pending < before {
                self.full_since_ns = None;
            }
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
        self.full_since_ns = None;
        Ok(Step::Moved)
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
        if let Some(descriptor) = self.transmit.descriptor() {
            // Says "writable" at once when it is the interface's queue that is full, so sleep besides.
            poll::writable(descriptor, Some(ROOM_AGAIN_NS))?;
        }
        std::thread::sleep(Duration::from_nanos(ROOM_AGAIN_NS));
        Ok(())
    }

    /// Gives up what the transmitter has not taken over.
    fn drop_rest(&mut self) {
        self.counts.dropped += (self.batch.len() - self.handed) as u64;
        self.handed = self.batch.len();
        self.flushing = false;
        self.full_since_ns = None;
    }

    /// Closes the account: what was handed over and not sent after all is dropped, not transmitted.
    fn settle(&mut self) {
        self.drop_rest();
        let _ = self.transmit.flush(); // a failure shows in what is pending
        let unsent = self.transmit.pending() as u64 + self.transmit.lost();
        self.counts.transmitted -= unsent;
        self.counts.dropped += unsent;
        self.counts.overrun = self.receive.drops().unwrap_or(0);
        let Counts { received, transmitted, filtered, dropped, .. } = self.counts;
        assert_eq!(received, transmitted + filtered + dropped, "every received frame has an end");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use canter_io::{Frame, Identifier, batch::Meta};
    use proptest::prelude::*;
    use std::{
        collections::VecDeque,
        os::fd::BorrowedFd,
        sync::{Arc, Mutex},
    };

    /// What a scripted side was asked, and what it saw.
    #[derive(Debug, Default)]
    struct Log {
        given: u32,
        sent: Vec<u32>,
        pending: VecDeque<u32>,
        lost: u64,
        calls: Vec<Call>,
    }

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Call {
        Received(usize),
        Transmitted(usize),
        Flushed,
    }

    type Shared = Arc<Mutex<Log>>;

    /// Gives so many frames a call, numbered; when the script is over it sets `stop`, or fails.
    struct Source(VecDeque<usize>, Shared, Arc<AtomicBool>, bool);

    impl Receive for Source {
        fn receive(&mut self, batch: &mut Batch) -> io::Result<usize> {
            let mut log = self.1.lock().unwrap();
            let Some(count) = self.0.pop_front() else {
                self.2.store(true, Ordering::Release);
                return if self.3 { Err(io::ErrorKind::NetworkDown.into()) } else { Ok(0) };
            };
            let count = count.min(batch.room());
            for _ in 0..count {
                batch.push(&frame(log.given), Meta::default());
                log.given += 1;
            }
            log.calls.push(Call::Received(count));
            Ok(count)
        }

        fn drops(&mut self) -> io::Result<u64> {
            Ok(7)
        }

        fn descriptor(&self) -> Option<BorrowedFd<'_>> {
            None
        }
    }

    /// What a scripted output does when it is called.
    #[derive(Clone, Copy, Debug)]
    enum Act {
        /// Sends up to so many.
        Send(usize),
        /// Takes up to so many over; they wait for a flush. A flush sends as many.
        Keep(usize),
        /// As `Keep`, and the kernel refuses one of those that wait.
        Lose(usize),
        Fail,
    }

    /// Plays its script over and over.
    struct Sink(Vec<Act>, usize, Shared);

    impl Sink {
        fn act(&mut self) -> Act {
            self.1 += 1;
            self.0[(self.1 - 1) % self.0.len()]
        }
    }

    impl Transmit for Sink {
        fn transmit(&mut self, frames: &[Frame]) -> io::Result<usize> {
            let act = self.act();
            let mut log = self.2.lock().unwrap();
            let numbers = frames.iter().map(number);
            let count = match act {
                Act::Send(room) if log.pending.is_empty() => {
                    log.sent.extend(numbers.take(room));
                    room.min(frames.len())
                }
                Act::Send(_) => 0, // behind those that wait
                Act::Keep(room) | Act::Lose(room) => {
                    log.pending.extend(numbers.take(room));
                    room.min(frames.len())
                }
                Act::Fail => return Err(io::ErrorKind::NetworkDown.into()),
            };
            log.calls.push(Call::Transmitted(count));
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            let act = self.act();
            let mut log = self.2.lock().unwrap();
            log.calls.push(Call::Flushed);
            match act {
                Act::Send(room) | Act::Keep(room) => {
                    let room = room.min(log.pending.len());
                    let numbers: Vec<_> = log.pending.drain(..room).collect();
                    log.sent.extend(numbers);
                }
                Act::Lose(_) => log.lost += u64::from(log.pending.pop_front().is_some()),
                Act::Fail => return Err(io::ErrorKind::NetworkDown.into()),
            }
            Ok(())
        }

        fn pending(&self) -> usize {
            self.2.lock().unwrap().pending.len()
        }

        fn lost(&self) -> u64 {
            self.2.lock().unwrap().lost
        }

        fn descriptor(&self) -> Option<BorrowedFd<'_>> {
            None
        }
    }

    fn frame(number: u32) -> Frame {
        Frame::classic(Identifier::Sff(0x123), &number.to_le_bytes()).unwrap()
    }

    fn number(frame: &Frame) -> u32 {
        u32::from_le_bytes(frame.data().try_into().unwrap())
    }

    /// A route between scripts, the clock of its waits and what they saw.
    struct Scripted {
        route: Route,
        stop: Arc<AtomicBool>,
        log: Shared,
        waits: u64,
    }

    impl Scripted {
        fn new(batches: &[usize], acts: &[Act], gather: bool) -> Self {
            Self::ending(batches, acts, gather, false)
        }

        fn ending(batches: &[usize], acts: &[Act], gather: bool, fails: bool) -> Self {
            let (log, stop) = (Shared::default(), Arc::new(AtomicBool::new(false)));
            let source =
                Source(batches.iter().copied().collect(), Arc::clone(&log), Arc::clone(&stop), fails);
            let sink = Sink(acts.to_vec(), 0, Arc::clone(&log));
            let route = Route::new(Box::new(source), Box::new(sink), 8, gather);
            Self { route, stop, log, waits: 0 }
        }

        /// Runs it; every wait for room takes so long.
        fn run(&mut self, wait_ns: u64) -> Result<(), Side> {
            let Self { route, stop, waits, .. } = self;
            let waiting = |route: &mut Route| {
                *waits += 1;
                route.try_again(*waits * wait_ns);
                Ok(())
            };
            route.run_with(stop, waiting).map_err(|(side, _)| side)
        }
    }

    fn acts() -> impl Strategy<Value = Vec<Act>> {
        let act = prop_oneof![
            8 => (0usize..10).prop_map(Act::Send),
            8 => (0usize..10).prop_map(Act::Keep),
            2 => (0usize..10).prop_map(Act::Lose),
            1 => Just(Act::Fail),
        ];
        prop::collection::vec(act, 1..20)
    }

    proptest! {
        #[test]
        fn whatever_the_sides_do_every_frame_is_accounted_for_sent_in_order_and_once(
            batches in prop::collection::vec(0usize..12, 0..30),
            acts in acts(),
            gather: bool,
            fails: bool,
        ) {
            let mut scripted = Scripted::ending(&batches, &acts, gather, fails);
            let ended = scripted.run(ROOM_PATIENCE_NS / 3);
            let (counts, log) = (scripted.route.counts, scripted.log.lock().unwrap());
            prop_assert_eq!(counts.received, counts.transmitted + counts.filtered + counts.dropped);
            prop_assert_eq!((counts.received, counts.overrun), (u64::from(log.given), 7));
            prop_assert_eq!(counts.transmitted, log.sent.len() as u64);
            prop_assert!(log.sent.is_sorted_by(|a, b| a < b), "{:?}", log.sent);
            let can_fail = acts.iter().any(|act| matches!(act, Act::Fail));
            match ended {
                Ok(()) => prop_assert!(!fails || log.calls.is_empty() || can_fail || scripted.waits > 0),
                Err(Side::In) => prop_assert!(fails),
                Err(Side::Out) => prop_assert!(can_fail),
            }
        }
    }

    #[test]
    fn gathered_frames_are_sent_when_nothing_more_is_there_and_not_before() {
        use Call::{Flushed, Received, Transmitted};
        let mut scripted = Scripted::new(&[3, 2, 0, 1, 0], &[Act::Keep(8)], true);
        scripted.run(0).unwrap();
        let calls = [Received(3), Transmitted(3), Received(2), Transmitted(2), Received(0), Flushed];
        let then = [Received(1), Transmitted(1), Received(0), Flushed, Flushed];
        assert_eq!(scripted.log.lock().unwrap().calls, [&calls[..], &then].concat());
    }

    #[test]
    fn without_gathering_every_batch_is_sent_at_once() {
        use Call::{Flushed, Received, Transmitted};
        let mut scripted = Scripted::new(&[3, 2], &[Act::Keep(8)], false);
        scripted.run(0).unwrap();
        let calls = [Received(3), Transmitted(3), Flushed, Received(2), Transmitted(2), Flushed, Flushed];
        assert_eq!(scripted.log.lock().unwrap().calls, calls);
    }

    #[test]
    fn a_flush_that_makes_room_is_followed_by_the_rest_without_a_wait() {
        let mut scripted = Scripted::new(&[8], &[Act::Keep(4)], true);
        scripted.run(0).unwrap();
        assert_eq!(scripted.waits, 0);
        assert_eq!(scripted.route.counts.transmitted, 8);
    }

    #[test]
    fn a_frame_waits_a_second_for_room_and_is_dropped_then() {
        let mut scripted = Scripted::new(&[2, 0], &[Act::Send(0)], false);
        scripted.run(ROOM_AGAIN_NS).unwrap();
        assert_eq!(scripted.waits, ROOM_PATIENCE_NS / ROOM_AGAIN_NS + 2); // from the first to one beyond the second
        assert_eq!(scripted.route.counts.dropped, 2);
    }

    #[test]
    fn a_route_that_waits_for_room_still_stops() {
        let mut scripted = Scripted::new(&[2, 2], &[Act::Send(0)], false);
        let stop = Arc::clone(&scripted.stop);
        let done = scripted.route.run_with(&stop, |_| {
            stop.store(true, Ordering::Release);
            Ok(())
        });
        assert!(done.is_ok());
        assert_eq!((scripted.route.counts.received, scripted.route.counts.dropped), (2, 2));
    }

    #[test]
    fn an_output_that_fails_ends_the_route_and_what_it_had_not_sent_is_dropped() {
        for acts in [&[Act::Keep(5), Act::Fail][..], &[Act::Fail], &[Act::Send(2), Act::Fail]] {
            let mut scripted = Scripted::new(&[6, 6], acts, false);
            assert_eq!(scripted.run(0), Err(Side::Out));
            let sent = scripted.log.lock().unwrap().sent.len() as u64;
            assert_eq!((scripted.route.counts.transmitted, scripted.route.counts.dropped), (sent, 6 - sent));
        }
    }

    #[test]
    fn a_wait_that_fails_ends_the_route_with_its_account_closed() {
        let mut scripted = Scripted::new(&[6], &[Act::Send(4), Act::Send(0)], false);
        let ended = scripted.route.run_with(&scripted.stop, |_| Err(io::ErrorKind::Other.into()));
        assert_eq!(ended.map_err(|(side, _)| side), Err(Side::Out));
        assert_eq!((scripted.route.counts.transmitted, scripted.route.counts.dropped), (4, 2));
    }
}

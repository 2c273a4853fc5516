//! A route between scripted sides, and the account of every frame.

use super::{
    super::backlog::{Limits, WhenFull},
    *,
};
use canter_io::{Frame, Identifier, batch::Meta};
use proptest::prelude::*;
use std::{
    collections::VecDeque,
    os::fd::BorrowedFd,
    sync::{Arc, Mutex},
};

/// The calls and frames of the scripted sides.
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
    Waiting(bool),
}

type Shared = Arc<Mutex<Log>>;

/// Returns numbered frames, as many per call as the script has; at the end of the script it sets `stop`, or fails.
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

/// The reaction of a scripted output to a call.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// Sends up to this number of frames.
    Send(usize),
    /// Takes over up to this number of frames, which wait for a flush. A flush sends up to this number.
    Keep(usize),
    /// Takes over up to this number of frames; a flush sends none.
    Hold(usize),
    /// As `Keep`, and the kernel refuses one of the waiting frames.
    Lose(usize),
    Fail,
}

/// Repeats its script.
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
            Act::Send(_) => 0, // after the waiting frames
            Act::Keep(room) | Act::Hold(room) | Act::Lose(room) => {
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
            Act::Hold(_) => {}
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

    fn abandon(&mut self) -> usize {
        self.2.lock().unwrap().pending.drain(..).count()
    }

    fn set_waiting(&mut self, waits: bool) {
        self.2.lock().unwrap().calls.push(Call::Waiting(waits));
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

/// A route between scripted sides, its number of waits, and the log.
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
        let source = Source(batches.iter().copied().collect(), Arc::clone(&log), Arc::clone(&stop), fails);
        let sink = Sink(acts.to_vec(), 0, Arc::clone(&log));
        let route = Route::new(Box::new(source), Box::new(sink), 8, gather);
        Self { route, stop, log, waits: 0 }
    }

    /// Runs the route; every wait for room takes `wait_ns`.
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
        2 => (0usize..10).prop_map(Act::Hold),
        2 => (0usize..10).prop_map(Act::Lose),
        1 => Just(Act::Fail),
    ];
    prop::collection::vec(act, 1..20)
}

proptest! {
    #[test]
    fn every_frame_is_accounted_for_and_sent_at_most_once_in_order(
        batches in prop::collection::vec(0usize..12, 0..30),
        acts in acts(),
        gather: bool,
        fails: bool,
    ) {
        let mut scripted = Scripted::ending(&batches, &acts, gather, fails);
        let ended = scripted.run(ROOM_TIMEOUT_NS / 3);
        let (counts, log) = (scripted.route.counts, scripted.log.lock().unwrap());
        prop_assert_eq!(counts.received, counts.transmitted + counts.filtered + counts.dropped);
        prop_assert_eq!(counts.drops.sum(), counts.dropped);
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

/// A backlog in which a frame may wait so long.
fn backlog(policy: WhenFull, frames_max: usize, age_ns_max: u64) -> Option<Backlog> {
    Backlog::new(Limits { policy, by_priority: false, frames_max, age_ns_max })
}

proptest! {
    #[test]
    fn with_a_backlog_every_frame_is_accounted_for_and_sent_at_most_once_in_order(
        batches in prop::collection::vec(0usize..12, 0..30),
        acts in acts(),
        fails: bool,
        policy in prop_oneof![Just(WhenFull::DropNew), Just(WhenFull::DropOld)],
        frames_max in 1usize..20,
        age_ns_max in prop_oneof![Just(0), Just(u64::MAX)],
    ) {
        let mut scripted = Scripted::ending(&batches, &acts, false, fails);
        scripted.route.backlog = backlog(policy, frames_max, age_ns_max);
        let _ = scripted.run(0);
        let (counts, log) = (scripted.route.counts, scripted.log.lock().unwrap());
        prop_assert_eq!(counts.received, counts.transmitted + counts.filtered + counts.dropped);
        prop_assert_eq!(counts.drops.sum(), counts.dropped);
        prop_assert_eq!(counts.received, u64::from(log.given));
        prop_assert_eq!(counts.transmitted, log.sent.len() as u64);
        prop_assert!(log.sent.is_sorted_by(|a, b| a < b), "{:?}", log.sent);
    }
}

#[test]
fn a_transmitter_whose_output_accepts_nothing_holds_one_frame_when_its_frames_are_too_old() {
    // Each batch is older than 0 ns when the next one comes.
    let mut scripted = Scripted::new(&[8; 30], &[Act::Hold(8)], false);
    scripted.route.backlog = backlog(WhenFull::DropOld, 16, 0);
    scripted.run(0).unwrap();
    let log = scripted.log.lock().unwrap();
    assert!(log.pending.len() <= 1, "{:?}", log.pending);
    assert_eq!(scripted.route.counts.dropped, 240);
}

#[test]
fn an_output_that_accepts_frames_again_gets_all_that_are_young() {
    let acts = [&[Act::Hold(8); 20][..], &[Act::Send(8); 200]].concat();
    let mut scripted = Scripted::new(&[8; 30], &acts, false);
    scripted.route.backlog = backlog(WhenFull::DropOld, 300, u64::MAX);
    scripted.run(0).unwrap();
    assert_eq!(scripted.log.lock().unwrap().sent, (0..240).collect::<Vec<_>>());
}

#[test]
fn gathered_frames_are_sent_only_when_no_more_frames_arrive() {
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
    scripted.run(ROOM_RETRY_NS).unwrap();
    assert_eq!(scripted.waits, ROOM_TIMEOUT_NS / ROOM_RETRY_NS + 2); // from the first to one after the timeout
    assert_eq!(scripted.route.counts.dropped, 2);
}

#[test]
fn after_a_second_without_room_frames_are_dropped_at_once_until_the_output_accepts_one() {
    for act in [Act::Send(0), Act::Hold(8)] {
        let mut scripted = Scripted::new(&[2, 2, 2], &[act], false);
        scripted.run(ROOM_RETRY_NS).unwrap();
        let counts = scripted.route.counts;
        assert_eq!((counts.drops.no_room, counts.transmitted), (6, 0), "{act:?}");
        // The first batch waits for a second, the others not at all.
        assert_eq!(scripted.waits, ROOM_TIMEOUT_NS / ROOM_RETRY_NS + 2 + 2, "{act:?}");
    }
}

#[test]
fn an_output_that_recovers_is_waited_for_again() {
    let waits = ROOM_TIMEOUT_NS / ROOM_RETRY_NS + 2;
    let stuck = std::iter::repeat_n(Act::Send(0), waits as usize);
    let acts: Vec<_> = stuck.chain([Act::Send(8), Act::Send(0), Act::Send(8)]).collect();
    let mut scripted = Scripted::new(&[2, 2, 2], &acts, false);
    scripted.run(ROOM_RETRY_NS).unwrap();
    let log = scripted.log.lock().unwrap();
    assert_eq!(log.sent, [2, 3, 4, 5]);
    let switched = log.calls.iter().filter_map(|call| match call {
        Call::Waiting(waits) => Some(*waits),
        _ => None,
    });
    assert_eq!(switched.collect::<Vec<_>>(), [false, true]);
    assert_eq!(scripted.waits, waits + 1);
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
fn an_output_that_fails_ends_the_route_and_its_unsent_frames_count_as_dropped() {
    for acts in [&[Act::Keep(5), Act::Fail][..], &[Act::Fail], &[Act::Send(2), Act::Fail]] {
        let mut scripted = Scripted::new(&[6, 6], acts, false);
        assert_eq!(scripted.run(0), Err(Side::Out));
        let sent = scripted.log.lock().unwrap().sent.len() as u64;
        // The second six were waiting in the receiver.
        assert_eq!((scripted.route.counts.transmitted, scripted.route.counts.dropped), (sent, 12 - sent));
        assert_eq!(scripted.route.counts.drops.unsent, 12 - sent);
    }
}

#[test]
fn a_wait_that_fails_ends_the_route_with_its_account_closed() {
    let mut scripted = Scripted::new(&[6], &[Act::Send(4), Act::Send(0)], false);
    let ended = scripted.route.run_with(&scripted.stop, |_| Err(io::ErrorKind::Other.into()));
    assert_eq!(ended.map_err(|(side, _)| side), Err(Side::Out));
    assert_eq!((scripted.route.counts.transmitted, scripted.route.counts.dropped), (4, 2));
}

#[test]
fn in_one_thread_a_full_output_or_a_dead_input_holds_up_no_other_route() {
    let stop = Arc::new(AtomicBool::new(false));
    let route = |batches: &[usize], acts: &[Act], stop: &Arc<AtomicBool>, fails: bool| {
        let log = Shared::default();
        let source = Source(batches.iter().copied().collect(), Arc::clone(&log), Arc::clone(stop), fails);
        Route::new(Box::new(source), Box::new(Sink(acts.to_vec(), 0, log)), 8, true)
    };
    let own_stop = Arc::new(AtomicBool::new(false)); // the end of a script that is no reason to stop
    let mut routes = [
        route(&[], &[Act::Send(8)], &own_stop, true),
        route(&[2], &[Act::Send(0), Act::Send(1), Act::Send(8)], &own_stop, false),
        route(&[1; 50], &[Act::Send(8)], &stop, false),
    ];
    let mut failures = 0;
    let ends = together::run(&mut routes, true, &stop, || failures += 1).unwrap();
    let sides: Vec<_> = ends.into_iter().map(|end| end.map_err(|(side, _)| side)).collect();
    assert_eq!(sides, [Err(Side::In), Ok(()), Ok(())]);
    assert_eq!(routes.map(|route| route.counts.transmitted), [0, 2, 50]);
    assert_eq!(failures, 1, "the others went on, and it was not tried again");
}

//! The meter beside a schedule whose stamps are kept until its end.

use super::*;
use canter_io::{
    Meta,
    batch::{Clock, Origin},
};
use std::sync::{Arc, Mutex};

const COUNT: u64 = 10_000;
const PERIOD_NS: u64 = 250_000;
const LATENCY_NS: u64 = 7_000;
const LAST_THROUGH_NS: u64 = (COUNT - 1) * PERIOD_NS + LATENCY_NS;

/// A bus with a sender on a schedule, and a gateway that forwards each frame after [`LATENCY_NS`], or nothing.
struct Bench {
    now_ns: u64,
    forwards: bool,
    stopped_ns: Option<u64>,
    /// When the meter read stamps, and when it woke up.
    reads_ns: Vec<u64>,
    wakes: usize,
    /// Frames whose stamps were read, at each side.
    read: [u64; 2],
}

type Shared = Arc<Mutex<Bench>>;

impl Bench {
    fn new(forwards: bool) -> Shared {
        let (reads_ns, read) = (Vec::new(), [0; 2]);
        Arc::new(Mutex::new(Self { now_ns: 0, forwards, stopped_ns: None, reads_ns, wakes: 0, read }))
    }

    fn sent(&self) -> u64 {
        (self.stopped_ns.unwrap_or(self.now_ns) / PERIOD_NS + 1).min(COUNT)
    }

    fn through(&self) -> u64 {
        if self.forwards {
            (self.now_ns.saturating_sub(LATENCY_NS) / PERIOD_NS + 1).min(self.sent())
        } else {
            0
        }
    }
}

struct Source(Shared);

impl Schedule for Source {
    fn start(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn is_running(&mut self) -> io::Result<bool> {
        let bench = self.0.lock().unwrap();
        Ok(bench.stopped_ns.is_none() && bench.now_ns < (COUNT - 1) * PERIOD_NS)
    }

    fn stop(&mut self) -> io::Result<()> {
        let mut bench = self.0.lock().unwrap();
        bench.stopped_ns = Some(bench.now_ns);
        Ok(())
    }

    fn kept(&mut self) -> io::Result<Option<Kept>> {
        Ok(Some(Kept { lasts_ns: COUNT * PERIOD_NS, through: self.0.lock().unwrap().through() }))
    }
}

struct Side(Shared, usize);

impl Receive for Side {
    fn receive(&mut self, batch: &mut Batch) -> io::Result<usize> {
        let mut bench = self.0.lock().unwrap();
        let now_ns = bench.now_ns;
        bench.reads_ns.push(now_ns);
        let there = if self.1 == 0 { bench.sent() } else { bench.through() };
        let mut count = 0;
        while batch.room() > 0 && bench.read[self.1] < there {
            let number = bench.read[self.1];
            bench.read[self.1] += 1;
            let mut frame = frame();
            template::set_number(&mut frame, number as u16);
            let stamp_ns = number * PERIOD_NS + if self.1 == 0 { 0 } else { LATENCY_NS };
            let (clock, origin) = (Clock::Hardware, Origin::Bus);
            batch.push(&frame, Meta { stamp_ns, interface: 0, drops: 0, clock, origin });
            count += 1;
        }
        Ok(count)
    }

    fn drops(&mut self) -> io::Result<u64> {
        Ok(0)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

struct Sleeper(Shared);

impl Surroundings for Sleeper {
    fn now_ns(&self) -> u64 {
        self.0.lock().unwrap().now_ns
    }

    fn wait(&mut self, until_ns: u64, _: [&dyn Receive; 2]) -> io::Result<()> {
        let mut bench = self.0.lock().unwrap();
        bench.now_ns = bench.now_ns.max(until_ns);
        bench.wakes += 1;
        Ok(())
    }
}

fn frame() -> Frame {
    template::Template::new("123", 2, false).frame().unwrap()
}

fn measure(bench: &Shared) -> (Outcome, Vec<i64>) {
    let side = |side| Box::new(Side(Arc::clone(bench), side));
    let experiment = Experiment {
        direct: side(0),
        routed: side(1),
        traffic: Traffic::Period(PERIOD_NS),
        frame_ns: 60_000,
        gap_ns: 0,
        jitter_ns: 0,
        seed: 1,
        frame: frame(),
        count: COUNT,
        wire: None,
    };
    let mut latencies = Vec::new();
    let outcome = experiment.run(
        Sending::Schedule(Box::new(Source(Arc::clone(bench)))),
        &mut Sleeper(Arc::clone(bench)),
        &AtomicBool::new(false),
        &mut |arrival| latencies.push(arrival.latency_ns),
        &mut |_| {},
    );
    let Ok(outcome) = outcome else { panic!("no call of the bench fails") };
    (outcome, latencies)
}

#[test]
fn no_stamp_is_read_before_the_last_frame_is_through() {
    let bench = Bench::new(true);
    let (outcome, latencies) = measure(&bench);
    assert_eq!((outcome.tally.received, outcome.tally.lost, outcome.interrupted), (COUNT, 0, false));
    assert!(latencies.iter().all(|&ns| ns == LATENCY_NS as i64) && latencies.len() as u64 == COUNT);
    let bench = bench.lock().unwrap();
    let first_ns = bench.reads_ns.iter().min().copied().unwrap_or(0);
    assert!(first_ns > LAST_THROUGH_NS, "a stamp was read at {first_ns} ns, beside the gateway");
    assert!(bench.wakes < 10, "the meter woke up {} times in 2.5 s", bench.wakes);
}

#[test]
fn a_gateway_that_forwards_nothing_is_noticed_after_a_second() {
    let bench = Bench::new(false);
    let (outcome, latencies) = measure(&bench);
    assert!(latencies.is_empty() && outcome.tally.lost_after_direct > 0);
    assert!(outcome.tally.sent < COUNT && !outcome.interrupted, "it ended early, and nobody interrupted it");
    let stopped_ns = bench.lock().unwrap().stopped_ns;
    assert!(stopped_ns.is_some_and(|ns| (LOST_NS..2 * LOST_NS).contains(&ns)), "{stopped_ns:?}");
}

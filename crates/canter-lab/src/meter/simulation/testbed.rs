//! The papers' testbed in memory: the real meter and the real gateway loop between two simulated buses, on one clock
//! that moves from event to event. Only the gateway's processing time is simulated.

use crate::meter::{
    experiment::{Arrival, Experiment, Outcome, Port, Sending, Surroundings},
    measurement::Account,
};
use canter_io::{
    Batch, Frame, Interface,
    batch::BATCH_FRAMES,
    frame::BitRate,
    loss::Losses,
    method::{
        Receive, ReceiveMethod, ReceiveOptions, Transmit, TransmitMethod, TransmitOptions,
        sim::{self, World},
    },
};
use canter_measure::matcher::Tally;
use canter_measure::result::Ledger;
use canter_route::{
    gateway::route::{ROOM_RETRY_NS, Route, Step},
    rules::counts::Counts,
    traffic::{
        pattern::Traffic,
        template::{self, Template},
    },
};
use std::{
    io,
    os::fd::BorrowedFd,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

pub const MEGABIT: BitRate = BitRate::classic(1_000_000);

/// The bit rate of a dead bus: a frame takes a minute.
const DEAD: BitRate = BitRate::classic(1);

/// The gateway's processing time for a batch, between receiving and sending.
#[derive(Clone, Copy, Debug)]
pub struct Service {
    /// The time for the first frame, in ns.
    pub first_ns: u64,
    /// The time for each further frame, in ns.
    pub further_ns: u64,
    /// The largest random addition to a time, in ns.
    pub jitter_ns: u64,
    /// Frames per batch.
    pub batch_frames: usize,
}

impl Service {
    /// A gateway like read+write: every frame takes the same time.
    pub fn one_at_a_time(first_ns: u64) -> Self {
        Self { first_ns, further_ns: 0, jitter_ns: 0, batch_frames: 1 }
    }

    /// A gateway like recvmmsg+sendmmsg: each further frame of a batch takes a tenth of the time.
    pub fn batching(first_ns: u64) -> Self {
        Self { further_ns: first_ns / 10, batch_frames: BATCH_FRAMES, ..Self::one_at_a_time(first_ns) }
    }

    fn ns(&self, frames: usize, random: &mut Random) -> u64 {
        self.first_ns + (frames as u64 - 1) * self.further_ns + random.below(self.jitter_ns + 1)
    }
}

/// The setup of a simulation.
#[derive(Clone)]
pub struct Testbed {
    pub world: World,
    pub name: String,
    pub service: Service,
    pub gather: bool,
    /// The number of frames that fit into the gateway's receive queue.
    pub queue_frames: u32,
    pub traffic: Traffic,
    pub count: u64,
    pub frame: Frame,
    /// The bit rates of the sender's and the routed bus.
    pub rates: [BitRate; 2],
    /// The number of received frames after which the gateway hangs.
    pub hangs_after: u64,
    /// The bus that stops carrying frames, and the time.
    pub dies: (&'static str, u64),
    /// The largest delay of the meter's waking up, in ns.
    pub oversleep_ns: u64,
    pub seed: u64,
}

/// The outcome of a simulation.
#[derive(Debug)]
pub struct Measured {
    pub tally: Tally,
    pub counts: Counts,
    pub ledger: Ledger,
    pub arrivals: Vec<Arrival>,
    /// The time at which the meter ended.
    pub end_ns: u64,
}

impl Testbed {
    pub fn new(service: Service, traffic: Traffic, count: u64) -> Self {
        static WORLDS: AtomicU64 = AtomicU64::new(0);
        let name = format!("testbed-{}", WORLDS.fetch_add(1, Ordering::Relaxed));
        Self {
            world: sim::world(&name),
            name,
            service,
            gather: false,
            queue_frames: 222,
            traffic,
            count,
            frame: Template::classic(2).frame().unwrap(),
            rates: [MEGABIT; 2],
            hangs_after: u64::MAX,
            dies: ("a", u64::MAX),
            oversleep_ns: 0,
            seed: 1,
        }
    }

    pub fn run(&self) -> Measured {
        self.try_run().unwrap()
    }

    pub fn try_run(&self) -> Result<Measured, (Port, io::Error)> {
        self.world.set_bit_rate("a", self.rates[0]);
        self.world.set_bit_rate("b", self.rates[1]);
        let (experiment, gateway) = (self.experiment(), self.gateway());
        let mut simulation = Simulation {
            world: self.world.clone(),
            gateway,
            dies: self.dies,
            oversleep_ns: self.oversleep_ns,
            random: Random(self.seed),
        };
        let mut arrivals = Vec::new();
        let (stop, mut record) = (AtomicBool::new(false), |arrival| arrivals.push(arrival));
        let sending = Sending::Frames(self.transmitter("a"));
        let outcome = experiment.run(sending, &mut simulation, &stop, &mut record, &mut |_| ())?;
        let counts = simulation.gateway.end();
        let Outcome { tally, queue_drops: meter_drops, late, .. } = outcome;
        let ledger = Account { tally, meter_drops, late, losses: Losses::default() }.ledger(&counts);
        Ok(Measured { tally, counts, ledger, arrivals, end_ns: self.world.now_ns() })
    }

    /// The frame of that number.
    pub fn frame(&self, number: u16) -> Frame {
        let mut frame = self.frame;
        template::set_number(&mut frame, number);
        frame
    }

    fn receiver(&self, bus: &str, queue_frames: u32) -> Box<dyn Receive> {
        let method: ReceiveMethod = "sim".parse().unwrap();
        let options = ReceiveOptions { queue_frames: Some(queue_frames), ..ReceiveOptions::default() };
        method.open(&self.interface(bus), &options).unwrap()
    }

    fn transmitter(&self, bus: &str) -> Box<dyn Transmit> {
        let method: TransmitMethod = "sim".parse().unwrap();
        method.open(&self.interface(bus), &TransmitOptions::default()).unwrap()
    }

    fn interface(&self, bus: &str) -> Interface {
        Interface::find(&format!("sim:{}/{bus}", self.name)).unwrap()
    }

    /// The experiment of `canter latency`.
    fn experiment(&self) -> Experiment {
        let queue_frames = self.count.clamp(256, 1 << 16) as u32;
        Experiment {
            direct: self.receiver("a", queue_frames),
            routed: self.receiver("b", queue_frames),
            traffic: self.traffic,
            frame_ns: template::mean_ns(&self.frame, self.count, self.rates[0]),
            gap_ns: 1_000_000,
            jitter_ns: 0,
            seed: 7,
            frame: self.frame,
            count: self.count,
            wire: Some(self.rates[1]),
        }
    }

    fn gateway(&self) -> Gateway {
        let ready_ns = Arc::new(AtomicU64::new(0));
        let served = Served {
            inner: self.receiver("a", self.queue_frames),
            world: self.world.clone(),
            service: self.service,
            random: Random(self.seed),
            batch: Batch::new(self.service.batch_frames),
            ready_ns: Arc::clone(&ready_ns),
        };
        let route =
            Route::new(Box::new(served), self.transmitter("b"), self.service.batch_frames, self.gather);
        Gateway { route, ready_ns, again_ns: 0, hangs_after: self.hangs_after }
    }
}

/// A receiver that returns frames after the gateway's processing time.
struct Served {
    inner: Box<dyn Receive>,
    world: World,
    service: Service,
    random: Random,
    batch: Batch,
    ready_ns: Arc<AtomicU64>,
}

impl Receive for Served {
    fn receive(&mut self, batch: &mut Batch) -> io::Result<usize> {
        let now_ns = self.world.now_ns();
        if self.batch.is_empty() {
            let count = self.inner.receive(&mut self.batch)?;
            if count == 0 {
                return Ok(0);
            }
            self.ready_ns.store(now_ns + self.service.ns(count, &mut self.random), Ordering::Relaxed);
        }
        if now_ns < self.ready_ns.load(Ordering::Relaxed) {
            return Ok(0);
        }
        for (frame, meta) in self.batch.iter() {
            batch.push(frame, *meta);
        }
        self.batch.clear();
        Ok(batch.len())
    }

    fn drops(&mut self) -> io::Result<u64> {
        self.inner.drops()
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// The route, and the times of its next events.
struct Gateway {
    route: Route,
    /// The time at which the received frames are processed.
    ready_ns: Arc<AtomicU64>,
    /// The time at which the gateway retries a full output.
    again_ns: u64,
    hangs_after: u64,
}

impl Gateway {
    /// Runs the route until `now_ns`; returns the time of the next event.
    fn advance(&mut self, now_ns: u64) -> Option<u64> {
        if now_ns < self.again_ns {
            return Some(self.again_ns);
        }
        while self.route.counts.received < self.hangs_after {
            match self.route.pump().unwrap() {
                Step::Idle => {
                    let ready_ns = self.ready_ns.load(Ordering::Relaxed);
                    return (ready_ns > now_ns).then_some(ready_ns);
                }
                Step::Moved => (),
                Step::Full if self.route.try_again(now_ns) => {
                    self.again_ns = now_ns + ROOM_RETRY_NS;
                    return Some(self.again_ns);
                }
                Step::Full => (),
            }
        }
        None
    }

    fn end(mut self) -> Counts {
        self.route.run(&AtomicBool::new(true)).unwrap();
        self.route.counts
    }
}

/// Surroundings that move the clock from one event to the next.
struct Simulation {
    world: World,
    gateway: Gateway,
    dies: (&'static str, u64),
    oversleep_ns: u64,
    random: Random,
}

impl Surroundings for Simulation {
    fn now_ns(&self) -> u64 {
        self.world.now_ns()
    }

    fn wait(&mut self, until_ns: u64, _: [&dyn Receive; 2]) -> io::Result<()> {
        let until_ns = until_ns + self.random.below(self.oversleep_ns + 1);
        if self.now_ns() >= self.dies.1 {
            self.world.set_bit_rate(self.dies.0, DEAD);
        }
        while self.now_ns() < until_ns {
            let goes_on_ns = self.gateway.advance(self.now_ns());
            let arrives_ns = self.world.next_ns().filter(|&arrives_ns| arrives_ns <= until_ns);
            let next_ns = [arrives_ns, goes_on_ns].into_iter().flatten().fold(until_ns, u64::min);
            self.world.advance(next_ns);
            if arrives_ns == Some(next_ns) && self.oversleep_ns == 0 {
                break; // a receiver may have something
            }
        }
        Ok(())
    }
}

/// SplitMix64: pseudo-random numbers from a seed.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

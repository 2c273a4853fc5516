//! Full buses: a virtual wire each, with one node, which is recorded, and its source.

use crate::{
    meter::syscalls,
    study::{
        nodes::{self, Nodes},
        processor::Moment,
    },
};
use canter_cli::failure;
use canter_io::{
    clock,
    netlink::wire::{self, Pace, Random, Source},
};
use canter_measure::result::WireKept;

/// The period at which canter checks whether the sources have ended.
const CHECK_PERIOD_NS: u64 = 20_000_000;
/// The time from the command to the first frame of periodic traffic, in which all sources are started.
const AHEAD_NS: u64 = 30_000_000;

pub struct Buses(Nodes);

/// What the source of each bus sends: frames of random data.
pub struct Traffic {
    pub frames: u64,
    pub len: u8,
    /// From one frame of a bus to the next, in ns; without it, back to back.
    pub period_ns: Option<u64>,
}

/// What the sources sent, how the wires kept their time, and what it took.
pub struct Sent {
    pub frames: u64,
    pub wire: WireKept,
    pub lasted_ns: u64,
    /// The time in which the processors were not idle, from the first frame to the last.
    pub busy_ns: u64,
    /// The part of that which the wires' timers took.
    pub timers_ns: u64,
}

impl Buses {
    /// Makes `count` buses. None of them waits for a machine that is late, as no real bus would.
    pub fn new(count: u32, bitrate: u32) -> failure::Result<Self> {
        let nodes = Nodes::new("full", count, bitrate)?;
        for bus in nodes.names() {
            wire::set_slip(bus, u64::MAX)?;
        }
        Ok(Self(nodes))
    }

    /// The names of the nodes; each bus has that of its node.
    pub fn nodes(&self) -> &[String] {
        self.0.names()
    }

    /// Sends frames on every bus, and waits until all have been sent.
    pub fn carry(&self, traffic: &Traffic) -> failure::Result<Sent> {
        let begin_ns = self.start(traffic)?;
        clock::sleep_until_ns(begin_ns);
        let begun = Moment::now()?;
        // Asking the wires takes time of the processor that is measured.
        clock::sleep_until_ns(begin_ns + traffic.frames * traffic.period_ns.unwrap_or(0));
        let (mut frames, mut wire, mut timers_ns) = (0, WireKept::default(), 0);
        for bus in self.nodes() {
            let mut state = wire::bus(bus)?;
            while state.source.running {
                clock::sleep_until_ns(clock::monotonic_ns() + CHECK_PERIOD_NS);
                state = wire::bus(bus)?;
            }
            frames += state.source.sent;
            timers_ns += state.stats.callback_ns;
            nodes::add(&mut wire, &state.stats);
        }
        let ended = Moment::now()?;
        let (lasted_ns, busy_ns) = (ended.since_ns(&begun), ended.busy_ns_since(&begun));
        Ok(Sent { frames, wire, lasted_ns, busy_ns, timers_ns })
    }

    /// Starts all sources, and returns the time of the first frame. The buses take turns when each has a period.
    fn start(&self, traffic: &Traffic) -> failure::Result<u64> {
        let begin_ns = clock::monotonic_ns() + traffic.period_ns.map_or(0, |_| AHEAD_NS);
        let buses = self.nodes().len() as u64;
        for (at, bus) in (0..).zip(self.nodes()) {
            let delay_ns = traffic
                .period_ns
                .map(|period_ns| (begin_ns + at * (period_ns / buses)).saturating_sub(clock::monotonic_ns()));
            let source = Source {
                frame: syscalls::frame(traffic.len)?, // the data will be random
                pace: traffic.period_ns.map_or(Pace::Always, Pace::Period),
                count: Some(u32::try_from(traffic.frames).unwrap_or(u32::MAX)),
                delay_ns,
                random: Random { data: true, seed: Some(at + 1), ..Random::default() },
                ..Source::default()
            };
            wire::start(bus, &source)?;
        }
        Ok(begin_ns)
    }
}

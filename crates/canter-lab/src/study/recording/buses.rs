//! Full buses: a virtual wire each, with one node, which is recorded, and its source.

use crate::{
    meter::syscalls,
    study::nodes::{self, Nodes},
};
use canter_cli::failure;
use canter_io::{
    clock,
    netlink::wire::{self, Pace, Random, Source},
};
use canter_measure::result::WireKept;

/// The period at which canter checks whether the sources have ended.
const CHECK_PERIOD_NS: u64 = 20_000_000;

pub struct Buses(Nodes);

/// The number of frames that the sources sent, and how the wires kept their time.
#[derive(Default)]
pub struct Sent {
    pub frames: u64,
    pub wire: WireKept,
}

impl Buses {
    pub fn new(count: u32, bitrate: u32) -> failure::Result<Self> {
        Nodes::new("full", count, bitrate).map(Self)
    }

    /// The names of the nodes; each bus has that of its node.
    pub fn nodes(&self) -> &[String] {
        self.0.names()
    }

    /// Sends this many frames of random data on each bus, back to back, and waits until all have been sent.
    pub fn flood(&self, frames: u64, len: u8) -> failure::Result<Sent> {
        for (seed, bus) in (1..).zip(self.nodes()) {
            let source = Source {
                frame: syscalls::frame(len)?, // the data will be random
                pace: Pace::Always,
                count: Some(u32::try_from(frames).unwrap_or(u32::MAX)),
                random: Random { data: true, seed: Some(seed), ..Random::default() },
                ..Source::default()
            };
            wire::start(bus, &source)?;
        }
        let mut sent = Sent::default();
        for bus in self.nodes() {
            let mut state = wire::bus(bus)?;
            while state.source.running {
                clock::sleep_until_ns(clock::monotonic_ns() + CHECK_PERIOD_NS);
                state = wire::bus(bus)?;
            }
            sent.frames += state.source.sent;
            nodes::add(&mut sent.wire, &state.stats);
        }
        Ok(sent)
    }
}

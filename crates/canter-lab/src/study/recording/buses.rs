//! Full buses: a virtual wire each, with one node, which is recorded, and its source. They go when this is dropped.

use crate::meter::syscalls;
use canter_cli::failure;
use canter_io::{
    Interface, clock,
    interface::BitTiming,
    netlink::wire::{self, NodeOptions, Pace, Random, Source},
};
use canter_measure::result::WireKept;

/// The period at which canter checks whether the sources have ended.
const CHECK_PERIOD_NS: u64 = 20_000_000;

pub struct Buses {
    nodes: Vec<String>,
}

/// The number of frames that the sources sent, and how the wires kept their time.
pub struct Sent {
    pub frames: u64,
    pub wire: WireKept,
}

impl Buses {
    pub fn new(count: u32, bitrate: u32) -> failure::Result<Self> {
        wire::available()?;
        let mut buses = Self { nodes: Vec::new() };
        for number in 0..count {
            let node = format!("full{number}");
            wire::add(&node, &node, &NodeOptions::default())?;
            buses.nodes.push(node.clone());
            let mut interface = Interface::find(&node)?;
            interface.set_bit_timing(&BitTiming::classic(bitrate))?;
            interface.up()?;
        }
        Ok(buses)
    }

    /// The names of the nodes; each bus has that of its node.
    pub fn nodes(&self) -> &[String] {
        &self.nodes
    }

    /// Sends this many frames of random data on each bus, back to back, and waits until all have been sent.
    pub fn flood(&self, frames: u64, len: u8) -> failure::Result<Sent> {
        for (seed, bus) in (1..).zip(&self.nodes) {
            let source = Source {
                frame: syscalls::frame(len)?, // the data will be random
                pace: Pace::Always,
                count: Some(u32::try_from(frames).unwrap_or(u32::MAX)),
                random: Random { data: true, seed: Some(seed), ..Random::default() },
                ..Source::default()
            };
            wire::start(bus, &source)?;
        }
        let mut sent = Sent { frames: 0, wire: WireKept::default() };
        for bus in &self.nodes {
            let mut state = wire::bus(bus)?;
            while state.source.running {
                clock::sleep_until_ns(clock::monotonic_ns() + CHECK_PERIOD_NS);
                state = wire::bus(bus)?;
            }
            sent.frames += state.source.sent;
            let (wire, stats) = (&mut sent.wire, &state.stats);
            wire.late_ns_max = wire.late_ns_max.max(stats.late_ns_max);
            wire.slips += stats.slips;
            wire.slip_ns += stats.slip_ns;
            wire.overruns += stats.overruns;
            wire.errors += stats.errors;
        }
        Ok(sent)
    }
}

impl Drop for Buses {
    fn drop(&mut self) {
        for node in &self.nodes {
            let _ = wire::delete(node); // the guest ends soon; a later study says that the name is taken
        }
    }
}

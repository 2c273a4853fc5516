//! Virtual wires of a study's own, each with one node, whose name is also the bus's. They go when this is dropped.

use canter_cli::failure;
use canter_io::{
    Interface,
    interface::BitTiming,
    netlink::wire::{self, BusStats, NodeOptions},
};
use canter_measure::result::WireKept;

#[derive(Default)]
pub struct Nodes(Vec<String>);

impl Nodes {
    /// Makes `count` nodes, whose names are the prefix and a number from 0.
    pub fn new(prefix: &str, count: u32, bitrate: u32) -> failure::Result<Self> {
        wire::available()?;
        let mut nodes = Self::default();
        for number in 0..count {
            let name = format!("{prefix}{number}");
            wire::add(&name, &name, &NodeOptions::default())?;
            nodes.0.push(name.clone());
            let mut interface = Interface::find(&name)?;
            interface.set_bit_timing(&BitTiming::classic(bitrate))?;
            interface.up()?;
        }
        Ok(nodes)
    }

    pub fn names(&self) -> &[String] {
        &self.0
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        for node in &self.0 {
            let _ = wire::delete(node); // the guest ends soon; a later study says that the name is taken
        }
    }
}

/// Adds the counters of a bus to those of others.
pub fn add(kept: &mut WireKept, stats: &BusStats) {
    kept.late_ns_max = kept.late_ns_max.max(stats.late_ns_max);
    kept.slips += stats.slips;
    kept.slip_ns += stats.slip_ns;
    kept.overruns += stats.overruns;
    kept.errors += stats.errors;
}

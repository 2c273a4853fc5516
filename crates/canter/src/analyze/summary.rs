//! The summary of an analysis: frames, errors, load, and the lateness of the wire's timer.

use canter_cli::units::us;
use canter_io::{
    frame::INTERFRAME_BITS,
    netlink::wire::{Bus, BusStats},
    tap::Record,
};
use serde::Serialize;
use std::{collections::BTreeMap, fmt};

pub struct Summary {
    bus: String,
    start_ns: u64,
    before: BusStats,
    bitrate: Option<u32>,
    frames: u64,
    errors: BTreeMap<&'static str, u64>,
    overruns: u64,
    busy_ns: u64,
    /// The nominal bit time, from the latest record without a data phase.
    bit_ns: u64,
}

/// The document of `--json`.
#[derive(Serialize)]
pub struct Report {
    pub bus: String,
    pub bitrate: Option<u32>,
    pub duration_ns: u64,
    pub frames: u64,
    /// Errors by kind.
    pub errors: BTreeMap<&'static str, u64>,
    /// Frames that receivers lost because their FIFO was full, summed over all receivers.
    pub overruns: u64,
    /// Records that were overwritten before they were read.
    pub missed: u64,
    /// The share of the time that frames and their interframe spaces took.
    pub load_percent: f64,
    /// Number of pauses because the wire's timer was late.
    pub slips: u64,
    /// Sum of the pauses, in ns.
    pub slip_ns: u64,
    /// The worst lateness of the wire's timer since the bus was created.
    pub late_ns_max: u64,
}

impl Summary {
    pub fn new(bus: &str, start_ns: u64, about: &Bus) -> Self {
        Self {
            bus: bus.to_owned(),
            start_ns,
            before: about.stats,
            bitrate: about.bitrate,
            frames: 0,
            errors: BTreeMap::new(),
            overruns: 0,
            busy_ns: 0,
            bit_ns: about.bitrate.map_or(0, |rate| 1_000_000_000 / u64::from(rate)),
        }
    }

    pub fn count(&mut self, record: &Record) {
        if record.data_bits == 0 && record.nominal_bits > 0 {
            self.bit_ns = record.duration_ns() / u64::from(record.nominal_bits);
        }
        match record.error {
            Some(fault) => *self.errors.entry(fault.name()).or_default() += 1,
            None => self.frames += 1,
        }
        self.overruns += u64::from(record.overrun.count_ones());
        self.busy_ns += record.duration_ns() + self.interframe_ns();
    }

    /// The length of the interframe space, in ns.
    pub fn interframe_ns(&self) -> u64 {
        u64::from(INTERFRAME_BITS) * self.bit_ns
    }

    /// Frames and errors so far.
    pub fn records(&self) -> u64 {
        self.frames + self.errors.values().sum::<u64>()
    }

    pub fn report(&self, end_ns: u64, stats: BusStats, missed: u64) -> Report {
        let duration_ns = end_ns.saturating_sub(self.start_ns);
        Report {
            bus: self.bus.clone(),
            bitrate: self.bitrate,
            duration_ns,
            frames: self.frames,
            errors: self.errors.clone(),
            overruns: self.overruns,
            missed,
            load_percent: self.busy_ns as f64 * 100.0 / duration_ns.max(1) as f64,
            slips: stats.slips - self.before.slips.min(stats.slips),
            slip_ns: stats.slip_ns - self.before.slip_ns.min(stats.slip_ns),
            late_ns_max: stats.late_ns_max,
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.duration_ns as f64 / 1e9;
        let errors: u64 = self.errors.values().sum();
        write!(
            f,
            "{} frames, {errors} errors in {seconds:.3} s, load {:.1} %",
            self.frames, self.load_percent
        )?;
        if errors > 0 {
            let kinds: Vec<_> = self.errors.iter().map(|(name, count)| format!("{count} {name}")).collect();
            write!(f, " ({})", kinds.join(", "))?;
        }
        write!(f, "; {} overruns", self.overruns)?;
        write!(f, "; {} slips, {:.1} µs", self.slips, us(self.slip_ns))?;
        write!(f, "; timer at most {:.1} µs late", us(self.late_ns_max))?;
        if self.missed > 0 {
            write!(f, "; MISSED {}: canter read more slowly than the wire sent", self.missed)?;
        }
        Ok(())
    }
}

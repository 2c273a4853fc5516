//! The document of `canter info --json`.

use super::{
    census::{Bus, Census, Key, Row, WINDOW_NS},
    names::Names,
    summary::percent,
};
use crate::recordings::{Ending, Outcome};
use canter_frame::frame::{EFF_FLAG, EFF_MASK, RTR_FLAG};
use serde::Serialize;
use std::collections::BTreeMap;

/// Times are in ns, stamps in ns since 1970.
#[derive(Serialize)]
pub struct Document {
    files: Vec<Outcome>,
    /// Frames that were read, selected or not.
    read: u64,
    first_ns: Option<u64>,
    last_ns: Option<u64>,
    /// Frames whose stamp is older than that of the frame before.
    backwards: u64,
    /// Frames of identifiers without a row.
    beyond: u64,
    remarks: Vec<String>,
    buses: Vec<BusDocument>,
    identifiers: Vec<RowDocument>,
}

#[derive(Serialize)]
struct BusDocument {
    name: String,
    bitrate: Option<u32>,
    bitrate_data: Option<u32>,
    frames: u64,
    sent: u64,
    fd: u64,
    remote: u64,
    error_frames: u64,
    errors: BTreeMap<&'static str, u64>,
    first_ns: u64,
    last_ns: u64,
    /// With stuff bits and interframe space.
    bits: u64,
    busiest_second_bits: u64,
    load_percent: Option<f64>,
    busiest_second_percent: Option<f64>,
    longest_silence_ns: u64,
    longest_silence_begin_ns: u64,
    pauses: u32,
    paused_ns: u64,
}

#[derive(Serialize)]
struct RowDocument {
    bus: String,
    id: u32,
    extended: bool,
    remote: bool,
    /// The name of the message, by the databases of `--dbc`.
    name: Option<String>,
    fd: bool,
    frames: u64,
    len_min: u8,
    len_max: u8,
    period_ns: Option<u64>,
    jitter_ns: Option<u64>,
    longest_gap_ns: Option<u64>,
    longest_gap_begin_ns: Option<u64>,
    /// Frames probably missing; null when the period is not steady.
    missing: Option<u64>,
    changing_bytes: Vec<u8>,
}

impl Document {
    pub fn new(census: &Census, names: &Names<'_>, rows: &[(&Key, &Row)], ending: Ending) -> Self {
        let bus_name = |key: &Key| census.buses[key.bus].name.clone();
        Self {
            files: ending.outcomes,
            read: ending.read,
            first_ns: census.span_ns.map(|span| span.0),
            last_ns: census.span_ns.map(|span| span.1),
            backwards: ending.backwards,
            beyond: census.beyond,
            remarks: ending.remarks,
            buses: census.buses.iter().map(BusDocument::new).collect(),
            identifiers: rows
                .iter()
                .map(|(key, row)| RowDocument::new(bus_name(key), key.id, names.name(key), row))
                .collect(),
        }
    }
}

impl BusDocument {
    fn new(bus: &Bus) -> Self {
        let is_long = bus.duration_ns() >= WINDOW_NS;
        Self {
            name: bus.name.clone(),
            bitrate: bus.rate.map(|rate| rate.nominal),
            bitrate_data: bus.rate.map(|rate| rate.data),
            frames: bus.frames,
            sent: bus.sent,
            fd: bus.fd,
            remote: bus.remote,
            error_frames: bus.error_frames,
            errors: bus.errors.clone(),
            first_ns: bus.first_ns,
            last_ns: bus.last_ns,
            bits: bus.total.bits,
            busiest_second_bits: bus.busiest.bits,
            load_percent: bus.rate.and_then(|_| percent(bus.total.busy_ps, bus.duration_ns())),
            busiest_second_percent: bus
                .rate
                .filter(|_| is_long)
                .and_then(|_| percent(bus.busiest.busy_ps, WINDOW_NS)),
            longest_silence_ns: bus.silence.0,
            longest_silence_begin_ns: bus.silence.1,
            pauses: bus.pauses,
            paused_ns: bus.paused_ns,
        }
    }
}

impl RowDocument {
    fn new(bus: String, id: u32, name: Option<&str>, row: &Row) -> Self {
        let period = row.period();
        Self {
            bus,
            id: id & EFF_MASK,
            extended: id & EFF_FLAG != 0,
            remote: id & RTR_FLAG != 0,
            name: name.map(str::to_owned),
            fd: row.fd,
            frames: row.count,
            len_min: row.len.0,
            len_max: row.len.1,
            period_ns: period.map(|period| period.median_ns),
            jitter_ns: period.map(|period| period.jitter_ns),
            longest_gap_ns: period.map(|_| row.longest_ns()),
            longest_gap_begin_ns: period.map(|_| row.longest_begin_ns),
            missing: period.and_then(|period| period.missing),
            changing_bytes: (0..64).filter(|at| row.changing >> at & 1 != 0).collect(),
        }
    }
}

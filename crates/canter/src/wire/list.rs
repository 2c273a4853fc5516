//! `canter wire list`: nodes and buses, with their counters of frames and errors.

use canter_cli::{
    failure::{self, Exit},
    options::Common,
    units::us,
};
use canter_io::{
    Interface,
    netlink::wire::{self, Bus, Fifo, Node},
};
use clap::Args;
use serde::Serialize;
use std::collections::BTreeMap;

/// List nodes and buses
#[derive(Args)]
pub struct Arguments {
    /// List only this bus
    #[arg(value_name = "BUS")]
    bus: Option<String>,
}

#[derive(Serialize)]
struct Document {
    nodes: Vec<NodeRow>,
    buses: Vec<BusRow>,
}

/// A node, as tables and `--json` show it.
#[derive(Serialize)]
struct NodeRow {
    name: String,
    bus: String,
    slot: u8,
    /// The canchar device that drives it; state and bit rate are the device's then.
    device: Option<String>,
    /// The state's name in ip-link(8), or DOWN.
    state: String,
    bitrate: Option<u32>,
    data_bitrate: Option<u32>,
    fifo_bytes: Option<u32>,
    fifo_frames: Option<u32>,
    fifo_used_max: u32,
    tx_buffers: u8,
    fd_tolerant: bool,
    clock_drift_ppb: i32,
    connected: bool,
    napi_id: u32,
    sent: u64,
    received: u64,
    overruns: u64,
    dropped: u64,
    arbitration_lost: u64,
    errors_sent: u64,
    errors_received: u64,
    bus_offs: u64,
    tx_errors: u32,
    rx_errors: u32,
}

#[derive(Serialize)]
struct BusRow {
    name: String,
    nodes: u32,
    bitrate: Option<u32>,
    data_bitrate: Option<u32>,
    frames: u64,
    errors: u64,
    overruns: u64,
    busy_ns: u64,
    /// The delay after which the wire slips, in ns; `null`: never.
    slip_limit_ns: Option<u64>,
    slips: u64,
    slip_ns: u64,
    late_ns_max: u64,
    source_running: bool,
    source_sent: u64,
    source_due: u64,
}

pub fn run(arguments: &Arguments, common: &Common) -> failure::Result {
    let (nodes, buses) = match &arguments.bus {
        Some(name) => {
            let bus = wire::bus(name)?;
            (wire::nodes_of(name)?, vec![bus])
        }
        None => (wire::nodes()?, wire::buses()?),
    };
    let drivers: BTreeMap<String, Interface> =
        Interface::devices().into_iter().filter_map(|device| Some((device.driven_node()?, device))).collect();
    let document = Document {
        nodes: nodes.into_iter().map(|node| NodeRow::new(node, &drivers)).collect(),
        buses: buses.into_iter().map(BusRow::new).collect(),
    };
    common.write_json(&document)?;
    if common.shows_table() {
        print!("{}", document.table());
    }
    Ok(Exit::Done)
}

impl NodeRow {
    /// `drivers`: canchar devices by the nodes that they drive.
    fn new(node: Node, drivers: &BTreeMap<String, Interface>) -> Self {
        let device = drivers.get(&node.name);
        let driven_by = device.map(|device| device.name.clone());
        // The interface may have been renamed or deleted meanwhile.
        let interface = device.cloned().or_else(|| Interface::find(&node.name).ok());
        let up = interface.as_ref().filter(|interface| interface.up);
        let state = up.and_then(|interface| interface.controller.as_ref()?.state);
        let stats = node.stats;
        Self {
            name: node.name,
            bus: node.bus,
            slot: node.slot,
            device: driven_by,
            state: state.map_or("DOWN".to_owned(), |state| state.to_string()),
            bitrate: interface.as_ref().and_then(Interface::bitrate),
            data_bitrate: interface.as_ref().and_then(Interface::data_bitrate),
            fifo_bytes: if let Some(Fifo::Bytes(bytes)) = node.fifo { Some(bytes) } else { None },
            fifo_frames: if let Some(Fifo::Frames(frames)) = node.fifo { Some(frames) } else { None },
            fifo_used_max: stats.fifo_used_max,
            tx_buffers: node.tx_buffers,
            fd_tolerant: node.fd_tolerant,
            clock_drift_ppb: node.clock_drift_ppb,
            connected: node.connected,
            napi_id: node.napi_id,
            sent: stats.sent,
            received: stats.received,
            overruns: stats.overruns,
            dropped: stats.dropped,
            arbitration_lost: stats.arbitration_lost,
            errors_sent: stats.errors_sent,
            errors_received: stats.errors_received,
            bus_offs: stats.bus_offs,
            tx_errors: stats.tx_errors,
            rx_errors: stats.rx_errors,
        }
    }

    fn cells(&self) -> Vec<String> {
        let fifo = match (self.fifo_bytes, self.fifo_frames) {
            (Some(bytes), _) => format!("{bytes} B"),
            (_, Some(frames)) => format!("{frames} fr"),
            _ => "auto".to_owned(),
        };
        let state = if self.connected { self.state.clone() } else { format!("{} CUT", self.state) };
        let driven = |device| format!("{} by {device}", self.name);
        vec![
            self.device.as_ref().map_or_else(|| self.name.clone(), driven),
            self.bus.clone(),
            state,
            rate(self.bitrate),
            rate(self.data_bitrate),
            fifo,
            self.tx_buffers.to_string(),
            self.sent.to_string(),
            self.received.to_string(),
            self.overruns.to_string(),
            (self.errors_sent + self.errors_received).to_string(),
            format!("{}/{}", self.tx_errors, self.rx_errors),
        ]
    }
}

impl BusRow {
    fn new(bus: Bus) -> Self {
        Self {
            name: bus.name,
            nodes: bus.nodes,
            bitrate: bus.bitrate,
            data_bitrate: bus.data_bitrate,
            frames: bus.stats.frames,
            errors: bus.stats.errors,
            overruns: bus.stats.overruns,
            busy_ns: bus.stats.busy_ns,
            slip_limit_ns: Some(bus.slip_ns).filter(|&ns| ns != u64::MAX),
            slips: bus.stats.slips,
            slip_ns: bus.stats.slip_ns,
            late_ns_max: bus.stats.late_ns_max,
            source_running: bus.source.running,
            source_sent: bus.source.sent,
            source_due: bus.source.due,
        }
    }

    fn cells(&self) -> Vec<String> {
        let source = match (self.source_running, self.source_due) {
            (true, _) => format!("runs, {}", self.source_sent),
            (false, 0) => "-".to_owned(),
            (false, _) => format!("ended, {}", self.source_sent),
        };
        vec![
            self.name.clone(),
            self.nodes.to_string(),
            rate(self.bitrate),
            rate(self.data_bitrate.filter(|_| self.data_bitrate != self.bitrate)),
            self.frames.to_string(),
            self.errors.to_string(),
            self.overruns.to_string(),
            self.slips.to_string(),
            format!("{:.1} µs", us(self.slip_ns)),
            format!("{:.1} µs", us(self.late_ns_max)),
            source,
        ]
    }
}

fn rate(rate: Option<u32>) -> String {
    rate.map_or("-".to_owned(), |rate| rate.to_string())
}

impl Document {
    fn table(&self) -> String {
        if self.buses.is_empty() {
            return "no bus (canter wire add wcan0 --bus A)\n".to_owned();
        }
        let nodes = [
            "node", "bus", "state", "bit/s", "data", "FIFO", "tx", "sent", "received", "overrun", "errors",
            "TEC/REC",
        ];
        let buses = [
            "bus", "nodes", "bit/s", "data", "frames", "errors", "overrun", "slips", "slipped", "late",
            "source",
        ];
        let nodes = aligned(&nodes, self.nodes.iter().map(NodeRow::cells), 3);
        let buses = aligned(&buses, self.buses.iter().map(BusRow::cells), 1);
        format!("{nodes}\n{buses}")
    }
}

/// Rows below a heading; the first `left` columns are left-aligned, the others right-aligned.
fn aligned(heading: &[&str], rows: impl Iterator<Item = Vec<String>>, left: usize) -> String {
    let heading = heading.iter().map(|&cell| cell.to_owned()).collect();
    let rows: Vec<Vec<String>> = [heading].into_iter().chain(rows).collect();
    let widths: Vec<usize> = (0..rows[0].len())
        .map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0))
        .collect();
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(&widths).enumerate().map(|(at, (cell, &width))| {
            if at < left { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        text += cells.collect::<Vec<_>>().join("  ").trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [vec!["a".to_owned(), "1".to_owned()], vec!["long".to_owned(), "12345".to_owned()]];
        assert_eq!(aligned(&["n", "x"], rows.into_iter(), 1), "n         x\na         1\nlong  12345\n");
    }
}

//! `canter wire add`, `delete` and `set`: creates and deletes nodes, sets properties of their bus.

use canter_cli::{
    duration,
    failure::{self, Exit},
};
use canter_io::{
    Interface,
    interface::BitTiming,
    netlink::wire::{self, Fifo, NodeOptions},
};
use clap::Args;

/// Create a node, and its bus if it is the bus's first node
#[derive(Args)]
#[command(after_help = "\
Examples:
  canter wire add wcan0 --bus A                            down and without a bit rate, as hardware at boot
  canter wire add wcan0 --bus A --bitrate 1000000          up, with a bit rate
  canter wire add wcan0 --bus A --fifo mpc5200 --tx-buffers 1
  canter wire add wcan0 --bus A --clock-drift=-100         hardware stamps by a clock that loses 100 ppm
  canter wire add wcan0 --bus A --bitrate 500000 --dbitrate 2000000     with FD")]
pub struct AddArguments {
    /// Name of the node's interface
    #[arg(value_name = "NODE")]
    name: String,
    /// The bus, 1…15 letters, digits, - or _
    #[arg(long, value_name = "BUS")]
    bus: String,
    /// Receive FIFO: sja1000 (64 bytes), mpc5200 (5 frames), 12 (frames), 256B (bytes); unless given 64 bytes,
    /// or 32 frames with FD
    #[arg(long, value_name = "SIZE", value_parser = fifo)]
    fifo: Option<Fifo>,
    /// Number of transmit buffers, 1…3 [default: 2]; with one, the node never sends back to back
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=3))]
    tx_buffers: Option<u8>,
    /// While FD is off, ignore FD frames instead of answering with error frames
    #[arg(long)]
    fd_tolerant: bool,
    /// Take hardware stamps by a clock of the node's own, which gains this many ppm, -1000…1000; unless given, by the
    /// system's clock
    #[arg(long, value_name = "PPM", allow_negative_numbers = true, value_parser = clap::value_parser!(i32).range(-1000..=1000))]
    clock_drift: Option<i32>,
    /// Bit rate in bit/s; the node is brought up
    #[arg(long, value_name = "RATE")]
    bitrate: Option<u32>,
    /// Enable FD, with this bit rate of the data phase
    #[arg(long, value_name = "RATE", requires = "bitrate")]
    dbitrate: Option<u32>,
    /// Longest delay of the bus's timer before the wire slips: auto (three frames), never, 400us
    #[arg(long, value_name = "TIME", value_parser = slip)]
    slip: Option<u64>,
}

/// Delete nodes, up or down; the bus ends with its last node
#[derive(Args)]
pub struct DeleteArguments {
    /// Nodes to delete
    #[arg(value_name = "NODE", required_unless_present = "all")]
    names: Vec<String>,
    /// All nodes of this network namespace
    #[arg(long, conflicts_with = "names")]
    all: bool,
}

/// Change a bus
#[derive(Args)]
#[command(after_help = "\
The wire's timer can be late, most of all in an emulated machine. Without a slip, the wire then catches up: it sends the
late frames at once, and receivers overrun that would not overrun on a real wire. With a slip, the wire pauses instead;
`canter wire list` counts the slips.")]
pub struct SetArguments {
    /// The bus
    #[arg(value_name = "BUS")]
    bus: String,
    /// Longest delay of the bus's timer before the wire slips: auto (three frames), never, 400us
    #[arg(long, value_name = "TIME", value_parser = slip, required_unless_present = "seed")]
    slip: Option<u64>,
    /// Seed of the bus's random errors, not 0
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    seed: Option<u64>,
}

/// Sizes of FIFOs by the chip's name.
const CHIPS: [(&str, Fifo); 2] = [("sja1000", Fifo::Bytes(64)), ("mpc5200", Fifo::Frames(5))];

fn fifo(text: &str) -> Result<Fifo, String> {
    if let Some((_, fifo)) = CHIPS.iter().find(|(name, _)| *name == text) {
        return Ok(*fifo);
    }
    let (number, range, size): (_, _, fn(u32) -> Fifo) = match text.strip_suffix('B') {
        Some(bytes) => (bytes, 16..=4096, Fifo::Bytes),
        None => (text, 1..=512, Fifo::Frames),
    };
    let number = number.parse().ok().filter(|number| range.contains(number));
    number
        .map(size)
        .ok_or_else(|| format!("{text:?} is not a FIFO (sja1000, mpc5200, 1…512 frames or 16B…4096B)"))
}

fn slip(text: &str) -> Result<u64, String> {
    match text {
        "auto" => Ok(0),
        "never" => Ok(u64::MAX),
        _ => duration::parse_ns(text).map_err(|error| format!("{error}, auto or never")),
    }
}

pub fn add(arguments: &AddArguments) -> failure::Result {
    let AddArguments { name, bus, fifo, tx_buffers, fd_tolerant, clock_drift, bitrate, dbitrate, slip } =
        arguments;
    let clock_drift_ppb = clock_drift.unwrap_or(0) * 1000;
    let options =
        NodeOptions { fifo: *fifo, tx_buffers: *tx_buffers, fd_tolerant: *fd_tolerant, clock_drift_ppb };
    wire::add(name, bus, &options)?;
    let set_up = || {
        if let Some(ns) = slip {
            wire::set_slip(bus, *ns)?;
        }
        let Some(bitrate) = *bitrate else { return Ok(()) };
        let timing =
            dbitrate.map_or(BitTiming::classic(bitrate), |data_bitrate| BitTiming::fd(bitrate, data_bitrate));
        let mut interface = Interface::find(name)?;
        interface.set_bit_timing(&timing)?;
        interface.up()
    };
    set_up()
        .map_err(|error: canter_io::Error| {
            let _ = wire::delete(name); // a half-configured node is of no use; the first error is reported
            error.into()
        })
        .map(|()| Exit::Done)
}

pub fn delete(arguments: &DeleteArguments) -> failure::Result {
    let existing = if arguments.all { wire::nodes()? } else { Vec::new() };
    for name in arguments.names.iter().chain(existing.iter().map(|node| &node.name)) {
        wire::delete(name)?;
    }
    Ok(Exit::Done)
}

pub fn set(arguments: &SetArguments) -> failure::Result {
    if let Some(ns) = arguments.slip {
        wire::set_slip(&arguments.bus, ns)?;
    }
    if let Some(seed) = arguments.seed {
        wire::set_seed(&arguments.bus, seed)?;
    }
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fifo_is_a_chip_or_a_number_of_frames_or_bytes() {
        for (text, expected) in [
            ("sja1000", Some(Fifo::Bytes(64))),
            ("mpc5200", Some(Fifo::Frames(5))),
            ("1", Some(Fifo::Frames(1))),
            ("512", Some(Fifo::Frames(512))),
            ("4096B", Some(Fifo::Bytes(4096))),
            ("0", None),
            ("513", None),
            ("15B", None),
            ("-1", None),
            ("", None),
            ("B", None),
            ("m_can", None),
        ] {
            assert_eq!(fifo(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn a_slip_is_a_time_or_a_word() {
        assert_eq!((slip("auto"), slip("never"), slip("400us")), (Ok(0), Ok(u64::MAX), Ok(400_000)));
        assert!(slip("often").unwrap_err().contains("auto or never"));
    }
}

//! `canter wire fault`: injects errors into a bus, disconnects nodes, lets a node babble.

use canter_cli::failure::{self, Exit};
use canter_io::{
    Frame,
    netlink::wire::{self, Fault, Injection},
};
use clap::{Args, Subcommand, ValueEnum};

/// Inject faults: errors on a bus, a disconnected node, a babbling node
#[derive(Args)]
#[command(after_help = "\
Examples:
  canter wire fault inject A --error crc --count 5           the next five frames
  canter wire fault inject A --error bit --probability 0.001 one frame in a thousand, until `clear`
  canter wire fault inject A --error ack --node wcan0 --count 40    wcan0 goes error-passive
  canter wire fault clear A
  canter wire fault disconnect wcan0                         no node acknowledges its frames
  canter wire fault connect wcan0
  canter wire fault babble wcan0 --frame 000# --count 1000   wcan0 occupies the bus
Errors appear as CAN error frames (candump -e wcan0,0:0,#FFFFFFFF), in `canter wire list` and in `canter analyze`.")]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Destroy frames on a bus; replaces an earlier injection
    Inject(InjectArguments),
    /// Stop injecting errors
    Clear {
        #[arg(value_name = "BUS")]
        bus: String,
    },
    /// Disconnect a node from its bus
    Disconnect {
        #[arg(value_name = "NODE")]
        node: String,
    },
    /// Connect a node to its bus again
    Connect {
        #[arg(value_name = "NODE")]
        node: String,
    },
    /// Let a node send a frame continuously, without a pause
    Babble(BabbleArguments),
}

#[derive(Args)]
struct InjectArguments {
    #[arg(value_name = "BUS")]
    bus: String,
    /// The error to inject
    #[arg(long, value_enum)]
    error: ErrorName,
    /// Probability per frame, 0…1 [default: every frame]
    #[arg(long, value_name = "P", value_parser = probability)]
    probability: Option<u32>,
    /// Stop after this number of errors
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    count: Option<u32>,
    /// With bit and ack: only frames that this node sends; with others: the receiver that detects the error
    #[arg(long, value_name = "NODE")]
    node: Option<String>,
}

#[derive(Args)]
struct BabbleArguments {
    #[arg(value_name = "NODE")]
    node: String,
    /// The frame, in cansend's notation
    #[arg(long, value_name = "FRAME", default_value = "000#")]
    frame: Frame,
    /// Number of frames; until --stop unless given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    count: Option<u32>,
    /// Stop babbling
    #[arg(long, conflicts_with_all = ["frame", "count"])]
    stop: bool,
}

/// Errors that can be injected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ErrorName {
    /// The sender reads back a different bit than it sent
    Bit,
    /// Receivers see six equal bits
    Stuff,
    /// Receivers see a wrong fixed bit
    Form,
    /// Receivers compute another CRC
    Crc,
    /// No receiver acknowledges the frame
    Ack,
}

impl ErrorName {
    fn fault(self) -> Fault {
        match self {
            Self::Bit => Fault::Bit,
            Self::Stuff => Fault::Stuff,
            Self::Form => Fault::Form,
            Self::Crc => Fault::Crc,
            Self::Ack => Fault::Ack,
        }
    }
}

/// Reads a probability, in frames out of 1 000 000 000.
fn probability(text: &str) -> Result<u32, String> {
    let number = match text.strip_suffix('%') {
        Some(percent) => percent.parse::<f64>().map(|percent| percent / 100.0),
        None => text.parse(),
    };
    let number = number.ok().filter(|number| (0.0..=1.0).contains(number));
    number
        .map(|number| (number * 1e9).round() as u32)
        .ok_or_else(|| format!("{text:?} is not a probability (0…1, or 0%…100%)"))
}

pub fn run(arguments: &Arguments) -> failure::Result {
    match &arguments.action {
        Action::Inject(InjectArguments { bus, error, probability, count, node }) => {
            let fault = error.fault();
            let injection = Injection { fault, probability: *probability, count: *count, node: node.clone() };
            wire::inject(bus, &injection)?;
        }
        Action::Clear { bus } => wire::stop_injecting(bus)?,
        Action::Disconnect { node } => wire::connect(node, false)?,
        Action::Connect { node } => wire::connect(node, true)?,
        Action::Babble(BabbleArguments { node, stop: true, .. }) => wire::stop_babbling(node)?,
        Action::Babble(BabbleArguments { node, frame, count, .. }) => wire::babble(node, frame, *count)?,
    }
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probability_is_a_share_or_a_percentage() {
        for (text, expected) in [
            ("0", Some(0)),
            ("1", Some(1_000_000_000)),
            ("0.001", Some(1_000_000)),
            ("2.5%", Some(25_000_000)),
            ("1.1", None),
            ("101%", None),
            ("-0.1", None),
            ("NaN", None),
            ("", None),
        ] {
            assert_eq!(probability(text).ok(), expected, "{text}");
        }
    }
}

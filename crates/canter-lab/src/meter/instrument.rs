//! The seam of instruments, which send frames, take both stamps and report their floor; and the setup of a measurement.
//!
//! | instrument | stamp on the direct bus | on the routed bus | taken off where a frame takes time |
//! | --- | --- | --- | --- |
//! | `sockets` | reception | reception | the frame's time on the routed bus |
//! | `sockets`, `hardware` | the controller's reception | the controller's reception | the frame's time on the routed bus |
//! | `cards` | the command that sends | reception | its time on both buses |
//! | `wires` | delivery to the gateway's node | start of frame | nothing |
//! | `analyzed` | the sender's driver begins to send; on a virtual wire, delivery to the gateway's node | the gateway's driver begins to send | nothing |
//!
//! Without a gateway (`--null`) sockets take nothing off, and cards the time on their one bus: `Experiment::wire` is the rate
//! at which a frame takes what is taken off, of cards the half of their buses'. The formula is `Passage::latency_ns` of
//! `canter-measure/src/matcher.rs`, for all of these, for sockets beside the analyzer (`beside_sockets`), for many wires
//! (`study/throughput/flows.rs`) and for recordings (`canter/src/latency/stamps.rs`); the analyzer alone has its own, the sum
//! of a way's stages (`analyzer/account.rs`). No other place computes a latency. What follows from another meaning of it:
//! - what an instrument takes off (`Experiment::wire`; `Recorded::bitrate` of `canter/src/latency/reading.rs`), its floor, and
//!   what `measurement.rs` takes for an arrival that is too early; this table;
//! - expectations: the tests of `matcher.rs` and `beside_sockets.rs`, `meter/simulation.rs` with its golden table (`UPDATE=1`),
//!   the program's tests `wire`, `analyzer`, `trouble`, `study` and `latency_recorded`;
//! - definitions: `canter-measure/src/result.rs`, `canter/src/latency/profile.rs`, `canter-frame/src/bits.rs`, docs/result.md,
//!   wire.md, analyzer.md, gateway.md, studies.md ("Stamps"), glossary.md and kernel/probe/README.md;
//! - the claims and ceilings of studies on wires, measured anew: results made before are another figure.

use super::experiment::{Experiment, Outcome, Port, Sending, Surroundings};
use canter_cli::{
    duration,
    failure::{self, Failure},
};
use canter_io::{Frame, Interface};
use canter_measure::result::{Condition, Series};
use canter_route::traffic::random::SEED;
use canter_route::traffic::{pattern::Traffic, template::Template};
use clap::Args;
use std::io;

/// The setup of a measurement.
#[derive(Args, Clone, Debug)]
pub struct Setup {
    /// Interface that sends the frames
    #[arg(long, value_name = "INTERFACE")]
    pub send: String,
    /// Interface on the sender's bus that takes the first stamp; unless given, the sender's transmit echo does
    #[arg(long, value_name = "INTERFACE")]
    pub direct: Option<String>,
    /// Interface on the bus behind the gateway that takes the second stamp
    #[arg(long, value_name = "INTERFACE")]
    pub routed: String,
    /// When frames are sent: one-at-a-time, period=120us, load=50%, burst=20/100ms, ramp=100..5000/10s, flood
    #[arg(long, default_value = "one-at-a-time", value_name = "T", value_parser = traffic)]
    pub traffic: Traffic,
    /// Number of frames
    #[arg(long, default_value_t = 1000, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: u64,
    /// One at a time: pause between the arrival of one frame and the next transmission
    #[arg(long, default_value = "1ms", value_name = "TIME", value_parser = duration::parse_ns)]
    pub gap: u64,
    /// One at a time: add up to this random time to the pause, so that frames are in step with nothing else
    #[arg(long, default_value = "0ms", value_name = "TIME", value_parser = duration::parse_ns)]
    pub jitter: u64,
    /// The seed of the random additions
    #[arg(long, default_value_t = SEED, value_name = "N")]
    pub seed: u64,
    #[command(flatten)]
    pub template: Template,
    /// Measure the meter's floor: no gateway, both stamps on one bus
    #[arg(long)]
    pub null: bool,
    /// Whether the routed bus takes time for a frame: auto, yes, no (for a virtual or emulated bus)
    #[arg(long, value_enum, default_value_t = WireTime::Auto)]
    pub wire_time: WireTime,
    /// Also store the latencies in order of time, for the report's time chart
    #[arg(long)]
    pub timeline: bool,
    /// Measure each run time of this card's interrupt handler instead of latencies (--instrument probe)
    #[arg(long, value_name = "CARD")]
    pub handler: Option<String>,
    /// Also stamp each frame by sockets, and measure how far they are from the analyzer (--instrument analyzer)
    #[arg(long, conflicts_with = "timeline")]
    pub beside_sockets: bool,
    /// The process of the gateway, whose code is the gateway's own (--instrument analyzer).
    #[arg(skip)]
    pub gateway: Option<u32>,
    /// What sends and stamps. With wire, --send and --routed are buses or their nodes; with probe, cards or their
    /// interfaces
    #[arg(long, value_enum, default_value_t = InstrumentName::Socket)]
    pub instrument: InstrumentName,
}

impl Setup {
    /// The condition of the measurement; a frame takes `frame_ns` of the sender's bus.
    pub fn condition(&self, frame: &Frame, frame_ns: u64, interfaces: Vec<String>) -> Condition {
        Condition {
            traffic: self.traffic.name(),
            period_ns: self.traffic.period_ns(frame_ns).unwrap_or(0),
            load_percent: if let Traffic::Load(percent) = self.traffic { percent } else { 0 },
            frames: self.count,
            len: u32::from(frame.len),
            load: "none".to_owned(),
            interfaces,
            ..Condition::default()
        }
    }
}

/// What sends and stamps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum InstrumentName {
    /// Frames by a socket, stamps by the kernel: on every interface
    #[default]
    Socket,
    /// Frames by a socket, stamps by the controllers: two channels of one device that stamps, or virtual wires
    Hardware,
    /// Virtual wires (canwire): the kernel's source sends, and the wires stamp
    Wire,
    /// Two SJA1000 cards (canprobe): a timer interrupt sends, the other card's interrupt handler stamps
    Probe,
    /// The lab's analyzer (canter lab --analyzer): outside of the machine, without a floor
    Analyzer,
}

/// Whether a frame takes time on a bus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum WireTime {
    #[default]
    Auto, // on a controller with a bit rate, except the lab's emulated ones
    Yes,
    No,
}

impl WireTime {
    /// Whether it takes time; `auto` says so unless the command does.
    pub(super) fn is_taken(self, auto: impl FnOnce() -> bool) -> bool {
        match self {
            Self::Auto => auto(),
            Self::Yes => true,
            Self::No => false,
        }
    }
}

/// A period that `--sweep` or `--first-loss` sets.
pub const UNSET_PERIOD: Traffic = Traffic::Period(0);

/// `--traffic`: with `--sweep` and `--first-loss`, `period` needs no value.
fn traffic(text: &str) -> Result<Traffic, String> {
    if text == "period" { Ok(UNSET_PERIOD) } else { text.parse() }
}

/// A side without a frame, and what the reason may be.
pub enum Silence {
    /// Nothing was sent or stamped, so that there is no measurement.
    Sender(String),
    /// The gateway lost every frame, which is a result.
    Gateway(String),
}

/// Sends frames and takes both stamps.
pub trait Instrument {
    /// The interfaces that take part.
    fn interfaces(&self) -> Vec<&Interface>;
    /// The experiment, its sender and its condition.
    fn experiment(&self, setup: &Setup, frame: Frame) -> failure::Result<(Experiment, Sending, Condition)>;
    /// The clock and the waiting of the meter.
    fn surroundings(&self, setup: &Setup) -> Box<dyn Surroundings>;
    /// The error for a failed system call; names the side.
    fn failed(&self, port: Port, error: io::Error) -> Failure;
    /// The side on which no frame was seen, if none arrived.
    fn silence(&self, outcome: &Outcome) -> Option<Silence>;
    /// Overruns of the instrument's controllers, which have no interface during the measurement.
    fn overruns(&self) -> failure::Result<u64> {
        Ok(0)
    }
    /// The number of frames that the instrument's bus delivered later than usual.
    fn late(&self) -> u64 {
        0
    }
    /// The reason why the stamps decide nothing.
    fn invalid(&self, _outcome: &Outcome) -> Option<String> {
        None
    }
    /// Adds the instrument's data to a series: its floor, and whether the bus kept its time.
    fn complete(&self, setup: &Setup, series: &mut Series) -> failure::Result<()>;
}

//! What an instrument is: it sends frames, takes both stamps, and says what it adds itself. And what it is asked to do.

use super::experiment::{Experiment, Outcome, Port, Surroundings};
use crate::{
    duration,
    failure::{self, Failure},
    measure::result::{Condition, Series},
    traffic::{pattern::Traffic, template::Template},
};
use canter_io::{Frame, Interface};
use clap::Args;
use std::io;

/// What is measured, and how.
#[derive(Args, Clone, Debug)]
pub struct Setup {
    /// Frames are sent here
    #[arg(long, value_name = "INTERFACE")]
    pub send: String,
    /// On the sender's bus: takes the first stamp. Unless given, the sender's own transmit echo does
    #[arg(long, value_name = "INTERFACE")]
    pub direct: Option<String>,
    /// On the bus behind the gateway: takes the second stamp
    #[arg(long, value_name = "INTERFACE")]
    pub routed: String,
    /// When frames are sent: one-at-a-time, period=120us, load=50%, burst=20/100ms, ramp=100..5000/10s, flood
    #[arg(long, default_value = "one-at-a-time", value_name = "T", value_parser = traffic)]
    pub traffic: Traffic,
    /// How many frames
    #[arg(long, default_value_t = 1000, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: u64,
    /// One at a time: pause between the arrival of a frame and the sending of the next
    #[arg(long, default_value = "1ms", value_name = "TIME", value_parser = duration::parse_ns)]
    pub gap: u64,
    /// One at a time: by chance up to so much more, so that frames do not follow the rhythm of something else
    #[arg(long, default_value = "0ms", value_name = "TIME", value_parser = duration::parse_ns)]
    pub jitter: u64,
    #[command(flatten)]
    pub template: Template,
    /// There is no gateway, both stamps are of one bus: what comes out is the meter's own floor
    #[arg(long)]
    pub null: bool,
    /// Whether a frame takes time on the routed bus: auto, yes, no (a virtual or emulated bus)
    #[arg(long, value_enum, default_value_t = WireTime::Auto)]
    pub wire_time: WireTime,
    /// Keep the latencies in the order of time too, for the report's time chart
    #[arg(long)]
    pub timeline: bool,
    /// Instead of latencies: how long the interrupt handler of this card runs, each time (--instrument probe)
    #[arg(long, value_name = "CARD")]
    pub handler: Option<String>,
    /// What sends and stamps; wire: --send and --routed are buses, or nodes of them; probe: cards, or interfaces of them
    #[arg(long, value_enum, default_value_t = InstrumentName::Socket)]
    pub instrument: InstrumentName,
}

impl Setup {
    /// Under what condition that is, where a frame takes `frame_ns` of the sender's bus.
    pub fn condition(&self, frame: &Frame, frame_ns: u64, interfaces: Vec<String>) -> Condition {
        Condition {
            traffic: self.traffic.name().to_owned(),
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
    /// Virtual wires (canwire): the kernel's own source, and stamps of the wires themselves
    Wire,
    /// Two SJA1000 cards (canprobe): a timer's interrupt sends, the other card's interrupt stamps
    Probe,
}

/// Whether a frame takes time on a bus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum WireTime {
    #[default]
    Auto, // on a controller with a bit rate, but for the lab's emulated ones
    Yes,
    No,
}

/// A period that `--sweep` or `--first-loss` sets.
pub const UNSET_PERIOD: Traffic = Traffic::Period(0);

/// `--traffic`: with `--sweep` and `--first-loss` a period needs no figure.
fn traffic(text: &str) -> Result<Traffic, String> {
    if text == "period" { Ok(UNSET_PERIOD) } else { text.parse() }
}

/// Sends frames and takes both stamps.
pub trait Instrument {
    /// The interfaces that take part.
    fn interfaces(&self) -> Vec<&Interface>;
    /// What is to be done, and under what condition.
    fn experiment(&self, setup: &Setup, frame: Frame) -> failure::Result<(Experiment, Condition)>;
    /// What the meter does while it waits.
    fn surroundings(&self, setup: &Setup) -> Box<dyn Surroundings>;
    /// Names the side whose system call failed.
    fn failed(&self, port: Port, error: io::Error) -> Failure;
    /// Says which side is silent when not a single frame came through.
    fn refuse_hopeless(&self, outcome: &Outcome) -> failure::Result<()>;
    /// Overruns of its own controllers, which belong to no interface meanwhile.
    fn overruns(&self) -> failure::Result<u64> {
        Ok(0)
    }
    /// Adds what the instrument knows of itself: what it adds to each figure, and whether the bus kept its time.
    fn complete(&self, setup: &Setup, series: &mut Series) -> failure::Result<()>;
}

//! `canter latency`: how late a gateway is, by the papers' method. Two stamps of the same frame, one on the bus it is
//! sent on and one on the bus it is routed to; their difference, less the time the frame takes on the second bus.

use super::{
    experiment::{Arrival, Experiment, Outcome, Port, Surroundings},
    matcher::Tally,
    sockets::Interfaces,
    wires::Buses,
};
use crate::{
    failure::{self, Exit, Failure},
    gateway::counts::Counts,
    measure::{
        duration, environment,
        histogram::Histogram,
        result::{Condition, Ledger, Lost, ResultFile, Series},
        timeline::Recorder,
    },
    options::Common,
    report,
    traffic::{pattern::Traffic, template::Template},
    trouble::interrupt_flag,
};
use canter_io::{
    Frame, Interface,
    loss::{Losses, Watch},
};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use std::{io, sync::atomic::Ordering};

/// Measure how late a gateway is
#[derive(Args)]
#[command(after_help = "\
Examples:
  canter latency --send can0 --direct can1 --routed can2       1000 frames, one at a time
  canter latency --send can0 --routed can2 --traffic load=50%  its own echo is the reference
  canter latency --send can0 --routed can2 --traffic period=120us --len 8 --count 10000
  canter latency --send can0 --direct can1 --routed can3 --null  same bus: the meter's floor
  canter latency --instrument wire --send A --routed B         from the end on bus A to the start on bus B
Exit code 0; 3 when frames were lost; 4 when this machine cannot measure it.")]
pub struct Arguments {
    #[command(flatten)]
    pub setup: Setup,
    /// What is between the buses, for the result: a gateway's method
    #[arg(long, default_value = "gateway", value_name = "NAME")]
    name: String,
}

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
    #[arg(long, default_value = "one-at-a-time", value_name = "T")]
    pub traffic: Traffic,
    /// How many frames
    #[arg(long, default_value_t = 1000, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: u64,
    /// One at a time: pause between the arrival of a frame and the sending of the next
    #[arg(long, default_value = "1ms", value_name = "TIME", value_parser = duration::parse_ns)]
    pub gap: u64,
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
    /// What sends and stamps; wire: --send and --routed are buses, or nodes of them
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
}

/// Whether a frame takes time on a bus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum WireTime {
    #[default]
    Auto, // on a controller with a bit rate, but for the lab's emulated ones
    Yes,
    No,
}

pub fn run(arguments: Arguments, common: &Common) -> failure::Result {
    let measured = measure(&arguments.setup, common, &[])?;
    let mut series = measured.series;
    series.method = arguments.name.clone();
    let lost = series.ledger.lost.total();
    let title =
        format!("Latency of {} from {} to {}", arguments.name, arguments.setup.send, arguments.setup.routed);
    let result: ResultFile = environment::result("", &title, &measured.interfaces, vec![series]);
    common.write_result(&result)?;
    if common.shows_table() {
        print!("{}", report::summary(&result));
        if let Some(wire) = &result.series[0].wire {
            println!("{wire}");
        }
    }
    Ok(match (measured.interrupted, lost) {
        (true, _) => Exit::Interrupted,
        (false, 0) => Exit::Done,
        (false, _) => Exit::Lost,
    })
}

/// A finished measurement.
pub struct Measured {
    pub series: Series,
    pub interfaces: Vec<Interface>,
    pub interrupted: bool,
    /// What the ledger was made of, for those who know more of the gateway.
    pub account: Account,
}

/// Everything that counted a loss.
pub struct Account {
    pub tally: Tally,
    /// Lost in the meter's own queues.
    pub queue_drops: u64,
    pub losses: Losses,
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
    /// Adds what the instrument knows of itself: what it adds to each figure, and whether the bus kept its time.
    fn complete(&self, setup: &Setup, series: &mut Series) -> failure::Result<()>;
}

fn instrument(setup: &Setup) -> failure::Result<Box<dyn Instrument>> {
    Ok(match setup.instrument {
        InstrumentName::Socket => Box::new(Interfaces::find(setup)?),
        InstrumentName::Wire => Box::new(Buses::find(setup)?),
    })
}

/// Measures once; losses on the `watched` interfaces are told too.
pub fn measure(setup: &Setup, common: &Common, watched: &[&Interface]) -> failure::Result<Measured> {
    let stop = interrupt_flag()?;
    let instrument = instrument(setup)?;
    let frame = setup.template.frame()?;
    let (experiment, condition) = instrument.experiment(setup, frame)?;
    let watch = Watch::start(&[&instrument.interfaces(), watched].concat())?;
    common.apply()?;
    let bar = progress_bar(common, setup.count);
    let mut histogram = Histogram::new();
    let mut timeline = setup.timeline.then(Recorder::new);
    let mut record = |arrival: Arrival| {
        histogram.record(arrival.latency_ns);
        if let Some(timeline) = &mut timeline {
            timeline.arrived(arrival.number, arrival.passage.direct_ns, arrival.latency_ns);
        }
    };
    let mut progress = |tally: Tally| bar.set_position(tally.received + tally.lost);
    let outcome = experiment
        .run(&mut *instrument.surroundings(setup), &stop, &mut record, &mut progress)
        .map_err(|(port, error)| instrument.failed(port, error))?;
    bar.finish_and_clear();
    if !stop.load(Ordering::Acquire) {
        instrument.refuse_hopeless(&outcome)?;
    }
    let latency = histogram.to_latency();
    let account = Account { tally: outcome.tally, queue_drops: outcome.queue_drops, losses: watch.losses()? };
    let mut series = Series {
        condition,
        latency_ns: Some(latency),
        timeline: timeline.map(|timeline| timeline.finish(outcome.tally.sent)),
        ledger: account.ledger(&Counts::default()),
        ..Series::default()
    };
    instrument.complete(setup, &mut series)?;
    let used = instrument.interfaces().into_iter().cloned().collect();
    Ok(Measured { series, interfaces: used, interrupted: outcome.interrupted, account })
}

impl Account {
    /// Every frame that was sent is received or lost somewhere. Counters are believed up to the number that is
    /// missing; what none of them claims is unaccounted. A controller counts overrun events, each of at least one
    /// frame, so frames lost there may be found under `unaccounted`.
    pub fn ledger(&self, gateway: &Counts) -> Ledger {
        let Self { tally, queue_drops, losses } = self;
        let mut missing = tally.lost;
        let mut claim = |count: u64| {
            let claimed = count.min(missing);
            missing -= claimed;
            claimed
        };
        let lost = Lost {
            socket: claim(queue_drops + gateway.overrun),
            gateway: claim(gateway.dropped),
            controller: claim(losses.controller_events),
            backlog: claim(losses.backlog),
            qdisc: claim(losses.output),
            unaccounted: 0,
        };
        Ledger {
            sent: tally.sent,
            received: tally.received,
            lost: Lost { unaccounted: missing, ..lost },
            duplicated: tally.duplicated,
            reordered: tally.reordered,
        }
    }
}

/// Drawn only on a terminal, at most a few times a second.
fn progress_bar(common: &Common, count: u64) -> ProgressBar {
    if common.quiet {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{pos}/{len} frames {wide_bar} {eta}");
    ProgressBar::new(count).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

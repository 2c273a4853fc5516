//! `canter latency`: how late a gateway is, by the papers' method. Two stamps of the same frame, one on the bus it is
//! sent on and one on the bus it is routed to; their difference, less the time the frame takes on the second bus.

use super::{
    cards::Cards,
    experiment::{Arrival, Experiment, Outcome, Port, Surroundings},
    matcher::Tally,
    sockets::Interfaces,
    sweep::{self, Campaign, Sweep},
    through::Through,
    wires::Buses,
};
use crate::{
    duration,
    failure::{self, Exit, Failure},
    interrupt::interrupt_flag,
    measure::{
        busy::Sampler,
        environment,
        histogram::Histogram,
        result::{Condition, Ledger, Lost, Series, Timeline},
        timeline::Recorder,
    },
    options::Common,
    report,
    rules::counts::Counts,
    traffic::{pattern::Traffic, template::Template},
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
  canter latency --send can0 --routed can2 --traffic load=50%  the sender's echo gives the first stamp
  canter latency --send can0 --routed can2 --traffic period=120us --len 8 --count 10000
  canter latency --send can0 --direct can1 --routed can3 --null  the meter's floor, on one bus
  canter latency --instrument wire --send A --routed B         from the end on bus A to the start on bus B
  canter latency --send can0 --routed can2 --traffic period --sweep 160us..120us
  canter latency --instrument wire --send A --routed B --through wcan3,wcan4 --method all --first-loss
  canter latency --instrument probe --send can0 --routed can2  stamps by the interrupt handlers of two cards
Exit code 0; 3 when frames were lost; 4 when this machine cannot measure it.")]
pub struct Arguments {
    #[command(flatten)]
    pub setup: Setup,
    /// Name of the gateway's method, for the result file
    #[arg(long, default_value = "gateway", value_name = "NAME", conflicts_with = "through")]
    name: String,
    #[command(flatten)]
    through: Through,
    /// Measure once at each of these periods: FROM..TO (in eight steps) or FROM..TO/STEP
    #[arg(long, value_name = "PERIODS", conflicts_with = "first_loss")]
    sweep: Option<Sweep>,
    /// Search for the longest period at which frames are lost, starting at the bus's limit
    #[arg(long)]
    first_loss: bool,
}

/// What is measured, and how.
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
    #[arg(long, default_value = "one-at-a-time", value_name = "T", value_parser = sweep::traffic)]
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
    /// What sends and stamps. With wire, --send and --routed are buses or their nodes; with probe, cards or their interfaces
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
    /// Virtual wires (canwire): the kernel's source sends, and the wires stamp
    Wire,
    /// Two SJA1000 cards (canprobe): a timer interrupt sends, the other card's interrupt handler stamps
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

pub fn run(arguments: Arguments, common: &Common) -> failure::Result {
    let Arguments { setup, name, through, sweep, first_loss } = &arguments;
    let varies = sweep.is_some() || *first_loss;
    sweep::refuse_traffic(setup, varies)?;
    common.apply()?; // a gateway that is started is placed like this process
    let campaign = Campaign { setup, through, name, common };
    let found = match sweep {
        Some(sweep) => campaign.sweep(sweep)?,
        None if *first_loss => campaign.first_loss()?,
        None => campaign.once()?,
    };
    let result = environment::result("", &title(&arguments), &found.interfaces, found.series);
    common.write_result(&result.to_json())?;
    if common.shows_table() {
        let text = if varies { sweep::table(&result.series) } else { report::summary(&result) };
        print!("{text}");
        let wires = result.series.iter().filter_map(|series| series.wire.as_ref());
        wires.filter(|wire| !varies || !wire.kept_time()).for_each(|wire| println!("{wire}"));
        if let [only] = &result.series[..]
            && let (None, Some(floor_ns)) = (&only.wire, only.floor_ns)
            && !setup.null
        {
            println!("the instrument itself adds {:.1} µs of each", floor_ns as f64 / 1000.0);
        }
    }
    let lost = result.series.iter().any(|series| series.ledger.lost.total() > 0);
    Ok(match (found.interrupted, lost && !first_loss) {
        (true, _) => Exit::Interrupted,
        (false, false) => Exit::Done,
        (false, true) => Exit::Lost,
    })
}

fn title(arguments: &Arguments) -> String {
    let Arguments { setup, name, through, first_loss, .. } = arguments;
    let Setup { send, routed, .. } = setup;
    let name = match (&through.through, &through.method[..]) {
        (None, _) => name.clone(),
        (Some(ends), []) => ends.usual_pair(),
        (Some(_), [method]) if method != "all" => method.clone(),
        _ => "every gateway".to_owned(),
    };
    let what = if *first_loss { "Where losses begin" } else { "Latency" };
    format!("{what} of {name} from {send} to {routed}")
}

/// ns that a test frame takes of the sender's bus on average: the shortest period that the bus can keep.
pub fn frame_ns(setup: &Setup) -> failure::Result<u64> {
    let (experiment, _) = instrument(setup)?.experiment(setup, setup.template.frame()?)?;
    Ok(experiment.frame_ns)
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
    /// Overruns of its own controllers, which belong to no interface meanwhile.
    fn overruns(&self) -> failure::Result<u64> {
        Ok(0)
    }
    /// Adds what the instrument knows of itself: what it adds to each figure, and whether the bus kept its time.
    fn complete(&self, setup: &Setup, series: &mut Series) -> failure::Result<()>;
}

fn instrument(setup: &Setup) -> failure::Result<Box<dyn Instrument>> {
    if let Some(card) = setup.handler.as_ref().filter(|_| setup.instrument != InstrumentName::Probe) {
        let why = format!("--handler {card}: needs --instrument probe");
        return Err(Failure::new(Exit::Usage, why));
    }
    Ok(match setup.instrument {
        InstrumentName::Socket => Box::new(Interfaces::find(setup)?),
        InstrumentName::Wire => Box::new(Buses::find(setup)?),
        InstrumentName::Probe => Box::new(Cards::find(setup)?),
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
    let mut busy = setup.timeline.then(Sampler::new);
    busy.iter_mut().for_each(Sampler::look);
    let mut record = |arrival: Arrival| {
        histogram.record(arrival.latency_ns);
        if let Some(timeline) = &mut timeline {
            timeline.arrived(arrival.number, arrival.passage.direct_ns, arrival.latency_ns);
        }
    };
    let mut progress = |tally: Tally| {
        bar.set_position(tally.received + tally.lost);
        // A meter that gets no processor while frames are sent still has the two readings around that time.
        match &mut busy {
            Some(busy) if tally.sent < setup.count => busy.look(),
            Some(busy) => busy.end(),
            None => {}
        }
    };
    let outcome = experiment
        .run(&mut *instrument.surroundings(setup), &stop, &mut record, &mut progress)
        .map_err(|(port, error)| instrument.failed(port, error))?;
    bar.finish_and_clear();
    if !stop.load(Ordering::Acquire) {
        instrument.refuse_hopeless(&outcome)?;
    }
    let latency = histogram.to_latency();
    let mut losses = watch.losses()?;
    losses.controller_events += instrument.overruns()?;
    let account = Account { tally: outcome.tally, queue_drops: outcome.queue_drops, losses };
    let mut series = Series {
        condition,
        latency_ns: Some(latency),
        timeline: timeline.map(|timeline| {
            let load = busy.map_or_else(Vec::new, |busy| busy.finish());
            Timeline { load, ..timeline.finish(outcome.tally.sent) }
        }),
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

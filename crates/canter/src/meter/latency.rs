//! `canter latency`: how late a gateway is, by the papers' method. Two stamps of the same frame, one on the bus it is
//! sent on and one on the bus it is routed to; their difference, less the time the frame takes on the second bus.

use super::{
    experiment::{Arrival, Experiment, Machine, Outcome, Port},
    matcher::Tally,
};
use crate::{
    failure::{self, Exit, Failure},
    gateway::route::Counts,
    measure::{
        duration, environment,
        histogram::Histogram,
        result::{Condition, Ledger, Lost, ResultFile, Series},
    },
    options::Common,
    report,
    traffic::{
        pattern::Traffic,
        template::{self, Template},
    },
    trouble::{explain, interrupt_flag, refuse_down},
};
use canter_io::{
    Frame, Interface,
    frame::BitRate,
    interface::Kind,
    loss::{Losses, Watch},
    method::{Echo, ReceiveMethod, ReceiveOptions, TransmitMethod, TransmitOptions},
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

/// Measures once; losses on the `watched` interfaces are told too.
pub fn measure(setup: &Setup, common: &Common, watched: &[&Interface]) -> failure::Result<Measured> {
    let stop = interrupt_flag()?;
    let interfaces = Interfaces::find(setup)?;
    let frame = setup.template.frame()?;
    let (experiment, condition) = interfaces.experiment(setup, frame)?;
    let watch = Watch::start(&[&interfaces.all(), watched].concat())?;
    common.apply()?;
    let bar = progress_bar(common, setup.count);
    let mut histogram = Histogram::new();
    let mut record = |arrival: Arrival| histogram.record(arrival.latency_ns);
    let mut progress = |tally: Tally| bar.set_position(tally.received + tally.lost);
    let outcome = experiment
        .run(&mut Machine, &stop, &mut record, &mut progress)
        .map_err(|(port, error)| interfaces.failed(port, error))?;
    bar.finish_and_clear();
    if !stop.load(Ordering::Acquire) {
        interfaces.refuse_hopeless(&outcome)?;
    }
    let latency = histogram.to_latency();
    let account = Account { tally: outcome.tally, queue_drops: outcome.queue_drops, losses: watch.losses()? };
    let series = Series {
        condition,
        floor_ns: setup.null.then_some(latency.p50),
        latency_ns: Some(latency),
        ledger: account.ledger(&Counts::default()),
        ..Series::default()
    };
    let used = interfaces.all().into_iter().cloned().collect();
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

/// The interfaces of a measurement.
struct Interfaces {
    send: Interface,
    /// `None`: the sender's echo is the reference.
    direct: Option<Interface>,
    routed: Interface,
}

impl Interfaces {
    fn find(setup: &Setup) -> failure::Result<Self> {
        let find = |name: &str| {
            let interface = Interface::find(name)?;
            refuse_down(&interface)?;
            Ok::<_, Failure>(interface)
        };
        let direct = setup.direct.as_deref().map(find).transpose()?;
        let found = Self { send: find(&setup.send)?, direct, routed: find(&setup.routed)? };
        if !setup.null && [&found.send.name, &found.reference().name].contains(&&found.routed.name) {
            let name = &found.routed.name;
            let way_out = "--null measures the meter's own floor";
            let why = format!("{name}: is on both sides, so no gateway is between ({way_out})");
            return Err(Failure::new(Exit::Usage, why));
        }
        Ok(found)
    }

    fn all(&self) -> Vec<&Interface> {
        [Some(&self.send), self.direct.as_ref(), Some(&self.routed)].into_iter().flatten().collect()
    }

    fn reference(&self) -> &Interface {
        self.direct.as_ref().unwrap_or(&self.send)
    }

    fn experiment(&self, setup: &Setup, frame: Frame) -> failure::Result<(Experiment, Condition)> {
        if frame.is_fd() {
            self.refuse_classic()?;
        }
        // The queue holds all frames that can be on their way.
        let queue_frames = Some(setup.count.clamp(256, 1 << 16) as u32);
        let options = ReceiveOptions { stamps: true, queue_frames, ..ReceiveOptions::default() };
        let receiver: ReceiveMethod = "recvmmsg/spin".parse()?;
        let sender: TransmitMethod = "write".parse()?;
        let echo = if self.direct.is_none() { Echo::On } else { Echo::Auto };
        let wire = wire(setup, &self.routed);
        let frame_ns = template::mean_ns(&frame, setup.count, rates(&self.send));
        let experiment = Experiment {
            send: sender.open(&self.send, &TransmitOptions { echo, no_wait: true })?,
            direct: receiver.open(self.reference(), &options)?,
            routed: receiver.open(&self.routed, &options)?,
            traffic: setup.traffic,
            frame_ns,
            gap_ns: setup.gap,
            frame,
            count: setup.count,
            wire,
        };
        let condition = Condition {
            traffic: setup.traffic.name().to_owned(),
            period_ns: setup.traffic.period_ns(frame_ns).unwrap_or(0),
            load_percent: if let Traffic::Load(percent) = setup.traffic { percent } else { 0 },
            frames: setup.count,
            len: u32::from(frame.len),
            load: "none".to_owned(),
            interfaces: self.all().iter().map(|interface| interface.name.clone()).collect(),
            ..Condition::default()
        };
        Ok((experiment, condition))
    }

    fn refuse_classic(&self) -> failure::Result<()> {
        let classic = self.all().into_iter().find(|interface| !interface.supports_fd());
        classic.map_or(Ok(()), |interface| {
            let name = &interface.name;
            let way_out = format!("ip link set {name} mtu 72, or type can … fd on");
            Err(Failure::unable(format!("{name}: cannot carry FD frames ({way_out})")))
        })
    }

    fn failed(&self, port: Port, error: io::Error) -> Failure {
        let (interface, step) = match port {
            Port::Send => (&self.send, "send"),
            Port::Direct => (self.reference(), "receive"),
            Port::Routed => (&self.routed, "receive"),
        };
        explain(&interface.name, step, error).into()
    }

    /// Says which side is silent when not a single frame came through.
    fn refuse_hopeless(&self, outcome: &Outcome) -> failure::Result<()> {
        let tally = &outcome.tally;
        if tally.received > 0 || tally.lost == 0 {
            return Ok(());
        }
        let (routed, reference) = (&self.routed.name, &self.reference().name);
        let why = if tally.lost_after_direct == 0 && self.direct.is_some() {
            format!("{reference}: nothing arrives (is it on the bus of {}?)", self.send.name)
        } else {
            format!("{routed}: nothing arrives (is a gateway running between {reference} and {routed}?)")
        };
        Err(Failure::new(Exit::Lost, format!("{why}; {} frames sent, none received", tally.sent)))
    }
}

/// The rates of the routed bus where a frame takes time on it.
fn wire(setup: &Setup, routed: &Interface) -> Option<BitRate> {
    let takes_time = match setup.wire_time {
        WireTime::Yes => true,
        WireTime::No => false,
        WireTime::Auto => routed.kind == Kind::Can && !emulated_without_time(routed),
    };
    (takes_time && !setup.null).then(|| rates(routed))
}

/// QEMU's cards hand a frame over the moment it is sent.
fn emulated_without_time(interface: &Interface) -> bool {
    environment::in_lab() && matches!(interface.driver.as_deref(), Some("kvaser_pci" | "ctucanfd"))
}

/// The bit rates of an interface; where it has none, 1 Mbit/s, so that a load still means something.
fn rates(interface: &Interface) -> BitRate {
    let nominal = interface.bitrate().unwrap_or(1_000_000);
    BitRate { nominal, data: interface.data_bitrate().unwrap_or(nominal) }
}

/// Drawn only on a terminal, at most a few times a second.
fn progress_bar(common: &Common, count: u64) -> ProgressBar {
    if common.quiet {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{pos}/{len} frames {wide_bar} {eta}");
    ProgressBar::new(count).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

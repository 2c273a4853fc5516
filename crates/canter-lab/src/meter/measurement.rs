//! A measurement: opens the instrument, runs the experiment, and accounts for every frame.

use super::{
    analyzed::Analyzed,
    cards::Cards,
    experiment::Arrival,
    instrument::{Instrument, InstrumentName, Setup, Silence},
    sockets::Interfaces,
    wires::Buses,
};
use canter_cli::{
    failure::{self, Exit, Failure},
    options::Common,
};
use canter_io::{
    Interface,
    loss::{Losses, Watch},
};
use canter_measure::{
    busy::Sampler,
    histogram::Histogram,
    matcher::Tally,
    result::{Ledger, Lost, Series, Timeline},
    timeline::TimelineRecorder,
};
use canter_route::{rules::counts::Counts, traffic::pattern::Traffic};
use indicatif::{ProgressBar, ProgressStyle};
use std::sync::atomic::{AtomicBool, Ordering};

/// A finished measurement.
pub struct Measured {
    pub series: Series,
    pub interfaces: Vec<Interface>,
    pub interrupted: bool,
    /// The counts behind the ledger, for callers with the gateway's counts.
    pub account: Account,
    /// The possible reason why nothing came through the gateway; `None`: something did.
    pub silent: Option<String>,
}

impl Measured {
    /// Fails when nothing came through: there may be no gateway at all.
    pub fn refuse_silence(self) -> failure::Result<Self> {
        match self.silent {
            Some(why) => Err(Failure::new(Exit::Lost, why)),
            None => Ok(self),
        }
    }
}

/// All loss counters.
pub struct Account {
    pub tally: Tally,
    /// Frames lost in the meter's own queues.
    pub meter_drops: u64,
    /// Frames of the instrument's traffic that were late.
    pub late: u64,
    pub losses: Losses,
}

fn instrument(setup: &Setup) -> failure::Result<Box<dyn Instrument>> {
    if let Some(card) = setup.handler.as_ref().filter(|_| setup.instrument != InstrumentName::Probe) {
        let why = format!("--handler {card}: needs --instrument probe");
        return Err(Failure::new(Exit::Usage, why));
    }
    if setup.beside_sockets && setup.instrument != InstrumentName::Analyzer {
        return Err(Failure::new(Exit::Usage, "--beside-sockets: needs --instrument analyzer"));
    }
    Ok(match setup.instrument {
        InstrumentName::Socket | InstrumentName::Hardware => Box::new(Interfaces::find(setup)?),
        InstrumentName::Wire => Box::new(Buses::find(setup)?),
        InstrumentName::Probe => Box::new(Cards::find(setup)?),
        InstrumentName::Analyzer => Box::new(Analyzed::find(setup)?),
    })
}

/// The average duration of a test frame on the sender's bus, in ns: the shortest possible period.
pub fn frame_ns(setup: &Setup) -> failure::Result<u64> {
    let (experiment, ..) = instrument(setup)?.experiment(setup, setup.template.frame()?)?;
    Ok(experiment.frame_ns)
}

/// Measures once, unless `stop` is set; the ledger includes losses on the `watched` interfaces.
pub fn measure(
    setup: &Setup,
    common: &Common,
    watched: &[&Interface],
    stop: &AtomicBool,
) -> failure::Result<Measured> {
    let instrument = instrument(setup)?;
    let frame = setup.template.frame()?;
    let (experiment, sending, condition) = instrument.experiment(setup, frame)?;
    let watch = Watch::start(&[&instrument.interfaces(), watched].concat())?;
    common.apply()?;
    let bar = progress_bar(common, setup.count);
    let mut histogram = Histogram::new();
    let mut timeline = setup.timeline.then(TimelineRecorder::default);
    let mut busy = setup.timeline.then(Sampler::default);
    busy.iter_mut().for_each(Sampler::read_when_due);
    let mut early = 0;
    let mut record = |arrival: Arrival| {
        histogram.record(arrival.latency_ns);
        early += u64::from(arrival.latency_ns < 0);
        if let Some(timeline) = &mut timeline {
            timeline.arrived(arrival.number, arrival.passage.direct_ns, arrival.latency_ns);
        }
    };
    let mut progress = |tally: Tally| {
        bar.set_position(tally.received + tally.lost);
        // A meter that gets no processor time during the measurement still has these two readings.
        match &mut busy {
            Some(busy) if tally.sent < setup.count => busy.read_when_due(),
            Some(busy) => busy.end(),
            None => {}
        }
    };
    let outcome = experiment
        .run(sending, &mut *instrument.surroundings(setup), stop, &mut record, &mut progress)
        .map_err(|(port, error)| instrument.failed(port, error))?;
    bar.finish_and_clear();
    if !setup.null && early > outcome.tally.received / 2 {
        return Err(Failure::unable(format!(
            "{}: has the frames before a gateway could have sent them (is it on the bus of {}? --null measures the meter's own floor)",
            setup.routed,
            setup.direct.as_ref().unwrap_or(&setup.send)
        )));
    }
    let silence = if stop.load(Ordering::Acquire) { None } else { instrument.silence(&outcome) };
    let silent = match silence {
        Some(Silence::Sender(why)) => return Err(Failure::new(Exit::Lost, why)),
        Some(Silence::Gateway(why)) => Some(why),
        None => None,
    };
    let latency = histogram.to_latency();
    let mut losses = watch.losses()?;
    losses.controller_events += instrument.overruns()?;
    // One at a time, a frame waits for the one before: it has no time at which it is due.
    let on_the_bus = if setup.traffic == Traffic::OneAtATime { 0 } else { instrument.late() };
    let late = outcome.late + on_the_bus;
    let account = Account { tally: outcome.tally, meter_drops: outcome.queue_drops, late, losses };
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
    if let Some(why) = instrument.invalid(&outcome) {
        series.latency_ns = None;
        series.timeline = None;
        series.unavailable = why;
    }
    let used = instrument.interfaces().into_iter().cloned().collect();
    Ok(Measured { series, interfaces: used, interrupted: outcome.interrupted, account, silent })
}

impl Account {
    /// Accounts for every sent frame as received or lost. Loss counters count up to the number of missing frames; the
    /// rest is unaccounted. A controller counts overrun events, each of at least one frame, so `unaccounted` may
    /// contain frames that a controller lost.
    pub fn ledger(&self, gateway: &Counts) -> Ledger {
        let Self { tally, meter_drops, late, losses } = self;
        let mut missing = tally.lost;
        let mut claim = |count: u64| {
            let claimed = count.min(missing);
            missing -= claimed;
            claimed
        };
        let lost = Lost {
            meter: claim(*meter_drops),
            socket: claim(gateway.overrun),
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
            late: *late,
        }
    }
}

/// A progress bar, drawn only on a terminal, at most a few times a second.
fn progress_bar(common: &Common, count: u64) -> ProgressBar {
    if common.quiet {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{pos}/{len} frames {wide_bar} {eta}");
    ProgressBar::new(count).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

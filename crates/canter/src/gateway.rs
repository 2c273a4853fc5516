//! The gateway: frames from one interface to another, by any pair of methods or in the kernel.

mod kernel;
pub mod route;

use crate::{
    failure::{self, Exit, Failure},
    options::Common,
    trouble::{explain, refuse_down},
};
use canter_io::{
    Error, Filters, Interface,
    batch::BATCH_FRAMES,
    method::{PAPER_PAIRS, Pair, ReceiveOptions, TransmitOptions, Wait},
    sys::thread::Worker,
};
use clap::Args;
use route::{Counts, Route, Side};
use serde::{Deserialize, Serialize};
use signal_hook::{
    consts::{SIGINT, SIGTERM},
    iterator::Signals,
};
use std::{fmt, str::FromStr};

/// Route frames from one interface to another, until stopped
#[derive(Args)]
#[command(after_help = "\
Examples:
  canter gateway can3 can4                           a read and a write for each frame
  canter gateway can3 can4 --method ring/spin+write  lowest latency, one processor busy
  canter gateway can3 can4 --method can-gw           in the kernel itself
  canter gateway can0 can1 --filter 123:7FF,400:700  only these identifiers
Methods: `canter methods`. The 2014 paper's names (mmapbusy-write, …) are understood too.
SIGINT and SIGTERM end it; exit code 0, or 3 when frames were lost.")]
pub struct Arguments {
    /// Frames come from this interface
    #[arg(value_name = "IN")]
    from: String,
    /// Frames go to this interface
    #[arg(value_name = "OUT")]
    to: String,
    /// RECEIVER+TRANSMITTER, or can-gw
    #[arg(long, short, default_value = "read+write", value_name = "PAIR")]
    method: Method,
    /// Which frames: ID:MASK, ID~MASK (all but), comma-separated; all unless given
    #[arg(long, short, value_name = "FILTERS")]
    filter: Option<Filters>,
    /// Frames a batch, at most
    #[arg(long, default_value_t = BATCH_FRAMES, value_name = "FRAMES", value_parser = batch_frames)]
    batch: usize,
    /// Frames that the receive queue holds; the system's own size unless given
    #[arg(long, value_name = "FRAMES")]
    queue: Option<u32>,
}

fn batch_frames(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(frames @ 1..=1024) => Ok(frames),
        _ => Err("1…1024 frames".to_owned()),
    }
}

/// How a gateway works.
#[derive(Clone, Copy)]
pub enum Method {
    /// In user space, by a pair of methods.
    Pair(Pair),
    /// By the kernel's own gateway.
    CanGw,
}

/// What the 2014 paper calls a method, whether this program has it or not; empty when it has no name there.
pub fn paper_name(method: &str) -> &'static str {
    const OTHERS: [(&str, &str); 3] =
        [("kernel", "can-gw"), ("readbusynoirq-write", "canchar/chip-poll+canchar"), ("rtems", "bare-metal")];
    let known = PAPER_PAIRS.iter().chain(&OTHERS).find(|(_, ours)| *ours == method);
    known.map_or("", |(paper, _)| paper)
}

impl FromStr for Method {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if matches!(text, "can-gw" | "kernel") { Ok(Self::CanGw) } else { text.parse().map(Self::Pair) }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pair(pair) => pair.fmt(f),
            Self::CanGw => f.write_str("can-gw"),
        }
    }
}

/// What a gateway leaves behind, as `--json` writes it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Account {
    pub from: String,
    pub to: String,
    pub method: String,
    pub counts: Counts,
    /// Why it ended by itself; empty when it was told to.
    pub failure: String,
}

pub fn run(arguments: Arguments, common: &Common) -> failure::Result {
    let from = Interface::find(&arguments.from)?;
    let to = Interface::find(&arguments.to)?;
    for interface in [&from, &to] {
        refuse_down(interface)?;
    }
    common.apply()?;
    let (counts, ended) = match arguments.method {
        Method::Pair(pair) => in_user_space(&arguments, pair, &from, &to, common)?,
        Method::CanGw => kernel::run(&arguments, &from, &to, common)?,
    };
    finish(&arguments, counts, ended, common)
}

type Ended = Result<(), String>;

fn in_user_space(
    arguments: &Arguments,
    pair: Pair,
    from: &Interface,
    to: &Interface,
    common: &Common,
) -> failure::Result<(Counts, Ended)> {
    pair.receive.check(from)?;
    pair.transmit.check(to)?;
    let filters = arguments.filter.clone().unwrap_or_default();
    let options = ReceiveOptions { filters, queue_frames: arguments.queue, ..ReceiveOptions::default() };
    let receive = pair.receive.open(from, &options)?;
    let transmit = pair.transmit.open(to, &TransmitOptions::default())?;
    let mut route = Route::new(receive, transmit, arguments.batch, pair.receive.wait == Wait::Spin);

    let mut signals = signals()?;
    let ended = signals.handle();
    let worker = Worker::start("gateway", move |stop| {
        let outcome = route.run(stop);
        ended.close();
        (route.counts, outcome)
    });
    let worker = worker.map_err(|error| Failure::failed(format!("gateway: start: {error}")))?;
    announce(arguments, common);
    signals.forever().next(); // a signal, or the worker has ended
    let (counts, outcome) = worker.stop();
    let outcome = outcome.map_err(|(side, error)| match side {
        Side::In => explain(&from.name, "receive", error).to_string(),
        Side::Out => explain(&to.name, "send", error).to_string(),
    });
    Ok((counts, outcome))
}

fn signals() -> failure::Result<Signals> {
    Signals::new([SIGINT, SIGTERM]).map_err(|error| Failure::failed(format!("gateway: signals: {error}")))
}

/// Others wait for this line, so it comes when frames are routed and not before.
fn announce(arguments: &Arguments, common: &Common) {
    let Arguments { from, to, method, .. } = arguments;
    if !common.quiet {
        eprintln!("gateway: {from} → {to} by {method}; Ctrl-C ends it");
    }
}

fn finish(arguments: &Arguments, counts: Counts, ended: Ended, common: &Common) -> failure::Result {
    let failure = ended.err().unwrap_or_default();
    let account = Account {
        from: arguments.from.clone(),
        to: arguments.to.clone(),
        method: arguments.method.to_string(),
        counts,
        failure: failure.clone(),
    };
    common.write_json(&account)?;
    if !common.quiet {
        eprintln!("gateway: {counts}");
    }
    if !failure.is_empty() {
        return Err(Failure::failed(failure));
    }
    Ok(if counts.dropped + counts.overrun > 0 { Exit::Lost } else { Exit::Done })
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { received, transmitted, filtered, dropped, overrun } = self;
        write!(
            f,
            "{received} received = {transmitted} transmitted + {filtered} filtered + {dropped} dropped"
        )?;
        write!(f, "; {overrun} lost before the gateway could read them")
    }
}

//! The type of a gateway's row in `table.rs`. To add a gateway: a file with its row, and the row's name in the table.

use super::{
    account::RouteAccount,
    backlog::WhenFull,
    plan::{Direction, Ends},
};
use crate::rules::{Policy, jobs::Inexpressible};
use canter_cli::{
    failure::{self, Failure},
    options::{Common, parse_filters},
    supervisor::Supervisor,
};
use canter_io::{
    Filters, Interface,
    batch::BATCH_FRAMES,
    method::{Capabilities, Pair},
};
use clap::Args;
use std::fmt;

/// A row of the table.
#[derive(Clone, Copy)]
pub struct Kind {
    /// The gateway's name for `--method`.
    pub name: &'static str,
    /// The gateway's name in the 2014 paper; empty when the paper has none.
    pub paper_name: &'static str,
    /// One line for `canter methods`.
    pub about: &'static str,
    /// The description of its example in `canter gateway --help`.
    pub example: &'static str,
    /// Whether its names are those of pairs of methods, RECEIVER+TRANSMITTER.
    pub pairs: bool,
    pub place: Place,
    pub capabilities: Capabilities,
    /// Whether it routes between canchar devices, for studies that choose the driver of the cards by method.
    pub devices: bool,
    /// Whether `canter rules apply` installs its routes too, which then work without a process.
    pub rules_apply: bool,
    /// Whether it can wait for interfaces that do not exist or are down.
    pub waits_for_interfaces: bool,
    /// Whether rules may have several hops, or the gateway itself refuses such rules.
    pub takes_hops: bool,
    /// The capability (capabilities(7)) that it needs besides CAP_NET_RAW and CAP_NET_ADMIN.
    pub right: Option<&'static str>,
    /// Why this machine cannot run it.
    pub check: fn() -> failure::Result<()>,
    /// Why it cannot route between two interfaces.
    pub check_between: fn(&Interface, &Interface) -> failure::Result<()>,
    /// Requests that it cannot fulfil; the first that applies is reported.
    pub refuses: &'static [Refusal],
    /// Routes until stopped, or until it fails.
    pub run: fn(&Request<'_>) -> failure::Result<Outcome>,
}

/// Where a gateway works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    UserSpace,
    Kernel,
    /// On a processor without an operating system. It owns the cards: their interfaces do not exist meanwhile.
    BareMetal,
}

impl Kind {
    /// Whether its interfaces exist while it works.
    pub fn keeps_interfaces(&self) -> bool {
        self.place != Place::BareMetal
    }

    /// Refuses a request that it cannot fulfil.
    pub fn refuse(&self, request: &Request<'_>) -> failure::Result<()> {
        match self.refuses.iter().find(|refusal| (refusal.when)(request)) {
            Some(refusal) => Err(self.unable(refusal.reason)),
            None => Ok(()),
        }
    }

    /// The rules of a direction that it cannot express.
    pub fn inexpressible(&self, direction: &Direction, policy: &Policy, faults: &[Inexpressible]) -> Failure {
        let line = |fault: &Inexpressible| {
            format!("{}: {}: {}", direction.label(), policy.rules[fault.rule].label(fault.rule), fault.reason)
        };
        let lines: Vec<_> = faults.iter().map(line).collect();
        self.unable(lines.join("; "))
    }

    pub fn unable(&self, reason: impl fmt::Display) -> Failure {
        Failure::unable(format!("{}: {reason}", self.name))
    }
}

/// A request that a kind of gateway cannot fulfil, and why.
pub struct Refusal {
    pub when: fn(&Request<'_>) -> bool,
    /// One sentence, with the way out in parentheses.
    pub reason: &'static str,
}

/// A kind of gateway and, for pairs, the pair.
#[derive(Clone, Copy)]
pub struct Method {
    pub kind: &'static Kind,
    /// `None` for pairs: the default pair of the interfaces.
    pub pair: Option<Pair>,
}

impl Method {
    /// This method, with the default pair of the direction's interfaces where no pair was requested.
    pub fn between(self, direction: &Direction) -> failure::Result<Self> {
        let is_open = self.kind.pairs && self.pair.is_none();
        Ok(if is_open { Self { pair: Some(direction.usual_pair()?), ..self } } else { self })
    }

    /// The capabilities that it needs besides CAP_NET_RAW and CAP_NET_ADMIN; without a pair, none of a pair's.
    pub fn rights(&self) -> impl Iterator<Item = &'static str> {
        let pair_rights = self.pair.map(|pair| [pair.receive.row.right, pair.transmit.row.right]);
        [self.kind.right].into_iter().chain(pair_rights.into_iter().flatten()).flatten()
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.pair {
            Some(pair) => pair.fmt(f),
            None => f.write_str(self.kind.name),
        }
    }
}

/// Settings of the command line.
#[derive(Args, Clone, Debug)]
pub struct Settings {
    /// Frames to route: 123, 12345678, ID:MASK, or ID~MASK (all except these), comma-separated; all unless given
    #[arg(long, short, value_name = "FILTERS", value_parser = parse_filters)]
    pub filter: Option<Filters>,
    /// Maximum number of frames per batch
    #[arg(long, default_value_t = BATCH_FRAMES, value_name = "FRAMES", value_parser = batch_frames)]
    pub batch: usize,
    /// Size of the receive queue in frames; the system's default unless given
    #[arg(long, value_name = "FRAMES")]
    pub queue: Option<u32>,
    /// Policy while the output is full
    #[arg(long, value_enum, default_value_t, value_name = "POLICY")]
    pub when_full: WhenFull,
    /// Send waiting frames by priority, and drop the least urgent first
    #[arg(long)]
    pub priority: bool,
    /// Size of the backlog in frames, for drop-new and drop-old
    #[arg(long, default_value_t = 256, value_name = "FRAMES", value_parser = backlog_frames)]
    pub backlog: usize,
    /// The longest wait of a frame in the backlog, for drop-new and drop-old; then it is dropped
    #[arg(long, default_value = "1s", value_name = "DURATION", value_parser = canter_cli::duration::parse_ns)]
    pub backlog_age: u64,
    /// Print the counts at this interval
    #[arg(long, value_name = "DURATION", value_parser = interval)]
    pub stats: Option<u64>,
    /// Run all routes in one thread, which holds up none for another; a thread for each unless given
    #[arg(long, conflicts_with = "wait_for_interface")]
    pub one_thread: bool,
    /// Wait for interfaces that do not exist or are down, instead of ending
    #[arg(long)]
    pub wait_for_interface: bool,
}

fn backlog_frames(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(frames @ 1..=1_000_000) => Ok(frames),
        _ => Err("must be 1…1000000 frames".to_owned()),
    }
}

/// A duration of at least 10 ms, in ns.
fn interval(text: &str) -> Result<u64, String> {
    canter_cli::duration::parse_ns(text)
        .and_then(|ns| if ns < 10_000_000 { Err("must be at least 10ms".into()) } else { Ok(ns) })
}

fn batch_frames(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(frames @ 1..=1024) => Ok(frames),
        _ => Err("must be 1…1024 frames".to_owned()),
    }
}

/// The request of a command line.
pub struct Request<'a> {
    pub method: Method,
    /// The arguments of the command line, to read the rule file again.
    pub ends: &'a Ends,
    pub directions: &'a [Direction],
    pub settings: &'a Settings,
    pub common: &'a Common,
}

impl Request<'_> {
    /// The filters of the command line; none: every frame.
    pub fn filters(&self) -> Filters {
        self.settings.filter.clone().unwrap_or_default()
    }

    /// The requested method, or the default pairs of the interfaces.
    pub fn method_name(&self) -> String {
        if self.method.pair.is_some() || !self.method.kind.pairs {
            return self.method.to_string();
        }
        let usual = |one: &Direction| Some(one.usual_pair().ok()?.to_string());
        let mut names: Vec<_> = self.directions.iter().filter_map(usual).collect();
        names.dedup();
        names.join(", ")
    }

    /// Reports that frames are routed from now on. Scripts wait for this line.
    pub fn announce(&self) {
        let routes: Vec<_> = self.directions.iter().map(Direction::label).collect();
        let routes = format!("{} by {}", routes.join(", "), self.method_name());
        if !self.common.quiet {
            eprintln!("gateway: {routes}; Ctrl-C ends it");
        }
        Supervisor::find().notify_ready(&routes);
    }
}

/// The error that ended a gateway, if any.
pub type Ended = Result<(), String>;

/// The result of a gateway.
pub struct Outcome {
    pub routes: Vec<RouteAccount>,
    pub ended: Ended,
}

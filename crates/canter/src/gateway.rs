//! The gateway: frames from one interface to another, by any pair of methods or in the kernel, as rules say.

mod backlog;
pub mod bare_metal;
mod bpf;
pub mod child;
mod control;
pub mod counts;
mod kernel;
mod plan;
pub mod route;
pub mod rules;
mod user;
mod watch;

use crate::{
    duration,
    failure::{self, Exit, Failure},
    options::Common,
    service::supervisor::Supervisor,
    trouble::refuse_down,
};
use backlog::WhenFull;
use canter_io::{
    Error, Filters, Interface,
    batch::BATCH_FRAMES,
    method::{PAPER_PAIRS, Pair},
};
use clap::Args;
use counts::Counts;
use plan::Direction;
use rules::engine::RuleCounts;
use serde::{Deserialize, Serialize};
use std::{fmt, path::PathBuf, str::FromStr};

/// Route frames from one interface to another, until stopped
#[derive(Args)]
#[command(after_help = "\
Examples:
  canter gateway can3 can4                           a read and a write for each frame
  canter gateway can3 can4 --method ring/spin+write  lowest latency, one processor busy
  canter gateway can3 can4 --method can-gw           in the kernel itself
  canter gateway can3 can4 --method bpf              in the kernel, by a program of canter's
  canter gateway can3 can4 --method bare-metal       without an operating system, on a processor of its own
  canter gateway can0 /dev/canchar2 --both           an interface and a character device
  canter gateway can0 can1 --filter 123:7FF,400:700  only these identifiers
  canter gateway can0 can1 --both                    two directions, which do not echo
  canter gateway can0 can1 --rules rules.toml        as the file says (docs/rules.md)
  canter gateway --rules routes.toml --stats 1s      all routes of the file, and counts every second
  canter gateway can0 can1 --when-full drop-old --priority --backlog 64
Methods: `canter methods`. The 2014 paper's names (mmapbusy-write, …) are understood too.
SIGHUP reads the rule file again. SIGINT and SIGTERM end it, after what has come is sent; exit code 0, or 3 when
frames were lost.")]
pub struct Arguments {
    /// Frames come from this interface
    #[arg(value_name = "IN", required_unless_present = "rules", requires = "to")]
    from: Option<String>,
    /// Frames go to this interface
    #[arg(value_name = "OUT")]
    to: Option<String>,
    /// Rules and routes: which frames, and what is changed in them
    #[arg(long, short, value_name = "FILE")]
    rules: Option<PathBuf>,
    /// Also the other way round
    #[arg(long, requires = "from")]
    both: bool,
    /// RECEIVER+TRANSMITTER, can-gw, bpf, or bare-metal; read+write, or what the interfaces have instead
    #[arg(long, short, value_name = "PAIR")]
    method: Option<Method>,
    /// Which frames: ID:MASK, ID~MASK (all but), comma-separated; all unless given
    #[arg(long, short, value_name = "FILTERS")]
    filter: Option<Filters>,
    /// Frames a batch, at most
    #[arg(long, default_value_t = BATCH_FRAMES, value_name = "FRAMES", value_parser = batch_frames)]
    batch: usize,
    /// Frames that the receive queue holds; the system's own size unless given
    #[arg(long, value_name = "FRAMES")]
    queue: Option<u32>,
    /// What happens while the output has no room
    #[arg(long, value_enum, default_value_t, value_name = "POLICY")]
    when_full: WhenFull,
    /// Frames that wait for room leave by priority, and the least urgent gives way
    #[arg(long)]
    priority: bool,
    /// Frames that may wait for room, with drop-new and drop-old
    #[arg(long, default_value_t = 256, value_name = "FRAMES", value_parser = backlog_frames)]
    backlog: usize,
    /// Print the counts so often
    #[arg(long, value_name = "DURATION", value_parser = interval)]
    stats: Option<u64>,
    /// Wait for interfaces that are not there, down or gone, instead of ending
    #[arg(long)]
    wait_for_interface: bool,
}

fn backlog_frames(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(frames @ 1..=1_000_000) => Ok(frames),
        _ => Err("1…1000000 frames".to_owned()),
    }
}

/// A duration of at least 10 ms, in ns.
fn interval(text: &str) -> Result<u64, String> {
    duration::parse_ns(text).and_then(|ns| if ns < 10_000_000 { Err("at least 10ms".into()) } else { Ok(ns) })
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
    /// By a program in the kernel.
    Bpf,
    /// On a processor without an operating system. The interfaces are not there meanwhile.
    BareMetal,
}

impl Method {
    /// Whether its interfaces are there while it works.
    pub fn keeps_interfaces(&self) -> bool {
        !matches!(self, Self::BareMetal)
    }
}

/// What the 2014 paper calls a method; empty when it has no name there.
pub fn paper_name(method: &str) -> &'static str {
    const OTHERS: [(&str, &str); 2] = [("kernel", "can-gw"), ("rtems", "bare-metal")];
    let known = PAPER_PAIRS.iter().chain(&OTHERS).find(|(_, ours)| *ours == method);
    known.map_or("", |(paper, _)| paper)
}

impl FromStr for Method {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "can-gw" | "kernel" => Ok(Self::CanGw),
            "bpf" => Ok(Self::Bpf),
            "bare-metal" | "rtems" => Ok(Self::BareMetal),
            pair => pair.parse().map(Self::Pair),
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pair(pair) => pair.fmt(f),
            Self::CanGw => f.write_str("can-gw"),
            Self::Bpf => f.write_str("bpf"),
            Self::BareMetal => f.write_str("bare-metal"),
        }
    }
}

/// What a gateway leaves behind, as `--json` writes it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Account {
    pub from: String,
    pub to: String,
    pub method: String,
    /// Of all routes together.
    pub counts: Counts,
    /// Why it ended by itself; empty when it was told to.
    pub failure: String,
    #[serde(default)]
    pub routes: Vec<RouteAccount>,
}

/// What one direction did.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RouteAccount {
    pub from: String,
    pub to: String,
    pub counts: Counts,
    pub rules: Vec<RuleAccount>,
}

/// What a rule did.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RuleAccount {
    pub name: String,
    #[serde(flatten)]
    pub counts: RuleCounts,
}

type Ended = Result<(), String>;

pub fn run(arguments: Arguments, common: &Common) -> failure::Result {
    if arguments.priority && arguments.when_full == WhenFull::Wait {
        return Err(Failure::new(
            Exit::Usage,
            "--priority: nothing waits (--when-full drop-new or drop-old)",
        ));
    }
    let directions = plan::directions(&arguments)?;
    let in_user_space = matches!(arguments.method, None | Some(Method::Pair(_)));
    if !arguments.wait_for_interface || !in_user_space {
        for name in directions.iter().flat_map(|direction| [&direction.from, &direction.to]) {
            refuse_down(&Interface::find(name)?)?;
        }
    }
    common.apply()?;
    let (routes, ended) = match arguments.method {
        None => user::run(&arguments, None, &directions, common)?,
        Some(Method::Pair(pair)) => user::run(&arguments, Some(pair), &directions, common)?,
        Some(Method::CanGw) => kernel::run(&arguments, &directions, common)?,
        Some(Method::Bpf) => bpf::run(&arguments, &directions, common)?,
        Some(Method::BareMetal) => bare_metal::run(&arguments, &directions, common)?,
    };
    finish(&arguments, &directions, routes, ended, common)
}

/// The method that was asked for, or those that the interfaces have.
fn method_name(arguments: &Arguments, directions: &[Direction]) -> String {
    if let Some(method) = arguments.method {
        return method.to_string();
    }
    let mut names: Vec<_> =
        directions.iter().filter_map(|one| Some(one.usual_pair().ok()?.to_string())).collect();
    names.dedup();
    names.join(", ")
}

/// Others wait for this line, so it comes when frames are routed and not before.
fn announce(arguments: &Arguments, directions: &[Direction], common: &Common) {
    let routes: Vec<_> = directions.iter().map(Direction::label).collect();
    let routes = format!("{} by {}", routes.join(", "), method_name(arguments, directions));
    if !common.quiet {
        eprintln!("gateway: {routes}; Ctrl-C ends it");
    }
    Supervisor::find().ready(&routes);
}

fn finish(
    arguments: &Arguments,
    directions: &[Direction],
    routes: Vec<RouteAccount>,
    ended: Ended,
    common: &Common,
) -> failure::Result {
    let failure = ended.err().unwrap_or_default();
    let counts = routes.iter().fold(Counts::default(), |sum, route| sum.and(&route.counts));
    let account = Account {
        from: directions[0].from.clone(),
        to: directions[0].to.clone(),
        method: method_name(arguments, directions),
        counts,
        failure: failure.clone(),
        routes,
    };
    common.write_json(&account)?;
    if !common.quiet {
        print(&account);
    }
    if !failure.is_empty() {
        return Err(Failure::failed(failure));
    }
    Ok(if counts.drops.sum() - counts.drops.over_limit + counts.overrun > 0 {
        Exit::Lost
    } else {
        Exit::Done
    })
}

fn print(account: &Account) {
    let several = account.routes.len() > 1;
    for route in &account.routes {
        if several {
            eprintln!("gateway: {} → {}: {}", route.from, route.to, route.counts);
        }
        let width = route.rules.iter().map(|rule| rule.name.chars().count()).max().unwrap_or(0);
        for RuleAccount { name, counts } in &route.rules {
            let RuleCounts { matched, forwarded, changed } = counts;
            eprintln!(
                "gateway:   {name:width$}  {matched} matched, {forwarded} forwarded, {changed} changed"
            );
        }
    }
    eprintln!("gateway: {}", account.counts);
}

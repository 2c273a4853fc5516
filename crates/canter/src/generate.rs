//! `canter generate`: sends frames, by cangen's options, by a schedule, or those of a whole car.

mod rest_bus;

use canter_cli::{
    duration,
    failure::{self, Exit, Failure},
    interrupt::interrupt_flag,
    options::Common,
    trouble::{refuse_classic, refuse_down},
};
use canter_io::{
    Frame, Interface,
    batch::BATCH_FRAMES,
    clock,
    frame::{BRS, BitRate, ESI},
    method::{Echo, TransmitMethod},
    thread::{self, Worker},
};
use canter_route::traffic::{
    assignment::Assignment,
    car,
    content::{Data, Ids, Lengths},
    pattern::Traffic,
    recipe::Recipe,
    sender::{Account, Sender, Setup, Stop, Table, own_rate, parse_ms, parse_rate, refused_message},
    source::{Due, Source, Steady, Timetable},
};
use canter_signals::Database;
use clap::Args;
use rest_bus::{RestBus, Wave};
use serde::Serialize;
use std::{
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

/// Time between the opening of all interfaces and the first deadline, so that every thread sleeps before it.
const HEAD_START_NS: u64 = 20_000_000;
/// Period at which the main thread checks signals.
const CHECK_PERIOD: Duration = Duration::from_millis(10);

/// Send frames: cangen's options, schedules that do not drift, whole cars
#[derive(Args)]
#[command(after_help = "\
Examples:
  canter generate vcan0                                5 random frames per second, as cangen does
  canter generate vcan0 -g 4 -I 42A -L 1 -D i          one identifier, one byte that counts
  canter generate can0 can1 --traffic period=1ms -n 10000
  canter generate can0 --traffic load=50%              counted in exact bits, with stuff bits
  canter generate can0 --traffic burst=20/100ms        and ramp=100..5000/10s, flood
  canter generate --car docs/car.toml                  each identifier at its own period
  canter generate --car docs/car.toml vcan0=can0 vcan1=can2    on other interfaces
  canter generate vcan0 --dbc car.dbc                  every message of a database at its cycle time; --wave sine
Values of -I, -L and -D: r random, i increment, e and o even and odd (-I), otherwise fixed; -D 11xx33: x is random.
Each frame is due at an absolute time: a late frame does not delay the next one. A frame that finds no room within
--wait is refused and counted. Exit code 0; 3 when frames were refused (0 with -i); 130 when interrupted before
--count or --duration was reached.")]
pub struct Arguments {
    /// Interfaces to send to, each on its own schedule; with --car, canplayer's DESTINATION=SOURCE
    #[arg(value_name = "IFACE", required_unless_present = "car")]
    interfaces: Vec<String>,
    /// When frames are sent: period=1ms, load=50%, burst=20/100ms, ramp=100..5000/10s, flood
    #[arg(long, value_name = "T", conflicts_with_all = ["gap", "burst"])]
    traffic: Option<Traffic>,
    /// Time between frames, in ms or with a unit; 0 floods
    #[arg(long, short, default_value = "200", value_name = "TIME", value_parser = parse_ms)]
    gap: u64,
    /// Frames per gap
    #[arg(long, short = 'c', default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    burst: u32,
    /// Send the identifiers of a car, each at its own period, as this TOML file describes
    #[arg(long, value_name = "FILE", conflicts_with_all = ["traffic", "gap", "burst", "id", "len", "data",
          "extended", "fd", "brs", "esi", "rtr", "len8_dlc", "mix"])]
    car: Option<PathBuf>,
    /// Send every message of a DBC file that has a cycle time (GenMsgCycleTime), its signals inside their ranges
    #[arg(long, value_name = "FILE", conflicts_with_all = ["car", "traffic", "gap", "burst", "id", "len", "data",
          "extended", "fd", "brs", "esi", "rtr", "len8_dlc", "mix"])]
    dbc: Option<PathBuf>,
    /// With --dbc: how signals move
    #[arg(long, value_enum, default_value = "ramp", value_name = "WAVE", requires = "dbc")]
    wave: Wave,
    #[command(flatten)]
    content: Content,
    /// End after this number of frames on each interface
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// End after this time
    #[arg(long, value_name = "TIME", value_parser = duration::parse_ns)]
    duration: Option<u64>,
    /// Transmitter (see canter methods); write, or the interface's own, unless given
    #[arg(long, value_name = "METHOD")]
    method: Option<TransmitMethod>,
    /// Longest wait of a frame for room, in ms or with a unit (cangen polls on ENOBUFS)
    #[arg(long = "wait", short = 'p', default_value = "1s", value_name = "TIME", value_parser = parse_ms)]
    wait: u64,
    /// Do not wait for room; count refused frames, but do not fail because of them
    #[arg(long, short = 'i', conflicts_with = "wait")]
    ignore_full: bool,
    /// Hide the frames from other programs on this machine
    #[arg(long, short = 'x')]
    no_echo: bool,
    /// Bit rates of arbitration and data phase in bit/s: 500k,2M; the interface's own unless given
    #[arg(long, value_name = "RATE", value_parser = parse_rate)]
    bitrate: Option<BitRate>,
    /// Seed of the random numbers, to repeat an earlier run
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Accepted for compatibility with cangen: times are always absolute
    #[arg(short = 'a', hide = true)]
    absolute: bool,
}

/// Content of the frames
#[derive(Args)]
#[command(next_help_heading = "The frames")]
struct Content {
    /// Identifier in hexadecimal, or r, e, o, i
    #[arg(long, short = 'I', default_value = "r", value_name = "ID")]
    id: Ids,
    /// Length in bytes, or r, i
    #[arg(long, short = 'L', default_value = "r", value_name = "LEN")]
    len: Lengths,
    /// Data in hexadecimal, or r, i
    #[arg(long, short = 'D', default_value = "r", value_name = "DATA")]
    data: Data,
    /// Extended identifiers
    #[arg(long, short = 'e')]
    extended: bool,
    /// FD frames
    #[arg(long, short = 'f')]
    fd: bool,
    /// FD frames that switch the bit rate
    #[arg(long, short = 'b')]
    brs: bool,
    /// FD frames with the error state indicator set
    #[arg(long, short = 'E')]
    esi: bool,
    /// Remote transmission requests
    #[arg(long, short = 'R')]
    rtr: bool,
    /// Classic frames with a DLC of 9…15 too
    #[arg(long, short = '8')]
    len8_dlc: bool,
    /// Random kinds of frames; FD frames only where the interface supports them
    #[arg(long, short = 'm')]
    mix: bool,
}

impl Content {
    fn recipe(&self, interface: &Interface) -> failure::Result<Recipe> {
        let fd = self.fd || self.brs || self.esi;
        if fd {
            refuse_classic(interface)?;
        }
        let recipe = Recipe {
            ids: self.id,
            extended: self.extended,
            lengths: self.len,
            data: self.data,
            fd: fd || (self.mix && interface.supports_fd()),
            flags: if self.brs { BRS } else { 0 } | if self.esi { ESI } else { 0 },
            rtr: self.rtr,
            len8_dlc: self.len8_dlc,
            mix: self.mix,
        };
        recipe.fault().map_or(Ok(recipe), |fault| Err(Failure::new(Exit::Usage, fault)))
    }
}

/// The document of `--json`.
#[derive(Serialize)]
struct Document {
    command: String,
    /// Seed of the random numbers, for `--seed`.
    seed: u64,
    interrupted: bool,
    interfaces: Vec<Account>,
}

pub fn run(arguments: Arguments, common: &Common) -> failure::Result {
    let _ = arguments.absolute;
    let seed = arguments.seed.unwrap_or_else(clock::realtime_ns);
    let generators = match (&arguments.car, &arguments.dbc) {
        (Some(path), _) => arguments.car(path, seed)?,
        (_, Some(path)) => arguments.rest_bus(path, common.quiet)?,
        _ => arguments.steady(seed)?,
    };
    let stop = interrupt_flag()?;
    common.apply()?;
    let start_ns = clock::monotonic_ns() + HEAD_START_NS;
    let workers = generators.into_iter().map(|one| one.start(start_ns, &arguments, common.verbose > 0));
    let mut workers: Vec<_> = workers.collect::<failure::Result<_>>()?;
    while !stop.load(Ordering::Acquire) && !workers.iter().all(Worker::is_finished) {
        std::thread::sleep(CHECK_PERIOD);
    }
    let ended: Vec<Ended> = workers.drain(..).map(Worker::stop).collect();
    finish(&arguments, common, seed, ended)
}

/// Prints the results; decides on the exit code.
fn finish(arguments: &Arguments, common: &Common, seed: u64, ended: Vec<Ended>) -> failure::Result {
    let interrupted =
        ended.iter().any(|one| !one.complete) && (arguments.count.is_some() || arguments.duration.is_some());
    let failed = ended.iter().find_map(|one| one.failure.clone());
    let interfaces: Vec<Account> = ended.into_iter().map(|one| one.account).collect();
    let refused: u64 = interfaces.iter().map(|one| one.refused).sum();
    if common.shows_table() {
        print!("{}", Table(&interfaces));
    }
    let command = std::env::args().collect::<Vec<_>>().join(" ");
    common.write_json(&Document { command, seed, interrupted, interfaces })?;
    match failed {
        Some(failure) => Err(Failure::failed(failure)),
        None if refused > 0 && !arguments.ignore_full => {
            Err(Failure::new(Exit::Lost, refused_message(refused)))
        }
        None => Ok(if interrupted { Exit::Interrupted } else { Exit::Done }),
    }
}

impl Arguments {
    fn traffic(&self) -> Traffic {
        match (self.traffic, self.gap, self.burst) {
            (Some(traffic), ..) => traffic,
            (None, 0, _) => Traffic::Flood,
            (None, gap, 1) => Traffic::Period(gap),
            (None, every_ns, frames) => Traffic::Burst { frames, every_ns },
        }
    }

    /// The generators of one recipe, an interface each with its own schedule.
    fn steady(&self, seed: u64) -> failure::Result<Vec<Generator>> {
        let traffic = self.traffic();
        if traffic == Traffic::OneAtATime {
            let message = "--traffic one-at-a-time: generate does not receive frames (canter latency does)";
            return Err(Failure::new(Exit::Usage, message));
        }
        let generator = |(name, seed): (&String, u64)| {
            let interface = find(name)?;
            let rate = self.bitrate.or_else(|| own_rate(&interface));
            if let (Traffic::Load(_), None) = (traffic, rate) {
                let message = format!("{name}: --traffic load: its bit rate is unknown (--bitrate 500000)");
                return Err(Failure::new(Exit::Usage, message));
            }
            let recipe = self.content.recipe(&interface)?;
            let rate = rate.unwrap_or(BitRate::classic(1_000_000)); // counts for a load only
            let source = Box::new(Steady::new(recipe, seed, traffic, rate));
            Ok(Generator { sender: self.open(&interface, self.bitrate)?, source })
        };
        refuse_duplicates(&self.interfaces)?;
        self.interfaces.iter().zip(seed..).map(generator).collect()
    }

    /// The generators of a car, a bus each.
    fn car(&self, path: &std::path::Path, seed: u64) -> failure::Result<Vec<Generator>> {
        let buses = car::load(path)?;
        let assignment = Assignment::parse(&self.interfaces)?;
        let mut generators = Vec::new();
        assignment.refuse_unknown(buses.iter().map(|bus| bus.interface.as_str()))?;
        for (bus, seed) in buses.iter().zip(seed..) {
            let Some(name) = assignment.destination(&bus.interface) else { continue };
            let interface = find(name)?;
            if bus.frames.iter().any(|frame| frame.recipe.fd) {
                refuse_classic(&interface)?;
            }
            let rate = self.bitrate.or_else(|| own_rate(&interface)).or(bus.rate);
            let source = Box::new(Timetable::new(&bus.frames, seed));
            generators.push(Generator { sender: self.open(&interface, rate)?, source });
        }
        refuse_duplicates(&generators.iter().map(|one| one.sender.name().to_owned()).collect::<Vec<_>>())?;
        Ok(generators)
    }

    /// The generators of a database, the same on each interface.
    fn rest_bus(&self, path: &std::path::Path, quiet: bool) -> failure::Result<Vec<Generator>> {
        let database = Database::open(path).map_err(|error| Failure::failed(error.to_string()))?;
        let unsent = RestBus::new(&database, self.wave);
        let remarks = database.remarks.iter().cloned().chain(unsent.remarks()).filter(|_| !quiet);
        remarks.for_each(|remark| eprintln!("canter: {}: {remark}", path.display()));
        let generator = |name: &String| {
            let interface = find(name)?;
            let bus = RestBus::new(&database, self.wave);
            if bus.len() == 0 {
                let reason = "no message has a cycle time (GenMsgCycleTime)";
                return Err(Failure::failed(format!("{}: {reason}", path.display())));
            }
            if bus.has_fd() {
                refuse_classic(&interface)?;
            }
            Ok(Generator { sender: self.open(&interface, self.bitrate)?, source: Box::new(bus) })
        };
        refuse_duplicates(&self.interfaces)?;
        self.interfaces.iter().map(generator).collect()
    }

    fn open(&self, interface: &Interface, rate: Option<BitRate>) -> failure::Result<Sender> {
        let echo = if self.no_echo { Echo::Off } else { Echo::On };
        let patience_ns = if self.ignore_full { 0 } else { self.wait };
        let setup = Setup { echo, rate, patience_ns, late_ns: None };
        Ok(Sender::open(interface, self.method, &setup)?)
    }
}

fn find(name: &str) -> failure::Result<Interface> {
    let interface = Interface::find(name)?;
    refuse_down(&interface)?;
    Ok(interface)
}

/// Refuses an interface that is given twice: its two schedules would disturb each other.
fn refuse_duplicates(names: &[String]) -> failure::Result<()> {
    let twice = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name));
    twice.map_or(Ok(()), |(_, name)| Err(Failure::new(Exit::Usage, format!("{name}: is given twice"))))
}

/// An interface and the frames to send.
struct Generator {
    sender: Sender,
    source: Source,
}

/// A generator that has ended.
struct Ended {
    account: Account,
    /// Whether all requested frames were sent or refused.
    complete: bool,
    failure: Option<String>,
}

impl Generator {
    fn start(self, start_ns: u64, arguments: &Arguments, shown: bool) -> failure::Result<Worker<Ended>> {
        let until_ns = arguments.duration.map_or(u64::MAX, |ns| start_ns.saturating_add(ns));
        let count = arguments.count.unwrap_or(u64::MAX);
        Worker::start("canter-generate", move |flag| self.run(flag, start_ns, until_ns, count, shown))
            .map_err(|error| Failure::failed(format!("generate: start: {error}")))
    }

    fn run(mut self, flag: &AtomicBool, start_ns: u64, until_ns: u64, count: u64, shown: bool) -> Ended {
        let _ = thread::wake_on_time(); // later wake-ups show as lateness
        let stop = Stop { flag, until_ns };
        let mut pending = Pending { source: self.source, next: None, left: count, start_ns };
        let (mut frames, mut due_ns) = (Vec::with_capacity(BATCH_FRAMES), Vec::with_capacity(BATCH_FRAMES));
        let (mut failure, mut sent_ns) = (None, start_ns);
        while stop.sleep_until(pending.due_ns()) && !stop.now() {
            frames.clear();
            due_ns.clear();
            pending.take_due(clock::monotonic_ns(), &mut frames, &mut due_ns);
            if frames.is_empty() {
                break; // all frames were sent, and the period of the last one is over
            }
            sent_ns = clock::monotonic_ns();
            match self.sender.send(&frames, &due_ns, &stop) {
                Ok(done) if shown => {
                    frames[..done].iter().for_each(|frame| println!("{} {frame}", self.sender.name()))
                }
                Ok(_) => {}
                Err(error) => {
                    failure = Some(error.to_string());
                    break;
                }
            }
        }
        let now_ns = clock::monotonic_ns();
        let complete = pending.left == 0 || now_ns >= until_ns;
        let ended_ns = if pending.left == 0 { sent_ns.max(pending.due_ns()) } else { now_ns.min(until_ns) };
        let account = self.sender.close(ended_ns.saturating_sub(start_ns));
        Ended { account, complete, failure }
    }
}

/// The frames not sent yet.
struct Pending {
    source: Source,
    next: Option<Due>,
    left: u64,
    start_ns: u64,
}

impl Pending {
    fn peek(&mut self) -> Option<Due> {
        if self.next.is_none() {
            self.next = self.source.next();
        }
        self.next
    }

    /// When the next frame is due, in CLOCK_MONOTONIC. After the last frame: when another one would be due, so that the
    /// period of the last frame counts: 1000 frames at 1 ms take 1 s, not 999 ms.
    fn due_ns(&mut self) -> u64 {
        self.peek().and_then(|due| due.at_ns).map_or(0, |at_ns| self.start_ns.saturating_add(at_ns))
    }

    /// Takes the frames that are due now, at most one batch.
    fn take_due(&mut self, now_ns: u64, frames: &mut Vec<Frame>, due_ns: &mut Vec<Option<u64>>) {
        while frames.len() < BATCH_FRAMES && self.left > 0 && self.due_ns() <= now_ns {
            let Some(due) = self.next.take() else { return };
            frames.push(due.frame);
            due_ns.push(due.at_ns.map(|at_ns| self.start_ns.saturating_add(at_ns)));
            self.left -= 1;
        }
    }
}

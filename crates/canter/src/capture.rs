//! Capture: records all frames of any number of interfaces, and proves that none is missing or says where.
//!
//! ring → `receiver` (thread: counts, copies) → `queue` → `writer` (thread: `merge`, `formats`, file) → `account`

mod account;
mod chunk;
mod formats;
mod merge;
mod queue;
mod receiver;
mod size;
mod writer;

use crate::{
    failure::{self, Exit, Failure},
    measure::duration,
    options::Common,
    trouble,
};
use account::Account;
use canter_io::{
    Interface, InterfaceFilters,
    capture_ring::{CaptureRing, RING_BYTES},
    sys::clock,
};
use clap::Args;
use formats::{Closing, Kind};
use queue::{Item, Queue};
use receiver::{Live, Receiver};
use signal_hook::{
    consts::{SIGINT, SIGTERM},
    iterator::Signals,
};
use std::{
    fs::File,
    io::{IsTerminal, Write},
    path::{Path, PathBuf},
    sync::atomic::Ordering,
    thread::{Scope, ScopedJoinHandle},
    time::{Duration, Instant},
};

/// How often the main thread looks at signals and at the time.
const LOOK: Duration = Duration::from_millis(50);
/// How often the live line changes.
const LINE: Duration = Duration::from_millis(500);
/// After how long of writing on after the end it says what it waits for.
const PATIENCE: Duration = Duration::from_secs(2);

/// Record frames of any number of interfaces, with the proof that none is missing
#[derive(Args)]
#[command(after_help = "\
Examples:
  canter capture can0 can1 -o drive.pcapng           for Wireshark; ends with Ctrl-C
  canter capture any -o drive.log --duration 10m     every interface, as candump -l writes it
  canter capture can0,123:7FF,400:700 can1,0~0,#FFFFFFFF -o some.log    candump's filters; errors of can1 only
At the end an account says what each interface has counted and what is in the file; it is also in FILE.account.json.
SIGINT and SIGTERM end it; exit code 0, or 3 when a frame is missing. Needs CAP_NET_RAW.")]
pub struct Arguments {
    /// Interfaces with candump's filters, or `any`; without filters everything is kept, error frames too
    #[arg(value_name = "IFACE[,FILTERS]", required = true, value_parser = InterfaceFilters::parse)]
    interfaces: Vec<InterfaceFilters>,
    /// The file; .log is candump's format, .pcapng Wireshark's
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
    /// The format, whatever the file's name
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Kind>,
    /// Write over a file that exists
    #[arg(long)]
    overwrite: bool,
    /// In a log, stamps of 9 digits instead of 6 (candump -N)
    #[arg(long)]
    ns: bool,
    /// End after so many frames
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// End after this time
    #[arg(long, value_name = "TIME", value_parser = duration::parse_ns)]
    duration: Option<u64>,
    /// Memory that the kernel fills while this program cannot run
    #[arg(long, value_name = "SIZE", default_value_t = Size(RING_BYTES))]
    ring: Size,
    /// Memory for what a stalled disk cannot take
    #[arg(long, value_name = "SIZE", default_value_t = Size(256 << 20))]
    buffer: Size,
}

/// Bytes, typed as `64M`.
#[derive(Clone, Copy, Debug)]
struct Size(usize);

impl std::str::FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        size::parse_bytes(text).map(Self)
    }
}

impl std::fmt::Display for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}M", self.0 >> 20)
    }
}

pub fn run(arguments: Arguments, common: &Common) -> failure::Result {
    let kind = arguments.format.or_else(|| Kind::of(&arguments.output)).ok_or_else(|| {
        let path = arguments.output.display();
        Failure::new(
            Exit::Usage,
            format!("{path}: which format? (end its name in .log or .pcapng, or give --format)"),
        )
    })?;
    let found = find(&arguments.interfaces)?;
    let signals = Signals::new([SIGINT, SIGTERM])
        .map_err(|error| Failure::failed(format!("capture: signals: {error}")))?;
    let ring = open_ring(&arguments, &found)?;
    let file = open_file(&arguments)?;
    common.apply()?;
    let ring_bytes = ring.bytes();

    let (queue, live) = (Queue::new(arguments.buffer.0), Live::default());
    let receiver = Receiver::new(ring, &arguments.interfaces, found, &queue, &live);
    let recording = Recording { arguments: &arguments, common, kind, queue: &queue, live: &live };
    let mut account = std::thread::scope(|scope| recording.run(scope, receiver, file, signals))?;
    account.ring_bytes = ring_bytes as u64;
    recording.close(&account)
}

/// The interfaces that are asked for: those named, which must be up, and with `any` all others.
fn find(wanted: &[InterfaceFilters]) -> failure::Result<Vec<Interface>> {
    let mut found: Vec<Interface> = Vec::new();
    let mut any = false;
    for InterfaceFilters { interface: name, .. } in wanted {
        if name == "any" {
            any = true;
        } else if found.iter().any(|one| one.name == *name) {
            let message = format!("{name}: asked for twice (all its filters go behind one name)");
            return Err(Failure::new(Exit::Usage, message));
        } else {
            let interface = Interface::find(name)?;
            if interface.kind == canter_io::interface::Kind::Sim {
                return Err(Failure::unable(format!("{name}: capture: a simulated bus has no ring")));
            }
            trouble::refuse_down(&interface)?;
            found.push(interface);
        }
    }
    if any {
        let named: Vec<u32> = found.iter().map(|one| one.index).collect();
        found.extend(Interface::list()?.into_iter().filter(|one| !named.contains(&one.index)));
    }
    Ok(found)
}

fn open_ring(arguments: &Arguments, found: &[Interface]) -> failure::Result<CaptureRing> {
    let any = arguments.interfaces.iter().any(|one| one.interface == "any");
    let fd = any || found.iter().any(Interface::supports_fd);
    let ring = match found {
        [one] if !any => CaptureRing::open(&one.name, one.index, fd, arguments.ring.0),
        _ => CaptureRing::open("capture", 0, fd, arguments.ring.0),
    };
    Ok(ring?)
}

fn open_file(arguments: &Arguments) -> failure::Result<File> {
    let path = &arguments.output;
    let failed = |error: std::io::Error| {
        let exists = error.kind() == std::io::ErrorKind::AlreadyExists;
        let failure = trouble::of_file(path, "open", error);
        let way_out = if exists { " (--overwrite replaces it)" } else { "" };
        Failure::failed(failure.message + way_out)
    };
    let mut options = File::options();
    options.write(true);
    // Only a plain file can be lost by writing over it.
    if arguments.overwrite || path.metadata().is_ok_and(|about| !about.is_file()) {
        options.create(true).truncate(true);
    } else {
        options.create_new(true);
    }
    let file = options.open(path).map_err(failed)?;
    let beside = account_path(path);
    File::create(&beside).map_err(|error| trouble::of_file(&beside, "open", error))?;
    Ok(file)
}

fn account_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".account.json");
    name.into()
}

/// A recording that runs.
struct Recording<'a> {
    arguments: &'a Arguments,
    common: &'a Common,
    kind: Kind,
    queue: &'a Queue,
    live: &'a Live,
}

impl<'a> Recording<'a> {
    fn run<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        receiver: Receiver<'scope>,
        file: File,
        mut signals: Signals,
    ) -> failure::Result<Account> {
        let failed = |error| Failure::failed(format!("capture: start: {error}"));
        let format = self.kind.writer(self.arguments.ns);
        let Arguments { output, count, .. } = self.arguments;
        let frames_max = count.unwrap_or(u64::MAX);
        let write = move || writer::run(self.queue, self.live, file, output, format, frames_max);
        let writer = named("canter-write").spawn_scoped(scope, write).map_err(failed)?;
        let receiver = named("canter-capture").spawn_scoped(scope, move || receiver.run()).map_err(failed)?;
        self.announce();
        self.watch(&receiver, &mut signals);
        self.live.stop.store(true, Ordering::Release); // pairs with the receiver's Acquire load
        let received = join(receiver);
        let mut account = Account::new(&received);
        self.queue.tell(Item::End(closings(&account), account.verdict.clone()));
        self.wait_for(&writer, &mut signals);
        account.add_written(&join(writer));
        account.file = self.arguments.output.display().to_string();
        account.format = self.kind.name().to_owned();
        account.queue_bytes = self.arguments.buffer.0 as u64;
        account.queue_high_water_bytes = self.queue.used().1 as u64;
        Ok(account)
    }

    /// Others wait for this line, so it comes when frames are recorded and not before.
    fn announce(&self) {
        let Arguments { interfaces, output, .. } = self.arguments;
        let names: Vec<String> = interfaces.iter().map(ToString::to_string).collect();
        if !self.common.quiet {
            eprintln!("capture: {} → {}; Ctrl-C ends it", names.join(" "), output.display());
        }
    }

    /// Until a signal, the end of the time, enough frames, or the receiver's own end.
    fn watch<T>(&self, receiver: &ScopedJoinHandle<'_, T>, signals: &mut Signals) {
        let end = self.arguments.duration.map(|ns| clock::monotonic_ns().saturating_add(ns));
        let mut line = LiveLine::new(self.common);
        while !receiver.is_finished() && signals.pending().next().is_none() {
            let left = end.map_or(u64::MAX, |end| end.saturating_sub(clock::monotonic_ns()));
            if left == 0 || self.live.enough.load(Ordering::Relaxed) {
                break;
            }
            std::thread::sleep(LOOK.min(Duration::from_nanos(left)));
            line.show(self);
        }
        line.clear();
    }

    /// Waits until all is written. A disk that does not answer is named; a signal then gives up on what is left.
    fn wait_for<T>(&self, writer: &ScopedJoinHandle<'_, T>, signals: &mut Signals) {
        let (began, mut said) = (Instant::now(), false);
        while !writer.is_finished() {
            std::thread::sleep(Duration::from_millis(5));
            if began.elapsed() > PATIENCE && !said {
                said = true;
                let left = self.queue.used().0 >> 10;
                let path = self.arguments.output.display();
                eprintln!("canter: {path}: waiting for the disk, {left} KiB left; Ctrl-C gives them up");
            }
            if said && signals.pending().next().is_some() {
                eprintln!("canter: {}: given up with frames not written", self.arguments.output.display());
                std::process::exit(Exit::Lost as i32);
            }
        }
    }

    /// Says it everywhere: terminal, FILE.account.json, --json, exit code.
    fn close(&self, account: &Account) -> failure::Result {
        if !self.common.quiet {
            eprintln!("{account}");
        }
        let path = account_path(&self.arguments.output);
        let written = serde_json::to_string_pretty(account)
            .map_err(std::io::Error::from)
            .and_then(|text| std::fs::write(&path, text + "\n"));
        self.common.write_json(account)?;
        if let Err(error) = written {
            eprintln!("canter: {}: write: {error}", path.display());
            return Ok(if account.complete { Exit::Failed } else { Exit::Lost });
        }
        if account.complete {
            return Ok(Exit::Done);
        }
        Err(Failure::new(Exit::Lost, format!("{}: {}", account.file, account.verdict)))
    }
}

fn named(name: &str) -> std::thread::Builder {
    std::thread::Builder::new().name(name.to_owned())
}

fn join<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// What a pcapng file says of each interface.
fn closings(account: &Account) -> Vec<Closing> {
    let closing = |bus: &account::Bus| Closing {
        started_ns: account.started_ns,
        ended_ns: account.ended_ns,
        received: bus.counted,
        lost: bus.ring_lost.unwrap_or_default() + bus.queue_lost + bus.driver_lost,
    };
    account.buses.iter().map(closing).collect()
}

/// One line on a terminal that says how it goes.
struct LiveLine {
    on: bool,
    shown: Instant,
    frames: u64,
}

impl LiveLine {
    fn new(common: &Common) -> Self {
        let on = !common.quiet && std::io::stderr().is_terminal();
        Self { on, shown: Instant::now(), frames: 0 }
    }

    fn show(&mut self, recording: &Recording<'_>) {
        let passed = self.shown.elapsed();
        if !self.on || passed < LINE {
            return;
        }
        let live = recording.live;
        let frames = live.frames.load(Ordering::Relaxed);
        let rate = u128::from(frames - self.frames) * 1_000_000_000 / passed.as_nanos();
        let lost = live.ring_lost.load(Ordering::Relaxed) + live.queue_lost.load(Ordering::Relaxed);
        let high = recording.queue.used().1 >> 10;
        eprint!("\r\x1b[K{rate} frames/s, {frames} frames, queue at most {high} KiB, {lost} lost");
        let _ = std::io::stderr().flush();
        (self.shown, self.frames) = (Instant::now(), frames);
    }

    fn clear(&self) {
        if self.on {
            eprint!("\r\x1b[K");
        }
    }
}

//! The command `canter capture`: options, signals, the live line, and output of the account.

use super::{
    account_file::AccountFile,
    condition::Trigger,
    errors, fifo, signals,
    signals::{Ask, StopSignals},
};
use crate::{
    databases::{Databases, Source},
    format_names, status_socket,
};
use canter_capture::{
    AFTER, Account, BEFORE, Busy, FLUSH, QUEUE_BYTES, RING_BYTES, Recording, SYNC, Settings, Triggers,
};
use canter_cli::{
    duration,
    failure::{self, Exit, Failure},
    options::Common,
    reminder::Reminder,
    size,
    supervisor::Supervisor,
};
use canter_formats::Format;
use canter_io::{Interface, InterfaceFilters, link_flags};
use clap::Args;
use std::{
    fs,
    io::{self, IsTerminal, Write},
    path::PathBuf,
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant},
};

/// Period at which the main thread checks the time and events; signals wake it at once.
const CHECK_PERIOD: Duration = Duration::from_millis(250);
/// Period of the live line.
const LINE_PERIOD: Duration = Duration::from_millis(500);
/// Number of buses whose loads the live line shows, the highest first.
const LOADS_MAX: usize = 4;
/// Timeout for the disk at the end: then the command reports that it waits, or gives up on writing the account.
const DISK_TIMEOUT: Duration = Duration::from_secs(2);
/// A slow disk that takes frames gets more time from the service manager, which would end the recording after `TimeoutStopSec`.
const EXTENSION: Duration = Duration::from_secs(30);
/// How often progress of the disk is looked at.
const EXTENSION_PERIOD: Duration = Duration::from_secs(2);
/// How long a disk may take at most: another program may be what it works for.
const EXTENSIONS_MAX: Duration = Duration::from_secs(600);

/// Record frames of any number of interfaces, with the proof that none is missing
#[derive(Args)]
#[command(
    alias = "record",
    after_help = "\
Examples:
  canter capture can0 can1 -o drive.pcapng           for Wireshark, until Ctrl-C
  canter capture any -o drive.log --duration 10m     every interface, in the format of candump -l
  canter capture can0,123:7FF,400:700 can1,0~0,#FFFFFFFF -o some.log    candump's filters; errors of can1 only
  canter capture any -o box.pcapng.zst --rotate-size 100M --keep 50     the last 5 GB, compressed
  canter capture any -o box.pcapng --rotate-time 10m --keep-age 30d --keep-free 10G    the last month, if there is room
  canter capture can0 can1 --wait-for-interface -o boot.log             start before the interfaces exist
  canter capture can0 /dev/canchar2 -o two.pcapng                       an interface and a character device
  canter capture can0 --direction --hw-stamps -o both.pcapng            with direction and the controller's stamps
  canter capture any -o event.pcapng --before 30s --after 5s --trigger bus-off --trigger 'missing 0C9 > 50ms'    only events
  canter capture any -o event.pcapng --dbc car.dbc --trigger 'Engine.Speed > 6000' --trigger 0C9#40:C0
  canter capture can0 --format pcapng -o - | tshark -r -                to standard output
At the end canter prints an account: the frames that each interface counted and those in the file. FILE.account.json
has the same. SIGINT and SIGTERM end it, SIGHUP does not. Exit code 0; 3 when a frame is missing. Without CAP_NET_RAW,
canter receives through sockets, which costs six times as much."
)]
pub struct Arguments {
    /// Interfaces or canchar devices with candump's filters, or `any` interface; without filters everything is kept, error frames too
    #[arg(value_name = "IFACE[,FILTERS]", required = true, value_parser = InterfaceFilters::parse)]
    interfaces: Vec<InterfaceFilters>,
    /// The file: .log for candump's format, .pcapng for Wireshark; append .zst to compress; - for standard output
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
    /// The format, regardless of the file's name
    #[arg(long, value_name = "FORMAT", value_parser = format_names::recorded())]
    format: Option<&'static Format>,
    /// Compress, regardless of the file's name
    #[arg(long)]
    zstd: bool,
    /// Overwrite existing files
    #[arg(long)]
    overwrite: bool,
    /// In a log, stamps of 9 digits instead of 6 (candump -N)
    #[arg(long)]
    ns: bool,
    /// End after this number of frames
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// End after this time
    #[arg(long, value_name = "TIME", value_parser = duration::parse_ns)]
    duration: Option<u64>,
    /// Begin the next file (FILE-000002…) when one reaches this size
    #[arg(long, value_name = "SIZE", value_parser = size::parse_bytes)]
    rotate_size: Option<usize>,
    /// Begin the next file when one reaches this age
    #[arg(long, value_name = "TIME", value_parser = positive_ns)]
    rotate_time: Option<u64>,
    /// Keep only the last N files
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    keep: Option<u32>,
    /// Delete the oldest files while less than this is free on the disk
    #[arg(long, value_name = "SIZE", value_parser = size::parse_bytes)]
    keep_free: Option<usize>,
    /// Delete files that were closed longer than this ago: 30d, 12h
    #[arg(long, value_name = "TIME", value_parser = duration::parse_age_ns)]
    keep_age: Option<u64>,
    /// Write each frame to the file within this time; SIGKILL loses at most the frames of this time
    #[arg(long, value_name = "TIME", value_parser = duration::parse_ns, default_value = "1s")]
    flush_interval: u64,
    /// Sync the file to the disk at this interval, by a thread of its own; a power cut loses at most the frames of both intervals; 0: only at its end
    #[arg(long, value_name = "TIME", value_parser = interval_ns, default_value = "5s")]
    sync_interval: u64,
    /// Mark the frames that this machine sent; canter then receives through sockets, at six times the cost
    #[arg(long)]
    direction: bool,
    /// End when the terminal is closed (SIGHUP); otherwise the recording goes on
    #[arg(long)]
    end_on_hangup: bool,
    /// Keep only the time around events, a file for each; repeatable, any of them: [IFACE,]123:7FF, 0C9#40:C0 (data and mask),
    /// error, bus-off, error-passive, overrun, missing 0C9 > 50ms, new after 60s, Signal > 100 (--dbc), SIGUSR1
    #[arg(long, value_name = "COND")]
    trigger: Vec<Trigger>,
    /// With --trigger: keep the time before an event, in memory until then
    #[arg(long, value_name = "TIME", value_parser = duration::parse_ns, requires = "trigger", default_value = "30s")]
    before: u64,
    /// With --trigger: keep the time after an event; windows that overlap become one
    #[arg(long, value_name = "TIME", value_parser = duration::parse_ns, requires = "trigger", default_value = "5s")]
    after: u64,
    /// With --trigger: memory for the frames before an event, instead of what they take at the buses' highest rate
    #[arg(long, value_name = "SIZE", value_parser = size::parse_bytes, requires = "trigger")]
    window_buffer: Option<usize>,
    /// The database of a trigger's signal: a DBC file for all buses, or for one; repeatable
    #[arg(long, value_name = "[IFACE=]FILE", requires = "trigger")]
    dbc: Vec<Source>,
    /// Record the controllers' stamps in addition to the kernel's; canter then receives through sockets
    #[arg(long)]
    hw_stamps: bool,
    /// Stamp frames by their controllers' clocks, brought onto the system's clock, with a bound of the error; includes --hw-stamps
    #[arg(long)]
    clock_align: bool,
    /// Wait for interfaces that do not exist or are down
    #[arg(long)]
    wait_for_interface: bool,
    /// Memory in which the kernel keeps frames while this program cannot run; 64M unless given, less on a small machine
    #[arg(long, value_name = "SIZE", value_parser = size::parse_bytes)]
    ring: Option<usize>,
    /// Memory in which frames wait while the disk stalls; 256M unless given, less on a small machine
    #[arg(long, value_name = "SIZE", value_parser = size::parse_bytes)]
    buffer: Option<usize>,
}

const _: () = {
    assert!(FLUSH.as_secs() == 1, "must equal the default of --flush-interval");
    assert!(SYNC.as_secs() == 5, "must equal the default of --sync-interval");
    assert!(
        BEFORE.as_secs() == 30 && AFTER.as_secs() == 5,
        "must equal the defaults of --before and --after"
    );
    assert!(RING_BYTES == 64 << 20 && QUEUE_BYTES == 256 << 20, "must equal the sizes in the help");
};

fn positive_ns(text: &str) -> Result<u64, String> {
    duration::parse_ns(text).and_then(|ns| if ns > 0 { Ok(ns) } else { Err("must be more than 0".into()) })
}

/// Reads an interval, or 0 without a unit.
fn interval_ns(text: &str) -> Result<u64, String> {
    if text == "0" { Ok(0) } else { duration::parse_ns(text) }
}

impl Arguments {
    /// Refuses options that contradict each other; touches no interface and no file.
    ///
    /// # Errors
    /// The contradiction, exit code 2.
    pub fn check(&self, common: &Common) -> failure::Result<()> {
        self.settings(common)?.check().map_err(errors::explain)
    }

    /// The triggers; `None`: everything is recorded.
    fn triggers(&self) -> failure::Result<Option<Triggers>> {
        if self.trigger.is_empty() {
            return Ok(None);
        }
        if self.dbc.is_empty()
            && let Some(trigger) = self.trigger.iter().find(|trigger| trigger.needs_database())
        {
            return Err(Failure::new(
                Exit::Usage,
                format!("--trigger {trigger}: needs --dbc FILE for its signal"),
            ));
        }
        let databases = Arc::new(Databases::open(&self.dbc)?);
        let conditions = self.trigger.iter().map(|trigger| trigger.condition(&databases));
        Ok(Some(Triggers {
            conditions: conditions.collect::<failure::Result<_>>()?,
            before: Duration::from_nanos(self.before),
            after: Duration::from_nanos(self.after),
            buffer_bytes: self.window_buffer,
        }))
    }

    /// The room to keep free on the disk, in bytes, and the greatest age of files, in ns.
    pub fn retention(&self) -> (Option<u64>, Option<u64>) {
        (self.keep_free.map(|bytes| bytes as u64), self.keep_age)
    }

    fn settings(&self, common: &Common) -> failure::Result<Settings> {
        let usual = Settings::new(self.interfaces.clone(), &self.output);
        Ok(Settings {
            format: self.format,
            zstd: self.zstd,
            overwrite: self.overwrite,
            ns: self.ns,
            frames_max: self.count.unwrap_or(u64::MAX),
            ring_bytes: self.ring.unwrap_or(usual.ring_bytes),
            queue_bytes: self.buffer.unwrap_or(usual.queue_bytes),
            rotate_bytes: self.rotate_size.map(|bytes| bytes as u64),
            rotate_age: self.rotate_time.map(Duration::from_nanos),
            keep: self.keep.map(|keep| keep as usize),
            keep_free_bytes: self.retention().0,
            keep_age: self.keep_age.map(Duration::from_nanos),
            sync: Some(Duration::from_nanos(self.sync_interval)).filter(|interval| !interval.is_zero()),
            flush: Duration::from_nanos(self.flush_interval),
            direction: self.direction,
            hardware_stamps: self.hw_stamps,
            clock_align: self.clock_align,
            wait_for_interfaces: self.wait_for_interface,
            triggers: self.triggers()?,
            bus_load: LiveLine::wanted(common),
            ..usual
        })
    }
}

pub fn run(arguments: Arguments, common: &Common) -> failure::Result {
    let asks = arguments.trigger.iter().any(Trigger::is_request);
    let (signals, asked) = signals::receive(arguments.end_on_hangup, asks)?;
    common.apply()?;
    let account_file = AccountFile::new(&arguments.output, arguments.overwrite)?;
    let reader = fifo::wait_for_reader(&arguments.output, &signals)?;
    let mut recording = Recording::start(&arguments.settings(common)?).map_err(errors::explain)?;
    drop(reader); // the recording has opened the FIFO
    let _ = canter_io::thread::stand_back(); // the live line must not delay frames
    account_file.begin()?;
    let session = Session { arguments: &arguments, common, account_file };
    status_socket::answer(&recording.observer(), common);
    session.announce(&mut recording);
    session.watch(&mut recording, &signals, &asked);
    pass_on(&asked, &recording);
    Supervisor::find().notify_stopping("writing the queued frames");
    recording.stop();
    let written = session.wait_for_disk(&mut recording, &signals);
    for event in recording.events() {
        eprintln!("canter: {}", event.what);
    }
    if written { session.close(recording.finish()) } else { session.give_up(recording.give_up()) }
}

/// Passes the events that a signal asked for to the recording.
fn pass_on(asked: &mpsc::Receiver<Ask>, recording: &Recording) {
    for Ask { at_ns } in asked.try_iter() {
        recording.trigger(at_ns, "SIGUSR1");
    }
}

/// One run of the command.
struct Session<'a> {
    arguments: &'a Arguments,
    common: &'a Common,
    account_file: AccountFile,
}

impl Session<'_> {
    /// Prints the first line. Scripts wait for it, so it appears only when frames are being recorded.
    fn announce(&self, recording: &mut Recording) {
        let Arguments { interfaces, output, .. } = self.arguments;
        let names: Vec<String> = interfaces.iter().map(ToString::to_string).collect();
        for event in recording.events() {
            eprintln!("canter: {}", event.what);
        }
        let route = format!("{} → {}", names.join(" "), output.display());
        if !self.common.quiet {
            eprintln!("capture: {route}; Ctrl-C ends it");
        }
        Supervisor::find().notify_ready(&route);
    }

    /// Prints events until a signal arrives, `--duration` ends, `--count` frames were received or the receiver ends.
    fn watch(&self, recording: &mut Recording, signals: &StopSignals, asked: &mpsc::Receiver<Ask>) {
        let (began, length) = (Instant::now(), self.arguments.duration.map(Duration::from_nanos));
        let mut line = LiveLine::new(self.common);
        let mut supervision = Supervision::new();
        let mut absent = AbsentInterfaces::new(self.arguments);
        while !recording.is_over() {
            let left = length.map_or(Duration::MAX, |length| length.saturating_sub(began.elapsed()));
            if left.is_zero() || signals.recv_timeout(CHECK_PERIOD.min(left)).is_ok() {
                break;
            }
            pass_on(asked, recording);
            for event in recording.events() {
                line.clear();
                eprintln!("canter: {}", event.what);
            }
            for reason in absent.check() {
                line.clear();
                eprintln!("canter: {reason}; waiting for it");
            }
            supervision.notify(recording);
            line.show(recording);
        }
        line.clear();
    }

    /// Waits until all frames are written. Reports a disk that does not answer; after that a signal discards the rest,
    /// and the answer is false.
    fn wait_for_disk(&self, recording: &mut Recording, signals: &StopSignals) -> bool {
        let (began, mut reported) = (Instant::now(), false);
        let (supervisor, mut asked, mut then) = (Supervisor::find(), began, DiskWork::look(recording));
        while !recording.is_written() {
            if asked.elapsed() > EXTENSION_PERIOD {
                let now = DiskWork::look(recording);
                if now.goes_on_since(&then) && began.elapsed() < EXTENSIONS_MAX {
                    supervisor.extend_timeout(EXTENSION);
                }
                (asked, then) = (Instant::now(), now);
            }
            thread::sleep(Duration::from_millis(5));
            if began.elapsed() > DISK_TIMEOUT && !reported {
                reported = true;
                let left = recording.queue_used().0 >> 10;
                let path = self.arguments.output.display();
                eprintln!(
                    "canter: {path}: write: waiting for the disk, {left} KiB left (Ctrl-C discards them)"
                );
                while signals.try_recv().is_ok() {} // typed before this was asked
            }
            if reported && signals.try_recv().is_ok() {
                return false;
            }
        }
        true
    }

    /// Writes the account to the terminal, FILE.account.json and --json; its verdict is the exit code.
    fn close(&self, account: Account) -> failure::Result {
        if !self.common.quiet {
            eprintln!("{account}");
        }
        let saved = self.account_file.end(&account);
        self.common.write_json(&account)?;
        if let Err(error) = saved {
            eprintln!("canter: {error}");
            return Ok(if account.verdict.is_complete() { Exit::Failed } else { Exit::Lost });
        }
        if account.verdict.is_complete() || account.verdict.is_ambiguous() {
            return Ok(Exit::Done);
        }
        let remedy = remedy(&account);
        Err(Failure::new(Exit::Lost, format!("{}: {}{remedy}", account.file, account.verdict)))
    }

    /// Writes the account when the disk may never answer. The process waits neither for the disk nor for its threads.
    fn give_up(&self, account: Account) -> failure::Result {
        if !self.common.quiet {
            eprintln!("{account}");
        }
        let (file, (done, wait)) = (self.account_file.clone(), mpsc::channel());
        let (saved, common) = (account.clone(), self.common.clone());
        thread::spawn(move || {
            let json = common.write_json(&saved); // first, because it may be on another disk
            let _ = done.send(file.end(&saved).is_ok() && json.is_ok());
        });
        if wait.recv_timeout(DISK_TIMEOUT) != Ok(true) {
            eprintln!("canter: {}: the account was not written either", self.arguments.output.display());
        }
        eprintln!("canter: {}: {}", account.file, account.verdict);
        std::process::exit(Exit::Lost as i32);
    }
}

/// The way out of losses that a setting of the machine may prevent; empty for others.
fn remedy(account: &Account) -> String {
    /// How many frames wait on each processor, of all drivers without NAPI: 1000 by default.
    const LIMIT: &str = "/proc/sys/net/core/netdev_max_backlog";
    if account.lost.backlog == 0 {
        let overran = account.lost.overrun_events > 0;
        return if overran { " (canter doctor finds what delays this machine's interrupts)" } else { "" }
            .to_owned();
    }
    let limit = fs::read_to_string(LIMIT).ok().and_then(|text| text.trim().parse::<u64>().ok());
    let doubled = 2 * limit.unwrap_or_default().max(1000);
    format!(" (a longer backlog prevents this: sysctl -w net.core.netdev_max_backlog={doubled})")
}

/// What the disk still has to take, by which its progress is seen.
struct DiskWork {
    queued_bytes: u64,
    /// The pages that the kernel has written to all disks since it began (`/proc/vmstat`): the last sync counts none of ours.
    written_pages: u64,
}

impl DiskWork {
    fn look(recording: &Recording) -> Self {
        let vmstat = fs::read_to_string("/proc/vmstat").unwrap_or_default();
        let written = vmstat.lines().find_map(|line| line.strip_prefix("nr_written ")?.parse().ok());
        Self { queued_bytes: recording.queue_used().0 as u64, written_pages: written.unwrap_or(0) }
    }

    /// Whether the disk has taken frames, or, when none waits, pages of the last sync.
    fn goes_on_since(&self, then: &Self) -> bool {
        self.queued_bytes < then.queued_bytes
            || self.queued_bytes == 0 && self.written_pages > then.written_pages
    }
}

/// Reports the progress to the service manager. It does not reset the watchdog while the receiver's thread stalls.
struct Supervision {
    supervisor: Supervisor,
    rounds: u64,
}

impl Supervision {
    fn new() -> Self {
        Self { supervisor: Supervisor::find(), rounds: 0 }
    }

    fn notify(&mut self, recording: &Recording) {
        let rounds = recording.rounds();
        if self.supervisor.is_due() && rounds != self.rounds {
            self.rounds = rounds;
            let (frames, lost) = (recording.frames(), recording.lost());
            self.supervisor.notify_alive(&format!("{frames} frames, {lost} lost"));
        }
    }
}

/// Period at which `--wait-for-interface` checks the interfaces.
const ABSENT_PERIOD: Duration = Duration::from_secs(1);

/// Reports interfaces of `--wait-for-interface` that do not exist or are down.
struct AbsentInterfaces {
    names: Vec<(String, Reminder)>,
    checked: Option<Instant>,
}

impl AbsentInterfaces {
    fn new(arguments: &Arguments) -> Self {
        let waited = arguments.interfaces.iter().filter(|_| arguments.wait_for_interface);
        let names = waited.map(|one| one.interface.clone()).filter(|name| name != "any");
        Self { names: names.map(|name| (name, Reminder::default())).collect(), checked: None }
    }

    /// The messages that are due now.
    fn check(&mut self) -> Vec<String> {
        if self.names.is_empty() || self.checked.is_some_and(|when| when.elapsed() < ABSENT_PERIOD) {
            return Vec::new();
        }
        self.checked = Some(Instant::now());
        let message = |(name, reminder): &mut (String, Reminder)| match is_up(name) {
            Ok(true) => {
                *reminder = Reminder::default();
                None
            }
            found => {
                let reason = found.map_or_else(|error| error.to_string(), |_| format!("{name}: is down"));
                reminder.is_due(&reason).then_some(reason)
            }
        };
        self.names.iter_mut().filter_map(message).collect()
    }
}

/// Whether an interface is up. Of a network interface the kernel says so at any time, also when a service that changes
/// interfaces makes it answer nothing else.
fn is_up(name: &str) -> canter_io::Result<bool> {
    if name.starts_with('/') {
        return Interface::find(name).map(|device| device.up);
    }
    link_flags::is_up(name).map_err(|error| canter_io::Error::new(name, "find", error))
}

/// One line on a terminal that shows the progress.
struct LiveLine {
    visible: bool,
    shown: Instant,
    frames: u64,
    busy: Vec<Busy>,
}

impl LiveLine {
    fn wanted(common: &Common) -> bool {
        !common.quiet && io::stderr().is_terminal()
    }

    fn new(common: &Common) -> Self {
        Self { visible: Self::wanted(common), shown: Instant::now(), frames: 0, busy: Vec::new() }
    }

    fn show(&mut self, recording: &Recording) {
        let passed = self.shown.elapsed();
        if !self.visible || passed < LINE_PERIOD {
            return;
        }
        let (frames, busy) = (recording.frames(), recording.busy());
        let rate = u128::from(frames - self.frames) * 1_000_000_000 / passed.as_nanos();
        let (lost, high) = (recording.lost(), recording.queue_used().1 >> 10);
        let loads = loads(&self.busy, &busy, passed);
        let line = format!("{rate} frames/s, {frames} frames, {lost} lost, queue at most {high} KiB{loads}");
        // A line that wraps could not be replaced. Clipping removes the end, which matters least.
        let columns = crossterm::terminal::size().map_or(80, |(columns, _)| usize::from(columns));
        let shown: String = line.chars().take(columns.saturating_sub(1)).collect();
        eprint!("\r{shown}\x1b[K");
        let _ = io::stderr().flush();
        (self.shown, self.frames, self.busy) = (Instant::now(), frames, busy);
    }

    fn clear(&self) {
        if self.visible {
            eprint!("\r\x1b[K");
        }
    }
}

/// The loads of the busiest buses with a known bit rate since `before`.
fn loads(before: &[Busy], now: &[Busy], passed: Duration) -> String {
    let load = |at: usize| {
        let grown = now[at].busy_ns? - before.get(at).and_then(|earlier| earlier.busy_ns).unwrap_or(0);
        Some((u128::from(grown) * 100 / passed.as_nanos(), now[at].name.as_str()))
    };
    let mut loads: Vec<(u128, &str)> = (0..now.len()).filter_map(load).collect();
    loads.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(b.1)));
    let shown: Vec<String> =
        loads.iter().take(LOADS_MAX).map(|(percent, name)| format!("{name} {percent} %")).collect();
    if shown.is_empty() { String::new() } else { format!(", load {}", shown.join(" ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_shows_the_busiest_buses_and_omits_those_without_a_bit_rate() {
        let busy = |name: &str, busy_ns| Busy { name: name.to_owned(), frames: 0, busy_ns };
        let before = [busy("can0", Some(1_000)), busy("vcan0", None)];
        let now = [busy("can0", Some(251_000)), busy("vcan0", None), busy("can1", Some(990_000))];
        assert_eq!(loads(&before, &now, Duration::from_millis(1)), ", load can1 99 % can0 25 %");
        assert_eq!(loads(&[], &now[1..2], Duration::from_millis(1)), "");
    }

    #[test]
    fn the_disk_goes_on_while_the_queue_falls_and_only_then_while_pages_are_written() {
        let look = |queued_bytes, written_pages| DiskWork { queued_bytes, written_pages };
        assert!(look(5, 0).goes_on_since(&look(6, 0)));
        assert!(!look(6, 9).goes_on_since(&look(6, 0)), "pages of other programs");
        assert!(look(0, 1).goes_on_since(&look(0, 0)));
        assert!(!look(0, 1).goes_on_since(&look(0, 1)));
    }
}

//! A recording: what is to be recorded and where to, the threads that do it, and the account that they end with.

use super::{
    account::{Account, Bus, Event},
    buses::Buses,
    files::Files,
    live::{Busy, Live},
    queue::{Item, Queue},
    receiver::{self, Keeper, Receiver},
    source::{Source, Wish},
    writer::{self, Style},
};
use crate::{
    failure::{self, Exit, Failure},
    formats::{Closing, Kind},
    trouble,
};
use canter_io::{
    Interface, InterfaceFilters, capture_ring::RING_BYTES, carrier::Access, monitor::Monitor, thread,
};
use std::{
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, atomic::Ordering},
    thread::JoinHandle,
    time::Duration,
};

/// Memory for what a stalled disk cannot take, in bytes, unless asked otherwise.
pub const QUEUE_BYTES: usize = 256 << 20;
/// How old a frame may become before it is in the file, unless asked otherwise.
pub const FLUSH: Duration = Duration::from_secs(1);
/// And at least.
pub const FLUSH_MIN: Duration = Duration::from_millis(500);

/// What is recorded, and how. [`Settings::new`] has what is usual; change what is not.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Interfaces, and canchar devices by their paths, with candump's filters; `any` stands for all of the network, later
    /// ones too. Without filters everything is kept.
    pub interfaces: Vec<InterfaceFilters>,
    /// The file. With rotation, a number goes before its last extension.
    pub output: PathBuf,
    /// The format; `None`: as the file's name ends, `.log` or `.pcapng`.
    pub format: Option<Kind>,
    /// Compress by zstd, as it is without asking where the name ends in `.zst`.
    pub zstd: bool,
    /// Write over files that are there.
    pub overwrite: bool,
    /// In a log, stamps of 9 digits.
    pub ns: bool,
    /// No more frames than this.
    pub frames_max: u64,
    /// Memory that the kernel fills while this program cannot run, in bytes.
    pub ring_bytes: usize,
    /// Memory for what a stalled disk cannot take, in bytes.
    pub queue_bytes: usize,
    /// A next file from this size on, in bytes.
    pub rotate_bytes: Option<u64>,
    /// A next file at this age.
    pub rotate_age: Option<Duration>,
    /// How many files stay, the youngest.
    pub keep: Option<usize>,
    /// A frame is in the file when it is as old as this, at least half a second.
    pub flush: Duration,
    /// Tell received from sent frames, by sockets.
    pub direction: bool,
    /// Keep controllers' own stamps too, by sockets; in pcapng only.
    pub hardware_stamps: bool,
    /// Do not ask that interfaces are there, or up, at the beginning.
    pub wait_for_interfaces: bool,
    /// Work out how busy each bus is, which costs some hundred instructions a frame.
    pub bus_load: bool,
}

impl Settings {
    /// Records `interfaces` to `output` as `canter capture` does when it is told no more.
    pub fn new(interfaces: Vec<InterfaceFilters>, output: impl Into<PathBuf>) -> Self {
        Self {
            interfaces,
            output: output.into(),
            format: None,
            zstd: false,
            overwrite: false,
            ns: false,
            frames_max: u64::MAX,
            ring_bytes: RING_BYTES,
            queue_bytes: QUEUE_BYTES,
            rotate_bytes: None,
            rotate_age: None,
            keep: None,
            flush: FLUSH,
            direction: false,
            hardware_stamps: false,
            wait_for_interfaces: false,
            bus_load: false,
        }
    }

    fn rotates(&self) -> bool {
        self.rotate_bytes.is_some() || self.rotate_age.is_some()
    }

    /// How to write, when the settings make sense.
    fn style(&self) -> failure::Result<Style> {
        let usage = |message: String| Err(Failure::new(Exit::Usage, message));
        let path = self.output.display();
        let packed = self.output.extension().is_some_and(|end| end == "zst");
        let bare = if packed { self.output.with_extension("") } else { self.output.clone() };
        let Some(kind) = self.format.or_else(|| Kind::of(&bare)) else {
            return usage(format!(
                "{path}: which format? (end its name in .log or .pcapng, or give --format)"
            ));
        };
        if self.keep.is_some() && !self.rotates() {
            return usage("--keep: of what? (--rotate-size or --rotate-time makes files)".into());
        }
        if self.hardware_stamps && kind == Kind::Log {
            return usage(format!("{path}: a log has no place for hardware stamps (write .pcapng)"));
        }
        if self.flush < FLUSH_MIN {
            return usage(format!("--flush-interval: at least {} ms", FLUSH_MIN.as_millis()));
        }
        Ok(Style {
            kind,
            ns: self.ns,
            zstd: self.zstd || packed,
            frames_max: self.frames_max,
            rotate_bytes: self.rotate_bytes,
            rotate_age: self.rotate_age,
            flush: self.flush,
        })
    }

    /// The interfaces that are asked for: those named, and with `any` all others.
    fn find(&self) -> failure::Result<Vec<Interface>> {
        let mut found: Vec<Interface> = Vec::new();
        for (at, InterfaceFilters { interface: name, .. }) in self.interfaces.iter().enumerate() {
            if self.interfaces[..at].iter().any(|one| one.interface == *name) {
                let message = format!("{name}: asked for twice (all its filters go behind one name)");
                return Err(Failure::new(Exit::Usage, message));
            }
            if name == "any" {
                continue;
            }
            match Interface::find(name) {
                Ok(interface) => {
                    if interface.carrier.access == Access::Process {
                        let about = interface.carrier.about;
                        return Err(Failure::unable(format!("{name}: capture: {about} has no ring")));
                    }
                    if !self.wait_for_interfaces {
                        trouble::refuse_down(&interface)?;
                    }
                    found.push(interface);
                }
                Err(error)
                    if self.wait_for_interfaces && error.kind() != std::io::ErrorKind::InvalidInput => {}
                Err(error) => return Err(error.into()),
            }
        }
        if self.any() {
            let named: Vec<u32> = found.iter().map(|one| one.index).collect();
            found.extend(Interface::list()?.into_iter().filter(|one| !named.contains(&one.index)));
        }
        Ok(found)
    }

    fn any(&self) -> bool {
        self.interfaces.iter().any(|one| one.interface == "any")
    }

    fn wish(&self, found: &[Interface]) -> Wish {
        let names = self.interfaces.iter().map(|one| one.interface.clone());
        let (devices, network): (Vec<_>, Vec<_>) = names.partition(|name| name.starts_with("/dev/"));
        let there = found.iter().any(Interface::has_sockets);
        let single = match network.as_slice() {
            [one] if !self.any() && there => Some(one.clone()),
            _ => None,
        };
        Wish {
            network: !network.is_empty(),
            single,
            devices,
            fd: self.any() || self.wait_for_interfaces || found.iter().any(Interface::supports_fd),
            bytes: self.ring_bytes,
            direction: self.direction,
            hardware_stamps: self.hardware_stamps,
        }
    }
}

/// What the threads share.
struct Shared {
    queue: Queue,
    live: Live,
}

/// A recording that runs. [`stop`](Self::stop) and then [`finish`](Self::finish) end it; one that is dropped goes on
/// until the process ends.
pub struct Recording {
    shared: Arc<Shared>,
    output: PathBuf,
    kind: Kind,
    queue_bytes: usize,
    receiver: Option<JoinHandle<receiver::Report>>,
    writer: Option<JoinHandle<writer::Report>>,
    account: Option<Account>,
    events_told: usize,
}

impl Recording {
    /// Starts to record. When it returns, frames are recorded.
    ///
    /// # Errors
    /// When the settings contradict each other, an interface is not there or down, the file cannot be made or may not
    /// be written over. Nothing has been made then.
    pub fn start(settings: &Settings) -> failure::Result<Self> {
        let style = settings.style()?;
        let monitor = Monitor::open().ok(); // first: whatever changes from now on is told
        let found = settings.find()?;
        let shared = Arc::new(Shared { queue: Queue::new(settings.queue_bytes), live: Live::default() });
        shared.live.show_load.store(settings.bus_load, Ordering::Relaxed);
        let source = Source::open(&settings.wish(&found), &found, &shared.live)?;
        let Settings { output, keep, overwrite, .. } = settings;
        let files = Files::create(output, settings.rotates(), *keep, *overwrite)?;
        let (receiver, ready) = spawn_receiver(&shared, source, monitor, settings.interfaces.clone(), found)?;
        let writer = {
            let shared = Arc::clone(&shared);
            named("canter-write").spawn(move || {
                let _ = thread::stand_back(); // what it writes waits in memory; frames would wait in the kernel
                writer::run(&shared.queue, &shared.live, files, style)
            })
        };
        let writer = writer.map_err(start_failed)?;
        let _ = ready.recv(); // counting has begun; a receiver that died is found at its end
        Ok(Self {
            shared,
            output: output.clone(),
            kind: style.kind,
            queue_bytes: settings.queue_bytes,
            receiver: Some(receiver),
            writer: Some(writer),
            account: None,
            events_told: 0,
        })
    }

    /// Whether it has ended by itself: it has as many frames as were asked for, or cannot receive any more.
    pub fn is_over(&self) -> bool {
        let failed = self.receiver.as_ref().is_none_or(JoinHandle::is_finished);
        failed || self.shared.live.enough.load(Ordering::Relaxed)
    }

    /// Frames received so far, as far as they are wanted.
    pub fn frames(&self) -> u64 {
        self.shared.live.frames.load(Ordering::Relaxed)
    }

    /// How often the receiver's thread came by; one that stands still does not.
    pub(super) fn rounds(&self) -> u64 {
        self.shared.live.rounds.load(Ordering::Relaxed)
    }

    /// Frames lost so far, as far as this program knows while it runs; the account knows all.
    pub fn lost(&self) -> u64 {
        self.shared.live.lost()
    }

    /// Memory of the RAM queue that is in use, and that was at most, in bytes.
    pub fn queue_used(&self) -> (usize, usize) {
        self.shared.queue.used()
    }

    /// How busy each bus was so far, with [`Settings::bus_load`].
    pub fn busy(&self) -> Vec<Busy> {
        self.shared.live.busy.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What has happened since this was asked last: interfaces that went and came, a disk that is full.
    pub fn events(&mut self) -> Vec<Event> {
        let events = self.shared.live.events(self.events_told);
        self.events_told += events.len();
        events
    }

    /// Draws the line: what was received up to now belongs to the recording. It takes a fifth of a second; writing goes
    /// on until [`finish`](Self::finish).
    pub fn stop(&mut self) {
        self.shared.live.stop.store(true, Ordering::Release); // pairs with the receiver's Acquire load
        let Some(receiver) = self.receiver.take() else { return };
        let account = Account::new(&join(receiver));
        self.shared.queue.tell(Item::End(closings(&account), account.verdict.clone()));
        self.account = Some(account);
    }

    /// Whether all has been written, after [`stop`](Self::stop).
    pub fn is_written(&self) -> bool {
        self.writer.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Stops, waits until the disk has all, and answers the account; [`Account::save`] keeps it.
    pub fn finish(mut self) -> Account {
        self.stop();
        let report = self.writer.take().map(join).unwrap_or_default();
        let mut account = self.account.take().unwrap_or_default();
        account.add_written(&report);
        self.complete(account)
    }

    /// Stops without waiting for a disk that does not answer: what it has not taken yet is lost.
    pub fn give_up(mut self) -> Account {
        self.stop();
        let mut account = self.account.take().unwrap_or_default();
        let report = self.shared.live.written.lock().unwrap_or_else(PoisonError::into_inner).clone();
        account.give_up(&report);
        self.complete(account)
    }

    fn complete(&self, mut account: Account) -> Account {
        account.file = self.output.display().to_string();
        account.format = self.kind.name().to_owned();
        account.queue_bytes = self.queue_bytes as u64;
        account.queue_high_water_bytes = self.shared.queue.used().1 as u64;
        account.events = self.shared.live.events(0);
        account
    }
}

impl Account {
    /// Where the account of a recording to `output` goes: `output` with `.account.json` behind it.
    pub fn path(output: &Path) -> PathBuf {
        let mut name = output.as_os_str().to_owned();
        name.push(".account.json");
        name.into()
    }

    /// Writes it to a file as JSON.
    ///
    /// # Errors
    /// What writing answers.
    pub fn save(&self, path: &Path) -> std::io::Result<()> {
        let text = serde_json::to_string_pretty(self).map_err(std::io::Error::from)?;
        std::fs::write(path, text + "\n")
    }
}

type Ready = std::sync::mpsc::Receiver<()>;

/// The receiver's thread, and the word that it has begun to count.
fn spawn_receiver(
    shared: &Arc<Shared>,
    source: Source,
    monitor: Option<Monitor>,
    wanted: Vec<InterfaceFilters>,
    found: Vec<Interface>,
) -> failure::Result<(JoinHandle<receiver::Report>, Ready)> {
    let (say, ready) = std::sync::mpsc::channel();
    let shared = Arc::clone(shared);
    let run = move || {
        let buses = Buses::new(&shared.queue, &shared.live, wanted, found);
        let receiver = Receiver::new(source, Keeper::new(&shared.queue, buses), monitor, &shared.live);
        let _ = say.send(());
        receiver.run()
    };
    let thread = named("canter-capture").spawn(run).map_err(start_failed)?;
    Ok((thread, ready))
}

fn start_failed(error: std::io::Error) -> Failure {
    Failure::failed(format!("capture: start: {error}"))
}

fn named(name: &str) -> std::thread::Builder {
    std::thread::Builder::new().name(name.to_owned())
}

fn join<T>(thread: JoinHandle<T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// What a pcapng file says of each interface.
fn closings(account: &Account) -> Vec<Closing> {
    let closing = |bus: &Bus| Closing {
        started_ns: account.started_ns,
        ended_ns: account.ended_ns,
        received: bus.counted,
        lost: Some(bus.ring_lost.unwrap_or_default() + bus.queue_lost + bus.driver_lost),
    };
    account.buses.iter().map(closing).collect()
}

//! A running recording: starts the threads, reports on them while they run, and completes their account.

use crate::{
    Error, Result,
    account::{Account, Bus, Event, SCHEMA},
    buses::Buses,
    counting::{self, Reading},
    files::{Files, Unsynced, folder_of, sync_folder_of},
    keeper::Keeper,
    live::{Busy, Current, Live, Progress},
    output::Output,
    queue::{Item, Queue},
    receiver::{self, Receiver},
    settings::Settings,
    source::Source,
    syncer::Syncer,
    trigger::Triggers,
    windows::Windows,
    writer,
};
use canter_formats::{Closing, Format};
use canter_io::{Interface, clock, file, monitor::Monitor, thread};
use serde::Serialize;
use std::{
    fs::Permissions,
    io::Write,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, atomic::Ordering},
    thread::JoinHandle,
};

/// The state that the threads share.
struct Shared {
    queue: Queue,
    live: Live,
}

/// How long each bus is looked at after somebody asked for the status, in ns.
const LOOKED_AT_NS: u64 = 5_000_000_000;

/// Why a recording without a receiver has no counts.
const RECEIVER_ENDED: &str =
    "a fault of canter: its receiver has ended with its counts (a line above says where)";

/// What a recording does now.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// The output as given in the settings.
    pub output: String,
    /// The time of this status, in ns of the monotonic clock: differences are exact also when the clock is set.
    pub monotonic_ns: u64,
    /// The time of this status, in ns of the real-time clock.
    pub at_ns: u64,
    /// When the recording began, in ns of the real-time clock.
    pub started_ns: u64,
    /// Frames received that pass the filters.
    pub frames: u64,
    /// Frames lost so far, at the places that are known while it runs.
    pub lost: LostSoFar,
    /// Each bus; empty until it was asked for.
    pub buses: Vec<Busy>,
    /// Memory of the RAM queue in use, in bytes.
    pub queue_used_bytes: u64,
    /// The most of it that was in use, in bytes.
    pub queue_high_water_bytes: u64,
    /// The size of the RAM queue, in bytes.
    pub queue_bytes: u64,
    /// Bytes written to all files.
    pub bytes: u64,
    /// Frames in the files.
    pub frames_in_files: u64,
    /// Frames outside of all windows of triggers, which were not kept.
    pub frames_outside: u64,
    /// The file that is being written; `None`: none, between windows of triggers.
    pub file: Option<Current>,
    /// Room on the disk, in bytes; `None`: unknown.
    pub free_bytes: Option<u64>,
    /// The conditions of triggers; `None`: everything is recorded.
    pub triggers: Option<Vec<String>>,
    /// How often a condition was met.
    pub triggered_events: u64,
    /// Why it does not write now; empty when it does.
    pub trouble: String,
}

/// Frames lost so far.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct LostSoFar {
    /// In the ring, the sockets, or the devices' queues.
    pub ring: u64,
    /// Because the RAM queue was full.
    pub queue: u64,
    /// Because of a disk error.
    pub disk: u64,
    /// Because the memory for frames before an event was full.
    pub window: u64,
}

/// Reads the status of a recording, from any thread. The recording never waits for it.
#[derive(Clone)]
pub struct Observer {
    shared: Arc<Shared>,
    output: PathBuf,
    started_ns: u64,
    queue_bytes: u64,
    triggers: Option<Vec<String>>,
}

impl Observer {
    /// What the recording does now.
    pub fn status(&self) -> Status {
        let Shared { live, queue } = &*self.shared;
        live.asked_until_ns.store(clock::monotonic_ns() + LOOKED_AT_NS, Ordering::Relaxed);
        let written = live.written.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let sum = |counts: &[u64]| counts.iter().sum::<u64>();
        let (used, high_water) = queue.used();
        Status {
            output: self.output.display().to_string(),
            monotonic_ns: clock::monotonic_ns(),
            at_ns: clock::realtime_ns(),
            started_ns: self.started_ns,
            frames: live.frames.load(Ordering::Relaxed),
            lost: LostSoFar {
                ring: live.ring_lost.load(Ordering::Relaxed),
                queue: live.queue_lost.load(Ordering::Relaxed),
                disk: sum(&written.lost),
                window: sum(&written.window_lost),
            },
            buses: live.busy.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            queue_used_bytes: used as u64,
            queue_high_water_bytes: high_water as u64,
            queue_bytes: self.queue_bytes,
            bytes: written.bytes,
            frames_in_files: sum(&written.in_file),
            frames_outside: sum(&written.outside),
            file: written.current,
            free_bytes: file::room(folder_of(&self.output)).ok(),
            triggers: self.triggers.clone(),
            triggered_events: written.triggered_events,
            trouble: written.error.unwrap_or_default(),
        }
    }
}

/// A running recording. [`stop`](Self::stop) and then [`finish`](Self::finish) end it. A recording that is dropped
/// continues until the process ends.
pub struct Recording {
    shared: Arc<Shared>,
    output: PathBuf,
    format: &'static Format,
    queue_bytes: usize,
    observer: Observer,
    receiver: Option<JoinHandle<receiver::Report>>,
    writer: Option<JoinHandle<Progress>>,
    /// What was received; `None`: it has not ended, or it has panicked.
    received: Option<Arc<receiver::Report>>,
}

impl Recording {
    /// Starts a recording. All frames received after the return are recorded.
    ///
    /// # Errors
    /// When the settings contradict each other, an interface does not exist or is down, or the file cannot be created or
    /// exists already. Then no thread runs and no file was created.
    pub fn start(settings: &Settings) -> Result<Self> {
        let style = settings.style()?;
        let monitor = Monitor::open().ok(); // before `find`, so that no later change is missed
        let found = settings.find()?;
        let buffer = settings.window_buffer(&found)?;
        let shared = Arc::new(Shared { queue: Queue::new(settings.queue_bytes), live: Live::default() });
        shared.live.show_load.store(settings.bus_load, Ordering::Relaxed);
        let before = counting::read_before(&found);
        let source = Source::open(&settings.source_options(&found), &found, &shared.live)?;
        let Settings { output, overwrite, .. } = settings;
        let syncer = settings.sync.map(|_| Syncer::start(Box::new(Unsynced::sync))).transpose();
        let syncer = syncer.map_err(Error::Thread)?;
        let files = match &settings.triggers {
            None => Files::create(output, settings.rotates(), settings.retention(), *overwrite)?,
            Some(_) => Files::create_later(output, settings.retention(), *overwrite)?,
        };
        let windows = settings.triggers.clone().zip(buffer).map(|(triggers, (bytes, text))| {
            shared.live.log(text);
            (triggers, bytes)
        });
        let (receiver, ready) =
            spawn_receiver(&shared, source, monitor, settings, found.into_iter().zip(before).collect())?;
        let writer = {
            let shared = Arc::clone(&shared);
            named("canter-write").spawn(move || {
                let _ = thread::stand_back(); // the receiver goes first: its frames wait in the kernel, those of this thread in memory
                let live = &shared.live;
                let windows = windows.map(|(triggers, bytes)| Windows::new(triggers, bytes, live));
                writer::run(&shared.queue, live, Output::new(files, style, live, syncer), windows)
            })
        };
        let writer = writer.map_err(Error::Thread)?;
        let _ = ready.recv(); // counting has begun, or the receiver panicked: `stop` reports that
        let texts = |triggers: &Triggers| triggers.conditions.iter().map(|one| one.text.clone()).collect();
        let observer = Observer {
            shared: Arc::clone(&shared),
            output: output.clone(),
            started_ns: clock::realtime_ns(),
            queue_bytes: settings.queue_bytes as u64,
            triggers: settings.triggers.as_ref().map(texts),
        };
        Ok(Self {
            shared,
            observer,
            output: output.clone(),
            format: style.format,
            queue_bytes: settings.queue_bytes,
            receiver: Some(receiver),
            writer: Some(writer),
            received: None,
        })
    }

    /// Whether it has ended without [`stop`](Self::stop): it has reached the frame limit, or cannot receive any more.
    pub fn is_over(&self) -> bool {
        let has_failed = self.receiver.as_ref().is_none_or(JoinHandle::is_finished) || self.is_written();
        has_failed || self.shared.live.enough.load(Ordering::Relaxed)
    }

    /// Frames received so far that pass the filters.
    pub fn frames(&self) -> u64 {
        self.shared.live.frames.load(Ordering::Relaxed)
    }

    /// Rounds of the receiver's thread: several per second. A watchdog detects a stall when the number does not grow.
    pub fn rounds(&self) -> u64 {
        self.shared.live.rounds.load(Ordering::Relaxed)
    }

    /// Frames lost so far in the ring, the sockets, the devices' queues, the RAM queue and at the disk. The account has the
    /// losses at all places.
    pub fn lost(&self) -> u64 {
        self.shared.live.lost()
    }

    /// Memory of the RAM queue in use now, and the most that was in use, both in bytes.
    pub fn queue_used(&self) -> (usize, usize) {
        self.shared.queue.used()
    }

    /// How long each bus has been busy; empty without [`Settings::bus_load`].
    pub fn busy(&self) -> Vec<Busy> {
        self.shared.live.busy.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads the status, from any thread.
    pub fn observer(&self) -> Observer {
        self.observer.clone()
    }

    /// The events since the last call: an interface disappeared or came back, the disk is full.
    pub fn events(&mut self) -> Vec<Event> {
        self.shared.live.take_events()
    }

    /// With [`Settings::triggers`]: an event at this time of the real-time clock, in ns, for this reason.
    pub fn trigger(&self, at_ns: u64, reason: impl Into<String>) {
        self.shared.queue.send(Item::Event(at_ns, reason.into()));
    }

    /// Stops receiving: the frames received up to now belong to the recording. Takes about 0.2 s. The writer continues
    /// until [`finish`](Self::finish).
    pub fn stop(&mut self) {
        self.shared.live.stop.store(true, Ordering::Release); // pairs with the receiver's Acquire load
        let Some(receiver) = self.receiver.take() else { return };
        self.received = receiver.join().ok().map(Arc::new);
        let received = self.received.clone();
        let ending = move |written: &Progress| match &received {
            Some(received) => {
                let account = Account::new(received, written);
                (closings(&account), account.verdict.to_string())
            }
            None => {
                let account = Account::of_written(written, RECEIVER_ENDED);
                let unknown = |one| Closing { lost: None, lost_by_system: None, ..one };
                (closings(&account).into_iter().map(unknown).collect(), account.verdict.to_string())
            }
        };
        self.shared.queue.send(Item::End(Box::new(ending)));
    }

    /// After [`stop`](Self::stop): whether all frames have been written.
    pub fn is_written(&self) -> bool {
        self.writer.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Stops, waits until the disk has all frames, and returns the account; [`Account::save`] writes it to a file.
    pub fn finish(mut self) -> Account {
        self.stop();
        match self.writer.take().map(JoinHandle::join) {
            Some(Ok(written)) => self.account(&written, Account::new),
            _ => self.give_up_because("a fault of canter: its writer has ended (a line above says where)"),
        }
    }

    /// Stops without waiting for a disk that stalls: frames that are not written yet are lost.
    pub fn give_up(mut self) -> Account {
        self.stop();
        self.give_up_because("ended before the disk had all frames")
    }

    fn give_up_because(&self, reason: &str) -> Account {
        let mut written = self.shared.live.written.lock().unwrap_or_else(PoisonError::into_inner).clone();
        written.error.get_or_insert(reason.to_owned());
        self.account(&written, Account::given_up)
    }

    fn account(&self, written: &Progress, balance: fn(&receiver::Report, &Progress) -> Account) -> Account {
        let mut account = match &self.received {
            Some(received) => balance(received, written),
            None => Account {
                started_ns: self.observer.started_ns,
                ended_ns: clock::realtime_ns(),
                ..Account::of_written(written, RECEIVER_ENDED)
            },
        };
        account.file = self.output.display().to_string();
        account.format = self.format.name.to_owned();
        account.queue_bytes = self.queue_bytes as u64;
        account.queue_high_water_bytes = self.shared.queue.used().1 as u64;
        (account.events, account.events_left_out) = self.shared.live.kept_events();
        account
    }
}

impl Account {
    /// What follows a recording's path in the path of its account.
    pub const SUFFIX: &str = ".account.json";

    /// The path of the account of a recording to `output`: `output` followed by [`SUFFIX`](Self::SUFFIX).
    pub fn path(output: impl AsRef<Path>) -> PathBuf {
        let output = output.as_ref();
        let mut name = output.as_os_str().to_owned();
        name.push(Self::SUFFIX);
        name.into()
    }

    /// The account of a recording to `output` that has not ended: it is not complete.
    pub fn unfinished(output: impl AsRef<Path>) -> Self {
        Self { schema: SCHEMA.to_owned(), file: output.as_ref().display().to_string(), ..Self::default() }
    }

    /// Writes the account as JSON to a file beside `path`, which is then renamed: an earlier account stays until the new
    /// one is complete.
    ///
    /// # Errors
    /// The error of open(2), write(2), fsync(2) or rename(2).
    pub fn save(&self, path: impl AsRef<Path>) -> std::io::Result<()> {
        let path = path.as_ref();
        let text = serde_json::to_string_pretty(self).map_err(std::io::Error::from)? + "\n";
        let mut file = tempfile::Builder::new()
            .permissions(Permissions::from_mode(0o666)) // less the umask
            .tempfile_in(folder_of(path))?;
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(path)?;
        sync_folder_of(path)
    }
}

type Ready = std::sync::mpsc::Receiver<()>;

/// Starts the receiver's thread; the channel signals that it has begun to count.
fn spawn_receiver(
    shared: &Arc<Shared>,
    source: Source,
    monitor: Option<Monitor>,
    settings: &Settings,
    found: Vec<(Interface, Reading)>,
) -> Result<(JoinHandle<receiver::Report>, Ready)> {
    let (started, ready) = std::sync::mpsc::channel();
    let shared = Arc::clone(shared);
    let (wanted, aligns) = (settings.interfaces.clone(), settings.clock_align);
    let run = move || {
        let buses = Buses::new(&shared.queue, &shared.live, monitor, wanted, found, aligns);
        let receiver = Receiver::new(source, Keeper::new(&shared.queue, buses, &shared.live), &shared.live);
        let _ = started.send(());
        receiver.run()
    };
    let thread = named("canter-capture").spawn(run).map_err(Error::Thread)?;
    Ok((thread, ready))
}

fn named(name: &str) -> std::thread::Builder {
    std::thread::Builder::new().name(name.to_owned())
}

/// The statistics of each interface in a pcapng file.
fn closings(account: &Account) -> Vec<Closing> {
    let closing = |bus: &Bus| Closing {
        started_ns: account.started_ns,
        ended_ns: account.ended_ns,
        received: bus.counted,
        lost: Some(bus.driver_lost),
        lost_by_system: Some(
            bus.ring_lost.unwrap_or_default() + bus.queue_lost + bus.disk_lost + bus.window_lost,
        ),
    };
    let mut closings: Vec<Closing> = account.buses.iter().map(closing).collect();
    // Losses of unknown interfaces are in the statistics of those that miss frames, so that the sum is right.
    let assigned: u64 = account.buses.iter().filter_map(|bus| bus.ring_lost).sum();
    let mut left =
        (account.lost.ring + account.lost.device + account.lost.unaccounted).saturating_sub(assigned);
    for (closing, bus) in closings.iter_mut().zip(&account.buses) {
        let missing = bus.missing().saturating_sub(bus.ring_lost.unwrap_or_default()).min(left);
        left -= missing;
        closing.lost_by_system = closing.lost_by_system.map(|lost| lost + missing);
    }
    if let Some(lost) = closings.first_mut().and_then(|closing| closing.lost_by_system.as_mut()) {
        *lost += left;
    }
    closings
}

#[cfg(test)]
#[path = "recording/tests.rs"]
mod tests;

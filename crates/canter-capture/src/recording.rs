//! A running recording: starts the threads, reports on them while they run, and completes their account.

use crate::{
    Error, Result,
    account::{Account, Bus, Event, SCHEMA},
    buses::Buses,
    files::{Files, Unsynced, folder_of, sync_folder_of},
    keeper::Keeper,
    live::{Busy, Live, Progress},
    queue::{Item, Queue},
    receiver::{self, Receiver},
    settings::Settings,
    source::Source,
    syncer::Syncer,
    writer,
};
use canter_formats::{Closing, Format};
use canter_io::{Interface, InterfaceFilters, monitor::Monitor, thread};
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

/// A running recording. [`stop`](Self::stop) and then [`finish`](Self::finish) end it. A recording that is dropped
/// continues until the process ends.
pub struct Recording {
    shared: Arc<Shared>,
    output: PathBuf,
    format: &'static Format,
    queue_bytes: usize,
    receiver: Option<JoinHandle<receiver::Report>>,
    writer: Option<JoinHandle<Progress>>,
    received: Option<receiver::Report>,
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
        let shared = Arc::new(Shared { queue: Queue::new(settings.queue_bytes), live: Live::default() });
        shared.live.show_load.store(settings.bus_load, Ordering::Relaxed);
        let source = Source::open(&settings.source_options(&found), &found, &shared.live)?;
        let Settings { output, overwrite, .. } = settings;
        let syncer = settings.sync.map(|_| Syncer::start(Box::new(Unsynced::sync))).transpose();
        let syncer = syncer.map_err(Error::Thread)?;
        let files = Files::create(output, settings.rotates(), settings.retention(), *overwrite)?;
        let (receiver, ready) = spawn_receiver(&shared, source, monitor, settings.interfaces.clone(), found)?;
        let writer = {
            let shared = Arc::clone(&shared);
            named("canter-write").spawn(move || {
                let _ = thread::stand_back(); // the receiver goes first: its frames wait in the kernel, those of this thread in memory
                writer::run(&shared.queue, &shared.live, files, style, syncer)
            })
        };
        let writer = writer.map_err(Error::Thread)?;
        let _ = ready.recv(); // counting has begun, or the receiver panicked: `stop` reports that
        Ok(Self {
            shared,
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

    /// The events since the last call: an interface disappeared or came back, the disk is full.
    pub fn events(&mut self) -> Vec<Event> {
        self.shared.live.take_events()
    }

    /// Stops receiving: the frames received up to now belong to the recording. Takes about 0.2 s. The writer continues
    /// until [`finish`](Self::finish).
    pub fn stop(&mut self) {
        self.shared.live.stop.store(true, Ordering::Release); // pairs with the receiver's Acquire load
        let Some(receiver) = self.receiver.take() else { return };
        let Ok(received) = receiver.join() else { return };
        let account = Account::of_received(&received);
        self.shared.queue.send(Item::End(closings(&account), account.verdict.to_string()));
        self.received = Some(received);
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
            None => Account::default(), // the receiver has ended, and with it its counts
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
    wanted: Vec<InterfaceFilters>,
    found: Vec<Interface>,
) -> Result<(JoinHandle<receiver::Report>, Ready)> {
    let (started, ready) = std::sync::mpsc::channel();
    let shared = Arc::clone(shared);
    let run = move || {
        let buses = Buses::new(&shared.queue, &shared.live, monitor, wanted, found);
        let receiver = Receiver::new(source, Keeper::new(&shared.queue, buses), &shared.live);
        let _ = started.send(());
        receiver.run()
    };
    let thread = named("canter-capture").spawn(run).map_err(Error::Thread)?;
    Ok((thread, ready))
}

fn named(name: &str) -> std::thread::Builder {
    std::thread::Builder::new().name(name.to_owned())
}

/// The statistics of each interface in a pcapng file. The writer adds the frames that the disk lost.
fn closings(account: &Account) -> Vec<Closing> {
    let closing = |bus: &Bus| Closing {
        started_ns: account.started_ns,
        ended_ns: account.ended_ns,
        received: bus.counted,
        lost: Some(bus.driver_lost),
        lost_by_system: Some(bus.ring_lost.unwrap_or_default() + bus.queue_lost),
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

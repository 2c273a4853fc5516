//! A recording: what is to be recorded and where to, the threads that do it, and the account that they end with.

use crate::{
    Error, Result,
    account::{Account, Bus, Event},
    buses::Buses,
    files::Files,
    live::{Busy, Live},
    queue::{Item, Queue},
    receiver::{self, Keeper, Receiver},
    settings::Settings,
    source::Source,
    writer,
};
use canter_formats::{Closing, Format};
use canter_io::{Interface, InterfaceFilters, monitor::Monitor, thread};
use std::{
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, atomic::Ordering},
    thread::JoinHandle,
};

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
    format: &'static Format,
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
    pub fn start(settings: &Settings) -> Result<Self> {
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
        let writer = writer.map_err(Error::Thread)?;
        let _ = ready.recv(); // counting has begun; a receiver that died is found at its end
        Ok(Self {
            shared,
            output: output.clone(),
            format: style.format,
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

    /// How often the receiver's thread has run: a watchdog sees a stalled one.
    pub fn rounds(&self) -> u64 {
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
        account.format = self.format.name.to_owned();
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
) -> Result<(JoinHandle<receiver::Report>, Ready)> {
    let (say, ready) = std::sync::mpsc::channel();
    let shared = Arc::clone(shared);
    let run = move || {
        let buses = Buses::new(&shared.queue, &shared.live, wanted, found);
        let receiver = Receiver::new(source, Keeper::new(&shared.queue, buses), monitor, &shared.live);
        let _ = say.send(());
        receiver.run()
    };
    let thread = named("canter-capture").spawn(run).map_err(Error::Thread)?;
    Ok((thread, ready))
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

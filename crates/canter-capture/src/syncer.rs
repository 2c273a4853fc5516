//! Syncs the file that is being written to the disk, in a thread of its own: a disk that takes seconds for it delays neither
//! the ring nor the writer. What was synced outlives a power cut.

use crate::files::Unsynced;
use canter_io::thread::stand_back;
use std::{
    io,
    sync::mpsc::{self, Receiver, Sender},
    thread,
};

/// Syncs a file.
pub type Work = Box<dyn FnMut(&Unsynced) -> io::Result<()> + Send>;

/// The thread that syncs, from the side of the writer.
pub struct Syncer {
    jobs: Sender<(u64, Unsynced)>,
    results: Receiver<(u64, io::Result<()>)>,
    /// The number of the current file: results of an earlier one are of no interest.
    file: u64,
    busy: bool,
}

impl Syncer {
    /// Starts the thread. It ends after the syncer is dropped and the disk has answered.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start(mut work: Work) -> io::Result<Self> {
        let (jobs, waiting) = mpsc::channel::<(u64, Unsynced)>();
        let (done, results) = mpsc::channel();
        let run = move || {
            let _ = stand_back(); // as the writer: the receiver goes first
            for (number, job) in waiting {
                let synced = work(&job);
                drop(job); // before the writer closes the file: its lock goes with the last descriptor
                if done.send((number, synced)).is_err() {
                    return;
                }
            }
        };
        thread::Builder::new().name("canter-sync".to_owned()).spawn(run)?;
        Ok(Self { jobs, results, file: 0, busy: false })
    }

    /// Whether the disk has not answered yet.
    pub fn is_busy(&self) -> bool {
        self.busy
    }

    /// Begins to sync. Call it only while the syncer is not busy.
    pub fn begin(&mut self, job: Unsynced) {
        self.busy = self.jobs.send((self.file, job)).is_ok();
    }

    /// The result of a sync of the current file that has ended since the last call.
    pub fn result(&mut self) -> Option<io::Result<()>> {
        let (number, synced) = self.results.try_recv().ok()?;
        self.busy = false;
        (number == self.file).then_some(synced)
    }

    /// Waits until the disk has answered, before the file is closed.
    ///
    /// # Errors
    /// The error of a sync of the current file.
    pub fn settle(&mut self) -> io::Result<()> {
        if !self.busy {
            return Ok(());
        }
        self.busy = false;
        match self.results.recv() {
            Ok((number, synced)) if number == self.file => synced,
            _ => Ok(()),
        }
    }

    /// Another file is the current one from now on.
    pub fn next_file(&mut self) {
        self.file += 1;
    }
}

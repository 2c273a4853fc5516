//! Syncs the file that is being written to the disk, in a thread of its own: a disk that takes seconds for it delays neither
//! the ring nor the writer. What was synced outlives a power cut.

use crate::files::Unsynced;
use canter_io::thread::stand_back;
use std::{
    io,
    sync::mpsc::{self, Receiver, Sender, TryRecvError},
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
        if !self.busy {
            return None;
        }
        let (number, synced) = match self.results.try_recv() {
            Ok(result) => result,
            Err(TryRecvError::Empty) => return None,
            Err(TryRecvError::Disconnected) => (self.file, Err(ended())),
        };
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
            Ok(_) => Ok(()),
            Err(_) => Err(ended()),
        }
    }

    /// Another file is the current one from now on.
    pub fn next_file(&mut self) {
        self.file += 1;
    }
}

/// A thread that has panicked may have taken the disk's error with it, which the kernel does not report again.
fn ended() -> io::Error {
    io::Error::other("the thread that syncs has ended: a fault of canter; files are synced at their end only")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::{Files, Retention};
    use std::time::{Duration, Instant};

    /// A syncer whose thread panics in its first job, with that job begun.
    fn broken() -> Syncer {
        let folder = tempfile::tempdir().unwrap();
        let mut files =
            Files::create(&folder.path().join("a.log"), false, Retention::default(), false).unwrap();
        let mut syncer = Syncer::start(Box::new(|_| panic!("a fault, as planned"))).unwrap();
        syncer.begin(files.unsynced().unwrap());
        assert!(syncer.is_busy());
        syncer
    }

    #[test]
    fn a_thread_that_has_ended_is_an_error_and_no_success() {
        assert!(broken().settle().is_err());

        let mut syncer = broken();
        let deadline = Instant::now() + Duration::from_secs(60);
        let result = loop {
            if let Some(result) = syncer.result() {
                break result;
            }
            assert!(Instant::now() < deadline, "no answer");
            thread::yield_now();
        };
        assert!(result.is_err());
        assert!(syncer.result().is_none() && syncer.settle().is_ok(), "the error is reported once");
    }
}

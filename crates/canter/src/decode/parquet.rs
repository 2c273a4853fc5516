//! A data set of signals: `message=NAME/vehicle=V/date=YYYY-MM-DD/bus=can0/part-STAMP.parquet`, so that all files below a
//! message have the same columns. STAMP is that of the file's first frame in ns.
//!
//! Payloads are collected by message; a full collection is decoded signal by signal and written as a file of its own, by as
//! many threads as there are processors. A file has one row group and is closed at once, so that neither memory nor open
//! files grow with the recording.

mod part;

use super::{
    Arguments,
    output::{Row, Table, Tallies, Tally, output_failure},
    wanted::Wanted,
};
use canter_cli::failure::{self, Failure};
use canter_formats::partition::{Folders, NS_OF_DAY, date, encoded, place};
use canter_signals::{Batch, Message};
use part::Job;
use std::{
    collections::{HashMap, HashSet},
    io,
    num::NonZero,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread::JoinHandle,
};
use tempfile::TempPath;

/// A collection of this size, in bytes, is written.
const PART_BYTES: usize = 8 << 20;
/// All collections together; beyond, the largest is written.
const COLLECTED_BYTES_MAX: usize = 48 << 20;
/// More threads would only wait for the one that reads.
const THREADS_MAX: usize = 8;

/// The data set being written.
pub struct DataSet<'a> {
    folder: PathBuf,
    vehicle: String,
    overwrite: bool,
    wanted: &'a Wanted,
    /// The collection of each message, by bus and by its place in the bus's codebook.
    collections: Vec<Vec<Option<Collection>>>,
    collected: usize,
    /// Messages as threads share them, with the places of the wanted signals.
    messages: HashMap<*const Message, (Arc<Message>, Arc<[usize]>)>,
    paths: HashSet<PathBuf>,
    jobs: Option<SyncSender<Job>>,
    threads: Vec<JoinHandle<()>>,
    done: Arc<Mutex<Done>>,
    folders: Folders,
}

/// What the threads have done.
#[derive(Default)]
struct Done {
    /// Complete files under temporary names, and their paths.
    parts: Vec<(TempPath, PathBuf)>,
    failure: Option<Failure>,
    tallies: Tallies,
}

/// Payloads of a message on a bus on a day.
struct Collection {
    day: u64,
    bus: String,
    message: Arc<Message>,
    places: Arc<[usize]>,
    stamps: Vec<i64>,
    batch: Batch,
}

impl Collection {
    fn bytes(&self) -> usize {
        self.stamps.len() * (size_of::<i64>() + self.batch.bytes_of_row())
    }
}

fn locked(done: &Mutex<Done>) -> MutexGuard<'_, Done> {
    done.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes parts until there are no more jobs.
fn work(jobs: &Mutex<Receiver<Job>>, done: &Mutex<Done>) {
    loop {
        let job = match jobs.lock().unwrap_or_else(PoisonError::into_inner).recv() {
            Ok(job) => job,
            Err(_) => return,
        };
        let (name, written) = (job.message.name.clone(), job.write());
        let mut done = locked(done);
        match written {
            Ok((part, (short, unselected))) => {
                done.parts.push(part);
                if (short, unselected) != (0, 0) {
                    let tally: &mut Tally = done.tallies.entry(name).or_default();
                    tally.short += short;
                    tally.unselected += unselected;
                }
            }
            Err(failure) => drop(done.failure.get_or_insert(failure)),
        }
    }
}

impl<'a> DataSet<'a> {
    pub fn new(arguments: &Arguments, wanted: &'a Wanted) -> failure::Result<Self> {
        let folder = arguments.output.clone();
        let mut folders = Folders::default();
        folders.create(&folder).map_err(|error| output_failure(&folder, error))?;
        let threads = std::thread::available_parallelism().map_or(1, NonZero::get).min(THREADS_MAX);
        let (jobs, queue) = sync_channel(threads);
        let (queue, done) = (Arc::new(Mutex::new(queue)), Arc::default());
        let start = |_| {
            let (queue, done) = (Arc::clone(&queue), Arc::clone(&done));
            std::thread::Builder::new()
                .name("canter-decode".to_owned())
                .spawn(move || work(&queue, &done))
                .map_err(|error| Failure::failed(format!("decode: start a thread: {error}")))
        };
        let threads = (0..threads).map(start).collect::<failure::Result<_>>()?;
        Ok(Self {
            folder,
            vehicle: arguments.vehicle.clone().unwrap_or_else(|| "unknown".to_owned()),
            overwrite: arguments.overwrite,
            wanted,
            collections: Vec::new(),
            collected: 0,
            messages: HashMap::new(),
            paths: HashSet::new(),
            jobs: Some(jobs),
            threads,
            done,
            folders,
        })
    }

    #[cold]
    fn collection(&mut self, row: &Row<'_>) -> Collection {
        let wanted = self.wanted;
        let (message, places) = self
            .messages
            .entry(row.message)
            .or_insert_with(|| (Arc::new(row.message.clone()), wanted.places(row.message).into()));
        Collection {
            day: row.stamp_ns / NS_OF_DAY,
            bus: row.name.to_owned(),
            message: Arc::clone(message),
            places: Arc::clone(places),
            stamps: Vec::new(),
            batch: Batch::new(row.message),
        }
    }

    /// The path of a part. Parts of one drive may begin at the same stamp.
    fn path(&mut self, collection: &Collection) -> failure::Result<PathBuf> {
        let folder = self
            .folder
            .join(format!("message={}", encoded(&collection.message.name)))
            .join(format!("vehicle={}", encoded(&self.vehicle)))
            .join(format!("date={}", date(collection.day)))
            .join(format!("bus={}", encoded(&collection.bus)));
        self.folders.create(&folder).map_err(|error| output_failure(&folder, error))?;
        let stamp = collection.stamps.first().copied().unwrap_or(0);
        let name = |number: u64| match number {
            0 => folder.join(format!("part-{stamp}.parquet")),
            number => folder.join(format!("part-{stamp}-{number}.parquet")),
        };
        let path = (0..).map(name).find(|path| !self.paths.contains(path)).unwrap_or(folder.clone());
        if path.exists() && !self.overwrite {
            let reason = "exists already: this drive is in the data set (--overwrite replaces it)";
            return Err(Failure::failed(format!("{}: write: {reason}", path.display())));
        }
        self.paths.insert(path.clone());
        Ok(path)
    }

    /// Gives a collection to the threads.
    #[cold]
    fn write(&mut self, bus: usize, place: usize) -> failure::Result<()> {
        let Some(collection) = self.collections.get_mut(bus).and_then(|all| all.get_mut(place)?.take())
        else {
            return Ok(());
        };
        self.collected -= collection.bytes();
        let path = self.path(&collection)?;
        let Collection { message, places, stamps, batch, .. } = collection;
        let job = Job { path, message, places, stamps, batch };
        if let Some(failure) = locked(&self.done).failure.take() {
            return Err(failure);
        }
        let is_sent = self.jobs.as_ref().is_some_and(|jobs| jobs.send(job).is_ok());
        match is_sent {
            true => Ok(()),
            false => Err(Failure::failed("decode: the writing threads have ended")),
        }
    }

    /// The place of the largest collection.
    fn largest(&self) -> Option<(usize, usize)> {
        let all = self.collections.iter().enumerate().flat_map(|(bus, places)| {
            places
                .iter()
                .enumerate()
                .filter_map(move |(place, one)| Some((one.as_ref()?.bytes(), (bus, place))))
        });
        all.max().map(|(_, at)| at)
    }

    /// Makes room for the collection of a message.
    #[cold]
    fn add(&mut self, bus: usize, place: usize) {
        if self.collections.len() <= bus {
            self.collections.resize_with(bus + 1, Vec::new);
        }
        let places = &mut self.collections[bus];
        if places.len() <= place {
            places.resize_with(place + 1, || None);
        }
    }
}

impl Table for DataSet<'_> {
    #[inline]
    fn row(&mut self, row: &Row<'_>) -> failure::Result<()> {
        let Ok(stamp) = i64::try_from(row.stamp_ns) else {
            return Err(Failure::failed("decode: a stamp after the year 2262, where the ns of Parquet end"));
        };
        let (bus, place) = (row.bus, row.place);
        if self.collections.get(bus).is_none_or(|places| places.len() <= place) {
            self.add(bus, place);
        }
        let day = row.stamp_ns / NS_OF_DAY;
        if self.collections[bus][place].as_ref().is_some_and(|collection| collection.day != day) {
            self.write(bus, place)?;
        }
        if self.collections[bus][place].is_none() {
            self.collections[bus][place] = Some(self.collection(row));
        }
        let Some(collection) = &mut self.collections[bus][place] else { return Ok(()) };
        collection.stamps.push(stamp);
        collection.batch.push(row.payload);
        self.collected += size_of::<i64>() + collection.batch.bytes_of_row();
        if collection.bytes() >= PART_BYTES {
            return self.write(bus, place);
        }
        match self.largest_if_full() {
            Some((bus, place)) => self.write(bus, place),
            None => Ok(()),
        }
    }

    fn finish(mut self: Box<Self>) -> failure::Result<Tallies> {
        for bus in 0..self.collections.len() {
            for place in 0..self.collections[bus].len() {
                self.write(bus, place)?;
            }
        }
        drop(self.jobs.take());
        for thread in self.threads.drain(..) {
            thread.join().map_err(|_| Failure::failed("decode: a writing thread has ended"))?;
        }
        let done = std::mem::take(&mut *locked(&self.done));
        if let Some(failure) = done.failure {
            return Err(failure);
        }
        place(done.parts, self.overwrite).map_err(|(path, error)| output_failure(&path, error))?;
        std::mem::take(&mut self.folders).keep();
        Ok(done.tallies)
    }
}

impl Drop for DataSet<'_> {
    /// Waits for the threads, whose temporary files would keep the folders of a data set that could not be written.
    fn drop(&mut self) {
        drop(self.jobs.take());
        for thread in self.threads.drain(..) {
            let _ = thread.join(); // one that has panicked writes no more
        }
        locked(&self.done).parts.clear();
    }
}

impl DataSet<'_> {
    #[inline]
    fn largest_if_full(&self) -> Option<(usize, usize)> {
        if self.collected < COLLECTED_BYTES_MAX { None } else { self.largest() }
    }
}

/// An error of the Parquet writer.
pub(super) fn parquet_failure(path: &Path, error: parquet::errors::ParquetError) -> Failure {
    let error = match error {
        parquet::errors::ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    };
    output_failure(path, error)
}

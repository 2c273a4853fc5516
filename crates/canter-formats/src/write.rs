//! Writes frames as any of the formats that convert knows. Two kinds: those that only grow (log, pcapng, ASC, CSV),
//! and those that are finished at the end (BLF, MDF, Parquet).

mod asc;
mod blf;
mod channels;
mod csv;
mod mdf;
pub mod output;
mod parquet;
mod recorded;

use canter_frame::{BusId, Record};
pub use csv::HEAD as CSV_HEAD;
use output::Output;
use std::{
    io,
    path::{Path, PathBuf},
};

/// A format to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// What `candump -l` writes
    Log,
    /// What Wireshark reads
    Pcapng,
    /// Vector's text log
    Asc,
    /// Vector's packed log
    Blf,
    /// ASAM MDF4, bus logging
    Mf4,
    /// A line a frame, with a head of column names
    Csv,
    /// A data set: a folder of Parquet files by vehicle, date and bus
    Parquet,
}

impl Target {
    /// Every one.
    pub const ALL: [Self; 7] =
        [Self::Log, Self::Pcapng, Self::Asc, Self::Blf, Self::Mf4, Self::Csv, Self::Parquet];

    /// What it is, in a sentence.
    pub fn about(self) -> &'static str {
        match self {
            Self::Log => "What `candump -l` writes",
            Self::Pcapng => "What Wireshark reads",
            Self::Asc => "Vector's text log",
            Self::Blf => "Vector's packed log",
            Self::Mf4 => "ASAM MDF4, bus logging",
            Self::Csv => "A line a frame, with a head of column names",
            Self::Parquet => "A data set: a folder of Parquet files by vehicle, date and bus",
        }
    }

    /// By a file's extension, in front of `.zst`.
    pub fn of(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        let (_, extension) = name.strip_suffix(".zst").unwrap_or(&name).rsplit_once('.')?;
        match extension {
            "log" => Some(Self::Log),
            "pcapng" => Some(Self::Pcapng),
            "asc" => Some(Self::Asc),
            "blf" => Some(Self::Blf),
            "mf4" => Some(Self::Mf4),
            "csv" => Some(Self::Csv),
            "parquet" => Some(Self::Parquet),
            _ => None,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Pcapng => "pcapng",
            Self::Asc => "asc",
            Self::Blf => "blf",
            Self::Mf4 => "mf4",
            Self::Csv => "csv",
            Self::Parquet => "parquet",
        }
    }

    /// Whether it is written from beginning to end, so that it can be packed or go into a pipe.
    pub fn only_grows(self) -> bool {
        matches!(self, Self::Log | Self::Pcapng | Self::Asc | Self::Csv)
    }
}

/// What a format could not keep of the frames, and of how many.
#[derive(Clone, Debug, Default)]
pub struct NotKept(Vec<(&'static str, u64)>);

impl NotKept {
    pub fn count(&mut self, what: &'static str) {
        match self.0.iter_mut().find(|(known, _)| *known == what) {
            Some((_, count)) => *count += 1,
            None => self.0.push((what, 1)),
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.0.iter().copied()
    }
}

/// Digits of a stamp that a format cuts off.
const NS_CUT: &str = "digits of the stamp below 1 µs (--ns keeps them)";
/// A log's direction, which many readers of logs do not understand.
const DIRECTION: &str = "the direction (--direction keeps it)";
/// Formats that know received and sent only.
const DIRECTION_UNKNOWN: &str = "that the direction is not known (written as received)";
/// Stamps before the file's beginning.
const BEFORE_START: &str = "stamps before that of the first frame (written as the first)";

/// What was written.
#[derive(Clone, Debug, Default)]
pub struct Written {
    pub bytes: u64,
    pub files: u64,
    pub not_kept: NotKept,
}

/// Takes frames; an entry's `interface` is the place of its interface in the order of [`interface`](Self::interface)
/// calls.
pub trait Sink {
    /// The next interface.
    fn interface(&mut self, name: &str) -> io::Result<()>;
    /// The next frame.
    fn frame(&mut self, entry: &Record) -> io::Result<()>;
    /// The channel that stands for an interface, in formats that have numbers.
    fn channel(&self, bus: BusId) -> Option<u32>;
    /// Finishes it and puts it in its place.
    fn finish(self: Box<Self>) -> io::Result<Written>;
}

/// How something is written.
pub struct Options {
    pub target: Target,
    pub path: PathBuf,
    /// Stamps of 9 digits in text formats.
    pub ns: bool,
    /// In a log, the direction behind each frame that has one.
    pub direction: bool,
    pub overwrite: bool,
    /// The data set's partition.
    pub vehicle: Option<String>,
}

/// Opens what is to be written; nothing is in its place before it is finished.
pub fn open(options: &Options) -> io::Result<Box<dyn Sink>> {
    if options.target == Target::Parquet {
        return Ok(Box::new(parquet::DataSet::new(options)?));
    }
    let output = Output::create(&options.path, options.overwrite)?;
    Ok(match options.target {
        Target::Log | Target::Pcapng => Box::new(recorded::Recorded::new(output, options)?),
        Target::Asc => Box::new(asc::Asc::new(output, options.ns)),
        Target::Blf => Box::new(blf::Blf::new(output)?),
        Target::Mf4 => Box::new(mdf::Mdf::new(output)?),
        Target::Csv | Target::Parquet => Box::new(csv::Csv::new(output)?),
    })
}

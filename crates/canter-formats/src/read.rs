//! Reads recordings, frame by frame, in bounded memory: `open`, then `next` until `None`.
//!
//! The format is told by what the file holds, not by its name; `.zst` and `.gz` are unpacked on the way. Nothing in a
//! file can make this panic. What is no frame is counted by kind ([`Reader::skipped`]). A file that was cut off
//! yields all that is whole, and then [`Reader::cut`] says where it ends; anything else wrong is an error that names
//! file, line or byte.
//!
//! ```ignore
//! let mut recording = formats::read::open(Path::new("drive.pcapng.zst"))?;
//! while let Some(entry) = recording.next()? {
//!     println!("{} {} {}", entry.stamp_ns, recording.name(entry.bus), entry.frame);
//! }
//! ```

mod asc;
pub mod blf;
mod candump_log;
mod csv;
mod linktype;
mod mdf;
mod names;
mod parquet;
mod pcap;
mod pcapng;
mod source;

use crate::{Error, Result};
pub use asc::{BUS_ERROR, CHANNEL_NOTE};
use canter_frame::{BusId, Record};
use names::Names;
use source::Source;
use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

/// The formats that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Log,
    Pcap,
    Pcapng,
    Asc,
    Blf,
    Mf4,
    Csv,
    Parquet,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Pcap => "pcap",
            Self::Pcapng => "pcapng",
            Self::Asc => "asc",
            Self::Blf => "blf",
            Self::Mf4 => "mf4",
            Self::Csv => "csv",
            Self::Parquet => "parquet",
        }
    }
}

/// Why there is no next frame.
enum Trouble {
    /// The file ends inside of something.
    Cut,
    /// It is not what the format demands: what, and the way out.
    Wrong(String),
    /// The file system's, or the unpacker's, answer.
    Io(io::Error),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        // So the unpackers say it.
        if error.kind() == io::ErrorKind::UnexpectedEof { Self::Cut } else { Self::Io(error) }
    }
}

fn wrong<T>(what: impl Into<String>) -> std::result::Result<T, Trouble> {
    Err(Trouble::Wrong(what.into()))
}

/// What a format's decoder shares with the reader.
#[derive(Default)]
struct Context {
    names: Names,
    skipped: Skipped,
    lost: u64,
}

/// A format: takes bytes off the source until a frame is whole. `Ok(false)` at the end.
trait Decode: Send {
    fn next(
        &mut self,
        source: &mut Source,
        context: &mut Context,
        entry: &mut Record,
    ) -> std::result::Result<bool, Trouble>;

    /// Where in the file it is, for people.
    fn place(&self, source: &Source) -> String {
        format!("byte {}", source.offset())
    }
}

/// Entries that are no classic or FD frames, by what they are.
#[derive(Clone, Debug, Default)]
pub struct Skipped(Vec<(&'static str, u64)>);

impl Skipped {
    fn count(&mut self, what: &'static str) {
        match self.0.iter_mut().find(|(known, _)| *known == what) {
            Some((_, count)) => *count += 1,
            None => self.0.push((what, 1)),
        }
    }

    /// How many of each kind.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.0.iter().copied()
    }
}

/// A recording being read.
pub struct Reader {
    path: String,
    kind: Kind,
    size: u64,
    source: Source,
    decoder: Box<dyn Decode>,
    context: Context,
    entry: Record,
    frames: u64,
    cut: Option<String>,
    ended: bool,
}

/// Opens a recording; `-` is the standard input, a folder a data set.
///
/// # Errors
/// When it cannot be opened, or is in no known format.
pub fn open(path: &Path) -> Result<Reader> {
    let name = path.display().to_string();
    let failed = |step, error| Error::io(path, step, error);
    if path.as_os_str() == "-" {
        return from(&name, Box::new(io::stdin()));
    }
    if path.is_dir() {
        return data_set(path);
    }
    let file = File::open(path).map_err(|error| failed("open", error))?;
    let size = file.metadata().map_or(0, |about| about.len());
    let source = Source::of_file(file).map_err(|error| failed("read", error))?;
    Ok(Reader { size, ..told(&name, path, source)? })
}

/// Reads a recording from anything; `name` is what errors call it.
///
/// # Errors
/// When it cannot be read, or is in no known format.
pub fn from(name: &str, input: Box<dyn Read + Send>) -> Result<Reader> {
    let path = Path::new(name);
    let source = Source::unpacking(input).map_err(|error| Error::io(path, "read", error))?;
    told(name, path, source)
}

/// A folder of Parquet files.
fn data_set(path: &Path) -> Result<Reader> {
    let name = path.display().to_string();
    let wrong = |what: &str| Err(Error::Unknown { thing: name.clone(), reason: format!("open: {what}") });
    let failed = |error| Error::io(path, "open", error);
    match parquet::Parquet::folder(path).map_err(failed)? {
        None => wrong("is a folder without Parquet files (give its recordings by name)"),
        Some(Err(what)) => wrong(&what),
        Some(Ok(set)) => {
            let source = Source::unpacking(Box::new(io::empty())).map_err(failed)?;
            let size = set.bytes();
            Ok(Reader { size, ..Reader::new(&name, Kind::Parquet, source, Box::new(set)) })
        }
    }
}

/// The reader of what the source begins with.
fn told(name: &str, path: &Path, mut source: Source) -> Result<Reader> {
    let head = match source.want(source::SNIFF_BYTES) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => source.buffered(),
        head => head.map_err(|error| Error::io(path, "read", error))?,
    };
    let Some((kind, decoder)) = sniff(head, path) else {
        let formats = "candump .log, pcap, pcapng, Vector .asc or .blf, MDF4, canter's .csv and .parquet";
        let reason = format!("read: no recording that canter reads ({formats}, each also as .zst or .gz)");
        return Err(Error::Unknown { thing: name.to_owned(), reason });
    };
    Ok(Reader::new(name, kind, source, decoder))
}

/// The format of a file that begins like this. An empty file is an empty log.
fn sniff(head: &[u8], path: &Path) -> Option<(Kind, Box<dyn Decode>)> {
    match head {
        [0x0a, 0x0d, 0x0d, 0x0a, ..] => Some((Kind::Pcapng, Box::new(pcapng::Pcapng::default()))),
        [b'L', b'O', b'G', b'G', ..] => Some((Kind::Blf, Box::new(blf::Blf::default()))),
        _ if pcap::is_magic(head) => Some((Kind::Pcap, Box::new(pcap::Pcap::default()))),
        _ if mdf::looks_like(head) => Some((Kind::Mf4, Box::new(mdf::Mdf::default()))),
        _ if parquet::looks_like(head) => Some((Kind::Parquet, Box::new(parquet::Parquet::file(path)))),
        _ if csv::looks_like(head) => Some((Kind::Csv, Box::new(csv::Csv::default()))),
        _ if asc::looks_like(head) => Some((Kind::Asc, Box::new(asc::Asc::default()))),
        _ if candump_log::looks_like(head) => Some((Kind::Log, Box::new(candump_log::CandumpLog::default()))),
        _ => None,
    }
}

impl Reader {
    fn new(name: &str, kind: Kind, source: Source, decoder: Box<dyn Decode>) -> Self {
        Self {
            path: name.to_owned(),
            kind,
            size: 0,
            source,
            decoder,
            context: Context::default(),
            entry: Record::default(),
            frames: 0,
            cut: None,
            ended: false,
        }
    }

    /// The next frame, or `None` behind the last whole one.
    ///
    /// # Errors
    /// What is wrong with the file and where: it cannot be read any further.
    pub fn next(&mut self) -> Result<Option<Record>> {
        if self.ended {
            return Ok(None);
        }
        match self.decoder.next(&mut self.source, &mut self.context, &mut self.entry) {
            Ok(true) => {
                self.frames += 1;
                return Ok(Some(self.entry));
            }
            Ok(false) => self.ended = true,
            Err(trouble) => {
                self.ended = true;
                self.explain(trouble)?;
            }
        }
        Ok(None)
    }

    fn explain(&mut self, trouble: Trouble) -> Result<()> {
        let (path, place) = (&self.path, self.decoder.place(&self.source));
        match trouble {
            Trouble::Cut => self.cut = Some(format!("{path}: {place}: cut off after {} frames", self.frames)),
            Trouble::Wrong(what) => {
                return Err(Error::Malformed { thing: path.clone(), place, reason: what });
            }
            Trouble::Io(error) => {
                let step = if self.source.is_packed() { "unpack" } else { "read" };
                return Err(Error::io(Path::new(&format!("{path}: {place}")), step, error));
            }
        }
        Ok(())
    }

    /// What the file calls itself.
    pub fn path(&self) -> &str {
        &self.path
    }

    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The interfaces met so far, in the order of their numbers.
    pub fn names(&self) -> &[String] {
        self.context.names.list()
    }

    /// The name of an entry's interface.
    pub fn name(&self, bus: BusId) -> &str {
        self.names().get(bus.index()).map_or("?", String::as_str)
    }

    /// Frames read so far.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Bytes of the file, packed as it is; 0 when nobody knows.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Bytes of the file taken so far, packed as they are.
    pub fn bytes(&self) -> u64 {
        self.source.packed_bytes()
    }

    /// Entries that were passed over.
    pub fn skipped(&self) -> &Skipped {
        &self.context.skipped
    }

    /// Frames that the recording itself says it has lost (candump's DROPCOUNT lines, pcapng's interface statistics).
    pub fn lost(&self) -> u64 {
        self.context.lost
    }

    /// Where it was cut off, when it was; told behind the last frame.
    pub fn cut(&self) -> Option<&str> {
        self.cut.as_deref()
    }
}

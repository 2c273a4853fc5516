//! THE SEAM: what a format of recordings is. A format is one row, [`Format`]: how it is called and recognised, its
//! decoder ([`Decode`]), its encoder ([`Sink`]), and, if it can be recorded live, its [`Append`].
//!
//! To add a format, implement these traits, write a row, and add the row to the table in `table.rs`; another program
//! passes the table plus its own row to [`Reader::open`](crate::Reader::open). `whole_line` answers [`Trouble::Cut`] for a
//! last line without line break. [`Trouble::Wrong`] says the rule, and where there is one the remedy in parentheses. What
//! follows is the smallest; beside it, in this crate:
//! - The row is a `pub(crate) const ROW` in a file or folder of the format's own, with its `mod` in `lib.rs`, where the first
//!   page has a table of rows (so `about` has no `|`). `csv.rs` is the model of text that is written too, `lines.rs` is for
//!   text that is read only. There are `cursor` (stamps and numbers), `hex`, `fields` (columns of a frame) and canter-frame's
//!   `notation`, candump's frames: a natural way to hold all of them. What a format does not keep: `format/keeps.rs`.
//! - Help, completions, refusals and the tests of texts follow the row. By hand: a small intact file
//!   `fuzz/corpus/NAME/seed.EXT`, docs/formats.md and CHANGELOG.md; if it can be recorded live, the extensions in
//!   `canter capture --help`; if it is written, the lists in the test of `canter/src/format_names.rs`; of a binary format,
//!   where a cut shows (`src/tests.rs`) and what changed bytes and lengths do (`src/tests/changes.rs`, `lengths.rs`); of text
//!   that is only read, a case in `src/tests/of_other_programs.rs`.
//! - `cargo test -p canter-formats` and `make test ONLY=formats_page,manual,mistakes,inputs,canter::unit` fail for what is
//!   missing, but for CHANGELOG.md, docs/formats.md outside of its first two tables, and the sentences that list formats:
//!   README.md, the crate's and its `description`, the first of `lib.rs`, an example in `canter/src/convert.rs`.
//! - What every row promises: its beginning is recognised within [`SNIFF_BYTES`], and a format that is written holds remote,
//!   FD and error frames, and stamps of 9 digits with `--ns` where it says `Stamps::Us`.
//!
//! ```
//! use canter_formats::{FORMATS, Format, Reader, Record, WriteOptions, Writer, format::*};
//! use std::io;
//!
//! /// `semi 1`, then one frame per line: `1700000000000000000;can0;123#11`.
//! static SEMI: Format = Format {
//!     name: "semi",
//!     title: "semi",
//!     about: "Stamp, bus and frame between semicolons",
//!     extensions: &["semi"],
//!     recognise: Some(|head| head.starts_with(b"semi 1\n")),
//!     read: Some(|_path| Box::new(Decoder { line: 0 })),
//!     write: Some(Write::File(|output, _options| Ok(Box::new(Encoder::new(output))))),
//!     grows: true,
//!     keeps: Some(Keeps { direction: Directions::None, ..Keeps::ALL }),
//!     holds_name: |name| !name.is_empty() && !name.contains(|c: char| c == ';' || c.is_control()),
//!     ..Format::PLAIN
//! };
//!
//! struct Decoder {
//!     line: u64,
//! }
//!
//! impl Decode for Decoder {
//!     fn next(&mut self, source: &mut Source, context: &mut Context, entry: &mut Record) -> Result<bool, Trouble> {
//!         while let Some(length) = source.whole_line(&mut self.line)? {
//!             let line = String::from_utf8_lossy(&source.buffered()[..length]).into_owned();
//!             if self.line == 1 {
//!                 source.consume(length + 1); // the head, and its line break
//!                 continue;
//!             }
//!             let [stamp, bus, frame] = line.split(';').collect::<Vec<_>>()[..] else {
//!                 return Err(Trouble::Wrong("not STAMP;BUS;FRAME (delete the line to read the rest)".to_owned()));
//!             };
//!             let stamp_ns = stamp.parse().map_err(|_| Trouble::Wrong(format!("{stamp}: not a stamp")))?;
//!             let frame = frame.parse().map_err(|error| Trouble::Wrong(format!("{frame}: {error}")))?;
//!             let bus = context.names.number(bus)?;
//!             *entry = Record { stamp_ns, bus, frame, direction: None };
//!             source.consume(length + 1);
//!             return Ok(true);
//!         }
//!         Ok(false)
//!     }
//!
//!     fn place(&self, _source: &Source) -> String {
//!         format!("line {}", self.line)
//!     }
//!
//!     /// Behind a damaged line, `--salvage` reads on with the next one.
//!     fn resume(&mut self, source: &mut Source) -> io::Result<bool> {
//!         source.skip_line().map(|()| true)
//!     }
//! }
//!
//! struct Encoder {
//!     output: Output,
//!     names: Vec<String>,
//!     not_kept: NotKept,
//! }
//!
//! impl Encoder {
//!     fn new(mut output: Output) -> Self {
//!         output.buffer().extend_from_slice(b"semi 1\n");
//!         Self { output, names: Vec::new(), not_kept: NotKept::default() }
//!     }
//! }
//!
//! impl Sink for Encoder {
//!     fn interface(&mut self, name: &str) -> io::Result<()> {
//!         self.names.push(name.to_owned());
//!         Ok(())
//!     }
//!
//!     fn frame(&mut self, entry: &Record) -> io::Result<()> {
//!         if entry.direction.is_some() {
//!             self.not_kept.count(Detail::Other("the direction"));
//!         }
//!         let bus = &self.names[entry.bus.index()];
//!         let line = format!("{};{bus};{}\n", entry.stamp_ns, entry.frame);
//!         self.output.buffer().extend_from_slice(line.as_bytes());
//!         self.output.ready()
//!     }
//!
//!     fn finish(self: Box<Self>) -> io::Result<Written> {
//!         Ok(Written { bytes: self.output.finish()?, files: 1, not_kept: self.not_kept })
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("drive.semi");
//! let mut writer = Writer::open(&WriteOptions::new(&SEMI, &path))?;
//! let bus = writer.interface("can0")?;
//! writer.frame(&Record { stamp_ns: 17, bus, frame: "123#11".parse()?, direction: None })?;
//! writer.finish()?;
//!
//! let formats = [FORMATS, &[SEMI]].concat();
//! let mut reader = Reader::open(&path, &formats)?;
//! assert_eq!(reader.next_record()?.ok_or("a frame")?.frame.to_string(), "123#11");
//! # Ok(())
//! # }
//! ```

mod keeps;

pub use keeps::{BusLabel, Directions, ErrorFrames, Keeps, Stamps};

pub use crate::{
    names::Names,
    output::Output,
    source::{LINE_BYTES_MAX, Line, SNIFF_BYTES, Source, Whole},
    trouble::Trouble,
    zone::Zone,
};
use canter_frame::{BusId, ControllerStamp, RawRecord, Record};
use std::{
    fmt, io,
    path::{Path, PathBuf},
};

/// Whether a file with this beginning is in the format. Gets [`SNIFF_BYTES`] unless the file is shorter.
pub type Recognise = fn(&[u8]) -> bool;
/// Makes a decoder for the file at a path. The path is for names only: the bytes come from the [`Source`].
pub type OpenFile = fn(&Path) -> Box<dyn Decode>;
/// Makes a decoder for a folder; `None` if this folder is not a recording of the format.
pub type OpenFolder = fn(&Path) -> Result<Option<Folder>, Trouble>;
/// Makes an encoder that appends to an output.
pub type EncodeFile = fn(Output, &WriteOptions) -> io::Result<Box<dyn Sink>>;
/// Makes an encoder that creates a folder of files.
pub type EncodeFolder = fn(&WriteOptions) -> io::Result<Box<dyn Sink>>;
/// Makes an appender; with `true`, text stamps have 9 digits.
pub type MakeAppend = fn(ns: bool) -> Box<dyn Append>;

/// A format of recordings: a row of the table. [`Format::PLAIN`] fills the columns that do not apply.
#[derive(Clone, Copy)]
pub struct Format {
    /// The format's name in command lines and results: `pcapng`.
    pub name: &'static str,
    /// The format's name in sentences: `candump log`.
    pub title: &'static str,
    /// What it is, in a sentence without a full stop.
    pub about: &'static str,
    /// The extensions of its files, without the dot and in lower case; the usual one first.
    pub extensions: &'static [&'static str],
    /// How it is recognised, if it can be read.
    pub recognise: Option<Recognise>,
    /// The decoder, if the format can be read.
    pub read: Option<OpenFile>,
    /// The decoder for folders, if a folder can be a recording of this format.
    pub read_folder: Option<OpenFolder>,
    /// The encoder, if the format can be written.
    pub write: Option<Write>,
    /// The appender, if the format can be recorded live.
    pub append: Option<MakeAppend>,
    /// Whether it is written from beginning to end, so that it can be compressed or go into a pipe.
    pub grows: bool,
    /// What it keeps of a frame; `None` if it is only read.
    pub keeps: Option<Keeps>,
    /// Whether it can write an interface of this name so that it reads back; else the name is refused.
    pub holds_name: fn(&str) -> bool,
}

impl Format {
    /// A format that can neither be read nor written: the base of other rows.
    pub const PLAIN: Self = Self {
        name: "",
        title: "",
        about: "",
        extensions: &[],
        recognise: None,
        read: None,
        read_folder: None,
        write: None,
        append: None,
        grows: false,
        keeps: None,
        holds_name: |name| !name.is_empty() && !name.contains(char::is_control),
    };

    /// Whether a recording of this format is a folder of files.
    pub fn writes_folder(&self) -> bool {
        matches!(self.write, Some(Write::Folder(_)))
    }
}

impl fmt::Debug for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Format").field("name", &self.name).finish_non_exhaustive()
    }
}

/// How a format makes its encoder.
#[derive(Clone, Copy)]
pub enum Write {
    /// A file or a stream: the encoder appends to the output.
    File(EncodeFile),
    /// A folder of files, which the encoder creates itself.
    Folder(EncodeFolder),
}

/// A folder that is a recording.
pub struct Folder {
    /// The decoder of the folder; the source that it gets is empty.
    pub decoder: Box<dyn Decode>,
    /// Bytes of all files in it.
    pub bytes: u64,
}

/// A decoder: consumes bytes of the source until a frame is complete.
pub trait Decode: Send {
    /// Puts the next frame into `entry`; `Ok(false)` at the end. `entry` still holds the previous frame: set every field.
    /// Consumes what it has read whole: damage still stands first in the source.
    ///
    /// # Errors
    /// Why there is no next frame, although the file has not ended properly.
    fn next(
        &mut self,
        source: &mut Source,
        context: &mut Context,
        entry: &mut Record,
    ) -> Result<bool, Trouble>;

    /// Where in the file the decoder is, for people: `line 12`. Without it, errors name the next byte: `byte 4711`.
    fn place(&self, source: &Source) -> String {
        format!("byte {}", source.offset())
    }

    /// When damage is skipped ([`Reader::salvage`](crate::Reader::salvage)): called after an error of [`next`](Self::next);
    /// moves behind the damage, which still stands first in the source, and answers whether frames may follow. Only a place
    /// that cannot be taken for another one counts, such as the beginning of a line: no frame may come out of bytes that were
    /// not one. Without it, the rest of the file is skipped.
    ///
    /// # Errors
    /// What the operating system, or the decompressor, reports.
    fn resume(&mut self, _source: &mut Source) -> io::Result<bool> {
        Ok(false)
    }
}

/// What a decoder shares with its reader.
#[derive(Debug, Default)]
pub struct Context {
    /// The buses found so far.
    pub names: Names,
    /// Entries that are not frames.
    pub skipped: Skipped,
    /// Frames whose fields contradict each other.
    pub flawed: Flawed,
    /// Frames that the recording reports as lost.
    pub lost: u64,
    /// Events that the recording reports beside its frames.
    pub events: Events,
    /// The controller's stamp of the frame that was read last, if the recording has one.
    pub controller: Option<ControllerStamp>,
    /// Whether the reader skips damage. A decoder then trusts less: what an undamaged file has right is checked.
    pub salvage: bool,
    /// The zone of dates without one.
    pub zone: Zone,
    /// Whether stamps count from a date without a zone.
    pub zone_used: bool,
}

/// An event that a recording reports: what triggered it, or that the clock was set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The stamp of the frame at which it is reported, in ns.
    pub stamp_ns: u64,
    /// The event, in the words of its recorder.
    pub what: String,
}

/// Events that a recording reports: the first thousand.
#[derive(Clone, Debug, Default)]
pub struct Events {
    list: Vec<Event>,
    left_out: u64,
}

impl Events {
    /// How many events are kept, and how many characters of each.
    const MAX: usize = 1000;
    const LENGTH_MAX: usize = 300;

    /// Takes a comment of a frame, if it reports an event as `canter capture` does. The same event may be reported by the first
    /// frame of its window and by the frame that caused it: the later one counts.
    pub fn note(&mut self, stamp_ns: u64, comment: &[u8]) {
        let text = comment.strip_prefix(b"window of ").unwrap_or(comment);
        if !text.starts_with(b"event ") && !text.starts_with(b"the clock was set ") {
            return;
        }
        let what: String = String::from_utf8_lossy(text).chars().take(Self::LENGTH_MAX).collect();
        let is_full = self.list.len() >= Self::MAX;
        match self.list.last_mut() {
            Some(last) if last.what == what => last.stamp_ns = stamp_ns,
            _ if is_full => self.left_out += 1,
            _ => self.list.push(Event { stamp_ns, what }),
        }
    }

    /// The events, in the order of the file.
    pub fn list(&self) -> &[Event] {
        &self.list
    }

    /// How many more there were.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }
}

/// Entries that are not classic or FD frames, by kind.
#[derive(Clone, Debug, Default)]
pub struct Skipped(Vec<(&'static str, u64)>);

impl Skipped {
    /// Counts one of this kind; the kind is a noun in plural: `CAN XL frames`.
    pub fn count(&mut self, kind: &'static str) {
        count(&mut self.0, kind);
    }

    /// How many of each kind.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.0.iter().copied()
    }
}

/// Frames whose fields contradict each other, by kind: nobody can tell whether such a frame is whole.
#[derive(Clone, Debug, Default)]
pub struct Flawed(Vec<(&'static str, u64)>);

impl Flawed {
    /// The DLC and the number of data bytes belong to frames of different lengths.
    pub const LENGTH: &'static str = "frames whose DLC and length differ";
    /// The file has fewer bytes of data than the frame had.
    pub const DATA: &'static str = "frames with less data than their length (missing bytes are read as 00)";
    /// A wide identifier in a frame with a standard identifier.
    pub const IDENTIFIER: &'static str = "frames with a standard identifier above 7FF (read as extended)";
    /// Behind a header of unusual length, fields may be in other places.
    pub const HEADER: &'static str = "frames behind a header of an unusual length";
    /// An object has more bytes than a frame and its header take.
    pub const OBJECT: &'static str = "frames in an object of an unusual length (the rest of it is not read)";
    /// There are no remote FD frames.
    pub const REMOTE_FD: &'static str = "remote frames marked as FD (read as data frames)";

    /// The logger wrote a value and marked it as invalid.
    pub const INVALID: &'static str = "frames with a value that their logger marked as invalid";

    /// The header's date is none, such as the 32nd of a month.
    pub const DATE: &'static str = "frames behind a header with an impossible date (read as since 1970)";

    /// A program that was killed has not written how large the file is and how many objects it has, so a cut shows nowhere.
    pub const UNCLOSED: &'static str =
        "frames that the header does not count (not closed: later ones may be missing)";

    /// A logger that was stopped has not written how many there are.
    pub const BEHIND: &'static str = "records behind the number that their group states (not read)";

    /// Counts a frame of this kind; the kind is a noun in plural, and says how the frame is read.
    pub fn count(&mut self, kind: &'static str) {
        count(&mut self.0, kind);
    }

    /// How many of each kind.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.0.iter().copied()
    }
}

/// How a recording is written. [`WriteOptions::new`] sets defaults; change the fields that differ.
#[derive(Clone, Debug)]
pub struct WriteOptions {
    /// The format.
    pub format: &'static Format,
    /// The file, or the folder; `-` is the standard output. `.zst` at the end compresses.
    pub path: PathBuf,
    /// Write text stamps with 9 digits after the decimal point instead of 6.
    pub ns: bool,
    /// In a candump log, write the direction of each frame that has one.
    pub direction: bool,
    /// Replace a file that exists.
    pub overwrite: bool,
    /// The vehicle: the first partition of a data set.
    pub vehicle: Option<String>,
}

impl WriteOptions {
    /// Writes this format to this path, without options.
    pub fn new(format: &'static Format, path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self { format, path, ns: false, direction: false, overwrite: false, vehicle: None }
    }
}

/// An encoder: takes frames. A record's `bus` counts the calls of [`interface`](Self::interface), from 0.
pub trait Sink {
    /// Adds the next interface.
    ///
    /// # Errors
    /// What the operating system reports.
    fn interface(&mut self, name: &str) -> io::Result<()>;
    /// Adds the next frame.
    ///
    /// # Errors
    /// What the operating system reports.
    fn frame(&mut self, entry: &Record) -> io::Result<()>;
    /// The channel number of a bus, in formats that number buses.
    fn channel(&self, _bus: BusId) -> Option<u32> {
        None
    }
    /// Ends the recording and gives it its name.
    ///
    /// # Errors
    /// What the operating system reports.
    fn finish(self: Box<Self>) -> io::Result<Written>;
}

/// What was written.
#[derive(Clone, Debug, Default)]
pub struct Written {
    /// Bytes of all files, compressed if they are.
    pub bytes: u64,
    /// How many files.
    pub files: u64,
    /// What the format could not keep.
    pub not_kept: NotKept,
}

/// A detail that a format cannot keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Detail {
    /// Digits of the stamp below 1 µs; [`WriteOptions::ns`] keeps them.
    SubMicrosecond,
    /// The direction; [`WriteOptions::direction`] keeps it.
    Direction,
    /// The fact that the direction is not known.
    DirectionUnknown,
    /// Stamps before that of the first frame.
    BeforeStart,
    /// What an error frame reports.
    ErrorFrame,
    /// The DLC of a classic frame above 8.
    DlcAbove8,
    /// Another detail: a noun, and in parentheses the value that is written instead.
    Other(&'static str),
}

impl fmt::Display for Detail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SubMicrosecond => "digits of the stamp below 1 µs",
            Self::Direction => "the direction",
            Self::DirectionUnknown => "that the direction is not known (written as received)",
            Self::BeforeStart => "stamps before that of the first frame (written as the first)",
            Self::ErrorFrame => "what error frames report (written as ErrorFrame)",
            Self::DlcAbove8 => "DLCs above 8 of classic frames (written as 8)",
            Self::Other(text) => text,
        })
    }
}

/// Details that a format could not keep, with the number of frames that lost each.
#[derive(Clone, Debug, Default)]
pub struct NotKept(Vec<(Detail, u64)>);

impl NotKept {
    /// Counts a frame that loses this detail.
    pub fn count(&mut self, detail: Detail) {
        count(&mut self.0, detail);
    }

    /// Each lost detail, with the number of frames that lost it.
    pub fn iter(&self) -> impl Iterator<Item = (Detail, u64)> + '_ {
        self.0.iter().copied()
    }
}

fn count<T: PartialEq>(counts: &mut Vec<(T, u64)>, kind: T) {
    match counts.iter_mut().find(|(known, _)| *known == kind) {
        Some((_, count)) => *count += 1,
        None => counts.push((kind, 1)),
    }
}

/// The statistics of an interface at the end of a live recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Closing {
    /// When it began, in ns of the real-time clock.
    pub started_ns: u64,
    /// When it ended, in ns of the real-time clock.
    pub ended_ns: u64,
    /// Frames that the interface has counted as received; `None` if it was removed.
    pub received: Option<u64>,
    /// Frames that the interface or its driver has dropped; `None` before the end.
    pub lost: Option<u64>,
    /// Frames that were lost between the interface and the file: in the ring, in memory, on the disk, or at an unknown
    /// place; `None` before the end.
    pub lost_by_system: Option<u64>,
}

/// Appends entries of a live recording to a buffer. The file is valid up to its last complete entry, no matter where it
/// is cut off: a crash or a full disk loses only entries not written yet. A record's `bus` counts the calls of
/// [`interface`](Self::interface), from 0.
pub trait Append: Send {
    /// Appends the file's header.
    fn begin(&mut self, out: &mut Vec<u8>);
    /// Appends a new interface.
    fn interface(&mut self, out: &mut Vec<u8>, name: &str);
    /// Appends a frame; `late`: it follows younger frames.
    fn frame(&mut self, out: &mut Vec<u8>, record: &RawRecord<'_>, late: bool);
    /// Keeps a comment for the next frame, if the format has a place for comments.
    fn remark(&mut self, _text: &str) {}
    /// Appends the statistics of each interface, and the verdict on the recording.
    fn finish(&mut self, out: &mut Vec<u8>, interfaces: &[Closing], verdict: &str);
}

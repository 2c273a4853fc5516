//! THE SEAM: what a table of decoded messages is, and the streams that tables write to.

use canter_cli::{
    failure::{self, Exit, Failure},
    trouble::file_failure,
};
use canter_frame::Frame;
use canter_signals::{Message, Payload};
use clap::ValueEnum;
use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};
use tempfile::NamedTempFile;

/// A format of decoded signals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people: each message with its signals
    Text,
    /// A row for each value; with --wide, a column for each signal
    Csv,
    /// MDF4: a group for each message, a channel for each signal
    Mf4,
    /// A folder of tables, one for each message
    Parquet,
}

/// A message of a frame, or a transported one.
pub struct Row<'a> {
    pub stamp_ns: u64,
    /// The number of the bus, and its name.
    pub bus: usize,
    pub name: &'a str,
    /// The place of the message in the codebook of the bus.
    pub place: usize,
    pub message: &'a Message,
    pub payload: Payload<'a>,
    /// The frame; `None`: transported in several.
    pub frame: Option<&'a Frame>,
}

/// Frames of a message from which signals are missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Frames that end before a signal.
    pub short: u64,
    /// Frames with a selector whose value selects no signal.
    pub unselected: u64,
}

/// The tallies of messages by their names.
pub type Tallies = BTreeMap<String, Tally>;

/// Where decoded messages go.
pub trait Table {
    /// Takes the next message.
    fn row(&mut self, row: &Row<'_>) -> failure::Result<()>;

    /// Makes everything visible to the reader of a pipe or a terminal.
    fn flush(&mut self) -> failure::Result<()> {
        Ok(())
    }

    /// Ends the table.
    fn finish(self: Box<Self>) -> failure::Result<Tallies>;
}

/// A stream of text: the standard output, or a file that gets its name when it is complete.
pub struct Stream {
    path: PathBuf,
    to: To,
    overwrite: bool,
}

enum To {
    Stdout(BufWriter<io::Stdout>),
    Device(BufWriter<File>),
    New(BufWriter<NamedTempFile>),
}

/// Bytes of the buffer.
const BUFFER_BYTES: usize = 256 << 10;

impl Stream {
    pub fn open(path: &Path, overwrite: bool) -> failure::Result<Self> {
        let open = || -> io::Result<To> {
            if path.as_os_str() == "-" {
                return Ok(To::Stdout(BufWriter::with_capacity(BUFFER_BYTES, io::stdout())));
            }
            match path.metadata() {
                Ok(about) if about.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
                Ok(about) if !about.is_file() => Ok(To::Device(BufWriter::with_capacity(
                    BUFFER_BYTES,
                    File::options().write(true).open(path)?,
                ))),
                Ok(_) if !overwrite => Err(io::ErrorKind::AlreadyExists.into()),
                _ => Ok(To::New(BufWriter::with_capacity(BUFFER_BYTES, beside(path)?))),
            }
        };
        let to = open().map_err(|error| output_failure(path, error))?;
        Ok(Self { path: path.to_owned(), to, overwrite })
    }

    /// Writes by `write`; a reader that has closed the pipe ends the program without an error.
    #[inline]
    pub fn write(&mut self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> failure::Result<()> {
        let written = match &mut self.to {
            To::Stdout(out) => write(out),
            To::Device(out) => write(out),
            To::New(out) => write(out),
        };
        written.map_err(|error| output_failure(&self.path, error))
    }

    pub fn flush(&mut self) -> failure::Result<()> {
        self.write(|out| out.flush())
    }

    pub fn finish(mut self) -> failure::Result<()> {
        self.flush()?;
        let To::New(out) = self.to else { return Ok(()) };
        let place = || -> io::Result<()> {
            let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
            let placed =
                if self.overwrite { file.persist(&self.path) } else { file.persist_noclobber(&self.path) };
            placed.map(drop).map_err(|error| error.error)
        };
        place().map_err(|error| output_failure(&self.path, error))
    }
}

/// A temporary file in the folder of `path`.
pub fn beside(path: &Path) -> io::Result<NamedTempFile> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // The permissions of any new file: those that the umask allows.
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    tempfile::Builder::new().prefix(".canter-decode-").permissions(permissions).tempfile_in(folder)
}

/// An error of the output, with the way out.
pub fn output_failure(path: &Path, error: io::Error) -> Failure {
    match error.kind() {
        // The reader, such as `head`, has enough.
        io::ErrorKind::BrokenPipe => std::process::exit(Exit::Done as i32),
        io::ErrorKind::AlreadyExists => {
            Failure::failed(format!("{}: write: exists (--overwrite replaces it)", path.display()))
        }
        _ => file_failure(path, "write", error),
    }
}

/// What signals are missing from a frame, added to its message's tally.
pub fn count(tallies: &mut Tallies, message: &Message, fit: canter_signals::message::Fit) {
    if fit != canter_signals::message::Fit::default() {
        let tally = tallies.entry(message.name.clone()).or_default();
        tally.short += u64::from(fit.missing > 0);
        tally.unselected += u64::from(fit.unselected > 0);
    }
}

//! Why a recording could not be started. An error names the file or interface, the step that failed and the remedy.

use canter_formats::{FORMATS, list_extensions};
use std::{fmt, io, path::Path, path::PathBuf, time::Duration};

/// The result of an operation of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a recording could not be started.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The file's name does not end in the extension of a format that can be recorded, and no format was set.
    UnknownFormat(PathBuf),
    /// [`Settings::keep`](crate::Settings::keep) or another limit of files is set, but neither rotation by size nor by age is.
    KeepWithoutRotation,
    /// Rotation needs a file, and the output is standard output.
    RotatesStdout,
    /// The format of this file cannot store hardware stamps.
    NoHardwareStamps(PathBuf),
    /// The flush interval is shorter than this minimum.
    FlushTooShort(Duration),
    /// The settings name no interface.
    NoInterface,
    /// [`Settings::triggers`](crate::Settings::triggers) has no condition.
    NoCondition,
    /// Triggers need files, and the output is standard output.
    TriggersStdout,
    /// A condition names an interface that is not recorded.
    NotRecorded {
        /// The condition.
        condition: String,
        /// The interface that it names.
        interface: String,
    },
    /// This condition needs error frames, which the filters of its interfaces do not pass.
    NoErrorFrames(String),
    /// The machine has not enough memory for the frames before an event.
    WindowTooLong {
        /// The time before an event.
        before: Duration,
        /// The memory that it takes, in bytes.
        bytes: u128,
        /// The memory that is left for it, in bytes.
        left: u128,
        /// The longest time for which there is memory, rounded down to whole seconds.
        longest: Duration,
    },
    /// The interface is given twice.
    NamedTwice(String),
    /// Frames of the interface cannot be recorded.
    Unsupported {
        /// The interface's name.
        interface: String,
        /// Why.
        reason: String,
    },
    /// The interface is down or bus-off.
    NotReady {
        /// The interface's name.
        interface: String,
        /// The interface's state, and the command that changes it.
        reason: String,
    },
    /// An interface, a ring or a socket could not be found, opened or configured.
    Io(canter_io::Error),
    /// A file could not be created, replaced or removed. `AlreadyExists`: [`Settings::overwrite`](crate::Settings)
    /// permits replacing it.
    File {
        /// The file.
        path: PathBuf,
        /// The step that failed: `open`, `remove`, `write`.
        step: &'static str,
        /// What the operating system reported.
        source: io::Error,
    },
    /// A thread could not be started.
    Thread(io::Error),
}

impl Error {
    pub(crate) fn file(path: &Path, step: &'static str, source: io::Error) -> Self {
        Self::File { path: path.to_owned(), step, source }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownFormat(path) => {
                let names = list_extensions(FORMATS, |format| format.append.is_some(), "or");
                let path = path.display();
                write!(f, "{path}: unknown format (end the name in {names}, or set `Settings::format`)")
            }
            Self::KeepWithoutRotation => {
                f.write_str("keep: there is only one file (set rotation by size or age)")
            }
            Self::RotatesStdout => f.write_str("-: rotate: standard output is one stream (record to a file)"),
            Self::NoHardwareStamps(path) => {
                write!(f, "{}: a log has no place for hardware stamps (write .pcapng)", path.display())
            }
            Self::FlushTooShort(least) => {
                write!(f, "flush interval: is too short (set at least {} ms)", least.as_millis())
            }
            Self::NoInterface => f.write_str("capture: no interface is given (`any` records all)"),
            Self::NoCondition => f.write_str("triggers: there is no condition (record without triggers)"),
            Self::TriggersStdout => f.write_str(
                "-: trigger: standard output is one stream, and each event has a file (record to a file)",
            ),
            Self::NotRecorded { condition, interface } => {
                write!(
                    f,
                    "trigger {condition:?}: {interface} is not recorded (record it, too, or name another one)"
                )
            }
            Self::NoErrorFrames(condition) => write!(
                f,
                "trigger {condition:?}: the filters of its interfaces pass no error frames (add #FFFFFFFF to them)"
            ),
            Self::WindowTooLong { before, bytes, left, longest } => {
                let mb = |bytes: &u128| bytes.div_ceil(1_000_000);
                write!(
                    f,
                    "before: {before:?} take {} MB of memory at the buses' highest rate, and {} MB are free (at most {longest:?} \
                     fit, or set a smaller window buffer)",
                    mb(bytes),
                    left / 1_000_000
                )
            }
            Self::NamedTwice(name) => {
                write!(f, "{name}: is given twice (write all its filters after one name)")
            }
            Self::Unsupported { interface, reason } => write!(f, "{interface}: capture: {reason}"),
            Self::NotReady { interface, reason } => write!(f, "{interface}: {reason}"),
            Self::Io(error) => error.fmt(f),
            Self::File { path, step, source } => {
                write!(f, "{}: {step}: {}", path.display(), canter_io::error::plain(source))?;
                let exists = source.kind() == io::ErrorKind::AlreadyExists;
                f.write_str(if exists { " (`Settings::overwrite` replaces it)" } else { "" })
            }
            Self::Thread(source) => write!(f, "capture: start: {}", canter_io::error::plain(source)),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            Self::File { source, .. } | Self::Thread(source) => Some(source),
            _ => None,
        }
    }
}

impl From<canter_io::Error> for Error {
    fn from(error: canter_io::Error) -> Self {
        Self::Io(error)
    }
}

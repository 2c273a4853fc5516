//! How a command ends: its exit code, and the one line that says why.

use canter_formats::{FORMATS, list_extensions};
use std::fmt;

/// The exit codes of every command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// All was done.
    Done = 0,
    /// It failed, or a stated limit was passed.
    Failed = 1,
    /// The command line cannot be understood.
    Usage = 2,
    /// Frames were lost.
    Lost = 3,
    /// This machine cannot do or measure that.
    Unable = 4,
    /// The lab itself failed (`canter lab` only).
    Lab = 125,
    /// A finite command was interrupted, after a clean flush.
    Interrupted = 130,
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why a command could not do what it was asked.
#[derive(Debug)]
pub struct Failure {
    /// What the program answers.
    pub exit: Exit,
    /// One line: the thing, the step, the way out.
    pub message: String,
}

/// What a command answers.
pub type Result<T = Exit> = std::result::Result<T, Failure>;

impl Failure {
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into() }
    }

    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::new(Exit::Failed, message)
    }

    pub(crate) fn unable(message: impl Into<String>) -> Self {
        Self::new(Exit::Unable, message)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl From<canter_formats::Error> for Failure {
    fn from(error: canter_formats::Error) -> Self {
        Self::failed(error.to_string())
    }
}

impl From<canter_capture::Error> for Failure {
    /// The library's reasons, with the options that are the way out.
    fn from(error: canter_capture::Error) -> Self {
        use canter_capture::Error::{
            File, FlushTooShort, Io, KeepWithoutRotation, NamedTwice, NoHardwareStamps, UnknownFormat,
            Unsupported,
        };
        use std::io::ErrorKind::AlreadyExists;
        match error {
            Io(error) => error.into(),
            UnknownFormat(path) => Self::new(
                Exit::Usage,
                format!(
                    "{}: which format? (end its name in {}, or give --format)",
                    path.display(),
                    list_extensions(FORMATS, |format| format.append.is_some(), "or")
                ),
            ),
            KeepWithoutRotation => {
                Self::new(Exit::Usage, "--keep: of what? (--rotate-size or --rotate-time makes files)")
            }
            FlushTooShort(least) => {
                Self::new(Exit::Usage, format!("--flush-interval: at least {} ms", least.as_millis()))
            }
            NoHardwareStamps(_) | NamedTwice(_) => Self::new(Exit::Usage, error.to_string()),
            Unsupported { .. } => Self::unable(error.to_string()),
            File { path, step, source } if source.kind() == AlreadyExists => {
                let (path, reason) = (path.display(), canter_io::error::plain(&source));
                Self::failed(format!("{path}: {step}: {reason} (--overwrite replaces it)"))
            }
            _ => Self::failed(error.to_string()),
        }
    }
}

impl From<canter_io::Error> for Failure {
    fn from(error: canter_io::Error) -> Self {
        use std::io::ErrorKind::{InvalidInput, PermissionDenied, Unsupported};
        let exit = match error.kind() {
            InvalidInput => Exit::Usage,
            PermissionDenied | Unsupported => Exit::Unable,
            _ => Exit::Failed,
        };
        Self::new(exit, error.to_string())
    }
}

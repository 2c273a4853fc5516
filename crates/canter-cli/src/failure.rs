//! How a command ends: its exit code, and the line that reports an error.

use std::fmt;

/// The exit codes of every command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The command did all of its work.
    Done = 0,
    /// The command failed, or a value exceeded a given limit.
    Failed = 1,
    /// The command line is wrong.
    Usage = 2,
    /// Frames were lost.
    Lost = 3,
    /// This machine cannot do or measure what was requested.
    Unable = 4,
    /// Too few measurements to decide: measure more (`canter report --compare` only).
    Undecided = 5,
    /// The lab itself failed (`canter lab` only).
    Lab = 125,
    /// A signal interrupted a finite command, which flushed its output.
    Interrupted = 130,
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// The error of a command.
#[derive(Debug)]
pub struct Failure {
    /// The exit code of the program.
    pub exit: Exit,
    /// One line: the thing, the step, what happened, and the way out; empty: nothing is printed.
    pub message: String,
}

/// The result of a command.
pub type Result<T = Exit> = std::result::Result<T, Failure>;

impl Failure {
    /// An error with its exit code.
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into() }
    }

    /// The end of a command whose reader has closed the pipe, such as `head`: no error, and nothing to say.
    pub fn closed_pipe() -> Self {
        Self::new(Exit::Done, "")
    }

    /// An error of [`Exit::Failed`].
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(Exit::Failed, message)
    }

    /// An error of [`Exit::Unable`].
    pub fn unable(message: impl Into<String>) -> Self {
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

//! An error names the thing, the step and the way out: `can9: find: no such interface (canter methods lists them)`.

use std::{fmt, io};

/// What an operation of this crate answers.
pub type Result<T> = std::result::Result<T, Error>;

/// Why something could not be opened or changed.
#[derive(Debug)]
pub struct Error {
    /// The interface, device or file it happened to.
    pub thing: String,
    /// What was being done to it, a verb or a system call: `bind`, `PACKET_RX_RING`.
    pub step: &'static str,
    /// What the kernel, or we, answered.
    pub source: io::Error,
    /// What to do about it, as an imperative; empty when there is nothing to say.
    pub way_out: String,
}

impl Error {
    /// An error without a way out.
    pub fn new(thing: impl Into<String>, step: &'static str, source: io::Error) -> Self {
        Self { thing: thing.into(), step, source, way_out: String::new() }
    }

    /// The error that `errno` holds after a failed system call.
    pub fn last_os(thing: impl Into<String>, step: &'static str) -> Self {
        Self::new(thing, step, io::Error::last_os_error())
    }

    /// An error of ours, with its sentence: for what a machine or an interface cannot do.
    pub fn unsupported(thing: impl Into<String>, step: &'static str, why: impl Into<String>) -> Self {
        Self::new(thing, step, io::Error::new(io::ErrorKind::Unsupported, why.into()))
    }

    /// The same error with a way out.
    #[must_use]
    pub fn hint(mut self, way_out: impl Into<String>) -> Self {
        self.way_out = way_out.into();
        self
    }

    /// Whether it is not there, or no longer.
    pub fn is_gone(&self) -> bool {
        matches!(self.source.raw_os_error(), Some(libc::ENODEV | libc::ENXIO))
    }

    /// The kind of the underlying answer.
    pub fn kind(&self) -> io::ErrorKind {
        self.source.kind()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.thing, self.step, plain(&self.source))?;
        if self.way_out.is_empty() { Ok(()) } else { write!(f, " ({})", self.way_out) }
    }
}

/// The text of an `io::Error` as a sentence part: lower case, without `(os error 19)`.
pub fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    // "No such device" becomes "no such device"; "SO_BUSY_POLL has no effect" stays.
    let mut letters = text.chars();
    match (letters.next(), letters.next()) {
        (Some(first), Some(second)) if first.is_uppercase() && second.is_lowercase() => {
            first.to_lowercase().chain(text[first.len_utf8()..].chars()).collect()
        }
        _ => text.to_owned(),
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_the_thing_the_step_and_the_way_out() {
        let error =
            Error::new("can9", "bind", io::Error::from_raw_os_error(19)).hint("ip link lists interfaces");
        assert_eq!(error.to_string(), "can9: bind: no such device (ip link lists interfaces)");
    }
}

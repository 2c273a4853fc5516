//! Errors. Each names the interface or file, the step that failed and the remedy: `can9: find: no such interface (canter methods lists them)`.

use std::{fmt, io};

/// The result of an operation of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why an interface, device or file could not be opened, read or changed. Create it with [`Error::new`].
#[derive(Debug)]
#[non_exhaustive]
pub struct Error {
    /// The interface, device or file.
    pub thing: String,
    /// The step that failed, a verb, system call or option: `bind`, `PACKET_RX_RING`.
    pub step: &'static str,
    /// The error of the system call, or of this crate.
    pub source: io::Error,
    /// The remedy, as an imperative or a command; empty if none is known.
    pub way_out: String,
}

impl Error {
    /// An error without a remedy.
    pub fn new(thing: impl Into<String>, step: &'static str, source: io::Error) -> Self {
        Self { thing: thing.into(), step, source, way_out: String::new() }
    }

    /// The error that `errno` holds after a failed system call.
    pub fn last_os(thing: impl Into<String>, step: &'static str) -> Self {
        Self::new(thing, step, io::Error::last_os_error())
    }

    /// An error of kind `Unsupported`, with a reason: the machine or interface cannot do this.
    pub fn unsupported(thing: impl Into<String>, step: &'static str, why: impl Into<String>) -> Self {
        Self::new(thing, step, io::Error::new(io::ErrorKind::Unsupported, why.into()))
    }

    /// This error with a remedy.
    #[must_use]
    pub fn hint(mut self, way_out: impl Into<String>) -> Self {
        self.way_out = way_out.into();
        self
    }

    /// Whether the interface or device does not exist, or no longer exists (`ENODEV`, `ENXIO`).
    pub fn is_gone(&self) -> bool {
        matches!(self.source.raw_os_error(), Some(libc::ENODEV | libc::ENXIO))
    }

    /// Whether the kernel had no memory, buffers or descriptors, or was interrupted: the same call may succeed later.
    pub fn is_transient(&self) -> bool {
        let transient = [libc::EINTR, libc::EAGAIN, libc::ENOMEM, libc::ENOBUFS, libc::EMFILE, libc::ENFILE];
        self.source.raw_os_error().is_some_and(|code| transient.contains(&code))
    }

    /// The kind of the underlying error.
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

/// The text of an `io::Error` for use inside a sentence: without a capital letter and without `(os error 19)`.
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

    #[test]
    fn what_may_succeed_later_is_transient_and_an_interface_that_is_gone_is_not() {
        let transient = |code| Error::new("can9", "find", io::Error::from_raw_os_error(code)).is_transient();
        assert!(
            [libc::EMFILE, libc::ENFILE, libc::ENOBUFS, libc::ENOMEM, libc::EINTR].into_iter().all(transient)
        );
        assert!(![libc::ENODEV, libc::ENXIO, libc::EPERM].into_iter().any(transient));
    }
}

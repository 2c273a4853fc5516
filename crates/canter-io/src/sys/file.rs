//! Locks on whole files, which end with the process that holds them; FIFOs.

use std::{
    fs::File,
    io,
    os::{fd::AsRawFd, unix::fs::OpenOptionsExt},
    path::Path,
};

/// Locks `file` exclusively; false when it is locked already.
///
/// # Errors
/// The error of flock(2).
pub fn try_lock(file: &File) -> io::Result<bool> {
    match lock_by(file, libc::LOCK_EX | libc::LOCK_NB) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
        answer => answer.map(|()| true),
    }
}

/// Locks `file` exclusively; waits until the lock is free.
///
/// # Errors
/// The error of flock(2); `EINTR` when a signal came.
pub fn lock(file: &File) -> io::Result<()> {
    lock_by(file, libc::LOCK_EX)
}

/// Opens a FIFO for writing without waiting; `None` when nobody has opened it for reading.
///
/// # Errors
/// The error of open(2).
pub fn open_fifo(path: &Path) -> io::Result<Option<File>> {
    match File::options().write(true).custom_flags(libc::O_NONBLOCK).open(path) {
        // fifo(7): "an open(2) with O_WRONLY | O_NONBLOCK fails with ENXIO unless the other end has been opened".
        Err(error) if error.raw_os_error() == Some(libc::ENXIO) => Ok(None),
        opened => opened.map(Some),
    }
}

fn lock_by(file: &File, operation: libc::c_int) -> io::Result<()> {
    // SAFETY: no memory is passed. flock(2): "Locks … are associated with an open file description".
    super::check(unsafe { libc::flock(file.as_raw_fd(), operation) }).map(drop)
}

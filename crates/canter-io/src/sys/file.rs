//! Locks on whole files, which end with the process that holds them.

use std::{fs::File, io, os::fd::AsRawFd};

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

fn lock_by(file: &File, operation: libc::c_int) -> io::Result<()> {
    // SAFETY: no memory is passed. flock(2): "Locks … are associated with an open file description".
    super::check(unsafe { libc::flock(file.as_raw_fd(), operation) }).map(drop)
}

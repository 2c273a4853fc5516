//! Locks on whole files, which end with the process that holds them.

use std::{fs::File, io, os::fd::AsRawFd};

/// Locks `file` against all others that lock it; false when somebody has it.
///
/// # Errors
/// What flock(2) answers.
pub fn try_lock(file: &File) -> io::Result<bool> {
    match lock_by(file, libc::LOCK_EX | libc::LOCK_NB) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
        answer => answer.map(|()| true),
    }
}

/// The same, waiting until nobody has it.
///
/// # Errors
/// What flock(2) answers; `EINTR` when a signal came.
pub fn lock(file: &File) -> io::Result<()> {
    lock_by(file, libc::LOCK_EX)
}

fn lock_by(file: &File, operation: libc::c_int) -> io::Result<()> {
    // SAFETY: no memory is passed. flock(2): "Locks … are associated with an open file description".
    super::check(unsafe { libc::flock(file.as_raw_fd(), operation) }).map(drop)
}

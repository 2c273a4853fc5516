//! Locks on whole files, which end with the process that holds them; FIFOs; the room on a disk.

use rustix::{
    fs::{FlockOperation, flock, statvfs},
    io::Errno,
};
use std::{fs::File, io, os::unix::fs::OpenOptionsExt, path::Path};

/// Locks `file` exclusively; false when it is locked already.
///
/// # Errors
/// The error of flock(2).
pub fn try_lock(file: &File) -> io::Result<bool> {
    try_lock_by(file, FlockOperation::NonBlockingLockExclusive)
}

/// Locks `file` together with others that do the same; false when it is locked exclusively.
///
/// # Errors
/// The error of flock(2).
pub fn try_lock_shared(file: &File) -> io::Result<bool> {
    try_lock_by(file, FlockOperation::NonBlockingLockShared)
}

/// Releases a lock at once. Closing the file releases it only when no other process has it open, as one has that another
/// thread has just forked.
///
/// # Errors
/// The error of flock(2).
pub fn unlock(file: &File) -> io::Result<()> {
    // flock(2): "released either by an explicit LOCK_UN operation on any of these duplicate file descriptors, or when all
    // such file descriptors have been closed".
    Ok(flock(file, FlockOperation::Unlock)?)
}

/// Opens a file for reading, and never waits: a FIFO without a writer opens at once.
///
/// # Errors
/// The error of open(2).
pub fn open_at_once(path: &Path) -> io::Result<File> {
    // fifo(7): "A process can open a FIFO in nonblocking mode. In this case, opening for read-only succeeds even if no one
    // has opened on the write side yet".
    File::options().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW).open(path)
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

/// How many bytes this user may still write to the file system of `path`.
///
/// # Errors
/// The error of statvfs(3).
pub fn room(path: &Path) -> io::Result<u64> {
    let about = statvfs(path)?;
    Ok(about.f_bavail.saturating_mul(about.f_frsize))
}

fn try_lock_by(file: &File, operation: FlockOperation) -> io::Result<bool> {
    // flock(2): "Locks … are associated with an open file description".
    match flock(file, operation) {
        Err(Errno::WOULDBLOCK) => Ok(false),
        answer => Ok(answer.map(|()| true)?),
    }
}

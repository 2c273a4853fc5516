//! Locks on whole files, which end with the process that holds them; FIFOs; the room on a disk.

use std::{
    ffi::CString,
    fs::File,
    io, mem,
    os::{
        fd::AsRawFd,
        unix::{ffi::OsStrExt, fs::OpenOptionsExt},
    },
    path::Path,
};

/// Locks `file` exclusively; false when it is locked already.
///
/// # Errors
/// The error of flock(2).
pub fn try_lock(file: &File) -> io::Result<bool> {
    try_lock_by(file, libc::LOCK_EX)
}

/// Locks `file` together with others that do the same; false when it is locked exclusively.
///
/// # Errors
/// The error of flock(2).
pub fn try_lock_shared(file: &File) -> io::Result<bool> {
    try_lock_by(file, libc::LOCK_SH)
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
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: all zeros are a valid statvfs.
    let mut about: libc::statvfs = unsafe { mem::zeroed() };
    // SAFETY: both live until the call returns. statvfs(3) fills the structure.
    super::check(unsafe { libc::statvfs(path.as_ptr(), &raw mut about) })?;
    #[allow(clippy::useless_conversion)] // 32 bits wide on 32-bit Arm
    Ok(u64::from(about.f_bavail).saturating_mul(u64::from(about.f_frsize)))
}

fn try_lock_by(file: &File, operation: libc::c_int) -> io::Result<bool> {
    // SAFETY: no memory is passed. flock(2): "Locks … are associated with an open file description".
    match super::check(unsafe { libc::flock(file.as_raw_fd(), operation | libc::LOCK_NB) }) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
        answer => answer.map(|_| true),
    }
}

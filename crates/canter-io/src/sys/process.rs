//! Child processes.

use std::{io, process::Child};

/// Asks a child to end (`SIGTERM`), as a supervisor would.
///
/// # Errors
/// The error of kill(2).
pub fn terminate(child: &Child) -> io::Result<()> {
    let process = libc::pid_t::try_from(child.id()).map_err(io::Error::other)?;
    // SAFETY: no memory is passed; the child is not waited for yet, so its number is its own. kill(2).
    super::check(unsafe { libc::kill(process, libc::SIGTERM) }).map(drop)
}

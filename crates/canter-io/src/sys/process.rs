//! Child processes.

use rustix::process::{Pid, Signal, kill_process};
use std::{io, process::Child};

/// Asks a child to end (`SIGTERM`), as a supervisor would.
///
/// # Errors
/// The error of kill(2).
pub fn terminate(child: &Child) -> io::Result<()> {
    Ok(kill_process(Pid::from_child(child), Signal::TERM)?)
}

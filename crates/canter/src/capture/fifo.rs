//! A FIFO as the output: open(2) waits for a reader, and no signal would end that.

use super::signals::StopSignals;
use canter_cli::{
    failure::{self, Failure},
    trouble,
};
use canter_io::file;
use std::{fs::File, os::unix::fs::FileTypeExt, path::Path, time::Duration};

/// Period at which the command looks for a reader.
const PERIOD: Duration = Duration::from_millis(100);

/// Waits until a program reads from `path`, if that is a FIFO, or until a signal. While the file lives, the FIFO can be
/// opened without waiting.
pub fn wait_for_reader(path: &Path, signals: &StopSignals) -> failure::Result<Option<File>> {
    if !path.metadata().is_ok_and(|about| about.file_type().is_fifo()) {
        return Ok(None);
    }
    let mut reported = false;
    loop {
        let opened = file::open_fifo(path).map_err(|error| trouble::file_failure(path, "open", error))?;
        if opened.is_some() {
            return Ok(opened);
        }
        if !reported {
            reported = true;
            eprintln!("canter: {}: open: waiting for a reader of this FIFO (Ctrl-C ends it)", path.display());
        }
        if signals.recv_timeout(PERIOD).is_ok() {
            return Err(Failure::failed(format!("{}: open: no program reads this FIFO", path.display())));
        }
    }
}

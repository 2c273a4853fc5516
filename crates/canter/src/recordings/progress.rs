//! The progress of reading, on a terminal.

use canter_cli::options::Common;
use indicatif::{ProgressBar, ProgressStyle};
use std::{
    io::{self, IsTerminal},
    time::Duration,
};

/// A progress bar of the bytes that `command` reads.
pub fn progress(command: &str, size: u64, common: &Common) -> ProgressBar {
    if common.quiet || !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(size);
    let style =
        format!("{command}: {{bytes}} of {{total_bytes}} {{wide_bar}} {{bytes_per_sec}}, {{eta}} left");
    if let Ok(style) = ProgressStyle::with_template(&style) {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(250));
    bar
}

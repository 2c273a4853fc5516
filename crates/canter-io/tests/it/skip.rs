//! A test that cannot run here reports that, and the run counts it (`xtask/src/count.rs`).

use std::{io::Write, thread};

/// Reports that the current test does not run and why, past the test harness, which hides what a passing test prints. The
/// run fails unless `tests/skips.txt` allows it.
pub fn skip(reason: &str) {
    let name = thread::current().name().unwrap_or("?").to_owned();
    print(&format!("SKIP {name}: {reason}"));
}

/// Prints such a report as a line of its own: the harness may have begun a line with the test's name.
pub fn print(report: &str) {
    std::io::stderr().write_all(format!("\n{report}\n").as_bytes()).unwrap();
}

//! The lab's progress on standard error: a line per long step, a spinner on a terminal, nothing with `--quiet`.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Whether a spinner turns: two machines that begin at once share a terminal.
static TURNS: AtomicBool = AtomicBool::new(false);

#[derive(Clone, Copy, Debug)]
pub struct Progress {
    quiet: bool,
    verbose: bool,
    terminal: bool,
}

/// A running step; dropping this ends it.
pub struct Step(Option<ProgressBar>);

impl Progress {
    pub fn new(quiet: bool) -> Self {
        Self { quiet, verbose: false, terminal: std::io::stderr().is_terminal() }
    }

    /// Progress with details, for `-v`.
    pub fn verbose(self, verbose: bool) -> Self {
        Self { verbose, ..self }
    }

    /// Prints one line with `-v` only.
    pub fn detail(&self, text: &str) {
        if self.verbose {
            self.say(text);
        }
    }

    /// Prints one line.
    pub fn say(&self, text: &str) {
        if !self.quiet {
            eprintln!("lab: {text}");
        }
    }

    /// Shows a long step until the returned value is dropped.
    pub fn step(&self, text: &str) -> Step {
        if self.quiet || !self.terminal || TURNS.swap(true, Ordering::Relaxed) {
            self.say(text);
            return Step(None);
        }
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("lab: {msg} {spinner} {elapsed}") {
            bar.set_style(style);
        }
        bar.set_message(text.to_owned());
        bar.enable_steady_tick(Duration::from_millis(120));
        Step(Some(bar))
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
            TURNS.store(false, Ordering::Relaxed);
        }
    }
}

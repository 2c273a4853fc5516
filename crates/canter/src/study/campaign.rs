//! Runs units, writes each result as soon as it is measured, and prints the remaining time.

use super::{
    definition::Study,
    inside::{self, Event},
    journal::{Journal, result_path},
    side::Side,
    testbed::Bed,
    unit::{BOOT_WEIGHT, Boot, Unit},
};
use crate::{
    failure::{self, Exit, Failure},
    lab::{Ended, Input, Streams},
    measure::result::ResultFile,
    report, trouble,
};
use canter_io::clock;
use std::{
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// A run of several units.
pub struct Campaign {
    folder: PathBuf,
    quiet: bool,
    state: Arc<Mutex<State>>,
}

/// The state that the guest's events change.
struct State {
    journal: Journal,
    progress: Progress,
    results: Vec<ResultFile>,
    failures: Vec<String>,
    /// The error of writing a result; ends the run.
    trouble: Option<Failure>,
    /// For each unit of this boot the study's name and its file's name.
    names: Vec<(String, String)>,
}

/// The work done, in units of [`super::plan::Case::weight`].
struct Progress {
    total: u64,
    done: u64,
    /// Done before this run began.
    before: u64,
    start_ns: u64,
}

impl Progress {
    /// `[12 %, 40 min left]`; without a time until enough work is done for an estimate.
    fn text(&self) -> String {
        const ENOUGH: u64 = 20;
        let percent = 100 * self.done / self.total.max(1);
        let (gained, left) = (self.done - self.before, self.total.saturating_sub(self.done));
        if gained < ENOUGH {
            return format!("[{percent} %]");
        }
        let passed_s = (clock::monotonic_ns() - self.start_ns) / 1_000_000_000;
        let left_s = passed_s * left / gained;
        match left_s {
            0..120 => format!("[{percent} %, {left_s} s left]"),
            120..7200 => format!("[{percent} %, {} min left]", left_s / 60),
            _ => format!("[{percent} %, {}.{} h left]", left_s / 3600, left_s % 3600 / 360),
        }
    }
}

impl Campaign {
    /// `boots`: the number of boots of the run.
    pub fn new(
        folder: &Path,
        journal: Journal,
        units: &[Unit],
        boots: u64,
        quiet: bool,
    ) -> failure::Result<Self> {
        let weight = |done: bool| -> u64 {
            units.iter().filter(|unit| !done || journal.is_done(unit)).map(Unit::weight).sum()
        };
        let (all, before) = (weight(false), weight(true));
        let progress = Progress {
            total: all + boots * BOOT_WEIGHT,
            done: before,
            before,
            start_ns: clock::monotonic_ns(),
        };
        let kept = units.iter().filter(|unit| journal.is_done(unit));
        let results = kept
            .map(|unit| ResultFile::load(&result_path(folder, &unit.name())))
            .collect::<Result<_, _>>()?;
        let state =
            State { journal, progress, results, failures: Vec::new(), trouble: None, names: Vec::new() };
        Ok(Self { folder: folder.to_owned(), quiet, state: Arc::new(Mutex::new(state)) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Boots a machine and measures its units in the guest, with this program. `Err` ends the campaign.
    pub fn boot(&self, boot: &Boot, count: Option<u64>) -> failure::Result<()> {
        let names = boot.units.iter().map(|unit| (unit.study.name.clone(), unit.name())).collect();
        self.state().names = names;
        let mut command =
            vec![super::program()?.to_string_lossy().into_owned(), "study".into(), "inside".into()];
        command.extend(boot.units.iter().map(|unit| unit.study.file.clone()));
        command.extend(["--boot".to_owned(), boot.number.to_string()]);
        command.extend(count.iter().flat_map(|count| ["--count".to_owned(), count.to_string()]));
        let machine = crate::lab::Machine { quiet: self.quiet, ..boot.machine.clone() };
        let streams = || {
            let events = Events { campaign: self.share(), line: Vec::new() };
            Ok(Streams { stdin: Input::Null, stdout: Box::new(events), stderr: Box::new(io::stderr()) })
        };
        let ended = machine.run_with(&command, streams);
        let mut state = self.state();
        state.progress.done += BOOT_WEIGHT;
        if let Some(trouble) = state.trouble.take() {
            return Err(trouble);
        }
        let why = match ended {
            Ok(Ended::Exit(0)) => return Ok(()),
            Ok(Ended::Exit(130) | Ended::Interrupted(_)) => return Err(self.interrupted()),
            Ok(ended) => format!("failed in the lab (exit code {})", ended.code()),
            Err(failure) => failure.message,
        };
        // Other units may succeed: they have another kernel or machine.
        let names: Vec<_> = boot.units.iter().map(Unit::name).collect();
        let why = format!("{}: {why}", names.join(", "));
        eprintln!("canter: {why}");
        state.failures.push(why);
        Ok(())
    }

    fn interrupted(&self) -> Failure {
        let folder = self.folder.display();
        Failure::new(
            Exit::Interrupted,
            format!("study: interrupted (the same command continues in {folder})"),
        )
    }

    /// Measures a unit on this machine.
    pub fn here(&self, study: &Study, bed: &Bed, side: &mut dyn Side) -> failure::Result<()> {
        self.state().names = vec![(study.name.clone(), study.name.clone())];
        match inside::measure(study, bed, side, &mut |event| self.take(event)) {
            Ok(result) => self.take(Event::Result(Box::new(result))),
            Err(failure) if failure.exit == Exit::Interrupted => return Err(self.interrupted()),
            Err(failure) => self.take(Event::Failed { study: study.name.clone(), why: failure.message }),
        }
        self.state().trouble.take().map_or(Ok(()), Err)
    }

    fn share(&self) -> Self {
        Self { folder: self.folder.clone(), quiet: self.quiet, state: Arc::clone(&self.state) }
    }

    fn take(&self, event: Event) {
        let mut state = self.state();
        match event {
            Event::Step { study, what, weight } => {
                state.progress.done += weight;
                self.say(&format!("{} {study}: {what}", state.progress.text()));
            }
            Event::Failed { study, why } => {
                let why = if why.starts_with(&study) { why } else { format!("{study}: {why}") };
                eprintln!("canter: {why}");
                state.failures.push(why);
            }
            Event::Result(result) => {
                if let Err(failure) = self.keep(&mut state, *result) {
                    state.trouble = Some(failure);
                }
            }
        }
    }

    /// Writes a result and prints its summary.
    fn keep(&self, state: &mut State, mut result: ResultFile) -> failure::Result<()> {
        result.command = std::env::args().collect::<Vec<_>>().join(" ");
        let name = state.names.iter().find(|(study, _)| *study == result.study);
        let name = name.map_or(result.study.clone(), |(_, name)| name.clone());
        let path = result_path(&self.folder, &name);
        result.save(&path)?;
        state.journal.done(&name)?;
        if !self.quiet {
            println!("{}", report::summary(&result));
        }
        self.say(&format!("{}: written", path.display()));
        state.results.push(result);
        Ok(())
    }

    fn say(&self, text: &str) {
        if !self.quiet {
            eprintln!("study: {text}");
        }
    }

    /// Writes the page of all results; returns them with the failures, which the same command would retry.
    pub fn finish(self) -> failure::Result<(Vec<ResultFile>, Vec<String>)> {
        let page = self.folder.join("report.html");
        let mut state = self.state();
        let results = std::mem::take(&mut state.results);
        let failures = std::mem::take(&mut state.failures);
        if !results.is_empty() {
            std::fs::write(&page, report::page(&results)?)
                .map_err(|error| trouble::of_file(&page, "write", error))?;
            self.say(&format!("{}: written", page.display()));
        }
        if failures.is_empty() {
            state.journal.finish()?;
        }
        drop(state);
        Ok((results, failures))
    }
}

/// The guest's standard output: cut into lines, each an event.
struct Events {
    campaign: Campaign,
    line: Vec<u8>,
}

impl Write for Events {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for part in bytes.split_inclusive(|&byte| byte == b'\n') {
            self.line.extend_from_slice(part);
            if part.ends_with(b"\n") {
                match serde_json::from_slice(&self.line) {
                    Ok(event) => self.campaign.take(event),
                    Err(error) => {
                        let failure = Failure::failed(format!("study: the lab's output: {error}"));
                        self.campaign.state().trouble.get_or_insert(failure);
                    }
                }
                self.line.clear();
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_is_estimated_from_this_run() {
        let progress = |done, before, passed_s: u64| {
            let start_ns = clock::monotonic_ns().saturating_sub(passed_s * 1_000_000_000);
            Progress { total: 1000, done, before, start_ns }.text()
        };
        assert_eq!(progress(10, 0, 1), "[1 %]", "too early for an estimate");
        assert_eq!(
            progress(600, 500, 3),
            "[60 %, 12 s left]",
            "work of an earlier run took no time in this one"
        );
    }
}

//! Runs units, writes each result as soon as it is measured, and prints the remaining time.

use super::{
    amount::Amount,
    definition::Study,
    inside::{self, Event, Skip},
    journal::{Journal, result_path},
    load_curve, recording,
    side::Side,
    testbed::Bed,
    unit::{BOOT_WEIGHT, Boot, Unit},
    verdicts,
};
use crate::{
    lab::{self, Ended, Input, Streams},
    report,
};
use canter_cli::{
    failure::{self, Exit, Failure},
    trouble,
};
use canter_io::clock;
use canter_measure::result::{Environment, ResultFile, SCHEMA};
use std::{
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// A run of several units.
pub struct Campaign {
    folder: PathBuf,
    quiet: bool,
    /// The units to measure, each once.
    studies: Vec<Study>,
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
    /// The units of this boot; a study has one of them.
    units: Vec<Running>,
}

/// A unit that is being measured.
struct Running {
    unit: Unit,
    environment: Option<Environment>,
    /// Whether a case failed, so that the unit is not complete.
    failed: bool,
}

impl State {
    fn running(&mut self, study: &str) -> Option<&mut Running> {
        self.units.iter_mut().find(|running| running.unit.study.name == study)
    }

    /// Notes that a case or a study failed, so that the unit is not complete.
    fn fail(&mut self, study: &str, why: String) {
        eprintln!("canter: {why}");
        self.failures.push(why);
        if let Some(running) = self.running(study) {
            running.failed = true;
        }
    }
}

/// The work done, in units of [`super::plan::Case::weight`].
struct Progress {
    total: u64,
    done: u64,
    /// The work that was done before this run began.
    before: u64,
    start_ns: u64,
}

impl Progress {
    fn begin(journal: &Journal, units: &[Unit], boots: u64) -> Self {
        let kept = |unit: &Unit| match journal.is_done(unit) {
            true => unit.weight(),
            false => unit.weight_of(&journal.cases(&unit.name())),
        };
        let before = units.iter().map(kept).sum();
        let total = units.iter().map(Unit::weight).sum::<u64>() + boots * BOOT_WEIGHT;
        Self { total, done: before, before, start_ns: clock::monotonic_ns() }
    }

    /// The progress in words, `[12 %, 40 min left]`; without a time until enough work is done for an estimate.
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
        let progress = Progress::begin(&journal, units, boots);
        let kept = units.iter().filter(|unit| journal.is_done(unit));
        let results = kept
            .map(|unit| ResultFile::load(&result_path(folder, &unit.name())))
            .collect::<Result<_, _>>()?;
        let state =
            State { journal, progress, results, failures: Vec::new(), trouble: None, units: Vec::new() };
        let mut studies: Vec<Study> = Vec::new();
        for unit in units {
            if studies.iter().all(|study| study.name != unit.study.name) {
                studies.push(unit.study.clone());
            }
        }
        Ok(Self { folder: folder.to_owned(), quiet, studies, state: Arc::new(Mutex::new(state)) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Boots a machine and measures its units in the guest, with this program or that of the machine's architecture. `Err` ends
    /// the campaign.
    pub fn boot(&self, boot: &Boot, amount: Amount) -> failure::Result<()> {
        self.begin(&boot.units);
        let mut command = vec![program(boot)?, "study".into(), "inside".into()];
        command.extend(boot.units.iter().map(|unit| unit.study.file.clone()));
        command.extend(["--boot".to_owned(), boot.number.to_string()]);
        for unit in &boot.units {
            let known = self.state().journal.cases(&unit.name());
            if !known.is_empty() {
                command.extend(["--skip".to_owned(), Skip::new(&unit.study.name, known).to_string()]);
            }
        }
        command.extend(["--amount".to_owned(), amount.to_string()]);
        let machine = lab::Machine { quiet: self.quiet, ..boot.machine.clone() };
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
    pub fn here(&self, unit: &Unit, bed: &Bed, side: &mut dyn Side) -> failure::Result<()> {
        self.begin(std::slice::from_ref(unit));
        let known = self.state().journal.cases(&unit.name()).into_iter().collect();
        inside::measure(&unit.study, bed, side, &known, &mut |event| self.take(event))
            .map_err(|_| self.interrupted())?;
        self.state().trouble.take().map_or(Ok(()), Err)
    }

    fn begin(&self, units: &[Unit]) {
        let running = |unit: &Unit| Running { unit: unit.clone(), environment: None, failed: false };
        self.state().units = units.iter().map(running).collect();
    }

    fn share(&self) -> Self {
        let Self { folder, quiet, studies, state } = self;
        Self { folder: folder.clone(), quiet: *quiet, studies: studies.clone(), state: Arc::clone(state) }
    }

    fn take(&self, event: Event) {
        let mut state = self.state();
        let taken = match event {
            Event::Begin { study, environment } => self.begun(&mut state, &study, *environment),
            Event::Case { study, case } => {
                state.progress.done += case.weight;
                self.say(&format!("{} {study}: {}", state.progress.text(), case.what));
                let unit = state.running(&study).map(|running| running.unit.name());
                unit.map_or(Ok(()), |unit| state.journal.case(&unit, case.number, case.series))
            }
            Event::Failed { study, why } => {
                let why = if why.starts_with(&study) { why } else { format!("{study}: {why}") };
                state.fail(&study, why);
                Ok(())
            }
            Event::End { study } => self.keep(&mut state, &study),
        };
        if let Err(failure) = taken {
            state.trouble = Some(failure);
        }
    }

    fn begun(&self, state: &mut State, study: &str, environment: Environment) -> failure::Result<()> {
        let Some(running) = state.running(study) else { return Ok(()) };
        running.environment = Some(environment.clone());
        let unit = running.unit.name();
        if state.journal.begin(&unit, &environment) {
            // The guest has skipped them already.
            let why =
                format!("{unit}: was begun on another machine or kernel: the same command measures it anew");
            state.fail(study, why);
        }
        state.journal.begun(&unit, &environment)
    }

    /// Writes a unit's result and prints its summary.
    fn keep(&self, state: &mut State, study: &str) -> failure::Result<()> {
        let Some(running) = state.running(study) else { return Ok(()) };
        let (name, title, failed) = (running.unit.name(), running.unit.study.title.clone(), running.failed);
        let Some(environment) = running.environment.clone().or_else(|| state.journal.environment(&name))
        else {
            return Ok(());
        };
        let mut series = state.journal.series(&name);
        let curves = [load_curve::of(&series), recording::curves(&series)].concat();
        series.extend(curves);
        let command = std::env::args().collect::<Vec<_>>().join(" ");
        let result =
            ResultFile { schema: SCHEMA, study: study.to_owned(), title, command, environment, series };
        let path = result_path(&self.folder, &name);
        result.save(&path)?;
        if !failed {
            state.journal.done(&name)?;
        }
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
            let verdicts = verdicts::decide(&self.studies, &results);
            std::fs::write(&page, report::page(&results, &verdicts)?)
                .map_err(|error| trouble::file_failure(&page, "write", error))?;
            self.say(&format!("{}: written", page.display()));
        }
        if failures.is_empty() {
            state.journal.finish()?;
        }
        drop(state);
        Ok((results, failures))
    }
}

/// The program that measures in the guest.
fn program(boot: &Boot) -> failure::Result<String> {
    let arch = boot.machine.arch;
    if arch.is_host() {
        return Ok(super::program()?.to_string_lossy().into_owned());
    }
    match lab::program_folder(arch) {
        Some(_) => Ok("canter".to_owned()), // the guest has it in its PATH
        None => Err(Failure::unable(format!(
            "study: {}: needs canter for its machine (cargo build --release --target {} -p canter)",
            boot.units.first().map_or("", |unit| &unit.study.name),
            arch.target()
        ))),
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
    use crate::study::unit::planned;

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

    #[test]
    fn cases_of_an_interrupted_unit_are_done() {
        let study = Study::find("2011-matrix").expect("it is there");
        let units = planned(&study, &[], false, None);
        let folder = tempfile::tempdir().expect("a folder for the test");
        let mut journal = Journal::open(folder.path(), &units, Amount::Own, false).expect("it opens");
        for (number, unit) in (0..).zip(&units[..2]) {
            journal.begun(&unit.name(), &Environment::default()).expect("it writes");
            journal.case(&unit.name(), number, Vec::new()).expect("it writes");
        }
        let progress = Progress::begin(&journal, &units, 4);
        let kept = units[0].weight_of(&[0]) + units[1].weight_of(&[1]);
        assert_eq!((progress.done, progress.before), (kept, kept));
        assert!(kept > 0 && units[0].weight_of(&[0, 1]) < units[0].weight());
    }
}

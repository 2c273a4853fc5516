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
    lab::{self, Clock, Ended, Input, Signals, Streams},
    report,
};
use canter_cli::{
    failure::{self, Exit, Failure},
    trouble,
};
use canter_io::clock;
use canter_measure::result::{Environment, ResultFile, SCHEMA};
use std::{
    collections::BTreeMap,
    io::{self, Write},
    panic::resume_unwind,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
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
    /// By the units' names, as the files are in the folder.
    results: BTreeMap<String, ResultFile>,
    failures: Vec<String>,
    /// The error of writing a result; ends the run.
    trouble: Option<Failure>,
}

/// A unit that is being measured.
struct Running {
    unit: Unit,
    environment: Option<Environment>,
    /// Whether a case failed, so that the unit is not complete.
    failed: bool,
}

impl Running {
    /// The units of a boot before their first event.
    fn units(units: &[Unit]) -> Vec<Self> {
        units.iter().map(|unit| Self { unit: unit.clone(), environment: None, failed: false }).collect()
    }

    /// The unit of a study: a boot has at most one.
    fn find<'a>(units: &'a mut [Self], study: &str) -> Option<&'a mut Self> {
        units.iter_mut().find(|running| running.unit.study.name == study)
    }

    /// Notes that a case or the study failed, so that the unit is not complete.
    fn fail(&mut self, state: &mut State, why: String) {
        self.failed = true;
        state.fail(why);
    }
}

impl State {
    fn fail(&mut self, why: String) {
        eprintln!("canter: {why}");
        self.failures.push(why);
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
            .map(|unit| Ok((unit.name(), ResultFile::load(&result_path(folder, &unit.name()))?)))
            .collect::<failure::Result<_>>()?;
        let state = State { journal, progress, results, failures: Vec::new(), trouble: None };
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

    /// Measures the units of all boots: `jobs` machines of the virtual clock at once, and then those of the real clock, whose
    /// figures another one beside them would change, one by one.
    pub fn run(&self, boots: &[Boot], amount: Amount, jobs: usize) -> failure::Result<()> {
        let (counted, timed): (Vec<_>, Vec<_>) =
            boots.iter().partition(|boot| boot.machine.clock == Clock::Virtual);
        // A machine that ends just then, or is not there yet, does not see a signal.
        let signals = Signals::catch()?;
        let boot = |boot: &&Boot| match signals.caught() {
            Some(_) => Err(self.interrupted()),
            None => self.boot(boot, amount),
        };
        abreast(&counted, jobs, boot)?;
        abreast(&timed, 1, boot)
    }

    /// Boots a machine and measures its units in the guest, with this program or that of the machine's architecture. `Err` ends
    /// the campaign.
    fn boot(&self, boot: &Boot, amount: Amount) -> failure::Result<()> {
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
            let units = Running::units(&boot.units);
            let events = Events { campaign: self.share(), units, line: Vec::new() };
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
        state.fail(format!("{}: {why}", names.join(", ")));
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
        let mut units = Running::units(std::slice::from_ref(unit));
        let known = self.state().journal.cases(&unit.name()).into_iter().collect();
        inside::measure(&unit.study, bed, side, &known, &mut |event| self.take(&mut units, event))
            .map_err(|_| self.interrupted())?;
        self.state().trouble.take().map_or(Ok(()), Err)
    }

    fn share(&self) -> Self {
        let Self { folder, quiet, studies, state } = self;
        Self { folder: folder.clone(), quiet: *quiet, studies: studies.clone(), state: Arc::clone(state) }
    }

    /// Takes what happened to one of the units of a boot.
    fn take(&self, units: &mut [Running], event: Event) {
        let study = event.study().to_owned();
        let mut state = self.state();
        let Some(running) = Running::find(units, &study) else {
            return state.fail(format!("{study}: measured, but not asked for"));
        };
        let taken = match event {
            Event::Begin { environment, .. } => begun(running, &mut state, *environment),
            Event::Case { case, .. } => {
                state.progress.done += case.weight;
                self.say(&format!("{} {study}: {}", state.progress.text(), case.what));
                state.journal.case(&running.unit.name(), case.number, case.series)
            }
            Event::Failed { why, .. } => {
                let why = if why.starts_with(&study) { why } else { format!("{study}: {why}") };
                running.fail(&mut state, why);
                Ok(())
            }
            Event::End { .. } => self.keep(running, &mut state),
        };
        if let Err(failure) = taken {
            state.trouble = Some(failure);
        }
    }

    /// Writes a unit's result and prints its summary.
    fn keep(&self, running: &Running, state: &mut State) -> failure::Result<()> {
        let study = &running.unit.study;
        let name = running.unit.name();
        let Some(environment) = running.environment.clone().or_else(|| state.journal.environment(&name))
        else {
            return Ok(());
        };
        let mut series = state.journal.series(&name);
        let curves = [load_curve::of(&series), recording::curves(&series)].concat();
        series.extend(curves);
        let command = std::env::args().collect::<Vec<_>>().join(" ");
        let (study, title) = (study.name.clone(), study.title.clone());
        let result = ResultFile { schema: SCHEMA, study, title, command, environment, series };
        let path = result_path(&self.folder, &name);
        result.save(&path)?;
        if !running.failed {
            state.journal.done(&name)?;
        }
        if !self.quiet {
            println!("{}", report::summary(&result));
        }
        self.say(&format!("{}: written", path.display()));
        state.results.insert(name, result);
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
        let results: Vec<_> = std::mem::take(&mut state.results).into_values().collect();
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

fn begun(running: &mut Running, state: &mut State, environment: Environment) -> failure::Result<()> {
    running.environment = Some(environment.clone());
    let unit = running.unit.name();
    if state.journal.begin(&unit, &environment) {
        // The guest has skipped them already.
        let why =
            format!("{unit}: was begun on another machine or kernel: the same command measures it anew");
        running.fail(state, why);
    }
    state.journal.begun(&unit, &environment)
}

/// Does the work of each item, of `jobs` at once. After an error no other item is begun.
fn abreast<T: Sync>(
    items: &[T],
    jobs: usize,
    work: impl Fn(&T) -> failure::Result<()> + Sync,
) -> failure::Result<()> {
    let left = Mutex::new(items.iter());
    let left = || left.lock().unwrap_or_else(PoisonError::into_inner);
    let worker = || {
        loop {
            let Some(item) = left().next() else { return Ok(()) };
            if let Err(failure) = work(item) {
                *left() = [].iter();
                return Err(failure);
            }
        }
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs.min(items.len())).map(|_| scope.spawn(worker)).collect();
        let ended = workers.into_iter().map(|one| one.join().unwrap_or_else(|panic| resume_unwind(panic)));
        ended.fold(Ok(()), Result::and)
    })
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
    /// The units of the guest's boot.
    units: Vec<Running>,
    line: Vec<u8>,
}

impl Write for Events {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for part in bytes.split_inclusive(|&byte| byte == b'\n') {
            self.line.extend_from_slice(part);
            if part.ends_with(b"\n") {
                match serde_json::from_slice(&self.line) {
                    Ok(event) => self.campaign.take(&mut self.units, event),
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
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn each_item_is_worked_on_once_and_no_more_at_a_time_than_allowed() {
        let (at_once, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let done = Mutex::new(Vec::new());
        let work = |item: &u32| {
            most.fetch_max(at_once.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            done.lock().expect("no panic").push(*item);
            at_once.fetch_sub(1, Ordering::SeqCst);
            Ok(())
        };
        let items: Vec<u32> = (0..100).collect();
        for jobs in [1, 3, 1000] {
            abreast(&items, jobs, work).expect("all succeed");
            let mut done = std::mem::take(&mut *done.lock().expect("no panic"));
            assert!(jobs > 1 || done.is_sorted());
            done.sort_unstable();
            assert_eq!(done, items);
            assert!(most.swap(0, Ordering::SeqCst) <= jobs);
        }
    }

    #[test]
    fn after_an_error_nothing_else_is_begun() {
        let begun = Mutex::new(Vec::new());
        let work = |item: &u32| {
            begun.lock().expect("no panic").push(*item);
            if *item == 1 { Err(Failure::failed("the disk is full")) } else { Ok(()) }
        };
        let failure = abreast(&[0, 1, 2, 3], 1, work).expect_err("one has failed");
        assert_eq!(failure.message, "the disk is full");
        assert_eq!(*begun.lock().expect("no panic"), [0, 1]);
    }

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

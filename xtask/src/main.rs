//! The gate, `make test` and `make test-all`: builds every test executable once, runs each test module on the machine that its
//! first line states, one more at a time than there are processors, and does not repeat what passed with the same inputs.
//!
//!     cargo xtask test [--all] [WORD[,WORD...]]
//!     cargo xtask prose
//!
//! `--all` is everything, for hours. A word is a part of a module's name (`capture`, `canter::wire`), or a module and a part of
//! a test's name (`wire::race`). AGAIN=1 also repeats what passed before.
//! `prose` is the part of `make lint` that finds doc comments which do not stand alone, and lines of documents that are too long.

mod built;
mod commands;
mod comments;
mod count;
mod documents;
mod host;
mod keys;
mod lanes;
mod machine;
mod plan;
mod process;
mod prose;
mod summary;
mod table;

use std::{
    collections::{BTreeSet, HashMap},
    env, fs,
    io::Write,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::mpsc::{Receiver, Sender, channel},
    thread,
    time::Duration,
};

use built::Built;
use keys::{Inputs, Key, Keys, file_name};
use lanes::{Interrupted, Lanes, Line, Outcome, PREPARATION};
use plan::{Item, Planned, Planner};
use process::Event;
use signal_hook::{
    consts::{SIGINT, SIGTERM},
    iterator::Signals,
};

/// Why a run ends early: a line for the user, and the exit code.
struct Failure(String, u8);

impl From<String> for Failure {
    fn from(why: String) -> Self {
        Self(why, 1)
    }
}

impl From<Interrupted> for Failure {
    fn from(_: Interrupted) -> Self {
        Self("interrupted".to_owned(), 130)
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match run(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(Failure(why, code)) => {
            eprintln!("test: {why}");
            ExitCode::from(code)
        }
    }
}

fn run(arguments: &[String]) -> Result<bool, Failure> {
    let usage =
        || Failure("usage: cargo xtask test [--all] [WORD[,WORD...]], cargo xtask prose".to_owned(), 2);
    let (command, rest) = arguments.split_first().ok_or_else(usage)?;
    let all = rest.iter().any(|word| word == "--all");
    let words: Vec<&str> = rest
        .iter()
        .filter(|word| *word != "--all")
        .flat_map(|word| word.split(','))
        .map(str::trim)
        .filter(|word| !word.is_empty())
        .collect();
    let is_known = matches!((command.as_str(), rest), ("test", _) | ("prose", []));
    if !is_known || words.iter().any(|word| word.starts_with('-')) {
        return Err(usage());
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().map_err(|e| e.to_string())?;
    env::set_current_dir(&root).map_err(|e| format!("{}: {e}", root.display()))?;
    if command == "prose" {
        return Ok(prose::check()?);
    }
    let (modules, has_tun) = (machine::modules(&root)?, host::has_tun());
    if !has_tun {
        println!("this host has no TUN devices in namespaces: what is tested on them runs in the lab");
    }
    let items = plan::items(modules, &packages(&root), has_tun);
    let chosen = plan::choose(&items, &words, all).map_err(|why| Failure(why, 2))?;
    let target = root.join(env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()));
    let gate = Gate::new(root, &target, words.is_empty())?;
    gate.run(&items, &chosen)
}

/// The workspace's packages that have tests.
fn packages(root: &Path) -> Vec<String> {
    let entries = fs::read_dir(root.join("crates")).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.push("xtask".to_owned());
    names.sort();
    names
}

/// One run.
struct Gate {
    root: PathBuf,
    canter: PathBuf,
    /// Durations, logs, and keys of lines that passed.
    state: PathBuf,
    /// Everything that the command has runs, not only chosen modules.
    whole: bool,
    clock: summary::Clock,
    sender: Sender<Event>,
    events: Receiver<Event>,
}

impl Gate {
    fn new(root: PathBuf, target: &Path, whole: bool) -> Result<Self, String> {
        let state = target.join("test");
        fs::create_dir_all(state.join("logs")).map_err(|e| format!("{}: {e}", state.display()))?;
        let (sender, events) = channel();
        let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(|e| e.to_string())?;
        let interrupted = sender.clone();
        thread::spawn(move || {
            signals.forever().for_each(|_| interrupted.send(Event::Interrupted).unwrap_or_default())
        });
        let (canter, clock) = (target.join("debug/canter"), summary::Clock::start());
        Ok(Self { root, canter, state, whole, clock, sender, events })
    }

    fn run(&self, items: &[Item], chosen: &[Item]) -> Result<bool, Failure> {
        let allowed = summary::Allowed::read(&self.root.join("tests/skips.txt"))?;
        let built = self.build(chosen)?;
        let planner = Planner { root: &self.root, canter: &self.canter, built: &built, items, chosen };
        let (mut planned, problems) = planner.plan();
        let mut outcomes = Vec::new();
        if !problems.is_empty() {
            outcomes.push(problem(problems));
        }
        outcomes.iter().for_each(|one| println!("{}", summary::row(one)));
        let mut keys = Keys::read(&self.state.join("passed"));
        let repeats = !self.whole || env::var_os("AGAIN").is_some_and(|value| !value.is_empty());
        let mut known = HashMap::new();
        let before = planned.len();
        planned.retain(|one| {
            let key = keys.as_mut().and_then(|keys| key_of_line(keys, one));
            let passed =
                keys.as_ref().zip(key.as_ref()).and_then(|(keys, key)| keys.passed(&one.line.id, key));
            known.extend(key.map(|key| (one.line.id.clone(), key)));
            if let (Some(tests), false) = (passed, repeats) {
                println!("{}", summary::row_of_passed(&one.line.id, tests));
                return false;
            }
            true
        });
        let passed_before = before - planned.len();
        let streams = planned.len() == 1 && passed_before == 0;
        self.order(&mut planned);
        self.put_preparation(&mut planned);
        let ended = self.run_lines(&planned, streams, |outcome, whole| {
            println!("{}", summary::row(&outcome));
            if let (Some(keys), Some(key), true) = (&keys, known.get(&outcome.id), whole) {
                match outcome.failure.is_none()
                    && outcome.tally.skips.iter().all(|skip| allowed.is_everywhere(skip))
                {
                    true => keys.remember(&outcome.id, key, outcome.tally.passed()),
                    false => keys.forget(&outcome.id),
                }
            }
            outcomes.push(outcome);
        });
        if let Err(interrupted) = ended {
            summary::print_failures(&outcomes, streams);
            return Err(interrupted.into());
        }
        Ok(summary::print(&outcomes, passed_before, &allowed, self.whole.then_some(&self.clock), streams))
    }

    /// Builds what the chosen items run.
    fn build(&self, chosen: &[Item]) -> Result<Built, Failure> {
        let words = built::arguments(chosen.iter().any(Item::builds_all));
        let line = Line { merged: false, ..Line::new("build".to_owned(), words, &self.root) };
        let mut outcome = None;
        self.lanes().run(&[line], |_, _| (), |_, one| outcome = Some(one))?;
        let outcome = outcome.ok_or_else(|| "cargo: did not run".to_owned())?;
        if let Some(why) = outcome.failure {
            return Err(Failure(format!("cargo: {why}: nothing is tested"), 1));
        }
        let mut built = Built::read(&outcome.output);
        built.executables.iter_mut().try_for_each(built::Executable::list_tests)?;
        Ok(built)
    }

    /// Puts before all lines the one that makes what some of them need; those wait for it.
    fn put_preparation(&self, planned: &mut Vec<Planned>) {
        let needs: BTreeSet<String> = planned.iter().flat_map(|one| one.needs.clone()).collect();
        if !needs.is_empty() {
            planned.iter_mut().for_each(|one| one.line.waits = !one.needs.is_empty());
            let words =
                ["make", "--no-print-directory"].map(str::to_owned).into_iter().chain(needs).collect();
            planned.insert(
                0,
                Planned::new(Line::new(PREPARATION.to_owned(), words, &self.root), Inputs::Everything),
            );
        }
    }

    fn lanes(&self) -> Lanes<'_> {
        // One more than processors: a machine in the real clock waits half of its time.
        let count = 1 + thread::available_parallelism().map_or(1, usize::from);
        Lanes { count, sender: &self.sender, events: &self.events }
    }

    /// The longest first, as it was the last time; those that run alone at the end.
    fn order(&self, planned: &mut [Planned]) {
        let durations = self.durations();
        planned.sort_by_key(|one| {
            let duration =
                durations.get(&one.line.id).map_or(one.guess, |&seconds| Duration::from_secs_f64(seconds));
            (one.line.alone, std::cmp::Reverse(duration))
        });
    }

    fn durations(&self) -> HashMap<String, f64> {
        let text = fs::read_to_string(self.state.join("durations")).unwrap_or_default();
        let pairs = text.lines().filter_map(|line| line.split_once(' '));
        pairs
            .filter_map(|(seconds, id)| {
                Some((id.to_owned(), seconds.parse().ok().filter(|s: &f64| (0.0..1e6).contains(s))?))
            })
            .collect()
    }

    /// Runs the lines, keeps their output and durations, and hands over each outcome and whether all of its tests ran.
    fn run_lines(
        &self,
        planned: &[Planned],
        streams: bool,
        mut ended: impl FnMut(Outcome, bool),
    ) -> Result<(), Interrupted> {
        let lines: Vec<Line> = planned.iter().map(|one| one.line.clone()).collect();
        let mut durations = self.durations();
        let log = |id: &str| self.state.join("logs").join(file_name(id) + ".log");
        // A long line's output can be read while it runs.
        let mut logs = HashMap::<usize, Option<fs::File>>::new();
        let output = |number: usize, text: &str| {
            if streams {
                println!("{text}");
            }
            let file = logs.entry(number).or_insert_with(|| fs::File::create(log(&lines[number].id)).ok());
            if let Some(file) = file {
                writeln!(file, "{text}").ok();
            }
        };
        let result = self.lanes().run(&lines, output, |number, outcome| {
            let lines = [&outcome.output[..], &summary::times(outcome.tally.times.clone())].concat();
            fs::write(log(&outcome.id), lines.join("\n") + "\n").ok();
            if planned[number].whole && outcome.failure.is_none() {
                durations.insert(outcome.id.clone(), outcome.duration.as_secs_f64());
            }
            ended(outcome, planned[number].whole);
        });
        let mut text: Vec<String> =
            durations.iter().map(|(id, seconds)| format!("{seconds:.1} {id}\n")).collect();
        text.sort();
        fs::write(self.state.join("durations"), text.concat()).ok();
        result
    }
}

/// The key of a line, from its words and variables and from the files that it depends on.
fn key_of_line(keys: &mut Keys, planned: &Planned) -> Option<Key> {
    let values = planned.line.variables.iter().map(|(_, value)| value);
    let words: Vec<String> = planned.line.words.iter().chain(values).cloned().collect();
    keys.key(&words, &planned.package, &planned.inputs, &planned.others)
}

/// What is wrong with the plan, as a line that failed.
fn problem(problems: Vec<String>) -> Outcome {
    let failure = Some("tests that nothing would run".to_owned());
    Outcome {
        id: summary::PLAN.to_owned(),
        failure,
        duration: Duration::ZERO,
        tally: count::Tally::default(),
        output: problems,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_of_a_line_can_be_read_while_it_runs() {
        let target = env::temp_dir().join(format!("xtask-logs-{}", std::process::id()));
        let gate = Gate::new(target.clone(), &target, true).unwrap();
        let script = "echo first; until grep -qs first test/logs/long.log; do sleep 0.01; done; echo last";
        let mut line =
            Line::new("long".to_owned(), ["sh", "-c", script].map(str::to_owned).to_vec(), &target);
        line.limit = Duration::from_secs(60);
        let planned = Planned {
            line,
            needs: Vec::new(),
            package: String::new(),
            inputs: Inputs::Host,
            others: Vec::new(),
            whole: true,
            guess: Duration::ZERO,
        };
        let mut failures = Vec::new();
        gate.run_lines(&[planned], false, |outcome, _| failures.push(outcome.failure)).unwrap();
        let log = fs::read_to_string(target.join("test/logs/long.log")).unwrap();
        fs::remove_dir_all(&target).unwrap();
        assert_eq!((failures, log.as_str()), (vec![None], "first\nlast\n"));
    }
}

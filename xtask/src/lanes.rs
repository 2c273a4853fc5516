//! Runs lines, as many at a time as there are lanes: one that fails does not stop the others, one that hangs is ended.

use std::{
    io,
    path::{Path, PathBuf},
    process::{Command, ExitStatus},
    sync::mpsc::{Receiver, RecvTimeoutError, Sender},
    time::{Duration, Instant},
};

use crate::{
    count::Tally,
    process::{Event, Group, start},
};

/// A process that is asked to end has this long.
const END_WAIT: Duration = Duration::from_secs(10);

/// The line that makes what others need.
pub const PREPARATION: &str = "preparation";

/// A command that tests something.
#[derive(Clone, Debug)]
pub struct Line {
    pub id: String,
    pub words: Vec<String>,
    pub folder: PathBuf,
    pub variables: Vec<(String, String)>,
    pub limit: Duration,
    /// No other line runs meanwhile.
    pub alone: bool,
    /// The line [`PREPARATION`] must have passed before.
    pub waits: bool,
    /// How many tests it must count, where that is known.
    pub tests: Option<usize>,
    /// Errors are a part of its output, and not shown at once.
    pub merged: bool,
}

impl Line {
    pub fn new(id: String, words: Vec<String>, folder: &Path) -> Self {
        let (folder, variables, limit) = (folder.to_owned(), Vec::new(), Duration::from_secs(2 * 3600));
        Self { id, words, folder, variables, limit, alone: false, waits: false, tests: None, merged: true }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.words[0]);
        command.args(&self.words[1..]).current_dir(&self.folder);
        // What make and cargo set for this program is not for those that it starts.
        for (name, _) in std::env::vars() {
            let is_of_make = ["MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "CARGO_MAKEFLAGS"]
                .contains(&name.as_str());
            if is_of_make || name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
                command.env_remove(name);
            }
        }
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }
}

/// What became of a line.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub id: String,
    /// Why it failed; nothing when it passed.
    pub failure: Option<String>,
    pub duration: Duration,
    pub tally: Tally,
    pub output: Vec<String>,
}

struct Running {
    number: usize,
    group: Group,
    started: Instant,
    /// When it was asked to end.
    stopped: Option<Instant>,
    tally: Tally,
    output: Vec<String>,
}

/// Where lines run: so many at a time, each of which reports by the same channel.
pub struct Lanes<'a> {
    pub count: usize,
    pub sender: &'a Sender<Event>,
    pub events: &'a Receiver<Event>,
}

/// The user has interrupted the run.
#[derive(Debug)]
pub struct Interrupted;

impl Lanes<'_> {
    /// Runs the lines in their order. `output` gets each line of their output, `ended` each outcome with the number of its line.
    pub fn run(
        &self,
        lines: &[Line],
        mut output: impl FnMut(usize, &str),
        mut ended: impl FnMut(usize, Outcome),
    ) -> Result<(), Interrupted> {
        let (mut waiting, mut running) = ((0..lines.len()).collect::<Vec<_>>(), Vec::<Running>::new());
        let mut unprepared = false;
        loop {
            while let Some(at) = self.startable(lines, &waiting, &running) {
                let next = waiting.remove(at);
                let line = &lines[next];
                let started = match unprepared && line.waits {
                    true => Err(io::Error::other("the preparation failed")),
                    false => start(next, line.command(), line.merged, self.sender),
                };
                match started {
                    Ok(group) => running.push(Running::new(next, line, group)),
                    Err(error) => ended(next, Outcome::not_started(line, &error)),
                }
            }
            if running.is_empty() {
                return Ok(());
            }
            match self.events.recv_timeout(Duration::from_secs(1)) {
                Ok(Event::Output(number, text)) => {
                    if let Some(one) = running.iter_mut().find(|one| one.number == number) {
                        one.tally.read(&text, one.started.elapsed());
                        output(number, &text);
                        one.output.push(text);
                    }
                }
                Ok(Event::Ended(number, status)) => {
                    if let Some(at) = running.iter().position(|one| one.number == number) {
                        let outcome = running.remove(at).outcome(&lines[number], status);
                        unprepared |= outcome.id == PREPARATION && outcome.failure.is_some();
                        ended(number, outcome);
                    }
                }
                Ok(Event::Interrupted) => {
                    self.end(&running);
                    return Err(Interrupted);
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            running.iter_mut().for_each(|one| one.enforce(lines[one.number].limit));
        }
    }

    /// The place among those that wait of the first line that may start now.
    fn startable(&self, lines: &[Line], waiting: &[usize], running: &[Running]) -> Option<usize> {
        let numbers = || running.iter().map(|one| one.number);
        if running.len() >= self.count || numbers().any(|number| lines[number].alone) {
            return None;
        }
        let prepared =
            !numbers().chain(waiting.iter().copied()).any(|number| lines[number].id == PREPARATION);
        let may_start = |line: &Line| (prepared || !line.waits) && (running.is_empty() || !line.alone);
        waiting.iter().position(|&number| may_start(&lines[number]))
    }

    /// Ends what runs, and waits for it.
    fn end(&self, running: &[Running]) {
        running.iter().for_each(|one| one.group.signal("TERM"));
        let (asked, mut left) = (Instant::now(), running.len());
        while left > 0 && asked.elapsed() < END_WAIT {
            match self.events.recv_timeout(Duration::from_millis(100)) {
                Ok(Event::Ended(..)) => left -= 1,
                Ok(Event::Interrupted) => break,
                _ => {}
            }
        }
        running.iter().for_each(|one| one.group.signal("KILL"));
    }
}

impl Running {
    fn new(number: usize, line: &Line, group: Group) -> Self {
        let in_turn = line.words.iter().any(|word| word == "--test-threads=1");
        let (tally, output) = (Tally::new(in_turn), Vec::new());
        Self { number, group, started: Instant::now(), stopped: None, tally, output }
    }

    /// Ends a line that has had its time.
    fn enforce(&mut self, limit: Duration) {
        match self.stopped {
            None if self.started.elapsed() > limit => {
                self.stopped = Some(Instant::now());
                self.group.signal("TERM");
            }
            Some(asked) if asked.elapsed() > END_WAIT => self.group.signal("KILL"),
            _ => {}
        }
    }

    fn outcome(self, line: &Line, status: io::Result<ExitStatus>) -> Outcome {
        let counted = self.tally.passed() + self.tally.failed + self.tally.skips.len();
        let failure = match (status, line.tests) {
            _ if self.stopped.is_some() => {
                Some(format!("stopped after its limit of {} s", line.limit.as_secs()))
            }
            (Err(error), _) => Some(error.to_string()),
            (Ok(status), _) if !status.success() => Some(status.to_string()),
            (Ok(_), _) if self.tally.failed > 0 => {
                Some("failed tests, although its exit code is 0".to_owned())
            }
            (Ok(_), Some(tests)) if counted != tests => Some(format!("ran {counted} of {tests} tests")),
            _ => None,
        };
        let (duration, tally, output) = (self.started.elapsed(), self.tally, self.output);
        Outcome { id: line.id.clone(), failure, duration, tally, output }
    }
}

impl Outcome {
    /// The outcome of a line whose command could not be started.
    fn not_started(line: &Line, why: &io::Error) -> Self {
        let failure = Some(format!("{}: {why}", line.words[0]));
        Self {
            id: line.id.clone(),
            failure,
            duration: Duration::ZERO,
            tally: Tally::default(),
            output: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    fn line(id: &str, script: &str) -> Line {
        Line::new(id.to_owned(), ["sh", "-c", script].map(str::to_owned).to_vec(), Path::new("/"))
    }

    /// Outcomes in the order in which the lines ended.
    fn outcomes(lines: &[Line], count: usize) -> Vec<Outcome> {
        let ((sender, events), mut outcomes) = (channel(), Vec::new());
        Lanes { count, sender: &sender, events: &events }
            .run(lines, |_, _| (), |_, one| outcomes.push(one))
            .unwrap();
        outcomes
    }

    fn failures(outcomes: &[Outcome]) -> Vec<(&str, bool)> {
        outcomes.iter().map(|one| (one.id.as_str(), one.failure.is_some())).collect()
    }

    #[test]
    fn the_others_go_on_after_a_failure_and_output_is_counted() {
        let lines = [
            line("bad", "echo broken >&2; exit 3"),
            line("good", "echo 'ok 1 - it works'"),
            line("lie", "echo 'not ok 1 - x'"),
        ];
        let outcomes = outcomes(&lines, 1);
        assert_eq!(failures(&outcomes), [("bad", true), ("good", false), ("lie", true)]);
        assert_eq!(outcomes[0].output, ["broken"]);
        assert_eq!(outcomes[1].tally.passed(), 1);
    }

    #[test]
    fn fewer_tests_than_there_are_is_a_failure() {
        let mut short = line("short", "echo 'ok 1 - it works'");
        short.tests = Some(2);
        assert_eq!(outcomes(&[short], 1)[0].failure.as_deref(), Some("ran 1 of 2 tests"));
    }

    #[test]
    fn a_line_that_hangs_is_ended_with_what_it_started_and_the_others_go_on() {
        let mut hangs = line("hangs", "sleep 1000 & sleep 1000");
        hangs.limit = Duration::ZERO;
        let outcomes = outcomes(&[hangs, line("good", "true")], 1);
        assert_eq!(failures(&outcomes), [("hangs", true), ("good", false)]);
    }

    #[test]
    fn two_lines_run_at_once_and_one_that_is_alone_does_not() {
        let place = std::env::temp_dir().join(format!("xtask-lanes-{}", std::process::id()));
        std::fs::create_dir_all(&place).unwrap();
        let meet = |mine: &str, other: &str| {
            format!("cd '{}'; touch {mine}; until [ -e {other} ]; do sleep 0.01; done", place.display())
        };
        let mut alone = line("alone", &format!("cd '{}'; rm a b", place.display()));
        alone.alone = true;
        let outcomes = outcomes(&[line("a", &meet("a", "b")), line("b", &meet("b", "a")), alone], 2);
        assert!(outcomes.iter().all(|one| one.failure.is_none()), "{outcomes:?}");
        std::fs::remove_dir_all(&place).unwrap();
    }

    #[test]
    fn what_waits_for_the_preparation_starts_behind_it_and_not_when_it_fails() {
        let waits = Line { waits: true, ..line("waits", "true") };
        let others = [waits, line("free", "true")];
        for (script, fails) in [("true", false), ("false", true)] {
            let lines = [&[line(PREPARATION, script)], &others[..]].concat();
            let mut outcomes = outcomes(&lines, 2);
            outcomes.sort_by(|a, b| a.id.cmp(&b.id));
            assert_eq!(failures(&outcomes), [("free", false), (PREPARATION, fails), ("waits", fails)]);
        }
    }

    #[test]
    fn an_interruption_ends_what_runs() {
        let (sender, events) = channel();
        sender.send(Event::Interrupted).unwrap();
        let lanes = Lanes { count: 1, sender: &sender, events: &events };
        assert!(lanes.run(&[line("waits", "sleep 1000")], |_, _| (), |_, _| ()).is_err());
    }
}

//! What a run prints: a row per line as it ends, then failures, slow tests, skips and the sum.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use crate::{
    keys::output,
    lanes::{Outcome, PREPARATION},
};

/// How many of the slowest tests are listed, of those that take at least so long.
const SLOWEST: usize = 10;
const SLOW: Duration = Duration::from_secs(1);

/// The id of the outcome that tells what is wrong with the plan.
pub const PLAN: &str = "plan";

/// `ok      12.3 s  canter::capture   34 passed`
pub fn row(outcome: &Outcome) -> String {
    let verdict = if outcome.failure.is_some() { "FAILED" } else { "ok" };
    let tally = &outcome.tally;
    let mut counts = format!("{} passed", tally.passed());
    for (number, word) in [(tally.failed, "failed"), (tally.skips.len(), "skipped")] {
        if number > 0 {
            counts += &format!(", {number} {word}");
        }
    }
    let failure = outcome.failure.as_ref().map(|why| format!("  ({why})")).unwrap_or_default();
    format!("{verdict:6} {:7.1} s  {:32} {counts}{failure}", outcome.duration.as_secs_f64(), outcome.id)
}

pub fn row_of_passed(id: &str, tests: usize) -> String {
    format!("passed before    {id:32} {tests} passed")
}

/// The skips that may happen: the beginning of a test's name and reason, in which `*` is a word without a blank; behind
/// `everywhere: ` those that no machine changes.
pub struct Allowed(Vec<String>);

const EVERYWHERE: &str = "everywhere: ";

impl Allowed {
    pub fn read(path: &Path) -> Result<Self, String> {
        let text = fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        Ok(Self(lines.map(str::to_owned).collect()))
    }

    fn has(&self, skip: &str) -> bool {
        self.0.iter().any(|pattern| matches(pattern.strip_prefix(EVERYWHERE).unwrap_or(pattern), skip))
    }

    /// Whether it is skipped on every machine, so that a repetition finds out nothing.
    pub fn is_everywhere(&self, skip: &str) -> bool {
        self.0
            .iter()
            .filter_map(|pattern| pattern.strip_prefix(EVERYWHERE))
            .any(|pattern| matches(pattern, skip))
    }
}

fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let start = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(start) else { return false };
    for part in parts {
        let word = rest.find([' ']).unwrap_or(rest.len());
        match rest.find(part) {
            Some(at) if at <= word => rest = &rest[at + part.len()..],
            _ => return false,
        }
    }
    true
}

/// The output of each line that failed, and how to repeat it.
pub fn print_failures(outcomes: &[Outcome], streamed: bool) {
    for outcome in outcomes.iter().filter(|one| one.failure.is_some()) {
        println!("\n---- {} ----", outcome.id);
        if !streamed {
            outcome.output.iter().for_each(|line| println!("{line}"));
        }
        let again = match outcome.id.as_str() {
            PLAN | PREPARATION => String::new(),
            id => format!("; again: make test ONLY='{}'", name(id)),
        };
        println!("{}{again}", outcome.failure.as_deref().unwrap_or_default());
    }
}

/// The end of a run: whether it passed.
pub fn print(
    outcomes: &[Outcome],
    passed_before: usize,
    allowed: &Allowed,
    run: Option<&Clock>,
    streamed: bool,
) -> bool {
    print_failures(outcomes, streamed);
    print_slowest(outcomes);
    let mut refused = 0;
    for skip in outcomes.iter().flat_map(|one| &one.tally.skips) {
        let is_allowed = allowed.has(skip);
        refused += usize::from(!is_allowed);
        println!("skipped{}: {skip}", if is_allowed { "" } else { " and not allowed" });
    }
    let sum = |number: fn(&Outcome) -> usize| outcomes.iter().map(number).sum::<usize>();
    let (passed, skipped) = (sum(|one| one.tally.passed()), sum(|one| one.tally.skips.len()));
    // A line that fails without a failed test, such as a compiler's error, is a failure, too.
    let failed = sum(|one| one.tally.failed.max(usize::from(one.failure.is_some())));
    let counts = format!("{passed} passed, {failed} failed, {skipped} skipped");
    let green = outcomes.iter().all(|one| one.failure.is_none()) && refused == 0;
    if let Some(clock) = run {
        println!("For tests/runs.md:\n{}", clock.row(&counts, green));
    }
    if refused > 0 {
        println!("test: {refused} tests were skipped that tests/skips.txt does not list");
    }
    if passed_before > 0 {
        println!("test: {passed_before} modules passed before with the same inputs (AGAIN=1 repeats them)");
    }
    println!("test: {counts}");
    green
}

/// A line's name without the machine.
fn name(id: &str) -> &str {
    id.split(' ').next().unwrap_or(id)
}

/// A line for each test with what it took, the longest first.
pub fn times(mut times: Vec<(String, Duration)>) -> Vec<String> {
    times.sort_by(|(test, time), (other, others)| (others, other).cmp(&(time, test)));
    times.iter().map(|(test, time)| format!("{:7.1} s  {test}", time.as_secs_f64())).collect()
}

fn print_slowest(outcomes: &[Outcome]) {
    let times = |one: &'_ Outcome| {
        let package = one.id.split("::").next().unwrap_or_default().to_owned();
        one.tally
            .times
            .iter()
            .filter(|(_, time)| *time >= SLOW)
            .map(move |(test, time)| (format!("{package}::{test}"), *time))
            .collect::<Vec<_>>()
    };
    let lines = self::times(outcomes.iter().flat_map(times).collect());
    if !lines.is_empty() {
        println!("\nThe slowest tests, of those that run one after the other:");
        lines.iter().take(SLOWEST).for_each(|line| println!("{line}"));
        println!();
    }
}

/// The time that a run takes, and how busy other programs keep the processors meanwhile.
pub struct Clock {
    started: Instant,
    busy_ticks: u64,
}

/// proc_stat(5) counts in units of USER_HZ, which Linux has at 100 for all programs.
const TICKS_PER_S: u64 = 100;

impl Clock {
    pub fn start() -> Self {
        Self { started: Instant::now(), busy_ticks: busy_ticks() }
    }

    /// The run as a row of tests/runs.md.
    fn row(&self, counts: &str, green: bool) -> String {
        let took = self.started.elapsed().as_secs();
        let child_ticks = child_ticks();
        let others_ticks = (busy_ticks() - self.busy_ticks).saturating_sub(child_ticks);
        let processors = std::thread::available_parallelism().map_or(1, usize::from) as u64;
        let others = 100 * others_ticks / (took.max(1) * TICKS_PER_S * processors);
        let folder = std::env::current_dir().unwrap_or_default().display().to_string();
        let user = output("id", &["-un"]).unwrap_or_default();
        let cells = [
            output("date", &["+%F"]).unwrap_or_default().trim().to_owned(),
            revision(),
            place(&folder, std::env::var_os("CARGO_TARGET_DIR").is_some(), user.trim()),
            counts.to_owned(),
            if green { "green" } else { "red" }.to_owned(),
            minutes(took),
            minutes(child_ticks / TICKS_PER_S),
            format!("{others} %"),
        ];
        format!("| {} |", cells.join(" | "))
    }
}

fn minutes(seconds: u64) -> String {
    format!("{} min {:02} s", seconds / 60, seconds % 60)
}

/// The commit, short, with `+` when files differ from it.
fn revision() -> String {
    let Some(commit) = output("git", &["rev-parse", "--short", "HEAD"]) else {
        return "no repository".to_owned();
    };
    let differs = output("git", &["status", "--porcelain"]).is_some_and(|files| !files.is_empty());
    format!("{}{}", commit.trim(), if differs { "+" } else { "" })
}

/// What is special about the place of a run.
fn place(folder: &str, target_elsewhere: bool, user: &str) -> String {
    let below = ["/tmp", "/run"].into_iter().find(|root| folder.starts_with(&format!("{root}/")));
    let mut words = vec![below.map_or("a clone".to_owned(), |root| format!("below {root}"))];
    words.extend(folder.contains(' ').then(|| "spaces in the path".to_owned()));
    words.extend(target_elsewhere.then(|| "CARGO_TARGET_DIR elsewhere".to_owned()));
    words.push(if user == "root" { "as root" } else { "as a user" }.to_owned());
    words.join(", ")
}

/// Time that all programs have had the processors (proc_stat(5): user, nice, system; not guests twice).
fn busy_ticks() -> u64 {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    let cpu = text.lines().next().unwrap_or_default();
    cpu.split_whitespace().skip(1).take(3).filter_map(|field| field.parse::<u64>().ok()).sum()
}

/// Time of the programs that this one has started and waited for (proc_pid_stat(5): cutime, cstime).
fn child_ticks() -> u64 {
    let text = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let behind_name = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    behind_name.split_whitespace().skip(13).take(2).filter_map(|field| field.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::count::Tally;

    #[test]
    fn a_row_has_the_verdict_the_duration_and_the_counts() {
        let mut tally = Tally::default();
        ["ok 1 - a", "not ok 2 - b", "ok 3 - c # SKIP no card"]
            .iter()
            .for_each(|line| tally.read(line, Duration::ZERO));
        let failure = Some("exit status: 1".to_owned());
        let outcome = Outcome {
            id: "kernel::bits".to_owned(),
            failure,
            duration: Duration::from_millis(12_340),
            tally,
            output: Vec::new(),
        };
        let cells = "FAILED    12.3 s  kernel::bits                     1 passed, 1 failed, 1 skipped  (exit status: 1)";
        assert_eq!(row(&outcome), cells);
    }

    #[test]
    fn a_skip_is_allowed_by_the_beginning_of_its_words() {
        let allowed = Allowed(vec![
            "lint: *: rustup target".to_owned(),
            "everywhere: test/back2back_test.py:*: TODO".to_owned(),
        ]);
        assert!(
            allowed.has("lint: wasm32: rustup target add does not work")
                && allowed.has("test/back2back_test.py:145: TODO: how")
        );
        let everywhere = ["test/back2back_test.py:145: TODO: how", "lint: wasm32: rustup target"];
        assert_eq!(everywhere.map(|skip| allowed.is_everywhere(skip)), [true, false]);
        assert!(
            !allowed.has("a lint: wasm32: rustup target") && !allowed.has("lint: two words: rustup target")
        );
    }

    #[test]
    fn the_place_of_a_run_is_described() {
        assert_eq!(place("/home/u/canter", false, "u"), "a clone, as a user");
        assert_eq!(place("/tmp/a b/canter", false, "root"), "below /tmp, spaces in the path, as root");
        assert_eq!(place("/home/u/canter", true, "u"), "a clone, CARGO_TARGET_DIR elsewhere, as a user");
    }

    #[test]
    fn the_processors_time_is_read() {
        assert!(busy_ticks() > 0);
        assert_eq!(minutes(125), "2 min 05 s");
    }
}

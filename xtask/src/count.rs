//! Counts what a line's output reports: results of Rust's test programs, of pytest and of TAP programs, on the host and in
//! the lab's guests, each skip with its reason, and the time that each test took, where they run one after the other.

use std::time::Duration;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tally {
    passed: usize,
    /// Skips that a Rust program counts as passed, too.
    passed_skips: usize,
    pub failed: usize,
    pub skips: Vec<String>,
    /// Names and durations of tests of a program that runs them one after the other.
    pub times: Vec<(String, Duration)>,
    last: Duration,
    in_turn: bool,
}

impl Tally {
    /// `in_turn`: the program runs its tests one after the other.
    pub fn new(in_turn: bool) -> Self {
        Self { in_turn, ..Self::default() }
    }

    /// The number of tests that passed, without those that were skipped.
    pub fn passed(&self) -> usize {
        self.passed.saturating_sub(self.passed_skips)
    }

    /// Counts a line that came `at` after the start.
    pub fn read(&mut self, line: &str, at: Duration) {
        // A test that skips reports that past the harness, behind the name that the harness has begun to print.
        let skip = line.strip_prefix("SKIP ").or_else(|| {
            line.split_once(" ... SKIP ").filter(|(name, _)| name.starts_with("test ")).map(|(_, skip)| skip)
        });
        if let Some((passed, failed)) = rust(line) {
            self.passed += passed;
            self.failed += failed;
        } else if let Some(skip) = skip {
            self.skips.push(skip.to_owned());
            self.passed_skips += 1;
        } else if let Some(skip) = line.strip_prefix("SKIPPED ") {
            self.skipped(skip);
        } else if let Some((ok, text)) = tap(line) {
            match text.find("# SKIP").or_else(|| text.find("# skip")) {
                Some(at) => self.skips.push(format!(
                    "{}: {}",
                    text[..at].trim(),
                    text[at + 6..].trim_start_matches([' ', ':'])
                )),
                None if ok => self.passed += 1,
                None => self.failed += 1,
            }
        } else if let Some((passed, failed)) = pytest(line) {
            self.passed += passed;
            self.failed += failed;
        }
        if line.starts_with("running ") {
            self.last = at;
        } else if self.in_turn
            && let Some((name, _)) = line.strip_prefix("test ").and_then(|rest| rest.split_once(" ... "))
        {
            self.times.push((name.to_owned(), at.saturating_sub(self.last)));
            self.last = at;
        }
    }

    /// `SKIPPED [2] where: why` is pytest's, `SKIPPED what: why` of a script.
    fn skipped(&mut self, skip: &str) {
        let counted = skip.strip_prefix('[').and_then(|rest| rest.split_once("] "));
        match counted.and_then(|(number, skip)| Some((number.parse::<usize>().ok()?, skip))) {
            Some((number, skip)) => self.skips.extend(vec![skip.to_owned(); number]),
            None => self.skips.push(skip.to_owned()),
        }
    }
}

/// `test result: ok. 36 passed; 0 failed; 5 ignored; …`
fn rust(line: &str) -> Option<(usize, usize)> {
    let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let mut counts = counts.split("; ");
    let number = |part: &str, word: &str| part.strip_suffix(word)?.trim().parse().ok();
    Some((number(counts.next()?, "passed")?, number(counts.next()?, "failed")?))
}

/// `ok 1 - A frame arrives`
fn tap(line: &str) -> Option<(bool, &str)> {
    let (ok, rest) = match line.strip_prefix("not ok ") {
        Some(rest) => (false, rest),
        None => (true, line.strip_prefix("ok ")?),
    };
    let (number, text) = rest.split_once(" - ")?;
    number.parse::<usize>().ok().map(|_| (ok, text))
}

/// `==== 1 failed, 2 passed, 1 error in 5.40s ====`
fn pytest(line: &str) -> Option<(usize, usize)> {
    let (counts, took) = line.trim_matches(['=', ' ']).rsplit_once(" in ")?;
    took.split_once('s').filter(|(seconds, _)| seconds.parse::<f64>().is_ok())?;
    let (mut passed, mut failed) = (0, 0);
    for part in counts.split(", ") {
        let (number, word) = part.split_once(' ')?;
        let number = number.parse::<usize>().ok()?;
        match word {
            "passed" => passed += number,
            "failed" | "error" | "errors" => failed += number,
            _ => {}
        }
    }
    Some((passed, failed))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
running 36 tests
test result: ok. 36 passed; 0 failed; 5 ignored; 0 measured; 0 filtered out; finished in 0.56s
test result: FAILED. 3 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.0s
ok 1 - A frame arrives
not ok 2 - Another does
ok 3 - A third # SKIP no card
SKIP a_name_of_a_test: there is no tshark here
test b ... SKIP b: there is no cangw here
ok
SKIPPED lint: this toolchain has no clippy
SKIPPED [2] test/back2back_test.py:145: TODO
76 passed, 4 skipped, 2 deselected, 2 warnings in 227.80s (0:03:47)
======= 1 failed, 2 passed, 1 error in 5.40s =======
12 frames in 3 s
it ended in 2.0s
";

    #[test]
    fn results_of_rust_tap_and_pytest_are_counted_and_skips_keep_their_reason() {
        let mut tally = Tally::default();
        OUTPUT.lines().for_each(|line| tally.read(line, Duration::ZERO));
        assert_eq!((tally.passed(), tally.failed), (36 + 3 + 1 - 2 + 76 + 2, 1 + 1 + 2));
        let twice = "test/back2back_test.py:145: TODO";
        let reasons = [
            "A third: no card",
            "a_name_of_a_test: there is no tshark here",
            "b: there is no cangw here",
            "lint: this toolchain has no clippy",
            twice,
            twice,
        ];
        assert_eq!(tally.skips, reasons);
    }

    #[test]
    fn a_test_took_the_time_since_the_one_before_it() {
        let mut tally = Tally::new(true);
        for (at_s, line) in
            [(5, "running 2 tests"), (7, "test wire::a ... ok"), (10, "test wire::b ... FAILED")]
        {
            tally.read(line, Duration::from_secs(at_s));
        }
        let times =
            [("wire::a".to_owned(), Duration::from_secs(2)), ("wire::b".to_owned(), Duration::from_secs(3))];
        assert_eq!(tally.times, times);
    }
}

//! The last lines of `canter decode`: what the databases know, and what is missing.

use super::{
    coverage::Coverage,
    output::{Tallies, Tally},
};
use crate::recordings::{Ending, Outcome};
use canter_cli::{
    failure::{self, Exit, Failure},
    options::Common,
};
use serde::Serialize;
use std::collections::BTreeMap;

/// The document of `--json`.
#[derive(Serialize)]
struct Document<'a> {
    inputs: &'a [Outcome],
    coverage: &'a Coverage,
    /// Frames that are shorter than their message, by message.
    short: BTreeMap<&'a str, u64>,
    /// Frames with a selector that selects nothing, by message.
    unselected: BTreeMap<&'a str, u64>,
}

/// `41 of 300 identifiers, 97.0 % of 1000 frames`.
fn sentence(coverage: &Coverage) -> String {
    let Coverage { identifiers, known_identifiers, frames, known_frames, .. } = coverage;
    let share = match frames {
        0 => 0.0,
        frames => 100.0 * *known_frames as f64 / *frames as f64,
    };
    // What is not all is never printed as 100.0 %.
    let share = if known_frames < frames { share.min(99.9) } else { share };
    format!("decoded: {known_identifiers} of {identifiers} identifiers, {share:.1} % of {frames} frames")
}

/// A line with a count and the messages that it comes from. `one` and `more` say it of one frame and of several.
fn line(tallies: &Tallies, one: &str, more: &str, frames: impl Fn(&Tally) -> u64) -> Option<String> {
    let named: Vec<_> = tallies.iter().filter(|(_, tally)| frames(tally) > 0).collect();
    let sum: u64 = named.iter().map(|(_, tally)| frames(tally)).sum();
    let first: Vec<&str> = named.iter().take(3).map(|(name, _)| name.as_str()).collect();
    let others = if named.len() > 3 { format!(" and {} more", named.len() - 3) } else { String::new() };
    let what = if sum == 1 { one } else { more };
    (sum > 0).then(|| format!("{sum} {what}: {}{others}", first.join(", ")))
}

/// Prints the report, and decides on the exit code.
pub fn close(
    coverage: Coverage,
    tallies: &Tallies,
    ending: Option<Ending>,
    common: &Common,
) -> failure::Result {
    let (outcomes, remarks) =
        ending.map_or_else(Default::default, |ending| (ending.outcomes, ending.remarks));
    let by_message = |frames: fn(&Tally) -> u64| {
        tallies
            .iter()
            .map(|(name, tally)| (name.as_str(), frames(tally)))
            .filter(|&(_, frames)| frames > 0)
            .collect()
    };
    common.write_json(&Document {
        inputs: &outcomes,
        coverage: &coverage,
        short: by_message(|tally| tally.short),
        unselected: by_message(|tally| tally.unselected),
    })?;
    let mut lines = remarks;
    let (one, more) = ("frame is shorter than its message", "frames are shorter than their message");
    lines.extend(line(tallies, one, more, |tally| tally.short));
    let without = "a multiplexer value without signals";
    let (one, more) = (format!("frame has {without}"), format!("frames have {without}"));
    lines.extend(line(tallies, &one, &more, |tally| tally.unselected));
    if coverage.broken > 0 {
        lines.push(format!("{} transported messages are not complete: left out", coverage.broken));
    }
    if coverage.others > 0 {
        lines.push(format!("{} remote or error frames have no signals", coverage.others));
    }
    if !common.quiet {
        lines.iter().for_each(|line| eprintln!("{line}"));
    }
    if coverage.known_frames == 0 {
        let reason = match coverage.frames {
            0 => "no data frame was read".to_owned(),
            _ => format!("{}: nothing matched: wrong database?", sentence(&coverage)),
        };
        return Err(Failure::failed(reason));
    }
    if !common.quiet {
        eprintln!("{}", sentence(&coverage));
    }
    Ok(if outcomes.iter().any(Outcome::is_doubtful) { Exit::Lost } else { Exit::Done })
}

//! Claims: a sentence of a paper with a criterion over series, whose bounds derive from the paper's own number. The
//! verdict is computed from results; nobody writes it by hand. What explains a figure outside the bounds (a change of Linux,
//! a cost that the clock lacks) is written with the criterion, before the run that it explains.

mod criterion;
mod evidence;
mod finding;
mod outcome;
mod selector;
mod statistic;
#[cfg(test)]
mod tests;

pub use criterion::Criterion;
pub use evidence::Evidence;
pub use outcome::Finding;
pub use statistic::Statistic;

use canter_measure::verdicts::Word;
use serde::Deserialize;

/// A claim as `[[claim]]` in a study file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    says: String,
    /// The place in the paper: `2011, figure 13`; unless given, the study's source.
    at: Option<String>,
    ratio: Option<criterion::Ratio>,
    time: Option<criterion::Time>,
    share: Option<criterion::Share>,
    order: Option<criterion::Order>,
    course: Option<criterion::Course>,
    line: Option<criterion::Line>,
    knee: Option<criterion::Knee>,
    lost: Option<criterion::LostShare>,
    keeps_up: Option<criterion::KeepsUp>,
    measured: Option<criterion::Measured>,
    /// The study whose instrument measures the same once more.
    second: Option<String>,
    /// The change of Linux that explains a figure outside the bounds.
    changed: Option<String>,
    /// The cost that this clock, or the part that this machine lacks, and that explains a figure outside the bounds; without a
    /// criterion: why nothing here measures it.
    lacks: Option<String>,
    /// What has to be done before the claim can be decided, in place of a criterion.
    unmeasured: Option<String>,
    /// Why the series that exist decide nothing, whatever they show: a fault of their load or instrument.
    doubt: Option<String>,
    /// Whether the claim is one of the sentences on a page's first screen.
    #[serde(default)]
    headline: bool,
    cannot: Option<String>,
}

/// A sentence of a paper, and how to decide it.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "File")]
pub struct Claim {
    /// The claim's name within the study: letters, digits and hyphens.
    pub name: String,
    pub says: String,
    pub at: Option<String>,
    pub criterion: Criterion,
    pub second: Option<String>,
    /// Whether it is one of the sentences on a page's first screen.
    pub headline: bool,
    cause: Option<Cause>,
}

/// What explains a figure outside the bounds, no figure at all, or one that decides nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Cause {
    Changed(String),
    Lacks(String),
    Unmeasured(String),
    Doubt(String),
}

impl Cause {
    fn text(&self) -> &str {
        match self {
            Self::Changed(text) | Self::Lacks(text) | Self::Unmeasured(text) | Self::Doubt(text) => text,
        }
    }
}

impl Claim {
    /// The verdict on a finding, with the cause that explains it.
    pub fn word(&self, finding: Finding) -> (Word, &str) {
        match (finding, &self.cause) {
            (Finding::Within | Finding::Outside | Finding::Unclear, Some(Cause::Doubt(doubt))) => {
                (Word::Open, doubt)
            }
            (Finding::Within, _) => (Word::Holds, ""),
            (Finding::Outside, Some(Cause::Changed(change))) => (Word::NoLonger, change),
            (Finding::Outside, Some(Cause::Lacks(cost))) => (Word::NotByInstrument, cost),
            (Finding::Outside, _) => (Word::Open, "outside the bounds, and the cause is not known"),
            (Finding::Unclear, _) => (Word::Open, ""),
            (Finding::Missing, Some(Cause::Lacks(part))) if self.has_no_criterion() => {
                (Word::NotByInstrument, part)
            }
            (Finding::Missing, Some(Cause::Unmeasured(work))) => (Word::NotMeasured, work),
            (Finding::Missing, _) => (Word::NotMeasured, ""),
        }
    }

    fn has_no_criterion(&self) -> bool {
        matches!(self.criterion, Criterion::Nothing)
    }
}

impl TryFrom<File> for Claim {
    type Error = String;

    fn try_from(file: File) -> Result<Self, String> {
        let File {
            name,
            says,
            at,
            ratio,
            time,
            share,
            order,
            course,
            line,
            knee,
            lost,
            keeps_up,
            measured,
            ..
        } = file;
        let wrong = |what: &str| format!("claim {name:?}: {what}");
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
            return Err(wrong("name: letters, digits and hyphens"));
        }
        if file.cannot.is_some() {
            return Err(wrong("cannot: is `lacks` (a cost or a part) or `unmeasured` (work) now"));
        }
        let given = [
            ratio.map(Box::new).map(Criterion::Ratio),
            time.map(Box::new).map(Criterion::Time),
            share.map(Box::new).map(Criterion::Share),
            order.map(Criterion::Order),
            course.map(Criterion::Course),
            line.map(Criterion::Line),
            knee.map(Box::new).map(Criterion::Knee),
            lost.map(Box::new).map(Criterion::Lost),
            keeps_up.map(Criterion::KeepsUp),
            measured.map(Criterion::Measured),
        ];
        let causes = [
            file.changed.map(Cause::Changed),
            file.lacks.map(Cause::Lacks),
            file.unmeasured.map(Cause::Unmeasured),
            file.doubt.map(Cause::Doubt),
        ];
        let criterion = only(given).map_err(|()| wrong("has several criteria"))?;
        let cause = only(causes).map_err(|()| wrong("only one of changed, lacks, unmeasured and doubt"))?;
        if cause.as_ref().is_some_and(|cause| cause.text().is_empty()) {
            return Err(wrong("changed, lacks, unmeasured and doubt need a reason"));
        }
        let criterion = match (criterion, &cause) {
            (Some(_), Some(Cause::Unmeasured(_))) => {
                return Err(wrong("unmeasured: a claim with a criterion is measured"));
            }
            (Some(criterion), _) => criterion,
            (None, Some(Cause::Lacks(_) | Cause::Unmeasured(_))) => Criterion::Nothing,
            (None, _) => {
                return Err(wrong(
                    "needs one of ratio, time, share, order, course, line, knee, lost, keeps_up and measured, or else lacks or unmeasured",
                ));
            }
        };
        criterion.check().map_err(|why| wrong(&why))?;
        Ok(Self { name, says, at, criterion, second: file.second, headline: file.headline, cause })
    }
}

/// The only one that is given; an error when there are several.
fn only<T, const N: usize>(given: [Option<T>; N]) -> Result<Option<T>, ()> {
    let mut given = given.into_iter().flatten();
    match (given.next(), given.next()) {
        (one, None) => Ok(one),
        _ => Err(()),
    }
}

//! Claims: a sentence of a paper with a criterion over series, whose bounds derive from the paper's own number. The
//! verdict is computed from results; nobody writes it by hand.

mod criterion;
mod evidence;
mod outcome;
mod selector;
mod statistic;
#[cfg(test)]
mod tests;

pub use criterion::Criterion;
pub use evidence::Evidence;
pub use outcome::{Outcome, Word};
pub use statistic::Statistic;

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
    order: Option<criterion::Order>,
    course: Option<criterion::Course>,
    line: Option<criterion::Line>,
    knee: Option<criterion::Knee>,
    lost: Option<criterion::LostShare>,
    /// The reason why no series here can decide the claim.
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
}

impl TryFrom<File> for Claim {
    type Error = String;

    fn try_from(file: File) -> Result<Self, String> {
        let File { name, says, at, ratio, order, course, line, knee, lost, cannot } = file;
        let wrong = |what: &str| format!("claim {name:?}: {what}");
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
            return Err(wrong("name: letters, digits and hyphens"));
        }
        let given = [
            ratio.map(Box::new).map(Criterion::Ratio),
            order.map(Criterion::Order),
            course.map(Criterion::Course),
            line.map(Criterion::Line),
            knee.map(Box::new).map(Criterion::Knee),
            lost.map(Criterion::Lost),
            cannot.map(Criterion::Cannot),
        ];
        let mut given = given.into_iter().flatten();
        match (given.next(), given.next()) {
            (Some(criterion), None) => {
                criterion.check().map_err(|why| wrong(&why))?;
                Ok(Self { name, says, at, criterion })
            }
            _ => Err(wrong("needs one of ratio, order, course, line, knee, lost and cannot")),
        }
    }
}

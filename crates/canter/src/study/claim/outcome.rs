//! What a criterion has found: one of four words, the figure with its interval, and the bounds.

use crate::measure::statistics::Estimate;
use serde::{Deserialize, Serialize};

/// The verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Word {
    /// The whole interval lies within the bounds.
    #[serde(rename = "reproduced")]
    Reproduced,
    /// The whole interval lies outside.
    #[serde(rename = "refuted")]
    Refuted,
    /// The interval contains a bound, or the series cannot carry a judgement.
    #[serde(rename = "undecided")]
    Undecided,
    /// There is no series, with the reason.
    #[serde(rename = "not measurable here")]
    NotMeasurable,
}

impl Word {
    pub const ALL: [Self; 4] = [Self::Reproduced, Self::Refuted, Self::Undecided, Self::NotMeasurable];

    pub fn name(self) -> &'static str {
        ["reproduced", "refuted", "undecided", "not measurable here"][self as usize]
    }

    /// The verdict of an interval on bounds.
    pub fn of(estimate: Estimate, [from, to]: [f64; 2]) -> Self {
        if estimate.low >= from && estimate.high <= to {
            Self::Reproduced
        } else if estimate.high < from || estimate.low > to {
            Self::Refuted
        } else {
            Self::Undecided
        }
    }
}

/// Verdicts of several comparisons that must all hold: one that fails refutes, one that is open leaves all open.
impl FromIterator<Word> for Word {
    fn from_iter<I: IntoIterator<Item = Self>>(words: I) -> Self {
        let words: Vec<_> = words.into_iter().collect();
        let first = |word: Self| words.contains(&word).then_some(word);
        first(Self::NotMeasurable)
            .or_else(|| first(Self::Refuted))
            .or_else(|| first(Self::Undecided))
            .unwrap_or(Self::Reproduced)
    }
}

/// A verdict with its numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    pub word: Word,
    /// The figures in words, or why there are none.
    pub figures: String,
    /// The figure that the bounds apply to, if it is one number.
    pub estimate: Option<Estimate>,
    pub bounds: Option<[f64; 2]>,
    /// The paper's own number.
    pub paper: Option<f64>,
    /// How many boots it rests on.
    pub boots: usize,
}

impl Outcome {
    pub fn without_figures(word: Word, why: String) -> Self {
        Self { word, figures: why, estimate: None, bounds: None, paper: None, boots: 0 }
    }
}

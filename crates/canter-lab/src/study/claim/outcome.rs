//! What a criterion has found: its finding, the statistic with its interval, and the bounds.

pub use super::finding::Finding;
use canter_measure::{statistics::Estimate, verdicts::Plot};

/// A finding with its numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    pub finding: Finding,
    /// The numbers in words, or the reason why there are none.
    pub found: String,
    /// The statistic that the bounds apply to, if it is one number.
    pub estimate: Option<Estimate>,
    pub bounds: Option<[f64; 2]>,
    /// The paper's own number.
    pub paper: Option<f64>,
    /// The number of boots that the finding rests on.
    pub boots: usize,
    /// The drawing, in a box, so that an outcome stays small.
    pub plot: Option<Box<Plot>>,
}

impl Outcome {
    fn nothing_found(finding: Finding, why: String) -> Self {
        Self { finding, found: why, estimate: None, bounds: None, paper: None, boots: 0, plot: None }
    }

    /// The outcome without any series that measured it.
    pub fn missing(why: String) -> Self {
        Self::nothing_found(Finding::Missing, why)
    }

    /// The outcome of series that cannot carry a judgement.
    pub fn unclear(why: String) -> Self {
        Self::nothing_found(Finding::Unclear, why)
    }
}

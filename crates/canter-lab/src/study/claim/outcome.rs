//! What a criterion has found: one of four words, the statistic with its interval, and the bounds.

pub use canter_measure::verdicts::Word;
use canter_measure::{statistics::Estimate, verdicts::Plot};

/// A verdict with its numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    pub word: Word,
    /// The numbers in words, or the reason why there are none.
    pub found: String,
    /// The statistic that the bounds apply to, if it is one number.
    pub estimate: Option<Estimate>,
    pub bounds: Option<[f64; 2]>,
    /// The paper's own number.
    pub paper: Option<f64>,
    /// The number of boots that the verdict rests on.
    pub boots: usize,
    /// The drawing, in a box, so that an outcome stays small.
    pub plot: Option<Box<Plot>>,
}

impl Outcome {
    pub fn nothing_found(word: Word, why: String) -> Self {
        Self { word, found: why, estimate: None, bounds: None, paper: None, boots: 0, plot: None }
    }
}

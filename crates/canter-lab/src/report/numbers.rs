//! The numbers of a result that several drawings and the verdict read, computed once.

use crate::report::ranking::{Costs, Latencies};
use crate::report::varied::Sweep;
use canter_measure::result::ResultFile;

pub struct Numbers<'a> {
    pub result: &'a ResultFile,
    /// The number of the result's first series among all series of the page.
    pub base: usize,
    /// Whether the page has no other result, so that it has room for everything.
    pub alone: bool,
    pub latencies: Vec<Latencies<'a>>,
    pub costs: Vec<Costs<'a>>,
    pub sweeps: Vec<Sweep>,
}

impl<'a> Numbers<'a> {
    /// The numbers of a single result.
    pub fn of(result: &'a ResultFile) -> Self {
        Self::numbered(result, 0, true)
    }

    /// The numbers of a page's results.
    pub fn of_all(results: &'a [ResultFile]) -> Vec<Self> {
        let (mut base, alone) = (0, results.len() == 1);
        let next_numbers = |result: &'a ResultFile| {
            let numbers = Self::numbered(result, base, alone);
            base += result.series.len();
            numbers
        };
        results.iter().map(next_numbers).collect()
    }

    fn numbered(result: &'a ResultFile, base: usize, alone: bool) -> Self {
        let latencies = Latencies::numbered(result, base);
        let sweeps = Sweep::of(&latencies);
        Self { result, base, alone, latencies, costs: Costs::of(result), sweeps }
    }
}

//! How many series were measured: the claim is that somebody has done it.

use crate::study::claim::{
    evidence::Evidence,
    outcome::{Finding, Outcome},
    selector::Selector,
};
use canter_cli::units::grouped;
use serde::Deserialize;

/// A criterion: at least this number of series are measured and valid, on these kernels together.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    kernels: Vec<String>,
    at_least: usize,
}

impl Measured {
    pub fn check(&self) -> Result<(), String> {
        match self.at_least > 0 && !self.kernels.is_empty() {
            true => Ok(()),
            false => Err("measured: kernels: one at least; at_least: 1 or more".to_owned()),
        }
    }

    pub fn selectors(&self) -> Vec<Selector> {
        let selector = |kernel: &String| Selector { kernel: Some(kernel.clone()), ..Selector::default() };
        self.kernels.iter().map(selector).collect()
    }

    pub fn decide(&self, evidence: &Evidence<'_>) -> Result<Outcome, Outcome> {
        let selectors = self.selectors();
        let series: Vec<_> = selectors.iter().flat_map(|selector| evidence.series(selector)).collect();
        let Some(frames) = series.iter().map(|one| one.series.condition.frames).min() else {
            return Err(Outcome::missing("no such series in these results".to_owned()));
        };
        let valid = series.iter().filter(|one| one.why_invalid().is_none()).count();
        Ok(Outcome {
            finding: if valid >= self.at_least { Finding::Within } else { Finding::Unclear },
            found: format!("{valid} of {} series valid, {} frames each", series.len(), grouped(frames)),
            estimate: None,
            bounds: None,
            paper: None,
            boots: 1,
            plot: None,
        })
    }
}

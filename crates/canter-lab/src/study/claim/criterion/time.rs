//! One statistic of a series as a time, where the paper's own depends on no machine: the duration of bits on a bus.

use super::{BoundSide, Bounds};
use crate::study::claim::{
    evidence::{self, Evidence},
    outcome::{Finding, Outcome},
    selector::Selector,
    statistic::Statistic,
};
use canter_measure::verdicts::{Plot, Quantity};
use serde::Deserialize;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Time {
    #[serde(rename = "figure")]
    statistic: Statistic,
    of: Selector,
    paper_us: f64,
    within: f64,
    #[serde(default)]
    side: BoundSide,
}

impl Time {
    fn paper_ns(&self) -> f64 {
        self.paper_us * 1000.0
    }

    pub fn bounds(&self) -> Bounds {
        Bounds { paper: self.paper_ns(), within: self.within, side: self.side }
    }

    pub fn check(&self) -> Result<(), String> {
        match self.statistic.quantity() {
            Quantity::Time => self.bounds().check(),
            Quantity::Ratio | Quantity::Share => Err("time: figure: a time".to_owned()),
        }
    }

    pub fn selectors(&self) -> Vec<Selector> {
        vec![self.of.clone()]
    }

    pub fn decide(&self, evidence: &Evidence<'_>) -> Result<Outcome, Outcome> {
        let sample = evidence.sample(&self.of, self.statistic)?;
        let each: Vec<_> = sample.boots.iter().map(|(_, estimate)| *estimate).collect();
        let estimate = evidence::together(&each);
        let bounds = self.bounds().range();
        Ok(Outcome {
            finding: Finding::judge(estimate, bounds),
            found: Quantity::Time.in_words(estimate.value),
            estimate: Some(estimate),
            bounds: Some(bounds),
            paper: Some(self.paper_ns()),
            boots: sample.boots.len(),
            plot: Some(Box::new(Plot::Number { quantity: Quantity::Time })),
        })
    }
}

//! One statistic of a series that is a share: of what was executed, of a processor.

use super::{BoundSide, Bounds};
use crate::study::claim::{
    evidence::Evidence,
    outcome::{Finding, Outcome},
    selector::Selector,
    statistic::Statistic,
};
use canter_measure::verdicts::{Plot, Quantity};
use serde::Deserialize;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Share {
    #[serde(rename = "figure")]
    statistic: Statistic,
    of: Selector,
    paper: f64,
    within: f64,
    #[serde(default)]
    side: BoundSide,
}

impl Share {
    fn bounds(&self) -> Bounds {
        Bounds { paper: self.paper, within: self.within, side: self.side }
    }

    pub fn check(&self) -> Result<(), String> {
        match self.statistic.quantity() {
            Quantity::Share => self.bounds().check(),
            Quantity::Ratio | Quantity::Time => Err("share: figure: a share".to_owned()),
        }
    }

    pub fn selectors(&self) -> Vec<Selector> {
        vec![self.of.clone()]
    }

    pub fn decide(&self, evidence: &Evidence<'_>) -> Result<Outcome, Outcome> {
        let sample = evidence.sample(&self.of, self.statistic)?;
        let estimate = sample.estimate();
        let bounds = self.bounds().range();
        Ok(Outcome {
            finding: Finding::judge(estimate, bounds),
            found: format!("{} {}", self.statistic.name(), Quantity::Share.in_words(estimate.value)),
            estimate: Some(estimate),
            bounds: Some(bounds),
            paper: Some(self.paper),
            boots: sample.boots.len(),
            plot: Some(Box::new(Plot::Number { quantity: Quantity::Share })),
        })
    }
}

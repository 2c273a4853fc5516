//! One statistic of a series as a time, where the paper's own depends on no machine: the duration of bits on a bus. Or how far
//! a time by one instrument is from the same by another.

use super::{BoundSide, Bounds};
use crate::study::claim::{
    evidence::{self, Evidence},
    outcome::{Finding, Outcome},
    selector::Selector,
    statistic::Statistic,
};
use canter_measure::{
    statistics::Estimate,
    verdicts::{Plot, Quantity},
};
use serde::Deserialize;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Time {
    #[serde(rename = "figure")]
    statistic: Statistic,
    of: Selector,
    /// The properties in which the series by another instrument differs from `of`: the time is that between both statistics,
    /// whichever is the longer.
    beside: Option<Selector>,
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
        let beside = self.beside.iter().map(|beside| beside.on(&self.of));
        beside.chain([self.of.clone()]).collect()
    }

    pub fn decide(&self, evidence: &Evidence<'_>) -> Result<Outcome, Outcome> {
        let time = evidence.sample(&self.of, self.statistic)?;
        let other = self.beside.as_ref().map(|beside| evidence.sample(&beside.on(&self.of), self.statistic));
        let other = other.transpose()?.map(|other| other.estimate());
        let between = |time: Estimate| other.map_or(time, |other| length(time.minus(other)));
        let each: Vec<_> = time.boots.iter().map(|(_, time)| between(*time)).collect();
        let estimate = evidence::together(&each);
        let in_words = |estimate: Estimate| Quantity::Time.in_words(estimate.value);
        let found = match other {
            None => in_words(estimate),
            Some(other) => {
                format!("{} and {}: {} apart", in_words(time.estimate()), in_words(other), in_words(estimate))
            }
        };
        let bounds = self.bounds().range();
        Ok(Outcome {
            finding: Finding::judge(estimate, bounds),
            found,
            estimate: Some(estimate),
            bounds: Some(bounds),
            paper: Some(self.paper_ns()),
            boots: time.boots.len(),
            plot: Some(Box::new(Plot::Number { quantity: Quantity::Time })),
        })
    }
}

/// The length of a difference, whose sign does not matter.
fn length(difference: Estimate) -> Estimate {
    let Estimate { value, low, high } = difference;
    let least = if low <= 0.0 && high >= 0.0 { 0.0 } else { low.abs().min(high.abs()) };
    Estimate { value: value.abs(), low: least, high: low.abs().max(high.abs()) }
}

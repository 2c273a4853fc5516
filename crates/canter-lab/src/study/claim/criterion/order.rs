//! Statistics of several series in ascending order.

use crate::study::claim::{
    evidence::{Evidence, Sample},
    outcome::{Finding, Outcome},
    selector::Selector,
    statistic::Statistic,
};
use canter_measure::verdicts::{Labelled, Plot};
use serde::Deserialize;

/// A criterion: the statistic of each series is below that of the next.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    #[serde(rename = "figure")]
    statistic: Statistic,
    /// The properties that all series share.
    #[serde(default)]
    of: Selector,
    /// The series, the lowest first. Each has the properties in which it differs from `of`.
    ascending: Vec<Selector>,
    /// The smallest allowed ratio of a series to the one before.
    #[serde(default = "above")]
    apart: f64,
}

fn above() -> f64 {
    1.0
}

impl Order {
    pub fn check(&self) -> Result<(), String> {
        match self.ascending.len() >= 2 && self.apart > 0.0 {
            true => Ok(()),
            false => Err("order: needs two series at least, and apart above 0".to_owned()),
        }
    }

    pub fn selectors(&self) -> Vec<Selector> {
        self.ascending.iter().map(|selector| selector.on(&self.of)).collect()
    }

    pub fn decide(&self, evidence: &Evidence<'_>) -> Result<Outcome, Outcome> {
        let samples: Vec<Sample> = self
            .ascending
            .iter()
            .map(|selector| evidence.sample(&selector.on(&self.of), self.statistic))
            .collect::<Result<_, _>>()?;
        let estimates: Vec<_> = samples.iter().map(Sample::estimate).collect();
        let findings = estimates
            .windows(2)
            .map(|pair| Finding::judge(pair[1].ratio_to(pair[0]), [self.apart, f64::INFINITY]));
        let labelled = self.ascending.iter().zip(&estimates);
        let labelled = labelled.map(|(selector, estimate)| Labelled {
            label: selector.to_string(),
            interval: estimate.interval(),
        });
        let (quantity, apart) = (self.statistic.quantity(), self.apart);
        let plot = Plot::Order { quantity, apart, series: labelled.collect() };
        let found: Vec<_> = self
            .ascending
            .iter()
            .zip(&estimates)
            .map(|(selector, estimate)| format!("{selector} {}", quantity.in_words(estimate.value)))
            .collect();
        Ok(Outcome {
            finding: findings.collect(),
            found: found.join("; "),
            estimate: None,
            bounds: None,
            paper: None,
            boots: samples.iter().map(|sample| sample.boots.len()).min().unwrap_or(0),
            plot: Some(Box::new(plot)),
        })
    }
}

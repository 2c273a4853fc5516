//! The time of a system call against the number of frames, as a straight line.

use super::{POINTS, beside_a_line, check_factor, digits};
use crate::study::claim::{
    evidence::Evidence,
    outcome::{Finding, Outcome},
    selector::Selector,
};
use canter_measure::verdicts;
use serde::Deserialize;

/// A criterion: no measured time is farther from the line through all of them than the factor `within`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Line {
    of: Selector,
    within: f64,
}

impl Line {
    pub fn check(&self) -> Result<(), String> {
        check_factor("line", self.within)
    }

    pub fn selectors(&self) -> Vec<Selector> {
        vec![self.of.clone()]
    }

    pub fn decide(&self, evidence: &Evidence<'_>) -> Result<Outcome, Outcome> {
        let none = |why: &str| Outcome::missing(format!("{}: {why}", evidence.complete(&self.of)));
        let found = evidence.all(&self.of)?;
        let mut worst = 1.0_f64;
        let mut count = 0;
        let mut lines = Vec::new();
        for one in &found {
            let cost = one.series.cost_ns.as_ref().ok_or_else(|| none("has no cost of a system call"))?;
            if cost.points.len() < POINTS {
                return Err(none("too few numbers of frames for a line"));
            }
            let points: Vec<_> = cost.points.iter().map(|&[frames, ns]| (frames as f64, ns as f64)).collect();
            count = points.len();
            let slope = slope(&points);
            let away = points.iter().map(|(frames, ns)| ns / (slope * frames)).map(|by| by.max(1.0 / by));
            worst = away.fold(worst, f64::max);
            let multiples = points.iter().map(|(frames, ns)| (*frames, ns / (slope * frames)));
            let points = multiples.map(|(frames, multiple)| [frames, multiple, multiple, multiple]).collect();
            lines.push(verdicts::PlotLine { label: one.series.method.clone(), points });
        }
        Ok(Outcome {
            finding: if worst <= self.within { Finding::Within } else { Finding::Outside },
            found: format!(
                "{count} numbers of frames, at most {} % from the line",
                digits(100.0 * (worst - 1.0))
            ),
            estimate: None,
            bounds: None,
            paper: None,
            boots: found.len(),
            plot: Some(Box::new(beside_a_line("time", "frames", lines, self.within))),
        })
    }
}

/// The line through the origin with the least sum of squares.
fn slope(points: &[(f64, f64)]) -> f64 {
    let products: f64 = points.iter().map(|(x, y)| x * y).sum();
    let squares: f64 = points.iter().map(|(x, _)| x * x).sum();
    products / squares
}

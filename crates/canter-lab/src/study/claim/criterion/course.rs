//! A statistic against the number that was varied from series to series.

use super::{POINTS, beside_a_line, check_factor, digits};
use crate::study::claim::{
    evidence::Evidence,
    outcome::{Finding, Outcome},
    selector::Selector,
    statistic::Statistic,
};
use canter_measure::{
    result::Series,
    statistics::Estimate,
    verdicts::{Allowed, Plot, PlotLine},
};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The course of a statistic over the number that `of` leaves open: rules, hops, or a period.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Course {
    #[serde(rename = "figure")]
    statistic: Statistic,
    of: Selector,
    shape: Shape,
    /// The factor of the shape. Flat: the largest allowed ratio of the highest to the lowest value. Straight: no value is
    /// farther from the line than this factor. Steps: no difference of two neighbours, from the second on, is farther from
    /// the mean difference than this factor. Rising: the smallest allowed ratio of the last to the first value, and no value
    /// is below the one before.
    within: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Shape {
    Flat,
    Rising,
    Straight,
    Steps,
}

impl Course {
    pub fn check(&self) -> Result<(), String> {
        check_factor("course", self.within)
    }

    pub fn selectors(&self) -> Vec<Selector> {
        vec![self.of.clone()]
    }

    pub fn decide(&self, evidence: &Evidence<'_>) -> Result<Outcome, Outcome> {
        let mut points = BTreeMap::new();
        let mut boots = usize::MAX;
        let mut against = String::new();
        for found in evidence.all(&self.of)? {
            let Some((name, at)) = varied(found.series) else { continue };
            against = name;
            if points.contains_key(&at) {
                continue;
            }
            let exactly = self.of.at(found.series);
            let sample = evidence.sample(&exactly, self.statistic)?;
            boots = boots.min(sample.boots.len());
            points.insert(at, sample.estimate());
        }
        let needed = if self.shape == Shape::Steps { POINTS + 1 } else { POINTS };
        if points.len() < needed {
            let why = format!("{} values of the varied number; this course needs {needed}", points.len());
            return Err(Outcome::missing(why));
        }
        let points: Vec<(u64, Estimate)> = points.into_iter().collect();
        let finding = match self.shape {
            Shape::Flat => self.flat(&points),
            Shape::Rising => self.rising(&points),
            Shape::Straight => self.straight(&points),
            Shape::Steps => self.steps(&points),
        };
        let found = self.found(&points);
        let plot = Some(Box::new(self.plot(against, &points)));
        Ok(Outcome { finding, found, estimate: None, bounds: None, paper: None, boots, plot })
    }

    fn found(&self, points: &[(u64, Estimate)]) -> String {
        let quantity = self.statistic.quantity();
        let ((from, first), (to, last)) = (points[0], points[points.len() - 1]);
        let [first, last] = [first.value, last.value];
        let ends = format!("{} at {from}, {} at {to}", quantity.in_words(first), quantity.in_words(last));
        if self.shape == Shape::Steps {
            let steps: Vec<f64> = differences(points).iter().map(|(_, step)| step.value).collect();
            let least = steps.iter().copied().fold(f64::MAX, f64::min);
            let most = steps.iter().copied().fold(0.0, f64::max);
            let [least, most] = [least, most].map(|step| quantity.in_words(step));
            return format!("{ends}: steps from the second on {least} to {most}");
        }
        let times = digits(last / first.max(f64::MIN_POSITIVE));
        format!("{ends}: {times} times, {} points", points.len())
    }

    fn plot(&self, against: String, points: &[(u64, Estimate)]) -> Plot {
        let ((x0, first), (x1, last)) = (points[0], points[points.len() - 1]);
        let drawn = |at: u64, of: Estimate| [at as f64, of.value, of.low, of.high];
        let line = |points: Vec<[f64; 4]>| vec![PlotLine { label: self.of.to_string(), points }];
        let (quantity, statistic) = (self.statistic.quantity(), self.statistic.name().to_owned());
        let measured = || points.iter().map(|&(at, value)| drawn(at, value));
        let allowed = |at: u64, from: f64, to: Option<f64>| Allowed { at: at as f64, from, to };
        match self.shape {
            Shape::Flat => {
                let lowest = points.iter().map(|(_, point)| point.value).fold(f64::INFINITY, f64::min);
                let band = |at| allowed(at, lowest, Some(lowest * self.within));
                Plot::Course {
                    quantity,
                    statistic,
                    against,
                    lines: line(measured().collect()),
                    allowed: vec![band(x0), band(x1)],
                }
            }
            Shape::Rising => {
                let allowed = vec![allowed(x1, first.value * self.within, None)];
                Plot::Course { quantity, statistic, against, lines: line(measured().collect()), allowed }
            }
            Shape::Steps => {
                let steps = differences(points);
                let lines = line(steps.iter().map(|&(at, step)| drawn(at, step)).collect());
                let mean = mean(&steps);
                let band = |at| allowed(at, mean / self.within, Some(mean * self.within));
                let statistic = format!("increase of the {statistic}");
                let allowed = vec![band(points[1].0), band(x1)];
                Plot::Course { quantity, statistic, against, lines, allowed }
            }
            Shape::Straight => {
                let on_line = straight((x0, first.value), (x1, last.value));
                let multiples =
                    points.iter().map(|&(at, value)| drawn(at, value.ratio_to(Estimate::exact(on_line(at)))));
                beside_a_line(self.statistic.name(), &against, line(multiples.collect()), self.within)
            }
        }
    }

    fn flat(&self, points: &[(u64, Estimate)]) -> Finding {
        let by_value = |a: &&(u64, Estimate), b: &&(u64, Estimate)| a.1.value.total_cmp(&b.1.value);
        let (Some(low), Some(high)) = (points.iter().min_by(by_value), points.iter().max_by(by_value)) else {
            return Finding::Missing;
        };
        Finding::judge(high.1.ratio_to(low.1), [0.0, self.within])
    }

    fn rising(&self, points: &[(u64, Estimate)]) -> Finding {
        let (first, last) = (points[0].1, points[points.len() - 1].1);
        let whole = Finding::judge(last.ratio_to(first), [self.within, f64::INFINITY]);
        // A step may be level: it refutes only when it surely falls.
        let steps = points.windows(2).map(|pair| match pair[1].1.high < pair[0].1.low {
            true => Finding::Outside,
            false => Finding::Within,
        });
        steps.chain([whole]).collect()
    }

    fn steps(&self, points: &[(u64, Estimate)]) -> Finding {
        let steps = differences(points);
        let mean = mean(&steps);
        let bounds = [mean / self.within, mean * self.within];
        steps.iter().map(|(_, step)| Finding::judge(*step, bounds)).collect()
    }

    /// The verdict on the line from the first point to the last.
    fn straight(&self, points: &[(u64, Estimate)]) -> Finding {
        let ((x0, first), (x1, last)) = (points[0], points[points.len() - 1]);
        let on_line = straight((x0, first.value), (x1, last.value));
        let findings = points.iter().map(|&(x, point)| {
            Finding::judge(point.ratio_to(Estimate::exact(on_line(x))), [1.0 / self.within, self.within])
        });
        findings.collect()
    }
}

/// The differences of neighbours, at the higher one, without the first. The first step is not like the others: it turns a
/// way without the varied thing into one with it.
fn differences(points: &[(u64, Estimate)]) -> Vec<(u64, Estimate)> {
    let pairs = points.windows(2).skip(1);
    pairs.map(|pair| (pair[1].0, pair[1].1.minus(pair[0].1))).collect()
}

fn mean(steps: &[(u64, Estimate)]) -> f64 {
    steps.iter().map(|(_, step)| step.value).sum::<f64>() / steps.len() as f64
}

/// The line through two points.
fn straight((x0, y0): (u64, f64), (x1, y1): (u64, f64)) -> impl Fn(u64) -> f64 {
    let slope = (y1 - y0) / (x1 - x0) as f64;
    move |x| y0 + slope * (x - x0) as f64
}

/// The number that was varied, with its name: rules, hops, or a period.
fn varied(series: &Series) -> Option<(String, u64)> {
    let condition = &series.condition;
    let rules = condition.varied.as_ref().map(|varied| (varied.name.clone(), varied.value));
    rules.or_else(|| (condition.period_ns > 0).then(|| ("period, ns".to_owned(), condition.period_ns)))
}

//! A figure against the number that was varied from series to series.

use super::{POINTS, check_factor, digits, ratio::in_words};
use crate::{
    measure::{result::Series, statistics::Estimate},
    study::claim::{
        evidence::{Evidence, Figure},
        outcome::{Outcome, Word},
        selector::Selector,
    },
};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The course of a figure over the number that `of` leaves open: rules, hops, or a period.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Course {
    figure: Figure,
    of: Selector,
    shape: Shape,
    /// Flat: the highest figure is at most so many times the lowest. Straight: no figure is farther from the line than
    /// this factor. Rising: the last is at least so many times the first, and none is below the one before.
    within: f64,
    #[serde(default)]
    less_floor: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Shape {
    Flat,
    Rising,
    Straight,
}

impl Course {
    pub fn check(&self) -> Result<(), String> {
        check_factor("course", self.within)
    }

    pub fn decide(&self, evidence: &Evidence<'_>) -> Result<Outcome, Outcome> {
        let mut points = BTreeMap::new();
        let mut boots = usize::MAX;
        for found in evidence.all(&self.of)? {
            let Some(at) = varied(found.series) else { continue };
            if points.contains_key(&at) {
                continue;
            }
            let exactly = self.of.at(found.series);
            let sample = evidence.sample(&exactly, self.figure, self.less_floor)?;
            boots = boots.min(sample.boots.len());
            points.insert(at, sample.estimate());
        }
        if points.len() < POINTS {
            let why = format!("{} values of the varied number; a course needs {POINTS}", points.len());
            return Err(Outcome::without_figures(Word::NotMeasurable, why));
        }
        let points: Vec<(u64, Estimate)> = points.into_iter().collect();
        let word = match self.shape {
            Shape::Flat => self.flat(&points),
            Shape::Rising => self.rising(&points),
            Shape::Straight => self.straight(&points),
        };
        let ((from, first), (to, last)) = (points[0], points[points.len() - 1]);
        let (first, last) = (first.value, last.value);
        let figures = format!(
            "{} at {from}, {} at {to}: {} times, {} points",
            in_words(first, self.figure),
            in_words(last, self.figure),
            digits(last / first.max(f64::MIN_POSITIVE)),
            points.len()
        );
        Ok(Outcome { word, figures, estimate: None, bounds: None, paper: None, boots })
    }

    fn flat(&self, points: &[(u64, Estimate)]) -> Word {
        let by_value = |a: &&(u64, Estimate), b: &&(u64, Estimate)| a.1.value.total_cmp(&b.1.value);
        let (Some(low), Some(high)) = (points.iter().min_by(by_value), points.iter().max_by(by_value)) else {
            return Word::NotMeasurable;
        };
        Word::of(high.1.ratio_to(low.1), [0.0, self.within])
    }

    fn rising(&self, points: &[(u64, Estimate)]) -> Word {
        let (first, last) = (points[0].1, points[points.len() - 1].1);
        let whole = Word::of(last.ratio_to(first), [self.within, f64::INFINITY]);
        // A step may be level: it refutes only when it surely falls.
        let steps = points.windows(2).map(|pair| match pair[1].1.high < pair[0].1.low {
            true => Word::Refuted,
            false => Word::Reproduced,
        });
        steps.chain([whole]).collect()
    }

    /// Against the line from the first point to the last.
    fn straight(&self, points: &[(u64, Estimate)]) -> Word {
        let ((x0, first), (x1, last)) = (points[0], points[points.len() - 1]);
        let slope = (last.value - first.value) / (x1 - x0) as f64;
        let on_line = |x: u64| first.value + slope * (x - x0) as f64;
        let words = points.iter().map(|&(x, point)| {
            Word::of(point.ratio_to(Estimate::exact(on_line(x))), [1.0 / self.within, self.within])
        });
        words.collect()
    }
}

/// The number that was varied: rules, hops, or a period.
fn varied(series: &Series) -> Option<u64> {
    let condition = &series.condition;
    let rules = condition.varied.as_ref().map(|varied| varied.value);
    rules.or_else(|| (condition.period_ns > 0).then_some(condition.period_ns))
}

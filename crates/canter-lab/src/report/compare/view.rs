//! A comparison on the page: plain values for the template.

use super::{ComparedStatistic, Comparison, Decision};
use serde::Serialize;

#[derive(Serialize)]
pub struct ComparisonView {
    worse: bool,
    sentence: String,
    method: String,
    rows: Vec<ComparedRow>,
}

#[derive(Serialize)]
struct ComparedRow {
    heading: String,
    label: String,
    statistic: &'static str,
    /// The cells of a statistic: A, B, the change, its interval.
    numbers: [String; 4],
    verdict: &'static str,
    class: &'static str,
    note: String,
}

pub fn view(comparison: &Comparison) -> ComparisonView {
    let mut rows = Vec::new();
    for series in &comparison.series {
        let row = |statistic: Option<&ComparedStatistic>| {
            let verdict = statistic.map_or(series.verdict, |statistic| statistic.verdict);
            ComparedRow {
                heading: series.heading.clone(),
                label: series.label.clone(),
                statistic: statistic.map_or("", |statistic| statistic.name),
                numbers: statistic.map(super::numbers).unwrap_or_default(),
                verdict: verdict.name(),
                class: verdict.class(),
                note: series.note.clone(),
            }
        };
        match series.statistics.as_slice() {
            [] => rows.push(row(None)),
            statistics => rows.extend(statistics.iter().map(|statistic| row(Some(statistic)))),
        }
    }
    ComparisonView {
        worse: comparison.count(Decision::Regression) > 0,
        sentence: super::sentence(comparison),
        method: super::method(comparison),
        rows,
    }
}

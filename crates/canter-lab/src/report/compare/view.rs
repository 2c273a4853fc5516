//! A comparison on the page: plain values for the template.

use super::{Comparison, Figure, Verdict};
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
    figure: &'static str,
    /// A, B, the change, its interval.
    numbers: [String; 4],
    verdict: &'static str,
    class: &'static str,
    note: String,
}

pub fn view(comparison: &Comparison) -> ComparisonView {
    let mut rows = Vec::new();
    for series in &comparison.series {
        let row = |figure: Option<&Figure>| {
            let verdict = figure.map_or(series.verdict, |figure| figure.verdict);
            ComparedRow {
                heading: series.heading.clone(),
                label: series.label.clone(),
                figure: figure.map_or("", |figure| figure.name),
                numbers: figure.map(super::numbers).unwrap_or_default(),
                verdict: verdict.name(),
                class: verdict.class(),
                note: series.note.clone(),
            }
        };
        match series.figures.as_slice() {
            [] => rows.push(row(None)),
            figures => rows.extend(figures.iter().map(|figure| row(Some(figure)))),
        }
    }
    ComparisonView {
        worse: comparison.count(Verdict::Regression) > 0,
        sentence: super::sentence(comparison),
        method: super::method(comparison),
        rows,
    }
}

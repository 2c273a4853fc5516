//! Shared by the views of several drawings: names, legends, the paper.

use canter_measure::result::Series;
use serde::Serialize;

/// A method in a legend or a table.
#[derive(Serialize)]
pub struct Name {
    pub number: usize,
    pub method: String,
    pub paper_name: String,
    pub class: String,
}

pub fn name(series: &Series, number: usize, method: String, class: String) -> Name {
    Name { number, method, paper_name: series.paper_name.clone(), class }
}

/// A drawing of numbered lines.
#[derive(Serialize)]
pub struct Lines {
    pub title: String,
    pub drawing: String,
    pub legend: Vec<Legend>,
}

/// The legend of a line.
#[derive(Serialize)]
pub struct Legend {
    pub number: usize,
    pub label: String,
    pub class: String,
    pub about: String,
}

/// `2014, figure 4.2 (MPC5200, 400 MHz)`, each once.
pub fn papers<'a>(series: impl Iterator<Item = &'a Series>) -> String {
    let mut sources: Vec<String> = Vec::new();
    for paper in series.filter_map(|series| series.paper.as_ref()) {
        let machine = if paper.machine.is_empty() { String::new() } else { format!(" ({})", paper.machine) };
        let source = format!("{}{machine}", paper.source);
        if !source.is_empty() && !sources.contains(&source) {
            sources.push(source);
        }
    }
    sources.join("; ")
}

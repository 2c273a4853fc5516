//! A whole drawing, as small as one is, that no table has: in each condition, how much longer than its median the worst of a
//! hundred frames of each method takes. A real one is a file in `report/`, and its template another.

use crate::report::{
    drawing::{Drawing, View, Views},
    numbers::Numbers,
    ranking::{self, Latencies},
};
use canter_cli::units;
use canter_measure::drawing::{
    axis::Scale,
    plot::{self, WIDTH},
    svg::Svg,
};
use serde::Serialize;

pub const DRAWING: Drawing = Drawing {
    text: |numbers, _| numbers.latencies.iter().flat_map(lines).collect(),
    ..Drawing::new("toy", TEMPLATE, Views::EachCondition(views))
};

/// The content of `toy.html`. Variables are escaped but where a filter says that they are HTML.
const TEMPLATE: &str = "<figure class=toy><h3>{{ view.study }}, {{ view.condition }}</h3>\
                        <div class=drawing>{{ view.drawing|safe }}</div></figure>";

#[derive(Serialize)]
struct Toy<'a> {
    study: &'a str,
    condition: String,
    drawing: String,
}

/// None for a result without latencies.
fn views(numbers: &Numbers<'_>) -> Vec<View> {
    let groups = numbers.latencies.iter().filter(|group| !group.rows.is_empty());
    let view = |group| {
        let (study, condition) = (&numbers.result.study, ranking::full(group));
        View::of(&Toy { study, condition, drawing: draw(group) })
    };
    groups.map(view).collect()
}

const TOP: f64 = 10.0;
const ROW: f64 = 20.0;
const LEFT: f64 = 200.0;

fn draw(group: &Latencies<'_>) -> String {
    let bottom = TOP + ROW * group.rows.len() as f64;
    let scale = Scale::linear((0.0, 10.0), (LEFT, WIDTH - 20.0));
    let mut svg = Svg::new(WIDTH, bottom + 26.0, "p99 over the median of every method");
    let ticks = scale.ticks(10).into_iter().map(|ratio| (scale.at(ratio), format!("{ratio}×")));
    plot::columns(&mut svg, ticks.collect(), (TOP, bottom));
    for (n, row) in group.rows.iter().enumerate() {
        let (p50, p99) = (row.measured.p50, row.measured.p99);
        let y = TOP + ROW * (n as f64 + 0.5);
        // The class has the colour of the method; what is in the group inherits it.
        svg.group(&row.class(), |svg| {
            svg.text("name", (10.0, y + 4.0), &row.label());
            // A median may be 0; no number on a page is infinite.
            svg.circle("dot", (scale.at((p99 as f64 / p50.max(1) as f64).min(10.0)), y), 4.0);
        });
    }
    svg.finish()
}

/// Words for the terminal.
fn lines(group: &Latencies<'_>) -> Vec<String> {
    let line = |(label, ratio)| format!("toy: {label} {ratio}\n");
    let ratios = group.rows.iter().map(|row| (row.label(), units::ratio(row.measured.p99, row.measured.p50)));
    ratios.filter_map(|(label, ratio)| Some(line((label, ratio?)))).collect()
}

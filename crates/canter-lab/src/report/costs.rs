//! The cost of system calls against the number of frames they move: measured points and a straight line through them.
//! The 2014 paper's figure 4.1.

use crate::report::drawing::{Drawing, View, Views};
use crate::report::numbers::Numbers;
use crate::report::ranking::{Costs, Ranked};
use crate::report::verdict;
use crate::report::views::{Name, name, papers};
use canter_cli::terminal::{BOLD, FAINT, Ink, PLAIN, Table, paragraph};
use canter_cli::units::{self, Unit, grouped};
use canter_measure::drawing::axis::{Scale, make_room};
use canter_measure::drawing::plot::{self, WIDTH};
use canter_measure::drawing::svg::{Path, Svg};
use canter_measure::result::{Cost, Fit};
use serde::Serialize;

pub const DRAWING: Drawing =
    Drawing { text, ..Drawing::new("costs", include_str!("costs.html"), Views::EachCondition(views)) };

const HEIGHT: f64 = 380.0;
const TOP: f64 = 24.0;
const BOTTOM: f64 = 44.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 34.0;

fn views(numbers: &Numbers<'_>) -> Vec<View> {
    numbers.costs.iter().map(|group| View::of(&view(group))).collect()
}

#[derive(Serialize)]
struct CostView {
    direction: String,
    drawing: String,
    unit: &'static str,
    reference: String,
    has_paper: bool,
    paper: String,
    rows: Vec<CostRow>,
}

#[derive(Serialize)]
struct CostRow {
    name: Name,
    batch: String,
    call: String,
    ratio: String,
    /// The costs of delivery with all frames of the run held, of delivery with few held, and in total.
    kernel: [String; 3],
    paper: String,
    paper_ratio: String,
}

fn view(group: &Costs<'_>) -> CostView {
    let unit = group.unit();
    CostView {
        direction: verdict::capital(&format!("to {}", group.direction)),
        drawing: draw(group),
        unit: unit.name,
        reference: group.reference().map(|row| row.series.method.clone()).unwrap_or_default(),
        has_paper: group.rows.iter().any(|row| row.paper_ns().is_some()),
        paper: papers(group.rows.iter().map(|row| row.series)),
        rows: group.rows.iter().enumerate().map(|(n, row)| cost_row(group, row, n + 1, unit)).collect(),
    }
}

fn cost_row(group: &Costs<'_>, row: &Ranked<'_, Cost>, number: usize, unit: Unit) -> CostRow {
    let mut name = name(row.series, number, row.label(), Costs::class(row));
    name.method = row.series.method.clone(); // the batch has its own column
    let batch = grouped(row.series.condition.batch.max(1));
    let cost = row.measured;
    CostRow {
        name,
        batch,
        call: unit.number(cost.per_frame),
        ratio: group.ratio(row).unwrap_or_default(),
        kernel: [unit.signed(cost.delivery), few(cost, unit), unit.signed(cost.total)],
        paper: row.paper_ns().map(units::round_span).unwrap_or_default(),
        paper_ratio: group.paper_ratio(row).unwrap_or_default(),
    }
}

/// The cost of delivery while few frames are held; results of earlier versions have none.
fn few(cost: &Cost, unit: Unit) -> String {
    cost.delivery_few.map(|ns| unit.signed(ns)).unwrap_or_default()
}

/// The chart of the points; empty when no series kept its points.
fn draw(group: &Costs<'_>) -> String {
    let points = || group.rows.iter().flat_map(|row| &row.measured.points);
    let Some(frames) = points().map(|point| point[0]).max() else { return String::new() };
    let ns = points().map(|point| point[1]).max().unwrap_or(1);
    let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
    let x = Scale::linear((0.0, frames as f64), (LEFT, right));
    let y = plot::time_scale((0, ns), (bottom, TOP), false);
    let mut svg = Svg::new(WIDTH, HEIGHT, "Time of all calls against the number of frames");
    let unit = group.unit();
    let one = |row: &Ranked<'_, Cost>| {
        format!("{} {} {} per frame", row.label(), unit.number(row.measured.per_frame), unit.name)
    };
    svg.describe(&group.rows.iter().map(one).collect::<Vec<_>>().join(", "));
    grid(&mut svg, &x, &y, (right, bottom));
    for row in &group.rows {
        line(&mut svg, row, (&x, &y), frames);
    }
    badges(&mut svg, group, (&x, &y), (right, bottom));
    svg.finish()
}

fn grid(svg: &mut Svg, x: &Scale, y: &Scale, (right, bottom): (f64, f64)) {
    svg.text("head", (0.0, 12.0), "time of all calls");
    let times = y.ticks(6).into_iter().map(|tick| (y.at(tick), units::round_span(tick.round() as u64)));
    plot::levels(svg, times.collect(), (LEFT, right));
    let frames = x.ticks(plot::labels_max(right - LEFT)).into_iter();
    let frames = frames.map(|tick| (x.at(tick), grouped(tick.round() as u128)));
    plot::columns(svg, frames.collect(), (TOP, bottom));
    svg.line("axis", (LEFT, bottom), (right, bottom));
    svg.text("head end", (right, bottom + 34.0), "frames");
}

fn line(svg: &mut Svg, row: &Ranked<'_, Cost>, (x, y): (&Scale, &Scale), frames: u64) {
    let points = || row.measured.points.iter().map(|point| (x.at(point[0] as f64), y.at(point[1] as f64)));
    let path = match row.measured.fit {
        Some(fit) => {
            Path::through([0, frames].map(|frames| (x.at(frames as f64), y.at(fitted(fit, frames)))))
        }
        None => Path::through(points()),
    };
    svg.group(&Costs::class(row), |svg| {
        svg.path("line", &path, &row.label());
        svg.dots("point", points());
    });
}

fn fitted(fit: Fit, frames: u64) -> f64 {
    fit.intercept as f64 + fit.slope_per_1000 as f64 / 1000.0 * frames as f64
}

/// Every line's number at its right end.
fn badges(svg: &mut Svg, group: &Costs<'_>, (x, y): (&Scale, &Scale), (right, bottom): (f64, f64)) {
    let drawn: Vec<(usize, &[u64; 2])> = group
        .rows
        .iter()
        .enumerate()
        .filter_map(|(n, row)| Some((n, row.measured.points.iter().max_by_key(|point| point[0])?)))
        .collect();
    let ends: Vec<f64> = drawn.iter().map(|(_, point)| y.at(point[1] as f64)).collect();
    let places = make_room(&ends, 17.0, (TOP, bottom - 8.0));
    for (((n, point), end), place) in drawn.into_iter().zip(ends).zip(places) {
        svg.group(&Costs::class(&group.rows[n]), |svg| {
            svg.line("", (x.at(point[0] as f64), end), (right + 16.0, place));
            svg.badge((right + 24.0, place), n + 1);
        });
    }
}

fn text(numbers: &Numbers<'_>, ink: Ink) -> String {
    let mut out = String::new();
    numbers.costs.iter().for_each(|group| direction(&mut out, group, ink));
    out
}

fn direction(out: &mut String, group: &Costs<'_>, ink: Ink) {
    let unit = group.unit();
    let reference = group.reference().map_or("", |row| row.series.method.as_str());
    paragraph(out, &format!("{}, {} per frame:", group.direction, unit.name), 0, ink, PLAIN);
    let ratio = if reference.is_empty() { String::new() } else { format!("× {reference}") };
    let heads = ["<method", "batch", "call", &ratio, "delivery", "few held", "total", "paper", ""];
    let mut table = Table::new(&heads);
    for row in &group.rows {
        let plain = |text: String| (text, PLAIN);
        table.row([
            plain(row.series.method.clone()),
            plain(row.series.condition.batch.max(1).to_string()),
            (unit.number(row.measured.per_frame), BOLD),
            (group.ratio(row).unwrap_or_default(), BOLD),
            plain(unit.signed(row.measured.delivery)),
            plain(few(row.measured, unit)),
            plain(unit.signed(row.measured.total)),
            (row.paper_ns().map(units::round_span).unwrap_or_default(), FAINT),
            (group.paper_ratio(row).unwrap_or_default(), FAINT),
        ]);
    }
    table.print(out, ink);
}

//! The cost of system calls against the number of frames they move: measured points and a straight line through them.
//! The 2014 paper's figure 4.1.

use crate::report::axis::{Scale, make_room};
use crate::report::figure::{Figure, View, Views};
use crate::report::numbers::Numbers;
use crate::report::plot::{self, Size};
use crate::report::ranking::{Costs, Row};
use crate::report::svg::{Path, Svg};
use crate::report::verdict;
use crate::report::views::{Drawing, Name, Sizes, drawing, name, papers};
use canter_cli::terminal::{BOLD, FAINT, Ink, PLAIN, Table, paragraph};
use canter_cli::units::{self, Unit, grouped};
use canter_measure::result::Cost;
use serde::Serialize;

pub const FIGURE: Figure =
    Figure { text, ..Figure::new("costs", include_str!("costs.html"), Views::EachCondition(views)) };

const TOP: f64 = 24.0;
const BOTTOM: f64 = 44.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 34.0;

fn views(numbers: &Numbers<'_>, sizes: Sizes) -> Vec<View> {
    numbers.costs.iter().map(|group| View::of(&view(group, sizes))).collect()
}

#[derive(Serialize)]
struct CostView {
    direction: String,
    figure: Drawing,
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
    /// delivery with all frames of the run held, with few held, total.
    kernel: [String; 3],
    paper: String,
    paper_ratio: String,
}

fn view(group: &Costs<'_>, sizes: Sizes) -> CostView {
    let unit = group.unit();
    CostView {
        direction: verdict::capital(&format!("to {}", group.direction)),
        figure: drawing(sizes, |size| draw(group, size)),
        unit: unit.name,
        reference: group.reference().map(|row| row.series.method.clone()).unwrap_or_default(),
        has_paper: group.rows.iter().any(|row| row.paper_ns().is_some()),
        paper: papers(group.rows.iter().map(|row| row.series)),
        rows: group.rows.iter().enumerate().map(|(n, row)| cost_row(group, row, n + 1, unit)).collect(),
    }
}

fn cost_row(group: &Costs<'_>, row: &Row<'_, Cost>, number: usize, unit: Unit) -> CostRow {
    let mut name = name(row.series, number, row.label(), Costs::class(row));
    name.method = row.series.method.clone(); // the batch has its own column
    let batch = grouped(row.series.condition.batch.max(1));
    let figure = row.figure;
    CostRow {
        name,
        batch,
        call: unit.number(figure.per_frame),
        ratio: group.ratio(row).unwrap_or_default(),
        kernel: [unit.signed(figure.delivery), few(figure, unit), unit.signed(figure.total)],
        paper: row.paper_ns().map(units::round_span).unwrap_or_default(),
        paper_ratio: group.paper_ratio(row).unwrap_or_default(),
    }
}

/// The cost of delivery while few frames are held; results of earlier versions have none.
fn few(cost: &Cost, unit: Unit) -> String {
    cost.delivery_few.map(|ns| unit.signed(ns)).unwrap_or_default()
}

/// Empty when no series kept its points.
fn draw(group: &Costs<'_>, size: Size) -> String {
    let points = || group.rows.iter().flat_map(|row| &row.figure.points);
    let Some(frames) = points().map(|point| point[0]).max() else { return String::new() };
    let ns = points().map(|point| point[1]).max().unwrap_or(1);
    let height = if size == Size::Wide { 380.0 } else { 300.0 };
    let (right, bottom) = (size.width() - RIGHT, height - BOTTOM);
    let x = Scale::linear((0.0, frames as f64), (LEFT, right));
    let y = plot::time_scale((0, ns), (bottom, TOP), false);
    let mut svg = Svg::new(size.width(), height, "Time of all calls against the number of frames");
    let unit = group.unit();
    let one = |row: &Row<'_, Cost>| {
        format!("{} {} {} per frame", row.label(), unit.number(row.figure.per_frame), unit.name)
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
    for tick in y.ticks(6) {
        let at = y.at(tick);
        svg.line("grid", (LEFT, at), (right, at));
        svg.text("tick end", (LEFT - 6.0, at + 4.0), &units::round_span(tick.round() as u64));
    }
    for tick in x.ticks(Size::ticks(right - LEFT)) {
        let at = x.at(tick);
        svg.line("grid", (at, TOP), (at, bottom));
        svg.text("tick middle", (at, bottom + 16.0), &grouped(tick.round() as u128));
    }
    svg.line("axis", (LEFT, bottom), (right, bottom));
    svg.text("head end", (right, bottom + 34.0), "frames");
}

fn line(svg: &mut Svg, row: &Row<'_, Cost>, (x, y): (&Scale, &Scale), frames: u64) {
    let class = Costs::class(row);
    let mut path = Path::default();
    match row.figure.fit {
        Some(_) => {
            for frames in [0, frames] {
                let at = (x.at(frames as f64), y.at(fitted(row.figure, frames)));
                if frames == 0 { path.move_to(at.0, at.1) } else { path.line_to(at.0, at.1) }
            }
        }
        None => {
            for (n, point) in row.figure.points.iter().enumerate() {
                let at = (x.at(point[0] as f64), y.at(point[1] as f64));
                if n == 0 { path.move_to(at.0, at.1) } else { path.line_to(at.0, at.1) }
            }
        }
    }
    svg.path(&format!("line {class}"), &path, &row.label());
    for point in &row.figure.points {
        svg.circle(&format!("point {class}"), (x.at(point[0] as f64), y.at(point[1] as f64)), 3.0);
    }
}

fn fitted(cost: &Cost, frames: u64) -> f64 {
    let fit = cost.fit.unwrap_or_default();
    fit.intercept as f64 + fit.slope_per_1000 as f64 / 1000.0 * frames as f64
}

/// Every line's number at its right end.
fn badges(svg: &mut Svg, group: &Costs<'_>, (x, y): (&Scale, &Scale), (right, bottom): (f64, f64)) {
    let drawn: Vec<(usize, &[u64; 2])> = group
        .rows
        .iter()
        .enumerate()
        .filter_map(|(n, row)| Some((n, row.figure.points.iter().max_by_key(|point| point[0])?)))
        .collect();
    let ends: Vec<f64> = drawn.iter().map(|(_, point)| y.at(point[1] as f64)).collect();
    let places = make_room(&ends, 17.0, (TOP, bottom - 8.0));
    for (((n, point), end), place) in drawn.into_iter().zip(ends).zip(places) {
        let class = Costs::class(&group.rows[n]);
        svg.line(&format!("leader {class}"), (x.at(point[0] as f64), end), (right + 16.0, place));
        svg.group(&class, |svg| svg.badge((right + 24.0, place), n + 1));
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
            (unit.number(row.figure.per_frame), BOLD),
            (group.ratio(row).unwrap_or_default(), BOLD),
            plain(unit.signed(row.figure.delivery)),
            plain(few(row.figure, unit)),
            plain(unit.signed(row.figure.total)),
            (row.paper_ns().map(units::round_span).unwrap_or_default(), FAINT),
            (group.paper_ratio(row).unwrap_or_default(), FAINT),
        ]);
    }
    table.print(out, ink);
}

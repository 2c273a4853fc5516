//! What system calls cost against how many frames they move: the points that were measured and a straight line
//! through them. The 2014 paper's figure 4.1.

use crate::measure::result::Cost;
use crate::report::axis::{Scale, make_room};
use crate::report::figure::{self, Size};
use crate::report::ranking::{Costs, Row};
use crate::report::svg::{Path, Svg};
use crate::units;

const TOP: f64 = 24.0;
const BOTTOM: f64 = 44.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 34.0;

/// Empty when no series kept its points.
pub fn draw(group: &Costs<'_>, size: Size) -> String {
    let points = || group.rows.iter().flat_map(|row| &row.figure.points);
    let Some(frames) = points().map(|point| point[0]).max() else { return String::new() };
    let ns = points().map(|point| point[1]).max().unwrap_or(1);
    let height = if size == Size::Wide { 380.0 } else { 300.0 };
    let (right, bottom) = (size.width() - RIGHT, height - BOTTOM);
    let x = Scale::linear((0.0, frames as f64), (LEFT, right));
    let y = figure::time_scale((0, ns), (bottom, TOP), false);
    let mut svg = Svg::new(size.width(), height, "Time of all calls against the number of frames");
    let unit = group.unit();
    let one = |row: &Row<'_, Cost>| {
        format!("{} {} {} a frame", row.label(), unit.signed(row.figure.total), unit.name)
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
        svg.text("tick middle", (at, bottom + 16.0), &units::grouped(tick.round() as u128));
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

//! One quantity against another, for example the load of a processor against the frame rate: one line per method.

use crate::report::drawing::{Drawing, View, Views};
use crate::report::numbers::Numbers;
use crate::report::ranking;
use crate::report::verdict;
use crate::report::views::{Legend, Lines};
use canter_cli::terminal::{BOLD, Ink, PLAIN, Table, paragraph};
use canter_cli::units;
use canter_measure::drawing::axis::{Scale, make_room};
use canter_measure::drawing::plot::{self, WIDTH};
use canter_measure::drawing::svg::{Path, Svg};
use canter_measure::result::{Curve, ResultFile, Series};

pub const DRAWING: Drawing =
    Drawing { text, ..Drawing::new("curves", include_str!("curves.html"), Views::EachResult(views)) };

/// The number of points of a curve that the terminal shows.
const POINTS_MAX: usize = 8;

const HEIGHT: f64 = 380.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 34.0;
const TOP: f64 = 24.0;
const BOTTOM: f64 = 44.0;

/// Series with the same quantity on each axis.
struct Curves<'a> {
    first: &'a Curve,
    condition: String,
    lines: Vec<(String, &'a Series, &'a Curve)>,
}

fn views(numbers: &Numbers<'_>) -> Vec<View> {
    Curves::of(numbers.result).iter().map(|curves| View::of(&view(curves))).collect()
}

fn view(curves: &Curves<'_>) -> Lines {
    let line = |(n, (label, _, curve)): (usize, &(String, &Series, &Curve))| {
        let most = curve.points.iter().map(|point| point[1]).max().unwrap_or(0);
        let about = format!("at most {}", curves.value(most));
        Legend { number: n + 1, label: label.clone(), class: plot::line_class(n), about }
    };
    Lines {
        title: verdict::capital(&format!("{} against {}", curves.first.quantity, curves.first.against)),
        drawing: curves.draw(),
        legend: curves.lines.iter().enumerate().map(line).collect(),
    }
}

impl<'a> Curves<'a> {
    fn of(result: &'a ResultFile) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for series in result.series.iter().filter(|series| series.is_valid()) {
            let Some(curve) = &series.curve else { continue };
            let condition = ranking::describe(&series.condition);
            let key = |curve: &Curve| {
                let Curve { quantity, unit, decimals, against, against_unit, .. } = curve.clone();
                (quantity, unit, decimals, against, against_unit)
            };
            let same = |one: &Self| key(one.first) == key(curve) && one.condition == condition;
            let place = all.iter().position(same).unwrap_or_else(|| {
                all.push(Self { first: curve, condition, lines: Vec::new() });
                all.len() - 1
            });
            all[place].lines.push((ranking::label(series), series, curve));
        }
        all
    }

    fn draw(&self) -> String {
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        let points = || self.lines.iter().flat_map(|(_, _, curve)| &curve.points);
        let most = |n: usize| points().map(|point| point[n]).max().unwrap_or(1).max(1) as f64;
        let x = Scale::linear((0.0, most(0)), (LEFT, right));
        let y = Scale::linear((0.0, most(1) * 1.03), (bottom, TOP));
        let title = format!("{} against {}", self.first.quantity, self.first.against);
        let mut svg = Svg::new(WIDTH, HEIGHT, &title);
        svg.describe(&self.description());
        svg.text("head", (0.0, 12.0), &self.first.quantity);
        let values = y.ticks(6).into_iter().map(|tick| (y.at(tick), self.value(tick as u64)));
        plot::levels(&mut svg, values.collect(), (LEFT, right));
        let against = x.ticks(plot::labels_max(right - LEFT)).into_iter();
        let against = against.map(|tick| (x.at(tick), units::grouped(tick as u64)));
        plot::columns(&mut svg, against.collect(), (TOP, bottom));
        let unit = &self.first.against_unit;
        let unit = if unit.is_empty() { String::new() } else { format!(", {unit}") };
        svg.text("head end", (right, bottom + 34.0), &format!("{}{unit}", self.first.against));
        svg.line("axis", (LEFT, bottom), (right, bottom));
        for (n, (label, _, curve)) in self.lines.iter().enumerate() {
            line(&mut svg, n, label, curve, (&x, &y));
        }
        let ends: Vec<f64> = self
            .lines
            .iter()
            .map(|(_, _, curve)| curve.points.last().map_or(bottom, |p| y.at(p[1] as f64)))
            .collect();
        for (n, (&end, place)) in ends.iter().zip(make_room(&ends, 17.0, (TOP, bottom - 8.0))).enumerate() {
            svg.group(&plot::line_class(n), |svg| {
                svg.line("", (right, end), (right + 16.0, place));
                svg.badge((right + 24.0, place), n + 1);
            });
        }
        svg.finish()
    }

    /// A value with its unit: `12.5 %`.
    fn value(&self, value: u64) -> String {
        units::measured(value, self.first.decimals, &self.first.unit)
    }

    fn description(&self) -> String {
        let most = |curve: &Curve| curve.points.iter().map(|point| point[1]).max().unwrap_or(0);
        let one =
            |(label, _, curve): &(String, _, &Curve)| format!("{label} at most {}", self.value(most(curve)));
        self.lines.iter().map(one).collect::<Vec<_>>().join(", ")
    }
}

fn line(svg: &mut Svg, n: usize, label: &str, curve: &Curve, (x, y): (&Scale, &Scale)) {
    let points = || curve.points.iter().map(|point| (x.at(point[0] as f64), y.at(point[1] as f64)));
    svg.group(&plot::line_class(n), |svg| {
        svg.path("line", &Path::through(points()), label);
        svg.dots("point", points());
    });
}

fn text(numbers: &Numbers<'_>, ink: Ink) -> String {
    let mut out = String::new();
    for series in numbers.result.series.iter().filter(|series| series.unavailable.is_empty()) {
        points(&mut out, series, ink);
    }
    out
}

/// `processor load of read+write, %, against rate, frames/s:` and a table of points, side by side.
fn points(out: &mut String, series: &Series, ink: Ink) {
    let Some(curve) = &series.curve else { return };
    let heading = format!(
        "{} of {}, {}, against {}:",
        curve.quantity,
        ranking::label(series),
        ranking::describe(&series.condition),
        curve.against
    );
    paragraph(out, &heading, 0, ink, PLAIN);
    let mut table = Table::new(&[&curve.against, &curve.quantity]);
    let every = curve.points.len().div_ceil(POINTS_MAX).max(1);
    for [against, value] in curve.points.iter().step_by(every) {
        let against = units::measured(*against, 0, &curve.against_unit);
        table.row([(against, PLAIN), (units::measured(*value, curve.decimals, &curve.unit), BOLD)]);
    }
    table.print(out, ink);
}

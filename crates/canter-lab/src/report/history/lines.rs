//! A history on the page: a line per statistic, relative to the first kernel, and the table of its times.

use super::{Cell, Flavour, Group, History};
use canter_cli::units;
use canter_measure::drawing::{
    axis::{Scale, make_room},
    plot::{self, WIDTH},
    svg::{Path, Svg},
};
use serde::Serialize;

#[derive(Serialize)]
pub struct HistoryView {
    steps: Vec<String>,
    bound: String,
    about: &'static str,
    flavours: Vec<FlavourView>,
}

#[derive(Serialize)]
struct FlavourView {
    title: &'static str,
    /// Names of the kernels, with their releases.
    kernels: Vec<[String; 2]>,
    groups: Vec<GroupView>,
}

#[derive(Serialize)]
struct GroupView {
    heading: String,
    drawing: String,
    rows: Vec<RowView>,
}

#[derive(Serialize)]
struct RowView {
    number: usize,
    class: String,
    label: String,
    cells: Vec<CellView>,
}

#[derive(Serialize)]
struct CellView {
    ns: String,
    change: String,
    class: &'static str,
}

pub fn view(history: &History, about: &'static str) -> HistoryView {
    let step = |step: super::Step<'_>| {
        format!(
            "{}, {}: {} on {}, {} on {} ({:+.1} %)",
            step.row.label,
            step.group.heading,
            units::grouped(step.before.1),
            step.before.0.release,
            units::grouped(step.after.1),
            step.after.0.release,
            step.change * 100.0
        )
    };
    HistoryView {
        steps: history.steps().map(step).collect(),
        bound: units::digits(history.bound.0 * 100.0),
        about,
        flavours: history.flavours.iter().map(flavour).collect(),
    }
}

fn flavour(flavour: &Flavour) -> FlavourView {
    FlavourView {
        title: if flavour.realtime { "PREEMPT_RT kernels" } else { "Plain kernels" },
        kernels: flavour.kernels.iter().map(|kernel| [kernel.name.clone(), kernel.release.clone()]).collect(),
        groups: flavour.groups.iter().map(|group| group_view(flavour, group)).collect(),
    }
}

fn group_view(flavour: &Flavour, group: &Group) -> GroupView {
    let row = |(n, row): (usize, &super::Row)| RowView {
        number: n + 1,
        class: plot::line_class(n),
        label: row.label.clone(),
        cells: row.cells.iter().map(|cell| cell_view(*cell)).collect(),
    };
    let rows = group.rows.iter().enumerate().map(row).collect();
    GroupView { heading: group.heading.clone(), drawing: draw(flavour, group), rows }
}

fn cell_view(cell: Option<Cell>) -> CellView {
    let Some(Cell { ns, change, is_step }) = cell else {
        return CellView { ns: "–".to_owned(), change: String::new(), class: "" };
    };
    let change = change.unwrap_or(0.0);
    let class = match (is_step, change > 0.0) {
        (false, _) => "",
        (true, true) => "bad",
        (true, false) => "good",
    };
    let change = if is_step { format!("{:+.1} %", change * 100.0) } else { String::new() };
    CellView { ns: units::grouped(ns), change, class }
}

const LEFT: f64 = 62.0;
const RIGHT: f64 = 34.0;
const TOP: f64 = 24.0;
const HEIGHT: f64 = 220.0;
const BOTTOM: f64 = 34.0;

/// The lines of a group: each statistic over that of the first kernel on which it was measured.
fn draw(flavour: &Flavour, group: &Group) -> String {
    let right = WIDTH - RIGHT;
    let mut svg = Svg::new(WIDTH, TOP + HEIGHT + BOTTOM, &group.heading);
    let last = flavour.kernels.len().saturating_sub(1).max(1) as f64;
    let x = Scale::linear((-0.2, last + 0.2), (LEFT, right));
    let lines: Vec<_> = group.rows.iter().map(relative).collect();
    let all = || lines.iter().flatten().map(|&(_, ratio, _)| ratio);
    let (least, most) = (all().fold(1.0, f64::min), all().fold(1.0, f64::max));
    let margin = ((most - least) * 0.1).max(0.02);
    let y = Scale::linear((least - margin, most + margin), (TOP + HEIGHT, TOP));
    svg.text("head", (0.0, 10.0), "times the first kernel");
    let ratios = y.fractions(6).into_iter().map(|tick| (y.at(tick), format!("{tick:.2}×")));
    plot::levels(&mut svg, ratios.collect(), (LEFT, right));
    let names = flavour.kernels.iter().enumerate();
    let names = names.map(|(n, kernel)| (x.at(n as f64), kernel.name.clone()));
    svg.text_row("tick middle", TOP + HEIGHT + 18.0, names);
    for (n, (row, line)) in group.rows.iter().zip(&lines).enumerate() {
        let points: Vec<_> = line.iter().map(|&(at, ratio, _)| (x.at(at as f64), y.at(ratio))).collect();
        svg.group(&plot::line_class(n), |svg| {
            svg.path("line", &Path::through(points.iter().copied()), &row.label);
            for (point, (_, _, is_step)) in points.into_iter().zip(line) {
                svg.circle("point", point, if *is_step { 6.0 } else { 3.0 });
            }
        });
    }
    let ends: Vec<_> =
        lines.iter().map(|line| line.last().map_or(TOP, |&(_, ratio, _)| y.at(ratio))).collect();
    for (n, (end, place)) in ends.iter().zip(make_room(&ends, 17.0, (TOP, TOP + HEIGHT))).enumerate() {
        svg.group(&plot::line_class(n), |svg| {
            svg.line("", (right, *end), (right + 16.0, place));
            svg.badge((right + 24.0, place), n + 1);
        });
    }
    svg.finish()
}

/// The points of a row: the kernel's number, the time over the first one's, whether it is a step.
fn relative(row: &super::Row) -> Vec<(usize, f64, bool)> {
    let first = row.cells.iter().flatten().map(|cell| cell.ns).find(|&ns| ns > 0).unwrap_or(1) as f64;
    let points = row.cells.iter().enumerate();
    points.filter_map(|(n, cell)| cell.map(|cell| (n, cell.ns as f64 / first, cell.is_step))).collect()
}

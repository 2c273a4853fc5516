//! The 2014 paper's bars: the median of every method, whiskers from the minimum to p90, fastest on top, and a
//! diamond at the paper's ratio to can-gw.

use crate::report::ranking::{Latencies, Ranked};
use canter_cli::{terminal::clip, units};
use canter_measure::drawing::axis::Scale;
use canter_measure::drawing::plot::{self, CHARACTER, WIDTH};
use canter_measure::drawing::svg::{Path, Svg};
use canter_measure::result::Latency;

const TOP: f64 = 30.0;
const BOTTOM: f64 = 26.0;
const ROW: f64 = 24.0;
/// The ends of the bars, and the columns beside them.
const RIGHT: f64 = WIDTH - 282.0;
const MEDIAN: f64 = RIGHT + 78.0;
const RATIO: f64 = RIGHT + 162.0;
const PAPER: f64 = RIGHT + 222.0;
const PAPER_RATIO: f64 = RIGHT + 278.0;

pub fn draw(group: &Latencies<'_>) -> String {
    let characters = group.rows.iter().map(|row| row.label().chars().count()).max().unwrap_or(0);
    let characters = characters.clamp(8, 30);
    let left = 34.0 + CHARACTER * characters as f64 + 12.0;
    let bottom = TOP + ROW * group.rows.len() as f64;
    let (least, most) = bounds(group);
    let logarithmic = plot::spread_too_wide(least, most);
    let least = floor(group).map_or(least, |floor| least.min(floor));
    let scale = plot::time_scale((least, most), (left, RIGHT), logarithmic);
    let mut svg = Svg::new(
        WIDTH,
        bottom + BOTTOM,
        &format!("Median {} of every method, the shortest first", group.quantity()),
    );
    svg.describe(&description(group));
    plot::time_axis(&mut svg, &scale, plot::labels_max(RIGHT - left), (TOP, bottom));
    headings(&mut svg, group);
    reference_line(&mut svg, group, &scale, (TOP, bottom));
    plot::floor_line(&mut svg, &scale, floor(group), (TOP, bottom));
    for (n, row) in group.rows.iter().enumerate() {
        let middle = TOP + ROW * (n as f64 + 0.5);
        svg.group(&row.class(), |svg| {
            bar(svg, row, &scale, middle, logarithmic);
            paper_of(svg, group, row, &scale, middle);
            words(svg, group, n, characters, middle + 4.2);
        });
    }
    svg.finish()
}

fn description(group: &Latencies<'_>) -> String {
    let unit = group.unit();
    let one = |row: &Ranked<'_, Latency>| {
        format!("{} {} {}", row.label(), unit.number(row.measured.p50), unit.name)
    };
    plot::first_few(group.rows.iter().map(one), ", ")
}

fn bounds(group: &Latencies<'_>) -> (u64, u64) {
    let least = group.rows.iter().map(|row| row.measured.min.min(row.measured.p50)).min().unwrap_or(0);
    let ends = group.rows.iter().map(|row| {
        let paper = group.paper_scaled(row, row.paper_ns()).unwrap_or(0);
        row.measured.p90.max(row.measured.p50).max(paper)
    });
    (least, ends.max().unwrap_or(1))
}

pub fn floor(group: &Latencies<'_>) -> Option<u64> {
    group.rows.iter().filter_map(|row| row.series.floor_ns).min()
}

fn headings(svg: &mut Svg, group: &Latencies<'_>) {
    let y = TOP - 12.0;
    svg.text("head end", (MEDIAN, y), "median");
    if group.reference().is_some() {
        svg.text("head end", (RATIO, y), &format!("× {}", clip(group.reference_name(), 10)));
    }
    if group.rows.iter().any(|row| row.paper_ns().is_some()) {
        svg.text("head end", (PAPER, y), "paper");
    }
    if group.rows.iter().any(|row| group.paper_ratio(row).is_some()) {
        svg.text("head end", (PAPER_RATIO, y), "paper ×");
    }
}

fn reference_line(svg: &mut Svg, group: &Latencies<'_>, scale: &Scale, (top, bottom): (f64, f64)) {
    if let Some(reference) = group.reference() {
        let x = scale.at(reference.measured.p50 as f64);
        svg.line("reference", (x, top), (x, bottom));
    }
}

fn bar(svg: &mut Svg, row: &Ranked<'_, Latency>, scale: &Scale, y: f64, logarithmic: bool) {
    let [min, p50, p90] =
        [row.measured.min, row.measured.p50, row.measured.p90].map(|ns| scale.at(ns as f64));
    let start = scale.at(0.0);
    if logarithmic {
        svg.line("guide", (start, y), (p50, y)); // a logarithmic axis has no 0, so a bar's length has no meaning
        svg.circle("bar", (p50, y), 5.0);
    } else {
        svg.rect("bar", (start, y - 6.0), (p50 - start, 12.0));
    }
    let mut whisker = Path::default();
    for x in [min, p90] {
        whisker.move_to(x, y - 4.0);
        whisker.down_to(y + 4.0);
    }
    whisker.move_to(min, y);
    whisker.across_to(p90);
    svg.plain_path("whisker", &whisker);
}

/// The paper's median as a diamond at its ratio to the reference, with the paper's whiskers if it has them.
fn paper_of(svg: &mut Svg, group: &Latencies<'_>, row: &Ranked<'_, Latency>, scale: &Scale, y: f64) {
    let scaled =
        |ns: u64| group.paper_scaled(row, Some(ns).filter(|&ns| ns > 0)).map(|ns| scale.at(ns as f64));
    let Some(paper) = &row.series.paper else { return };
    let Some(x) = scaled(paper.ns) else { return };
    if let (Some(min), Some(p90)) = (scaled(paper.min), scaled(paper.p90)) {
        svg.line("paper-whisker", (min, y + 8.0), (p90, y + 8.0));
    }
    diamond(svg, x, y, row);
}

fn diamond(svg: &mut Svg, x: f64, y: f64, row: &Ranked<'_, Latency>) {
    let path = Path::diamond(x, y);
    let paper = row.paper_ns().map(units::round_span).unwrap_or_default();
    svg.path("diamond", &path, &format!("the paper: {paper}"));
}

fn words(svg: &mut Svg, group: &Latencies<'_>, n: usize, characters: usize, y: f64) {
    let row = &group.rows[n];
    let unit = group.unit();
    svg.badge((10.0, y - 4.2), n + 1);
    svg.text("name", (28.0, y), &clip(&row.label(), characters));
    svg.text("value strong end", (MEDIAN, y), &format!("{} {}", unit.number(row.measured.p50), unit.name));
    svg.text("value end", (RATIO, y), &group.ratio(row).unwrap_or_default());
    let paper = row.paper_ns().map(units::round_span).unwrap_or_default();
    svg.text("value faint end", (PAPER, y), &paper);
    svg.text("value faint end", (PAPER_RATIO, y), &group.paper_ratio(row).unwrap_or_default());
}

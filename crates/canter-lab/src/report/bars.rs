//! The 2014 paper's bars: the median of every method, whiskers from the minimum to p90, fastest on top, and a
//! diamond at the paper's ratio to can-gw.

use crate::report::axis::Scale;
use crate::report::plot::{self, CHARACTER, Size};
use crate::report::ranking::{Latencies, Row};
use crate::report::svg::{Path, Svg};
use canter_cli::{terminal::clip, units};
use canter_measure::result::Latency;

const TOP: f64 = 30.0;
const BOTTOM: f64 = 26.0;

struct Layout {
    size: Size,
    row: f64,
    /// The pixels where the bars begin and end.
    left: f64,
    right: f64,
}

impl Layout {
    fn new(size: Size, characters: usize) -> Self {
        match size {
            Size::Wide => {
                let left = 34.0 + CHARACTER * characters.clamp(8, 30) as f64 + 12.0;
                Self { size, row: 24.0, left, right: size.width() - 282.0 }
            }
            Size::Narrow => Self { size, row: 40.0, left: 1.0, right: size.width() - 12.0 },
        }
    }
}

pub fn draw(group: &Latencies<'_>, size: Size) -> String {
    let characters = group.rows.iter().map(|row| row.label().chars().count()).max().unwrap_or(0);
    let layout = Layout::new(size, characters);
    let bottom = TOP + layout.row * group.rows.len() as f64;
    let (least, most) = bounds(group);
    let logarithmic = plot::spread_too_wide(least, most);
    let least = floor(group).map_or(least, |floor| least.min(floor));
    let scale = plot::time_scale((least, most), (layout.left, layout.right), logarithmic);
    let mut svg = Svg::new(
        size.width(),
        bottom + BOTTOM,
        &format!("Median {} of every method, the shortest first", group.quantity()),
    );
    svg.describe(&description(group));
    let ticks = Size::ticks(layout.right - layout.left);
    plot::time_axis(&mut svg, &scale, ticks, (TOP, bottom));
    headings(&mut svg, group, &layout);
    reference_line(&mut svg, group, &scale, (TOP, bottom));
    plot::floor_line(&mut svg, &scale, floor(group), (TOP, bottom));
    for (n, row) in group.rows.iter().enumerate() {
        let top = TOP + layout.row * n as f64;
        let middle = match size {
            Size::Wide => top + layout.row / 2.0,
            Size::Narrow => top + 28.0,
        };
        svg.group(&row.class(), |svg| {
            bar(svg, row, &scale, middle, logarithmic);
            paper_of(svg, group, row, &scale, middle);
            words(svg, group, n, &layout, top);
        });
    }
    svg.finish()
}

fn description(group: &Latencies<'_>) -> String {
    let unit = group.unit();
    let one =
        |row: &Row<'_, Latency>| format!("{} {} {}", row.label(), unit.number(row.figure.p50), unit.name);
    plot::first_few(group.rows.iter().map(one), ", ")
}

fn bounds(group: &Latencies<'_>) -> (u64, u64) {
    let least = group.rows.iter().map(|row| row.figure.min.min(row.figure.p50)).min().unwrap_or(0);
    let ends = group.rows.iter().map(|row| {
        let paper = group.paper_scaled(row, row.paper_ns()).unwrap_or(0);
        row.figure.p90.max(row.figure.p50).max(paper)
    });
    (least, ends.max().unwrap_or(1))
}

pub fn floor(group: &Latencies<'_>) -> Option<u64> {
    group.rows.iter().filter_map(|row| row.series.floor_ns).min()
}

fn headings(svg: &mut Svg, group: &Latencies<'_>, layout: &Layout) {
    if layout.size == Size::Narrow {
        return;
    }
    let y = TOP - 12.0;
    let [median, ratio, paper, paper_ratio] = columns(layout);
    svg.text("head end", (median, y), "median");
    if group.reference().is_some() {
        svg.text("head end", (ratio, y), &format!("× {}", clip(group.reference_name(), 10)));
    }
    if group.rows.iter().any(|row| row.paper_ns().is_some()) {
        svg.text("head end", (paper, y), "paper");
    }
    if group.rows.iter().any(|row| group.paper_ratio(row).is_some()) {
        svg.text("head end", (paper_ratio, y), "paper ×");
    }
}

/// The right ends of the columns beside the bars.
fn columns(layout: &Layout) -> [f64; 4] {
    [78.0, 162.0, 222.0, 278.0].map(|x| layout.right + x)
}

fn reference_line(svg: &mut Svg, group: &Latencies<'_>, scale: &Scale, (top, bottom): (f64, f64)) {
    if let Some(reference) = group.reference() {
        let x = scale.at(reference.figure.p50 as f64);
        svg.line("reference", (x, top), (x, bottom));
    }
}

fn bar(svg: &mut Svg, row: &Row<'_, Latency>, scale: &Scale, y: f64, logarithmic: bool) {
    let [min, p50, p90] = [row.figure.min, row.figure.p50, row.figure.p90].map(|ns| scale.at(ns as f64));
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
fn paper_of(svg: &mut Svg, group: &Latencies<'_>, row: &Row<'_, Latency>, scale: &Scale, y: f64) {
    let scaled =
        |ns: u64| group.paper_scaled(row, Some(ns).filter(|&ns| ns > 0)).map(|ns| scale.at(ns as f64));
    let Some(paper) = &row.series.paper else { return };
    let Some(x) = scaled(paper.ns) else { return };
    if let (Some(min), Some(p90)) = (scaled(paper.min), scaled(paper.p90)) {
        svg.line("paper-whisker", (min, y + 8.0), (p90, y + 8.0));
    }
    diamond(svg, x, y, row);
}

fn diamond(svg: &mut Svg, x: f64, y: f64, row: &Row<'_, Latency>) {
    let mut path = Path::default();
    path.move_to(x - 5.0, y);
    path.line_to(x, y - 5.0);
    path.line_to(x + 5.0, y);
    path.line_to(x, y + 5.0);
    path.line_to(x - 5.0, y);
    let paper = row.paper_ns().map(units::round_span).unwrap_or_default();
    svg.path("diamond", &path, &format!("the paper: {paper}"));
}

fn words(svg: &mut Svg, group: &Latencies<'_>, n: usize, layout: &Layout, top: f64) {
    let row = &group.rows[n];
    let unit = group.unit();
    let median = format!("{} {}", unit.number(row.figure.p50), unit.name);
    let ratio = group.ratio(row).unwrap_or_default();
    match layout.size {
        Size::Wide => {
            let y = top + layout.row / 2.0 + 4.2;
            svg.badge((10.0, y - 4.2), n + 1);
            let room = ((layout.left - 46.0) / CHARACTER) as usize;
            svg.text("name", (28.0, y), &clip(&row.label(), room));
            let paper = row.paper_ns().map(units::round_span).unwrap_or_default();
            let paper_ratio = group.paper_ratio(row).unwrap_or_default();
            let [at_median, at_ratio, at_paper, at_paper_ratio] = columns(layout);
            svg.text("value strong end", (at_median, y), &median);
            svg.text("value end", (at_ratio, y), &ratio);
            svg.text("value faint end", (at_paper, y), &paper);
            svg.text("value faint end", (at_paper_ratio, y), &paper_ratio);
        }
        Size::Narrow => {
            let y = top + 16.0;
            svg.badge((9.0, y - 4.2), n + 1);
            svg.text("name", (24.0, y), &clip(&row.label(), 26));
            let both = [median, ratio].join("  ");
            svg.text("value end", (layout.size.width() - 2.0, y), both.trim_end());
        }
    }
}

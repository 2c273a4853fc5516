//! The ladder as a picture: a row for each gateway, a mark for each kernel at its multiple of can-gw's median, a
//! whisker to its p99, and a tick at the instrument's floor.

use super::{Ladder, Mark, Measurement, Panel, Rung};
use canter_cli::{terminal::clip, units};
use canter_measure::drawing::axis::Scale;
use canter_measure::drawing::marks;
use canter_measure::drawing::plot::{self, CHARACTER, WIDTH};
use canter_measure::drawing::svg::{Path, Svg};

/// The distance between the marks of two kernels.
const LANE: f64 = 5.0;
const NAMES_MAX: usize = 36;

/// The space above the rows of a panel.
const HEADING: f64 = 26.0;
/// The space below all rows.
const AXIS: f64 = 24.0;
/// The right end of the marks.
const RIGHT: f64 = WIDTH - 138.0;

/// The height of a row; a row with marks of a single kernel has that of its text.
fn row_height(panel: &Panel<'_>) -> f64 {
    let kernels = panel.rungs.iter().map(|rung| rung.marks.len()).max().unwrap_or(1);
    (LANE * kernels as f64 + 6.0).max(17.0)
}

pub fn draw(ladder: &Ladder<'_>) -> String {
    let rungs = ladder.panels.iter().flat_map(|panel| &panel.rungs);
    let longest = rungs.map(|rung| rung.gateway.chars().count()).max().unwrap_or(0);
    let left = CHARACTER * longest.clamp(8, NAMES_MAX) as f64 + 12.0;
    let heights = ladder.panels.iter().map(|panel| HEADING + row_height(panel) * panel.rungs.len() as f64);
    let bottom: f64 = heights.sum();
    let title =
        format!("Gateways by their median, as a multiple of can-gw's, on {}", ladder.kernels.join(", "));
    let mut svg = Svg::new(WIDTH, bottom + AXIS, &title);
    svg.describe(&description(ladder));
    let scale = scale(ladder, (left, RIGHT));
    axis(&mut svg, &scale, bottom);
    let mut top = 0.0;
    for panel in &ladder.panels {
        top = draw_panel(&mut svg, ladder, panel, &scale, top);
    }
    svg.finish()
}

fn description(ladder: &Ladder<'_>) -> String {
    let kernel = ladder.newest_plain();
    let of_panel = |panel: &Panel<'_>| {
        let rungs = panel.rungs.iter().filter_map(|rung| {
            let measured = rung.measurement(kernel)?;
            Some(format!("{} {}", rung.gateway, units::ratio(measured.median, measured.reference)?))
        });
        let rungs: Vec<String> = rungs.collect();
        format!("{}, on {kernel}: {}", panel.heading(), plot::first_few(rungs.into_iter(), ", "))
    };
    ladder.panels.iter().map(of_panel).collect::<Vec<_>>().join("; ")
}

fn all_measurements<'a>(ladder: &'a Ladder<'_>) -> impl Iterator<Item = Measurement> + 'a {
    let rungs = ladder.panels.iter().flat_map(|panel| &panel.rungs);
    rungs.flat_map(|rung| rung.marks.keys().filter_map(|kernel| rung.measurement(kernel)))
}

fn scale(ladder: &Ladder<'_>, pixels: (f64, f64)) -> Scale {
    let (mut least, mut most) = (1.0_f64, 1.0_f64);
    for measured in all_measurements(ladder) {
        let floor = measured.floor.filter(|&floor| floor > 0).unwrap_or(measured.median);
        least = least.min(measured.ratio(floor.min(measured.median)));
        most = most.max(measured.ratio(measured.p99.max(measured.median)));
    }
    Scale::logarithmic((least / 1.1, most * 1.15), pixels)
}

/// Vertical lines at round multiples, and a strong one at can-gw.
fn axis(svg: &mut Svg, scale: &Scale, bottom: f64) {
    let powers = (-3..7).map(|power| 10_f64.powi(power));
    let round = powers.flat_map(|power| [1.0, 2.0, 5.0].map(|n| n * power));
    let top = HEADING - 4.0;
    let mut free = f64::MIN;
    for tick in round.filter(|&tick| scale.covers(tick)) {
        let (x, is_reference) = (scale.at(tick), (tick - 1.0).abs() < 1e-9);
        let class = if is_reference { "reference" } else { "grid" };
        svg.line(class, (x, top), (x, bottom));
        if x >= free || is_reference {
            let label = format!("{}×", units::digits(tick));
            svg.text(
                if is_reference { "tick strong middle" } else { "tick middle" },
                (x, bottom + 16.0),
                &label,
            );
            free = x + 30.0;
        }
    }
}

/// Draws a panel from `top` on; returns where it ends.
fn draw_panel(svg: &mut Svg, ladder: &Ladder<'_>, panel: &Panel<'_>, scale: &Scale, top: f64) -> f64 {
    let (first, row) = (top + HEADING, row_height(panel));
    let bottom = first + row * panel.rungs.len() as f64;
    headings(svg, ladder, panel, first - 8.0);
    for (n, rung) in panel.rungs.iter().enumerate() {
        let top = first + row * n as f64;
        svg.line("rung", (0.0, top), (WIDTH, top));
        let middle = top + row / 2.0;
        words(svg, ladder, rung, middle + 4.2);
        let lanes: Vec<usize> = drawn_kernels(ladder, panel);
        for (place, &kernel) in lanes.iter().enumerate() {
            let lane = middle + LANE * (place as f64 - (lanes.len() as f64 - 1.0) / 2.0);
            mark(svg, rung, (kernel, &ladder.kernels[kernel]), scale, lane);
        }
    }
    bottom
}

/// The kernels that have a lane in this panel, by their number.
fn drawn_kernels(ladder: &Ladder<'_>, panel: &Panel<'_>) -> Vec<usize> {
    let has = |kernel: &String| panel.rungs.iter().any(|rung| rung.marks.contains_key(kernel));
    (0..ladder.kernels.len()).filter(|&n| has(&ladder.kernels[n])).collect()
}

fn headings(svg: &mut Svg, ladder: &Ladder<'_>, panel: &Panel<'_>, y: f64) {
    svg.text("head", (0.0, y), &clip(&format!("Measured by {}", panel.heading()), 100));
    let kernel = clip(ladder.newest_plain(), 14);
    svg.text("head end", (WIDTH, y), &format!("median on {kernel}"));
}

fn words(svg: &mut Svg, ladder: &Ladder<'_>, rung: &Rung, y: f64) {
    svg.text("name", (0.0, y), &clip(&rung.gateway, NAMES_MAX));
    let Some(measured) = rung.measurement(ladder.newest_plain()) else { return };
    let ratio = units::ratio(measured.median, measured.reference).unwrap_or_default();
    svg.text("value strong end", (WIDTH - 68.0, y), &ratio);
    svg.text("value end", (WIDTH, y), &units::span(measured.median));
}

fn mark(svg: &mut Svg, rung: &Rung, (n, kernel): (usize, &str), scale: &Scale, y: f64) {
    match rung.mark(kernel) {
        None => {}
        Some(Mark::Nothing(why)) => {
            marks::cross(svg, (RIGHT - 5.0, y), &format!("{}, {kernel}: {why}", rung.gateway))
        }
        Some(Mark::Measured(measured)) => {
            let mut tail = Path::default();
            if let Some(floor) = measured.floor.filter(|&floor| floor > 0) {
                tail.move_to(scale.at(measured.ratio(floor)), y - 2.5);
                tail.down_to(y + 2.5);
            }
            let [x, end] = [measured.median, measured.p99].map(|ns| scale.at(measured.ratio(ns)));
            tail.move_to(x, y);
            tail.across_to(end);
            svg.plain_path(&format!("tail {}", marks::class(n)), &tail);
            let ratio = units::ratio(measured.median, measured.reference).unwrap_or_default();
            let spans = [measured.median, measured.p99].map(units::span);
            let loss = measured.loss();
            let tip = format!("{}, {kernel}: {ratio}, median {}, p99 {}", rung.gateway, spans[0], spans[1]);
            let tip = if loss.is_empty() { tip } else { format!("{tip}; {loss}") };
            marks::draw(svg, n, (x, y), &tip);
            if measured.lost > 0 {
                marks::ring(svg, (x, y), &tip);
            }
        }
    }
}

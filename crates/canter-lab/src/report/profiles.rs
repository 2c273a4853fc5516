//! Latency profiles, overlaid: for each t, how many frames took longer. Logarithmic in both; every line ends at its
//! worst case, marked with the method's number. A plateau to the right edge is lost frames.

use crate::report::bars;
use crate::report::ranking::{Latencies, Ranked};
use canter_cli::units;
use canter_measure::drawing::axis::{Scale, make_room};
use canter_measure::drawing::outline;
use canter_measure::drawing::plot::{self, WIDTH};
use canter_measure::drawing::svg::{Path, Svg};
use canter_measure::profile::Profile;
use canter_measure::result::Latency;

const HEIGHT: f64 = 420.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 62.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 24.0;

/// The end of the axis, just below one frame, so that the last frame's step of a profile without losses is visible.
const LEAST_FRAMES: f64 = 0.7;
/// The floor and the paper's points extend the axis by at most this factor; points farther away are left out.
const NEAR: u64 = 3;

struct Plot {
    x: Scale,
    y: Scale,
    right: f64,
    bottom: f64,
}

pub fn draw(group: &Latencies<'_>) -> String {
    let plot = plot(group, (WIDTH - RIGHT, HEIGHT - BOTTOM));
    let title = format!("Profiles of the {}", group.quantity());
    let mut svg = Svg::new(WIDTH, HEIGHT, &title);
    svg.describe(&description(group));
    grid(&mut svg, &plot);
    plot::floor_line(&mut svg, &plot.x, bars::floor(group), (TOP, plot.bottom));
    plateaus(&mut svg, group, &plot);
    lines(&mut svg, group, &plot);
    for row in group.rows.iter().rev() {
        if row.series.paper.is_some() {
            svg.group(&row.class(), |svg| paper(svg, group, row, &plot));
        }
    }
    worst_of_all(&mut svg, group, &plot);
    svg.finish()
}

fn description(group: &Latencies<'_>) -> String {
    let one = |row: &Ranked<'_, Latency>| {
        let lost = row.series.ledger.lost.total();
        let lost = if lost > 0 { format!(", {} lost", units::grouped(lost)) } else { String::new() };
        format!(
            "{}: median {}, worst {}{lost}",
            row.label(),
            units::span(row.measured.p50),
            units::span(row.measured.max)
        )
    };
    plot::first_few(group.rows.iter().map(one), "; ")
}

fn sent(row: &Ranked<'_, Latency>) -> u64 {
    row.measured.count.saturating_add(row.series.ledger.lost.total())
}

fn plot(group: &Latencies<'_>, (right, bottom): (f64, f64)) -> Plot {
    let least = group.rows.iter().map(|row| row.measured.min).min().unwrap_or(0);
    let most = group.rows.iter().map(|row| row.measured.max).max().unwrap_or(1);
    let near = |&ns: &u64| ns >= least / NEAR && ns <= most.saturating_mul(NEAR);
    let papers = group.rows.iter().flat_map(|row| paper_points(group, row)).map(|(_, scaled, _)| scaled);
    let others: Vec<u64> = papers.chain(bars::floor(group)).filter(near).collect();
    let least = others.iter().copied().fold(least, u64::min).max(1) as f64;
    let most = others.iter().copied().fold(most, u64::max);
    let margin = (most as f64 / least).powf(0.04).max(1.02);
    let x = Scale::logarithmic((least / margin, most as f64 * margin), (LEFT, right));
    let count = group.rows.iter().map(sent).max().unwrap_or(1).max(1);
    let y = Scale::logarithmic((LEAST_FRAMES, count as f64 * 1.3), (bottom, TOP));
    Plot { x, y, right, bottom }
}

fn grid(svg: &mut Svg, plot: &Plot) {
    svg.text("head", (0.0, 10.0), "frames longer than t");
    let frames = plot.y.ticks(7).into_iter();
    let frames = frames.map(|tick| (plot.y.at(tick), units::grouped(tick.round() as u128)));
    plot::levels(svg, frames.collect(), (LEFT, plot.right));
    plot::time_axis(svg, &plot.x, plot::labels_max(plot.right - LEFT), (TOP, plot.bottom + 32.0));
    svg.line("axis", (LEFT, plot.bottom), (plot.right, plot.bottom));
    svg.text("tick end", (LEFT - 6.0, plot.bottom + 26.0), "worst");
}

/// A line for each method, from the left edge along its outline to its worst case, and below it the method's number.
fn lines(svg: &mut Svg, group: &Latencies<'_>, plot: &Plot) {
    let ends: Vec<f64> = group.rows.iter().map(|row| plot.x.at(row.measured.max as f64)).collect();
    let badges = make_room(&ends, 17.0, (LEFT + 8.0, plot.right - 8.0));
    for (n, row) in group.rows.iter().enumerate().rev() {
        let profile = Profile::new(row.measured, row.series.ledger.lost.total());
        let tip = format!("{}: worst {}", row.label(), units::span(row.measured.max));
        let (top, start) = (plot.y.at(sent(row) as f64), plot.x.at(row.measured.min.max(1) as f64));
        svg.group(&row.class(), |svg| {
            svg.path("line", &outline::path(&profile, &plot.x, &plot.y), &tip);
            svg.line("lead", (LEFT, top), (start, top));
            svg.line("", (ends[n], plot.bottom), (badges[n], plot.bottom + 15.0));
            svg.badge((badges[n], plot.bottom + 22.0), n + 1);
        });
    }
}

/// Lost frames are a plateau from a line's end to the right edge.
fn plateaus(svg: &mut Svg, group: &Latencies<'_>, plot: &Plot) {
    for row in group.rows.iter().filter(|row| row.series.ledger.lost.total() > 0) {
        let lost = row.series.ledger.lost.total();
        let (end, level) = (plot.x.at(row.measured.max.max(1) as f64), plot.y.at(lost as f64));
        svg.group(&row.class(), |svg| svg.line("plateau", (end, level), (plot.right, level)));
        svg.text("tick end", (plot.right, level - 4.0), &format!("{} lost", units::grouped(lost)));
    }
}

/// The paper's points at their ratio to the reference: the paper's ns, the scaled ns, and how many frames took longer:
/// half of them for the median, one frame for the worst case.
pub fn paper_points(group: &Latencies<'_>, row: &Ranked<'_, Latency>) -> Vec<(u64, u64, f64)> {
    let Some(paper) = &row.series.paper else { return Vec::new() };
    let count = sent(row) as f64;
    let points = [(paper.min, count), (paper.ns, count / 2.0), (paper.p90, count / 10.0), (paper.max, 1.0)];
    let scaled = |(ns, m): (u64, f64)| {
        let scaled = group.paper_scaled(row, Some(ns).filter(|&ns| ns > 0))?;
        Some((ns, scaled, m.max(1.0)))
    };
    points.into_iter().filter_map(scaled).collect()
}

fn paper(svg: &mut Svg, group: &Latencies<'_>, row: &Ranked<'_, Latency>, plot: &Plot) {
    for (ns, scaled, m) in paper_points(group, row) {
        if !plot.x.covers(scaled as f64) {
            continue;
        }
        let (x, y) = (plot.x.at(scaled as f64), plot.y.at(m));
        let tip = format!("{} in the paper: {}", row.label(), units::round_span(ns));
        svg.path("paper-point", &Path::diamond(x, y), &tip);
    }
}

fn worst_of_all(svg: &mut Svg, group: &Latencies<'_>, plot: &Plot) {
    let worst = group.rows.iter().max_by_key(|row| row.measured.max);
    if let Some(row) = worst {
        let x = plot.x.at(row.measured.max as f64);
        let level = plot.y.at(row.series.ledger.lost.total().max(1) as f64);
        svg.group(&row.class(), |svg| svg.circle("", (x, level), 4.0));
        svg.text(
            "value end",
            (plot.right, TOP - 8.0),
            &format!("worst {} {}", row.label(), units::span(row.measured.max)),
        );
    }
}

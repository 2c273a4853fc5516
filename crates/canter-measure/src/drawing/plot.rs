//! Shared by the drawings: their width, the space that text takes, and axes of times.

use super::{axis::Scale, svg::Svg};
use canter_cli::units;

/// The width of a drawing. The style sheet scales it to the screen; a narrow screen scrolls it.
pub const WIDTH: f64 = 960.0;

/// The approximate number of labels that fit on a horizontal axis of `pixels`.
pub fn labels_max(pixels: f64) -> usize {
    (pixels / 75.0).max(2.0) as usize
}

/// The width of a character of the drawings' monospaced font, in pixels.
pub const CHARACTER: f64 = 7.3;

/// The class of the `n`-th of several lines: its hue, and from the eighth on its dashes.
pub fn line_class(n: usize) -> String {
    varied(&format!("hue-{}", n % 7), "dash", n / 7 % 4)
}

/// The classes with one more for the `n`-th variety; the usual one, 0, needs none.
pub fn varied(class: &str, variety: &str, n: usize) -> String {
    if n == 0 { class.to_owned() } else { format!("{class} {variety}-{n}") }
}

/// The number of items that a description lists.
const NAMED_MAX: usize = 6;

/// The first items, and the number of the others, for a description.
pub fn first_few(all: impl ExactSizeIterator<Item = String>, between: &str) -> String {
    let more = all.len().saturating_sub(NAMED_MAX);
    let named = all.take(NAMED_MAX).collect::<Vec<_>>().join(between);
    if more > 0 { format!("{named}{between}and {more} more") } else { named }
}

/// Whether the range is too wide for a linear axis.
pub fn spread_too_wide(least: u64, most: u64) -> bool {
    most / least.max(1) >= 25
}

/// The range of an axis: from 0, or from a round value below the minimum, to a little above the maximum.
pub fn time_scale((least, most): (u64, u64), pixels: (f64, f64), logarithmic: bool) -> Scale {
    let (least, most) = (least as f64, most as f64);
    if logarithmic {
        Scale::logarithmic(((least * 0.8).max(1.0), most * 1.25), pixels)
    } else {
        Scale::linear((0.0, most * 1.03), pixels)
    }
}

/// Vertical grid lines with times below them.
pub fn time_axis(svg: &mut Svg, scale: &Scale, ticks: usize, within: (f64, f64)) {
    let ticks =
        scale.ticks(ticks).into_iter().map(|tick| (scale.at(tick), units::round_span(tick.round() as u64)));
    columns(svg, ticks.collect(), within);
}

/// Vertical grid lines with labels below them.
pub fn columns(svg: &mut Svg, ticks: Vec<(f64, String)>, (top, bottom): (f64, f64)) {
    svg.uprights("grid", ticks.iter().map(|&(x, _)| x), (top, bottom));
    svg.text_row("tick middle", bottom + 16.0, ticks);
}

/// Horizontal grid lines with labels on their left.
pub fn levels(svg: &mut Svg, ticks: Vec<(f64, String)>, (left, right): (f64, f64)) {
    svg.levels("grid", ticks.iter().map(|&(y, _)| y), (left, right));
    svg.text_column("tick end", left - 6.0, ticks.into_iter().map(|(y, label)| (y + 4.0, label)));
}

/// The instrument's floor as a grey line, or as text where it is left of the axis.
pub fn floor_line(svg: &mut Svg, scale: &Scale, floor: Option<u64>, (top, bottom): (f64, f64)) {
    let Some(floor) = floor else { return };
    let x = scale.at(floor as f64);
    if !scale.covers(floor as f64) {
        return svg.text("tick", (x, top - 5.0), &format!("← floor {}", units::span(floor)));
    }
    svg.line("floor", (x, top), (x, bottom));
    svg.text("tick middle", (x.max(16.0), top - 5.0), "floor");
}

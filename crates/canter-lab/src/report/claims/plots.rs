//! A claim's plot: what was measured as dots with their intervals, and shaded what the criterion allows. One family for
//! every criterion, so that a look tells whether the one lies within the other.

use canter_cli::{terminal::clip, units};
use canter_measure::drawing::axis::Scale;
use canter_measure::drawing::svg::{Path, Svg};
use canter_measure::drawing::{marks, plot};
use canter_measure::verdicts::{Allowed, Labelled, Plot, PlotLine, Quantity, Verdict};

const WIDTH: f64 = 340.0;
const LEFT: f64 = 10.0;
const RIGHT: f64 = 330.0;
/// The factor above which a range has a logarithmic axis.
const WIDE: f64 = 25.0;
/// A gap to the values on either side, as a share of the range.
const MARGIN: f64 = 0.12;

/// The drawing of a verdict; empty when it rests on no numbers.
pub fn of(verdict: &Verdict) -> String {
    match &verdict.plot {
        None => String::new(),
        Some(Plot::Number { quantity }) => number(verdict, *quantity).unwrap_or_default(),
        Some(Plot::Order { quantity, apart, series }) => order(verdict, *quantity, *apart, series),
        Some(Plot::Course { quantity, statistic, against, lines, allowed }) => {
            course(verdict, &Axes { quantity: *quantity, statistic, against, lines, allowed })
        }
    }
}

/// An axis from these values on, in the quantity's unit.
struct Axis {
    scale: Scale,
    quantity: Quantity,
    low: f64,
    high: f64,
    logarithmic: bool,
}

impl Axis {
    /// An axis around all of `values`. The axis of a share begins at 0.
    fn around(values: impl Iterator<Item = f64>, quantity: Quantity, pixels: (f64, f64)) -> Self {
        let values = values.filter(|value| value.is_finite()).map(|value| quantity.shown(value));
        let (low, high) = values.fold((f64::MAX, f64::MIN), |(low, high), one| (low.min(one), high.max(one)));
        let (low, high) = if low <= high { (low, high) } else { (0.0, 1.0) };
        if low > 0.0 && quantity != Quantity::Share && high / low >= WIDE {
            let margin = (high / low).powf(MARGIN);
            let (low, high) = (low / margin, high * margin);
            return Self {
                scale: Scale::logarithmic((low, high), pixels),
                quantity,
                low,
                high,
                logarithmic: true,
            };
        }
        // A share axis of nothing but zeros ends at 1 %.
        let high = if quantity == Quantity::Share { high.max(1.0) } else { high };
        let margin = ((high - low) * MARGIN).max(high.abs() * 0.002).max(1e-6);
        let low = if low - margin < 0.0 || quantity == Quantity::Share { 0.0 } else { low - margin };
        let high = high + margin;
        Self { scale: Scale::linear((low, high), pixels), quantity, low, high, logarithmic: false }
    }

    fn at(&self, value: f64) -> f64 {
        self.scale.at(self.quantity.shown(value))
    }

    /// Round values with their labels.
    fn ticks(&self, most: usize) -> Vec<(f64, String)> {
        let (low, high) = (self.low, self.high);
        let unit = self.quantity.unit();
        if self.logarithmic {
            let decades = (high / low).log10().ceil() as usize;
            let every = decades.div_ceil(most).max(1);
            let powers = (low.log10().floor() as i32..=high.log10().ceil() as i32).step_by(every);
            let round = powers.map(|power| 10_f64.powi(power)).filter(|&tick| self.scale.covers(tick));
            return round
                .map(|tick| (self.scale.at(tick), format!("{}{unit}", units::digits(tick))))
                .collect();
        }
        let rough = (high - low) / most as f64;
        let power = 10_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|n| n * power).find(|&step| step >= rough);
        let step = step.unwrap_or(10.0 * power);
        let decimals = usize::try_from(-step.log10().floor() as i32).unwrap_or(0).min(6);
        let first = (low / step).ceil();
        let round = (0..=most).map(|n| (first + n as f64) * step).filter(|&tick| tick <= high);
        round.map(|tick| (self.scale.at(tick), format!("{tick:.decimals$}{unit}"))).collect()
    }

    /// Grid lines, with labels below.
    fn draw_below(&self, svg: &mut Svg, (top, bottom): (f64, f64)) {
        let ticks = self.ticks(5);
        svg.uprights("grid", ticks.iter().map(|(x, _)| *x), (top, bottom));
        svg.line("axis", (LEFT, bottom), (RIGHT, bottom));
        let labels = ticks.into_iter().map(|(x, label)| (x.clamp(20.0, WIDTH - 20.0), label));
        svg.text_row("tick middle", bottom + 14.0, labels);
    }
}

fn svg(verdict: &Verdict, height: f64) -> Svg {
    Svg::new(WIDTH, height, &verdict.claim)
}

/// A value with its interval along a horizontal axis.
fn interval(svg: &mut Svg, axis: &Axis, [value, low, high]: [f64; 3], y: f64, tip: &str) {
    let (from, to) = (axis.at(low), axis.at(high));
    if to - from > 1.0 {
        svg.line("interval", (from, y), (to, y));
    }
    svg.shape("dot", marks::shape(0), (axis.at(value), y), tip);
}

/// The verdict's own number, its bounds, and the paper's number.
fn number(verdict: &Verdict, quantity: Quantity) -> Option<String> {
    let (value, from) = (verdict.value?, verdict.from?);
    // None lost is a fact of these frames: the interval for all possible ones has no part in the verdict.
    let counted = quantity == Quantity::Share && verdict.paper == Some(0.0);
    let ends = [verdict.low, verdict.high].map(|end| end.filter(|_| !counted).unwrap_or(value));
    let ends = [value, ends[0], ends[1]];
    let lower = Some(from).filter(|&from| from > 0.0);
    let shown = ends.into_iter().chain(lower).chain(verdict.to).chain(verdict.paper);
    let axis = Axis::around(shown, quantity, (LEFT, RIGHT));
    let (top, bottom, y) = (6.0, 40.0, 23.0);
    let mut svg = svg(verdict, bottom + 18.0);
    let left = lower.map_or(LEFT, |from| axis.at(from));
    let right = verdict.to.map_or(RIGHT, |to| axis.at(to));
    svg.rect("allowed", (left, top), ((right - left).max(3.0), bottom - top));
    axis.draw_below(&mut svg, (top, bottom));
    if let Some(paper) = verdict.paper {
        svg.shape(
            "diamond",
            marks::shape(3),
            (axis.at(paper), y),
            &format!("the paper: {}", quantity.in_words(paper)),
        );
    }
    interval(&mut svg, &axis, ends, y, &quantity.in_words(value));
    Some(svg.finish())
}

/// A row for each series, shaded from where the one before allows it.
fn order(verdict: &Verdict, quantity: Quantity, apart: f64, series: &[Labelled]) -> String {
    const ROW: f64 = 32.0;
    let all = series.iter().flat_map(|one| one.interval);
    let axis = Axis::around(all.chain([0.0]).filter(|&value| value > 0.0), quantity, (LEFT, RIGHT));
    let bottom = 4.0 + ROW * series.len() as f64;
    let mut svg = svg(verdict, bottom + 18.0);
    axis.draw_below(&mut svg, (4.0, bottom));
    for (n, one) in series.iter().enumerate() {
        let top = 4.0 + ROW * n as f64;
        if let Some(before) = n.checked_sub(1).map(|before| series[before].interval[0]) {
            let from = axis.at(before * apart);
            svg.rect("allowed", (from, top + 17.0), (RIGHT - from, 14.0));
        }
        let value = quantity.in_words(one.interval[0]);
        svg.text("name", (LEFT, top + 12.0), &clip(&one.label, 34));
        svg.text("value end", (RIGHT, top + 12.0), &value);
        interval(&mut svg, &axis, one.interval, top + 24.0, &format!("{}: {value}", one.label));
    }
    svg.finish()
}

struct Axes<'a> {
    quantity: Quantity,
    statistic: &'a str,
    against: &'a str,
    lines: &'a [PlotLine],
    allowed: &'a [Allowed],
}

/// The space for the vertical axis's labels.
const LABELS: f64 = 62.0;

/// Lines over the number that was varied.
fn course(verdict: &Verdict, axes: &Axes<'_>) -> String {
    let &Axes { quantity, statistic, against, lines, allowed } = axes;
    let key = if lines.len() > 1 { 16.0 * lines.len() as f64 } else { 0.0 };
    let (top, bottom) = (22.0 + key, 132.0 + key);
    let points = || lines.iter().flat_map(|line| &line.points);
    // A region without an upper end is seen to go on.
    let bounds = allowed.iter().flat_map(|one| [one.from, one.to.unwrap_or(one.from * 1.1)]);
    let y =
        Axis::around(points().flat_map(|point| point[1..].to_vec()).chain(bounds), quantity, (bottom, top));
    let x = horizontal(points().map(|point| point[0]).chain(allowed.iter().map(|one| one.at)));
    let mut svg = svg(verdict, bottom + 34.0);
    plot::levels(&mut svg, y.ticks(4), (LABELS, RIGHT));
    svg.line("axis", (LABELS, bottom), (RIGHT, bottom));
    let ticks = x.ticks(5).into_iter().map(|tick| (x.at(tick), units::grouped(tick as u64)));
    svg.text_row("tick middle", bottom + 14.0, ticks);
    svg.text("head end", (RIGHT, bottom + 28.0), &clip(against, 40));
    svg.text("head", (LEFT, key + 12.0), &clip(statistic, 48));
    shade(&mut svg, allowed, (&x, &y), (top, bottom));
    for (n, line) in lines.iter().enumerate() {
        draw_line(&mut svg, n, line, (&x, &y), lines.len() > 1);
        if lines.len() > 1 {
            let at = (LEFT + 4.0, 10.0 + 16.0 * n as f64);
            marks::draw(&mut svg, n, at, &line.label);
            svg.text("name", (at.0 + 10.0, at.1 + 4.0), &clip(&line.label, 40));
        }
    }
    svg.finish()
}

fn horizontal(all: impl Iterator<Item = f64>) -> Scale {
    let all = all.filter(|one| one.is_finite());
    let (low, high) = all.fold((f64::MAX, 0.0_f64), |(low, high), one| (low.min(one), high.max(one)));
    let pixels = (LABELS + 10.0, RIGHT - 10.0);
    match low > 0.0 && high / low >= WIDE {
        true => Scale::logarithmic((low, high), pixels),
        false => Scale::linear((low.min(high), high), pixels),
    }
}

/// The region that the criterion allows: between two values of the varied number, or at a single one.
fn shade(svg: &mut Svg, allowed: &[Allowed], (x, y): (&Scale, &Axis), (top, bottom): (f64, f64)) {
    let ends = |one: &Allowed| {
        let lower = if one.from > 0.0 { y.at(one.from) } else { bottom };
        (lower, one.to.map_or(top, |to| y.at(to)))
    };
    if let [one] = allowed {
        let (lower, upper) = ends(one);
        return svg.rect("allowed", (x.at(one.at) - 8.0, upper), (16.0, lower - upper));
    }
    let upper = allowed.iter().map(|one| (x.at(one.at), ends(one).1));
    let lower = allowed.iter().rev().map(|one| (x.at(one.at), ends(one).0));
    svg.plain_path("allowed", &Path::through(upper.chain(lower)));
}

/// The class of a line: a single line has the verdict's colour; several have their own.
fn draw_line(svg: &mut Svg, n: usize, line: &PlotLine, (x, y): (&Scale, &Axis), several: bool) {
    let class = if several { marks::class(n) } else { String::new() };
    svg.group(&class, |svg| {
        let mut intervals = Path::default();
        for &[at, _, low, high] in &line.points {
            if y.at(low) - y.at(high) > 1.0 {
                intervals.move_to(x.at(at), y.at(low));
                intervals.down_to(y.at(high));
            }
        }
        let path = Path::through(line.points.iter().map(|&[at, value, ..]| (x.at(at), y.at(value))));
        svg.path("line", &path, &line.label);
        svg.plain_path("interval", &intervals);
        for &[at, value, ..] in &line.points {
            let tip = format!("{}: {}", units::digits(at), y.quantity.in_words(value));
            let shape = if several { marks::shape(n) } else { marks::shape(0) };
            svg.shape("dot", shape, (x.at(at), y.at(value)), &tip);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use canter_measure::verdicts::Word;
    use proptest::prelude::*;

    /// A number as a file may have it: any finite one.
    fn value() -> impl Strategy<Value = f64> {
        prop_oneof![-2.0..9.0_f64, 0.0..90_000.0_f64, prop::num::f64::NORMAL | prop::num::f64::ZERO]
    }

    fn quantity() -> impl Strategy<Value = Quantity> {
        prop::sample::select(vec![Quantity::Ratio, Quantity::Share, Quantity::Time])
    }

    fn plot() -> impl Strategy<Value = Plot> {
        let label = || prop::sample::select(vec!["can-gw", "<script>", ""]).prop_map(str::to_owned);
        let labelled = (label(), prop::array::uniform3(value()));
        let labelled = labelled.prop_map(|(label, interval)| Labelled { label, interval });
        let points = prop::collection::vec(prop::array::uniform4(value()), 0..5);
        let line = (label(), points).prop_map(|(label, points)| PlotLine { label, points });
        let allowed = (value(), value(), prop::option::of(value()));
        let allowed = allowed.prop_map(|(at, from, to)| Allowed { at, from, to });
        let lines = prop::collection::vec(line, 0..3);
        prop_oneof![
            quantity().prop_map(|quantity| Plot::Number { quantity }),
            (quantity(), value(), prop::collection::vec(labelled, 0..4))
                .prop_map(|(quantity, apart, series)| Plot::Order { quantity, apart, series }),
            (quantity(), label(), lines, prop::collection::vec(allowed, 0..4)).prop_map(
                |(quantity, against, lines, allowed)| Plot::Course {
                    quantity,
                    statistic: against.clone(),
                    against,
                    lines,
                    allowed
                }
            ),
        ]
    }

    proptest! {
        #[test]
        fn any_verdict_of_a_file_is_drawn(plot in plot(), numbers in prop::array::uniform6(prop::option::of(value()))) {
            let [value, low, high, from, to, paper] = numbers;
            let text = String::new;
            let (study, claim, at, says) = (text(), text(), text(), text());
            let (verdict, found) = (Word::NoLonger, "<script>".to_owned());
            let verdict = Verdict {
                study, claim, at, says, verdict, found, value, low, high, from, to, paper, plot: Some(plot),
                cause: text(), second: None, boots: 1, frames: 100, headline: false, kernels: Vec::new(), instruments: Vec::new(), days: Vec::new(),
            };
            let drawn = of(&verdict);
            let whole = drawn.is_empty() || drawn.starts_with("<svg") && drawn.ends_with("</svg>\n");
            prop_assert!(whole && !drawn.contains("<script>"), "{}", drawn);
            prop_assert!(!drawn.contains("NaN") && !drawn.contains("inf"), "{}", drawn);
            prop_assert!(drawn.len() < 20_000, "{} bytes", drawn.len());
        }
    }
}

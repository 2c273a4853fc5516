//! Latency and loss against the varied number: the period between frames (2014, figure 4.4), the number of filters
//! (2011, figure 9) or of hops (2011, figure 15). Median with a band from the minimum to p90; losses below, aligned.

use crate::report::drawing::{Drawing, View, Views};
use crate::report::numbers::Numbers;
use crate::report::varied::{MethodLine, Point, Sweep};
use crate::report::views::{Legend, Lines};
use canter_cli::units;
use canter_measure::drawing::axis::{Scale, make_room};
use canter_measure::drawing::plot::{self, WIDTH};
use canter_measure::drawing::svg::{Path, Svg};

pub const DRAWING: Drawing = Drawing::new("sweep", include_str!("sweep.html"), Views::EachResult(views));

fn views(numbers: &Numbers<'_>) -> Vec<View> {
    numbers.sweeps.iter().map(|sweep| View::of(&view(sweep))).collect()
}

fn view(sweep: &Sweep) -> Lines {
    let condition =
        if sweep.condition.is_empty() { String::new() } else { format!(" ({})", sweep.condition) };
    let line = |(n, (label, class)): (usize, (String, String))| Legend {
        number: n + 1,
        label,
        class,
        about: String::new(),
    };
    Lines {
        title: format!("Latency against {}{condition}", sweep.axis),
        drawing: sweep.draw(),
        legend: sweep.legend().into_iter().enumerate().map(line).collect(),
    }
}

/// The maximum number of values that get a label each.
const VALUES_LABELLED: usize = 14;
const LABEL: f64 = 46.0;
/// The largest gap, as a share of the range, of an axis that is to scale.
const UNEVEN: f64 = 0.5;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 34.0;
const TOP: f64 = 24.0;
const LATENCY: f64 = 260.0;
const LOSS: f64 = 90.0;
const GAP: f64 = 34.0;
const BOTTOM: f64 = 44.0;

/// The axis of the varied number.
struct Axis {
    scale: Scale,
    /// The measured values, ascending.
    values: Vec<u64>,
    /// Whether a gap takes most of the range (120…160 µs, and 500 µs), so that the values stand side by side, as in the paper.
    even: bool,
}

impl Axis {
    fn at(&self, value: f64) -> f64 {
        match self.values.binary_search(&(value as u64)) {
            Ok(place) if self.even => self.scale.at(place as f64),
            _ => self.scale.at(value),
        }
    }
}

impl Sweep {
    /// Names and classes of the lines, for a legend.
    fn legend(&self) -> Vec<(String, String)> {
        self.lines.iter().enumerate().map(|(n, line)| (line.label.clone(), plot::line_class(n))).collect()
    }

    fn draw(&self) -> String {
        let right = WIDTH - RIGHT;
        let lossy = self.points().any(|point| point.lost > 0.0);
        let bottom = TOP + LATENCY + if lossy { GAP + LOSS } else { 0.0 };
        let title = format!("Median latency{} against {}", if lossy { " and loss" } else { "" }, self.axis);
        let mut svg = Svg::new(WIDTH, bottom + BOTTOM, &title);
        let x = self.x((LEFT, right));
        let label = |tick| units::measured(tick as u64, 0, self.shown_unit());
        let ticks = self.ticks(&x, right).into_iter().map(|tick| (x.at(tick), label(tick)));
        plot::columns(&mut svg, ticks.collect(), (TOP, bottom));
        let note = if x.even { ", not to scale" } else { "" };
        svg.text("head end", (right, bottom + 34.0), &format!("{}{note}", self.axis));
        self.latencies(&mut svg, &x, right);
        if lossy {
            self.losses(&mut svg, &x, (TOP + LATENCY + GAP, right));
        }
        svg.finish()
    }

    fn points(&self) -> impl Iterator<Item = &Point> {
        self.lines.iter().flat_map(|line| &line.points)
    }

    /// The measured values whose labels fit, if there are few; otherwise round values.
    fn ticks(&self, x: &Axis, right: f64) -> Vec<f64> {
        if x.values.len() > VALUES_LABELLED {
            return x.scale.ticks(plot::labels_max(right - LEFT));
        }
        let mut free = f64::MIN;
        let mut ticks = Vec::new();
        for value in x.values.iter().map(|&value| value as f64) {
            if x.at(value) >= free {
                ticks.push(value);
                free = x.at(value) + LABEL;
            }
        }
        ticks
    }

    /// The unit in the labels of ticks; counts need none.
    fn shown_unit(&self) -> &str {
        if self.unit == "ns" { "ns" } else { "" }
    }

    fn x(&self, pixels: (f64, f64)) -> Axis {
        let mut values: Vec<u64> = self.points().map(|point| point.at).collect();
        values.sort_unstable();
        values.dedup();
        let (least, most) = (values.first().copied().unwrap_or(0), values.last().copied().unwrap_or(1));
        if most / least.max(1) >= 30 {
            let scale = Scale::logarithmic((least.max(1) as f64, most as f64), pixels);
            return Axis { scale, values, even: false };
        }
        let widest = values.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(1);
        let even = values.len() <= VALUES_LABELLED && widest as f64 > (most - least) as f64 * UNEVEN;
        let (least, most) = if even { (0.0, (values.len() - 1) as f64) } else { (least as f64, most as f64) };
        let margin = ((most - least) * 0.03).max(0.1);
        let scale = Scale::linear((least - margin, most + margin), pixels);
        Axis { scale, values, even }
    }

    fn latencies(&self, svg: &mut Svg, x: &Axis, right: f64) {
        let bounds = (self.points().map(|point| point.min).min(), self.points().map(|point| point.p90).max());
        let bounds = (bounds.0.unwrap_or(0), bounds.1.unwrap_or(1));
        let logarithmic = plot::spread_too_wide(bounds.0, bounds.1);
        let y = plot::time_scale(bounds, (TOP + LATENCY, TOP), logarithmic);
        svg.text("head", (0.0, 10.0), "median, min to p90");
        let times = y.ticks(6).into_iter().map(|tick| (y.at(tick), units::round_span(tick as u64)));
        plot::levels(svg, times.collect(), (LEFT, right));
        for (n, line) in self.lines.iter().enumerate() {
            let ends = line.points.iter().map(|point| (point.at, point.min));
            let back = line.points.iter().rev().map(|point| (point.at, point.p90));
            let around = ends.chain(back).map(|(at, ns)| (x.at(at as f64), y.at(ns as f64)));
            svg.plain_path(&format!("band {}", plot::line_class(n)), &Path::through(around));
        }
        for (n, line) in self.lines.iter().enumerate() {
            let points = line.points.iter().map(|point| (x.at(point.at as f64), y.at(point.p50 as f64)));
            self.line(svg, n, points.collect());
        }
        let end = |line: &MethodLine| line.points.last().map_or(0.0, |point| y.at(point.p50 as f64));
        self.badges(svg, end, (TOP, TOP + LATENCY), right);
    }

    fn losses(&self, svg: &mut Svg, x: &Axis, (top, right): (f64, f64)) {
        let most = self.points().map(|point| point.lost).fold(0.01, f64::max);
        let y = Scale::linear((0.0, most * 1.05), (top + LOSS, top));
        svg.text("head", (0.0, top - 12.0), "lost");
        let shares = [0.0, most / 2.0, most].map(|share| (y.at(share), format!("{:.1} %", share * 100.0)));
        plot::levels(svg, shares.to_vec(), (LEFT, right));
        for (n, line) in self.lines.iter().enumerate() {
            let points = line.points.iter().map(|point| (x.at(point.at as f64), y.at(point.lost)));
            self.line(svg, n, points.collect());
        }
        svg.line("axis", (LEFT, top + LOSS), (right, top + LOSS));
    }

    fn line(&self, svg: &mut Svg, n: usize, points: Vec<(f64, f64)>) {
        let path = Path::through(points.iter().copied());
        svg.group(&plot::line_class(n), |svg| {
            svg.path("line", &path, &self.lines[n].label);
            svg.dots("point", points);
        });
    }

    fn badges(&self, svg: &mut Svg, end: impl Fn(&MethodLine) -> f64, within: (f64, f64), right: f64) {
        let ends: Vec<f64> = self.lines.iter().map(end).collect();
        let places = make_room(&ends, 17.0, within);
        for (n, (end, place)) in ends.into_iter().zip(places).enumerate() {
            svg.group(&plot::line_class(n), |svg| {
                svg.line("", (right, end), (right + 16.0, place));
                svg.badge((right + 24.0, place), n + 1);
            });
        }
    }
}

//! Brings the stamps of a controller's own clock onto the system's clock, while frames arrive.
//!
//! A frame has two stamps: the controller's, exact on a clock that drifts, and the kernel's, on the system's clock and late by
//! the delay of the interrupt. Their difference, the offset, is the difference of the clocks plus a delay that is never
//! negative: the line below all offsets is the difference of the clocks. The line is an edge of their lower convex hull (Moon,
//! Skelly, Towsley: Estimation and Removal of Clock Skew from Network Delay Measurements, INFOCOM 1999), taken near the
//! youngest of the last epochs, so that it follows a drift that changes with temperature.
//!
//! How far the line may be above the true difference is estimated from how dense the offsets are close to it: where many
//! delays are short, some are close to the shortest. The shortest delay itself cannot be seen: the bound has an allowance for
//! it.

use std::collections::VecDeque;

/// An epoch is at least this long, in ns of the controller's clock, and at most `EPOCH_NS_MAX`. The first ones are shorter, so
/// that the drift is known soon.
const EPOCH_NS: f64 = 1e9;
const EPOCH_NS_FIRST: f64 = 1e8;
const EPOCH_NS_MAX: f64 = 20e9;
/// An epoch has at least this many frames, unless it is too long.
const EPOCH_FRAMES: u32 = 200;
/// How many epochs the line is drawn below.
const EPOCHS: usize = 32;
/// Until this number of epochs, the bound is wider: the lowest offsets were chosen by a drift that was hardly known.
const EPOCHS_EARLY: usize = 8;
/// How many of the lowest offsets of each epoch are kept, and how many of all say how dense they are.
const LOWEST: usize = 20;
/// An offset so far from the line, in ns, means that the controller's clock was set or started anew.
const RESTART_NS: f64 = 1e9;
/// The longest delay of an interrupt, in ns, and so of the kernel's stamp: a longer one is a fault.
pub const KERNEL_BOUND_NS: u32 = 20_000_000;
/// The bound while nothing is known, in ns.
const UNKNOWN_NS: f64 = KERNEL_BOUND_NS as f64;
/// What the bound allows for the shortest delay, in ns, which is in every stamp and may be shorter than ever seen: the way from
/// an interrupt to the kernel's stamp has a few thousand instructions. Behind SPI it is longer.
const INTERRUPT_NS: f64 = 10e3;
/// How much a crystal may differ from another, and how much its drift may change in a second.
const DRIFT_MAX: f64 = 250e-6;
const WANDER: f64 = 0.02e-6;

/// A frame's offset: when, in ns of the controller's clock since the first frame, and how much.
#[derive(Clone, Copy, Debug)]
struct Point {
    at: f64,
    offset: f64,
}

/// The line below the offsets, and how far it may be from the difference of the clocks.
#[derive(Clone, Copy, Debug)]
struct Line {
    /// Where the line was drawn.
    at: f64,
    offset: f64,
    drift: f64,
    /// How much faster the line rises than by its drift: while the drift is unknown, by the greatest one, so that no stamp is
    /// too early, and no forwarded frame before its original.
    rise: f64,
    bound: f64,
    /// How much the drift may be wrong.
    drift_bound: f64,
}

impl Line {
    fn offset(&self, at: f64) -> f64 {
        self.offset + (self.drift + self.rise) * (at - self.at)
    }

    fn bound(&self, at: f64) -> f64 {
        let (ahead, seconds) = (at - self.at, (at - self.at) / 1e9);
        INTERRUPT_NS + self.bound + self.drift_bound * ahead + 0.5 * WANDER * seconds * seconds * 1e9
    }
}

/// A stamp on the system's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aligned {
    /// The stamp in ns.
    pub stamp_ns: u64,
    /// How far the stamp may be from the time at which the controller took its own.
    pub bound_ns: u32,
}

/// The estimator of one controller's clock.
#[derive(Debug, Default)]
pub struct Aligner {
    /// The stamps of the first frame: the controller's, and the difference to the kernel's.
    origin: Option<(u64, i128)>,
    /// The lowest offsets of the epochs before this one.
    epochs: VecDeque<Vec<Point>>,
    /// The lowest offsets of this epoch, the lowest first.
    lowest: Vec<Point>,
    began: f64,
    frames: u32,
    line: Option<Line>,
    last_ns: u64,
    restarts: u64,
    aligned: u64,
    bound_ns: u32,
    worst_ns: u32,
}

impl Aligner {
    /// Takes a frame with the stamps of its controller and of the kernel, both in ns. The stamp on the system's clock is not
    /// earlier than that of the frame before, and, where that permits it, not later than the kernel's.
    pub fn align(&mut self, hardware_ns: u64, software_ns: u64) -> Aligned {
        let difference = i128::from(software_ns) - i128::from(hardware_ns);
        let (first_ns, first_difference) = *self.origin.get_or_insert((hardware_ns, difference));
        let at = (i128::from(hardware_ns) - i128::from(first_ns)) as f64;
        let point = Point { at, offset: (difference - first_difference) as f64 };
        let expected = self.line.map_or(0.0, |line| line.offset(at));
        let is_behind = self.last_ns.saturating_sub(software_ns) as f64 > UNKNOWN_NS;
        if is_behind || (point.offset - expected).abs() > RESTART_NS || at < self.began - RESTART_NS {
            self.restart();
            return self.align(hardware_ns, software_ns);
        }
        self.take(point);
        let (offset, bound) = self.estimate(at);
        let line_ns = i128::from(hardware_ns) + first_difference + offset as i128;
        let stamp_ns = line_ns.clamp(0, i128::from(software_ns)) as u64;
        // What keeps the order of the frames is added to the bound.
        let ordered_ns = stamp_ns.max(self.last_ns);
        let bound_ns = (bound + (ordered_ns - stamp_ns) as f64).ceil().min(f64::from(u32::MAX)) as u32;
        self.last_ns = ordered_ns;
        self.aligned += 1;
        (self.bound_ns, self.worst_ns) = (bound_ns, self.worst_ns.max(bound_ns));
        Aligned { stamp_ns: ordered_ns, bound_ns }
    }

    /// The system's clock was set.
    pub fn clock_was_set(&mut self, step_ns: i64) {
        if let Some((_, difference)) = &mut self.origin {
            *difference += i128::from(step_ns);
        }
        self.last_ns = 0;
    }

    /// How often the controller's clock was set or started anew.
    pub fn restarts(&self) -> u64 {
        self.restarts
    }

    /// How many frames were aligned.
    pub fn frames(&self) -> u64 {
        self.aligned
    }

    /// How much faster the system's clock is than the controller's, in parts per billion; `None`: not known yet.
    pub fn drift_ppb(&self) -> Option<i64> {
        self.line.filter(|line| line.rise == 0.0).map(|line| (line.drift * 1e9) as i64)
    }

    /// The last and the greatest bound, in ns.
    pub fn bounds_ns(&self) -> (u32, u32) {
        (self.bound_ns, self.worst_ns)
    }

    fn restart(&mut self) {
        let Self { restarts, aligned, worst_ns, .. } = *self;
        *self = Self { restarts: restarts + 1, aligned, worst_ns, ..Self::default() };
    }

    fn take(&mut self, point: Point) {
        let length = point.at - self.began;
        let least = (EPOCH_NS_FIRST * (self.epochs.len() + 1) as f64).min(EPOCH_NS);
        let ended = length > EPOCH_NS_MAX || length > least && self.frames >= EPOCH_FRAMES;
        if ended {
            self.epochs.push_back(std::mem::take(&mut self.lowest));
            if self.epochs.len() > EPOCHS {
                self.epochs.pop_front();
            }
            (self.began, self.frames) = (point.at, 0);
            self.draw(point.at);
        }
        self.frames += 1;
        let drift = self.line.map_or(0.0, |line| line.drift);
        let height = |one: &Point| one.offset - drift * one.at;
        let place = self.lowest.partition_point(|one| height(one) <= height(&point));
        if place < LOWEST {
            self.lowest.truncate(LOWEST - 1);
            self.lowest.insert(place, point);
        }
        if let Some(line) = &mut self.line
            && point.offset < line.offset(point.at)
        {
            // The line was too high: the clocks differ by no more than this.
            line.offset -= line.offset(point.at) - point.offset;
        }
    }

    /// The difference of the clocks at a time, and how far that may be wrong.
    fn estimate(&self, at: f64) -> (f64, f64) {
        if let Some(line) = &self.line {
            return (line.offset(at), line.bound(at));
        }
        let lowest = self.lowest.first().map_or(0.0, |lowest| lowest.offset);
        let dense = self.lowest.get(LOWEST - 1).map(|highest| 3.0 * (highest.offset - lowest));
        (
            highest_offset(&self.lowest, at),
            dense.map_or(UNKNOWN_NS, |dense| INTERRUPT_NS + dense + 2.0 * DRIFT_MAX * at).min(UNKNOWN_NS),
        )
    }

    /// Draws the line below the lowest offsets of all epochs.
    fn draw(&mut self, now: f64) {
        let mut lowest: Vec<Point> = self.epochs.iter().flatten().copied().collect();
        lowest.sort_by(|a, b| a.at.total_cmp(&b.at));
        let hull = lower_hull(&lowest);
        let edge =
            edge_at(&hull, now).filter(|[a, b]| b.at - a.at >= EPOCH_NS_FIRST && self.epochs.len() > 2);
        let Some([a, b]) = edge else {
            return self.draw_level(now);
        };
        let drift = (b.offset - a.offset) / (b.at - a.at);
        let offset = b.offset + drift * (now - b.at);
        let height = |one: &Point| one.offset - (offset + drift * (one.at - now));
        let mut heights: Vec<f64> = lowest.iter().map(height).collect();
        heights.sort_by(f64::total_cmp);
        let dense = heights.get(LOWEST + 1).copied().unwrap_or(UNKNOWN_NS).max(1.0);
        let span = b.at - a.at;
        let factor = if self.epochs.len() < EPOCHS_EARLY { 8.0 } else { 2.0 };
        let drift_bound = factor * dense / span;
        let middle = f64::midpoint(a.at, b.at);
        let curved = (now - middle) / 1e9;
        // The line before was lowered by each frame below it: where the new one is higher, the difference is in doubt.
        let higher = self.line.map_or(0.0, |before| offset - before.offset(now)).max(0.0);
        let bound = factor * dense
            + drift_bound * (now - b.at)
            + 0.5 * WANDER * curved * curved * 1e9
            + 100.0
            + higher;
        self.line =
            Some(Line { at: now, offset, drift, rise: 0.0, bound: bound.min(UNKNOWN_NS), drift_bound });
    }

    /// After the first epoch, the drift is not known.
    fn draw_level(&mut self, now: f64) {
        let Some(lowest) = self.epochs.iter().flatten().min_by(|a, b| a.offset.total_cmp(&b.offset)) else {
            return;
        };
        let mut offsets: Vec<f64> = self.epochs.iter().flatten().map(|point| point.offset).collect();
        offsets.sort_by(f64::total_cmp);
        let dense = offsets.get(LOWEST - 1).map_or(UNKNOWN_NS, |highest| 3.0 * (highest - lowest.offset));
        let bound = (dense + 2.0 * DRIFT_MAX * (now - lowest.at).max(now)).min(UNKNOWN_NS);
        let offset = highest_offset(self.epochs.iter().flatten(), now);
        let (rise, drift_bound) = (DRIFT_MAX, 2.0 * DRIFT_MAX);
        self.line = Some(Line { at: now, offset, drift: 0.0, rise, bound, drift_bound });
    }
}

/// The greatest difference of the clocks that these offsets permit at a time after them, whatever the drift is.
fn highest_offset<'p>(points: impl IntoIterator<Item = &'p Point>, at: f64) -> f64 {
    let highest = points.into_iter().map(|one| one.offset + DRIFT_MAX * (at - one.at));
    highest.min_by(f64::total_cmp).unwrap_or(0.0)
}

/// The lower convex hull of points, which are in the order of time.
fn lower_hull(points: &[Point]) -> Vec<Point> {
    let mut hull: Vec<Point> = Vec::new();
    for &point in points {
        while let [.., a, b] = hull[..]
            && (b.offset - a.offset) * (point.at - a.at) >= (point.offset - a.offset) * (b.at - a.at)
        {
            hull.pop();
        }
        hull.push(point);
    }
    hull
}

/// The edge of the hull from which the difference is predicted: the last one that begins in the first two thirds of the time.
fn edge_at(hull: &[Point], now: f64) -> Option<[Point; 2]> {
    let first = hull.first()?;
    let limit = first.at + (now - first.at) * 2.0 / 3.0;
    hull.windows(2).rev().find_map(|pair| match *pair {
        [a, b] if a.at <= limit && b.at > a.at => Some([a, b]),
        _ => None,
    })
}

#[cfg(test)]
#[path = "aligner/tests.rs"]
mod tests;

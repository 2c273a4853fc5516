//! The time chart: latency against time, with the losses and the load of the machine below, on one axis. It shows for
//! example a timer that delays a frame every second (2011, figure 6).

use crate::report::ranking::Ranked;
use canter_cli::units;
use canter_measure::drawing::axis::Scale;
use canter_measure::drawing::plot::{self, WIDTH};
use canter_measure::drawing::svg::{Path, STROKE, Svg};
use canter_measure::result::{Latency, Slot, Timeline};

const LEFT: f64 = 62.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 22.0;
const LATENCY: f64 = 130.0;
/// The height of the lanes for losses and load.
const LANE: f64 = 34.0;
const GAP: f64 = 10.0;
const BOTTOM: f64 = 26.0;

pub fn draw(row: &Ranked<'_, Latency>, timeline: &Timeline) -> String {
    let right = WIDTH - RIGHT;
    let (lost, busy) = (timeline.slots.iter().any(|slot| slot.lost > 0), !timeline.load.is_empty());
    let lanes = [lost, busy].into_iter().filter(|&lane| lane).count() as f64;
    let bottom = TOP + LATENCY + lanes * (LANE + GAP);
    let last = timeline.slots.last().map_or(1, |slot| slot.number.saturating_add(1));
    let end_ns = last.saturating_mul(timeline.slot_ns.max(1));
    let x = Scale::linear((0.0, end_ns as f64), (LEFT, right));
    let mut svg = Svg::new(WIDTH, bottom + BOTTOM, &format!("Latency of {} against time", row.label()));
    let worst = timeline.slots.iter().max_by_key(|slot| slot.max_ns);
    let at = worst.map_or(0, |slot| slot.number.saturating_mul(timeline.slot_ns));
    svg.describe(&format!("worst {} at {}", units::span(row.measured.max), units::span(at)));
    plot::time_axis(&mut svg, &x, plot::labels_max(right - LEFT), (TOP, bottom));
    let columns = columns(timeline, last, right - LEFT);
    latencies(&mut svg, row, &columns, right);
    let mut lane = TOP + LATENCY + GAP;
    if lost {
        losses(&mut svg, &columns, (lane, right));
        lane += LANE + GAP;
    }
    if busy {
        load(&mut svg, timeline, &x, (lane, right));
    }
    svg.finish()
}

/// Merges slots into columns as wide as a stroke, each with its place.
fn columns(timeline: &Timeline, last: u64, width: f64) -> Vec<(f64, Slot)> {
    let count = ((width / STROKE) as u64).clamp(1, last.max(1));
    let mut columns: Vec<(f64, Slot)> = Vec::new();
    for &slot in &timeline.slots {
        let place = u128::from(slot.number.min(last)) * u128::from(count) / u128::from(last.max(1));
        let x = LEFT + (place as f64 + 0.5) * width / count as f64;
        match columns.last_mut() {
            Some((at, column)) if *at == x => *column = column.merge(slot),
            _ => columns.push((x, slot)),
        }
    }
    columns
}

fn latencies(svg: &mut Svg, row: &Ranked<'_, Latency>, columns: &[(f64, Slot)], right: f64) {
    let bounds = (row.measured.min, row.measured.max);
    let logarithmic = plot::spread_too_wide(bounds.0, bounds.1);
    let y = plot::time_scale(bounds, (TOP + LATENCY, TOP), logarithmic);
    let times = y.ticks(5).into_iter().map(|tick| (y.at(tick), units::round_span(tick as u64)));
    plot::levels(svg, times.collect(), (LEFT, right));
    svg.text("head", (0.0, 10.0), "latency");
    let measured = columns.iter().filter(|(_, column)| column.arrived > 0);
    let path = Path::uprights(measured.map(|&(x, column)| {
        let (low, high) = (y.at(column.min_ns as f64), y.at(column.max_ns as f64));
        (x, low.max(high + STROKE).min(TOP + LATENCY), high) // so that a single frame is visible
    }));
    svg.plain_path(&format!("spans {}", row.class()), &path);
    svg.text("value end", (right, 12.0), &format!("worst {}", units::span(row.measured.max)));
    svg.line("axis", (LEFT, TOP + LATENCY), (right, TOP + LATENCY));
}

fn losses(svg: &mut Svg, columns: &[(f64, Slot)], (top, right): (f64, f64)) {
    let most = columns.iter().map(|(_, column)| column.lost).max().unwrap_or(1);
    let y = Scale::linear((0.0, most as f64), (top + LANE, top));
    let losing = columns.iter().filter(|(_, column)| column.lost > 0);
    let path = Path::uprights(losing.map(|&(x, column)| (x, top + LANE, y.at(column.lost as f64))));
    lane(svg, "lost", &units::grouped(most), (top, right));
    svg.plain_path("spans lost-spans", &path);
}

fn load(svg: &mut Svg, timeline: &Timeline, x: &Scale, (top, right): (f64, f64)) {
    let y = Scale::linear((0.0, 1000.0), (top + LANE, top));
    let mut path = Path::default();
    let mut from = LEFT;
    path.move_to(LEFT, top + LANE);
    for &[ns, per_mille] in &timeline.load {
        path.down_to(y.at(per_mille as f64));
        from = x.at(ns as f64).max(from);
        path.across_to(from);
    }
    path.down_to(top + LANE);
    lane(svg, "load", "100 %", (top, right));
    svg.plain_path("load-area", &path);
}

fn lane(svg: &mut Svg, name: &str, most: &str, (top, right): (f64, f64)) {
    svg.line("grid", (LEFT, top), (right, top));
    svg.line("axis", (LEFT, top + LANE), (right, top + LANE));
    svg.text("head", (0.0, top + LANE), name);
    svg.text("tick end", (LEFT - 6.0, top + 8.0), most);
}

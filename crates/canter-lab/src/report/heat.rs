//! The matrix: every method under every condition as a table of colours, whose cells link to the profile.

use crate::report::drawing::{Drawing, View, Views};
use crate::report::numbers::Numbers;
use crate::report::ranking;
use canter_cli::terminal::clip;
use canter_cli::units;
use canter_measure::result::{Condition, Latency, ResultFile, Series};
use serde::Serialize;

pub const DRAWING: Drawing = Drawing::new("heat", include_str!("heat.html"), Views::WholePage(views));

/// The view of all maps, which the page explains once.
fn views(all: &[Numbers<'_>]) -> Vec<View> {
    let maps = maps(all);
    if maps.is_empty() { Vec::new() } else { vec![View::of(&maps)] }
}

/// The number of colours from the shortest median to the longest.
const LEVELS: f64 = 8.0;
/// The maximum number of columns of a map whose cells have room for their medians.
const COLUMNS_WITH_MEDIANS: usize = 12;

#[derive(Serialize)]
struct Map {
    study: String,
    quantity: String,
    /// The condition that the columns share, and the meaning of each level of headings: `kernel, load, traffic`.
    about: String,
    /// The levels of headings, outermost first; a heading spans columns.
    heads: Vec<Vec<Head>>,
    rows: Vec<MapRow>,
    compact: bool,
}

#[derive(Clone, Serialize)]
struct Head {
    text: String,
    span: usize,
}

#[derive(Serialize)]
struct MapRow {
    label: String,
    cells: Vec<Cell>,
}

#[derive(Clone, Default, Serialize)]
struct Cell {
    id: usize,
    /// The state of the cell: `full`, `invalid`, `missing` or empty.
    state: &'static str,
    /// The level of the median's colour.
    level: u32,
    text: String,
    /// The tooltip.
    tip: String,
    lossy: bool,
}

/// A series of the page.
struct Entry<'a> {
    id: usize,
    series: &'a Series,
    key: [String; DIMENSIONS],
}

/// The fields in which conditions differ, outermost first.
const DIMENSIONS: usize = 6;
const NAMES: [&str; DIMENSIONS] = ["kernel", "background load", "traffic", "varied", "variant", "payload"];

/// A map for each study and quantity that was measured under several conditions.
fn maps(all: &[Numbers<'_>]) -> Vec<Map> {
    let mut kinds: Vec<(&str, &str)> = Vec::new();
    for Numbers { result, .. } in all {
        let measured = result.series.iter().filter(|series| series.latency_ns.is_some());
        for kind in measured.map(|series| (result.study.as_str(), series.quantity.as_str())) {
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
    }
    kinds.into_iter().filter_map(|kind| map(all, kind)).collect()
}

fn map(all: &[Numbers<'_>], (study, quantity): (&str, &str)) -> Option<Map> {
    let entries = entries(all, study, quantity);
    let entries = entries_of_measured_conditions(entries);
    let values: Vec<Vec<&str>> = (0..DIMENSIONS).map(|n| distinct(&entries, n)).collect();
    let dimensions: Vec<usize> = (0..DIMENSIONS).filter(|&n| values[n].len() > 1).collect();
    let place = |entry: &Entry<'_>| -> Vec<usize> {
        let value_place = |&n: &usize| values[n].iter().position(|value| *value == entry.key[n]).unwrap_or(0);
        dimensions.iter().map(value_place).collect()
    };
    let mut columns: Vec<Vec<usize>> = entries.iter().map(place).collect();
    columns.sort();
    columns.dedup();
    let labels = distinct_labels(&entries);
    if columns.len() < 2 || labels.len() < 2 {
        return None;
    }
    let scale = Scale::of(&entries);
    let mut rows: Vec<MapRow> = labels
        .into_iter()
        .map(|label| MapRow { label, cells: vec![Cell::default(); columns.len()] })
        .collect();
    for entry in &entries {
        let column = columns.binary_search(&place(entry)).ok()?;
        let row = rows.iter_mut().find(|row| row.label == ranking::label(entry.series))?;
        if row.cells[column].state.is_empty() {
            row.cells[column] = cell(entry, &scale);
        }
    }
    let names: Vec<&str> = dimensions.iter().map(|&n| NAMES[n]).collect();
    Some(Map {
        study: study.to_owned(),
        quantity: if quantity.is_empty() { "latency".into() } else { quantity.into() },
        about: names.join(", "),
        heads: heads(&entries, &dimensions, &columns),
        compact: columns.len() > COLUMNS_WITH_MEDIANS,
        rows,
    })
}

/// The measured series, and series without measurements under conditions where others were measured.
fn entries<'a>(all: &[Numbers<'a>], study: &str, quantity: &str) -> Vec<Entry<'a>> {
    let mut entries = Vec::new();
    for Numbers { result, base, .. } in all {
        let has_latencies = result.series.iter().any(|series| series.latency_ns.is_some());
        for (n, series) in result.series.iter().enumerate() {
            let missing = !series.unavailable.is_empty() && has_latencies;
            if result.study == study
                && series.quantity == quantity
                && (series.latency_ns.is_some() || missing)
            {
                entries.push(Entry { id: base + n, series, key: key(result, &series.condition) });
            }
        }
    }
    entries
}

/// Removes series without measurements whose condition has no measured series: they have no column.
fn entries_of_measured_conditions(entries: Vec<Entry<'_>>) -> Vec<Entry<'_>> {
    let measured = |entry: &&Entry<'_>| entry.series.unavailable.is_empty();
    let keys: Vec<[String; DIMENSIONS]> =
        entries.iter().filter(measured).map(|entry| entry.key.clone()).collect();
    entries.into_iter().filter(|entry| keys.contains(&entry.key)).collect()
}

fn key(result: &ResultFile, condition: &Condition) -> [String; DIMENSIONS] {
    let traffic = match condition.traffic.as_str() {
        "one-at-a-time" => "one".to_owned(),
        "period" => units::round_span(condition.period_ns),
        "load" => format!("{} %", condition.load_percent),
        other => other.to_owned(),
    };
    [
        result.environment.flavour(),
        ranking::idle(&condition.load).to_owned(),
        traffic,
        condition.varied.as_ref().map(ranking::varied).unwrap_or_default(),
        condition.variant.clone(),
        if condition.len > 0 { units::counted(condition.len.into(), "byte") } else { String::new() },
    ]
}

/// The values of a dimension, in the order in which they occur.
fn distinct<'e>(entries: &'e [Entry<'_>], dimension: usize) -> Vec<&'e str> {
    let mut values: Vec<&str> = Vec::new();
    for entry in entries {
        let value = entry.key[dimension].as_str();
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values
}

fn distinct_labels(entries: &[Entry<'_>]) -> Vec<String> {
    let mut labels: Vec<String> = Vec::new();
    for entry in entries {
        let label = ranking::label(entry.series);
        if !labels.contains(&label) {
            labels.push(label);
        }
    }
    labels
}

fn heads(entries: &[Entry<'_>], dimensions: &[usize], columns: &[Vec<usize>]) -> Vec<Vec<Head>> {
    (0..dimensions.len()).map(|depth| level(entries, dimensions[depth], columns, depth)).collect()
}

/// One row of headings: neighbouring columns that are the same down to this depth share one.
fn level(entries: &[Entry<'_>], dimension: usize, columns: &[Vec<usize>], depth: usize) -> Vec<Head> {
    let values = distinct(entries, dimension);
    let head = |group: &[Vec<usize>]| {
        let text = clip(values[group[0][depth]], 28);
        Head { text: if text.is_empty() { "–".into() } else { text }, span: group.len() }
    };
    columns.chunk_by(|a, b| a[..=depth] == b[..=depth]).map(head).collect()
}

/// The latencies of a series, unless its numbers contradict each other.
fn sound(series: &Series) -> Option<&Latency> {
    let latency = series.latency_ns.as_ref().filter(|latency| latency.count > 0)?;
    series.is_valid().then_some(latency)
}

/// The colours' scale, from the shortest median to the longest, by logarithm.
struct Scale {
    low: f64,
    high: f64,
}

impl Scale {
    fn of(entries: &[Entry<'_>]) -> Self {
        let medians = entries.iter().filter_map(|entry| Some(logarithm(sound(entry.series)?.p50)));
        let (low, high) =
            medians.fold((f64::MAX, f64::MIN), |(low, high), one| (low.min(one), high.max(one)));
        Self { low, high }
    }

    fn level(&self, ns: u64) -> u32 {
        let share = (logarithm(ns) - self.low) / (self.high - self.low).max(0.05);
        (share * LEVELS).round().clamp(0.0, LEVELS) as u32
    }
}

fn logarithm(ns: u64) -> f64 {
    (ns.max(1) as f64).ln()
}

fn cell(entry: &Entry<'_>, scale: &Scale) -> Cell {
    let (id, series) = (entry.id, entry.series);
    let lost = series.ledger.lost.total();
    let plain = |state, tip: String| Cell { id, state, tip, ..Cell::default() };
    if !series.unavailable.is_empty() {
        return plain("missing", format!("not measured: {}", clip(&series.unavailable, 80)));
    }
    if let Some(fault) = series.fault() {
        return plain("invalid", format!("invalid: {fault}"));
    }
    let Some(latency) = sound(series) else { return plain("missing", "no frame arrived".into()) };
    let level = scale.level(latency.p50);
    let [p50, p99, max] = [latency.p50, latency.p99, latency.max].map(units::span);
    let lost_text = if lost > 0 { format!(", lost {}", units::grouped(lost)) } else { String::new() };
    let tip = format!("{p50}, p99 {p99}, worst {max}{lost_text}");
    Cell { id, state: "full", level, text: p50, tip, lossy: lost > 0 }
}

//! What a section of the page shows, as plain values that the templates lay out.

use crate::measure::result::{Cost, Latency, Series};
use crate::report::figure::Size;
use crate::report::ranking::{self, Costs, Family, Latencies, Missing, Row};
use crate::report::{bars, costs, curves::Curves, profiles, sweep::Sweep, timechart, verdict};
use crate::units::{self, Unit, grouped};
use serde::Serialize;

#[derive(Serialize)]
pub struct LatencyView {
    condition: String,
    quantity: &'static str,
    /// What to read where the group is closed.
    summary: String,
    /// Whether it is open at first.
    pub open: bool,
    bars: Drawing,
    profiles: Drawing,
    families: Vec<(&'static str, &'static str)>,
    unit: &'static str,
    /// Empty: there is none.
    reference: String,
    has_paper: bool,
    has_scaled_paper: bool,
    paper: String,
    floor: String,
    /// Methods of which no frame arrived.
    silent: Vec<String>,
    timecharts: Vec<TimeChart>,
    rows: Vec<LatencyRow>,
    ledger_columns: Vec<&'static str>,
    /// Columns that are 0 in every row, and therefore only named.
    ledger_zeros: Vec<&'static str>,
    ledger: Vec<LedgerRow>,
}

#[derive(Serialize)]
struct TimeChart {
    name: Name,
    figure: Drawing,
    about: String,
}

/// A figure at both widths; the narrow one is left out of pages with very many.
#[derive(Clone, Serialize)]
struct Drawing {
    wide: String,
    narrow: String,
}

#[derive(Serialize)]
struct LatencyRow {
    name: Name,
    /// min, p50, p90, p99, p99.9, max.
    figures: [String; 6],
    ratio: String,
    paper: String,
    paper_ratio: String,
    id: usize,
    worst: String,
    lost: String,
    lossless: bool,
}

#[derive(Serialize)]
struct Name {
    number: usize,
    method: String,
    paper_name: String,
    class: String,
}

#[derive(Serialize)]
struct LedgerRow {
    name: Name,
    /// In the order of the columns that are shown.
    counts: Vec<String>,
    /// Why its figures prove nothing; empty when they can be true.
    fault: String,
}

#[derive(Serialize)]
pub struct CostView {
    direction: String,
    figure: Drawing,
    unit: &'static str,
    reference: String,
    has_paper: bool,
    paper: String,
    rows: Vec<CostRow>,
}

#[derive(Serialize)]
struct CostRow {
    name: Name,
    /// batch, per frame, delivery, total.
    figures: [String; 4],
    ratio: String,
    paper: String,
    paper_ratio: String,
}

#[derive(Serialize)]
pub struct MissingView {
    method: String,
    paper_name: String,
    under: String,
    reason: String,
}

fn name(series: &Series, number: usize, method: String, class: String) -> Name {
    Name { number, method, paper_name: series.paper_name.clone(), class }
}

impl LatencyView {
    /// A closed group of a very large page: its table has the figures that the bars would have.
    pub fn close(&mut self, sizes: Sizes) {
        self.open = false;
        if sizes == Sizes::Wide {
            self.bars = Drawing { wide: String::new(), narrow: String::new() };
        }
    }
}

fn drawing(sizes: Sizes, draw: impl Fn(Size) -> String) -> Drawing {
    let narrow = if sizes == Sizes::Both { draw(Size::Narrow) } else { String::new() };
    Drawing { wide: draw(Size::Wide), narrow }
}

/// At which widths figures are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizes {
    Both,
    /// The page has so many that it would get too large: on a telephone they are scrolled.
    Wide,
}

/// So many time charts of a group are drawn, those with the longest latencies.
const TIME_CHARTS_MAX: usize = 12;

pub fn latency_view(group: &Latencies<'_>, sizes: Sizes) -> LatencyView {
    let unit = group.unit();
    let mut families: Vec<Family> = group.rows.iter().map(|row| row.family).collect();
    families.sort_unstable();
    families.dedup();
    let shown = shown_columns(group);
    let none = || Drawing { wide: String::new(), narrow: String::new() };
    let has = !group.rows.is_empty();
    let condition = ranking::describe(group.condition);
    let condition =
        if group.quantity.is_empty() { condition } else { format!("{}: {condition}", group.quantity) };
    LatencyView {
        condition: verdict::capital(&condition),
        quantity: if group.quantity.is_empty() { "latency" } else { "time" },
        summary: summary(group),
        open: true,
        bars: if group.rows.len() > 1 { drawing(sizes, |size| bars::draw(group, size)) } else { none() },
        profiles: if has { drawing(sizes, |size| profiles::draw(group, size)) } else { none() },
        families: families.into_iter().map(|family| (family.class(), family.about())).collect(),
        unit: unit.name,
        reference: group.reference_name().to_owned(),
        has_paper: group.rows.iter().any(|row| row.paper_ns().is_some()),
        has_scaled_paper: group.rows.iter().any(|row| group.paper_scaled(row, row.paper_ns()).is_some()),
        paper: papers(group.series()),
        floor: bars::floor(group).map(units::span).unwrap_or_default(),
        silent: group.silent.iter().map(|series| ranking::label(series)).collect(),
        timecharts: timecharts(group, sizes),
        rows: group.rows.iter().enumerate().map(|(n, row)| latency_row(group, row, n + 1, unit)).collect(),
        ledger_columns: shown.iter().map(|&n| LEDGER[n].0).collect(),
        ledger_zeros: (0..LEDGER.len()).filter(|n| !shown.contains(n)).map(|n| LEDGER[n].0).collect(),
        ledger: ledger(group, &shown),
    }
}

/// `fastest ring/spin+write 13.9 µs, worst 26.9 µs, lost 3`.
fn summary(group: &Latencies<'_>) -> String {
    let Some(first) = group.rows.first() else { return "nothing arrived".into() };
    let worst = group.rows.iter().map(|row| row.figure.max).max().unwrap_or(0);
    let lost = group.series().fold(0_u64, |sum, series| sum.saturating_add(series.ledger.lost.total()));
    let lost = if lost > 0 { format!(", lost {}", grouped(lost)) } else { String::new() };
    format!("fastest {} {}, worst {}{lost}", first.label(), units::span(first.figure.p50), units::span(worst))
}

fn timecharts(group: &Latencies<'_>, sizes: Sizes) -> Vec<TimeChart> {
    let mut rows: Vec<_> = group.rows.iter().enumerate().collect();
    rows.sort_by_key(|(_, row)| std::cmp::Reverse(row.figure.max));
    let with = |(n, row): (usize, &Row<'_, Latency>)| {
        let timeline = row.series.timeline.as_ref().filter(|timeline| !timeline.slots.is_empty())?;
        let figure = drawing(sizes, |size| timechart::draw(row, timeline, size));
        let about = format!(
            "{} slots of {}",
            grouped(timeline.slots.len() as u64),
            units::round_span(timeline.slot_ns)
        );
        Some(TimeChart { name: name(row.series, n + 1, row.label(), row.class()), figure, about })
    };
    rows.into_iter().filter_map(|(n, row)| with((n, row))).take(TIME_CHARTS_MAX).collect()
}

#[derive(Serialize)]
pub struct SweepView {
    title: String,
    figure: Drawing,
    legend: Vec<Line>,
}

#[derive(Serialize)]
struct Line {
    number: usize,
    label: String,
    class: String,
    about: String,
}

pub fn sweep_view(sweep: &Sweep, sizes: Sizes) -> SweepView {
    let condition =
        if sweep.condition.is_empty() { String::new() } else { format!(" ({})", sweep.condition) };
    let line = |(n, (label, class)): (usize, (String, String))| Line {
        number: n + 1,
        label,
        class,
        about: String::new(),
    };
    SweepView {
        title: format!("Latency against {}{condition}", sweep.axis),
        figure: drawing(sizes, |size| sweep.draw(size)),
        legend: sweep.legend().into_iter().enumerate().map(line).collect(),
    }
}

pub fn curves_view(curves: &Curves<'_>, sizes: Sizes) -> SweepView {
    let line = |(n, (label, _, curve)): (usize, &(String, &Series, &crate::measure::result::Curve))| {
        let most = curve.points.iter().map(|point| point[1]).max().unwrap_or(0);
        let about = format!("at most {}", curves.figure(most));
        Line { number: n + 1, label: label.clone(), class: Curves::class(n), about }
    };
    SweepView {
        title: verdict::capital(&format!("{} against {}", curves.first.quantity, curves.first.against)),
        figure: drawing(sizes, |size| curves.draw(size)),
        legend: curves.lines.iter().enumerate().map(line).collect(),
    }
}

fn latency_row(group: &Latencies<'_>, row: &Row<'_, Latency>, number: usize, unit: Unit) -> LatencyRow {
    let Latency { min, p50, p90, p99, p999, max, .. } = *row.figure;
    let lost = row.series.ledger.lost.total();
    LatencyRow {
        name: name(row.series, number, row.label(), row.class()),
        figures: [min, p50, p90, p99, p999, max].map(|ns| unit.number(ns)),
        ratio: group.ratio(row).unwrap_or_default(),
        paper: row.paper_ns().map(units::round_span).unwrap_or_default(),
        paper_ratio: group.paper_ratio(row).unwrap_or_default(),
        id: row.id,
        worst: units::span(max),
        lost: grouped(lost),
        lossless: lost == 0,
    }
}

/// The ledger's columns: where each figure comes from.
type Count = fn(&Series) -> u64;
const LEDGER: [(&str, Count); 12] = [
    ("sent", |series| series.ledger.sent),
    ("received", |series| series.ledger.received),
    ("lost", |series| series.ledger.lost.total()),
    ("in controller", |series| series.ledger.lost.controller),
    ("in backlog", |series| series.ledger.lost.backlog),
    ("in socket", |series| series.ledger.lost.socket),
    ("in qdisc", |series| series.ledger.lost.qdisc),
    ("in gateway", |series| series.ledger.lost.gateway),
    ("unaccounted", |series| series.ledger.lost.unaccounted),
    ("duplicated", |series| series.ledger.duplicated),
    ("reordered", |series| series.ledger.reordered),
    ("negative", |series| series.latency_ns.as_ref().map_or(0, |latency| latency.negative)),
];
/// Sent, received and lost are shown even when they are 0.
const ALWAYS: usize = 3;

fn shown_columns(group: &Latencies<'_>) -> Vec<usize> {
    let counts = |count: Count| group.series().any(|series| count(series) > 0);
    (0..LEDGER.len()).filter(|&n| n < ALWAYS || counts(LEDGER[n].1)).collect()
}

fn ledger(group: &Latencies<'_>, shown: &[usize]) -> Vec<LedgerRow> {
    let drawn = group.rows.iter().map(|row| (row.series, row.label(), row.class()));
    let others = group.silent.iter().chain(&group.faulty);
    let others = others.map(|series| (*series, ranking::label(series), String::new()));
    let row = |(n, (series, label, class))| ledger_row(series, n + 1, label, class, shown);
    drawn.chain(others).enumerate().map(row).collect()
}

fn ledger_row(series: &Series, number: usize, label: String, class: String, shown: &[usize]) -> LedgerRow {
    let counts = shown.iter().map(|&n| grouped((LEDGER[n].1)(series))).collect();
    let name = Name { paper_name: String::new(), ..name(series, number, label, class) };
    LedgerRow { name, counts, fault: series.fault().unwrap_or_default() }
}

pub fn cost_view(group: &Costs<'_>, sizes: Sizes) -> CostView {
    let unit = group.unit();
    CostView {
        direction: verdict::capital(&format!("to {}", group.direction)),
        figure: drawing(sizes, |size| costs::draw(group, size)),
        unit: unit.name,
        reference: group.reference().map(|row| row.series.method.clone()).unwrap_or_default(),
        has_paper: group.rows.iter().any(|row| row.paper_ns().is_some()),
        paper: papers(group.rows.iter().map(|row| row.series)),
        rows: group.rows.iter().enumerate().map(|(n, row)| cost_row(group, row, n + 1, unit)).collect(),
    }
}

fn cost_row(group: &Costs<'_>, row: &Row<'_, Cost>, number: usize, unit: Unit) -> CostRow {
    let mut name = name(row.series, number, row.label(), Costs::class(row));
    name.method = row.series.method.clone(); // the batch has its own column
    let batch = grouped(row.series.condition.batch.max(1));
    let figure = row.figure;
    CostRow {
        name,
        figures: [
            batch,
            unit.number(figure.per_frame),
            unit.signed(figure.delivery),
            unit.signed(figure.total),
        ],
        ratio: group.ratio(row).unwrap_or_default(),
        paper: row.paper_ns().map(units::round_span).unwrap_or_default(),
        paper_ratio: group.paper_ratio(row).unwrap_or_default(),
    }
}

/// `2014, figure 4.2 (MPC5200, 400 MHz)`, each once.
fn papers<'a>(series: impl Iterator<Item = &'a Series>) -> String {
    let mut sources: Vec<String> = Vec::new();
    for paper in series.filter_map(|series| series.paper.as_ref()) {
        let machine = if paper.machine.is_empty() { String::new() } else { format!(" ({})", paper.machine) };
        let source = format!("{}{machine}", paper.source);
        if !source.is_empty() && !sources.contains(&source) {
            sources.push(source);
        }
    }
    sources.join("; ")
}

pub fn missing(missing: Missing<'_>) -> MissingView {
    let Missing { series, why, under } = missing;
    MissingView {
        method: ranking::label(series),
        paper_name: series.paper_name.clone(),
        under,
        reason: why.to_owned(),
    }
}

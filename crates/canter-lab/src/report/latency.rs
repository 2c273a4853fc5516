//! The latencies under a condition: bars, profiles, time charts, a table of percentiles and the ledger.

use crate::report::drawing::{Drawing, View, Views};
use crate::report::family::Family;
use crate::report::numbers::Numbers;
use crate::report::ranking::{self, Latencies, Ranked};
use crate::report::views::{Name, name, papers};
use crate::report::{bars, profiles, strips, timechart, verdict};
use canter_cli::terminal::{BOLD, FAINT, Ink, PLAIN, RED, Style, Table, YELLOW, paragraph};
use canter_cli::units::{self, Unit, grouped};
use canter_measure::result::{Latency, Series};
use serde::Serialize;

pub const DRAWING: Drawing =
    Drawing { text, ..Drawing::new("latency", include_str!("latency.html"), Views::EachCondition(views)) };

/// The number of groups of a section that are open at first; only one among other results, and if a drawing across the
/// conditions precedes them.
const GROUPS_OPEN: usize = 3;
/// The number of time charts per group, of a result alone and among others: those with the longest latencies.
const TIME_CHARTS_MAX: usize = 12;
const TIME_CHARTS_AMONG_OTHERS: usize = 2;
/// The number of conditions shown in full in the terminal; the page shows the others.
const CONDITIONS_MAX: usize = 6;

fn views(numbers: &Numbers<'_>) -> Vec<View> {
    let groups = &numbers.latencies;
    let open = match groups.len() {
        few if few <= GROUPS_OPEN + 1 => few,
        _ if numbers.sweeps.is_empty() && numbers.alone => GROUPS_OPEN,
        _ => 1,
    };
    // Among other results, one that was drawn across its conditions shows the first of them only.
    let shown = if numbers.alone || numbers.sweeps.is_empty() { groups.len() } else { open };
    let mut views: Vec<LatencyView> = Vec::new();
    for (n, group) in groups.iter().take(shown).enumerate() {
        let extent = match (numbers.alone, n < open) {
            (true, _) => Extent::Whole,
            (false, true) => Extent::Profiles,
            (false, false) => Extent::Numbers,
        };
        let mut view = view(group, extent);
        (view.first, view.open, view.closable) = (n == 0, n < open, groups.len() > 1);
        views.push(view);
    }
    if let Some(last) = views.last_mut().filter(|_| shown < groups.len()) {
        last.left_out = groups.len() - shown;
    }
    views.iter().map(View::of).collect()
}

#[derive(Serialize)]
struct LatencyView {
    condition: String,
    quantity: &'static str,
    /// The text of a closed group.
    summary: String,
    /// Whether the group is open at first.
    open: bool,
    /// Whether the group can be closed, because there are others.
    closable: bool,
    /// Whether the group is the first of its result, which explains the drawings.
    first: bool,
    /// Groups behind the group that the page does not show.
    left_out: usize,
    bars: String,
    profiles: String,
    families: Vec<(&'static str, &'static str)>,
    unit: &'static str,
    /// The name of the reference; empty without one.
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
    /// Columns that are 0 in every row: the page only lists their names.
    ledger_zeros: Vec<&'static str>,
    /// The frames of each series, where none was lost, doubled or late: a sentence instead of the ledger.
    complete: String,
    ledger: Vec<LedgerRow>,
}

#[derive(Serialize)]
struct TimeChart {
    name: Name,
    drawing: String,
    about: String,
}

#[derive(Serialize)]
struct LedgerRow {
    name: Name,
    /// The cells, in the order of the columns that are shown.
    counts: Vec<String>,
    /// The contradiction in the series' numbers; empty when there is none.
    fault: String,
}

/// How much of a group a page has room for: alone it shows everything, and among other results no bars, which repeat the
/// table, and the profiles of a result's first groups.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd)]
enum Extent {
    Numbers,
    Profiles,
    Whole,
}

impl Extent {
    fn time_charts(self) -> usize {
        match self {
            Self::Numbers => 0,
            Self::Profiles => TIME_CHARTS_AMONG_OTHERS,
            Self::Whole => TIME_CHARTS_MAX,
        }
    }
}

fn view(group: &Latencies<'_>, extent: Extent) -> LatencyView {
    let drawn = extent >= Extent::Profiles;
    let unit = group.unit();
    let mut families: Vec<Family> = group.rows.iter().map(|row| row.family).collect();
    families.sort_unstable();
    families.dedup();
    let shown = shown_columns(group);
    LatencyView {
        condition: verdict::capital(&ranking::full(group)),
        quantity: if group.quantity.is_empty() { "latency" } else { "time" },
        summary: summary(group),
        open: true,
        closable: false,
        first: true,
        left_out: 0,
        bars: if extent == Extent::Whole && group.rows.len() > 1 { bars::draw(group) } else { String::new() },
        profiles: if drawn && !group.rows.is_empty() { profiles::draw(group) } else { String::new() },
        families: families.into_iter().map(|family| (family.class(), family.about())).collect(),
        unit: unit.name,
        reference: group.reference_name().to_owned(),
        has_paper: group.rows.iter().any(|row| row.paper_ns().is_some()),
        has_scaled_paper: group.rows.iter().any(|row| group.paper_scaled(row, row.paper_ns()).is_some()),
        paper: papers(group.series()),
        floor: bars::floor(group).map(units::span).unwrap_or_default(),
        silent: group.silent.iter().map(|series| ranking::label(series)).collect(),
        timecharts: timecharts(group, extent.time_charts()),
        rows: group.rows.iter().enumerate().map(|(n, row)| latency_row(group, row, n + 1, unit)).collect(),
        ledger_columns: shown.iter().map(|&n| LEDGER[n].0).collect(),
        ledger_zeros: (0..LEDGER.len()).filter(|n| !shown.contains(n)).map(|n| LEDGER[n].0).collect(),
        complete: complete(group),
        ledger: ledger(group, &shown),
    }
}

/// `1 000 frames`, where every series received all frames that it sent; empty otherwise.
fn complete(group: &Latencies<'_>) -> String {
    let mut sent: Vec<u64> = group.series().map(|series| series.ledger.sent).collect();
    sent.sort_unstable();
    sent.dedup();
    let is_whole = |series: &Series| {
        let (columns, fault) = (&LEDGER[ALWAYS - 1..], series.fault());
        series.ledger.received == series.ledger.sent
            && fault.is_none()
            && columns.iter().all(|(_, count)| count(series) == 0)
    };
    match sent.as_slice() {
        [] => String::new(),
        _ if !group.series().all(is_whole) => String::new(),
        [frames] => format!("{} frames", grouped(*frames)),
        [least, .., most] => format!("{} to {} frames", grouped(*least), grouped(*most)),
    }
}

/// `fastest ring/spin+write 13.9 µs, worst 26.9 µs, lost 3`.
fn summary(group: &Latencies<'_>) -> String {
    let Some(first) = group.rows.first() else { return "nothing arrived".into() };
    let worst = group.rows.iter().map(|row| row.measured.max).max().unwrap_or(0);
    let lost = group.series().fold(0_u64, |sum, series| sum.saturating_add(series.ledger.lost.total()));
    let lost = if lost > 0 { format!(", lost {}", grouped(lost)) } else { String::new() };
    format!(
        "fastest {} {}, worst {}{lost}",
        first.label(),
        units::span(first.measured.p50),
        units::span(worst)
    )
}

fn timecharts(group: &Latencies<'_>, most: usize) -> Vec<TimeChart> {
    let mut rows: Vec<_> = group.rows.iter().enumerate().collect();
    rows.sort_by_key(|(_, row)| std::cmp::Reverse(row.measured.max));
    let chart = |(n, row): (usize, &Ranked<'_, Latency>)| {
        let timeline = row.series.timeline.as_ref().filter(|timeline| !timeline.slots.is_empty())?;
        let drawing = timechart::draw(row, timeline);
        let about = format!(
            "{} slots of {}",
            grouped(timeline.slots.len() as u64),
            units::round_span(timeline.slot_ns)
        );
        Some(TimeChart { name: name(row.series, n + 1, row.label(), row.class()), drawing, about })
    };
    rows.into_iter().filter_map(|(n, row)| chart((n, row))).take(most).collect()
}

#[derive(Serialize)]
struct LatencyRow {
    name: Name,
    /// The values of min, p50, p90, p99, p99.9 and max.
    statistics: [String; 6],
    ratio: String,
    paper: String,
    paper_ratio: String,
    id: usize,
    lost: String,
    lossless: bool,
}

fn latency_row(group: &Latencies<'_>, row: &Ranked<'_, Latency>, number: usize, unit: Unit) -> LatencyRow {
    let Latency { min, p50, p90, p99, p999, max, .. } = *row.measured;
    let lost = row.series.ledger.lost.total();
    LatencyRow {
        name: name(row.series, number, row.label(), row.class()),
        statistics: [min, p50, p90, p99, p999, max].map(|ns| unit.number(ns)),
        ratio: group.ratio(row).unwrap_or_default(),
        paper: row.paper_ns().map(units::round_span).unwrap_or_default(),
        paper_ratio: group.paper_ratio(row).unwrap_or_default(),
        id: row.id,
        lost: grouped(lost),
        lossless: lost == 0,
    }
}

/// The ledger's columns: name, and how to read the number.
type Count = fn(&Series) -> u64;
const LEDGER: [(&str, Count); 14] = [
    ("sent", |series| series.ledger.sent),
    ("received", |series| series.ledger.received),
    ("lost", |series| series.ledger.lost.total()),
    ("in controller", |series| series.ledger.lost.controller),
    ("in backlog", |series| series.ledger.lost.backlog),
    ("in socket", |series| series.ledger.lost.socket),
    ("in qdisc", |series| series.ledger.lost.qdisc),
    ("in gateway", |series| series.ledger.lost.gateway),
    ("in meter", |series| series.ledger.lost.meter),
    ("unaccounted", |series| series.ledger.lost.unaccounted),
    ("duplicated", |series| series.ledger.duplicated),
    ("reordered", |series| series.ledger.reordered),
    ("late", |series| series.ledger.late),
    ("negative", |series| series.latency_ns.as_ref().map_or(0, |latency| latency.negative)),
];
/// The number of columns that are shown even when they are 0: sent, received and lost.
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

fn text(numbers: &Numbers<'_>, ink: Ink) -> String {
    let (mut out, groups) = (String::new(), &numbers.latencies);
    for group in groups.iter().take(CONDITIONS_MAX) {
        condition(&mut out, group, ink);
    }
    if groups.len() > CONDITIONS_MAX {
        let more = groups.len() - CONDITIONS_MAX;
        let more = format!("{more} more conditions: see canter report … -o page.html.");
        paragraph(&mut out, &more, 0, ink, FAINT);
    }
    out
}

fn condition(out: &mut String, group: &Latencies<'_>, ink: Ink) {
    let unit = group.unit();
    let mut heading = ranking::describe(group.condition);
    if !group.quantity.is_empty() {
        heading = format!("{}, {heading}", group.quantity);
    }
    paragraph(out, &format!("{heading}, in {}:", unit.name), 0, ink, PLAIN);
    let ratio = format!("× {}", group.reference_name());
    let mut table = Table::new(&["<method", "min", "p50", "p90", "p99", "max", &ratio, "paper", "lost"]);
    for row in &group.rows {
        let Latency { min, p50, p90, p99, max, .. } = *row.measured;
        let numbers = [min, p50, p90, p99, max].map(|ns| unit.number(ns));
        let [min, p50, p90, p99, max] = numbers.map(|number| (number, PLAIN));
        let paper = group.paper_ratio(row).or_else(|| row.paper_ns().map(units::round_span));
        let lost = row.series.ledger.lost.total();
        let ratio = group.ratio(row).filter(|_| group.rows.len() > 1).unwrap_or_default();
        table.row([
            (row.label(), PLAIN),
            min,
            (p50.0, BOLD),
            p90,
            p99,
            max,
            (ratio, BOLD),
            (paper.unwrap_or_default(), FAINT),
            (grouped(lost), if lost > 0 { YELLOW } else { PLAIN }),
        ]);
    }
    let others = group
        .silent
        .iter()
        .map(|series| (*series, "none"))
        .chain(group.faulty.iter().map(|series| (*series, "!")));
    for (series, mark) in others {
        let mut cells: [(String, Style); 9] = Default::default();
        cells[0] = (ranking::label(series), PLAIN);
        cells[2] = (mark.to_owned(), RED);
        cells[8] = (grouped(series.ledger.lost.total()), RED);
        table.row(cells);
    }
    table.print(out, ink);
    out.push_str(&strips::of(group, ink));
}

//! The page: what each section shows, as plain values; `page.html` and `page.css` say how it looks.

use crate::measure::result::{Environment, Latency, ResultFile, Series};
use crate::report::figure::Size;
use crate::report::ranking::{self, Costs, Family, Latencies, Row};
use crate::report::unit::{self, Unit, grouped};
use crate::report::{bars, costs, profiles, verdict};
use minijinja::{Environment as Templates, UndefinedBehavior, Value, syntax::SyntaxConfig};
use serde::Serialize;
use std::collections::BTreeMap;

/// One self-contained HTML document.
pub fn render(results: &[ResultFile]) -> Result<String, minijinja::Error> {
    let mut templates = Templates::new();
    templates.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
    templates.set_undefined_behavior(UndefinedBehavior::Strict);
    templates.add_template("page.html", include_str!("page.html"))?;
    templates.add_template("figures.html", include_str!("figures.html"))?;
    templates.add_template("page.css", include_str!("page.css"))?;
    let sections: Vec<Section> =
        results.iter().enumerate().map(|(n, result)| section(result, n + 1)).collect();
    let sections = serde_json::to_value(sections).expect("plain structures of strings");
    let (sections, version) = (value(sections), env!("CARGO_PKG_VERSION"));
    templates.get_template("page.html")?.render(minijinja::context! { sections, version })
}

/// What serde made, as the templates take it.
fn value(json: serde_json::Value) -> Value {
    use serde_json::Value as Json;
    match json {
        Json::Null => ().into(),
        Json::Bool(is) => is.into(),
        Json::Number(number) => number.as_u64().into(), // the view has no other numbers
        Json::String(text) => text.replace(|c: char| c.is_control() && c != '\n', "\u{fffd}").into(),
        Json::Array(values) => values.into_iter().map(value).collect(),
        Json::Object(fields) => {
            fields.into_iter().map(|(name, field)| (name, value(field))).collect::<BTreeMap<_, _>>().into()
        }
    }
}

#[derive(Serialize)]
struct Section {
    id: String,
    study: String,
    title: String,
    verdict: String,
    invalid: bool,
    /// Frames were lost, and all are accounted for.
    lossy: bool,
    clock: &'static str,
    command: String,
    environment: Vec<(&'static str, String)>,
    interfaces: Vec<String>,
    latencies: Vec<LatencyView>,
    costs: Vec<CostView>,
    unavailable: Vec<MissingView>,
}

#[derive(Serialize)]
struct LatencyView {
    condition: String,
    bars: Drawing,
    profiles: Drawing,
    families: Vec<(&'static str, &'static str)>,
    unit: &'static str,
    has_reference: bool,
    has_paper: bool,
    has_scaled_paper: bool,
    paper: String,
    floor: String,
    /// Methods of which no frame arrived.
    silent: Vec<String>,
    rows: Vec<LatencyRow>,
    ledger_columns: Vec<&'static str>,
    /// Columns that are 0 in every row, and therefore only named.
    ledger_zeros: Vec<&'static str>,
    ledger: Vec<LedgerRow>,
}

/// A figure at both widths.
#[derive(Serialize)]
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
    balances: bool,
    /// By how much it does not balance.
    off_by: String,
}

#[derive(Serialize)]
struct CostView {
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
struct MissingView {
    method: String,
    paper_name: String,
    direction: String,
    reason: String,
}

fn section(result: &ResultFile, number: usize) -> Section {
    let or = |text: &str, instead: &str| if text.is_empty() { instead.to_owned() } else { text.to_owned() };
    Section {
        id: format!("result-{number}"),
        study: result.study.clone(),
        title: or(&result.title, &or(&result.study, "A measurement")),
        verdict: verdict::of(result),
        invalid: verdict::invalid(result).is_some(),
        lossy: result.series.iter().any(|series| series.ledger.lost.total() > 0),
        clock: verdict::clock(result.environment.clock),
        command: result.command.clone(),
        environment: environment(&result.environment),
        interfaces: result.environment.interfaces.clone(),
        latencies: Latencies::of(result).iter().map(latency_view).collect(),
        costs: Costs::of(result).iter().map(cost_view).collect(),
        unavailable: ranking::unavailable(result).into_iter().map(missing).collect(),
    }
}

fn environment(environment: &Environment) -> Vec<(&'static str, String)> {
    let clock = match environment.clock {
        crate::measure::result::ClockKind::Real => "real",
        crate::measure::result::ClockKind::Virtual => "virtual (instructions)",
        crate::measure::result::ClockKind::Simulated => "simulated",
    };
    let processors = unit::counted(environment.processors.into(), "processor");
    let cpu = match (environment.cpu.is_empty(), environment.processors) {
        (false, 0) => environment.cpu.clone(),
        (false, _) => format!("{}, {processors}", environment.cpu),
        (true, 0) => String::new(),
        (true, _) => processors,
    };
    let qemu = if environment.qemu.is_empty() { "none" } else { &environment.qemu };
    let all = [
        ("Kernel", environment.kernel.clone()),
        ("Clock", clock.to_owned()),
        ("QEMU", qemu.to_owned()),
        ("CPU", cpu),
        ("Date", environment.date.clone()),
        ("canter", environment.canter.clone()),
        ("Kernel command line", environment.cmdline.clone()),
    ];
    all.into_iter().filter(|(_, value)| !value.is_empty()).collect()
}

fn name(series: &Series, number: usize, class: String) -> Name {
    Name { number, method: ranking::label(series), paper_name: series.paper_name.clone(), class }
}

fn drawing(draw: impl Fn(Size) -> String) -> Drawing {
    Drawing { wide: draw(Size::Wide), narrow: draw(Size::Narrow) }
}

fn latency_view(group: &Latencies<'_>) -> LatencyView {
    let unit = group.unit();
    let mut families: Vec<Family> = group.rows.iter().map(|row| row.family).collect();
    families.sort_unstable();
    families.dedup();
    let shown = shown_columns(group);
    let (has, none) = (!group.rows.is_empty(), Drawing { wide: String::new(), narrow: String::new() });
    LatencyView {
        condition: verdict::capital(&ranking::describe(group.condition)),
        bars: if has { drawing(|size| bars::draw(group, size)) } else { none },
        profiles: drawing(|size| if has { profiles::draw(group, size) } else { String::new() }),
        families: families.into_iter().map(|family| (family.class(), family.about())).collect(),
        unit: unit.name,
        has_reference: group.reference().is_some(),
        has_paper: group.rows.iter().any(|row| row.paper_ns().is_some()),
        has_scaled_paper: group.rows.iter().any(|row| group.paper_scaled(row).is_some()),
        paper: papers(group.series()),
        floor: bars::floor(group).map(unit::span).unwrap_or_default(),
        silent: group.silent.iter().map(|series| ranking::label(series)).collect(),
        rows: group.rows.iter().enumerate().map(|(n, row)| latency_row(group, row, n + 1, unit)).collect(),
        ledger_columns: shown.iter().map(|&n| LEDGER[n].0).collect(),
        ledger_zeros: (0..LEDGER.len()).filter(|n| !shown.contains(n)).map(|n| LEDGER[n].0).collect(),
        ledger: ledger(group, &shown),
    }
}

fn latency_row(group: &Latencies<'_>, row: &Row<'_, Latency>, number: usize, unit: Unit) -> LatencyRow {
    let Latency { min, p50, p90, p99, p999, max, .. } = *row.figure;
    let lost = row.series.ledger.lost.total();
    LatencyRow {
        name: name(row.series, number, row.class()),
        figures: [min, p50, p90, p99, p999, max].map(|ns| unit.number(ns)),
        ratio: group.ratio(row).unwrap_or_default(),
        paper: row.paper_ns().map(unit::round_span).unwrap_or_default(),
        paper_ratio: group.paper_ratio(row).unwrap_or_default(),
        worst: unit::span(max),
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
    let classes = group.rows.iter().map(Row::class).chain(std::iter::repeat(String::new()));
    let rows = group.series().zip(classes).enumerate();
    rows.map(|(n, (series, class))| ledger_row(series, n + 1, class, shown)).collect()
}

fn ledger_row(series: &Series, number: usize, class: String, shown: &[usize]) -> LedgerRow {
    let ledger = &series.ledger;
    let missing = i128::from(ledger.sent) - i128::from(ledger.received) - i128::from(ledger.lost.total());
    let off_by = match missing {
        0 => String::new(),
        1.. => format!("{} missing", grouped(missing.unsigned_abs())),
        _ => format!("{} too many", grouped(missing.unsigned_abs())),
    };
    let counts = shown.iter().map(|&n| grouped((LEDGER[n].1)(series))).collect();
    let name = Name { paper_name: String::new(), ..name(series, number, class) };
    LedgerRow { name, counts, balances: missing == 0, off_by }
}

fn cost_view(group: &Costs<'_>) -> CostView {
    let unit = group.unit();
    CostView {
        direction: verdict::capital(&format!("to {}", group.direction)),
        figure: drawing(|size| costs::draw(group, size)),
        unit: unit.name,
        reference: group.reference().map(|row| row.series.method.clone()).unwrap_or_default(),
        has_paper: group.rows.iter().any(|row| row.paper_ns().is_some()),
        paper: papers(group.rows.iter().map(|row| row.series)),
        rows: group.rows.iter().enumerate().map(|(n, row)| cost_row(group, row, n + 1, unit)).collect(),
    }
}

fn cost_row(
    group: &Costs<'_>,
    row: &Row<'_, crate::measure::result::Cost>,
    number: usize,
    unit: Unit,
) -> CostRow {
    let mut name = name(row.series, number, Costs::class(row));
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
        paper: row.paper_ns().map(unit::round_span).unwrap_or_default(),
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

fn missing((series, reason): (&Series, &str)) -> MissingView {
    MissingView {
        method: ranking::label(series),
        paper_name: series.paper_name.clone(),
        direction: series.condition.direction.clone(),
        reason: reason.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::result::{Condition, Cost, Fit, Ledger, Lost, Paper};
    use crate::report::summary;
    use proptest::prelude::*;

    fn file(series: Vec<Series>) -> ResultFile {
        let words = || "<script>\u{1b}".to_owned();
        let environment =
            Environment { kernel: words(), interfaces: vec![words()], ..Environment::default() };
        ResultFile { schema: 1, study: words(), title: words(), command: words(), environment, series }
    }

    /// Figures as large, as contradictory and as many as a file can hold.
    fn number() -> impl Strategy<Value = u64> {
        prop_oneof![0..3_u64, 0..100_000_u64, any::<u64>()]
    }

    fn latency() -> impl Strategy<Value = Latency> {
        let buckets = prop::collection::vec([number(), number()], 0..20);
        (prop::array::uniform8(number()), buckets).prop_map(|(n, buckets)| {
            let [count, min, p50, p90, p99, p999, max, negative] = n;
            Latency { count, min, p50, p90, p99, p999, max, negative, buckets }
        })
    }

    fn cost() -> impl Strategy<Value = Cost> {
        let points = prop::collection::vec([number(), number()], 0..6);
        let fit = prop::option::of((any::<i64>(), any::<i64>()));
        (number(), any::<i64>(), any::<i64>(), points, fit).prop_map(
            |(per_frame, delivery, total, points, fit)| {
                let fit = fit.map(|(intercept, slope_per_1000)| Fit { intercept, slope_per_1000 });
                Cost { per_frame, delivery, total, points, fit }
            },
        )
    }

    fn series() -> impl Strategy<Value = Series> {
        let method = prop::sample::select(vec!["can-gw", "ring/spin+write", "read", "<script>", ""]);
        let traffic = prop::sample::select(vec!["one-at-a-time", "period", "receive", "<script>"]);
        let figures = (prop::option::of(latency()), prop::option::of(cost()));
        let rest = (prop::option::of(number()), prop::option::of(number()), prop::array::uniform4(number()));
        (method, traffic, figures, rest).prop_map(
            |(method, traffic, (latency_ns, cost_ns), (floor_ns, paper, n))| {
                let lost = Lost { socket: n[2], qdisc: n[3], ..Lost::default() };
                Series {
                    method: method.into(),
                    condition: Condition { traffic: traffic.into(), ..Condition::default() },
                    ledger: Ledger { sent: n[0], received: n[1], lost, ..Ledger::default() },
                    paper: paper.map(|ns| Paper { ns, ..Paper::default() }),
                    latency_ns,
                    cost_ns,
                    floor_ns,
                    ..Series::default()
                }
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn whatever_a_file_holds_becomes_a_sound_page(series in prop::collection::vec(series(), 0..8)) {
            let result = file(series);
            let page = render(std::slice::from_ref(&result)).expect("it renders");
            let finite = !page.contains("NaN") && !page.contains("inf");
            prop_assert!(finite);
            let summary = summary::of(&result);
            let safe = !page.contains("<script>") && ![page, summary.clone()].concat().contains('\u{1b}');
            prop_assert!(safe);
            for line in summary.lines() {
                prop_assert!(line.chars().count() <= summary::COLUMNS_MAX, "{}", line);
            }
        }
    }

    #[test]
    fn a_long_run_makes_a_small_page() {
        let buckets = (0..200_000).map(|n| [10_000 + 7 * n, 1 + n % 3]).collect();
        let latency = Latency { count: 400_000, p50: 600_000, max: 1_409_993, buckets, ..Latency::default() };
        let series = Series { method: "ring+ring".into(), latency_ns: Some(latency), ..Series::default() };
        let page = render(&[file(vec![series; 8])]).expect("it renders");
        assert!(page.len() < 400_000, "{} bytes", page.len());
    }
}

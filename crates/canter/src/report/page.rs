//! The page: result files in, one self-contained document out. What is in its sections is made in `views`; `page.html`,
//! `figures.html` and `page.css` say how it looks, `page.js` lets a reader choose.

use crate::measure::result::{ClockKind, Environment, ResultFile};
use crate::report::compare::{self, Comparison};
use crate::report::curves::Curves;
use crate::report::embed::{self, PAGE_BYTES_MAX};
use crate::report::ranking::{self, Costs, Latencies};
use crate::report::sweep::Sweep;
use crate::report::views::{self, CostView, LatencyView, MissingView, Sizes, SweepView};
use crate::report::{heat, profiles, verdict};
use crate::units;
use minijinja::{Environment as Templates, UndefinedBehavior, Value, syntax::SyntaxConfig};
use serde::Serialize;
use std::collections::BTreeMap;

/// With more series than this, figures are drawn at one width only.
const SERIES_AT_BOTH_WIDTHS: usize = 150;
/// So many groups of a section are open at first.
const GROUPS_OPEN: usize = 3;
/// The archive is put here when it is known how much room is left.
const ARCHIVE: &str = "<!--archive-->";
const ARCHIVE_NOTE: &str = "<!--archive-note-->";

/// One self-contained HTML document.
pub fn render(results: &[ResultFile], comparison: Option<&Comparison>) -> Result<String, minijinja::Error> {
    let mut templates = Templates::new();
    templates.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
    templates.set_undefined_behavior(UndefinedBehavior::Strict);
    templates.add_template("page.html", include_str!("page.html"))?;
    templates.add_template("figures.html", include_str!("figures.html"))?;
    templates.add_template("page.css", include_str!("page.css"))?;
    templates.add_template("page.js", include_str!("page.js"))?;
    let view = serde_json::to_value(view(results, comparison)).expect("plain structures of strings");
    let page = templates.get_template("page.html")?.render(value(view))?;
    let (archive, kept) = embed::archive(results, PAGE_BYTES_MAX.saturating_sub(page.len()));
    let note = match kept {
        "whole" => "",
        "thinned" => "The downloads hold fewer buckets than the result files, to keep the page small.",
        _ => "The results are too large for this page: see the files themselves.",
    };
    let page = page.replacen(ARCHIVE_NOTE, note, 1);
    Ok(page.replacen(ARCHIVE, &archive, 1))
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
struct View {
    version: &'static str,
    /// The verdicts, those of an experiment together.
    told: Vec<Told>,
    sections: Vec<Section>,
    /// What is not the same in all results.
    differing: Vec<&'static str>,
    /// Several clocks: nothing of one may be compared with the other.
    clocks: bool,
    maps: Vec<heat::Map>,
    explorer: Option<LatencyView>,
    /// `<path>` elements that the figures use.
    outlines: String,
    /// For the script.
    data: String,
    comparison: Option<ComparisonView>,
}

#[derive(Serialize)]
struct ComparisonView {
    worse: bool,
    sentence: String,
    method: String,
    rows: Vec<ComparedRow>,
}

#[derive(Serialize)]
struct ComparedRow {
    heading: String,
    label: String,
    figure: &'static str,
    /// A, B, the change, its interval.
    numbers: [String; 4],
    verdict: &'static str,
    class: &'static str,
    note: String,
}

#[derive(Serialize)]
struct Section {
    id: String,
    /// Of its embedded result.
    json: String,
    file: String,
    study: String,
    /// Of its kernel, where the results differ in it.
    flavour: String,
    title: String,
    verdict: String,
    invalid: bool,
    /// Frames were lost, and all are accounted for.
    lossy: bool,
    clock: &'static str,
    command: String,
    environment: Vec<Field>,
    interfaces: Vec<String>,
    interfaces_differ: bool,
    sweeps: Vec<SweepView>,
    curves: Vec<SweepView>,
    latencies: Vec<LatencyView>,
    costs: Vec<CostView>,
    unavailable: Vec<MissingView>,
}

/// An experiment's verdicts: several where it was made on several kernels.
#[derive(Serialize)]
struct Told {
    study: String,
    title: String,
    /// Places of their sections.
    places: Vec<usize>,
}

#[derive(Serialize)]
struct Field {
    name: &'static str,
    value: String,
    differs: bool,
}

fn view(results: &[ResultFile], comparison: Option<&Comparison>) -> View {
    let series: usize = results.iter().map(|result| result.series.len()).sum();
    let sizes = if series > SERIES_AT_BOTH_WIDTHS { Sizes::Wide } else { Sizes::Both };
    let differing = Differing::of(results);
    let (mut base, mut outlines, mut sections, mut groups) = (0, String::new(), Vec::new(), 0);
    for (n, result) in results.iter().enumerate() {
        let latencies = Latencies::numbered(result, base);
        outlines.extend(latencies.iter().map(profiles::definitions));
        groups += latencies.len();
        sections.push(section(result, n, &latencies, sizes, &differing));
        base += result.series.len();
    }
    let clock = |result: &ResultFile| result.environment.clock;
    let clocks = results.windows(2).any(|pair| clock(&pair[0]) != clock(&pair[1]));
    View {
        version: env!("CARGO_PKG_VERSION"),
        told: told(&sections),
        sections,
        differing: differing.0.iter().map(|field| field.name).collect(),
        clocks,
        maps: heat::maps(results),
        explorer: if groups > 1 { explorer(results, sizes) } else { None },
        outlines,
        data: embed::figures(results),
        comparison: comparison.map(comparison_view),
    }
}

fn told(sections: &[Section]) -> Vec<Told> {
    let same =
        |a: &Section, b: &Section| (&a.study, &a.title) == (&b.study, &b.title) && !a.flavour.is_empty();
    let mut place = 0;
    let experiment = |results: &[Section]| {
        let places = (place..place + results.len()).collect();
        place += results.len();
        Told { study: results[0].study.clone(), title: results[0].title.clone(), places }
    };
    sections.chunk_by(same).map(experiment).collect()
}

/// The first group with figures, to begin with.
fn explorer(results: &[ResultFile], sizes: Sizes) -> Option<LatencyView> {
    let mut base = 0;
    for result in results {
        let groups = Latencies::numbered(result, base);
        if let Some(group) = groups.iter().find(|group| !group.rows.is_empty()) {
            return Some(views::latency_view(group, sizes));
        }
        base += result.series.len();
    }
    None
}

fn comparison_view(comparison: &Comparison) -> ComparisonView {
    let mut rows = Vec::new();
    for series in &comparison.series {
        let row = |figure: Option<&compare::Figure>| {
            let verdict = figure.map_or(series.verdict, |figure| figure.verdict);
            ComparedRow {
                heading: series.heading.clone(),
                label: series.label.clone(),
                figure: figure.map_or("", |figure| figure.name),
                numbers: figure.map(compare::numbers).unwrap_or_default(),
                verdict: verdict.name(),
                class: verdict.class(),
                note: series.note.clone(),
            }
        };
        match series.figures.as_slice() {
            [] => rows.push(row(None)),
            figures => rows.extend(figures.iter().map(|figure| row(Some(figure)))),
        }
    }
    ComparisonView {
        worse: comparison.count(compare::Verdict::Regression) > 0,
        sentence: compare::sentence(comparison),
        method: compare::method(comparison),
        rows,
    }
}

fn section(
    result: &ResultFile,
    n: usize,
    latencies: &[Latencies<'_>],
    sizes: Sizes,
    differing: &Differing,
) -> Section {
    let or = |text: &str, instead: &str| if text.is_empty() { instead.to_owned() } else { text.to_owned() };
    let sweeps: Vec<SweepView> =
        Sweep::of(result).iter().map(|sweep| views::sweep_view(sweep, sizes)).collect();
    let mut views: Vec<LatencyView> =
        latencies.iter().map(|group| views::latency_view(group, sizes)).collect();
    if latencies.len() > GROUPS_OPEN + 1 {
        let open = if sweeps.is_empty() { GROUPS_OPEN } else { 1 };
        views.iter_mut().skip(open).for_each(|view| view.close(sizes));
    }
    Section {
        id: format!("result-{}", n + 1),
        json: format!("json-{n}"),
        file: format!("{}.json", or(&result.study, &format!("result-{}", n + 1))),
        study: result.study.clone(),
        flavour: if differing.names(KERNEL) { result.environment.flavour() } else { String::new() },
        title: or(&result.title, &or(&result.study, "A measurement")),
        verdict: verdict::of(result),
        invalid: verdict::invalid(result).is_some(),
        lossy: result.series.iter().any(|series| series.ledger.lost.total() > 0),
        clock: verdict::clock(result.environment.clock),
        command: result.command.clone(),
        environment: fields(&result.environment, differing),
        interfaces: result.environment.interfaces.clone(),
        interfaces_differ: differing.marks(INTERFACES, &interfaces(&result.environment)),
        sweeps,
        curves: Curves::of(result).iter().map(|curves| views::curves_view(curves, sizes)).collect(),
        latencies: views,
        costs: Costs::of(result).iter().map(|group| views::cost_view(group, sizes)).collect(),
        unavailable: ranking::missing(result).into_iter().map(views::missing).collect(),
    }
}

const KERNEL: &str = "Kernel";
const INTERFACES: &str = "Interfaces";
/// Differs always.
const DATE: &str = "Date";

/// The fields in which results differ.
struct Differing(Vec<Varying>);

struct Varying {
    name: &'static str,
    /// What more than half of the results have: what is marked is the rest, or all where there is none.
    usual: Option<String>,
}

impl Differing {
    fn of(results: &[ResultFile]) -> Self {
        let all: Vec<Vec<_>> = results
            .iter()
            .map(|result| {
                let interfaces = (INTERFACES, interfaces(&result.environment));
                environment(&result.environment).into_iter().chain([interfaces]).collect()
            })
            .collect();
        let fields = all.first().map_or(0, |fields| fields.len());
        let varying = |n: usize| {
            let values: Vec<&String> = all.iter().map(|fields| &fields[n].1).collect();
            let usual =
                |value: &&String| values.iter().filter(|other| other == &value).count() * 2 > values.len();
            let differ = all[0][n].0 != DATE && values.windows(2).any(|pair| pair[0] != pair[1]);
            let usual = values.iter().copied().find(usual).cloned();
            differ.then_some(Varying { name: all[0][n].0, usual })
        };
        Self((0..fields).filter_map(varying).collect())
    }

    fn names(&self, name: &str) -> bool {
        self.0.iter().any(|field| field.name == name)
    }

    fn marks(&self, name: &str, value: &str) -> bool {
        self.0.iter().any(|field| field.name == name && field.usual.as_deref() != Some(value))
    }
}

fn interfaces(environment: &Environment) -> String {
    environment.interfaces.join("\n")
}

fn fields(of: &Environment, differing: &Differing) -> Vec<Field> {
    let field = |(name, value): (_, String)| Field { name, differs: differing.marks(name, &value), value };
    environment(of).into_iter().map(field).filter(|field| !field.value.is_empty()).collect()
}

fn environment(environment: &Environment) -> [(&'static str, String); 7] {
    let clock = match environment.clock {
        ClockKind::Virtual => "virtual (instructions)",
        kind => kind.name(),
    };
    let processors = units::counted(environment.processors.into(), "processor");
    let cpu = match (environment.cpu.is_empty(), environment.processors) {
        (false, 0) => environment.cpu.clone(),
        (false, _) => format!("{}, {processors}", environment.cpu),
        (true, 0) => String::new(),
        (true, _) => processors,
    };
    let qemu = if environment.qemu.is_empty() { "none" } else { &environment.qemu };
    [
        (KERNEL, environment.kernel.clone()),
        ("Clock", clock.to_owned()),
        ("QEMU", qemu.to_owned()),
        ("CPU", cpu),
        (DATE, environment.date.clone()),
        ("canter", environment.canter.clone()),
        ("Kernel command line", environment.cmdline.clone()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::histogram::Histogram;
    use crate::measure::result::{
        Condition, Cost, Curve, Fit, Latency, Ledger, Lost, Paper, Series, Timeline, Varied,
    };
    use crate::report::summary;
    use crate::terminal;
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

    /// A distribution that can be true, so that it is drawn.
    fn sound_latency() -> impl Strategy<Value = Latency> {
        prop::collection::vec(prop_oneof![0..3_i64, 0..90_000_i64, 0..4_000_000_000_i64], 0..30).prop_map(
            |all| {
                let mut histogram = Histogram::new();
                all.into_iter().for_each(|ns| histogram.record(ns));
                histogram.to_latency()
            },
        )
    }

    fn curve() -> impl Strategy<Value = Curve> {
        let points = prop::collection::vec([number(), number()], 0..6);
        let unit = prop::sample::select(vec!["%", "ns", "<script>", ""]);
        (points, unit, any::<u8>()).prop_map(|(points, unit, decimals)| {
            let words = || "<script>".to_owned();
            let (quantity, against, against_unit) = (words(), words(), words());
            Curve { quantity, unit: unit.into(), decimals, against, against_unit, points }
        })
    }

    fn timeline() -> impl Strategy<Value = Timeline> {
        let slot =
            prop::array::uniform5(number()).prop_map(|[at, n, a, b, lost]| [at, n, a.min(b), a.max(b), lost]);
        let slots = prop::collection::btree_map(number(), slot, 0..9);
        let load = prop::collection::btree_map(number(), number(), 0..4);
        (number(), slots, load).prop_map(|(slot_ns, slots, load)| Timeline {
            slot_ns,
            slots: slots.into_iter().map(|(at, slot)| [at, slot[1], slot[2], slot[3], slot[4]]).collect(),
            load: load.into_iter().map(|(at, busy)| [at, busy]).collect(),
        })
    }

    fn condition() -> impl Strategy<Value = Condition> {
        let traffic = prop::sample::select(vec!["one-at-a-time", "period", "receive", "<script>"]);
        let varied = prop::option::of(number().prop_map(|value| Varied {
            name: "filters".into(),
            unit: String::new(),
            value,
        }));
        (traffic, varied, 0..4_u64).prop_map(|(traffic, varied, period_ns)| Condition {
            traffic: traffic.into(),
            varied,
            period_ns,
            ..Condition::default()
        })
    }

    fn series() -> impl Strategy<Value = Series> {
        let method = prop::sample::select(vec!["can-gw", "ring/spin+write", "read", "<script>", ""]);
        let latency = prop_oneof![3 => sound_latency(), 1 => latency()];
        let figures = (prop::option::of(latency), prop::option::of(cost()));
        let more = (prop::option::of(curve()), prop::option::of(timeline()));
        let rest = (prop::option::of(number()), prop::option::of(number()), prop::array::uniform4(number()));
        (method, condition(), figures, more, rest, any::<bool>()).prop_map(
            |(
                method,
                condition,
                (latency_ns, cost_ns),
                (curve, timeline),
                (floor_ns, paper, n),
                balanced,
            )| {
                let lost = Lost { socket: n[2] >> 2, qdisc: n[3] >> 2, ..Lost::default() };
                let received = n[1] >> 2;
                let sent = if balanced { received + lost.total() } else { n[0] };
                Series {
                    method: method.into(),
                    condition,
                    ledger: Ledger { sent, received, lost, ..Ledger::default() },
                    paper: paper.map(|ns| Paper { ns, min: n[0], p90: n[1], max: n[2], ..Paper::default() }),
                    latency_ns,
                    cost_ns,
                    floor_ns,
                    curve,
                    timeline,
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
            let page = render(std::slice::from_ref(&result), None).expect("it renders");
            let (shown, _) = page.split_once("<script").expect("it has a script");
            let finite = !shown.contains("NaN") && !shown.contains("inf");
            prop_assert!(finite);
            let summary = summary::of(&result, terminal::Ink::none());
            let scripts = page.matches("<script").count();
            let safe = scripts == 3 && ![page, summary.clone()].concat().contains('\u{1b}');
            prop_assert!(safe, "{} scripts", scripts);
            for line in summary.lines() {
                prop_assert!(line.chars().count() <= terminal::COLUMNS_MAX, "{}", line);
            }
        }
    }

    #[test]
    fn a_long_run_makes_a_small_page() {
        let buckets = (0..200_000).map(|n| [10_000 + 7 * n, 1 + n % 3]).collect();
        let [p90, p99, p999, max] = [1_409_993; 4];
        let latency =
            Latency { count: 399_999, min: 10_000, p50: 600_000, p90, p99, p999, max, negative: 0, buckets };
        let series = Series { method: "ring+ring".into(), latency_ns: Some(latency), ..Series::default() };
        let page = render(&[file(vec![series; 8])], None).expect("it renders");
        assert_eq!(page.matches("<use class=\"line").count(), 16, "every profile is drawn, wide and narrow");
        assert!(page.len() < PAGE_BYTES_MAX, "{} bytes", page.len());
    }
}

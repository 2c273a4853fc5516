use super::*;
use crate::report::summary;
use crate::report::table::DRAWINGS;
use canter_cli::terminal;
use canter_measure::histogram::Histogram;
use canter_measure::result::Environment;
use canter_measure::result::{
    Condition, Cost, Curve, Fit, Latency, Ledger, Lost, Paper, Series, Timeline, Varied,
};
use proptest::prelude::*;

fn file(series: Vec<Series>) -> ResultFile {
    let words = || "<script>\u{1b}".to_owned();
    let environment = Environment { kernel: words(), interfaces: vec![words()], ..Environment::default() };
    ResultFile { schema: 1, study: words(), title: words(), command: words(), environment, series }
}

/// Numbers as large as a file can hold; they may contradict each other.
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
            Cost { per_frame, delivery, delivery_few: None, total, points, fit }
        },
    )
}

/// A distribution without contradictions, so that it is drawn.
fn sound_latency() -> impl Strategy<Value = Latency> {
    prop::collection::vec(prop_oneof![0..3_i64, 0..90_000_i64, 0..4_000_000_000_i64], 0..30).prop_map(|all| {
        let mut histogram = Histogram::new();
        all.into_iter().for_each(|ns| histogram.record(ns));
        histogram.to_latency()
    })
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
        slots: slots.into_iter().map(|(at, slot)| [at, slot[1], slot[2], slot[3], slot[4]].into()).collect(),
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
    let measured = (prop::option::of(latency), prop::option::of(cost()));
    let more = (prop::option::of(curve()), prop::option::of(timeline()));
    let rest = (prop::option::of(number()), prop::option::of(number()), prop::array::uniform4(number()));
    (method, condition(), measured, more, rest, any::<bool>()).prop_map(
        |(method, condition, (latency_ns, cost_ns), (curve, timeline), (floor_ns, paper, n), balanced)| {
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
    fn any_result_file_becomes_a_valid_page(series in prop::collection::vec(series(), 0..8)) {
        let result = file(series);
        let page = render(std::slice::from_ref(&result), Beginning::Results, DRAWINGS).expect("it renders");
        let finite = !page.contains("NaN") && !page.contains("inf");
        prop_assert!(finite);
        let summary = summary::of(&Numbers::of(&result), DRAWINGS, terminal::Ink::none());
        let safe = !page.contains("<script") && ![page, summary.clone()].concat().contains('\u{1b}');
        prop_assert!(safe);
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
    let page = render(&[file(vec![series; 8])], Beginning::Results, DRAWINGS).expect("it renders");
    assert_eq!(page.matches("<path class=line ").count(), 8, "every profile is drawn");
    assert!(page.len() < 100_000, "{} bytes", page.len());
}

/// Three series under different conditions, of a boot.
fn of_boot(boot: &str) -> ResultFile {
    let latency = Latency {
        count: 2,
        min: 1,
        p50: 1,
        p90: 2,
        p99: 2,
        p999: 2,
        max: 2,
        negative: 0,
        buckets: vec![[1, 1], [2, 1]],
    };
    let series = |len| Series {
        method: "can-gw".into(),
        condition: Condition { len, ..Condition::default() },
        ledger: Ledger { sent: 2, received: 2, ..Ledger::default() },
        latency_ns: Some(latency.clone()),
        ..Series::default()
    };
    let environment = Environment { boot: boot.into(), ..Environment::default() };
    ResultFile { study: "2011-fig8".into(), environment, ..file(vec![series(2), series(4), series(8)]) }
}

fn page(results: &[ResultFile]) -> String {
    render(results, Beginning::Results, DRAWINGS).expect("it renders")
}

#[test]
fn boots_of_an_experiment_are_one_section_that_counts_them() {
    let page = page(&["a", "b", "c"].map(of_boot));
    assert_eq!(page.matches("<section id=").count(), 1);
    assert!(page.contains("The first of 3 boots"), "{page}");
    assert!(page.contains("from 3 result files"), "{page}");
}

#[test]
fn restores_of_one_boot_and_other_experiments_have_sections_of_their_own() {
    let other = ResultFile { study: "2011-fig9".into(), ..of_boot("b") };
    assert_eq!(page(&[of_boot("a"), of_boot("a"), other]).matches("<section id=").count(), 3);
}

#[test]
fn every_condition_is_drawn_on_a_result_s_own_page_and_the_first_among_others() {
    let drawn = |page: &str| page.matches("<figure class=profile>").count();
    let alone = page(&[of_boot("a")]);
    let among = page(&[of_boot("a"), ResultFile { study: "2011-fig9".into(), ..of_boot("b") }]);
    assert_eq!((drawn(&alone), drawn(&among)), (3, 6), "few conditions are drawn everywhere");
    let many =
        |boot| ResultFile { series: [of_boot(boot).series, of_other_lens()].concat(), ..of_boot(boot) };
    let among = page(&[many("a"), ResultFile { study: "2011-fig9".into(), ..many("b") }]);
    assert_eq!((drawn(&page(&[many("a")])), drawn(&among)), (5, 2), "of five conditions, the first");
    assert_eq!(among.matches("each series sent 2 frames").count(), 10, "all have their numbers");
}

fn of_other_lens() -> Vec<Series> {
    let mut series = of_boot("").series;
    series.truncate(2);
    series.iter_mut().for_each(|one| one.condition.len += 20);
    series
}

#[test]
fn the_page_and_the_summary_show_the_drawings_of_the_table_they_get() {
    let series = |method: &str, frames: [i64; 3]| {
        let mut histogram = Histogram::new();
        frames.into_iter().for_each(|ns| histogram.record(ns));
        let ledger = Ledger { sent: 3, received: 3, ..Ledger::default() };
        let latency_ns = Some(histogram.to_latency());
        Series { method: method.to_owned(), latency_ns, ledger, ..Series::default() }
    };
    let measured = vec![series("can-gw", [0, 0, 900]), series("read+write", [2_000, 2_000, 5_000])];
    let result = ResultFile { study: "a <toy>".to_owned(), ..file(measured) };
    let drawings = [DRAWINGS, &[toy::DRAWING]].concat();
    let page = render(std::slice::from_ref(&result), Beginning::Results, &drawings).expect("it renders");
    let toys: Vec<_> = page.split("<figure class=toy>").skip(1).collect();
    let [toy] = toys[..] else { panic!("one toy, for one condition") };
    let (toy, _) = toy.split_once("</figure>").unwrap();
    assert!(toy.starts_with("<h3>a &lt;toy&gt;, ") && toy.matches("<circle class=dot").count() == 2, "{toy}");
    let summary = summary::of(&Numbers::of(&result), &drawings, terminal::Ink::none());
    assert!(summary.contains("toy: read+write 2.5") && !summary.contains("toy: can-gw"), "{summary}");
    let without = render(std::slice::from_ref(&result), Beginning::Results, DRAWINGS).expect("it renders");
    assert!(!without.contains("class=toy"));
}

#[test]
fn interfaces_that_are_alike_are_one_line() {
    let interfaces =
        ["can0: can, 500000 bit/s", "vcan0: vcan", "can1: can, 500000 bit/s", "can2: can", "odd", "odd"];
    let lines = alike(&interfaces.map(str::to_owned));
    assert_eq!(lines, ["can0, can1: can, 500000 bit/s", "vcan0: vcan", "can2: can", "odd", "odd"]);
}

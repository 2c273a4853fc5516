//! Verdicts of made-up results: each word for the reason that it stands for.

use super::*;
use canter_measure::{
    histogram::Histogram,
    result::{Condition, Cost, Environment, Ledger, Lost, ResultFile, SCHEMA, Series, Varied},
    verdicts::{Plot, Quantity},
};

const KERNEL: &str = "6.12.117-amd64 #1 SMP";

fn claim(criterion: &str) -> Claim {
    try_claim(criterion).unwrap_or_else(|error| panic!("{criterion}: {error}"))
}

fn try_claim(criterion: &str) -> Result<Claim, toml::de::Error> {
    toml::from_str(&format!("name = 'a-claim'\nsays = 'A sentence.'\n{criterion}"))
}

/// A series of 1000 latencies from `ns` to `ns + spread`.
fn series(method: &str, ns: u64, spread: u64) -> Series {
    let mut histogram = Histogram::new();
    (0..1000).for_each(|n| histogram.record((ns + n * spread / 999) as i64));
    Series {
        method: method.to_owned(),
        condition: Condition { load: "none".to_owned(), frames: 1000, ..Condition::default() },
        latency_ns: Some(histogram.to_latency()),
        ledger: Ledger { sent: 1000, received: 1000, ..Ledger::default() },
        ..Series::default()
    }
}

fn losing(method: &str, period_ns: u64, lost: u64) -> Series {
    let mut one = series(method, 1000, 0);
    one.condition.period_ns = period_ns;
    one.ledger = Ledger {
        sent: 1000,
        received: 1000 - lost,
        lost: Lost { socket: lost, ..Lost::default() },
        ..Ledger::default()
    };
    one
}

fn result(study: &str, series: Vec<Series>) -> ResultFile {
    ResultFile {
        schema: SCHEMA,
        study: study.to_owned(),
        title: String::new(),
        command: String::new(),
        environment: Environment { kernel: KERNEL.to_owned(), ..Environment::default() },
        series,
    }
}

fn decide(criterion: &str, results: &[ResultFile]) -> Outcome {
    claim(criterion).criterion.decide(&Evidence { results, study: "s", kernel: "6.12" })
}

const RATIO: &str =
    "ratio = { figure = 'p50', of = { method = 'a' }, over = { method = 'b' }, paper = 3.0, within = 1.5 }";

#[test]
fn a_ratio_is_reproduced_within_its_bounds_refuted_outside_and_undecided_across() {
    let decided =
        |ns, spread| decide(RATIO, &[result("s", vec![series("a", ns, spread), series("b", 1000, 0)])]);
    assert_eq!(decided(3000, 10).word, Word::Reproduced);
    assert_eq!(decided(4700, 10).word, Word::Refuted);
    assert_eq!(decided(1900, 10).word, Word::Refuted);
    let across = decided(3500, 2000); // its median is 4500
    assert_eq!(across.word, Word::Undecided, "{across:?}");
    assert_eq!(across.bounds, Some([2.0, 4.5]));
}

#[test]
fn several_boots_widen_the_interval_and_five_give_it() {
    let boot = |ns| result("s", vec![series("a", ns, 0), series("b", 1000, 0)]);
    let few = decide(RATIO, &[boot(3000), boot(4600)]);
    assert_eq!((few.word, few.boots), (Word::Undecided, 2));
    let five = decide(RATIO, &[3000, 3100, 2900, 3050, 2950].map(boot));
    let estimate = five.estimate.expect("a number");
    assert_eq!((five.word, five.boots), (Word::Reproduced, 5));
    assert!((estimate.low - 2.9).abs() < 0.01 && (estimate.high - 3.1).abs() < 0.01, "{estimate:?}");
}

#[test]
fn a_worst_case_needs_five_boots() {
    let worst = RATIO.replace("p50", "max");
    let boot = |ns| result("s", vec![series("a", ns, 0), series("b", 1000, 0)]);
    assert_eq!(decide(&worst, &[3000; 4].map(boot)).word, Word::Undecided);
    assert_eq!(decide(&worst, &[3000; 5].map(boot)).word, Word::Reproduced);
}

#[test]
fn what_another_study_found_under_the_same_condition_counts() {
    let own = result("s", vec![series("a", 3000, 0), series("b", 1000, 0)]);
    let other = |ns| result("other", vec![series("b", ns, 0)]);
    assert_eq!(decide(RATIO, &[own.clone(), other(1010)]).word, Word::Reproduced);
    assert_eq!(decide(RATIO, &[own.clone(), other(2000)]).word, Word::Undecided);
    let mut elsewhere = other(2000);
    elsewhere.environment.kernel = "6.1.0-56-amd64 #1 SMP".to_owned();
    assert_eq!(decide(RATIO, &[own, elsewhere]).word, Word::Reproduced, "another kernel");
}

#[test]
fn missing_unavailable_ambiguous_and_invalid_series_decide_nothing_and_say_why() {
    let missing = decide(RATIO, &[result("s", vec![series("a", 3000, 0)])]);
    assert_eq!(missing.word, Word::NotMeasurable);
    assert!(missing.found.contains("s, kernel 6.12, b"), "{missing:?}");
    let refused = Series::unavailable("b", Condition::default(), "no such driver");
    let refused = decide(RATIO, &[result("s", vec![series("a", 3000, 0), refused])]);
    assert!(refused.word == Word::NotMeasurable && refused.found.contains("no such driver"), "{refused:?}");
    let mut other = series("b", 2000, 0);
    other.condition.load = "cpu".to_owned();
    let several = decide(RATIO, &[result("s", vec![series("a", 3000, 0), series("b", 1000, 0), other])]);
    assert!(several.word == Word::NotMeasurable && several.found.contains("several"), "{several:?}");
    let mut invalid = series("b", 1000, 0);
    invalid.ledger.received -= 1;
    let invalid = decide(RATIO, &[result("s", vec![series("a", 3000, 0), invalid])]);
    assert!(invalid.word == Word::Undecided && invalid.found.contains("invalid"), "{invalid:?}");
    let mut late = series("b", 1000, 0);
    late.ledger.late = 2;
    let late = decide(RATIO, &[result("s", vec![series("a", 3000, 0), late])]);
    assert!(late.word == Word::Undecided && late.found.contains("2 of 1000 frames were late"), "{late:?}");
}

#[test]
fn an_order_is_refuted_by_one_pair_and_open_where_intervals_overlap() {
    let order =
        "order = { figure = 'p50', ascending = [{ method = 'a' }, { method = 'b' }, { method = 'c' }] }";
    let word = |medians: [(u64, u64); 3]| {
        let [a, b, c] = medians;
        decide(
            order,
            &[result("s", vec![series("a", a.0, a.1), series("b", b.0, b.1), series("c", c.0, c.1)])],
        )
        .word
    };
    assert_eq!(word([(1000, 0), (1100, 0), (1200, 0)]), Word::Reproduced);
    assert_eq!(word([(1000, 0), (1100, 0), (1050, 0)]), Word::Refuted);
    assert_eq!(word([(1000, 500), (1005, 500), (9000, 0)]), Word::Undecided);
}

#[test]
fn a_course_is_flat_straight_or_rising() {
    let word = |shape: &str, medians: [u64; 4]| {
        let points = medians.into_iter().zip([1, 2, 3, 4]).map(|(ns, value)| {
            let mut one = series("a", ns, 0);
            one.condition.varied = Some(Varied { name: "filters".to_owned(), value, ..Varied::default() });
            one
        });
        let course = format!(
            "course = {{ figure = 'p50', of = {{ method = 'a' }}, shape = '{shape}', within = 1.1 }}"
        );
        decide(&course, &[result("s", points.collect())]).word
    };
    assert_eq!(word("flat", [1000, 1020, 1010, 1005]), Word::Reproduced);
    assert_eq!(word("flat", [1000, 1200, 1010, 1005]), Word::Refuted);
    assert_eq!(word("straight", [1000, 1500, 2000, 2500]), Word::Reproduced);
    assert_eq!(word("straight", [1000, 1000, 1000, 2500]), Word::Refuted);
    assert_eq!(word("rising", [1000, 1000, 1500, 2500]), Word::Reproduced);
    assert_eq!(word("rising", [1000, 900, 1500, 2500]), Word::Refuted);
    assert_eq!(word("rising", [1000, 1010, 1020, 1030]), Word::Refuted);
}

#[test]
fn a_knee_lies_between_two_periods() {
    let knee =
        "knee = { of = { method = 'a' }, over = { method = 'b' }, lost = 0.01, paper = 0.8, within = 1.1 }";
    let sweep = |method: &str, kept_from: u64| {
        (10..30)
            .map(|n| n * 10_000)
            .map(|ns| losing(method, ns, if ns < kept_from { 100 } else { 0 }))
            .collect::<Vec<_>>()
    };
    let decided = |a, b| decide(knee, &[result("s", [sweep("a", a), sweep("b", b)].concat())]);
    assert_eq!(decided(200_000, 250_000).word, Word::Reproduced);
    assert_eq!(decided(250_000, 250_000).word, Word::Refuted);
    assert_eq!(decided(215_000, 250_000).word, Word::Undecided);
    let always = decided(1000, 250_000);
    assert!(always.word == Word::Undecided && always.found.contains("even at the shortest"), "{always:?}");
}

#[test]
fn losing_none_is_a_fact_and_a_share_has_an_interval() {
    let word = |paper: &str, lost| {
        let lost_criterion = format!("lost = {{ of = {{ method = 'a' }}, paper = {paper}, within = 1.5 }}");
        decide(&lost_criterion, &[result("s", vec![losing("a", 1, lost)])]).word
    };
    assert_eq!([word("0.0", 0), word("0.0", 1)], [Word::Reproduced, Word::Refuted]);
    assert_eq!(
        [word("0.3", 300), word("0.3", 600), word("0.3", 450)],
        [Word::Reproduced, Word::Refuted, Word::Undecided]
    );
}

#[test]
fn a_line_through_the_origin_is_near_every_point() {
    let line = "line = { of = { method = 'read' }, within = 1.05 }";
    let word = |ns: [u64; 3]| {
        let points = [1000, 2000, 4000].into_iter().zip(ns).map(|(frames, ns)| [frames, ns]).collect();
        let cost = Some(Cost { points, ..Cost::default() });
        decide(line, &[result("s", vec![Series { cost_ns: cost, ..series("read", 1, 0) }])]).word
    };
    assert_eq!(word([10_000, 20_000, 40_100]), Word::Reproduced);
    assert_eq!(word([10_000, 25_000, 40_000]), Word::Refuted);
}

#[test]
fn a_criterion_that_contradicts_itself_is_refused_with_the_claim_s_name() {
    for (criterion, expected) in [
        ("", "needs one of ratio"),
        ("cannot = ''", "needs a reason"),
        ("cannot = 'x'\nlost = { of = {}, paper = 0.0 }", "needs one of ratio"),
        (
            "ratio = { figure = 'p50', of = {}, over = {}, paper = 1.0, within = 0.5 }",
            "within: a factor of at least 1",
        ),
        ("ratio = { figure = 'p51', of = {}, over = {}, paper = 1.0, within = 2.0 }", "p51"),
        ("order = { figure = 'p50', ascending = [{}] }", "two series"),
    ] {
        let error = try_claim(criterion).expect_err(criterion).to_string();
        assert!(error.contains(expected), "{criterion}: {error}");
    }
}

#[test]
fn an_outcome_has_the_numbers_and_bounds_that_its_plot_shows() {
    let none = decide(RATIO, &[result("s", vec![series("a", 3000, 0)])]);
    assert_eq!(none.plot, None, "what was not measured is not drawn");
    let ratio = decide(RATIO, &[result("s", vec![series("a", 3000, 0), series("b", 1000, 0)])]);
    assert_eq!(ratio.plot.as_deref(), Some(&Plot::Number { quantity: Quantity::Ratio }));
    let order = "order = { figure = 'p50', ascending = [{ method = 'a' }, { method = 'b' }] }";
    let order = decide(order, &[result("s", vec![series("a", 1000, 0), series("b", 2000, 0)])]);
    let Some(Plot::Order { quantity: Quantity::Time, series, .. }) = order.plot.map(|plot| *plot) else {
        panic!("a plot")
    };
    let drawn: Vec<_> = series.iter().map(|one| (one.label.as_str(), one.interval[0])).collect();
    assert_eq!(drawn, [("a", 1000.0), ("b", 2000.0)]);
}

#[test]
fn a_course_is_drawn_with_what_its_shape_allows() {
    let plot = |shape: &str, within: &str, medians: [u64; 3]| {
        let all = [0, 1, 10].into_iter().zip(medians).map(|(rules, ns)| {
            let mut one = series("a", ns, 0);
            let (name, unit) = ("filters".to_owned(), String::new());
            one.condition.varied = Some(Varied { name, unit, value: rules });
            one
        });
        let course =
            format!("course = {{ figure = 'p50', of = {{}}, shape = '{shape}', within = {within} }}");
        let outcome = decide(&course, &[result("s", all.collect())]);
        let Some(Plot::Course { quantity, against, lines, allowed, .. }) = outcome.plot.map(|plot| *plot)
        else {
            panic!("a plot")
        };
        assert_eq!((against.as_str(), lines.len()), ("filters", 1));
        let drawn: Vec<_> = lines[0].points.iter().map(|point| (point[0], point[1])).collect();
        let allowed: Vec<_> = allowed.iter().map(|one| (one.at, one.from, one.to)).collect();
        (quantity, drawn, allowed)
    };
    let (quantity, drawn, allowed) = plot("flat", "1.5", [1200, 1000, 1100]);
    assert_eq!((quantity, drawn), (Quantity::Time, vec![(0.0, 1200.0), (1.0, 1000.0), (10.0, 1100.0)]));
    assert_eq!(allowed, [(0.0, 1000.0, Some(1500.0)), (10.0, 1000.0, Some(1500.0))]);
    let (_, _, allowed) = plot("rising", "1.5", [1000, 1500, 2000]);
    assert_eq!(allowed, [(10.0, 1500.0, None)]);
    let (quantity, drawn, allowed) = plot("straight", "2.0", [1000, 1200, 3000]);
    assert_eq!((quantity, drawn[1]), (Quantity::Ratio, (1.0, 1.0)), "as multiples of the line");
    assert_eq!(allowed, [(0.0, 0.5, Some(2.0)), (10.0, 0.5, Some(2.0))]);
}

#[test]
fn a_knee_is_drawn_with_both_losses_and_the_periods_that_the_other_one_allows() {
    let knee =
        "knee = { of = { method = 'a' }, over = { method = 'b' }, lost = 0.01, paper = 0.8, within = 1.25 }";
    let sweep = |method: &str, kept_from: u64| {
        let one = |ns: u64| losing(method, ns, if ns < kept_from { 100 } else { 0 });
        [100_000, 200_000, 300_000].map(one).to_vec()
    };
    let outcome = decide(knee, &[result("s", [sweep("a", 200_000), sweep("b", 300_000)].concat())]);
    let Some(Plot::Course { quantity, lines, allowed, .. }) = outcome.plot.map(|plot| *plot) else {
        panic!("a plot")
    };
    assert_eq!((quantity, lines[1].label.as_str()), (Quantity::Share, "b"));
    let lost: Vec<_> = lines[0].points.iter().map(|point| (point[0], point[1])).collect();
    assert_eq!(lost, [(100.0, 0.1), (200.0, 0.0), (300.0, 0.0)]);
    assert_eq!(allowed.iter().map(|one| one.at.round()).collect::<Vec<_>>(), [128.0, 300.0]);
}

//! Findings in made-up results, and the words that they become, each for the reason that it stands for.

use super::*;
use canter_measure::{
    histogram::Histogram,
    result::{
        Condition, Cost, Environment, Ledger, Lost, Model, Reception, ResultFile, SCHEMA, Series, Slot,
        Stage, Stages, Timeline, Varied,
    },
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
        floor_ns: Some(0),
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

fn decide(criterion: &str, results: &[ResultFile]) -> outcome::Outcome {
    claim(criterion).criterion.decide(&Evidence { results, study: "s", kernel: "6.12" })
}

const RATIO: &str =
    "ratio = { figure = 'p50', of = { method = 'a' }, over = { method = 'b' }, paper = 3.0, within = 1.5 }";

#[test]
fn a_ratio_is_reproduced_within_its_bounds_refuted_outside_and_undecided_across() {
    let decided =
        |ns, spread| decide(RATIO, &[result("s", vec![series("a", ns, spread), series("b", 1000, 0)])]);
    assert_eq!(decided(3000, 10).finding, Finding::Within);
    assert_eq!(decided(4700, 10).finding, Finding::Outside);
    assert_eq!(decided(1900, 10).finding, Finding::Outside);
    let across = decided(3500, 2000); // its median is 4500
    assert_eq!(across.finding, Finding::Unclear, "{across:?}");
    assert_eq!(across.bounds, Some([2.0, 4.5]));
}

#[test]
fn several_boots_widen_the_interval_and_five_give_it() {
    let boot = |ns| result("s", vec![series("a", ns, 0), series("b", 1000, 0)]);
    let few = decide(RATIO, &[boot(3000), boot(4600)]);
    assert_eq!((few.finding, few.boots), (Finding::Unclear, 2));
    let five = decide(RATIO, &[3000, 3100, 2900, 3050, 2950].map(boot));
    let estimate = five.estimate.expect("a number");
    assert_eq!((five.finding, five.boots), (Finding::Within, 5));
    assert!((estimate.low - 2.9).abs() < 0.01 && (estimate.high - 3.1).abs() < 0.01, "{estimate:?}");
}

#[test]
fn a_worst_case_needs_five_boots() {
    let worst = RATIO.replace("p50", "max");
    let boot = |ns| result("s", vec![series("a", ns, 0), series("b", 1000, 0)]);
    assert_eq!(decide(&worst, &[3000; 4].map(boot)).finding, Finding::Unclear);
    assert_eq!(decide(&worst, &[3000; 5].map(boot)).finding, Finding::Within);
}

#[test]
fn restores_of_one_machine_are_one_boot_and_boots_of_two_builds_decide_nothing() {
    let worst = RATIO.replace("p50", "max");
    let boot = |boot: &str, commit: &str| {
        let mut one = result("s", vec![series("a", 3000, 0), series("b", 1000, 0)]);
        (one.environment.boot, one.environment.commit) = (boot.to_owned(), commit.to_owned());
        one
    };
    let restored = decide(&worst, &["x"; 5].map(|id| boot(id, "")));
    assert!(restored.found.contains("needs 5 boots, there are 1"), "{restored:?}");
    let own = ["a", "b", "c", "d", "e"];
    assert_eq!(decide(&worst, &own.map(|id| boot(id, ""))).finding, Finding::Within);
    let mixed = decide(RATIO, &[boot("a", "1234567"), boot("b", "89abcde")]);
    assert_eq!(mixed.finding, Finding::Unclear);
    assert!(mixed.found.contains("two builds of canter"), "{mixed:?}");
}

#[test]
fn boots_that_fall_into_groups_decide_nothing_and_the_account_says_why() {
    let boot = |ns, bound: &str| {
        let mut one = series("a", ns, 0);
        bound.clone_into(&mut one.condition.bound);
        result("s", vec![one, series("b", 1000, 0)])
    };
    let two_kinds = |bound| decide(RATIO, &[2500, 3000, 2500, 3000, 2500].map(|ns| boot(ns, bound)));
    let free = two_kinds("");
    assert_eq!(free.finding, Finding::Unclear);
    assert!(free.found.contains("3 at 2.50 µs, 2 at 3.00 µs (nobody bound"), "{free:?}");
    assert!(two_kinds("everything on the only processor").found.contains("(everything on the only"));
}

#[test]
fn the_instrument_s_own_time_is_taken_off_and_widens_the_interval_when_it_is_a_large_part() {
    let with_floor = |ns, floor_ns| Series { floor_ns, ..series("a", ns, 0) };
    let decided =
        |floor_ns| decide(RATIO, &[result("s", vec![with_floor(4000, floor_ns), series("b", 1000, 0)])]);
    let small = decided(Some(800)).estimate.expect("a number");
    assert_eq!([small.value, small.low, small.high].map(|one| (one * 1000.0).round()), [3200.0; 3]);
    let large = decided(Some(1000)).estimate.expect("a number");
    let rounded = [large.value, large.low, large.high].map(|one| (one * 1000.0).round());
    assert_eq!(rounded, [3000.0, 3000.0, 4000.0], "it may or may not remain beside a gateway");
    let unknown = decided(None);
    assert_eq!(unknown.finding, Finding::Unclear);
    assert!(unknown.found.contains("floor of its instrument was not measured"), "{unknown:?}");
}

#[test]
fn a_time_is_compared_with_the_paper_s_where_it_depends_on_no_machine() {
    let time = "time = { figure = 'p50', of = { method = 'a' }, paper_us = 3.0, within = 1.1 }";
    let decided = |ns| decide(time, &[result("s", vec![series("a", ns, 0)])]);
    let same = decided(3100);
    assert_eq!((same.finding, same.found.as_str()), (Finding::Within, "3.1 µs"), "{same:?}");
    assert_eq!((same.paper, same.bounds.map(|[_, to]| to.round())), (Some(3000.0), Some(3300.0)));
    assert_eq!(decided(3400).finding, Finding::Outside);
}

#[test]
fn the_time_of_bits_is_taken_off_both_sides_of_a_ratio() {
    let less = |ns: u32| RATIO.replace("paper", &format!("less_ns = {ns}, paper"));
    let both = [result("s", vec![series("a", 4000, 0), series("b", 2000, 0)])];
    let decided = decide(&less(1000), &both);
    assert_eq!(
        (decided.finding, decided.found.contains("less 1.00 µs of bits")),
        (Finding::Within, true),
        "{decided:?}"
    );
    assert_eq!(decide(RATIO, &both).estimate.map(|one| one.value), Some(2.0));
    assert_eq!(decided.estimate.map(|one| one.value.round()), Some(3.0));
    let all = decide(&less(2000), &both);
    assert_eq!((all.finding, all.found.as_str()), (Finding::Unclear, "a time within less_ns = 2000"));
}

#[test]
fn two_instruments_are_as_far_apart_as_their_times_whichever_is_the_longer() {
    let apart = "time = { figure = 'p50', of = { method = 'a' }, beside = { study = 'other' }, paper_us = 1.0, within = 1.0, \
                 side = 'at-most' }";
    let decided = |ns, other_ns| {
        let other = result("other", vec![series("a", other_ns, 0)]);
        decide(apart, &[result("s", vec![series("a", ns, 0)]), other])
    };
    let near = decided(12_900, 12_400);
    assert_eq!((near.finding, near.found.as_str()), (Finding::Within, "12.9 µs and 12.4 µs: 0.5 µs apart"));
    assert_eq!(decided(12_400, 12_900).finding, Finding::Within);
    assert_eq!(decided(12_400, 13_900).finding, Finding::Outside);
    assert_eq!(decide(apart, &[result("s", vec![series("a", 1000, 0)])]).finding, Finding::Missing);
}

#[test]
fn runs_of_a_handler_are_counted_for_each_frame() {
    let runs = "ratio = { figure = 'runs', of = { traffic = 'burst=5' }, over = { traffic = 'one-at-a-time' }, paper = 0.9, \
                within = 1.0, side = 'at-most' }";
    let handled = |traffic: &str, sent: u64, quantity: &str| {
        let mut one = series("a", 1000, 0); // a thousand runs
        (one.condition.traffic, one.ledger.sent, one.ledger.received) = (traffic.to_owned(), sent, sent);
        Series { quantity: quantity.to_owned(), ..one }
    };
    let both = |quantity| {
        vec![result("s", vec![handled("burst=5", 5000, quantity), handled("one-at-a-time", 1000, quantity)])]
    };
    let decided = decide(runs, &both("handler time"));
    assert_eq!(
        (decided.finding, decided.estimate.map(|one| one.value)),
        (Finding::Within, Some(0.2)),
        "{decided:?}"
    );
    let latencies = decide(runs, &both(""));
    assert!(latencies.found.contains("has no run times of a handler"), "{latencies:?}");
}

#[test]
fn a_loss_says_nothing_when_its_control_loses_too() {
    let lost =
        "lost = { of = { method = 'a' }, control = { method = 'b' }, paper = 0.001, side = 'at-least' }";
    let decided =
        |of_control| decide(lost, &[result("s", vec![losing("a", 1, 300), losing("b", 1, of_control)])]);
    assert_eq!(decided(0).finding, Finding::Within);
    let overload = decided(1);
    assert!(overload.finding == Finding::Unclear && overload.found.contains("control"), "{overload:?}");
}

#[test]
fn a_gateway_keeps_up_when_it_loses_nothing_and_its_latency_does_not_grow() {
    let slots = |last_ns| {
        let slot = |number, max_ns| Slot { number, arrived: 1, min_ns: 1, max_ns, lost: 0 };
        Some(Timeline { slot_ns: 1, slots: vec![slot(0, 100), slot(9, last_ns)], load: Vec::new() })
    };
    let decided = |lost, timeline| {
        let one = Series { timeline, ..losing("a", 1, lost) };
        decide("keeps_up = { of = { method = 'a' } }", &[result("s", vec![one])]).finding
    };
    assert_eq!(decided(0, slots(200)), Finding::Within);
    assert_eq!(decided(0, slots(201)), Finding::Outside, "a queue grows");
    assert_eq!(decided(1, slots(100)), Finding::Outside);
    assert_eq!(decided(0, None), Finding::Missing, "nobody knows whether a queue grew");
}

#[test]
fn a_finding_becomes_a_word_by_the_cause_that_the_claim_names() {
    let word = |cause: &str, finding| claim(&format!("{RATIO}\n{cause}")).word(finding).0;
    assert_eq!(word("", Finding::Within), Word::Holds);
    assert_eq!(word("", Finding::Outside), Word::Open);
    assert_eq!(word("changed = 'a hash'", Finding::Outside), Word::NoLonger);
    assert_eq!(word("changed = 'a hash'", Finding::Within), Word::Holds);
    assert_eq!(word("lacks = 'a cache'", Finding::Outside), Word::NotByInstrument);
    assert_eq!(word("lacks = 'a cache'", Finding::Missing), Word::NotMeasured);
    assert_eq!(word("doubt = 'an echo'", Finding::Within), Word::Open);
    assert_eq!(word("", Finding::Unclear), Word::Open);
    let lacks = claim("lacks = 'a cache'");
    assert_eq!(lacks.word(Finding::Missing), (Word::NotByInstrument, "a cache"), "without a criterion");
    let unmeasured = claim("unmeasured = 'a study'");
    assert_eq!(unmeasured.word(Finding::Missing), (Word::NotMeasured, "a study"));
}

#[test]
fn missing_unavailable_ambiguous_and_invalid_series_decide_nothing_and_say_why() {
    let missing = decide(RATIO, &[result("s", vec![series("a", 3000, 0)])]);
    assert_eq!(missing.finding, Finding::Missing);
    assert!(missing.found.contains("s, kernel 6.12, b"), "{missing:?}");
    let refused = Series::unavailable("b", Condition::default(), "no such driver");
    let refused = decide(RATIO, &[result("s", vec![series("a", 3000, 0), refused])]);
    assert!(refused.finding == Finding::Missing && refused.found.contains("no such driver"), "{refused:?}");
    let mut other = series("b", 2000, 0);
    other.condition.load = "cpu".to_owned();
    let several = decide(RATIO, &[result("s", vec![series("a", 3000, 0), series("b", 1000, 0), other])]);
    assert!(several.finding == Finding::Missing && several.found.contains("several"), "{several:?}");
    let mut invalid = series("b", 1000, 0);
    invalid.ledger.received -= 1;
    let invalid = decide(RATIO, &[result("s", vec![series("a", 3000, 0), invalid])]);
    assert!(invalid.finding == Finding::Unclear && invalid.found.contains("invalid"), "{invalid:?}");
    let mut late = series("b", 1000, 0);
    late.ledger.late = 51;
    let late = decide(RATIO, &[result("s", vec![series("a", 3000, 0), late])]);
    assert!(
        late.finding == Finding::Unclear && late.found.contains("51 of 1000 frames were late"),
        "{late:?}"
    );
}

#[test]
fn an_order_is_refuted_by_one_pair_and_open_where_intervals_overlap() {
    let order =
        "order = { figure = 'p50', ascending = [{ method = 'a' }, { method = 'b' }, { method = 'c' }] }";
    let finding = |medians: [(u64, u64); 3]| {
        let [a, b, c] = medians;
        decide(
            order,
            &[result("s", vec![series("a", a.0, a.1), series("b", b.0, b.1), series("c", c.0, c.1)])],
        )
        .finding
    };
    assert_eq!(finding([(1000, 0), (1100, 0), (1200, 0)]), Finding::Within);
    assert_eq!(finding([(1000, 0), (1100, 0), (1050, 0)]), Finding::Outside);
    assert_eq!(finding([(1000, 500), (1005, 500), (9000, 0)]), Finding::Unclear);
}

#[test]
fn a_course_is_flat_straight_or_rising() {
    let finding = |shape: &str, medians: [u64; 4]| {
        let points = medians.into_iter().zip([1, 2, 3, 4]).map(|(ns, value)| {
            let mut one = series("a", ns, 0);
            one.condition.varied = Some(Varied { name: "filters".to_owned(), value, ..Varied::default() });
            one
        });
        let course = format!(
            "course = {{ figure = 'p50', of = {{ method = 'a' }}, shape = '{shape}', within = 1.1 }}"
        );
        decide(&course, &[result("s", points.collect())]).finding
    };
    assert_eq!(finding("flat", [1000, 1020, 1010, 1005]), Finding::Within);
    assert_eq!(finding("flat", [1000, 1200, 1010, 1005]), Finding::Outside);
    assert_eq!(finding("straight", [1000, 1500, 2000, 2500]), Finding::Within);
    assert_eq!(finding("steps", [1000, 1900, 2400, 2900]), Finding::Within, "whatever the first step");
    assert_eq!(finding("steps", [1000, 1500, 2000, 2800]), Finding::Outside);
    assert_eq!(finding("straight", [1000, 1000, 1000, 2500]), Finding::Outside);
    assert_eq!(finding("rising", [1000, 1000, 1500, 2500]), Finding::Within);
    assert_eq!(finding("rising", [1000, 900, 1500, 2500]), Finding::Outside);
    assert_eq!(finding("rising", [1000, 1010, 1020, 1030]), Finding::Outside);
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
    assert_eq!(decided(200_000, 250_000).finding, Finding::Within);
    assert_eq!(decided(250_000, 250_000).finding, Finding::Outside);
    assert_eq!(decided(215_000, 250_000).finding, Finding::Unclear);
    let always = decided(1000, 250_000);
    assert!(
        always.finding == Finding::Unclear && always.found.contains("even at the shortest"),
        "{always:?}"
    );
}

#[test]
fn late_frames_widen_what_a_claim_says_of_shares_and_knees() {
    let late = |mut series: Series, late| {
        series.ledger.late = late;
        series
    };
    let share = |lates| {
        let results = [result("s", vec![late(losing("a", 1, 300), lates)])];
        decide("lost = { of = { method = 'a' }, paper = 0.3, within = 1.2 }", &results).finding
    };
    assert_eq!([share(0), share(40)], [Finding::Within, Finding::Unclear]);
    let knee =
        "knee = { of = { method = 'a' }, over = { method = 'b' }, lost = 0.01, paper = 0.8, within = 1.1 }";
    // b loses until 240, and 5 frames of 1000 at 300, of which each may be one of the late ones.
    let decided = |lates| {
        let a = [(190, 100), (200, 0), (300, 0)].map(|(us, lost)| losing("a", us * 1000, lost));
        let b = [(240, 100), (250, 0), (300, 5), (310, 0)];
        let b = b.map(|(us, lost)| late(losing("b", us * 1000, lost), if us == 300 { lates } else { 0 }));
        decide(knee, &[result("s", [a.to_vec(), b.to_vec()].concat())])
    };
    assert_eq!(decided(0).finding, Finding::Within);
    assert!(decided(6).found.contains("240…310 µs"), "{:?}", decided(6));
}

#[test]
fn a_knee_without_the_wires_part_and_of_gateways_whose_queue_grows() {
    let sweep = |method: &'static str, grows_below: u64| {
        (10..30u64).map(|n| n * 10_000).map(move |ns| {
            let grows = u64::from(ns < grows_below);
            let slots = (0..8).map(move |number| Slot {
                number,
                arrived: 1,
                max_ns: 1000 + grows * number * 1000,
                ..Slot::default()
            });
            let timeline = Timeline { slot_ns: 1, slots: slots.collect(), load: Vec::new() };
            Series { timeline: Some(timeline), ..losing(method, ns, 0) }
        })
    };
    let decided = |more: &str| {
        let series: Vec<_> = sweep("a", 200_000).chain(sweep("b", 250_000)).collect();
        let knee = format!(
            "knee = {{ of = {{ method = 'a' }}, over = {{ method = 'b' }}, lost = 0.01, paper = 0.8, within = 1.1{more} }}"
        );
        decide(&knee, &[result("s", series)])
    };
    assert!(decided("").found.contains("loses none even"), "{:?}", decided(""));
    assert_eq!(decided(", steady = true").finding, Finding::Within);
    let less = decided(", steady = true, less_ns = 100000");
    assert_eq!(less.finding, Finding::Outside, "95 of 145 µs: {less:?}");
    assert!(decided(", steady = true, less_ns = 195000").found.contains("within less_ns"));
}

#[test]
fn losing_none_is_a_fact_and_a_share_has_an_interval() {
    let finding = |paper: &str, lost| {
        let lost_criterion = format!("lost = {{ of = {{ method = 'a' }}, paper = {paper}, within = 1.5 }}");
        decide(&lost_criterion, &[result("s", vec![losing("a", 1, lost)])]).finding
    };
    assert_eq!([finding("0.0", 0), finding("0.0", 1)], [Finding::Within, Finding::Outside]);
    assert_eq!(
        [finding("0.3", 300), finding("0.3", 600), finding("0.3", 450)],
        [Finding::Within, Finding::Outside, Finding::Unclear]
    );
}

#[test]
fn a_line_through_the_origin_is_near_every_point() {
    let line = "line = { of = { method = 'read' }, within = 1.05 }";
    let finding = |ns: [u64; 3]| {
        let points = [1000, 2000, 4000].into_iter().zip(ns).map(|(frames, ns)| [frames, ns]).collect();
        let cost = Some(Cost { points, ..Cost::default() });
        decide(line, &[result("s", vec![Series { cost_ns: cost, ..series("read", 1, 0) }])]).finding
    };
    assert_eq!(finding([10_000, 20_000, 40_100]), Finding::Within);
    assert_eq!(finding([10_000, 25_000, 40_000]), Finding::Outside);
}

#[test]
fn a_criterion_that_contradicts_itself_is_refused_with_the_claim_s_name() {
    for (criterion, expected) in [
        ("", "needs one of ratio"),
        ("changed = 'x'", "needs one of ratio"),
        ("lacks = ''", "need a reason"),
        ("unmeasured = 'x'\nlost = { of = {}, paper = 0.0 }", "a claim with a criterion is measured"),
        ("lacks = 'x'\nunmeasured = 'y'", "only one of changed"),
        ("lost = { of = {}, paper = 0.0 }\nkeeps_up = { of = {} }", "several criteria"),
        ("cannot = 'x'", "is `lacks`"),
        (
            "ratio = { figure = 'p50', of = {}, over = {}, paper = 1.0, within = 0.5 }",
            "within: a factor of at least 1",
        ),
        ("ratio = { figure = 'p51', of = {}, over = {}, paper = 1.0, within = 2.0 }", "p51"),
        ("order = { figure = 'p50', ascending = [{}] }", "two series"),
        ("time = { figure = 'load', of = {}, paper_us = 1.0, within = 1.1 }", "figure: a time"),
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

#[test]
fn a_share_is_of_the_analyzers_account_without_the_instrument() {
    let stage = |name: &str, total_ns| Stage { name: name.to_owned(), median_frame_ns: 0, total_ns };
    let account = Stages {
        frames: 10,
        total_ns: 1400,
        entries: 100,
        reception: Some(Reception { frames: 10, total_ns: 800, aside_ns: 600 }),
        stages: vec![stage("driver", 1100), stage("instrument", 300)],
        ..Stages::default()
    };
    let with = |stages| result("s", vec![Series { stages, ..series("a", 1000, 0) }]);
    let share = |figure: &str, paper: f64| {
        format!("share = {{ figure = '{figure}', of = {{ method = 'a' }}, paper = {paper}, within = 1.1 }}")
    };
    let counted = [with(Some(account))];
    assert_eq!(decide(&share("interrupts", 0.75), &counted).estimate.unwrap().value, 0.75);
    // 100 entries beside 1000 other instructions.
    assert_eq!(decide(&share("entries", 0.1), &counted).estimate.unwrap().value, 0.1);
    assert_eq!(decide(&share("entries", 0.2), &counted).finding, Finding::Outside);
    assert_eq!(decide(&share("interrupts", 0.75), &[with(None)]).finding, Finding::Unclear);
    let uncounted = Stages { total_ns: 5, ..Stages::default() };
    assert_eq!(decide(&share("entries", 0.1), &[with(Some(uncounted))]).finding, Finding::Unclear);
    assert!(try_claim(&share("p50", 1.0)).is_err(), "no share");
}

#[test]
fn a_ratio_of_medians_by_the_model_says_whose_model_it_is() {
    let by_model = |method: &str, median_frame_ns| {
        let model = Model { board: "mpc5200".to_owned(), median_frame_ns, ..Model::default() };
        let stages = Some(Stages { model: Some(model), ..Stages::default() });
        Series { stages, ..series(method, 1000, 0) }
    };
    let ratio = "ratio = { figure = 'model', of = { method = 'a' }, over = { method = 'b' }, paper = 3.0, within = 1.1 }";
    let results = [result("s", vec![by_model("a", 3100), by_model("b", 1000)])];
    assert!((decide(ratio, &results).estimate.unwrap().value - 3.1).abs() < 1e-9);
    let evidence = Evidence { results: &results, study: "s", kernel: "6.12" };
    let basis = evidence.basis(&[selector::Selector::default()]);
    assert_eq!(basis.instruments.into_iter().collect::<Vec<_>>(), ["by the model of mpc5200"]);
    let without = [result("s", vec![series("a", 3100, 0), series("b", 1000, 0)])];
    assert_eq!(decide(ratio, &without).finding, Finding::Unclear);
}

#[test]
fn measured_counts_the_valid_series_of_all_kernels() {
    let unavailable = Series { unavailable: "lacks a card".to_owned(), ..series("b", 1, 0) };
    let mut other = result("s", vec![series("a", 1, 0)]);
    other.environment.kernel = "6.1.0-rt-amd64 #1 SMP PREEMPT_RT".to_owned();
    let results =
        [result("s", vec![series("a", 1, 0), unavailable]), other, result("t", vec![series("a", 1, 0)])];
    let at_least = |count| format!("measured = {{ kernels = ['6.12', '6.1-rt'], at_least = {count} }}");
    let outcome = decide(&at_least(2), &results);
    assert_eq!(
        (outcome.finding, outcome.found.as_str()),
        (Finding::Within, "2 of 3 series valid, 1\u{202f}000 frames each")
    );
    assert_eq!(decide(&at_least(3), &results).finding, Finding::Unclear);
    assert_eq!(decide(&at_least(1), &[]).finding, Finding::Missing);
    assert!(try_claim("measured = { kernels = [], at_least = 1 }").is_err());
}

#[test]
fn frames_that_a_wire_hands_over_late_may_have_been_spared_and_were_not_lost_by_it() {
    let criterion = "lost = { of = { method = 'a' }, paper = 0.02, side = 'at-least' }";
    let found = |instrument: &str, processors: u32| {
        let mut one = losing("a", 1000, 50);
        one.condition.instrument = instrument.to_owned();
        one.ledger.late = 40;
        let mut result = result("s", vec![one]);
        result.environment.processors = processors;
        decide(criterion, &[result])
    };
    let wire = found("wire", 1);
    assert_eq!((wire.finding, wire.estimate.unwrap().high > 0.09), (Finding::Within, true), "{wire:?}");
    // Elsewhere the sender was late, and frames were denser afterwards; or another processor could work meanwhile.
    assert_eq!(found("probe", 1).finding, Finding::Unclear);
    assert_eq!(found("wire", 2).finding, Finding::Unclear);
}

use super::{
    super::definition::{Kind, Study},
    measured::{point, statistic},
    *,
};
use canter_cli::terminal::{COLUMNS_MAX, Ink};
use canter_io::method::ReceiveMethod;
use canter_measure::result::{Curve, Environment, Latency, ResultFile, SCHEMA, Series, Stage, Stages};
use std::fs;

fn result(medians: &[(&str, u64)]) -> ResultFile {
    let series = medians.iter().map(|(method, p50)| Series {
        method: (*method).to_owned(),
        latency_ns: Some(Latency { count: 100, buckets: vec![[*p50, 100]], ..Latency::default() }),
        ..Series::default()
    });
    ResultFile {
        schema: SCHEMA,
        study: "x".to_owned(),
        title: "Latency".to_owned(),
        command: String::new(),
        environment: Environment { kernel: "6.12.117-amd64 #1".to_owned(), ..Environment::default() },
        series: series.collect(),
    }
}

fn measured(boots: Vec<ResultFile>) -> Measured {
    Measured::of_results(boots).remove(0)
}

fn ceiling(text: &str) -> Ceiling {
    ceilings(&format!("[[ceiling]]\nstudy = 'x'\n{text}")).remove(0)
}

fn ceilings(text: &str) -> Vec<Ceiling> {
    Ceiling::of_text(text).unwrap_or_else(|why| panic!("{why}: {text}"))
}

/// The verdict of `b`'s ceiling of 1.5 to 1.6 times `a`.
fn verdict(boots: &[u64]) -> Verdict {
    let ceiling = ceiling("method = 'b'\nfigure = 'p50'\nover = 'a'\nreached = 1.5\nspread = 0.05");
    let boots = boots.iter().map(|&p50| result(&[("a", 100), ("b", p50)]));
    ceiling.check(&measured(boots.collect())).verdict(&ceiling)
}

#[test]
fn every_ceiling_is_of_a_method_that_its_study_measures() {
    let all = Ceiling::all().unwrap_or_else(|failure| panic!("{failure}"));
    assert!(!all.is_empty());
    for ceiling in all {
        assert!(ceiling.reached > 0.0 && ceiling.spread >= 0.0, "{ceiling:?}");
        // A bench is no study: its table says at the run what it has.
        let Ok(study) = Study::find(&ceiling.study) else { continue };
        let limit = ceiling.limit.as_ref();
        let methods =
            [Some(&ceiling.method), ceiling.over.as_ref(), limit.and_then(|one| one.method.as_ref())];
        for method in methods.into_iter().flatten() {
            let measures = match &study.kind {
                Kind::Latency(plan) => plan.methods.contains(method),
                Kind::Throughput(plan) => plan.methods.contains(method),
                Kind::Syscalls(_) => method.parse::<ReceiveMethod>().is_ok(),
                _ => false,
            };
            assert!(measures, "{method}: {ceiling:?}");
        }
        let figures = [Some(&ceiling.figure), limit.and_then(|one| one.figure.as_ref())];
        let is_known = |figure: &String| statistic(figure).is_ok() || point(figure).is_some();
        assert!(figures.into_iter().flatten().all(is_known), "{ceiling:?}");
        assert!(ceiling.kernels.iter().all(|kernel| study.lab.kernels.contains(kernel)), "{ceiling:?}");
    }
}

#[test]
fn statistics_of_one_method_with_different_rules_are_compared() {
    let mut result = result(&[("a", 1000), ("a", 1040), ("b", 7), ("a", 1100)]);
    for (series, rules) in result.series.iter_mut().zip(["all", "sff=80", "sff=80", "crc8"]) {
        rules.parse::<Rules>().expect("they are rules").mark(&mut series.condition);
    }
    let measured = measured(vec![result]);
    let today = |line: &str| {
        let text = format!("method = 'a'\nfigure = 'p50'\n{line}\nreached = 1.0\nspread = 0.0");
        ceiling(&text).check(&measured).today
    };
    assert_eq!(today("rules = 'sff=80'\nover_rules = 'all'"), Ok(1.04));
    assert_eq!(today("rules = 'crc8'\nabove_rules = 'sff=80'"), Ok(60.0));
    assert_eq!(today("rules = 'sff=81'\nover_rules = 'all'"), Err("no such series".to_owned()));
    let unknown =
        "[[ceiling]]\nstudy = 'x'\nmethod = 'a'\nfigure = 'p50'\nrules = 'rain'\nreached = 1.0\nspread = 0.0";
    assert!(Ceiling::of_text(unknown).is_err());
}

#[test]
fn a_figure_at_a_place_is_a_point_of_the_curve_of_that_quantity() {
    let mut result = result(&[("a", 0), ("a", 0)]);
    for (series, quantity) in result.series.iter_mut().zip(["memory", "cost of a frame"]) {
        let points = vec![[1, quantity.len() as u64], [20, 3 * quantity.len() as u64]];
        series.curve = Some(Curve { quantity: quantity.to_owned(), points, ..Curve::default() });
    }
    let measured = measured(vec![result]);
    let today = |figure: &str, over: &str| {
        let text =
            format!("method = 'a'\nfigure = '{figure}'\nover_figure = '{over}'\nreached = 1.0\nspread = 0.0");
        ceiling(&text).check(&measured).today
    };
    assert_eq!(today("cost of a frame at 20", "cost of a frame at 1"), Ok(3.0));
    assert_eq!(today("memory at 20", "cost of a frame at 20"), Ok(0.4));
    for figure in ["cost of a frame at 5", "cost at 20"] {
        assert_eq!(today(figure, "memory at 1"), Err("no such point of a curve".to_owned()));
    }
}

#[test]
fn a_ceiling_applies_to_the_kernels_that_it_names() {
    let text = "method = 'a'\nfigure = 'p50'\nover = 'b'\nreached = 1.5\nspread = 0.0\n";
    let some = ceiling(&format!("{text}kernels = ['6.12-rt', '6.1']"));
    let applies = |kernel: &str| some.is_for(kernel);
    assert!(
        applies("6.12.117-rt-amd64 #1 SMP PREEMPT_RT Debian")
            && applies("6.1.0-56-amd64 #1 SMP PREEMPT_DYNAMIC")
    );
    assert!(
        !applies("6.12.117-amd64 #1 SMP PREEMPT_DYNAMIC") && !applies("6.1.0-56-rt-amd64 #1 SMP PREEMPT_RT")
    );
    assert!(ceiling(text).is_for("7.2.0"));
}

#[test]
fn the_margin_is_twice_the_spread_over_boots_and_at_least_a_hundredth() {
    let at_most = |spread: &str| {
        ceiling(&format!("method = 'a'\nfigure = 'p50'\nreached = 200.0\nspread = {spread}")).at_most()
    };
    assert_eq!(at_most("30.0"), 260.0);
    assert_eq!(at_most("0.5"), 202.0);
}

#[test]
fn a_ceiling_is_kept_up_to_its_bound_and_exceeded_above() {
    assert_eq!(verdict(&[160]), Verdict::Kept);
    assert_eq!(verdict(&[161]), Verdict::Exceeded);
    assert_eq!(verdict(&[140]), Verdict::Kept);
    assert_eq!(verdict(&[139]), Verdict::Lower);
}

#[test]
fn the_median_of_the_boots_counts_and_their_range_is_the_spread() {
    assert_eq!(verdict(&[150, 190, 158]), Verdict::Kept);
    assert_eq!(verdict(&[150, 190, 162]), Verdict::Exceeded);
    assert_eq!(median(vec![4.0, 1.0, 3.0, 2.0]), Some(2.5));
    assert_eq!((spread(&[4.0, 1.0, 3.0]), spread(&[])), (3.0, 0.0));
}

#[test]
fn a_missing_statistic_exceeds_its_ceiling() {
    let ceiling = ceiling("method = 'a'\nfigure = 'p50'\nover = 'b'\nreached = 1.5\nspread = 0.0");
    let comparison = Comparison::of_measured(&[ceiling], &[measured(vec![result(&[("a", 150)])])]);
    assert!(!comparison.is_kept());
    let text = comparison.text(Ink::none());
    assert!(text.contains("MISSING (no such series)"), "{text}");
}

#[test]
fn a_limit_is_a_number_another_figure_or_the_stages_of_one() {
    let mut result = result(&[("a", 500), ("b", 1000)]);
    let stages = [("driver", 100), ("CAN core", 50), ("socket", 350)].map(|(name, ns)| Stage {
        name: name.to_owned(),
        median_frame_ns: ns,
        ..Stage::default()
    });
    result.series[0].stages = Some(Stages { stages: stages.to_vec(), ..Stages::default() });
    let measured = measured(vec![result]);
    let distance = |limit: &str| {
        let text = format!(
            "method = 'b'\nfigure = 'p50'\nover = 'a'\nreached = 1.0\nspread = 0.0\nlimit = 'it'\n\
             [limit]\nit = {{ {limit}, why = '' }}"
        );
        ceiling(&text).check(&measured).distance()
    };
    assert_eq!(distance("number = 1.0"), Some(2.0));
    assert_eq!(distance("number = 0.0"), None);
    assert_eq!(distance("method = 'a'"), Some(2.0));
    let part = distance("method = 'a', stages = ['driver', 'CAN core']").expect("it is known");
    assert!((part - 2.0 / 0.3).abs() < 1e-9, "{part}");
}

#[test]
fn a_limit_without_a_row_is_refused() {
    let text =
        "[[ceiling]]\nstudy = 'x'\nmethod = 'a'\nfigure = 'p50'\nreached = 1.0\nspread = 0.0\nlimit = 'y'";
    assert_eq!(Ceiling::of_text(text).err().as_deref(), Some("no limit y"));
}

#[test]
fn the_table_has_results_and_benches_and_names_what_was_not_measured() {
    let folder = tempfile::tempdir().expect("a folder");
    result(&[("can-gw", 100), ("ring/spin+write", 150)])
        .save(&folder.path().join("x.boot1.json"))
        .expect("it saves");
    for (boot, ns) in [(1, 30), (2, 10), (3, 20)] {
        let table = format!("# Cost of a recording\nrecorder\tprogram\tcopy\ncanter\t{ns}\t5\n");
        fs::write(folder.path().join(format!("y.boot{boot}.tsv")), table).expect("it writes");
    }
    let why = "what copying the frame costs";
    let ceilings = ceilings(&format!(
        "limit.copy = {{ figure = 'copy', why = '{why}' }}
        ceiling = [
            {{ study = 'x', method = 'ring/spin+write', figure = 'p50', over = 'can-gw', reached = 1.5, spread = 0.0 }},
            {{ study = 'y', method = 'canter', figure = 'program', reached = 21.0, spread = 1.0, limit = 'copy' }},
            {{ study = 'z', method = 'a', figure = 'p50', reached = 1.0, spread = 0.0, kernels = ['6.1'] }},
        ]"
    ));
    let comparison =
        Comparison::of_all(&ceilings, folder.path()).unwrap_or_else(|failure| panic!("{failure}"));
    assert!(!comparison.is_kept(), "z was not measured");
    let text = comparison.text(Ink::none());
    assert!(text.contains("Latency (x): median, over can-gw\n  ring/spin+write "), "{text}");
    assert!(text.contains("Cost of a recording (y): program\n"), "{text}");
    assert!(text.contains(&format!("a {why}\n")), "{text}");
    assert!(
        text.contains("MISSING (not measured)") && text.contains("3 ceilings: 0 exceeded, 1 missing."),
        "{text}"
    );
    assert!(text.lines().all(|line| line.chars().count() <= COLUMNS_MAX + 40), "{text}");
    let rows = comparison.to_tsv();
    assert!(rows.contains("y\t\tcanter: program\t23\t20\t20\t5\t4.00\t\n"), "{rows}");
    assert!(rows.contains("z\t6.1\ta: median\t1\t\t0\t\t\tMISSING\n"), "{rows}");
    let medians = fs::read_to_string(folder.path().join("y.tsv")).expect("it is written");
    assert!(medians.ends_with("canter\t20\t5\n"), "{medians}");
}

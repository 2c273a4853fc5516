//! The result file: what is written, read again and refused.

use super::*;

fn example() -> ResultFile {
    let latency = Latency { count: 2, buckets: vec![[5, 1]; 11], ..Latency::default() };
    let series = Series { method: "read+write".into(), latency_ns: Some(latency), ..Series::default() };
    let none = Series::unavailable("can-gw", Condition::default(), "no CAP_NET_ADMIN");
    let environment = Environment { clock: ClockKind::Virtual, ..Environment::default() };
    let (study, title, command) = ("x".into(), "y".into(), "canter latency".into());
    ResultFile { schema: SCHEMA, study, title, command, environment, series: vec![series, none] }
}

#[test]
fn a_saved_result_loads_again() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let path = folder.path().join("new/deep/result.json");
    example().save(&path).expect("it saves");
    assert_eq!(ResultFile::load(&path).expect("it loads"), example());
    let files = fs::read_dir(path.parent().expect("it has a folder")).expect("it is there");
    assert_eq!(files.count(), 1, "nothing unfinished is left behind");
}

#[test]
fn buckets_share_lines_and_fields_do_not() {
    let json = example().to_json();
    assert!(json.contains("[5,1],[5,1],[5,1]"), "{json}");
    assert!(json.contains("\n  \"study\": \"x\",\n"), "{json}");
    assert!(json.lines().all(|line| line.len() < 120), "{json}");
}

#[test]
fn an_error_names_the_file_and_the_way_out() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let path = folder.path().join("it.json");
    for (text, expected) in [
        ("", "is empty (measure it again)"),
        ("{", "is cut off at line 1"),
        ("{\"schema\": 1, \"series\": [\n{\"method\": \"can-", "is cut off at line 2"),
        ("<!doctype html>", "not a result file of canter"),
        ("{\"schema\": 1, \"series\": [NaN]}", "not a result file of canter"),
        ("{\"schema\": 1}", "not a result file of canter"),
        ("{\"schema\": 99, \"series\": []}", "schema 99, this canter reads 1 (use a newer canter)"),
        ("{\"schema\": 0, \"series\": []}", "measure it again"),
        ("{\"schema\": 1, \"series\": []}", "a damaged result file"),
    ] {
        fs::write(&path, text).expect("it writes");
        let error = ResultFile::load(&path).expect_err(text).to_string();
        assert!(error.starts_with(&path.display().to_string()) && error.contains(expected), "{error}");
    }
    let error = ResultFile::load(Path::new("/nowhere/it.json")).expect_err("no file").to_string();
    assert!(error.starts_with("/nowhere/it.json: read: no such file"), "{error}");
}

#[test]
fn the_documented_example_has_the_written_format() {
    let page = include_str!("../../../../docs/result.md");
    let example = page.split("```json\n").nth(1).and_then(|rest| rest.split("```").next());
    let example = example.expect("docs/result.md has an example");
    let result: ResultFile = serde_json::from_str(example).expect("it is a result file");
    assert_eq!(result.to_json(), example);
    assert!(result.series[0].ledger.balances());
}

#[test]
fn every_field_is_documented() {
    let page = include_str!("../../../../docs/result.md");
    // The fields of a flattened one are written in its place.
    let fields = include_str!("../result.rs").replace("#[serde(flatten)]\n    pub ", "");
    let lines = fields.lines().chain(include_str!("../work.rs").lines());
    let fields = lines.filter_map(|line| line.trim().strip_prefix("pub ")?.split_once(": "));
    for (field, _) in fields.filter(|(field, _)| !field.contains(['(', ' '])) {
        assert!([".", "`"].iter().any(|end| page.contains(&format!("{field}{end}"))), "{field}");
    }
}

#[test]
fn numbers_that_contradict_each_other_are_a_fault() {
    let latency = Latency {
        count: 2,
        min: 5,
        p50: 5,
        p90: 7,
        p99: 7,
        p999: 7,
        max: 7,
        negative: 0,
        buckets: vec![[5, 1], [7, 1]],
    };
    let ledger = Ledger { sent: 2, received: 2, ..Ledger::default() };
    let fault = |latency: Latency, ledger| {
        Series { latency_ns: Some(latency), ledger, ..Series::default() }.fault().unwrap_or_default()
    };
    assert_eq!(fault(latency.clone(), ledger), "");
    assert!(fault(latency.clone(), Ledger { received: 1, ..ledger }).contains("1 missing"));
    assert!(fault(latency.clone(), Ledger { received: 3, ..ledger }).contains("1 too many"));
    let lost = Lost { meter: 1, ..Lost::default() };
    assert!(fault(latency.clone(), Ledger { sent: 3, lost, ..ledger }).contains("the meter itself"));
    assert!(fault(Latency { count: 3, ..latency.clone() }, ledger).contains("contain 2"));
    assert!(fault(Latency { p50: 6, p90: 5, ..latency.clone() }, ledger).contains("ascend"));
    assert!(fault(Latency { buckets: vec![[7, 1], [5, 1]], ..latency }, ledger).contains("ascend"));
    let timeline = Timeline { slot_ns: 1, slots: vec![[0, 1, 9, 8, 0].into()], load: Vec::new() };
    assert!(Series { timeline: Some(timeline), ..Series::default() }.fault().is_some());
}

#[test]
fn late_frames_are_counted_against_a_share_of_those_that_were_sent() {
    let late =
        |late| Series { ledger: Ledger { sent: 3000, late, ..Ledger::default() }, ..Series::default() };
    assert_eq!(late(3).lateness(1000), None);
    assert!(late(4).lateness(1000).is_some_and(|why| why.contains("4 of 3000")));
    assert_eq!(late(150).lateness(20), None);
}

#[test]
fn a_ledger_balances_when_every_frame_is_accounted_for() {
    let lost = Lost { socket: 2, unaccounted: 1, ..Lost::default() };
    assert!(Ledger { sent: 10, received: 7, lost, ..Ledger::default() }.balances());
    assert!(!Ledger { sent: 10, received: 8, lost, ..Ledger::default() }.balances());
    let absurd = Lost { socket: u64::MAX, qdisc: u64::MAX, ..Lost::default() };
    assert!(!Ledger { sent: 1, received: u64::MAX, lost: absurd, ..Ledger::default() }.balances());
}

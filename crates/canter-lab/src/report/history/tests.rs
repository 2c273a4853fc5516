use super::*;
use canter_cli::{terminal::Ink, units};
use canter_measure::result::{Condition, Cost, Environment, Latency};

/// A kernel's result: the gateway can-gw with this median, and read with this cost.
fn result(release: &str, gateway: u64, read: u64) -> ResultFile {
    let environment = Environment {
        kernel: format!("{release} #1 SMP"),
        clock: ClockKind::Virtual,
        ..Environment::default()
    };
    let [min, p50, p90, p99, p999, max] = [gateway; 6];
    let buckets = vec![[gateway, 400]];
    let latency = Latency { count: 400, min, p50, p90, p99, p999, max, negative: 0, buckets };
    let gateway = Series { method: "can-gw".into(), latency_ns: Some(latency), ..Series::default() };
    let cost = Cost { per_frame: read, delivery: 500, ..Cost::default() };
    let condition = Condition { direction: "receive".into(), batch: 1, ..Condition::default() };
    let read = Series { method: "read".into(), cost_ns: Some(cost), condition, ..Series::default() };
    let [study, title, command] = [const { String::new() }; 3];
    ResultFile { schema: 1, study, title, command, environment, series: vec![gateway, read] }
}

fn history(results: &[ResultFile]) -> failure::Result<History> {
    History::from_results(results, Bound(0.05))
}

#[test]
fn kernels_are_in_the_order_of_their_releases_and_a_step_is_above_the_bound() {
    let results = [
        result("7.3.4+deb13-amd64", 9000, 1300),
        result("6.1.0-56-amd64", 7500, 1200),
        result("6.12.117+deb12-amd64", 7600, 1210),
        result("6.12.117+deb12-rt-amd64", 30000, 2000),
    ];
    let history = history(&results).unwrap();
    let names: Vec<_> = history.flavours[0].kernels.iter().map(|kernel| kernel.name.as_str()).collect();
    assert_eq!(names, ["6.1", "6.12", "7.3"]);
    let steps: Vec<_> = history
        .steps()
        .map(|step| {
            (
                step.row.label.as_str(),
                step.before.0.name.as_str(),
                step.after.1,
                (step.change * 1000.0).round(),
            )
        })
        .collect();
    assert_eq!(steps, [("can-gw", "6.12", 9000, 184.0), ("read", "6.12", 1300, 74.0)]);
    let text = text(&history, about(&results), Ink::none());
    let slower = format!("▲{}", units::grouped(9000_u64));
    assert!(text.contains(&slower) && text.contains("2 steps above 5 %:"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn repeats_of_a_kernel_are_their_median_and_a_gap_is_stepped_over() {
    let mut results = vec![
        result("6.1.0", 100, 1000),
        result("6.1.0", 300, 1000),
        result("6.1.0", 110, 1000),
        result("6.12.1", 0, 1000),
        result("7.3.4", 112, 1000),
    ];
    results[3].series.remove(0);
    let history = history(&results).unwrap();
    let row = &history.flavours[0].groups[0].rows[0];
    let ns: Vec<_> = row.cells.iter().map(|cell| cell.map(|cell| cell.ns)).collect();
    assert_eq!(ns, [Some(110), None, Some(112)]);
    assert_eq!(history.steps().count(), 0);
}

#[test]
fn two_kernels_of_a_series_have_their_versions_as_names() {
    let history = history(&[result("6.12.94+deb12", 1, 1), result("6.12.117+deb12", 1, 1)]).unwrap();
    let names: Vec<_> = history.flavours[0].kernels.iter().map(|kernel| kernel.name.as_str()).collect();
    assert_eq!(names, ["6.12.94", "6.12.117"]);
}

#[test]
fn one_kernel_or_two_clocks_are_no_history() {
    let message = |results: &[ResultFile]| history(results).err().unwrap().message;
    assert!(message(&[result("6.1.0", 1, 1)]).contains("results of two kernels"));
    let mut results = [result("6.1.0", 1, 1), result("7.3.4", 1, 1)];
    results[0].environment.clock = ClockKind::Real;
    assert!(message(&results).contains("different clocks"));
}

#[test]
fn gateways_come_before_calls() {
    let mut results = vec![
        result("6.1.0", 0, 1000),
        result("6.12.1", 0, 1000),
        result("6.1.0", 100, 0),
        result("6.12.1", 100, 0),
    ];
    results[..2].iter_mut().for_each(|calls| drop(calls.series.remove(0)));
    results[2..].iter_mut().for_each(|gateways| gateways.series.truncate(1));
    let groups = &history(&results).unwrap().flavours[0].groups;
    let headings: Vec<_> = groups.iter().map(|group| group.heading.split(',').next().unwrap()).collect();
    assert_eq!(headings, ["latency", "receive", "receive"]);
}

#[test]
fn a_percentile_has_a_history_when_enough_frames_lie_above_it() {
    let mut results = [result("6.1.0", 100, 1000), result("6.12.1", 100, 1000)];
    let headings = |results: &[ResultFile]| -> Vec<String> {
        history(results).unwrap().flavours.remove(0).groups.into_iter().map(|group| group.heading).collect()
    };
    assert!(!headings(&results).iter().any(|heading| heading.contains("99th")));
    for result in &mut results {
        let latency = result.series[0].latency_ns.as_mut().unwrap();
        (latency.count, latency.buckets) = (4000, vec![[100, 4000]]);
    }
    assert!(headings(&results).iter().any(|heading| heading.contains("99th")));
}

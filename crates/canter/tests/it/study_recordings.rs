//@ machine: --bus wire --clock virtual
//@ commands: capture
//! Studies of recorders: what they record of full buses, and the highest rate that they keep up with.

use crate::{
    study::{inside, study_of},
    testbed::{alone, series},
};
use serde_json::Value;

#[test]
#[ignore = "needs the lab: make test ONLY=study_recordings"]
fn a_recorder_of_two_full_buses_has_every_frame_and_that_is_its_highest_rate() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let recording = |lines: &str| {
        let common = "buses = 2\nframes = 400\nmemory = 5\nrecorders = [\"canter\"]\n";
        let plan = format!("[recording]\n{common}{lines}");
        series(&inside(&study_of(&folder, "recording", "wire", &plan)))
    };
    let full = recording("lens = [8, 0]\nbitrates = [1_000_000]\n");
    let told: Vec<_> =
        full.iter().map(|one| (&one["condition"]["len"], &one["ledger"]["received"])).collect();
    assert_eq!(told, [(&8.into(), &800.into()), (&0.into(), &800.into())]);
    assert!(full.iter().all(|one| one["ledger"]["lost"]["socket"] == 0), "{full:#?}");

    let searched = recording("lens = [8]\n");
    let point =
        |one: &Value| one["curve"]["points"][0].as_array().unwrap().iter().map(Value::as_u64).collect();
    let [rate, cost, timers] = [0, 1, 2].map(|at| -> Vec<_> { point(&searched[at]) });
    // A frame of 8 random bytes takes 111 bits and those that are stuffed.
    assert!(rate[0] == Some(2) && rate[1].is_some_and(|rate| (7_000..9_000).contains(&rate)), "{rate:?}");
    assert!(cost[1].is_some_and(|ns| (1_000..50_000).contains(&ns)), "{cost:?}");
    assert!(timers[1].is_some_and(|ns| (100..5_000).contains(&ns)), "{timers:?}");
}

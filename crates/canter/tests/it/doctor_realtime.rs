//@ machine: --kernel 6.12-rt
//@ commands: doctor
//! What `canter doctor` finds on a PREEMPT_RT kernel alone.

use crate::{
    doctor::{findings, healthy_cards},
    testbed::{DEADLINE, alone, canter, output},
};
use std::fs;

#[test]
#[ignore = "needs the lab: make test ONLY=doctor_realtime"]
fn on_a_realtime_kernel_equal_priorities_and_throttling_are_found() {
    assert!(
        fs::read_to_string("/proc/version").unwrap().contains("PREEMPT_RT"),
        "not the kernel of this test"
    );
    let _alone = alone();
    healthy_cards();
    let ended = canter(&["doctor", "can0", "--json", "-"]).ended(DEADLINE);
    let found = findings(&ended);
    let expected = ["thread-priority", "realtime-throttling"];
    assert_eq!(found.iter().map(|(check, ..)| check.as_str()).collect::<Vec<_>>(), expected, "{ended:?}");
    assert_eq!(ended.code, Some(0), "nothing is lost: {ended:?}");
    // What it says to type helps.
    for finding in ended.json()["findings"].as_array().unwrap() {
        output("sh", &["-c", finding["remedy"].as_str().unwrap()]);
    }
    let ended = canter(&["doctor", "can0", "--json", "-"]).ended(DEADLINE);
    assert_eq!(findings(&ended), [], "{ended:?}");
}

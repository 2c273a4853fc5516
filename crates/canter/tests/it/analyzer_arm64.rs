//@ machine: host --ignored
//@ commands: latency
//@ needs: built-arm64
//@ in: all
//@ limit: 20m
//! The analyzer's truth on an arm64 board: a planted delay reads as what it is, faults are counted as the clock counts
//! them, the account closes, and costs are those of the processor.

use crate::{
    analyzer::{compile_by, have_the_stages_of_their_ways, only_series, own_median, stage},
    analyzer_cost::{GATEWAY_ON_SECOND, json, row, work},
    lab::{ended, lab},
};
use std::{fs, path::Path};

const BOARD: [&str; 6] = ["--arch", "arm64", "--clock", "virtual", "--timeout", "15m"];
const CARDS: &str = "for each in 0 1 2 3 4; do ip link set can$each up type can bitrate 1000000; done";
const MEASURE: &str = "canter latency --quiet --instrument analyzer --send can0 --routed can2 --json -";

/// Compiles a program that needs no library of the guest, and is at an address of its own.
fn compile(source: &str, option: &str, program: &Path) {
    compile_by("aarch64-linux-gnu-gcc", source, &["-static-pie", option], program);
}

/// What a command prints on the board.
#[track_caller]
fn on_board(folder: &Path, options: &[&str], command: &str) -> String {
    let options = [&BOARD, options].concat();
    ended(lab(folder, &options, &[command]).output().unwrap(), 0).0
}

#[test]
#[ignore = "starts guests: make test-all ONLY=analyzer_arm64"]
fn a_planted_delay_of_100_instructions_reads_as_100() {
    let folder = tempfile::tempdir().unwrap();
    let [without, with] = [0, 100].map(|instructions| {
        compile("delayed.c", &format!("-DDELAY={instructions}"), &folder.path().join("delayed"));
        let asleep = "until [ $(cut -d' ' -f3 /proc/$!/stat) = S ]; do sleep 0.01; done";
        let command = format!(
            "{CARDS}; ./delayed can3 can4 2> said & until grep -q ready said; do sleep 0.01; done; {asleep}; {MEASURE} --count 50"
        );
        only_series(&json(&on_board(folder.path(), &["--analyzer"], &command)))
    });
    assert_eq!(own_median(&with) - own_median(&without), 100, "{without} {with}");
    assert_eq!(stage(&with, "gateway's own") - stage(&without, "gateway's own"), 100, "{with}");
}

#[test]
#[ignore = "starts guests: make test-all ONLY=analyzer_arm64"]
fn an_instruction_that_a_fault_breaks_off_is_counted_once_and_no_other_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    compile("faults.c", "-Wall", &folder.path().join("faults"));
    // The measurement gives the analyzer the kernel's functions.
    let command = format!(
        "{CARDS}; {MEASURE} --count 1 --through can3,can4 --method can-gw > measured && ./faults /run/canter-lab/analyzer"
    );
    assert_eq!(on_board(folder.path(), &["--analyzer"], &command), "drift 0\n".repeat(5));
}

#[test]
#[ignore = "starts guests: make test-all ONLY=analyzer_arm64"]
fn a_way_through_the_kernel_has_no_process_and_one_through_user_space_has_all_stages() {
    let folder = tempfile::tempdir().unwrap();
    let [kernel, user] = ["can-gw", "read+write"].map(|method| {
        let command = format!("{CARDS}; {MEASURE} --count 50 --through can3,can4 --method {method}");
        only_series(&json(&on_board(folder.path(), &["--analyzer"], &command)))
    });
    have_the_stages_of_their_ways(&kernel, &user);
    assert!(own_median(&user) > own_median(&kernel));
}

#[test]
#[ignore = "starts guests: make test-all ONLY=analyzer_arm64"]
fn a_processor_that_does_not_halt_because_an_interrupt_is_pending_harms_no_series() {
    let folder = tempfile::tempdir().unwrap();
    let command = format!(
        "{CARDS}; {GATEWAY_ON_SECOND}; {MEASURE} --count 400 --cpu 0 --gateway-cpu 1 --gap 200us --through can3,can4 --method can-gw,read+write,ring+write"
    );
    let result = json(&on_board(folder.path(), &["--analyzer", "--cpus", "2"], &command));
    let series = result["series"].as_array().unwrap();
    let found: Vec<_> = series.iter().map(|one| (&one["unavailable"], &one["ledger"]["received"])).collect();
    assert!(found.len() == 3 && found.iter().all(|found| *found == (&"".into(), &400.into())), "{found:?}");
}

#[test]
#[ignore = "starts guests: make test-all ONLY=analyzer_arm64"]
fn costs_that_are_known_beforehand_are_counted_as_what_they_are() {
    let folder = tempfile::tempdir().unwrap();
    compile("costs.c", "-Wall", &folder.path().join("costs"));
    const ROUNDS: u64 = 200;
    // The first cache has 512 lines of 64 bytes: a walk of twice as many finds none that it has seen the round before.
    let lines = 1024;
    let options = ["--profile", "--quiet", "--cost", "cortex-a72", "--json", "costs.json"];
    on_board(folder.path(), &options, &format!("./costs {lines} {ROUNDS}"));
    let profile = json(&fs::read_to_string(folder.path().join("costs.json")).unwrap());
    let walk = row(&profile, "programs", "walk [costs]");
    let (missed, accesses) = (work(&walk, "data_misses"), lines * ROUNDS);
    assert!((accesses..accesses + accesses / 100).contains(&missed), "{missed} of {accesses} missed");
    assert!(work(&walk, "memory") < 2 * lines, "{walk}");
    let entered = work(&row(&profile, "functions", "vectors:el0t_64_sync"), "entries");
    assert!((ROUNDS..5 * ROUNDS).contains(&entered), "{entered}"); // with those of the shell
}

//@ machine: host --ignored
//@ commands: latency
//@ parts: 2
//! What the analyzer costs the guest: nothing. And what `canter lab --analyzer` refuses.

use crate::{
    analyzer::compile,
    lab::{ended, lab},
};
use serde_json::Value;
use std::{fs, process::Command};

const MEASURE: &str = "for each in 0 1 2 3 4; do ip link set can$each up type can bitrate 500000; done
canter latency --quiet --send can0 --direct can1 --routed can2 --through can3,can4 --method can-gw --count 200 --json -";

/// Gives the interrupts of the gateway's cards to the second processor.
pub const GATEWAY_ON_SECOND: &str = "for irq in $(grep -E 'can[34]' /proc/interrupts | cut -d: -f1); do echo 2 > /proc/irq/$irq/smp_affinity; done";

#[track_caller]
pub fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The row of a profile's list with this name.
#[track_caller]
pub fn row(profile: &Value, list: &str, name: &str) -> Value {
    let mut rows = profile[list].as_array().unwrap().iter();
    rows.find(|row| row["name"] == name).unwrap_or_else(|| panic!("{name}: {profile}")).clone()
}

/// A count of what makes a row's time.
#[track_caller]
pub fn work(row: &Value, count: &str) -> u64 {
    row["work"][count].as_u64().unwrap()
}

#[test]
#[ignore = "starts guests: make test ONLY=analyzer_cost"]
fn medians_with_and_without_the_analyzer_are_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let [without, with] = [&[][..], &["--profile", "--quiet"]].map(|options| {
        let options = [&["--clock", "virtual"], options].concat();
        let (stdout, _) = ended(lab(folder.path(), &options, &[MEASURE]).output().unwrap(), 0);
        json(&stdout)["series"][0]["latency_ns"]["p50"].as_u64().unwrap()
    });
    // Figures are whole ns.
    let bound = (without / 10_000).max(1);
    assert!(without.abs_diff(with) <= bound, "{without} ns without, {with} ns with");
}

#[test]
#[ignore = "starts guests: make test ONLY=analyzer_cost"]
fn a_meter_that_sleeps_on_another_processor_is_not_on_the_way_of_a_frame() {
    let folder = tempfile::tempdir().unwrap();
    let measure = format!(
        "for each in 0 2 3 4; do ip link set can$each up type can bitrate 1000000; done
        {GATEWAY_ON_SECOND}
        canter latency --quiet --instrument analyzer --send can0 --routed can2 --through can3,can4 --method ring/spin+ring \
            --cpu 0 --gateway-cpu 1 --gap 200us --count 50 --json -"
    );
    let options = ["--analyzer", "--clock", "virtual", "--cpus", "2"];
    let (stdout, _) = ended(lab(folder.path(), &options, &[&measure]).output().unwrap(), 0);
    let result = json(&stdout);
    let stages = result["series"][0]["stages"]["stages"].as_array().unwrap();
    let stage =
        |name: &str| stages.iter().find(|one| one["name"] == name).unwrap()["median_frame_ns"].as_u64();
    assert!(stage("instrument") > Some(2500), "the meter did not sleep on the median frame's way: {result}");
    assert_eq!([stage("scheduler"), stage("idle")], [Some(0); 2], "{result}");
}

#[test]
#[ignore = "starts guests: make test ONLY=analyzer_cost"]
fn a_profile_names_the_functions_of_a_command_keeps_the_analyzer_and_two_show_their_difference() {
    let folder = tempfile::tempdir().unwrap();
    let profile = |file: &str, frames: u32| {
        let command = format!(
            "ip link add vcan7 type vcan && ip link set vcan7 up &&
             for each in $(seq {frames}); do cansend vcan7 123#1122; done; echo sent
             for each in 0 2; do ip link set can$each up type can bitrate 500000; done
             canter latency --instrument analyzer --send can0 --routed can2 2> refused; exit $((3 + $?))"
        );
        let options = ["--profile", "--clock", "virtual", "--json", file];
        let (stdout, stderr) = ended(lab(folder.path(), &options, &[&command]).output().unwrap(), 7);
        assert_eq!(stdout, "sent\n");
        assert!(stderr.lines().all(|line| line.chars().count() <= 80), "{stderr}");
        let refused = fs::read_to_string(folder.path().join("refused")).unwrap();
        let why = "uses it (canter lab --profile? --analyzer leaves it to a measurement)\n";
        assert!(refused.starts_with("canter: analyzer: process ") && refused.ends_with(why), "{refused}");
        json(&fs::read_to_string(folder.path().join(file)).unwrap())
    };
    let [few, many] = [profile("few.json", 1), profile("many.json", 3)];
    let count = |profile: &Value, list: &str, name: &str| -> u64 {
        let rows = profile[list].as_array().unwrap();
        rows.iter().find(|row| row["name"] == name).map_or(0, |row| row["instructions"].as_u64().unwrap())
    };
    for name in ["can_send [can]", "raw_sendmsg [can_raw]", "vcan_tx [vcan]"] {
        let [once, thrice] = [&few, &many].map(|profile| count(profile, "functions", name));
        assert!(once > 0 && thrice == 3 * once, "{name}: {once}, {thrice}");
    }
    let programs = few["programs"].as_array().unwrap();
    let in_bash = |row: &Value| row["name"].as_str().unwrap().ends_with(" [bash]");
    assert!(programs.iter().any(in_bash), "no function of bash: {few}");
    assert!(count(&few, "stages", "CAN core") >= count(&few, "functions", "can_send [can]"));
    let compare = [env!("CARGO_BIN_EXE_canter"), "report", "--functions", "few.json", "many.json"];
    let output = Command::new(compare[0]).args(&compare[1..]).current_dir(folder.path()).output();
    let (stdout, _) = ended(output.unwrap(), 0);
    assert!(stdout.contains("all") && stdout.contains('+'), "{stdout}");
}

#[test]
#[ignore = "starts guests: make test ONLY=analyzer_cost"]
fn costs_that_are_known_beforehand_are_counted_as_what_they_are() {
    let folder = tempfile::tempdir().unwrap();
    compile("costs.c", "-Wall", &folder.path().join("costs"));
    const ROUNDS: u64 = 200;
    let walked = |lines: u64, board: &str| {
        let options = ["--profile", "--clock", "virtual", "--cost", board, "--json", "costs.json"];
        let command = format!("./costs {lines} {ROUNDS}");
        let (_, stderr) = ended(lab(folder.path(), &options, &[&command]).output().unwrap(), 0);
        assert!(stderr.contains(&format!(" on {board} by the model")), "{stderr}");
        assert!(stderr.lines().all(|line| line.chars().count() <= 80), "{stderr}");
        let profile = json(&fs::read_to_string(folder.path().join("costs.json")).unwrap());
        assert_eq!(profile["board"], board);
        profile
    };
    // The desktop's first cache has 768 lines, and a walk of twice as many finds none that it has seen the round before. Its
    // second cache has them all.
    let large = walked(1536, "desktop");
    let walk = row(&large, "programs", "walk [costs]");
    let accesses = 1536 * ROUNDS;
    let missed = work(&walk, "data_misses");
    assert!((accesses..accesses + accesses / 100).contains(&missed), "{missed} of {accesses} missed");
    assert!(work(&walk, "memory") < 2 * 1536, "{walk}");
    // Interrupts take lines of a walk that fits.
    let small = walked(384, "desktop");
    let missed = work(&row(&small, "programs", "walk [costs]"), "data_misses");
    assert!(missed < 384 * ROUNDS / 20, "{missed} of {} missed", 384 * ROUNDS);
    // The MPC5200 has lines of 32 bytes, and no second cache.
    let without = row(&walked(1536, "mpc5200"), "programs", "walk [costs]");
    assert_eq!(work(&without, "memory"), work(&without, "data_misses") + work(&without, "code_misses"));

    assert_eq!(work(&row(&large, "programs", "write_port [costs]"), "registers"), ROUNDS);
    let entered = work(&row(&large, "functions", "entry_SYSCALL_64"), "entries");
    assert!((ROUNDS..5 * ROUNDS).contains(&entered), "{entered}"); // with those of the shell and the loader
}

#[test]
#[ignore = "starts guests: make test ONLY=analyzer_cost"]
fn a_gateways_way_on_a_board_is_in_the_result_and_the_latency_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let measure = "for each in 0 2 3 4; do ip link set can$each up type can bitrate 1000000; done
        canter latency --quiet --instrument analyzer --send can0 --routed can2 --through can3,can4 --method can-gw \
            --count 50 --json -";
    let series = |cost: &[&str]| {
        let options = [&["--analyzer", "--clock", "virtual"], cost].concat();
        let (stdout, _) = ended(lab(folder.path(), &options, &[measure]).output().unwrap(), 0);
        json(&stdout)["series"][0].clone()
    };
    let (without, with) = (series(&[]), series(&["--cost", "cortex-a72"]));
    assert_eq!(without["stages"]["model"], Value::Null);
    let median = |series: &Value| series["latency_ns"]["p50"].as_u64().unwrap();
    assert!(median(&without).abs_diff(median(&with)) < 20, "{without} {with}");
    let model = &with["stages"]["model"];
    let stages = model["stages"].as_array().unwrap();
    let own = stages.iter().filter(|stage| stage["name"] != "instrument");
    let sum = |count: &str| -> u64 { own.clone().map(|stage| stage[count].as_u64().unwrap()).sum() };
    assert_eq!(
        (&model["board"], sum("time_ns")),
        (&"cortex-a72".into(), model["median_frame_ns"].as_u64().unwrap())
    );
    // Its instructions are about those of the median frame, and a frame of a card is read and written through registers.
    assert!(sum("instructions").abs_diff(median(&with)) < median(&with) / 10, "{with}");
    assert!(sum("registers") > 10 && sum("code_misses") > 0 && sum("entries") > 0, "{model}");
}

#[test]
#[ignore = "starts guests: make test ONLY=analyzer_cost"]
fn a_machine_without_analyzer_says_which_one_has_it() {
    let folder = tempfile::tempdir().unwrap();
    let command = "canter latency --instrument analyzer --send can0 --routed can2";
    // Whether KVM works is asked only when nobody says what to use.
    let options = ["--accel", "tcg"];
    let (stdout, stderr) = ended(lab(folder.path(), &options, &[command]).output().unwrap(), 4);
    let wanted = "canter: analyzer: this machine has none (canter lab --analyzer --clock virtual has)\n";
    assert_eq!((stdout.as_str(), stderr.as_str()), ("", wanted));
}

#[test]
#[ignore = "starts guests: make test ONLY=analyzer_cost"]
fn the_analyzer_needs_the_virtual_clock_and_a_qemu_with_plugins() {
    let folder = tempfile::tempdir().unwrap();
    let (_, stderr) = ended(lab(folder.path(), &["--analyzer"], &["true"]).output().unwrap(), 2);
    assert!(stderr.contains("need --clock virtual"), "{stderr}");
    let (_, stderr) = ended(lab(folder.path(), &["--cost", "desktop"], &["true"]).output().unwrap(), 2);
    assert!(stderr.contains("--cost needs --analyzer or --profile"), "{stderr}");
    let programs = folder.path().join("bin");
    fs::create_dir(&programs).unwrap();
    let qemu = programs.join("qemu-system-x86_64");
    fs::write(&qemu, "#!/bin/sh\necho 'QEMU emulator version 7.2.22'\n").unwrap();
    fs::set_permissions(&qemu, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let path = std::env::join_paths(
        [programs].into_iter().chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    );
    let mut command = lab(folder.path(), &["--analyzer", "--clock", "virtual"], &["true"]);
    let (_, stderr) = ended(command.env("PATH", path.unwrap()).output().unwrap(), 4);
    assert_eq!(stderr, "canter: lab: analyzer: QEMU 7.2.22 is built without plugins (Debian's has them)\n");
}

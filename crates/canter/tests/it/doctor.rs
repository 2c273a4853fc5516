//@ machine: --bus wire
//@ commands: doctor generate latency wire
//! `canter doctor` in the lab: faults are planted one by one, and a healthy machine has none.

use crate::overrun;
use crate::testbed::{CARDS, DEADLINE, Ended, alone, canter, eventually, ip, output, start};
use std::fs;

const HEALTHY_QUEUE: &str = "300";
const PAGES: &str = "/proc/sys/vm/percpu_pagelist_high_fraction";

/// The machine and its cards as a careful engineer would set them.
pub fn healthy_cards() {
    fs::write(PAGES, "100000").unwrap();
    for card in CARDS {
        ip(&format!("link set {card} down"));
        ip(&format!("link set {card} up txqueuelen {HEALTHY_QUEUE} type can bitrate 1000000 one-shot off"));
    }
}

/// Writes a kernel setting, and writes it back when dropped.
struct Setting(&'static str, String);

impl Setting {
    fn change(path: &'static str, value: &str) -> Self {
        let before = fs::read_to_string(path).unwrap();
        fs::write(path, value).unwrap();
        Self(path, before.trim().to_owned())
    }
}

impl Drop for Setting {
    fn drop(&mut self) {
        fs::write(self.0, &self.1).unwrap();
    }
}

/// What `canter doctor --json -` found: check, thing and cost of each.
#[track_caller]
pub fn findings(ended: &Ended) -> Vec<(String, String, String)> {
    let report = ended.json();
    let text = |finding: &serde_json::Value, key: &str| finding[key].as_str().unwrap().to_owned();
    let findings = report["findings"].as_array().unwrap();
    for finding in findings {
        for key in ["evidence", "reason", "remedy"] {
            assert!(!text(finding, key).is_empty(), "{finding}");
        }
    }
    findings
        .iter()
        .map(|finding| (text(finding, "check"), text(finding, "thing"), text(finding, "cost")))
        .collect()
}

/// Examines, and expects these findings, each of which costs frames: checks and things.
#[track_caller]
fn finds_all(expected: &[(&str, &str)]) {
    let ended = canter(&["doctor", "--json", "-"]).ended(DEADLINE);
    let expected: Vec<_> =
        expected.iter().map(|&(check, thing)| (check.into(), thing.into(), "frames".into())).collect();
    assert_eq!(findings(&ended), expected, "{ended:?}");
}

/// What `canter doctor` has found, whatever it is.
fn found(check: &str) -> bool {
    findings(&canter(&["doctor", "--json", "-"]).ended(DEADLINE)).iter().any(|(name, ..)| name == check)
}

/// `canter wire fault` with a line of arguments.
#[track_caller]
fn fault(line: &str) {
    output(
        env!("CARGO_BIN_EXE_canter"),
        &[&["wire", "fault"], &line.split(' ').collect::<Vec<_>>()[..]].concat(),
    );
}

/// Two nodes of the virtual wire, healthy.
fn healthy_wire() {
    for node in ["wcan0", "wcan1"] {
        ip(&format!("link set {node} up txqueuelen {HEALTHY_QUEUE} type can bitrate 500000 restart-ms 0"));
    }
}

/// Examines, and expects exactly this finding.
#[track_caller]
fn finds(check: &str, thing: &str, cost: &str) {
    let ended = canter(&["doctor", "--json", "-"]).ended(DEADLINE);
    assert_eq!(findings(&ended), [(check.into(), thing.into(), cost.into())], "{ended:?}");
    assert_eq!(ended.code, Some(i32::from(cost == "frames")), "{ended:?}");
}

#[test]
#[ignore = "needs the lab: make test ONLY=doctor"]
fn a_healthy_machine_has_no_findings_and_each_planted_fault_is_found_alone() {
    let _alone = alone();
    healthy_cards();
    let ended = canter(&["doctor"]).ended(DEADLINE);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.starts_with("Nothing found by "), "{ended:?}");

    ip("link set can0 txqueuelen 10");
    finds("transmit-queue", "can0", "frames");
    ip("link set can0 txqueuelen 300");

    output("modprobe", &["sch_fq_codel"]);
    output("tc", &["qdisc", "replace", "dev", "can1", "root", "fq_codel"]);
    finds("queueing-discipline", "can1", "frames");
    output("tc", &["qdisc", "replace", "dev", "can1", "root", "pfifo_fast"]);

    ip("link set can2 down");
    ip("link set can2 up type can bitrate 1000000 one-shot on");
    finds("modes", "can2", "frames");
    ip("link set can2 down");
    ip("link set can2 up type can one-shot off");

    ip("link set can3 down");
    ip("link set can3 up type can bitrate 500000 sample-point 0.5");
    finds("sample-point", "can3", "frames");
    healthy_cards();

    let planted = Setting::change("/proc/sys/net/core/rmem_default", "65536");
    finds("receive-queue", "machine", "frames");
    drop(planted);

    let planted = Setting::change("/proc/sys/net/core/netdev_max_backlog", "10");
    finds("backlog", "machine", "frames");
    drop(planted);

    const CLOCK: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let planted = Setting::change(CLOCK, "acpi_pm");
    finds("clock-source", "machine", "latency");
    drop(planted);

    let planted = Setting::change(PAGES, "0");
    finds("page-batches", "machine", "latency");
    drop(planted);
}

#[test]
#[ignore = "needs the lab: make test ONLY=doctor"]
fn what_a_user_without_rights_lacks_is_found() {
    let _alone = alone();
    healthy_cards();
    let canter = env!("CARGO_BIN_EXE_canter");
    let nobody = ["--reuid", "65534", "--clear-groups", "--inh-caps=-all", canter, "doctor", "--json", "-"];
    let ended = start("setpriv", &nobody).ended(DEADLINE);
    let found: Vec<String> = findings(&ended).into_iter().map(|(check, ..)| check).collect();
    assert_eq!(found, ["receive-limit", "capabilities", "capabilities", "capabilities"], "{ended:?}");
    assert_eq!(ended.code, Some(1), "{ended:?}");
}

#[test]
#[ignore = "needs the lab: make test ONLY=doctor"]
fn interfaces_that_are_named_must_be_there_and_up() {
    let _alone = alone();
    healthy_cards();
    let ended = canter(&["doctor", "can9"]).ended(DEADLINE);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.complaint().starts_with("can9: find: no such device"), "{ended:?}");
    ip("link set can4 down");
    let ended = canter(&["doctor", "can4"]).ended(DEADLINE);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.complaint().starts_with("can4: is down"), "{ended:?}");
    // All that are up: it is passed over.
    assert_eq!(canter(&["doctor"]).ended(DEADLINE).code, Some(0));
    ip("link set can4 up");
}

/// The last of this file by its name, since controllers never forget what they have lost.
#[test]
#[ignore = "needs the lab: make test ONLY=doctor"]
fn who_is_off_the_bus_and_what_was_lost_is_found() {
    let _alone = alone();
    healthy_cards();
    healthy_wire();
    finds_all(&[]);
    // Nobody hears what wcan0 sends.
    fault("disconnect wcan0");
    output("cansend", &["wcan0", "123#11"]);
    eventually("wcan0 is error-passive", || found("bus-state"));
    finds("bus-state", "wcan0", "frames");
    fault("connect wcan0");
    output("cangen", &["wcan0", "-n", "100", "-g", "2", "-I", "i"]);
    eventually("wcan0 has recovered", || !found("bus-state"));

    // All that wcan0 sends is destroyed, until it is off the bus; it comes back only by hand.
    fault("inject A --error bit --node wcan0 --count 40");
    output("cansend", &["wcan0", "123#11"]);
    eventually("wcan0 is off the bus", || found("restart"));
    finds_all(&[("bus-state", "wcan0"), ("restart", "wcan0")]);
    fault("clear A");
    ip("link set wcan0 type can restart");
    eventually("wcan0 is on the bus again", || !found("bus-state"));
    finds("restart", "wcan0", "frames");
    ip("link set wcan0 down");

    overrun::send_to_nobody("wcan1", "A", 9);
    let ended = canter(&["doctor", "--json", "-"]).ended(DEADLINE);
    let overrun = findings(&ended);
    assert!(overrun.iter().all(|(check, _, cost)| check == "overrun" && cost == "frames"), "{ended:?}");
    assert!(overrun.iter().any(|(_, thing, _)| thing == "wcan1"), "{ended:?}");
}

/// The report has the cards with their drivers and bit rates, and a recording of what came.
#[test]
#[ignore = "needs the lab: make test ONLY=doctor"]
fn a_report_has_the_controllers_and_a_measurement() {
    let _alone = alone();
    healthy_cards();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report.json");
    let sender = canter(&["generate", "can0", "-I", "123", "-g", "10", "--quiet"]);
    let ended = canter(&["doctor", "can0", "can1", "--report", file.to_str().unwrap(), "--duration", "2s"])
        .ended(DEADLINE);
    drop(sender);
    assert!(ended.stderr.contains("read it before you send it"), "{ended:?}");
    let report: serde_json::Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let card = &report["interfaces"][0];
    assert_eq!((&card["driver"], &card["bitrate"]), (&"kvaser_pci".into(), &1_000_000.into()), "{card}");
    assert!(card["device"].as_str().unwrap().starts_with("pci:v000010E8d00008406"), "{card}");
    let measurement = &report["measurement"];
    assert!(measurement["wake_up_ns"]["count"].as_u64().unwrap() > 100, "{measurement}");
    let account = &measurement["recording"]["account"];
    assert_eq!(account["schema"], "canter-capture/1", "{account}");
    assert!(account["buses"][1]["in_file"].as_u64().unwrap() > 0, "{account}");
    assert!(!report.to_string().contains("\"lab-\""), "{report}");
}

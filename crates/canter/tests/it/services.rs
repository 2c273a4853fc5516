//@ machine: --systemd --clock virtual --canchar virtual
//@ parts: 2
//! The units of packaging/systemd under a real systemd, in the virtual clock: time is counted in instructions there, so
//! that a minute of waiting passes at once and systemd's own time limits do not depend on the host.

use crate::{
    testbed::{DEADLINE, ip, output, start},
    wait::holds_in_time,
};
use serde_json::Value;
use std::{fs, path::Path, thread, time::Duration};

const CONFIGURATION: &str = r#"
[capture.drive]
interfaces = ["vcan0", "late0"]
output = "drive-{run}.log"
flush-interval = "500ms"
keep-runs = 2

[capture.wrong]
interfaces = ["vcan0"]
output = "wrong.log"

[capture.full]
interfaces = ["vcan0"]
output = "full/full-{run}.log"
flush-interval = "500ms"

[capture.events]
interfaces = ["vcan0"]
output = "event-{run}.log"
trigger = ["7FF", "SIGUSR1"]
before = "10s"
after = "100ms"
flush-interval = "500ms"

[capture.device]
interfaces = ["/dev/canchar0"]
output = "device-{run}.log"
flush-interval = "500ms"

[gateway.g]
from = "vcan0"
to = "late0"

[rules]
file = "/etc/canter/rules.toml"
"#;

const RULES: &str = "[[route]]\nfrom = \"vcan0\"\nto = \"late1\"\n";

/// The package's files where the package has them, for once: one test follows another in the same machine.
fn install() {
    if Path::new("/etc/canter/canter.toml").exists() {
        return;
    }
    let packaging = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/systemd");
    output("touch", &["/usr/bin/canter"]);
    output("mount", &["--bind", env!("CARGO_BIN_EXE_canter"), "/usr/bin/canter"]);
    for unit in fs::read_dir(packaging).unwrap() {
        let path = unit.unwrap().path();
        fs::copy(&path, Path::new("/etc/systemd/system").join(path.file_name().unwrap())).unwrap();
    }
    fs::create_dir_all("/etc/canter").unwrap();
    fs::write("/etc/canter/rules.toml", RULES).unwrap();
    start("useradd", &["--system", "_canter"]).ended(DEADLINE); // the host may have it
    output("systemctl", &["daemon-reload"]);
    ip("link add vcan0 type vcan");
    ip("link set vcan0 up");
    fs::write("/etc/canter/canter.toml", CONFIGURATION).unwrap();
}

fn show(unit: &str, property: &str) -> String {
    output("systemctl", &["show", "--value", "-p", property, unit]).trim().to_owned()
}

fn journal(unit: &str) -> String {
    start("journalctl", &["--no-pager", "-o", "cat", "-u", unit]).ended(DEADLINE).stdout
}

/// An interface that comes late, gone with the test.
struct Late(&'static str);

impl Late {
    fn come(name: &'static str) -> Self {
        ip(&format!("link add {name} type vcan"));
        ip(&format!("link set {name} up"));
        Self(name)
    }
}

impl Drop for Late {
    fn drop(&mut self) {
        start("ip", &["link", "delete", self.0]).ended(DEADLINE);
    }
}

fn send(interface: &str, frame: &str) {
    output("cansend", &[interface, frame]);
}

/// Between two looks, each of which starts a program of systemd.
const PAUSE: Duration = Duration::from_millis(200);

#[track_caller]
fn eventually(what: &str, holds: impl FnMut() -> bool) {
    assert!(holds_in_time(PAUSE, holds), "still not: {what}");
}

#[track_caller]
fn until_journal(unit: &str, text: &str) {
    let said = holds_in_time(PAUSE, || journal(unit).contains(text));
    assert!(said, "{unit} still does not say: {text}\n{}", journal(unit));
}

#[test]
#[ignore = "needs the lab: make test ONLY=services"]
fn a_recording_is_ready_at_once_takes_late_interfaces_and_starts_anew_after_sigkill() {
    install();
    let unit = "canter-capture@drive";
    output("systemctl", &["start", unit]);
    assert_eq!(show(unit, "ActiveState"), "active");
    until_journal(unit, "late0: find: no such device");
    let late = Late::come("late0");
    until_journal(unit, "late0: found");
    send("late0", "123#11");
    eventually("the frame is in the file", || {
        fs::read_to_string("/var/lib/canter/drive-0001.log").unwrap_or_default().contains("late0 123#11")
    });
    output("systemctl", &["kill", "-s", "KILL", unit]);
    eventually("it has started anew", || {
        show(unit, "NRestarts") == "1" && show(unit, "ActiveState") == "active"
    });
    send("vcan0", "124#22");
    eventually("the next run has a file of its own", || {
        fs::read_to_string("/var/lib/canter/drive-0002.log").unwrap_or_default().contains("vcan0 124#22")
    });
    output("systemctl", &["stop", unit]);
    assert_eq!(show(unit, "Result"), "success", "{}", journal(unit));
    let said = journal(unit);
    assert!(said.contains("bytes in drive-0002.log\ncapture: complete"), "no account in the journal: {said}");
    drop(late);
}

#[test]
#[ignore = "needs the lab: make test ONLY=services"]
fn an_interface_that_never_comes_is_said_once_a_minute() {
    install();
    let unit = "canter-gateway@g";
    output("systemctl", &["start", unit]);
    let lines = || journal(unit).matches("late0: find: no such device").count();
    let before = lines();
    thread::sleep(Duration::from_secs(150));
    let said = lines() - before;
    assert!((2..=3).contains(&said), "{said} times in 150 s: {}", journal(unit));
    output("systemctl", &["stop", unit]);
    assert_eq!(show(unit, "Result"), "success", "{}", journal(unit));
}

#[test]
#[ignore = "needs the lab: make test ONLY=services"]
fn a_gateway_routes_when_its_interface_comes_and_the_watchdog_ends_one_that_stands_still() {
    install();
    let unit = "canter-gateway@g";
    output("systemctl", &["start", unit]);
    let _late = Late::come("late0");
    until_journal(unit, "vcan0 → late0: routing");
    send("vcan0", "125#33");
    eventually("the status counts it", || show(unit, "StatusText").starts_with("1 received = 1 transmitted"));
    // It blocks in a read for longer than the watchdog waits, and is asked meanwhile.
    thread::sleep(Duration::from_secs(70));
    assert_eq!(show(unit, "NRestarts"), "0", "{}", journal(unit));
    output("systemctl", &["kill", "-s", "STOP", unit]);
    thread::sleep(Duration::from_secs(40));
    eventually("the watchdog has started it anew", || show(unit, "NRestarts") == "1");
    eventually("it works again", || show(unit, "ActiveState") == "active");
    output("systemctl", &["stop", unit]);
}

#[test]
#[ignore = "needs the lab: make test ONLY=services"]
fn the_kernel_s_rules_come_and_go_with_their_interfaces_and_end_with_the_service() {
    install();
    let unit = "canter-rules";
    output("systemctl", &["start", unit]);
    // Its exit code says nothing.
    let jobs = || start("cangw", &["-L"]).ended(DEADLINE).stdout.matches("-s vcan0 -d late1").count();
    until_journal(unit, "vcan0 → late1: late1: find: no such device");
    assert_eq!(jobs(), 0);
    let late = Late::come("late1");
    eventually("the rules are there", || jobs() > 0);
    drop(late);
    eventually("the kernel has deleted them with the interface", || jobs() == 0);
    let _late = Late::come("late1");
    eventually("they are there again", || jobs() > 0);
    output("systemctl", &["stop", unit]);
    assert_eq!(jobs(), 0);
    assert_eq!(show(unit, "Result"), "success", "{}", journal(unit));
}

#[test]
#[ignore = "needs the lab: make test ONLY=services"]
fn a_wrong_configuration_is_said_once_and_not_tried_again() {
    install();
    let unit = "canter-capture@wrong";
    assert_ne!(start("systemctl", &["start", unit]).ended(DEADLINE).code, Some(0));
    thread::sleep(Duration::from_secs(10));
    assert_eq!((show(unit, "ActiveState").as_str(), show(unit, "NRestarts").as_str()), ("failed", "0"));
    let said = journal(unit);
    assert!(
        said.contains(
            "[capture.wrong]: output: the file exists when the service starts again (add {run} to its name"
        ),
        "{said}"
    );
}

#[test]
#[ignore = "needs the lab: make test ONLY=services"]
fn a_recording_on_a_full_disk_says_what_it_loses_and_continues_when_there_is_room() {
    install();
    let (unit, folder) = ("canter-capture@full", "/var/lib/canter/full");
    fs::create_dir_all(folder).unwrap();
    output("mount", &["-t", "tmpfs", "-o", "size=4M,mode=777", "none", folder]);
    output("systemctl", &["start", unit]);
    let lines = |file: &str| fs::read_to_string(file).unwrap_or_default().lines().count();
    let sent =
        |count: &str| output("cangen", &["vcan0", "-g", "0", "-n", count, "-I", "1", "-L", "8", "-D", "r"]);
    sent("100");
    let (first, second) = (format!("{folder}/full-0001.log"), format!("{folder}/full-0001-000002.log"));
    eventually("it writes", || lines(&first) == 100);
    let filler = format!("{folder}/filler");
    fs::write(&filler, vec![0; 8 << 20]).unwrap_err();
    sent("2000");
    until_journal(unit, "until another file can be written frames are counted but not written");
    eventually("the status counts the loss", || {
        let status = show(unit, "StatusText");
        status.split_once(", ").is_some_and(|(_, lost)| lost.ends_with(" lost") && !lost.starts_with("0 "))
    });
    fs::remove_file(filler).unwrap();
    until_journal(unit, "full-0001-000002.log: the recording continues here");
    sent("100");
    eventually("it writes again", || lines(&second) >= 100);
    output("systemctl", &["stop", unit]);
    assert_eq!(show(unit, "NRestarts"), "0", "{}", journal(unit));
    let lost = 2200 - lines(&first) - lines(&second);
    let verdict = format!("{lost} frames lost at the disk ({lost})");
    assert!(lost > 0 && journal(unit).contains(&verdict), "{verdict}: {}", journal(unit));
    output("umount", &[folder]);
}

#[test]
#[ignore = "needs the lab: make test ONLY=services"]
fn a_unit_with_triggers_keeps_the_time_around_a_frame_and_around_a_signal_of_systemctl() {
    install();
    let unit = "canter-capture@events";
    output("systemctl", &["start", unit]);
    assert_eq!(show(unit, "ActiveState"), "active", "{}", journal(unit));
    let file = |number: u32| {
        fs::read_to_string(format!("/var/lib/canter/event-0001-{number:06}.log")).unwrap_or_default()
    };
    send("vcan0", "100#01");
    let status = || -> Value {
        serde_json::from_str(&output("canter", &["status", "--quiet", "--json", "-"])).unwrap()
    };
    eventually("the frame waits in memory", || status()[0]["frames"] == 1);
    assert_eq!(file(1), "", "nothing has happened yet");
    output("systemctl", &["kill", "-s", "USR1", unit]);
    eventually("the frame before the signal is in the file", || file(1).contains("vcan0 100#01"));
    eventually("the window has ended", || {
        send("vcan0", "101#02"); // time passes by the frames' stamps
        status()[0]["file"].is_null()
    });
    send("vcan0", "7FF#03");
    eventually("the frame is an event", || file(2).contains("vcan0 7FF#03"));
    output("systemctl", &["stop", unit]);
    assert_eq!(show(unit, "Result"), "success", "{}", journal(unit));
    let said = journal(unit);
    assert!(said.contains("2 events in 2 windows") && said.contains("capture: complete"), "{said}");
}

#[test]
#[ignore = "needs the lab: make test ONLY=services"]
fn a_unit_records_a_canchar_device() {
    install();
    let unit = "canter-capture@device";
    output("chgrp", &["dialout", "/dev/canchar0"]); // as the udev rule does
    output("chmod", &["660", "/dev/canchar0"]);
    output("systemctl", &["start", unit]);
    assert_eq!(show(unit, "ActiveState"), "active", "{}", journal(unit));
    output("systemctl", &["stop", unit]);
    assert!(journal(unit).contains("capture: complete"), "{}", journal(unit));
}

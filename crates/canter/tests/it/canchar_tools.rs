//@ machine: --bus probe --canchar virtual,3,4
//! Every tool on an interface of the network and on a character device: the same words, the same result.

use crate::{
    canchar::{
        Bench, FAR, NEAR, attribute,
        recording::{Capture, send_some, send_twenty, short},
    },
    testbed::{DEADLINE, Virtual, canter, cards_up, eventually},
};
use canter_io::{
    Batch, Interface,
    method::{Receive, ReceiveMethod, ReceiveOptions},
};
use serde_json::Value;
use std::{fs, time::Duration};

/// Two ends of a bus.
#[derive(Clone, Copy)]
struct Place {
    near: &'static str,
    far: &'static str,
}

const SOCKETS: Place = Place { near: "can0", far: "can1" };
const DEVICES: Place = Place { near: NEAR, far: FAR };

/// Runs a tool in a place; returns what the tool did, without names and times.
type Tool = fn(Place) -> Vec<String>;

const TOOLS: &[(&str, Tool)] = &[
    ("generate and capture", captured),
    ("capture --direction with filters", captured_with_direction),
    ("replay", replayed),
    ("top", looked_at),
    ("ping and pong", pinged),
    ("gateway --both", routed_both_ways),
    ("latency", measured),
    ("latency --through", measured_through),
    ("doctor", examined),
];

#[test]
#[ignore = "needs the lab: make test ONLY=canchar_tools"]
fn every_tool_works_on_a_device_as_on_an_interface() {
    let _bench = Bench::new();
    cards_up(&["can0", "can1"]);
    for (name, tool) in TOOLS {
        let [by_sockets, by_device] = [SOCKETS, DEVICES].map(tool);
        assert_eq!(by_sockets, by_device, "{name}");
        assert!(!by_device.is_empty(), "{name}: nothing came");
    }
}

fn captured(Place { near, far }: Place) -> Vec<String> {
    let capture = Capture::to_log(&[far], &[]);
    let words = ["generate", near, "-n", "20", "-g", "1", "-I", "i", "-L", "2", "-D", "i", "--quiet"];
    let sent = canter(&words).ended(DEADLINE);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    capture.frames(far)
}

/// Records what this machine sends and what comes from the other side.
fn captured_with_direction(Place { near, far }: Place) -> Vec<String> {
    let capture = Capture::to_log(&[&format!("{near},002:7FE")], &["--direction"]);
    send_twenty(near);
    send_twenty(far);
    capture.frames(near)
}

/// Replays a recording to the interface that it came from, by the name in the recording.
fn replayed(Place { near, far }: Place) -> Vec<String> {
    let mut ear = Ear::open(far);
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("two.log");
    let name = short(near);
    fs::write(&log, format!("(1.000000) {name} 123#11\n(1.001000) {name} 124#22\n")).unwrap();
    let played = canter(&["replay", log.to_str().unwrap(), "--quiet"]).ended(DEADLINE);
    assert_eq!(played.code, Some(0), "{played:?}");
    ear.hears(2)
}

/// A receiver of a bus's frames, in this process.
struct Ear(Box<dyn Receive>, Batch);

impl Ear {
    fn open(name: &str) -> Self {
        let method = if name.starts_with("/dev/") { "canchar/spin" } else { "recvmmsg/spin" };
        let method: ReceiveMethod = method.parse().unwrap();
        let receive = method.open(&Interface::find(name).unwrap(), &ReceiveOptions::default()).unwrap();
        Self(receive, Batch::new(64))
    }

    /// Waits for `count` frames; returns them and those that follow within 20 ms.
    fn hears(&mut self, count: usize) -> Vec<String> {
        eventually("they come", || {
            self.0.receive(&mut self.1).unwrap();
            self.1.len() >= count
        });
        std::thread::sleep(Duration::from_millis(20));
        self.0.receive(&mut self.1).unwrap();
        self.1.frames().iter().map(ToString::to_string).collect()
    }
}

/// Runs top until an interval has the frames.
fn looked_at(Place { near, far }: Place) -> Vec<String> {
    let top = canter(&["top", far, "--interval", "300ms", "--json", "-"]);
    eventually("top shows the identifier", || {
        send_some(near, 2);
        top.printed().contains("001#01")
    });
    top.signal("TERM");
    let ended = top.ended(DEADLINE);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let documents = serde_json::Deserializer::from_str(&ended.stdout).into_iter::<Value>();
    let last = documents.last().unwrap().unwrap();
    assert_eq!((&last["buses"][0]["interface"], &last["lost"]), (&far.into(), &0.into()), "{last}");
    last["identifiers"].as_array().unwrap().iter().map(|row| row["frame"].to_string()).collect()
}

fn pinged(Place { near, far }: Place) -> Vec<String> {
    let mut pong = canter(&["pong", far]);
    pong.until_it_says("answers");
    let words = ["ping", near, "-c", "5", "--interval", "5ms", "--timeout", "20s"];
    let pinged = canter(&words).ended(DEADLINE);
    pong.signal("INT");
    let ponged = pong.ended(DEADLINE);
    let counts: Vec<&str> = pinged.stdout.lines().filter(|line| line.contains("frames sent")).collect();
    let counts = counts[0].split(", 0 late").next().unwrap().to_owned();
    vec![counts, format!("{:?} {:?}", pinged.code, ponged.code)]
}

/// Routes both ways: frames that the gateway sends one way do not come back the other.
fn routed_both_ways(Place { near, far }: Place) -> Vec<String> {
    let _out = Virtual::vcan(&["vcan0"], 16);
    let mut gateway = canter(&["gateway", near, "vcan0", "--both", "--json", "-"]);
    gateway.until_it_says("Ctrl-C ends it");
    let mut ear = Ear::open("vcan0");
    send_twenty(far);
    let mut seen = ear.hears(20);
    let mut ear = Ear::open(far);
    send_twenty("vcan0");
    seen.extend(ear.hears(20));
    gateway.signal("TERM");
    let ended = gateway.ended(DEADLINE);
    let counts = &ended.json()["counts"];
    seen.push(format!("{:?} {} {}", ended.code, counts["received"], counts["transmitted"]));
    seen
}

fn ledger(words: &[&str]) -> Vec<String> {
    let ended = canter(&[&["latency"], words, &["--count", "20", "--json", "-"]].concat()).ended(DEADLINE);
    let ledger = &ended.json()["series"][0]["ledger"];
    vec![format!("{:?} {} {}", ended.code, ledger["sent"], ledger["received"])]
}

fn measured(Place { near, far }: Place) -> Vec<String> {
    ledger(&["--send", near, "--routed", far, "--null"])
}

fn measured_through(Place { near, far }: Place) -> Vec<String> {
    let _out = Virtual::vcan(&["vcan0"], 16);
    ledger(&["--send", near, "--routed", "vcan0", "--through", &format!("{far},vcan0")])
}

fn examined(Place { far, .. }: Place) -> Vec<String> {
    let ended = canter(&["doctor", far, "--json", "-"]).ended(DEADLINE);
    let report = ended.json();
    assert_eq!(report["interfaces"], serde_json::json!([far]));
    // A device has no network queue, which the interface's finding is about.
    let findings =
        report["findings"].as_array().unwrap().iter().filter(|one| one["check"] != "transmit-queue");
    let checks = findings.filter(|one| one["thing"] == "machine").map(|one| one["check"].to_string());
    let mut seen: Vec<_> = checks.chain([format!("{} checks", report["checks"])]).collect();
    seen.sort();
    seen
}

#[test]
#[ignore = "needs the lab: make test ONLY=canchar_tools"]
fn the_doctor_finds_what_is_wrong_with_a_device_and_says_what_to_type() {
    let _bench = Bench::new();
    let device_findings = |report: &Value| -> Vec<Value> {
        let findings = report["findings"].as_array().unwrap().clone();
        findings.into_iter().filter(|one| one["thing"] == FAR).collect()
    };
    fs::write(attribute(FAR, "report"), "bus-off").unwrap();
    let sick = canter(&["doctor", "--json", "-"]).ended(DEADLINE).json();
    let found = device_findings(&sick);
    let checks: Vec<_> = found.iter().map(|one| one["check"].as_str().unwrap()).collect();
    assert_eq!(checks, ["bus-state", "restart"], "{sick}");
    assert!(found[0]["remedy"].as_str().unwrap().starts_with("echo 1 > /sys/class/canchar/canchar1/running"));
    fs::write(attribute(FAR, "running"), "1").unwrap();
    fs::write(attribute(FAR, "restart_ms"), "100").unwrap();
    let healthy = canter(&["doctor", FAR, "--json", "-"]).ended(DEADLINE).json();
    assert_eq!(device_findings(&healthy), Vec::<Value>::new());
}

#[test]
#[ignore = "needs the lab: make test ONLY=canchar_tools"]
fn what_a_device_cannot_do_is_one_line() {
    let _bench = Bench::new();
    let _out = Virtual::vcan(&["vcan0"], 16);
    for (words, code, text) in [
        (
            &["gateway", NEAR, "vcan0", "--method", "can-gw"][..],
            4,
            "can-gw: /dev/canchar0: the kernel's gateway",
        ),
        (&["gateway", NEAR, "vcan0", "--method", "read+write"], 4, "/dev/canchar0"),
        (&["ping", NEAR, "--fd"], 4, "/dev/canchar0: cannot carry FD frames"),
        (&["generate", NEAR, "-f"], 4, "/dev/canchar0: cannot carry FD frames"),
        (&["capture", "/dev/canchar9", "-o", "/tmp/never.log"], 1, "/dev/canchar9: find: no such device"),
        (&["top", "/dev/canchar9"], 1, "/dev/canchar9: find: no such device"),
    ] {
        let ended = canter(words).ended(DEADLINE);
        assert_eq!(ended.code, Some(code), "{ended:?}");
        assert!(ended.complaint().starts_with(text), "{ended:?}");
    }
    Interface::find(FAR).unwrap().down().unwrap();
    let stopped = canter(&["capture", FAR, "-o", "/tmp/never.log"]).ended(DEADLINE);
    let way_out = "/dev/canchar1: is down (echo 1 > /sys/class/canchar/canchar1/running)";
    assert_eq!(stopped.complaint(), way_out, "{stopped:?}");
}

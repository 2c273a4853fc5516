//@ machine: --cpus 2
//! `canter capture` says `complete` only when that is true, in the lab: interfaces that leave their network
//! namespace and return, FD that is switched on, a clock that is set back. Each test names the harm.

use crate::recorder::*;
use canter_io::Interface;
use std::{
    fs,
    process::Command,
    time::{Duration, Instant},
};

/// Waits for a line of the capture's.
fn until_it_says(capture: &mut Capture, text: &str) {
    let mut said = String::new();
    while !said.contains(text) {
        let line = capture.line();
        assert!(!line.is_empty(), "it has ended without {text:?}, and said {said}");
        said += &line;
    }
}

/// Waits until interfaces that came up transmit: the kernel starts their queues later, and discards what comes before.
fn wait_for_carrier(names: &[&str]) {
    for name in names {
        eventually(name, || Interface::find(name).is_ok_and(|interface| interface.running));
    }
}

/// A network namespace, gone with the test.
struct Namespace(&'static str);

impl Namespace {
    fn new(name: &'static str) -> Self {
        sh(&format!("ip netns add {name}"));
        Self(name)
    }

    fn take(&self, interface: &str) {
        sh(&format!("ip link set {interface} netns {}", self.0));
    }

    fn give_back(&self, interface: &str) {
        sh(&format!("ip -n {} link set {interface} netns 1 && ip link set {interface} up", self.0));
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "delete", self.0]).status();
    }
}

#[test]
#[ignore = "needs the lab: make test ONLY=capture_promise"]
fn an_interface_that_leaves_its_namespace_and_returns_with_its_index_is_recorded_again() {
    let disk = Disk::new("away", "16M");
    let away = Namespace::new("away");
    for (how, others) in [("ring, one", &[][..]), ("ring, any", &["any"]), ("sockets", &["--direction"])] {
        let file = disk.file("a.log");
        let mut arguments = vec!["pa0", "-o", &file, "--overwrite"];
        arguments.extend(others);
        let cables = Cables::new("pa", 1);
        let index = cables.0[0].1.index;
        let mut capture = Capture::start(&arguments);
        send(&mut cables.senders(), 0, 100);
        away.take("pa0");
        until_it_says(&mut capture, "pa0: is gone");
        away.give_back("pa0");
        until_it_says(&mut capture, "pa0: appeared again");
        assert_eq!(Interface::find("pa0").unwrap().index, index, "the kernel keeps an index that is free");
        until_it_says(&mut capture, "pa0: is up");
        wait_for_carrier(&["pas0", "pa0"]);
        send(&mut cables.senders(), 100, 200);
        let ended = capture.stop();
        let account = account(&file);
        is_complete(&ended, &account);
        assert_all(&file, &["pa0".into()], 200);
        assert_eq!(account["buses"][0]["counted"], 200, "{how}: {account}");
    }
}

#[test]
#[ignore = "needs the lab: make test ONLY=capture_promise"]
fn an_interface_that_is_moved_in_counts_from_its_arrival() {
    let disk = Disk::new("in", "16M");
    let away = Namespace::new("elsewhere");
    for others in [&["--wait-for-interface"][..], &["any"]] {
        let file = disk.file("a.log");
        let mut arguments = vec!["pb0", "--wait-for-interface", "-o", &file, "--overwrite"];
        arguments.extend(others.iter().filter(|one| **one == "any"));
        // Its index is higher than any at the recording's start, like that of an interface that is created meanwhile.
        sh(
            "ip link add pb0 index 9000 type vxcan peer name pbs0 && ip link set pbs0 mtu 72 up && ip link set pb0 mtu 72 up",
        );
        let cables = Cables(vec![(Interface::find("pbs0").unwrap(), Interface::find("pb0").unwrap())]);
        send(&mut cables.senders(), 0, 50); // the interface's counters do not begin at 0
        away.take("pb0");
        let mut capture = Capture::start(&arguments);
        sh("ip link add pby type vcan");
        away.give_back("pb0");
        until_it_says(&mut capture, "pb0: found");
        until_it_says(&mut capture, "pb0: is up");
        wait_for_carrier(&["pbs0", "pb0"]);
        send(&mut cables.senders(), 50, 150);
        assert_eq!(Interface::find("pb0").unwrap().index, 9000, "the kernel keeps an index that is free");
        let ended = capture.stop();
        sh("ip link delete pby");
        let account = account(&file);
        is_complete(&ended, &account);
        assert_eq!(numbers(&file)["pb0"], (50..150).collect::<Vec<_>>());
    }
}

#[test]
#[ignore = "needs the lab: make test ONLY=capture_promise"]
fn fd_that_is_switched_on_during_the_recording_is_recorded() {
    let disk = Disk::new("fdon", "16M");
    for others in [&[][..], &["--direction"]] {
        let file = disk.file("a.log");
        let mut arguments = vec!["pc0", "-o", &file, "--overwrite"];
        arguments.extend(others);
        let mut cables = Cables::new("pc", 1);
        let mtu = |cables: &mut Cables, mtu| {
            let (near, far) = &mut cables.0[0];
            for end in [near, far] {
                end.down().unwrap();
                end.set_mtu(mtu).unwrap();
                end.up().unwrap();
            }
        };
        mtu(&mut cables, 16);
        let capture = Capture::start(&arguments);
        mtu(&mut cables, 72);
        wait_for_carrier(&["pcs0", "pc0"]);
        send(&mut cables.senders(), 0, 100);
        let ended = capture.stop();
        let account = account(&file);
        is_complete(&ended, &account);
        assert_all(&file, &["pc0".into()], 100);
    }
}

#[test]
#[ignore = "needs the lab: make test ONLY=capture_promise"]
fn after_a_clock_was_set_back_no_frame_waits_until_it_catches_up() {
    let (disk, cables) = (Disk::new("back", "16M"), Cables::new("pj", 2));
    let file = disk.file("a.log");
    let capture = Capture::start(&["pj0", "pj1", "-o", &file, "--flush-interval", "500ms"]);
    wait_until_a_clock_step_is_certain();
    let mut senders = cables.senders();
    send(&mut senders, 0, 50); // classic and FD: two lanes
    sh("date -s \"@$(( $(date +%s) - 3600 ))\"");
    send(&mut senders, 50, 100);
    // All are in the file while the recording goes on: SIGKILL would lose none.
    let lines = || fs::read_to_string(&file).unwrap().lines().count();
    let since = Instant::now();
    while lines() < 200 && since.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(50));
    }
    let in_file = lines();
    let ended = capture.stop();
    sh("date -s \"@$(( $(date +%s) + 3600 ))\"");
    assert_eq!(in_file, 200, "{}", ended.said);
    is_complete(&ended, &account(&file));
}

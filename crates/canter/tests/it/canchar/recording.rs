//! Recording devices: beside interfaces, what is lost, what the controller reports, and cards that go and come.

use super::{
    Bench, CARD, DEADLINE, FAR, NEAR, attribute, bind, bring_back, frame, open, receive, set_rate,
    start_card, unbind,
};
use crate::testbed::{Ended, Running, canter, cards_up, eventually};
use canter_io::{
    Frame, Interface,
    method::{Echo, TransmitMethod, TransmitOptions},
};
use serde_json::Value;
use std::{fs, ops::Range, path::Path};

/// The part of a name behind the last slash.
pub fn short(name: &str) -> &str {
    name.rsplit('/').next().unwrap()
}

/// `canter capture` of one interface to a log.
pub struct Capture {
    pub running: Running,
    folder: tempfile::TempDir,
    name: String,
}

impl Capture {
    pub fn to_log(interfaces: &[&str], options: &[&str]) -> Self {
        Self::start("x.log", interfaces, options)
    }

    pub fn start(name: &str, interfaces: &[&str], options: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(name).display().to_string();
        let words = [&["capture"], interfaces, &["-o", &file, "--json", "-"], options].concat();
        let mut running = canter(&words);
        running.until_it_says("Ctrl-C ends it");
        Self { running, folder, name: name.to_owned() }
    }

    /// Ends the recording; returns the file's bytes, the account, and the ended process.
    pub fn finish(self) -> (Vec<u8>, Value, Ended) {
        self.running.signal("INT");
        let ended = self.running.ended(DEADLINE);
        let account = ended.json();
        (fs::read(self.folder.path().join(&self.name)).unwrap(), account, ended)
    }

    /// Ends the recording, which must be complete; returns each line's interface and its text from the frame on.
    pub fn lines(self) -> Vec<(String, String)> {
        let (file, account, ended) = self.finish();
        assert_eq!((ended.code, &account["verdict"]), (Some(0), &"complete".into()), "{ended:?}");
        let text = String::from_utf8(file).unwrap();
        let split = |line: &str| {
            let (_stamp, rest) = line.split_once(' ').unwrap();
            let (name, frame) = rest.split_once(' ').unwrap();
            (name.to_owned(), frame.to_owned())
        };
        text.lines().map(split).collect()
    }

    /// Ends the recording, which must be complete; returns its frames, which must be from one interface.
    pub fn frames(self, interface: &str) -> Vec<String> {
        let lines = self.lines();
        assert!(lines.iter().all(|(name, _)| name == short(interface)), "{lines:?}");
        lines.into_iter().map(|(_, frame)| frame).collect()
    }
}

/// Sends frames with identifiers and bytes from 0 on, as a program of this machine does, as fast as they are taken.
pub fn send_some(name: &str, count: u32) {
    send(&Interface::find(name).unwrap(), 0..count);
}

/// Sends twenty such frames, each when the one before it was sent: a bus between QEMU's cards has no time, and two
/// processors could send all of them before a card's handler has read the few that its controller holds.
pub fn send_twenty(name: &str) {
    let interface = Interface::find(name).unwrap();
    for number in 0..20 {
        let before = interface.counters().unwrap().tx_frames;
        send(&interface, number..number + 1);
        eventually("it is sent", || interface.counters().unwrap().tx_frames > before);
    }
}

fn send(interface: &Interface, numbers: Range<u32>) {
    let options = TransmitOptions { echo: Echo::On, ..TransmitOptions::default() };
    let mut transmit = TransmitMethod::usual(&interface.name).unwrap().open(interface, &options).unwrap();
    let frames: Vec<Frame> = numbers.map(|n| format!("{n:03X}#{n:02X}").parse().unwrap()).collect();
    let mut taken = 0;
    eventually("all are taken", || {
        taken += transmit.transmit(&frames[taken..]).unwrap();
        transmit.flush().unwrap();
        taken == frames.len()
    });
}

#[test]
#[ignore = "needs the lab: make test ONLY=canchar"]
fn interfaces_and_devices_are_recorded_in_one_file_in_the_order_of_their_stamps() {
    let _bench = Bench::new();
    cards_up(&["can0", "can1"]);
    for (name, method) in
        [("x.log", "ring+devices"), ("x.pcapng", "ring+devices"), ("x.log", "sockets+devices")]
    {
        let options = if method.starts_with("sockets") { &["--direction"][..] } else { &[] };
        let capture = Capture::start(name, &["can1", FAR], options);
        for _ in 0..3 {
            send_twenty("can0");
            send_twenty(NEAR);
        }
        let (file, account, ended) = capture.finish();
        assert_eq!((ended.code, &account["verdict"]), (Some(0), &"complete".into()), "{ended:?}");
        assert_eq!(account["method"], method);
        let buses: Vec<_> = account["buses"].as_array().unwrap().iter().map(summary).collect();
        assert_eq!(buses, ["can1 60 60 0", "canchar1 60 60 0"], "{account}");
        if name.ends_with(".log") {
            let text = String::from_utf8(file).unwrap();
            let stamps: Vec<&str> = text.lines().map(|line| line.split(')').next().unwrap()).collect();
            assert!(stamps.is_sorted() && stamps.len() == 120, "{text}");
        } else {
            let has = |name: &[u8]| file.windows(name.len()).any(|part| part == name);
            assert!(has(b"can1") && has(b"canchar1") && !has(b"/dev/"), "names of the interfaces");
        }
    }
}

/// A bus of an account: its name, the frames counted, in the file, and lost in the device's queue.
fn summary(bus: &Value) -> String {
    format!("{} {} {} {}", bus["name"].as_str().unwrap(), bus["counted"], bus["in_file"], bus["ring_lost"])
}

#[test]
#[ignore = "needs the lab: make test ONLY=canchar"]
fn what_a_device_s_queue_loses_while_the_recorder_stands_still_is_told_by_place() {
    let _bench = Bench::new();
    let capture = Capture::to_log(&[FAR], &[]);
    capture.running.signal("STOP");
    let near = open(NEAR);
    for id in 0..5000 {
        assert_eq!(near.write(&[frame(id & 0x7ff)]).unwrap(), 1);
    }
    capture.running.signal("CONT");
    let (file, account, ended) = capture.finish();
    assert_eq!(ended.code, Some(3), "{ended:?}");
    let [device, ring] = ["device", "ring"].map(|place| account["lost"][place].as_u64().unwrap());
    assert!((900..=904).contains(&device) && ring == 0, "a queue holds 4096: {account}");
    let verdict = format!("{device} frames lost at the device's queue ({device})");
    assert_eq!(account["verdict"], verdict);
    assert_eq!(summary(&account["buses"][0]), format!("canchar1 5000 {} {device}", 5000 - device));
    assert_eq!(String::from_utf8(file).unwrap().lines().count() as u64, 5000 - device);
}

#[test]
#[ignore = "needs the lab: make test ONLY=canchar"]
fn what_a_device_s_controller_reports_is_recorded_and_its_way_off_the_bus_and_back_is_told() {
    let _bench = Bench::new();
    let mut capture = Capture::to_log(&[FAR], &[]);
    let mut only_errors = Capture::to_log(&[&format!("{FAR},0~0,#FFFFFFFF")], &[]);
    send_twenty(NEAR);
    for state in ["error-warning", "bus-off"] {
        fs::write(attribute(FAR, "report"), state).unwrap();
    }
    capture.running.until_it_says("canchar1: is off the bus");
    only_errors.running.until_it_says("canchar1: is off the bus"); // each looks at its own times
    fs::write(attribute(FAR, "running"), "1").unwrap();
    capture.running.until_it_says("canchar1: is on the bus again");
    only_errors.running.until_it_says("canchar1: is on the bus again");
    let all = capture.frames(FAR);
    let errors = only_errors.frames(FAR);
    let classes: Vec<_> = errors.iter().map(|frame| &frame[..8]).collect();
    assert_eq!(classes, ["20000204", "20000240", "20000300"], "{errors:?}"); // with error counters
    assert_eq!((all.len(), &all[20..]), (23, &errors[..]));
}

#[test]
#[ignore = "needs the lab: make test ONLY=canchar"]
fn a_device_that_is_stopped_and_started_is_recorded_on() {
    let _bench = Bench::new();
    set_rate(0);
    let mut capture = Capture::to_log(&[FAR], &[]);
    send_twenty(NEAR);
    let mut far = Interface::find(FAR).unwrap();
    far.down().unwrap();
    capture.running.until_it_says("canchar1: is down");
    far.up().unwrap();
    capture.running.until_it_says("canchar1: is up");
    send_twenty(NEAR);
    assert_eq!(capture.frames(FAR).len(), 40);
}

#[test]
#[ignore = "needs the lab: make test ONLY=canchar"]
fn a_card_that_leaves_its_driver_and_comes_back_is_recorded_on_without_a_gap_in_the_account() {
    let _bench = Bench::new();
    cards_up(&["can0", "can1"]);
    start_card(CARD, 1_000_000);
    let mut capture = Capture::to_log(&["can1", CARD], &["--wait-for-interface"]);
    send_twenty("can0");
    take_away_and_bring_back(&mut capture.running, "canchar2: is gone");
    capture.running.until_it_says("canchar2: appeared again");
    start_card(CARD, 1_000_000);
    send_twenty("can0");
    let (_, account, ended) = capture.finish();
    assert_eq!((ended.code, &account["verdict"]), (Some(0), &"complete".into()), "{ended:?}");
    let buses: Vec<_> = account["buses"].as_array().unwrap().iter().map(summary).collect();
    assert_eq!(buses, ["can1 40 40 0", "canchar2 40 40 0"], "{account}");
}

/// The card goes back to the kernel's driver and comes again, once the recorder has said that it is gone.
fn take_away_and_bring_back(running: &mut Running, says: &str) {
    bind("\n");
    running.until_it_says(says);
    bind("canchar_kvaser_pci\n");
    eventually("the device is there", || Path::new(CARD).exists());
}

#[test]
#[ignore = "needs the lab: make test ONLY=canchar"]
fn a_gateway_survives_a_card_that_goes_and_comes_when_it_is_to_wait_for_it() {
    let _bench = Bench::new();
    cards_up(&["can0", "can1"]);
    start_card(CARD, 1_000_000);
    let mut gateway = canter(&["gateway", CARD, NEAR, "--wait-for-interface", "--json", "-"]);
    gateway.until_it_says("routing");
    let (capture, far) = (Capture::to_log(&[FAR], &[]), open(FAR));
    send_twenty("can0");
    take_away_and_bring_back(&mut gateway, "/dev/canchar2: receive: no such device");
    start_card(CARD, 1_000_000);
    eventually("it routes again", || gateway.said().matches(": routing").count() == 2);
    send_twenty("can0");
    receive(&far, 40);
    gateway.signal("TERM");
    let ended = gateway.ended(DEADLINE);
    assert_eq!((ended.code, &ended.json()["counts"]["transmitted"]), (Some(0), &40.into()), "{ended:?}");
    assert_eq!(capture.frames(FAR).len(), 40);
    // Without being told to wait, it ends and says why.
    let mut gateway = canter(&["gateway", CARD, NEAR]);
    gateway.until_it_says("Ctrl-C ends it");
    unbind();
    let ended = gateway.ended(DEADLINE);
    assert_eq!(
        (ended.code, ended.complaint()),
        (Some(1), "/dev/canchar2: receive: no such device (it has disappeared)")
    );
    bring_back();
}

#[test]
#[ignore = "needs the lab: make test ONLY=canchar"]
fn top_tells_of_a_card_that_has_gone_and_of_one_that_is_back() {
    let _bench = Bench::new();
    start_card(CARD, 1_000_000);
    let top = canter(&["top", CARD, FAR, "--interval", "200ms"]);
    eventually("top has seen the card", || top.printed().contains("ERROR-ACTIVE"));
    unbind();
    eventually("top misses the card", || top.printed().contains("gone"));
    bring_back();
    eventually("top sees it again", || {
        top.printed().rsplit("gone").next().is_some_and(|since| since.contains("down"))
    });
    top.signal("TERM");
    assert_eq!(top.ended(DEADLINE).code, Some(0));
}

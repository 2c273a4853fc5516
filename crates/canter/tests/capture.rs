//! `canter capture` in the lab: every frame in the file once and in order, the losses counted, other readers agree.
//!
//! Each test has its own folder on a tmpfs and interfaces of its own names.
#![allow(clippy::unwrap_used)] // helpers of tests, outside of #[test]

use canter_io::{
    Frame, Identifier, Interface, LogLine,
    method::{Transmit, TransmitMethod, TransmitOptions},
    sys::process,
};
use serde_json::Value;
use std::{
    collections::HashMap,
    fs,
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
    process::{Child, ChildStderr, Command, Stdio},
    time::{Duration, Instant},
};

/// No child lives longer than this.
const DEADLINE: Duration = Duration::from_secs(120);

fn sh(line: &str) -> String {
    let done = Command::new("timeout").args(["60", "bash", "-c", line]).output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{line}: {} {said}", String::from_utf8_lossy(&done.stderr));
    said.into_owned()
}

fn has(program: &str) -> bool {
    let found = Command::new("bash")
        .args(["-c", &format!("command -v {program}")])
        .output()
        .unwrap()
        .status
        .success();
    if !found {
        println!("SKIP: no {program} here");
    }
    found
}

/// A small disk of its own, gone with the test.
struct Disk(PathBuf);

impl Disk {
    fn new(name: &str, size: &str) -> Self {
        let path = PathBuf::from(format!("/tmp/capture-{name}"));
        fs::create_dir_all(&path).unwrap();
        sh(&format!("mount -t tmpfs -o size={size} none {}", path.display()));
        Self(path)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// Cables: frames sent to the first end of each come out of the second.
struct Cables(Vec<(Interface, Interface)>);

impl Cables {
    fn new(prefix: &str, count: usize) -> Self {
        let cable = |n| {
            let (near, far) = (format!("{prefix}s{n}"), format!("{prefix}{n}"));
            let mut near = Interface::create_vxcan(&near, &far).unwrap();
            let mut far = Interface::find(&far).unwrap();
            for end in [&mut near, &mut far] {
                end.set_mtu(72).unwrap();
                end.up().unwrap();
            }
            (near, far)
        };
        Self((0..count).map(cable).collect())
    }

    fn names(&self) -> Vec<String> {
        self.0.iter().map(|(_, far)| far.name.clone()).collect()
    }

    fn senders(&self) -> Vec<Box<dyn Transmit>> {
        let method: TransmitMethod = "sendmmsg".parse().unwrap();
        let open =
            |(near, _): &(Interface, Interface)| method.open(near, &TransmitOptions::default()).unwrap();
        self.0.iter().map(open).collect()
    }
}

impl Drop for Cables {
    fn drop(&mut self) {
        for (near, _) in &self.0 {
            let _ = near.clone().delete();
        }
    }
}

/// Frame `number` of a bus; every fifth is FD.
fn numbered(bus: usize, number: u32) -> Frame {
    let id = Identifier::Sff(bus as u16);
    let data = number.to_be_bytes();
    if number % 5 == 4 { Frame::fd(id, &data, 1) } else { Frame::classic(id, &data) }.unwrap()
}

/// Sends frames `from..to` to every cable, a burst of some on each in turn.
fn send(senders: &mut [Box<dyn Transmit>], from: u32, to: u32) {
    const BURST: u32 = 10;
    let started = Instant::now();
    for start in (from..to).step_by(BURST as usize) {
        for (bus, sender) in senders.iter_mut().enumerate() {
            let frames: Vec<Frame> = (start..to.min(start + BURST)).map(|n| numbered(bus, n)).collect();
            let mut rest = frames.as_slice();
            while !rest.is_empty() {
                let taken = sender.transmit(rest).unwrap();
                rest = &rest[taken..];
                assert!(started.elapsed() < DEADLINE, "the senders are stuck");
            }
        }
    }
}

/// A capture that runs.
struct Capture {
    child: Child,
    stderr: BufReader<ChildStderr>,
}

struct Ended {
    code: Option<i32>,
    said: String,
}

impl Capture {
    fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new("timeout")
            .args(["--foreground", "--signal=KILL", "110", env!("CARGO_BIN_EXE_canter"), "capture"])
            .args(arguments)
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        assert!(line.contains("Ctrl-C ends it"), "{line}");
        Self { child, stderr }
    }

    /// The process behind `timeout`.
    fn id(&self) -> String {
        let id = self.child.id();
        sh(&format!("cat /proc/{id}/task/{id}/children")).trim().to_owned()
    }

    fn signal(&self, name: &str) {
        sh(&format!("kill -{name} {}", self.id()));
    }

    fn wait(mut self) -> Ended {
        let mut said = String::new();
        self.stderr.read_to_string(&mut said).unwrap();
        Ended { code: self.child.wait().unwrap().code(), said }
    }

    fn stop(self) -> Ended {
        process::terminate(&self.child).unwrap(); // timeout passes it on
        self.wait()
    }
}

fn account(file: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(format!("{file}.account.json")).unwrap()).unwrap()
}

/// Reads a log: the frames' numbers by interface. Stamps must not step back.
fn numbers(file: &str) -> HashMap<String, Vec<u32>> {
    let mut numbers: HashMap<String, Vec<u32>> = HashMap::new();
    let mut last = 0;
    for line in fs::read_to_string(file).unwrap().lines() {
        let line = LogLine::parse(line).unwrap().unwrap();
        assert!(line.stamp_ns >= last, "{line} steps back");
        last = line.stamp_ns;
        let number = u32::from_be_bytes(line.frame.data().try_into().unwrap());
        numbers.entry(line.interface.to_owned()).or_default().push(number);
    }
    numbers
}

fn assert_all(file: &str, names: &[String], count: u32) {
    let numbers = numbers(file);
    for name in names {
        let got = numbers.get(name).map(Vec::as_slice).unwrap_or_default();
        assert!(
            got.iter().copied().eq(0..count),
            "{name}: {} frames: {:?}…",
            got.len(),
            &got[..got.len().min(20)]
        );
    }
    assert_eq!(numbers.len(), names.len());
}

#[test]
#[ignore = "needs a kernel with CAN: make test runs it in the lab"]
fn every_frame_of_twenty_buses_is_in_the_log_once_and_in_order() {
    let (disk, cables) = (Disk::new("twenty", "64M"), Cables::new("ca", 20));
    let (file, peer) = (disk.file("a.log"), disk.file("peer.log"));
    let names = cables.names();
    let mut arguments: Vec<&str> = names.iter().map(String::as_str).collect();
    arguments.extend(["-o", &file]);
    let capture = Capture::start(&arguments);
    send(&mut cables.senders(), 0, 1000);
    let ended = capture.stop();
    assert_eq!(ended.code, Some(0), "{}", ended.said);
    assert_all(&file, &names, 1000);
    let account = account(&file);
    assert_eq!(account["verdict"], "complete");
    assert_eq!(account["frames"], 20_000);
    assert_eq!(account["late"], 0);
    assert!(account["buses"].as_array().unwrap().iter().all(|bus| bus["counted"] == 1000), "{account}");

    // canplayer reads it and sends it on, to a bus where candump listens (no more than its queue of 222 holds);
    // log2asc reads it too.
    sh("ip link add caplay type vcan && ip link set caplay mtu 72 up");
    let first = &names[0];
    sh(&format!(
        "grep ' {first} ' {file} | head -200 > {file}.one; sed -i 's/  */ /g' {file}.one
         candump -L caplay > {peer} & sleep 1; canplayer -t -I {file}.one caplay={first}; sleep 1; kill $!
         diff <(cut -d' ' -f3 {file}.one) <(cut -d' ' -f3 {peer})"
    ));
    let asc = sh(&format!("log2asc -I {file} {} | grep -c ' Rx '", names.join(" ")));
    println!("log2asc reads {} classic frames", asc.trim());
    sh("ip link delete caplay");
}

#[test]
#[ignore = "needs a kernel with CAN: make test runs it in the lab"]
fn a_log_is_byte_for_byte_that_of_candump() {
    let (disk, cables) = (Disk::new("bytes", "16M"), Cables::new("cb", 2));
    let file = disk.file("a.log");
    let capture = Capture::start(&["cb0", "cb1", "-o", &file]);
    sh(&format!(
        "(cd {} && exec candump -l cb0 cb1) > /dev/null & sleep 1
         for i in cbs0 cbs1; do cansend $i 123#; cansend $i 12345678#1122334455667788; cansend $i 7FF#R3;
         cansend $i 123##1AABBCCDD; cangen $i -g 1 -n 200 -I r -L r -D r -e; done; sleep 1; kill $!",
        disk.0.display()
    ));
    assert_eq!(capture.stop().code, Some(0));
    let theirs = sh(&format!("cat {}/candump-*.log | sort", disk.0.display()));
    let ours = sh(&format!("sort {file}"));
    assert_eq!(ours.lines().count(), 408);
    assert_eq!(ours, theirs);
    drop(cables);
}

#[test]
#[ignore = "needs a kernel with CAN: make test runs it in the lab"]
fn wireshark_reads_every_frame_and_the_counters_of_a_pcapng() {
    let (disk, cables) = (Disk::new("pcapng", "64M"), Cables::new("cc", 3));
    let file = disk.file("a.pcapng");
    let capture = Capture::start(&["any", "-o", &file]);
    send(&mut cables.senders(), 0, 2000);
    let ended = capture.stop();
    assert_eq!(ended.code, Some(0), "{}", ended.said);
    // `any` hears the near ends' echoes too: none here, since sendmmsg turns them off where somebody else hears.
    assert_eq!(account(&file)["frames"], 6000, "{}", ended.said);
    if has("tshark") {
        assert_eq!(sh(&format!("tshark -r {file} -Y can 2>/dev/null | wc -l")).trim(), "6000");
    }
    if has("capinfos") {
        assert!(sh(&format!("capinfos -c -M {file}")).contains("6000"));
    }
    // Walked by the lengths of its blocks, as any reader would.
    let bytes = fs::read(&file).unwrap();
    let (mut at, mut kinds) = (0, HashMap::new());
    while at < bytes.len() {
        let word = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap());
        *kinds.entry(word(at)).or_insert(0) += 1;
        at += word(at + 4) as usize;
    }
    let interfaces = Interface::list().unwrap().len();
    assert_eq!((at, kinds[&6], kinds[&1], kinds[&5]), (bytes.len(), 6000, interfaces, interfaces));
}

#[test]
#[ignore = "needs a kernel with CAN: make test runs it in the lab"]
fn a_stopped_capture_loses_nothing_by_default_and_counts_what_a_small_ring_loses() {
    let (disk, cables) = (Disk::new("stall", "64M"), Cables::new("cd", 4));
    let names = cables.names();
    let mut senders = cables.senders();
    for ring in ["64M", "256K"] {
        let file = disk.file(&format!("{ring}.log"));
        let mut arguments: Vec<&str> = names.iter().map(String::as_str).collect();
        arguments.extend(["-o", &file, "--ring", ring]);
        let capture = Capture::start(&arguments);
        capture.signal("STOP");
        send(&mut senders, 0, 5000);
        capture.signal("CONT");
        let ended = capture.stop();
        let account = account(&file);
        let kept: u64 = numbers(&file).values().map(|numbers| numbers.len() as u64).sum();
        assert_eq!(account["frames"], kept);
        if ring == "64M" {
            assert_eq!(
                (ended.code, account["verdict"].as_str()),
                (Some(0), Some("complete")),
                "{}",
                ended.said
            );
            assert_all(&file, &names, 5000);
            continue;
        }
        let lost = 20_000 - kept;
        assert!(lost > 10_000, "{}", ended.said);
        assert_eq!((ended.code, account["lost"]["ring"].as_u64()), (Some(3), Some(lost)), "{}", ended.said);
        assert_eq!(account["verdict"], format!("{lost} frames lost at the ring ({lost})"));
        for bus in account["buses"].as_array().unwrap() {
            let sum = bus["ring_lost"].as_u64().unwrap() + bus["in_file"].as_u64().unwrap();
            assert_eq!(sum, 5000, "{bus}");
        }
    }
}

#[test]
#[ignore = "needs a kernel with CAN: make test runs it in the lab"]
fn a_full_queue_behind_a_stalled_disk_is_counted_by_bus() {
    let (disk, cables) = (Disk::new("queue", "64M"), Cables::new("ce", 2));
    let file = disk.file("fifo.log");
    sh(&format!("mkfifo {file}"));
    // A reader that opens and does not read, for a while: a disk that stalls.
    let mut reader = Command::new("timeout")
        .args(["60", "bash", "-c", &format!("exec 3< {file}; sleep 3; cat <&3 > {file}.copy")])
        .spawn()
        .unwrap();
    let capture = Capture::start(&["ce0", "ce1", "-o", &file, "--format", "log", "--buffer", "64K"]);
    send(&mut cables.senders(), 0, 15_000);
    let ended = capture.stop();
    reader.wait().unwrap();
    let account = account(&file);
    let kept: u64 = numbers(&format!("{file}.copy")).values().map(|numbers| numbers.len() as u64).sum();
    assert_eq!((ended.code, account["frames"].as_u64()), (Some(3), Some(kept)), "{}", ended.said);
    assert_eq!(account["lost"]["queue"], 30_000 - kept, "{}", ended.said);
    assert!(kept < 30_000);
}

#[test]
#[ignore = "needs a kernel with CAN: make test runs it in the lab"]
fn killed_it_leaves_a_file_that_is_whole_up_to_the_last_second() {
    let (disk, cables) = (Disk::new("kill", "64M"), Cables::new("cf", 2));
    for file in [disk.file("a.log"), disk.file("a.pcapng")] {
        let capture = Capture::start(&["cf0", "cf1", "-o", &file]);
        send(&mut cables.senders(), 0, 500);
        std::thread::sleep(Duration::from_millis(1500));
        capture.signal("KILL");
        capture.wait();
        if file.ends_with("log") {
            assert_all(&file, &cables.names(), 500);
        } else if has("tshark") {
            assert_eq!(sh(&format!("tshark -r {file} | wc -l")).trim(), "1000");
        }
    }
}

#[test]
#[ignore = "needs a kernel with CAN: make test runs it in the lab"]
fn a_full_disk_ends_the_writing_and_not_the_counting() {
    let (disk, cables) = (Disk::new("full", "200k"), Cables::new("cg", 2));
    let file = disk.file("a.log");
    let capture = Capture::start(&["cg0", "cg1", "-o", &file, "--json", "/tmp/capture-full.json"]);
    send(&mut cables.senders(), 0, 10_000);
    let ended = capture.stop();
    let kept: u64 = numbers(&file).values().map(|numbers| numbers.len() as u64).sum();
    assert_eq!(ended.code, Some(3), "{}", ended.said);
    assert!(ended.said.contains("No space left on device"), "{}", ended.said);
    let account: Value =
        serde_json::from_str(&fs::read_to_string("/tmp/capture-full.json").unwrap()).unwrap();
    assert_eq!(account["frames"], kept, "{account}");
    assert_eq!(account["lost"]["disk"], 20_000 - kept, "{account}");
    assert!(kept > 1000);
}

#[test]
#[ignore = "needs a kernel with CAN: make test runs it in the lab"]
fn an_interface_that_goes_down_and_up_is_recorded_on_both_sides_of_the_gap() {
    let (disk, mut cables) = (Disk::new("down", "16M"), Cables::new("ch", 1));
    let file = disk.file("a.log");
    let capture = Capture::start(&["ch0", "-o", &file]);
    send(&mut cables.senders(), 0, 100);
    std::thread::sleep(Duration::from_millis(300));
    cables.0[0].1.down().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    cables.0[0].1.up().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    send(&mut cables.senders(), 100, 200);
    let ended = capture.stop();
    assert_eq!(ended.code, Some(0), "{}", ended.said);
    assert_all(&file, &cables.names(), 200);
}

#[test]
#[ignore = "needs a kernel with CAN: make test runs it in the lab"]
fn filters_ends_and_bad_starts() {
    let (disk, cables) = (Disk::new("ends", "16M"), Cables::new("ci", 2));
    let file = disk.file("a.log");
    let capture = Capture::start(&["ci0,001:7FF", "ci1,001:7FF", "-o", &file, "--count", "50"]);
    send(&mut cables.senders(), 0, 100);
    let ended = capture.wait();
    assert_eq!(ended.code, Some(0), "{}", ended.said);
    let got = numbers(&file);
    assert!(got.len() == 1 && got["ci1"].iter().copied().eq(0..50), "{got:?}");

    let capture = Capture::start(&["ci0", "-o", &disk.file("b.log"), "--duration", "300ms"]);
    assert_eq!(capture.wait().code, Some(0));

    sh("ip link set ci1 down");
    for (arguments, code, says) in [
        (["ci0", "-o", &file], 1, "(--overwrite replaces it)"),
        (["ci0", "-o", "/nowhere/a.log"], 1, "/nowhere/a.log: open: "),
        (["ci0", "-o", "/tmp/a.txt"], 2, "which format?"),
        (["ci1", "-o", "/tmp/a.log"], 1, "ci1: is down"),
        (["ci7", "-o", "/tmp/a.log"], 1, "ci7: find: "),
        (["ci0,x", "-o", "/tmp/a.log"], 2, "expected a filter"),
    ] {
        let done = Command::new("timeout")
            .args(["20", env!("CARGO_BIN_EXE_canter"), "capture"])
            .args(arguments)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(
            done.status.code() == Some(code) && said.contains(says),
            "{arguments:?}: {:?} {said}",
            done.status
        );
        assert!(!Path::new("/tmp/a.log").exists(), "nothing is made by a capture that does not start");
    }
    let plain = Command::new("timeout")
        .args(["20", "setpriv", "--bounding-set=-net_raw", "--inh-caps=-net_raw"])
        .args([env!("CARGO_BIN_EXE_canter"), "capture", "ci0", "-o", "/tmp/a.log"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&plain.stderr);
    assert!(plain.status.code() == Some(4) && said.contains("CAP_NET_RAW"), "{:?} {said}", plain.status);
}

//@ machine: --cpus 2
//! `canter capture` says `complete` only when that is true, in the lab: interfaces that leave and return, FD that is
//! switched on, files and terminals that go away. Each test names the harm.

use crate::recorder::*;
use canter_io::{Interface, method::Transmit};
use serde_json::Value;
use std::{
    fs,
    io::{Read, Write},
    os::unix::fs::symlink,
    process::{Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant, SystemTime},
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

fn is_complete(ended: &Ended, account: &Value) {
    assert_eq!((ended.code, account["verdict"].as_str()), (Some(0), Some("complete")), "{}", ended.said);
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
fn a_second_interface_of_a_name_does_not_end_the_counting_of_the_first() {
    let (disk, cables) = (Disk::new("second", "16M"), Cables::new("pd", 1));
    let file = disk.file("a.log");
    let mut capture = Capture::start(&["pd0", "-o", &file]);
    send(&mut cables.senders(), 0, 100);
    sh("ip link set pd0 down && ip link set pd0 name pd7 && ip link set pd7 up");
    until_it_says(&mut capture, "pd0: was renamed to pd7");
    sh("ip link add pdt type vxcan peer name pd0 && ip link set pd0 mtu 72 && ip link set pdt mtu 72");
    sh("ip link set pd0 up && ip link set pdt up");
    until_it_says(&mut capture, "is a second interface of this name");
    until_it_says(&mut capture, "pd0.2: is up");
    wait_for_carrier(&["pds0", "pd7", "pdt", "pd0"]);
    send(&mut cables.senders(), 100, 200);
    sh("cansend pdt 7FF#00000007");
    let ended = capture.stop();
    let account = account(&file);
    sh("ip link delete pdt");
    is_complete(&ended, &account);
    let numbers = numbers(&file);
    assert_eq!(numbers["pd0"], (0..200).collect::<Vec<_>>());
    assert_eq!(numbers["pd0.2"], [7], "{account}");
}

#[test]
#[ignore = "needs the lab: make test ONLY=capture_promise"]
fn a_removed_file_is_reported_while_a_busy_bus_keeps_the_writer_busy() {
    let (disk, cables) = (Disk::new("busy", "64M"), Cables::new("pe", 1));
    let (file, json) = (disk.file("a.log"), disk.file("a.json"));
    let capture = Capture::start(&["pe0", "-o", &file, "--json", &json]);
    let mut senders = cables.senders();
    let (begun, mut next) = (Instant::now(), 0);
    // The load: the buffer of 64 KiB is full before the flush interval ends, again and again.
    while begun.elapsed() < Duration::from_secs(5) {
        send(&mut senders, next, next + 2000);
        if next == 0 {
            fs::remove_file(&file).unwrap();
        }
        next += 2000;
    }
    let quiet_ns = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos() as u64;
    let ended = capture.stop();
    assert_eq!(ended.code, Some(3), "{}", ended.said);
    let account: Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
    let removed =
        |event: &&Value| event["what"].as_str().unwrap().contains("was removed while it was written");
    let at_ns =
        account["events"].as_array().unwrap().iter().find(removed).unwrap()["at_ns"].as_u64().unwrap();
    assert!(at_ns < quiet_ns, "only when the bus was quiet: {} ms later", (at_ns - quiet_ns) / 1_000_000);
    // From then on another file is written.
    let in_next = fs::read(disk.file("a-000002.log")).unwrap().iter().filter(|&&byte| byte == b'\n').count();
    let lost = u64::from(next) - in_next as u64;
    assert_eq!((&account["frames"], &account["lost"]["disk"]), (&in_next.into(), &lost.into()), "{account}");
    assert!(in_next > 0 && lost > 0, "{account}");
}

#[test]
#[ignore = "needs the lab: make test ONLY=capture_promise"]
fn a_closed_terminal_does_not_end_the_recording_unless_it_is_told_to() {
    let (disk, cables) = (Disk::new("hangup", "16M"), Cables::new("pf", 1));
    let file = disk.file("a.log");
    let mut capture = Capture::start(&["pf0", "-o", &file]);
    send(&mut cables.senders(), 0, 50);
    capture.signal("HUP");
    until_it_says(&mut capture, "SIGHUP: the recording goes on");
    send(&mut cables.senders(), 50, 100);
    let ended = capture.stop();
    is_complete(&ended, &account(&file));
    assert_all(&file, &cables.names(), 100);

    let file = disk.file("b.log");
    let capture = Capture::start(&["pf0", "-o", &file, "--end-on-hangup"]);
    send(&mut cables.senders(), 0, 50);
    capture.signal("HUP");
    let ended = capture.wait();
    is_complete(&ended, &account(&file));
    assert_all(&file, &cables.names(), 50);
}

#[test]
#[ignore = "needs the lab: make test ONLY=capture_promise"]
fn an_earlier_account_is_never_truncated_and_a_killed_recording_has_one_that_is_not_complete() {
    let (disk, cables) = (Disk::new("earlier", "16M"), Cables::new("pg", 1));
    let (file, path, precious) = (disk.file("a.log"), disk.file("a.log.account.json"), disk.file("precious"));
    fs::write(&path, "earlier").unwrap();
    let ended = refused(&["pg0", "-o", &file]);
    assert!(ended.code == Some(1) && ended.said.contains("--overwrite replaces it"), "{}", ended.said);
    assert_eq!(fs::read_to_string(&path).unwrap(), "earlier");
    assert!(!fs::exists(&file).unwrap());

    // A link of that name is replaced, not followed.
    fs::remove_file(&path).unwrap();
    fs::write(&precious, "precious").unwrap();
    symlink(&precious, &path).unwrap();
    let capture = Capture::start(&["pg0", "-o", &file, "--overwrite"]);
    send(&mut cables.senders(), 0, 10);
    capture.signal("KILL");
    capture.wait();
    assert_eq!(fs::read_to_string(&precious).unwrap(), "precious");
    let account = account(&file);
    assert_eq!(account["complete"], false, "{account}");
    assert!(account["verdict"].as_str().unwrap().contains("has not ended"), "{account}");
}

#[test]
#[ignore = "needs the lab: make test ONLY=capture_promise"]
fn a_fifo_without_a_reader_can_be_interrupted_and_one_with_a_reader_is_written() {
    let (disk, cables) = (Disk::new("fifo", "16M"), Cables::new("ph", 1));
    let (fifo, read) = (disk.file("fifo"), disk.file("read.log"));
    sh(&format!("mkfifo {fifo}"));
    let mut waiting = Command::new(env!("CARGO_BIN_EXE_canter"))
        .args(["capture", "ph0", "-o", &fifo, "--format", "log"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let process = format!("/proc/{}/comm", waiting.id());
    eventually("the program starts", || fs::read_to_string(&process).is_ok_and(|name| name == "canter\n"));
    let begun = Instant::now();
    let code = loop {
        let _ = Command::new("kill").args(["-INT", &waiting.id().to_string()]).status();
        if let Some(status) = waiting.try_wait().unwrap() {
            break status.code();
        }
        if begun.elapsed() > DEADLINE / 4 {
            waiting.kill().unwrap();
            panic!("Ctrl-C does not end it");
        }
        std::thread::sleep(Duration::from_millis(50)); // until the next attempt
    };
    assert!(code == Some(1) || code.is_none(), "{code:?}"); // none: before it had its handler
    let mut reader = Command::new("bash").args(["-c", &format!("cat {fifo} > {read}")]).spawn().unwrap();
    let capture = Capture::start(&["ph0", "-o", &fifo, "--format", "log"]);
    send(&mut cables.senders(), 0, 100);
    let ended = capture.stop();
    is_complete(&ended, &account(&fifo)); // first: a FIFO that was never written would keep its reader waiting
    reader.wait().unwrap();
    assert_all(&read, &cables.names(), 100);
}

#[test]
#[ignore = "needs the lab: make test ONLY=capture_promise"]
fn a_dash_is_standard_output_and_makes_no_file() {
    let (disk, cables) = (Disk::new("dash", "16M"), Cables::new("pi", 1));
    let json = disk.file("a.json");
    let mut child = Command::new(env!("CARGO_BIN_EXE_canter"))
        .args(["capture", "pi0", "--format", "log", "-o", "-", "--count", "100", "--json", &json])
        .current_dir(&disk.0)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut said, &mut line).unwrap();
    assert!(line.contains("Ctrl-C ends it"), "{line}");
    send(&mut cables.senders(), 0, 100);
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let copy = disk.file("copy.log");
    fs::File::create(&copy).unwrap().write_all(text.as_bytes()).unwrap();
    assert_all(&copy, &cables.names(), 100);
    let names: Vec<String> = fs::read_dir(&disk.0)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(names.iter().all(|name| ["a.json", "copy.log"].contains(&name.as_str())), "{names:?}");
}

#[test]
#[ignore = "needs the lab: make test ONLY=capture_promise"]
fn after_a_clock_was_set_back_no_frame_waits_until_it_catches_up() {
    let (disk, cables) = (Disk::new("back", "16M"), Cables::new("pj", 2));
    let file = disk.file("a.log");
    let capture = Capture::start(&["pj0", "pj1", "-o", &file, "--flush-interval", "500ms"]);
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

#[test]
#[ignore = "needs the lab: make test ONLY=capture_promise"]
fn frames_of_other_interfaces_that_the_ring_lost_are_no_loss_of_the_recording() {
    let (disk, cables) = (Disk::new("others", "16M"), Cables::new("pk", 3));
    let file = disk.file("a.log");
    let capture = Capture::start(&["pk0", "pk1", "-o", &file, "--ring", "256K"]);
    let mut senders = cables.senders();
    send(&mut senders, 0, 20);
    capture.signal("STOP");
    send(&mut senders[2..], 20, 5000);
    capture.signal("CONT");
    let ended = capture.stop();
    is_complete(&ended, &account(&file));
    assert_all(&file, &cables.names()[..2], 20);
}

/// The sum of an option of a pcapng's statistics.
fn sum_of_statistics(bytes: &[u8], code: u16) -> u64 {
    let word = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap());
    let half = |at: usize| u16::from_ne_bytes(bytes[at..at + 2].try_into().unwrap());
    let (mut at, mut sum) = (0, 0);
    while at < bytes.len() {
        let end = at + word(at + 4) as usize;
        let mut option = at + 20;
        while word(at) == 5 && option < end - 4 && half(option) != 0 {
            let value = option + 4..option + 4 + usize::from(half(option + 2));
            if half(option) == code {
                sum += u64::from_ne_bytes(bytes[value.clone()].try_into().unwrap());
            }
            option = value.end.next_multiple_of(4);
        }
        at = end;
    }
    sum
}

#[test]
#[ignore = "needs the lab: make test ONLY=capture_promise"]
fn a_pcapng_says_how_many_frames_the_ring_lost_and_reading_it_counts_them_once() {
    let (disk, cables) = (Disk::new("ifdrop", "64M"), Cables::new("pl", 2));
    let file = disk.file("a.pcapng");
    let capture = Capture::start(&["pl0", "pl1", "-o", &file, "--ring", "256K"]);
    capture.signal("STOP");
    send(&mut cables.senders(), 0, 5000);
    capture.signal("CONT");
    let ended = capture.stop();
    let account = account(&file);
    let lost = account["lost"]["ring"].as_u64().unwrap();
    assert!(ended.code == Some(3) && lost > 0, "{}", ended.said);
    assert_eq!(lost + account["frames"].as_u64().unwrap(), 10_000, "{account}");
    let bytes = fs::read(&file).unwrap();
    let [by_interface, by_system] = [5, 7].map(|code| sum_of_statistics(&bytes, code));
    assert_eq!((by_interface, by_system), (0, lost), "ifdrop and osdrop");
}

/// Sends until the flag is set, so that the end falls into traffic.
fn send_until(stop: &AtomicBool, senders: &mut [Box<dyn Transmit>]) -> u32 {
    let mut next = 0;
    while !stop.load(Ordering::Relaxed) {
        send(senders, next, next + 1);
        next += 1;
        std::thread::sleep(Duration::from_millis(10)); // the load: a frame every ten milliseconds
    }
    next
}

#[test]
#[ignore = "needs the lab: make test ONLY=capture_promise"]
fn an_end_in_the_midst_of_traffic_is_compared_in_a_gap_between_frames() {
    let (disk, cables) = (Disk::new("midst", "16M"), Cables::new("pm", 1));
    let file = disk.file("a.log");
    let stop = AtomicBool::new(false);
    let mut senders = cables.senders();
    std::thread::scope(|scope| {
        scope.spawn(|| send_until(&stop, &mut senders));
        let capture = Capture::start(&["pm0", "-o", &file]);
        eventually("frames are recorded", || fs::metadata(&file).is_ok_and(|about| about.len() > 0));
        let ended = capture.stop();
        stop.store(true, Ordering::Relaxed);
        let account = account(&file);
        is_complete(&ended, &account);
        let bus = &account["buses"][0];
        assert_eq!((&bus["ambiguous"], &bus["counted"]), (&0.into(), &bus["in_file"]), "{account}");
    });
}

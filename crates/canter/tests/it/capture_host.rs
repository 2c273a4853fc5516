//@ machine: host
//@ also: all --kernel 6.1 --cpus 2
//@ or: --cpus 2
//! `canter capture` on buses of TUN devices, without a guest: every frame in the file once and in order, the losses counted.

use crate::namespaces::ran_in_namespaces;
use crate::recorder::*;
use crate::tun_bus::TunBuses;
use canter_io::{Interface, method::Transmit};
use serde_json::Value;
use std::{
    collections::{BTreeSet, HashMap},
    fs,
    io::{Read, Write},
    path::Path,
    process::{Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

#[test]
fn every_frame_of_twenty_buses_is_in_the_log_once_and_in_order() {
    if ran_in_namespaces() {
        return;
    }
    let (disk, buses) = (Disk::new("twenty", "64M"), TunBuses::new("ca", 20));
    let file = disk.file("a.log");
    let names = buses.names();
    let mut arguments: Vec<&str> = names.iter().map(String::as_str).collect();
    arguments.extend(["-o", &file]);
    let capture = Capture::start(&arguments);
    send(&mut buses.senders(), 0, 1000);
    let ended = capture.stop();
    assert_eq!(ended.code, Some(0), "{}", ended.said);
    assert_all(&file, &names, 1000);
    let account = account(&file);
    assert_eq!(account["verdict"], "complete");
    assert_eq!(account["frames"], 20_000);
    assert!(account["buses"].as_array().unwrap().iter().all(|bus| bus["counted"] == 1000), "{account}");
}

#[test]
fn wireshark_reads_every_frame_and_the_counters_of_a_pcapng() {
    if ran_in_namespaces() {
        return;
    }
    let (disk, buses) = (Disk::new("pcapng", "64M"), TunBuses::new("cc", 3));
    let file = disk.file("a.pcapng");
    let capture = Capture::start(&["any", "-o", &file]);
    send(&mut buses.senders(), 0, 2000);
    let ended = capture.stop();
    assert_eq!(ended.code, Some(0), "{}", ended.said);
    assert_eq!(account(&file)["frames"], 6000, "{}", ended.said);
    if has("tshark") {
        assert_eq!(sh(&format!("tshark -r {file} -Y 'can || canfd' 2>/dev/null | wc -l")).trim(), "6000");
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
fn a_stopped_capture_loses_nothing_by_default_and_counts_what_a_small_ring_loses() {
    if ran_in_namespaces() {
        return;
    }
    let (disk, buses) = (Disk::new("stall", "64M"), TunBuses::new("cd", 4));
    let names = buses.names();
    let mut senders = buses.senders();
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
fn a_full_queue_behind_a_stalled_disk_is_counted_by_bus() {
    if ran_in_namespaces() {
        return;
    }
    let (disk, buses) = (Disk::new("queue", "64M"), TunBuses::new("ce", 2));
    let file = disk.file("fifo.log");
    sh(&format!("mkfifo {file}"));
    // A reader that opens and does not read until all has been sent: a disk that stalls.
    let go = disk.file("go");
    let reads = format!("exec 3< {file}; until [ -e {go} ]; do sleep 0.02; done; cat <&3 > {file}.copy");
    let mut reader = Command::new("timeout").args(["60", "bash", "-c", &reads]).spawn().unwrap();
    let capture = Capture::start(&["ce0", "ce1", "-o", &file, "--format", "log", "--buffer", "64K"]);
    send(&mut buses.senders(), 0, 15_000);
    fs::write(go, "").unwrap();
    let ended = capture.stop();
    reader.wait().unwrap();
    let account = account(&file);
    let kept: u64 = numbers(&format!("{file}.copy")).values().map(|numbers| numbers.len() as u64).sum();
    assert_eq!((ended.code, account["frames"].as_u64()), (Some(3), Some(kept)), "{}", ended.said);
    assert_eq!(account["lost"]["queue"], 30_000 - kept, "{}", ended.said);
    assert!(kept < 30_000);
}

#[test]
fn killed_it_leaves_a_file_that_is_whole_as_far_as_it_was_written() {
    if ran_in_namespaces() {
        return;
    }
    let (disk, buses) = (Disk::new("kill", "64M"), TunBuses::new("cf", 2));
    for file in [disk.file("a.log"), disk.file("a.pcapng")] {
        let capture = Capture::start(&["cf0", "cf1", "-o", &file]);
        send(&mut buses.senders(), 0, 500);
        // Within a second: capture_wire.rs has that, in the virtual clock.
        if file.ends_with("log") {
            wait_for_lines(&file, 1000)
        } else {
            wait_for_packets(&file, 1000)
        }
        capture.signal("KILL");
        capture.wait();
        if file.ends_with("log") {
            assert_all(&file, &buses.names(), 500);
        }
        if has("tshark") {
            assert_eq!(sh(&format!("tshark -r {file} | wc -l")).trim(), "1000");
        }
        if has("capinfos") {
            let infos = sh(&format!("capinfos -c -M {file}"));
            assert!(infos.contains(" 1000\n"), "{infos}");
        }
    }
}

#[test]
fn a_full_disk_ends_the_writing_and_not_the_counting() {
    if ran_in_namespaces() {
        return;
    }
    let (disk, other, buses) = (Disk::new("full", "200k"), Disk::new("json", "1M"), TunBuses::new("cg", 2));
    let (file, json) = (disk.file("a.log"), other.file("a.json"));
    let capture = Capture::start(&["cg0", "cg1", "-o", &file, "--json", &json]);
    send(&mut buses.senders(), 0, 10_000);
    let ended = capture.stop();
    let kept: u64 = numbers(&file).values().map(|numbers| numbers.len() as u64).sum();
    assert_eq!(ended.code, Some(3), "{}", ended.said);
    for file in ["a.log", "a.log.account.json"] {
        let line = format!("canter: {}: write: no space left on device", disk.file(file));
        assert!(ended.said.contains(&line), "{}", ended.said);
    }
    let account: Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
    assert_eq!(account["frames"], kept, "{account}");
    assert_eq!(account["lost"]["disk"], 20_000 - kept, "{account}");
    assert!(kept > 1000);
}

#[test]
fn an_interface_that_goes_down_and_up_is_recorded_on_both_sides_of_the_gap() {
    if ran_in_namespaces() {
        return;
    }
    let (disk, mut buses) = (Disk::new("down", "16M"), TunBuses::new("ch", 1));
    let file = disk.file("a.log");
    let mut capture = Capture::start(&["ch0", "-o", &file]);
    send(&mut buses.senders(), 0, 100);
    buses.interfaces[0].down().unwrap();
    capture.until_it_says(&["ch0: is down"]);
    buses.interfaces[0].up().unwrap();
    capture.until_it_says(&["ch0: is up"]);
    send(&mut buses.senders(), 100, 200);
    let ended = capture.stop();
    assert_eq!(ended.code, Some(0), "{}", ended.said);
    assert_all(&file, &buses.names(), 200);
}

#[test]
fn filters_ends_and_bad_starts() {
    if ran_in_namespaces() {
        return;
    }
    let (disk, buses) = (Disk::new("ends", "16M"), TunBuses::new("ci", 2));
    let file = disk.file("a.log");
    let capture = Capture::start(&["ci0,001:7FF", "ci1,001:7FF", "-o", &file, "--count", "50"]);
    send(&mut buses.senders(), 0, 100);
    let ended = capture.wait();
    assert_eq!(ended.code, Some(0), "{}", ended.said);
    let got = numbers(&file);
    assert!(got.len() == 1 && got["ci1"].iter().copied().eq(0..50), "{got:?}");

    let capture = Capture::start(&["ci0", "-o", &disk.file("b.log"), "--duration", "300ms"]);
    assert_eq!(capture.wait().code, Some(0));

    sh("ip link set ci1 down");
    let none = disk.file("none.log");
    for (arguments, code, says) in [
        (["ci0", "-o", &file], 1, "(--overwrite replaces it)"),
        (["ci0", "-o", "/nowhere/a.log"], 1, "/nowhere/a.log: open: "),
        (["ci0", "-o", "a.txt"], 2, "unknown format"),
        (["ci1", "-o", &none], 1, "ci1: is down"),
        (["ci7", "-o", &none], 1, "ci7: find: "),
        (["ci0,x", "-o", &none], 2, "expected a filter"),
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
        assert!(!Path::new(&none).exists(), "nothing is made by a capture that does not start");
    }
}

#[test]
fn the_example_of_the_library_records_every_frame() {
    if ran_in_namespaces() {
        return;
    }
    let (disk, buses) = (Disk::new("example", "16M"), TunBuses::new("cj", 2));
    let file = disk.file("a.log");
    // Beside the program, once `cargo build --example record` has made it.
    let example = Path::new(env!("CARGO_BIN_EXE_canter")).with_file_name("examples").join("record");
    assert!(example.exists(), "cargo build -p canter-capture --example record");
    let mut child = Command::new(example).args([file.as_str(), "6", "cj0", "cj1"]).spawn().unwrap();
    // The receiver's thread has begun to count, and waits for frames.
    let tasks = format!("/proc/{}/task", child.id());
    let waits = |task: fs::DirEntry| {
        let is_receiver =
            fs::read_to_string(task.path().join("comm")).is_ok_and(|name| name.trim() == "canter-capture");
        is_receiver && state(&task.path()) == 'S'
    };
    let listens = || fs::read_dir(&tasks).unwrap().flatten().any(waits);
    eventually("the example listens", || {
        assert!(child.try_wait().unwrap().is_none(), "it does not start");
        listens()
    });
    send(&mut buses.senders(), 0, 300);
    assert!(child.wait().unwrap().success());
    assert_all(&file, &buses.names(), 300);
    assert_eq!(account(&file)["verdict"], "complete");
}

#[test]
fn sixty_thousand_frames_wait_in_the_ring_while_it_is_stopped() {
    if ran_in_namespaces() {
        return;
    }
    let (disk, buses) = (Disk::new("sixty", "64M"), TunBuses::new("tl", 20));
    let names = buses.names();
    let file = disk.file("a.log");
    let mut arguments: Vec<&str> = names.iter().map(String::as_str).collect();
    arguments.extend(["-o", &file]);
    let capture = Capture::start(&arguments);
    capture.signal("STOP");
    send(&mut buses.senders(), 0, 3000);
    capture.signal("CONT");
    let ended = capture.stop();
    is_complete(&ended, &account(&file));
    assert_all(&file, &names, 3000);
}

#[test]
fn two_captures_at_once_each_have_everything() {
    if ran_in_namespaces() {
        return;
    }
    let (disk, buses) = (Disk::new("two", "16M"), TunBuses::new("th", 2));
    let (a, b) = (disk.file("a.log"), disk.file("b.pcapng"));
    let one = Capture::start(&["th0", "th1", "-o", &a]);
    let other = Capture::start(&["any", "-o", &b]);
    send(&mut buses.senders(), 0, 500);
    let (one, other) = (one.stop(), other.stop());
    is_complete(&one, &account(&a));
    is_complete(&other, &account(&b));
    assert_all(&a, &buses.names(), 500);
    assert_eq!(account(&b)["frames"], 1000, "{}", other.said);
}

#[test]
fn frames_of_other_interfaces_that_the_ring_lost_are_no_loss_of_the_recording() {
    if ran_in_namespaces() {
        return;
    }
    let (disk, buses) = (Disk::new("others", "16M"), TunBuses::new("pk", 3));
    let file = disk.file("a.log");
    let capture = Capture::start(&["pk0", "pk1", "-o", &file, "--ring", "256K"]);
    let mut senders = buses.senders();
    send(&mut senders, 0, 20);
    capture.signal("STOP");
    send(&mut senders[2..], 20, 5000);
    capture.signal("CONT");
    let ended = capture.stop();
    is_complete(&ended, &account(&file));
    assert_all(&file, &buses.names()[..2], 20);
}

#[test]
fn an_interface_that_is_not_recorded_and_comes_up_later_takes_no_room_in_the_ring() {
    if ran_in_namespaces() {
        return;
    }
    let (disk, mut buses) = (Disk::new("later", "16M"), TunBuses::new("pl", 3));
    let file = disk.file("a.log");
    buses.interfaces[2].down().unwrap();
    let capture = Capture::start(&["pl0", "pl1", "-o", &file, "--ring", "256K", "--flush-interval", "500ms"]);
    buses.interfaces[2].up().unwrap();
    let mut senders = buses.senders();
    send(&mut senders[..2], 0, 20);
    // The recorder reads the reports of changes after each block of frames.
    eventually("frames after the report are in the file", || {
        numbers(&file).values().filter(|all| all.len() == 20).count() == 2
    });
    capture.signal("STOP");
    send(&mut senders[2..], 20, 5000);
    capture.signal("CONT");
    let ended = capture.stop();
    is_complete(&ended, &account(&file));
    assert_all(&file, &buses.names()[..2], 20);
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
fn a_pcapng_says_how_many_frames_the_ring_lost_and_reading_it_counts_them_once() {
    if ran_in_namespaces() {
        return;
    }
    let (disk, buses) = (Disk::new("ifdrop", "64M"), TunBuses::new("pl", 2));
    let file = disk.file("a.pcapng");
    let capture = Capture::start(&["pl0", "pl1", "-o", &file, "--ring", "256K"]);
    capture.signal("STOP");
    send(&mut buses.senders(), 0, 5000);
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
fn an_end_in_the_midst_of_traffic_is_compared_in_a_gap_between_frames() {
    if ran_in_namespaces() {
        return;
    }
    let (disk, buses) = (Disk::new("midst", "16M"), TunBuses::new("pm", 1));
    let file = disk.file("a.log");
    let stop = AtomicBool::new(false);
    let mut senders = buses.senders();
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

#[test]
fn a_dash_is_standard_output_and_makes_no_file() {
    if ran_in_namespaces() {
        return;
    }
    let (disk, buses) = (Disk::new("dash", "16M"), TunBuses::new("pi", 1));
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
    send(&mut buses.senders(), 0, 100);
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let copy = disk.file("copy.log");
    fs::File::create(&copy).unwrap().write_all(text.as_bytes()).unwrap();
    assert_all(&copy, &buses.names(), 100);
    let names: Vec<String> = fs::read_dir(&disk.0)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(names.iter().all(|name| ["a.json", "copy.log"].contains(&name.as_str())), "{names:?}");
}

#[test]
fn each_format_of_convert_has_every_recorded_frame() {
    if ran_in_namespaces() {
        return;
    }
    let (disk, buses) = (Disk::new("convert", "64M"), TunBuses::new("cv", 3));
    let convert = |from: &str, to: &str| {
        let program = Command::new(env!("CARGO_BIN_EXE_canter")).args(["convert", from, "-o", to]).output();
        let ended = program.unwrap();
        assert!(ended.status.success(), "{from} → {to}: {}", String::from_utf8_lossy(&ended.stderr));
        fs::read_to_string(to).unwrap_or_default() // empty for formats that are no text
    };
    // Frames of several buses in the same µs have no order.
    let sorted = |text: &str| text.lines().map(str::to_owned).collect::<BTreeSet<_>>();
    for end in ["log", "pcapng", "log.zst", "pcapng.zst"] {
        let file = disk.file(&format!("recorded.{end}"));
        let capture = Capture::start(&["cv0", "cv1", "cv2", "-o", &file]);
        let mut senders = buses.senders();
        for number in 0..300 {
            send(&mut senders, number, number + 1);
            std::thread::sleep(Duration::from_micros(10)); // the traffic: no two frames of a bus in a µs, as on any bus
        }
        let ended = capture.stop();
        is_complete(&ended, &account(&file));
        let plain = disk.file(&format!("{end}.log"));
        let lines = convert(&file, &plain);
        assert_each(&numbers_of_lines(&lines).0, &buses.names(), 300);
        for format in ["pcapng", "asc", "blf", "mf4", "csv", "parquet"] {
            let (other, back) =
                (disk.file(&format!("{end}.{format}")), disk.file(&format!("{end}.{format}.log")));
            convert(&file, &other);
            let again = convert(&other, &back);
            assert!(sorted(&again) == sorted(&lines), "{end} → {format} → log: {back} is not {plain}");
            assert_each(&numbers_of_lines(&again).0, &buses.names(), 300);
        }
    }
}

#[test]
fn it_ends_with_all_frames_when_a_supervisor_or_ctrl_c_asks_it_to() {
    if ran_in_namespaces() {
        return;
    }
    let (disk, buses) = (Disk::new("signals", "16M"), TunBuses::new("cs", 2));
    for signal in ["TERM", "INT"] {
        let file = disk.file(&format!("{signal}.log"));
        let capture = Capture::start(&["cs0", "cs1", "-o", &file]);
        send(&mut buses.senders(), 0, 500);
        capture.signal(signal);
        let ended = capture.wait();
        is_complete(&ended, &account(&file));
        assert_all(&file, &buses.names(), 500);
    }
}

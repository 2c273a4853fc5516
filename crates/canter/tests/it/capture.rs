//@ machine: --cpus 2
//@ also: gate --kernel 6.1 --cpus 2
//! `canter capture` in the lab: every frame in the file once and in order, the losses counted, other readers agree.
//!
//! Each test has its own folder on a tmpfs and interfaces of its own names.

use crate::recorder::*;
use canter_io::Interface;
use serde_json::Value;
use std::{collections::HashMap, fs, path::Path, process::Command};

#[test]
#[ignore = "needs the lab: make test ONLY=capture"]
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
    assert!(account["buses"].as_array().unwrap().iter().all(|bus| bus["counted"] == 1000), "{account}");

    // canplayer reads it and sends it on, to a bus where candump listens (no more than its queue of 222 holds);
    // log2asc reads it too.
    sh("ip link add caplay type vcan && ip link set caplay mtu 72 up");
    let first = &names[0];
    sh(&format!(
        "grep ' {first} ' {file} | head -200 > {file}.one; sed -i 's/  */ /g' {file}.one
         timeout 60 candump -n 200 -L caplay > {peer} &
         until grep -q ' caplay ' /proc/net/can/rcvlist_all; do sleep 0.02; done
         canplayer -t -I {file}.one caplay={first}; wait $!
         diff <(cut -d' ' -f3 {file}.one) <(cut -d' ' -f3 {peer})"
    ));
    let asc = sh(&format!("log2asc -I {file} {} | grep -c ' Rx '", names.join(" ")));
    println!("log2asc reads {} classic frames", asc.trim());
    sh("ip link delete caplay");
}

#[test]
#[ignore = "needs the lab: make test ONLY=capture"]
fn a_log_is_byte_for_byte_that_of_candump() {
    let (disk, cables) = (Disk::new("bytes", "16M"), Cables::new("cb", 2));
    let file = disk.file("a.log");
    let capture = Capture::start(&["cb0", "cb1", "-o", &file]);
    sh(&format!(
        "(cd {} && exec timeout 60 candump -n 408 -l cb0 cb1) > /dev/null &
         until [ $(grep -c ' cb[01] ' /proc/net/can/rcvlist_all) = 2 ]; do sleep 0.02; done
         for i in cbs0 cbs1; do cansend $i 123#; cansend $i 12345678#1122334455667788; cansend $i 7FF#R3;
         cansend $i 123##1AABBCCDD; cangen $i -g 1 -n 200 -I r -L r -D r -e; done; wait $!",
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
#[ignore = "needs the lab: make test ONLY=capture"]
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
#[ignore = "needs the lab: make test ONLY=capture"]
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
#[ignore = "needs the lab: make test ONLY=capture"]
fn a_full_queue_behind_a_stalled_disk_is_counted_by_bus() {
    let (disk, cables) = (Disk::new("queue", "64M"), Cables::new("ce", 2));
    let file = disk.file("fifo.log");
    sh(&format!("mkfifo {file}"));
    // A reader that opens and does not read until all has been sent: a disk that stalls.
    let go = disk.file("go");
    let reads = format!("exec 3< {file}; until [ -e {go} ]; do sleep 0.02; done; cat <&3 > {file}.copy");
    let mut reader = Command::new("timeout").args(["60", "bash", "-c", &reads]).spawn().unwrap();
    let capture = Capture::start(&["ce0", "ce1", "-o", &file, "--format", "log", "--buffer", "64K"]);
    send(&mut cables.senders(), 0, 15_000);
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
#[ignore = "needs the lab: make test ONLY=capture"]
fn killed_it_leaves_a_file_that_is_whole_as_far_as_it_was_written() {
    let (disk, cables) = (Disk::new("kill", "64M"), Cables::new("cf", 2));
    for file in [disk.file("a.log"), disk.file("a.pcapng")] {
        let capture = Capture::start(&["cf0", "cf1", "-o", &file]);
        send(&mut cables.senders(), 0, 500);
        // Within a second: capture_wire.rs has that, in the virtual clock.
        if file.ends_with("log") {
            wait_for_lines(&file, 1000)
        } else {
            wait_for_packets(&file, 1000)
        }
        capture.signal("KILL");
        capture.wait();
        if file.ends_with("log") {
            assert_all(&file, &cables.names(), 500);
            let played = sh(&format!("canplayer -t -I {file} stdout=cf0 stdout=cf1 | grep -c '#'"));
            assert_eq!(played.trim(), "1000", "canplayer");
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
#[ignore = "needs the lab: make test ONLY=capture"]
fn a_full_disk_ends_the_writing_and_not_the_counting() {
    let (disk, cables) = (Disk::new("full", "200k"), Cables::new("cg", 2));
    let file = disk.file("a.log");
    let capture = Capture::start(&["cg0", "cg1", "-o", &file, "--json", "/tmp/capture-full.json"]);
    send(&mut cables.senders(), 0, 10_000);
    let ended = capture.stop();
    let kept: u64 = numbers(&file).values().map(|numbers| numbers.len() as u64).sum();
    assert_eq!(ended.code, Some(3), "{}", ended.said);
    for file in ["a.log", "a.log.account.json"] {
        let line = format!("canter: {}: write: no space left on device", disk.file(file));
        assert!(ended.said.contains(&line), "{}", ended.said);
    }
    let account: Value =
        serde_json::from_str(&fs::read_to_string("/tmp/capture-full.json").unwrap()).unwrap();
    assert_eq!(account["frames"], kept, "{account}");
    assert_eq!(account["lost"]["disk"], 20_000 - kept, "{account}");
    assert!(kept > 1000);
}

#[test]
#[ignore = "needs the lab: make test ONLY=capture"]
fn an_interface_that_goes_down_and_up_is_recorded_on_both_sides_of_the_gap() {
    let (disk, mut cables) = (Disk::new("down", "16M"), Cables::new("ch", 1));
    let file = disk.file("a.log");
    let mut capture = Capture::start(&["ch0", "-o", &file]);
    send(&mut cables.senders(), 0, 100);
    cables.0[0].1.down().unwrap();
    capture.until_it_says(&["ch0: is down"]);
    cables.0[0].1.up().unwrap();
    capture.until_it_says(&["ch0: is up"]);
    send(&mut cables.senders(), 100, 200);
    let ended = capture.stop();
    assert_eq!(ended.code, Some(0), "{}", ended.said);
    assert_all(&file, &cables.names(), 200);
}

#[test]
#[ignore = "needs the lab: make test ONLY=capture"]
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
        (["ci0", "-o", "/tmp/a.txt"], 2, "unknown format"),
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
}

#[test]
#[ignore = "needs the lab: make test ONLY=capture"]
fn the_example_of_the_library_records_every_frame() {
    let (disk, cables) = (Disk::new("example", "16M"), Cables::new("cj", 2));
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
    send(&mut cables.senders(), 0, 300);
    assert!(child.wait().unwrap().success());
    assert_all(&file, &cables.names(), 300);
    assert_eq!(account(&file)["verdict"], "complete");
}

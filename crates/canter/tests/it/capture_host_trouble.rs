//@ machine: host
//@ also: all --kernel 6.1 --cpus 2
//@ or: --cpus 2
//! `canter capture` in trouble, without a guest: interfaces that leave and return, files and terminals that go away.

use crate::namespaces::ran_in_namespaces;
use crate::recorder::*;
use crate::tun_bus::TunBuses;
use canter_io::Frame;
use serde_json::Value;
use std::{
    fs,
    os::unix::fs::symlink,
    process::{Command, Stdio},
    time::{Duration, Instant, SystemTime},
};

#[test]
fn an_interface_that_is_removed_and_made_again_is_recorded_as_the_same_and_all_is_counted() {
    if ran_in_namespaces() {
        return;
    }
    returning::removed_and_made_again::<TunBuses>("ta", &[&[], &["any"]]);
}

#[test]
fn interfaces_that_come_later_are_waited_for_and_any_meets_them() {
    if ran_in_namespaces() {
        return;
    }
    returning::made_later::<TunBuses>("tb", &[&["tb0", "tb1", "tb2", "--wait-for-interface"], &["any"]]);
    let refused = refused(&["tb0", "-o", "later.log"]);
    assert!(refused.code == Some(1) && refused.said.contains("tb0: find: "), "{}", refused.said);
}

#[test]
fn a_renamed_interface_stays_the_bus_that_it_was() {
    if ran_in_namespaces() {
        return;
    }
    let (disk, buses) = (Disk::new("name", "16M"), TunBuses::new("tc", 2));
    let file = disk.file("a.log");
    let mut capture = Capture::start(&["tc0", "tc1", "-o", &file]);
    send(&mut buses.senders(), 0, 100);
    sh("ip link set tc0 down && ip link set tc0 name drive0 && ip link set drive0 up");
    capture.until_it_says(&["tc0: was renamed to drive0"]);
    send(&mut buses.senders(), 100, 200);
    let ended = capture.stop();
    let account = account(&file);
    is_complete(&ended, &account);
    assert_all(&file, &buses.names(), 200);
    let events = events(&account);
    assert!(events.contains("tc0: was renamed to drive0; it is still recorded as tc0"), "{events}");
}

#[test]
fn a_file_or_folder_that_is_removed_is_told_at_once_and_all_of_it_is_lost() {
    if ran_in_namespaces() {
        return;
    }
    let (disk, buses) = (Disk::new("gone", "16M"), TunBuses::new("ti", 1));
    let json = disk.file("a.json");
    for what in ["a.log", ""] {
        let folder = disk.file("folder");
        fs::create_dir_all(&folder).unwrap();
        let file = format!("{folder}/a.log");
        let mut capture = Capture::start(&["ti0", "-o", &file, "--overwrite", "--json", &json]);
        send(&mut buses.senders(), 0, 100);
        wait_for_lines(&file, 100);
        sh(&format!("rm -rf {folder}/{what}"));
        let line = capture.line();
        assert!(line.contains("was removed while it was written"), "{line}");
        send(&mut buses.senders(), 100, 200);
        let ended = capture.stop();
        let account: Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
        assert_eq!(ended.code, Some(3), "{}", ended.said);
        // A second later another file is written, if there is a folder for it.
        let in_next =
            fs::read_to_string(format!("{folder}/a-000002.log")).map_or(0, |text| text.lines().count());
        assert_eq!(
            (account["lost"]["disk"].as_u64(), account["frames"].as_u64()),
            (Some(200 - in_next as u64), Some(in_next as u64)),
            "{account}"
        );
        assert!(in_next <= 100, "{account}");
    }
}

#[test]
fn a_second_interface_of_a_name_does_not_end_the_counting_of_the_first() {
    if ran_in_namespaces() {
        return;
    }
    let (disk, buses) = (Disk::new("second", "16M"), TunBuses::new("pd", 1));
    let file = disk.file("a.log");
    let mut capture = Capture::start(&["pd0", "-o", &file]);
    send(&mut buses.senders(), 0, 100);
    sh("ip link set pd0 down && ip link set pd0 name pd7 && ip link set pd7 up");
    capture.until_it_says(&["pd0: was renamed to pd7"]);
    let second = TunBuses::named(&["pd0".to_owned()]);
    capture.until_it_says(&["is a second interface of this name"]);
    capture.until_it_says(&["pd0.2: is up"]);
    send(&mut buses.senders(), 100, 200);
    let frame: Frame = "7FF#00000007".parse().unwrap();
    assert_eq!(second.senders()[0].transmit(&[frame]).unwrap(), 1);
    let ended = capture.stop();
    let account = account(&file);
    is_complete(&ended, &account);
    let numbers = numbers(&file);
    assert_eq!(numbers["pd0"], (0..200).collect::<Vec<_>>());
    assert_eq!(numbers["pd0.2"], [7], "{account}");
}

#[test]
fn a_storm_of_changes_of_another_interface_costs_the_recorded_one_no_frame() {
    if ran_in_namespaces() {
        return;
    }
    let (disk, buses) = (Disk::new("storm", "16M"), TunBuses::new("ps", 1));
    let _other = TunBuses::named(&["po0".to_owned()]);
    let file = disk.file("a.log");
    let capture = Capture::start(&["ps0", "-o", &file]);
    let mut senders = buses.senders();
    capture.signal("STOP");
    // More reports than the kernel keeps for a program that does not read them.
    sh("for n in $(seq 600); do echo link set po0 down; echo link set po0 up; done | ip -batch -");
    send(&mut senders, 0, 1000);
    capture.signal("CONT");
    // The interfaces are compared with the list meanwhile.
    for part in 100..300 {
        send(&mut senders, part * 10, (part + 1) * 10);
        std::thread::sleep(Duration::from_millis(1));
    }
    let ended = capture.stop();
    is_complete(&ended, &account(&file));
    assert_all(&file, &buses.names(), 3000);
}

#[test]
fn a_removed_file_is_reported_while_a_busy_bus_keeps_the_writer_busy() {
    if ran_in_namespaces() {
        return;
    }
    let (disk, buses) = (Disk::new("busy", "64M"), TunBuses::new("pe", 1));
    let (file, json) = (disk.file("a.log"), disk.file("a.json"));
    let capture = Capture::start(&["pe0", "-o", &file, "--json", &json]);
    let mut senders = buses.senders();
    let (begun, mut next) = (Instant::now(), 0);
    let another_is_written = || fs::metadata(disk.file("a-000002.log")).is_ok_and(|about| about.len() > 0);
    // The load: the buffer of 64 KiB is full before the flush interval ends, again and again.
    while !another_is_written() {
        assert!(begun.elapsed() < DEADLINE / 4, "nothing notices it while the bus is busy");
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
fn a_closed_terminal_does_not_end_the_recording_unless_it_is_told_to() {
    if ran_in_namespaces() {
        return;
    }
    let (disk, buses) = (Disk::new("hangup", "16M"), TunBuses::new("pf", 1));
    let file = disk.file("a.log");
    let mut capture = Capture::start(&["pf0", "-o", &file]);
    send(&mut buses.senders(), 0, 50);
    capture.signal("HUP");
    capture.until_it_says(&["SIGHUP: the recording goes on"]);
    send(&mut buses.senders(), 50, 100);
    let ended = capture.stop();
    is_complete(&ended, &account(&file));
    assert_all(&file, &buses.names(), 100);

    let file = disk.file("b.log");
    let capture = Capture::start(&["pf0", "-o", &file, "--end-on-hangup"]);
    send(&mut buses.senders(), 0, 50);
    capture.signal("HUP");
    let ended = capture.wait();
    is_complete(&ended, &account(&file));
    assert_all(&file, &buses.names(), 50);
}

#[test]
fn an_earlier_account_is_never_truncated_and_a_killed_recording_has_one_that_is_not_complete() {
    if ran_in_namespaces() {
        return;
    }
    let (disk, buses) = (Disk::new("earlier", "16M"), TunBuses::new("pg", 1));
    let (file, path, precious) = (disk.file("a.log"), disk.file("a.log.account.json"), disk.file("precious"));
    fs::write(&path, "earlier").unwrap();
    let ended = refused(&["pg0", "-o", &file]);
    assert!(ended.code == Some(1) && ended.said.contains("--overwrite replaces it"), "{}", ended.said);
    assert_eq!(fs::read_to_string(&path).unwrap(), "earlier");
    assert!(!fs::exists(&file).unwrap());

    // Links of these names are replaced, not followed.
    fs::remove_file(&path).unwrap();
    fs::write(&precious, "precious").unwrap();
    symlink(&precious, &path).unwrap();
    symlink(&precious, &file).unwrap();
    let capture = Capture::start(&["pg0", "-o", &file, "--overwrite"]);
    send(&mut buses.senders(), 0, 10);
    capture.signal("KILL");
    capture.wait();
    assert_eq!(fs::read_to_string(&precious).unwrap(), "precious");
    assert!(!fs::symlink_metadata(&file).unwrap().is_symlink());
    let account = account(&file);
    assert_eq!(account["complete"], false, "{account}");
    assert!(account["verdict"].as_str().unwrap().contains("has not ended"), "{account}");
}

#[test]
fn a_fifo_without_a_reader_can_be_interrupted_and_one_with_a_reader_is_written() {
    if ran_in_namespaces() {
        return;
    }
    let (disk, buses) = (Disk::new("fifo", "16M"), TunBuses::new("ph", 1));
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
    send(&mut buses.senders(), 0, 100);
    let ended = capture.stop();
    is_complete(&ended, &account(&fifo)); // first: a FIFO that was never written would keep its reader waiting
    reader.wait().unwrap();
    assert_all(&read, &buses.names(), 100);
}

//! The files of `canter capture` in the lab: rows of them, compressed, and what is left of them after SIGKILL.
#![allow(clippy::unwrap_used)] // helpers of tests, outside of #[test]

mod recorder;

use recorder::*;
use serde_json::Value;
use std::{fs, time::Duration};

/// The paths of the files that an account names.
fn files(account: &Value) -> Vec<String> {
    let name = |file: &Value| file["name"].as_str().unwrap().to_owned();
    account["files"].as_array().unwrap().iter().map(name).collect()
}

/// The sizes of all recordings on a disk, in bytes.
fn written(disk: &Disk) -> u64 {
    fs::read_dir(&disk.0)
        .unwrap()
        .flatten()
        .map(|entry| entry.metadata().map_or(0, |about| about.len()))
        .sum()
}

#[test]
#[ignore = "needs a kernel with CAN: make test runs it in the lab"]
fn a_row_of_files_has_every_frame_once_and_each_file_is_complete() {
    let (disk, cables) = (Disk::new("row", "64M"), Cables::new("ka", 3));
    for (end, size) in [("log", "200K"), ("pcapng", "400K"), ("log.zst", "40K"), ("pcapng.zst", "60K")] {
        let file = disk.file(&format!("a.{end}"));
        let capture = Capture::start(&["ka0", "ka1", "ka2", "-o", &file, "--rotate-size", size]);
        let mut senders = cables.senders();
        for part in 0..6 {
            let before = written(&disk);
            send(&mut senders, part * 1000, (part + 1) * 1000);
            // It compresses at each write, and begins a new file between two writes: there are to be several.
            if part < 3 {
                eventually("it writes", || written(&disk) > before);
            }
        }
        let ended = capture.stop();
        assert_eq!(ended.code, Some(0), "{}", ended.said);
        let account = account(&file);
        let names = files(&account);
        assert!(names.len() >= 2, "{end}: {}", ended.said);
        assert!(names.is_sorted() && ended.said.contains(names.last().unwrap()), "{}", ended.said);
        assert_eq!(account["frames"], 18_000);
        let all = disk.file("all");
        let _ = fs::remove_file(&all);
        for (name, about) in names.iter().zip(account["files"].as_array().unwrap()) {
            let frames = about["frames"].as_u64().unwrap();
            assert_eq!(fs::metadata(name).unwrap().len(), about["bytes"].as_u64().unwrap(), "{about}");
            let bare = if end.ends_with("zst") {
                sh(&format!("zstd -qdfc {name} > {name}.bare; echo {name}.bare"))
            } else {
                name.clone()
            };
            let bare = bare.trim();
            if end.starts_with("log") {
                assert_eq!(fs::read_to_string(bare).unwrap().lines().count() as u64, frames);
                sh(&format!("cat {bare} >> {all}"));
            } else if has("tshark") {
                let fields = "-T fields -e frame.interface_name -e data -e frame.time_epoch";
                sh(&format!("tshark -r {bare} {fields} > {bare}.text && cat {bare}.text >> {all}"));
                let read = fs::read_to_string(format!("{bare}.text")).unwrap().lines().count() as u64;
                assert_eq!(read, frames, "{bare}");
            }
        }
        if end.starts_with("log") {
            assert_all(&all, &cables.names(), 6000);
        } else if has("tshark") {
            assert_eq!(sh(&format!("sort -u {all} | wc -l")).trim(), "18000", "{end}");
        }
    }
}

#[test]
#[ignore = "needs a kernel with CAN: make test runs it in the lab"]
fn a_ring_of_files_keeps_the_last_and_counts_what_made_room() {
    let (disk, cables) = (Disk::new("keep", "16M"), Cables::new("kb", 1));
    let file = disk.file("a.log");
    let capture = Capture::start(&["kb0", "-o", &file, "--rotate-time", "400ms", "--keep", "2"]);
    let mut senders = cables.senders();
    for part in 0..8 {
        send(&mut senders, part * 100, (part + 1) * 100);
        std::thread::sleep(Duration::from_millis(300)); // the traffic: one part in each file or in two
    }
    let ended = capture.stop();
    assert_eq!(ended.code, Some(0), "{}", ended.said);
    let account = account(&file);
    let names = files(&account);
    let there = sh(&format!("ls {}/a-*.log", disk.0.display()));
    assert_eq!(there.split_whitespace().collect::<Vec<_>>(), names);
    assert_eq!((names.len(), account["frames"].as_u64()), (2, Some(800)), "{account}");
    let kept: u64 = names.iter().map(|name| fs::read_to_string(name).unwrap().lines().count() as u64).sum();
    assert_eq!(account["deleted"]["frames"], 800 - kept, "{account}");
    assert!(account["deleted"]["files"].as_u64().unwrap() >= 1 && kept >= 1, "{account}");

    // A second recording does not write over the first.
    let again = refused(&["kb0", "-o", &file, "--rotate-time", "1s"]);
    assert!(again.said.contains("--overwrite replaces it"), "{}", again.said);
    for (arguments, says) in [
        (["kb0", "-o", "/tmp/x.log", "--keep", "3"], "--keep: needs --rotate-size"),
        (["kb0", "-o", "/tmp/x.log", "--flush-interval", "1ms"], "at least 500 ms"),
        (["kb0", "-o", "/tmp/x.log", "--rotate-time", "0s"], "must be more than 0"),
    ] {
        let ended = refused(&arguments);
        assert!(ended.code == Some(2) && ended.said.contains(says), "{:?} {}", ended.code, ended.said);
    }
}

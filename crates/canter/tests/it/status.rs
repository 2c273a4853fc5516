//@ machine: host
//@ or: --cpus 2
//! `canter status`: what running recordings say of themselves, on buses of TUN devices.

use crate::namespaces::ran_in_namespaces;
use crate::recorder::*;
use crate::testbed::program;
use crate::tun_bus::TunBuses;
use canter_io::Frame;
use serde_json::Value;
use std::{
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

/// The status of all recordings, with the exit code and the text.
fn status(words: &[&str]) -> (Vec<Value>, Option<i32>, String) {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("status.json");
    let done = Command::new("timeout")
        .args(["60", program(), "status", "--json"])
        .arg(&json)
        .args(words)
        .output()
        .unwrap();
    let text = std::fs::read_to_string(&json).unwrap_or_default();
    let documents = serde_json::from_str(&text).unwrap_or_default();
    let said = String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
    (documents, done.status.code(), said)
}

/// A frame a millisecond on the bus, and another program's question meanwhile.
fn during_traffic<T>(buses: &TunBuses, ask: impl FnOnce() -> T) -> T {
    let stop = AtomicBool::new(false);
    let mut sender = buses.senders().remove(0);
    thread::scope(|scope| {
        scope.spawn(|| {
            let frame: Frame = "123#11".parse().unwrap();
            while !stop.load(Ordering::Relaxed) {
                assert_eq!(sender.transmit(&[frame]).unwrap(), 1);
                thread::sleep(Duration::from_millis(1)); // the traffic
            }
        });
        let answer = ask();
        stop.store(true, Ordering::Relaxed);
        answer
    })
}

#[test]
fn each_recording_reports_its_rate_its_file_and_its_triggers() {
    if ran_in_namespaces() {
        return;
    }
    let (disk, buses) = (Disk::new("status", "16M"), TunBuses::new("sa", 2));
    assert_eq!(status(&[]).1, Some(1), "nothing runs");
    let (plain, event) = (disk.file("all.pcapng"), disk.file("event.pcapng"));
    let everything = Capture::start(&["sa0", "sa1", "-o", &plain]);
    let waiting = Capture::start(&["any", "-o", &event, "--trigger", "700"]);
    let (documents, code, said) = during_traffic(&buses, || status(&[]));
    assert_eq!((code, documents.len()), (Some(0), 2), "{said}");
    let named = |file: &str| documents.iter().find(|one| one["output"] == file).unwrap();
    let (all, events) = (named(&plain), named(&event));
    let number = |value: &Value| value.as_u64().unwrap();
    for one in [all, events] {
        let buses = one["buses"].as_array().unwrap();
        let bus = buses.iter().find(|bus| bus["name"] == "sa0").unwrap();
        assert!(number(&one["frames_per_second"]) > 0 && number(&bus["frames_per_second"]) > 0, "{one}");
        assert!(number(&one["free_bytes"]) > 0 && bus["load_percent"].is_null(), "{one}");
        let quiet = buses.iter().find(|bus| bus["name"] == "sa1").unwrap();
        assert_eq!(quiet["frames_per_second"], 0);
    }
    assert_eq!(all["file"]["name"], plain.as_str());
    assert!(events["file"].is_null() && events["triggers"][0] == "700", "{events}");
    assert!(number(&events["frames_outside"]) > 0, "{events}");
    assert!(said.contains(&format!("{plain}: pid ")) && said.contains("0 events"), "{said}");
    let pid = waiting.id();
    let (documents, code, said) = status(&[&pid]);
    assert_eq!((documents.len(), code, documents[0]["pid"].to_string()), (1, Some(0), pid), "{said}");
    is_complete(&everything.stop(), &account(&plain));
    is_complete(&waiting.stop(), &account(&event));
}

#[test]
fn a_recording_that_cannot_write_says_why() {
    if ran_in_namespaces() {
        return;
    }
    let (disk, buses) = (Disk::new("trouble", "64k"), TunBuses::new("sb", 1));
    let file = disk.file("a.log");
    let mut capture = Capture::start(&["sb0", "-o", &file]);
    send(&mut buses.senders(), 0, 3000);
    capture.until_it_says(&["no space left on device"]);
    let (documents, code, said) = status(&[]);
    assert_eq!(code, Some(3), "{said}");
    assert!(documents[0]["trouble"].as_str().unwrap().contains("no space left"), "{said}");
    assert!(
        documents[0]["lost"]["disk"].as_u64().unwrap() > 0 && said.contains("does not write: "),
        "{said}"
    );
    assert_eq!(capture.stop().code, Some(3));
}

#[test]
fn a_question_that_is_never_read_delays_no_other_one_for_long_and_no_frame() {
    if ran_in_namespaces() {
        return;
    }
    use std::os::{linux::net::SocketAddrExt, unix::net};
    let (disk, buses) = (Disk::new("unread", "16M"), TunBuses::new("sc", 1));
    let file = disk.file("a.log");
    let capture = Capture::start(&["sc0", "-o", &file]);
    let name = format!("canter-capture/{}", capture.id());
    let address = net::SocketAddr::from_abstract_name(name).unwrap();
    let unread: Vec<_> = (0..20).map(|_| net::UnixStream::connect_addr(&address).unwrap()).collect();
    let (documents, code, said) = during_traffic(&buses, || status(&[]));
    assert_eq!((code, documents.len()), (Some(0), 1), "{said}");
    drop(unread);
    let ended = capture.stop();
    is_complete(&ended, &account(&file));
}

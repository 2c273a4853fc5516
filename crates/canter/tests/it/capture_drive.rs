//@ machine: --clock virtual
//! The drive of docs/drive.md: buses, an event, a disk that stalls in the middle of its window, another event, and a power cut.
//! What the files tell then, by `canter info` and Wireshark, is the truth.

use crate::recorder::*;
use crate::testbed::program;
use canter_io::{Frame, Identifier};
use serde_json::Value;
use std::{fs, path::Path, process::Command, time::Duration};

/// The size of the disk.
const DISK_KIB: usize = 24 << 10;
const DISK: &str = "/dev/ram0";
/// What the disk has when the power is cut.
const AFTER: &str = "/dev/ram1";
/// Time between two frames of a bus.
const PERIOD: Duration = Duration::from_millis(10);

/// The buses of the vehicle, and the number of the next frame.
struct Vehicle {
    cables: Cables,
    number: u32,
}

impl Vehicle {
    /// Drives for so many periods: a frame on each bus in each.
    fn drive(&mut self, periods: u32) {
        let mut senders = self.cables.senders();
        for _ in 0..periods {
            for sender in &mut senders {
                let frame = Frame::classic(Identifier::Sff(0x100), &self.number.to_be_bytes()).unwrap();
                assert_eq!(sender.transmit(&[frame]).unwrap(), 1);
            }
            self.number += 1;
            std::thread::sleep(PERIOD); // the traffic
        }
    }

    /// The brake: an event on the first bus.
    fn brake(&mut self) {
        let frame = Frame::classic(Identifier::Sff(0x0C9), &self.number.to_be_bytes()).unwrap();
        assert_eq!(self.cables.senders()[0].transmit(&[frame]).unwrap(), 1);
        self.number += 1;
    }
}

/// What `canter info` says about a file.
fn info(file: &Path) -> Value {
    let json = "/tmp/drive-info.json";
    let done = Command::new(program()).args(["info", "--json", json]).arg(file).output().unwrap();
    assert!(matches!(done.status.code(), Some(0 | 3)), "{}", String::from_utf8_lossy(&done.stderr));
    serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap()
}

/// The numbers of a file's frames on a bus.
fn numbers_on(file: &Path, bus: &str) -> Vec<u32> {
    let mut reader = canter_formats::open(file).unwrap();
    let mut numbers = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        if reader.names()[record.bus.index()] == bus {
            numbers.push(u32::from_be_bytes(record.frame.data().try_into().unwrap()));
        }
    }
    numbers
}

#[track_caller]
fn has_no_gap(numbers: &[u32]) {
    assert!(numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]), "a gap: {numbers:?}");
}

#[test]
#[ignore = "needs the lab: make test ONLY=capture_drive"]
fn an_event_is_told_by_the_files_of_a_drive_with_a_stalled_disk_and_a_power_cut() {
    sh(&format!("modprobe brd rd_nr=2 rd_size={DISK_KIB} && modprobe ext4 && mkfs.ext4 -q {DISK}"));
    let (mounted, after) = (Disk::new("drive", "1M"), Disk::new("after", "1M"));
    sh(&format!("mount -t ext4 {DISK} {}", mounted.0.display()));
    let mut vehicle = Vehicle { cables: Cables::new("dv", 2), number: 0 };
    let file = mounted.file("event.pcapng");
    let mut capture = Capture::start(&[
        "dv0",
        "dv1",
        "-o",
        &file,
        "--before",
        "1s",
        "--after",
        "1s",
        "--trigger",
        "dv0,0C9",
        "--flush-interval",
        "500ms",
        "--sync-interval",
        "500ms",
    ]);
    // In the virtual clock a program that is read from the host's disk for the first time takes any time.
    sh("fsfreeze --version");
    vehicle.drive(200);
    let first = vehicle.number;
    vehicle.brake();
    vehicle.drive(60);
    // The disk stalls in the middle of the window, for longer than the window.
    let folder = mounted.0.display().to_string();
    sh(&format!("fsfreeze -f {folder}"));
    vehicle.drive(300);
    sh(&format!("fsfreeze -u {folder}"));
    capture.until_it_says(&["event 1: dv0,0C9", "the window is over"]);
    vehicle.drive(200);
    let second = vehicle.number;
    vehicle.brake();
    vehicle.drive(400);
    capture.until_it_says(&["event 2: dv0,0C9", "the window is over"]);
    vehicle.drive(200); // longer than the flush interval and the sync interval
    // The power is cut: what the disk has by now is what stays.
    sh(&format!("cat {DISK} > {AFTER}"));
    capture.signal("KILL");
    capture.wait();
    sh(&format!("umount {folder} && mount -t ext4 {AFTER} {}", after.0.display()));

    let account = account(&after.file("event.pcapng"));
    assert_eq!(account["complete"], false, "the account says that the recording has not ended: {account}");
    for (name, event) in [("event-000001.pcapng", first), ("event-000002.pcapng", second)] {
        let path = after.0.join(name);
        let (one, other) = (numbers_on(&path, "dv0"), numbers_on(&path, "dv1"));
        has_no_gap(&one);
        // The second before the event, the event, and the second after it: frames come every 10 ms at most.
        assert!(
            one.contains(&event) && one[0] + 50 < event && event + 50 < *one.last().unwrap(),
            "{name}: {one:?}"
        );
        assert!(one[0] + 120 > event, "{name}: more than a second before {event}: {one:?}");
        assert_eq!(one.len(), other.len() + 1, "{name}: the event is on one bus");
        let said = info(&path);
        let events = said["files"][0]["events"].as_array().unwrap();
        let told: Vec<&str> = events.iter().map(|event| event["what"].as_str().unwrap()).collect();
        assert!(told.len() == 1 && told[0].contains(": dv0,0C9: dv0 0C9#"), "{name}: {said}");
        if has("tshark") {
            let line = format!(
                "tshark -r {} -Y 'frame.comment matches \"^event\"' -T fields -e can.id 2>/dev/null",
                path.display()
            );
            assert_eq!(sh(&line).trim(), "201", "0x0C9");
        }
    }
}

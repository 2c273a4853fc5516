//@ machine: --cpus 2
//! A long recording: each file is read while the next is written, and has every frame of every bus in its order.

use crate::{
    recorder::*,
    testbed::{resident_kib, soak_frames},
};
use canter_io::LogLine;
use std::{collections::HashMap, fs};

/// The frames in all, unless `make soak` asks for more.
const USUAL: u32 = 100_000;
const BUSES: u32 = 4;
/// The frames of each bus that are sent before the recording is waited for: half of the kernel's ring holds them.
const ROUND: u32 = 12_500;

/// Reads a row of logs as they are written, and removes each when it has read it.
struct Row<'a> {
    disk: &'a Disk,
    number: u32,
    read_bytes: usize,
    /// The frames of each interface.
    frames: HashMap<String, u32>,
}

impl Row<'_> {
    fn file(&self, number: u32) -> String {
        self.disk.file(&format!("a-{number:06}.log"))
    }

    /// Reads what is there, and asserts that each frame is the next of its bus. Returns how many frames there were so far.
    fn read(&mut self) -> u32 {
        loop {
            let is_over = fs::exists(self.file(self.number + 1)).unwrap();
            let log = fs::read_to_string(self.file(self.number)).unwrap();
            let whole = log.rfind('\n').map_or(0, |end| end + 1);
            for line in log[self.read_bytes..whole].lines() {
                let line = LogLine::parse(line).unwrap().unwrap();
                let next = self.frames.entry(line.interface.to_owned()).or_default();
                assert_eq!(
                    line.frame.data(),
                    next.to_be_bytes(),
                    "{} in file {}",
                    line.interface,
                    self.number
                );
                *next += 1;
            }
            self.read_bytes = whole;
            if !is_over {
                return self.frames.values().sum();
            }
            assert_eq!(whole, log.len(), "file {} has half a line", self.number);
            fs::remove_file(self.file(self.number)).unwrap();
            (self.number, self.read_bytes) = (self.number + 1, 0);
        }
    }
}

#[test]
#[ignore = "needs the lab: make test ONLY=capture"]
fn a_long_run_has_every_frame_in_its_files_and_needs_no_more_memory() {
    let (disk, cables) = (Disk::new("long", "64M"), Cables::new("lo", BUSES as usize));
    let file = disk.file("a.log");
    let capture = Capture::start(&["lo0", "lo1", "lo2", "lo3", "-o", &file, "--rotate-size", "1M"]);
    let mut senders = cables.senders();
    let mut row = Row { disk: &disk, number: 1, read_bytes: 0, frames: HashMap::new() };
    let process = capture.id();
    let (rounds, mut early_kib) = (soak_frames(USUAL).div_ceil(BUSES * ROUND), 0);
    for round in 0..rounds {
        send(&mut senders, round * ROUND, (round + 1) * ROUND);
        eventually("every frame is in a file", || row.read() == BUSES * ROUND * (round + 1));
        if round == rounds / 10 {
            early_kib = resident_kib(&process);
        }
    }
    let grown_kib = resident_kib(&process).saturating_sub(early_kib);
    let ended = capture.stop();
    let account = account(&file);
    is_complete(&ended, &account);
    let sent = BUSES * ROUND * rounds;
    assert_eq!((row.read(), account["frames"].as_u64()), (sent, Some(u64::from(sent))));
    assert_eq!(row.frames.len(), BUSES as usize);
    // When the machine stalls, more frames wait than before, and the queue keeps the memory that they took.
    let queue_kib = account["queue_high_water_bytes"].as_u64().unwrap() / 1024;
    println!(
        "{sent} frames recorded to {} files, memory grew by {grown_kib} KiB, the queue took {queue_kib} KiB",
        row.number
    );
    assert!(
        grown_kib <= 256 + queue_kib,
        "{grown_kib} KiB more after {sent} frames, {queue_kib} of the queue"
    );
}

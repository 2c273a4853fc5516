//@ machine: host
//! `canter align`: recordings of two machines that heard the same bus, on clocks whose relation is known.

use canter_formats::{Reader, Record};
use serde_json::Value;
use std::{
    fmt::Write,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};
use tempfile::TempDir;

const START_NS: u64 = 1_790_000_000_000_000_000;
/// What the second clock is ahead at the beginning, in ns, and gains.
const AHEAD_NS: u64 = 3_600_123_456_789;
const GAINS_PPM: u64 = 80;
/// The longest delay of a stamp, in ns.
const DELAY_NS: u64 = 30_000;

/// A frame's time on the bus, in ns since the beginning; they come every 3 ms.
fn passed_ns(number: u64) -> u64 {
    number * 3_000_000
}

/// A bus with two periodic frames: one counts, and one never changes.
fn frame(number: u64) -> String {
    if number.is_multiple_of(3) { format!("123#{number:08X}") } else { "200#1122334455667788".to_owned() }
}

/// Logs of both machines. The second begins later, lacks some frames, and calls the bus `second`.
fn logs(folder: &TempDir, second: &str, frame: fn(u64) -> String) -> (PathBuf, PathBuf) {
    let stamp = |ns: u64| format!("({}.{:09})", ns / 1_000_000_000, ns % 1_000_000_000);
    let (mut a, mut b) = (String::new(), String::new());
    for number in 0..20_000 {
        let (passed, text) = (passed_ns(number), frame(number));
        let delays = [number * 7919 % DELAY_NS, number * 104_729 % DELAY_NS];
        writeln!(a, "{} can0 {text}", stamp(START_NS + passed + delays[0])).unwrap();
        if number > 1000 && number % 997 != 0 {
            let ahead = AHEAD_NS + passed * GAINS_PPM / 1_000_000;
            writeln!(b, "{} {second} {text}", stamp(START_NS + passed + ahead + delays[1])).unwrap();
        }
    }
    let paths = ["a.log", "b.log"].map(|name| folder.path().join(name));
    fs::write(&paths[0], a).unwrap();
    fs::write(&paths[1], b).unwrap();
    let [a, b] = paths;
    (a, b)
}

fn align(words: &[&Path], options: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_canter")).arg("align").args(words).args(options).output().unwrap()
}

#[test]
fn the_second_recording_comes_onto_the_clock_of_the_first() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = logs(&folder, "can0", frame);
    let (aligned, json) = (folder.path().join("aligned.pcapng"), folder.path().join("a.json"));
    let options = ["-o", aligned.to_str().unwrap(), "--json", json.to_str().unwrap()];
    let done = align(&[&a, &b], &options);
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success() && said.contains("ahead of") && said.contains("common frames"), "{done:?}");
    let document: Value = serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
    let number = |name: &str| document[name].as_i64().unwrap();
    assert!((number("drift_ppb") - 80_000).abs() < 2_000, "{document}");
    assert!(
        number("residual_p99_ns") < 2 * DELAY_NS as i64 && number("common_frames") > 15_000,
        "{document}"
    );
    // Each frame is where it was on the first machine's clock.
    let mut reader = Reader::open(&aligned, canter_formats::FORMATS).unwrap();
    let (mut frames, mut last) = (0, 0);
    while let Some(Record { stamp_ns, frame, .. }) = reader.next_record().unwrap() {
        assert!(stamp_ns >= last);
        (frames, last) = (frames + 1, stamp_ns);
        if frame.data().len() == 4 {
            let sent = START_NS + passed_ns(u32::from_be_bytes(frame.data().try_into().unwrap()).into());
            assert!(stamp_ns.abs_diff(sent) < 2 * DELAY_NS, "{stamp_ns} {sent}");
        }
    }
    let lines = fs::read_to_string(&b).unwrap().lines().count();
    assert_eq!(frames, lines, "no frame is lost");
}

#[test]
fn a_bus_with_other_names_is_given_and_what_cannot_be_aligned_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = logs(&folder, "can5", frame);
    assert!(align(&[&a, &b], &["--bus", "can0=can5"]).status.success());
    let constant = tempfile::tempdir().unwrap();
    let (c, d) = logs(&constant, "can0", |_| "200#1122334455667788".to_owned());
    let table: &[(&[&Path], &[&str], i32, &str)] = &[
        (&[&a, &b], &[], 2, "no bus has the same name in both: can0 and can5 (--bus NAME=NAME)"),
        (&[&a, &b], &["--bus", "can0=can7"], 2, "no bus is named \"can7\" (there are can5)"),
        (&[&c, &d], &[], 1, "only 0 frames are common for certain"),
        (&[&a, Path::new("/nowhere.log")], &[], 1, "/nowhere.log: open: "),
    ];
    for &(paths, options, code, says) in table {
        let done = align(paths, options);
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(
            done.status.code() == Some(code) && said.contains(says),
            "{options:?}: {:?} {said}",
            done.status
        );
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

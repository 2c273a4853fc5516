//! `canter convert` from outside: what tcpdump, dumpcap and candump recorded, what goes wrong, what it says.
#![allow(clippy::unwrap_used, reason = "a test may")]

use serde_json::Value;
use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};
use tempfile::TempDir;

fn recording(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings").join(name).display().to_string()
}

fn convert(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_canter")).arg("convert").args(arguments).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Standard output of a conversion that must work.
#[track_caller]
fn converted(arguments: &[&str]) -> String {
    let output = convert(arguments);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// The recording as a log, and with options.
#[track_caller]
fn log(input: &str, options: &[&str]) -> String {
    converted(&[&[input, "-o", "-", "--format", "log"], options].concat())
}

/// A folder of its own.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        fs::write(self.path(name), content).unwrap();
        self.name(name)
    }

    fn name(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.0.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

/// FD frames of the pcap files have no bit rate switch: libpcap 1.10 clears it where the link type is CAN.
fn without_switch(log: &str) -> String {
    log.replace("##5", "##4")
}

#[test]
fn what_tcpdump_and_dumpcap_recorded_is_what_candump_recorded_beside_them() {
    let candump = fs::read_to_string(recording("candump.log")).unwrap();
    assert_eq!(log(&recording("candump.log"), &[]), candump);
    let any = &["--interfaces", "if7=vx1,if8=vx0"];
    assert_eq!(log(&recording("tcpdump-any.pcap"), any), candump);
    let sll = log(&recording("tcpdump-sll.pcap"), &[]);
    assert_eq!(sll, candump.replace("vx0", "any").replace("vx1", "any"));
    let vx1: String =
        candump.lines().filter(|line| line.contains("vx1")).map(|line| format!("{line}\n")).collect();
    let one = log(&recording("tcpdump-one.pcap"), &["--interfaces", "any=vx1"]);
    assert_eq!(one, without_switch(&vx1));
    assert_eq!(log(&recording("tcpdump-ns.pcap"), &["--interfaces", "any=vx1"]), one);
    // dumpcap writes each interface's frames as it gets them.
    let dumpcap = log(&recording("dumpcap.pcapng"), &["--sort", "1s"]);
    assert_eq!(dumpcap, without_switch(&candump));
    assert!(
        said(&convert(&[&recording("dumpcap.pcapng"), "-o", "/dev/null", "--format", "log"]))
            .contains("step back")
    );
}

#[test]
fn inputs_are_merged_renamed_filtered_and_cut_to_a_range() {
    let place = Place::new();
    let one =
        place.file("one.log", "(100.000000) can0 123#01\n(102.000000) can0 124#02\n(104.000000) can1 7FF#\n");
    let two =
        place.file("two.log", "(101.000000) can0 123#03\n(103.000000) can0 20000004#0000000000000000\n");
    let merged = converted(&[&one, &two, "-o", "-", "--format", "log"]);
    let stamps: Vec<&str> = merged.lines().map(|line| &line[8..11]).collect();
    assert_eq!(stamps, ["100", "101", "102", "103", "104"]);
    let chosen = ["--interfaces", "can0=body", "--filter", "body,123:7FF,#FFFFFFFF"];
    let some = converted(&[&[one.as_str(), &two, "-o", "-", "--format", "log"], &chosen[..]].concat());
    let lines: Vec<&str> = some.lines().map(|line| line.split_once(") ").unwrap().1).collect();
    assert_eq!(lines, ["body 123#01", "body 123#03", "body 20000004#0000000000000000"]);
    let ranges =
        [(["--from", "+1s", "--to", "+3s"], 2), (["--from", "101", "--to", "1970-01-01T00:01:44Z"], 3)];
    for (range, count) in ranges {
        let some = converted(&[&[one.as_str(), &two, "-o", "-", "--format", "log"], &range[..]].concat());
        assert_eq!(some.lines().count(), count, "{range:?}: {some}");
    }
}

#[test]
fn packed_files_and_pipes_are_read() {
    let place = Place::new();
    let candump = fs::read_to_string(recording("candump.log")).unwrap();
    let packed = place.name("packed.log.zst");
    converted(&[&recording("candump.log"), "-o", &packed]);
    assert_eq!(log(&packed, &[]), candump);
    let gz = Command::new("gzip").arg("-c").arg(recording("candump.log")).output().unwrap().stdout;
    assert_eq!(log(&place.file("packed", gz), &[]), candump);

    let mut canter = Command::new(env!("CARGO_BIN_EXE_canter"));
    canter.args(["convert", "-", "-o", "-", "--format", "csv"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = canter.stderr(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(candump.as_bytes()).unwrap();
    let csv = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    assert_eq!(csv.lines().nth(3), Some("1795308603.475535000,vx1,12345678,1,1,0,0,0,0,5,0,,"));
}

#[test]
fn a_recording_that_was_cut_off_is_converted_up_to_there_and_exits_with_3() {
    let place = Place::new();
    let (out, report) = (place.name("out.blf"), place.name("report.json"));
    for (name, keeps) in [("candump.log", 7), ("tcpdump-any.pcap", 7), ("dumpcap.pcapng", 7)] {
        let whole = fs::read(recording(name)).unwrap();
        let end = if name == "dumpcap.pcapng" { whole.len() - 250 } else { whole.len() - 3 };
        let cut = place.file(name, &whole[..end]);
        let output = convert(&[&cut, "-o", &out, "--overwrite", "--json", &report]);
        assert_eq!(output.status.code(), Some(3), "{}", said(&output));
        assert!(said(&output).contains(&format!("cut off after {keeps} frames")), "{}", said(&output));
        let report: Value = serde_json::from_str(&fs::read_to_string(&report).unwrap()).unwrap();
        assert_eq!((&report["frames"], report["cut_off"].as_array().unwrap().len()), (&keeps.into(), 1));
        assert_eq!(log(&out, &[]).lines().count(), keeps);
    }
}

#[test]
fn what_goes_wrong_is_one_line_and_leaves_nothing_behind() {
    let place = Place::new();
    let good = place.file("good.log", "(1.000000) can0 123#\n");
    let bad = place.file("bad.log", "(1.000000) can0 123#\n(2.000000) can0 12345#\n");
    let there = place.file("there.blf", "precious");
    let (new, packed) = (place.name("new.blf"), place.name("new.blf.zst"));
    let (folder, missing) = (place.0.path().display().to_string(), place.name("missing.log"));
    let nowhere = place.name("no/where.blf");
    let cases: &[(&[&str], i32, &str)] = &[
        (&[&bad, "-o", &new], 1, "bad.log: line 2: position 16: expected an identifier"),
        (&[&good, "-o", &there], 1, "(--overwrite replaces it)"),
        (&[&missing, "-o", &new], 1, "missing.log: open: no such file"),
        (&[&folder, "-o", &new], 1, "open: is a directory"),
        (&[&there, "-o", &new], 1, "no recording that canter reads"),
        (&[&good, "-o", &nowhere], 1, "no/where.blf: open: no such file"),
        (&[&good, "-o", &good, "--overwrite"], 2, "is an input too"),
        (&[&good, "-o", "x.xyz"], 2, "which format?"),
        (&[&good, "-o", &packed], 2, "cannot be packed"),
        (&[&good, "-o", "-", "--format", "mf4"], 2, "cannot go into a pipe"),
        (&[&good, "-o", &new, "--vehicle", "V1"], 2, "no place for --vehicle"),
        (&[&good, "-o", "/dev/full", "--format", "log"], 1, "write: no space left on device"),
        (&[&good, "-o", &new, "--from", "noon"], 2, "is no moment"),
        (&[&good, "-o", &new, "--interfaces", "can0"], 2, "is not OLD=NEW"),
    ];
    for (arguments, code, message) in cases {
        let output = convert(arguments);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(*code), "{arguments:?}: {said}");
        assert!(said.contains(message), "{arguments:?}: {said}");
        assert!(*code == 2 || said.lines().count() == 1, "{said}");
    }
    assert_eq!(place.names(), ["bad.log", "good.log", "there.blf"]);
    assert_eq!(fs::read_to_string(&there).unwrap(), "precious");
}

#[test]
fn a_drive_is_in_a_data_set_once() {
    let place = Place::new();
    let set = place.name("fleet");
    let arguments = [&recording("candump.log"), "-o", &set, "--format", "parquet", "--vehicle", "V 1"];
    converted(&arguments);
    let parts = "vehicle=V%201/date=2026-11-22/bus=vx0/part-1795308603410653000.parquet";
    let before = fs::read(place.path("fleet").join(parts)).unwrap();
    let again = convert(&arguments);
    assert_eq!(again.status.code(), Some(1));
    assert!(said(&again).contains("this drive is in the data set"), "{}", said(&again));
    assert_eq!(fs::read(place.path("fleet").join(parts)).unwrap(), before);
    converted(&[&arguments[..], &["--overwrite"]].concat());
    let folder = place.path("fleet").join(parts).parent().unwrap().to_owned();
    assert_eq!(fs::read_dir(folder).unwrap().count(), 1);
}

#[test]
fn what_a_format_cannot_keep_is_told_once() {
    let place = Place::new();
    let log =
        "(1.000000001) vcan0 123#0102030405060708_F T\n(1.000000002) can0 20000004#0001000000000000 R\n";
    let input = place.file("in.log", log);
    let output = convert(&[&input, "-o", &place.name("out.asc")]);
    let said = said(&output);
    for line in [
        "vcan0  1 frames, channel 1",
        "can0   1 frames, channel 2, 1 of them error frames",
        "asc does not keep of 2 frames: digits of the stamp below 1 µs (--ns keeps them)",
        "asc does not keep of 1 frames: DLCs above 8 of classic frames (written as 8)",
        "asc does not keep of 1 frames: what error frames tell (written as ErrorFrame)",
    ] {
        assert_eq!(said.matches(line).count(), 1, "{line}: {said}");
    }
    // Nothing to tell where all is kept.
    let output = convert(&[&input, "-o", &place.name("out.pcapng")]);
    assert!(!self::said(&output).contains("not keep"));
}

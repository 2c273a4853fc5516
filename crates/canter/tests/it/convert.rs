//@ machine: host
//! `canter convert` from outside: what tcpdump, dumpcap and candump recorded, what goes wrong, what it says.

use serde_json::Value;
use std::{
    fs,
    io::{Read, Write},
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
            .contains("stamps go backwards")
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
    let unfinished = place.file("unfinished.mf4", [&b"UnFinMF 4.11    logger  "[..], &[0; 200]].concat());
    let head = "stamp,interface,id,extended,rtr,fd,brs,esi,error,dlc,len,data,direction\n";
    let csv = place.file("bad.csv", format!("{head}1.0,,123,0,0,0,0,0,0,0,0,,\n"));
    let (new, packed) = (place.name("new.blf"), place.name("new.blf.zst"));
    let (empty, missing) = (place.name("empty"), place.name("missing.log"));
    fs::create_dir(&empty).unwrap();
    let nowhere = place.name("no/where.blf");
    let cases: &[(&[&str], i32, &str)] = &[
        (&[&bad, "-o", &new], 1, "bad.log: line 2: position 16: expected an identifier"),
        (&[&good, "-o", &there], 1, "(--overwrite replaces it)"),
        (&[&missing, "-o", &new], 1, "missing.log: open: no such file"),
        (&[&empty, "-o", &new], 1, "open: is a folder without Parquet files"),
        (&[&there, "-o", &new], 1, "no recording that canter reads"),
        (&[&unfinished, "-o", &new], 1, "unfinished.mf4: byte 0: is MDF 0.00, not MDF 4"),
        (&[&csv, "-o", &new], 1, "bad.csv: line 2: no interface (delete the line to read the rest)"),
        (&[&good, "-o", &nowhere], 1, "no/where.blf: open: no such file"),
        (&[&good, "-o", &good, "--overwrite"], 2, "is also an input"),
        (&[&good, "-o", "x.xyz"], 2, "unknown format"),
        (&[&good, "-o", &packed], 2, "cannot be compressed"),
        (&[&good, "-o", "-", "--format", "mf4"], 2, "cannot be written to a pipe"),
        (&[&good, "-o", &new, "--vehicle", "V1"], 2, "cannot store --vehicle"),
        (&[&good, "-o", "/dev/full", "--format", "log"], 1, "write: no space left on device"),
        (&[&good, "-o", &new, "--from", "noon"], 2, "is not a time"),
        (&[&good, "-o", &new, "--interfaces", "can0"], 2, "is not OLD=NEW"),
    ];
    for (arguments, code, message) in cases {
        let output = convert(arguments);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(*code), "{arguments:?}: {said}");
        assert!(said.contains(message), "{arguments:?}: {said}");
        assert!(*code == 2 || said.lines().count() == 1, "{said}");
    }
    assert_eq!(place.names(), ["bad.csv", "bad.log", "empty", "good.log", "there.blf", "unfinished.mf4"]);
    assert_eq!(fs::read_to_string(&there).unwrap(), "precious");
}

#[test]
fn an_empty_file_is_no_recording_to_any_command() {
    let place = Place::new();
    let (empty, rules) =
        (place.file("empty.log", ""), place.file("rules.toml", "[[rule]]\nfilter = [\"123\"]\n"));
    let canter = |arguments: &[&str]| {
        let mut canter = Command::new(env!("CARGO_BIN_EXE_canter"));
        canter.args(arguments).output().unwrap()
    };
    let out = place.name("out.csv");
    let commands: [&[&str]; 3] =
        [&["convert", &empty, "-o", &out], &["replay", &empty], &["rules", "check", &rules, &empty]];
    for arguments in commands {
        let output = canter(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {}", said(&output));
        let message = said(&output);
        assert!(message.contains("empty.log: read: is empty: not a recording"), "{arguments:?}: {message}");
        assert_eq!((message.lines().count(), output.stdout.len()), (1, 0), "{arguments:?}: {message}");
    }
    assert_eq!(place.names(), ["empty.log", "rules.toml"]);
}

#[test]
fn rules_are_checked_against_recordings_of_every_format() {
    let place = Place::new();
    let rules = place.file("rules.toml", "[[rule]]\nfilter = [\"000-7FF\"]\n");
    let check = |rules: &str, recording: &str| {
        let mut canter = Command::new(env!("CARGO_BIN_EXE_canter"));
        let output = canter.args(["rules", "check", rules, recording, "--frames"]).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout.clone()).unwrap(), said(&output))
    };
    let input = place.file("in.log", two_days());
    let (code, want, message) = check(&rules, &input);
    assert_eq!((code, message.as_str()), (Some(0), ""));
    assert!(want.lines().count() > 3, "{want}");
    let without_directions = |text: &str| text.replace(" R\n", "\n").replace(" T\n", "\n");
    for name in ["a.pcapng", "a.blf", "a.mf4", "a.csv.zst"] {
        let path = place.name(name);
        converted(&[&input, "-o", &path]);
        let (code, frames, message) = check(&rules, &path);
        assert_eq!(
            (code, without_directions(&frames)),
            (Some(0), without_directions(&want)),
            "{name}: {message}"
        );
    }
    let whole = fs::read(place.path("a.pcapng")).unwrap();
    let cut = place.file("cut.pcapng", &whole[..whole.len() - 300]);
    let (code, _, message) = check(&rules, &cut);
    assert!(
        code == Some(3) && message.contains("cut.pcapng: byte ") && message.contains("cut off after"),
        "{message}"
    );
    // A recording in the place of the rules.
    let (code, _, message) = check(&cut, &cut);
    assert_eq!(code, Some(1));
    assert!(
        message.contains("is not UTF-8 text (is it the right file? canter convert reads recordings)"),
        "{message}"
    );
}

#[test]
fn frames_whose_lengths_contradict_each_other_are_counted_and_exit_with_3() {
    let place = Place::new();
    let head = "date Tue Nov 14 10:13:20.500 pm 2023\nbase hex  timestamps absolute\n";
    let text = format!("{head}   0.1 1  123  Rx   d 2 11 22 33 44\n   0.2 1  124  Rx   d 2 11 22\n");
    let input = place.file("in.asc", text);
    let (out, report) = (place.name("out.log"), place.name("report.json"));
    let output = convert(&[&input, "-o", &out, "--json", &report]);
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    let line = format!("  doubtful: 1 frames whose DLC and length differ of {input}\n");
    assert!(said(&output).contains(&line), "{}", said(&output));
    let report: Value = serde_json::from_str(&fs::read_to_string(&report).unwrap()).unwrap();
    assert_eq!(report["inputs"][0]["flawed"]["frames whose DLC and length differ"], 1);
    assert_eq!(fs::read_to_string(&out).unwrap().lines().count(), 2);
    let rules = place.file("rules.toml", "[[rule]]\nfilter = [\"123\"]\n");
    let mut canter = Command::new(env!("CARGO_BIN_EXE_canter"));
    let checked = canter.args(["rules", "check", &rules, &input]).output().unwrap();
    assert_eq!(checked.status.code(), Some(3), "{}", said(&checked));
    assert!(said(&checked).contains("1 frames whose DLC and length differ"), "{}", said(&checked));
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

/// The recording in a format, and as a log again.
fn there_and_back(name: &str) -> String {
    let place = Place::new();
    let input = place.file("in.log", two_days());
    converted(
        &[&input, "-o", &place.name(name), "--vehicle", "V1"][..if name == "set.parquet" { 5 } else { 3 }],
    );
    log(&place.name(name), &["--ns", "--direction"])
}

/// Frames of two buses around a midnight, of each kind and in both directions.
fn two_days() -> String {
    let midnight = 1_700_006_400_u64;
    let frames = ["123#1122 R", "12345678#0102030405060708 T", "123##51122334455667788 R", "7FF#R4 T"];
    let line = |at: usize| {
        let (second, ns) = (midnight - 2 + at as u64 / 3, at as u64 % 3 * 300_000_001);
        format!("({second}.{ns:09}) can{} {}\n", at % 2, frames[at % frames.len()])
    };
    (0..12).map(line).collect()
}

#[test]
fn all_that_is_written_is_read_again_over_midnight_too() {
    let want = two_days();
    for name in ["a.pcapng", "a.pcapng.zst", "a.blf", "a.mf4", "a.csv", "a.csv.zst", "set.parquet"] {
        assert_eq!(there_and_back(name), want, "{name}");
    }
}

#[test]
fn formats_that_end_with_what_they_hold_are_read_from_pipes_and_packed() {
    let place = Place::new();
    let input = place.file("in.log", two_days());
    let mf4 = place.name("a.mf4");
    converted(&[&input, "-o", &mf4]);
    let packed = Command::new("gzip").arg("-c").arg(&mf4).output().unwrap().stdout;
    assert_eq!(log(&place.file("packed", packed), &["--ns", "--direction"]), two_days());
    let mut canter = Command::new(env!("CARGO_BIN_EXE_canter"));
    canter.args(["convert", "-", "-o", "-", "--format", "log", "--ns", "--direction"]).stdin(Stdio::piped());
    let mut child = canter.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(&fs::read(&mf4).unwrap()).unwrap();
    assert_eq!(String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap(), two_days());
}

/// How many frames a file has that holds these bytes.
fn log_lines(bytes: &[u8]) -> usize {
    let place = Place::new();
    log(&place.file("whole", bytes), &[]).lines().count()
}

#[test]
fn a_fleet_is_read_a_vehicle_or_a_bus_or_a_part_at_a_time() {
    let place = Place::new();
    let (input, fleet) = (place.file("in.log", two_days()), place.name("fleet"));
    let drive = ["-o", &fleet, "--format", "parquet", "--vehicle"];
    converted(&[&[input.as_str()], &drive[..], &["V 1"]].concat());
    let all = ["--ns", "--direction"];
    assert_eq!(log(&fleet, &all), two_days());
    converted(&[&[input.as_str()], &drive[..], &["V2"]].concat());
    let refused = convert(&[&fleet, "-o", "-", "--format", "log"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        said(&refused).contains("has the drives of 2 vehicles (name one: its folder vehicle="),
        "{}",
        said(&refused)
    );
    assert_eq!(log(&place.name("fleet/vehicle=V%201"), &all), two_days());
    let of_can1: String =
        two_days().lines().filter(|line| line.contains("can1")).map(|line| format!("{line}\n")).collect();
    let days =
        ["2023-11-14", "2023-11-15"].map(|day| place.name(&format!("fleet/vehicle=V2/date={day}/bus=can1")));
    let both = converted(&[&[days[0].as_str(), &days[1], "-o", "-", "--format", "log"], &all[..]].concat());
    assert_eq!(both, of_can1);
    let part = fs::read_dir(&days[0]).unwrap().next().unwrap().unwrap().path();
    assert!(of_can1.starts_with(&log(&part.display().to_string(), &all)));
    // A part that was cut off costs itself only.
    let whole = fs::read(&part).unwrap();
    fs::write(&part, &whole[..whole.len() - 9]).unwrap();
    let rest = convert(&[&place.name("fleet/vehicle=V2"), "-o", "-", "--format", "log"]);
    let lost = log_lines(&whole);
    assert_eq!(rest.status.code(), Some(3));
    assert_eq!(String::from_utf8(rest.stdout.clone()).unwrap().lines().count(), 12 - lost, "{}", said(&rest));
    let message =
        format!("{}: row 0: cut off after {} frames", part.canonicalize().unwrap().display(), 12 - lost);
    assert!(said(&rest).contains(&message), "{}", said(&rest));
}

#[test]
fn a_blf_that_was_cut_between_two_containers_is_told_by_its_head() {
    let place = Place::new();
    let line =
        |at: u64| format!("({}.{:06}) can0 123#{at:016X}\n", 1_700_000_000 + at / 1000, at % 1000 * 1000);
    let input = place.file("in.log", (0..20_000).map(line).collect::<String>());
    let blf = place.name("a.blf");
    converted(&[&input, "-o", &blf]);
    let whole = fs::read(&blf).unwrap();
    // The second container's beginning.
    let length = u32::from_le_bytes(whole[144 + 8..144 + 12].try_into().unwrap()) as usize;
    let second = 144 + length + length % 4;
    assert_eq!(&whole[second..second + 4], b"LOBJ");
    let read = |name: &str, content: &[u8]| {
        let output = convert(&[&place.file(name, content), "-o", "-", "--format", "log"]);
        (output.status.code(), output.stdout.split(|&byte| byte == b'\n').count() as u64 - 1, said(&output))
    };
    let (code, frames, message) = read("cut.blf", &whole[..second]);
    assert_eq!(code, Some(3), "{message}");
    assert!(
        frames > 1000 && frames < 20_000 && message.contains(&format!("cut off after {frames} frames")),
        "{message}"
    );
    // By the count of objects, of a writer that does not tell the size.
    let mut no_size = whole[..second].to_vec();
    no_size[16..24].fill(0);
    assert_eq!(read("count.blf", &no_size).0, Some(3));
    // By neither, of one that was killed: then nobody can know.
    no_size[32..36].fill(0);
    let (code, _, message) = read("neither.blf", &no_size);
    assert_eq!(code, Some(3), "{message}");
    let doubt = format!("doubtful: {frames} frames that the header does not count (not closed:");
    assert!(message.contains(&doubt), "{message}");
    assert_eq!(read("whole.blf", &whole).0, Some(0));
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
        "asc omits from 2 frames: digits of the stamp below 1 µs (--ns keeps them)",
        "asc omits from 1 frames: DLCs above 8 of classic frames (written as 8)",
        "asc omits from 1 frames: what error frames report (written as ErrorFrame)",
    ] {
        assert_eq!(said.matches(line).count(), 1, "{line}: {said}");
    }
    // Nothing to tell where all is kept.
    let output = convert(&[&input, "-o", &place.name("out.pcapng")]);
    assert!(!self::said(&output).contains("omits from"));
}

#[test]
fn what_is_readable_of_a_damaged_recording_is_converted_on_request_and_the_rest_is_named() {
    let place = Place::new();
    let whole = fs::read(recording("dumpcap.pcapng")).unwrap();
    // The last block but four, and zeros, as after a loss of power.
    let zeros = [&whole[..whole.len() - 250], &[0; 4096]].concat();
    let damaged = place.file("damaged.pcapng", zeros);
    let text = "(1.000000) can0 001#\n(2.000000) can0 12345#\n(3.000000) can0 003#\n";
    let lines = place.file("lines.log", text);
    let (out, report) = (place.name("out.csv"), place.name("report.json"));
    for input in [&damaged, &lines] {
        let refused = convert(&[input, "-o", &out]);
        assert_eq!(refused.status.code(), Some(1), "{}", said(&refused));
        assert!(said(&refused).ends_with("; --salvage skips what is damaged\n"), "{}", said(&refused));
        assert!(!place.path("out.csv").exists());
    }
    let kept = convert(&["--salvage", &lines, "-o", &out, "--json", &report]);
    assert_eq!(kept.status.code(), Some(3));
    let line = "lines.log: 2 frames were read, 23 bytes from line 2, byte 21 on were skipped: position 16: \
                expected an identifier";
    assert!(said(&kept).contains("  salvaged: ") && said(&kept).contains(line), "{}", said(&kept));
    let report: Value = serde_json::from_str(&fs::read_to_string(&report).unwrap()).unwrap();
    assert_eq!((&report["frames"], &report["cut_off"]), (&2.into(), &Value::Array(Vec::new())));
    assert!(report["salvaged"][0].as_str().unwrap().contains("23 bytes"), "{report}");
    assert_eq!(log(&out, &[]).lines().count(), 2);

    let kept = convert(&["--salvage", &damaged, "-o", &out, "--overwrite"]);
    assert_eq!(kept.status.code(), Some(3));
    assert!(
        said(&kept).contains(": 7 frames were read, ") && said(&kept).contains(" bytes from byte "),
        "{}",
        said(&kept)
    );
    let seven: String =
        log(&recording("dumpcap.pcapng"), &[]).lines().take(7).map(|line| format!("{line}\n")).collect();
    assert_eq!(log(&out, &[]), seven);
    // Without damage there is no sentence and no error code.
    let whole = convert(&["--salvage", &recording("candump.log"), "-o", &out, "--overwrite"]);
    assert_eq!((whole.status.code(), said(&whole).contains("salvaged")), (Some(0), false));
}

/// The frames of a recording, by the library.
fn frames(bytes: &[u8]) -> Option<Vec<(u64, String)>> {
    let input = Box::new(std::io::Cursor::new(bytes.to_vec()));
    let mut reader =
        canter_formats::Reader::from_read("", input, canter_formats::FORMATS).ok()?.salvage(true);
    let mut frames = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        frames.push((record.stamp_ns, format!("{} {}", reader.name(record.bus), record.frame)));
    }
    Some(frames)
}

#[test]
fn recordings_of_other_programs_that_are_cut_off_at_any_byte_have_no_frame_that_was_not_there() {
    let place = Place::new();
    for name in [
        "candump.log",
        "dumpcap.pcapng",
        "tcpdump-any.pcap",
        "tcpdump-ns.pcap",
        "a.asc",
        "a.blf",
        "a.csv",
        "a.mf4",
    ] {
        let path = if let Some(end) = name.strip_prefix("a.") {
            let path = place.name(&format!("all.{end}"));
            converted(&[&recording("candump.log"), "-o", &path]);
            path
        } else {
            recording(name)
        };
        let whole = fs::read(path).unwrap();
        let want = frames(&whole).unwrap();
        assert!(want.len() > 2, "{name}");
        for at in 1..whole.len() {
            let Some(frames) = frames(&whole[..at]) else {
                assert!(at < 80, "{name} at {at}: not recognised");
                continue;
            };
            assert!(want.starts_with(&frames), "{name} at {at}");
        }
    }
}

/// An ASC file as CANoe writes it, of one frame.
const ASC: &str = "date Fri Jul 14 12:00:00.500 2023\nbase hex  timestamps absolute\nBegin Triggerblock Fri Jul 14 12:00:00.500 2023\n   0.250000 1  123  Rx   d 2 11 22\nEnd TriggerBlock\n";

#[test]
fn dates_without_a_time_zone_are_in_the_zone_of_the_command_line_or_utc_which_is_said() {
    let place = Place::new();
    let asc = place.file("in.asc", ASC);
    // A BLF of another program: the date in the header, and no names of channels.
    let blf = place.name("in.blf");
    converted(&[&asc, "-o", &blf]);
    let mut bytes = fs::read(&blf).unwrap();
    let container = bytes.split_off(144);
    let mut objects = Vec::new();
    flate2::read::ZlibDecoder::new(&container[32..]).read_to_end(&mut objects).unwrap();
    let frame = objects.windows(4).rposition(|four| four == b"LOBJ").unwrap();
    bytes.extend(&objects[frame..]);
    bytes[16..24].fill(0); // the size in the header
    bytes[32..36].copy_from_slice(&1u32.to_le_bytes()); // and the number of objects
    let blf = place.file("in.blf", bytes);
    let line = " names no time zone: taken as UTC (--zone local, Europe/Prague or +01:00)\n";
    for input in [&asc, &blf] {
        let stamp = |options: &[&str], zone: &str| {
            let mut canter = Command::new(env!("CARGO_BIN_EXE_canter"));
            canter.args(["convert", input, "-o", "-", "--format", "log"]).args(options).env("TZ", zone);
            let output = canter.output().unwrap();
            assert_eq!(output.status.code(), Some(0), "{}", said(&output));
            let seconds: u64 = String::from_utf8_lossy(&output.stdout)[1..11].parse().unwrap();
            ((seconds as i64 - 1_689_336_000) / 60, said(&output).contains(line))
        };
        assert_eq!(stamp(&[], "America/New_York"), (0, true), "{input}");
        assert_eq!(stamp(&["--zone", "UTC"], ""), (0, false));
        assert_eq!(stamp(&["--zone", "+01:00"], ""), (-60, false));
        assert_eq!(stamp(&["--zone", "-05:30"], ""), (330, false));
        assert_eq!(stamp(&["--zone", "Europe/Prague"], ""), (-120, false), "summer time");
        assert_eq!(stamp(&["--zone", "local"], "America/New_York"), (240, false));
    }
    // What canter writes is in UTC and says so; the option is for files that do not.
    for end in ["asc", "blf"] {
        let ours = place.name(&format!("ours.{end}"));
        converted(&[&asc, "-o", &ours]);
        let output = convert(&[&ours, "-o", "-", "--format", "log", "--zone", "+05:00"]);
        assert!(output.stdout.starts_with(b"(1689336000.750000) can0 123#1122"), "{}", said(&output));
        let output = convert(&[&ours, "-o", "-", "--format", "log"]);
        assert!(!said(&output).contains("time zone"), "{}", said(&output));
    }
    let wrong = convert(&[&asc, "-o", "-", "--format", "log", "--zone", "Prague"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(said(&wrong).contains("is not a time zone of this machine (Europe/Prague, +01:00, UTC, local)"));
}

#[test]
fn ten_thousand_inputs_are_merged_with_few_file_descriptors_and_little_memory() {
    const FILES: u64 = 10_000;
    let place = Place::new();
    let mut want = Vec::new();
    for at in 0..FILES {
        // Each is under way while the next hundred begin; the first is to the end.
        let stamps =
            [at * 1000, at * 1000 + 100_000, if at == 0 { FILES * 1000 } else { at * 1000 + 100_001 }];
        let line = |us: &u64| format!("({:010}.{:06}) can0 {:08X}#\n", us / 1_000_000, us % 1_000_000, at);
        let lines: Vec<String> = stamps.iter().map(line).collect();
        place.file(&format!("{at}.log"), lines.concat());
        want.extend(stamps.iter().copied().zip(lines));
    }
    want.sort_by_key(|(stamp, _)| *stamp);
    // 256 file descriptors, and 300 MB of addresses, in which a buffer for each input has no room.
    let limits = "ulimit -n 256 -v 300000 && exec \"$@\"";
    let mut canter = Command::new("bash");
    canter.args([
        "-c",
        limits,
        "bash",
        env!("CARGO_BIN_EXE_canter"),
        "convert",
        "-o",
        "all.log",
        "--json",
        "report.json",
    ]);
    canter.args((0..FILES).map(|at| format!("{at}.log")));
    let output = canter.current_dir(place.0.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let got = fs::read_to_string(place.path("all.log")).unwrap();
    let stamps = |text: &str| text.lines().map(|line| line[..19].to_owned()).collect::<Vec<_>>();
    let want: String = want.into_iter().map(|(_, line)| line).collect();
    assert_eq!(stamps(&got), stamps(&want));
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&got), sorted(&want));
    let report: Value =
        serde_json::from_str(&fs::read_to_string(place.path("report.json")).unwrap()).unwrap();
    let inputs = report["inputs"].as_array().unwrap();
    assert!(inputs.len() as u64 == FILES && inputs.iter().all(|input| input["frames"] == 3));
}

#[test]
fn a_file_that_is_replaced_keeps_its_rights() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let out = place.file("out.log", "");
    fs::set_permissions(&out, fs::Permissions::from_mode(0o600)).unwrap();
    converted(&[&recording("candump.log"), "-o", &out, "--overwrite"]);
    let about = fs::metadata(&out).unwrap();
    assert_eq!((about.permissions().mode() & 0o777, about.len() > 0), (0o600, true));
}

#[test]
fn a_format_that_cannot_count_the_buses_says_so() {
    let place = Place::new();
    let lines: String = (0..256).map(|bus| format!("(1.{bus:06}) b{bus} 123#\n")).collect();
    let input = place.file("many.log", lines);
    let out = place.name("many.mf4");
    let refused = convert(&[&input, "-o", &out]);
    assert_eq!(refused.status.code(), Some(1), "{}", said(&refused));
    assert!(
        said(&refused).contains("b255: a file of this format has at most 255 buses"),
        "{}",
        said(&refused)
    );
    assert_eq!(said(&refused).lines().count(), 1, "{}", said(&refused));
    assert_eq!(place.names(), ["many.log"]);
}

#[test]
fn a_stamp_that_a_data_set_cannot_hold_is_refused_and_nothing_is_left_behind() {
    let place = Place::new();
    // Its ns end on 11 April 2262, and those of canter in 2554.
    let input = place.file("late.log", "(9223372036.000000) can0 123#\n(9223372037.000000) can0 123#\n");
    let refused = convert(&[&input, "-o", &place.name("set.parquet/"), "--vehicle", "v1"]);
    assert_eq!(refused.status.code(), Some(1), "{}", said(&refused));
    assert!(said(&refused).contains("a stamp after the year 2262"), "{}", said(&refused));
    let (same, again) = (place.name("same.csv"), place.name("again.log"));
    assert!(convert(&[&input, "-o", &same]).status.success());
    assert!(convert(&[&same, "-o", &again]).status.success());
    assert_eq!(fs::read(&again).unwrap(), fs::read(&input).unwrap());
}

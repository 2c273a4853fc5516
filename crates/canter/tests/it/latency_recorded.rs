//@ machine: host
//! `canter latency FILE`: the delay of a gateway from recordings whose delays and losses are known; `canter dump FILE`.

use canter_formats::{BusId, FORMATS, Frame, RawRecord};
use serde_json::Value;
use std::{
    fmt::Write as _,
    fs,
    io::Read as _,
    path::PathBuf,
    process::{Command, Output, Stdio},
};
use tempfile::TempDir;

fn canter(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_canter")).args(arguments).output().unwrap()
}

#[track_caller]
fn text(arguments: &[&str], code: i32) -> String {
    let output = canter(arguments);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
    String::from_utf8(output.stdout).unwrap() + &said
}

struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str, content: &str) -> String {
        let path: PathBuf = self.0.path().join(name);
        fs::write(&path, content).unwrap();
        path.display().to_string()
    }
}

/// Ten seconds of a gateway in both directions, of can1 and can2: 0C9 with a counter and 1A0 with constant data go to can2
/// with 200 to 290 µs, 300 with constant data goes to can1 with 150 µs; 700 stays on can1, 701 on can2. Of 0C9 the frames
/// 100 and 101 are lost, of 1A0 the frame 50.
fn drive(changed: impl Fn(&str) -> String) -> String {
    let mut lines: Vec<(u64, String)> = Vec::new();
    let mut frame = |us: u64, bus: &str, text: &str| {
        let stamp = format!("({}.{:06})", 1_700_000_000 + us / 1_000_000, us % 1_000_000);
        lines.push((us, format!("{stamp} {bus} {text}")));
    };
    for n in 0..1000u64 {
        let us = n * 10_000;
        let delay_us = 200 + n % 10 * 10;
        let counted = format!("0C9#{:02X}00", n % 256);
        frame(us, "can1", &counted);
        if n != 100 && n != 101 {
            frame(us + delay_us, "can2", &changed(&counted));
        }
        if n % 2 == 0 {
            frame(us + 3000, "can1", "1A0#AABB");
            if n != 100 {
                frame(us + 3000 + delay_us, "can2", &changed("1A0#AABB"));
            }
        }
        if n % 5 == 0 {
            frame(us + 5000, "can2", "300#55");
            frame(us + 5150, "can1", "300#55");
            frame(us + 6000, "can1", "700#");
            frame(us + 6500, "can2", "701#");
        }
    }
    lines.sort();
    lines.iter().fold(String::new(), |mut log, (_, line)| {
        writeln!(log, "{line}").unwrap();
        log
    })
}

fn ledger(path: &str, options: &[&str], code: i32) -> (u64, u64, u64, Value) {
    let common = ["latency", path, "--direct", "can1", "--routed", "can2", "--json", "-", "--quiet"];
    let document: Value = serde_json::from_str(&text(&[&common, options].concat(), code)).unwrap();
    let series = &document["series"][0];
    let ledger = &series["ledger"];
    let number = |value: &Value| value.as_u64().unwrap();
    let lost = number(&ledger["lost"]["unaccounted"]);
    (number(&ledger["sent"]), number(&ledger["received"]), lost, series["latency_ns"].clone())
}

#[test]
fn delays_and_losses_of_a_gateway_are_found_among_like_frames_and_both_directions() {
    let place = Place::new();
    let path = place.file("drive.log", &drive(str::to_owned));
    let (sent, received, lost, delay) = ledger(&path, &[], 3);
    assert_eq!((sent, received, lost), (1500, 1497, 3));
    assert_eq!((delay["min"].as_u64(), delay["max"].as_u64()), (Some(200_000), Some(290_000)));
    assert_eq!(delay["count"], 1497);
    let shown = text(&["latency", &path, "--direct", "can1", "--routed", "can2"], 3);
    for part in [
        "can1 → can2: 1 500 frames\n",
        "  1 497  arrived\n",
        "      3  lost or later than 580 µs: 0C9 (2), 1A0 (1)\n",
        "    200  not forwarded: no frame of their identifiers came out\n",
        "go the other way, from can2 to can1\n",
    ] {
        assert!(shown.contains(part), "{part:?}: {shown}");
    }
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    // The other direction.
    let back = text(&["latency", &path, "--direct", "can2", "--routed", "can1"], 0);
    assert!(back.contains("can2 → can1: 200 frames\n") && back.contains("  150  150  150"), "{back}");
    // A frame of 2 bytes takes 63 to 68 bits of 2 µs.
    let (.., delay) = ledger(&path, &["--bitrate", "500k"], 3);
    let min_ns = delay["min"].as_u64().unwrap();
    assert!((200_000 - 140_000..=200_000 - 120_000).contains(&min_ns), "{min_ns}");
}

#[test]
fn a_gateway_that_changes_frames_is_measured_by_its_rules() {
    let place = Place::new();
    let changed = |text: &str| text.replace("1A0#", "2A0#");
    let path = place.file("drive.log", &drive(changed));
    let rules = place.file(
        "rules.toml",
        "[[rule]]\nfilter = [\"1A0\"]\nset = { id = \"2A0\" }\n[[rule]]\nfilter = [\"0C9\"]\n",
    );
    let (sent, received, lost, delay) = ledger(&path, &["--rules", &rules], 3);
    assert_eq!((sent, received, lost), (1500, 1497, 3));
    assert_eq!(delay["max"].as_u64(), Some(290_000));
    let (sent, ..) = ledger(&path, &[], 3);
    assert_eq!(sent, 1000, "without the rules, 1A0 is not forwarded");
}

/// A frame every millisecond for 40 s, on can1 and 150 to 220 µs later on can2, as a pcapng with the stamps of the controllers.
/// The kernel's stamps are late by up to 130 µs on can1 and 930 µs on can2. The clock of can1's controller is 100 ppm fast, that of
/// can2's is 5000 s ahead of it unless both have one clock.
fn stamped(place: &Place, name: &str, one_clock: bool, is_stamped: impl Fn(u64) -> bool) -> String {
    let mut pcapng = FORMATS.iter().find(|row| row.name == "pcapng").unwrap().append.unwrap()(true);
    let mut out = Vec::new();
    pcapng.begin(&mut out);
    ["can1", "can2"].iter().for_each(|bus| pcapng.interface(&mut out, bus));
    let mut random: u64 = 7;
    let mut late_ns = |range_ns: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        30_000 + (random >> 33) % range_ns
    };
    let mut frames = Vec::new();
    for n in 0..40_000u64 {
        for bus in [0, 1] {
            let ns = 1_700_000_000_000_000_000 + n * 1_000_000 + bus * (150_000 + n % 8 * 10_000);
            let fast = ns / 10_000 - 170_000_000_000_000;
            let ahead_ns = if bus == 1 && !one_clock { 5_000_000_000_000 } else { fast };
            frames.push((
                ns + late_ns(100_000 + bus * 800_000),
                bus,
                n,
                ns - 1_699_999_000_000_000_000 + ahead_ns,
            ));
        }
    }
    frames.sort_unstable();
    for (stamp_ns, bus, n, hardware_ns) in frames {
        let bytes = format!("123#{n:08X}").parse::<Frame>().unwrap().kernel_bytes();
        let hardware_ns = if is_stamped(n) { hardware_ns } else { 0 };
        let record = RawRecord { hardware_ns, ..RawRecord::new(stamp_ns, BusId(bus as u32), &bytes[..16]) };
        pcapng.frame(&mut out, &record, false);
    }
    let path = place.0.path().join(name);
    fs::write(&path, out).unwrap();
    path.display().to_string()
}

#[test]
fn delays_by_the_stamps_of_controllers_are_those_of_the_bus() {
    let place = Place::new();
    let path = stamped(&place, "drive.pcapng", false, |_| true);
    let ends = ["latency", &path, "--direct", "can1", "--routed", "can2"];
    let percentiles = |options: &[&str]| {
        let options = [&["--max-delay", "5ms"], options].concat();
        let (.., delay) = ledger(&path, &options, 0);
        ["p50", "p90", "negative"].map(|name| delay[name].as_u64().unwrap())
    };
    // The true median is 180 µs, the 90th percentile 220 µs.
    let [p50, ..] = percentiles(&["--stamps", "recorded"]);
    assert!((450_000..=700_000).contains(&p50), "the kernel's stamps are late: {p50}");
    let [p50, p90, negative] = percentiles(&["--stamps", "aligned"]);
    assert!((170_000..=195_000).contains(&p50) && (205_000..=235_000).contains(&p90), "{p50} {p90}");
    assert!(negative < 40, "{negative}");
    assert_eq!(percentiles(&[]), [p50, p90, negative], "unless given, the controllers' stamps count");
    let shown = text(&ends, 0);
    assert!(shown.contains("\n  stamps: the controllers', on the system's clock: ±"), "{shown}");
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    // These stamps are of two clocks.
    let said = text(&[&ends[..], &["--stamps", "controller"]].concat(), 2);
    assert!(said.contains("can1 and can2: the controllers' clocks are 5"), "{said}");
    assert!(said.ends_with(" apart (--stamps aligned)\n"), "{said}");
}

#[test]
fn delays_between_two_channels_of_one_clock_are_exact() {
    let place = Place::new();
    let path = stamped(&place, "card.pcapng", true, |_| true);
    let (.., delay) = ledger(&path, &["--stamps", "controller"], 0);
    let figures = ["min", "max", "negative"].map(|name| delay[name].as_u64().unwrap());
    // 100 ppm of 220 µs are 22 ns.
    assert_eq!(figures, [150_015, 220_022, 0]);
    let ends = ["latency", &path, "--direct", "can1", "--routed", "can2", "--stamps", "controller"];
    let shown = text(&ends, 0);
    assert!(shown.contains("\n  stamps: the controllers' own, as of one clock\n"), "{shown}");
}

#[test]
fn frames_without_the_stamp_of_a_controller_are_not_mixed_with_others() {
    let place = Place::new();
    let path = stamped(&place, "drive.pcapng", true, |n| n % 4 != 0);
    let ends = ["latency", &path, "--direct", "can1", "--routed", "can2"];
    let shown = text(&ends, 0);
    assert!(shown.contains("\n  stamps: the recording's\n"), "{shown}");
    assert!(shown.contains("lack a controller's stamp: the recording's stamps are used\n"), "{shown}");
    let said = text(&[&ends[..], &["--stamps", "aligned"]].concat(), 2);
    assert!(said.contains("can1 and can2: ") && said.contains(" lack a controller's stamp"), "{said}");
    let log = place.file("drive.log", &drive(str::to_owned));
    let said = text(&["latency", &log, "--direct", "can1", "--routed", "can2", "--stamps", "controller"], 2);
    assert!(
        said.contains("497 delays lack a controller's stamp (canter capture --hw-stamps records them"),
        "{said}"
    );
}

#[test]
fn a_frame_that_came_out_before_it_went_in_has_no_delay_and_is_counted() {
    let place = Place::new();
    let lines =
        "(1.000000) can1 123#01\n(1.000150) can2 123#01\n(1.100100) can1 123#02\n(1.100050) can2 123#02\n";
    let path = place.file("drive.log", lines);
    let (sent, received, lost, delay) = ledger(&path, &["--max-delay", "1s"], 0);
    assert_eq!((sent, received, lost), (2, 2, 0));
    assert_eq!((delay["min"].as_u64(), delay["max"].as_u64()), (Some(0), Some(150_000)));
    assert_eq!(delay["negative"].as_u64(), Some(1));
    let ends = ["latency", &path, "--direct", "can1", "--routed", "can2", "--max-delay", "1s"];
    let shown = text(&ends, 0);
    assert!(shown.contains("\n  1 delay below 0 by the stamps, counted as 0\n"), "{shown}");
}

#[test]
fn what_cannot_be_analysed_is_refused_in_one_line() {
    let place = Place::new();
    let path = place.file("drive.log", &drive(str::to_owned));
    let rules = place.file("rules.toml", "[[route]]\nfrom = \"can7\"\nto = \"can8\"\n");
    for (options, code, part) in [
        (
            &["--direct", "can1", "--routed", "can9"][..],
            2,
            "--routed: the recording has no bus \"can9\" (it has can1, can2)",
        ),
        (&["--routed", "can2"], 2, "--direct: give the bus --direct of the gateway"),
        (&["--direct", "can1", "--routed", "can1"], 2, "can1: is both --direct and --routed"),
        (&["--direct", "can1", "--routed", "can2", "--rules", &rules], 2, "has no route from can1 to can2"),
        (&["--direct", "can1", "--routed", "can2", "--filter", "123"], 2, "no frame of 3797 was selected"),
        (
            &["--direct", "can1", "--routed", "can2", "--max-delay", "1us"],
            1,
            "no frame of can1 came out on can2",
        ),
    ] {
        let output = canter(&[&["latency", path.as_str()], options].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{options:?}: {said}");
        assert!(said.contains(part) && said.lines().count() == 1, "{options:?}: {said}");
    }
    for option in [
        "--count=5",
        "--gap=1ms",
        "--stages",
        "--beside-sockets",
        "--through=can1,can2",
        "--timeline",
        "--len=8",
    ] {
        let output = canter(&["latency", &path, "--direct", "can1", "--routed", "can2", option]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{option}: {said}");
        let name = option.split('=').next().unwrap();
        assert!(said.contains(name) && said.contains("cannot be"), "{option}: {said}");
    }
    let output = canter(&["latency", "--send", "can0", "--routed", "can2", "--from", "10s"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("--from: is for recordings"), "{output:?}");
}

#[test]
fn a_recording_is_dumped_as_candump_would_print_it() {
    let place = Place::new();
    let log = "(1700000000.000001) can0 123#DEAD41\n(1700000000.500001) can10 12345678#R\n";
    let path = place.file("drive.log", log);
    assert_eq!(text(&["dump", &path, "-L"], 0), log);
    let plain = "  can0  123   [3]  DE AD 41\n  can10  12345678   [0]  remote request\n";
    assert_eq!(text(&["dump", &path], 0), plain);
    let delta = " (000.000000)   can0  123   [3]  DE AD 41                  '..A'\n";
    assert_eq!(
        text(&["dump", &path, "-t", "d", "-a", "--filter", "123"], 0),
        delta.replace("   can0", "  can0")
    );
    assert_eq!(text(&["dump", &path, "-n", "1"], 0).lines().count(), 1);
    assert!(text(&["dump", &path, "--colour"], 0).contains("\u{1b}["));
    let said = text(&["dump", &path, "--filter", "7FF"], 2);
    assert!(
        said.contains("no frame of 2 was selected (it has can0, can10; identifiers 123, 12345678)"),
        "{said}"
    );
    assert!(text(&["dump", "nosuch.blf"], 1).contains("nosuch.blf: open: no such file or directory"));
    assert!(
        text(&["dump", "0C9:7FF"], 2).contains("0C9:7FF: is a filter without an interface (any,0C9:7FF)")
    );
}

#[test]
fn a_reader_that_has_enough_is_no_error() {
    let place = Place::new();
    let path = place.file("drive.log", &drive(str::to_owned));
    for command in [&["dump", &path][..], &["convert", &path, "-o", "-", "--format", "log"]] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_canter"))
            .args(command)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // Like head -1: one line is read, then the pipe is closed.
        let mut byte = [0];
        child.stdout.take().unwrap().read_exact(&mut byte).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0), "{command:?}: {output:?}");
    }
}

//@ machine: host
//! `canter info` from outside: what it says of recordings with known periods and gaps, comparisons, folders, bad input.

use serde_json::Value;
use std::{
    fmt::Write,
    fs,
    process::{Command, Output},
};
use tempfile::TempDir;

struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str, content: &str) -> String {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path.display().to_string()
    }
}

fn info(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_canter")).arg("info").args(arguments).output().unwrap()
}

#[track_caller]
fn text(arguments: &[&str], code: i32) -> String {
    let output = info(arguments);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
    String::from_utf8(output.stdout).unwrap() + &said
}

/// Ten seconds: 0C9 every 10 ms on can0 without its frames 500 and 501, 18DA10F1 every 100 ms on can1, and an error.
fn drive(base_s: u64) -> String {
    let mut log = String::new();
    for ms in 0..10_000u64 {
        let stamp = format!("({}.{:06})", base_s + ms / 1000, ms % 1000 * 1000);
        if ms % 10 == 0 && ms / 10 != 500 && ms / 10 != 501 {
            writeln!(log, "{stamp} can0 0C9#00{:02X}", ms / 10 % 256).unwrap();
        }
        if ms % 100 == 0 {
            writeln!(log, "{stamp} can1 18DA10F1#0210").unwrap();
        }
        if ms == 7000 {
            writeln!(log, "{stamp} can1 20000088#0000000000000000").unwrap();
        }
    }
    log
}

#[test]
fn periods_gaps_and_missing_frames_of_a_recording_are_found() {
    let place = Place::new();
    let path = place.file("drive.log", &drive(1_700_000_000));
    let shown = text(&[&path], 0);
    assert!(shown.contains("(log): 1 098 frames, 2 identifiers, 2 buses\n"), "{shown}");
    assert!(shown.contains("2023-11-14T22:13:20.000Z to 2023-11-14T22:13:29.990Z"), "{shown}");
    let row = shown.lines().find(|line| line.contains(" 0C9 ")).unwrap();
    let words: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(words, "can0 0C9 998 2 10.0 ms 0 ns 30.0 ms 2 .1".split(' ').collect::<Vec<_>>(), "{shown}");
    assert!(shown.contains("errors of can1: bus-error 1, protocol-violation 1"), "{shown}");
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");

    let document: Value =
        serde_json::from_str(&text(&[&path, "--bitrate", "can0=500k", "--json", "-"], 0)).unwrap();
    let row = &document["identifiers"][0];
    assert_eq!((row["period_ns"].as_u64(), row["missing"].as_u64()), (Some(10_000_000), Some(2)));
    assert_eq!(row["longest_gap_begin_ns"].as_u64(), Some(1_700_000_004_990_000_000));
    assert_eq!(row["changing_bytes"], serde_json::json!([1]));
    let [can0, can1] = [0, 1].map(|at| &document["buses"][at]);
    // 63 to 68 bits of 2 µs every 10 ms.
    let load = can0["load_percent"].as_f64().unwrap();
    assert!((1.2..1.4).contains(&load), "{load}");
    assert!(can1["load_percent"].is_null() && can1["bits"].as_u64() > Some(8000), "{can1}");
}

#[test]
fn a_selection_is_that_of_convert_and_one_of_nothing_names_what_there_is() {
    let place = Place::new();
    let path = place.file("drive.log", &drive(1_700_000_000));
    for filter in ["0C9", "can0", "0C9:7FF", "any,0C9"] {
        assert!(
            text(&[&path, "--filter", filter], 0).contains("998 frames, 1 identifier, 1 bus"),
            "{filter}"
        );
    }
    assert!(text(&[&path, "--from", "9s"], 0).contains("110 frames"));
    for (options, parts) in [
        (
            &["--filter", "123"][..],
            &["no frame of 1099 was selected (it has can0, can1; identifiers 0C9, 18DA10F1"][..],
        ),
        (&["--filter", "can9"], &["has no interface \"can9\" of --filter (it has can0, can1)"]),
        (&["--interfaces", "can9=body"], &["has no interface \"can9\" of --interfaces (it has can0, can1)"]),
        (&["--from", "1h"], &["no frame of 1099 was selected", "9.99 s from 2023-11-14T22:13:20.000Z"]),
        (&["--from", "+5s", "--to", "2s"], &["--to: is not after --from"]),
        (&["--bitrate", "can9=500k"], &["--bitrate: no bus is named \"can9\" (there are can0, can1)"]),
        (&["--compare"], &["--compare: give two recordings"]),
    ] {
        let said = text(&[&[path.as_str()], options].concat(), 2);
        assert!(parts.iter().all(|part| said.contains(part)), "{options:?}: {said}");
        assert_eq!(said.lines().count(), 1, "{options:?}: {said}");
    }
}

#[test]
fn a_comparison_finds_what_changed_and_its_exit_code_says_so() {
    let place = Place::new();
    let old = place.file("old.log", &drive(1_700_000_000));
    let new = place.file("new.log", &drive(1_800_000_000).replace("18DA10F1", "18DA10F2"));
    let said = text(&["--compare", &old, &new], 1);
    assert!(said.contains("  new       can1  18DA10F2"), "{said}");
    assert!(said.contains("  vanished  can1  18DA10F1"), "{said}");
    assert!(said.ends_with("2 differences; both recordings have 1 identifier in common\n"), "{said}");
    let same = text(&["--compare", &old, &old], 0);
    assert_eq!(same, "no differences; both recordings have 2 identifiers in common\n");
    let document: Value = serde_json::from_str(&text(&["--compare", &old, &new, "--json", "-"], 1)).unwrap();
    assert_eq!(document["differences"][0]["change"], "new");
    let other = place.file("other.log", &drive(1_700_000_000).replace("can", "vcan"));
    assert!(text(&["--compare", &old, &other], 1).contains("(--interfaces OLD=NEW renames a bus)"));
    text(&["--compare", &old, &other, "--interfaces", "vcan0=can0,vcan1=can1"], 0);
}

#[test]
fn a_folder_is_one_recording_with_a_pause_between_its_files() {
    let place = Place::new();
    place.file("logs/1.log", &drive(1_700_000_000));
    place.file("logs/later/2.log", &drive(1_700_003_600));
    place.file("logs/1.log.account.json", "{}");
    let folder = place.0.path().join("logs").display().to_string();
    let shown = text(&[&folder], 0);
    assert!(shown.contains("logs (2 recordings): 2 196 frames"), "{shown}");
    assert!(shown.contains("1 files of the folder are not named as recordings"), "{shown}");
    let row = shown.lines().find(|line| line.contains(" 0C9 ")).unwrap();
    assert!(row.contains(" 10.0 ms ") && row.ends_with(" 4  .1"), "a pause is no missing frame: {shown}");
}

#[test]
fn a_recording_that_is_cut_off_or_none_is_reported() {
    let place = Place::new();
    let log = drive(1_700_000_000);
    let cut = place.file("cut.log", &log[..log.len() - 4]);
    let shown = text(&[&cut], 3).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(shown.contains("cut off after 1098 frames: all frames before were read"), "{shown}");
    let empty = place.file("empty.pcapng", "");
    assert!(text(&[&empty], 1).contains("empty.pcapng: read: is empty: not a recording"));
    assert!(text(&[&place.0.path().join("none").display().to_string()], 1).contains("no such file"));
}

#[test]
fn a_database_gives_identifiers_their_names() {
    let place = Place::new();
    let path = place.file("drive.log", &drive(1_700_000_000));
    let engine = "BO_ 201 EngineWithAnEspeciallyLongName: 2 X\n SG_ Count : 15|8@0+ (1,0) [0|0] \"\" X\n";
    let body = place.file("body.dbc", &engine.replace("EngineWithAnEspeciallyLongName", "Body"));
    let car = place.file("car.dbc", engine);
    let shown = text(&[&path, "--dbc", &car], 0);
    assert!(shown.contains("0C9       EngineWithAnEspeciallyLongName"), "{shown}");
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    let of_bus = ["--dbc", &format!("can0={body}"), "--dbc", &car].map(str::to_owned);
    let words: Vec<&str> = std::iter::once(path.as_str()).chain(of_bus.iter().map(String::as_str)).collect();
    let document: Value = serde_json::from_str(&text(&[&words[..], &["--json", "-"]].concat(), 0)).unwrap();
    assert_eq!(
        (&document["identifiers"][0]["name"], &document["identifiers"][1]["name"]),
        (&"Body".into(), &Value::Null)
    );
    assert!(
        text(&[&path, "--dbc", &car, "--filter", "EngineWithAnEspeciallyLongName"], 0)
            .contains("1 identifier, 1 bus")
    );
    assert!(text(&[&path, "--dbc", &format!("can1={car}")], 0).contains("wrong database?"));
    let other = place.file("other.log", &drive(1_700_000_000).replace("0C9", "0CA"));
    let changes = text(&["--compare", &path, &other, "--dbc", &body], 1);
    assert!(changes.contains("vanished  can0  0C9  Body"), "{changes}");
}

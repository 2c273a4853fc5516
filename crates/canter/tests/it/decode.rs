//@ machine: host
//! `canter decode` on recordings: text, tables, the line of coverage, trouble.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};
use tempfile::TempDir;

const DATABASE: &str = "\
BO_ 291 Engine: 8 ECU
 SG_ Mode M : 0|4@1+ (1,0) [0|0] \"\" Dash
 SG_ Speed m0 : 8|16@1+ (0.25,0) [0|16000] \"rpm\" Dash
 SG_ Heat m1 : 15|8@0- (1,40) [0|0] \"C\" Dash

BO_ 2364540158 EEC1: 12 X
 SG_ Torque : 0|8@1+ (1,-125) [0|0] \"%\" Dash
 SG_ Late : 88|8@1+ (1,0) [0|0] \"\" Dash

BA_DEF_ BO_ \"VFrameFormat\" ENUM \"StandardCAN\",\"ExtendedCAN\",\"reserved\",\"J1939PG\";
BA_DEF_DEF_ \"VFrameFormat\" \"J1939PG\";
VAL_ 291 Mode 0 \"Cold, or off\" 1 \"Hot\" ;
";

const LOG: &str = "\
(1700000000.000000) can0 123#00A00F0000000000
(1700000000.120000) can0 123#01F6000000000000
(1700000000.250000) can0 456#00
(1700000000.300000) can1 123#0014
(1700000000.350000) can0 1CECFF21#200C0002FF04F000
(1700000000.360000) can0 1CEBFF21#0182020304050607
(1700000000.370000) can0 1CEBFF21#0208090A0B0CFFFF
(1700000000.380000) can0 123#R
";

struct Case {
    folder: TempDir,
}

impl Case {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("car.dbc"), DATABASE).unwrap();
        fs::write(folder.path().join("drive.log"), LOG).unwrap();
        Self { folder }
    }

    fn run(&self, words: &[&str]) -> Output {
        let mut program = Command::new(env!("CARGO_BIN_EXE_canter"));
        program
            .arg("decode")
            .args(words)
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    fn plot(&self, words: &[&str]) -> Output {
        let mut program = Command::new(env!("CARGO_BIN_EXE_canter"));
        program.arg("plot").args(words).current_dir(self.folder.path()).stdin(Stdio::null()).output().unwrap()
    }

    /// The standard output of a run that must succeed.
    fn text(&self, words: &[&str]) -> String {
        let output = self.run(words);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn messages_are_printed_with_their_signals_aligned() {
    let text = Case::new().text(&["drive.log", "--dbc", "car.dbc"]);
    assert!(text.starts_with("1700000000.000000 can0  123#00A00F0000000000  Engine\n    Mode   Cold, or off\n    Speed  1000.00 rpm\n"), "{text}");
    let transported = "1700000000.370000 can0  12 bytes transported  EEC1\n    Torque  5 %\n    Late    12\n";
    assert!(text.contains("12 bytes transported"), "{text}");
    assert!(text.ends_with(transported), "{text}");
}

#[test]
fn one_line_is_the_notation_of_cantools() {
    let text = Case::new().text(&["drive.log", "--dbc", "car.dbc", "--one-line", "--signals", "Heat,Mode"]);
    assert_eq!(text.lines().nth(1).unwrap().split("  ").last(), Some("Engine(Mode: Hot, Heat: 30 C)"));
}

#[test]
fn signals_are_chosen_by_their_names_and_frames_by_filters() {
    let case = Case::new();
    let rows = |words: &[&str]| {
        case.text(&[&["drive.log", "--dbc", "car.dbc", "--format", "csv"], words].concat()).lines().count()
            - 1
    };
    assert_eq!(rows(&["--signals", "EEC1.*"]), 2);
    assert_eq!(rows(&["--signals", "EEC1.*,Engine.Mode"]), 5);
    assert_eq!(rows(&["--filter", "can0,123"]), 4);
    assert_eq!(rows(&["--filter", "can1", "--signals", "Mode"]), 1);
    let output = case.run(&["drive.log", "--dbc", "car.dbc", "--signals", "Engines.*"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
}

#[test]
fn a_long_table_has_a_row_for_each_value() {
    let text = Case::new().text(&["drive.log", "--dbc", "car.dbc", "--format", "csv"]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "stamp,bus,message,signal,value,unit,text");
    assert_eq!(lines[1], "1700000000.000000000,can0,Engine,Mode,0,,\"Cold, or off\"");
    assert_eq!(lines[2], "1700000000.000000000,can0,Engine,Speed,1000,rpm,");
    assert_eq!(lines.len(), 1 + 2 + 2 + 1 + 2);
}

#[test]
fn a_wide_table_holds_values_from_row_to_row() {
    let case = Case::new();
    let rows = |words: &[&str]| {
        case.text(
            &[&["drive.log", "--dbc", "can0=car.dbc", "--signals", "Speed,Heat", "--wide"], words].concat(),
        )
    };
    assert_eq!(rows(&[]), "stamp,Speed,Heat\n1700000000.000000000,1000,\n1700000000.120000000,1000,30\n");
    let every = "stamp,Speed,Heat\n1700000000.000000000,,\n1700000000.100000000,1000,\n1700000000.200000000,1000,30\n";
    assert_eq!(
        rows(&["--every", "100ms"]).replace("1700000000.000000000,1000,\n", "1700000000.000000000,,\n"),
        every
    );
}

#[test]
fn a_wide_table_of_two_buses_is_refused() {
    let output = Case::new().run(&["drive.log", "--dbc", "car.dbc", "--signals", "Mode", "--wide"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("Engine is on can0 and on can1"), "{}", stderr(&output));
}

#[test]
fn the_last_line_says_what_the_databases_know_and_what_is_missing() {
    let output = Case::new().run(&["drive.log", "--dbc", "car.dbc", "--format", "csv"]);
    let said = stderr(&output);
    assert!(said.contains("1 frames are shorter than their message: Engine\n"), "{said}");
    assert!(said.contains("1 remote or error frames have no signals\n"), "{said}");
    assert!(said.ends_with("decoded: 4 of 5 identifiers, 85.7 % of 7 frames\n"), "{said}");
}

#[test]
fn a_wrong_database_is_an_error() {
    let case = Case::new();
    fs::write(case.path("other.dbc"), DATABASE.replace("291", "292").replace("2364540158", "2364539902"))
        .unwrap();
    let output = case.run(&["drive.log", "--dbc", "other.dbc"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).ends_with("0.0 % of 7 frames: nothing matched: wrong database?\n"),
        "{}",
        stderr(&output)
    );
    fs::write(case.path("broken.dbc"), DATABASE.replace("8 ECU", "x ECU")).unwrap();
    let output = case.run(&["drive.log", "--dbc", "broken.dbc"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("broken.dbc: line 1, column 17: not DBC: BO_ 291 Engine: x ECU"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn an_unknown_signal_is_refused_with_the_nearest_name() {
    let output = Case::new().run(&["drive.log", "--dbc", "car.dbc", "--signals", "Spead"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("no message has this signal (did you mean Speed?)"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_recording_that_was_cut_off_is_decoded_and_ends_with_3() {
    let case = Case::new();
    fs::write(case.path("cut.log"), &LOG[..LOG.len() - 5]).unwrap();
    let output = case.run(&["cut.log", "--dbc", "car.dbc"]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).contains("cut off after 7 frames"), "{}", stderr(&output));
}

/// The files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

#[test]
fn parquet_is_a_folder_for_each_message() {
    let case = Case::new();
    let words = ["drive.log", "--dbc", "car.dbc", "--format", "parquet", "-o", "signals", "--vehicle", "V 1"];
    case.text(&words);
    let found = files(&case.path("signals"));
    let names: Vec<_> =
        found.iter().map(|path| path.strip_prefix(case.path("signals")).unwrap().to_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "message=EEC1/vehicle=V%201/date=2023-11-14/bus=can0/part-1700000000370000000.parquet",
            "message=Engine/vehicle=V%201/date=2023-11-14/bus=can0/part-1700000000000000000.parquet",
            "message=Engine/vehicle=V%201/date=2023-11-14/bus=can1/part-1700000000300000000.parquet",
        ]
    );
    let again = case.run(&words);
    assert_eq!(again.status.code(), Some(1));
    assert!(stderr(&again).contains("exists already: this drive is in the data set"), "{}", stderr(&again));
}

#[test]
fn a_plot_is_a_line_of_blocks_and_a_page() {
    let case = Case::new();
    let output =
        case.plot(&["drive.log", "--dbc", "can0=car.dbc", "Speed", "Engine.Heat", "-o", "plot.html"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("Engine.Speed on can0: 1 values, 1000.00 to 1000.00 rpm\n"), "{text}");
    assert!(text.contains("Engine.Heat on can0: 1 values, 30 to 30 C\n"), "{text}");
    let page = fs::read_to_string(case.path("plot.html")).unwrap();
    assert_eq!(page.matches("<svg ").count(), 2);
    let again = case.plot(&["drive.log", "--dbc", "car.dbc", "Speed", "-o", "plot.html"]);
    assert_eq!(again.status.code(), Some(1));
    assert!(
        stderr(&again).contains("plot.html: write: exists (--overwrite replaces it)"),
        "{}",
        stderr(&again)
    );
}

#[test]
fn signals_become_a_measurement() {
    let case = Case::new();
    case.text(&["drive.log", "--dbc", "car.dbc", "-o", "signals.mf4"]);
    let bytes = fs::read(case.path("signals.mf4")).unwrap();
    assert!(bytes.starts_with(b"MDF     4.11"), "an MDF4");
    for text in ["Speed\0", "rpm\0", "Torque\0", "EEC1\0", "can1\0"] {
        assert!(bytes.windows(text.len()).any(|window| window == text.as_bytes()), "{text}");
    }
}

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
    assert!(said.contains("1 frame is shorter than its message: Engine\n"), "{said}");
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
    assert!(text.contains("Engine.Speed on can0: 1 value, 1000.00 to 1000.00 rpm\n"), "{text}");
    assert!(text.contains("Engine.Heat on can0: 1 value, 30 to 30 C\n"), "{text}");
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
fn floats_have_their_digits_and_nan_and_infinities_stay() {
    let case = Case::new();
    let database = "BO_ 1 Ratio: 8 X\n SG_ Single : 0|32@1- (1,0) [0|0] \"V\" Y\n SG_ Scaled : 32|32@1- (0.1,0) [0|0] \"\" Y\n\n\
                    SIG_VALTYPE_ 1 Single : 1;\nSIG_VALTYPE_ 1 Scaled : 1;\n";
    fs::write(case.path("float.dbc"), database).unwrap();
    let payload = |pair: [f32; 2]| pair.map(|one| format!("{:08X}", one.to_bits().swap_bytes())).concat();
    let pairs = [[0.25, 1.0], [f32::NAN, f32::INFINITY], [1e-9, f32::NEG_INFINITY]];
    let lines =
        pairs.iter().enumerate().map(|(n, pair)| format!("({n}.000000) can0 001#{}\n", payload(*pair)));
    fs::write(case.path("float.log"), lines.collect::<String>()).unwrap();
    let words = ["float.log", "--dbc", "float.dbc"];
    let text = case.text(&[&words[..], &["--one-line"]].concat());
    let lists: Vec<&str> = text.lines().map(|line| line.split("  ").last().unwrap()).collect();
    assert_eq!(
        lists,
        [
            "Ratio(Single: 0.25 V, Scaled: 0.1)",
            "Ratio(Single: NaN V, Scaled: inf)",
            "Ratio(Single: 1e-9 V, Scaled: -inf)"
        ]
    );
    let table = case.text(&[&words[..], &["--format", "csv"]].concat());
    let values: Vec<&str> = table.lines().skip(1).map(|line| line.split(',').nth(4).unwrap()).collect();
    assert_eq!(values[..5], ["0.25", "0.1", "NaN", "inf", "9.999999717180685e-10"]);
    assert_eq!(values[5], "-inf");
    let output = case.plot(&[&words[..], &["Single", "Scaled"]].concat());
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let not_drawn = |count: u8| format!("3 values ({count} NaN or infinite: not drawn)");
    assert!(text.contains(&format!("Ratio.Single on can0: {}, 1e-9 to 0.25 V\n", not_drawn(1))), "{text}");
    assert!(text.contains(&format!("Ratio.Scaled on can0: {}, 0.1 to 0.1\n", not_drawn(2))), "{text}");
}

/// A database with everything that a frame or the file itself may contradict, in Windows-1252.
const TROUBLE: &str = "\
BO_ 291 Engine: 3 ECU
 SG_ Mode M : 0|8@1+ (1,0) [0|0] \"\" Dash
 SG_ Heat m1 : 8|8@1- (1,0) [0|0] \"°C\" Dash
 SG_ Whole m2 : 8|16@1+ (1,0) [0|0] \"\" Dash
 SG_ Half m2 : 16|8@1+ (1,0) [0|0] \"\" Dash
 SG_ Behind m1 : 16|16@1+ (1,0) [0|0] \"\" Dash

BO_ 292 Long: 16 ECU
 SG_ First : 0|8@1+ (1,0) [0|0] \"\" Dash
 SG_ Last : 120|8@1+ (1,0) [0|0] \"\" Dash

BO_ 293 Replaced: 8 ECU
 SG_ Old : 0|8@1+ (1,0) [0|0] \"\" Dash

BO_ 293 Replacement: 8 ECU
 SG_ New : 8|8@1+ (1,0) [0|0] \"\" Dash

VAL_ 291 Mode 1 \"Größe\" ;
";

const TROUBLE_LOG: &str = "\
(1700000000.000000) can0 123#01F600
(1700000000.100000) can0 123#021234
(1700000000.200000) can0 123#0901FF
(1700000000.300000) can0 123#0901FE
(1700000000.400000) can0 124#0102030405060708
(1700000000.500000) can0 125#AABB000000000000
(1700000000.600000) can0 125##0AACC00000000000000000000
(1700000000.700000) can0 125#AA
";

#[test]
fn trouble_is_reported_once_with_its_count_by_every_output_and_the_rest_is_decoded() {
    let case = Case::new();
    let database: Vec<u8> = TROUBLE.chars().map(|letter| letter as u8).collect();
    assert!(std::str::from_utf8(&database).is_err(), "it is Windows-1252");
    fs::write(case.path("trouble.dbc"), database).unwrap();
    fs::write(case.path("trouble.log"), TROUBLE_LOG).unwrap();
    let words = ["trouble.log", "--dbc", "trouble.dbc"];
    let reported = "\
canter: trouble.dbc: line 1: message Engine: signal Behind: ends behind the 3 bytes of the message: left out
canter: trouble.dbc: line 1: message Engine: signals Whole and Half share bits: each is decoded from its own bits
canter: trouble.dbc: line 15: message Replacement: has the identifier of Replaced, which is left out
2 frames are shorter than their message: Long, Replacement
2 frames have a multiplexer value without signals: Engine
decoded: 3 of 3 identifiers, 100.0 % of 8 frames
";
    let decoded = |more: &[&str]| {
        let output = case.run(&[&words, more].concat());
        assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), reported), "{more:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let text = decoded(&["--one-line"]);
    let lists: Vec<&str> = text.lines().map(|line| line.split("  ").last().unwrap()).collect();
    assert_eq!(
        lists,
        [
            "Engine(Mode: Größe, Heat: -10 °C)",
            "Engine(Mode: 2, Whole: 13330, Half: 52)",
            "Engine(Mode: 9)",
            "Engine(Mode: 9)",
            "Long(First: 1)",
            "Replacement(New: 187)",
            "Replacement(New: 204)",
            "Replacement()",
        ]
    );
    let table = decoded(&["--format", "csv"]);
    let values: Vec<String> =
        table.lines().skip(1).map(|line| line.split(',').skip(3).collect::<Vec<_>>().join(",")).collect();
    assert_eq!(
        values,
        [
            "Mode,1,,Größe",
            "Heat,-10,°C,",
            "Mode,2,,",
            "Whole,13330,,",
            "Half,52,,",
            "Mode,9,,",
            "Mode,9,,",
            "First,1,,",
            "New,187,,",
            "New,204,,"
        ]
    );
    let wide = decoded(&["--wide", "--format", "csv", "--signals", "Engine.*,First,Last,New"]);
    assert_eq!(wide.lines().last(), Some("1700000000.600000000,9,-10,13330,52,1,,204"), "{wide}");
    decoded(&["-o", "trouble.mf4"]);
    decoded(&["-o", "signals", "--format", "parquet"]);
    for file in [case.path("trouble.mf4"), files(&case.path("signals/message=Engine")).remove(0)] {
        let bytes = fs::read(&file).unwrap();
        assert!(bytes.windows(3).any(|window| window == "°C".as_bytes()), "{}: no °C", file.display());
    }
    let output = case.plot(&[&words[..], &["Engine.*", "First", "New", "-o", "plot.html"]].concat());
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), reported));
    assert!(fs::read_to_string(case.path("plot.html")).unwrap().contains("°C"));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("Engine.Heat on can0: 1 value, -10 to -10 °C\n"), "{text}");
    let (code, text, errors) = command(&case, &[&["dump"], &words[..]].concat());
    assert_eq!((code, errors.lines().count()), (Some(0), 3), "{errors}");
    assert!(text.contains(":: Long(First: 1) [too short: 1 signals missing]\n"), "{text}");
    assert_eq!(text.matches(" [multiplexer value without signals]\n").count(), 2, "{text}");
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

/// Runs another command in the folder of a case.
fn command(case: &Case, words: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_canter"))
        .args(words)
        .current_dir(case.folder.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn dump_prints_the_signals_behind_each_frame() {
    let case = Case::new();
    let (code, text, errors) = command(&case, &["dump", "drive.log", "--dbc", "car.dbc"]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(code, Some(0), "{errors}");
    assert_eq!(
        lines[0],
        "  can0  123   [8]  00 A0 0F 00 00 00 00 00 :: Engine(Mode: Cold, or off, Speed: 1000.00 rpm)"
    );
    assert!(lines[2].ends_with("456   [1]  00"), "{text}");
    assert!(
        lines[3].ends_with("00 14 :: Engine(Mode: Cold, or off) [too short: 1 signals missing]"),
        "{text}"
    );
    // The message that three frames carry stands behind the last one.
    assert!(!lines[5].contains("::") && lines[6].ends_with(" :: EEC1(Torque: 5 %, Late: 12)"), "{text}");
    let (_, _, errors) = command(&case, &["dump", "drive.log", "--filter", "456", "--dbc", "car.dbc"]);
    assert!(errors.contains("wrong database?"), "{errors}");
    let (code, _, errors) = command(&case, &["dump", "drive.log", "-L", "--dbc", "car.dbc"]);
    assert_eq!(code, Some(2), "{errors}");
}

#[test]
fn filters_take_the_names_of_messages() {
    let case = Case::new();
    let lines = |filter: &str, dbc: &str| {
        let (code, text, errors) = command(&case, &["dump", "drive.log", "--filter", filter, "--dbc", dbc]);
        assert_eq!(code, Some(0), "{filter}: {errors}");
        text.lines().count()
    };
    assert_eq!(lines("Engine", "car.dbc"), 3);
    assert_eq!(lines("can0,Engine", "car.dbc"), 2);
    assert_eq!(lines("Engine,456", "car.dbc"), 4);
    assert_eq!(lines("any,Engine", "car.dbc"), 3);
    assert_eq!(lines("Engine", "can1=car.dbc"), 1);
    let rows = case.text(&["drive.log", "--dbc", "car.dbc", "--filter", "Engine", "--one-line"]);
    assert_eq!(rows.lines().count(), 3);
    for (words, reason) in [
        (
            &["--filter", "Engin,456", "--dbc", "car.dbc"][..],
            "has no interface \"Engin\" of --filter (it has can0, can1) (did you mean Engine?)",
        ),
        (&["--filter", "can0,Engin", "--dbc", "car.dbc"], "no message is named Engin (did you mean Engine?)"),
        (&["--filter", "can0,Motor", "--dbc", "car.dbc"], "no message is named Motor"),
        (&["--filter", "can1,Engine", "--dbc", "can0=car.dbc"], "no database of can1 has the message Engine"),
        (&["--filter", "EEC1", "--dbc", "car.dbc"], "several frames carry it"),
        (&["--filter", "can0,Engine"], "no database has a message of that name (--dbc FILE)"),
    ] {
        let (code, _, errors) = command(&case, &[&["dump", "drive.log"], words].concat());
        assert_eq!((code, errors.lines().count()), (Some(2), 1), "{words:?}: {errors}");
        assert!(errors.contains(reason), "{words:?}: {errors}");
    }
    let (code, _, errors) =
        command(&case, &["convert", "drive.log", "-o", "x.log", "--filter", "can0,Engine"]);
    assert_eq!(code, Some(2), "{errors}");
}

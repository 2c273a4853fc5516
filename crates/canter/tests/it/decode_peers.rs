//@ machine: host --ignored
//@ needs: target/python
//! cantools decodes the same values as `canter decode` from the same log: pyarrow reads them from Parquet, asammdf from MDF4.
//! DuckDB answers the questions of docs/fleet.md (`make test-fleet`: Spark too).
//! README's commands from a logger's MF4 to a plot, a table and an answer of DuckDB.

use std::{
    fmt::Write,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

const DATABASE: &str = "\
VERSION \"\"

NS_ :

BS_:

BU_: ECU

BO_ 291 Engine: 8 ECU
 SG_ Mode M : 0|4@1+ (1,0) [0|0] \"\" ECU
 SG_ Speed m0 : 8|16@1+ (0.25,-40.5) [0|0] \"rpm\" ECU
 SG_ Heat m1 : 15|12@0- (3,40) [0|0] \"C\" ECU
 SG_ Late : 56|8@1+ (0.1,0) [0|0] \"V\" ECU

BO_ 2147484000 Counter: 8 ECU
 SG_ Whole : 0|64@1+ (1,0) [0|0] \"\" ECU

BO_ 400 Ratio: 8 ECU
 SG_ Single : 0|32@1- (1,0) [0|0] \"%\" ECU
 SG_ Scaled : 39|32@0- (1E-3,12) [0|0] \"\" ECU

SIG_VALTYPE_ 400 Single : 1;
";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A log of these messages with pseudo-random payloads, of which some are short.
fn log() -> String {
    let (mut text, mut state) = (String::new(), 0x2545_f491_4f6c_dd1d_u64);
    for n in 0..6000u64 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let mut data = state.to_be_bytes();
        let (id, bytes) = match n % 3 {
            0 => {
                data[0] &= 1; // selects a signal
                ("123", if n % 5 == 0 { 7 } else { 8 })
            }
            1 => ("00000160", 8),
            _ => ("190", 8),
        };
        let hex: String = data[..bytes].iter().map(|byte| format!("{byte:02X}")).collect();
        writeln!(text, "(1700000000.{:06}) can0 {id}#{hex}", n * 100).unwrap();
    }
    text
}

#[test]
#[ignore = "needs other programs: make test ONLY=decode_peers"]
fn tables_have_the_values_of_cantools() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("car.dbc"), DATABASE).unwrap();
    fs::write(path("drive.log"), log()).unwrap();
    for output in ["signals.mf4", "signals.parquet"] {
        let mut program = Command::new(env!("CARGO_BIN_EXE_canter"));
        let program = program
            .arg("decode")
            .arg(path("drive.log"))
            .arg("--dbc")
            .arg(path("car.dbc"))
            .arg("-o")
            .arg(path(output));
        let done = program.output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/decode.py");
    let mut python = Command::new(root().join("target/python/bin/python"));
    let inputs = ["drive.log", "car.dbc", "signals.parquet", "signals.mf4"].map(path);
    let done = python.arg(script).args(inputs).output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{said}{}", String::from_utf8_lossy(&done.stderr));
    assert!(said.contains("values are equal"), "{said}");
}

#[test]
#[ignore = "needs other programs: make test ONLY=decode_peers"]
fn the_questions_to_a_fleet_find_what_was_planted() {
    let folder = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/fleet.py");
    let mut python = Command::new(root().join("target/python/bin/python"));
    python.arg(script).arg(env!("CARGO_BIN_EXE_canter")).arg(folder.path().join("fleet"));
    let done = python.args(["100000", "duckdb"]).output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{said}{}", String::from_utf8_lossy(&done.stderr));
    assert!(said.contains("duckdb: 4 rows of losses, 6 bands, as planted"), "{said}");
}

/// A file as a CANedge writes it, with frames of identifier 123 every 10 ms: unfinished, with the payloads among the records.
fn logger_file(payloads: &[[u8; 8]]) -> Vec<u8> {
    let seed = fs::read(root().join("fuzz/corpus/mf4/seed-unfinished.mf4")).unwrap();
    let records = seed.windows(4).position(|word| word == b"##DT").unwrap() + 24;
    let mut file = seed[..records].to_vec();
    for (n, payload) in (0u64..).zip(payloads) {
        file.push(1);
        file.extend((n as f64 * 1e7).to_le_bytes());
        file.extend(0x123u32.to_le_bytes());
        file.extend((n * 12).to_le_bytes());
        file.push(8);
        file.push(2);
        file.extend(8u32.to_le_bytes());
        file.extend(payload);
    }
    file
}

/// The commands of README's block that begins with this text, as a script.
fn commands(beginning: &str) -> String {
    let page = fs::read_to_string(root().join("README.md")).unwrap();
    let block = page.lines().skip_while(|line| !line.trim_start().starts_with(beginning));
    block.take_while(|line| line.starts_with("    ")).map(|line| format!("{line}\n")).collect()
}

#[test]
#[ignore = "needs other programs: make test ONLY=decode_peers"]
fn readme_goes_from_a_loggers_file_to_a_plot_a_table_and_an_answer() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let database = "BO_ 291 Engine: 8 ECU\n SG_ EngineSpeed : 0|16@1+ (0.25,0) [0|0] \"rpm\" Dash\n \
                    SG_ VehicleSpeed : 16|16@1+ (0.01,0) [0|0] \"km/h\" Dash\n";
    fs::write(path("car.dbc"), database).unwrap();
    let payload = |n: u16| -> [u8; 8] {
        [n.to_le_bytes(), (100 * n).to_le_bytes(), [0; 2], [0; 2]].concat().try_into().unwrap()
    };
    fs::write(path("drive.mf4"), logger_file(&(0..200).map(payload).collect::<Vec<[u8; 8]>>())).unwrap();
    // DuckDB's own program is no Python package.
    let python = root().join("target/python/bin/python");
    let shim = format!(
        "#!/bin/sh\nexec '{}' -c 'import duckdb, sys; print(*duckdb.sql(sys.argv[2]).fetchall())' \"$@\"\n",
        python.display()
    );
    fs::create_dir(path("bin")).unwrap();
    fs::write(path("bin/duckdb"), shim).unwrap();
    fs::set_permissions(path("bin/duckdb"), fs::Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_canter"), path("bin/canter")).unwrap();
    let search = format!("{}:{}", path("bin").display(), std::env::var("PATH").unwrap());
    let script = commands("canter plot drive.mf4 --dbc car.dbc EngineSpeed -o");
    assert_eq!((script.matches("canter ").count(), script.matches("duckdb ").count()), (3, 1), "{script}");
    let done = Command::new("sh")
        .args(["-ec", &script])
        .current_dir(folder.path())
        .env("PATH", search)
        .output()
        .unwrap();
    let (text, errors) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{script}{errors}");
    assert!(text.contains("Engine.EngineSpeed on can2: 200 values, 0.00 to 49.75 rpm\n"), "{text}");
    assert!(text.ends_with("(49.75,)\n"), "{text}");
    assert!(fs::read_to_string(path("speed.html")).unwrap().contains("<svg "));
    let table = fs::read_to_string(path("drive.csv")).unwrap();
    let rows: Vec<&str> = table.lines().collect();
    assert_eq!(rows[0], "stamp,EngineSpeed,VehicleSpeed");
    assert_eq!((rows.len(), rows[rows.len() - 1]), (1 + 21, "2.000000000,49.75,199"), "{table}");
    assert_eq!(errors.matches("decoded: 1 of 1 identifiers, 100.0 % of 200 frames").count(), 3, "{errors}");
}

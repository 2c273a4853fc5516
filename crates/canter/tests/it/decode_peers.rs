//@ machine: host --ignored
//@ needs: target/python
//! cantools decodes the same values as `canter decode` from the same log: pyarrow reads them from Parquet, asammdf from MDF4.

use std::{
    fmt::Write,
    fs,
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

//@ machine: host --ignored
//@ needs: target/python target/databases
//! cantools decodes random payloads of every message of opendbc's and its own databases to the same values.

use canter_frame::Identifier;
use canter_signals::{Codebook, Database, Message, Payload, Value};
use serde_json::Value as Json;
use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// Messages of which cantools leaves signals out: the selector's mark is `m`, and only SG_MUL_VAL_ says what it selects.
const LEFT_OUT_BY_CANTOOLS: [(&str, &str); 1] = [("vw_pq.dbc", "Motor_2")];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The DBC files below a folder, in order.
fn databases(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(databases(&path));
        } else if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("dbc")) {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn id(number: u64) -> Identifier {
    match number >> 31 {
        1 => Identifier::Eff(number as u32 & 0x1FFF_FFFF),
        _ => Identifier::Sff(number as u16),
    }
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

/// Whether the value is the one that Python has printed.
fn is_equal(value: Value, printed: &str) -> bool {
    match (value, printed.parse::<i128>()) {
        (Value::Integer(value), Ok(printed)) => i128::from(value) == printed,
        (Value::Unsigned(value), Ok(printed)) => i128::from(value) == printed,
        (value, _) => {
            let printed: f64 = printed.parse().unwrap();
            let value = value.as_f64();
            // Python multiplies integers beyond 64 bits exactly, and rounds then.
            value == printed
                || value.is_nan() && printed.is_nan()
                || (value - printed).abs() <= printed.abs() * 3e-16
        }
    }
}

/// The first difference between a message's values and texts and those of cantools.
fn difference(message: &Message, line: &Json) -> Option<String> {
    let data = bytes(line["data"].as_str()?);
    let (values, texts) = (line["values"].as_object()?, line["texts"].as_object()?);
    let mut seen = 0;
    let mut different = None;
    message.visit(Payload::of_bytes(&data), |at, bits| {
        let signal = &message.signals[at];
        let (value, text) = (signal.value(bits), signal.choice(bits));
        seen += 1;
        let expected = values.get(&signal.name).and_then(Json::as_str).unwrap_or("absent");
        let expected_text = texts.get(&signal.name).and_then(Json::as_str);
        if expected == "absent" || !is_equal(value, expected) || text != expected_text {
            different = Some(format!("{}: {value} {text:?}, not {expected} {expected_text:?}", signal.name));
        }
    });
    different.or_else(|| (seen != values.len()).then(|| format!("{seen} signals, not {}", values.len())))
}

#[test]
#[ignore = "needs target/python"]
fn every_value_is_that_of_cantools() {
    let folder = root().join("target/databases");
    let paths = databases(&folder);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/cantools_values.py");
    let seed = std::env::var("SEED").unwrap_or_else(|_| "1".to_owned());
    let output = Command::new(root().join("target/python/bin/python"))
        .arg(script)
        .arg(seed)
        .args(&paths)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let (mut read, mut compared, mut wrong) = (0, 0u64, Vec::new());
    let mut lines = text.lines().map(|line| serde_json::from_str::<Json>(line).unwrap()).peekable();
    while let Some(head) = lines.next() {
        let path = head["file"].as_str().unwrap();
        let database = Database::open(path).unwrap_or_else(|error| panic!("{error}"));
        read += 1;
        let codebook = Codebook::new(&[&database]);
        while let Some(line) = lines.next_if(|line| line.get("file").is_none()) {
            let Some(message) = codebook.message(id(line["number"].as_u64().unwrap())) else {
                wrong.push(format!("{path}: {}: unknown", line["message"]));
                continue;
            };
            let is_left_out = |&(file, name): &(&str, &str)| path.ends_with(file) && message.name == name;
            if LEFT_OUT_BY_CANTOOLS.iter().any(is_left_out) {
                continue;
            }
            // Two messages have the same identifier; a multiplexer has a value without signals.
            if line["message"].as_str() != Some(&message.name) || line.get("values").is_none() {
                continue;
            }
            compared += 1;
            if let Some(different) = difference(message, &line) {
                // A message that contradicts itself has a remark; the rest of it is decoded.
                if !database.remarks.iter().any(|remark| remark.contains(&message.name)) {
                    wrong.push(format!("{path}: {} {}: {different}", message.name, line["data"]));
                }
            }
        }
    }
    println!("{read} databases, {compared} payloads");
    assert!(read > 140 && compared > 25_000, "{read} databases, {compared} payloads");
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong[..wrong.len().min(20)].join("\n"));
}

//@ machine: host --ignored
//@ needs: target/python target/databases
//! cantools decodes random payloads of every message of opendbc's and its own databases to the same values, and encoding the
//! values gives the bits of the payload again.

use canter_frame::Identifier;
use canter_signals::{Codebook, Database, Message, Payload, Value};
use serde_json::Value as Json;
use std::{
    collections::{BTreeMap, BTreeSet},
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

/// What differs from the payload after its values were encoded, in the bits that signals cover.
fn not_encoded(message: &Message, data: &[u8]) -> Vec<String> {
    let mut different = Vec::new();
    let mut encoded: Vec<u8> = data.iter().map(|byte| !byte).collect();
    let mut covered = vec![0; data.len()];
    message.visit(Payload::of_bytes(data), |at, bits| {
        let signal = &message.signals[at];
        let value = signal.value(bits);
        // A double has 53 bits, a factor of 0 has no way back, and the bits of a NaN may change when it becomes a double.
        let is_exact = signal.factor != 0.0 && (signal.bits <= 48 || !matches!(value, Value::Float(_)));
        let pattern = match is_exact && !value.as_f64().is_nan() {
            true => signal.pattern(value),
            false => Some(bits),
        };
        match pattern {
            Some(pattern) => message.store(at, pattern, &mut encoded),
            None => different.push(format!("{}: {value} of {bits:X} does not fit", signal.name)),
        }
        message.store(at, u64::MAX, &mut covered);
    });
    let covered_bits =
        |payload: &[u8]| -> Vec<u8> { payload.iter().zip(&covered).map(|(one, bit)| one & bit).collect() };
    if covered_bits(&encoded) != covered_bits(data) {
        different.push(format!("{encoded:02X?} in the bits {covered:02X?}, not {data:02X?}"));
    }
    different
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
    let (mut compared, mut wrong, mut errors) = (0u64, Vec::new(), BTreeMap::<String, u64>::new());
    let mut unread: BTreeSet<&str> = paths.iter().filter_map(|path| path.to_str()).collect();
    let mut lines = text.lines().map(|line| serde_json::from_str::<Json>(line).unwrap()).peekable();
    while let Some(head) = lines.next() {
        let path = head["file"].as_str().unwrap();
        let name = path.rsplit('/').next().unwrap();
        let database = Database::open(path).unwrap_or_else(|error| panic!("{error}"));
        unread.retain(|other| *other != path);
        wrong.extend(head["error"].as_str().map(|error| format!("{name}: cantools: {error}")));
        let codebook = Codebook::new(&[&database]);
        while let Some(line) = lines.next_if(|line| line.get("file").is_none()) {
            let Some(message) = codebook.message(id(line["number"].as_u64().unwrap())) else {
                wrong.push(format!("{name}: {}: unknown", line["message"]));
                continue;
            };
            let data = bytes(line["data"].as_str().unwrap());
            wrong.extend(
                not_encoded(message, &data).iter().map(|why| format!("{name}: {}: {why}", message.name)),
            );
            let is_left_out = |&(file, name): &(&str, &str)| path.ends_with(file) && message.name == name;
            if LEFT_OUT_BY_CANTOOLS.iter().any(is_left_out) {
                continue;
            }
            if let Some(error) = line["error"].as_str() {
                let reason: String = error.chars().take_while(|c| !c.is_ascii_digit()).collect();
                *errors.entry(format!("{name}: {reason}")).or_default() += 1;
                continue;
            }
            // Two messages have the same identifier: the later one counts.
            if line["message"].as_str() != Some(&message.name) {
                *errors.entry(format!("{name}: {} is {}", line["message"], message.name)).or_default() += 1;
                continue;
            }
            compared += 1;
            if let Some(different) = difference(message, &line) {
                wrong.push(format!("{name}: {} {}: {different}", message.name, line["data"]));
            }
        }
    }
    println!("{compared} payloads of {} databases; cantools' errors: {errors:#?}", paths.len());
    assert!(paths.len() > 200 && unread.is_empty(), "{} databases, not read: {unread:?}", paths.len());
    assert!(compared > 40_000, "{compared} payloads");
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong[..wrong.len().min(20)].join("\n"));
}

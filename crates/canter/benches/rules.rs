//! What rules cost a gateway, in the engine and in can-gw, with 1, 80 and 2048 rules of which only the last matches:
//! medians from wire to wire, one frame at a time, by `canter latency --through`. In the lab's virtual clock with
//! canwire they are instructions.
#![allow(clippy::unwrap_used, reason = "a bench may")]

use serde_json::Value;
use std::{
    fmt::Write as _,
    fs,
    process::{Command, ExitCode, Stdio},
};

const OURS: &str = "ring/spin+write";
const KERNELS: &str = "can-gw";
const FILE: &str = "/tmp/rules-bench.toml";
const FRAMES: &str = "100";
const NUMBERS: [u32; 3] = [1, 80, 2048];

/// Ours with rules over ours without, for exact identifiers.
const GROWTH_MAX: f64 = 1.05;
/// A modification, in instructions a frame.
const CHANGE_MAX: i64 = 60;

/// What the rules name.
#[derive(Clone, Copy)]
enum Kind {
    Sff,
    Eff,
    Masked,
}

impl Kind {
    /// The test frame's identifier, which the last rule matches.
    fn id(self) -> &'static str {
        if matches!(self, Self::Sff) { "7FF" } else { "12345678" }
    }

    fn filter(self, at: u32, last: bool) -> String {
        match self {
            // With the last one these are all there are: 2048.
            Self::Sff if !last => format!("{:03X}", at % 0x7ff),
            Self::Eff if !last => format!("{:08X}", 0x1000_0000 + at * 7919),
            Self::Masked if !last => format!("{:08X}:9FFFFF00", 0x1000_0000 + at * 256),
            Self::Masked => "12345600:9FFFFF00".to_owned(),
            Self::Sff | Self::Eff => self.id().to_owned(),
        }
    }

    /// So many rules, the last with more lines.
    fn rules(self, number: u32, more: &str) -> String {
        (1..=number).fold(String::new(), |mut text, at| {
            let filter = self.filter(at - 1, at == number);
            writeln!(text, "[[rule]]\nframes = \"classic\"\nfilter = [\"{filter}\"]").unwrap();
            if at == number {
                writeln!(text, "{more}").unwrap();
            }
            text
        })
    }
}

fn main() -> ExitCode {
    // `cargo test` runs benches too, where there is no CAN.
    if !std::env::args().any(|argument| argument == "--bench") {
        println!("rules: skipped: `make bench` runs it in the lab");
        return ExitCode::SUCCESS;
    }
    for node in ["wcan2", "wcan3", "wcan4"] {
        let up = ["link", "set", node, "up", "type", "can", "bitrate", "1000000"];
        assert!(Command::new("ip").args(up).status().unwrap().success(), "{node}: up");
    }
    println!("{:<28} {:>16} {:>8} {:>16} {:>8}", "latency, median ns", OURS, "", KERNELS, "");
    let kept = unchanged() & changed();
    fs::remove_file(FILE).unwrap();
    if kept { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Rules that hand the frame on as it is.
fn unchanged() -> bool {
    let mut kept = true;
    for (kind, label) in [(Kind::Sff, "SFF"), (Kind::Eff, "EFF"), (Kind::Masked, "masked EFF")] {
        let none = medians(kind, None);
        line(&format!("no rules, {}", kind.id()), none, none);
        for number in NUMBERS {
            let found = medians(kind, Some(&kind.rules(number, "")));
            line(&format!("{number} × {label}"), found, none);
            let exact = !matches!(kind, Kind::Masked);
            kept &= !exact || found[0] as f64 <= none[0] as f64 * GROWTH_MAX;
        }
    }
    println!("{OURS} over itself without rules, SFF and EFF: ceiling {GROWTH_MAX}: {}", verdict(kept));
    kept
}

/// What a modification adds to one rule. The meter knows its frames by identifier, length and number: those stay.
fn changed() -> bool {
    let before = medians(Kind::Sff, Some(&Kind::Sff.rules(1, "")));
    let mut kept = true;
    for (label, change) in [
        ("identifier set", "set = { id = \"7FF\" }"),
        ("data or", "or = { data = \"0000010000000000\" }"),
        (
            "and, or, xor, set of all",
            "and = { data = \"FFFFFFFFFFFFFF00\" }\nor = { data = \"0000010000000000\" }\n\
          xor = { data = \"0000000000000001\" }\nset = { id = \"7FF\" }",
        ),
        ("XOR checksum", "xor-checksum = { from = 0, to = 6, result = 7, init = 0 }"),
        ("CRC8 of 7 bytes", "crc8 = { from = 0, to = 6, result = 7, polynomial = 0x1D }"),
    ] {
        let after = medians(Kind::Sff, Some(&Kind::Sff.rules(1, change)));
        let more = [0, 1].map(|at| after[at] as i64 - before[at] as i64);
        println!("{:<28} {:>16} {:>+8} {:>16} {:>+8}", label, after[0], more[0], after[1], more[1]);
        let checksum = label.contains("XOR") || label.contains("CRC8");
        kept &= checksum || more[0] <= CHANGE_MAX;
    }
    println!("a modification: ceiling {CHANGE_MAX} instructions: {}", verdict(kept));
    kept
}

fn verdict(kept: bool) -> &'static str {
    if kept { "kept" } else { "PASSED" }
}

fn line(label: &str, found: [u64; 2], none: [u64; 2]) {
    let growth = [0, 1].map(|at| format!("{:.3}", found[at] as f64 / none[at] as f64));
    println!("{label:<28} {:>16} {:>8} {:>16} {:>8}", found[0], growth[0], found[1], growth[1]);
}

/// Ours, and the kernel's.
fn medians(kind: Kind, rules: Option<&str>) -> [u64; 2] {
    let mut command = Command::new(env!("CARGO_BIN_EXE_canter"));
    command.args([
        "latency",
        "--instrument",
        "wire",
        "--send",
        "A",
        "--routed",
        "B",
        "--through",
        "wcan3,wcan4",
    ]);
    command.args(["--method", &format!("{OURS},{KERNELS}"), "--id", kind.id(), "--len", "8"]);
    command.args(["--count", FRAMES, "--gap", "50us", "--quiet", "--json", "-"]);
    if let Some(rules) = rules {
        fs::write(FILE, rules).unwrap();
        command.args(["--rules", FILE]);
    }
    let done = command.stderr(Stdio::inherit()).output().unwrap();
    let result: Value = serde_json::from_slice(&done.stdout).unwrap();
    [0, 1].map(|at| {
        assert_eq!(result["series"][at]["ledger"]["lost"]["unaccounted"], 0, "{result}");
        result["series"][at]["latency_ns"]["p50"].as_u64().unwrap()
    })
}

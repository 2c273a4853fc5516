//@ machine: --analyzer --bare-metal --clock virtual
//! The analyzer sees drivers outside the kernel too, from command to command: that of a program, and that of a processor
//! without Linux.

use crate::{
    analyzer::{latency, number, series, stage},
    testbed::{alone, cards},
};
use serde_json::Value;
use std::fs;

/// The cards can3 and can4.
const ADDRESSES: [&str; 2] = ["0000:00:07.0", "0000:00:1a.0"];

#[track_caller]
fn measured(method: &str, [from, to]: [&str; 2]) -> Value {
    let through = format!("{from},{to}");
    let ends = ["--send", "can0", "--routed", "can2", "--through", &through, "--method", method];
    series(&latency(&[&ends[..], &["--len", "8", "--count", "20"]].concat()))
}

#[test]
#[ignore = "needs the lab: make test ONLY=analyzer_outside"]
fn a_gateway_without_linux_takes_what_it_executes_itself() {
    let _alone = alone();
    cards();
    let series = measured("bare-metal", ["can3", "can4"]);
    let own = stage(&series, "gateway's own");
    assert!((50..1000).contains(&own), "{series}");
    assert_eq!(number(&series["latency_ns"]["p50"]), own, "{series}");
    // Nothing interrupts it.
    assert_eq!(series["latency_ns"]["min"], series["latency_ns"]["max"], "{series}");
    assert!(series["stages"].get("reception").is_none(), "{series}");
}

#[test]
#[ignore = "needs the lab: make test ONLY=analyzer_outside"]
fn a_driver_in_a_program_shares_its_processor_with_linux() {
    let _alone = alone();
    cards();
    for address in ADDRESSES {
        fs::write(format!("/sys/bus/pci/devices/{address}/driver/unbind"), address).unwrap();
    }
    let names = ADDRESSES.map(|address| format!("port:{address}@1000000"));
    let series = measured("port+port", names.each_ref().map(String::as_str));
    let own = stage(&series, "gateway's own");
    assert!((100..5000).contains(&own), "{series}");
    // The sender's own interrupt, on the only processor, comes first.
    assert!(number(&series["latency_ns"]["p50"]) > own && stage(&series, "interrupt") > 0, "{series}");
    for address in ADDRESSES {
        fs::write("/sys/bus/pci/drivers_probe", address).unwrap();
    }
}

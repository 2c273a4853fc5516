//@ machine: --analyzer --bare-metal --clock virtual
//@ commands: latency ping wire
//@ parts: 2
//! What the analyzer measures beside gateways of the kernel's drivers: a driver in a program and one on a processor without
//! Linux, from command to command, and the answer to a ping.

use crate::{
    analyzer::{latency, number, series, stage},
    testbed::{alone, canter, cards},
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

#[test]
#[ignore = "needs the lab: make test ONLY=analyzer_outside"]
fn a_pong_is_measured_as_a_gateway_is() {
    let _alone = alone();
    cards();
    let mut pong = canter(&["pong", "can4"]);
    pong.until_it_says("pong: ");
    let ends = ["--send", "can2", "--routed", "can4", "--id", "780", "--len", "8", "--count", "20"];
    let series = series(&latency(&ends));
    for name in ["interrupt", "driver", "CAN core", "socket", "scheduler", "gateway's own"] {
        assert!(stage(&series, name) > 0, "{name}: {series}");
    }
    let reception = &series["stages"]["reception"];
    let [aside, whole] = ["aside_ns", "total_ns"].map(|part| number(&reception[part]));
    assert!(reception["frames"] == 20 && aside > whole / 2 && aside < whole, "{series}");
    drop(pong);
}

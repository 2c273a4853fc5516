//@ machine: --bus probe --canchar virtual,3,4 --clock virtual
//@ commands: methods
//@ also: all --kernel 6.1 --bus probe --canchar virtual,3,4 --clock virtual
//@ also: all --kernel 7.3 --bus probe --canchar virtual,3,4 --clock virtual
//@ also: all --kernel 7.3-rt --bus probe --canchar virtual,3,4 --clock virtual
//! Figures of every driver of a card, which are compared in the virtual clock only.

use crate::{
    canchar::{Bench, CARD, measured},
    testbed::eventually,
};
use canter_io::Interface;
use std::path::Path;

#[test]
#[ignore = "needs the lab: make test ONLY=canchar_drivers"]
fn every_driver_of_a_card_is_measured_in_one_run_by_the_exact_instrument() {
    // No driver of these cards polls for sockets: a method that cannot start gives its cards to the next one.
    const UNABLE: &str = "read/busy-poll+write";
    let _bench = Bench::new();
    let methods =
        ["can-gw", "canchar+canchar", "read+canchar", "canchar-ring/chip-poll+canchar-ring", "port+port"];
    let series = measured(&format!(
        "methods = {:?}\nlens = [8]\ncount = 20\n",
        [&[UNABLE], &methods[..], &["interrupt"]].concat()
    ));
    assert_eq!(series.len(), 1 + methods.len() + 1);
    assert!(series[0]["unavailable"].as_str().unwrap().contains("SO_BUSY_POLL"), "{}", series[0]);
    let series = &series[1..];
    for one in series {
        assert_eq!((&one["unavailable"], &one["ledger"]["received"]), (&"".into(), &20.into()), "{one}");
    }
    let [median, floor] = ["p50", "floor"].map(|what| match what {
        "p50" => series.iter().map(|one| one["latency_ns"]["p50"].as_u64().unwrap()).collect::<Vec<_>>(),
        _ => series.iter().map(|one| one["floor_ns"].as_u64().unwrap()).collect(),
    });
    assert!(floor.iter().all(|&ns| ns > 0), "{floor:?}");
    let interrupt = median[methods.len()];
    assert!(
        median[..methods.len()].iter().all(|&ns| ns > interrupt),
        "a gateway is more than an interrupt: {median:?}"
    );
    // The cards are whose they were.
    eventually("canchar has its cards again", || Path::new(CARD).exists() && Interface::find("can0").is_ok());
}

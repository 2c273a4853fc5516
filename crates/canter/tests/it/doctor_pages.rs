//@ machine: --bus wire --clock virtual
//@ commands: doctor
//! What `canter doctor` says of memory that the kernel takes by the thousand pages, and that its remedy helps: a virtual wire's
//! timer is an interrupt, and the wire knows how late that was.

use crate::testbed::{DEADLINE, Nodes, alone, canter, output};
use canter_io::{
    Frame,
    interface::BitTiming,
    netlink::wire::{self, Pace, Source},
};
use std::io::Write;

/// How late the wire's timer was at most beside a program that writes a file.
fn latest_ns_beside_a_file() -> u64 {
    let _node = Nodes::up(&["tp0"], "P", &BitTiming::classic(1_000_000));
    wire::set_slip("P", u64::MAX).unwrap();
    let frame = "123#".parse::<Frame>().unwrap();
    wire::start("P", &Source { frame, pace: Pace::Always, count: Some(100_000), ..Source::default() })
        .unwrap();
    let mut file = tempfile::tempfile().unwrap(); // in memory
    (0..1500).for_each(|_| file.write_all(&[0; 1 << 16]).unwrap());
    let state = wire::bus("P").unwrap();
    assert!(state.source.running, "{state:?}");
    state.stats.late_ns_max
}

#[test]
#[ignore = "needs the lab: make test ONLY=doctor_pages"]
fn a_file_that_is_written_holds_off_interrupts_and_the_remedy_shortens_that() {
    let _alone = alone();
    let before_ns = latest_ns_beside_a_file();
    assert!((300_000..700_000).contains(&before_ns), "{before_ns}");
    let _node = Nodes::up(&["tp1"], "P1", &BitTiming::classic(1_000_000));
    let report = canter(&["doctor", "tp1", "--json", "-"]).ended(DEADLINE).json();
    let findings = report["findings"].as_array().unwrap();
    let finding = findings.iter().find(|finding| finding["check"] == "page-batches").unwrap();
    output("sh", &["-c", finding["remedy"].as_str().unwrap()]);
    let after_ns = latest_ns_beside_a_file();
    assert!(after_ns < before_ns / 5, "{before_ns}, {after_ns}");
}

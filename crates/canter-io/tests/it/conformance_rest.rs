//@ machine: --fd-cards 2 --cpus 2
//@ in: all
//! Every method keeps its promises on the links that make test leaves out.

use crate::promises::{Kind, every_method_keeps_its_promises_on};

#[test]
#[ignore = "needs the lab: make test ONLY=conformance_rest"]
fn on_a_vcan() {
    every_method_keeps_its_promises_on(Kind::Vcan);
}

#[test]
#[ignore = "needs the lab: make test ONLY=conformance_rest"]
fn on_a_vcan_that_carries_fd_frames() {
    every_method_keeps_its_promises_on(Kind::VcanFd);
}

#[test]
#[ignore = "needs the lab: make test ONLY=conformance_rest"]
fn on_a_vxcan() {
    every_method_keeps_its_promises_on(Kind::Vxcan);
}

#[test]
#[ignore = "needs the lab: make test ONLY=conformance_rest"]
fn between_two_ctucanfd_cards() {
    every_method_keeps_its_promises_on(Kind::Ctucanfd);
}

/// Only a PC has I/O ports.
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
#[test]
#[ignore = "needs the lab: make test ONLY=conformance_rest"]
fn between_two_cards_without_a_driver() {
    every_method_keeps_its_promises_on(Kind::PortCards);
}

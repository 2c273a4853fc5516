//@ machine: --cpus 2
//@ parts: 2
//! Every method keeps its promises on two links that differ most: cards with a short FIFO, and a cable that carries FD frames
//! and loses none. conformance_wire.rs and conformance_canchar.rs have others, conformance_rest.rs has the rest.

use crate::promises::{Kind, every_method_keeps_its_promises_on};

#[test]
#[ignore = "needs the lab: make test ONLY=conformance"]
fn on_a_vxcan_that_carries_fd_frames() {
    every_method_keeps_its_promises_on(Kind::VxcanFd);
}

#[test]
#[ignore = "needs the lab: make test ONLY=conformance"]
fn between_two_sja1000_cards() {
    every_method_keeps_its_promises_on(Kind::Sja1000);
}

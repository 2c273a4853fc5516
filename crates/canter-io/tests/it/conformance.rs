//@ machine: --fd-cards 2 --cpus 2 --bus wire
//! Every method keeps its promises on three links that differ most: cards with a short FIFO, a cable that carries FD frames
//! and loses nothing, and a virtual wire with NAPI.

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

#[test]
#[ignore = "needs the lab: make test ONLY=conformance"]
fn between_two_nodes_of_a_virtual_wire() {
    every_method_keeps_its_promises_on(Kind::Canwire);
}

//@ machine: --cpus 2 --bus wire --clock virtual --append nohz=off
//@ also: all --cpus 2 --bus wire
//@ also: all --kernel 7.3 --cpus 2 --bus wire
//@ also: all --kernel 7.3-rt --cpus 2 --bus wire
//! Every method keeps its promises on a virtual wire, the only link whose sockets have a NAPI context (busy polling).

use crate::promises::{Kind, every_method_keeps_its_promises_on};

#[test]
#[ignore = "needs the lab: make test ONLY=conformance_wire"]
fn between_two_nodes_of_a_virtual_wire() {
    every_method_keeps_its_promises_on(Kind::Canwire);
}

//@ machine: --bus wire --canchar wcan1,wcan3
//@ also: gate --kernel 7.3 --bus wire --canchar wcan1,wcan3
//@ also: all --kernel 7.3-rt --bus wire --canchar wcan1,wcan3
//! canchar's methods keep their promises on nodes of a virtual wire, where a frame takes time.

use crate::promises::{Kind, every_method_keeps_its_promises_on};

#[test]
#[ignore = "needs the lab: make test ONLY=conformance_canchar_wire"]
fn between_two_nodes_driven_by_canchar() {
    every_method_keeps_its_promises_on(Kind::CancharWire);
}

//@ machine: --canchar virtual,0,1
//@ also: all --kernel 7.3 --canchar virtual,0,1
//@ also: all --kernel 7.3-rt --canchar virtual,0,1
//! canchar's methods keep their promises, on virtual devices and on cards.

use crate::promises::{Kind, every_method_keeps_its_promises_on};

#[test]
#[ignore = "needs the lab: make test ONLY=conformance_canchar"]
fn between_two_virtual_canchar_devices() {
    every_method_keeps_its_promises_on(Kind::CancharVirtual);
}

#[test]
#[ignore = "needs the lab: make test ONLY=conformance_canchar"]
fn between_two_cards_driven_by_canchar() {
    every_method_keeps_its_promises_on(Kind::CancharCards);
}

//@ machine: host
//! Every method of the simulated bus keeps its promises.

use crate::promises::{Kind, every_method_keeps_its_promises_on};

#[test]
fn on_a_simulated_bus() {
    every_method_keeps_its_promises_on(Kind::Sim);
}

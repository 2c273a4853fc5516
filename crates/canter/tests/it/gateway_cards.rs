//@ machine: lab
//@ in: all
//! On cards and on virtual interfaces what gateway.rs and routes.rs try with a choice: every pair both ways on every kind of
//! interface, every filter by every kind of method.

use crate::{gateway::filters_let_through, routes::two_directions};

#[test]
#[ignore = "needs the lab: make test ONLY=gateway_cards"]
fn every_pair_hands_on_both_ways_on_every_kind_of_interface_and_never_echoes() {
    two_directions(|_, _| true);
}

#[test]
#[ignore = "needs the lab: make test ONLY=gateway_cards"]
fn every_filter_lets_through_what_candump_lets_through_by_every_method() {
    filters_let_through(|_, _| true);
}

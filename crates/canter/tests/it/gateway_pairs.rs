//@ machine: --bus wire --clock virtual
//@ in: all
//! Every pair of methods on every kind of link, of which gateway_wire.rs has those few in which each method is once.

use crate::gateway_wire::hand_on_both_ways;

#[test]
#[ignore = "needs the lab: make test ONLY=gateway_pairs"]
fn every_pair_hands_on_both_ways_between_all_links_at_once_and_never_echoes() {
    hand_on_both_ways(|pairs| pairs);
}

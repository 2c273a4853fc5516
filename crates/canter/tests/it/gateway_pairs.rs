//@ machine: --bus wire --clock virtual
//@ in: all
//! Every pair of methods on every kind of link, of which gateway_wire.rs has those few in which each method is once; and the
//! outputs without acknowledgement that gateway_wire.rs leaves out.

use crate::gateway_wire::{hand_on_both_ways, sends_nothing_old};

#[test]
#[ignore = "needs the lab: make test ONLY=gateway_pairs"]
fn every_pair_hands_on_both_ways_between_all_links_at_once_and_never_echoes() {
    hand_on_both_ways(|pairs| pairs);
}

#[test]
#[ignore = "needs the lab: make test ONLY=gateway_pairs"]
fn other_outputs_without_acknowledgement_send_nothing_old_either() {
    sends_nothing_old(&[
        ("read+write", "wait"),
        ("ring/spin+write", "wait"),
        ("ring+ring", "wait"),
        ("io-uring+io-uring", "wait"),
        ("ring+ring", "drop-new"),
    ]);
}

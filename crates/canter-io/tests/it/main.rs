//! All integration tests of this crate in one executable. The first line of each module states the machine that it needs.
#![allow(clippy::unwrap_used, reason = "a test may")]

mod conformance;
mod conformance_canchar;
mod conformance_canchar_wire;
mod conformance_rest;
mod conformance_simulated;
mod conformance_wire;
mod layers;
mod netlink;
mod packet_filter;
mod promises;
mod rows;
mod skip;

//! All integration tests of this crate in one executable. The first line of each module states the machine that it needs.
#![allow(clippy::unwrap_used, reason = "a test may")]

mod layers;
mod places;

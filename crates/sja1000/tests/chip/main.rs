//! What the crate does with a chip, against one in memory.
#![allow(clippy::unwrap_used, reason = "a test may")]

mod controller;
mod double;
mod gateway;

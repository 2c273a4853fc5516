//! What drivers do with a chip, against one in memory: this crate's controller and gateway, and the kernel module canchar,
//! which goes through the same scenarios.
#![allow(clippy::unwrap_used, reason = "a test may")]

mod board;
mod controller;
mod double;
mod drivers;
mod gateway;
mod scenarios;

//! Instruments: what a frame costs, and how late it is.

pub mod experiment;
pub mod latency;
pub mod matcher;
#[cfg(test)]
mod simulation;
pub mod syscalls;

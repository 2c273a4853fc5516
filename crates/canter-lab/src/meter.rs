//! Instruments: what a frame costs, and how late it is.

mod cards;
pub mod experiment;
pub mod instrument;
pub mod latency;
pub mod matcher;
pub mod measurement;
#[cfg(test)]
mod simulation;
mod sockets;
mod sweep;
pub mod syscalls;
pub mod through;
mod wires;

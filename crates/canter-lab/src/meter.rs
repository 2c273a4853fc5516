//! Instruments: what a frame costs, and how late it is.

mod analyzed;
mod beside_sockets;
mod cards;
mod controllers;
pub(crate) mod deliveries;
pub(crate) mod experiment;
pub(crate) mod instrument;
pub mod latency;
pub(crate) mod measurement;
#[cfg(test)]
mod simulation;
mod sockets;
pub(crate) mod sweep;
pub mod syscalls;
pub(crate) mod through;
mod wires;

//! Instruments: what a frame costs, and how late it is.

pub mod experiment;
pub mod latency;
pub mod matcher;
pub mod ping;
pub mod pong;
#[cfg(test)]
mod simulation;
mod sockets;
pub mod syscalls;
mod wires;

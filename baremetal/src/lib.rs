//! A gateway without an operating system: frames from one SJA1000 to another, by polling.
//!
//! Two programs are made of it. `image` boots alone (PVH: QEMU's `-kernel`) and finds its cards. `beside` runs on a
//! processor that Linux does not use; the module canbare starts it and shares a page with it. Both use the same gateway
//! loop, [`sja1000::gateway`].
#![no_std]

pub mod card;
pub mod command_line;
pub mod console;
pub mod measure;
pub mod pci;
pub mod ports;
pub mod shared;

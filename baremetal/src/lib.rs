//! A gateway without an operating system: frames from one SJA1000 to another, by polling.
//!
//! Two programs are made of it. `image` boots on its own (PVH: QEMU's `-kernel`) and finds its cards by itself. `beside`
//! runs on a processor that Linux leaves alone; the module canbare starts it and shares a page with it. The loop that moves
//! frames, [`sja1000::gateway`], is the same in both.
#![no_std]

pub mod card;
pub mod command_line;
pub mod console;
pub mod measure;
pub mod pci;
pub mod ports;
pub mod shared;

//! kernel/uapi/canbare.h: a gateway on a processor without Linux. The header documents the fields.
#![allow(missing_docs)]

use super::request;
use std::mem::offset_of;

pub const NOT_STARTED: u32 = 0;
pub const ROUTING: u32 = 2;
pub const STOPPED: u32 = 3;
pub const NO_INPUT: u32 = 4;
pub const NO_OUTPUT: u32 = 5;
pub const GONE: u32 = 6;

/// `struct canbare_counts`: the account of the gateway that the image runs.
pub use sja1000::gateway::Counts;

/// `struct canbare_start`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Start {
    pub image: u64,
    pub image_len: u32,
    pub bitrate: [u32; 2],
    pub reserved: u32,
}

/// `struct canbare_status`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Status {
    pub state: u32,
    pub processor: i32,
    pub memory: u32,
    pub cards: u32,
    pub counts: Counts,
}

// The numbers that kernel/canbare/main.c asserts.
const _: () = assert!(size_of::<Start>() == 24 && size_of::<Status>() == 56);
const _: () = assert!(size_of::<Counts>() == 40);
const _: () = assert!(offset_of!(Counts, received) == 0 && offset_of!(Counts, transmitted) == 8);
const _: () = assert!(offset_of!(Counts, dropped) == 16 && offset_of!(Counts, overruns) == 24);
const _: () = assert!(offset_of!(Counts, bus_offs) == 32);

pub const START: u32 = request(1, 0x30, size_of::<Start>());
pub const STOP: u32 = request(0, 0x31, 0);
pub const GET_STATUS: u32 = request(2, 0x32, size_of::<Status>());

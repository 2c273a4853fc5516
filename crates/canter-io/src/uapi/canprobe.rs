//! kernel/uapi/canprobe.h: the instrument on two cards. The header documents the fields.
#![allow(missing_docs)]

use super::request;

pub const SENT: u8 = 0;
pub const HANDLER: u8 = 2;

/// `struct canprobe_record`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    pub stamp_ns: u64,
    pub can_id: u32,
    pub len: u8,
    pub side: u8,
    pub reserved: u16,
    pub data: [u8; 8],
}

/// `struct canprobe_plan`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Plan {
    pub can_id: u32,
    pub len: u8,
    pub numbered: u8,
    pub reserved: u16,
    pub data: [u8; 8],
    pub delay_ns: u64,
    pub period_ns: u64,
    pub count: u32,
    pub burst: u32,
    pub bitrate: u32,
    pub reserved2: [u32; 3],
}

/// `struct canprobe_state`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct State {
    pub running: u32,
    pub sent: u32,
    pub received: u32,
    pub unread: u32,
    pub overruns: u32,
    pub late: u32,
    pub floor_ns: u64,
}

// The numbers that kernel/probe/main.c asserts.
const _: () = assert!(size_of::<Record>() == 24 && std::mem::offset_of!(Record, data) == 16);
const _: () = assert!(size_of::<Plan>() == 56 && std::mem::offset_of!(Plan, delay_ns) == 16);
const _: () = assert!(size_of::<State>() == 32);

pub const START: u32 = request(1, 0x20, size_of::<Plan>());
pub const STOP: u32 = request(0, 0x21, 0);
pub const GET_STATE: u32 = request(2, 0x22, size_of::<State>());
pub const FLOOR: u32 = request(0, 0x23, 0);
pub const WATCH: u32 = request(1, 0x24, size_of::<u32>());

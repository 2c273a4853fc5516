//! kernel/uapi/canchar.h: CAN controllers as character devices. The header documents the fields.
#![allow(missing_docs)]

use super::request;

/// `struct canchar_frame`, also a slot of a ring.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    pub stamp_ns: u64,
    pub can_id: u32,
    pub len: u8,
    pub flags: u8,
    pub lost: u16,
    pub data: [u8; 8],
}

/// `CANCHAR_FRAME_LOCAL`: it left this machine through another file.
pub const FRAME_LOCAL: u8 = 0x01;
/// `CANCHAR_FRAME_OWN`: it left through this one.
pub const FRAME_OWN: u8 = 0x02;

/// `struct canchar_map`, the first page of a mapping.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct MapHeader {
    pub magic: u32,
    pub version: u32,
    pub slot_size: u32,
    pub reserved: u32,
    pub rx_offset: u32,
    pub rx_slots: u32,
    pub tx_offset: u32,
    pub tx_slots: u32,
    pub bytes: u64,
}

pub const MAP_MAGIC: u32 = 0x5243_4843;
pub const MAP_VERSION: u32 = 1;

/// Where the words of `struct canchar_ring` are, in bytes from its start, and where its slots begin.
pub const RING_HEAD: usize = 0;
pub const RING_TAIL: usize = 64;
pub const RING_NEED_WAKEUP: usize = 128;
pub const RING_SLOTS: usize = 192;

/// `struct canchar_options`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    pub frame_size: u32,
    pub flags: u32,
    pub rx_slots: u32,
    pub tx_slots: u32,
    pub priority: u32,
    pub read_min: u32,
    pub timeout_ns: u64,
    pub spin_ns: u64,
}

pub const OVERWRITE: u32 = 0x01;
pub const ECHO: u32 = 0x02;
pub const ECHO_OWN: u32 = 0x04;
pub const POLL_CHIP: u32 = 0x08;
pub const ADAPTIVE: u32 = 0x10;
pub const NO_STAMPS: u32 = 0x20;

/// `CANCHAR_SLOTS_MAX` in the driver: the longest queue.
pub const SLOTS_MAX: u32 = 4096;

/// `struct canchar_filters`; `filters` is the address of as many [`crate::Filter`]s.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct FilterSet {
    pub count: u32,
    pub error_mask: u32,
    pub join: u32,
    pub reserved: u32,
    pub filters: u64,
}

/// `struct canchar_statistics`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    pub rx_frames: u64,
    pub rx_overruns: u64,
    pub tx_frames: u64,
    pub tx_aborted: u64,
    pub interrupts: u64,
    pub error_frames: u64,
    pub bus_off: u64,
    pub restarts: u64,
    pub file_rx_frames: u64,
    pub file_rx_lost: u64,
    pub file_tx_frames: u64,
    pub file_tx_lost: u64,
    pub state: u32,
    pub rx_errors: u32,
    pub tx_errors: u32,
    pub reserved: u32,
}

/// `struct canchar_wait`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Wait {
    pub timeout_ns: u64,
    pub min: u32,
    pub reserved: u32,
}

pub const FOREVER: u64 = u64::MAX;

/// `struct canchar_poll_entry`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PollEntry {
    pub fd: i32,
    pub ready: u32,
}

/// `struct canchar_poll_set`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct PollSet {
    pub timeout_ns: u64,
    pub count: u32,
    pub reserved: u32,
    pub entries: u64,
}

// The numbers that kernel/canchar/ioctl.c asserts.
const _: () = assert!(size_of::<Frame>() == 24 && std::mem::offset_of!(Frame, can_id) == 8);
const _: () = assert!(std::mem::offset_of!(Frame, data) == 16);
const _: () = assert!(size_of::<MapHeader>() == 40 && size_of::<Options>() == 40);
const _: () = assert!(size_of::<FilterSet>() == 24 && size_of::<Statistics>() == 112);
const _: () = assert!(size_of::<Wait>() == 16 && size_of::<PollEntry>() == 8 && size_of::<PollSet>() == 24);

pub const GET_OPTIONS: u32 = request(2, 0x10, size_of::<Options>());
pub const SET_OPTIONS: u32 = request(1, 0x11, size_of::<Options>());
pub const SET_FILTERS: u32 = request(1, 0x12, size_of::<FilterSet>());
pub const GET_STATISTICS: u32 = request(2, 0x13, size_of::<Statistics>());
pub const WAIT: u32 = request(1, 0x14, size_of::<Wait>());
pub const KICK: u32 = request(0, 0x15, 0);
pub const WAIT_TX_DONE: u32 = request(1, 0x16, size_of::<u64>());
pub const POLL_SET: u32 = request(1, 0x17, size_of::<PollSet>());

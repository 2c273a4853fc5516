//! linux/can/gw.h: attributes, flags and packed structures of can-gw jobs. The structures only give offsets and
//! sizes; messages are built and read as bytes.

/// Bytes of `struct rtcanmsg`: `u8 can_family, u8 gwtype, u16 flags`.
pub const RTCANMSG_BYTES: usize = 4;

pub const CGW_TYPE_CAN_CAN: u8 = 1;

pub const CGW_MOD_AND: u16 = 1;
pub const CGW_MOD_OR: u16 = 2;
pub const CGW_MOD_XOR: u16 = 3;
pub const CGW_MOD_SET: u16 = 4;
pub const CGW_CS_XOR: u16 = 5;
pub const CGW_CS_CRC8: u16 = 6;
pub const CGW_HANDLED: u16 = 7;
pub const CGW_DROPPED: u16 = 8;
pub const CGW_SRC_IF: u16 = 9;
pub const CGW_DST_IF: u16 = 10;
pub const CGW_FILTER: u16 = 11;
pub const CGW_DELETED: u16 = 12;
pub const CGW_LIM_HOPS: u16 = 13;
pub const CGW_MOD_UID: u16 = 14;
pub const CGW_FDMOD_AND: u16 = 15;
pub const CGW_FDMOD_OR: u16 = 16;
pub const CGW_FDMOD_XOR: u16 = 17;
pub const CGW_FDMOD_SET: u16 = 18;

pub const CGW_FLAGS_CAN_ECHO: u16 = 0x01;
pub const CGW_FLAGS_CAN_SRC_TSTAMP: u16 = 0x02;
pub const CGW_FLAGS_CAN_IIF_TX_OK: u16 = 0x04;
pub const CGW_FLAGS_CAN_FD: u16 = 0x08;

pub const CGW_MOD_ID: u8 = 0x01;
pub const CGW_MOD_LEN: u8 = 0x02;
pub const CGW_MOD_DATA: u8 = 0x04;
pub const CGW_MOD_FLAGS: u8 = 0x08;

pub const CGW_CRC8PRF_1U8: u8 = 1;
pub const CGW_CRC8PRF_16U8: u8 = 2;
pub const CGW_CRC8PRF_SFFID_XOR: u8 = 3;

/// `struct cgw_frame_mod`: a `struct can_frame` and which of its elements count.
pub const CGW_MODATTR_LEN: usize = size_of::<libc::can_frame>() + 1;
/// `struct cgw_fdframe_mod`: a `struct canfd_frame` and which of its elements count.
pub const CGW_FDMODATTR_LEN: usize = size_of::<libc::canfd_frame>() + 1;

#[allow(non_camel_case_types)]
#[repr(C, packed)]
pub struct cgw_csum_xor {
    pub from_idx: i8,
    pub to_idx: i8,
    pub result_idx: i8,
    pub init_xor_val: u8,
}

#[allow(non_camel_case_types)]
#[repr(C, packed)]
pub struct cgw_csum_crc8 {
    pub from_idx: i8,
    pub to_idx: i8,
    pub result_idx: i8,
    pub init_crc_val: u8,
    pub final_xor_val: u8,
    pub crctab: [u8; 256],
    pub profile: u8,
    pub profile_data: [u8; 20],
}

pub const CGW_CS_XOR_LEN: usize = size_of::<cgw_csum_xor>();
pub const CGW_CS_CRC8_LEN: usize = size_of::<cgw_csum_crc8>();

// linux/can/gw.h, "CAN rtnetlink attribute contents in detail".
const _: () = assert!(CGW_MODATTR_LEN == 17 && CGW_FDMODATTR_LEN == 73);
const _: () = assert!(CGW_CS_XOR_LEN == 4 && CGW_CS_CRC8_LEN == 282);
const _: () = assert!(std::mem::offset_of!(cgw_csum_crc8, profile) == 261);

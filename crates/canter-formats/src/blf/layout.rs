//! Constants of BLF objects that the decoder and the encoder share.

// Types of objects that are read and written.
pub const CAN_MESSAGE: u32 = 1;
pub const LOG_CONTAINER: u32 = 10;
pub const APP_TEXT: u32 = 65;
pub const CAN_ERROR_EXT: u32 = 73;
pub const CAN_FD_MESSAGE: u32 = 100;

/// Bytes of the header that all objects have: signature, header's size and version, object's size and type.
pub const OBJECT_BASE: usize = 16;
/// Bytes of a header with a stamp.
pub const OBJECT_HEAD: usize = 32;
/// Bytes of a header of version 2, which has a second stamp.
pub const OBJECT_HEAD_2: usize = 40;

//! The modifications of a frame by a can-gw job.
//!
//! linux/can/gw.h: `struct cgw_frame_mod` (17 bytes), `struct cgw_fdframe_mod` (73 bytes), both packed: a frame as
//! the operand, and which of its elements count.

use crate::frame::{CAN_MTU, CANFD_MTU};
use crate::netlink::attribute::u32_at;
use crate::uapi::can_gw::{
    CGW_FDMODATTR_LEN, CGW_MOD_DATA, CGW_MOD_FLAGS, CGW_MOD_ID, CGW_MOD_LEN, CGW_MODATTR_LEN,
};

/// The operand of one operation (and, or, xor, set) on a frame. `None` leaves a part unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Modification {
    /// For the identifier with its EFF and RTR flags (`can_id`).
    pub id: Option<u32>,
    /// For the length. Classic: the DLC, of which 9…15 mean 8 bytes (`len8_dlc`); FD: bytes. A frame with a
    /// result above 15 (FD: 64) is deleted and counted as such.
    pub len: Option<u8>,
    /// For the FD flags; FD jobs only.
    pub flags: Option<u8>,
    /// For the complete payload, independent of the length; for a classic job the first 8 bytes.
    pub data: Option<[u8; 64]>,
}

impl Modification {
    /// An operand for the identifier alone.
    pub fn from_id(can_id: u32) -> Self {
        Self { id: Some(can_id), ..Self::default() }
    }

    /// An operand for the payload alone: `bytes`, and 0 for those behind.
    ///
    /// # Panics
    /// When there are more than 64.
    pub fn from_data(bytes: &[u8]) -> Self {
        let mut data = [0; 64];
        data[..bytes.len()].copy_from_slice(bytes);
        Self { data: Some(data), ..Self::default() }
    }

    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The fault of a modification that cannot work; `len_set`: the length is set, not combined.
    pub(super) fn fault(&self, fd: bool, len_set: bool) -> Option<&'static str> {
        let len_max = if fd { 64 } else { 15 };
        if !fd && self.flags.is_some() {
            Some("flags can be modified in FD jobs only")
        } else if !fd && self.data.is_some_and(|data| data[8..].iter().any(|&byte| byte != 0)) {
            Some("a classic job modifies no more than 8 bytes")
        } else if len_set && self.len.is_some_and(|len| len > len_max) {
            Some("every frame would be deleted: the length is set above DLC 15 (FD: 64 bytes)")
        } else {
            None
        }
    }

    pub(super) fn encode(&self, fd: bool) -> Vec<u8> {
        let frame_bytes = if fd { CANFD_MTU } else { CAN_MTU };
        let mut bytes = vec![0; frame_bytes + 1];
        let mut elements = 0;
        if let Some(id) = self.id {
            bytes[..4].copy_from_slice(&id.to_ne_bytes());
            elements |= CGW_MOD_ID;
        }
        if let Some(len) = self.len {
            bytes[4] = len;
            elements |= CGW_MOD_LEN;
        }
        if let Some(flags) = self.flags.filter(|_| fd) {
            bytes[5] = flags;
            elements |= CGW_MOD_FLAGS;
        }
        if let Some(data) = self.data {
            bytes[8..frame_bytes].copy_from_slice(&data[..frame_bytes - 8]);
            elements |= CGW_MOD_DATA;
        }
        bytes[frame_bytes] = elements;
        debug_assert_eq!(bytes.len(), if fd { CGW_FDMODATTR_LEN } else { CGW_MODATTR_LEN });
        bytes
    }

    /// `None` when the attribute is too short.
    pub(super) fn decode(bytes: &[u8], fd: bool) -> Option<Self> {
        let frame_bytes = if fd { CANFD_MTU } else { CAN_MTU };
        let elements = *bytes.get(frame_bytes)?;
        let counts = |element| elements & element != 0;
        let mut data = [0; 64];
        data[..frame_bytes - 8].copy_from_slice(&bytes[8..frame_bytes]);
        Some(Self {
            id: u32_at(bytes, 0).filter(|_| counts(CGW_MOD_ID)),
            len: Some(bytes[4]).filter(|_| counts(CGW_MOD_LEN)),
            flags: Some(bytes[5]).filter(|_| fd && counts(CGW_MOD_FLAGS)),
            data: Some(data).filter(|_| counts(CGW_MOD_DATA)),
        })
    }
}

//! A frame as the columns that tables and bus logs have.

use canter_io::{
    Frame,
    frame::{BRS, EFF_MASK, ESI, dlc_of_len},
};

/// The columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fields {
    /// The identifier without flags; of an error frame, its error classes (linux/can/error.h).
    pub id: u32,
    pub extended: bool,
    pub rtr: bool,
    pub fd: bool,
    pub brs: bool,
    pub esi: bool,
    pub error: bool,
    /// As it was on the wire: 0…15.
    pub dlc: u8,
    /// Bytes of data; an RTR frame has none.
    pub len: u8,
}

impl Fields {
    #[inline]
    pub fn of(frame: &Frame) -> Self {
        let fd = frame.is_fd();
        let dlc = match (fd, frame.len8_dlc) {
            (true, _) => dlc_of_len(frame.len.into()).unwrap_or(15),
            (false, dlc @ 9..=15) if frame.len == 8 => dlc,
            _ => frame.len,
        };
        Self {
            id: frame.can_id & EFF_MASK,
            extended: frame.is_eff() && !frame.is_error(),
            rtr: frame.is_rtr(),
            fd,
            brs: fd && frame.flags & BRS != 0,
            esi: fd && frame.flags & ESI != 0,
            error: frame.is_error(),
            dlc,
            len: frame.data().len() as u8,
        }
    }
}

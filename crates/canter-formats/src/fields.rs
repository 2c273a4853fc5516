//! A frame as columns: one field each, as CSV, Parquet and MDF store it.

use canter_frame::{
    Frame,
    frame::{BRS, EFF_FLAG, EFF_MASK, ERR_FLAG, ESI, FDF, RTR_FLAG, SFF_MASK, dlc_of_len, len_of_dlc},
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
    /// The DLC on the wire: 0…15.
    pub dlc: u8,
    /// Bytes of data; an RTR frame has none.
    pub len: u8,
}

impl Fields {
    #[inline]
    pub fn from_frame(frame: &Frame) -> Self {
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

    /// Returns the frame with these columns and this data, or what is wrong with them.
    #[inline]
    pub fn frame(&self, data: &[u8]) -> Result<Frame, &'static str> {
        let len = usize::from(self.len);
        let id_max = if self.extended || self.error { EFF_MASK } else { SFF_MASK };
        match self {
            _ if self.id > id_max => return Err("an identifier that is too large"),
            _ if self.dlc > 15 => return Err("a DLC above 15"),
            _ if data.len() != len => return Err("data that is shorter or longer than the length"),
            Self { error: true, rtr: true, .. } => return Err("an error frame that is a remote frame"),
            Self { error: true, fd: true, .. } => return Err("an error frame that is FD"),
            Self { rtr: true, fd: true, .. } => return Err("a remote frame that is FD"),
            Self { rtr: true, .. } if len > 0 => return Err("a remote frame with data"),
            Self { fd: true, .. } if len != len_of_dlc(self.dlc) => {
                return Err("a length that does not match the DLC");
            }
            Self { fd: false, rtr: false, .. } if len != usize::from(self.dlc.min(8)) => {
                return Err("a length that does not match the DLC");
            }
            _ => {}
        }
        let flag = |set: bool, flag: u32| if set { flag } else { 0 };
        let mut frame = Frame::default();
        frame.can_id = self.id
            | flag(self.extended && !self.error, EFF_FLAG)
            | flag(self.rtr, RTR_FLAG)
            | flag(self.error, ERR_FLAG);
        if self.fd {
            frame.flags = FDF | if self.brs { BRS } else { 0 } | if self.esi { ESI } else { 0 };
            frame.len = self.len;
        } else {
            frame.len = self.dlc.min(8);
            frame.len8_dlc = if self.dlc > 8 { self.dlc } else { 0 };
        }
        frame.data[..len].copy_from_slice(data);
        Ok(frame)
    }
}

/// Rounds a length up to the next one that has a DLC, like the kernel on sending.
pub fn fd_length(len: usize) -> u8 {
    (len..=64).find(|&len| dlc_of_len(len).is_some()).unwrap_or(64) as u8
}

/// The identifier of an error frame whose details the file does not have: a bus error.
pub const BUS_ERROR: u32 = ERR_FLAG | 0x80;

/// Returns an error frame without details, for files that do not have them.
pub fn error_frame() -> Frame {
    let mut frame = Frame::default();
    (frame.can_id, frame.len) = (BUS_ERROR, 8);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_columns_of_a_frame_become_the_same_frame() {
        for text in [
            "123#1122",
            "00000123#",
            "123#R",
            "123#R5",
            "12345678#R8_F",
            "123#0102030405060708_B",
            "123##0",
            "123##7001122334455667788990011",
            "20000004#0001000000000000",
        ] {
            let frame: Frame = text.parse().unwrap();
            assert_eq!(Fields::from_frame(&frame).frame(frame.data()), Ok(frame), "{text}");
        }
    }

    #[test]
    fn invalid_columns_are_refused_with_the_reason() {
        let fields = Fields::from_frame(&"123#1122".parse().unwrap());
        let check = |fields: Fields, data: &[u8]| fields.frame(data).unwrap_err();
        assert_eq!(check(fields, &[1]), "data that is shorter or longer than the length");
        assert_eq!(check(Fields { id: 0x800, ..fields }, &[1, 2]), "an identifier that is too large");
        assert_eq!(check(Fields { dlc: 16, ..fields }, &[1, 2]), "a DLC above 15");
        assert_eq!(check(Fields { dlc: 3, ..fields }, &[1, 2]), "a length that does not match the DLC");
        assert_eq!(
            check(Fields { fd: true, dlc: 9, ..fields }, &[1, 2]),
            "a length that does not match the DLC"
        );
        assert_eq!(check(Fields { rtr: true, ..fields }, &[1, 2]), "a remote frame with data");
        assert_eq!(check(Fields { rtr: true, fd: true, ..fields }, &[1, 2]), "a remote frame that is FD");
    }
}

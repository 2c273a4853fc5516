//! A CAN frame, classic or FD, as the kernel lays it out: `struct can_frame` is the first 16 bytes of
//! `struct canfd_frame`, so one type serves both and no method converts anything.
//!
//! Layout and flags: linux/can.h. The module `notation` has its text, the module `bits` its length on the wire.

/// Bytes of a classic frame on a socket (`CAN_MTU`).
pub const CAN_MTU: usize = 16;
/// Bytes of an FD frame on a socket (`CANFD_MTU`).
pub const CANFD_MTU: usize = 72;

/// The identifier has 29 bits (`CAN_EFF_FLAG`).
pub const EFF_FLAG: u32 = 0x8000_0000;
/// A remote transmission request (`CAN_RTR_FLAG`); classic only.
pub const RTR_FLAG: u32 = 0x4000_0000;
/// An error frame of the driver (`CAN_ERR_FLAG`); the identifier bits are error classes (linux/can/error.h).
pub const ERR_FLAG: u32 = 0x2000_0000;
/// The identifier bits of a standard frame.
pub const SFF_MASK: u32 = 0x7ff;
/// The identifier bits of an extended frame.
pub const EFF_MASK: u32 = 0x1fff_ffff;

/// FD: the data phase has its own bit rate (`CANFD_BRS`).
pub const BRS: u8 = 0x01;
/// FD: the transmitter is error passive (`CANFD_ESI`).
pub const ESI: u8 = 0x02;
/// The frame is an FD frame (`CANFD_FDF`). Every [`Frame`] that is FD has it, whatever the kernel reported.
pub const FDF: u8 = 0x04;

/// An identifier with its width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Identifier {
    /// Standard, 11 bits.
    Sff(u16),
    /// Extended, 29 bits.
    Eff(u32),
}

/// As candump writes it: `123`, `12345678`.
impl std::fmt::Display for Identifier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&match *self {
            Self::Sff(id) => format!("{id:03X}"),
            Self::Eff(id) => format!("{id:08X}"),
        })
    }
}

/// A classic or FD frame. Bytes of `data` behind `len` have no meaning and take no part in comparisons.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
pub struct Frame {
    /// Identifier with [`EFF_FLAG`], [`RTR_FLAG`] and [`ERR_FLAG`].
    pub can_id: u32,
    /// Payload in bytes: 0…8, FD 0…8, 12, 16, 20, 24, 32, 48, 64. An RTR frame requests this number of bytes and carries
    /// none.
    pub len: u8,
    /// [`BRS`], [`ESI`], [`FDF`]; 0 in a classic frame.
    pub flags: u8,
    res0: u8,
    /// Classic: the DLC 9…15 as sent, when `len` is 8; else 0 (`len8_dlc`).
    pub len8_dlc: u8,
    /// Payload; only the first `len` bytes count.
    pub data: [u8; 64],
}

// linux/can.h: struct canfd_frame, 72 bytes; struct can_frame, 16, with the same offsets.
const _: () = assert!(size_of::<Frame>() == CANFD_MTU && align_of::<Frame>() == 8);
const _: () = assert!(std::mem::offset_of!(Frame, data) == 8 && std::mem::offset_of!(Frame, len) == 4);
const _: () = assert!(std::mem::offset_of!(Frame, flags) == 5 && std::mem::offset_of!(Frame, len8_dlc) == 7);

/// Why no frame can be created from these parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FrameError {
    /// The identifier has more bits than its format.
    Identifier,
    /// More than 8 bytes, or for FD a length that has no DLC.
    Length,
}

impl std::fmt::Display for FrameError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Identifier => "the identifier is wider than 11 bits (SFF) or 29 bits (EFF)",
            Self::Length => "the length is not 0…8 (classic) or 0…8, 12, 16, 20, 24, 32, 48, 64 (FD)",
        })
    }
}

impl std::error::Error for FrameError {}

impl Default for Frame {
    /// [`Frame::EMPTY`].
    fn default() -> Self {
        Self::EMPTY
    }
}

impl Frame {
    /// `000#`: identifier 0, no data.
    pub const EMPTY: Self = Self { can_id: 0, len: 0, flags: 0, res0: 0, len8_dlc: 0, data: [0; 64] };

    /// A classic data frame.
    ///
    /// # Errors
    /// When the identifier or the length does not fit.
    pub fn classic(id: Identifier, data: &[u8]) -> Result<Self, FrameError> {
        if data.len() > 8 {
            return Err(FrameError::Length);
        }
        let mut frame = Self { can_id: id.bits()?, len: data.len() as u8, ..Self::default() };
        frame.data[..data.len()].copy_from_slice(data);
        Ok(frame)
    }

    /// An FD data frame; `flags` of [`BRS`] and [`ESI`].
    ///
    /// # Errors
    /// When the identifier does not fit or the length has no DLC.
    pub fn fd(id: Identifier, data: &[u8], flags: u8) -> Result<Self, FrameError> {
        if dlc_of_len(data.len()).is_none() {
            return Err(FrameError::Length);
        }
        let flags = flags & (BRS | ESI) | FDF;
        let mut frame = Self { can_id: id.bits()?, len: data.len() as u8, flags, ..Self::default() };
        frame.data[..data.len()].copy_from_slice(data);
        Ok(frame)
    }

    /// A remote transmission request for `len` bytes, 0…8.
    ///
    /// # Errors
    /// When the identifier or the length does not fit.
    pub fn rtr(id: Identifier, len: u8) -> Result<Self, FrameError> {
        if len > 8 {
            return Err(FrameError::Length);
        }
        Ok(Self { can_id: id.bits()? | RTR_FLAG, len, ..Self::default() })
    }

    /// The payload; empty for an RTR frame.
    pub fn data(&self) -> &[u8] {
        if self.is_rtr() { &[] } else { &self.data[..usize::from(self.len.min(64))] }
    }

    /// The identifier, with its width. For an error frame, its error classes as [`Identifier::Eff`].
    pub fn id(&self) -> Identifier {
        if self.can_id & (EFF_FLAG | ERR_FLAG) != 0 {
            Identifier::Eff(self.can_id & EFF_MASK)
        } else {
            Identifier::Sff((self.can_id & SFF_MASK) as u16)
        }
    }

    /// Whether the identifier has 29 bits.
    pub fn is_eff(&self) -> bool {
        self.can_id & EFF_FLAG != 0
    }

    /// Whether it is a remote transmission request.
    pub fn is_rtr(&self) -> bool {
        self.can_id & RTR_FLAG != 0 && !self.is_fd() && !self.is_error()
    }

    /// Whether it is an error frame.
    pub fn is_error(&self) -> bool {
        self.can_id & ERR_FLAG != 0
    }

    /// Whether it is an FD frame.
    pub fn is_fd(&self) -> bool {
        self.flags & FDF != 0
    }

    /// As the kernel lays it out, with zeros behind the payload; the first [`mtu`](Self::mtu) bytes count.
    #[inline]
    pub fn kernel_bytes(&self) -> [u8; CANFD_MTU] {
        let mut bytes = [0; CANFD_MTU];
        bytes[..4].copy_from_slice(&self.can_id.to_ne_bytes());
        bytes[4..8].copy_from_slice(&[self.len, self.flags, 0, self.len8_dlc]);
        let data = self.data();
        bytes[8..8 + data.len()].copy_from_slice(data);
        bytes
    }

    /// How many bytes it takes on a socket or in a ring: [`CAN_MTU`] or [`CANFD_MTU`]. A CAN driver drops any
    /// other length without an error.
    pub fn mtu(&self) -> usize {
        if self.is_fd() { CANFD_MTU } else { CAN_MTU }
    }

    /// The frame that the kernel wrote as these bytes: `struct can_frame` or `struct canfd_frame`. Bytes that are
    /// missing count as 0.
    pub fn from_kernel_bytes(bytes: &[u8]) -> Self {
        let mut frame = Self::default();
        if let Some(word) = bytes.first_chunk() {
            frame.can_id = u32::from_ne_bytes(*word);
        }
        if let Some(&[len, flags, _, len8_dlc]) = bytes.get(4..8) {
            (frame.len, frame.flags, frame.len8_dlc) = (len, flags, len8_dlc);
        }
        let data = bytes.get(8..).unwrap_or_default();
        let count = data.len().min(frame.data.len());
        frame.data[..count].copy_from_slice(&data[..count]);
        frame.received_as(bytes.len());
        frame
    }

    /// Corrects a frame of which the kernel has written `mtu` bytes: sets or clears [`FDF`], and clears the flags of classic
    /// frames, because the kernel does not set them reliably.
    pub fn received_as(&mut self, mtu: usize) {
        self.flags = if mtu == CANFD_MTU { self.flags & (BRS | ESI) | FDF } else { 0 };
    }
}

impl Identifier {
    /// The identifier as it stands in `can_id`.
    ///
    /// # Errors
    /// When it is wider than its format.
    pub fn bits(self) -> Result<u32, FrameError> {
        match self {
            Self::Sff(id) if u32::from(id) <= SFF_MASK => Ok(u32::from(id)),
            Self::Eff(id) if id <= EFF_MASK => Ok(id | EFF_FLAG),
            _ => Err(FrameError::Identifier),
        }
    }
}

const FD_LENGTHS: [u8; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 20, 24, 32, 48, 64];

/// The length in bytes that an FD frame with DLC `dlc` (0…15) has.
///
/// # Panics
/// When `dlc` is above 15.
pub fn len_of_dlc(dlc: u8) -> usize {
    usize::from(FD_LENGTHS[usize::from(dlc)])
}

/// The DLC of a length in bytes, or `None` when no FD frame has that length.
pub fn dlc_of_len(len: usize) -> Option<u8> {
    FD_LENGTHS.iter().position(|&have| usize::from(have) == len).map(|dlc| dlc as u8)
}

impl PartialEq for Frame {
    fn eq(&self, other: &Self) -> bool {
        (self.can_id, self.len, self.flags, self.len8_dlc)
            == (other.can_id, other.len, other.flags, other.len8_dlc)
            && self.data() == other.data()
    }
}

impl Eq for Frame {}

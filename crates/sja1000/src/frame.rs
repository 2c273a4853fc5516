//! A classic CAN frame and its layout in the buffers (sections 6.4.13 and 6.4.14).

use crate::{Registers, register as r};

/// Bytes of data in a frame at most.
pub const LEN_MAX: usize = 8;

/// The identifier of a frame. Higher bits than its width are not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identifier {
    /// 11 bits.
    Standard(u16),
    /// 29 bits.
    Extended(u32),
}

/// A classic CAN frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The identifier.
    pub identifier: Identifier,
    /// A remote frame: it requests data and carries none.
    pub remote: bool,
    /// Bytes of data, 0…8; in a remote frame, the bytes that it requests.
    pub len: u8,
    /// The data; bytes from `len` on are 0.
    pub data: [u8; LEN_MAX],
}

impl Frame {
    /// A data frame with the first 8 of `bytes`.
    pub fn data(identifier: Identifier, bytes: &[u8]) -> Self {
        let mut data = [0; LEN_MAX];
        let len = bytes.len().min(LEN_MAX);
        data[..len].copy_from_slice(&bytes[..len]);
        Self { identifier, remote: false, len: len as u8, data }
    }

    /// A remote frame that requests `len` bytes, 8 at most.
    pub fn remote(identifier: Identifier, len: u8) -> Self {
        Self { identifier, remote: true, len: len.min(LEN_MAX as u8), data: [0; LEN_MAX] }
    }

    /// Writes it into the transmit buffer.
    #[inline]
    pub(crate) fn write(&self, registers: &mut impl Registers) {
        let info = self.len.min(LEN_MAX as u8) | if self.remote { r::FRAME_REMOTE } else { 0 };
        match self.identifier {
            Identifier::Standard(id) => {
                registers.write(r::FRAME, info);
                registers.write(r::IDENTIFIER, (id >> 3) as u8);
                registers.write(r::IDENTIFIER + 1, (id << 5) as u8);
                self.write_data(registers, r::IDENTIFIER + 2);
            }
            Identifier::Extended(id) => {
                registers.write(r::FRAME, info | r::FRAME_EXTENDED);
                registers.write(r::IDENTIFIER, (id >> 21) as u8);
                registers.write(r::IDENTIFIER + 1, (id >> 13) as u8);
                registers.write(r::IDENTIFIER + 2, (id >> 5) as u8);
                registers.write(r::IDENTIFIER + 3, (id << 3) as u8);
                self.write_data(registers, r::IDENTIFIER + 4);
            }
        }
    }

    /// Writes the data to the registers from `first`, a constant to the compiler. Most frames have 8 bytes and need no
    /// loop counter.
    #[inline(always)]
    fn write_data(&self, registers: &mut impl Registers, first: u8) {
        if self.remote {
            return;
        }
        if usize::from(self.len) == LEN_MAX {
            for at in 0..LEN_MAX as u8 {
                registers.write(first + at, self.data[usize::from(at)]);
            }
            return;
        }
        for (at, byte) in (0..self.len).zip(self.data) {
            registers.write(first + at, byte);
        }
    }

    /// Reads the frame in the receive buffer.
    #[inline]
    pub(crate) fn read(registers: &mut impl Registers) -> Self {
        let info = registers.read(r::FRAME);
        let len = (info & r::FRAME_DLC).min(LEN_MAX as u8);
        let remote = info & r::FRAME_REMOTE != 0;
        let filled = if remote { 0 } else { len };
        let mut byte = |at: u8| u32::from(registers.read(r::IDENTIFIER + at));
        if info & r::FRAME_EXTENDED != 0 {
            let id = byte(0) << 21 | byte(1) << 13 | byte(2) << 5 | byte(3) >> 3;
            let data = Self::read_data(registers, r::IDENTIFIER + 4, filled);
            Self { identifier: Identifier::Extended(id), remote, len, data }
        } else {
            let id = (byte(0) << 3 | byte(1) >> 5) as u16;
            let data = Self::read_data(registers, r::IDENTIFIER + 2, filled);
            Self { identifier: Identifier::Standard(id), remote, len, data }
        }
    }

    /// Reads `len` bytes of data from the registers from `first`, as [`write_data`](Self::write_data) writes them.
    #[inline(always)]
    fn read_data(registers: &mut impl Registers, first: u8, len: u8) -> [u8; LEN_MAX] {
        if usize::from(len) == LEN_MAX {
            return core::array::from_fn(|at| registers.read(first + at as u8));
        }
        let mut data = [0; LEN_MAX];
        for (at, byte) in (0..len).zip(&mut data) {
            *byte = registers.read(first + at);
        }
        data
    }
}

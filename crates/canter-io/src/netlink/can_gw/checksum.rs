//! The checksums that a can-gw job writes into frames that it has modified.
//!
//! linux/can/gw.h: `struct cgw_csum_xor` (4 bytes), `struct cgw_csum_crc8` (282 bytes), both packed.

use std::mem::offset_of;

use crate::uapi::can_gw::{
    CGW_CRC8PRF_1U8, CGW_CRC8PRF_16U8, CGW_CRC8PRF_SFFID_XOR, CGW_CS_CRC8_LEN, CGW_CS_XOR_LEN, cgw_csum_crc8,
};

/// The bytes of the payload that a checksum covers, and the byte for the checksum. Negative places count from the end
/// of the frame as received: -1 is its last byte; a place outside of a short frame leaves that frame without a
/// checksum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// First byte covered.
    pub from: i8,
    /// Last byte covered; before `from`: the bytes are read in descending order.
    pub to: i8,
    /// The place of the checksum.
    pub result: i8,
}

/// `result = init ^ data[from] ^ … ^ data[to]`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Xor {
    /// Where.
    pub span: Span,
    /// The first value.
    pub init: u8,
}

/// `crc = table[crc ^ data[at]]` for each byte from `init` on, then the profile's bytes, then `^ final_xor`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crc8 {
    /// Where. Relative places need a kernel with a fix; see [`add`](super::add).
    pub span: Span,
    /// The first value.
    pub init: u8,
    /// Combined with the result at the end.
    pub final_xor: u8,
    /// The table of the polynomial.
    pub table: [u8; 256],
    /// The bytes added after the payload.
    pub profile: Profile,
}

/// The bytes that a [`Crc8`] covers in addition to the payload (`CGW_CRC8PRF_…`, after AUTOSAR's end-to-end profiles).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// Nothing.
    #[default]
    None,
    /// One value (1U8).
    Value(u8),
    /// A value chosen by the low four bits of the second payload byte (16U8).
    Counter([u8; 16]),
    /// The two low bytes of the identifier, combined by xor (SFFID_XOR).
    Identifier,
}

/// Bytes of `profile_data`.
const PROFILE_BYTES: usize = 20;
const PROFILE_AT: usize = offset_of!(cgw_csum_crc8, profile);
const PROFILE_DATA_AT: usize = offset_of!(cgw_csum_crc8, profile_data);
const TABLE_AT: usize = offset_of!(cgw_csum_crc8, crctab);

impl Span {
    /// Bytes `from`…`to`, and the result into `result`.
    pub fn new(from: i8, to: i8, result: i8) -> Self {
        Self { from, to, result }
    }

    fn places(self) -> [i8; 3] {
        [self.from, self.to, self.result]
    }

    /// Whether a place counts from the end.
    pub fn is_relative(self) -> bool {
        self.places().iter().any(|&place| place < 0)
    }

    /// Whether all places are inside of the longest payload: -8…7, of FD jobs -64…63.
    pub(super) fn fits(self, fd: bool) -> bool {
        let payload_max: i8 = if fd { 64 } else { 8 };
        self.places().iter().all(|place| (-payload_max..payload_max).contains(place))
    }

    fn encode(self) -> [u8; 3] {
        self.places().map(i8::cast_unsigned)
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let [from, to, result] = bytes.first_chunk::<3>()?.map(u8::cast_signed);
        Some(Self { from, to, result })
    }
}

impl Xor {
    pub(super) fn encode(&self) -> [u8; CGW_CS_XOR_LEN] {
        let [from, to, result] = self.span.encode();
        [from, to, result, self.init]
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        Some(Self { span: Span::decode(bytes)?, init: *bytes.get(3)? })
    }
}

impl Crc8 {
    /// A CRC8 with the table of `polynomial` (without its highest term, most significant bit first): 0x1d is SAE
    /// J1850's.
    pub fn with_polynomial(polynomial: u8, span: Span) -> Self {
        let mut table = [0; 256];
        for (entry, first) in table.iter_mut().zip(0..=u8::MAX) {
            *entry = (0..8).fold(first, |crc, _| (crc << 1) ^ if crc & 0x80 != 0 { polynomial } else { 0 });
        }
        Self { span, init: 0, final_xor: 0, table, profile: Profile::None }
    }

    pub(super) fn encode(&self) -> [u8; CGW_CS_CRC8_LEN] {
        let mut bytes = [0; CGW_CS_CRC8_LEN];
        bytes[..3].copy_from_slice(&self.span.encode());
        bytes[offset_of!(cgw_csum_crc8, init_crc_val)] = self.init;
        bytes[offset_of!(cgw_csum_crc8, final_xor_val)] = self.final_xor;
        bytes[TABLE_AT..PROFILE_AT].copy_from_slice(&self.table);
        let (profile, data) = self.profile.encode();
        bytes[PROFILE_AT] = profile;
        bytes[PROFILE_DATA_AT..].copy_from_slice(&data);
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; CGW_CS_CRC8_LEN] = bytes.first_chunk()?;
        Some(Self {
            span: Span::decode(bytes)?,
            init: bytes[offset_of!(cgw_csum_crc8, init_crc_val)],
            final_xor: bytes[offset_of!(cgw_csum_crc8, final_xor_val)],
            table: *bytes[TABLE_AT..].first_chunk()?,
            profile: Profile::decode(bytes[PROFILE_AT], bytes[PROFILE_DATA_AT..].first_chunk()?),
        })
    }
}

impl Profile {
    fn encode(self) -> (u8, [u8; PROFILE_BYTES]) {
        let mut data = [0; PROFILE_BYTES];
        let profile = match self {
            Self::None => 0,
            Self::Value(value) => {
                data[0] = value;
                CGW_CRC8PRF_1U8
            }
            Self::Counter(values) => {
                data[..16].copy_from_slice(&values);
                CGW_CRC8PRF_16U8
            }
            Self::Identifier => CGW_CRC8PRF_SFFID_XOR,
        };
        (profile, data)
    }

    /// The kernel adds nothing for an unknown profile, so that is [`Profile::None`].
    fn decode(profile: u8, data: &[u8; PROFILE_BYTES]) -> Self {
        match (profile, data.first_chunk()) {
            (CGW_CRC8PRF_1U8, _) => Self::Value(data[0]),
            (CGW_CRC8PRF_16U8, Some(values)) => Self::Counter(*values),
            (CGW_CRC8PRF_SFFID_XOR, _) => Self::Identifier,
            _ => Self::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_outside_of_the_payload_never_reaches_the_kernel() {
        for (span, fd, allowed) in [
            (Span::new(0, 6, 7), false, true),
            (Span::new(0, 6, 8), false, false),
            (Span::new(0, -2, -1), false, true),
            (Span::new(0, -2, -9), false, false),
            (Span::new(0, 62, 63), true, true),
            (Span::new(-64, 63, 0), true, true),
            (Span::new(-65, 63, 0), true, false),
            (Span::new(0, 64, 0), true, false),
        ] {
            assert_eq!(span.fits(fd), allowed, "{span:?} fd {fd}");
        }
    }

    #[test]
    fn the_table_of_sae_j1850_is_the_known_one() {
        let crc8 = Crc8::with_polynomial(0x1d, Span::new(0, 6, 7));
        assert_eq!(crc8.table[..8], [0x00, 0x1d, 0x3a, 0x27, 0x74, 0x69, 0x4e, 0x53]);
        // CRC-8/SAE-J1850 of "123456789" is 0x4b.
        let crc = b"123456789".iter().fold(0xff, |crc: u8, byte| crc8.table[usize::from(crc ^ byte)]);
        assert_eq!(crc ^ 0xff, 0x4b);
    }
}

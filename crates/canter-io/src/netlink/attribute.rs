//! Netlink attributes: length, type, value, padded to four bytes, in the byte order of the machine.
//!
//! linux/netlink.h: `struct nlattr`. Written by [`Request`](super::request::Request), read by [`Attributes`], which
//! takes any bytes: it ends where they stop to make sense.

/// Bytes of an attribute's header (`NLA_HDRLEN`).
pub const HEADER_BYTES: usize = 4;

/// The type without `NLA_F_NESTED` and `NLA_F_NET_BYTEORDER` (`NLA_TYPE_MASK`).
const TYPE_MASK: u16 = 0x3fff;

/// How many bytes `len` takes with padding (`NLA_ALIGN`, `NLMSG_ALIGN`).
pub fn aligned(len: usize) -> usize {
    len.next_multiple_of(4)
}

/// The attributes in a piece of a message, in order, as type and value.
#[derive(Clone, Copy, Debug, Default)]
pub struct Attributes<'a> {
    rest: &'a [u8],
}

impl<'a> Attributes<'a> {
    /// The attributes that start at the first byte of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The attributes after a family header of `header` bytes; none when the message is shorter.
    pub fn after_header(bytes: &'a [u8], header: usize) -> Self {
        Self::new(bytes.get(aligned(header)..).unwrap_or_default())
    }

    /// The value of the first attribute of this type.
    pub fn get(self, kind: u16) -> Option<&'a [u8]> {
        self.into_iter().find(|&(have, _)| have == kind).map(|(_, value)| value)
    }

    /// The attributes nested in the first one of this type; none when it is missing.
    pub fn nested(self, kind: u16) -> Self {
        Self::new(self.get(kind).unwrap_or_default())
    }

    /// The first four bytes of an attribute as a number.
    pub fn get_u32(self, kind: u16) -> Option<u32> {
        u32_at(self.get(kind)?, 0)
    }

    /// An attribute as text, without the NUL at its end.
    pub fn get_text(self, kind: u16) -> Option<String> {
        self.get(kind).map(text)
    }
}

impl<'a> Iterator for Attributes<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let len = usize::from(u16_at(self.rest, 0)?);
        let kind = u16_at(self.rest, 2)? & TYPE_MASK;
        let value = self.rest.get(HEADER_BYTES..len)?;
        self.rest = self.rest.get(aligned(len)..).unwrap_or_default();
        Some((kind, value))
    }
}

/// The two bytes at `at` as a number.
pub fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// The four bytes at `at` as a number.
pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// The eight bytes at `at` as a number.
pub fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Text up to its first NUL.
pub fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn attributes_are_read_with_their_padding() {
        // type 3 "vcan0\0" (10 bytes, padded to 12), type 13 = 10, and a header that promises more than there is.
        let bytes =
            [10, 0, 3, 0, b'v', b'c', b'a', b'n', b'0', 0, 0, 0, 8, 0, 13, 0, 10, 0, 0, 0, 9, 0, 1, 0];
        let attributes = Attributes::new(&bytes);
        assert_eq!(attributes.get_text(3).as_deref(), Some("vcan0"));
        assert_eq!(attributes.get_u32(13), Some(10));
        assert_eq!(attributes.count(), 2);
    }

    #[test]
    fn an_attribute_shorter_than_its_header_ends_the_list() {
        assert_eq!(Attributes::new(&[0; 64]).count(), 0);
        assert_eq!(Attributes::new(&[3, 0, 1, 0, 4, 0, 1, 0]).count(), 0);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic_and_to_an_end(bytes in proptest::collection::vec(any::<u8>(), 0..256)) {
            let total: usize = Attributes::new(&bytes).map(|(_, value)| HEADER_BYTES + value.len()).sum();
            prop_assert!(total <= bytes.len());
        }
    }
}

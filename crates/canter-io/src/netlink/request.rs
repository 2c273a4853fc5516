//! A netlink request under construction: header, family header, attributes.
//!
//! linux/netlink.h: `struct nlmsghdr`, 16 bytes: length, type, flags, sequence number, port.

use super::attribute::{HEADER_BYTES, aligned};

/// Bytes of a message header (`NLMSG_HDRLEN`).
pub const MESSAGE_HEADER_BYTES: usize = 16;

/// One message to the kernel.
#[derive(Clone, Debug)]
pub struct Request {
    bytes: Vec<u8>,
}

impl Request {
    /// A request of type `kind` (`RTM_…`) that starts with its family's header. `NLM_F_REQUEST` is always set.
    pub fn new(kind: u16, flags: i32, family_header: &[u8]) -> Self {
        let mut bytes = Vec::with_capacity(256);
        bytes.extend_from_slice(&0u32.to_ne_bytes()); // length: `finish` knows it
        bytes.extend_from_slice(&kind.to_ne_bytes());
        bytes.extend_from_slice(&((libc::NLM_F_REQUEST | flags) as u16).to_ne_bytes());
        bytes.extend_from_slice(&[0; 8]); // sequence number: `finish` gets it; port 0: the kernel fills it in
        let mut request = Self { bytes };
        request.append(family_header);
        request
    }

    /// Adds bytes that are no attribute, padded: a family header inside of a nest.
    pub fn append(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.bytes.resize(aligned(self.bytes.len()), 0);
    }

    /// Adds one attribute.
    ///
    /// # Panics
    /// When the value is longer than an attribute can be, 65 531 bytes: all attributes of this crate have a fixed, small size.
    pub fn put(&mut self, kind: u16, value: &[u8]) {
        let len =
            u16::try_from(HEADER_BYTES + value.len()).expect("an attribute has fewer than 65 536 bytes");
        self.bytes.extend_from_slice(&len.to_ne_bytes());
        self.bytes.extend_from_slice(&kind.to_ne_bytes());
        self.append(value);
    }

    /// Adds a number.
    pub fn put_u32(&mut self, kind: u16, value: u32) {
        self.put(kind, &value.to_ne_bytes());
    }

    /// Adds a number of 64 bits.
    pub fn put_u64(&mut self, kind: u16, value: u64) {
        self.put(kind, &value.to_ne_bytes());
    }

    /// Adds a text with its NUL.
    pub fn put_text(&mut self, kind: u16, value: &str) {
        self.put(kind, &[value.as_bytes(), &[0]].concat());
    }

    /// Adds an attribute whose value is what `fill` adds.
    ///
    /// # Panics
    /// As [`put`](Self::put).
    pub fn nest(&mut self, kind: u16, fill: impl FnOnce(&mut Self)) {
        let start = self.bytes.len();
        self.put(kind, &[]);
        fill(self);
        let len = u16::try_from(self.bytes.len() - start).expect("a nest has fewer than 65 536 bytes");
        self.bytes[start..start + 2].copy_from_slice(&len.to_ne_bytes());
    }

    /// The bytes to send.
    pub fn finish(mut self, sequence: u32) -> Vec<u8> {
        let len = self.bytes.len() as u32;
        self.bytes[0..4].copy_from_slice(&len.to_ne_bytes());
        self.bytes[8..12].copy_from_slice(&sequence.to_ne_bytes());
        self.bytes
    }
}

#[cfg(test)]
#[cfg(target_endian = "little")]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_laid_out_as_netlink_wants_it() {
        let mut request = Request::new(16, 0x4, &[1, 2, 3]);
        request.nest(18, |info| info.put_text(1, "vcan"));
        request.put(13, &[9]);
        #[rustfmt::skip]
        let expected = [
            44, 0, 0, 0, 16, 0, 5, 0, 7, 0, 0, 0, 0, 0, 0, 0, // 44 bytes, type 16, REQUEST|ACK, sequence 7, port 0
            1, 2, 3, 0,                                       // family header, padded
            16, 0, 18, 0, 9, 0, 1, 0, b'v', b'c', b'a', b'n', 0, 0, 0, 0,
            5, 0, 13, 0, 9, 0, 0, 0,
        ];
        assert_eq!(request.finish(7), expected);
    }
}

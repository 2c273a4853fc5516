//! What the kernel answers: messages one behind the other in a datagram, and at the end an acknowledgement or an error.
//!
//! linux/netlink.h: `struct nlmsghdr`, `struct nlmsgerr`, `enum nlmsgerr_attrs`.

use std::io;

use super::attribute::{Attributes, aligned, text, u16_at, u32_at};
use super::request::MESSAGE_HEADER_BYTES;

/// The text of an extended acknowledgement (`NLMSGERR_ATTR_MSG`).
const NLMSGERR_ATTR_MSG: u16 = 1;

/// One message of an answer.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// `RTM_…` or `NLMSG_…`.
    pub kind: u16,
    /// `NLM_F_…`.
    pub flags: u16,
    /// The sequence number of the request it answers.
    pub sequence: u32,
    /// All behind the header.
    pub payload: &'a [u8],
}

/// The messages of a datagram, up to the first that makes no sense.
#[derive(Clone, Copy, Debug)]
pub struct Messages<'a> {
    rest: &'a [u8],
}

impl<'a> Messages<'a> {
    /// The messages in a datagram.
    pub fn new(datagram: &'a [u8]) -> Self {
        Self { rest: datagram }
    }
}

impl<'a> Iterator for Messages<'a> {
    type Item = Message<'a>;

    fn next(&mut self) -> Option<Message<'a>> {
        let len = usize::try_from(u32_at(self.rest, 0)?).ok()?;
        let message = Message {
            kind: u16_at(self.rest, 4)?,
            flags: u16_at(self.rest, 6)?,
            sequence: u32_at(self.rest, 8)?,
            payload: self.rest.get(MESSAGE_HEADER_BYTES..len)?,
        };
        self.rest = self.rest.get(aligned(len)..).unwrap_or_default();
        Some(message)
    }
}

/// The kernel's error, with its message.
#[derive(Debug)]
pub struct Refusal {
    /// The error number.
    pub source: io::Error,
    /// The text of the extended acknowledgement; empty when there was none.
    pub message: String,
}

impl From<io::Error> for Refusal {
    fn from(source: io::Error) -> Self {
        Self { source, message: String::new() }
    }
}

impl Message<'_> {
    /// Whether this is the last message of an answer: `None` when more follow, else how it ended.
    pub fn end(&self) -> Option<Result<(), Refusal>> {
        let is_error = i32::from(self.kind) == libc::NLMSG_ERROR;
        if !is_error && i32::from(self.kind) != libc::NLMSG_DONE {
            return None;
        }
        let Some(error) = u32_at(self.payload, 0).map(|bits| bits as i32) else {
            return Some(Err(io::Error::from(io::ErrorKind::InvalidData).into()));
        };
        if error >= 0 {
            return Some(Ok(()));
        }
        // NLMSG_ERROR repeats the request, its header alone when capped; NLMSG_DONE does not.
        let repeated = match (is_error, i32::from(self.flags) & libc::NLM_F_CAPPED != 0) {
            (false, _) => 0,
            (true, true) => MESSAGE_HEADER_BYTES,
            (true, false) => u32_at(self.payload, 4).unwrap_or_default() as usize,
        };
        let message = if i32::from(self.flags) & libc::NLM_F_ACK_TLVS == 0 {
            String::new()
        } else {
            Attributes::after_header(self.payload, repeated.saturating_add(4).min(self.payload.len()))
                .get(NLMSGERR_ATTR_MSG)
                .map(text)
                .unwrap_or_default()
        };
        Some(Err(Refusal { source: io::Error::from_raw_os_error(error.saturating_neg()), message }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A message with native byte order.
    fn message(kind: u16, flags: u16, sequence: u32, payload: &[u8]) -> Vec<u8> {
        let len = (MESSAGE_HEADER_BYTES + payload.len()) as u32;
        let mut bytes = len.to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(flags.to_ne_bytes());
        bytes.extend(sequence.to_ne_bytes());
        bytes.extend([0; 4]);
        bytes.extend(payload);
        bytes.resize(aligned(bytes.len()), 0);
        bytes
    }

    /// `error`, the capped header of the request, and a text.
    fn refused(error: i32, message: &str) -> Vec<u8> {
        let mut payload = error.to_ne_bytes().to_vec();
        payload.extend([0; MESSAGE_HEADER_BYTES]);
        payload.extend(((4 + message.len() + 1) as u16).to_ne_bytes());
        payload.extend(NLMSGERR_ATTR_MSG.to_ne_bytes());
        payload.extend(message.as_bytes());
        payload.push(0);
        payload
    }

    #[test]
    fn an_extended_acknowledgement_gives_the_kernels_own_words() {
        let bytes = message(2, 0x300, 5, &refused(-22, "bit-timing not yet defined"));
        let refusal = Messages::new(&bytes).next().unwrap().end().unwrap().unwrap_err();
        assert_eq!(refusal.source.raw_os_error(), Some(22));
        assert_eq!(refusal.message, "bit-timing not yet defined");
    }

    #[test]
    fn an_acknowledgement_ends_the_answer_and_other_messages_do_not() {
        let mut bytes = message(16, 2, 5, &[0; 16]);
        bytes.extend(message(2, 0x100, 5, &[0; 20]));
        let ends: Vec<_> =
            Messages::new(&bytes).map(|message| message.end().map(|end| end.is_ok())).collect();
        assert_eq!(ends, [None, Some(true)]);
    }

    #[test]
    fn a_dump_can_end_with_an_error() {
        let bytes = message(3, 2, 5, &(-4i32).to_ne_bytes());
        let refusal = Messages::new(&bytes).next().unwrap().end().unwrap().unwrap_err();
        assert_eq!(refusal.source.raw_os_error(), Some(4));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..256)) {
            for message in Messages::new(&bytes) {
                let _ = message.end();
            }
        }

        #[test]
        fn any_error_payload_is_read_without_a_panic(flags: u16, done: bool, payload in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = Message { kind: 2 + u16::from(done), flags, sequence: 0, payload: &payload }.end();
        }
    }
}

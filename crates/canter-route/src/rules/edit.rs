//! A change, prepared for the frame path.
//!
//! Each of and, or, xor and set is, bit by bit, `(x & keep) ^ flip`, and so is any sequence of them. Every change thus takes
//! two instructions for the identifier and two for each eight bytes of payload. The order of the operations, the handling
//! of the DLC codes 9…15 and the checksums are can-gw's (linux/can/gw.h; `net/can/gw.c` applies them one by one).

use super::{
    Change,
    checksum::{WrittenCrc8, WrittenXor},
};
use canter_io::{
    Frame,
    frame::{BRS, ESI, FDF},
    netlink::can_gw::Modification,
};

/// `(x & keep) ^ flip`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bits {
    keep: u64,
    flip: u64,
}

impl Bits {
    const SAME: Self = Self { keep: u64::MAX, flip: 0 };

    /// The four operations, one after the other.
    fn new([and, or, xor, set]: [Option<u64>; 4]) -> Self {
        let mut bits = Self::SAME;
        if let Some(and) = and {
            bits = Self { keep: bits.keep & and, flip: bits.flip & and };
        }
        if let Some(or) = or {
            bits = Self { keep: bits.keep & !or, flip: bits.flip & !or | or };
        }
        if let Some(xor) = xor {
            bits.flip ^= xor;
        }
        if let Some(set) = set {
            bits = Self { keep: 0, flip: set };
        }
        bits
    }

    #[inline]
    fn apply(self, value: u64) -> u64 {
        value & self.keep ^ self.flip
    }

    fn is_same(self) -> bool {
        self == Self::SAME
    }
}

/// A change of frames of one kind.
#[derive(Clone, Debug)]
pub struct Edit {
    /// `None`: only checksums.
    operations: Option<Operations>,
    crc8: Option<Box<WrittenCrc8>>,
    xor: Option<WrittenXor>,
}

/// And, or, xor and set of a frame's parts.
#[derive(Clone, Debug)]
struct Operations {
    id: Bits,
    /// `None`: no operation on the length. An operation that does not change the length still normalises the DLC.
    len: Option<Bits>,
    flags: Option<Bits>,
    /// For each eight bytes of payload; empty when the payload does not change.
    data: Vec<Bits>,
    fd: bool,
}

/// The change made the payload longer than the frame's kind allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

impl Edit {
    /// The change of FD frames or of classic ones; `None` when it does not change them.
    pub fn new(change: &Change, fd: bool) -> Option<Self> {
        if change.is_empty() {
            return None;
        }
        Some(Self {
            operations: Operations::new([&change.and, &change.or, &change.xor, &change.set], fd),
            crc8: change.crc8.map(|crc8| Box::new(WrittenCrc8::new(crc8, fd))),
            xor: change.xor_checksum.map(|xor| WrittenXor::new(xor, fd)),
        })
    }

    /// Changes a frame of its kind.
    #[inline]
    pub fn apply(&self, frame: &mut Frame) -> Result<(), TooLong> {
        if let Some(operations) = &self.operations {
            operations.apply(frame)?;
        }
        if let Some(crc8) = &self.crc8 {
            crc8.write(frame);
        }
        if let Some(xor) = &self.xor {
            xor.write(frame);
        }
        Ok(())
    }
}

impl Operations {
    fn new(operands: [&Modification; 4], fd: bool) -> Option<Self> {
        if operands.iter().all(|operand| **operand == Modification::default()) {
            return None;
        }
        let operation = |part: fn(&Modification) -> Option<u64>| {
            let values = operands.map(part);
            values.iter().any(Option::is_some).then(|| Bits::new(values))
        };
        let word = |at: usize| Bits::new(operands.map(|operand| operand.data.map(|data| word(&data, at))));
        let data: Vec<Bits> = (0..if fd { 8 } else { 1 }).map(word).collect();
        Some(Self {
            id: operation(|operand| operand.id.map(u64::from)).unwrap_or(Bits::SAME),
            len: operation(|operand| operand.len.map(u64::from)),
            flags: operation(|operand| operand.flags.map(u64::from)).filter(|_| fd),
            data: if data.iter().all(|bits| bits.is_same()) { Vec::new() } else { data },
            fd,
        })
    }

    #[inline]
    fn apply(&self, frame: &mut Frame) -> Result<(), TooLong> {
        frame.can_id = self.id.apply(frame.can_id.into()) as u32;
        if let Some(len) = self.len {
            self.change_len(frame, len)?;
        }
        if let Some(flags) = self.flags {
            frame.flags = flags.apply(frame.flags.into()) as u8 & (BRS | ESI) | FDF;
        }
        for (bytes, bits) in frame.data.chunks_exact_mut(8).zip(&self.data) {
            let value = bits.apply(word(bytes, 0));
            bytes.copy_from_slice(&value.to_ne_bytes());
        }
        Ok(())
    }

    fn change_len(&self, frame: &mut Frame, bits: Bits) -> Result<(), TooLong> {
        if self.fd {
            frame.len = bits.apply(frame.len.into()) as u8;
            return if frame.len > 64 { Err(TooLong) } else { Ok(()) };
        }
        // A classic frame of 8 bytes may have a DLC of 9…15; the operation changes the DLC.
        let has_code = frame.len == 8 && (9..=15).contains(&frame.len8_dlc);
        let dlc = bits.apply(if has_code { frame.len8_dlc } else { frame.len }.into()) as u8;
        frame.len = dlc.min(8);
        frame.len8_dlc = if dlc > 8 { dlc } else { 0 };
        if dlc > 15 { Err(TooLong) } else { Ok(()) }
    }
}

fn word(data: &[u8], at: usize) -> u64 {
    let bytes = data.get(8 * at..8 * at + 8).and_then(|bytes| bytes.first_chunk());
    u64::from_ne_bytes(*bytes.unwrap_or(&[0; 8]))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A frame after a change, if the change is possible.
    pub fn changed(change: &Change, frame: &str) -> Option<String> {
        let mut frame: Frame = frame.parse().unwrap();
        let edit = Edit::new(change, frame.is_fd()).unwrap();
        edit.apply(&mut frame).ok().map(|()| frame.to_string())
    }

    fn data(bytes: &[u8]) -> Modification {
        Modification::from_data(bytes)
    }

    #[test]
    fn operations_come_in_the_order_and_or_xor_set() {
        let all = Change {
            and: Modification { id: Some(0xffff_fff0), ..data(&[0xf0; 8]) },
            or: Modification { id: Some(0x005), ..data(&[0x03; 8]) },
            xor: Modification { id: Some(0x001), ..data(&[0xff; 8]) },
            ..Change::default()
        };
        assert_eq!(changed(&all, "12F#5AA5"), Some("124#AC5C".into()));
        let set = Change { set: Modification::from_id(0x7ff), ..all };
        assert_eq!(changed(&set, "12F#5AA5"), Some("7FF#AC5C".into()));
    }

    #[test]
    fn a_length_is_a_dlc_of_classic_frames_and_bytes_of_fd_frames() {
        let len = |len| Modification { len: Some(len), ..Modification::default() };
        let set = |value| Change { set: len(value), ..Change::default() };
        assert_eq!(changed(&set(2), "123#112233"), Some("123#1122".into()));
        assert_eq!(changed(&set(12), "123#1122334455667788"), Some("123#1122334455667788_C".into()));
        assert_eq!(changed(&set(16), "123#11"), None);
        assert_eq!(changed(&set(12), "123##011"), Some(format!("123##411{}", "00".repeat(11))));
        assert_eq!(changed(&set(65), "123##011"), None);
        let and = Change { and: len(9), ..Change::default() };
        assert_eq!(changed(&and, "123#1122334455667788_B"), Some("123#1122334455667788_9".into()));
        assert_eq!(changed(&and, "123#1122334455667788"), Some("123#1122334455667788".into()));
    }

    /// The operations one by one on a single byte, as gw.h describes them.
    fn stepwise([and, or, xor, set]: [Option<u8>; 4], value: u8) -> u8 {
        let value = and.map_or(value, |and| value & and);
        let value = or.map_or(value, |or| value | or);
        let value = xor.map_or(value, |xor| value ^ xor);
        set.unwrap_or(value)
    }

    proptest! {
        #[test]
        fn two_instructions_equal_any_sequence_of_operations(operands: [Option<u8>; 4], value: u8) {
            let bits = Bits::new(operands.map(|operand| operand.map(|byte| u64::from_ne_bytes([byte; 8]))));
            prop_assert_eq!(bits.apply(u64::from_ne_bytes([value; 8])) as u8, stepwise(operands, value));
        }
    }
}

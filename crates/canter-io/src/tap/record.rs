//! One record of a tap: a frame that was on the wire, or an attempt at one.

use super::RECORD_WORDS;
use crate::{
    Frame,
    frame::FDF,
    netlink::wire::Fault,
    uapi::canwire::{
        CANWIRE_MARK_BABBLE, CANWIRE_MARK_INJECTED, CANWIRE_MARK_PASSIVE, CANWIRE_MARK_SLIPPED,
        CANWIRE_MARK_SOURCE, CANWIRE_SLOT_SOURCE, canwire_record,
    },
};
use std::mem::offset_of;

/// What else is known of a record, a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks(pub u8);

impl Marks {
    /// The source had a frame to send at SOF.
    pub const SOURCE: Self = Self(CANWIRE_MARK_SOURCE);
    /// Its error was injected.
    pub const INJECTED: Self = Self(CANWIRE_MARK_INJECTED);
    /// The wire waited before it: the gap to the record before is not the wire's.
    pub const SLIPPED: Self = Self(CANWIRE_MARK_SLIPPED);
    /// Its sender babbles.
    pub const BABBLE: Self = Self(CANWIRE_MARK_BABBLE);
    /// Its sender was error-passive.
    pub const PASSIVE: Self = Self(CANWIRE_MARK_PASSIVE);

    /// Whether all marks of `other` are in it.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// A frame on the wire. Both moments are of `CLOCK_MONOTONIC`, and the wire's own: how late its timer ran is not in
/// them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// The frame, whole or not.
    pub frame: Frame,
    /// Start of SOF.
    pub sof_ns: u64,
    /// End of EOF; of an error: of the error delimiter.
    pub end_ns: u64,
    /// Bits at the nominal rate between the two.
    pub nominal_bits: u16,
    /// Bits at the data rate.
    pub data_bits: u16,
    /// Why it is not whole; `None`: it is.
    pub error: Option<Fault>,
    /// Bits from SOF to the error flag; 0 without one.
    pub error_bit: u16,
    /// The index of the sender's interface; `None`: the source.
    pub sender: Option<u32>,
    /// The sender's place on the bus; `None`: the source.
    pub slot: Option<u8>,
    /// A bit for each place: who had a frame to send at SOF, the sender included.
    pub pending: u64,
    /// Who took it into the receive FIFO.
    pub received: u64,
    /// Who lost it because that was full.
    pub overrun: u64,
    /// How late the wire's timer ran after the end, in ns; handing the frame over is what it does first.
    pub late_ns: u32,
    /// What else.
    pub marks: Marks,
}

impl Record {
    /// How long it took, in ns.
    pub fn duration_ns(&self) -> u64 {
        self.end_ns - self.sof_ns
    }

    pub(super) fn from_words(words: &[u64; RECORD_WORDS]) -> Self {
        let mut bytes = [0; size_of::<canwire_record>()];
        for (part, word) in bytes.chunks_exact_mut(8).zip(words) {
            part.copy_from_slice(&word.to_ne_bytes());
        }
        let word = |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let half = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        let byte = |at: usize| bytes[at];
        let (slot, sender) =
            (byte(offset_of!(canwire_record, slot)), word(offset_of!(canwire_record, sender)));
        let from_source = slot == CANWIRE_SLOT_SOURCE;
        Self {
            frame: frame(&bytes),
            sof_ns: words[offset_of!(canwire_record, sof_ns) / 8],
            end_ns: words[offset_of!(canwire_record, end_ns) / 8],
            nominal_bits: half(offset_of!(canwire_record, nominal_bits)),
            data_bits: half(offset_of!(canwire_record, data_bits)),
            error: match byte(offset_of!(canwire_record, error)) {
                0 => None,
                code => Some(Fault::from_code(code).unwrap_or(Fault::Form)),
            },
            error_bit: half(offset_of!(canwire_record, error_bit)),
            sender: Some(sender).filter(|_| !from_source),
            slot: Some(slot).filter(|_| !from_source),
            pending: words[offset_of!(canwire_record, pending) / 8],
            received: words[offset_of!(canwire_record, received) / 8],
            overrun: words[offset_of!(canwire_record, overrun) / 8],
            late_ns: word(offset_of!(canwire_record, late_ns)),
            marks: Marks(byte(offset_of!(canwire_record, marks))),
        }
    }
}

fn frame(bytes: &[u8; size_of::<canwire_record>()]) -> Frame {
    let at = offset_of!(canwire_record, id);
    let mut frame = Frame::default();
    frame.can_id = u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    frame.len = bytes[offset_of!(canwire_record, len)].min(64);
    frame.flags = bytes[offset_of!(canwire_record, flags)];
    let dlc = bytes[offset_of!(canwire_record, dlc)];
    if frame.flags & FDF == 0 {
        frame.flags = 0;
        frame.len = frame.len.min(8);
        frame.len8_dlc = if frame.len == 8 && (9..=15).contains(&dlc) { dlc } else { 0 };
    }
    frame.data.copy_from_slice(&bytes[offset_of!(canwire_record, data)..]);
    frame
}

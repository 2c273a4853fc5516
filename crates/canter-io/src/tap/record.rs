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

/// A set of properties of a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks(pub u8);

impl Marks {
    /// The source had a frame to send at SOF.
    pub const SOURCE: Self = Self(CANWIRE_MARK_SOURCE);
    /// The error of this record was injected.
    pub const INJECTED: Self = Self(CANWIRE_MARK_INJECTED);
    /// The wire waited before this frame because its timer was late: the gap to the previous record is longer than on a
    /// real bus.
    pub const SLIPPED: Self = Self(CANWIRE_MARK_SLIPPED);
    /// The sender of this frame babbles.
    pub const BABBLE: Self = Self(CANWIRE_MARK_BABBLE);
    /// The sender of this frame was error-passive.
    pub const PASSIVE: Self = Self(CANWIRE_MARK_PASSIVE);

    /// Whether it contains all marks of `other`.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// A frame on the wire. Both times are ns of `CLOCK_MONOTONIC` on the wire; the lateness of the wire's timer is not
/// included in them, but in [`late_ns`](Self::late_ns).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// The frame, complete or not.
    pub frame: Frame,
    /// Start of SOF, in ns.
    pub sof_ns: u64,
    /// End of EOF, in ns; after an error, end of the error delimiter.
    pub end_ns: u64,
    /// Bits at the nominal rate between start and end.
    pub nominal_bits: u16,
    /// Bits at the data rate between start and end.
    pub data_bits: u16,
    /// The error that destroyed it; `None`: it is complete.
    pub error: Option<Fault>,
    /// Bits from SOF to the error flag; 0 without one.
    pub error_bit: u16,
    /// The index of the sender's interface; `None`: the source.
    pub sender: Option<u32>,
    /// The sender's place on the bus; `None`: the source.
    pub slot: Option<u8>,
    /// One bit per place on the bus: the nodes that had a frame to send at SOF, the sender included.
    pub pending: u64,
    /// One bit per place: the nodes that took it into their receive FIFO.
    pub received: u64,
    /// One bit per place: the nodes that lost it because their FIFO was full.
    pub overrun: u64,
    /// How late the wire's timer ran after the end, in ns. The timer first hands the frame over to the receivers.
    pub late_ns: u32,
    /// Further properties.
    pub marks: Marks,
}

impl Record {
    /// How long it took, in ns.
    pub fn duration_ns(&self) -> u64 {
        self.end_ns - self.sof_ns
    }

    /// When the wire's timer handed it over to the receivers, in ns.
    pub fn delivery_ns(&self) -> u64 {
        self.end_ns + u64::from(self.late_ns)
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

//! The transport protocol of J1939 (J1939-21): messages of 9…1785 bytes, announced to all (BAM) or sent to one node (RTS),
//! put together from frames of 7 bytes each.

use crate::codebook::parameter_group;
use canter_frame::{Frame, Identifier};
use std::collections::HashMap;

/// The group that announces and controls (TP.CM).
const CONTROL: u32 = 0xEC00;
/// The group that carries the data (TP.DT).
const DATA: u32 = 0xEB00;
const REQUEST_TO_SEND: u8 = 16;
const ANNOUNCE: u8 = 32;
const ABORT: u8 = 255;
const PACKET_BYTES: usize = 7;
/// The longest message: 255 packets.
const MESSAGE_BYTES_MAX: usize = 255 * PACKET_BYTES;

/// Puts messages together. One for each bus.
#[derive(Clone, Debug, Default)]
pub struct Transport {
    /// Transfers under way, by source and destination.
    transfers: HashMap<(u8, u8), Transfer>,
    /// Transfers that lost a packet, were aborted, or were replaced before their last packet.
    pub broken: u64,
}

#[derive(Clone, Debug)]
struct Transfer {
    group: u32,
    priority: u32,
    bytes: usize,
    data: Vec<u8>,
    next: u8,
    frames: u64,
}

/// A message that is complete.
#[derive(Debug, PartialEq, Eq)]
pub struct Transported {
    /// The identifier that a single frame of this group would have.
    pub id: Identifier,
    /// The payload.
    pub data: Vec<u8>,
    /// Frames that carried it, the announcement included.
    pub frames: u64,
}

impl Transport {
    /// Whether a frame belongs to the protocol.
    #[inline]
    pub fn carries(frame: &Frame) -> bool {
        matches!(frame.id(), Identifier::Eff(id) if matches!(parameter_group(id), CONTROL | DATA))
            && !frame.is_error()
    }

    /// Takes the next frame of the bus; the message, if this frame completes one.
    pub fn take(&mut self, frame: &Frame) -> Option<Transported> {
        let Identifier::Eff(id) = frame.id() else { return None };
        let data: [u8; 8] = frame.data().try_into().ok()?;
        let (source, destination) = (id as u8, (id >> 8) as u8);
        match (parameter_group(id), data[0]) {
            (CONTROL, REQUEST_TO_SEND | ANNOUNCE) => {
                self.begin(source, destination, id >> 26 & 7, data);
                None
            }
            (CONTROL, ABORT) => {
                // Either side may abort, in a frame of its own.
                let ended = self
                    .transfers
                    .remove(&(source, destination))
                    .or_else(|| self.transfers.remove(&(destination, source)));
                self.broken += u64::from(ended.is_some());
                None
            }
            (DATA, number) => self.append(source, destination, number, &data[1..]),
            _ => None,
        }
    }

    fn begin(&mut self, source: u8, destination: u8, priority: u32, data: [u8; 8]) {
        let bytes = usize::from(u16::from_le_bytes([data[1], data[2]]));
        let packets = usize::from(data[3]);
        if bytes == 0 || bytes > MESSAGE_BYTES_MAX || packets != bytes.div_ceil(PACKET_BYTES) {
            self.broken += 1;
            return;
        }
        let group = u32::from_le_bytes([data[5], data[6], data[7], 0]) & 0x3_FFFF;
        // Memory for what has come only: anybody can announce 65 536 transfers and send none.
        let begun = Transfer { group, priority, bytes, data: Vec::new(), next: 1, frames: 1 };
        self.broken += u64::from(self.transfers.insert((source, destination), begun).is_some());
    }

    fn append(&mut self, source: u8, destination: u8, number: u8, packet: &[u8]) -> Option<Transported> {
        let transfer = self.transfers.get_mut(&(source, destination))?;
        if number.wrapping_add(1) == transfer.next && number != 0 {
            return None; // sent again, on request
        }
        if number != transfer.next {
            self.transfers.remove(&(source, destination));
            self.broken += 1;
            return None;
        }
        transfer.data.extend_from_slice(packet);
        transfer.next = transfer.next.wrapping_add(1);
        transfer.frames += 1;
        if transfer.data.len() < transfer.bytes {
            return None;
        }
        let mut done = self.transfers.remove(&(source, destination))?;
        done.data.truncate(done.bytes);
        let group =
            if done.group >> 8 & 0xFF < 240 { done.group | u32::from(destination) } else { done.group };
        let id = Identifier::Eff(done.priority << 26 | group << 8 | u32::from(source));
        Some(Transported { id, data: done.data, frames: done.frames })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fed(transport: &mut Transport, frames: &[&str]) -> Vec<Transported> {
        frames.iter().filter_map(|text| transport.take(&text.parse().unwrap())).collect()
    }

    #[test]
    fn an_announced_message_is_put_together() {
        let mut transport = Transport::default();
        let got = fed(
            &mut transport,
            &["1CECFF01#200A0002FFE3FE00", "1CEBFF01#0101020304050607", "1CEBFF01#0208090AFFFFFFFF"],
        );
        let whole = Transported { id: Identifier::Eff(0x1CFE_E301), data: (1..=10).collect(), frames: 3 };
        assert_eq!(got, [whole]);
        assert_eq!(transport.broken, 0);
    }

    #[test]
    fn a_message_to_one_node_has_its_address_and_others_may_come_between() {
        let mut transport = Transport::default();
        let got = fed(
            &mut transport,
            &[
                "1CEC0301#1009000202D000EF",
                "1CECFF02#200A0002FFE3FE00",
                "1CEC0301#10090002FF00D000",
                "1CEC0103#1102FFFFFF00D000",
                "1CEB0301#0101020304050607",
                "1CEBFF02#0101020304050607",
                "1CEB0301#020809FFFFFFFFFF",
                "1CEBFF02#0308090AFFFFFFFF",
            ],
        );
        let whole = Transported { id: Identifier::Eff(0x1CD0_0301), data: (1..=9).collect(), frames: 3 };
        assert_eq!(got, [whole]);
        assert_eq!(transport.broken, 2, "one replaced, one without its second packet");
    }
}

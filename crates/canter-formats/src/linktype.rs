//! Packets of pcap and pcapng that hold CAN frames: LINKTYPE_CAN_SOCKETCAN, and Linux cooked captures (`tcpdump -i any`).
//!
//! In LINKTYPE_CAN_SOCKETCAN the identifier is in network byte order. In cooked captures it has the byte order of the
//! capturing machine, which is that of the file.

use crate::{
    fields::fd_length,
    format::Flawed,
    names::Names,
    trouble::{Trouble, wrong},
};
use canter_frame::{
    BusId, Direction, Record,
    frame::{BRS, CANFD_MTU, EFF_FLAG, EFF_MASK, ERR_FLAG, ESI, FDF, SFF_MASK},
};

const CAN_SOCKETCAN: u16 = 227;
const LINUX_SLL: u16 = 113;
const LINUX_SLL2: u16 = 276;

const ETH_P_CAN: u16 = 0x000c;
const ETH_P_CANFD: u16 = 0x000d;
const ETH_P_CANXL: u16 = 0x000e;
/// A packet that this machine sent (PACKET_OUTGOING).
const OUTGOING: u8 = 4;

/// `canfd_frame.flags` and `canxl_frame.flags` have the same offset in a packet; CAN XL frames have this bit set.
const XLF: u8 = 0x80;

/// The byte order of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    #[default]
    Little,
    Big,
}

impl Order {
    #[inline]
    pub fn u16(self, bytes: [u8; 2]) -> u16 {
        match self {
            Self::Little => u16::from_le_bytes(bytes),
            Self::Big => u16::from_be_bytes(bytes),
        }
    }

    #[inline]
    pub fn u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            Self::Little => u32::from_le_bytes(bytes),
            Self::Big => u32::from_be_bytes(bytes),
        }
    }

    /// The 32-bit word at `at`; 0 after the end of `bytes`.
    #[inline]
    pub fn word(self, bytes: &[u8], at: usize) -> u32 {
        bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |word| self.u32(*word))
    }

    /// The 16-bit word at `at`; 0 after the end of `bytes`.
    #[inline]
    pub fn half(self, bytes: &[u8], at: usize) -> u16 {
        bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |half| self.u16(*half))
    }
}

/// The content of a packet.
pub enum Packet {
    /// A frame, with the kernel's index of its interface in link types that have it, and with the kind of its flaw.
    Frame { index: Option<u32>, flaw: Option<&'static str> },
    /// Not a classic or FD frame; the kind, for the count of skipped entries.
    Other(&'static str),
}

/// Reads the packet `bytes` of a link type into `entry`, except stamp and interface.
#[inline]
pub fn read(linktype: u16, order: Order, bytes: &[u8], entry: &mut Record) -> Result<Packet, Trouble> {
    entry.direction = None;
    match linktype {
        CAN_SOCKETCAN if bytes.get(4).is_some_and(|flags| flags & XLF != 0) => {
            Ok(Packet::Other("CAN XL frames"))
        }
        CAN_SOCKETCAN => {
            frame(Order::Big, bytes, false, entry).map(|flaw| Packet::Frame { index: None, flaw })
        }
        LINUX_SLL => {
            let Some((head, rest)) = bytes.split_at_checked(16) else {
                return wrong("a packet shorter than its header");
            };
            cooked(order, head[1], Order::Big.half(head, 14), rest, entry, None)
        }
        LINUX_SLL2 => {
            let Some((head, rest)) = bytes.split_at_checked(20) else {
                return wrong("a packet shorter than its header");
            };
            cooked(order, head[10], Order::Big.half(head, 0), rest, entry, Some(Order::Big.word(head, 4)))
        }
        _ => Ok(Packet::Other("packets of other networks")),
    }
}

fn cooked(
    order: Order,
    kind: u8,
    protocol: u16,
    bytes: &[u8],
    entry: &mut Record,
    index: Option<u32>,
) -> Result<Packet, Trouble> {
    let flaw = match protocol {
        ETH_P_CAN | ETH_P_CANFD => frame(order, bytes, protocol == ETH_P_CANFD, entry)?,
        ETH_P_CANXL => return Ok(Packet::Other("CAN XL frames")),
        _ => return Ok(Packet::Other("packets of other networks")),
    };
    if kind == OUTGOING {
        entry.direction = Some(Direction::Sent);
    }
    Ok(Packet::Frame { index, flaw })
}

/// Reads `struct can_frame` or `struct canfd_frame`; the bytes after the payload may be missing. Returns the kind of flaw, if
/// there is one.
#[inline]
fn frame(order: Order, bytes: &[u8], fd: bool, entry: &mut Record) -> Result<Option<&'static str>, Trouble> {
    if bytes.len() > CANFD_MTU {
        return wrong(format!("a packet of {} bytes, which is no frame (a damaged file?)", bytes.len()));
    }
    let Some(&[a, b, c, d, len, flags, _, len8_dlc]) = bytes.first_chunk() else {
        return wrong("a frame shorter than its header (recorded with a snapshot length?)");
    };
    let can_id = order.u32([a, b, c, d]);
    // Before Linux 6.1, only the size identifies an FD frame. Error frames are classic, whatever interface they come from.
    let fd = (fd || flags & FDF != 0 || bytes.len() == CANFD_MTU) && can_id & ERR_FLAG == 0;
    let len = usize::from(len);
    if if fd { len > 64 } else { len > 8 } {
        return wrong(format!("a frame of {len} bytes (a damaged file?)"));
    }
    let frame = &mut entry.frame;
    frame.can_id = can_id;
    frame.flags = if fd { flags & (BRS | ESI) | FDF } else { 0 };
    frame.len8_dlc = if !fd && len == 8 && (9..=15).contains(&len8_dlc) { len8_dlc } else { 0 };
    let payload = if frame.is_rtr() { &[][..] } else { bytes.get(8..8 + len).unwrap_or_default() };
    if payload.len() < len && !frame.is_rtr() {
        return wrong("a frame without all of its payload (recorded with a snapshot length?)");
    }
    frame.data = [0; 64];
    frame.data[..payload.len()].copy_from_slice(payload);
    frame.len = if fd { fd_length(len) } else { len as u8 };
    let is_wide = can_id & (EFF_FLAG | ERR_FLAG) == 0 && can_id & EFF_MASK > SFF_MASK;
    if is_wide {
        frame.can_id |= EFF_FLAG;
    }
    Ok(is_wide.then_some(Flawed::IDENTIFIER))
}

/// The bus of each of the kernel's interface indexes.
#[derive(Default)]
pub struct BusOfIndex(Vec<(u32, BusId)>);

impl BusOfIndex {
    /// Returns the bus of an index, a new one if the index is new.
    #[inline]
    pub fn number(&mut self, index: u32, names: &mut Names) -> Result<BusId, Trouble> {
        if let Some(&(_, bus)) = self.0.iter().find(|(known, _)| *known == index) {
            return Ok(bus);
        }
        let bus = names.number(&index_name(index))?;
        self.0.push((index, bus));
        Ok(bus)
    }
}

/// The name of an interface of which only the kernel's index is known.
fn index_name(index: u32) -> String {
    format!("if{index}")
}

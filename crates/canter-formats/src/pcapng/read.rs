//! pcapng: what dumpcap and `canter capture` write (draft-ietf-opsawg-pcapng).

use crate::{
    format::{Context, Decode, Source},
    linktype::{self, BusOfIndex, Order, Packet},
    trouble::{Trouble, wrong},
};
use canter_frame::{BusId, ControllerStamp, Direction, Record};
use std::io;

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const OLD_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const STATISTICS: u32 = 5;
const PACKET: u32 = 6;

const OPT_END: u16 = 0;
const OPT_COMMENT: u16 = 1;
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
const IF_TSOFFSET: u16 = 14;
const EPB_FLAGS: u16 = 2;
const ISB_IFDROP: u16 = 5;
const ISB_OSDROP: u16 = 7;

/// The longest block that is read, in bytes; longer ones are skipped, except interface blocks, which are refused.
const BLOCK_BYTES_MAX: usize = 1 << 20;
const TOO_LONG: &str = "a block of more than 1 MB (a damaged file?)";

/// The decoder.
#[derive(Default)]
pub struct Pcapng {
    order: Order,
    interfaces: Vec<Interface>,
}

struct Interface {
    linktype: u16,
    /// The interface's bus, known from its first frame on: interfaces without CAN frames get none.
    number: Option<BusId>,
    name: String,
    resolution: Resolution,
    offset_ns: i128,
    /// The buses of the kernel's interface indexes, if it captured `any`.
    indexes: BusOfIndex,
    /// Losses by its latest statistics: by the interface, and by the operating system.
    lost: [u64; 2],
}

/// The unit of the stamps.
#[derive(Clone, Copy)]
enum Resolution {
    /// This number of ns.
    Ns(u64),
    /// A second divided by this number.
    Fraction(u64),
}

impl Resolution {
    fn from_option(option: u8) -> Option<Self> {
        match option {
            power @ 0..=9 => Some(Self::Ns(10u64.pow(9 - u32::from(power)))),
            power @ 10..=19 => Some(Self::Fraction(10u64.pow(power.into()))),
            power @ 0x80..=0xbf => Some(Self::Fraction(1 << (power & 0x7f))),
            _ => None,
        }
    }

    fn ns(self, stamp: u64) -> i128 {
        match self {
            Self::Ns(unit) => i128::from(stamp) * i128::from(unit),
            Self::Fraction(units) => (u128::from(stamp) * 1_000_000_000 / u128::from(units)) as i128,
        }
    }
}

/// Iterates over the options of a block.
fn options(order: Order, mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let (code, length) = (order.half(bytes, 0), usize::from(order.half(bytes, 2)));
        if bytes.len() < 4 || code == OPT_END {
            return None;
        }
        let value = bytes.get(4..4 + length)?;
        bytes = bytes.get(4 + length.next_multiple_of(4)..).unwrap_or_default();
        Some((code, value))
    })
}

/// Reads the comment that keeps a controller's stamp, as `append.rs` writes it.
fn controller_stamp(comment: &[u8]) -> Option<ControllerStamp> {
    let text = std::str::from_utf8(comment).ok()?.strip_prefix("hardware stamp ")?;
    let (stamp, rest) = text.split_once(';').map_or((text, None), |(stamp, rest)| (stamp, Some(rest)));
    let (second, ns) = stamp.split_once('.').filter(|(_, ns)| ns.len() == 9)?;
    let hardware_ns =
        second.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(ns.parse().ok()?)?;
    let bound = rest.map(|rest| rest.split_once('±')?.1.strip_suffix(" ns")?.parse().ok());
    Some(ControllerStamp { hardware_ns, bound_ns: bound.map_or(Some(0), |bound| bound)? })
}

impl Pcapng {
    /// Reads the type and length of the block at the window's start, and a section's byte order; `None` at the end.
    fn block(&mut self, source: &mut Source) -> Result<Option<(u32, usize)>, Trouble> {
        let head = source.want(12)?;
        if head.len() < 12 {
            return if head.is_empty() { Ok(None) } else { Err(Trouble::Cut) };
        }
        let kind = self.order.word(head, 0);
        if kind == SECTION {
            self.order = match head[8..12] {
                [0x4d, 0x3c, 0x2b, 0x1a] => Order::Little,
                [0x1a, 0x2b, 0x3c, 0x4d] => Order::Big,
                _ => return wrong("a section without byte order (a damaged file?)"),
            };
        }
        let length = self.order.word(head, 4) as usize;
        if length < 12 || !length.is_multiple_of(4) {
            return wrong(format!("a block of {length} bytes (a damaged file?)"));
        }
        Ok(Some((kind, length)))
    }

    /// Whether the block at the window's start has the same length at both of its ends, as every block has.
    fn check_ends(&self, source: &mut Source, length: usize) -> Result<(), Trouble> {
        if length > BLOCK_BYTES_MAX {
            return wrong(TOO_LONG);
        }
        let block = source.want(length)?;
        self.check_end(block.get(length - 4..).unwrap_or_default(), length)
    }

    /// Compares the length at a block's end with that at its beginning.
    fn check_end(&self, end: &[u8], length: usize) -> Result<(), Trouble> {
        if end.len() < 4 {
            return Err(Trouble::Cut);
        }
        if self.order.word(end, 0) as usize != length {
            return wrong("a block whose two lengths differ (a damaged file?)");
        }
        Ok(())
    }

    fn interface(&mut self, body: &[u8]) -> Result<(), Trouble> {
        let mut interface = Interface {
            linktype: self.order.half(body, 0),
            number: None,
            name: String::new(),
            resolution: Resolution::Ns(1000),
            offset_ns: 0,
            indexes: BusOfIndex::default(),
            lost: [0; 2],
        };
        for (code, value) in options(self.order, body.get(8..).unwrap_or_default()) {
            match (code, value) {
                (IF_NAME, name) => {
                    interface.name = String::from_utf8_lossy(name).trim_end_matches('\0').into()
                }
                (IF_TSRESOL, &[power]) => match Resolution::from_option(power) {
                    Some(resolution) => interface.resolution = resolution,
                    None => return wrong(format!("an interface with if_tsresol {power:#x}")),
                },
                (IF_TSOFFSET, seconds) if seconds.len() == 8 => {
                    let (a, b) = (self.order.word(seconds, 0), self.order.word(seconds, 4));
                    let (low, high) = if self.order == Order::Little { (a, b) } else { (b, a) };
                    interface.offset_ns =
                        i128::from((u64::from(high) << 32 | u64::from(low)) as i64) * 1_000_000_000;
                }
                _ => {}
            }
        }
        if interface.name.is_empty() {
            interface.name = format!("interface{}", self.interfaces.len());
        }
        if self.interfaces.len() == 1 << 16 {
            return wrong("more than 65536 interfaces (a damaged file?)");
        }
        self.interfaces.push(interface);
        Ok(())
    }

    /// Reads an enhanced packet block, or an old packet block, whose interface number has 16 bits.
    #[inline]
    fn packet(
        &mut self,
        body: &[u8],
        old: bool,
        context: &mut Context,
        entry: &mut Record,
    ) -> Result<bool, Trouble> {
        let order = self.order;
        let number = if old { order.half(body, 0).into() } else { order.word(body, 0) };
        let Some(interface) = self.interfaces.get_mut(number as usize) else {
            return wrong(format!("a packet of interface {number}, which is not in the file"));
        };
        let stamp = u64::from(order.word(body, 4)) << 32 | u64::from(order.word(body, 8));
        let caught = order.word(body, 12) as usize;
        let Some(packet) = body.get(20..).and_then(|rest| rest.get(..caught)) else {
            return wrong("a packet longer than its block (a damaged file?)");
        };
        if caught > order.word(body, 16) as usize {
            return wrong("a packet with more bytes than it had on the bus (a damaged file?)");
        }
        match linktype::read(interface.linktype, order, packet, entry)? {
            Packet::Other(kind) => {
                context.skipped.count(kind);
                return Ok(false);
            }
            Packet::Frame { index, flaw } => {
                flaw.into_iter().for_each(|flaw| context.flawed.count(flaw));
                entry.bus = interface.number(index, context)?;
            }
        }
        let ns = interface.resolution.ns(stamp) + interface.offset_ns;
        let Ok(ns) = u64::try_from(ns) else {
            return wrong("a stamp outside of 1970…2554 (a damaged file?)");
        };
        entry.stamp_ns = ns;
        context.controller = None;
        let rest = body.get(20 + caught.next_multiple_of(4)..).unwrap_or_default();
        for (code, value) in options(order, rest) {
            if code == OPT_COMMENT {
                context.events.note(ns, value);
                context.controller = context.controller.or_else(|| controller_stamp(value));
            }
            if code == EPB_FLAGS && value.len() == 4 {
                entry.direction = match order.word(value, 0) & 3 {
                    1 => Some(Direction::Received),
                    2 => Some(Direction::Sent),
                    _ => entry.direction,
                };
            }
        }
        Ok(true)
    }

    /// The statistics count from the beginning of the recording, so later ones replace earlier ones of their interface.
    fn statistics(&mut self, body: &[u8], context: &mut Context) {
        let Some(interface) = self.interfaces.get_mut(self.order.word(body, 0) as usize) else { return };
        for (code, value) in options(self.order, body.get(12..).unwrap_or_default()) {
            let place = match code {
                ISB_IFDROP => 0,
                ISB_OSDROP => 1,
                _ => continue,
            };
            if value.len() == 8 {
                let (a, b) = (u64::from(self.order.word(value, 0)), u64::from(self.order.word(value, 4)));
                let count = if self.order == Order::Little { b << 32 | a } else { a << 32 | b };
                let earlier = std::mem::replace(&mut interface.lost[place], count);
                context.lost = context.lost.saturating_sub(earlier).saturating_add(count);
            }
        }
    }
}

impl Interface {
    #[inline]
    fn number(&mut self, index: Option<u32>, context: &mut Context) -> Result<BusId, Trouble> {
        match (index, self.number) {
            (None, Some(number)) => Ok(number),
            (None, None) => {
                let number = context.names.number(&self.name)?;
                self.number = Some(number);
                Ok(number)
            }
            (Some(index), _) => self.indexes.number(index, &mut context.names),
        }
    }
}

impl Decode for Pcapng {
    fn next(
        &mut self,
        source: &mut Source,
        context: &mut Context,
        entry: &mut Record,
    ) -> Result<bool, Trouble> {
        loop {
            let Some((kind, length)) = self.block(source)? else { return Ok(false) };
            if length <= BLOCK_BYTES_MAX {
                self.check_ends(source, length)?;
            }
            let read = matches!(kind, INTERFACE | OLD_PACKET | STATISTICS | PACKET);
            if !read || length > BLOCK_BYTES_MAX {
                match kind {
                    SECTION => self.interfaces.clear(),
                    SIMPLE_PACKET => context.skipped.count("packets without stamp"),
                    PACKET | OLD_PACKET => context.skipped.count("packets of other networks"),
                    INTERFACE => return wrong("an interface block of more than 1 MB (a damaged file?)"),
                    STATISTICS => {}
                    _ => context.skipped.count("other blocks"),
                }
                if length > BLOCK_BYTES_MAX && context.salvage {
                    return wrong(TOO_LONG);
                }
                if !source.skip(length as u64 - 4)? {
                    return Err(Trouble::Cut);
                }
                self.check_end(source.want(4)?, length)?;
                source.consume(4);
                continue;
            }
            let block = source.want(length)?;
            let body = &block[8..length - 4];
            let found = match kind {
                INTERFACE => self.interface(body).map(|()| false)?,
                STATISTICS => {
                    self.statistics(body, context);
                    false
                }
                _ => self.packet(body, kind == OLD_PACKET, context, entry)?,
            };
            source.consume(length);
            if found {
                return Ok(true);
            }
        }
    }

    /// Behind a packet whose block is whole. Without a block that describes an interface, packets after it would be taken
    /// for those of another one.
    fn resume(&mut self, source: &mut Source) -> io::Result<bool> {
        let head = source.want(12)?;
        let (kind, length) = (self.order.word(head, 0), self.order.word(head, 4) as usize);
        let framed = head.len() >= 12 && length >= 12 && length.is_multiple_of(4);
        if !framed || !matches!(kind, PACKET | OLD_PACKET) || self.check_ends(source, length).is_err() {
            return Ok(false);
        }
        source.consume(length);
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_comment_of_a_controllers_stamp_is_read_and_no_other() {
        let stamp = |hardware_ns, bound_ns| Some(ControllerStamp { hardware_ns, bound_ns });
        for (comment, expected) in [
            ("hardware stamp 1.000000002", stamp(1_000_000_002, 0)),
            ("hardware stamp 0.000000001; the frame's stamp is made from it, ±1234 ns", stamp(1, 1234)),
            ("hardware stamp 18446744073.709551615", stamp(u64::MAX, 0)),
            ("hardware stamp 18446744073.709551616", None),
            ("hardware stamp 1.5", None),
            ("hardware stamp 1.000000002; and so on", None),
            ("hardware stamp", None),
            ("late", None),
        ] {
            assert_eq!(controller_stamp(comment.as_bytes()), expected, "{comment}");
        }
        assert_eq!(controller_stamp(b"hardware stamp \xff.000000002"), None);
    }
}

//! pcap: what tcpdump writes. A file has one link type; it identifies interfaces by the kernel's index
//! (LINKTYPE_LINUX_SLL2) or not at all.

use crate::{
    format::{Context, Decode, Format, Source},
    linktype::{self, BusOfIndex, Order, Packet},
    trouble::{Trouble, wrong},
};
use canter_frame::{BusId, Record};

/// The row of this format.
pub(crate) const ROW: Format = Format {
    name: "pcap",
    title: "pcap",
    about: "What tcpdump writes",
    extensions: &["pcap"],
    recognise: Some(is_magic),
    read: Some(|_| Box::new(Pcap::default())),
    grows: true,
    ..Format::PLAIN
};

/// The longest packet accepted, in bytes.
const PACKET_BYTES_MAX: u32 = 256 << 10;

/// The decoder.
#[derive(Default)]
pub struct Pcap {
    open: bool,
    order: Order,
    /// The unit of a stamp's second word, in ns.
    unit_ns: u64,
    linktype: u16,
    indexes: BusOfIndex,
}

/// Returns the byte order and the unit in ns that a file's first word means.
fn magic(head: &[u8]) -> Option<(Order, u64)> {
    match *head.first_chunk()? {
        [0xd4, 0xc3, 0xb2, 0xa1] => Some((Order::Little, 1000)),
        [0xa1, 0xb2, 0xc3, 0xd4] => Some((Order::Big, 1000)),
        [0x4d, 0x3c, 0xb2, 0xa1] => Some((Order::Little, 1)),
        [0xa1, 0xb2, 0x3c, 0x4d] => Some((Order::Big, 1)),
        _ => None,
    }
}

fn is_magic(head: &[u8]) -> bool {
    magic(head).is_some()
}

impl Pcap {
    fn open(&mut self, source: &mut Source) -> Result<(), Trouble> {
        let head = source.want(24)?;
        let Some((order, unit_ns)) = magic(head) else { return wrong("is not a pcap file") };
        if head.len() < 24 {
            return Err(Trouble::Cut);
        }
        // The upper bits describe a frame check sequence, which CAN packets do not have.
        self.linktype = order.word(head, 20) as u16;
        (self.open, self.order, self.unit_ns) = (true, order, unit_ns);
        source.consume(24);
        Ok(())
    }

    fn interface(&mut self, index: Option<u32>, context: &mut Context) -> Result<BusId, Trouble> {
        match index {
            None => context.names.number("any"),
            Some(index) => self.indexes.number(index, &mut context.names),
        }
    }
}

impl Decode for Pcap {
    fn next(
        &mut self,
        source: &mut Source,
        context: &mut Context,
        entry: &mut Record,
    ) -> Result<bool, Trouble> {
        if !self.open {
            self.open(source)?;
        }
        loop {
            let head = source.want(16)?;
            if head.len() < 16 {
                return if head.is_empty() { Ok(false) } else { Err(Trouble::Cut) };
            }
            let word = |at| self.order.word(head, at);
            let (seconds, fraction, caught) = (u64::from(word(0)), u64::from(word(4)), word(8));
            if caught > PACKET_BYTES_MAX || caught > word(12) {
                return wrong(format!(
                    "a packet of {} bytes with {caught} of them (a damaged file?)",
                    word(12)
                ));
            }
            let length = 16 + caught as usize;
            let packet = source.want(if context.salvage { length + 16 } else { length })?;
            if packet.len() < length {
                return Err(Trouble::Cut);
            }
            // A record has no checksum. One that damage follows may be damaged at its end.
            if context.salvage && packet.len() >= length + 16 {
                let caught = self.order.word(packet, length + 8);
                if caught == 0 || caught > PACKET_BYTES_MAX {
                    return wrong("a packet before something that is none (a damaged file?)");
                }
            }
            entry.stamp_ns = seconds * 1_000_000_000 + fraction * self.unit_ns;
            let found = linktype::read(self.linktype, self.order, &packet[16..length], entry)?;
            source.consume(length);
            match found {
                Packet::Frame { index, flaw } => {
                    flaw.into_iter().for_each(|flaw| context.flawed.count(flaw));
                    entry.bus = self.interface(index, context)?;
                    return Ok(true);
                }
                Packet::Other(kind) => context.skipped.count(kind),
            }
        }
    }
}

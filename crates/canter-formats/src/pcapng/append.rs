//! pcapng: what Wireshark, tshark and capinfos read. One interface block per bus, stamps in ns, and at the end one
//! interface statistics block per bus, so that the losses are in the same file as the frames.
//!
//! draft-ietf-opsawg-pcapng; LINKTYPE_CAN_SOCKETCAN (227): `struct can_frame` or `struct canfd_frame` with the
//! identifier in network byte order. Blocks are in this machine's byte order, which their magic number shows.

use crate::format::{Append, Closing};
use canter_frame::{
    Direction, RawRecord,
    frame::{BRS, CAN_MTU, CANFD_MTU, ESI, FDF},
};

const SECTION: u32 = 0x0a0d_0d0a;
const MAGIC: u32 = 0x1a2b_3c4d;
const INTERFACE: u32 = 1;
const STATISTICS: u32 = 5;
const PACKET: u32 = 6;
const LINKTYPE_CAN_SOCKETCAN: u16 = 227;

const OPT_END: u16 = 0;
const OPT_COMMENT: u16 = 1;
const EPB_FLAGS: u16 = 2;
const SHB_USERAPPL: u16 = 4;
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
const ISB_STARTTIME: u16 = 2;
const ISB_ENDTIME: u16 = 3;
const ISB_IFRECV: u16 = 4;
const ISB_IFDROP: u16 = 5;
const ISB_OSDROP: u16 = 7;
const ISB_USRDELIV: u16 = 8;

/// Bytes of an enhanced packet block without its packet.
const PACKET_FIXED: u32 = 32;

/// The appender.
#[derive(Default)]
pub struct Pcapng {
    /// Frames written of each interface.
    written: Vec<u64>,
    /// A comment for the next frame.
    remark: Option<String>,
}

/// Appends a block: its type, its length, what `body` appends, and its length again.
fn block(out: &mut Vec<u8>, kind: u32, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend(kind.to_ne_bytes());
    out.extend([0; 4]);
    body(out);
    let length = (out.len() - start + 4) as u32;
    out.extend(length.to_ne_bytes());
    out[start + 4..start + 8].copy_from_slice(&length.to_ne_bytes());
}

fn option(out: &mut Vec<u8>, code: u16, value: &[u8]) {
    let value = &value[..value.len().min(u16::MAX.into())];
    out.extend(code.to_ne_bytes());
    out.extend((value.len() as u16).to_ne_bytes());
    out.extend(value);
    out.extend(&[0; 3][..value.len().wrapping_neg() % 4]);
}

/// Returns a time stamp, its upper half first.
fn stamp(ns: u64) -> [u8; 8] {
    let [a, b, c, d] = ((ns >> 32) as u32).to_ne_bytes();
    let [e, f, g, h] = (ns as u32).to_ne_bytes();
    [a, b, c, d, e, f, g, h]
}

impl Pcapng {
    /// Returns the options of a frame's block: its direction and comments.
    fn options(&mut self, record: &RawRecord<'_>, late: bool) -> Vec<u8> {
        let mut out = Vec::new();
        let direction: u32 = match record.direction {
            None => 0,
            Some(Direction::Received) => 1,
            Some(Direction::Sent) => 2,
        };
        if direction != 0 {
            option(&mut out, EPB_FLAGS, &direction.to_ne_bytes());
        }
        if late {
            option(&mut out, OPT_COMMENT, b"late");
        }
        if record.hardware_ns != 0 {
            let (second, ns) = (record.hardware_ns / 1_000_000_000, record.hardware_ns % 1_000_000_000);
            let bound = match record.bound_ns {
                0 => String::new(),
                bound_ns => format!("; the frame's stamp is made from it, ±{bound_ns} ns"),
            };
            option(&mut out, OPT_COMMENT, format!("hardware stamp {second}.{ns:09}{bound}").as_bytes());
        }
        if let Some(remark) = self.remark.take() {
            option(&mut out, OPT_COMMENT, remark.as_bytes());
        }
        option(&mut out, OPT_END, &[]);
        out
    }

    /// Appends the block of a frame of any size, with options unless it is `plain`.
    fn any_block(&mut self, out: &mut Vec<u8>, record: &RawRecord<'_>, late: bool, plain: bool) {
        let caught = record.bytes.len() as u32;
        let options = if plain { Vec::new() } else { self.options(record, late) };
        let length = PACKET_FIXED + caught.next_multiple_of(4) + options.len() as u32;
        let mut head = [0; 28];
        head[..4].copy_from_slice(&PACKET.to_ne_bytes());
        head[4..8].copy_from_slice(&length.to_ne_bytes());
        head[8..12].copy_from_slice(&record.bus.0.to_ne_bytes());
        head[12..20].copy_from_slice(&stamp(record.stamp_ns));
        head[20..24].copy_from_slice(&caught.to_ne_bytes());
        head[24..28].copy_from_slice(&caught.to_ne_bytes());
        out.extend_from_slice(&head);
        let start = out.len();
        out.extend_from_slice(record.bytes);
        if let Some([a, b, c, d, _, flags]) = out[start..].first_chunk_mut::<6>() {
            if cfg!(target_endian = "little") {
                (*a, *b, *c, *d) = (*d, *c, *b, *a);
            }
            *flags = if caught as usize == CANFD_MTU { *flags & (BRS | ESI) | FDF } else { 0 };
        }
        out.extend_from_slice(&[0; 3][..record.bytes.len().wrapping_neg() % 4]);
        out.extend_from_slice(&options);
        out.extend_from_slice(&length.to_ne_bytes());
    }
}

/// Bytes of a packet block with a classic frame and nothing else.
const CLASSIC_BLOCK: usize = PACKET_FIXED as usize + CAN_MTU;

/// Returns the most common block, a classic frame without options, which has a fixed size.
#[inline]
fn classic_block(record: &RawRecord<'_>, frame: &[u8; CAN_MTU]) -> [u8; CLASSIC_BLOCK] {
    let &[a, b, c, d, len, _, reserved, len8_dlc, ref data @ ..] = frame;
    let can_id = u32::from_ne_bytes([a, b, c, d]).to_be_bytes();
    let mut block = [0; CLASSIC_BLOCK];
    block[..4].copy_from_slice(&PACKET.to_ne_bytes());
    block[4..8].copy_from_slice(&(CLASSIC_BLOCK as u32).to_ne_bytes());
    block[8..12].copy_from_slice(&record.bus.0.to_ne_bytes());
    block[12..20].copy_from_slice(&stamp(record.stamp_ns));
    block[20..24].copy_from_slice(&(CAN_MTU as u32).to_ne_bytes());
    block[24..28].copy_from_slice(&(CAN_MTU as u32).to_ne_bytes());
    block[28..32].copy_from_slice(&can_id);
    block[32..36].copy_from_slice(&[len, 0, reserved, len8_dlc]);
    block[36..44].copy_from_slice(data);
    block[44..].copy_from_slice(&(CLASSIC_BLOCK as u32).to_ne_bytes());
    block
}

impl Append for Pcapng {
    fn begin(&mut self, out: &mut Vec<u8>) {
        block(out, SECTION, |out| {
            out.extend(MAGIC.to_ne_bytes());
            out.extend(1u16.to_ne_bytes());
            out.extend(0u16.to_ne_bytes());
            out.extend((-1i64).to_ne_bytes()); // the section's length is not known
            option(out, SHB_USERAPPL, concat!("canter ", env!("CARGO_PKG_VERSION")).as_bytes());
            option(out, OPT_END, &[]);
        });
    }

    fn interface(&mut self, out: &mut Vec<u8>, name: &str) {
        self.written.push(0);
        block(out, INTERFACE, |out| {
            out.extend(LINKTYPE_CAN_SOCKETCAN.to_ne_bytes());
            out.extend([0; 2]);
            out.extend(0u32.to_ne_bytes()); // no limit on the length of packets
            option(out, IF_NAME, name.as_bytes());
            option(out, IF_TSRESOL, &[9]);
            option(out, OPT_END, &[]);
        });
    }

    #[inline]
    fn frame(&mut self, out: &mut Vec<u8>, record: &RawRecord<'_>, late: bool) {
        if let Some(written) = self.written.get_mut(record.bus.index()) {
            *written += 1;
        }
        let known = late || record.direction.is_some() || record.hardware_ns != 0;
        let plain = !known && self.remark.is_none();
        // Where there is room, so that nothing on this way can call the allocator, which would cost it fourteen instructions.
        if let (true, true, Ok(bytes)) =
            (plain, out.capacity() - out.len() >= CLASSIC_BLOCK, record.bytes.try_into())
        {
            out.extend_from_slice(&classic_block(record, bytes));
            return;
        }
        self.any_block(out, record, late, plain);
    }

    fn remark(&mut self, text: &str) {
        self.remark = Some(text.to_owned());
    }

    fn finish(&mut self, out: &mut Vec<u8>, interfaces: &[Closing], verdict: &str) {
        for (n, closing) in interfaces.iter().enumerate() {
            block(out, STATISTICS, |out| {
                out.extend((n as u32).to_ne_bytes());
                out.extend(stamp(closing.ended_ns));
                option(out, OPT_COMMENT, verdict.as_bytes());
                option(out, ISB_STARTTIME, &stamp(closing.started_ns));
                option(out, ISB_ENDTIME, &stamp(closing.ended_ns));
                if let Some(received) = closing.received {
                    option(out, ISB_IFRECV, &received.to_ne_bytes());
                }
                if let Some(lost) = closing.lost {
                    option(out, ISB_IFDROP, &lost.to_ne_bytes());
                }
                if let Some(lost) = closing.lost_by_system {
                    option(out, ISB_OSDROP, &lost.to_ne_bytes());
                }
                option(out, ISB_USRDELIV, &self.written.get(n).copied().unwrap_or_default().to_ne_bytes());
                option(out, OPT_END, &[]);
            });
        }
    }
}

#[cfg(all(test, target_endian = "little"))]
mod tests {
    use super::*;
    use crate::examples;
    use canter_frame::BusId;
    use proptest::prelude::*;

    fn hex(bytes: &[u8]) -> String {
        bytes
            .chunks(4)
            .map(|word| word.iter().map(|byte| format!("{byte:02x}")).collect::<String>() + " ")
            .collect()
    }

    #[test]
    fn the_blocks_are_those_of_the_specification() {
        let (mut pcapng, mut out) = (Pcapng::default(), Vec::new());
        pcapng.interface(&mut out, "can0");
        // type 1, length 40, linktype 227, no limit, if_name, if_tsresol 9, end, length
        let interface =
            "01000000 28000000 e3000000 00000000 02000400 63616e30 09000100 09000000 00000000 28000000 ";
        assert_eq!(hex(&out), interface);

        out.clear();
        let bytes = examples::bytes(&"12345678#1122".parse().unwrap());
        pcapng.frame(&mut out, &examples::record(&bytes, 0, 0x1_0000_0002), false);
        let packet = "06000000 30000000 00000000 01000000 02000000 10000000 10000000 \
                      92345678 02000000 11220000 00000000 30000000 ";
        assert_eq!(hex(&out), packet);

        out.clear();
        let bytes = examples::bytes(&"123##1AA".parse().unwrap());
        pcapng.frame(&mut out, &examples::record(&bytes, 0, 7), true);
        assert_eq!(
            &hex(&out)[..8 * 9 + 9],
            "06000000 74000000 00000000 00000000 07000000 48000000 48000000 00000123 01050000 "
        );
        assert!(hex(&out).ends_with("01000400 6c617465 00000000 74000000 "), "{}", hex(&out));
    }

    #[test]
    fn direction_and_hardware_stamp_and_remark_are_options_of_the_packet() {
        let (mut pcapng, mut out) = (Pcapng::default(), Vec::new());
        let bytes = examples::bytes(&"123#".parse().unwrap());
        pcapng.remark("set");
        let record = RawRecord { direction: Some(Direction::Sent), ..RawRecord::new(7, BusId(0), &bytes) };
        pcapng.frame(&mut out, &record, false);
        // epb_flags 2: outbound; opt_comment; opt_endofopt
        assert!(
            hex(&out).ends_with("02000400 02000000 01000300 73657400 00000000 44000000 "),
            "{}",
            hex(&out)
        );
        out.clear();
        let record = RawRecord { hardware_ns: 1_000_000_002, ..RawRecord::new(7, BusId(0), &bytes) };
        pcapng.frame(&mut out, &record, false);
        assert!(String::from_utf8_lossy(&out).contains("hardware stamp 1.000000002"));
        assert!(!String::from_utf8_lossy(&out).contains("set"), "a remark is written once");
        pcapng.frame(&mut out, &RawRecord { bound_ns: 1234, ..record }, false);
        let text = String::from_utf8_lossy(&out);
        assert!(
            text.contains("hardware stamp 1.000000002; the frame's stamp is made from it, ±1234 ns"),
            "{text}"
        );
    }

    #[test]
    fn the_statistics_have_the_counts_of_received_lost_and_written_frames() {
        let (mut pcapng, mut out) = (Pcapng::default(), Vec::new());
        pcapng.interface(&mut out, "a");
        out.clear();
        let (lost, lost_by_system) = (Some(3), Some(4));
        let closing = Closing { started_ns: 1, ended_ns: 2, received: Some(5), lost, lost_by_system };
        pcapng.finish(&mut out, &[closing], "lost");
        let statistics = "05000000 6c000000 00000000 00000000 02000000 01000400 6c6f7374 \
                          02000800 00000000 01000000 03000800 00000000 02000000 04000800 05000000 00000000 \
                          05000800 03000000 00000000 07000800 04000000 00000000 \
                          08000800 00000000 00000000 00000000 6c000000 ";
        assert_eq!(hex(&out), statistics);
    }

    proptest! {
        #[test]
        fn blocks_can_be_walked_by_their_lengths(
            frames in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..73), any::<u32>(), any::<bool>()), 0..9),
            name in ".{0,20}",
        ) {
            let (mut pcapng, mut out) = (Pcapng::default(), Vec::new());
            pcapng.begin(&mut out);
            pcapng.interface(&mut out, &name);
            for (bytes, interface, late) in &frames {
                pcapng.frame(&mut out, &examples::record(bytes, *interface, 9), *late);
            }
            pcapng.finish(&mut out, &[Closing::default()], &name);
            let (mut at, mut blocks) = (0, 0);
            while at < out.len() {
                let length = u32::from_ne_bytes(*out[at + 4..].first_chunk().unwrap()) as usize;
                prop_assert!(length.is_multiple_of(4) && at + length <= out.len());
                prop_assert_eq!(&out[at + 4..at + 8], &out[at + length - 4..at + length]);
                (at, blocks) = (at + length, blocks + 1);
            }
            prop_assert_eq!(blocks, frames.len() + 3);
        }
    }
}

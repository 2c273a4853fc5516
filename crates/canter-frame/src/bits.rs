//! The duration of a frame on the wire, in bits and in ns, with exactly the stuff bits that its content and its CRC
//! require. The latency of a gateway is the difference of two stamps minus this duration, so one wrong stuff bit is an
//! error of 1 µs at 1 Mbit/s.
//!
//! ISO 11898-1:2015. One table stuffs a byte at a time, another one adds it to the CRC: nothing allocates, nothing
//! loops over bits.
//! - Classic: after five equal bits from SOF to the last bit of the CRC comes a stuff bit, even after the very last.
//! - FD: that ends with the data field. The stuff count and the CRC have a stuff bit in front and after every four
//!   bits, whatever their value: the value of an FD frame's CRC does not change its length.
//! - FD with BRS: the bit rate changes at the sample points of the BRS bit and of the CRC delimiter. Each of these two
//!   bits is partly nominal, partly data; where both are divided equally, they add up to one nominal and one data bit.

use crate::frame::{BRS, EFF_MASK, ESI, Frame, SFF_MASK, dlc_of_len, len_of_dlc};

/// Recessive bits between the end of one frame and the earliest start of the next (intermission), at the nominal
/// rate.
pub const INTERFRAME_BITS: u16 = 3;

/// CRC delimiter, ACK slot, ACK delimiter and the 7 bits of EOF: never stuffed, always nominal but for a part of the
/// first one.
const END_BITS: u16 = 10;
/// CRC sequence of a classic frame.
const CRC15_BITS: u16 = 15;
/// x¹⁵ + x¹⁴ + x¹⁰ + x⁸ + x⁷ + x⁴ + x³ + 1, without its first term.
const CRC15: u16 = 0x4599;
/// FD: Gray-coded stuff count and its parity.
const STUFF_COUNT_BITS: u16 = 4;

/// The bit rates of a bus in bit/s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BitRate {
    /// Arbitration, and everything in frames without BRS. Not 0.
    pub nominal: u32,
    /// The data phase of frames with BRS; 0: the same as `nominal`.
    pub data: u32,
}

impl BitRate {
    /// A bus without a faster data phase.
    pub const fn classic(nominal: u32) -> Self {
        Self { nominal, data: 0 }
    }
}

/// The length of one frame from the first bit of SOF to the last bit of EOF, stuff bits included and the interframe
/// space ([`INTERFRAME_BITS`]) not. An error frame is a driver's report, not something on the wire: all 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameBits {
    /// Bits at the nominal rate: all of them without BRS.
    pub nominal: u16,
    /// Bits at the data rate: from ESI to the CRC, and one that BRS and CRC delimiter make up together.
    pub data: u16,
    /// Stuff bits among them that depend on the content.
    pub stuff: u16,
    /// Fixed stuff bits of an FD frame among them: 6 with CRC17 (up to 16 bytes), 7 with CRC21.
    pub fixed_stuff: u16,
}

impl FrameBits {
    /// Bits of either rate.
    pub fn total(&self) -> u16 {
        self.nominal + self.data
    }

    /// From the start of SOF to the end of EOF, in ns, rounded to the nearest.
    ///
    /// # Panics
    /// When the nominal rate is 0.
    pub fn duration_ns(&self, rate: BitRate) -> u64 {
        duration_ns(self.nominal, self.data, rate)
    }

    /// The duration of the frame in ps, for sums of durations: rounded to ns, they would drift.
    ///
    /// # Panics
    /// When the nominal rate is 0.
    pub fn duration_ps(&self, rate: BitRate) -> u64 {
        duration_ps(self.nominal, self.data, rate)
    }

    /// From the start of SOF to the earliest start of the next frame, in ns: the time for which the frame occupies the
    /// bus. 0 for an error frame.
    ///
    /// # Panics
    /// When the nominal rate is 0.
    pub fn duration_with_interframe_ns(&self, rate: BitRate) -> u64 {
        let interframe = if self.nominal == 0 { 0 } else { INTERFRAME_BITS };
        duration_ns(self.nominal + interframe, self.data, rate)
    }
}

fn duration_ns(nominal: u16, data: u16, rate: BitRate) -> u64 {
    (duration_ps(nominal, data, rate) + 500) / 1000 // the sum of both phases is rounded once
}

fn duration_ps(nominal: u16, data: u16, rate: BitRate) -> u64 {
    assert!(rate.nominal != 0, "a bus has a nominal bit rate");
    // 2¹⁶ bits of 10¹² ps fit.
    let picoseconds = |bits: u16, rate: u32| u64::from(bits) * 1_000_000_000_000 / u64::from(rate);
    let mut sum = picoseconds(nominal, rate.nominal);
    if data != 0 {
        sum += picoseconds(data, if rate.data == 0 { rate.nominal } else { rate.data });
    }
    sum
}

impl Frame {
    /// Returns its length on the wire. A payload whose length has no DLC counts as padded with zeros to the next length
    /// that has one.
    pub fn bits(&self) -> FrameBits {
        if self.is_error() {
            FrameBits::default()
        } else if self.is_fd() {
            self.fd_bits()
        } else {
            self.classic_bits()
        }
    }

    /// The duration of the frame at `rate`, in ns, from its start to its end, without the interframe space. Where
    /// a frame is stamped at its end, a gateway's latency leaves this out: the routed copy cannot end before it has been sent.
    ///
    /// # Panics
    /// When the nominal rate is 0.
    pub fn duration_ns(&self, rate: BitRate) -> u64 {
        self.bits().duration_ns(rate)
    }

    /// The time at `rate` from the start of the frame to the earliest start of the next one, in ns: the period of
    /// frames sent back to back, and what counts for a bus's load.
    ///
    /// # Panics
    /// When the nominal rate is 0.
    pub fn duration_with_interframe_ns(&self, rate: BitRate) -> u64 {
        self.bits().duration_with_interframe_ns(rate)
    }

    /// Returns the arbitration field after SOF, its first bit as the highest: nodes that start at the same time compare
    /// it bit by bit. The smaller value wins, because a dominant bit is 0. SFF: 11 bits, RTR, IDE; EFF: 11 bits, SRR,
    /// IDE, 18 bits, RTR. In FD frames RRS, which is dominant, is in RTR's place. The lower bits are 0.
    pub fn arbitration(&self) -> u32 {
        let (id, rtr) = (self.can_id & EFF_MASK, u32::from(self.is_rtr()));
        if self.is_eff() {
            (id >> 18) << 21 | 0b11 << 19 | (id & 0x3_ffff) << 1 | rtr
        } else {
            (id & SFF_MASK) << 21 | rtr << 20
        }
    }

    fn classic_bits(&self) -> FrameBits {
        let rtr = self.is_rtr();
        let len = self.len.min(8);
        let dlc = if len == 8 && (9..=15).contains(&self.len8_dlc) { self.len8_dlc } else { len };
        let data = if rtr { &[][..] } else { &self.data[..usize::from(len)] };
        let control = u64::from(rtr) << 6 | u64::from(dlc);
        let (head, head_bits) = if self.is_eff() {
            // SOF, 11, SRR = 1, IDE = 1, 18, RTR, r1, r0, DLC
            let id = u64::from(self.can_id & EFF_MASK);
            ((id >> 18) << 27 | 0b11 << 25 | (id & 0x3ffff) << 7 | control, 39)
        } else {
            // SOF, 11, RTR, IDE = 0, r0, DLC
            (u64::from(self.can_id & SFF_MASK) << 7 | control, 19)
        };

        let mut stuffing = Stuffing::idle();
        stuffing.head(head, head_bits);
        let mut crc = 0;
        for shift in (0..5).rev() {
            crc = crc15(crc, (head >> (8 * shift)) as u8); // leading zeros leave a CRC of 0 alone
        }
        for &byte in data {
            stuffing.byte(byte);
            crc = crc15(crc, byte);
        }
        // With the CRC delimiter, which is recessive, the 15 bits are two bytes. A stuff bit after the last CRC bit
        // is counted when the delimiter passes, and one after the delimiter never is.
        let tail = crc << 1 | 1;
        stuffing.byte((tail >> 8) as u8);
        stuffing.byte(tail as u8);

        let nominal = head_bits as u16 + 8 * data.len() as u16 + CRC15_BITS + stuffing.count + END_BITS;
        FrameBits { nominal, data: 0, stuff: stuffing.count, fixed_stuff: 0 }
    }

    fn fd_bits(&self) -> FrameBits {
        let have = usize::from(self.len.min(64));
        let dlc = (have..=64).find_map(dlc_of_len).unwrap_or(15);
        let len = len_of_dlc(dlc);
        let brs = self.flags & BRS != 0;
        let (head, head_bits) = if self.is_eff() {
            // SOF, 11, SRR = 1, IDE = 1, 18, RRS = 0, FDF = 1, res = 0, BRS
            let id = u64::from(self.can_id & EFF_MASK);
            ((id >> 18) << 24 | 0b11 << 22 | (id & 0x3ffff) << 4 | 0b100 | u64::from(brs), 36)
        } else {
            // SOF, 11, RRS = 0, IDE = 0, FDF = 1, res = 0, BRS
            (u64::from(self.can_id & SFF_MASK) << 5 | 0b100 | u64::from(brs), 17)
        };
        let mut stuffing = Stuffing::idle();
        stuffing.head(head, head_bits);
        let stuff_nominal = stuffing.count;

        // Starts again, now with ESI and DLC: cheaper than continuing in the middle of a byte.
        let esi = u64::from(self.flags & ESI != 0);
        let mut stuffing = Stuffing::idle();
        stuffing.head(head << 5 | esi << 4 | u64::from(dlc), head_bits + 5);
        for &byte in &self.data[..have] {
            stuffing.byte(byte);
        }
        for _ in have..len {
            stuffing.byte(0);
        }
        // A stuff bit due after the last data bit is replaced by the first fixed one: nothing passes that counts it.

        let (crc_bits, fixed_stuff) = if len <= 16 { (17, 6) } else { (21, 7) };
        let field_bits = 5 + 8 * len as u16 + STUFF_COUNT_BITS + crc_bits;
        let total = head_bits as u16 + field_bits + stuffing.count + fixed_stuff + END_BITS;
        let data = if brs { total - head_bits as u16 - stuff_nominal - (END_BITS - 1) } else { 0 };
        FrameBits { nominal: total - data, data, stuff: stuffing.count, fixed_stuff }
    }
}

/// Counts stuff bits. A state is `2 × (run of equal bits − 1) + last bit`; a stuff bit counts when the bit after it
/// passes.
struct Stuffing {
    state: u8,
    count: u16,
}

impl Stuffing {
    fn idle() -> Self {
        Self { state: 0, count: 0 }
    }

    fn byte(&mut self, byte: u8) {
        let entry = STUFFING[usize::from(self.state) << 8 | usize::from(byte)];
        self.count += u16::from(entry >> 4);
        self.state = entry & 15;
    }

    /// Passes the first `bits` of a frame, which start with the dominant SOF. They are filled up to whole bytes in
    /// front with …0101, which ends recessive like an idle bus and never needs a stuff bit.
    fn head(&mut self, value: u64, bits: u32) {
        let bytes = bits.div_ceil(8);
        let value = 0x5555_5555_5555_5555 << bits | value;
        for shift in (0..bytes).rev() {
            self.byte((value >> (8 * shift)) as u8);
        }
    }
}

fn crc15(crc: u16, byte: u8) -> u16 {
    (crc << 8 & 0x7fff) ^ CRC15_OF_BYTE[usize::from((crc >> 7) as u8 ^ byte)]
}

/// `[state][byte]`: how many stuff bits in the upper, the next state in the lower half. States 10…15 do not exist.
static STUFFING: [u8; 16 * 256] = {
    let mut table = [0; 16 * 256];
    let mut entry = 0;
    while entry < 10 * 256 {
        let (mut run, mut last) = ((entry >> 8) / 2 + 1, (entry >> 8) & 1);
        let mut count = 0;
        let mut bit = 8;
        while bit > 0 {
            bit -= 1;
            if run == 5 {
                count += 1;
                last ^= 1;
                run = 1;
            }
            let value = entry >> bit & 1;
            run = if value == last { run + 1 } else { 1 };
            last = value;
        }
        table[entry] = (count * 16 + 2 * (run - 1) + last) as u8;
        entry += 1;
    }
    table
};

static CRC15_OF_BYTE: [u16; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u16) << 7;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x4000 != 0 { crc << 1 ^ CRC15 } else { crc << 1 };
            bit += 1;
        }
        table[byte] = crc & 0x7fff;
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Identifier;
    use proptest::prelude::*;

    /// A reference implementation, bit by bit and slow: every bit of the frame, marked if it is in the data phase.
    mod naive {
        use super::*;

        type Bit = (bool, bool);

        fn put(bits: &mut Vec<Bit>, value: u64, width: u32, fast: bool) {
            bits.extend((0..width).rev().map(|shift| (value >> shift & 1 == 1, fast)));
        }

        fn divide(bits: &[Bit], polynomial: u32, width: u32, start: u32) -> u32 {
            bits.iter().fold(start, |register, &(bit, _)| {
                let top = register >> (width - 1) & 1 == 1;
                let shifted = register << 1 & ((1 << width) - 1);
                if top == bit { shifted } else { shifted ^ polynomial }
            })
        }

        /// Inserts stuff bits; with `after_last`, one may follow the last bit. A stuff bit belongs to the phase of the
        /// bit before it; none can follow BRS, where the phase changes.
        fn stuff(bits: &[Bit], after_last: bool) -> Vec<Bit> {
            let mut out: Vec<Bit> = Vec::new();
            let mut run = 0;
            for (index, &(bit, fast)) in bits.iter().enumerate() {
                run = if out.last().is_some_and(|last| last.0 == bit) { run + 1 } else { 1 };
                out.push((bit, fast));
                if run == 5 && (after_last || index + 1 < bits.len()) {
                    out.push((!bit, fast));
                    run = 1;
                }
            }
            out
        }

        fn identifier(frame: &Frame, bits: &mut Vec<Bit>, rtr_or_rrs: bool) {
            put(bits, 0, 1, false); // SOF
            match frame.id() {
                Identifier::Sff(id) => {
                    put(bits, id.into(), 11, false);
                    put(bits, rtr_or_rrs.into(), 1, false);
                    put(bits, 0, 1, false); // IDE
                }
                Identifier::Eff(id) => {
                    put(bits, u64::from(id >> 18), 11, false);
                    put(bits, 0b11, 2, false); // SRR, IDE
                    put(bits, u64::from(id & 0x3ffff), 18, false);
                    put(bits, rtr_or_rrs.into(), 1, false);
                }
            }
        }

        /// From SOF to the last bit of the CRC.
        fn classic_unstuffed(frame: &Frame) -> Vec<Bit> {
            let mut bits = Vec::new();
            identifier(frame, &mut bits, frame.is_rtr());
            put(&mut bits, 0, if frame.is_eff() { 2 } else { 1 }, false); // r1, r0
            put(&mut bits, u64::from(frame.len.max(frame.len8_dlc)), 4, false);
            for &byte in frame.data() {
                put(&mut bits, byte.into(), 8, false);
            }
            let crc = divide(&bits, 0x4599, 15, 0);
            put(&mut bits, crc.into(), 15, false);
            bits
        }

        pub fn crc_ends_in_a_stuff_bit(frame: &Frame) -> bool {
            let bits = classic_unstuffed(frame);
            stuff(&bits, true).len() > stuff(&bits, false).len()
        }

        fn classic(frame: &Frame) -> (Vec<Bit>, usize, usize) {
            let bits = classic_unstuffed(frame);
            let mut wire = stuff(&bits, true);
            let count = wire.len() - bits.len();
            put(&mut wire, 0b10_1111_1111, 10, false); // CRC delimiter, ACK, its delimiter, EOF
            (wire, count, 0)
        }

        fn fd(frame: &Frame) -> (Vec<Bit>, usize, usize) {
            let brs = frame.flags & BRS != 0;
            let mut bits = Vec::new();
            identifier(frame, &mut bits, false);
            put(&mut bits, 0b10, 2, false); // FDF, res
            put(&mut bits, brs.into(), 1, false);
            put(&mut bits, u64::from(frame.flags & ESI != 0), 1, brs);
            put(&mut bits, dlc_of_len(frame.data().len()).unwrap().into(), 4, brs);
            for &byte in frame.data() {
                put(&mut bits, byte.into(), 8, brs);
            }
            let mut wire = stuff(&bits, false);
            let count = wire.len() - bits.len();
            let gray = (count as u64 % 8) ^ (count as u64 % 8) >> 1;
            let mut tail = Vec::new();
            put(&mut tail, gray << 1 | u64::from(gray.count_ones() % 2), 4, brs);
            let (polynomial, width) = if frame.data().len() <= 16 { (0x1685b, 17) } else { (0x10_2899, 21) };
            let covered = [wire.as_slice(), tail.as_slice()].concat();
            put(&mut tail, divide(&covered, polynomial, width, 1 << (width - 1)).into(), width, brs);
            let mut fixed = 0;
            for four in tail.chunks(4) {
                let before = wire[wire.len() - 1].0;
                wire.push((!before, brs));
                fixed += 1;
                wire.extend(four);
            }
            put(&mut wire, 1, 1, brs); // the CRC delimiter's data half; the BRS bit counts for its nominal half
            put(&mut wire, 0b0_1111_1111, 9, false); // ACK, its delimiter, EOF
            (wire, count, fixed)
        }

        /// The bits up to the RTR of an SFF (with IDE) or EFF frame, without stuffing and SOF.
        fn arbitration_field(frame: &Frame) -> Vec<bool> {
            let mut bits = Vec::new();
            identifier(frame, &mut bits, frame.is_rtr());
            bits[1..].iter().map(|bit| bit.0).collect()
        }

        /// Returns whether `first` wins the arbitration: a node that sends a recessive bit but sees a dominant one
        /// stops. `None`: no node has to stop.
        pub fn winner(first: &Frame, second: &Frame) -> Option<bool> {
            let (first, second) = (arbitration_field(first), arbitration_field(second));
            first.iter().zip(&second).find(|(a, b)| a != b).map(|(&a, _)| !a)
        }

        pub fn bits(frame: &Frame) -> FrameBits {
            let (wire, stuff, fixed) = if frame.is_fd() { fd(frame) } else { classic(frame) };
            let data = wire.iter().filter(|bit| bit.1).count() as u16;
            let nominal = wire.len() as u16 - data;
            FrameBits { nominal, data, stuff: stuff as u16, fixed_stuff: fixed as u16 }
        }
    }

    fn identifier() -> impl Strategy<Value = Identifier> {
        prop_oneof![
            (0..=0x7ffu16).prop_map(Identifier::Sff),
            (0..=EFF_MASK).prop_map(Identifier::Eff),
            prop_oneof![Just(0u32), Just(EFF_MASK), Just(0x1f07_c1f0)].prop_map(Identifier::Eff),
            prop_oneof![Just(0u16), Just(0x7ff), Just(0x7c1), Just(0x078)].prop_map(Identifier::Sff),
        ]
    }

    /// Random bytes, and bytes that need many stuff bits.
    fn payload(max: usize) -> impl Strategy<Value = Vec<u8>> {
        let byte =
            prop_oneof![any::<u8>(), Just(0), Just(0xff), Just(0xc1), Just(0xf8), Just(0x0f), Just(0x1f)];
        prop::collection::vec(byte, 0..=max)
    }

    fn frame() -> impl Strategy<Value = Frame> {
        prop_oneof![
            (identifier(), payload(8)).prop_map(|(id, data)| Frame::classic(id, &data).unwrap()),
            (identifier(), payload(8), 9..=15u8).prop_map(|(id, mut data, dlc)| {
                data.resize(8, 0);
                let mut frame = Frame::classic(id, &data).unwrap();
                frame.len8_dlc = dlc;
                frame
            }),
            (identifier(), 0..=8u8).prop_map(|(id, len)| Frame::rtr(id, len).unwrap()),
            (identifier(), payload(64), 0..=15u8, 0..4u8).prop_map(|(id, mut data, dlc, flags)| {
                data.resize(len_of_dlc(dlc), 0xff);
                Frame::fd(id, &data, flags).unwrap()
            }),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]
        #[test]
        fn every_length_is_that_of_the_reference_implementation(frame in frame()) {
            prop_assert_eq!(frame.bits(), naive::bits(&frame));
        }

        #[test]
        fn arbitration_is_decided_by_the_first_bit_that_differs(first in frame(), second in frame(), same_base: bool) {
            let mut second = second;
            if same_base {
                // Without this, the first eleven bits nearly always decide.
                let base = if first.is_eff() { first.can_id >> 18 & SFF_MASK } else { first.can_id & SFF_MASK };
                let flags = second.can_id & !EFF_MASK;
                let low = second.can_id & 0x3_ffff;
                second.can_id = flags | if second.is_eff() { base << 18 | low } else { base };
            }
            let wins = match first.arbitration().cmp(&second.arbitration()) {
                std::cmp::Ordering::Less => Some(true),
                std::cmp::Ordering::Greater => Some(false),
                std::cmp::Ordering::Equal => None,
            };
            prop_assert_eq!(wins, naive::winner(&first, &second));
        }

        #[test]
        fn no_content_of_a_frame_makes_its_length_panic(
            can_id: u32, len: u8, flags: u8, len8_dlc: u8, data in prop::collection::vec(any::<u8>(), 64)
        ) {
            let mut frame = Frame::default();
            (frame.can_id, frame.len, frame.flags, frame.len8_dlc) = (can_id, len, flags, len8_dlc);
            frame.data.copy_from_slice(&data);
            let bits = frame.bits();
            prop_assert_eq!(bits.total() == 0, frame.is_error());
        }
    }

    fn sff(id: u16, data: &[u8]) -> Frame {
        Frame::classic(Identifier::Sff(id), data).unwrap()
    }

    #[test]
    fn known_lengths_without_stuff_bits() {
        // Format and bytes; SOF…EOF, as in textbooks: 44 + 8 n and 64 + 8 n, 3 less than with interframe.
        for (frame, unstuffed) in [
            (sff(0x555, &[]), 44),
            (sff(0x555, &[0x55; 8]), 108),
            (Frame::classic(Identifier::Eff(0x1555_5555), &[]).unwrap(), 64),
            (Frame::classic(Identifier::Eff(0x1555_5555), &[0x55; 8]).unwrap(), 128),
            (Frame::rtr(Identifier::Sff(0x555), 8).unwrap(), 44),
            (Frame::fd(Identifier::Sff(0x555), &[], 0).unwrap(), 22 + 4 + 17 + 6 + 10),
            (Frame::fd(Identifier::Sff(0x555), &[0x55; 64], 0).unwrap(), 22 + 512 + 4 + 21 + 7 + 10),
        ] {
            let bits = frame.bits();
            assert_eq!(bits.total() - bits.stuff, unstuffed, "{frame}");
        }
    }

    #[test]
    fn stuff_bits_stay_within_the_bound_of_schedulability_analysis() {
        // Davis et al. 2007, Controller Area Network (CAN) schedulability analysis: (g + 8 n - 1) / 4 with g = 34
        // (SFF) or 54 (EFF) bits that are subject to stuffing. 8 bytes: 24 and 29, with interframe space 135 and 160.
        let mut most = 0;
        for id in 0..0x800 {
            for byte in [0x00, 0xff, 0x0f, 0xf0, 0x1e, 0xe1, 0x3c, 0xc3, 0x78, 0x87] {
                let bits = sff(id, &[byte; 8]).bits();
                most = most.max(bits.stuff);
                assert!(bits.stuff <= 24 && bits.nominal + INTERFRAME_BITS <= 135);
            }
        }
        assert!((20..=24).contains(&most), "{most}");
    }

    #[test]
    fn two_random_bytes_in_a_standard_frame_take_65_bits_on_average() {
        let (mut sum, mut count) = (0, 0);
        for id in (0..0x800).step_by(7) {
            for data in (0..0x1_0000u32).step_by(101) {
                let bits = sff(id, &(data as u16).to_be_bytes()).bits();
                sum += u64::from(bits.nominal + INTERFRAME_BITS);
                count += 1;
            }
        }
        let hundredths = sum * 100 / count;
        assert!((6450..6550).contains(&hundredths), "{hundredths}");
    }

    #[test]
    fn a_stuff_bit_follows_even_the_last_bit_of_a_classic_crc() {
        let frame = (0..0x800).map(|id| sff(id, &[])).find(naive::crc_ends_in_a_stuff_bit);
        let frame = frame.expect("one of 2048 identifiers has such a CRC");
        assert_eq!(frame.bits(), naive::bits(&frame));
    }

    #[test]
    fn durations_are_in_nanoseconds_of_each_phase() {
        let frame = sff(0x555, &[0x55; 8]);
        let bits = u64::from(frame.bits().nominal);
        assert_eq!(frame.duration_ns(BitRate::classic(1_000_000)), bits * 1000);
        assert_eq!(frame.duration_with_interframe_ns(BitRate::classic(125_000)), (bits + 3) * 8000);
        assert_eq!(frame.duration_ns(BitRate::classic(83_333)), (bits * 1_000_000_000 + 41_666) / 83_333);

        let fast = Frame::fd(Identifier::Sff(0x555), &[0x55; 64], BRS).unwrap();
        let FrameBits { nominal, data, .. } = fast.bits();
        let rate = BitRate { nominal: 500_000, data: 2_000_000 };
        assert_eq!(fast.duration_ns(rate), u64::from(nominal) * 2000 + u64::from(data) * 500);
        assert_eq!(fast.duration_ns(BitRate::classic(500_000)), u64::from(nominal + data) * 2000);
        let slow = Frame::fd(Identifier::Sff(0x555), &[0x55; 64], 0).unwrap();
        assert_eq!(slow.bits().data, 0);
    }

    #[test]
    fn an_error_frame_takes_no_time_on_the_wire() {
        let mut frame = Frame::default();
        (frame.can_id, frame.len) = (crate::frame::ERR_FLAG | 4, 8);
        assert_eq!(frame.bits(), FrameBits::default());
        assert_eq!(frame.duration_with_interframe_ns(BitRate::classic(1_000_000)), 0);
    }
}

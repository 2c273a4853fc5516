//! The checksums that a rule writes, as can-gw's (linux/can/gw.h; `net/can/gw.c`). Their positions are computed in advance
//! for each length of a frame. A checksum within one word of the payload, as in every classic frame, is computed from the
//! whole word; all others byte by byte.

use canter_io::{
    Frame,
    netlink::can_gw::{Crc8, Profile, Span, Xor},
};

/// How a checksum is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Not at all: one of its positions is before the payload.
    None,
    /// From the whole word.
    Word,
    /// From the whole word, then the bytes that a CRC's profile adds.
    Profiled,
    /// Byte by byte.
    Bytes,
    /// Byte by byte, from the last byte to the first.
    Backwards,
}

/// The bytes that a checksum covers in frames of one length, and the position of the result.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// The covered bytes of a word that is moved up by `shift` bits, so that the last covered byte is on top.
    keep: u64,
    /// The checksum's first value, where the first of them is.
    flip: u64,
    shift: u8,
    /// The index of the word in the payload.
    at: u8,
    way: Way,
    result: u8,
    low: u8,
    high: u8,
}

impl Place {
    const LEN_MAX: u8 = 64;
    const NOWHERE: Self =
        Self { keep: 0, flip: 0, shift: 0, at: 0, way: Way::None, result: 0, low: 0, high: 0 };

    /// Negative positions count from the end of the frame. `at_once` returns how to compute the checksum of the bytes
    /// `from`…`to` of one word from the whole word, if that is possible.
    fn new(span: Span, len: u8, first: u8, at_once: impl Fn(u8, u8) -> Option<Way>) -> Self {
        let at = |place: i8| {
            let from_start = i16::from(place) + if place < 0 { i16::from(len) } else { 0 };
            u8::try_from(from_start).ok().filter(|&at| at < Self::LEN_MAX)
        };
        let (Some(from), Some(to), Some(result)) = (at(span.from), at(span.to), at(span.result)) else {
            return Self::NOWHERE;
        };
        let (low, high) = (from.min(to), from.max(to));
        let word_way = if low / 8 == high / 8 { at_once(from, to) } else { None };
        let way = word_way.unwrap_or(if from <= to { Way::Bytes } else { Way::Backwards });
        let shift = 8 * (7 - high % 8);
        let begin = (shift + 8 * (low % 8)) % 64; // below 64 where all is in one word
        let (keep, flip) = (u64::MAX << begin, u64::from(first) << begin);
        Self { keep, flip, shift, at: low / 8, way, result, low, high }
    }

    /// The covered bytes in their order, the last one on top and the first one combined with the first value; below them 0.
    #[inline]
    fn word(&self, frame: &Frame) -> u64 {
        let (words, _) = frame.data.as_chunks();
        let word = u64::from_le_bytes(words[usize::from(self.at % 8)]);
        (word << (self.shift % 64)) & self.keep ^ self.flip
    }

    /// All covered bytes, in order.
    fn fold(&self, frame: &Frame, first: u8, next: impl Fn(u8, u8) -> u8) -> u8 {
        let covered = frame.data[usize::from(self.low)..=usize::from(self.high)].iter();
        let next = |sum, byte: &u8| next(sum, *byte);
        if self.way == Way::Backwards { covered.rev().fold(first, next) } else { covered.fold(first, next) }
    }

    #[inline]
    fn write(&self, frame: &mut Frame, sum: u8) {
        frame.data[usize::from(self.result % Self::LEN_MAX)] = sum;
    }
}

/// An entry for each length of a frame of one kind.
#[derive(Clone, Debug)]
struct Places(Box<[Place]>);

impl Places {
    fn new(span: Span, first: u8, fd: bool, at_once: impl Fn(u8, u8) -> Option<Way>) -> Self {
        let len_max = if fd { Place::LEN_MAX } else { 8 };
        Self((0..=len_max).map(|len| Place::new(span, len, first, &at_once)).collect())
    }

    #[inline]
    fn place(&self, frame: &Frame) -> Option<&Place> {
        self.0.get(usize::from(frame.len))
    }
}

/// An exclusive or of bytes, prepared for the frame path.
#[derive(Clone, Debug)]
pub struct WrittenXor {
    places: Places,
    first: u8,
}

impl WrittenXor {
    pub fn new(xor: Xor, fd: bool) -> Self {
        Self { places: Places::new(xor.span, xor.init, fd, |_, _| Some(Way::Word)), first: xor.init }
    }

    #[inline]
    pub fn write(&self, frame: &mut Frame) {
        let Some(place) = self.places.place(frame) else { return };
        if place.way != Way::Word {
            return self.write_bytewise(place, frame);
        }
        let sum = place.word(frame);
        let sum = sum ^ sum >> 32;
        let sum = sum ^ sum >> 16;
        place.write(frame, (sum ^ sum >> 8) as u8);
    }

    #[inline(never)] // keeps the path of frames without a checksum short
    fn write_bytewise(&self, place: &Place, frame: &mut Frame) {
        if place.way != Way::None {
            place.write(frame, place.fold(frame, self.first, |sum, byte| sum ^ byte));
        }
    }
}

/// Number of bytes of a CRC that are computed at once: those of a classic frame except the result.
const SLICES: usize = 7;

/// A CRC of eight bits, prepared for the frame path.
#[derive(Clone, Debug)]
pub struct WrittenCrc8 {
    /// The contribution of each byte of a word except the lowest; the final value is included in the top byte.
    slices: [[u8; 256]; SLICES],
    places: Places,
    crc8: Crc8,
}

impl WrittenCrc8 {
    pub fn new(crc8: Crc8, fd: bool) -> Self {
        let has_profile = crc8.profile != Profile::None;
        let slices = slices(&crc8.table, has_profile, crc8.final_xor);
        let way = if has_profile { Way::Profiled } else { Way::Word };
        let fits = |from: u8, to: u8| slices.is_some() && from <= to && usize::from(to - from) < SLICES;
        let places = Places::new(crc8.span, crc8.init, fd, |from, to| fits(from, to).then_some(way));
        Self { slices: slices.unwrap_or([[0; 256]; SLICES]), places, crc8 }
    }

    #[inline]
    pub fn write(&self, frame: &mut Frame) {
        let Some(place) = self.places.place(frame) else { return };
        if place.way != Way::Word {
            return self.write_otherwise(place, frame);
        }
        place.write(frame, self.sum(place.word(frame)));
    }

    #[inline]
    fn sum(&self, word: u64) -> u8 {
        let [_, bytes @ ..] = word.to_le_bytes();
        self.slices.iter().zip(bytes).fold(0, |crc, (slice, byte)| crc ^ slice[usize::from(byte)])
    }

    #[inline(never)] // keeps the path of frames without a checksum short
    fn write_otherwise(&self, place: &Place, frame: &mut Frame) {
        let crc = match place.way {
            Way::None => return,
            Way::Word | Way::Profiled => self.sum(place.word(frame)) ^ self.with_profile(0, frame),
            Way::Bytes | Way::Backwards => {
                let crc = place.fold(frame, self.crc8.init, |crc, byte| self.next(crc, byte));
                self.with_profile(crc, frame) ^ self.crc8.final_xor
            }
        };
        place.write(frame, crc);
    }

    fn with_profile(&self, crc: u8, frame: &Frame) -> u8 {
        match &self.crc8.profile {
            Profile::None => crc,
            Profile::Value(value) => self.next(crc, *value),
            Profile::Counter(values) => self.next(crc, values[usize::from(frame.data[1] & 15)]),
            Profile::Identifier => self.next(crc, frame.can_id as u8 ^ (frame.can_id >> 8) as u8),
        }
    }

    fn next(&self, crc: u8, byte: u8) -> u8 {
        self.crc8.table[usize::from(crc ^ byte)]
    }
}

/// The contribution of each byte of a word. The last byte passes through the table once (twice with a profile, which
/// appends a byte), the byte before it once more, and so on. The contributions add up if the table of a sum is the sum of
/// the tables, as for every polynomial; otherwise `None`.
fn slices(table: &[u8; 256], has_profile: bool, final_xor: u8) -> Option<[[u8; 256]; SLICES]> {
    let bits = (0..8).map(|bit| 1 << bit);
    let bits_sum = |at: usize| bits.clone().filter(|bit| at & bit != 0).fold(0, |sum, bit| sum ^ table[bit]);
    if !(0..256).all(|at| table[at] == bits_sum(at)) {
        return None;
    }
    let once_more = |slice: [u8; 256]| slice.map(|crc| table[usize::from(crc)]);
    let mut slices = [*table; SLICES];
    if has_profile {
        slices[SLICES - 1] = once_more(*table);
    }
    for at in (0..SLICES - 1).rev() {
        slices[at] = once_more(slices[at + 1]);
    }
    slices[SLICES - 1] = slices[SLICES - 1].map(|crc| crc ^ final_xor);
    Some(slices)
}

#[cfg(test)]
mod tests {
    use super::super::{Change, edit::tests::changed};
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn checksums_cover_their_span_in_either_direction_and_from_either_end() {
        let xor = |from, to, result, init| Change {
            xor_checksum: Some(Xor { span: Span::new(from, to, result), init }),
            ..Change::default()
        };
        assert_eq!(changed(&xor(0, 2, 3, 0x0f), "123#11223300"), Some("123#1122330F".into()));
        assert_eq!(changed(&xor(0, -2, -1, 0), "123#112200"), Some("123#112233".into()));
        assert_eq!(
            changed(&xor(0, -5, -1, 0), "123#112200"),
            Some("123#112200".into()),
            "positions outside the payload: the frame is unchanged"
        );
        // CRC-8/SAE-J1850 of "1234567" by the reference implementation of the polynomial, bit by bit.
        let crc8 = |from, to, profile| Change {
            crc8: Some(Crc8 {
                init: 0xff,
                final_xor: 0xff,
                profile,
                ..Crc8::with_polynomial(0x1d, Span::new(from, to, 7))
            }),
            ..Change::default()
        };
        let bitwise = |bytes: &[u8]| {
            let bit = |crc: u8| (crc << 1) ^ if crc & 0x80 != 0 { 0x1d } else { 0 };
            bytes.iter().fold(0xff, |crc, byte| (0..8).fold(crc ^ byte, |crc, _| bit(crc))) ^ 0xff
        };
        let text = "123#3132333435363700";
        let expected = |bytes: &[u8]| Some(format!("{}{:02X}", &text[..18], bitwise(bytes)));
        assert_eq!(changed(&crc8(0, 6, Profile::None), text), expected(b"1234567"));
        assert_eq!(changed(&crc8(6, 0, Profile::None), text), expected(b"7654321"));
        assert_eq!(changed(&crc8(0, 6, Profile::Value(b'8')), text), expected(b"12345678"));
        let mut values = [0; 16];
        values[2] = b'x'; // the low half of the second byte, 0x32
        assert_eq!(changed(&crc8(0, 6, Profile::Counter(values)), text), expected(b"1234567x"));
        assert_eq!(changed(&crc8(0, 6, Profile::Identifier), text), expected(b"1234567\x22"));
    }

    /// The positions and the bytes of a checksum one by one, as gw.h describes them.
    fn slowly(span: Span, frame: &Frame, init: u8, next: impl Fn(u8, u8) -> u8) -> Option<(usize, u8)> {
        let place = |place: i8| {
            let place = if place < 0 { i16::from(frame.len) + i16::from(place) } else { i16::from(place) };
            usize::try_from(place).ok().filter(|&place| place < 64)
        };
        let (from, to, result) = (place(span.from)?, place(span.to)?, place(span.result)?);
        let (mut sum, mut at) = (init, from);
        loop {
            sum = next(sum, frame.data[at]);
            if at == to {
                return Some((result, sum));
            }
            at = if from < to { at + 1 } else { at - 1 };
        }
    }

    fn profile() -> impl Strategy<Value = Profile> {
        prop_oneof![
            Just(Profile::None),
            any::<u8>().prop_map(Profile::Value),
            any::<[u8; 16]>().prop_map(Profile::Counter),
            Just(Profile::Identifier),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn a_whole_word_gives_the_same_checksum_as_single_bytes_and_nothing_else_changes(
            places in [-66i8..67, -66i8..67, -66i8..67], near in any::<bool>(), len in 0u8..=64,
            bytes in any::<[u64; 8]>(),
            [init, odd, final_xor] in any::<[u8; 3]>(), profile in profile(), can_id in any::<u32>(),
        ) {
            // Half of the cases within eight bytes, as classic frames are.
            let places = if near { places.map(|place| place % 8) } else { places };
            let [from, to, result] = places;
            let span = Span::new(from, to, result);
            let mut frame: Frame = "123##0".parse().unwrap();
            (frame.can_id, frame.len) = (can_id, len);
            for (part, word) in frame.data.chunks_exact_mut(8).zip(bytes) {
                part.copy_from_slice(&word.to_ne_bytes());
            }
            let mut crc8 = Crc8 { init, final_xor, profile, ..Crc8::with_polynomial(7, span) };
            crc8.table[usize::from(odd)] ^= odd & 1; // half of the tables are no polynomial's
            let written = |sum: Option<(usize, u8)>| {
                let mut wanted = frame;
                if let Some((at, sum)) = sum {
                    wanted.data[at] = sum;
                }
                wanted
            };
            let expected_xor = written(slowly(span, &frame, init, |sum, byte| sum ^ byte));
            let next = |crc: u8, byte: u8| crc8.table[usize::from(crc ^ byte)];
            let more = match profile {
                Profile::None => None,
                Profile::Value(value) => Some(value),
                Profile::Counter(values) => Some(values[usize::from(frame.data[1] % 16)]),
                Profile::Identifier => Some((can_id & 0xff ^ can_id >> 8 & 0xff) as u8),
            };
            let expected_crc = slowly(span, &frame, init, next)
                .map(|(at, crc)| (at, more.map_or(crc, |byte| next(crc, byte)) ^ final_xor));
            let expected_crc = written(expected_crc);
            let (mut with_xor, mut with_crc) = (frame, frame);
            WrittenXor::new(Xor { span, init }, true).write(&mut with_xor);
            WrittenCrc8::new(crc8, true).write(&mut with_crc);
            prop_assert_eq!(with_xor.data, expected_xor.data);
            prop_assert_eq!(with_crc.data, expected_crc.data);
        }
    }
}

//! The checksums that a rule writes, as can-gw's (linux/can/gw.h; `net/can/gw.c`). Where one begins, ends and goes is known
//! for each length of a frame before the first one comes. What is within one word of the payload, as all of a classic
//! frame is, is summed up at once; the rest byte by byte.

use canter_io::{
    Frame,
    netlink::can_gw::{Crc8, Profile, Span, Xor},
};

/// What a checksum covers in frames of one length, and where it goes.
#[derive(Clone, Copy, Debug)]
struct Place {
    low: u8,
    high: u8,
    /// The span ends before it begins: it is read from its high end.
    backwards: bool,
    result: u8,
    /// Where all that is covered is in one.
    word: Option<Word>,
}

/// Makes of a word of the payload the covered bytes in their order, the last one on top and the first one combined with
/// the checksum's first value; below them 0.
#[derive(Clone, Copy, Debug)]
struct Word {
    at: u8,
    shift: u8,
    keep: u64,
    flip: u64,
}

impl Place {
    const LEN_MAX: u8 = 64;

    /// Negative places count from the end of the frame; `None` when one of them is in front of the payload, which
    /// leaves the frame without a checksum.
    fn of(span: Span, len: u8, first: u8) -> Option<Self> {
        let at = |place: i8| {
            let from_start = i16::from(place) + if place < 0 { i16::from(len) } else { 0 };
            u8::try_from(from_start).ok().filter(|&at| at < Self::LEN_MAX)
        };
        let (from, to, result) = (at(span.from)?, at(span.to)?, at(span.result)?);
        let (low, high, backwards) = (from.min(to), from.max(to), from > to);
        let word = (low / 8 == high / 8).then(|| Word::of(low % 8, high % 8, backwards, low / 8, first));
        Some(Self { low, high, backwards, result, word })
    }

    /// All covered bytes, one after the other.
    fn fold(&self, frame: &Frame, first: u8, next: impl Fn(u8, u8) -> u8) -> u8 {
        let covered = frame.data[usize::from(self.low)..=usize::from(self.high)].iter();
        let next = |sum, byte: &u8| next(sum, *byte);
        if self.backwards { covered.rev().fold(first, next) } else { covered.fold(first, next) }
    }

    #[inline]
    fn write(&self, frame: &mut Frame, sum: u8) {
        frame.data[usize::from(self.result % Self::LEN_MAX)] = sum;
    }
}

impl Word {
    fn of(low: u8, high: u8, backwards: bool, at: u8, first: u8) -> Self {
        let (low, high) = if backwards { (7 - high, 7 - low) } else { (low, high) };
        let shift = 8 * (7 - high);
        let begin = shift + 8 * low;
        Self { at, shift, keep: u64::MAX << begin, flip: u64::from(first) << begin }
    }

    #[inline]
    fn covered(self, frame: &Frame, backwards: bool) -> u64 {
        let (words, _) = frame.data.as_chunks();
        let word = u64::from_le_bytes(words[usize::from(self.at % 8)]);
        let word = if backwards { word.swap_bytes() } else { word };
        (word << (self.shift % 64)) & self.keep ^ self.flip
    }
}

/// A place for each length of a frame of one kind.
#[derive(Clone, Debug)]
struct Places(Box<[Option<Place>]>);

impl Places {
    fn of(span: Span, first: u8, fd: bool) -> Self {
        let len_max = if fd { Place::LEN_MAX } else { 8 };
        Self((0..=len_max).map(|len| Place::of(span, len, first)).collect())
    }

    #[inline]
    fn of_frame(&self, frame: &Frame) -> Option<&Place> {
        self.0.get(usize::from(frame.len))?.as_ref()
    }
}

/// An exclusive or of bytes, made ready.
#[derive(Clone, Debug)]
pub struct WrittenXor {
    places: Places,
    first: u8,
}

impl WrittenXor {
    pub fn new(xor: Xor, fd: bool) -> Self {
        Self { places: Places::of(xor.span, xor.init, fd), first: xor.init }
    }

    #[inline]
    pub fn write(&self, frame: &mut Frame) {
        let Some(place) = self.places.of_frame(frame) else { return };
        let sum = match place.word {
            Some(word) => {
                let sum = word.covered(frame, place.backwards);
                let sum = sum ^ sum >> 32;
                let sum = sum ^ sum >> 16;
                (sum ^ sum >> 8) as u8
            }
            None => place.fold(frame, self.first, |sum, byte| sum ^ byte),
        };
        place.write(frame, sum);
    }
}

/// A CRC of eight bits, made ready.
#[derive(Clone, Debug)]
pub struct WrittenCrc8 {
    places: Places,
    crc8: Crc8,
    /// What each byte of a word adds to the CRC of its eight; `None` for a table that is no polynomial's, where bytes do
    /// not add up.
    slices: Option<Box<[[u8; 256]; 8]>>,
}

impl WrittenCrc8 {
    pub fn new(crc8: Crc8, fd: bool) -> Self {
        Self { places: Places::of(crc8.span, crc8.init, fd), crc8, slices: slices(&crc8.table) }
    }

    #[inline]
    pub fn write(&self, frame: &mut Frame) {
        let Some(place) = self.places.of_frame(frame) else { return };
        let crc = match (&self.slices, place.word) {
            (Some(slices), Some(word)) => {
                let bytes = word.covered(frame, place.backwards).to_le_bytes();
                slices.iter().zip(bytes).fold(0, |crc, (slice, byte)| crc ^ slice[usize::from(byte)])
            }
            _ => place.fold(frame, self.crc8.init, |crc, byte| self.next(crc, byte)),
        };
        let crc = if self.crc8.profile == Profile::None { crc } else { self.with_profile(crc, frame) };
        place.write(frame, crc ^ self.crc8.final_xor);
    }

    #[inline(never)] // the frames of the other rules need not choose
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

/// The last byte of a word goes through the table once, the one before twice, and so on. They add up where the table of
/// a sum is the sum of the tables.
fn slices(table: &[u8; 256]) -> Option<Box<[[u8; 256]; 8]>> {
    let bits = (0..8).map(|bit| 1 << bit);
    let of_bits = |at: usize| bits.clone().filter(|bit| at & bit != 0).fold(0, |sum, bit| sum ^ table[bit]);
    if !(0..256).all(|at| table[at] == of_bits(at)) {
        return None;
    }
    let mut slices = Box::new([*table; 8]);
    for at in (0..7).rev() {
        slices[at] = slices[at + 1].map(|crc| table[usize::from(crc)]);
    }
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
            "outside: left alone"
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

    /// The places and the bytes of a checksum one by one, as gw.h words them.
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

    proptest! {
        #[test]
        fn a_word_at_once_sums_up_what_single_bytes_do_and_nothing_else_changes(
            places in [-66i8..67, -66i8..67, -66i8..67], near in any::<bool>(), len in 0u8..=64,
            bytes in any::<[u64; 8]>(),
            [init, odd] in any::<[u8; 2]>(),
        ) {
            // Half of the cases within eight bytes, as classic frames are.
            let places = if near { places.map(|place| place % 8) } else { places };
            let [from, to, result] = places;
            let span = Span::new(from, to, result);
            let mut frame: Frame = "123##0".parse().unwrap();
            frame.len = len;
            for (part, word) in frame.data.chunks_exact_mut(8).zip(bytes) {
                part.copy_from_slice(&word.to_ne_bytes());
            }
            let mut crc8 = Crc8 { init, ..Crc8::with_polynomial(7, span) };
            crc8.table[usize::from(odd)] ^= odd & 1; // half of the tables are no polynomial's
            let with = |sum: Option<(usize, u8)>| {
                let mut wanted = frame;
                if let Some((at, sum)) = sum {
                    wanted.data[at] = sum;
                }
                wanted
            };
            let of_xor = with(slowly(span, &frame, init, |sum, byte| sum ^ byte));
            let of_crc = with(slowly(span, &frame, init, |crc, byte| crc8.table[usize::from(crc ^ byte)]));
            let (mut by_xor, mut by_crc) = (frame, frame);
            WrittenXor::new(Xor { span, init }, true).write(&mut by_xor);
            WrittenCrc8::new(crc8, true).write(&mut by_crc);
            prop_assert_eq!(by_xor.data, of_xor.data);
            prop_assert_eq!(by_crc.data, of_crc.data);
        }
    }
}

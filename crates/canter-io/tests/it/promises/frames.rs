//! Frames of every shape that a link carries, and the random numbers that choose among them.

use canter_io::frame::{BRS, EFF_FLAG, ERR_FLAG, ESI, RTR_FLAG, len_of_dlc};
use canter_io::{Frame, Identifier};

use super::links::Link;

/// Numbers that repeat with their seed (xorshift64*).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() >> 33) as usize % end
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next() as u8).collect()
    }
}

/// A data frame that carries its number.
pub fn numbered(number: usize) -> Frame {
    Frame::classic(Identifier::Sff(0x100), &(number as u32).to_be_bytes()).unwrap()
}

/// A frame of this identifier and these flags; of an error frame the eight bytes that it always has.
pub fn without_data(can_id: u32) -> Frame {
    let mut frame = Frame::default();
    frame.can_id = can_id;
    frame.len = if can_id & ERR_FLAG == 0 { 0 } else { 8 };
    frame
}

/// Numbered frames, on an FD link every third an FD frame.
pub fn sequence(link: &Link, count: usize) -> Vec<Frame> {
    let fd = |number: usize| {
        let mut data = [0x55; 12];
        data[..4].copy_from_slice(&(number as u32).to_be_bytes());
        Frame::fd(Identifier::Eff(0x1234_5678), &data, BRS).unwrap()
    };
    (0..count)
        .map(|number| if link.fd() && number % 3 == 2 { fd(number) } else { numbered(number) })
        .collect()
}

/// One frame of every shape that the link carries, in an order that mixes them.
pub fn every_shape(link: &Link) -> Vec<Frame> {
    let mut random = Random::new(0xca47e5);
    let mut shapes = Vec::new();
    for id in [0, 1, 0x123, 0x7ff].map(Identifier::Sff).into_iter().chain([
        Identifier::Eff(0),
        Identifier::Eff(0x123),
        Identifier::Eff(0x0123_4567),
        Identifier::Eff(0x1fff_ffff),
    ]) {
        shapes.push(Frame::rtr(id, 0).unwrap());
        for len in 0..=8 {
            shapes.push(Frame::classic(id, &random.bytes(len)).unwrap());
            if link.carries_rtr_length() {
                shapes.push(Frame::rtr(id, len as u8).unwrap());
            }
        }
        for len8_dlc in 9..=15 {
            let mut frame = Frame::classic(id, &random.bytes(8)).unwrap();
            frame.len8_dlc = len8_dlc;
            if link.carries_len8_dlc() {
                shapes.push(frame);
            }
        }
        for flags in [0, BRS, ESI, BRS | ESI] {
            if link.fd() && (flags & ESI == 0 || link.carries_esi()) {
                shapes
                    .extend((0..16).map(|dlc| Frame::fd(id, &random.bytes(len_of_dlc(dlc)), flags).unwrap()));
            }
        }
    }
    for at in (1..shapes.len()).rev() {
        shapes.swap(at, random.below(at + 1));
    }
    shapes
}

/// Identifiers that filters like to tell apart: few, in both widths, data, RTR and, where the link carries them,
/// error frames.
pub fn of_few_identifiers(link: &Link, random: &mut Random, count: usize) -> Vec<Frame> {
    let frame = |random: &mut Random| {
        let id = random.pick(&[0x123, 0x124, 0x100, 0x023, 0x7ff, 0]);
        let error = if link.carries_error_frames() { ERR_FLAG } else { 0 };
        let can_id = match random.below(8) {
            0..=2 => id,
            3..=4 => id | EFF_FLAG,
            5 => 0x1234_5678 | EFF_FLAG,
            6 => id | RTR_FLAG,
            _ => error | random.pick(&[0x1, 0x2, 0x4, 0x40, 0x80, 0x6]),
        };
        without_data(can_id)
    };
    (0..count).map(|_| frame(random)).collect()
}

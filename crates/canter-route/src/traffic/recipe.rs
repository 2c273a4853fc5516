//! Frames by cangen's rules: a recipe describes their content, a [`Maker`] makes them.

use super::{
    content::{Data, Ids, Lengths, fd_len},
    random::Random,
};
use canter_io::{
    Frame,
    frame::{BRS, EFF_FLAG, EFF_MASK, ESI, FDF, RTR_FLAG, SFF_MASK, len_of_dlc},
};

/// The content of frames.
#[derive(Clone, Copy, Debug)]
pub struct Recipe {
    pub ids: Ids,
    pub extended: bool,
    pub lengths: Lengths,
    pub data: Data,
    pub fd: bool,
    /// FD: [`BRS`] and [`ESI`].
    pub flags: u8,
    pub rtr: bool,
    /// Classic frames of 8 bytes with a DLC of 9…15.
    pub len8_dlc: bool,
    /// Random kinds of frames: standard and extended, classic and FD if the interface supports it, with and without BRS
    /// and ESI; a quarter of the classic frames are RTR.
    pub mix: bool,
}

impl Recipe {
    /// Why no frame can have this content.
    pub fn fault(&self) -> Option<String> {
        match (self.ids, self.lengths) {
            (Ids::Fixed(id), _) if id > SFF_MASK && !self.extended && !self.mix => {
                Some(format!("identifier {id:X}: more than 11 bits (-e makes it extended)"))
            }
            (_, Lengths::Fixed(bytes @ 9..)) if !(self.fd || self.mix || self.len8_dlc && bytes <= 15) => {
                Some(format!("length {bytes}: a classic frame has 0…8 bytes (-f: FD, -8: a DLC of 9…15)"))
            }
            _ if self.rtr && self.fd => Some("RTR: FD has no remote frames".to_owned()),
            _ => None,
        }
    }
}

/// Makes frames.
#[derive(Clone, Debug)]
pub struct Maker {
    recipe: Recipe,
    random: Random,
    /// Number of frames made so far.
    made: u64,
}

impl Maker {
    pub fn new(recipe: Recipe, seed: u64) -> Self {
        Self { recipe, random: Random(seed), made: 0 }
    }

    /// The next frame.
    pub fn make(&mut self) -> Frame {
        let Recipe { mut extended, mut fd, mut flags, mut rtr, mix, .. } = self.recipe;
        if mix {
            let chance = self.random.next();
            extended = chance & 1 != 0;
            fd = fd && chance & 2 != 0;
            flags = if chance & 4 != 0 { BRS } else { 0 } | if chance & 8 != 0 { ESI } else { 0 };
            rtr = !fd && chance & 0x30 == 0x30;
        }
        let mut frame = Frame::default();
        let id = self.id();
        frame.can_id = if extended { id & EFF_MASK | EFF_FLAG } else { id & SFF_MASK };
        if fd {
            frame.flags = flags | FDF;
        } else if rtr {
            frame.can_id |= RTR_FLAG;
        }
        (frame.len, frame.len8_dlc) = self.length(fd);
        if self.recipe.data == Data::Increment && frame.len == 0 {
            frame.len = 1;
        }
        if !rtr {
            self.fill(&mut frame);
        }
        self.made += 1;
        frame
    }

    fn id(&mut self) -> u32 {
        match self.recipe.ids {
            Ids::Random => self.random.next() as u32,
            Ids::Even => self.random.next() as u32 & !1,
            Ids::Odd => self.random.next() as u32 | 1,
            Ids::Increment => self.made as u32,
            Ids::Fixed(id) => id,
        }
    }

    /// The length in bytes, and a DLC of 9…15 for a classic frame that is sent with one, otherwise 0.
    fn length(&mut self, fd: bool) -> (u8, u8) {
        let dlc = match self.recipe.lengths {
            Lengths::Random => self.random.below(16) as u8,
            Lengths::Increment if (fd && !self.recipe.mix) || self.recipe.len8_dlc => (self.made % 16) as u8,
            Lengths::Increment => (self.made % 9) as u8,
            Lengths::Fixed(bytes) if fd => return (fd_len(bytes), 0),
            Lengths::Fixed(bytes) => bytes,
        };
        match dlc {
            dlc if fd => (len_of_dlc(dlc) as u8, 0),
            dlc @ 9..=15 if self.recipe.len8_dlc => (8, dlc),
            dlc => (dlc.min(8), 0),
        }
    }

    fn fill(&mut self, frame: &mut Frame) {
        let data = &mut frame.data[..usize::from(frame.len)];
        match self.recipe.data {
            Data::Random => {
                data.chunks_mut(8).for_each(|part| {
                    part.copy_from_slice(&self.random.next().to_le_bytes()[..part.len()]);
                });
            }
            Data::Increment => {
                data.iter_mut().zip(self.made.to_le_bytes()).for_each(|(byte, counter)| *byte = counter);
            }
            Data::Fixed { bytes, random } => {
                for (at, byte) in data.iter_mut().enumerate() {
                    let mask = random[at];
                    *byte = bytes[at] | if mask == 0 { 0 } else { self.random.next() as u8 & mask };
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recipe(ids: &str, lengths: &str, data: &str) -> Recipe {
        Recipe {
            ids: ids.parse().unwrap(),
            lengths: lengths.parse().unwrap(),
            data: data.parse().unwrap(),
            extended: false,
            fd: false,
            flags: 0,
            rtr: false,
            len8_dlc: false,
            mix: false,
        }
    }

    fn made(recipe: Recipe, count: usize) -> Vec<String> {
        assert_eq!(recipe.fault(), None);
        let mut maker = Maker::new(recipe, 1);
        (0..count).map(|_| maker.make().to_string()).collect()
    }

    /// The frames of cangen 2020.11 with the same options.
    #[test]
    fn frames_without_random_parts_are_those_of_cangen() {
        let plain = recipe("42A", "1", "i");
        assert_eq!(made(plain, 3), ["42A#00", "42A#01", "42A#02"]);
        let lengths = made(recipe("123", "i", "11223344DEADBEEF"), 11);
        assert_eq!(lengths[..3], ["123#", "123#11", "123#1122"]);
        assert_eq!(lengths[8..], ["123#11223344DEADBEEF", "123#", "123#11"]);
        assert_eq!(made(recipe("i", "0", "i"), 2), ["000#00", "001#01"], "a counter has at least a byte");
        let extended = Recipe { extended: true, ..recipe("12345678", "2", "AB") };
        assert_eq!(made(extended, 1), ["12345678#AB00"]);
        let fd = Recipe { fd: true, flags: BRS, ..recipe("123", "9", "AA") };
        assert_eq!(made(fd, 1), [format!("123##5AA{}", "00".repeat(11))]);
        let growing = Recipe { fd: true, ..recipe("123", "i", "r") };
        let mut maker = Maker::new(growing, 1);
        assert_eq!(
            (0..17).map(|_| maker.make().len).collect::<Vec<_>>()[8..],
            [8, 12, 16, 20, 24, 32, 48, 64, 0]
        );
        let rtr = Recipe { rtr: true, ..recipe("123", "5", "r") };
        assert_eq!(made(rtr, 1), ["123#R5"]);
        let long = Recipe { len8_dlc: true, ..recipe("123", "12", "01") };
        assert_eq!(made(long, 1), ["123#0100000000000000_C"]);
    }

    #[test]
    fn identifiers_wrap_at_their_width() {
        let mut maker = Maker { made: 0x7ff, ..Maker::new(recipe("i", "0", "r"), 1) };
        assert_eq!([maker.make(), maker.make()].map(|frame| frame.can_id), [0x7ff, 0]);
    }

    #[test]
    fn even_and_odd_identifiers_and_random_digits_keep_to_their_places() {
        for (ids, odd) in [("e", 0), ("o", 1)] {
            let mut maker = Maker::new(recipe(ids, "8", "1x2233445566x788"), 7);
            for _ in 0..200 {
                let frame = maker.make();
                assert_eq!(frame.can_id & 1, odd);
                assert_eq!((frame.data[0] >> 4, frame.data[6] & 15, frame.data[7]), (1, 7, 0x88));
            }
        }
        let mut maker = Maker::new(recipe("0", "1", "xx"), 7);
        let seen: std::collections::BTreeSet<u8> = (0..4000).map(|_| maker.make().data[0]).collect();
        assert_eq!(seen.len(), 256);
    }

    #[test]
    fn a_mix_has_every_kind_that_the_interface_carries() {
        for fd in [false, true] {
            let mut maker = Maker::new(Recipe { mix: true, fd, ..recipe("r", "r", "r") }, 3);
            let frames: Vec<Frame> = (0..400).map(|_| maker.make()).collect();
            let share = |kind: fn(&Frame) -> bool| frames.iter().filter(|&frame| kind(frame)).count();
            assert!((150..250).contains(&share(Frame::is_eff)));
            assert_eq!((150..250).contains(&share(Frame::is_fd)), fd);
            assert!((20..140).contains(&share(Frame::is_rtr)));
            for frame in frames {
                let text = frame.to_string();
                assert_eq!(text.parse::<Frame>().unwrap(), frame, "{text} must be a valid frame");
            }
        }
    }

    #[test]
    fn impossible_frames_are_refused_with_the_way_out() {
        for (recipe, expected) in [
            (recipe("800", "8", "r"), "identifier 800: more than 11 bits (-e makes it extended)"),
            (recipe("123", "9", "r"), "length 9: a classic frame has 0…8 bytes (-f: FD, -8: a DLC of 9…15)"),
            (Recipe { rtr: true, fd: true, ..recipe("123", "8", "r") }, "RTR: FD has no remote frames"),
        ] {
            assert_eq!(recipe.fault().as_deref(), Some(expected));
        }
    }
}

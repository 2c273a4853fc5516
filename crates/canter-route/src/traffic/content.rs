//! cangen's notation for the content of frames: `r` random, `i` increment, otherwise fixed: `-I 42A`, `-L 8`, `-D 11xx33`.

use canter_io::frame::{EFF_MASK, dlc_of_len};
use std::str::FromStr;

/// How identifiers are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ids {
    Random,
    /// Random, but even.
    Even,
    /// Random, but odd.
    Odd,
    /// From 0 up.
    Increment,
    Fixed(u32),
}

/// How lengths are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lengths {
    Random,
    /// From 0 up.
    Increment,
    /// In bytes, or a DLC of 9…15 where that is allowed.
    Fixed(u8),
}

/// How data are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data {
    Random,
    /// A counter of 8 bytes from 0 up, low byte first.
    Increment,
    /// These bytes; bits of `random` are random in each frame (`x` in the notation).
    Fixed {
        bytes: [u8; 64],
        random: [u8; 64],
    },
}

impl FromStr for Ids {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "r" => Self::Random,
            "e" => Self::Even,
            "o" => Self::Odd,
            "i" => Self::Increment,
            hex => match u32::from_str_radix(hex, 16) {
                Ok(id) if id <= EFF_MASK && !hex.starts_with('+') => Self::Fixed(id),
                _ => {
                    return Err(
                        "must be r, e (even), o (odd), i, or up to 1FFFFFFF in hexadecimal".to_owned()
                    );
                }
            },
        })
    }
}

impl FromStr for Lengths {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "r" => Self::Random,
            "i" => Self::Increment,
            bytes => match bytes.parse() {
                Ok(bytes @ 0..=64) => Self::Fixed(bytes),
                _ => return Err("must be r, i, or 0…64 bytes".to_owned()),
            },
        })
    }
}

impl FromStr for Data {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "r" => return Ok(Self::Random),
            "i" => return Ok(Self::Increment),
            _ => {}
        }
        let error =
            || "must be r, i, or up to 64 bytes in hexadecimal with x for random digits: 11xx33".to_owned();
        let digits = text.as_bytes();
        if !digits.len().is_multiple_of(2) || digits.len() > 128 || digits.is_empty() {
            return Err(error());
        }
        let (mut bytes, mut random) = ([0; 64], [0; 64]);
        for (at, &digit) in digits.iter().enumerate() {
            let shift = if at % 2 == 0 { 4 } else { 0 };
            match char::from(digit).to_digit(16) {
                Some(value) => bytes[at / 2] |= (value as u8) << shift,
                None if digit.eq_ignore_ascii_case(&b'x') => random[at / 2] |= 0xf << shift,
                None => return Err(error()),
            }
        }
        Ok(Self::Fixed { bytes, random })
    }
}

/// The next length that an FD frame can have; cansend and cangen pad to it.
pub fn fd_len(bytes: u8) -> u8 {
    (bytes..64).find(|&bytes| dlc_of_len(bytes.into()).is_some()).unwrap_or(64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fixed(bytes: &[u8], mask: &[u8]) -> Data {
        let mut padded = ([0; 64], [0; 64]);
        padded.0[..bytes.len()].copy_from_slice(bytes);
        padded.1[..mask.len()].copy_from_slice(mask);
        Data::Fixed { bytes: padded.0, random: padded.1 }
    }

    #[test]
    fn the_notation_is_cangens() {
        let ids = [
            ("r", Ids::Random),
            ("e", Ids::Even),
            ("o", Ids::Odd),
            ("i", Ids::Increment),
            ("42A", Ids::Fixed(0x42a)),
            ("1fffffff", Ids::Fixed(EFF_MASK)),
        ];
        for (text, expected) in ids {
            assert_eq!(text.parse::<Ids>().unwrap(), expected, "{text}");
        }
        let lengths = [("r", Lengths::Random), ("i", Lengths::Increment), ("8", Lengths::Fixed(8))];
        for (text, expected) in lengths {
            assert_eq!(text.parse::<Lengths>().unwrap(), expected, "{text}");
        }
        let data = [
            ("r", Data::Random),
            ("i", Data::Increment),
            ("11223344DEADBEEF", fixed(&[0x11, 0x22, 0x33, 0x44, 0xde, 0xad, 0xbe, 0xef], &[])),
            ("11xx3X", fixed(&[0x11, 0, 0x30], &[0, 0xff, 0x0f])),
        ];
        for (text, expected) in data {
            assert_eq!(text.parse::<Data>().unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn text_that_cangen_silently_misreads_is_refused() {
        for text in ["", "random", "20000000", "-1", "+1", "12G"] {
            assert!(text.parse::<Ids>().is_err(), "{text}");
        }
        for text in ["", "65", "-1", "0x8", "8 "] {
            assert!(text.parse::<Lengths>().is_err(), "{text}");
        }
        for text in ["", "1", "11 22", "é", "1é", &"00".repeat(65)] {
            assert!(text.parse::<Data>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in ".{0,140}") {
            let _ = (text.parse::<Ids>(), text.parse::<Lengths>(), text.parse::<Data>());
        }
    }
}

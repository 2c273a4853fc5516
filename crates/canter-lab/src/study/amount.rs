//! How many frames a run measures of each series.

use std::{fmt, num::ParseIntError, str::FromStr};

/// The maximum number of frames of `--quick`.
pub const QUICK_FRAMES: u64 = 1000;

/// The number of frames per series: the study's, or another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Amount {
    #[default]
    Own,
    Exactly(u64),
    AtMost(u64),
}

impl Amount {
    /// The number of frames of a series for which the study has `planned`.
    pub fn frames(self, planned: u64) -> u64 {
        match self {
            Self::Own => planned,
            Self::Exactly(count) => count,
            Self::AtMost(most) => planned.min(most),
        }
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own => f.write_str("own"),
            Self::Exactly(count) => write!(f, "{count}"),
            Self::AtMost(most) => write!(f, "..{most}"),
        }
    }
}

impl FromStr for Amount {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.strip_prefix("..") {
            _ if text == "own" => Ok(Self::Own),
            Some(most) => most.parse().map(Self::AtMost),
            None => text.parse().map(Self::Exactly),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_read_back_as_it_is_written_and_says_how_many() {
        for (amount, text, [few, many]) in [
            (Amount::Own, "own", [400, 10_000]),
            (Amount::Exactly(7), "7", [7, 7]),
            (Amount::AtMost(1000), "..1000", [400, 1000]),
        ] {
            assert_eq!((amount.to_string().as_str(), text.parse()), (text, Ok(amount)));
            assert_eq!([amount.frames(400), amount.frames(10_000)], [few, many]);
        }
        assert!("..".parse::<Amount>().is_err());
    }
}

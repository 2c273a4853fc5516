//! How many frames a run measures of each series.

use std::{fmt, num::ParseIntError, str::FromStr};

/// What `--quick` measures at most.
pub const QUICK_FRAMES: u64 = 1000;

/// Frames per series: those of the study, or others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Amount {
    #[default]
    Own,
    Exactly(u64),
    AtMost(u64),
}

impl Amount {
    /// The frames of a series of which the study wants `own`.
    pub fn of(self, own: u64) -> u64 {
        match self {
            Self::Own => own,
            Self::Exactly(count) => count,
            Self::AtMost(most) => own.min(most),
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
            assert_eq!([amount.of(400), amount.of(10_000)], [few, many]);
        }
        assert!("..".parse::<Amount>().is_err());
    }
}

//! When frames are sent: `one-at-a-time`, `period=120us`, `load=50%`, `flood`.

use crate::measure::duration;
use std::{fmt, str::FromStr};

/// When frames are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traffic {
    /// The next frame when the last one has arrived or is lost.
    OneAtATime,
    /// One frame every so many ns, whatever becomes of them.
    Period(u64),
    /// So that the frames take this share of the bus, in per cent (1…100).
    Load(u32),
    /// As fast as the interface takes them.
    Flood,
}

impl Traffic {
    /// Its name without its figure, as results have it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::OneAtATime => "one-at-a-time",
            Self::Period(_) => "period",
            Self::Load(_) => "load",
            Self::Flood => "flood",
        }
    }

    /// ns from frame to frame, when a frame with the space behind it takes `frame_ns` of the bus. `None`: no period.
    pub fn period_ns(&self, frame_ns: u64) -> Option<u64> {
        match self {
            Self::Period(ns) => Some(*ns),
            Self::Load(percent) => Some(frame_ns * 100 / u64::from(*percent)),
            Self::OneAtATime | Self::Flood => None,
        }
    }
}

impl fmt::Display for Traffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self {
            Self::Period(ns) if ns % 1_000 == 0 => write!(f, "={}us", ns / 1_000),
            Self::Period(ns) => write!(f, "={ns}ns"),
            Self::Load(percent) => write!(f, "={percent}%"),
            Self::OneAtATime | Self::Flood => Ok(()),
        }
    }
}

impl FromStr for Traffic {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            None if text == "one-at-a-time" => Ok(Self::OneAtATime),
            None if text == "flood" => Ok(Self::Flood),
            Some(("period", period)) => match duration::parse_ns(period)? {
                0 => Err("a period is longer than 0".to_owned()),
                ns => Ok(Self::Period(ns)),
            },
            Some(("load", load)) => match load.trim_end_matches('%').parse() {
                Ok(percent @ 1..=100) => Ok(Self::Load(percent)),
                _ => Err(format!("load={load}: 1…100 %")),
            },
            _ => Err("one-at-a-time, period=120us, load=50% or flood".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_read_as_it_is_written() {
        for text in ["one-at-a-time", "period=120us", "period=1ns", "load=50%", "flood"] {
            assert_eq!(text.parse::<Traffic>().unwrap().to_string(), text);
        }
        for text in ["", "load=0", "load=101%", "period=0us", "period", "rain"] {
            assert!(text.parse::<Traffic>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_load_of_half_the_bus_leaves_as_much_time_as_a_frame_takes() {
        assert_eq!(Traffic::Load(50).period_ns(65_000), Some(130_000));
        assert_eq!(Traffic::Load(100).period_ns(65_000), Some(65_000));
    }
}

//! When frames are sent: `one-at-a-time`, `period=120us`, `load=50%`, `burst=20/100ms`, `ramp=100..5000/10s`, `flood`.

use canter_cli::duration;
use std::{fmt, str::FromStr};

/// The highest rate of a ramp, in frames/s. A full bus of 1 Mbit/s carries 21 277.
pub const RAMP_RATE_MAX: u32 = 1_000_000;
/// The longest ramp. Both bounds together keep its arithmetic within 128 bits.
pub const RAMP_NS_MAX: u64 = 3_600_000_000_000;

/// When frames are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traffic {
    /// The next frame when the last one has arrived or is lost.
    OneAtATime,
    /// One frame per period, in ns.
    Period(u64),
    /// At the rate that loads the bus by this, in per cent (1…100).
    Load(u32),
    /// `frames` frames at once, every `every_ns`.
    Burst { frames: u32, every_ns: u64 },
    /// From one rate to another, in frames/s, linearly within `over_ns`; then at the second rate.
    Ramp { from: u32, to: u32, over_ns: u64 },
    /// As fast as the interface accepts frames.
    Flood,
}

impl Traffic {
    /// The pattern's name without times and rates, as in results.
    pub fn name(&self) -> String {
        let name = match self {
            Self::OneAtATime => "one-at-a-time",
            Self::Period(_) => "period",
            Self::Load(_) => "load",
            Self::Burst { frames, .. } => return format!("burst={frames}"),
            Self::Ramp { .. } => "ramp",
            Self::Flood => "flood",
        };
        name.to_owned()
    }

    /// ns from frame to frame (for bursts, the mean) when a frame and its interframe space take `frame_ns` of the bus.
    /// `None`: no period.
    pub fn period_ns(&self, frame_ns: u64) -> Option<u64> {
        match self {
            Self::Period(ns) => Some(*ns),
            Self::Load(percent) => Some(frame_ns * 100 / u64::from(*percent)),
            Self::Burst { frames, every_ns } => Some(every_ns / u64::from(*frames)),
            Self::OneAtATime | Self::Ramp { .. } | Self::Flood => None,
        }
    }
}

/// A duration in the largest unit in which it is a whole number.
fn ns(ns: u64) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    let unit = units.into_iter().find(|(unit, _)| ns.is_multiple_of(*unit) && ns > 0);
    unit.map_or(format!("{ns}ns"), |(unit, name)| format!("{}{name}", ns / unit))
}

impl fmt::Display for Traffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())?;
        match self {
            Self::Period(period) if period % 1_000 == 0 => write!(f, "={}us", period / 1_000),
            Self::Period(period) => write!(f, "={period}ns"),
            Self::Load(percent) => write!(f, "={percent}%"),
            Self::Burst { every_ns, .. } => write!(f, "/{}", ns(*every_ns)),
            Self::Ramp { from, to, over_ns } => write!(f, "={from}..{to}/{}", ns(*over_ns)),
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
            Some(("period", period)) => Ok(Self::Period(positive_ns(period)?)),
            Some(("load", load)) => match load.trim_end_matches('%').parse() {
                Ok(percent @ 1..=100) => Ok(Self::Load(percent)),
                _ => Err(format!("load={load}: must be 1…100 %")),
            },
            Some(("burst", burst)) => parse_burst(burst),
            Some(("ramp", ramp)) => parse_ramp(ramp),
            _ => {
                let forms =
                    "one-at-a-time, period=120us, load=50%, burst=20/100ms, ramp=100..5000/10s or flood";
                Err(format!("must be {forms}"))
            }
        }
    }
}

fn positive_ns(text: &str) -> Result<u64, String> {
    match duration::parse_ns(text)? {
        0 => Err("a time must be more than 0".to_owned()),
        ns => Ok(ns),
    }
}

fn parse_burst(text: &str) -> Result<Traffic, String> {
    let error = || format!("burst={text}: must be FRAMES/TIME (20/100ms)");
    let (frames, every) = text.split_once('/').ok_or_else(error)?;
    match frames.parse() {
        Ok(frames @ 1..) => Ok(Traffic::Burst { frames, every_ns: positive_ns(every)? }),
        _ => Err(error()),
    }
}

fn parse_ramp(text: &str) -> Result<Traffic, String> {
    let error = || format!("ramp={text}: must be FROM..TO/TIME in frames/s (100..5000/10s)");
    let (rates, over) = text.split_once('/').ok_or_else(error)?;
    let (from, to) = rates.split_once("..").ok_or_else(error)?;
    let (from, to) = (from.parse().map_err(|_| error())?, to.parse().map_err(|_| error())?);
    let over_ns = positive_ns(over)?;
    if from > RAMP_RATE_MAX || to > RAMP_RATE_MAX || over_ns > RAMP_NS_MAX {
        return Err(format!("ramp={text}: at most {RAMP_RATE_MAX} frames/s and one hour"));
    }
    if to == 0 {
        return Err(format!("ramp={text}: must end at 1 frame/s or more"));
    }
    Ok(Traffic::Ramp { from, to, over_ns })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_read_as_it_is_written() {
        for text in [
            "one-at-a-time",
            "period=120us",
            "period=1ns",
            "load=50%",
            "burst=20/100ms",
            "burst=1/1ns",
            "ramp=100..5000/10s",
            "ramp=0..1/1500ms",
            "ramp=9..1/3us",
            "flood",
        ] {
            assert_eq!(text.parse::<Traffic>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "load=0",
            "load=101%",
            "period=0us",
            "period",
            "rain",
            "burst=0/1s",
            "burst=20",
            "burst=20/0ms",
            "ramp=1..2",
            "ramp=1/10s",
            "ramp=9..0/1s",
            "ramp=1..2/0s",
            "ramp=1..1000001/1s",
            "ramp=1..2/61m",
            "ramp=-1..2/1s",
        ] {
            assert!(text.parse::<Traffic>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_load_of_half_the_bus_leaves_as_much_time_as_a_frame_takes() {
        assert_eq!(Traffic::Load(50).period_ns(65_000), Some(130_000));
        assert_eq!(Traffic::Load(100).period_ns(65_000), Some(65_000));
    }
}

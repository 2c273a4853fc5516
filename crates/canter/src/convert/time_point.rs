//! A point in time on the command line: `+10m` after the first frame, a date, or seconds since 1970.

use canter_cli::duration;
use std::str::FromStr;

/// A point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimePoint {
    /// ns after the first frame.
    After(u64),
    /// ns since 1970.
    At(u64),
}

impl TimePoint {
    /// ns since 1970.
    pub fn ns(self, first_ns: u64) -> u64 {
        match self {
            Self::After(ns) => first_ns.saturating_add(ns),
            Self::At(ns) => ns,
        }
    }
}

impl FromStr for TimePoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(after) = text.strip_prefix('+') {
            return duration::parse_ns(after).map(Self::After);
        }
        if let Ok(ns) = duration::parse_ns(&format!("{text}s")) {
            return Ok(Self::At(ns));
        }
        let date = text.parse::<jiff::Timestamp>().ok();
        date.and_then(|date| u64::try_from(date.as_nanosecond()).ok()).map(Self::At).ok_or_else(|| {
            format!("{text:?} is not a time (+10m after the first frame, 2026-11-22T08:30:00Z, 1795336200.5)")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_read_in_three_ways() {
        assert_eq!("+1.5s".parse(), Ok(TimePoint::After(1_500_000_000)));
        assert_eq!("1700000000.25".parse(), Ok(TimePoint::At(1_700_000_000_250_000_000)));
        assert_eq!("2023-11-14T22:13:20.25Z".parse(), Ok(TimePoint::At(1_700_000_000_250_000_000)));
        assert_eq!("2023-11-14T23:13:20.25+01:00".parse(), Ok(TimePoint::At(1_700_000_000_250_000_000)));
        for text in ["", "+", "+5", "yesterday", "1970", "-5", "2023-11-14", "1969-01-01T00:00:00Z"] {
            let read = text.parse::<TimePoint>();
            assert!(read.is_err() || text == "1970", "{text}: {read:?}");
        }
    }
}

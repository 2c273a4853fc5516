//! A point in time on the command line: `10m` after the first frame, a date, or seconds since 1970.

use canter_cli::{
    duration,
    failure::{self, Exit, Failure},
};
use canter_formats::Zone;
use jiff::{
    Timestamp,
    civil::{Date, DateTime},
};
use std::str::FromStr;

/// A point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimePoint {
    /// ns after the first frame.
    After(u64),
    /// ns since 1970.
    At(u64),
    /// A date without a time zone.
    Local(DateTime),
}

impl TimePoint {
    /// ns since 1970; 0 for a date before. `zone` is that of dates that name none.
    pub fn ns(self, first_ns: u64, zone: &Zone) -> u64 {
        match self {
            Self::After(ns) => first_ns.saturating_add(ns),
            Self::At(ns) => ns,
            Self::Local(date) => zone.ns(date).and_then(|ns| ns.try_into().ok()).unwrap_or(0),
        }
    }
}

impl TimePoint {
    /// Refuses a range that is empty whatever the recording has. Points of different kinds are compared when the first
    /// frame is known.
    pub fn refuse_empty_range(from: Option<Self>, to: Option<Self>, zone: &Zone) -> failure::Result<()> {
        let (Some(from), Some(to)) = (from, to) else { return Ok(()) };
        let is_relative = |point| matches!(point, Self::After(_));
        if is_relative(from) == is_relative(to) && from.ns(0, zone) >= to.ns(0, zone) {
            return Err(Failure::new(Exit::Usage, "--to: is not after --from: no frame can be selected"));
        }
        Ok(())
    }
}

impl FromStr for TimePoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let after = text.strip_prefix('+');
        match duration::parse_ns(after.unwrap_or(text)) {
            Ok(ns) => return Ok(Self::After(ns)),
            Err(error) if after.is_some() => return Err(error),
            Err(_) => {}
        }
        if let Ok(ns) = duration::parse_ns(&format!("{text}s")) {
            return Ok(Self::At(ns));
        }
        let local = text.replacen('T', " ", 1);
        let date = DateTime::strptime("%F %T%.f", &local).or_else(|_| DateTime::strptime("%F %H:%M", &local));
        if let Ok(date) = date.or_else(|_| Date::strptime("%F", text).map(|date| date.at(0, 0, 0, 0))) {
            return Ok(Self::Local(date));
        }
        let date = text.parse::<Timestamp>().ok();
        date.and_then(|date| u64::try_from(date.as_nanosecond()).ok()).map(Self::At).ok_or_else(|| {
            format!(
                "{text:?} is not a time (10m after the first frame, 2026-11-22 09:30:00 in --zone, \
                 2026-11-22T08:30:00Z, 1795336200.5)"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_read_in_four_ways() {
        for text in ["+1.5s", "1.5s", "1500ms"] {
            assert_eq!(text.parse(), Ok(TimePoint::After(1_500_000_000)), "{text}");
        }
        for text in ["2023-11-14", "2023-11-14 00:00", "2023-11-14 00:00:00"] {
            let time: TimePoint = text.parse().unwrap();
            assert_eq!(time.ns(0, &Zone::default()), 1_699_920_000_000_000_000, "{text}");
        }
        assert_eq!("1700000000.25".parse(), Ok(TimePoint::At(1_700_000_000_250_000_000)));
        assert_eq!("2023-11-14T22:13:20.25Z".parse(), Ok(TimePoint::At(1_700_000_000_250_000_000)));
        assert_eq!("2023-11-14T23:13:20.25+01:00".parse(), Ok(TimePoint::At(1_700_000_000_250_000_000)));
        for text in ["2023-11-14 23:13:20.25", "2023-11-14T23:13:20.25"] {
            let zone = "+01:00".parse().unwrap();
            let time: TimePoint = text.parse().unwrap();
            assert_eq!(time.ns(0, &zone), 1_700_000_000_250_000_000, "{text}");
            assert_eq!(time.ns(0, &Zone::default()), 1_700_003_600_250_000_000, "{text}");
        }
        for text in ["", "+", "+5", "yesterday", "1970", "-5", "1969-01-01T00:00:00Z"] {
            let read = text.parse::<TimePoint>();
            assert!(read.is_err() || text == "1970", "{text}: {read:?}");
        }
    }
}

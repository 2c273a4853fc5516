//! The time zone of dates that name none: those in the headers of ASC and BLF, which Vector's programs write in local time.

use jiff::{
    civil::DateTime,
    tz::{Offset, TimeZone},
};
use std::{fmt, str::FromStr};

/// A time zone: `UTC`, `+01:00`, `local` (that of this machine), or a name of the tz database such as `Europe/Prague`,
/// which needs the feature `zones` and the database in `/usr/share/zoneinfo`.
#[derive(Clone, Debug)]
pub struct Zone {
    name: String,
    zone: TimeZone,
}

impl Default for Zone {
    fn default() -> Self {
        Self { name: "UTC".to_owned(), zone: TimeZone::UTC }
    }
}

impl Zone {
    /// The ns since 1970 of a date in this zone; `None` before 1970. Of an hour that occurs twice, when clocks are set
    /// back, it is the first.
    pub fn ns(&self, date: DateTime) -> Option<i128> {
        Some(date.to_zoned(self.zone.clone()).ok()?.timestamp().as_nanosecond())
    }
}

impl Zone {
    /// The ns since 1970 of what a clock on the wall shows in this zone, which is given as if it were in UTC.
    #[cfg(any(feature = "mdf", feature = "parquet"))]
    pub(crate) fn ns_of_wall_clock(&self, shown_ns: u64) -> Option<u64> {
        let shown = jiff::Timestamp::from_nanosecond(shown_ns.into()).ok()?;
        self.ns(TimeZone::UTC.to_datetime(shown)).and_then(|ns| ns.try_into().ok())
    }
}

/// The date in a header, which names no time zone.
#[derive(Default)]
pub(crate) struct HeaderDate {
    pub date: Option<DateTime>,
    /// canter wrote it, in UTC.
    pub utc: bool,
}

impl HeaderDate {
    /// The ns since 1970, in UTC or in a zone; `None` without a date, and before 1970.
    pub fn ns(&self, zone: &Zone) -> Option<i128> {
        let zone = if self.utc { &Zone::default() } else { zone };
        self.date.and_then(|date| zone.ns(date))
    }

    /// Whether the zone decides what it stands for.
    pub fn needs_zone(&self) -> bool {
        self.date.is_some() && !self.utc
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// Reads `+01:00`, `-0530` or `+2` as seconds.
fn offset(text: &str) -> Option<i32> {
    let (sign, digits) = match text.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let (hours, minutes) = match digits.split_once(':') {
        Some(parts) => parts,
        None if digits.len() == 4 => digits.split_at_checked(2)?,
        None => (digits, "00"),
    };
    let number = |text: &str, most: i32| {
        let plain = (1..=2).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<i32>().ok().filter(|number| plain && *number <= most)
    };
    Some(sign * (number(hours, 14)? * 3600 + number(minutes, 59).filter(|_| minutes.len() == 2)? * 60))
}

impl FromStr for Zone {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let zone = match text {
            "UTC" | "utc" | "Z" => Some(TimeZone::UTC),
            "local" => TimeZone::try_system().ok(),
            _ => match offset(text) {
                Some(seconds) => Offset::from_seconds(seconds).ok().map(TimeZone::fixed),
                None => TimeZone::get(text).ok(),
            },
        };
        let name = text.to_owned();
        zone.map(|zone| Self { name, zone }).ok_or_else(|| match text {
            "local" => {
                "this machine states no time zone (give +01:00 or a name such as Europe/Prague)".to_owned()
            }
            _ => format!("{text:?} is not a time zone of this machine (Europe/Prague, +01:00, UTC, local)"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ns(zone: &str, date: &str) -> i128 {
        zone.parse::<Zone>().unwrap().ns(date.parse().unwrap()).unwrap() / 1_000_000_000
    }

    #[test]
    fn a_zone_is_an_offset_a_name_or_that_of_this_machine() {
        let noon = "2023-07-14T12:00:00";
        let utc = ns("UTC", noon);
        assert_eq!(utc, 1_689_336_000);
        for (zone, hours) in [("+02:00", 2), ("+2", 2), ("-05", -5), ("+0200", 2), ("Z", 0)] {
            assert_eq!(ns(zone, noon), utc - hours * 3600, "{zone}");
        }
        assert_eq!(ns("-05:30", noon), utc + 5 * 3600 + 1800);
        for wrong in ["", "+", "+1:2", "+15:00", "+01:60", "Europe/Nowhere", "01:00", "+-1"] {
            assert!(wrong.parse::<Zone>().unwrap_err().contains("is not a time zone"), "{wrong}");
        }
    }

    #[cfg(feature = "zones")]
    #[test]
    fn a_named_zone_has_summer_time() {
        assert_eq!(ns("Europe/Prague", "2023-07-14T12:00:00"), ns("+02:00", "2023-07-14T12:00:00"));
        assert_eq!(ns("Europe/Prague", "2023-01-14T12:00:00"), ns("+01:00", "2023-01-14T12:00:00"));
        // Half past two occurs twice, or not at all.
        assert_eq!(ns("Europe/Prague", "2023-10-29T02:30:00"), ns("+02:00", "2023-10-29T02:30:00"));
        assert_eq!(ns("Europe/Prague", "2023-03-26T02:30:00"), ns("+01:00", "2023-03-26T02:30:00"));
    }
}

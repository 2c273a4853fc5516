//! Durations as people type them: `120us`, `1.5ms`, `5s`, `10m`, `1h30m`.

use jiff::fmt::friendly::SpanParser;
use serde::{Deserialize, Deserializer, de::Error};

/// Reads a duration, in ns, rounded down to whole ns.
pub fn parse_ns(text: &str) -> Result<u64, String> {
    let duration = SpanParser::new().parse_unsigned_duration(text).ok();
    duration
        .and_then(|duration| u64::try_from(duration.as_nanos()).ok())
        .ok_or_else(|| format!("{text:?} is not a duration (120us, 1.5ms, 5s, 1h30m)"))
}

/// Reads a duration, in ns; a number without a unit counts in `unit`.
pub fn parse_ns_or(text: &str, unit: &str) -> Result<u64, String> {
    let bare = text.ends_with(|last: char| last.is_ascii_digit());
    if bare { parse_ns(&format!("{text}{unit}")) } else { parse_ns(text) }
}

/// Reads an age, in ns: a duration that may have days before its other units, `30d`, `1d12h`.
pub fn parse_age_ns(text: &str) -> Result<u64, String> {
    let (days, rest) = match text.split_once('d') {
        Some((days, rest)) if days.bytes().all(|byte| byte.is_ascii_digit()) => (days, rest.trim_start()),
        _ => return parse_ns(text),
    };
    let rest_ns = if rest.is_empty() { Ok(0) } else { parse_ns(rest) };
    let days_ns = days.parse::<u64>().ok().and_then(|days| days.checked_mul(24 * 3_600_000_000_000));
    let age = days_ns.zip(rest_ns.ok()).and_then(|(days, rest)| days.checked_add(rest));
    age.ok_or_else(|| format!("{text:?} is not an age (30d, 12h, 1d12h)"))
}

/// Reads a duration of a file, in ns.
pub fn deserialize<'de, D: Deserializer<'de>>(value: D) -> Result<u64, D::Error> {
    let text = String::deserialize(value)?;
    parse_ns(&text).map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn durations_are_read_in_every_unit() {
        let cases = [
            ("120us", 120_000),
            ("1.5ms", 1_500_000),
            ("5s", 5_000_000_000),
            ("7ns", 7),
            ("2m", 120_000_000_000),
            ("10h", 36_000_000_000_000),
            ("0.25µs", 250),
            ("0.000000001h", 3_600),
            ("0.999999999m", 59_999_999_940),
            ("007s", 7_000_000_000),
            ("1h30m", 5_400_000_000_000),
            ("1m 30s", 90_000_000_000),
        ];
        for (text, ns) in cases {
            assert_eq!(parse_ns(text), Ok(ns), "{text}");
        }
        for text in ["", "5", "us", "-1s", "1e3s", ".5s", "1s ago", "1d", "1.5ns", "99999999999999s"] {
            assert!(parse_ns(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_age_may_have_days() {
        const HOUR: u64 = 3_600_000_000_000;
        for (text, hours) in [("30d", 720), ("12h", 12), ("1d12h", 36), ("1d 12h", 36), ("0d", 0)] {
            assert_eq!(parse_age_ns(text), Ok(hours * HOUR), "{text}");
        }
        for text in ["d", "1.5d", "-1d", "1d1d", "1dx", "300000d", "30", ""] {
            assert!(parse_age_ns(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in ".{0,20}") {
            let _ = parse_ns(&text);
        }
    }
}

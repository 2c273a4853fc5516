//! Durations as people type them: `120us`, `1.5ms`, `5s`, `10m`, `2h`.

use serde::{Deserialize, Deserializer, de::Error};

/// Units, longest name first so that `ms` is not read as `s`.
const UNITS: &[(&str, u64)] = &[
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Reads a duration, in ns, rounded down to whole ns.
pub fn parse_ns(text: &str) -> Result<u64, String> {
    let error = || format!("{text:?} is not a duration (120us, 1.5ms, 5s)");
    let unit = UNITS.iter().find(|(name, _)| text.ends_with(name) && (*name != "s" || !text.ends_with("us")));
    let (name, ns) = unit.ok_or_else(error)?;
    let number = &text[..text.len() - name.len()];
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty()
        || part.len() > 9
        || !(whole.bytes().chain(part.bytes())).all(|byte| byte.is_ascii_digit())
    {
        return Err(error());
    }
    let whole: u64 = whole.parse().map_err(|_| error())?;
    let part_ns = part.parse::<u64>().unwrap_or(0) * ns / 10u64.pow(part.len() as u32);
    whole.checked_mul(*ns).and_then(|whole| whole.checked_add(part_ns)).ok_or_else(error)
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
        ];
        for (text, ns) in cases {
            assert_eq!(parse_ns(text), Ok(ns), "{text}");
        }
        for text in ["", "5", "us", "-1s", "1e3s", ".5s", "99999999999999s"] {
            assert!(parse_ns(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in ".{0,20}") {
            let _ = parse_ns(&text);
        }
    }
}

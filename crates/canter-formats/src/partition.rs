//! The folders of a data set, in the notation of Hive that DuckDB, Spark and others read: `vehicle=V/date=YYYY-MM-DD/bus=can0`.

use jiff::{Timestamp, tz::TimeZone};

/// The ns of a day.
pub const NS_OF_DAY: u64 = 86_400_000_000_000;

/// Encodes a partition's value: `%2F` for what a folder's name must not have.
pub fn encoded(value: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let part = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    value.bytes().map(part).collect()
}

/// The date of a day since 1970 in UTC: `2026-11-24`; `unknown` beyond the year 9999.
pub fn date(day: u64) -> String {
    let stamp = i128::from(day) * i128::from(NS_OF_DAY);
    Timestamp::from_nanosecond(stamp)
        .map_or_else(|_| "unknown".to_owned(), |stamp| stamp.to_zoned(TimeZone::UTC).date().to_string())
}

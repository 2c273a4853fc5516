//! Windows' SYSTEMTIME, as in BLF headers: year, month, day of the week, day, hour, minute, second, ms; without a time zone.

use jiff::{Timestamp, civil, tz::TimeZone};

/// The date; `None` for all zeros and for invalid dates.
pub fn date(time: [u16; 8]) -> Option<civil::DateTime> {
    let [year, month, _, day, hour, minute, second, ms] = time.map(|part| i16::try_from(part).ok());
    let small = |part: Option<i16>| part.and_then(|part| i8::try_from(part).ok());
    civil::DateTime::new(
        year?,
        small(month)?,
        small(day)?,
        small(hour)?,
        small(minute)?,
        small(second)?,
        i32::from(ms?).checked_mul(1_000_000)?,
    )
    .ok()
}

/// Converts from ns since 1970, rounded down to ms, in UTC.
pub fn from_ns(ns: u64) -> [u16; 8] {
    let Ok(stamp) = Timestamp::from_nanosecond(ns.into()) else { return [0; 8] };
    let date = stamp.to_zoned(TimeZone::UTC);
    let part = |part: i8| part.unsigned_abs().into();
    [
        date.year().unsigned_abs(),
        part(date.month()),
        part(date.weekday().to_sunday_zero_offset()),
        part(date.day()),
        part(date.hour()),
        part(date.minute()),
        part(date.second()),
        date.millisecond().unsigned_abs(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_converts_back_to_the_ms() {
        let ns = 1_700_000_000_123_456_789;
        assert_eq!(from_ns(ns), [2023, 11, 2, 14, 22, 13, 20, 123]);
        let back = date(from_ns(ns)).and_then(|date| crate::Zone::default().ns(date));
        assert_eq!(back, Some(1_700_000_000_123_000_000));
        assert_eq!(date([0; 8]), None);
    }
}

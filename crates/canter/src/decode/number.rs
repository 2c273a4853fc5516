//! Values as text: as exact as they are for tables, and with the digits of their factor for people.

use canter_signals::{Signal, Value};
use std::io::{self, Write};

/// The most decimals that are printed for people.
const DECIMALS_MAX: usize = 9;

/// Writes the shortest text that reads back as the same value.
pub fn write_exact(out: &mut impl Write, value: Value) -> io::Result<()> {
    match value {
        Value::Float(number)
            if number != 0.0 && number.is_finite() && !(1e-5..1e16).contains(&number.abs()) =>
        {
            write!(out, "{number:e}")
        }
        value => write!(out, "{value}"),
    }
}

/// The number of decimals of all values of a signal: of 0.1 and 0.25, two. `None`: more than are worth printing.
pub fn decimals(signal: &Signal) -> Option<usize> {
    let is_whole = |decimals: usize, number: f64| {
        let scaled = number * 10f64.powi(decimals as i32);
        (scaled - scaled.round()).abs() <= scaled.abs().max(1.0) * 1e-12
    };
    let is_enough =
        |&decimals: &usize| is_whole(decimals, signal.factor) && is_whole(decimals, signal.offset);
    (0..=DECIMALS_MAX).find(is_enough)
}

/// The value for people.
pub fn readable(value: Value, decimals: Option<usize>) -> String {
    match (value, decimals) {
        (Value::Float(number), Some(decimals)) if number.is_finite() && number.abs() < 1e15 => {
            format!("{number:.decimals$}")
        }
        (value, _) => {
            let mut text = Vec::new();
            let _ = write_exact(&mut text, value); // memory takes everything
            String::from_utf8_lossy(&text).into_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_the_shortest_text_that_reads_back() {
        for (number, text) in
            [(0.1, "0.1"), (1e300, "1e300"), (-2.5e-7, "-2.5e-7"), (0.0, "0"), (f64::NAN, "NaN")]
        {
            let mut out = Vec::new();
            write_exact(&mut out, number.into()).unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), text);
        }
    }

    #[test]
    fn people_see_the_digits_of_the_factor() {
        assert_eq!(readable(326.400_000_000_000_03.into(), Some(2)), "326.40");
        assert_eq!(readable(7.into(), Some(0)), "7");
        assert_eq!(readable(f64::INFINITY.into(), Some(2)), "inf");
    }
}

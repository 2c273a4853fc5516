//! Values as text: as exact as they are for tables, and with the digits of their factor for people.

use canter_signals::{Kind, Signal, Value};
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

/// The digits of a signal's values for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Digits {
    /// This number of decimals, which all values of an integer signal have: of 0.1 and 0.25, two.
    Decimals(usize),
    /// As many as a float of 32 bits needs.
    Single,
    /// As many as a double needs.
    Double,
}

impl Digits {
    /// The digits of a signal. A float in a frame has any number of decimals, whatever its factor.
    pub fn new(signal: &Signal) -> Self {
        match signal.kind {
            // An offset may be larger than the digits of a float of 32 bits allow.
            Kind::Single if signal.offset == 0.0 => Self::Single,
            Kind::Single | Kind::Double => Self::Double,
            Kind::Unsigned | Kind::Signed => decimals(signal).map_or(Self::Double, Self::Decimals),
        }
    }

    /// The value for people.
    pub fn readable(self, value: Value) -> String {
        match (value, self) {
            (Value::Float(number), Self::Decimals(decimals)) if number.is_finite() && number.abs() < 1e15 => {
                format!("{number:.decimals$}")
            }
            (Value::Float(number), Self::Single) if number.is_finite() => {
                let single = (number as f32).to_string();
                // The double with these digits, so that the exponent is written as for other numbers.
                exact(single.parse().map_or(value, Value::Float))
            }
            _ => exact(value),
        }
    }
}

/// The number of decimals of an integer signal; `None`: more than are worth printing.
fn decimals(signal: &Signal) -> Option<usize> {
    let is_whole = |decimals: usize, number: f64| {
        let scaled = number * 10f64.powi(decimals as i32);
        (scaled - scaled.round()).abs() <= scaled.abs().max(1.0) * 1e-12
    };
    let is_enough =
        |&decimals: &usize| is_whole(decimals, signal.factor) && is_whole(decimals, signal.offset);
    (0..=DECIMALS_MAX).find(is_enough)
}

fn exact(value: Value) -> String {
    let mut text = Vec::new();
    let _ = write_exact(&mut text, value); // memory takes everything
    String::from_utf8_lossy(&text).into_owned()
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
        assert_eq!(Digits::Decimals(2).readable(326.400_000_000_000_03.into()), "326.40");
        assert_eq!(Digits::Decimals(0).readable(7.into()), "7");
        assert_eq!(Digits::Decimals(2).readable(f64::INFINITY.into()), "inf");
    }

    #[test]
    fn people_see_all_digits_of_a_float() {
        for (number, text) in [
            (0.25, "0.25"),
            (f64::from(0.1f32), "0.1"),
            (f64::from(1e-9f32), "1e-9"),
            (f64::from(-1e30f32), "-1e30"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(Digits::Single.readable(number.into()), text);
        }
        assert_eq!(Digits::Double.readable(f64::from(0.1f32).into()), "0.10000000149011612");
    }
}

//! Values of signals: integers stay exact, all others are doubles.

use crate::signal::Kind;
use std::fmt;

/// The physical value of a signal.
#[derive(Clone, Copy, Debug)]
pub enum Value {
    /// An integer of a signal whose values all fit into `i64`.
    Integer(i64),
    /// An integer of a signal that has values above `i64::MAX`.
    Unsigned(u64),
    /// A float; NaN and infinities are as the frame has them.
    Float(f64),
}

/// The type that holds all values of a signal: the type of its column in a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// `i64`.
    Integer,
    /// `u64`.
    Unsigned,
    /// `f64`.
    Float,
}

impl Value {
    /// The value as a double; integers beyond 2⁵³ are rounded.
    pub fn as_f64(self) -> f64 {
        match self {
            Self::Integer(value) => value as f64,
            Self::Unsigned(value) => value as f64,
            Self::Float(value) => value,
        }
    }
}

/// Integers compare with floats by their doubles.
impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (*self, *other) {
            (Self::Integer(one), Self::Integer(other)) => one == other,
            (Self::Unsigned(one), Self::Unsigned(other)) => one == other,
            (Self::Integer(one), Self::Unsigned(other)) | (Self::Unsigned(other), Self::Integer(one)) => {
                i128::from(one) == i128::from(other)
            }
            (one, other) => one.as_f64() == other.as_f64(),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(value) => fmt::Display::fmt(value, f),
            Self::Unsigned(value) => fmt::Display::fmt(value, f),
            Self::Float(value) => fmt::Display::fmt(value, f),
        }
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Integer(value)
    }
}

impl From<i32> for Value {
    fn from(value: i32) -> Self {
        Self::Integer(value.into())
    }
}

impl From<u64> for Value {
    fn from(value: u64) -> Self {
        Self::Unsigned(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

/// The conversion between raw and physical values: physical = raw × factor + offset.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Conversion {
    /// The raw value.
    Identity,
    /// Integers, without rounding; the result fits into the column.
    Whole { factor: i64, offset: i64 },
    /// Doubles.
    Linear { factor: f64, offset: f64 },
}

/// The integer of a double that has no fraction.
fn whole(number: f64) -> Option<i64> {
    (number.fract() == 0.0 && number.abs() < 9e18).then_some(number as i64)
}

impl Conversion {
    /// The exact conversion where the numbers allow one, and the column that holds its results.
    pub fn new(kind: Kind, bits: usize, factor: f64, offset: f64) -> (Self, Column) {
        let linear = (Self::Linear { factor, offset }, Column::Float);
        if matches!(kind, Kind::Single | Kind::Double) {
            return if (factor, offset) == (1.0, 0.0) { (Self::Identity, Column::Float) } else { linear };
        }
        let (Some(factor), Some(offset)) = (whole(factor), whole(offset)) else { return linear };
        let (low, high) = kind.range(bits);
        let physical = |raw: i128| raw * i128::from(factor) + i128::from(offset);
        let (one, other) = (physical(low), physical(high));
        let (low, high) = (one.min(other), one.max(other));
        let column = match (i64::try_from(low), i64::try_from(high), u64::try_from(low), u64::try_from(high))
        {
            (Ok(_), Ok(_), ..) => Column::Integer,
            (_, _, Ok(_), Ok(_)) => Column::Unsigned,
            _ => return linear,
        };
        let is_identity = (factor, offset) == (1, 0);
        (if is_identity { Self::Identity } else { Self::Whole { factor, offset } }, column)
    }

    /// The raw value of a physical one, rounded half to even; `None`: it is no number, or the factor is 0.
    pub fn raw_of(&self, value: Value) -> Option<i128> {
        let exact = match value {
            Value::Integer(value) => Some(i128::from(value)),
            Value::Unsigned(value) => Some(i128::from(value)),
            Value::Float(value) if value.fract() == 0.0 && value.abs() < 1e30 => Some(value as i128),
            Value::Float(_) => None,
        };
        let (factor, offset) = match (self, exact) {
            (Self::Identity, Some(value)) => return Some(value),
            (Self::Whole { factor, offset }, Some(value)) => {
                let (factor, offset) = (i128::from(*factor), i128::from(*offset));
                if factor != 0 && (value - offset) % factor == 0 {
                    return Some((value - offset) / factor);
                }
                (factor as f64, offset as f64)
            }
            (Self::Identity, None) => (1.0, 0.0),
            (Self::Whole { factor, offset }, None) => (*factor as f64, *offset as f64),
            (Self::Linear { factor, offset }, _) => (*factor, *offset),
        };
        let raw = ((value.as_f64() - offset) / factor).round_ties_even();
        raw.is_finite().then_some(raw as i128)
    }

    /// The raw float of a physical value.
    pub fn raw_float_of(&self, value: Value) -> f64 {
        match *self {
            Self::Linear { factor, offset } => (value.as_f64() - offset) / factor,
            _ => value.as_f64(),
        }
    }
}

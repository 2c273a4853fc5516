//! A signal: a number in the payload of a message.

use crate::{
    field::Field,
    value::{Column, Conversion, Value},
};
use std::ops::RangeInclusive;

/// The order of a signal's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteOrder {
    /// The lowest byte first (Intel; `@1`).
    Little,
    /// The highest byte first (Motorola; `@0`).
    Big,
}

/// What the bits of a signal are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An unsigned integer.
    Unsigned,
    /// A signed integer, in two's complement.
    Signed,
    /// An IEEE 754 float of 32 bits.
    Single,
    /// An IEEE 754 float of 64 bits.
    Double,
}

impl Kind {
    /// The lowest and the highest raw integer of this many bits.
    pub(crate) fn range(self, bits: usize) -> (i128, i128) {
        match self {
            Self::Signed => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
            _ => (0, (1 << bits) - 1),
        }
    }
}

/// When a multiplexed signal is in a frame: when its selector has one of these raw values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The place of the selector among the message's signals.
    pub selector: usize,
    /// The raw values, as ranges.
    pub values: Vec<RangeInclusive<u64>>,
}

impl Condition {
    #[inline]
    pub(crate) fn holds(&self, raw: u64) -> bool {
        self.values.iter().any(|range| range.contains(&raw))
    }
}

/// A signal, compiled.
#[derive(Clone, Debug)]
pub struct Signal {
    /// The name in the database; its long name, if it has one.
    pub name: String,
    /// The unit; may be empty.
    pub unit: String,
    /// The start bit, as a DBC counts: the lowest bit of little-endian signals, the highest of big-endian ones.
    pub start: usize,
    /// Bits, 1…64.
    pub bits: usize,
    /// The order of the bytes.
    pub order: ByteOrder,
    /// What the bits are.
    pub kind: Kind,
    /// Physical units per raw step.
    pub factor: f64,
    /// The physical value of raw 0.
    pub offset: f64,
    /// The lowest and the highest physical value that the database states; both 0: none.
    pub range: (f64, f64),
    /// Texts of raw values, sorted by value.
    pub choices: Vec<(i64, String)>,
    /// Whether other signals depend on this one.
    pub is_selector: bool,
    /// When it is in a frame; `None`: always.
    pub condition: Option<Condition>,
    pub(crate) field: Field,
    pub(crate) conversion: Conversion,
    pub(crate) column: Column,
}

impl Signal {
    /// The type that holds all values of this signal.
    pub fn column(&self) -> Column {
        self.column
    }

    /// The raw integer of a bit pattern; for floats, their integer part.
    #[inline]
    fn raw(&self, bits: u64) -> i128 {
        match self.kind {
            Kind::Unsigned => i128::from(bits),
            Kind::Signed => i128::from(self.sign_extended(bits)),
            Kind::Single => f32::from_bits(bits as u32) as i128,
            Kind::Double => f64::from_bits(bits) as i128,
        }
    }

    #[inline]
    fn sign_extended(&self, bits: u64) -> i64 {
        let unused = 64 - self.bits as u32;
        (bits << unused) as i64 >> unused
    }

    /// The raw number of a bit pattern, as a double.
    #[inline]
    fn raw_float(&self, bits: u64) -> f64 {
        match self.kind {
            Kind::Unsigned => bits as f64,
            Kind::Signed => self.sign_extended(bits) as f64,
            Kind::Single => f64::from(f32::from_bits(bits as u32)),
            Kind::Double => f64::from_bits(bits),
        }
    }

    /// The value of a bit pattern as a double: of the column [`Column::Float`] exactly, of others rounded beyond 2⁵³.
    #[inline]
    pub fn float(&self, bits: u64) -> f64 {
        match self.conversion {
            Conversion::Identity => self.raw_float(bits),
            Conversion::Linear { factor, offset } => self.raw_float(bits) * factor + offset,
            Conversion::Whole { .. } => self.whole(bits) as f64,
        }
    }

    /// The value of a bit pattern as an integer, for [`Column::Integer`]; for [`Column::Unsigned`] the bits of `u64`.
    #[inline]
    pub fn whole(&self, bits: u64) -> i64 {
        let raw = if self.kind == Kind::Signed { self.sign_extended(bits) } else { bits as i64 };
        match self.conversion {
            Conversion::Identity => raw,
            // Two's complement: what fits into the column is exact, whatever overflows between.
            Conversion::Whole { factor, offset } => raw.wrapping_mul(factor).wrapping_add(offset),
            Conversion::Linear { .. } => self.float(bits) as i64,
        }
    }

    /// The physical value of a bit pattern.
    #[inline]
    pub fn value(&self, bits: u64) -> Value {
        match self.column {
            Column::Integer => Value::Integer(self.whole(bits)),
            Column::Unsigned => Value::Unsigned(self.whole(bits) as u64),
            Column::Float => Value::Float(self.float(bits)),
        }
    }

    /// The text of a bit pattern, if the value table has one.
    #[inline]
    pub fn choice(&self, bits: u64) -> Option<&str> {
        if self.choices.is_empty()
            || matches!(self.kind, Kind::Single | Kind::Double) && self.raw_float(bits).is_nan()
        {
            return None;
        }
        let raw = i64::try_from(self.raw(bits)).ok()?;
        let found = self.choices.binary_search_by_key(&raw, |&(value, _)| value).ok()?;
        self.choices.get(found).map(|(_, text)| text.as_str())
    }

    /// The bit pattern of a physical value, rounded half to even; `None`: it does not fit.
    pub fn pattern(&self, value: Value) -> Option<u64> {
        match self.kind {
            Kind::Single => return Some(u64::from((self.conversion.raw_float_of(value) as f32).to_bits())),
            Kind::Double => return Some(self.conversion.raw_float_of(value).to_bits()),
            Kind::Unsigned | Kind::Signed => {}
        }
        let (low, high) = self.kind.range(self.bits);
        let raw = self.conversion.raw_of(value)?;
        (low..=high).contains(&raw).then_some(raw as u64 & (u64::MAX >> (64 - self.bits)))
    }

    /// The bit pattern of a text of the value table; `None`: it has no such text.
    pub fn pattern_of_choice(&self, text: &str) -> Option<u64> {
        let &(raw, _) = self.choices.iter().find(|(_, choice)| choice == text)?;
        match self.kind {
            Kind::Single => Some(u64::from((raw as f32).to_bits())),
            Kind::Double => Some((raw as f64).to_bits()),
            Kind::Unsigned | Kind::Signed => {
                let (low, high) = self.kind.range(self.bits);
                let fits = (low..=high).contains(&i128::from(raw));
                fits.then_some(raw as u64 & (u64::MAX >> (64 - self.bits)))
            }
        }
    }
}

//! Reads what most lines of a format look like in one pass, each field where the one before it ends. `None` is not an error:
//! the format's other way reads the line again, knows everything that a line may have, and names what is wrong with it.

use crate::lines::{HEX_MAX, POWERS};
use canter_frame::notation::NIBBLES;

/// The most digits of a number, so that it is below 2^64.
const DIGITS_MAX: usize = 16;

/// Each byte of a number is this one.
const fn eight_times(byte: u8) -> u64 {
    u64::from_le_bytes([byte; 8])
}

/// The number of up to 8 decimal digits that `eight` begins with, and how many these are.
#[inline]
fn decimal(eight: [u8; 8]) -> (u64, usize) {
    let digits = u64::from_le_bytes(eight) ^ eight_times(b'0');
    // The top bit of a byte that is above 9. A carry changes only what is behind the first one.
    let others = (digits.wrapping_add(eight_times(0x7F - 9)) | digits) & eight_times(0x80);
    let count = others.trailing_zeros() as usize / 8;
    // Digits move to the end, behind zeros. Then two digits become one number, two of these one, and again.
    let digits = digits.checked_shl(64 - 8 * count as u32).unwrap_or(0);
    let pairs = (digits * 10 + (digits >> 8)) & 0x00FF_00FF_00FF_00FF;
    let fours = (pairs * 100 + (pairs >> 16)) & 0x0000_FFFF_0000_FFFF;
    ((fours * 10_000 + (fours >> 32)) & 0xFFFF_FFFF, count)
}

/// A line, from the next field on.
pub struct Cursor<'a> {
    pub rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    /// Takes these bytes.
    #[inline]
    pub fn take(&mut self, bytes: &[u8]) -> Option<()> {
        self.rest = self.rest.strip_prefix(bytes)?;
        Some(())
    }

    /// Takes any number of spaces.
    #[inline]
    pub fn spaces(&mut self) {
        while let [b' ', rest @ ..] = self.rest {
            self.rest = rest;
        }
    }

    /// Takes what is before the next space or control character.
    #[inline]
    pub fn word(&mut self) -> Option<()> {
        let end = self.rest.iter().position(|&byte| byte <= b' ')?;
        self.rest = &self.rest[end..];
        Some(())
    }

    /// Takes a number of one digit.
    #[inline]
    pub fn digit(&mut self) -> Option<u8> {
        let [digit @ b'0'..=b'9', rest @ ..] = self.rest else { return None };
        self.rest = rest;
        Some(digit - b'0')
    }

    /// Takes up to 15 decimal digits, and returns their number and how many they are. In the last 8 bytes of a line, where data
    /// is, it takes none.
    #[inline]
    fn digits(&mut self) -> Option<(u64, usize)> {
        let (number, count) = decimal(*self.rest.first_chunk()?);
        self.rest = &self.rest[count..];
        if count < 8 {
            return (count > 0).then_some((number, count));
        }
        let (more, behind) = decimal(*self.rest.first_chunk()?);
        self.rest = &self.rest[behind..];
        let count = count + behind;
        (count < DIGITS_MAX).then_some((number * POWERS[behind] + more, count))
    }

    /// Takes a decimal number with a fraction, such as `12.345`, in units of `10^places` ns, and returns its ns and the number of
    /// digits in the fraction.
    #[inline]
    pub fn decimal_ns(&mut self, places: usize) -> Option<(u64, usize)> {
        let (whole, _) = self.digits()?;
        self.take(b".")?;
        let (fraction, count) = self.digits()?;
        let ns = fraction * POWERS.get(places.checked_sub(count)?)?;
        Some((whole.checked_mul(POWERS[places])?.checked_add(ns)?, count))
    }

    /// Takes hex digits, and returns their number and how many they are: 1 to 8.
    #[inline]
    pub fn hex(&mut self) -> Option<(u32, usize)> {
        let (mut number, mut count) = (0u32, 0);
        for &byte in self.rest {
            let value = NIBBLES[usize::from(byte)];
            if value > HEX_MAX {
                break;
            }
            number = number << 4 | u32::from(value);
            count += 1;
        }
        self.rest = &self.rest[count..];
        matches!(count, 1..=8).then_some((number, count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lines;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_cursor_reads_a_decimal_number_as_all_lines_are_read_or_not_at_all(
            text in "[0-9]{0,17}[.,]?[0-9x]{0,10}", places in 0..10usize,
        ) {
            let line = format!("{text} and more");
            let mut cursor = Cursor { rest: line.as_bytes() };
            if let Some((ns, _)) = cursor.decimal_ns(places) && cursor.rest == b" and more" {
                prop_assert_eq!(Some(ns), lines::decimal_ns(text.as_bytes(), places));
            }
        }

        #[test]
        fn a_cursor_reads_every_time_since_1970(ns in 0..4_000_000_000_000_000_000u64) {
            let line = format!("{}.{:09},0x123,0,0", ns / POWERS[9], ns % POWERS[9]);
            let mut cursor = Cursor { rest: line.as_bytes() };
            prop_assert_eq!(cursor.decimal_ns(9), Some((ns, 9)));
            prop_assert_eq!(cursor.take(b",0x").and_then(|()| cursor.hex()), Some((0x123, 3)));
        }

        #[test]
        fn up_to_eight_digits_are_one_number(number in 0..100_000_000u64, behind: u8) {
            prop_assume!(!behind.is_ascii_digit());
            let digits = number.to_string();
            let mut eight = [behind; 8];
            eight[..digits.len()].copy_from_slice(digits.as_bytes());
            prop_assert_eq!(decimal(eight), (number, digits.len()));
        }
    }
}

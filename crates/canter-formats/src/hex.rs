//! Writes numbers as text without `std::fmt`, which would cost more than all other work per frame.

const DIGITS: &[u8; 16] = b"0123456789ABCDEF";

#[inline]
pub fn byte(out: &mut Vec<u8>, byte: u8) {
    out.extend_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
}

/// Appends a hex number with at least `digits` digits, at most 8.
#[inline]
pub fn number(out: &mut Vec<u8>, value: u32, digits: u32) {
    let digits = digits.max(8 - value.leading_zeros() / 4).clamp(1, 8);
    for place in (0..digits).rev() {
        out.push(DIGITS[(value >> (4 * place)) as usize & 15]);
    }
}

/// Appends a decimal number with at least `digits` digits.
#[inline]
pub fn decimal(out: &mut Vec<u8>, mut value: u64, digits: usize) {
    let mut text = [b'0'; 20];
    let mut at = text.len();
    while value > 0 {
        at -= 1;
        text[at] = DIGITS[(value % 10) as usize];
        value /= 10;
    }
    out.extend_from_slice(&text[at.min(text.len() - digits)..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_are_printed_as_std_prints_them(value: u64, small: u32) {
            let mut out = Vec::new();
            decimal(&mut out, value, 1);
            out.push(b' ');
            decimal(&mut out, value % 1000, 9);
            out.push(b' ');
            number(&mut out, small, 3);
            byte(&mut out, small as u8);
            let want = format!("{value} {:09} {small:03X}{:02X}", value % 1000, small as u8);
            prop_assert_eq!(String::from_utf8(out).unwrap(), want);
        }
    }

    #[test]
    fn zero_has_one_digit() {
        let mut out = Vec::new();
        decimal(&mut out, 0, 1);
        number(&mut out, 0, 1);
        assert_eq!(out, b"00");
    }
}

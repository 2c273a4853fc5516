//! Where a signal's bits are, compiled: one load, one shift and one mask per value.
//!
//! A window of 8 bytes holds all signals but those of more than 56 bits that begin inside a byte; these use 16 bytes. Windows
//! end inside the payload's buffer, which has [`BUFFER_BYTES`] or more, so that no load needs a length of its own.

use crate::signal::ByteOrder;

/// Bytes that a buffer has at least: the payload of an FD frame, whatever its own length.
pub(crate) const BUFFER_BYTES: usize = 64;
/// The longest signal, in bits.
pub(crate) const BITS_MAX: usize = 64;

/// The compiled place of a signal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field {
    /// The first byte of the window.
    at: usize,
    /// The place of the lowest bit in the window.
    shift: u32,
    mask: u64,
    order: ByteOrder,
    /// The window has 16 bytes.
    wide: bool,
    /// Bytes of payload that the signal needs.
    pub end: usize,
}

impl Field {
    /// The field from the start bit of a DBC; `buffer` bytes is the shortest buffer. `None`: no bits, or more than 64.
    pub fn new(start: usize, bits: usize, order: ByteOrder, buffer: usize) -> Option<Self> {
        if bits == 0 || bits > BITS_MAX {
            return None;
        }
        // The first bit in the order of transmission, for big-endian signals; the lowest bit for little-endian ones.
        let first = match order {
            ByteOrder::Little => start,
            ByteOrder::Big => start / 8 * 8 + (7 - start % 8),
        };
        let end = (first + bits - 1) / 8 + 1;
        let buffer = buffer.max(BUFFER_BYTES).max(end);
        let wide = end - first / 8 > 8;
        let window = if wide { 16 } else { 8 };
        let at = (first / 8).min(buffer - window);
        let shift = match order {
            ByteOrder::Little => first - 8 * at,
            ByteOrder::Big => 8 * window - (first - 8 * at) - bits,
        };
        let mask = u64::MAX >> (BITS_MAX - bits);
        Some(Self { at, shift: shift as u32, mask, order, wide, end })
    }

    /// The end of the window in the buffer.
    pub fn window_end(&self) -> usize {
        self.at + if self.wide { 16 } else { 8 }
    }

    /// The bits of the signal. Bytes outside of the buffer count as 0.
    #[inline]
    pub fn load(&self, buffer: &[u8]) -> u64 {
        if self.wide {
            return self.load_wide(buffer);
        }
        let Some(window) = buffer.get(self.at..self.at + 8).and_then(|bytes| bytes.first_chunk()) else {
            return 0;
        };
        let word = match self.order {
            ByteOrder::Little => u64::from_le_bytes(*window),
            ByteOrder::Big => u64::from_be_bytes(*window),
        };
        word >> self.shift & self.mask
    }

    #[cold]
    fn load_wide(&self, buffer: &[u8]) -> u64 {
        let Some(window) = buffer.get(self.at..self.at + 16).and_then(|bytes| bytes.first_chunk()) else {
            return 0;
        };
        let word = match self.order {
            ByteOrder::Little => u128::from_le_bytes(*window),
            ByteOrder::Big => u128::from_be_bytes(*window),
        };
        (word >> self.shift) as u64 & self.mask
    }

    /// Writes the bits of the signal; the other bits stay.
    pub fn store(&self, buffer: &mut [u8], bits: u64) {
        let bytes = if self.wide { 16 } else { 8 };
        let Some(window) = buffer.get_mut(self.at..self.at + bytes) else { return };
        let (mask, bits) = (u128::from(self.mask) << self.shift, u128::from(bits & self.mask) << self.shift);
        for (place, byte) in window.iter_mut().enumerate() {
            let significance = match self.order {
                ByteOrder::Little => place,
                ByteOrder::Big => bytes - 1 - place,
            };
            let (mask, bits) = ((mask >> (8 * significance)) as u8, (bits >> (8 * significance)) as u8);
            *byte = *byte & !mask | bits;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The bits one by one, as the format describes them.
    fn reference(start: usize, bits: usize, order: ByteOrder, buffer: &[u8]) -> u64 {
        let bit = |at: usize| u64::from(buffer[at / 8] >> (at % 8) & 1);
        let mut value = 0;
        match order {
            ByteOrder::Little => (0..bits).for_each(|n| value |= bit(start + n) << n),
            ByteOrder::Big => {
                let mut at = start;
                for _ in 0..bits {
                    value = value << 1 | bit(at);
                    at = if at.is_multiple_of(8) { at + 15 } else { at - 1 };
                }
            }
        }
        value
    }

    proptest! {
        #[test]
        fn a_field_has_the_bits_that_the_format_describes(
            buffer in proptest::collection::vec(any::<u8>(), 64), start in 0usize..512, bits in 1usize..=64,
            big in any::<bool>(), value in any::<u64>(),
        ) {
            let order = if big { ByteOrder::Big } else { ByteOrder::Little };
            let field = Field::new(start, bits, order, 64).unwrap();
            prop_assume!(field.end <= 64);
            prop_assert_eq!(field.load(&buffer), reference(start, bits, order, &buffer));
            let mut changed = buffer.clone();
            field.store(&mut changed, value);
            prop_assert_eq!(field.load(&changed), value & field.mask);
            field.store(&mut changed, field.load(&buffer));
            prop_assert_eq!(changed, buffer);
        }
    }
}

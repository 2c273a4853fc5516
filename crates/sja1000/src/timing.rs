//! The bit timing: length of a bit and sample point.

use crate::Error;

/// The bit timing in registers BTR0 and BTR1 (sections 6.5.1 and 6.5.2).
///
/// A time quantum is 2 × BRP periods of the crystal; a bit is one quantum of synchronisation, TSEG1 and TSEG2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// BRP, 1…64: the prescaler.
    pub prescaler: u8,
    /// TSEG1, 1…16 quanta before the sample point.
    pub segment1: u8,
    /// TSEG2, 1…8 quanta after the sample point.
    pub segment2: u8,
    /// SJW, 1…4: quanta by which a resynchronisation moves the sample point at most.
    pub jump: u8,
}

/// A bit in quanta at most: 1 + 16 + 8.
const QUANTA_MAX: u32 = 25;
/// A bit in quanta at least, by ISO 11898-1.
const QUANTA_MIN: u32 = 8;
/// ‰ of the bit in which the sample point lies at best (CiA 301).
const SAMPLE_POINT: u32 = 875;

impl Timing {
    /// The timing for a crystal of `crystal_hz` and `bitrate` bit/s. The rate is exact; of the exact timings this is the one
    /// with the sample point nearest to 87.5 %, and of those the one with the most quanta. SJW is 1.
    ///
    /// # Errors
    /// [`Error::Timing`] when the crystal cannot be divided to that rate.
    pub fn new(crystal_hz: u32, bitrate: u32) -> Result<Self, Error> {
        let clock_hz = crystal_hz / 2;
        let mut best: Option<(u32, Self)> = None;
        for quanta in (QUANTA_MIN..=QUANTA_MAX).rev() {
            let Some(quanta_hz) = bitrate.checked_mul(quanta).filter(|&hz| hz > 0) else { continue };
            let prescaler = clock_hz / quanta_hz;
            if !clock_hz.is_multiple_of(quanta_hz) || !(1..=64).contains(&prescaler) {
                continue;
            }
            let segment2 = (quanta - quanta * SAMPLE_POINT / 1000).clamp(1, 8);
            let segment1 = quanta - 1 - segment2;
            if segment1 > 16 {
                continue;
            }
            let distance = (1000 * (1 + segment1) / quanta).abs_diff(SAMPLE_POINT);
            if best.is_none_or(|(nearest, _)| distance < nearest) {
                let narrow = |value: u32| value as u8; // all are below 65
                let timing = Self {
                    prescaler: narrow(prescaler),
                    segment1: narrow(segment1),
                    segment2: narrow(segment2),
                    jump: 1,
                };
                best = Some((distance, timing));
            }
        }
        best.map(|(_, timing)| timing).ok_or(Error::Timing)
    }

    /// The value of BTR0.
    pub fn btr0(&self) -> u8 {
        (self.jump - 1) << 6 | (self.prescaler - 1)
    }

    /// The value of BTR1.
    pub fn btr1(&self) -> u8 {
        (self.segment2 - 1) << 4 | (self.segment1 - 1)
    }

    /// The bit rate in bit/s with a crystal of `crystal_hz`.
    pub fn bitrate(&self, crystal_hz: u32) -> u32 {
        let quanta = 1 + u32::from(self.segment1) + u32::from(self.segment2);
        crystal_hz / 2 / (u32::from(self.prescaler) * quanta)
    }

    /// Whether the registers can hold this timing.
    pub fn is_possible(&self) -> bool {
        (1..=64).contains(&self.prescaler)
            && (1..=16).contains(&self.segment1)
            && (1..=8).contains(&self.segment2)
            && (1..=4).contains(&self.jump)
            && self.jump <= self.segment2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_rates_come_out_as_the_usual_registers() {
        // Sample point at 87.5 %; 0x00 0x1c is the usual pair for 500 kbit/s at 16 MHz.
        for (bitrate, btr0, btr1) in
            [(1_000_000, 0x00, 0x05), (500_000, 0x00, 0x1c), (250_000, 0x01, 0x1c), (125_000, 0x03, 0x1c)]
        {
            let timing = Timing::new(16_000_000, bitrate).unwrap();
            assert_eq!((timing.btr0(), timing.btr1()), (btr0, btr1), "{bitrate}: {timing:?}");
        }
    }

    #[test]
    fn every_rate_that_it_answers_is_exact_and_possible() {
        for bitrate in
            [10_000, 20_000, 50_000, 100_000, 125_000, 200_000, 250_000, 400_000, 500_000, 1_000_000]
        {
            let timing = Timing::new(16_000_000, bitrate).unwrap();
            assert_eq!(timing.bitrate(16_000_000), bitrate);
            assert!(timing.is_possible(), "{timing:?}");
        }
    }

    #[test]
    fn a_rate_that_cannot_be_made_is_refused() {
        for bitrate in [0, 1, 333_333, 2_000_000, u32::MAX] {
            assert_eq!(Timing::new(16_000_000, bitrate), Err(Error::Timing), "{bitrate}");
        }
    }
}

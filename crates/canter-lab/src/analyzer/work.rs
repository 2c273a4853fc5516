//! What was executed, and what of it takes a processor time beside the instructions: the plugin counts it
//! (carried/analyzer/cost.c).

use serde::{Deserialize, Serialize};
use std::ops::{Add, Sub};

/// What was executed, and what of it takes a board time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    pub instructions: u64,
    /// Misses of the first caches.
    pub code_misses: u64,
    pub data_misses: u64,
    /// Misses of both that the second cache did not have either.
    pub memory: u64,
    /// Reads and writes of registers of devices.
    pub registers: u64,
    /// Entries into the kernel: system calls, interrupts, exceptions.
    pub entries: u64,
}

/// The number of counts of [`Work`].
pub const COUNTS: usize = 6;

impl Work {
    /// In the order in which the plugin prints them.
    pub fn from_counts(counts: [u64; COUNTS]) -> Self {
        let [instructions, code_misses, data_misses, memory, registers, entries] = counts;
        Self { instructions, code_misses, data_misses, memory, registers, entries }
    }

    fn counts(self) -> [u64; COUNTS] {
        let Self { instructions, code_misses, data_misses, memory, registers, entries } = self;
        [instructions, code_misses, data_misses, memory, registers, entries]
    }

    fn with(self, other: Self, operation: fn(u64, u64) -> u64) -> Self {
        let (one, other) = (self.counts(), other.counts());
        Self::from_counts(std::array::from_fn(|at| operation(one[at], other[at])))
    }
}

impl Add for Work {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.with(other, u64::saturating_add)
    }
}

impl Sub for Work {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self.with(other, u64::saturating_sub)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_added_and_subtracted_count_by_count() {
        let work = Work::from_counts([7, 3, 2, 1, 4, 5]);
        assert_eq!(work - work, Work::default());
        assert_eq!(work + work, Work::from_counts([14, 6, 4, 2, 8, 10]));
    }
}

//! What was executed, what of it takes a board time beside the instructions, and that time.

use serde::{Deserialize, Serialize};
use std::ops::{Add, Sub};

/// What was executed, and what of it takes a board time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    /// Instructions.
    pub instructions: u64,
    /// Misses of the first cache for code.
    pub code_misses: u64,
    /// Misses of the first cache for data.
    pub data_misses: u64,
    /// Misses of both that the second cache did not have either.
    pub memory: u64,
    /// Reads and writes of registers of devices.
    pub registers: u64,
    /// Entries into the kernel: system calls, interrupts, exceptions.
    pub entries: u64,
}

/// What a board takes for each count of a [`Work`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Times {
    /// The time of an instruction whose code and data are in the first caches.
    pub instruction_ps: u64,
    /// What is added by a miss of a first cache that the second has.
    pub second_ps: u64,
    /// What is added by a miss that memory, or a third cache, answers.
    pub memory_ps: u64,
    /// The time of a read or write of a register of a device.
    pub register_ps: u64,
    /// What an entry into the kernel adds to its instructions.
    pub entry_ps: u64,
}

impl Times {
    /// The time that this work takes, in ps.
    pub fn total_ps(self, work: &Work) -> u64 {
        let second = (work.code_misses + work.data_misses).saturating_sub(work.memory);
        [
            (work.instructions, self.instruction_ps),
            (second, self.second_ps),
            (work.memory, self.memory_ps),
            (work.registers, self.register_ps),
            (work.entries, self.entry_ps),
        ]
        .into_iter()
        .fold(0, |sum, (count, each_ps)| sum.saturating_add(count.saturating_mul(each_ps)))
    }
}

/// The number of counts of a [`Work`].
pub const COUNTS: usize = 6;

impl Work {
    /// From the counts, in the order of the fields.
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

    #[test]
    fn a_time_is_the_sum_of_what_was_counted() {
        let work = Work::from_counts([7, 3, 2, 1, 4, 5]);
        let times =
            Times { instruction_ps: 1, second_ps: 10, memory_ps: 100, register_ps: 1_000, entry_ps: 10_000 };
        assert_eq!(times.total_ps(&work), 7 + 4 * 10 + 100 + 4 * 1_000 + 5 * 10_000);
    }
}

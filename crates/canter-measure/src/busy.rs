//! The load of the processors during a measurement: the meter reads /proc/stat from time to time between two frames, so
//! that no additional thread runs beside the gateway.
//!
//! Only idle time is read; the rest is busy. The kernel measures idle time exactly, without interrupts, but samples
//! busy time at timer ticks, which miss a gateway that works for a few µs.

use canter_io::clock;
use std::fs;

/// The maximum number of readings; above it, every other one is dropped.
const POINTS: usize = 512;
/// The shortest time between readings: the kernel counts in hundredths of a second.
const EVERY_NS: u64 = 100_000_000;
/// The unit of /proc/stat (`USER_HZ`).
const TICK_NS: u64 = 10_000_000;

/// Readings of /proc/stat.
pub struct Sampler {
    every_ns: u64,
    processors: u64,
    start_ns: Option<u64>,
    /// `[ns since the start, idle ticks]`.
    readings: Vec<[u64; 2]>,
    ended: bool,
}

impl Default for Sampler {
    fn default() -> Self {
        Self {
            every_ns: EVERY_NS,
            processors: 1,
            start_ns: None,
            readings: Vec::with_capacity(POINTS),
            ended: false,
        }
    }
}

impl Sampler {
    /// Reads when a reading is due; the first call is the start.
    pub fn read_when_due(&mut self) {
        self.read(self.every_ns);
    }

    /// Reads for the last time: the remaining time is only waiting for lost frames.
    pub fn end(&mut self) {
        self.read(0);
        self.ended = true;
    }

    /// Reads when the last reading is at least this long ago.
    fn read(&mut self, at_least_ns: u64) {
        if self.ended {
            return;
        }
        let now_ns = clock::monotonic_ns();
        let start_ns = *self.start_ns.get_or_insert(now_ns);
        let since_ns = now_ns - start_ns;
        if self.readings.last().is_some_and(|last| since_ns < last[0] + at_least_ns) {
            return;
        }
        let Ok(stat) = fs::read_to_string("/proc/stat") else { return };
        let Some(idle) = idle(&stat) else { return };
        self.processors = processors(&stat).max(1);
        if self.readings.len() == POINTS {
            let mut number = 0;
            self.readings.retain(|_| {
                number += 1;
                number % 2 == 1
            });
            self.every_ns *= 2;
        }
        self.readings.push([since_ns, idle]);
    }

    /// The load for the result file: `[ns, tenths of a per cent]` from one reading to the next.
    pub fn finish(&self) -> Vec<[u64; 2]> {
        let between = |pair: &[[u64; 2]]| {
            let [[before_ns, idle_before], [now_ns, idle_now]] = pair else { return None };
            let all_ns = (now_ns - before_ns) * self.processors;
            let idle_ns = (idle_now.saturating_sub(*idle_before) * TICK_NS).min(all_ns);
            Some([*now_ns, 1000 - (idle_ns * 1000).checked_div(all_ns)?])
        };
        self.readings.windows(2).filter_map(between).collect()
    }
}

/// The ticks that all processors were idle. proc_stat(5): "user nice system idle iowait irq …".
fn idle(stat: &str) -> Option<u64> {
    let mut words = stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace().skip(3);
    let mut next = || words.next()?.parse::<u64>().ok();
    Some(next()? + next()?)
}

/// The number of online processors: of lines `cpu0 …`.
fn processors(stat: &str) -> u64 {
    let is_processor = |line: &&str| line.strip_prefix("cpu").is_some_and(|rest| !rest.starts_with(' '));
    stat.lines().filter(is_processor).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_for_a_disk_is_idle_too() {
        let stat =
            "cpu  10 1 5 80 4 0 2 1 3 0\ncpu0 10 1 5 80 4 0 2 1 3 0\ncpu1 0 0 0 0 0 0 0 0 0 0\nintr 7\n";
        assert_eq!((idle(stat), processors(stat)), (Some(84), 2));
        assert_eq!((idle("intr 0"), processors("intr 0")), (None, 0));
        assert_eq!(idle("cpu  1 2\n"), None);
    }

    #[test]
    fn a_point_is_the_share_since_the_one_before() {
        let readings = vec![[0, 100], [100_000_000, 110], [200_000_000, 110], [250_000_000, 121]];
        let sampler = Sampler { every_ns: 1, processors: 2, start_ns: None, readings, ended: false };
        let load = sampler.finish();
        assert_eq!(load, [[100_000_000, 500], [200_000_000, 1000], [250_000_000, 0]], "never below 0");
    }
}

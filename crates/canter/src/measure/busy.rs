//! How busy the processors are while something is measured: read from /proc/stat from time to time, by the meter itself
//! between two frames, so that no thread of its own runs beside the gateway.

use canter_io::sys::clock;
use std::fs;

/// At most so many readings; when they are too many, every other one is dropped.
const POINTS: usize = 512;
/// The kernel counts in ticks of a hundredth of a second: in less there is nothing to be seen.
const EVERY_NS: u64 = 100_000_000;

/// Readings of /proc/stat.
pub struct Sampler {
    every_ns: u64,
    start_ns: Option<u64>,
    /// ns since the start, ticks busy, ticks in all.
    readings: Vec<[u64; 3]>,
}

impl Sampler {
    pub fn new() -> Self {
        Self { every_ns: EVERY_NS, start_ns: None, readings: Vec::with_capacity(POINTS) }
    }

    /// Reads when it is time; the first call is the start.
    pub fn look(&mut self) {
        let now_ns = clock::monotonic_ns();
        let start_ns = *self.start_ns.get_or_insert(now_ns);
        let since_ns = now_ns - start_ns;
        if self.readings.last().is_some_and(|last| since_ns < last[0] + self.every_ns) {
            return;
        }
        let Some([busy, all]) = fs::read_to_string("/proc/stat").ok().as_deref().and_then(ticks) else {
            return;
        };
        if self.readings.len() == POINTS {
            let mut number = 0;
            self.readings.retain(|_| {
                number += 1;
                number % 2 == 1
            });
            self.every_ns *= 2;
        }
        self.readings.push([since_ns, busy, all]);
    }

    /// As it goes into the result file: `[ns, tenths of a per cent]` from one reading to the next.
    pub fn finish(&self) -> Vec<[u64; 2]> {
        let between = |pair: &[[u64; 3]]| {
            let busy = pair[1][1].saturating_sub(pair[0][1]);
            let all = pair[1][2].saturating_sub(pair[0][2]);
            (all > 0).then(|| [pair[1][0], (busy * 1000 / all).min(1000)])
        };
        self.readings.windows(2).filter_map(between).collect()
    }
}

/// The ticks of all processors: busy, and in all. proc_stat(5): "user nice system idle iowait irq softirq steal guest …",
/// where guest is in user already.
fn ticks(stat: &str) -> Option<[u64; 2]> {
    let mut words = stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace().map(str::parse::<u64>);
    let mut next = || words.next()?.ok();
    let (user, nice, system, idle, waiting) = (next()?, next()?, next()?, next()?, next()?);
    let rest = next()? + next()? + next()?;
    let busy = user + nice + system + rest;
    Some([busy, busy + idle + waiting])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_and_waiting_are_not_busy() {
        let stat = "cpu  10 1 5 80 4 0 2 1 3 0\ncpu0 10 1 5 80 4 0 2 1 3 0\n";
        assert_eq!(ticks(stat), Some([19, 103]));
        assert_eq!(ticks("intr 0"), None);
        assert_eq!(ticks("cpu  1 2\n"), None);
    }

    #[test]
    fn a_point_is_the_share_since_the_one_before() {
        let readings = vec![[0, 100, 1000], [5, 150, 1100], [9, 150, 1100], [12, 250, 1200]];
        let sampler = Sampler { every_ns: 1, start_ns: None, readings };
        assert_eq!(sampler.finish(), [[5, 500], [12, 1000]], "where no tick passed there is nothing to tell");
    }
}

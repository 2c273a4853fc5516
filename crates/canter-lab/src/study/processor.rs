//! The time that the processors were not idle, to the ns: the kernel sums up each processor's idle time without the interrupts
//! in it, and prints the sum in /proc/timer_list.

use canter_cli::failure::{self, Failure};
use canter_io::clock;
use std::fs;

const LIST: &str = "/proc/timer_list";

/// A moment: the clock, and the processors' idle time since the boot.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    at_ns: u64,
    idle_ns: u64,
    processors: u64,
}

impl Moment {
    pub fn now() -> failure::Result<Self> {
        let wrong = |why: String| Failure::unable(format!("{LIST}: read: {why}"));
        let text = fs::read_to_string(LIST).map_err(|error| wrong(format!("{error} (it needs root)")))?;
        let (idle_ns, processors) =
            idle(&text).ok_or_else(|| wrong("it has no idle_sleeptime".to_owned()))?;
        Ok(Self { at_ns: clock::monotonic_ns(), idle_ns, processors })
    }

    /// The time in which processors were busy since an earlier moment.
    pub fn busy_ns_since(&self, earlier: &Self) -> u64 {
        let passed_ns = self.processors * self.since_ns(earlier);
        passed_ns.saturating_sub(self.idle_ns - earlier.idle_ns)
    }

    pub fn since_ns(&self, earlier: &Self) -> u64 {
        self.at_ns - earlier.at_ns
    }
}

/// The idle times of all processors in a text of /proc/timer_list, and how many there are.
fn idle(text: &str) -> Option<(u64, u64)> {
    let values = text.lines().filter_map(|line| line.trim().strip_prefix(".idle_sleeptime :"));
    let values: Option<Vec<u64>> =
        values.map(|value| value.split_whitespace().next()?.parse().ok()).collect();
    values.filter(|values| !values.is_empty()).map(|values| (values.iter().sum(), values.len() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_times_of_all_processors_are_summed_up() {
        let text = "cpu: 0\n  .tick_stopped   : 0\n  .idle_sleeptime : 8885274957 nsecs\ncpu: 1\n\
                    \x20 .idle_sleeptime : 43 nsecs\n  .iowait_sleeptime: 5 nsecs\n";
        assert_eq!(idle(text), Some((8_885_275_000, 2)));
        assert_eq!(idle("cpu: 0\n"), None);
        assert_eq!(idle("  .idle_sleeptime : many nsecs\n"), None);
    }

    #[test]
    fn busy_is_what_is_not_idle() {
        let moment = |at_ns, idle_ns| Moment { at_ns, idle_ns, processors: 2 };
        assert_eq!(moment(1_500, 900).busy_ns_since(&moment(500, 200)), 1_300);
    }
}

//! The clocks: monotonic time for measurements, real time for stamps.

use rustix::{
    thread::clock_nanosleep_absolute,
    time::{ClockId, Timespec, clock_gettime},
};

/// ns of `CLOCK_MONOTONIC`, never set back: durations and deadlines.
pub fn monotonic_ns() -> u64 {
    read(ClockId::Monotonic)
}

/// ns of `CLOCK_REALTIME`, the clock of `SO_TIMESTAMPNS` and of packet rings.
pub fn realtime_ns() -> u64 {
    read(ClockId::Realtime)
}

fn read(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Sleeps until `deadline_ns` of `CLOCK_MONOTONIC`; a signal ends it early.
pub fn sleep_until_ns(deadline_ns: u64) {
    let until = Timespec {
        tv_sec: (deadline_ns / 1_000_000_000) as i64,
        tv_nsec: (deadline_ns % 1_000_000_000) as _,
    };
    let _ = clock_nanosleep_absolute(ClockId::Monotonic, &until); // fails only after a signal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_in_the_past_returns_at_once_and_one_ahead_is_kept() {
        sleep_until_ns(0);
        let deadline = monotonic_ns() + 2_000_000;
        sleep_until_ns(deadline);
        assert!(monotonic_ns() >= deadline);
    }
}

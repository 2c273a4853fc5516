//! The clocks: monotonic time for measurements, real time for stamps.

/// ns of `CLOCK_MONOTONIC`, never set back: durations and deadlines.
pub fn monotonic_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// ns of `CLOCK_REALTIME`, the clock of `SO_TIMESTAMPNS` and of packet rings.
pub fn realtime_ns() -> u64 {
    read(libc::CLOCK_REALTIME)
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` outlives the call. clock_gettime(2): fails only for a clock that does not exist.
    unsafe { libc::clock_gettime(clock, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Sleeps until `deadline_ns` of `CLOCK_MONOTONIC`; a signal ends it early.
pub fn sleep_until_ns(deadline_ns: u64) {
    let until = libc::timespec {
        tv_sec: (deadline_ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (deadline_ns % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: `until` outlives the call, the remainder is not asked for. clock_nanosleep(2).
    unsafe {
        libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &until, std::ptr::null_mut())
    };
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

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

/// What the kernel says about the real-time clock, by the words of the program that keeps it: chrony, ntpd or ptp4l.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Discipline {
    /// Whether a program keeps the clock.
    pub is_synchronized: bool,
    /// The error that the program estimates, in ns.
    pub error_ns: u64,
    /// The greatest error that the program allows for, in ns.
    pub error_max_ns: u64,
}

/// What keeps the real-time clock; `None`: the kernel does not say.
#[allow(unsafe_code)]
pub fn discipline() -> Option<Discipline> {
    let mut about = std::mem::MaybeUninit::<libc::timex>::zeroed();
    // SAFETY: adjtimex(2): "takes a pointer to a timex structure, updates kernel parameters from (selected) field values, and
    // returns the same structure updated with the current kernel values". Zeros are valid, and `modes` 0 selects none.
    let state = unsafe { libc::adjtimex(about.as_mut_ptr()) };
    if state < 0 {
        return None;
    }
    // SAFETY: zeroed, and filled by the call above.
    let about = unsafe { about.assume_init() };
    let ns = |us: libc::c_long| us.max(0) as u64 * 1000;
    Some(Discipline {
        is_synchronized: about.status & libc::STA_UNSYNC == 0,
        error_ns: ns(about.esterror),
        error_max_ns: ns(about.maxerror),
    })
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
    #[cfg_attr(miri, ignore = "system calls")]
    fn the_kernel_says_what_keeps_its_clock() {
        assert!(discipline().is_some());
    }

    #[test]
    fn a_deadline_in_the_past_returns_at_once_and_one_ahead_is_kept() {
        sleep_until_ns(0);
        let deadline = monotonic_ns() + 2_000_000;
        sleep_until_ns(deadline);
        assert!(monotonic_ns() >= deadline);
    }
}

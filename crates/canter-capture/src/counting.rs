//! When an interface's counting begins and ends: readings of its counters, and the stamps of the frames that they
//! include.
//!
//! A driver counts a frame before or after the kernel stamps it, so that a frame close to a reading may be on either
//! side. A reading is exact when the interface counted nothing for a while around it; buses have such gaps unless they
//! are full.

use canter_io::{Interface, clock, interface::FrameCounters};
use std::time::{Duration, Instant};

/// The greatest difference, in ns, between a frame's stamp and the time when the interface counts the frame, should the
/// processor be taken away in between.
const COUNTING_NS: u64 = 1_000_000;
/// A gap without frames is at least this long, in ns: drivers count and stamp a frame within less than half of it. The
/// shortest frames that fill a bus of 1 Mbit/s come every 47 µs, those of eight bytes every 110 µs.
const GAP_NS: u64 = 40_000;
/// The longest time between two readings that are compared, in ns; otherwise the clock was set between them.
const GAP_NS_MAX: u64 = 1_000_000_000;
/// How long gaps are looked for on all interfaces together, without a pause, since a sleep would outlast the gap between two
/// frames; a full bus may have none. The shortest queue of a socket holds 10 ms of a full bus.
const LOOK: Duration = Duration::from_millis(5);
/// Each interface is read at least this often: the time may have passed while the processor was taken away.
const READINGS_MIN: u32 = 10;
/// So long after the first reading, in ns, all frames that waited in the kernel then were received: the receiver empties the
/// ring ten times a second.
const SETTLED_NS: u64 = 2_000_000_000;
/// The longest time, in ns, from a frame's stamp until the frame is in its block or its socket.
pub const IN_FLIGHT_NS: u64 = 20_000_000;
/// If the real-time clock differs from the monotonic clock by more than this, in ns, since an earlier look, it was set.
pub const CLOCK_STEP_NS: u64 = 50_000_000;

/// Real time minus monotonic time, in ns. A preemption between the two readings would look like a clock step, so the
/// clocks are read again then.
pub fn clock_offset_ns() -> u64 {
    loop {
        let before_ns = clock::monotonic_ns();
        let offset_ns = clock::realtime_ns().wrapping_sub(before_ns);
        if clock::monotonic_ns() - before_ns < CLOCK_STEP_NS / 2 {
            return offset_ns;
        }
    }
}

/// By how much the clock was set between two values of [`clock_offset_ns`]; `None`: it was not set.
pub fn clock_step(earlier_ns: u64, later_ns: u64) -> Option<i64> {
    let step_ns = later_ns.wrapping_sub(earlier_ns).cast_signed();
    (step_ns.unsigned_abs() > CLOCK_STEP_NS).then_some(step_ns)
}

/// A reading of an interface's counters.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    /// `None`: the interface does not exist.
    pub counters: Option<FrameCounters>,
    /// Frames stamped at or after this, in ns, are not in `counters`.
    before_ns: u64,
    /// Frames stamped up to this, in ns, are in `counters`. Between the two it is unknown.
    after_ns: u64,
}

impl Reading {
    fn now(interface: &Interface) -> Self {
        let before_ns = clock::realtime_ns();
        Self { counters: interface.frame_counters().ok(), before_ns, after_ns: clock::realtime_ns() }
    }

    /// The stamp in the middle of a gap in which the interface counted nothing, if there was one since `earlier`.
    fn middle_of_gap(&self, earlier: &Self) -> Option<u64> {
        let length_ns = self.before_ns.checked_sub(earlier.after_ns)?;
        (length_ns >= GAP_NS && self.continues(earlier)).then_some(earlier.after_ns + length_ns / 2)
    }

    /// Whether the interface has counted nothing since `earlier`, and the clock was not set.
    fn continues(&self, earlier: &Self) -> bool {
        let length_ns = self.before_ns.checked_sub(earlier.after_ns);
        length_ns.is_some_and(|ns| ns < GAP_NS_MAX) && self.counts() == earlier.counts()
    }

    /// Frames received and sent; `None`: the interface does not exist.
    fn counts(&self) -> Option<(u64, u64)> {
        self.counters.map(|now| (now.rx_frames, now.tx_frames))
    }
}

/// Reads the counters of all interfaces so long before anything is received from them that a frame which they have counted does
/// not wait in the kernel any more.
pub fn read_before(interfaces: &[Interface]) -> Vec<Reading> {
    let readings: Vec<Reading> = interfaces.iter().map(Reading::now).collect();
    if !readings.is_empty() {
        std::thread::sleep(Duration::from_nanos(IN_FLIGHT_NS));
    }
    readings
}

/// Reads the counters of all interfaces, each in a gap between its frames if it has one.
pub fn read(interfaces: &[&Interface]) -> Vec<Reading> {
    let look = LOOK / interfaces.len().max(1) as u32;
    interfaces.iter().map(|interface| read_in_gap(interface, look)).collect()
}

/// Reads until the interface has counted nothing for the length of a gap, or until `look` has passed and there were enough
/// readings.
fn read_in_gap(interface: &Interface, look: Duration) -> Reading {
    let begun = Instant::now();
    let mut since = Reading::now(interface); // the first with these counts
    let mut readings = 1;
    loop {
        readings += 1;
        let again = Reading::now(interface);
        if let Some(ns) = again.middle_of_gap(&since) {
            return Reading { before_ns: ns + 1, after_ns: ns, ..again };
        }
        if !again.continues(&since) {
            since = again;
        }
        if begun.elapsed() >= look && readings >= READINGS_MIN {
            return Reading {
                before_ns: again.before_ns.saturating_sub(COUNTING_NS),
                after_ns: again.after_ns + COUNTING_NS,
                ..again
            };
        }
    }
}

/// The stamps of the frames that belong to the recording.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// From the first on; for those up to the second it is unknown on which side the interface counted them. Exact when
    /// the second is below the first.
    from_ns: (u64, u64),
    /// Up to the second, unknown from the first on.
    until_ns: (u64, u64),
    /// The clock's offset when `from_ns` was set.
    offset_ns: u64,
    /// The monotonic time, in ns, until which frames from before the first reading may wait in the kernel.
    settled_ns: u64,
}

impl Default for Span {
    fn default() -> Self {
        Self { from_ns: (0, 0), until_ns: (u64::MAX, u64::MAX), offset_ns: 0, settled_ns: 0 }
    }
}

impl Span {
    /// The frames since this reading. `before`: a reading of [`read_before`]; if the interface has counted nothing since, no
    /// frame from before this reading waits in the kernel.
    pub fn begin(reading: &Reading, before: Option<&Reading>) -> Self {
        let from_ns = (reading.before_ns, reading.after_ns);
        let is_settled = before.is_some_and(|before| before.counts() == reading.counts());
        let settled_ns = if is_settled { 0 } else { clock::monotonic_ns() + SETTLED_NS };
        Self { from_ns, offset_ns: clock_offset_ns(), settled_ns, ..Self::default() }
    }

    /// Ends at this reading. After the clock was set, frames that wait in the kernel may have later stamps.
    pub fn end(&mut self, reading: &Reading, clock_was_set: bool) {
        let until_ns = if clock_was_set { u64::MAX } else { reading.after_ns };
        self.until_ns = (reading.before_ns, until_ns);
    }

    /// Accepts all stamps: those before and after a clock step cannot be compared. At first it is unknown of all of them on
    /// which side of the first reading they were counted, since some may have waited in the kernel since before that.
    pub fn clock_was_set(&mut self) {
        let is_settled = clock::monotonic_ns() > self.settled_ns;
        self.from_ns = if is_settled { (0, 0) } else { (0, u64::MAX) };
    }

    /// Whether the stamp is so close to a limit, or outside, that [`is_inside`](Self::is_inside) must decide.
    #[inline(always)]
    pub fn is_near_limit(&self, stamp_ns: u64) -> bool {
        stamp_ns <= self.from_ns.1 || stamp_ns >= self.until_ns.0
    }

    /// Whether a frame with this stamp belongs to the recording. `clock_offset_ns` tells whether the clock was set.
    pub fn is_inside(&mut self, stamp_ns: u64, clock_offset_ns: impl Fn() -> u64) -> bool {
        if stamp_ns < self.from_ns.0 && clock_step(self.offset_ns, clock_offset_ns()).is_some() {
            self.clock_was_set();
        }
        if self.from_ns == (0, u64::MAX) && clock::monotonic_ns() > self.settled_ns {
            self.from_ns = (0, 0);
        }
        stamp_ns >= self.from_ns.0 && stamp_ns <= self.until_ns.1
    }

    /// Whether it is unknown on which side of a limit the interface counted the frame, which is inside.
    pub fn is_ambiguous(&self, stamp_ns: u64) -> bool {
        (self.from_ns.1 > 0 && stamp_ns <= self.from_ns.1) || stamp_ns >= self.until_ns.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(rx_frames: u64, before_ns: u64, after_ns: u64) -> Reading {
        let counters = Some(FrameCounters { rx_frames, ..FrameCounters::default() });
        Reading { counters, before_ns, after_ns }
    }

    #[test]
    fn a_reading_in_a_gap_leaves_no_frame_in_doubt() {
        let (earlier, later) = (reading(5, 1_000, 2_000), reading(5, 402_000, 403_000));
        assert_eq!(later.middle_of_gap(&earlier), Some(202_000));
        assert_eq!(reading(6, 402_000, 403_000).middle_of_gap(&earlier), None, "a frame was counted");
        assert_eq!(reading(5, 41_000, 43_000).middle_of_gap(&earlier), None, "too short");
        assert_eq!(reading(5, 500, 600).middle_of_gap(&earlier), None, "the clock was set back");
        let exact = Reading { before_ns: 101, after_ns: 100, ..earlier };
        let mut span = Span::begin(&exact, None);
        let offset = clock_offset_ns;
        let inside: Vec<bool> = [100, 101].map(|ns| span.is_inside(ns, offset)).to_vec();
        assert_eq!(inside, [false, true]);
        span.end(&Reading { before_ns: 201, after_ns: 200, ..earlier }, false);
        assert!([101, 200].iter().all(|&ns| !span.is_near_limit(ns) || !span.is_ambiguous(ns)));
        assert!(span.is_near_limit(201) && !span.is_inside(201, offset));
    }

    #[test]
    fn frames_around_a_reading_without_a_gap_are_inside_and_in_doubt() {
        let mut span = Span::begin(&reading(0, 100, 110), None);
        span.end(&reading(0, 200, 210), false);
        let offset = clock_offset_ns;
        let seen = |span: &mut Span, ns| span.is_inside(ns, offset).then(|| span.is_ambiguous(ns));
        let places: Vec<Option<bool>> =
            [99, 100, 110, 111, 199, 200, 210, 211].map(|ns| seen(&mut span, ns)).to_vec();
        let (doubt, sure) = (Some(true), Some(false));
        assert_eq!(places, [None, doubt, doubt, sure, sure, doubt, doubt, None]);
    }

    #[test]
    fn a_clock_that_was_set_excludes_no_frame() {
        let mut span = Span::begin(&reading(0, 1_000, 1_000), None);
        assert!(!span.is_inside(10, clock_offset_ns));
        assert!(span.is_inside(10, || clock_offset_ns().wrapping_sub(3_600_000_000_000)));
        span.end(&reading(0, 20, 20), true);
        assert!(span.is_inside(5_000, clock_offset_ns) && span.is_ambiguous(5_000));
    }

    #[test]
    fn after_a_start_without_frames_none_is_in_doubt_when_the_clock_is_set() {
        let stepped = || clock_offset_ns().wrapping_sub(3_600_000_000_000);
        let mut span = Span::begin(&reading(7, 1_000, 1_000), Some(&reading(7, 900, 900)));
        span.clock_was_set();
        for ns in [10, 5_000] {
            assert!(span.is_inside(ns, stepped) && !span.is_ambiguous(ns));
        }
    }

    #[test]
    fn frames_soon_after_the_start_are_in_doubt_when_the_clock_is_set() {
        let stepped = || clock_offset_ns().wrapping_sub(3_600_000_000_000);
        let mut span = Span::begin(&reading(7, 1_000, 1_000), Some(&reading(6, 900, 900)));
        // From before the first reading or from after the step: the counters include it or not.
        assert!(span.is_inside(10, stepped) && span.is_ambiguous(10));
        span.clock_was_set();
        assert!(span.is_near_limit(5_000) && span.is_inside(5_000, stepped) && span.is_ambiguous(5_000));
        span.settled_ns = 0;
        assert!(span.is_inside(5_000, stepped) && !span.is_ambiguous(5_000) && !span.is_near_limit(5_000));
        span.clock_was_set();
        assert!(span.is_inside(10, stepped) && !span.is_ambiguous(10));
    }
}

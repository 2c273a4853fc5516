//! How late a wire hands frames over to their receivers, and which frames it handed over later than usual.

use super::experiment::LATE_PART;
use canter_measure::{histogram::Histogram, result::Latency};

/// A wire's deliveries of its source's frames.
#[derive(Default)]
pub(crate) struct Deliveries {
    /// The delays of deliveries after the ends of frames.
    behind: Histogram,
    /// Each delay, and the duration of its frame, in ns.
    delays: Vec<(u64, u64)>,
}

impl Deliveries {
    pub(crate) fn count(&mut self, late_ns: u64, duration_ns: u64) {
        self.behind.record(late_ns as i64);
        self.delays.push((late_ns, duration_ns));
    }

    /// The delays after the ends of frames.
    pub(crate) fn behind_ns(&self) -> Latency {
        self.behind.to_latency()
    }

    /// How many frames were delivered later than usual by more than [`LATE_PART`] of their duration. The wire's timer needs the
    /// same time for each; that leaves the spaces between frames as they are.
    pub(crate) fn late(&self) -> u64 {
        let usual_ns = self.behind_ns().p50;
        let is_late = |(late_ns, duration_ns): &&(u64, u64)| *late_ns > usual_ns + duration_ns / LATE_PART;
        self.delays.iter().filter(is_late).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_is_what_is_later_than_usual() {
        let late = |delays: &[u64]| {
            let mut deliveries = Deliveries::default();
            delays.iter().for_each(|&late_ns| deliveries.count(late_ns, 66_000));
            deliveries.late()
        };
        assert_eq!(late(&[7_100; 100]), 0, "each frame is as late as all others");
        let mut delays = [7_100; 100];
        (delays[3], delays[50], delays[99]) = (7_100 + 6_000, 7_100 + 7_000, 90_000);
        assert_eq!(late(&delays), 2);
    }
}

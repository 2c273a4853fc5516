//! The load of a bus, interval by interval. A frame occupies the bus from its SOF to the end of the interframe space; a
//! frame across the border of two intervals counts in both, by its time in each.

use canter_io::tap::Record;
use std::{collections::VecDeque, fmt::Write};

/// The time that the bus was busy in an interval, and what ended in the interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Part {
    busy_ns: u64,
    /// Frames that ended in the interval.
    frames: u64,
    /// Errors that ended in the interval.
    errors: u64,
}

/// The intervals that are not printed yet.
pub struct Load {
    /// The start of the first interval that is not printed yet.
    from_ns: u64,
    interval_ns: u64,
    parts: VecDeque<Part>,
}

/// Delay between the end of an interval and its line, because its last frames may not be in the tap yet.
const SETTLED_NS: u64 = 20_000_000;

impl Load {
    pub fn new(from_ns: u64, interval_ns: u64) -> Self {
        Self { from_ns, interval_ns, parts: VecDeque::new() }
    }

    pub fn add(&mut self, record: &Record, interframe_ns: u64) {
        let until_ns = record.end_ns + interframe_ns;
        let mut at_ns = record.sof_ns.max(self.from_ns);
        while at_ns < until_ns {
            let (part, end_ns) = self.part(at_ns);
            part.busy_ns += until_ns.min(end_ns) - at_ns;
            at_ns = end_ns;
        }
        if record.end_ns >= self.from_ns {
            let (part, _) = self.part(record.end_ns);
            *(if record.error.is_some() { &mut part.errors } else { &mut part.frames }) += 1;
        }
    }

    /// The interval of a time, and the interval's end.
    fn part(&mut self, at_ns: u64) -> (&mut Part, u64) {
        let number = (at_ns - self.from_ns) / self.interval_ns;
        while self.parts.len() as u64 <= number {
            self.parts.push_back(Part::default());
        }
        (&mut self.parts[number as usize], self.from_ns + (number + 1) * self.interval_ns)
    }

    /// Appends a line for each interval that is over.
    pub fn print_finished(&mut self, now_ns: u64, out: &mut String) {
        while self.from_ns + self.interval_ns + SETTLED_NS <= now_ns {
            let part = self.parts.pop_front().unwrap_or_default();
            let (second, ns) = (self.from_ns / 1_000_000_000, self.from_ns % 1_000_000_000);
            let load = part.busy_ns as f64 * 100.0 / self.interval_ns as f64;
            let Part { frames, errors, .. } = part;
            let _ = writeln!(
                out,
                "{second:>6}.{ms:03}  load {load:>5.1} %  {frames:>7} frames  {errors:>5} errors",
                ms = ns / 1_000_000
            );
            self.from_ns += self.interval_ns;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use canter_io::{Frame, netlink::wire::Fault, tap::Marks};

    const MS: u64 = 1_000_000;

    fn record(sof_ns: u64, end_ns: u64, error: Option<Fault>) -> Record {
        Record {
            frame: Frame::default(),
            sof_ns,
            end_ns,
            nominal_bits: 1,
            data_bits: 0,
            error,
            error_bit: 0,
            sender: None,
            slot: None,
            pending: 0,
            received: 0,
            overrun: 0,
            late_ns: 0,
            marks: Marks::default(),
        }
    }

    #[test]
    fn a_frame_across_a_border_counts_in_both_intervals_and_idle_intervals_are_printed() {
        let mut load = Load::new(1000 * MS, 10 * MS);
        load.add(&record(995 * MS, 1001 * MS, None), MS); // began before
        load.add(&record(1008 * MS, 1011 * MS, None), MS);
        load.add(&record(1030 * MS, 1035 * MS, Some(Fault::Ack)), 0);
        let mut text = String::new();
        load.print_finished(1040 * MS + SETTLED_NS, &mut text);
        let expected = [
            "     1.000  load  40.0 %        1 frames      0 errors",
            "     1.010  load  20.0 %        1 frames      0 errors",
            "     1.020  load   0.0 %        0 frames      0 errors",
            "     1.030  load  50.0 %        0 frames      1 errors",
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), expected);
        load.print_finished(1040 * MS + SETTLED_NS, &mut text);
        assert_eq!(text.lines().count(), 4);
    }
}

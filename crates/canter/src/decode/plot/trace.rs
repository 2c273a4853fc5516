//! A signal over time in bounded memory: the lowest and the highest value of each interval. When the intervals do not reach,
//! they become twice as long.

use crate::databases::number::Digits;
use canter_signals::Value;

/// Intervals at most: two for each pixel of a page.
const INTERVALS_MAX: usize = 2048;
/// The first length of an interval, in ns.
const INTERVAL_NS: u64 = 1_000_000;
const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The values of an interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    pub low: f64,
    pub high: f64,
    pub last: f64,
}

/// A signal over time.
pub struct Trace {
    pub name: String,
    pub bus: String,
    pub unit: String,
    digits: Digits,
    pub count: u64,
    /// Values that are no numbers, which cannot be drawn.
    pub not_numbers: u64,
    sum: f64,
    interval_ns: u64,
    intervals: Vec<Option<Interval>>,
}

impl Interval {
    fn merged(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        match (one, other) {
            (Some(one), Some(other)) => {
                Some(Self { low: one.low.min(other.low), high: one.high.max(other.high), last: other.last })
            }
            (one, other) => one.or(other),
        }
    }
}

impl Trace {
    pub fn new(name: String, bus: String, unit: String, digits: Digits) -> Self {
        let (interval_ns, intervals) = (INTERVAL_NS, Vec::new());
        Self { name, bus, unit, digits, count: 0, not_numbers: 0, sum: 0.0, interval_ns, intervals }
    }

    /// Adds a value at this time since the first frame.
    #[inline]
    pub fn push(&mut self, since_ns: u64, value: f64) {
        self.count += 1;
        if !value.is_finite() {
            self.not_numbers += 1;
            return;
        }
        self.sum += value;
        let mut at = since_ns / self.interval_ns;
        while at >= INTERVALS_MAX as u64 {
            self.double();
            at = since_ns / self.interval_ns;
        }
        let at = at as usize;
        if self.intervals.len() <= at {
            self.intervals.resize(at + 1, None);
        }
        self.intervals[at] =
            Interval::merged(self.intervals[at], Some(Interval { low: value, high: value, last: value }));
    }

    #[cold]
    fn double(&mut self) {
        let pairs = self.intervals.chunks(2);
        let merged = pairs.map(|pair| Interval::merged(pair[0], pair.get(1).copied().flatten()));
        self.intervals = merged.collect();
        self.interval_ns *= 2;
    }

    /// Each interval that has a value, with the time of its middle.
    pub fn intervals(&self) -> impl Iterator<Item = (f64, Interval)> {
        let half = self.interval_ns as f64 / 2.0;
        let middle = move |at: usize| at as f64 * self.interval_ns as f64 + half;
        self.intervals.iter().enumerate().filter_map(move |(at, one)| Some((middle(at), (*one)?)))
    }

    /// The end of the last interval, in ns.
    pub fn end_ns(&self) -> u64 {
        self.intervals.len() as u64 * self.interval_ns
    }

    pub fn low(&self) -> f64 {
        self.intervals.iter().flatten().map(|one| one.low).fold(f64::NAN, f64::min)
    }

    pub fn high(&self) -> f64 {
        self.intervals.iter().flatten().map(|one| one.high).fold(f64::NAN, f64::max)
    }

    pub fn mean(&self) -> f64 {
        self.sum / (self.count - self.not_numbers) as f64
    }

    /// The last value.
    pub fn last(&self) -> f64 {
        self.intervals.iter().rev().flatten().next().map_or(f64::NAN, |one| one.last)
    }

    /// What the drawing lacks: ` (2 NaN or infinite: not drawn)`; empty when it has all values.
    pub fn not_drawn(&self) -> String {
        match self.not_numbers {
            0 => String::new(),
            count => format!(" ({count} NaN or infinite: not drawn)"),
        }
    }

    /// A value of the signal, for people.
    pub fn text(&self, value: f64) -> String {
        self.digits.readable(Value::Float(value))
    }

    /// A line of blocks: the highest value of each part of the time up to `end_ns`; blank where there is none.
    pub fn blocks(&self, width: usize, end_ns: u64) -> String {
        let (low, high) = (self.low(), self.high());
        let mut highest = vec![None; width];
        for (middle, interval) in self.intervals() {
            let at = (middle / end_ns.max(1) as f64 * width as f64) as usize;
            let block: &mut Option<f64> = &mut highest[at.min(width - 1)];
            *block = Some(block.map_or(interval.high, |before| before.max(interval.high)));
        }
        let block = |value: Option<f64>| match value {
            None => ' ',
            Some(value) => {
                let share = if high > low { (value - low) / (high - low) } else { 0.5 };
                BLOCKS[((share * BLOCKS.len() as f64) as usize).min(BLOCKS.len() - 1)]
            }
        };
        highest.into_iter().map(block).collect::<String>().trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn trace(values: &[(u64, f64)]) -> Trace {
        let mut trace = Trace::new("S".into(), "can0".into(), String::new(), Digits::Decimals(0));
        values.iter().for_each(|&(at, value)| trace.push(at, value));
        trace
    }

    #[test]
    fn a_line_of_blocks_has_the_shape_of_the_signal() {
        let values: Vec<(u64, f64)> = (0..8).map(|n| (n * 1_000_000, n as f64)).collect();
        assert_eq!(trace(&values).blocks(8, 8_000_000), "▁▂▃▄▅▆▇█");
        assert_eq!(trace(&[(0, 5.0), (7_000_000, 5.0)]).blocks(8, 8_000_000), "▅      ▅");
    }

    #[test]
    fn values_that_are_no_numbers_are_counted_and_not_drawn() {
        let trace = trace(&[(0, f64::NAN), (1, 2.0), (2, f64::INFINITY)]);
        assert_eq!(
            (trace.count, trace.not_numbers, trace.low(), trace.high(), trace.mean()),
            (3, 2, 2.0, 2.0, 2.0)
        );
    }

    proptest! {
        #[test]
        fn any_length_of_time_keeps_the_extremes(values in prop::collection::vec((0u64..u64::MAX / 4, -1e9..1e9f64), 1..200)) {
            let trace = trace(&values);
            prop_assert!(trace.intervals.len() <= INTERVALS_MAX);
            let low = values.iter().map(|&(_, value)| value).fold(f64::INFINITY, f64::min);
            let high = values.iter().map(|&(_, value)| value).fold(f64::NEG_INFINITY, f64::max);
            prop_assert_eq!((trace.low(), trace.high()), (low, high));
        }
    }
}

//! What a recording has: its buses and their identifiers, counted frame by frame in bounded memory.

use crate::gaps::{Gaps, Period};
use canter_frame::{
    BitRate, Direction, Frame, INTERFRAME_BITS, Record,
    error_frame::ErrorFrame,
    frame::{EFF_FLAG, EFF_MASK, RTR_FLAG},
};
use std::collections::{BTreeMap, HashMap};

/// Identifiers that have a row. Frames of others count on their bus only, and the summary reports them.
pub const IDENTIFIERS_MAX: usize = 1 << 14;
/// A bus that is silent for this time pauses: an identifier's frames before and after a pause are no period.
pub const PAUSE_NS: u64 = 1_000_000_000;
/// The time over which the highest load is taken.
pub const WINDOW_NS: u64 = 1_000_000_000;

/// All buses and identifiers.
#[derive(Default)]
pub struct Census {
    pub buses: Vec<Bus>,
    pub rows: HashMap<Key, Row>,
    /// Frames of identifiers beyond [`IDENTIFIERS_MAX`].
    pub beyond: u64,
    /// The stamps of the first and the last frame.
    pub span_ns: Option<(u64, u64)>,
}

/// An identifier on a bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    pub bus: usize,
    /// The identifier with [`EFF_FLAG`] and [`RTR_FLAG`].
    pub id: u32,
}

/// What frames occupy of a bus.
#[derive(Clone, Copy, Debug, Default)]
pub struct Use {
    /// Bits, those of the data phase included.
    pub bits: u64,
    /// Time in ps, when the bit rate is known.
    pub busy_ps: u64,
}

impl Use {
    fn add(&mut self, other: Self) {
        self.bits += other.bits;
        self.busy_ps += other.busy_ps;
    }
}

/// A bus.
pub struct Bus {
    pub name: String,
    /// The bit rate, if it is given.
    pub rate: Option<BitRate>,
    pub frames: u64,
    pub sent: u64,
    pub fd: u64,
    pub remote: u64,
    pub error_frames: u64,
    /// Error frames by their kind.
    pub errors: BTreeMap<&'static str, u64>,
    pub first_ns: u64,
    pub last_ns: u64,
    /// The longest time without a frame, and when it began.
    pub silence: (u64, u64),
    /// Silences of [`PAUSE_NS`] and more.
    pub pauses: u32,
    /// The time of all pauses.
    pub paused_ns: u64,
    pub total: Use,
    /// The busiest window.
    pub busiest: Use,
    window: Use,
    window_begin_ns: u64,
}

/// An identifier.
#[derive(Clone)]
pub struct Row {
    pub count: u64,
    pub len: (u8, u8),
    pub fd: bool,
    last_ns: u64,
    /// The longest time between two frames began then.
    pub longest_begin_ns: u64,
    /// The bytes that changed, a bit each.
    pub changing: u64,
    data: [u8; 64],
    data_len: usize,
    /// The pauses of the bus before the last frame.
    pauses: u32,
    /// Times between frames without a pause of the bus.
    within: Gaps,
    /// Times between frames with a pause of the bus.
    across: Gaps,
}

impl Census {
    /// Adds a bus; frames have its number.
    pub fn add_bus(&mut self, name: &str, rate: Option<BitRate>) {
        self.buses.push(Bus {
            name: name.to_owned(),
            rate,
            frames: 0,
            sent: 0,
            fd: 0,
            remote: 0,
            error_frames: 0,
            errors: BTreeMap::new(),
            first_ns: 0,
            last_ns: 0,
            silence: (0, 0),
            pauses: 0,
            paused_ns: 0,
            total: Use::default(),
            busiest: Use::default(),
            window: Use::default(),
            window_begin_ns: 0,
        });
    }

    /// Counts a frame of a bus that was added.
    pub fn count(&mut self, record: &Record) {
        let Record { stamp_ns, bus: at, ref frame, direction } = *record;
        let Some(bus) = self.buses.get_mut(at.index()) else { return };
        let (first, last) = self.span_ns.unwrap_or((stamp_ns, stamp_ns));
        self.span_ns = Some((first.min(stamp_ns), last.max(stamp_ns)));
        bus.note_time(stamp_ns);
        if let Some(error) = ErrorFrame::from_frame(frame) {
            bus.error_frames += 1;
            for kind in error.kinds() {
                *bus.errors.entry(kind).or_default() += 1;
            }
            return;
        }
        bus.count(frame, direction);
        let key = Key { bus: at.index(), id: frame.can_id & (EFF_FLAG | RTR_FLAG | EFF_MASK) };
        let pauses = bus.pauses;
        let room = self.rows.len() < IDENTIFIERS_MAX;
        match self.rows.get_mut(&key) {
            Some(row) => row.count(stamp_ns, frame, pauses),
            None if room => {
                self.rows.insert(key, Row::new(stamp_ns, frame, pauses));
            }
            None => self.beyond += 1,
        }
    }

    /// Ends the last windows.
    pub fn finish(&mut self) {
        self.buses.iter_mut().for_each(Bus::end_window);
    }

    /// The time from the first to the last frame.
    pub fn duration_ns(&self) -> u64 {
        self.span_ns.map_or(0, |(first, last)| last - first)
    }
}

impl Bus {
    /// Notes silence and pauses, and begins another window.
    fn note_time(&mut self, stamp_ns: u64) {
        if self.frames + self.error_frames == 0 {
            (self.first_ns, self.last_ns, self.window_begin_ns) = (stamp_ns, stamp_ns, stamp_ns);
        }
        let silent_ns = stamp_ns.saturating_sub(self.last_ns);
        if silent_ns > self.silence.0 {
            self.silence = (silent_ns, self.last_ns);
        }
        if silent_ns >= PAUSE_NS {
            self.pauses += 1;
            self.paused_ns += silent_ns;
        }
        self.first_ns = self.first_ns.min(stamp_ns);
        self.last_ns = self.last_ns.max(stamp_ns);
        let windows = stamp_ns.saturating_sub(self.window_begin_ns) / WINDOW_NS;
        if windows > 0 {
            self.end_window();
            self.window_begin_ns += windows * WINDOW_NS;
        }
    }

    fn end_window(&mut self) {
        // Bits and time each have their own busiest window: with FD frames it need not be the same.
        self.busiest.bits = self.busiest.bits.max(self.window.bits);
        self.busiest.busy_ps = self.busiest.busy_ps.max(self.window.busy_ps);
        self.window = Use::default();
    }

    fn count(&mut self, frame: &Frame, direction: Option<Direction>) {
        self.frames += 1;
        self.sent += u64::from(direction == Some(Direction::Sent));
        self.fd += u64::from(frame.is_fd());
        self.remote += u64::from(frame.is_rtr());
        let mut bits = frame.bits();
        bits.nominal += INTERFRAME_BITS;
        let used =
            Use { bits: bits.total().into(), busy_ps: self.rate.map_or(0, |rate| bits.duration_ps(rate)) };
        self.total.add(used);
        self.window.add(used);
    }

    /// The time from the first to the last frame.
    pub fn duration_ns(&self) -> u64 {
        self.last_ns - self.first_ns
    }
}

impl Row {
    fn new(stamp_ns: u64, frame: &Frame, pauses: u32) -> Self {
        let mut row = Self {
            count: 1,
            len: (frame.len, frame.len),
            fd: frame.is_fd(),
            last_ns: stamp_ns,
            longest_begin_ns: stamp_ns,
            changing: 0,
            data: [0; 64],
            data_len: 0,
            pauses,
            within: Gaps::default(),
            across: Gaps::default(),
        };
        row.keep(frame.data());
        row
    }

    fn count(&mut self, stamp_ns: u64, frame: &Frame, pauses: u32) {
        // Stamps may go backwards: frames of two processors may be out of order, and the clock may be set.
        let gap_ns = stamp_ns.saturating_sub(self.last_ns);
        if gap_ns > self.longest_ns() {
            self.longest_begin_ns = self.last_ns;
        }
        if self.pauses == pauses { &mut self.within } else { &mut self.across }.add(gap_ns);
        self.pauses = pauses;
        self.count += 1;
        self.len = (self.len.0.min(frame.len), self.len.1.max(frame.len));
        self.fd |= frame.is_fd();
        self.last_ns = self.last_ns.max(stamp_ns);
        let data = frame.data();
        if *data != self.data[..self.data_len] {
            for (at, byte) in data.iter().enumerate() {
                let changed = at >= self.data_len || self.data[at] != *byte;
                self.changing |= u64::from(changed) << at;
            }
            self.keep(data);
        }
    }

    fn keep(&mut self, data: &[u8]) {
        self.data_len = data.len().min(self.data.len());
        self.data[..self.data_len].copy_from_slice(&data[..self.data_len]);
    }

    /// The longest time between two frames.
    pub fn longest_ns(&self) -> u64 {
        self.within.longest_ns().max(self.across.longest_ns())
    }

    /// The period; `None` with fewer than two frames.
    pub fn period(&self) -> Option<Period> {
        // A bus on which frames come less than once a second has pauses only, and these are its periods.
        if self.within.count() > self.across.count() {
            self.within.period()
        } else {
            self.within.merged(&self.across).period()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use canter_frame::BusId;

    const MS: u64 = 1_000_000;

    fn census(frames: impl IntoIterator<Item = (u64, &'static str)>) -> Census {
        let mut census = Census::default();
        census.add_bus("can0", Some(BitRate::classic(500_000)));
        for (ms, text) in frames {
            let frame = text.parse().unwrap();
            census.count(&Record { stamp_ns: ms * MS, bus: BusId(0), frame, direction: None });
        }
        census.finish();
        census
    }

    fn row(census: &Census, id: u32) -> &Row {
        &census.rows[&Key { bus: 0, id }]
    }

    #[test]
    fn a_period_its_missing_frames_and_its_changing_bytes_are_found() {
        let frames = (0..100).filter(|&n| n != 40 && n != 41).map(|n| (n * 10, "0C9#0011"));
        let census = census(frames.chain([(1000, "0C9#0012"), (1010, "0C9#001213")]));
        let row = row(&census, 0x0c9);
        assert_eq!((row.count, row.len), (100, (2, 3)));
        let period = Period { median_ns: 10 * MS, jitter_ns: 0, missing: Some(2) };
        assert_eq!((row.period(), row.longest_ns(), row.longest_begin_ns), (Some(period), 30 * MS, 390 * MS));
        assert_eq!(row.changing, 0b110);
    }

    #[test]
    fn a_pause_of_the_bus_is_no_missing_frame() {
        let before = (0..50).map(|n| (n * 10, "0C9#"));
        let after = (0..50).map(|n| (60_000 + n * 10, "0C9#"));
        let census = census(before.chain(after));
        let bus = &census.buses[0];
        assert_eq!((bus.pauses, bus.silence), (1, (59_510 * MS, 490 * MS)));
        let period = row(&census, 0x0c9).period();
        assert_eq!(period, Some(Period { median_ns: 10 * MS, jitter_ns: 0, missing: Some(0) }));
    }

    #[test]
    fn frames_slower_than_a_pause_have_a_period() {
        let census = census((0..20).map(|n| (n * 5000, "7FF#R")));
        let row = row(&census, 0x7ff | RTR_FLAG);
        assert_eq!(row.period().map(|period| (period.median_ns, period.missing)), Some((5000 * MS, Some(0))));
    }

    #[test]
    fn load_is_in_exact_bits_and_the_busiest_second_is_kept() {
        // 108 bits, 1 stuff bit or more, and 3 bits of interframe space.
        let frames = (0..1000).map(|n| (n, "555#5555555555555555")).chain([(5000, "555#5555555555555555")]);
        let census = census(frames);
        let bits = "555#5555555555555555".parse::<Frame>().unwrap().bits().total() + INTERFRAME_BITS;
        let bus = &census.buses[0];
        assert_eq!(bus.total.bits, 1001 * u64::from(bits));
        assert_eq!(bus.busiest.bits, 1000 * u64::from(bits));
        assert_eq!(bus.busiest.busy_ps, 1000 * u64::from(bits) * 2_000_000);
    }

    #[test]
    fn error_frames_are_counted_by_their_kind_and_have_no_row() {
        let census =
            census([(0, "20000204#0001000000000000"), (1, "20000088#0000000000000000"), (2, "001#")]);
        let bus = &census.buses[0];
        assert_eq!((bus.frames, bus.error_frames, census.rows.len()), (1, 2, 1));
        assert!(bus.errors.contains_key("rx-overflow"), "{:?}", bus.errors);
    }

    #[test]
    fn identifiers_without_a_row_are_counted() {
        let mut census = Census::default();
        census.add_bus("can0", None);
        for n in 0..IDENTIFIERS_MAX as u32 + 10 {
            let mut record = Record::default();
            record.frame.can_id = EFF_FLAG | n;
            census.count(&record);
        }
        assert_eq!((census.rows.len(), census.beyond), (IDENTIFIERS_MAX, 10));
    }
}

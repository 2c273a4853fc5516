//! What is known of every bus and every identifier: counted from the frames, and from what the kernel says of the
//! interfaces. Memory is bounded, whatever comes.

use super::source::Heard;
use canter_io::{
    Filters, Frame, Interface,
    frame::{BitRate, EFF_FLAG, EFF_MASK, RTR_FLAG},
    interface::Counters,
};
use std::collections::{BTreeMap, HashMap};

/// Identifiers that have a row; frames of further ones are counted on their bus only, and told.
pub const IDENTIFIERS_MAX: usize = 4096;

/// An interval ends for us so much later than by its frames' stamps: until then the last ones come out of the rings.
pub const SETTLE_NS: u64 = 100_000_000;

/// What came in the interval that is counted, by the stamps, and what is of the next one already.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    inside: u64,
    later: u64,
}

impl Window {
    fn add(&mut self, amount: u64, inside: bool) {
        *if inside { &mut self.inside } else { &mut self.later } += amount;
    }

    /// The interval's, as the next one begins.
    fn next(&mut self) -> u64 {
        let inside = std::mem::replace(&mut self.inside, self.later);
        self.later = 0;
        inside
    }
}

/// All of it.
#[derive(Clone, Default)]
pub struct Census {
    pub buses: BTreeMap<u32, Bus>,
    pub rows: HashMap<Key, Row>,
    /// Frames of identifiers beyond [`IDENTIFIERS_MAX`].
    pub beyond: u64,
    /// Frames that this program did not hear, since it began.
    pub lost: u64,
    /// Since when is counted, and the end of the last interval, in ns of the real-time clock.
    pub since_ns: u64,
    pub now_ns: u64,
    /// How long an interval is.
    interval_ns: u64,
}

/// An identifier on a bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// The interface's index.
    pub interface: u32,
    /// With [`EFF_FLAG`] and [`RTR_FLAG`].
    pub id: u32,
}

/// A bus.
#[derive(Clone)]
pub struct Bus {
    pub interface: Interface,
    /// It is no longer there.
    pub gone: bool,
    /// Which of its frames are looked at.
    filters: Option<Filters>,
    pub rate: Option<BitRate>,
    /// What the interface had counted when it was first seen, and at the last look.
    first: Counters,
    last: Counters,
    pub frames: u64,
    pub error_frames: u64,
    /// Of this interval: frames, and ns of the bus.
    recent: Window,
    busy_ns: Window,
    /// Of the last interval.
    pub frames_per_s: f64,
    pub load_percent: Option<f64>,
}

/// An identifier.
#[derive(Clone)]
pub struct Row {
    pub frame: Frame,
    pub count: u64,
    first_ns: u64,
    pub last_ns: u64,
    /// The shortest and longest time between two frames.
    pub gap_ns: Option<(u64, u64)>,
    recent: Window,
    pub frames_per_s: f64,
    /// When each byte last changed.
    changed_ns: [u64; 64],
}

impl Census {
    /// The first interval begins now.
    pub fn new(now_ns: u64, interval_ns: u64) -> Self {
        Self { since_ns: now_ns, now_ns, interval_ns, ..Self::default() }
    }

    /// Counts a frame.
    pub fn hear(&mut self, heard: &Heard) {
        let Heard { stamp_ns, interface, frame } = heard;
        let Some(bus) = self.buses.get_mut(interface) else { return };
        if bus.filters.as_ref().is_some_and(|filters| !filters.matches(frame)) {
            return;
        }
        if frame.is_error() {
            bus.error_frames += 1;
            return;
        }
        let inside = *stamp_ns < self.now_ns + self.interval_ns;
        bus.frames += 1;
        bus.recent.add(1, inside);
        bus.busy_ns.add(bus.rate.map_or(0, |rate| frame.duration_with_interframe_ns(rate)), inside);
        let key = Key { interface: *interface, id: frame.can_id & (EFF_FLAG | RTR_FLAG | EFF_MASK) };
        let room = self.rows.len() < IDENTIFIERS_MAX;
        match self.rows.get_mut(&key) {
            Some(row) => row.hear(*stamp_ns, frame, inside),
            None if room => {
                self.rows.insert(key, Row::new(*stamp_ns, frame, inside));
            }
            None => self.beyond += 1,
        }
    }

    /// Takes what the kernel says of an interface, now.
    pub fn look(
        &mut self,
        interface: Interface,
        filters: Option<Filters>,
        rate: Option<BitRate>,
        counters: Counters,
    ) {
        let index = interface.index;
        let bus = self.buses.entry(index).or_insert_with(|| Bus {
            interface: interface.clone(),
            gone: false,
            filters,
            rate,
            first: counters,
            last: counters,
            frames: 0,
            error_frames: 0,
            recent: Window::default(),
            busy_ns: Window::default(),
            frames_per_s: 0.0,
            load_percent: None,
        });
        (bus.interface, bus.rate, bus.last, bus.gone) = (interface, rate, counters, false);
    }

    /// Marks the buses that are no longer there.
    pub fn miss(&mut self, there: impl Fn(u32) -> bool) {
        self.buses.values_mut().for_each(|bus| bus.gone = !there(bus.interface.index));
    }

    /// An interval has ended [`SETTLE_NS`] ago: rates are those of what came in it.
    pub fn tick(&mut self, now_ns: u64, lost: u64) {
        let seconds = self.interval_ns as f64 / 1e9;
        for bus in self.buses.values_mut() {
            bus.frames_per_s = bus.recent.next() as f64 / seconds;
            let busy = bus.busy_ns.next() as f64 / 1e9 / seconds;
            bus.load_percent = bus.rate.map(|_| busy * 100.0);
        }
        for row in self.rows.values_mut() {
            row.frames_per_s = row.recent.next() as f64 / seconds;
        }
        let (expected_ns, settled_ns) = (self.now_ns + self.interval_ns, now_ns.saturating_sub(SETTLE_NS));
        // When the clock was set, or this program stood still, intervals go on from now.
        let steady = expected_ns.abs_diff(settled_ns) < self.interval_ns / 2;
        (self.now_ns, self.lost) = (if steady { expected_ns } else { settled_ns }, lost);
    }

    /// Forgets what was counted, not the buses.
    pub fn reset(&mut self, now_ns: u64) {
        self.rows.clear();
        for bus in self.buses.values_mut() {
            (bus.first, bus.frames, bus.error_frames) = (bus.last, 0, 0);
        }
        (self.beyond, self.since_ns) = (0, now_ns);
    }
}

impl Bus {
    /// Frames that the interface lost, by its own count.
    pub fn lost(&self) -> u64 {
        let Counters { rx_dropped, rx_over_errors, rx_fifo_errors, rx_missed, tx_dropped, .. } = self.grown();
        rx_dropped + rx_over_errors + rx_fifo_errors + rx_missed + tx_dropped
    }

    /// Errors: what the driver has counted, or the error frames when those are more.
    pub fn errors(&self) -> u64 {
        let grown = self.grown();
        self.error_frames.max(grown.rx_errors + grown.tx_errors)
    }

    /// `ERROR-ACTIVE`, `up`, `down`, `gone`.
    pub fn state(&self) -> String {
        let state = self.interface.controller.as_ref().and_then(|controller| controller.state);
        match state {
            _ if self.gone => "gone".to_owned(),
            _ if !self.interface.up => "down".to_owned(),
            Some(state) => state.to_string(),
            None => "up".to_owned(),
        }
    }

    /// What the interface has counted meanwhile.
    fn grown(&self) -> Counters {
        self.last.since(&self.first)
    }
}

impl Row {
    fn new(stamp_ns: u64, frame: &Frame, inside: bool) -> Self {
        let mut recent = Window::default();
        recent.add(1, inside);
        Self {
            frame: *frame,
            count: 1,
            first_ns: stamp_ns,
            last_ns: stamp_ns,
            gap_ns: None,
            recent,
            frames_per_s: 0.0,
            changed_ns: [0; 64],
        }
    }

    fn hear(&mut self, stamp_ns: u64, frame: &Frame, inside: bool) {
        // Frames of two processors may come in the wrong order, and a clock may be set.
        let gap_ns = stamp_ns.saturating_sub(self.last_ns);
        let (shortest, longest) = self.gap_ns.unwrap_or((gap_ns, gap_ns));
        self.gap_ns = Some((shortest.min(gap_ns), longest.max(gap_ns)));
        let (before, after) = (self.frame.data(), frame.data());
        for (at, byte) in after.iter().enumerate() {
            if before.get(at) != Some(byte) {
                self.changed_ns[at] = stamp_ns;
            }
        }
        (self.frame, self.last_ns) = (*frame, self.last_ns.max(stamp_ns));
        self.count += 1;
        self.recent.add(1, inside);
    }

    /// The mean time between frames, of which there were two at least.
    pub fn period_ns(&self) -> Option<u64> {
        (self.count > 1).then(|| (self.last_ns - self.first_ns) / (self.count - 1))
    }

    /// Longest less shortest time between frames.
    pub fn jitter_ns(&self) -> u64 {
        self.gap_ns.map_or(0, |(shortest, longest)| longest - shortest)
    }

    /// Whether a byte has changed since `ns`.
    pub fn changed_since(&self, byte: usize, ns: u64) -> bool {
        self.changed_ns[byte] > ns
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use canter_io::interface::{Kind, State};

    const MS: u64 = 1_000_000;

    pub fn bus(name: &str, index: u32, state: Option<State>) -> Interface {
        let mut interface = Interface::find(&format!("sim:{name}")).unwrap();
        interface.name = name.to_owned();
        interface.index = index;
        interface.kind = if state.is_some() { Kind::Can } else { Kind::Vcan };
        interface
    }

    pub fn heard(interface: u32, ms: u64, text: &str) -> Heard {
        Heard { stamp_ns: ms * MS, interface, frame: text.parse().unwrap() }
    }

    fn census() -> Census {
        let mut census = Census::new(0, 1000 * MS);
        let rate = Some(BitRate::classic(500_000));
        census.look(bus("can0", 3, None), None, rate, Counters::default());
        census
    }

    #[test]
    fn periods_and_their_spread_are_those_of_the_stamps() {
        let mut census = census();
        for ms in [100, 110, 121, 130] {
            census.hear(&heard(3, ms, "123#0011"));
        }
        let row = &census.rows[&Key { interface: 3, id: 0x123 }];
        assert_eq!((row.count, row.period_ns(), row.jitter_ns()), (4, Some(10 * MS), 2 * MS));
        assert_eq!(row.gap_ns, Some((9 * MS, 11 * MS)));
    }

    #[test]
    fn a_bus_is_as_loaded_as_its_frames_are_long() {
        let mut census = census();
        let heard = heard(3, 1, "123#1122334455667788");
        let frame_ns = heard.frame.duration_with_interframe_ns(BitRate::classic(500_000));
        (0..1000).for_each(|_| census.hear(&heard));
        (0..7).for_each(|_| census.hear(&self::heard(3, 1000, "123#"))); // of the next interval
        census.tick(1_100_000_000, 0);
        let load = census.buses[&3].load_percent.unwrap();
        assert!((load - frame_ns as f64 * 1000.0 / 1e9 * 100.0).abs() < 1e-9, "{load}");
        assert_eq!(census.buses[&3].frames_per_s, 1000.0);
        census.tick(2_100_000_000, 0);
        assert_eq!(census.buses[&3].frames_per_s, 7.0);
        census.tick(3_100_000_000, 0);
        assert_eq!(census.buses[&3].load_percent, Some(0.0));
    }

    #[test]
    fn bytes_that_changed_are_known_for_a_while() {
        let mut census = census();
        census.hear(&heard(3, 1000, "123#0011"));
        census.hear(&heard(3, 1500, "123#0012"));
        census.hear(&heard(3, 2000, "123#0012FF"));
        let row = &census.rows[&Key { interface: 3, id: 0x123 }];
        let changed = |ns| [0, 1, 2].map(|byte| row.changed_since(byte, ns));
        assert_eq!(changed(0), [false, true, true]);
        assert_eq!(changed(1600 * MS), [false, false, true]);
    }

    #[test]
    fn one_identifier_may_have_three_rows_and_an_error_frame_has_none() {
        let mut census = census();
        for text in ["123#", "123#R", "00000123#", "20000004#0000000000000000"] {
            census.hear(&heard(3, 1, text));
        }
        assert_eq!((census.rows.len(), census.buses[&3].errors()), (3, 1));
        census.reset(5);
        assert_eq!((census.rows.len(), census.buses[&3].errors(), census.since_ns), (0, 0, 5));
    }

    #[test]
    fn more_identifiers_than_have_room_are_counted() {
        let mut census = census();
        for id in 0..5000 {
            census.hear(&heard(3, 1, &format!("{id:08X}#")));
        }
        assert_eq!((census.rows.len(), census.beyond, census.buses[&3].frames), (4096, 904, 5000));
    }

    #[test]
    fn a_bus_that_goes_is_told_and_one_that_comes_back_goes_on() {
        let mut census = census();
        census.miss(|_| false);
        assert_eq!(census.buses[&3].state(), "gone");
        census.look(bus("can0", 3, None), None, None, Counters { rx_dropped: 7, ..Counters::default() });
        assert_eq!((census.buses[&3].state().as_str(), census.buses[&3].lost()), ("up", 7));
    }
}

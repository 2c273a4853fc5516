//! Counts of every bus and every identifier, from frames and from the kernel's counters of interfaces. Memory is bounded.

use super::names::{Names, Signals};
use crate::{
    gaps::{Gaps, Period},
    live::Received,
};
use canter_io::{
    Filters, Frame, Interface,
    frame::{BitRate, EFF_FLAG, EFF_MASK, Identifier, RTR_FLAG},
    interface::Counters,
};
use canter_signals::{Payload, Transport, Transported};
use std::collections::{BTreeMap, HashMap};

/// Identifiers that have a row. Frames of other identifiers count on their bus only, and the summary reports them.
pub const IDENTIFIERS_MAX: usize = 4096;

/// Delay between the end of an interval, by stamps, and its evaluation: the last frames may still be in the rings.
pub const SETTLE_NS: u64 = 100_000_000;

/// Counts of the current interval and, by their stamps, already of the next one.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    inside: u64,
    later: u64,
}

impl Window {
    fn add(&mut self, amount: u64, inside: bool) {
        *if inside { &mut self.inside } else { &mut self.later } += amount;
    }

    /// Returns the count of the interval, and begins the next one.
    fn next(&mut self) -> u64 {
        let inside = std::mem::replace(&mut self.inside, self.later);
        self.later = 0;
        inside
    }
}

/// All buses and identifiers.
#[derive(Clone, Default)]
pub struct Census<'d> {
    pub buses: BTreeMap<u32, Bus>,
    pub rows: HashMap<Key, Row<'d>>,
    /// The messages of the buses; `None`: no databases.
    names: Option<&'d Names<'d>>,
    /// Frames of identifiers beyond [`IDENTIFIERS_MAX`].
    pub beyond: u64,
    /// Frames that this program did not receive, since it began.
    pub lost: u64,
    /// Start of counting, in CLOCK_REALTIME.
    pub since_ns: u64,
    /// End of the last interval, in CLOCK_REALTIME.
    pub now_ns: u64,
    /// Length of an interval.
    interval_ns: u64,
}

/// An identifier on a bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// The interface's index.
    pub interface: u32,
    /// The identifier with [`EFF_FLAG`] and [`RTR_FLAG`].
    pub id: u32,
}

/// A bus.
#[derive(Clone)]
pub struct Bus {
    pub interface: Interface,
    /// Whether the interface no longer exists.
    pub gone: bool,
    /// Which frames are counted; `None`: all.
    filters: Option<Filters>,
    pub rate: Option<BitRate>,
    /// The interface's counters when counting began.
    first: Counters,
    /// The interface's counters when they were last read.
    last: Counters,
    pub frames: u64,
    pub error_frames: u64,
    /// Frames of this interval.
    recent: Window,
    /// Time that the frames of this interval occupied the bus.
    busy_ns: Window,
    /// Frames per second in the last interval.
    pub frames_per_s: f64,
    /// Load in the last interval; `None` when the bit rate is unknown.
    pub load_percent: Option<f64>,
    /// Puts messages of several frames together, if a database has such messages.
    transport: Option<Transport>,
}

/// What an identifier had last.
#[derive(Clone, Debug)]
pub enum Content {
    Frame(Frame),
    /// A message that several frames carried.
    Transported(Vec<u8>),
}

impl Content {
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Frame(frame) => frame.data(),
            Self::Transported(bytes) => bytes,
        }
    }

    pub fn is_rtr(&self) -> bool {
        matches!(self, Self::Frame(frame) if frame.is_rtr())
    }

    fn payload(&self) -> Option<Payload<'_>> {
        match self {
            Self::Frame(frame) => (!frame.is_rtr()).then(|| Payload::of_frame(frame)),
            Self::Transported(bytes) => Some(Payload::of_bytes(bytes)),
        }
    }
}

/// An identifier.
#[derive(Clone)]
pub struct Row<'d> {
    pub last: Content,
    /// The message and its signals; `None`: no database knows the identifier.
    pub signals: Option<Signals<'d>>,
    pub count: u64,
    pub last_ns: u64,
    gaps: Gaps,
    /// The period and what frames it lacks, at the end of the last interval; `None` with fewer than two frames.
    pub period: Option<Period>,
    recent: Window,
    pub frames_per_s: f64,
    /// When each byte last changed, as many as a frame has at most.
    changed_ns: [u64; 64],
}

impl<'d> Census<'d> {
    /// The first interval begins now.
    pub fn new(now_ns: u64, interval_ns: u64) -> Self {
        Self { since_ns: now_ns, now_ns, interval_ns, ..Self::default() }
    }

    /// The census with the messages of databases.
    pub fn with_names(self, names: &'d Names<'d>) -> Self {
        Self { names: (!names.is_empty()).then_some(names), ..self }
    }

    /// Whether there are databases.
    pub fn has_names(&self) -> bool {
        self.names.is_some()
    }

    /// Whether the databases know no identifier that the buses have.
    pub fn is_unknown(&self) -> bool {
        self.has_names() && !self.rows.is_empty() && self.rows.values().all(|row| row.signals.is_none())
    }

    /// Counts a frame.
    pub fn count(&mut self, received: &Received) {
        let Received { stamp_ns, interface, frame } = received;
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
        let whole =
            bus.transport.as_mut().filter(|_| Transport::carries(frame)).and_then(|one| one.take(frame));
        let id = frame.can_id & (EFF_FLAG | RTR_FLAG | EFF_MASK);
        let has_row =
            self.count_row(Key { interface: *interface, id }, *stamp_ns, Content::Frame(*frame), inside);
        self.beyond += u64::from(!has_row);
        if let Some(Transported { id: Identifier::Eff(id), data, .. }) = whole {
            let key = Key { interface: *interface, id: id | EFF_FLAG };
            // Its frames have been counted.
            self.count_row(key, *stamp_ns, Content::Transported(data), inside);
        }
    }

    /// Counts what an identifier had; returns whether it has a row.
    fn count_row(&mut self, key: Key, stamp_ns: u64, content: Content, inside: bool) -> bool {
        let room = self.rows.len() < IDENTIFIERS_MAX;
        match self.rows.get_mut(&key) {
            Some(row) => row.count(stamp_ns, content, inside),
            None if room => {
                let bus = self.buses.get(&key.interface).map_or("", |bus| &bus.interface.name);
                let signals = self.names.and_then(|names| names.signals(bus, key.id));
                self.rows.insert(key, Row::new(stamp_ns, content, inside, signals));
            }
            None => return false,
        }
        true
    }

    /// Messages of several frames that are not complete.
    pub fn broken(&self) -> u64 {
        self.buses.values().filter_map(|bus| bus.transport.as_ref()).map(|transport| transport.broken).sum()
    }

    /// Adds or updates an interface and its counters.
    pub fn update_bus(
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
            transport: self
                .names
                .filter(|names| names.has_groups(&interface.name))
                .map(|_| Transport::default()),
        });
        (bus.interface, bus.rate, bus.last, bus.gone) = (interface, rate, counters, false);
    }

    /// Marks the buses whose interfaces no longer exist.
    pub fn mark_gone(&mut self, exists: impl Fn(u32) -> bool) {
        self.buses.values_mut().for_each(|bus| bus.gone = !exists(bus.interface.index));
    }

    /// Computes the rates of the interval that ended [`SETTLE_NS`] ago.
    pub fn end_interval(&mut self, now_ns: u64, lost: u64) {
        let seconds = self.interval_ns as f64 / 1e9;
        for bus in self.buses.values_mut() {
            bus.frames_per_s = bus.recent.next() as f64 / seconds;
            let busy = bus.busy_ns.next() as f64 / 1e9 / seconds;
            bus.load_percent = bus.rate.map(|_| busy * 100.0);
        }
        for row in self.rows.values_mut() {
            row.frames_per_s = row.recent.next() as f64 / seconds;
            row.period = row.gaps.period();
        }
        let (expected_ns, settled_ns) = (self.now_ns + self.interval_ns, now_ns.saturating_sub(SETTLE_NS));
        // After a step of the clock or a stall of this program, intervals continue from now.
        let steady = expected_ns.abs_diff(settled_ns) < self.interval_ns / 2;
        (self.now_ns, self.lost) = (if steady { expected_ns } else { settled_ns }, lost);
    }

    /// Resets all counts; keeps the buses.
    pub fn reset(&mut self, now_ns: u64) {
        self.rows.clear();
        for bus in self.buses.values_mut() {
            (bus.first, bus.frames, bus.error_frames) = (bus.last, 0, 0);
            bus.transport.iter_mut().for_each(|transport| transport.broken = 0);
        }
        (self.beyond, self.since_ns) = (0, now_ns);
    }
}

impl Bus {
    /// Frames lost by the interface, by its counters.
    pub fn lost(&self) -> u64 {
        let Counters { rx_dropped, rx_over_errors, rx_fifo_errors, rx_missed, tx_dropped, .. } = self.grown();
        rx_dropped + rx_over_errors + rx_fifo_errors + rx_missed + tx_dropped
    }

    /// Errors: the driver's count or the number of error frames, whichever is more.
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

    /// The growth of the interface's counters since counting began.
    fn grown(&self) -> Counters {
        self.last.since(&self.first)
    }
}

impl<'d> Row<'d> {
    fn new(stamp_ns: u64, content: Content, inside: bool, mut signals: Option<Signals<'d>>) -> Self {
        let mut recent = Window::default();
        recent.add(1, inside);
        if let (Some(signals), Some(payload)) = (&mut signals, content.payload()) {
            signals.take(stamp_ns, payload);
        }
        Self {
            last: content,
            signals,
            count: 1,
            last_ns: stamp_ns,
            gaps: Gaps::default(),
            period: None,
            recent,
            frames_per_s: 0.0,
            changed_ns: [0; 64],
        }
    }

    fn count(&mut self, stamp_ns: u64, content: Content, inside: bool) {
        // Stamps may go backwards: frames of two processors may be out of order, and the clock may be set.
        self.gaps.add(stamp_ns.saturating_sub(self.last_ns));
        let (before, after) = (self.last.bytes(), content.bytes());
        for (at, (byte, changed_ns)) in after.iter().zip(&mut self.changed_ns).enumerate() {
            if before.get(at) != Some(byte) {
                *changed_ns = stamp_ns;
            }
        }
        if let (Some(signals), Some(payload)) = (&mut self.signals, content.payload()) {
            signals.take(stamp_ns, payload);
        }
        (self.last, self.last_ns) = (content, self.last_ns.max(stamp_ns));
        self.count += 1;
        self.recent.add(1, inside);
    }

    /// The longest time between two frames; `None` with fewer than two.
    pub fn longest_ns(&self) -> Option<u64> {
        (self.gaps.count() > 0).then(|| self.gaps.longest_ns())
    }

    /// Whether a byte has changed since `ns`.
    pub fn changed_since(&self, byte: usize, ns: u64) -> bool {
        self.changed_ns.get(byte).is_some_and(|&changed_ns| changed_ns > ns)
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::databases::Databases;
    use canter_io::interface::{Kind, State};

    const MS: u64 = 1_000_000;

    pub fn bus(name: &str, index: u32, state: Option<State>) -> Interface {
        let mut interface = Interface::find(&format!("sim:{name}")).unwrap();
        interface.name = name.to_owned();
        interface.index = index;
        interface.kind = if state.is_some() { Kind::Can } else { Kind::Vcan };
        interface
    }

    pub fn received(interface: u32, ms: u64, text: &str) -> Received {
        Received { stamp_ns: ms * MS, interface, frame: text.parse().unwrap() }
    }

    fn census() -> Census<'static> {
        let mut census = Census::new(0, 1000 * MS);
        let rate = Some(BitRate::classic(500_000));
        census.update_bus(bus("can0", 3, None), None, rate, Counters::default());
        census
    }

    #[test]
    fn periods_are_those_of_info_and_are_known_at_the_end_of_an_interval() {
        let mut census = census();
        let frames = (0..100).filter(|&n| n != 40);
        frames.for_each(|n| census.count(&received(3, 10 * n, "123#0011")));
        let row = |census: &Census<'static>| census.rows[&Key { interface: 3, id: 0x123 }].clone();
        assert_eq!((row(&census).count, row(&census).period), (99, None));
        census.end_interval(1_100_000_000, 0);
        let period = Period { median_ns: 10 * MS, jitter_ns: 0, missing: Some(1) };
        assert_eq!((row(&census).period, row(&census).longest_ns()), (Some(period), Some(20 * MS)));
    }

    #[test]
    fn a_bus_is_as_loaded_as_its_frames_are_long() {
        let mut census = census();
        let received = received(3, 1, "123#1122334455667788");
        let frame_ns = received.frame.duration_with_interframe_ns(BitRate::classic(500_000));
        (0..1000).for_each(|_| census.count(&received));
        (0..7).for_each(|_| census.count(&self::received(3, 1000, "123#"))); // of the next interval
        census.end_interval(1_100_000_000, 0);
        let load = census.buses[&3].load_percent.unwrap();
        assert!((load - frame_ns as f64 * 1000.0 / 1e9 * 100.0).abs() < 1e-9, "{load}");
        assert_eq!(census.buses[&3].frames_per_s, 1000.0);
        census.end_interval(2_100_000_000, 0);
        assert_eq!(census.buses[&3].frames_per_s, 7.0);
        census.end_interval(3_100_000_000, 0);
        assert_eq!(census.buses[&3].load_percent, Some(0.0));
    }

    #[test]
    fn a_row_knows_when_each_byte_last_changed() {
        let mut census = census();
        census.count(&received(3, 1000, "123#0011"));
        census.count(&received(3, 1500, "123#0012"));
        census.count(&received(3, 2000, "123#0012FF"));
        let row = &census.rows[&Key { interface: 3, id: 0x123 }];
        let changed = |ns| [0, 1, 2].map(|byte| row.changed_since(byte, ns));
        assert_eq!(changed(0), [false, true, true]);
        assert_eq!(changed(1600 * MS), [false, false, true]);
    }

    #[test]
    fn one_identifier_may_have_three_rows_and_an_error_frame_has_none() {
        let mut census = census();
        for text in ["123#", "123#R", "00000123#", "20000004#0000000000000000"] {
            census.count(&received(3, 1, text));
        }
        assert_eq!((census.rows.len(), census.buses[&3].errors()), (3, 1));
        census.reset(5);
        assert_eq!((census.rows.len(), census.buses[&3].errors(), census.since_ns), (0, 0, 5));
    }

    /// A census whose bus has the message `Axles` of 10 bytes, which several frames carry.
    fn census_of_a_truck() -> Census<'static> {
        let text = "BO_ 2566841342 Axles: 10 Vector__XXX\n SG_ Last : 72|8@1+ (0.5,0) [0|0] \"bar\" Vector__XXX\n\n\
                    BA_DEF_ BO_ \"VFrameFormat\" ENUM \"StandardCAN\",\"ExtendedCAN\",\"reserved\",\"J1939PG\";\n\
                    BA_ \"VFrameFormat\" BO_ 2566841342 3;\n";
        let path = tempfile::NamedTempFile::with_suffix(".dbc").unwrap().into_temp_path();
        std::fs::write(&path, text).unwrap();
        let databases = Databases::open(&[path.to_str().unwrap().parse().unwrap()]).unwrap();
        let names = Box::leak(Box::new(Names::new(Box::leak(Box::new(databases)))));
        let mut census = Census::new(0, 1000 * MS).with_names(names);
        census.update_bus(bus("can0", 3, None), None, None, Counters::default());
        census
    }

    #[test]
    fn a_message_of_several_frames_has_a_row_with_its_values_beside_theirs() {
        let mut census = census_of_a_truck();
        // The announcement, of the group FEE3, and the packets; a second message lacks its last one.
        for (ms, text) in (1..).zip([
            "1CECFF01#200A0002FFE3FE00",
            "1CEBFF01#0101020304050607",
            "1CEBFF01#020809FFFFFFFFFF",
            "1CECFF01#200A0002FFE3FE00",
            "1CECFF01#200A0002FFE3FE00",
        ]) {
            census.count(&received(3, ms, text));
        }
        let row = &census.rows[&Key { interface: 3, id: 0x1CFE_E301 | EFF_FLAG }];
        let values: Vec<_> = row.signals.iter().flat_map(Signals::shown).map(|one| one.value).collect();
        assert_eq!((row.count, row.last.bytes().len(), values), (1, 10, vec!["127.5 bar".to_owned()]));
        assert_eq!((census.buses[&3].frames, census.rows.len(), census.broken()), (5, 3, 1));
        assert!(!census.is_unknown());
    }

    #[test]
    fn frames_of_identifiers_without_a_row_are_counted() {
        let mut census = census();
        for id in 0..5000 {
            census.count(&received(3, 1, &format!("{id:08X}#")));
        }
        assert_eq!((census.rows.len(), census.beyond, census.buses[&3].frames), (4096, 904, 5000));
    }

    #[test]
    fn a_deleted_bus_is_marked_gone_and_continues_when_it_comes_back() {
        let mut census = census();
        census.mark_gone(|_| false);
        assert_eq!(census.buses[&3].state(), "gone");
        census.update_bus(
            bus("can0", 3, None),
            None,
            None,
            Counters { rx_dropped: 7, ..Counters::default() },
        );
        assert_eq!((census.buses[&3].state().as_str(), census.buses[&3].lost()), ("up", 7));
    }
}

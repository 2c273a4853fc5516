//! Watches the frames of a recording for the conditions of its triggers.
//!
//! Most frames concern no condition: a bit for each standard identifier says so. Only the others are unpacked.

use crate::trigger::{Condition, Content, Test, When, is_error, is_standard_data};
use canter_frame::{Frame, Identifier, RawRecord};
use std::collections::HashSet;

/// How many identifiers of a bus `New` remembers: all standard ones, and more extended ones than a vehicle has.
const IDENTIFIERS_MAX: usize = 1 << 16;

/// The conditions, and what each bus has shown of them.
pub struct Watch {
    conditions: Vec<Condition>,
    buses: Vec<Bus>,
    /// What the program asked for and the frames have not reached yet.
    asked: Vec<Met>,
    /// Until this time, no period is missed, and nothing was asked for.
    deadline: u64,
}

struct Bus {
    name: String,
    /// For each standard identifier, whether its data frames concern a condition.
    standard: [u64; 32],
    /// Whether other frames do.
    others: bool,
    states: Vec<State>,
}

/// A condition on a bus.
struct State {
    condition: usize,
    kind: Kind,
}

enum Kind {
    Plain,
    Missing {
        /// The time of the last frame; `None`: there was none, or the condition is met.
        last: Option<u64>,
    },
    New {
        /// When learning ends; `None`: the bus had no frame yet.
        until: Option<u64>,
        known: HashSet<u32>,
    },
    Content {
        test: Box<dyn Test>,
        is_met: bool,
    },
}

/// A condition that was met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Met {
    pub at: u64,
    /// The cause, as a sentence: the condition, the bus, and the frame.
    pub what: String,
}

impl Watch {
    pub fn new(conditions: Vec<Condition>) -> Self {
        Self { conditions, buses: Vec::new(), asked: Vec::new(), deadline: u64::MAX }
    }

    /// The next bus.
    pub fn add_bus(&mut self, name: &str) {
        let mut bus = Bus { name: name.to_owned(), standard: [0; 32], others: false, states: Vec::new() };
        for (at, condition) in self.conditions.iter().enumerate() {
            // A device is `/dev/canchar0` in a command line, and `canchar0` in files.
            let is_meant = |wanted: &String| wanted == name || wanted.strip_prefix("/dev/") == Some(name);
            if condition.interface.as_ref().is_none_or(is_meant) {
                bus.add(at, &condition.when);
            }
        }
        self.buses.push(bus);
    }

    /// Adds an event that the program asks for. It happens when the frames have reached its time.
    pub fn ask(&mut self, met: Met) {
        self.deadline = self.deadline.min(met.at);
        self.asked.push(met);
    }

    /// Takes out all events that the program asked for.
    pub fn take_asked(&mut self) -> Vec<Met> {
        std::mem::take(&mut self.asked)
    }

    /// Whether a frame needs a [`look`](Self::look) at whatever time; every other one does behind the [`deadline`](Self::deadline).
    #[inline]
    pub fn concerns(&self, record: &RawRecord<'_>) -> bool {
        let can_id = record.bytes.first_chunk().map_or(0, |word| u32::from_ne_bytes(*word));
        let Some(bus) = self.buses.get(record.bus.index()) else { return false };
        match is_standard_data(can_id) {
            true => bus.standard[can_id as usize / 64] >> (can_id % 64) & 1 != 0,
            false => bus.others,
        }
    }

    /// Until this time, no period is missed, and nothing was asked for.
    #[inline]
    pub fn deadline(&self) -> u64 {
        self.deadline
    }

    /// Takes a frame, seen at `time`, and passes the conditions that are met to `met`.
    #[cold]
    pub fn look(&mut self, record: &RawRecord<'_>, time: u64, mut met: impl FnMut(Met)) {
        self.pass(time, &mut met);
        let Self { conditions, buses, deadline, .. } = self;
        let Some(bus) = buses.get_mut(record.bus.index()) else { return };
        let frame = record.frame();
        for State { condition, kind } in &mut bus.states {
            let Condition { text, when, .. } = &conditions[*condition];
            let mut is_met = |detail: &str| {
                let what = format!("{text}: {} {frame}{detail}", bus.name);
                met(Met { at: time, what });
            };
            match (when, kind) {
                (When::Frame(filters), _) if filters.matches(&frame) => is_met(""),
                (When::Data(filter, pattern), _)
                    if filter.matches(&frame) && !frame.is_rtr() && pattern.matches(frame.data()) =>
                {
                    is_met("");
                }
                (When::Error(wanted), _) if wanted.matches(&frame) => is_met(""),
                (When::Missing(filters, limit), Kind::Missing { last }) if filters.matches(&frame) => {
                    *last = Some(time);
                    *deadline = (*deadline).min(time.saturating_add(limit.as_nanos() as u64));
                }
                (When::New(learned), Kind::New { until, known }) if !is_error(frame.can_id) => {
                    let until = *until.get_or_insert(time.saturating_add(learned.as_nanos() as u64));
                    let is_new = known.len() < IDENTIFIERS_MAX && known.insert(frame.can_id);
                    if is_new && time >= until {
                        is_met("");
                    }
                }
                (When::Content(_), Kind::Content { test, is_met: was_met })
                    if !is_error(frame.can_id) && test.concerns(frame.id()) =>
                {
                    if let Some((now, detail)) = test.judge(&frame) {
                        if now && !*was_met {
                            is_met(&format!(": {detail}"));
                        }
                        *was_met = now;
                    }
                }
                _ => {}
            }
        }
        bus.forget_known(conditions, &frame);
    }

    /// All frames before `time` were taken: passes the periods that were missed until then, and what was asked for, to `met`.
    pub fn pass(&mut self, time: u64, met: &mut impl FnMut(Met)) {
        if time <= self.deadline {
            return;
        }
        self.asked.extract_if(.., |asked| asked.at < time).for_each(&mut *met);
        self.deadline = self.asked.iter().map(|asked| asked.at).min().unwrap_or(u64::MAX);
        for bus in &mut self.buses {
            for State { condition, kind } in &mut bus.states {
                let Condition { text, when: When::Missing(_, limit), .. } = &self.conditions[*condition]
                else {
                    continue;
                };
                let Kind::Missing { last } = kind else { continue };
                let Some(due) = last.map(|last| last.saturating_add(limit.as_nanos() as u64)) else {
                    continue;
                };
                if time > due {
                    met(Met { at: due, what: format!("{text}: {}: none for {limit:?}", bus.name) });
                    *last = None;
                } else {
                    self.deadline = self.deadline.min(due);
                }
            }
        }
    }
}

impl Bus {
    fn add(&mut self, condition: usize, when: &When) {
        let kind = match when {
            When::Request => return,
            When::Missing(..) => Kind::Missing { last: None },
            When::New(_) => Kind::New { until: None, known: HashSet::new() },
            When::Content(content) => match self.test(content.as_ref()) {
                None => return,
                Some(test) => Kind::Content { test, is_met: false },
            },
            _ => Kind::Plain,
        };
        for id in (0..0x800).filter(|&id| when.concerns_standard(id)) {
            self.standard[id as usize / 64] |= 1 << (id % 64);
        }
        self.others |= when.concerns_others();
        self.states.push(State { condition, kind });
    }

    fn test(&mut self, content: &dyn Content) -> Option<Box<dyn Test>> {
        let test = content.on_bus(&self.name)?;
        for id in (0..0x800).filter(|&id| test.concerns(Identifier::Sff(id))) {
            self.standard[usize::from(id) / 64] |= 1 << (id % 64);
        }
        Some(test)
    }

    /// A standard identifier that `New` knows concerns only the other conditions.
    fn forget_known(&mut self, conditions: &[Condition], frame: &Frame) {
        let can_id = frame.can_id;
        let concerns = |State { condition, kind }: &State| match (&conditions[*condition].when, kind) {
            (When::New(_), _) => false,
            (_, Kind::Content { test, .. }) => test.concerns(frame.id()),
            (when, _) => when.concerns_standard(can_id),
        };
        if is_standard_data(can_id) && !self.states.iter().any(concerns) {
            self.standard[can_id as usize / 64] &= !(1 << (can_id % 64));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trigger::Pattern;
    use canter_frame::BusId;
    use std::{sync::Arc, time::Duration};

    fn condition(text: &str, interface: Option<&str>, when: When) -> Condition {
        Condition { text: text.to_owned(), interface: interface.map(str::to_owned), when }
    }

    /// What frames, each with its time in ms and its bus, meet.
    fn met(conditions: Vec<Condition>, frames: &[(u64, u32, &str)]) -> Vec<(u64, String)> {
        let mut watch = Watch::new(conditions);
        watch.add_bus("can0");
        watch.add_bus("can1");
        let mut all = Vec::new();
        for &(ms, bus, text) in frames {
            let frame: Frame = text.parse().unwrap();
            let bytes = frame.kernel_bytes();
            let record = RawRecord::new(ms * 1_000_000, BusId(bus), &bytes[..frame.mtu()]);
            let take = |met: Met| all.push((met.at / 1_000_000, met.what));
            if watch.concerns(&record) || record.stamp_ns > watch.deadline() {
                watch.look(&record, record.stamp_ns, take);
            }
        }
        all
    }

    fn times(met: Vec<(u64, String)>) -> Vec<u64> {
        met.into_iter().map(|(ms, _)| ms).collect()
    }

    #[test]
    fn identifier_and_data_begin_a_window_on_the_bus_that_is_meant() {
        let pattern = Pattern { data: vec![0x40], mask: vec![0xc0], inverse: false };
        let when = When::Data("0C9".parse().unwrap(), pattern);
        let frames =
            [(1, 0, "0C9#7F"), (2, 0, "0C9#80"), (3, 0, "0CA#7F"), (4, 1, "0C9#7F"), (5, 0, "000000C9#7F")];
        assert_eq!(
            met(vec![condition("x", Some("can0"), when.clone())], &frames),
            [(1, "x: can0 0C9#7F".to_owned())]
        );
        assert_eq!(times(met(vec![condition("x", None, when)], &frames)), [1, 4]);
        let when = When::Frame("0C9:7FF,#00000040".parse().unwrap());
        let frames =
            [(1, 0, "0C8#"), (2, 0, "0C9#"), (3, 0, "20000040#0000000000000000"), (4, 0, "000000C9#")];
        assert_eq!(times(met(vec![condition("x", None, when)], &frames)), [2, 3, 4]);
    }

    #[test]
    fn a_missed_period_is_noticed_at_its_end_once_and_only_after_a_first_frame() {
        let when = When::Missing("0C9".parse().unwrap(), Duration::from_millis(50));
        let frames = [
            (0, 0, "100#"),
            (90, 0, "100#"),
            (100, 0, "0C9#"),
            (150, 0, "0C9#"), // not longer than the limit
            (190, 0, "100#"),
            (201, 0, "100#"), // noticed by a frame of another identifier
            (300, 0, "100#"),
            (400, 0, "0C9#"),
            (460, 0, "0C9#"), // noticed by the frame that is late
        ];
        assert_eq!(times(met(vec![condition("x", None, when)], &frames)), [200, 450]);
    }

    #[test]
    fn a_new_identifier_is_one_that_the_bus_did_not_have_while_it_was_learned() {
        let frames = [
            (0, 0, "100#"),
            (5, 0, "101#"),
            (20, 0, "101#"),
            (21, 0, "102#"),
            (22, 0, "102#"),
            (23, 0, "00000102#"),
            (24, 1, "102#"), // the first frame of this bus: it is still learned
            (25, 0, "100#"),
        ];
        let new = condition("new", None, When::New(Duration::from_millis(10)));
        assert_eq!(times(met(vec![new.clone()], &frames)), [21, 23]);
        // A known identifier still concerns other conditions.
        let other = condition("x", None, When::Frame("100".parse().unwrap()));
        assert_eq!(times(met(vec![new, other], &frames)), [0, 21, 23, 25]);
    }

    /// Whether the first byte is above 10.
    struct Above;

    impl Content for Above {
        fn on_bus(&self, name: &str) -> Option<Box<dyn Test>> {
            (name == "can1").then(|| Box::new(Self) as Box<dyn Test>)
        }
    }

    impl Test for Above {
        fn concerns(&self, id: Identifier) -> bool {
            id == Identifier::Sff(7)
        }

        fn judge(&mut self, frame: &Frame) -> Option<(bool, String)> {
            let &byte = frame.data().first()?;
            Some((byte > 10, format!("{byte} > 10")))
        }
    }

    #[test]
    fn content_begins_a_window_when_it_becomes_true() {
        let frames = [
            (1, 0, "007#0B"),
            (2, 1, "007#0B"),
            (3, 1, "007#0C"),
            (4, 1, "007#"),
            (5, 1, "007#0A"),
            (6, 1, "006#0B"),
            (7, 1, "007#FF"),
        ];
        let got = met(vec![condition("x", None, When::Content(Arc::new(Above)))], &frames);
        assert_eq!(
            got,
            [(2, "x: can1 007#0B: 11 > 10".to_owned()), (7, "x: can1 007#FF: 255 > 10".to_owned())]
        );
    }
}

//! A rest bus: every message of a database at its cycle time, with signals that move inside their ranges.

use canter_cli::units::counted;
use canter_frame::Frame;
use canter_route::traffic::source::Due;
use canter_signals::{Database, Kind, Message, Signal};
use clap::ValueEnum;
use std::{cmp::Reverse, collections::BinaryHeap};

/// How signals move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Wave {
    /// From the lowest to the highest value in 10 s, again and again
    Ramp,
    /// A sine between the lowest and the highest value, 10 s long
    Sine,
    /// The middle of the range
    Constant,
}

/// The time of a ramp and of a sine.
const WAVE_NS: u64 = 10_000_000_000;

impl Wave {
    /// The share of a range, 0…1, at a time.
    fn share(self, at_ns: u64) -> f64 {
        let phase = (at_ns % WAVE_NS) as f64 / WAVE_NS as f64;
        match self {
            Self::Ramp => phase,
            Self::Sine => 0.5 + 0.5 * (phase * std::f64::consts::TAU).sin(),
            Self::Constant => 0.5,
        }
    }
}

/// The messages with a cycle time, in the order in which they are due.
pub struct RestBus {
    messages: Vec<(Message, u64)>,
    /// When each message is due next, and its place.
    next: BinaryHeap<Reverse<(u64, usize)>>,
    wave: Wave,
    /// Messages without a cycle time, which are not sent.
    without_cycle: usize,
    /// Messages with a cycle time that are longer than a frame, and not sent either.
    longer_than_frame: usize,
}

impl RestBus {
    pub fn new(database: &Database, wave: Wave) -> Self {
        let period = |message: &Message| message.cycle_ms.map(|ms| (ms * 1e6) as u64).filter(|&ns| ns > 0);
        let with_cycle: Vec<(&Message, u64)> =
            database.messages.iter().filter_map(|message| Some((message, period(message)?))).collect();
        let messages: Vec<(Message, u64)> = with_cycle
            .iter()
            .filter(|(message, _)| empty(message).is_some())
            .map(|&(message, period)| (message.clone(), period))
            .collect();
        let next = (0..messages.len()).map(|place| Reverse((0, place))).collect();
        let without_cycle = database.messages.len() - with_cycle.len();
        let longer_than_frame = with_cycle.len() - messages.len();
        Self { messages, next, wave, without_cycle, longer_than_frame }
    }

    /// The messages of the database that are not sent, and why, a sentence each.
    pub fn remarks(&self) -> impl Iterator<Item = String> {
        let remark = |messages: usize, why: &str| {
            (messages > 0).then(|| format!("{} {why}: not sent", counted(messages as u64, "message")))
        };
        let without_cycle = remark(self.without_cycle, "without a cycle time (GenMsgCycleTime)");
        without_cycle.into_iter().chain(remark(self.longer_than_frame, "longer than a frame"))
    }

    /// Messages that are sent.
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    /// Whether a message is sent in FD frames.
    pub fn has_fd(&self) -> bool {
        self.messages.iter().any(|(message, _)| message.is_fd)
    }
}

/// The frame of a message, without data; `None`: it fits into no frame.
fn empty(message: &Message) -> Option<Frame> {
    let room = [0; 64];
    if !message.is_fd {
        return Frame::classic(message.id, room.get(..message.bytes)?).ok();
    }
    let length = (message.bytes..=64).find(|&length| Frame::fd(message.id, &room[..length], 0).is_ok())?;
    Frame::fd(message.id, &room[..length], 0).ok()
}

/// The lowest and the highest value of a signal: those that the database states, or those of its bits.
fn range(signal: &Signal) -> (f64, f64) {
    let (low, high) = signal.range;
    if high > low {
        return (low, high);
    }
    let patterns = match signal.kind {
        Kind::Single | Kind::Double => return (0.0, 1.0),
        Kind::Unsigned => (0, u64::MAX >> (64 - signal.bits)),
        Kind::Signed => (1 << (signal.bits - 1), (1 << (signal.bits - 1)) - 1),
    };
    let (one, other) = (signal.float(patterns.0), signal.float(patterns.1));
    (one.min(other), one.max(other))
}

/// The payload of a message at a time. Selectors take the values that select a signal, one after the other.
fn fill(message: &Message, wave: Wave, at_ns: u64, turn: u64, data: &mut [u8]) {
    let share = wave.share(at_ns);
    for (at, signal) in message.signals.iter().enumerate().filter(|(_, signal)| !signal.is_selector) {
        let is_selected = |signal: &Signal| {
            signal.condition.as_ref().is_none_or(|when| select(message, when, turn).is_some())
        };
        if !is_selected(signal) {
            continue;
        }
        let (low, high) = range(signal);
        let value = low + share * (high - low);
        // A range may be wider than its bits.
        let pattern = signal.pattern(value.into()).or_else(|| signal.pattern(low.into()));
        message.store(at, pattern.unwrap_or(0), data);
    }
    let selectors = message.signals.iter().enumerate().filter(|(_, signal)| signal.is_selector);
    for (at, _) in selectors {
        if let Some(value) = chosen(message, at, turn) {
            message.store(at, value, data);
        }
    }
}

/// The raw value of a selector in a turn.
fn chosen(message: &Message, selector: usize, turn: u64) -> Option<u64> {
    let conditions = message.signals.iter().filter_map(|signal| signal.condition.as_ref());
    let mut values: Vec<u64> = conditions
        .filter(|when| when.selector == selector)
        .filter_map(|when| Some(*when.values.first()?.start()))
        .collect();
    values.sort_unstable();
    values.dedup();
    let count = values.len() as u64;
    values.get(turn.checked_rem(count)? as usize).copied()
}

/// Whether a condition holds in a turn, and those of its selector too.
fn select(message: &Message, when: &canter_signals::signal::Condition, turn: u64) -> Option<()> {
    let value = chosen(message, when.selector, turn)?;
    let selector = message.signals.get(when.selector)?;
    if let Some(outer) = &selector.condition {
        select(message, outer, turn)?;
    }
    when.values.iter().any(|range| range.contains(&value)).then_some(())
}

impl Iterator for RestBus {
    type Item = Due;

    fn next(&mut self) -> Option<Due> {
        let Reverse((at_ns, place)) = self.next.pop()?;
        let (message, period_ns) = self.messages.get(place)?;
        self.next.push(Reverse((at_ns.saturating_add(*period_ns), place)));
        let mut frame = empty(message)?;
        let length = frame.data().len();
        fill(message, self.wave, at_ns, at_ns / period_ns, &mut frame.data[..length]);
        Some(Due { at_ns: Some(at_ns), frame })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATABASE: &str = "\
BO_ 291 Engine: 8 ECU
 SG_ Mode M : 0|4@1+ (1,0) [0|0] \"\" Dash
 SG_ Speed m2 : 8|16@1+ (0.25,0) [0|8000] \"rpm\" Dash
 SG_ Heat m5 : 8|8@1- (1,40) [0|0] \"C\" Dash

BO_ 292 Never: 8 ECU
 SG_ S : 0|8@1+ (1,0) [0|0] \"\" Dash

BO_ 293 Fast: 12 ECU
 SG_ S : 80|8@1+ (1,0) [0|100] \"\" Dash

BO_ 294 TooLong: 65 ECU
 SG_ S : 0|8@1+ (1,0) [0|100] \"\" Dash

BA_DEF_ BO_ \"GenMsgCycleTime\" INT 0 10000;
BA_DEF_DEF_ \"GenMsgCycleTime\" 0;
BA_ \"GenMsgCycleTime\" BO_ 291 100;
BA_ \"GenMsgCycleTime\" BO_ 293 20;
BA_ \"GenMsgCycleTime\" BO_ 294 20;
";

    #[test]
    fn messages_come_at_their_cycle_times_with_values_in_their_ranges() {
        let database = Database::parse(DATABASE).unwrap();
        let bus = RestBus::new(&database, Wave::Ramp);
        assert_eq!((bus.len(), bus.has_fd()), (2, true));
        let remarks: Vec<String> = bus.remarks().collect();
        assert_eq!(
            remarks,
            [
                "1 message without a cycle time (GenMsgCycleTime): not sent",
                "1 message longer than a frame: not sent"
            ]
        );
        let frames: Vec<Due> = bus.take_while(|due| due.at_ns < Some(1_000_000_000)).collect();
        let frames_of =
            |id: u16| frames.iter().filter(move |due| due.frame.id() == canter_frame::Identifier::Sff(id));
        assert_eq!((frames_of(291).count(), frames_of(293).count()), (10, 50));
        let engine = database.message("Engine").unwrap();
        let mut names = Vec::new();
        for due in frames_of(291) {
            for (signal, value) in engine.values(due.frame.data()) {
                let (low, high) = range(signal);
                assert!((low..=high).contains(&value.as_f64()), "{} {value}", signal.name);
                names.push(signal.name.clone());
            }
        }
        assert_eq!(names[..4], ["Mode", "Speed", "Mode", "Heat"]);
        let fast = database.message("Fast").unwrap();
        let last = frames_of(293).next_back().unwrap();
        assert_eq!(
            fast.values(last.frame.data()).next().unwrap().1.as_f64(),
            10.0,
            "980 ms of 10 s, rounded"
        );
    }

    #[test]
    fn a_wave_stays_in_its_range() {
        for wave in [Wave::Ramp, Wave::Sine, Wave::Constant] {
            assert!((0..40).all(|n| (0.0..=1.0).contains(&wave.share(n * 333_333_333))));
        }
        assert_eq!(Wave::Constant.share(5), 0.5);
    }
}

//! The messages of a bus's identifiers, and the last value of each of their signals.

use crate::databases::{Databases, Wording, known_message};
use canter_signals::{Codebook, Message, Payload, Signal};
use std::{collections::HashMap, rc::Rc};

/// The messages of every bus.
pub struct Names<'d> {
    /// The messages of buses that have databases of their own.
    named: HashMap<String, Codebook<'d>>,
    shared: Codebook<'d>,
    is_empty: bool,
}

impl<'d> Names<'d> {
    pub fn new(databases: &'d Databases) -> Self {
        let named = databases.named_buses().into_iter().map(|bus| (bus.to_owned(), databases.codebook(bus)));
        let named = named.collect();
        Self { named, shared: databases.shared_codebook(), is_empty: databases.is_empty() }
    }

    /// Whether there are no databases.
    pub fn is_empty(&self) -> bool {
        self.is_empty
    }

    /// Whether a bus has messages of J1939, which several frames may carry.
    pub fn has_groups(&self, bus: &str) -> bool {
        self.named.get(bus).unwrap_or(&self.shared).has_groups()
    }

    /// The signals of an identifier with its flags, without values; `None`: the bus's databases do not know the identifier.
    pub fn signals(&self, bus: &str, id: u32) -> Option<Signals<'d>> {
        known_message(self.named.get(bus).unwrap_or(&self.shared), id).map(Signals::new)
    }
}

/// A message, and what the frames of one identifier had of its signals.
#[derive(Clone)]
pub struct Signals<'d> {
    pub message: &'d Message,
    wording: Rc<Wording>,
    /// The width of each signal with its longest value.
    widths: Rc<[usize]>,
    /// What is known of each signal, in the order of the message.
    last: Vec<Option<Last>>,
    /// Frames that were shorter than the message.
    pub short: u64,
    /// Frames with a multiplexer value that selects no signal.
    pub unselected: u64,
}

/// The last value of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Last {
    bits: u64,
    stamp_ns: u64,
    /// When the value last changed; 0: never.
    changed_ns: u64,
}

/// A signal that has a value.
pub struct Shown<'a> {
    pub signal: &'a Signal,
    pub bits: u64,
    /// When it was in a frame.
    pub stamp_ns: u64,
    /// When the value last changed; 0: never.
    pub changed_ns: u64,
    /// The name and the value with its unit, as people read them.
    pub name: &'a str,
    pub value: String,
    /// The characters of the name, a blank, and the longest value.
    pub width: usize,
}

impl<'d> Signals<'d> {
    fn new(message: &'d Message) -> Self {
        let wording = Wording::complete(message);
        let widths = (0..message.signals.len()).map(|at| wording.widest(message, at)).collect();
        let last = vec![None; message.signals.len()];
        Self { message, wording: Rc::new(wording), widths, last, short: 0, unselected: 0 }
    }

    /// Takes the values of a payload. A signal that another multiplexer value selects keeps its value. After a payload that
    /// is too short, only the signals of this payload have values.
    pub fn take(&mut self, stamp_ns: u64, payload: Payload<'_>) {
        let last = &mut self.last;
        let mut take = |at: usize, bits| {
            let Some(last) = last.get_mut(at) else { return };
            let changed_ns = match *last {
                Some(before) if before.bits == bits => before.changed_ns,
                Some(_) => stamp_ns,
                None => 0,
            };
            *last = Some(Last { bits, stamp_ns, changed_ns });
        };
        let fit = self.message.visit(payload, &mut take);
        self.unselected += u64::from(fit.unselected > 0);
        if fit.missing > 0 {
            self.short += 1;
            let mut present = vec![false; self.last.len()];
            self.message.visit(payload, |at, _| present[at] = true);
            self.last.iter_mut().zip(present).filter(|(_, is)| !is).for_each(|(last, _)| *last = None);
        }
    }

    /// The signals that have a value, in the order of the message.
    pub fn shown(&self) -> impl Iterator<Item = Shown<'_>> {
        self.last.iter().enumerate().filter_map(|(at, last)| {
            let Last { bits, stamp_ns, changed_ns } = (*last)?;
            let (name, value) = self.wording.signal(self.message, at, bits, false)?;
            let (signal, width) = (self.message.signals.get(at)?, *self.widths.get(at)?);
            Some(Shown { signal, bits, stamp_ns, changed_ns, name, value, width })
        })
    }

    /// Whether the name of a signal with a value has this text in it, in upper case.
    pub fn has_signal_with(&self, text: &str) -> bool {
        let signals = self.message.signals.iter().zip(&self.last).filter(|(_, last)| last.is_some());
        signals.map(|(signal, _)| signal).any(|signal| signal.name.to_uppercase().contains(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use canter_io::Frame;
    use canter_signals::Database;

    /// The signals of the first message after frames with these data, a second apart.
    fn signals(database: &Database, frames: &[&str]) -> Vec<String> {
        let mut signals = Signals::new(&database.messages[0]);
        for (second, data) in (1..).zip(frames) {
            let frame: Frame = format!("123#{data}").parse().unwrap();
            signals.take(second, Payload::of_frame(&frame));
        }
        let mut shown: Vec<String> = signals
            .shown()
            .map(|one| format!("{} {} at {}, changed {}", one.name, one.value, one.stamp_ns, one.changed_ns))
            .collect();
        shown.push(format!("{} short, {} unselected", signals.short, signals.unselected));
        shown
    }

    #[test]
    fn a_signal_keeps_its_value_until_its_selector_selects_it_again_or_a_frame_is_too_short() {
        let database = Database::parse(
            "BO_ 291 A: 3 X\n SG_ Mode M : 0|8@1+ (1,0) [0|0] \"\" Y\n SG_ Speed m0 : 8|8@1+ (1,0) [0|0] \"rpm\" Y\n \
             SG_ Heat m1 : 8|8@1- (0.5,0) [0|0] \"C\" Y\n SG_ Count : 16|8@1+ (1,0) [0|0] \"\" Y\n",
        )
        .unwrap();
        assert_eq!(
            signals(&database, &["000701", "01FF01", "010001", "020002"]),
            [
                "Mode 2 at 4, changed 4",
                "Speed 7 rpm at 1, changed 0",
                "Heat 0.0 C at 3, changed 3",
                "Count 2 at 4, changed 4",
                "0 short, 1 unselected"
            ]
        );
        assert_eq!(
            signals(&database, &["000701", "0102"]),
            ["Mode 1 at 2, changed 2", "Heat 1.0 C at 2, changed 0", "1 short, 0 unselected"]
        );
        assert_eq!(signals(&database, &["000701", ""]), ["1 short, 0 unselected"]);
    }

    #[test]
    fn a_signal_has_room_for_its_longest_value() {
        let database = Database::parse(
            "BO_ 291 A: 8 X\n SG_ Heat : 0|8@1- (0.25,0) [0|0] \"C\" Y\n SG_ Gear : 8|4@1+ (1,0) [0|0] \"\" Y\n \
             SG_ Whole : 16|1@1+ (1,0) [0|0] \"\" Y\n\nVAL_ 291 Gear 0 \"Neutral\" ;\n",
        )
        .unwrap();
        let mut signals = Signals::new(&database.messages[0]);
        signals.take(1, Payload::of_bytes(&[0; 8]));
        let widths: Vec<usize> = signals.shown().map(|one| one.width).collect();
        assert_eq!(widths, ["Heat -32.00 C".len(), "Gear Neutral".len(), "Whole 1".len()]);
    }
}

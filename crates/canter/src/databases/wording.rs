//! A message for people: its signals with the digits of their factors, units, and the texts of value tables.

use super::number::Digits;
use canter_cli::terminal::plain;
use canter_signals::{Kind, Message, Payload, message::Fit};

/// How the signals of a message are printed.
pub struct Wording {
    /// The signals that are printed, by their place; `None`: not printed.
    signals: Vec<Option<Label>>,
    /// The width of the longest printed name, in characters.
    pub width: usize,
}

/// What is printed of a signal with every value.
struct Label {
    name: String,
    unit: String,
    digits: Digits,
}

/// The printed signals of a payload.
pub struct Worded<'a> {
    /// Names and values, in the order of the database.
    pub signals: Vec<(&'a str, String)>,
    /// What the payload lacks.
    pub fit: Fit,
}

impl Wording {
    /// The wording of the signals at these places.
    pub fn new(message: &Message, places: &[usize]) -> Self {
        let label = |at: usize| {
            let signal = &message.signals[at];
            let unit =
                if signal.unit.is_empty() { String::new() } else { format!(" {}", plain(&signal.unit)) };
            Label { name: plain(&signal.name), unit, digits: Digits::new(signal) }
        };
        let width = places.iter().map(|&at| message.signals[at].name.chars().count()).max().unwrap_or(0);
        let signals = (0..message.signals.len()).map(|at| places.contains(&at).then(|| label(at))).collect();
        Self { signals, width }
    }

    /// The wording of all signals of a message.
    pub fn complete(message: &Message) -> Self {
        Self::new(message, &(0..message.signals.len()).collect::<Vec<_>>())
    }

    /// The characters of the name of the signal at a place, a blank, and its longest text. A float may have a longer one.
    pub fn widest(&self, message: &Message, at: usize) -> usize {
        let Some(signal) = message.signals.get(at) else { return 0 };
        let (all, sign) = (u64::MAX >> (64 - signal.bits), 1 << (signal.bits - 1));
        let patterns = match signal.kind {
            Kind::Unsigned | Kind::Signed => [0, all, sign, sign - 1],
            Kind::Single => [(-1.2345678e-10f32).to_bits().into(); 4],
            Kind::Double => [(-1.234_567_890_123_456_8_f64).to_bits(); 4],
        };
        let number =
            |&bits: &u64| self.signal(message, at, bits, true).map_or(0, |(_, text)| text.chars().count());
        let choice = |(_, text): &(i64, String)| text.chars().count();
        let texts = patterns.iter().map(number).chain(signal.choices.iter().map(choice));
        signal.name.chars().count() + 1 + texts.max().unwrap_or(0)
    }

    /// The signals of a payload; `numbers`: without the texts of value tables.
    pub fn worded(&self, message: &Message, payload: Payload<'_>, numbers: bool) -> Worded<'_> {
        let mut signals = Vec::with_capacity(self.signals.len());
        let fit = message.visit(payload, |at, bits| signals.extend(self.signal(message, at, bits, numbers)));
        Worded { signals, fit }
    }

    /// The name of the signal at a place, and the text of a bit pattern; `None`: the signal is not printed.
    pub fn signal(&self, message: &Message, at: usize, bits: u64, numbers: bool) -> Option<(&str, String)> {
        let (label, signal) = (self.signals.get(at)?.as_ref()?, message.signals.get(at)?);
        let text = match signal.choice(bits).filter(|_| !numbers) {
            Some(choice) => plain(choice).replace('\n', " "),
            None => label.digits.readable(signal.value(bits)) + &label.unit,
        };
        Some((label.name.as_str(), text))
    }
}

impl Worded<'_> {
    /// The signals in a list: `Mode: Hot, Heat: 30 C`, as `cantools decode --single-line` prints them.
    pub fn list(&self) -> String {
        let list = self.signals.iter().map(|(name, text)| format!("{name}: {text}"));
        list.collect::<Vec<_>>().join(", ")
    }
}

//! A signal's value as a condition of `--trigger`, by DBC databases. The event is that the comparison becomes true.

use crate::databases::Databases;
use canter_capture::{Content, Test};
use canter_frame::{Frame, Identifier};
use canter_signals::{Message, Payload, Value, parameter_group};
use std::{cmp::Ordering, fmt, ptr, sync::Arc};

/// A signal and what its value is compared with, as written.
#[derive(Clone, Debug)]
pub struct Wanted {
    pub message: Option<String>,
    pub signal: String,
    pub comparison: Comparison,
    /// A number, or a text of the signal's value table.
    pub value: String,
}

/// How a value is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    Above,
    AtLeast,
    Below,
    AtMost,
    Equal,
    Different,
}

impl Comparison {
    const SIGNS: [(&'static str, Self); 7] = [
        (">", Self::Above),
        (">=", Self::AtLeast),
        ("<", Self::Below),
        ("<=", Self::AtMost),
        ("==", Self::Equal),
        ("=", Self::Equal),
        ("!=", Self::Different),
    ];

    pub fn parse(sign: &str) -> Option<Self> {
        Self::SIGNS.iter().find(|(known, _)| *known == sign).map(|(_, comparison)| *comparison)
    }

    fn sign(self) -> &'static str {
        Self::SIGNS.iter().find(|(_, known)| *known == self).map_or("", |(sign, _)| sign)
    }

    /// Whether a value compares so. NaN only differs.
    fn holds(self, value: f64, with: f64) -> bool {
        let order = value.partial_cmp(&with);
        match self {
            Self::Above => order == Some(Ordering::Greater),
            Self::AtLeast => order.is_some_and(Ordering::is_ge),
            Self::Below => order == Some(Ordering::Less),
            Self::AtMost => order.is_some_and(Ordering::is_le),
            Self::Equal => order == Some(Ordering::Equal),
            Self::Different => order != Some(Ordering::Equal),
        }
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(message) = &self.message {
            write!(f, "{message}.")?;
        }
        write!(f, "{} {} {}", self.signal, self.comparison.sign(), self.value)
    }
}

/// The condition, with the databases.
pub struct SignalCondition {
    wanted: Wanted,
    databases: Arc<Databases>,
}

impl SignalCondition {
    /// Refuses a signal that no database has, and a value that is neither a number nor one of its texts.
    pub fn new(wanted: Wanted, databases: &Arc<Databases>) -> Result<Self, String> {
        let messages = databases.iter().flat_map(|database| &database.messages);
        let mut found = messages.filter_map(|message| Known::new(message, &wanted)).peekable();
        if found.peek().is_none() {
            return Err(format!("no message of the databases has the signal {}", wanted.signal));
        }
        if let Some(Known { value: None, .. }) = found.find(|known| known.value.is_none()) {
            let Wanted { signal, value, .. } = &wanted;
            return Err(format!("{value:?} is neither a number nor a text of {signal}'s value table"));
        }
        drop(found);
        Ok(Self { wanted, databases: Arc::clone(databases) })
    }
}

impl Content for SignalCondition {
    fn on_bus(&self, name: &str) -> Option<Box<dyn Test>> {
        let codebook = self.databases.codebook(name);
        // Where two databases have the same identifier, the first one counts.
        let counts =
            |message: &&&Message| codebook.message(message.id).is_some_and(|first| ptr::eq(first, **message));
        let known = codebook.messages().iter().filter(counts);
        let known: Vec<Known> = known.filter_map(|message| Known::new(message, &self.wanted)).collect();
        let comparison = self.wanted.comparison;
        (!known.is_empty()).then(|| Box::new(SignalTest { known, comparison }) as Box<dyn Test>)
    }
}

/// A message that has the signal.
struct Known {
    message: Message,
    place: usize,
    /// What the signal is compared with; `None`: the text is not in its value table.
    value: Option<f64>,
}

impl Known {
    fn new(message: &Message, Wanted { message: name, signal, value, .. }: &Wanted) -> Option<Self> {
        if name.as_ref().is_some_and(|name| *name != message.name) {
            return None;
        }
        let (place, signal) = message.signal(signal)?;
        let chosen = signal.choices.iter().find(|(_, text)| text == value);
        let value = match chosen {
            Some((raw, _)) => Some(*raw as f64 * signal.factor + signal.offset),
            None => value.parse().ok(),
        };
        Some(Self { message: message.clone(), place, value })
    }

    fn is_meant(&self, id: Identifier) -> bool {
        match (self.message.id, id) {
            (Identifier::Eff(known), Identifier::Eff(id)) if self.message.is_j1939 => {
                parameter_group(known) == parameter_group(id)
            }
            (known, id) => known == id,
        }
    }
}

/// The condition on one bus.
struct SignalTest {
    known: Vec<Known>,
    comparison: Comparison,
}

impl Test for SignalTest {
    fn concerns(&self, id: Identifier) -> bool {
        self.known.iter().any(|known| known.is_meant(id))
    }

    fn judge(&mut self, frame: &Frame) -> Option<(bool, String)> {
        if frame.is_rtr() {
            return None;
        }
        let Known { message, place, value } = self.known.iter().find(|known| known.is_meant(frame.id()))?;
        let mut found: Option<Value> = None;
        let signal = message.signals.get(*place)?;
        message.visit(Payload::of_frame(frame), |at, bits| {
            if at == *place {
                found = Some(signal.value(bits));
            }
        });
        let found = found?;
        let unit = if signal.unit.is_empty() { String::new() } else { format!(" {}", signal.unit) };
        let detail = format!("{}.{} = {found}{unit}", message.name, signal.name);
        Some((self.comparison.holds(found.as_f64(), (*value)?), detail))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_compare_and_nan_only_differs() {
        let held = |value: f64| -> Vec<&str> {
            Comparison::SIGNS.iter().filter(|(_, one)| one.holds(value, 3.0)).map(|(sign, _)| *sign).collect()
        };
        assert_eq!(held(4.0), [">", ">=", "!="]);
        assert_eq!(held(3.0), [">=", "<=", "==", "="]);
        assert_eq!(held(2.0), ["<", "<=", "!="]);
        assert_eq!(held(f64::NAN), ["!="]);
    }
}

//! Signals in a rule: `set = { EngineSpeed = 900 }`, and names of messages as filters, by DBC databases. Reading a file
//! compiles them into filters, bytes and masks, which the engine and can-gw's jobs have anyway.

use super::{Change, Kinds};
use canter_cli::{
    document::{Table, whole_number},
    failure::Result,
};
use canter_io::{Filter, filter::INVERSE, netlink::can_gw::Modification};
use canter_signals::{Codebook, Database, Message, Signal, Value, signal::Kind};
use std::ops::Range;
use toml::de::DeValue;

/// Bytes of the longest payload.
const PAYLOAD_BYTES: usize = 64;
/// Bytes of the longest payload of a classic frame.
const CLASSIC_BYTES: usize = 8;
/// The part of a step that a value may be beside a value of its signal.
const BESIDE_STEP: f64 = 1e-6;

/// Opens a database by its name in a rule file.
pub type Load<'l> = &'l dyn Fn(&str) -> std::result::Result<Database, String>;

/// The databases of a file or a route.
#[derive(Debug, Default)]
pub struct Databases(Vec<Database>);

impl Databases {
    /// The databases that the key `dbc` lists; `None`: the table has no such key.
    pub fn read(table: &Table<'_, '_>, load: Load<'_>) -> Result<Option<Self>> {
        if table.get("dbc").is_none() {
            return Ok(None);
        }
        let mut databases = Vec::new();
        for (name, span) in table.texts("dbc")? {
            match load(name) {
                Ok(database) => databases.push(database),
                Err(error) => return table.fault(&span, format!("dbc: {error}")),
            }
        }
        Ok(Some(Self(databases)))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn messages(&self) -> Vec<&Message> {
        Codebook::new(&self.0.iter().collect::<Vec<_>>()).meant().collect()
    }

    /// The filter for the frames of a message.
    ///
    /// # Errors
    /// When several frames carry the message.
    pub fn filter(&self, name: &str) -> Option<std::result::Result<Filter, String>> {
        let messages = self.messages();
        let message = messages.iter().find(|message| message.name == name)?;
        Some(match message.is_transported() {
            true => {
                Err(format!("{name}: several frames carry this message, which rules do not put together"))
            }
            false => Ok(message.filter()),
        })
    }

    /// The nearest name of a message, for an error.
    pub fn nearest_message(&self, word: &str) -> String {
        nearest(word, self.0.iter().flat_map(|database| &database.messages).map(|one| one.name.as_str()))
    }
}

/// A value that a rule gives a signal, as written.
pub struct Assignment<'t, 'a> {
    message: Option<&'t str>,
    signal: &'t str,
    value: &'t DeValue<'a>,
    /// The position of the signal's name.
    pub span: Range<usize>,
}

impl<'t> Assignment<'t, '_> {
    /// The key of the operation.
    pub fn word(&self) -> &'t str {
        self.message.unwrap_or(self.signal)
    }
}

/// The signals of the operation `set`: every key but those of an operand. `Engine.Speed = 900` is a table of TOML.
pub fn assignments<'t, 'a>(table: &Table<'t, 'a>, operand: &[&str]) -> Result<Vec<Assignment<'t, 'a>>> {
    let mut assignments = Vec::new();
    for (key, span, value) in table.entries().filter(|(key, ..)| !operand.contains(key)) {
        let Some(inner) = table.open_inner(key).ok().flatten() else {
            assignments.push(Assignment { message: None, signal: key, value: value.get_ref(), span });
            continue;
        };
        let one = |(signal, span, value): (&'t str, _, &'t toml::Spanned<DeValue<'a>>)| Assignment {
            message: Some(key),
            signal,
            value: value.get_ref(),
            span,
        };
        assignments.extend(inner.entries().map(one));
    }
    Ok(assignments)
}

/// Bits of the payload, and their values.
struct Bits {
    mask: [u8; PAYLOAD_BYTES],
    values: [u8; PAYLOAD_BYTES],
}

/// Compiles assignments into the change of a rule; a rule without a filter gets that of the message.
pub fn assign(
    table: &Table<'_, '_>,
    assignments: &[Assignment<'_, '_>],
    databases: &Databases,
    kinds: Kinds,
    filters: &mut Vec<Filter>,
    change: &mut Change,
) -> Result<()> {
    let messages = databases.messages();
    let message = match meant_message(assignments, &messages, filters) {
        Ok(message) => message,
        Err((span, reason)) => return table.fault(&span, format!("set: {reason}")),
    };
    let bits = match compiled(assignments, message, kinds) {
        Ok(bits) => bits,
        Err((span, reason)) => return table.fault(&span, format!("set: {reason}")),
    };
    if filters.is_empty() {
        filters.push(message.filter());
    }
    bits.change(change);
    Ok(())
}

type Refused = (Range<usize>, String);

/// The message whose frames the rule changes: it has all signals, and the rule's filters pass no other frame.
fn meant_message<'m>(
    assignments: &[Assignment<'_, '_>],
    messages: &[&'m Message],
    filters: &[Filter],
) -> std::result::Result<&'m Message, Refused> {
    let has = |message: &Message, one: &Assignment<'_, '_>| {
        one.message.is_none_or(|name| name == message.name) && message.signal(one.signal).is_some()
    };
    for one in assignments {
        if !messages.iter().any(|message| has(message, one)) {
            return Err((one.span.clone(), unknown(one, messages)));
        }
    }
    let span = assignments.first().map_or(0..0, |one| one.span.clone());
    let mut found: Vec<&Message> =
        messages.iter().filter(|message| assignments.iter().all(|one| has(message, one))).copied().collect();
    let names =
        |found: &[&Message]| found.iter().map(|message| message.name.as_str()).collect::<Vec<_>>().join(", ");
    if found.is_empty() {
        return Err((span, "no message has all of these signals (use a rule for each message)".to_owned()));
    }
    if !filters.is_empty() {
        let all = names(&found);
        found.retain(|message| filters.iter().all(|filter| passes_only(*filter, message.filter())));
        if found.is_empty() {
            return Err((span, format!("the rule's filters pass other frames than those of {all}")));
        }
    }
    match found[..] {
        [message] if message.is_transported() => {
            Err((span, format!("several frames carry {}, which rules do not put together", message.name)))
        }
        [message] => Ok(message),
        _ => {
            let signal = assignments.first().map_or("", |one| one.signal);
            let reason =
                format!("{signal} is in several messages: {} (name one: Message.{signal})", names(&found));
            Err((span, reason))
        }
    }
}

fn unknown(one: &Assignment<'_, '_>, messages: &[&Message]) -> String {
    if let Some(name) = one.message {
        let Some(message) = messages.iter().find(|message| message.name == name) else {
            let near = nearest(name, messages.iter().map(|message| message.name.as_str()));
            return format!("no message is named {name}{near}");
        };
        let near = nearest(one.signal, message.signals.iter().map(|signal| signal.name.as_str()));
        return format!("{name} has no signal {}{near}", one.signal);
    }
    let signals = messages.iter().flat_map(|message| &message.signals);
    let near = nearest(one.signal, signals.map(|signal| signal.name.as_str()));
    format!("no message has the signal {}{near}", one.signal)
}

/// Whether a filter passes no frame that `wide` does not pass.
fn passes_only(filter: Filter, wide: Filter) -> bool {
    filter.id & INVERSE == 0 && filter.mask & wide.mask == wide.mask && (filter.id ^ wide.id) & wide.mask == 0
}

fn compiled(
    assignments: &[Assignment<'_, '_>],
    message: &Message,
    kinds: Kinds,
) -> std::result::Result<Bits, Refused> {
    let mut raw = Vec::new();
    for one in assignments {
        let refused = |reason: String| (one.span.clone(), format!("{}: {reason}", one.signal));
        let Some((at, signal)) = message.signal(one.signal) else { continue };
        raw.push((at, pattern(signal, one.value).map_err(refused)?));
    }
    let mut bits = Bits { mask: [0; PAYLOAD_BYTES], values: [0; PAYLOAD_BYTES] };
    for (one, &(at, value)) in assignments.iter().zip(&raw) {
        let refused = |reason: String| (one.span.clone(), format!("{}: {reason}", one.signal));
        multiplexed(message, at, &raw).map_err(refused)?;
        let mut mask = [0; PAYLOAD_BYTES];
        message.store(at, u64::MAX, &mut mask);
        if mask == [0; PAYLOAD_BYTES] || !kinds.fd && mask[CLASSIC_BYTES..].iter().any(|&byte| byte != 0) {
            return Err(refused("lies behind the end of the rule's frames".to_owned()));
        }
        if bits.mask.iter().zip(&mask).any(|(one, other)| one & other != 0) {
            return Err(refused("overlaps another signal that the rule sets".to_owned()));
        }
        message.store(at, value, &mut bits.values);
        bits.mask.iter_mut().zip(&mask).for_each(|(all, one)| *all |= one);
    }
    Ok(bits)
}

/// Refuses a signal that the frame does not have, or may not have: its selector must be set, too, to a value that selects it.
fn multiplexed(message: &Message, at: usize, raw: &[(usize, u64)]) -> std::result::Result<(), String> {
    let Some(condition) = &message.signals[at].condition else { return Ok(()) };
    let Some(selector) = message.signals.get(condition.selector) else { return Ok(()) };
    let first = condition.values.first().map_or(0, |range| *range.start());
    let wanted =
        selector.choice(first).map_or_else(|| selector.value(first).to_string(), |text| format!("{text:?}"));
    match raw.iter().find(|(place, _)| *place == condition.selector) {
        Some((_, value)) if condition.values.iter().any(|range| range.contains(value)) => Ok(()),
        Some(_) => Err(format!("is multiplexed out: frames have it where {} is {wanted}", selector.name)),
        None => Err(format!(
            "is multiplexed: frames have it only where {0} is {wanted} (set {0} = {wanted}, too)",
            selector.name
        )),
    }
}

/// The bits of a number, or of a text of the value table.
fn pattern(signal: &Signal, value: &DeValue<'_>) -> std::result::Result<u64, String> {
    let number = match value {
        DeValue::Integer(_) => whole_number(value).map(Value::Integer),
        DeValue::Float(number) => number.as_str().parse().ok().map(Value::Float),
        DeValue::String(text) => {
            return signal.pattern_of_choice(text).ok_or_else(|| {
                format!(
                    "{text:?} is no text of its value table{}",
                    nearest(text, signal.choices.iter().map(|(_, text)| text.as_str()))
                )
            });
        }
        _ => return Err("must be a number, or a text of its value table".to_owned()),
    };
    let number = number.ok_or("is no number of 64 bits")?;
    let unit = if signal.unit.is_empty() { String::new() } else { format!(" {}", signal.unit) };
    let (low, high) = signal.range;
    if (low, high) != (0.0, 0.0) && !(low..=high).contains(&number.as_f64()) {
        return Err(format!("{number} is out of range: the database allows {low} to {high}{unit}"));
    }
    let Some(bits) = signal.pattern(number) else {
        return Err(format!("{number} does not fit into its {} bits", signal.bits));
    };
    let nearest = signal.value(bits);
    let is_float = matches!(signal.kind, Kind::Single | Kind::Double);
    if !is_float && (nearest.as_f64() - number.as_f64()).abs() > signal.factor.abs() * BESIDE_STEP {
        return Err(format!(
            "{number} is none of its values: the nearest is {nearest}{unit} (steps of {})",
            signal.factor
        ));
    }
    Ok(bits)
}

impl Bits {
    /// Adds the bits to a change: `set` is its last operation, so nothing before it changes these bits.
    fn change(&self, change: &mut Change) {
        let combined = |operand: &mut Modification, fill: u8, value: fn(u8, u8) -> u8| {
            let data = operand.data.get_or_insert([fill; PAYLOAD_BYTES]);
            for ((byte, mask), value_byte) in data.iter_mut().zip(&self.mask).zip(&self.values) {
                *byte = *byte & !mask | value(*mask, *value_byte);
            }
        };
        if change.set.data.is_some() {
            return combined(&mut change.set, 0, |_, value| value);
        }
        combined(&mut change.and, 0xff, |_, _| 0);
        combined(&mut change.or, 0, |_, value| value);
        if change.xor.data.is_some() {
            combined(&mut change.xor, 0, |_, _| 0);
        }
    }
}

/// The question whether the nearest of these names was meant; empty when none is near.
fn nearest<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> String {
    let near = canter_cli::document::closest(word, names);
    near.map_or_else(String::new, |name| format!(" (did you mean {name}?)"))
}

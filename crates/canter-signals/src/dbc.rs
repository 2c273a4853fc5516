//! From a DBC file to compiled messages. The grammar is that of the crate can-dbc; here stands what the numbers mean, and
//! what in a file contradicts itself.

use crate::{
    database::Database,
    field::{BITS_MAX, Field},
    message::Message,
    signal::{ByteOrder, Condition, Kind, Signal},
    value::Conversion,
};
use can_dbc::{
    AttributeDefinition, AttributeValue, AttributeValueType, Dbc, MessageId, MultiplexIndicator,
    NumericValue, SignalExtendedValueType, ValueDescription,
};
use canter_frame::{
    Identifier,
    frame::{EFF_FLAG, EFF_MASK, SFF_MASK},
};
use std::{
    collections::{HashMap, HashSet},
    ops::RangeInclusive,
};

/// The longest message: J1939's, in 255 packets of 7 bytes.
const MESSAGE_BYTES_MAX: u64 = 1785;
/// Remarks on messages with signals that share bits; one more has the number of the others.
const SHARING_REMARKS_MAX: usize = 3;
/// Vector's tools keep signals without a message in a message of this name.
const NO_MESSAGE: &str = "VECTOR__INDEPENDENT_SIG_MSG";

/// Reads the text of a file; an error is the place and the reason.
pub(crate) fn parse(original: &str) -> Result<Database, String> {
    if original.trim().is_empty() {
        return Err("is empty: not a DBC".to_owned());
    }
    let text = marked(original);
    let file = Dbc::try_from(text.as_str()).map_err(|error| reason(&text, &error.to_string()))?;
    let headings = headings(original);
    Ok(Compiler::new(&file, headings).database())
}

/// The place and the line of a parser's error. Its own text lists all of the grammar's words.
fn reason(text: &str, error: &str) -> String {
    let place = error.split_once("--> ").map_or("", |(_, rest)| rest.lines().next().unwrap_or_default());
    let mut numbers = place.split(':').map(|number| number.trim().parse::<usize>().ok());
    let (Some(Some(line)), Some(Some(column))) = (numbers.next(), numbers.next()) else {
        return format!("not a DBC: {}", error.lines().next().unwrap_or_default());
    };
    let found: String = text.lines().nth(line - 1).unwrap_or_default().trim().chars().take(60).collect();
    format!("line {line}, column {column}: not DBC: {found}")
}

/// The words before the identifier of a message.
const BEFORE_IDENTIFIER: [&str; 8] =
    ["BO_", "SG_", "VAL_", "CM_", "SG_MUL_VAL_", "SIG_VALTYPE_", "SIG_GROUP_", "BO_TX_BU_"];

/// The text with the mark of an extended identifier at each number that can be nothing else: opendbc leaves the mark out, and
/// the grammar would keep the lower 16 bits. A line end follows the last line too, as the grammar wants.
fn marked(text: &str) -> String {
    let mut marked = String::with_capacity(text.len() + 1);
    let (mut is_quoted, mut before) = (false, "");
    for line in text.split_inclusive('\n') {
        for word in line.split_inclusive([' ', '\t', ':', ',', ';', '\n']) {
            let bare = word.trim_end_matches([' ', '\t', ':', ',', ';', '\n', '\r']);
            let number = bare.parse::<u32>().ok().filter(|number| (SFF_MASK + 1..=EFF_MASK).contains(number));
            match number {
                Some(number) if !is_quoted && BEFORE_IDENTIFIER.contains(&before) => {
                    marked.push_str(&(number | EFF_FLAG).to_string());
                    marked.push_str(&word[bare.len()..]);
                }
                _ => marked.push_str(word),
            }
            is_quoted ^= quotes(word) % 2 == 1;
            if !bare.is_empty() {
                before = bare;
            }
        }
    }
    marked.push('\n');
    marked
}

/// Quotes that begin or end a text.
fn quotes(line: &str) -> usize {
    line.replace("\\\"", "").matches('"').count()
}

/// A message's heading in the text: its line, and its number as the text has it.
struct Heading {
    line: usize,
    number: u64,
}

/// The headings of all messages, in the order of the text; texts in quotes may have lines that look like them.
fn headings(text: &str) -> Vec<Heading> {
    let (mut headings, mut is_quoted) = (Vec::new(), false);
    for (at, line) in text.lines().enumerate() {
        let words =
            line.trim_start().strip_prefix("BO_").filter(|rest| !is_quoted && rest.starts_with([' ', '\t']));
        let digits = words
            .map(|rest| rest.trim_start().split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default());
        if let Some(number) = digits.and_then(|digits| digits.parse().ok()) {
            headings.push(Heading { line: at + 1, number });
        }
        is_quoted ^= quotes(line) % 2 == 1;
    }
    headings
}

/// What a signal is called in the rest of the file.
type SignalKey<'a> = (MessageId, &'a str);

struct Compiler<'a> {
    file: &'a Dbc,
    headings: Vec<Heading>,
    choices: HashMap<SignalKey<'a>, Vec<(i64, String)>>,
    floats: HashMap<SignalKey<'a>, Kind>,
    /// Selector and ranges of signals with extended multiplexing.
    selections: HashMap<SignalKey<'a>, (&'a str, Vec<RangeInclusive<u64>>)>,
    attributes: Attributes<'a>,
    remarks: Vec<String>,
    /// Messages with signals that share bits.
    sharing: usize,
}

/// Attributes of messages and signals that have a meaning here.
struct Attributes<'a> {
    messages: HashMap<(MessageId, &'a str), &'a AttributeValue>,
    signals: HashMap<(MessageId, &'a str, &'a str), &'a AttributeValue>,
    defaults: HashMap<&'a str, &'a AttributeValue>,
    /// The words of enumerations.
    words: HashMap<&'a str, &'a [String]>,
    /// The whole file is about J1939 (`ProtocolType`).
    is_j1939: bool,
}

impl<'a> Attributes<'a> {
    fn new(file: &'a Dbc) -> Self {
        let mut words = HashMap::new();
        for definition in &file.attribute_definitions {
            if let AttributeDefinition::Message(name, AttributeValueType::Enum(values)) = definition {
                words.insert(name.as_str(), values.as_slice());
            }
        }
        let is_j1939 = file.attribute_values_database.iter().any(|attribute| {
            attribute.name == "ProtocolType" && matches!(&attribute.value, AttributeValue::String(text) if text.eq_ignore_ascii_case("J1939"))
        });
        Self {
            messages: file
                .attribute_values_message
                .iter()
                .map(|attribute| ((attribute.message_id, attribute.name.as_str()), &attribute.value))
                .collect(),
            signals: file
                .attribute_values_signal
                .iter()
                .map(|attribute| {
                    (
                        (attribute.message_id, attribute.signal_name.as_str(), attribute.name.as_str()),
                        &attribute.value,
                    )
                })
                .collect(),
            defaults: file
                .attribute_defaults
                .iter()
                .map(|default| (default.name.as_str(), &default.value))
                .collect(),
            words,
            is_j1939,
        }
    }

    /// The text of a message's attribute; a number is the place of a word.
    fn word(&self, id: MessageId, name: &'a str) -> Option<&str> {
        let value = self.messages.get(&(id, name)).or_else(|| self.defaults.get(name))?;
        let at = match value {
            AttributeValue::String(text) => return Some(text),
            AttributeValue::Uint(at) => usize::try_from(*at).ok()?,
            AttributeValue::Int(at) => usize::try_from(*at).ok()?,
            AttributeValue::Double(_) => return None,
        };
        // VFrameFormat may be an integer without words; its values are the same everywhere.
        match self.words.get(name) {
            Some(words) => words.get(at).map(String::as_str),
            None => Some(match at {
                3 => "J1939PG",
                14 => "StandardCAN_FD",
                15 => "ExtendedCAN_FD",
                _ => "",
            }),
        }
    }

    fn text(value: Option<&&'a AttributeValue>) -> Option<&'a str> {
        match value {
            Some(AttributeValue::String(text)) if !text.is_empty() => Some(text),
            _ => None,
        }
    }

    fn number(&self, id: MessageId, name: &'a str) -> Option<f64> {
        let value = self.messages.get(&(id, name)).or_else(|| self.defaults.get(name))?;
        match value {
            AttributeValue::Uint(number) => Some(*number as f64),
            AttributeValue::Int(number) => Some(*number as f64),
            AttributeValue::Double(number) => Some(*number),
            AttributeValue::String(_) => None,
        }
    }
}

fn number(value: NumericValue) -> f64 {
    match value {
        NumericValue::Uint(number) => number as f64,
        NumericValue::Int(number) => number as f64,
        NumericValue::Double(number) => number,
    }
}

impl<'a> Compiler<'a> {
    fn new(file: &'a Dbc, headings: Vec<Heading>) -> Self {
        let mut compiler = Self {
            file,
            headings,
            choices: HashMap::new(),
            floats: HashMap::new(),
            selections: HashMap::new(),
            attributes: Attributes::new(file),
            remarks: Vec::new(),
            sharing: 0,
        };
        for table in &file.value_descriptions {
            if let ValueDescription::Signal { message_id, name, value_descriptions } = table {
                let mut choices: Vec<_> =
                    value_descriptions.iter().map(|choice| (choice.id, choice.description.clone())).collect();
                choices.sort_by_key(|&(value, _)| value);
                choices.dedup_by_key(|&mut (value, _)| value);
                compiler.choices.insert((*message_id, name), choices);
            }
        }
        for list in &file.signal_extended_value_type_list {
            let kind = match list.signal_extended_value_type {
                SignalExtendedValueType::IEEEfloat32Bit => Kind::Single,
                SignalExtendedValueType::IEEEdouble64bit => Kind::Double,
                SignalExtendedValueType::SignedOrUnsignedInteger => continue,
            };
            compiler.floats.insert((list.message_id, &list.signal_name), kind);
        }
        for entry in &file.extended_multiplex {
            let key = (entry.message_id, entry.signal_name.as_str());
            let ranges = entry.mappings.iter().map(|range| range.min_value..=range.max_value);
            let selection = compiler
                .selections
                .entry(key)
                .or_insert((entry.multiplexor_signal_name.as_str(), Vec::new()));
            selection.1.extend(ranges);
        }
        compiler
    }

    fn database(mut self) -> Database {
        let mut messages: Vec<Message> = Vec::new();
        let mut known: HashMap<Identifier, usize> = HashMap::new();
        let mut named: HashMap<String, Identifier> = HashMap::new();
        // A heading inside of a comment that the count of quotes took for one: then no line is known.
        let known_lines = self.headings.len() == self.file.messages.len();
        let file = self.file;
        for (at, message) in file.messages.iter().enumerate() {
            let (line, stated) = match self.headings.get(at).filter(|_| known_lines) {
                Some(heading) => (format!("line {}: ", heading.line), heading.number),
                None => (String::new(), u64::from(message.id.raw())),
            };
            let place = format!("{line}message {}", message.name);
            if message.name == NO_MESSAGE {
                continue;
            }
            let Some(id) = identifier(stated) else {
                self.remarks.push(format!("{place}: {stated} is no identifier of 11 or 29 bits: left out"));
                continue;
            };
            if stated <= u64::from(EFF_MASK) && matches!(id, Identifier::Eff(_)) {
                self.remarks
                    .push(format!("{place}: {stated} has more than 11 bits and no mark: read as extended"));
            }
            if message.size > MESSAGE_BYTES_MAX {
                self.remarks
                    .push(format!("{place}: {} bytes are more than any message has: left out", message.size));
                continue;
            }
            let mut compiled = self.message(message, id, &place);
            if *named.entry(compiled.name.clone()).or_insert(id) != id {
                compiled.name = unique_name(&compiled.name, id);
                self.remarks.push(format!(
                    "{place}: another message has this name: this one is called {}",
                    compiled.name
                ));
            }
            match known.insert(id, messages.len()) {
                None => messages.push(compiled),
                Some(earlier) => {
                    let name = &messages[earlier].name;
                    self.remarks.push(format!("{place}: has the identifier of {name}, which is left out"));
                    known.insert(id, earlier);
                    messages[earlier] = compiled;
                }
            }
        }
        self.remark_on_unknown_signals();
        if let Some(more @ 1..) = self.sharing.checked_sub(SHARING_REMARKS_MAX) {
            let messages = if more == 1 { "message has" } else { "messages have" };
            self.remarks.push(format!(
                "{more} more {messages} signals that share bits: each is decoded from its own bits"
            ));
        }
        Database { messages, remarks: self.remarks }
    }

    /// Remarks on entries for signals that no message has, once for each kind of entry.
    fn remark_on_unknown_signals(&mut self) {
        let signals = |message: &'a can_dbc::Message| {
            message.signals.iter().map(|signal| (message.id, signal.name.as_str()))
        };
        let known: HashSet<SignalKey<'_>> = self.file.messages.iter().flat_map(signals).collect();
        let tables = self.file.value_descriptions.iter().filter_map(|table| match table {
            ValueDescription::Signal { message_id, name, .. } => Some((*message_id, name.as_str())),
            _ => None,
        });
        let floats = self.file.signal_extended_value_type_list.iter();
        let floats = floats.map(|entry| (entry.message_id, entry.signal_name.as_str()));
        let selections = self.file.extended_multiplex.iter();
        let selections = selections.map(|entry| (entry.message_id, entry.signal_name.as_str()));
        let remarks = [
            unknown_signals("VAL_", tables, &known),
            unknown_signals("SIG_VALTYPE_", floats, &known),
            unknown_signals("SG_MUL_VAL_", selections, &known),
        ];
        self.remarks.extend(remarks.into_iter().flatten());
    }

    fn message(&mut self, message: &'a can_dbc::Message, id: Identifier, place: &str) -> Message {
        let format = self.attributes.word(message.id, "VFrameFormat").unwrap_or_default();
        let is_extended = matches!(id, Identifier::Eff(_));
        let is_j1939 = is_extended && (format == "J1939PG" || self.attributes.is_j1939 && format.is_empty());
        let bytes = message.size as usize;
        let is_fd = format.ends_with("CAN_FD") || !is_j1939 && bytes > 8;
        let long_name =
            Attributes::text(self.attributes.messages.get(&(message.id, "SystemMessageLongSymbol")));
        let mut compiled = Message {
            name: long_name.unwrap_or(&message.name).to_owned(),
            id,
            is_j1939,
            bytes,
            sender: message.transmitter.clone().unwrap_or_default(),
            cycle_ms: self.attributes.number(message.id, "GenMsgCycleTime").filter(|&ms| ms > 0.0),
            is_fd,
            signals: Vec::new(),
            buffer_bytes: bytes,
            row_bytes: 0,
            needs_bytes: 0,
            is_multiplexed: false,
        };
        let sources: Vec<&can_dbc::Signal> = message
            .signals
            .iter()
            .filter(|signal| match self.signal(message, signal) {
                Ok(signal) if compiled.signal(&signal.name).is_some() => {
                    let why = "has the name of another signal: left out";
                    self.remarks.push(format!("{place}: signal {}: {why}", signal.name));
                    false
                }
                Ok(signal) => {
                    compiled.signals.push(signal);
                    true
                }
                Err(why) => {
                    self.remarks.push(format!("{place}: signal {}: {why}: left out", signal.name));
                    false
                }
            })
            .collect();
        self.select(message, &sources, &mut compiled, place);
        compiled.needs_bytes = compiled.signals.iter().map(|signal| signal.field.end).max().unwrap_or(0);
        compiled.row_bytes =
            compiled.signals.iter().map(|signal| signal.field.window_end()).max().unwrap_or(0);
        compiled.is_multiplexed = compiled.signals.iter().any(|signal| signal.condition.is_some());
        if let Some(remark) = shared_bits(&compiled) {
            self.sharing += 1;
            if self.sharing <= SHARING_REMARKS_MAX {
                self.remarks.push(format!("{place}: {remark}"));
            }
        }
        compiled
    }

    fn signal(&self, message: &can_dbc::Message, signal: &'a can_dbc::Signal) -> Result<Signal, String> {
        let key = (message.id, signal.name.as_str());
        let bits = signal.size as usize;
        let kind = match (self.floats.get(&key), signal.value_type) {
            (Some(kind), _) => *kind,
            (None, can_dbc::ValueType::Signed) => Kind::Signed,
            (None, can_dbc::ValueType::Unsigned) => Kind::Unsigned,
        };
        match kind {
            Kind::Single if bits != 32 => return Err(format!("a float of {bits} bits instead of 32")),
            Kind::Double if bits != 64 => return Err(format!("a double of {bits} bits instead of 64")),
            _ => {}
        }
        let order = match signal.byte_order {
            can_dbc::ByteOrder::LittleEndian => ByteOrder::Little,
            can_dbc::ByteOrder::BigEndian => ByteOrder::Big,
        };
        let start = usize::try_from(signal.start_bit).unwrap_or(usize::MAX);
        if start >= 8 * message.size as usize {
            return Err(format!("begins behind the {} bytes of the message", message.size));
        }
        let field = Field::new(start, bits, order, message.size as usize)
            .ok_or_else(|| format!("has {} bits, not 1…{BITS_MAX}", signal.size))?;
        if field.end > message.size as usize {
            return Err(format!("ends behind the {} bytes of the message", message.size));
        }
        let (conversion, column) = Conversion::new(kind, bits, signal.factor, signal.offset);
        let long_name = Attributes::text(self.attributes.signals.get(&(
            message.id,
            &signal.name,
            "SystemSignalLongSymbol",
        )));
        Ok(Signal {
            name: long_name.unwrap_or(&signal.name).to_owned(),
            unit: signal.unit.clone(),
            start,
            bits,
            order,
            kind,
            factor: signal.factor,
            offset: signal.offset,
            range: (number(signal.min), number(signal.max)),
            choices: self.choices.get(&key).cloned().unwrap_or_default(),
            is_selector: false,
            condition: None,
            field,
            conversion,
            column,
        })
    }

    /// Sets the conditions of multiplexed signals.
    fn select(
        &mut self,
        message: &can_dbc::Message,
        sources: &[&'a can_dbc::Signal],
        compiled: &mut Message,
        place: &str,
    ) {
        let switch =
            sources.iter().position(|signal| signal.multiplexer_indicator == MultiplexIndicator::Multiplexor);
        let mut unselectable = Vec::new();
        for (at, signal) in sources.iter().enumerate() {
            let marked = match signal.multiplexer_indicator {
                MultiplexIndicator::MultiplexedSignal(value) => Some(value),
                MultiplexIndicator::MultiplexorAndMultiplexedSignal(value) => Some(value),
                MultiplexIndicator::Multiplexor | MultiplexIndicator::Plain => None,
            };
            let (selector, mut values) = match self.selections.get(&(message.id, signal.name.as_str())) {
                Some((name, ranges)) => {
                    (sources.iter().position(|signal| signal.name == *name), ranges.clone())
                }
                None if marked.is_none() => continue,
                None => (switch, Vec::new()),
            };
            // The mark of an extended selection repeats one of its values; that of a selector in the middle may not.
            if let Some(value) = marked
                && (values.is_empty()
                    || matches!(signal.multiplexer_indicator, MultiplexIndicator::MultiplexedSignal(_)))
                && !values.iter().any(|range| range.contains(&value))
            {
                values.push(value..=value);
            }
            match selector.filter(|&selector| selector != at) {
                Some(selector) => compiled.signals[at].condition = Some(Condition { selector, values }),
                None => unselectable.push(at),
            }
        }
        unselectable.extend((0..sources.len()).filter(|&at| is_cyclic(&compiled.signals, at)));
        // A signal without its selector, and every signal that depends on such a one, has no meaning.
        let mut grown = true;
        while grown {
            let depends = |at: &usize| {
                compiled.signals[*at]
                    .condition
                    .as_ref()
                    .is_some_and(|when| unselectable.contains(&when.selector))
            };
            let more: Vec<usize> =
                (0..sources.len()).filter(|at| !unselectable.contains(at)).filter(depends).collect();
            grown = !more.is_empty();
            unselectable.extend(more);
        }
        for &at in &unselectable {
            let name = &compiled.signals[at].name;
            self.remarks.push(format!(
                "{place}: signal {name}: is multiplexed, but its selector is not in the message: left out"
            ));
        }
        remove(&mut compiled.signals, &unselectable);
        let selectors: Vec<usize> =
            compiled.signals.iter().filter_map(|signal| Some(signal.condition.as_ref()?.selector)).collect();
        selectors.into_iter().for_each(|at| compiled.signals[at].is_selector = true);
    }
}

/// A remark on the entries of a kind whose signal no message has.
fn unknown_signals<'a>(
    kind: &str,
    entries: impl Iterator<Item = SignalKey<'a>>,
    known: &HashSet<SignalKey<'a>>,
) -> Option<String> {
    let unknown: Vec<SignalKey<'a>> = entries.filter(|entry| !known.contains(entry)).collect();
    let (id, name) = unknown.first()?;
    let entry = format!("{kind} {} {name}", id.raw());
    Some(match unknown.len() {
        1 => format!("{entry}: no message has this signal: left out"),
        count => format!("{entry} and {} more: no message has these signals: left out", count - 1),
    })
}

/// A remark when signals that one frame may have together share bits.
fn shared_bits(message: &Message) -> Option<String> {
    let occupied: Vec<(usize, Vec<u8>)> = (0..message.signals.len())
        .map(|at| {
            let mut bits = vec![0; message.bytes];
            message.store(at, u64::MAX, &mut bits);
            let first = bits.iter().position(|&byte| byte != 0).unwrap_or(message.bytes);
            (first, bits.get(first..message.signals[at].field.end).unwrap_or_default().to_vec())
        })
        .collect();
    let share = |one: &(usize, Vec<u8>), other: &(usize, Vec<u8>)| {
        let (low, high) = if one.0 <= other.0 { (one, other) } else { (other, one) };
        low.1.iter().skip(high.0 - low.0).zip(&high.1).any(|(one, other)| one & other != 0)
    };
    let (mut first, mut pairs) = (None, 0u32);
    for (at, one) in occupied.iter().enumerate() {
        for (other, bits) in occupied.iter().enumerate().skip(at + 1) {
            if share(one, bits) && may_meet(&message.signals, at, other) {
                first = first.or(Some((at, other)));
                pairs += 1;
            }
        }
    }
    let (one, other) = first?;
    let names = format!("signals {} and {}", message.signals[one].name, message.signals[other].name);
    let more = match pairs {
        1 => String::new(),
        2 => " (and another pair)".to_owned(),
        _ => format!(" (and {} more pairs)", pairs - 1),
    };
    Some(format!("{names} share bits{more}: each is decoded from its own bits"))
}

/// Whether a frame may have both signals: no selector of both must have different values.
fn may_meet(signals: &[Signal], one: usize, other: usize) -> bool {
    let conditions = |from: usize| {
        std::iter::successors(signals[from].condition.as_ref(), |when| {
            signals[when.selector].condition.as_ref()
        })
    };
    conditions(one).all(|one| {
        conditions(other).filter(|other| other.selector == one.selector).all(|other| {
            let meet = |range: &RangeInclusive<u64>| {
                one.values.iter().any(|mine| mine.start() <= range.end() && range.start() <= mine.end())
            };
            other.values.iter().any(meet)
        })
    })
}

/// The name of a message whose name an earlier one has.
fn unique_name(name: &str, id: Identifier) -> String {
    match id {
        Identifier::Sff(id) => format!("{name}_{id:03X}"),
        Identifier::Eff(id) => format!("{name}_{id:08X}"),
    }
}

/// Whether following the selectors from a signal comes back to a signal.
fn is_cyclic(signals: &[Signal], from: usize) -> bool {
    let mut at = from;
    for _ in 0..signals.len() {
        match &signals[at].condition {
            Some(condition) => at = condition.selector,
            None => return false,
        }
    }
    true
}

/// Removes signals, and corrects the places of selectors.
fn remove(signals: &mut Vec<Signal>, gone: &[usize]) {
    if gone.is_empty() {
        return;
    }
    let place = |at: usize| at - gone.iter().filter(|&&other| other < at).count();
    let kept: Vec<Signal> = signals
        .drain(..)
        .enumerate()
        .filter(|(at, _)| !gone.contains(at))
        .map(|(_, mut signal)| {
            if let Some(condition) = &mut signal.condition {
                condition.selector = place(condition.selector);
            }
            signal
        })
        .collect();
    *signals = kept;
}

/// The identifier of the number in a DBC: bit 31 marks an extended one, and what has more than 11 bits is one.
fn identifier(number: u64) -> Option<Identifier> {
    let number = u32::try_from(number).ok()?;
    match number & !EFF_FLAG {
        id if id > EFF_MASK => None,
        id if number & EFF_FLAG != 0 || id > SFF_MASK => Some(Identifier::Eff(id)),
        id => Some(Identifier::Sff(id as u16)),
    }
}

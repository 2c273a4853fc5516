//! A message: the signals of an identifier. Decodes payloads and encodes them.

use crate::{field::BUFFER_BYTES, signal::Signal, value::Value};
use canter_frame::{
    Filter, Frame, Identifier,
    frame::{EFF_FLAG, EFF_MASK, RTR_FLAG, SFF_MASK},
};
use std::{borrow::Cow, fmt};

/// A message of a database, compiled.
#[derive(Clone, Debug)]
pub struct Message {
    /// The name in the database; its long name, if it has one.
    pub name: String,
    /// The identifier. In a J1939 message its source address, and the destination of a group that has one, do not count.
    pub id: Identifier,
    /// Whether the message is a parameter group of J1939.
    pub is_j1939: bool,
    /// Bytes of payload.
    pub bytes: usize,
    /// The node that sends it; may be empty.
    pub sender: String,
    /// Period in ms, if the database states one (`GenMsgCycleTime`).
    pub cycle_ms: Option<f64>,
    /// Whether the database states that its frames are FD frames (`VFrameFormat`), or its length says so.
    pub is_fd: bool,
    /// Signals, in the order of the database.
    pub signals: Vec<Signal>,
    /// Bytes that a buffer must have.
    pub(crate) buffer_bytes: usize,
    /// Bytes of a row of a [`Batch`](crate::Batch): all that windows of signals reach.
    pub(crate) row_bytes: usize,
    /// Bytes that a payload must have, so that no signal is missing.
    pub(crate) needs_bytes: usize,
    /// Whether a signal depends on another one.
    pub(crate) is_multiplexed: bool,
}

/// What is known of a frame after its signals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fit {
    /// Signals that lie behind the end of the payload.
    pub missing: u32,
    /// Selectors whose value selects no signal.
    pub unselected: u32,
}

/// A payload: the bytes of a frame or of a transported message.
#[derive(Clone, Copy, Debug)]
pub struct Payload<'a> {
    buffer: &'a [u8],
    bytes: usize,
}

impl<'a> Payload<'a> {
    /// The payload of a frame; nothing is copied.
    #[inline]
    pub fn of_frame(frame: &'a Frame) -> Self {
        Self { buffer: &frame.data, bytes: frame.data().len() }
    }

    /// Bytes of any length. A buffer of fewer than 64 bytes is copied for each decoding.
    pub fn of_bytes(buffer: &'a [u8]) -> Self {
        Self { buffer, bytes: buffer.len() }
    }

    /// A buffer of at least 64 bytes, of which the first `bytes` are the payload.
    #[inline]
    pub fn of_buffer(buffer: &'a [u8], bytes: usize) -> Self {
        Self { buffer, bytes: bytes.min(buffer.len()) }
    }

    /// The bytes that hold the payload, and perhaps more.
    #[inline]
    pub(crate) fn buffer(&self) -> &'a [u8] {
        self.buffer
    }

    /// Bytes of the payload.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Whether the payload has no bytes.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// The buffer, with zeros behind it where it is too short.
    fn padded(&self, bytes: usize) -> Cow<'a, [u8]> {
        if self.buffer.len() >= bytes.max(BUFFER_BYTES) {
            return Cow::Borrowed(self.buffer);
        }
        let mut padded = self.buffer.to_vec();
        padded.resize(bytes.max(BUFFER_BYTES), 0);
        Cow::Owned(padded)
    }
}

impl Message {
    /// Calls `each` with the place and the bit pattern of every signal in this payload, in the order of the database.
    #[inline]
    pub fn visit(&self, payload: Payload<'_>, mut each: impl FnMut(usize, u64)) -> Fit {
        let buffer = payload.padded(self.buffer_bytes);
        if self.is_multiplexed || payload.bytes < self.needs_bytes {
            return self.visit_some(&buffer, payload.bytes, &mut each);
        }
        for (at, signal) in self.signals.iter().enumerate() {
            each(at, signal.field.load(&buffer));
        }
        Fit::default()
    }

    /// Visits the signals of a payload from which some may be missing.
    pub(crate) fn visit_some(&self, buffer: &[u8], bytes: usize, each: &mut dyn FnMut(usize, u64)) -> Fit {
        let mut fit = Fit::default();
        let mut selected = 0u64;
        for (at, signal) in self.signals.iter().enumerate() {
            match self.is_present(signal, buffer, bytes) {
                Presence::Absent => continue,
                Presence::BehindEnd => fit.missing += 1,
                Presence::Present if signal.field.end > bytes => fit.missing += 1,
                Presence::Present => each(at, signal.field.load(buffer)),
            }
            if let Some(condition) = &signal.condition {
                selected |= 1 << (condition.selector % 64);
            }
        }
        for (at, signal) in self.signals.iter().enumerate().filter(|(_, signal)| signal.is_selector) {
            let present = matches!(self.is_present(signal, buffer, bytes), Presence::Present);
            fit.unselected +=
                u32::from(present && signal.field.end <= bytes && selected & 1 << (at % 64) == 0);
        }
        fit
    }

    /// Whether the selectors of a signal select it. Conditions have no cycle: the database has been checked for them.
    fn is_present(&self, signal: &Signal, buffer: &[u8], bytes: usize) -> Presence {
        let Some(condition) = &signal.condition else { return Presence::Present };
        let Some(selector) = self.signals.get(condition.selector) else { return Presence::Absent };
        match self.is_present(selector, buffer, bytes) {
            Presence::Present if selector.field.end > bytes => Presence::BehindEnd,
            Presence::Present if condition.holds(selector.field.load(buffer)) => Presence::Present,
            Presence::Present => Presence::Absent,
            other => other,
        }
    }

    /// The bit pattern of the signal at a place; `None`: this payload does not have the signal.
    #[inline]
    pub fn pattern(&self, at: usize, payload: Payload<'_>) -> Option<u64> {
        let buffer = payload.padded(self.buffer_bytes);
        self.present_pattern(self.signals.get(at)?, &buffer, payload.bytes)
    }

    /// The bit pattern of a signal, if `buffer` with `bytes` of payload has the signal.
    pub(crate) fn present_pattern(&self, signal: &Signal, buffer: &[u8], bytes: usize) -> Option<u64> {
        if signal.field.end > bytes {
            return None;
        }
        match self.is_present(signal, buffer, bytes) {
            Presence::Present => Some(signal.field.load(buffer)),
            _ => None,
        }
    }

    /// The signals in this payload, each with its value.
    pub fn values(&self, data: &[u8]) -> impl Iterator<Item = (&Signal, Value)> {
        let mut values = Vec::with_capacity(self.signals.len());
        self.visit(Payload::of_bytes(data), |at, bits| values.push((at, bits)));
        values.into_iter().filter_map(|(at, bits)| {
            let signal = self.signals.get(at)?;
            Some((signal, signal.value(bits)))
        })
    }

    /// The filter for the data frames of the message; of a parameter group of J1939, those of all addresses and priorities.
    pub fn filter(&self) -> Filter {
        match self.id {
            Identifier::Sff(id) => Filter { id: id.into(), mask: SFF_MASK | EFF_FLAG | RTR_FLAG },
            Identifier::Eff(id) => {
                let group = match id >> 16 & 0xFF {
                    0..240 => 0x03FF_0000, // the byte behind the format is a destination address
                    _ => 0x03FF_FF00,
                };
                let bits = if self.is_j1939 { group } else { EFF_MASK };
                Filter { id: id & bits | EFF_FLAG, mask: bits | EFF_FLAG | RTR_FLAG }
            }
        }
    }

    /// Whether several frames carry the message: a parameter group of J1939 that is longer than a frame.
    pub fn is_transported(&self) -> bool {
        self.is_j1939 && self.bytes > 8 && !self.is_fd
    }

    /// The signal of this name.
    pub fn signal(&self, name: &str) -> Option<(usize, &Signal)> {
        self.signals.iter().enumerate().find(|(_, signal)| signal.name == name)
    }

    /// A payload with these values; all other bits are 0.
    ///
    /// # Errors
    /// When a name is unknown or a value does not fit its signal.
    pub fn encode(&self, values: &[(&str, Value)]) -> Result<Vec<u8>, EncodeError> {
        let mut data = vec![0; self.bytes];
        for &(name, value) in values {
            let (at, signal) = self.signal(name).ok_or_else(|| self.error(name, EncodeReason::Unknown))?;
            let bits = signal.pattern(value).ok_or_else(|| self.error(name, EncodeReason::Range(value)))?;
            self.store(at, bits, &mut data);
        }
        Ok(data)
    }

    /// Writes the bit pattern of the signal at a place; the other bits of `data` stay. Bits behind the end of `data` are lost.
    pub fn store(&self, at: usize, bits: u64, data: &mut [u8]) {
        let Some(signal) = self.signals.get(at) else { return };
        let padded = self.buffer_bytes.max(BUFFER_BYTES);
        if data.len() >= padded {
            return signal.field.store(data, bits);
        }
        let mut buffer = data.to_vec();
        buffer.resize(padded, 0);
        signal.field.store(&mut buffer, bits);
        data.copy_from_slice(&buffer[..data.len()]);
    }

    fn error(&self, signal: &str, reason: EncodeReason) -> EncodeError {
        EncodeError { message: self.name.clone(), signal: signal.to_owned(), reason }
    }
}

/// Whether a payload has a signal.
enum Presence {
    Present,
    /// A selector has another value.
    Absent,
    /// The payload ends before a selector.
    BehindEnd,
}

/// Why a value cannot be encoded.
#[derive(Clone, Debug, PartialEq)]
pub struct EncodeError {
    message: String,
    signal: String,
    reason: EncodeReason,
}

#[derive(Clone, Debug, PartialEq)]
enum EncodeReason {
    Unknown,
    Range(Value),
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { message, signal, reason } = self;
        match reason {
            EncodeReason::Unknown => write!(f, "{message}: {signal}: no such signal"),
            EncodeReason::Range(value) => {
                write!(f, "{message}: {signal}: {value} does not fit into the signal")
            }
        }
    }
}

impl std::error::Error for EncodeError {}

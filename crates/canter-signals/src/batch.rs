//! Many payloads of one message, decoded signal by signal: the fast way to a table.

use crate::{
    message::{Fit, Message, Payload},
    value::Column,
};

/// Payloads of one message, one behind the other.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// Bytes from one payload to the next.
    stride: usize,
    buffer: Vec<u8>,
    /// The length of each payload, in bytes.
    bytes: Vec<u16>,
}

/// The values of a signal, for the rows that have the signal.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// The values of a signal whose column is [`Column::Integer`].
    Integers(Vec<i64>),
    /// The values of a signal whose column is [`Column::Unsigned`].
    Unsigned(Vec<u64>),
    /// The values of a signal whose column is [`Column::Float`].
    Floats(Vec<f64>),
}

impl Batch {
    /// A batch for payloads of this message.
    pub fn new(message: &Message) -> Self {
        Self { stride: message.row_bytes, buffer: Vec::new(), bytes: Vec::new() }
    }

    /// Payloads in the batch.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether the batch has no payloads.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Bytes of memory of a payload.
    pub fn bytes_of_row(&self) -> usize {
        self.stride + size_of::<u16>()
    }

    /// Appends a payload.
    #[inline]
    pub fn push(&mut self, payload: Payload<'_>) {
        let buffer = payload.buffer();
        match buffer.get(..self.stride) {
            Some(row) => self.buffer.extend_from_slice(row),
            None => {
                self.buffer.extend_from_slice(buffer);
                self.buffer.resize(self.buffer.len() + self.stride - buffer.len(), 0);
            }
        }
        self.bytes.push(payload.len().min(u16::MAX.into()) as u16);
    }

    fn rows(&self) -> impl Iterator<Item = (&[u8], usize)> {
        // A message without signals has rows without bytes.
        (0..self.bytes.len()).map(|row| {
            let at = row * self.stride;
            (&self.buffer[at..at + self.stride], usize::from(self.bytes[row]))
        })
    }
}

impl Message {
    /// The values of the signal at a place, and which rows have it: `None` if all have.
    pub fn values_of(&self, at: usize, batch: &Batch) -> (Values, Option<Vec<bool>>) {
        let Some(signal) = self.signals.get(at) else { return (Values::Integers(Vec::new()), None) };
        if signal.condition.is_none()
            && batch.bytes.iter().all(|&bytes| usize::from(bytes) >= signal.field.end)
        {
            let bits = batch.buffer.chunks_exact(batch.stride.max(1)).map(|row| signal.field.load(row));
            let values = match signal.column() {
                Column::Integer => Values::Integers(bits.map(|bits| signal.whole(bits)).collect()),
                Column::Unsigned => Values::Unsigned(bits.map(|bits| signal.whole(bits) as u64).collect()),
                Column::Float => Values::Floats(bits.map(|bits| signal.float(bits)).collect()),
            };
            return (values, None);
        }
        let found: Vec<Option<u64>> =
            batch.rows().map(|(row, bytes)| self.present_pattern(signal, row, bytes)).collect();
        let present = found.iter().map(Option::is_some).collect();
        let bits = found.into_iter().flatten();
        let values = match signal.column() {
            Column::Integer => Values::Integers(bits.map(|bits| signal.whole(bits)).collect()),
            Column::Unsigned => Values::Unsigned(bits.map(|bits| signal.whole(bits) as u64).collect()),
            Column::Float => Values::Floats(bits.map(|bits| signal.float(bits)).collect()),
        };
        (values, Some(present))
    }

    /// What is missing from the payloads of a batch: those that are too short, and those with a selector that selects nothing.
    pub fn fits(&self, batch: &Batch) -> (u64, u64) {
        if !self.is_multiplexed && batch.bytes.iter().all(|&bytes| usize::from(bytes) >= self.needs_bytes) {
            return (0, 0);
        }
        let fits = batch.rows().map(|(row, bytes)| self.visit_some(row, bytes, &mut |_, _| {}));
        fits.fold((0, 0), |(short, unselected), Fit { missing, unselected: without }| {
            (short + u64::from(missing > 0), unselected + u64::from(without > 0))
        })
    }
}

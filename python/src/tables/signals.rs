//! Signals as columns: a table for each message, with its stamps, buses, and a column for each signal.

use super::columns::{dictionary, dictionary_type, stamp_type, stamps};
use arrow_array::{ArrayRef, ArrowPrimitiveType, PrimitiveArray, RecordBatch, StringArray, types};
use arrow_buffer::{NullBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use canter_formats::Record;
use canter_signals::{
    Batch, Codebook, Column, Database, Message, Payload, Transport, Values, signal::Signal,
};
use serde_json::{Map, Value as Json};
use std::{
    collections::HashMap,
    num::NonZero,
    ptr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

/// The columns beside the signals, and the partitions of a data set: a signal of such a name gets another one, as there.
const TAKEN: [&str; 5] = ["stamp", "message", "vehicle", "date", "bus"];

/// A database with its bus; `None`: all.
pub type Source = (Option<String>, Database);

/// The payloads of all messages.
pub struct Signals<'a> {
    databases: &'a [Source],
    wanted: Option<&'a [String]>,
    buses: HashMap<u32, Bus<'a>>,
    /// The collection of each message, by the address of the message.
    places: HashMap<usize, usize>,
    collections: Vec<Collection<'a>>,
    known: u64,
    frames: u64,
}

struct Bus<'a> {
    codebook: Codebook<'a>,
    transport: Transport,
}

/// The payloads of a message.
struct Collection<'a> {
    message: &'a Message,
    /// The places of the wanted signals.
    signals: Vec<usize>,
    stamps: Vec<i64>,
    buses: Vec<i32>,
    batch: Batch,
}

/// A schema with its batches.
type Content = (SchemaRef, Vec<RecordBatch>);

/// The places of the signals that are wanted of a message: `Signal`, `Message.Signal` or `Message.*`.
fn wanted_places(message: &Message, wanted: Option<&[String]>) -> Vec<usize> {
    let is_wanted = |signal: &Signal, word: &String| match word.split_once('.') {
        Some((name, part)) => name == message.name && (part == "*" || part == signal.name),
        None => *word == signal.name,
    };
    let is_chosen =
        |signal: &Signal| wanted.is_none_or(|words| words.iter().any(|word| is_wanted(signal, word)));
    message.signals.iter().enumerate().filter(|(_, signal)| is_chosen(signal)).map(|(at, _)| at).collect()
}

impl<'a> Signals<'a> {
    /// Refuses signals that no database has.
    pub fn new(databases: &'a [Source], wanted: Option<&'a [String]>) -> Result<Self, String> {
        for word in wanted.unwrap_or_default() {
            let mut messages = databases.iter().flat_map(|(_, database)| &database.messages);
            if !messages.any(|message| !wanted_places(message, Some(std::slice::from_ref(word))).is_empty()) {
                return Err(format!("signals: no message has the signal {word}"));
            }
        }
        Ok(Self {
            databases,
            wanted,
            buses: HashMap::new(),
            places: HashMap::new(),
            collections: Vec::new(),
            known: 0,
            frames: 0,
        })
    }

    /// Takes the next frame.
    pub fn push(&mut self, name: &str, record: &Record) {
        let (databases, frame) = (self.databases, &record.frame);
        if frame.is_error() || frame.is_rtr() {
            return;
        }
        self.frames += 1;
        let bus = self.buses.entry(record.bus.0).or_insert_with(|| {
            let own = databases.iter().filter(|(bus, _)| bus.as_deref() == Some(name));
            let shared = databases.iter().filter(|(bus, _)| bus.is_none());
            let all: Vec<&Database> = own.chain(shared).map(|(_, database)| database).collect();
            Bus { codebook: Codebook::new(&all), transport: Transport::default() }
        });
        let mut carried = 0;
        let found = bus.codebook.message(frame.id());
        let transported = match bus.codebook.has_groups() && Transport::carries(frame) {
            true => bus.transport.take(frame),
            false => None,
        };
        let whole = transported.as_ref().and_then(|whole| {
            carried = whole.frames;
            Some((bus.codebook.message(whole.id)?, whole))
        });
        self.known += u64::from(found.is_some());
        if let Some(message) = found {
            self.collect(message, record, Payload::of_frame(frame));
        }
        if let Some((message, whole)) = whole {
            self.known = self.frames.min(self.known + carried);
            self.collect(message, record, Payload::of_bytes(&whole.data));
        }
    }

    fn collect(&mut self, message: &'a Message, record: &Record, payload: Payload<'_>) {
        let (wanted, collections) = (self.wanted, &mut self.collections);
        let place = *self.places.entry(ptr::from_ref(message).addr()).or_insert_with(|| {
            let signals = wanted_places(message, wanted);
            let batch = Batch::new(message);
            collections.push(Collection { message, signals, stamps: Vec::new(), buses: Vec::new(), batch });
            collections.len() - 1
        });
        let Some(collection) = self.collections.get_mut(place) else { return };
        if collection.signals.is_empty() {
            return;
        }
        collection.stamps.push(record.stamp_ns.try_into().unwrap_or(i64::MAX));
        collection.buses.push(record.bus.index() as i32);
        collection.batch.push(payload);
    }

    /// The frames that a database knows, and all data frames.
    pub fn counts(&self) -> (u64, u64) {
        (self.known, self.frames)
    }

    /// What is missing from frames.
    pub fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        for one in &self.collections {
            let (short, unselected) = one.message.fits(&one.batch);
            let name = &one.message.name;
            if short > 0 {
                remarks.push(format!("{short} frames are shorter than their message: {name}"));
            }
            if unselected > 0 {
                remarks.push(format!("{unselected} frames have a multiplexer value without signals: {name}"));
            }
        }
        let broken: u64 = self.buses.values().map(|bus| bus.transport.broken).sum();
        if broken > 0 {
            remarks.push(format!("{broken} transported messages are not complete: left out"));
        }
        remarks
    }

    /// The tables of all messages, decoded by all processors; `names` are those of the buses.
    pub fn finish(self, names: &[String]) -> Result<Vec<(String, Content)>, ArrowError> {
        let buses: ArrayRef = Arc::new(StringArray::from_iter_values(names));
        let next = AtomicUsize::new(0);
        let filled: Vec<&Collection<'_>> =
            self.collections.iter().filter(|one| !one.stamps.is_empty()).collect();
        let threads = std::thread::available_parallelism().map_or(1, NonZero::get).min(filled.len().max(1));
        let work = || {
            let mut done = Vec::new();
            while let Some(collection) = filled.get(next.fetch_add(1, Ordering::Relaxed)) {
                done.push((collection.message.name.clone(), collection.content(&buses)?));
            }
            Ok(done)
        };
        let done: Result<Vec<_>, ArrowError> = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            let join = |worker: std::thread::ScopedJoinHandle<'_, _>| {
                worker
                    .join()
                    .unwrap_or_else(|_| Err(ArrowError::ComputeError("a thread panicked".to_owned())))
            };
            workers.into_iter().map(join).collect()
        });
        let mut tables: Vec<(String, Content)> = done?.into_iter().flatten().collect();
        tables.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(tables)
    }
}

impl Collection<'_> {
    fn name(signal: &Signal) -> String {
        let suffix = if TAKEN.contains(&signal.name.as_str()) { "_signal" } else { "" };
        format!("{}{suffix}", signal.name)
    }

    fn content(&self, buses: &ArrayRef) -> Result<Content, ArrowError> {
        let mut fields =
            vec![Field::new("stamp", stamp_type(), false), Field::new("bus", dictionary_type(), false)];
        let mut columns = vec![stamps(self.stamps.clone()), dictionary(self.buses.clone().into(), buses)?];
        for &at in &self.signals {
            let signal = &self.message.signals[at];
            let (values, present) = self.message.values_of(at, &self.batch);
            let column: ArrayRef = match values {
                Values::Integers(values) => column::<types::Int64Type>(values, present),
                Values::Unsigned(values) => column::<types::UInt64Type>(values, present),
                Values::Floats(values) => column::<types::Float64Type>(values, present),
            };
            fields.push(Field::new(Self::name(signal), data_type(signal), true));
            columns.push(column);
        }
        let schema = Arc::new(Schema::new(fields).with_metadata(self.notes()));
        let batch = RecordBatch::try_new(Arc::clone(&schema), columns)?;
        Ok((schema, vec![batch]))
    }

    /// Units and texts of raw values as JSON, as a data set's files have them: `canter.units`, `canter.texts`.
    fn notes(&self) -> HashMap<String, String> {
        let signals = || self.signals.iter().map(|&at| &self.message.signals[at]);
        let units = signals().filter(|signal| !signal.unit.is_empty());
        let units: Map<String, Json> = units.map(|one| (Self::name(one), one.unit.clone().into())).collect();
        let texts = |signal: &Signal| -> Json {
            signal.choices.iter().map(|(value, text)| (value.to_string(), Json::from(text.clone()))).collect()
        };
        let choices = signals().filter(|signal| !signal.choices.is_empty());
        let choices: Map<String, Json> = choices.map(|one| (Self::name(one), texts(one))).collect();
        [("canter.units", units), ("canter.texts", choices)]
            .map(|(key, notes)| (key.to_owned(), Json::Object(notes).to_string()))
            .into()
    }
}

fn data_type(signal: &Signal) -> DataType {
    match signal.column() {
        Column::Integer => DataType::Int64,
        Column::Unsigned => DataType::UInt64,
        Column::Float => DataType::Float64,
    }
}

/// A column of the values of the rows that have one; the others are null.
fn column<T: ArrowPrimitiveType>(values: Vec<T::Native>, present: Option<Vec<bool>>) -> ArrayRef {
    let Some(present) = present else {
        return Arc::new(PrimitiveArray::<T>::new(ScalarBuffer::from(values), None));
    };
    let mut values = values.into_iter();
    let all = present.iter().map(|&is_present| match is_present {
        true => values.next().unwrap_or_default(),
        false => T::Native::default(),
    });
    let all: Vec<T::Native> = all.collect();
    Arc::new(PrimitiveArray::<T>::new(ScalarBuffer::from(all), Some(NullBuffer::from(present))))
}

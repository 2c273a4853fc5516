//! Frames as columns, the same as those of a data set of canter: stamp, bus, id, flags, dlc, len, data, direction.

use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, DictionaryArray, Int32Array, RecordBatch, StringArray,
    TimestampNanosecondArray, UInt8Array, UInt32Array, types::Int32Type,
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, TimeUnit};
use canter_formats::{Direction, Record};
use canter_frame::frame::{BRS, EFF_MASK, ESI, dlc_of_len};
use std::sync::Arc;

/// Rows of a batch.
const BATCH_ROWS: usize = 1 << 20;
/// The names of the flags, in the order of their columns.
const FLAGS: [&str; 6] = ["extended", "rtr", "fd", "brs", "esi", "error"];

/// All frames, in batches.
#[derive(Default)]
pub struct Columns {
    complete: Vec<Rows>,
    rows: Rows,
}

/// The rows of a batch, by column.
#[derive(Default)]
struct Rows {
    stamps: Vec<i64>,
    buses: Vec<i32>,
    ids: Vec<u32>,
    flags: [Vec<bool>; FLAGS.len()],
    dlcs: Vec<u8>,
    lens: Vec<u8>,
    data: Vec<u8>,
    /// 0: received, 1: sent.
    directions: Vec<Option<i32>>,
}

impl Columns {
    pub fn push(&mut self, record: &Record) {
        self.rows.push(record);
        if self.rows.stamps.len() == BATCH_ROWS {
            self.complete.push(std::mem::take(&mut self.rows));
        }
    }

    /// The schema and the batches; `names` are those of the buses.
    pub fn finish(mut self, names: &[String]) -> Result<(SchemaRef, Vec<RecordBatch>), ArrowError> {
        self.complete.push(self.rows);
        let buses: ArrayRef = Arc::new(StringArray::from_iter_values(names));
        let directions: ArrayRef = Arc::new(StringArray::from_iter_values(["R", "T"]));
        let schema = schema();
        let batch = |rows: Rows| rows.batch(&schema, &buses, &directions);
        let batches: Vec<RecordBatch> = self.complete.into_iter().map(batch).collect::<Result<_, _>>()?;
        Ok((schema, batches))
    }
}

/// The type of stamps: ns since 1970, UTC.
pub fn stamp_type() -> DataType {
    DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into()))
}

/// The type of texts that are few.
pub fn dictionary_type() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
}

/// A column of texts that are few, by their numbers.
pub fn dictionary(keys: Int32Array, texts: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    Ok(Arc::new(DictionaryArray::<Int32Type>::try_new(keys, Arc::clone(texts))?))
}

/// A column of stamps.
pub fn stamps(stamps: Vec<i64>) -> ArrayRef {
    Arc::new(TimestampNanosecondArray::from(stamps).with_timezone("UTC"))
}

fn schema() -> SchemaRef {
    let mut fields = vec![
        Field::new("stamp", stamp_type(), false),
        Field::new("bus", dictionary_type(), false),
        Field::new("id", DataType::UInt32, false),
    ];
    fields.extend(FLAGS.map(|name| Field::new(name, DataType::Boolean, false)));
    fields.extend([
        Field::new("dlc", DataType::UInt8, false),
        Field::new("len", DataType::UInt8, false),
        Field::new("data", DataType::Binary, false),
        Field::new("direction", dictionary_type(), true),
    ]);
    Arc::new(Schema::new(fields))
}

impl Rows {
    fn push(&mut self, record: &Record) {
        let frame = &record.frame;
        let (fd, error) = (frame.is_fd(), frame.is_error());
        let dlc = match frame.len8_dlc {
            _ if fd => dlc_of_len(frame.len.into()).unwrap_or(15),
            dlc @ 9..=15 if frame.len == 8 => dlc,
            _ => frame.len,
        };
        let flags = [
            frame.is_eff() && !error,
            frame.is_rtr(),
            fd,
            fd && frame.flags & BRS != 0,
            fd && frame.flags & ESI != 0,
            error,
        ];
        self.stamps.push(record.stamp_ns.try_into().unwrap_or(i64::MAX));
        self.buses.push(record.bus.index() as i32);
        self.ids.push(frame.can_id & EFF_MASK);
        self.flags.iter_mut().zip(flags).for_each(|(column, flag)| column.push(flag));
        self.dlcs.push(dlc);
        self.lens.push(frame.data().len() as u8);
        self.data.extend_from_slice(frame.data());
        self.directions.push(record.direction.map(|direction| (direction == Direction::Sent).into()));
    }

    fn batch(
        self,
        schema: &SchemaRef,
        buses: &ArrayRef,
        directions: &ArrayRef,
    ) -> Result<RecordBatch, ArrowError> {
        let offsets = OffsetBuffer::from_lengths(self.lens.iter().map(|&len| usize::from(len)));
        let data = BinaryArray::try_new(offsets, Buffer::from_vec(self.data), None)?;
        let known = NullBuffer::from_iter(self.directions.iter().map(Option::is_some));
        let keys = ScalarBuffer::from_iter(self.directions.iter().map(|key| key.unwrap_or(0)));
        let mut columns: Vec<ArrayRef> = vec![
            stamps(self.stamps),
            dictionary(self.buses.into(), buses)?,
            Arc::new(UInt32Array::from(self.ids)),
        ];
        columns.extend(
            self.flags
                .map(|flags| -> ArrayRef { Arc::new(BooleanArray::new(BooleanBuffer::from(flags), None)) }),
        );
        columns.push(Arc::new(UInt8Array::from(self.dlcs)));
        columns.push(Arc::new(UInt8Array::from(self.lens)));
        columns.push(Arc::new(data));
        columns.push(dictionary(Int32Array::try_new(keys, Some(known))?, directions)?);
        RecordBatch::try_new(Arc::clone(schema), columns)
    }
}

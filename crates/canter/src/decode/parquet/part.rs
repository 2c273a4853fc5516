//! A file of the data set: the signals of a message on a bus, in one row group.

use super::parquet_failure;
use crate::decode::output::{beside, output_failure};
use canter_cli::failure;
use canter_signals::{Batch, Column, Message, Signal, Values};
use parquet::{
    basic::{Compression, Encoding, LogicalType, Repetition, TimeUnit, Type as Physical, ZstdLevel},
    data_type::{DataType, DoubleType, Int64Type},
    errors::Result,
    file::{
        metadata::{KeyValue, SortingColumn},
        properties::{EnabledStatistics, WriterProperties},
        writer::{SerializedFileWriter, SerializedRowGroupWriter},
    },
    schema::types::{ColumnPath, Type},
};
use serde_json::{Map, Value as Json};
use std::{fs::File, path::PathBuf, sync::Arc};
use tempfile::TempPath;

/// The column of stamps, and the partitions: names that a signal's column must not have.
const TAKEN: [&str; 5] = ["stamp", "message", "vehicle", "date", "bus"];

/// A file to be written.
pub struct Job {
    pub path: PathBuf,
    pub message: Arc<Message>,
    pub places: Arc<[usize]>,
    pub stamps: Vec<i64>,
    pub batch: Batch,
}

fn name(signal: &Signal) -> String {
    if TAKEN.contains(&signal.name.as_str()) {
        format!("{}_signal", signal.name)
    } else {
        signal.name.clone()
    }
}

impl Job {
    /// Decodes and writes; also how many payloads are short, and how many have a selector that selects nothing.
    pub fn write(self) -> failure::Result<((TempPath, PathBuf), (u64, u64))> {
        let (file, beside) =
            beside(&self.path).map_err(|error| output_failure(&self.path, error))?.into_parts();
        self.encode(file).map_err(|error| parquet_failure(&self.path, error))?;
        let fits = self.message.fits(&self.batch);
        Ok(((beside, self.path), fits))
    }

    fn signals(&self) -> impl Iterator<Item = &Signal> {
        self.places.iter().filter_map(|&at| self.message.signals.get(at))
    }

    fn encode(&self, file: File) -> Result<()> {
        let mut writer = SerializedFileWriter::new(file, self.schema()?, Arc::new(self.properties()?))?;
        let mut group = writer.next_row_group()?;
        column::<Int64Type>(&mut group, &self.stamps, None)?;
        for &at in self.places.iter() {
            let (values, present) = self.message.values_of(at, &self.batch);
            let levels: Vec<i16> = match present {
                Some(present) => present.into_iter().map(i16::from).collect(),
                None => vec![1; self.stamps.len()],
            };
            match values {
                Values::Integers(values) => column::<Int64Type>(&mut group, &values, Some(&levels))?,
                Values::Unsigned(values) => {
                    let values: Vec<i64> = values.into_iter().map(u64::cast_signed).collect();
                    column::<Int64Type>(&mut group, &values, Some(&levels))?;
                }
                Values::Floats(values) => column::<DoubleType>(&mut group, &values, Some(&levels))?,
            }
        }
        group.close()?;
        writer.into_inner().map(drop)
    }

    fn schema(&self) -> Result<Arc<Type>> {
        let stamp = Type::primitive_type_builder("stamp", Physical::INT64)
            .with_repetition(Repetition::REQUIRED)
            .with_logical_type(Some(LogicalType::timestamp(true, TimeUnit::NANOS)));
        let mut fields = vec![Arc::new(stamp.build()?)];
        for signal in self.signals() {
            let (physical, logical) = match signal.column() {
                Column::Integer => (Physical::INT64, None),
                Column::Unsigned => (Physical::INT64, Some(LogicalType::integer(64, false))),
                Column::Float => (Physical::DOUBLE, None),
            };
            let name = name(signal);
            let field = Type::primitive_type_builder(&name, physical)
                .with_repetition(Repetition::OPTIONAL)
                .with_logical_type(logical);
            fields.push(Arc::new(field.build()?));
        }
        Ok(Arc::new(Type::group_type_builder("signals").with_fields(fields).build()?))
    }

    fn properties(&self) -> Result<WriterProperties> {
        let stamp = ColumnPath::from("stamp");
        let sorted = SortingColumn { column_idx: 0, descending: false, nulls_first: false };
        Ok(WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
            .set_created_by(concat!("canter ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_sorting_columns(Some(vec![sorted]).filter(|_| self.stamps.is_sorted()))
            .set_column_dictionary_enabled(stamp.clone(), false)
            .set_column_encoding(stamp, Encoding::DELTA_BINARY_PACKED)
            .set_key_value_metadata(Some(self.notes()))
            .build())
    }

    /// Units and texts of values, as JSON: `canter.units`, `canter.texts`.
    fn notes(&self) -> Vec<KeyValue> {
        let units: Map<String, Json> = self
            .signals()
            .filter(|signal| !signal.unit.is_empty())
            .map(|signal| (name(signal), signal.unit.clone().into()))
            .collect();
        let texts = |signal: &Signal| -> Json {
            signal.choices.iter().map(|(value, text)| (value.to_string(), Json::from(text.clone()))).collect()
        };
        let texts: Map<String, Json> = self
            .signals()
            .filter(|signal| !signal.choices.is_empty())
            .map(|signal| (name(signal), texts(signal)))
            .collect();
        let note = |key: &str, notes: Map<String, Json>| {
            KeyValue::new(key.to_owned(), Json::Object(notes).to_string())
        };
        vec![note("canter.units", units), note("canter.texts", texts)]
    }
}

/// Writes the next column of a row group.
fn column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, File>,
    values: &[T::T],
    levels: Option<&[i16]>,
) -> Result<()> {
    let Some(mut column) = group.next_column()? else { return Ok(()) };
    column.typed::<T>().write_batch(values, levels, None)?;
    column.close()
}

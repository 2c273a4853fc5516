//! The columns of a row group.

use crate::fields::Fields;
use canter_frame::{Direction, Record};
use parquet::{
    data_type::{BoolType, ByteArray, ByteArrayType, Int32Type, Int64Type},
    errors::Result,
    file::writer::{SerializedFileWriter, SerializedRowGroupWriter},
    schema::{parser::parse_message_type, types::Type},
};
use std::{fs::File, sync::Arc};

/// Rows of a row group: the number that one thread of DuckDB processes at a time.
pub const ROWS_MAX: usize = 122_880;

const SCHEMA: &str = "
message frame {
  required int64 stamp (timestamp(nanos,true));
  required int32 id (integer(32,false));
  required boolean extended;
  required boolean rtr;
  required boolean fd;
  required boolean brs;
  required boolean esi;
  required boolean error;
  required int32 dlc (integer(8,false));
  required int32 len (integer(8,false));
  required binary data;
  optional binary direction (string);
}";

pub fn schema() -> Result<Arc<Type>> {
    parse_message_type(SCHEMA).map(Arc::new)
}

/// Rows collected for the next row group, by column.
#[derive(Default)]
pub struct Columns {
    stamps: Vec<i64>,
    ids: Vec<i32>,
    /// A bit each, from the lowest: extended, rtr, fd, brs, esi, error.
    flags: Vec<u8>,
    dlcs: Vec<i32>,
    lens: Vec<i32>,
    data: Vec<u8>,
    directions: Vec<Option<Direction>>,
}

impl Columns {
    pub fn rows(&self) -> usize {
        self.stamps.len()
    }

    #[inline]
    pub fn push(&mut self, stamp_ns: i64, entry: &Record) {
        let fields = Fields::from_frame(&entry.frame);
        self.stamps.push(stamp_ns);
        self.ids.push(fields.id.cast_signed());
        let flags = [fields.extended, fields.rtr, fields.fd, fields.brs, fields.esi, fields.error];
        self.flags.push(flags.into_iter().rev().fold(0, |bits, flag| bits << 1 | u8::from(flag)));
        self.dlcs.push(fields.dlc.into());
        self.lens.push(fields.len.into());
        self.data.extend_from_slice(entry.frame.data());
        self.directions.push(entry.direction);
    }

    /// Writes the rows as a row group, and clears them.
    pub fn write(&mut self, writer: &mut SerializedFileWriter<File>) -> Result<()> {
        if self.stamps.is_empty() {
            return Ok(());
        }
        let mut group = writer.next_row_group()?;
        column::<Int64Type>(&mut group, &self.stamps, None)?;
        column::<Int32Type>(&mut group, &self.ids, None)?;
        for bit in 0..6 {
            let flags: Vec<bool> = self.flags.iter().map(|bits| bits >> bit & 1 == 1).collect();
            column::<BoolType>(&mut group, &flags, None)?;
        }
        column::<Int32Type>(&mut group, &self.dlcs, None)?;
        column::<Int32Type>(&mut group, &self.lens, None)?;
        column::<ByteArrayType>(&mut group, &self.payloads(), None)?;
        let levels: Vec<i16> = self.directions.iter().map(|direction| direction.is_some().into()).collect();
        column::<ByteArrayType>(&mut group, &self.known_directions(), Some(&levels))?;
        group.close()?;
        self.clear();
        Ok(())
    }

    /// Returns each frame's data: parts of one allocation.
    fn payloads(&mut self) -> Vec<ByteArray> {
        let all = ByteArray::from(std::mem::take(&mut self.data));
        let mut at = 0;
        let part = |&len: &i32| {
            let len = usize::try_from(len).unwrap_or(0);
            at += len;
            all.slice(at - len, len)
        };
        self.lens.iter().map(part).collect()
    }

    fn known_directions(&self) -> Vec<ByteArray> {
        let (received, sent) = (ByteArray::from("R"), ByteArray::from("T"));
        let text = |direction: &Direction| match direction {
            Direction::Received => received.clone(),
            Direction::Sent => sent.clone(),
        };
        self.directions.iter().flatten().map(text).collect()
    }

    fn clear(&mut self) {
        self.stamps.clear();
        self.ids.clear();
        self.flags.clear();
        self.dlcs.clear();
        self.lens.clear();
        self.directions.clear();
    }
}

/// Writes the next column of a row group.
fn column<T: parquet::data_type::DataType>(
    group: &mut SerializedRowGroupWriter<'_, File>,
    values: &[T::T],
    levels: Option<&[i16]>,
) -> Result<()> {
    let Some(mut column) = group.next_column()? else { return Ok(()) };
    column.typed::<T>().write_batch(values, levels, None)?;
    column.close()
}

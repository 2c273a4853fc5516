//! Reads a Parquet file's rows, some thousand at a time.

use super::{
    MAGIC,
    bounded::{self, Bounded},
    fence,
};
use crate::{
    fields::Fields,
    format::Context,
    source::read_at,
    trouble::{Trouble, wrong},
};
use canter_frame::{Direction, Record};
use parquet::{
    basic::{Compression, ConvertedType, LogicalType, TimeUnit, TimestampType, Type},
    column::reader::{ColumnReaderImpl, get_typed_column_reader},
    data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int32Type, Int64Type},
    errors::ParquetError,
    file::{
        metadata::ParquetMetaData,
        reader::{FileReader, RowGroupReader, SerializedFileReader},
    },
    schema::types::ColumnDescriptor,
};
use std::{fs::File, io};

/// Rows that are decoded at once: a page or two of each column. Not a row group, which other writers make large.
const BATCH_ROWS: u64 = 8192;
/// Flags, in the order of their columns.
const FLAGS: [&str; 6] = ["extended", "rtr", "fd", "brs", "esi", "error"];

/// The positions of our columns in a file.
#[derive(Clone, Copy)]
struct Places {
    stamp: usize,
    /// The unit of the stamps, in ns.
    unit_ns: u64,
    /// The stamps are those of a clock on the wall.
    local: bool,
    id: usize,
    flags: [usize; 6],
    dlc: usize,
    len: usize,
    data: usize,
    direction: usize,
}

/// Decoded rows, by column.
#[derive(Default)]
struct Batch {
    stamps: Vec<i64>,
    ids: Vec<i32>,
    flags: [Vec<bool>; 6],
    dlcs: Vec<i32>,
    lens: Vec<i32>,
    data: Vec<ByteArray>,
    directions: Vec<Option<Direction>>,
}

/// The column readers of a row group.
struct RowGroup {
    stamp: Column<Int64Type>,
    id: Column<Int32Type>,
    flags: [Column<BoolType>; 6],
    dlc: Column<Int32Type>,
    len: Column<Int32Type>,
    data: Column<ByteArrayType>,
    direction: Column<ByteArrayType>,
}

/// A column of a row group.
struct Column<T: DataType>(ColumnReaderImpl<T>);

/// The rows of a file, and the position of the next one.
pub struct Columns {
    file: Option<SerializedFileReader<Bounded>>,
    places: Places,
    /// The number of the next row group.
    group: usize,
    readers: Option<RowGroup>,
    /// Rows of the current row group that are not decoded yet.
    left: u64,
    batch: Batch,
    at: usize,
    rows: u64,
}

/// Calls the `parquet` crate, which may panic on a damaged file.
fn call_crate<T>(work: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, Trouble> {
    match fence::catch_panic(work) {
        Some(Ok(answer)) => Ok(answer),
        Some(Err(ParquetError::External(inner))) => Err(match inner.downcast::<io::Error>() {
            Ok(error) => Trouble::Io(*error),
            Err(other) => Trouble::Wrong(format!("{other} (a damaged file?)")),
        }),
        Some(Err(error)) => wrong(format!("{} (a damaged file?)", one_line(&error.to_string()))),
        None => wrong("rows that cannot be unpacked (a damaged file?)"),
    }
}

/// Returns an error text of another crate on one line.
fn one_line(text: &str) -> String {
    text.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

/// Refuses a file that was cut off: nothing of it can be read, because its metadata is at its end.
fn check_ends(file: &File) -> Result<(), Trouble> {
    let length = file.metadata()?.len();
    let mut end = [0; 4];
    if length < 12 {
        return Err(Trouble::Cut);
    }
    read_at(file, length - 4, &mut end)?;
    if end == *MAGIC { Ok(()) } else { Err(Trouble::Cut) }
}

/// What the folders of a data set say of all frames in them.
const PARTITIONS: [&str; 2] = ["bus", "vehicle"];

/// The unit of a column of stamps, in ns. Old writers state it by a converted type alone.
fn unit_ns(column: &ColumnDescriptor) -> u64 {
    match (column.logical_type_ref(), column.converted_type()) {
        (Some(LogicalType::Timestamp(TimestampType { unit: TimeUnit::MICROS, .. })), _) => 1000,
        (Some(LogicalType::Timestamp(TimestampType { unit: TimeUnit::MILLIS, .. })), _) => 1_000_000,
        (None, ConvertedType::TIMESTAMP_MICROS) => 1000,
        (None, ConvertedType::TIMESTAMP_MILLIS) => 1_000_000,
        _ => 1,
    }
}

/// Whether a column of stamps has those of a clock on the wall, in no zone.
fn is_local(column: &ColumnDescriptor) -> bool {
    let kind = column.logical_type_ref();
    matches!(kind, Some(LogicalType::Timestamp(TimestampType { is_adjusted_to_u_t_c: false, .. })))
}

/// Refuses columns that are packed by a method which canter does not know.
fn check_packing(about: &ParquetMetaData) -> Result<(), Trouble> {
    let mut columns = about.row_groups().iter().flat_map(|group| group.columns());
    let unknown = |packing| !matches!(packing, Compression::UNCOMPRESSED | Compression::ZSTD(_));
    match columns.find(|column| unknown(column.compression())) {
        None => Ok(()),
        Some(column) => {
            let packing = column.compression().to_string().to_lowercase();
            wrong(format!("is compressed by {packing}, which canter does not read (write it with zstd)"))
        }
    }
}

impl Places {
    fn find(file: &SerializedFileReader<Bounded>) -> Result<Self, Trouble> {
        let schema = file.metadata().file_metadata().schema_descr();
        let place = |name: &str, kind: Type| {
            let is = |column: &parquet::schema::types::ColumnDescPtr| column.path().string() == name;
            match schema.columns().iter().position(is) {
                Some(place) => {
                    let column = schema.column(place);
                    let simple = column.max_rep_level() == 0 && column.max_def_level() <= 1;
                    if column.physical_type() == kind && simple {
                        Ok(place)
                    } else {
                        wrong(format!(
                            "column {name}: is not of the type that canter writes (docs/formats.md)"
                        ))
                    }
                }
                None => {
                    wrong(format!("has no column {name} (canter reads the Parquet files that it writes)"))
                }
            }
        };
        if let Some(column) = schema.columns().iter().find(|column| PARTITIONS.contains(&column.name())) {
            let name = column.name();
            return wrong(format!(
                "has a column {name}, which canter reads from folders only (PARTITION_BY ({name}))"
            ));
        }
        let stamp = place("stamp", Type::INT64)?;
        let (unit_ns, local) = (unit_ns(&schema.column(stamp)), is_local(&schema.column(stamp)));
        let mut flags = [0; 6];
        for (flag, name) in flags.iter_mut().zip(FLAGS) {
            *flag = place(name, Type::BOOLEAN)?;
        }
        Ok(Self {
            stamp,
            unit_ns,
            local,
            id: place("id", Type::INT32)?,
            flags,
            dlc: place("dlc", Type::INT32)?,
            len: place("len", Type::INT32)?,
            data: place("data", Type::BYTE_ARRAY)?,
            direction: place("direction", Type::BYTE_ARRAY)?,
        })
    }
}

impl<T: DataType> Column<T> {
    fn open(group: &dyn RowGroupReader, place: usize) -> Result<Self, ParquetError> {
        Ok(Self(get_typed_column_reader(group.get_column_reader(place)?)))
    }

    /// Reads the next `rows` values of a column that may have nulls.
    fn nullable(&mut self, rows: usize) -> Result<(Vec<i16>, Vec<T::T>), ParquetError> {
        let (mut levels, mut values) = (Vec::new(), Vec::new());
        self.0.read_records(rows, Some(&mut levels), None, &mut values)?;
        Ok((levels, values))
    }

    /// Reads the next `rows` values of a column without nulls.
    fn required(&mut self, rows: usize) -> Result<Vec<T::T>, ParquetError> {
        let (_, values) = self.nullable(rows)?;
        if values.len() == rows {
            Ok(values)
        } else {
            Err(ParquetError::General(format!("{} values of {rows} rows", values.len())))
        }
    }
}

impl RowGroup {
    fn open(group: &dyn RowGroupReader, places: &Places) -> Result<Self, ParquetError> {
        let flag = |at: usize| Column::open(group, places.flags[at]);
        Ok(Self {
            stamp: Column::open(group, places.stamp)?,
            id: Column::open(group, places.id)?,
            flags: [flag(0)?, flag(1)?, flag(2)?, flag(3)?, flag(4)?, flag(5)?],
            dlc: Column::open(group, places.dlc)?,
            len: Column::open(group, places.len)?,
            data: Column::open(group, places.data)?,
            direction: Column::open(group, places.direction)?,
        })
    }

    fn batch(&mut self, rows: usize) -> Result<Batch, ParquetError> {
        let mut flags: [Vec<bool>; 6] = Default::default();
        for (values, column) in flags.iter_mut().zip(&mut self.flags) {
            *values = column.required(rows)?;
        }
        let (levels, directions) = self.direction.nullable(rows)?;
        Ok(Batch {
            stamps: self.stamp.required(rows)?,
            ids: self.id.required(rows)?,
            flags,
            dlcs: self.dlc.required(rows)?,
            lens: self.len.required(rows)?,
            data: self.data.required(rows)?,
            directions: directions_by_row(&levels, &directions, rows)?,
        })
    }
}

/// Returns the directions by row; if all rows have one, `levels` may be empty.
fn directions_by_row(
    levels: &[i16],
    values: &[ByteArray],
    rows: usize,
) -> Result<Vec<Option<Direction>>, ParquetError> {
    let mut values = values.iter();
    let row = |row: usize| {
        let value = if levels.get(row) == Some(&0) { None } else { values.next().map(ByteArray::data) };
        match value {
            None => Ok(None),
            Some(b"R") => Ok(Some(Direction::Received)),
            Some(b"T") => Ok(Some(Direction::Sent)),
            Some(_) => Err(ParquetError::General("a direction that is not R or T".to_owned())),
        }
    };
    (0..rows).map(row).collect()
}

impl Columns {
    pub fn open(file: File) -> Result<Self, Trouble> {
        check_ends(&file)?;
        bounded::check_file(&file)?;
        let file = call_crate(|| SerializedFileReader::new(Bounded(file)))?;
        let about = file.metadata();
        if about.row_groups().iter().map(|group| group.num_rows()).sum::<i64>()
            != about.file_metadata().num_rows()
        {
            return wrong("numbers of rows that contradict each other (a damaged file?)");
        }
        check_packing(about)?;
        let places = Places::find(&file)?;
        Ok(Self {
            file: Some(file),
            places,
            group: 0,
            readers: None,
            left: 0,
            batch: Batch::default(),
            at: 0,
            rows: 0,
        })
    }

    /// The names of the columns that are not read.
    pub fn others(&self) -> Vec<String> {
        let Places { stamp, id, flags, dlc, len, data, direction, .. } = self.places;
        let read = [&[stamp, id, dlc, len, data, direction][..], &flags].concat();
        let schemas = self.file.iter().map(|file| file.metadata().file_metadata().schema_descr());
        let columns = schemas.flat_map(|schema| schema.columns()).enumerate();
        columns.filter(|(at, _)| !read.contains(at)).map(|(_, column)| column.path().string()).collect()
    }

    /// Reads the next row, a frame without its bus; `false` after the last one.
    pub fn next(&mut self, entry: &mut Record, context: &mut Context) -> Result<bool, Trouble> {
        if self.at == self.batch.stamps.len() && !self.fill()? {
            return Ok(false);
        }
        let (at, batch) = (self.at, &self.batch);
        self.at += 1;
        self.rows += 1;
        let bad = |reason: &str| Trouble::Wrong(format!("{reason} (a damaged file?)"));
        let small = |number: i32| u8::try_from(number).ok();
        let [extended, rtr, fd, brs, esi, error] =
            [0, 1, 2, 3, 4, 5].map(|flag: usize| batch.flags[flag][at]);
        let fields = Fields {
            id: batch.ids[at].cast_unsigned(),
            extended,
            rtr,
            fd,
            brs,
            esi,
            error,
            dlc: small(batch.dlcs[at]).ok_or_else(|| bad("a DLC above 15"))?,
            len: small(batch.lens[at]).ok_or_else(|| bad("a frame of more than 64 bytes"))?,
        };
        let data = if batch.data[at].is_empty() { &[] } else { batch.data[at].data() };
        entry.frame = fields.frame(data).map_err(bad)?;
        let stamp_ns =
            u64::try_from(batch.stamps[at]).ok().and_then(|stamp| stamp.checked_mul(self.places.unit_ns));
        let local = self.places.local;
        let stamp_ns =
            stamp_ns.and_then(|ns| if local { context.zone.ns_of_wall_clock(ns) } else { Some(ns) });
        entry.stamp_ns = stamp_ns.ok_or_else(|| bad("a stamp outside of 1970…2554"))?;
        context.zone_used |= local;
        entry.direction = batch.directions[at];
        Ok(true)
    }

    /// Decodes more rows; `false`: there are none.
    fn fill(&mut self) -> Result<bool, Trouble> {
        while self.left == 0 {
            let Some(file) = self.file.as_ref().filter(|file| self.group < file.num_row_groups()) else {
                return Ok(false);
            };
            let (group, places) = (self.group, &self.places);
            let rows = file.metadata().row_group(group).num_rows();
            self.left = u64::try_from(rows).unwrap_or(0);
            self.readers = Some(call_crate(|| RowGroup::open(&*file.get_row_group(group)?, places))?);
            self.group += 1;
        }
        let Some(readers) = &mut self.readers else { return Ok(false) };
        let rows = self.left.min(BATCH_ROWS);
        self.batch = call_crate(|| readers.batch(rows as usize))?;
        (self.at, self.left) = (0, self.left - rows);
        Ok(true)
    }

    /// Frees the file and the buffers, after the last row.
    pub fn close(&mut self) {
        (self.file, self.readers, self.batch, self.at, self.left) = (None, None, Batch::default(), 0, 0);
    }

    /// Rows read so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::schema::{parser::parse_message_type, types::SchemaDescriptor};
    use std::sync::Arc;

    #[test]
    fn stamps_of_old_writers_have_the_unit_of_their_converted_type() {
        let unit = |stamp: &str| {
            let schema =
                parse_message_type(&format!("message frames {{ required int64 stamp {stamp}; }}")).unwrap();
            unit_ns(&SchemaDescriptor::new(Arc::new(schema)).column(0))
        };
        assert_eq!(unit("(TIMESTAMP_MICROS)"), 1000);
        assert_eq!(unit("(TIMESTAMP_MILLIS)"), 1_000_000);
        assert_eq!(unit("(TIMESTAMP(NANOS,true))"), 1);
        assert_eq!(unit("(TIMESTAMP(MICROS,true))"), 1000);
        assert_eq!(unit(""), 1);
    }
}

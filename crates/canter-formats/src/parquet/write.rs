//! A data set of Parquet files: `vehicle=V/date=YYYY-MM-DD/bus=can0/part-STAMP.parquet`. STAMP is that of the file's
//! first frame in ns, so that writing the same drive twice is detected.
//!
//! Uses the column writers of the `parquet` crate, without Arrow: the columns of a row group are collected in memory.

mod columns;

use crate::{
    format::{NotKept, Sink, WriteOptions, Written},
    output,
    partition::{Folders, NS_OF_DAY, date, encoded, place},
};
use canter_frame::Record;
use columns::{Columns, ROWS_MAX};
use parquet::{
    basic::{Compression, Encoding, ZstdLevel},
    file::{
        metadata::SortingColumn,
        properties::{EnabledStatistics, WriterProperties},
        writer::SerializedFileWriter,
    },
    schema::types::Type,
};
use std::{
    fs::{self, File},
    io,
    path::PathBuf,
    sync::Arc,
};
use tempfile::TempPath;

/// The data set being written.
pub struct DataSet {
    folder: PathBuf,
    vehicle: String,
    overwrite: bool,
    schema: Arc<Type>,
    properties: Arc<WriterProperties>,
    names: Vec<String>,
    /// The open part of each interface.
    parts: Vec<Option<Part>>,
    /// Complete parts under temporary names, and their final paths.
    whole: Vec<(TempPath, PathBuf)>,
    /// The last field, because the others are dropped before it and remove their temporary files.
    folders: Folders,
}

/// A file of one bus and one day.
struct Part {
    day: u64,
    path: PathBuf,
    beside: TempPath,
    writer: SerializedFileWriter<File>,
    columns: Columns,
}

fn io_error(error: parquet::errors::ParquetError) -> io::Error {
    match error {
        parquet::errors::ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    }
}

impl DataSet {
    pub fn new(options: &WriteOptions) -> io::Result<Self> {
        let mut folders = Folders::default();
        folders.create(&options.path)?;
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(1).map_err(io_error)?))
            .set_created_by(concat!("canter ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_sorting_columns(Some(vec![SortingColumn {
                column_idx: 0,
                descending: false,
                nulls_first: false,
            }]))
            // Payloads hardly repeat: a dictionary of them makes the file a quarter larger, and nobody asks for a range.
            .set_column_dictionary_enabled("data".into(), false)
            .set_column_statistics_enabled("data".into(), EnabledStatistics::None);
        for numbers in ["stamp", "dlc", "len"] {
            properties = properties
                .set_column_dictionary_enabled(numbers.into(), false)
                .set_column_encoding(numbers.into(), Encoding::DELTA_BINARY_PACKED);
        }
        Ok(Self {
            folder: options.path.clone(),
            vehicle: options.vehicle.clone().unwrap_or_else(|| "unknown".to_owned()),
            overwrite: options.overwrite,
            schema: columns::schema().map_err(io_error)?,
            properties: Arc::new(properties.build()),
            names: Vec::new(),
            parts: Vec::new(),
            whole: Vec::new(),
            folders,
        })
    }

    fn part(&mut self, interface: usize, stamp_ns: u64) -> io::Result<Part> {
        let day = stamp_ns / NS_OF_DAY;
        let folder = self
            .folder
            .join(format!("vehicle={}", encoded(&self.vehicle)))
            .join(format!("date={}", date(day)))
            .join(format!("bus={}", encoded(&self.names[interface])));
        self.folders.create(&folder)?;
        let path = folder.join(format!("part-{stamp_ns}.parquet"));
        if path.exists() && !self.overwrite {
            let message = format!("{} exists already: this drive is in the data set", path.display());
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
        }
        let (file, beside) = output::beside(&path)?.into_parts();
        let (schema, properties) = (Arc::clone(&self.schema), Arc::clone(&self.properties));
        let writer = SerializedFileWriter::new(file, schema, properties).map_err(io_error)?;
        Ok(Part { day, path, beside, writer, columns: Columns::default() })
    }

    fn close(&mut self, interface: usize) -> io::Result<()> {
        let Some(mut part) = self.parts[interface].take() else { return Ok(()) };
        part.columns.write(&mut part.writer).map_err(io_error)?;
        part.writer.into_inner().map_err(io_error)?.sync_data()?;
        self.whole.push((part.beside, part.path));
        Ok(())
    }
}

impl Sink for DataSet {
    fn interface(&mut self, name: &str) -> io::Result<()> {
        self.names.push(name.to_owned());
        self.parts.push(None);
        Ok(())
    }

    #[inline]
    fn frame(&mut self, entry: &Record) -> io::Result<()> {
        let stamp_ns = i64::try_from(entry.stamp_ns).map_err(|_| {
            let message = "a stamp after the year 2262, where the ns of Parquet end";
            io::Error::new(io::ErrorKind::InvalidInput, message)
        })?;
        let interface = entry.bus.index();
        if self.parts[interface].as_ref().is_some_and(|part| part.day != entry.stamp_ns / NS_OF_DAY) {
            self.close(interface)?;
        }
        if self.parts[interface].is_none() {
            self.parts[interface] = Some(self.part(interface, entry.stamp_ns)?);
        }
        let Some(part) = &mut self.parts[interface] else { return Ok(()) };
        part.columns.push(stamp_ns, entry);
        if part.columns.rows() == ROWS_MAX {
            part.columns.write(&mut part.writer).map_err(io_error)
        } else {
            Ok(())
        }
    }

    fn finish(mut self: Box<Self>) -> io::Result<Written> {
        for interface in 0..self.parts.len() {
            self.close(interface)?;
        }
        let mut written = Written { bytes: 0, files: self.whole.len() as u64, not_kept: NotKept::default() };
        for (beside, _) in &self.whole {
            written.bytes += fs::metadata(beside)?.len();
        }
        place(self.whole, self.overwrite).map_err(|(_, error)| error)?;
        self.folders.keep();
        Ok(written)
    }
}

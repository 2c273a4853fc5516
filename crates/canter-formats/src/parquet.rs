//! Parquet as canter writes it: a data set, which is a folder of files by vehicle, date and bus.

mod read;
mod write;

use crate::format::{Format, Keeps, Write};

/// The row of this format.
pub(crate) const ROW: Format = Format {
    name: "parquet",
    title: "Parquet",
    about: "A data set: a folder of Parquet files by vehicle, date and bus",
    extensions: &["parquet"],
    recognise: Some(read::looks_like),
    read: Some(|path| Box::new(read::Parquet::file(path))),
    read_folder: Some(read::Parquet::folder),
    write: Some(Write::Folder(|options| Ok(Box::new(write::DataSet::new(options)?)))),
    keeps: Some(Keeps::ALL),
    ..Format::PLAIN
};

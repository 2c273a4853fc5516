//! Reads and writes recordings of CAN buses: candump log, pcap, pcapng, Vector ASC and BLF, ASAM MDF4, CSV, Parquet.
//! Frame by frame, in bounded memory, on any operating system, without unsafe code; no file makes it panic.
//!
//! ```
//! use canter_formats::Record;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("drive.blf");
//! // Write two frames on one bus. The path's extension decides the format.
//! let mut writer = canter_formats::create(&path)?;
//! let bus = writer.interface("can0")?;
//! let start_ns = 1_700_000_000_000_000_000; // nanoseconds since 1970
//! for (n, text) in ["123#DEADBEEF", "12345678#01"].iter().enumerate() {
//!     let stamp_ns = start_ns + n as u64 * 10_000_000;
//!     writer.frame(&Record { stamp_ns, bus, frame: text.parse()?, direction: None })?;
//! }
//! let written = writer.finish()?; // the file gets its name here
//! assert_eq!(written.files, 1);
//!
//! // Read any recording. What the file holds decides the format, not its name.
//! let mut reader = canter_formats::open(&path)?;
//! assert_eq!(reader.format().name, "blf");
//! let mut lines = Vec::new();
//! while let Some(record) = reader.next_record()? {
//!     lines.push(format!("{} {} {}", record.stamp_ns - start_ns, reader.name(record.bus), record.frame));
//! }
//! assert_eq!(lines, ["0 can0 123#DEADBEEF", "10000000 can0 12345678#01"]);
//! if let Some(place) = reader.cut() {
//!     // The file ends too early: `drive.blf: byte 18848: cut off after 1465 frames`. All complete frames were read.
//!     eprintln!("{place}");
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Formats
//! | name | what it is | reads | writes | grows | live |
//! | --- | --- | --- | --- | --- | --- |
//! | `log` | candump log | yes | yes | yes | yes |
//! | `pcap` | what tcpdump writes | yes | | | |
//! | `pcapng` | what Wireshark reads | yes | yes | yes | yes |
//! | `asc` | Vector's text log | yes | yes | yes | |
//! | `blf` | Vector's compressed log | yes | yes | | |
//! | `mf4` | ASAM MDF4, bus logging | yes | yes | | |
//! | `csv` | one line per frame, as canter writes it | yes | yes | yes | |
//! | `parquet` | a folder of Parquet files, as canter writes it | yes | yes | | |
//! | `trc` | PEAK's trace files, versions 1.0 to 2.1 | yes | | | |
//! | `candump` | what candump prints on a screen | yes | | | |
//! | `python-can-csv` | what python-can's CSVWriter writes | yes | | | |
//! | `gvret` | what SavvyCAN saves as GVRET CSV | yes | | | |
//!
//! A format that *grows* is written from beginning to end, so it can be compressed (`.zst`) or go into a pipe
//! ([`Writer::to_stream`]). A *live* one is valid wherever it is cut off: [`Format::append`]. What a format keeps of a
//! frame is in [`Format::keeps`]; what a file has lost in writing, and of how many frames, in [`Written::not_kept`].
//!
//! [`create`] writes with the usual options. [`Writer::open`] takes [`WriteOptions`]: another format than the extension's
//! ([`named`]), stamps of 9 digits, replacing a file.
//!
//! # A format of your own
//! A format is one row: [`Format`]. Its decoder implements [`format::Decode`], its encoder [`format::Sink`]. Every entry
//! point takes the table, so pass [`FORMATS`] and your row. The page of the module [`format`] has a complete example.
//!
//! # Features
//! All are on by default. Without `mdf` or `parquet` that format's row is missing; without `zstd`, files that end in
//! `.zst` are refused with a sentence that names the feature.
//! - `zstd`: `.zst`, read and written. Needs a C compiler.
//! - `parquet`: Parquet data sets, which are compressed by zstd. Needs `zstd`.
//! - `mdf`: ASAM MDF4.
//! - `zones`: [`Zone`] by names of the tz database, and that of this machine.
//!
//! # Platforms
//! Any that has `std`. On `wasm32-unknown-unknown`, which has no files and no C, use `default-features = false`,
//! [`Reader::from_read`] and [`Writer::to_stream`].
#![forbid(unsafe_code)]

mod appended;
mod asc;
mod blf;
mod candump_log;
mod channels;
mod csv;
mod cursor;
mod error;
mod fields;
pub mod format;
mod hex;
mod lines;
mod linktype;
#[cfg(feature = "mdf")]
mod mdf;
mod names;
mod output;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(feature = "parquet")]
pub mod partition;
mod pcap;
mod pcapng;
mod read;
mod screen;
mod source;
mod table;
mod table_csv;
mod trc;
mod trouble;
mod write;
mod zone;
mod zst;

pub use canter_frame::{
    BusId, ControllerStamp, Direction, Frame, FrameError, Identifier, RawRecord, Record, TextError,
};
pub use error::{Error, Result};
pub use format::{Append, Closing, Detail, Format, WriteOptions, Written};
#[cfg(feature = "mdf")]
pub use mdf::measurement;
pub use read::Reader;
pub use table::{FORMATS, by_extension, list_extensions, list_names, list_titles, named};
pub use write::Writer;
pub use zone::Zone;

use std::path::Path;

/// Opens a recording in any format of the built-in table, [`FORMATS`].
///
/// # Errors
/// When it cannot be opened, or is in no known format.
pub fn open(path: impl AsRef<Path>) -> Result<Reader> {
    Reader::open(path, FORMATS)
}

/// Creates a recording in the format of the path's extension, with the usual options ([`WriteOptions::new`]).
///
/// # Errors
/// When no format that can be written has this extension, the file exists (only [`WriteOptions::overwrite`] replaces it),
/// or it cannot be created.
pub fn create(path: impl AsRef<Path>) -> Result<Writer> {
    let path = path.as_ref();
    let writable = |format: &Format| format.write.is_some();
    match by_extension(path, FORMATS) {
        Some(format) => Writer::open(&WriteOptions::new(format, path)),
        None => Err(Error::Unsuitable {
            thing: path.display().to_string(),
            reason: format!(
                "create: the extension names no format ({}{})",
                list_extensions(FORMATS, writable, "or"),
                table::WITHOUT
            ),
        }),
    }
}

#[cfg(test)]
mod examples {
    use canter_frame::{BusId, Frame, RawRecord};

    /// A frame as the kernel lays it out.
    pub fn bytes(frame: &Frame) -> Vec<u8> {
        frame.kernel_bytes()[..frame.mtu()].to_vec()
    }

    pub fn record(bytes: &[u8], interface: u32, stamp_ns: u64) -> RawRecord<'_> {
        RawRecord::new(stamp_ns, BusId(interface), bytes)
    }
}

#[cfg(test)]
mod tests;

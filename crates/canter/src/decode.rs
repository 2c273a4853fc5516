//! `canter decode`: the signals of recordings or interfaces by databases, as text or tables.
//!
//! `frames` (recordings, interfaces) → `decoder` (which message) → a table of `output`, and `coverage` at the end

mod coverage;
mod decoder;
mod frames;
mod long;
mod measurement;
mod output;
#[cfg(feature = "parquet")]
mod parquet;
pub mod plot;
mod report;
mod tables;
mod text;
mod wanted;
mod wide;

use crate::{
    databases::{Databases, Source},
    recordings::Selection,
};
use canter_cli::{
    duration,
    failure::{self, Exit, Failure},
    interrupt::interrupt_flag,
    options::Common,
};
use clap::Args;
use decoder::Decoder;
use frames::Frames;
use output::Format;
use std::{
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering},
};
use wanted::Wanted;

/// Frames between two checks for signals.
const CHECK_FRAMES: u64 = 1 << 14;

/// Decode signals of recordings or interfaces by DBC databases: text, CSV, MDF4, Parquet
#[derive(Args)]
#[command(after_help = "\
Examples:
  canter decode drive.mf4 --dbc car.dbc                      every message with its signals, as text
  canter decode can0 --dbc car.dbc --signals EngineSpeed     an interface, live
  canter decode drive.blf --dbc can0=body.dbc --dbc can1=powertrain.dbc    a database for each bus
  canter decode drive.log --dbc car.dbc -o drive.csv         a row for each value
  canter decode drive.log --dbc car.dbc --signals EngineSpeed,VehicleSpeed --wide --every 100ms -o drive.csv
  canter decode drive.log --dbc car.dbc -o signals.mf4       a channel for each signal, for asammdf
  canter decode drive.mf4 --dbc car.dbc -o signals --format parquet        a table for each message, for DuckDB and pandas
The last line says how many identifiers and frames the databases know. Extended identifiers of J1939 match by their parameter
group, and transported messages are put together. Exit code 0; 1 when no frame matched; 3 when an input was cut off.")]
pub struct Arguments {
    /// Recordings, or interfaces; `-` is the standard input
    #[arg(value_name = "IN|IFACE", required = true)]
    inputs: Vec<PathBuf>,
    /// A database: a DBC file for all buses, or for one; repeatable, the first one that knows an identifier counts
    #[arg(long, value_name = "[IFACE=]FILE", required = true)]
    dbc: Vec<Source>,
    /// The file, or for Parquet the folder; `-`: standard output
    #[arg(long, short, value_name = "OUT", default_value = "-")]
    output: PathBuf,
    /// The format, regardless of the file's name
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Format>,
    /// Only these signals: Signal, Message.Signal, or Message.* for all of a message
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    signals: Vec<String>,
    /// CSV with a column for each signal; each row has the last values
    #[arg(long)]
    wide: bool,
    /// With --wide: a row at each multiple of this time, instead of one for each frame
    #[arg(long, value_name = "TIME", value_parser = duration::parse_ns, requires = "wide")]
    every: Option<u64>,
    /// One line for each frame, as cantools prints it
    #[arg(long)]
    one_line: bool,
    /// Numbers instead of the texts of value tables
    #[arg(long)]
    numbers: bool,
    /// Overwrite an existing file
    #[arg(long)]
    overwrite: bool,
    /// The vehicle's name: a partition of Parquet
    #[arg(long, value_name = "NAME")]
    vehicle: Option<String>,
    #[command(flatten)]
    selection: Selection,
}

pub fn run(mut arguments: Arguments, common: &Common) -> failure::Result {
    let format = tables::format(&arguments)?;
    let databases = Databases::open_with_remarks(&arguments.dbc, common.quiet)?;
    arguments.selection.resolve(&databases)?;
    let wanted = Wanted::new(&arguments.signals, &databases)?;
    let mut frames = Frames::open("decode", &arguments.inputs, &arguments.selection, common)?;
    let stop = interrupt_flag()?;
    let mut table = tables::open(&arguments, format, &databases, &wanted)?;
    let mut decoder = Decoder::new(&databases, &wanted);
    let interrupted = decode(&mut frames, &mut decoder, &mut *table, &stop)?;
    if interrupted && !frames.is_live() {
        return Err(Failure::new(Exit::Interrupted, format!("{}: interrupted", arguments.output.display())));
    }
    let tallies = table.finish()?;
    report::close(decoder.coverage(), &tallies, frames.finish()?, common)
}

/// Decodes all frames; whether a signal ended it.
fn decode(
    frames: &mut Frames<'_>,
    decoder: &mut Decoder<'_>,
    table: &mut dyn output::Table,
    stop: &AtomicBool,
) -> failure::Result<bool> {
    let mut read = 0u64;
    loop {
        let Some(()) = frames.next(|bus, name, record| {
            read += 1;
            decoder.take(bus, name, record, table)
        })?
        else {
            return Ok(false);
        };
        if frames.is_live() {
            table.flush()?;
        }
        if (frames.is_live() || read.is_multiple_of(CHECK_FRAMES)) && stop.load(Ordering::Relaxed) {
            return Ok(true);
        }
    }
}

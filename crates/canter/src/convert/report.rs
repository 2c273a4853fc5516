//! The report of a conversion, on the terminal and as JSON.

use crate::recordings::{Outcome, undated};
use canter_formats::{Detail, Format, Written};
use canter_frame::Record;
use jiff::Timestamp;
use serde::Serialize;
use std::{collections::BTreeMap, fmt};

/// A bus of the output.
#[derive(Debug, Default, Serialize)]
pub struct Bus {
    pub name: String,
    /// The bus's number, in formats that have no names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<u32>,
    pub frames: u64,
    /// The error frames among the frames.
    pub errors: u64,
    #[serde(skip)]
    range_ns: Option<(u64, u64)>,
}

impl Bus {
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    #[inline]
    pub fn count(&mut self, entry: &Record) {
        self.frames += 1;
        self.errors += u64::from(entry.frame.is_error());
        let (first, last) = self.range_ns.unwrap_or((entry.stamp_ns, entry.stamp_ns));
        self.range_ns = Some((first.min(entry.stamp_ns), last.max(entry.stamp_ns)));
    }
}

/// The report.
#[derive(Debug, Serialize)]
pub struct Report {
    inputs: Vec<Outcome>,
    output: String,
    format: &'static str,
    files: u64,
    bytes: u64,
    /// Frames that were read from the inputs.
    pub read: u64,
    /// Frames that were written to the output.
    frames: u64,
    first_ns: Option<u64>,
    last_ns: Option<u64>,
    buses: Vec<Bus>,
    /// Frames of the output whose stamp is older than that of the frame before.
    pub backwards: u64,
    /// Details that the output's format did not store, with the number of frames.
    not_kept: BTreeMap<String, u64>,
    /// Inputs that end in the middle of an entry, and where.
    pub cut_off: Vec<String>,
    /// The zone of dates that name none, if it was given.
    pub zone: Option<String>,
    /// What `--salvage` skipped, a line for each input.
    salvaged: Vec<String>,
}

impl Report {
    pub fn new(output: &str, format: &Format) -> Self {
        Self {
            inputs: Vec::new(),
            output: output.to_owned(),
            format: format.name,
            files: 0,
            bytes: 0,
            read: 0,
            frames: 0,
            first_ns: None,
            last_ns: None,
            buses: Vec::new(),
            backwards: 0,
            not_kept: BTreeMap::new(),
            cut_off: Vec::new(),
            zone: None,
            salvaged: Vec::new(),
        }
    }

    pub fn close(
        &mut self,
        inputs: Vec<Outcome>,
        mut buses: Vec<Bus>,
        channels: &[Option<u32>],
        written: &Written,
    ) {
        self.salvaged = inputs.iter().filter_map(|input| input.salvaged.clone()).collect();
        self.cut_off = inputs.iter().filter_map(|input| input.cut.clone()).collect();
        self.inputs = inputs;
        (self.files, self.bytes) = (written.files, written.bytes);
        self.not_kept = written.not_kept.iter().map(|(detail, count)| (with_option(detail), count)).collect();
        self.frames = buses.iter().map(|bus| bus.frames).sum();
        self.first_ns = buses.iter().filter_map(|bus| Some(bus.range_ns?.0)).min();
        self.last_ns = buses.iter().filter_map(|bus| Some(bus.range_ns?.1)).max();
        buses.iter_mut().zip(channels).for_each(|(bus, &channel)| bus.channel = channel);
        self.buses = buses;
    }

    /// Whether frames are missing, or may not be whole.
    pub fn is_doubtful(&self) -> bool {
        self.inputs.iter().any(Outcome::is_doubtful)
    }

    /// One row per bus.
    fn table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.buses.iter().map(|bus| bus.name.len()).max().unwrap_or(0);
        let digits = self.buses.iter().map(|bus| bus.frames.to_string().len()).max().unwrap_or(0);
        for bus in &self.buses {
            write!(f, "  {:name$}  {:>digits$} frames", bus.name, bus.frames)?;
            if let Some(channel) = bus.channel {
                write!(f, ", channel {channel}")?;
            }
            if bus.errors > 0 {
                write!(f, ", {} of them error frames", bus.errors)?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

/// A detail that the format did not store, and the option that stores it.
fn with_option(detail: Detail) -> String {
    match detail {
        Detail::SubMicrosecond => format!("{detail} (--ns keeps them)"),
        Detail::Direction => format!("{detail} (--direction keeps it)"),
        _ => detail.to_string(),
    }
}

/// Bytes, rounded to kB or MB.
struct Bytes(u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            bytes @ ..10_000 => write!(f, "{bytes} B"),
            bytes @ ..10_000_000 => write!(f, "{} kB", bytes / 1000),
            bytes => write!(f, "{} MB", bytes / 1_000_000),
        }
    }
}

fn time(ns: u64) -> Timestamp {
    Timestamp::from_nanosecond((ns - ns % 1_000_000).into()).unwrap_or_default()
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "convert: {} frames → {} ({}", self.frames, self.output, self.format)?;
        if self.files != 1 {
            write!(f, ", {} files", self.files)?;
        }
        write!(f, ", {})", Bytes(self.bytes))?;
        if let (Some(first), Some(last)) = (self.first_ns, self.last_ns) {
            write!(f, ", {:.3} … {:.3}", time(first), time(last))?;
        }
        writeln!(f)?;
        self.table(f)?;
        if self.read > self.frames {
            writeln!(f, "  {} of {} frames were not selected", self.read - self.frames, self.read)?;
        }
        for input in &self.inputs {
            for (entry, count) in &input.skipped {
                writeln!(f, "  skipped: {count} {entry} of {}", input.file)?;
            }
            for (kind, count) in &input.flawed {
                writeln!(f, "  doubtful: {count} {kind} of {}", input.file)?;
            }
            if input.lost > 0 {
                writeln!(f, "  {} reports {} frames lost during recording", input.file, input.lost)?;
            }
        }
        if self.backwards > 0 {
            writeln!(
                f,
                "  {} stamps go backwards (--sort 1s sorts frames that are out of order by less than 1 s)",
                self.backwards
            )?;
        }
        for (detail, count) in &self.not_kept {
            writeln!(f, "  {} omits from {count} frames: {detail}", self.format)?;
        }
        if let (Some(line), None) = (undated(&self.inputs), &self.zone) {
            writeln!(f, "  {line}")?;
        }
        for cut in &self.cut_off {
            writeln!(f, "  {cut}: all frames before were converted")?;
        }
        for skipped in &self.salvaged {
            writeln!(f, "  salvaged: {skipped}")?;
        }
        Ok(())
    }
}

//! candump's log: one line per frame, as `candump -l` writes it.

mod append;
mod read;

use crate::{
    appended::Appended,
    format::{BusLabel, Directions, ErrorFrames, Format, Keeps, Stamps, Write},
};

const KEEPS: Keeps = Keeps {
    stamps: Stamps::Us,
    bus: BusLabel::Name,
    direction: Directions::Asked,
    error_frames: ErrorFrames::All,
    dlc_above_8: true,
    hardware_stamps: false,
};

/// The row of this format.
pub(crate) const ROW: Format = Format {
    name: "log",
    title: "candump log",
    about: "What `candump -l` writes, one line per frame",
    extensions: &["log"],
    recognise: Some(read::looks_like),
    read: Some(|_| Box::new(read::CandumpLog::default())),
    write: Some(Write::File(|output, options| {
        let log = Box::new(append::CandumpLog::new(options.ns));
        Ok(Box::new(Appended::new(output, options, log, KEEPS)))
    })),
    append: Some(|ns| Box::new(append::CandumpLog::new(ns))),
    grows: true,
    keeps: Some(KEEPS),
    holds_name,
    ..Format::PLAIN
};

/// The kernel's rule for names of interfaces, and no blanks, at which a reader would end the name.
fn holds_name(name: &str) -> bool {
    (1..16).contains(&name.len()) && !name.contains(|c: char| c == '/' || c.is_whitespace() || c.is_control())
}

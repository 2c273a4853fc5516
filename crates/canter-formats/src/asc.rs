//! Vector ASC: text with a date in its header and one line per event.

mod read;
mod write;

use crate::format::{BusLabel, Directions, ErrorFrames, Format, Keeps, Stamps, Write};

/// The row of this format.
pub(crate) const ROW: Format = Format {
    name: "asc",
    title: "ASC",
    about: "Vector's text log",
    extensions: &["asc"],
    recognise: Some(read::looks_like),
    read: Some(|_| Box::new(read::Asc::default())),
    write: Some(Write::File(|output, options| Ok(Box::new(write::Asc::new(output, options.ns))))),
    grows: true,
    keeps: Some(Keeps {
        stamps: Stamps::UsFromFirst,
        bus: BusLabel::Channel,
        direction: Directions::Known,
        error_frames: ErrorFrames::Presence,
        dlc_above_8: false,
        hardware_stamps: false,
    }),
    ..Format::PLAIN
};

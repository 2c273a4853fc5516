//! ASAM MDF4, bus logging: groups of CAN_DataFrame, CAN_RemoteFrame and CAN_ErrorFrame.

mod read;
mod write;

pub use write::measurement;

use crate::format::{BusLabel, Directions, ErrorFrames, Format, Keeps, Stamps, Write};

/// The row of this format.
pub(crate) const ROW: Format = Format {
    name: "mf4",
    title: "MDF4",
    about: "ASAM MDF4, bus logging",
    extensions: &["mf4"],
    recognise: Some(read::looks_like),
    read: Some(|_| Box::new(read::Mdf::default())),
    write: Some(Write::File(|output, _| Ok(Box::new(write::Mdf::new(output)?)))),
    keeps: Some(Keeps {
        stamps: Stamps::Float,
        bus: BusLabel::ChannelAndName,
        direction: Directions::Known,
        error_frames: ErrorFrames::ClassAndData,
        dlc_above_8: true,
        hardware_stamps: false,
    }),
    ..Format::PLAIN
};

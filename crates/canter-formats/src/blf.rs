//! Vector BLF: a header, and containers of objects, compressed by zlib.

mod layout;
mod object;
mod read;
mod systemtime;
mod write;

use crate::format::{BusLabel, Directions, ErrorFrames, Format, Keeps, Stamps, Write};

/// The row of this format.
pub(crate) const ROW: Format = Format {
    name: "blf",
    title: "BLF",
    about: "Vector's packed log",
    extensions: &["blf"],
    recognise: Some(|head| head.starts_with(b"LOGG")),
    read: Some(|_| Box::new(read::Blf::default())),
    write: Some(Write::File(|output, _| Ok(Box::new(write::Blf::new(output)?)))),
    keeps: Some(Keeps {
        stamps: Stamps::Ns,
        bus: BusLabel::Channel,
        direction: Directions::Known,
        error_frames: ErrorFrames::ClassAndData,
        dlc_above_8: true,
        hardware_stamps: false,
    }),
    ..Format::PLAIN
};

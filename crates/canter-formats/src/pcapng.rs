//! pcapng: what Wireshark, tshark and capinfos read and dumpcap writes (draft-ietf-opsawg-pcapng).

mod append;
mod read;

use crate::{
    appended::Appended,
    format::{BusLabel, Directions, ErrorFrames, Format, Keeps, Stamps, Write},
};

const KEEPS: Keeps = Keeps {
    stamps: Stamps::Ns,
    bus: BusLabel::Name,
    direction: Directions::All,
    error_frames: ErrorFrames::All,
    dlc_above_8: true,
    hardware_stamps: true,
};

/// The row of this format.
pub(crate) const ROW: Format = Format {
    name: "pcapng",
    title: "pcapng",
    about: "What Wireshark reads: stamps in ns, the drop counters inside",
    extensions: &["pcapng"],
    recognise: Some(|head| head.starts_with(&[0x0a, 0x0d, 0x0d, 0x0a])),
    read: Some(|_| Box::new(read::Pcapng::default())),
    write: Some(Write::File(|output, options| {
        Ok(Box::new(Appended::new(output, options, Box::new(append::Pcapng::default()), KEEPS)))
    })),
    append: Some(|_ns| Box::new(append::Pcapng::default())),
    grows: true,
    keeps: Some(KEEPS),
    ..Format::PLAIN
};

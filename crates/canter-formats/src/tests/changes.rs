//! No reader drops or invents a frame in silence: whichever byte of a file is another, and wherever the file ends, there are
//! as many frames as before, or the reader says that something is left out.

use super::{Recording, Seen, records, seen};
use crate::{FORMATS, Format, named};
use std::fs;

/// What a byte may become: one bit is another, a limit, or in a text what separates its parts.
fn others(old: u8) -> impl Iterator<Item = u8> {
    let bits = (0..8).map(move |bit| old ^ 1 << bit);
    bits.chain([0, 0xff, b'\n', b' ', b'/', b'#', b'-', b'9']).filter(move |&new| new != old)
}

/// Whether the reader says that more is left out or wrong than in the intact file.
fn is_reported(seen: &Seen, intact: &Seen) -> bool {
    seen.error.is_some() || seen.cut || seen.skipped > intact.skipped || !seen.flawed.is_empty()
}

/// Whether the file of a format that grows may end here: behind a line or a block.
fn may_end(name: &str, bytes: &[u8]) -> bool {
    let blocks = || {
        let mut rest = bytes;
        while let Some(length) = rest.get(4..8).map(|length| u32::from_le_bytes(length.try_into().unwrap())) {
            rest = rest.get(length as usize..).unwrap_or(&[0]);
        }
        rest.is_empty()
    };
    match name {
        "log" | "csv" | "asc" => bytes.ends_with(b"\n"),
        "pcapng" => blocks(),
        _ => false,
    }
}

fn check(name: &str) {
    let format: &'static Format = named(name, FORMATS).unwrap();
    let recording = Recording::write(format, &records(), "file");
    let mut bytes = fs::read(recording.file(format).unwrap()).unwrap();
    let intact = seen(&bytes);
    assert!(intact.error.is_none() && !intact.cut, "{name}: {:?}", intact.error);
    let frames = intact.frames.len();
    let mut silent = Vec::new();
    for at in 0..bytes.len() {
        let old = bytes[at];
        for new in others(old) {
            bytes[at] = new;
            let seen = seen(&bytes);
            if seen.frames.len() != frames && !is_reported(&seen, &intact) {
                silent.push(format!("byte {at}: {old:#04x} → {new:#04x}: {} frames", seen.frames.len()));
            }
        }
        bytes[at] = old;
    }
    for end in (0..bytes.len()).filter(|&end| !may_end(name, &bytes[..end])) {
        let seen = seen(&bytes[..end]);
        if seen.frames.len() != frames && !is_reported(&seen, &intact) {
            silent.push(format!("cut at {end}: {} frames", seen.frames.len()));
        }
    }
    let text = String::from_utf8_lossy(&bytes);
    assert!(
        silent.is_empty(),
        "{name}: {} of {frames} frames in silence: {:#?}\n{text}",
        silent.len(),
        &silent[..silent.len().min(20)]
    );
}

macro_rules! check {
    ($($name:ident: $format:literal;)*) => {$(
        #[test]
        fn $name() {
            check($format);
        }
    )*};
}

check! {
    of_a_candump_log: "log";
    of_an_asc: "asc";
    of_a_csv: "csv";
    of_a_pcapng: "pcapng";
    of_a_blf: "blf";
    of_an_mdf: "mf4";
    of_a_parquet: "parquet";
}

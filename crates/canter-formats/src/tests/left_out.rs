//! What a reader leaves out or cannot be sure of, it says: files as loggers, other programs and damage leave them.

use super::{Recording, Seen, records, seen};
use crate::{FORMATS, format::Flawed, named};
use std::{fs, os::unix::fs::symlink};

/// The frames as text, and the reader's words about what it left out.
fn read(text: &str) -> (Vec<String>, u64, Option<String>) {
    let seen = seen(text.as_bytes());
    (seen.frames.iter().map(|(ns, _, frame, _)| format!("{ns} {frame}")).collect(), seen.skipped, seen.error)
}

const HEAD: &str = "date Thu Jan 1 00:00:10.000 1970\nbase hex  timestamps absolute\n";

#[test]
fn events_of_an_asc_before_a_trigger_have_negative_stamps() {
    let events = "  -0.5 1  1  Rx   d 0\n  .25 1  2  Rx   d 0\n  +0.75 1  3  Rx   d 0\n";
    let frames = ["9500000000 001#", "10250000000 002#", "10750000000 003#"].map(str::to_owned).to_vec();
    assert_eq!(read(&format!("{HEAD}{events}")), (frames, 0, None));
}

#[test]
fn damaged_lines_of_an_asc_are_damage_and_lines_that_are_no_events_are_counted() {
    for (line, said) in [
        ("x.2 1  2  Rx   d 0", "an event without a stamp"),
        ("0x2 1  2  Rx   d 0", "an event with a damaged stamp"),
        ("0.2 1", "an event that ends too early"),
        ("0.2", "an event that ends too early"),
        ("0.2 1  2  Rx   d 0 0.3 1  3  Rx   d 0", "two events in one line"),
        ("0.2 2  Statistic: D 0 R 0 0.3 1  3  Rx   d 0", "two events in one line"),
    ] {
        let (frames, _, error) = read(&format!("{HEAD}  0.1 1  1  Rx   d 0\n  {line}\n"));
        assert_eq!(frames.len(), 1, "{line}");
        assert!(error.as_ref().is_some_and(|error| error.contains(said)), "{line}: {error:?}");
    }
    let (frames, skipped, error) =
        read(&format!("{HEAD}a note\n  0.1 1  1  Rx   d 0\n  0.2 Li 3c Tx 8 00 SOF = 0.066817 BR = 19230\n"));
    assert_eq!((frames.len(), skipped, error), (1, 2, None));
    // What begins a block also writes its end, unless it is stopped.
    let cut = seen(
        format!("{HEAD}Begin Triggerblock Thu Jan 1 00:00:10.000 1970\n  0.1 1  1  Rx   d 0\n").as_bytes(),
    );
    assert_eq!((cut.frames.len(), cut.cut), (1, true));
}

#[test]
fn a_frame_of_a_log_without_the_beginning_of_its_stamp_is_no_comment() {
    let (frames, _, error) = read("(1.000000) can0 001#\n01.000001) can0 002#\n");
    assert_eq!(frames.len(), 1);
    assert!(error.is_some_and(|error| error.contains("a frame without a stamp")));
    assert_eq!(read("(1.000000) can0 001#\na comment (of somebody) about can0 and 1#\n").1, 1);
}

/// A pcap of one packet of this link type.
fn pcap(caught: u32, length: u32, packet: &[u8]) -> Vec<u8> {
    let head = [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 227, 1, 0, caught, length];
    [head.map(u32::to_le_bytes).concat(), packet.to_vec()].concat()
}

#[test]
fn a_packet_that_is_no_frame_or_has_a_wide_identifier_is_told() {
    let frame = [&[0, 0, 0x12, 0x34, 1, 0, 0, 0, 0xaa][..], &[0; 7]].concat();
    let wide = seen(&pcap(16, 16, &frame));
    assert_eq!(
        (wide.frames[0].2.to_string().as_str(), wide.flawed),
        ("00001234#AA", vec![(Flawed::IDENTIFIER, 1)])
    );
    let longer = seen(&pcap(16, 9, &frame)).error.unwrap();
    assert!(longer.contains("a packet of 9 bytes with 16 of them"), "{longer}");
    let swallowed = seen(&pcap(80, 80, &[frame.clone(), vec![0; 64]].concat())).error.unwrap();
    assert!(swallowed.contains("a packet of 80 bytes, which is no frame"), "{swallowed}");
}

#[cfg(feature = "parquet")]
#[test]
fn a_data_set_is_read_once_whatever_links_lead_to_it() {
    let recording = Recording::write(named("parquet", FORMATS).unwrap(), &records(), "set");
    let vehicle = recording.path.join("vehicle=unknown");
    let date = fs::read_dir(&vehicle).unwrap().next().unwrap().unwrap().path();
    symlink(&date, vehicle.join("latest")).unwrap();
    (0..6).for_each(|n| symlink(".", recording.path.join(format!("loop{n}"))).unwrap());
    symlink("/nowhere", recording.path.join("nowhere")).unwrap();
    let seen = Seen::read(crate::open(&recording.path));
    assert_eq!((seen.error, seen.frames.len()), (None, records().len()));
}

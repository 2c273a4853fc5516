//! What a reader leaves out or cannot be sure of, it says: files as loggers, other programs and damage leave them.

#[cfg(feature = "parquet")]
use super::bounds::parquet_row;
use super::{PACKET, Recording, Seen, block, records, seen};
use crate::{
    FORMATS, Reader,
    format::{Flawed, LINE_BYTES_MAX},
    named,
};
use std::{fs, io::Cursor, os::unix::fs::symlink};

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

#[test]
fn a_pcapng_block_whose_two_lengths_differ_is_damage() {
    let section = block(0x0a0d_0d0a, &[&[0x1a, 0x2b, 0x3c, 0x4d, 0, 1, 0, 0][..], &[255; 8]].concat());
    let interface = block(1, &[0, 227, 0, 0, 0, 0, 0, 0]);
    let packet = block(6, &[&[0; 12][..], &[0, 0, 0, 16, 0, 0, 0, 16], &PACKET].concat());
    let read = |middle: &[u8]| {
        let seen = seen(&[&section, &interface, &packet, middle, &packet].concat());
        (seen.frames.len(), seen.error.map(|error| error.contains("a block whose two lengths differ")))
    };
    // A packet, and blocks of a type that is skipped: a small one, and one that is longer than any that is read.
    for (intact, frames) in [(packet.clone(), 3), (block(99, &[0; 8]), 2), (block(99, &vec![0; 2 << 20]), 2)]
    {
        let length = intact.len();
        assert_eq!(read(&intact), (frames, None), "{length}");
        let with = |at: usize, stated: usize| {
            let mut changed = intact.clone();
            changed[at..at + 4].copy_from_slice(&(stated as u32).to_be_bytes());
            changed
        };
        assert_eq!(read(&with(length - 4, length + 4)), (1, Some(true)), "{length}");
        // The packet behind it is in it.
        assert_eq!(read(&with(4, length + packet.len())), (1, Some(true)), "{length}");
    }
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

#[test]
fn a_comment_as_long_as_the_window_ends_at_its_own_line_break() {
    let behind = "(1.000000) can0 666#DEAD\n";
    for length in [LINE_BYTES_MAX - 1, LINE_BYTES_MAX, LINE_BYTES_MAX + 1, 256 << 10, 512 << 10] {
        // A window full of a comment, which goes on with what looks like a frame behind any byte.
        for end in ["", behind] {
            let text = format!("(0.000000) can0 001#\n#{}{end}{behind}", "x".repeat(length - 1));
            let (frames, comments, error) = read(&text);
            assert_eq!(frames, ["0 001#"], "{length}");
            assert_eq!(comments, u64::from(error.is_none()), "{length}: {error:?}");
            assert!(error.is_none_or(|error| error.contains("a line of more than 64 KiB")), "{length}");
        }
    }
    assert_eq!(read(&format!("(0.000000) can0 001#\n#{}\n{behind}", "x".repeat(LINE_BYTES_MAX - 1))).1, 1);
}

#[cfg(feature = "zstd")]
fn packed(bytes: &[u8]) -> Vec<u8> {
    zstd::bulk::compress(bytes, 3).unwrap()
}

#[cfg(feature = "zstd")]
#[test]
fn zstd_that_begins_with_a_frame_for_other_programs_is_read() {
    let zst =
        [&[0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 1, 2, 3, 4][..], &packed(b"(1.000000) can0 001#\n")].concat();
    let seen = seen(&zst);
    assert_eq!((seen.error, seen.frames.len()), (None, 1));
}

#[cfg(all(feature = "zstd", feature = "mdf"))]
#[test]
fn a_file_that_unpacks_to_more_than_a_thousand_times_its_size_is_refused() {
    let mdf = fs::read(Recording::write(named("mf4", FORMATS).unwrap(), &records(), "file").path).unwrap();
    let long = |bytes: usize| packed(&[&mdf[..], &vec![0; bytes]].concat());
    assert_eq!(seen(&long(1 << 20)).frames.len(), records().len());
    let error = seen(&long(20 << 20)).error.unwrap_or_default();
    assert!(error.contains(": unpack: more than 1000 times its size"), "{error}");
}

/// The BLF of [`records`].
fn blf() -> Vec<u8> {
    fs::read(Recording::write(named("blf", FORMATS).unwrap(), &records(), "file").path).unwrap()
}

#[test]
fn a_blf_of_fewer_objects_than_its_header_counts_is_damage_whatever_its_size() {
    let mut bytes = blf();
    let stated = u32::from_le_bytes(bytes[32..36].try_into().unwrap());
    for more in [0, 1, 2] {
        bytes[32..36].copy_from_slice(&(stated + more).to_le_bytes());
        let seen = seen(&bytes);
        assert_eq!(seen.frames.len(), records().len());
        assert_eq!(seen.error.is_none(), more == 0, "{more}: {:?}", seen.error);
        let said = format!("{stated} objects of the {} that the header counts", stated + more);
        assert!(seen.error.is_none_or(|error| error.contains(&said)), "{more}");
    }
}

#[test]
fn a_blf_that_was_not_closed_says_that_later_frames_may_be_missing() {
    let seen_with = |size: u64, count: u32| {
        let mut bytes = blf();
        bytes[16..24].copy_from_slice(&size.to_le_bytes());
        bytes[32..36].copy_from_slice(&count.to_le_bytes());
        let seen = seen(&bytes);
        assert_eq!((seen.error, seen.frames.len()), (None, records().len()));
        seen.flawed
    };
    let whole = blf();
    let (size, objects) = (whole.len() as u64, u32::from_le_bytes(whole[32..36].try_into().unwrap()));
    let unclosed = vec![(Flawed::UNCLOSED, records().len() as u64)];
    // Of a program that was killed, and of python-can, which writes the header's size at once.
    assert_eq!((seen_with(0, 0), seen_with(144, 0)), (unclosed.clone(), unclosed));
    // A program was killed while it appended to a file of all objects but the last.
    assert_eq!(seen_with(144, objects - 1), [(Flawed::UNCLOSED, 1)]);
    // One of both is enough to see a cut by.
    assert_eq!((seen_with(0, objects), seen_with(size, 0)), (vec![], vec![]));
}

#[test]
fn a_blf_with_an_impossible_date_says_that_its_stamps_are_no_dates() {
    let mut bytes = blf();
    bytes[42..44].copy_from_slice(&13u16.to_le_bytes()); // the month
    let seen = seen(&bytes);
    assert_eq!((seen.error, seen.flawed), (None, vec![(Flawed::DATE, records().len() as u64)]));
}

/// The Parquet file of [`records`], with some bytes replaced at each place.
#[cfg(feature = "parquet")]
fn parquet(old: &[u8], new: &[u8]) -> Vec<u8> {
    let format = named("parquet", FORMATS).unwrap();
    let recording = Recording::write(format, &records(), "set");
    let mut bytes = fs::read(recording.file(format).unwrap()).unwrap();
    let places: Vec<_> = memchr::memmem::find_iter(&bytes, old).collect();
    assert!(!places.is_empty());
    places.into_iter().for_each(|at| bytes[at..at + old.len()].copy_from_slice(new));
    bytes
}

#[cfg(feature = "parquet")]
#[test]
fn two_billion_truth_values_in_six_bytes_do_not_keep_a_reader_busy() {
    let format = named("parquet", FORMATS).unwrap();
    let recording = Recording::write(format, &records(), "set");
    let whole = fs::read(recording.file(format).unwrap()).unwrap();
    let (rest, end) = whole.split_at(whole.len() - 8);
    // Field 15 of what the file says of itself, which nobody knows, before the byte that ends it; and 7 bytes more of that.
    let list = [0x89, 0xf1, 0xff, 0xff, 0xff, 0xff, 7];
    let length = u32::from_le_bytes(end[..4].try_into().unwrap()) + 7;
    let bytes = [&rest[..rest.len() - 1], &list, &[0], &length.to_le_bytes(), b"PAR1"].concat();
    let error = seen(&bytes).error.unwrap_or_default();
    assert!(error.contains("what it says of itself at its end cannot be read"), "{error}");
}

#[cfg(feature = "parquet")]
#[test]
fn a_parquet_file_packed_by_another_method_is_not_called_damaged() {
    // In the description of each column: the method (6 is zstd, 1 snappy), then the number of values.
    let error = seen(&parquet(&[0x15, 12, 0x16], &[0x15, 2, 0x16])).error.unwrap_or_default();
    assert!(error.contains("is compressed by snappy, which canter does not read"), "{error}");
}

/// Checks that the stamps of [`records`] are taken for local time.
#[cfg(any(feature = "mdf", feature = "parquet"))]
fn assert_local(bytes: &[u8]) {
    let read = |zone: &str| {
        let reader = Reader::from_read("test", Box::new(Cursor::new(bytes.to_vec())), FORMATS).unwrap();
        let mut reader = reader.zone(zone.parse().unwrap());
        let first = reader.next_record().unwrap().unwrap().stamp_ns;
        (first, reader.zone_used())
    };
    let first_ns = records()[0].stamp_ns;
    assert_eq!(read("UTC"), (first_ns, true));
    assert_eq!(read("+01:00"), (first_ns - 3_600_000_000_000, true));
}

#[cfg(feature = "parquet")]
#[test]
fn local_stamps_of_parquet_are_those_of_the_zone() {
    // The type of the stamps: whether they are in UTC, and ns.
    assert_local(&parquet(&[0x8c, 0x11, 0x1c, 0x3c], &[0x8c, 0x12, 0x1c, 0x3c]));
}

#[cfg(feature = "mdf")]
#[test]
fn data_groups_of_an_mdf_to_which_no_link_leads_are_counted() {
    let mut bytes =
        fs::read(Recording::write(named("mf4", FORMATS).unwrap(), &records(), "file").path).unwrap();
    let intact = seen(&bytes);
    let first = bytes[88..96].first_chunk().map(|link| u64::from_le_bytes(*link)).unwrap() as usize;
    assert_eq!(&bytes[first..first + 4], b"##DG");
    bytes[first + 24..first + 32].fill(0); // the link to the next one
    let damaged = seen(&bytes);
    assert!(damaged.frames.len() < intact.frames.len());
    let said = ("data groups to which no link leads (a damaged file?)", 2);
    assert_eq!((damaged.error, damaged.skipped_by_kind), (None, vec![said]));
}

#[cfg(feature = "mdf")]
#[test]
fn an_mdf_that_begins_at_a_local_time_has_the_stamps_of_the_zone() {
    let mut bytes =
        fs::read(Recording::write(named("mf4", FORMATS).unwrap(), &records(), "file").path).unwrap();
    assert_eq!(&bytes[64..68], b"##HD");
    bytes[148] = 1; // hd_time_flags, behind the header's head, six links, the start and its two offsets
    assert_local(&bytes);
}

/// A data set of two files with a frame each, and these columns beside those of a frame.
#[cfg(feature = "parquet")]
fn parquet_with(others: &str) -> Seen {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.parquet", "b.parquet"] {
        parquet_row(&folder.path().join(name), others, None);
    }
    Seen::read(crate::open(folder.path()))
}

#[cfg(feature = "parquet")]
#[test]
fn a_column_of_parquet_that_canter_reads_from_folders_is_refused() {
    for name in ["bus", "vehicle"] {
        let error = parquet_with(&format!("optional binary {name};")).error.unwrap_or_default();
        let said = format!("has a column {name}, which canter reads from folders only");
        assert!(error.contains(&said), "{error}");
    }
}

#[cfg(feature = "parquet")]
#[test]
fn each_other_column_of_parquet_is_counted_once() {
    let seen = parquet_with("optional binary date; required int32 driver;");
    assert_eq!((seen.error, seen.frames.len()), (None, 2));
    assert_eq!(seen.skipped_by_kind, [("other columns", 2)]);
}

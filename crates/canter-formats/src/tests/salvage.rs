//! What is readable of a damaged file: the frames before the damage, in formats with a sign of the next entry those behind
//! it too, and never a frame that was not written.

use super::{Kept, Recording, Seen, all, is_text, kept};
use crate::{BusId, Direction, FORMATS, Frame, Reader, Record};
use proptest::prelude::*;
use std::{
    fs,
    io::{Cursor, Read},
};

fn salvaged(bytes: &[u8]) -> Seen {
    let reader = Reader::from_read("test", Box::new(Cursor::new(bytes.to_vec())), FORMATS);
    Seen::read(reader.map(|reader| reader.salvage(true)))
}

/// Frames of each kind on three buses; many of them have zeros at their ends, as the blocks of a disk that were never
/// written.
fn entries(count: u64) -> Vec<Record> {
    let texts =
        ["123#1122", "12345678#0102030405060000", "7FF#R4", "123##300000000000000000000", "0A5#", "000#00"];
    let entry = |at: u64| Record {
        stamp_ns: 1_700_000_000_000_000_000 + at * 7_000_000,
        bus: BusId(at as u32 % 3),
        frame: texts[at as usize % texts.len()].parse::<Frame>().unwrap(),
        direction: Some(if at.is_multiple_of(2) { Direction::Received } else { Direction::Sent }),
    };
    (0..count).map(entry).collect()
}

/// A pcap file, which canter only reads: of LINKTYPE_CAN_SOCKETCAN, in µs.
fn pcap(entries: &[Record]) -> Vec<u8> {
    let mut bytes =
        vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 227, 0, 0, 0];
    for entry in entries {
        let mut frame = entry.frame.kernel_bytes()[..entry.frame.mtu()].to_vec();
        frame[..4].reverse(); // the identifier is big endian
        let length = (frame.len() as u32).to_le_bytes();
        let (seconds, us) = (entry.stamp_ns / 1_000_000_000, entry.stamp_ns % 1_000_000_000 / 1000);
        bytes.extend([(seconds as u32).to_le_bytes(), (us as u32).to_le_bytes(), length, length].concat());
        bytes.extend(frame);
    }
    bytes
}

/// The file of each format with these frames, and the frames as the format keeps them.
fn files(entries: &[Record]) -> Vec<(&'static str, Vec<u8>, Vec<Kept>)> {
    let mut files = vec![(
        "pcap",
        pcap(entries),
        Seen::read(Reader::from_read("", Box::new(Cursor::new(pcap(entries))), FORMATS)).frames,
    )];
    for format in all() {
        let recording = Recording::write(format, entries, "file");
        let bytes = fs::read(recording.file(format).unwrap()).unwrap();
        // Of a data set one part is damaged, and it has no name for its bus.
        let frames = match format.writes_folder() {
            true => salvaged(&bytes).frames,
            false => entries.iter().map(|entry| kept(format, entry)).collect(),
        };
        assert_eq!(salvaged(&bytes).salvaged, None, "{}", format.name);
        files.push((format.name, bytes, frames));
    }
    files
}

/// Formats that describe their content at the end: nothing of them is readable without it.
const NEEDS_ITS_END: [&str; 2] = ["mf4", "parquet"];

#[test]
fn of_a_file_that_is_cut_off_at_any_byte_the_frames_before_are_read_and_no_other() {
    for (name, file, want) in files(&entries(14)) {
        let mut most = 0;
        for at in 1..file.len() {
            let seen = salvaged(&file[..at]);
            assert!(want.starts_with(&seen.frames), "{name} at {at}: {:?}", seen.frames);
            assert!(
                seen.error.is_none() || seen.frames.is_empty() && at < 200,
                "{name} at {at}: {:?}",
                seen.error
            );
            assert!(!seen.cut, "{name} at {at}: said once");
            assert!(seen.frames.len() >= most || NEEDS_ITS_END.contains(&name), "{name} at {at}");
            most = most.max(seen.frames.len());
            // What is read without it is read with it.
            let without = super::seen(&file[..at]);
            assert!(seen.frames.starts_with(&without.frames), "{name} at {at}");
            assert_eq!(without.cut, seen.salvaged.is_some(), "{name} at {at}: {:?}", seen.salvaged);
        }
        let expected = if NEEDS_ITS_END.contains(&name) { 0 } else { want.len() - 1 };
        assert!(most >= expected, "{name}: {most} frames");
    }
}

#[test]
fn of_a_file_whose_tail_was_never_written_the_frames_before_are_read_and_no_other() {
    for (name, file, want) in files(&entries(14)) {
        for at in 1..file.len() {
            for fill in [0x00, 0xff, 0xa5, b'0'] {
                let mut bytes = file.clone();
                bytes[at..].fill(fill);
                bytes.extend([fill; 3000]);
                let seen = salvaged(&bytes);
                assert!(want.starts_with(&seen.frames), "{name} at {at}, {fill:#x}: {:?}", seen.frames);
                let known = seen.error.is_none() || seen.frames.is_empty() && at < 600;
                assert!(known, "{name} at {at}, {fill:#x}: {:?}", seen.error);
            }
        }
    }
}

/// The frames of a file with damage in its middle, and the sentence of `salvaged`.
fn frames(bytes: &[u8]) -> (Vec<String>, String) {
    let seen = salvaged(bytes);
    assert_eq!((seen.error, seen.cut), (None, false));
    let frames =
        seen.frames.iter().map(|(stamp, _, frame, _)| format!("{} {frame}", stamp % 1_000_000_000)).collect();
    (frames, seen.salvaged.unwrap_or_default())
}

#[test]
fn of_each_text_a_damaged_line_costs_its_own_frame_and_no_other() {
    let texts = files(&entries(60)).into_iter().filter(|(_, file, _)| is_text(file));
    let mut formats = 0;
    for (name, file, want) in texts {
        let lines: Vec<&[u8]> = file.split_inclusive(|&byte| byte == b'\n').collect();
        let damaged = lines.len() / 2;
        let mut bytes = file.clone();
        let begin: usize = lines[..damaged].iter().map(|line| line.len()).sum();
        bytes[begin..begin + lines[damaged].len() - 1].fill(1);
        let seen = salvaged(&bytes);
        assert_eq!((seen.error, seen.frames.len()), (None, want.len() - 1), "{name}: {:?}", seen.salvaged);
        let lost = want.iter().filter(|frame| !seen.frames.contains(frame)).count();
        assert_eq!(lost, 1, "{name}");
        formats += 1;
    }
    assert!(formats >= 3, "log, asc and csv at the least");
}

#[test]
fn of_text_only_damaged_lines_are_skipped() {
    let log = "(1.000000001) can0 001#\n(1.000000002) can0 12345#\n(1.000000003) can0 003#\n(1.0000????\n(1.000000005) can0 005#\n(1.0";
    let (read, sentence) = frames(log.as_bytes());
    assert_eq!(read, ["1 001#", "3 003#", "5 005#"]);
    let want = "test: 3 frames were read, 3 damaged places of 42 bytes were skipped, the first at line 2, byte 24: position 19: expected an identifier";
    assert!(sentence.starts_with(want), "{sentence}");

    let csv = "stamp,interface,id,extended,rtr,fd,brs,esi,error,dlc,len,data,direction\n1.0,can0,1,0,0,0,0,0,0,0,0,,\n\x01\n1.000000003,can0,3,0,0,0,0,0,0,0,0,,\n";
    let (read, sentence) = frames(csv.as_bytes());
    assert_eq!(read, ["0 001#", "3 003#"]);
    assert_eq!(
        sentence,
        "test: 2 frames were read, 2 bytes from line 3, byte 101 on were skipped: no stamp of seconds and up to 9 digits"
    );

    let asc = |base: &str| {
        format!(
            "date Tue Nov 14 10:13:20.000 pm 2023\nbase hex  timestamps {base}\n   0.1 1  1  Rx   d 0\n   0.1 1  2  Rx   d 3 1\n   0.1 1  3  Rx   d 0\n"
        )
    };
    assert_eq!(frames(asc("absolute").as_bytes()).0, ["100000000 001#", "100000000 003#"]);
    // The stamp of the third would be wrong.
    assert_eq!(frames(asc("relative").as_bytes()).0, ["100000000 001#"]);
    // A line that is longer than any of a recording.
    let long = [
        b"(1.000000001) can0 001#\n".to_vec(),
        vec![0; 200_000],
        b"(1.000000002) can0 002#\n(1.000000003) can0 003#\n".to_vec(),
    ]
    .concat();
    assert_eq!(frames(&long).0, ["1 001#", "3 003#"]);
}

#[test]
fn of_a_pcapng_a_damaged_packet_is_skipped_and_reading_ends_where_no_block_is() {
    let (_, file, want) = files(&entries(14)).into_iter().find(|(name, ..)| *name == "pcapng").unwrap();
    let packets: Vec<usize> =
        (0..file.len() - 8).step_by(4).filter(|&at| file[at..at + 4] == [6, 0, 0, 0]).collect();
    assert_eq!(packets.len(), 14);
    let mut bytes = file.clone();
    bytes[packets[5] + 20..packets[5] + 24].fill(0x77); // more bytes than the block has
    let (read, sentence) = frames(&bytes);
    assert_eq!(read.len(), 13);
    assert!(
        sentence.contains("a packet longer than its block") && sentence.contains("13 frames were read, "),
        "{sentence}"
    );
    assert!(super::seen(&bytes).error.is_some(), "without it, an error");
    bytes[packets[9] + 4] = 3; // a length that is none
    let seen = salvaged(&bytes);
    assert_eq!((&seen.frames[..5], &seen.frames[5..]), (&want[..5], &want[6..9]));
    assert!(seen.salvaged.unwrap().contains("2 damaged places of "));
    // Without the block that names an interface, packets would be taken for another one's.
    let interface =
        (0..file.len() - 8).step_by(4).find(|&at| at >= 28 && file[at..at + 4] == [1, 0, 0, 0]).unwrap();
    let mut bytes = file;
    bytes[interface + 4] = 3;
    assert_eq!(salvaged(&bytes).frames, []);
}

#[test]
fn of_a_blf_the_containers_before_and_behind_a_damaged_one_are_read() {
    let entries = entries(12_000);
    let (_, file, want) = files(&entries).into_iter().find(|(name, ..)| *name == "blf").unwrap();
    let container = [&b"LOBJ\x10\0\x01\0"[..]].concat();
    let starts: Vec<usize> =
        memchr::memmem::find_iter(&file, &container).filter(|at| file[at + 12] == 10).collect();
    assert!(starts.len() > 4, "{starts:?}");
    let damages: [(usize, &[u8]); 4] = [
        (starts[2] + 1000, &[0; 512]), // a sector
        (starts[2], &[0; 512]),
        (starts[2] + 8, &[0xff; 4]), // a length
        (starts[2] + 1000, b"LOBJ\x10\0\x01\0\x40\0\0\0\x0a\0\0\0\x02\0\0\0\0\0\0\0LOBJLOBJLOBJ"),
    ];
    for (at, damage) in damages {
        let mut bytes = file.clone();
        bytes[at..at + damage.len()].copy_from_slice(damage);
        let seen = salvaged(&bytes);
        let before = seen.frames.iter().zip(&want).take_while(|(seen, want)| seen == want).count();
        let lost = want.len() - seen.frames.len();
        assert_eq!(seen.frames[before..], want[before + lost..], "{:?}", seen.salvaged);
        assert!(
            before > 2000 && lost < 5000 && before + lost < 11_000,
            "{before} {lost} {:?}",
            seen.salvaged
        );
        assert!(super::seen(&bytes).error.is_some(), "without it, an error");
    }
}

#[test]
fn of_a_blf_an_object_that_cannot_be_read_costs_itself_only() {
    let (_, file, want) = files(&entries(14)).into_iter().find(|(name, ..)| *name == "blf").unwrap();
    let mut objects = Vec::new();
    flate2::read::ZlibDecoder::new(&file[144 + 32..]).read_to_end(&mut objects).unwrap();
    let mut bytes = [&file[..144], &objects].concat();
    bytes[16..24].fill(0); // the size in the header
    let starts: Vec<usize> = memchr::memmem::find_iter(&bytes, b"LOBJ").collect();
    // A classic frame, the fifth object of its kind, becomes an error frame, for which it is too short.
    let classic: Vec<usize> = starts.into_iter().filter(|at| bytes[at + 12] == 1).collect();
    bytes[classic[4] + 12] = 73;
    assert!(super::seen(&bytes).error.unwrap_or_default().contains("too short"), "without it, an error");
    let seen = salvaged(&bytes);
    assert_eq!((seen.error, seen.frames.len()), (None, want.len() - 1), "{:?}", seen.salvaged);
    assert!(seen.salvaged.unwrap().contains("an object of type 73 that is too short"));
}

#[test]
fn a_blf_whose_head_is_damaged_has_no_frame_and_an_end() {
    let (_, mut bytes, _) = files(&entries(40)).into_iter().find(|(name, ..)| name.contains("blf")).unwrap();
    bytes[4..8].fill(0xff); // the head's length
    let seen = salvaged(&bytes);
    assert!(seen.frames.is_empty() && seen.salvaged.unwrap().contains("a head of 4294967295 bytes"));
}

#[test]
fn of_a_data_set_all_parts_but_the_damaged_one_are_read() {
    let Some(format) = crate::named("parquet", FORMATS) else { return };
    let recording = Recording::write(format, &entries(30), "set");
    let part = recording.file(format).unwrap();
    let mut bytes = fs::read(&part).unwrap();
    bytes[4..40].fill(0x5a); // the first page
    fs::write(&part, bytes).unwrap();
    let seen = Seen::read(crate::open(&recording.path).map(|reader| reader.salvage(true)));
    assert_eq!((seen.error, seen.frames.len()), (None, 20), "{:?}", seen.salvaged);
    let sentence = seen.salvaged.unwrap();
    assert!(
        sentence.contains("20 frames were read, what follows ") && sentence.contains("bus=can0"),
        "{sentence}"
    );
    assert!(Seen::read(crate::open(&recording.path)).error.is_some(), "without it, an error");
}

/// 50 000 frames in a packed candump log, and the offset of a block of it in its middle.
fn packed_log(level: flate2::Compression) -> (Vec<u8>, usize) {
    use std::io::Write;
    let line = |at: u32| format!("({}.{:06}) can0 {:03X}#\n", 1 + at / 1_000_000, at, at % 0x800);
    let half = |from: u32| (from..from + 25_000).map(line).collect::<String>();
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), level);
    gz.write_all(half(0).as_bytes()).unwrap();
    gz.flush().unwrap(); // the next block begins with a byte
    let middle = gz.get_ref().len();
    gz.write_all(half(25_000).as_bytes()).unwrap();
    (gz.finish().unwrap(), middle)
}

#[test]
fn of_a_packed_file_what_was_unpacked_before_the_damage_is_read() {
    let (mut bytes, middle) = packed_log(flate2::Compression::fast());
    bytes[middle] = 0x07; // a block of the type that does not exist
    let (read, sentence) = frames(&bytes);
    // What the decompressor had in its window when it came there is lost.
    assert!((20_000..=25_000).contains(&read.len()), "{sentence}");
    assert!(sentence.contains(": unpack: "), "{sentence}");
}

#[test]
fn a_packed_file_whose_checksum_is_wrong_is_damaged_although_every_line_reads_well() {
    let (mut bytes, middle) = packed_log(flate2::Compression::none());
    let digit = middle - 10;
    assert_eq!(frames(&bytes).1, "");
    let digit = (0..digit).rev().find(|&at| bytes[at..].starts_with(b"1#")).unwrap();
    bytes[digit] = b'2';
    assert!(super::seen(&bytes).error.is_some_and(|error| error.contains(": unpack: ")));
    let (read, sentence) = frames(&bytes);
    assert_eq!(read.len(), 50_000, "{sentence}");
    assert!(sentence.contains(": unpack: "), "{sentence}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn damage_anywhere_neither_hangs_a_reader_nor_makes_it_panic_nor_is_an_error(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 1..40usize), 1..6),
    ) {
        for (name, mut bytes, _) in files(&entries(40)) {
            for (place, value, count) in &damage {
                let at = place.index(bytes.len());
                let end = bytes.len().min(at + count);
                bytes[at..end].fill(*value);
            }
            let seen = salvaged(&bytes);
            prop_assert!(seen.error.is_none() || seen.frames.is_empty(), "{name}: {:?}", seen.error);
            prop_assert!(seen.frames.len() <= 40, "{name}");
        }
    }
}

#[cfg(feature = "mdf")]
#[test]
fn of_an_mdf_with_a_damaged_block_the_blocks_before_are_read_and_the_error_has_its_place() {
    let entry = |at: u64| Record { stamp_ns: at * 1_000_000, ..entries(1)[0] };
    let entries: Vec<Record> = (0..60_000).map(entry).collect();
    let format = all().find(|format| format.name == "mf4").unwrap();
    let mut bytes = fs::read(Recording::write(format, &entries, "file").path).unwrap();
    let blocks: Vec<usize> = memchr::memmem::find_iter(&bytes, b"##DZ").collect();
    assert_eq!(blocks.len(), 4);
    let rows = u64::from_le_bytes(bytes[blocks[0] + 32..][..8].try_into().unwrap()) as usize / 28;
    bytes[blocks[2] + 1000..][..100].fill(0xFF);
    for seen in [super::seen(&bytes), salvaged(&bytes)] {
        assert_eq!(seen.frames.len(), 2 * rows, "{:?}", seen.error);
        let said = seen.error.or(seen.salvaged).unwrap_or_default();
        assert!(said.contains(&format!("byte {}", blocks[2])), "{said}");
    }
}

//! No reader shortens a frame in silence: whatever a length field says, the frame is intact, or its flaw is counted.

use super::{Recording, Seen, all, is_text, seeds, seen};
use crate::{BusId, FORMATS, Format, Frame, Record, fields::Fields, format::Flawed, named};
use canter_frame::{Identifier, frame::len_of_dlc};
use flate2::read::ZlibDecoder;
use proptest::prelude::*;
use std::{fs, io::Read, ops::Range, path::PathBuf};

/// Frames of every length, classic, FD and remote. No byte of data is 0, so that a lost one is seen.
fn frames() -> Vec<Frame> {
    let data: Vec<u8> = (0..64).map(|at| 0xa0 | at).collect();
    let id = Identifier::Eff(0x1234_5678);
    let classic = (0..9).map(|len| Frame::classic(id, &data[..len]).unwrap());
    let fd = (0..16).map(|dlc| Frame::fd(id, &data[..len_of_dlc(dlc)], 1).unwrap());
    classic.chain(fd).chain([Frame::rtr(id, 0).unwrap(), Frame::rtr(id, 8).unwrap()]).collect()
}

fn file_of(format: &'static Format, frame: Frame) -> Vec<u8> {
    let entry = Record { stamp_ns: 1_700_000_000_000_000_000, bus: BusId(0), frame, direction: None };
    fs::read(Recording::write(format, &[entry], "file").path).unwrap()
}

/// Values that a damaged length may have: limits, their neighbours, and the old one with one bit changed.
fn values(old: u8, text: bool) -> Vec<u8> {
    if text {
        return b"0123456789abcdefABCDEF".to_vec();
    }
    let limits = [0, 1, 4, 7, 8, 9, 12, 15, 16, 17, 24, 47, 48, 63, 64, 65, 127, 128, 255];
    limits.into_iter().chain((0..8).map(|bit| old ^ 1 << bit)).collect()
}

/// Changes each byte of a range and checks what is read. `uncheckable`: offsets of lengths that nothing in the file can
/// contradict.
fn check(name: &str, frame: &Frame, file: &[u8], range: Range<usize>, uncheckable: &[usize], text: bool) {
    assert_eq!(seen(file).frames[0].2, *frame, "{name}");
    let mut bytes = file.to_vec();
    for at in range.filter(|at| !uncheckable.contains(at)) {
        for value in values(file[at], text) {
            bytes[at] = value;
            let Seen { frames, cut, error, skipped, flawed, .. } = seen(&bytes);
            let reported = error.is_some() || cut || !flawed.is_empty();
            let read = frames.first().map(|(_, _, frame, _)| frame);
            let intact = match read {
                Some(_) if frame.is_rtr() => true, // it has no data
                Some(read) => read.len >= frame.len && read.data().len() >= frame.data().len(),
                None => skipped > 0,
            };
            // A byte may become the mark of a remote frame, which carries no data.
            let remote = read.is_some_and(Frame::is_rtr) && !frame.is_rtr();
            assert!(
                reported || intact || remote,
                "{name}: {frame}: byte {at} = {value:#x}: read as {read:?} and nothing was reported"
            );
        }
        bytes[at] = file[at];
    }
}

/// Checks a format in which every byte may be changed.
fn check_format(name: &'static str, text: bool, uncheckable: impl Fn(&[u8]) -> Vec<usize>) {
    let format = named(name, FORMATS).unwrap();
    for frame in frames() {
        let file = file_of(format, frame);
        check(name, &frame, &file, 0..file.len(), &uncheckable(&file), text);
    }
}

fn position(bytes: &[u8], what: &[u8]) -> usize {
    bytes.windows(what.len()).position(|window| window == what).unwrap()
}

/// The texts that canter writes.
fn texts() -> impl Iterator<Item = &'static Format> {
    let text = |format: &&'static Format| !format.writes_folder() && is_text(&file_of(format, frames()[1]));
    all().filter(text)
}

#[test]
fn text_with_any_digit_changed_has_whole_frames_or_says_so() {
    // Names and stamps have digits, too: their change shortens nothing.
    for format in texts() {
        check_format(format.name, true, |_| Vec::new());
    }
}

#[test]
fn pcapng_with_any_byte_changed_has_whole_frames_or_says_so() {
    check_format("pcapng", false, |file| {
        let packet = position(file, &[0x34, 0x56, 0x78]) - 1;
        // A packet has one length, and the kernel leaves anything in the bytes after it. The block's type is another entry.
        vec![packet + 4, packet - 28]
    });
}

/// A BLF with its containers unpacked.
fn unpacked_blf(packed: &[u8]) -> (Vec<u8>, Range<usize>) {
    let (mut bytes, mut at) = (packed[..144].to_vec(), 144);
    while at + 32 <= packed.len() {
        let length = u32::from_le_bytes(packed[at + 8..at + 12].try_into().unwrap()) as usize;
        let mut head = packed[at..at + 32].to_vec();
        let mut objects = Vec::new();
        ZlibDecoder::new(&packed[at + 32..at + length]).read_to_end(&mut objects).unwrap();
        head[8..12].copy_from_slice(&(32 + objects.len() as u32).to_le_bytes());
        head[16..18].fill(0);
        bytes.extend(head);
        bytes.extend(objects);
        at += length + length % 4;
    }
    let end = bytes.len();
    bytes[16..24].copy_from_slice(&(end as u64).to_le_bytes());
    (bytes, 176..end)
}

#[test]
fn blf_with_any_byte_changed_has_whole_frames_or_says_so() {
    for frame in frames() {
        let (file, mut objects) = unpacked_blf(&file_of(named("blf", FORMATS).unwrap(), frame));
        // After canter's note of the channel's name comes the frame's object.
        let object =
            objects.start + file[objects.clone()].windows(4).rposition(|four| four == b"LOBJ").unwrap();
        objects.start = object;
        // Of another type, the object is another one. CAN_MESSAGE has one length.
        let mut uncheckable = vec![object + 12];
        uncheckable.extend((file[object + 12] == 1).then_some(object + 35));
        check("blf", &frame, &file, objects, &uncheckable, false);
    }
}

/// An MDF whose only records are not packed, and the range of their bytes.
fn unpacked_mdf(packed: &[u8]) -> (Vec<u8>, Range<usize>) {
    let mut bytes = packed.to_vec();
    let at = position(packed, b"##DZ");
    let number = |at: usize| u64::from_le_bytes(packed[at..at + 8].try_into().unwrap());
    let mut records = Vec::new();
    ZlibDecoder::new(&packed[at + 48..at + 48 + number(at + 40) as usize]).read_to_end(&mut records).unwrap();
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    let data = bytes.len();
    bytes.extend(b"##DT\0\0\0\0");
    bytes.extend((24 + records.len() as u64).to_le_bytes());
    bytes.extend([0; 8]);
    let start = bytes.len();
    bytes.extend(&records);
    // The list of data blocks follows its only block.
    let list = at + position(&packed[at..], b"##DL");
    let link = (list..packed.len() - 8).step_by(8).find(|&place| number(place) == at as u64).unwrap();
    bytes[link..link + 8].copy_from_slice(&(data as u64).to_le_bytes());
    let end = bytes.len();
    (bytes, start..end)
}

#[cfg(feature = "mdf")]
#[test]
fn mdf_records_with_any_byte_changed_are_whole_frames_or_say_so() {
    for frame in frames().into_iter().filter(|frame| frame.is_fd() || frame.len > 5 || frame.is_rtr()) {
        let (file, records) = unpacked_mdf(&file_of(named("mf4", FORMATS).unwrap(), frame));
        // The length that a remote frame asks for is its DLC only.
        if !frame.is_rtr() {
            check("mf4", &frame, &file, records, &[], false);
        }
    }
}

#[cfg(feature = "mdf")]
#[test]
fn mdf_records_behind_identifiers_are_read_and_those_of_another_group_are_refused() {
    let frame = Frame::classic(Identifier::Sff(0x123), &[1, 2, 3]).unwrap();
    let (mut bytes, records) = unpacked_mdf(&file_of(named("mf4", FORMATS).unwrap(), frame));
    // The data group of these records follows their blocks.
    let list = position(&bytes, b"##HL");
    let group = list + position(&bytes[list..], b"##DG");
    assert_eq!(bytes[group + 56], 0, "no identifiers");
    bytes[group + 56] = 1;
    bytes.insert(records.start, 0);
    let length = (24 + 1 + records.len() as u64).to_le_bytes();
    bytes[records.start - 16..records.start - 8].copy_from_slice(&length);
    let read = seen(&bytes);
    assert_eq!((read.error, read.frames.len()), (None, 1));
    assert_eq!(read.frames[0].2, frame);
    bytes[records.start] = 7;
    let error = seen(&bytes).error.unwrap_or_default();
    assert!(error.contains("a record of another group"), "{error}");
}

/// Where the channel of this name stands.
#[cfg(feature = "mdf")]
fn channel(bytes: &[u8], name: &str) -> usize {
    let text = position(bytes, format!("{name}\0").as_bytes()) - 24;
    let is = |at: &usize| {
        bytes[*at..].starts_with(b"##CN") && bytes[at + 40..at + 48] == (text as u64).to_le_bytes()
    };
    (0..bytes.len() - 48).step_by(8).find(is).unwrap()
}

#[cfg(feature = "mdf")]
#[test]
fn mdf_values_that_are_marked_as_invalid_are_told_and_those_of_a_formula_are_refused() {
    const LINKS: usize = 24 + 8 * 8;
    let frame = Frame::classic(Identifier::Sff(0x123), &[1, 2, 3]).unwrap();
    let (mut bytes, records) = unpacked_mdf(&file_of(named("mf4", FORMATS).unwrap(), frame));
    let id = channel(&bytes, "CAN_DataFrame.ID");
    let mut formula = bytes.clone();
    let at = formula.len().next_multiple_of(8);
    formula.resize(at, 0);
    formula.extend(b"##CC\0\0\0\0");
    formula.extend([96u64, 4, 0, 0, 0, 0, 1].map(u64::to_le_bytes).concat()); // no links, linear
    formula.extend([0.0f64, 0.0, 0.0, 2.0].map(f64::to_le_bytes).concat()); // x doubled
    formula[id + 24 + 4 * 8..id + 24 + 5 * 8].copy_from_slice(&(at as u64).to_le_bytes());
    assert_eq!(seen(&formula).frames[0].2.id(), Identifier::Sff(0x246), "linear numbers are read");
    formula[at + 56] = 2;
    let error = seen(&formula).error.unwrap_or_default();
    assert!(error.contains("CAN_DataFrame.ID: has a conversion of type 2"), "{error}");

    bytes[id + LINKS + 12] = 2; // may be invalid, by the first bit
    let group = position(&bytes, b"##CG");
    bytes[group + 100] = 1; // one byte of such bits
    bytes.push(0);
    let length = (24 + 1 + records.len() as u64).to_le_bytes();
    bytes[records.start - 16..records.start - 8].copy_from_slice(&length);
    let read = seen(&bytes);
    assert_eq!((read.error, read.frames.len(), read.flawed), (None, 1, vec![]));
    *bytes.last_mut().unwrap() = 1;
    let read = seen(&bytes);
    assert_eq!((read.frames.len(), read.flawed), (1, vec![(Flawed::INVALID, 1)]));
}

#[test]
fn requests_to_send_of_a_blf_are_counted_and_not_read_as_frames() {
    for data in [&[1, 2, 3][..], &[7; 64]] {
        let frame = match data.len() {
            3 => Frame::classic(Identifier::Sff(0x123), data).unwrap(),
            _ => Frame::fd(Identifier::Sff(0x123), data, 0).unwrap(),
        };
        let (mut bytes, objects) = unpacked_blf(&file_of(named("blf", FORMATS).unwrap(), frame));
        let object = objects.start + bytes[objects].windows(4).rposition(|four| four == b"LOBJ").unwrap();
        for (direction, frames, requests) in [(0, 1, 0), (1, 1, 0), (2, 0, 1)] {
            bytes[object + 34] = direction;
            let read = seen(&bytes);
            assert_eq!((read.frames.len(), read.skipped), (frames, requests), "direction {direction}");
        }
    }
}

#[test]
fn fd_objects_of_a_blf_keep_every_dlc_of_classic_and_fd_frames() {
    let data: Vec<u8> = (1..=64).collect();
    let written = Frame::fd(Identifier::Sff(0x123), &data, 0).unwrap();
    let (bytes, objects) = unpacked_blf(&file_of(named("blf", FORMATS).unwrap(), written));
    let object = objects.start + bytes[objects].windows(4).rposition(|four| four == b"LOBJ").unwrap();
    for dlc in 0..16u8 {
        // In this object a mark says that the frame is FD; without it, a DLC above 8 means 8 bytes (ISO 11898-1).
        for (edl, len) in [(1, len_of_dlc(dlc)), (0, usize::from(dlc.min(8)))] {
            let mut bytes = bytes.clone();
            (bytes[object + 35], bytes[object + 45], bytes[object + 46]) = (dlc, edl, len as u8);
            let read = seen(&bytes);
            assert_eq!((read.error, read.flawed), (None, vec![]), "DLC {dlc}, mark {edl}");
            let frame = read.frames[0].2;
            assert_eq!((frame.is_fd(), frame.data()), (edl == 1, &data[..len]), "DLC {dlc}, mark {edl}");
            assert_eq!(frame.len8_dlc, if edl == 0 && dlc > 8 { dlc } else { 0 });
        }
    }
}

proptest! {
    /// What CSV and Parquet store: no combination of columns becomes a frame with less data than the data column.
    #[test]
    fn columns_become_a_frame_with_all_of_its_data_or_are_refused(
        id in 0..0x800u32,
        flags: [bool; 6],
        dlc in 0..17u8,
        len in prop_oneof![0..9u8, Just(12), Just(64), Just(65)],
        data in prop::collection::vec(any::<u8>(), 0..65),
        agree: bool,
    ) {
        let [extended, rtr, fd, brs, esi, error] = flags;
        let data = if agree { &data[..data.len().min(len.into())] } else { &data };
        let fields = Fields { id, extended, rtr, fd, brs, esi, error, dlc, len };
        if let Ok(frame) = fields.frame(data) {
            prop_assert_eq!(frame.data(), data);
        }
    }
}

fn flaws(text: &str) -> (Vec<String>, Vec<(&'static str, u64)>) {
    let seen = seen(text.as_bytes());
    assert_eq!(seen.error, None);
    (seen.frames.iter().map(|(_, _, frame, _)| frame.to_string()).collect(), seen.flawed)
}

#[test]
fn an_fd_line_of_an_asc_that_is_not_marked_as_fd_keeps_its_64_bytes() {
    let data: Vec<String> = (0..64).map(|at| format!("{:02X}", at + 1)).collect();
    let line = |flags: &str| {
        let data = data.join(" ");
        format!(
            "date Sam Sep 30 15:06:13.191 2017\nbase hex  timestamps absolute\n   30.506898 CANFD   4 Rx        4EE    0 1 f 64 {data} 1331984 11 {flags} 46500250 460a0250 20011736 20010205\n"
        )
    };
    for flags in ["0", "303000"] {
        let (frames, flaws) = flaws(&line(flags));
        assert_eq!(frames, [format!("4EE##6{}", data.concat())]);
        assert_eq!(flaws, []);
    }
}

#[test]
fn asc_frames_whose_dlc_and_data_differ_are_counted() {
    let text = "\
date Tue Nov 14 10:13:20.500 pm 2023
base hex  timestamps absolute
   0.1 1  123             Rx   d 2 11 22 33 44 55 66 77 88  Length = 0 BitCount = 64 ID = 291
   0.2 1  123             Rx   d 2 11 22  Length = 0 BitCount = 64 ID = 291
   0.3 CANFD   1 Rx        16              0 0 f 8 1 2 3 4 5 6 7 8   130000  130   1000 0 0 0 0 0
   0.4 CANFD   1 Rx        16              0 0 4 8 1 2 3 4 5 6 7 8   130000  130   0 0 0 0 0 0
   0.5 CANFD   1 Rx        16              0 0 d 8 1 2 3 4 5 6 7 8   130000  130   0 0 0 0 0 0
   0.6 1  123             Rx   r 40
   0.7 1  123             Rx   r 8
";
    let (frames, flaws) = flaws(text);
    let long = format!("016##40102030405060708{}", "00".repeat(56));
    let want =
        ["123#1122", "123#1122", &long, "016#0102030405060708", "016#0102030405060708_D", "123#R8", "123#R8"];
    assert_eq!(frames, want);
    assert_eq!(flaws, [(Flawed::LENGTH, 4)]);
}

#[test]
fn the_rows_of_the_table_are_all_checked_here() {
    let texts: Vec<_> = texts().map(|format| format.name).collect();
    assert!(texts.len() >= 3, "{texts:?}");
    let checked = ["pcapng", "blf", "mf4", "parquet", "pcap"];
    for Format { name, keeps, .. } in FORMATS {
        // Those that other programs write are in `of_other_programs`.
        let is_text = |seed: &PathBuf| is_text(&fs::read(seed).unwrap());
        let only_read = keeps.is_none() && seeds(name).iter().all(is_text);
        assert!(
            texts.contains(name) || checked.contains(name) || only_read,
            "{name}: add a test that changes its lengths"
        );
        // The columns of Parquet are those of `Fields`; a packet of pcap is one of pcapng.
        assert!(keeps.is_some() || *name == "pcap" || only_read, "{name}");
    }
}

//! Frames written read back; a file that was cut off keeps its complete frames; no file makes a reader panic.

mod bounds;
mod changes;
mod left_out;
mod lengths;
mod of_other_programs;
mod salvage;
#[cfg(feature = "mdf")]
mod unsorted;

use crate::{
    BusId, Direction, FORMATS, Format, Frame, Reader, Record, WriteOptions, Writer,
    format::{Directions, ErrorFrames, SNIFF_BYTES},
};
use canter_frame::{
    Identifier,
    frame::{ERR_FLAG, len_of_dlc},
};
use proptest::prelude::*;
use std::{
    fs,
    io::Cursor,
    path::{Path, PathBuf},
    sync::LazyLock,
};
use tempfile::TempDir;

/// Small files of a format, in the corpus of the fuzzer.
fn seeds(name: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let files = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let is_seed = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with("seed");
    let seeds: Vec<_> = files.map(|entry| entry.unwrap().path()).filter(is_seed).collect();
    assert!(!seeds.is_empty(), "{}: add a small file seed", folder.display());
    seeds
}

/// The first bytes of a file, by which its format is recognised.
fn head_of(path: &Path) -> Vec<u8> {
    let mut head = fs::read(path).unwrap();
    head.truncate(SNIFF_BYTES);
    head
}

/// The first bytes of the seeds of all formats.
static SEED_HEADS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    FORMATS.iter().flat_map(|format| seeds(format.name)).map(|seed| head_of(&seed)).collect()
});

/// Whether a file is text, of which only a missing line break shows that it was cut off.
fn is_text(file: &[u8]) -> bool {
    file.ends_with(b"\n") && str::from_utf8(file).is_ok()
}

/// All formats that can be written.
fn all() -> impl Iterator<Item = &'static Format> {
    FORMATS.iter().filter(|format| format.write.is_some())
}

const NAMES: [&str; 3] = ["can0", "vcan7", "drive"];

fn any_frame() -> impl Strategy<Value = Frame> {
    let id =
        prop_oneof![(0..0x800u16).prop_map(Identifier::Sff), (0..0x2000_0000u32).prop_map(Identifier::Eff)];
    let data = prop::collection::vec(any::<u8>(), 64);
    (id, data, 0..9usize, 0..16u8, 0..4u8, 0..6u8).prop_map(|(id, data, len, dlc, flags, kind)| match kind {
        0 => Frame::rtr(id, len as u8).unwrap(),
        1 => {
            let mut frame = Frame::classic(Identifier::Sff(0), &data[..8]).unwrap();
            frame.can_id = ERR_FLAG | u32::from(data[8]);
            frame
        }
        2 => {
            let mut frame = Frame::classic(id, &data[..8]).unwrap();
            frame.len8_dlc = if dlc > 8 { dlc } else { 0 };
            frame
        }
        3 | 4 => Frame::fd(id, &data[..len_of_dlc(dlc)], flags).unwrap(),
        _ => Frame::classic(id, &data[..len]).unwrap(),
    })
}

/// Frames in order; each of the three interfaces has its first frame early.
fn any_entries(count: usize) -> impl Strategy<Value = Vec<Record>> {
    let direction = prop_oneof![Just(None), Just(Some(Direction::Received)), Just(Some(Direction::Sent))];
    prop::collection::vec((any_frame(), 0..3u32, 0..2_000_000_000u64, direction), 0..count).prop_map(
        |frames| {
            let mut stamp_ns = 1_700_000_000_000_000_001;
            let entry = |(frame, bus, step, direction)| {
                stamp_ns += step;
                Record { stamp_ns, bus: BusId(bus), frame, direction }
            };
            frames.into_iter().map(entry).collect()
        },
    )
}

/// A recording, a file or for Parquet a folder, in a temporary folder that is deleted on drop.
struct Recording {
    _folder: TempDir,
    path: PathBuf,
}

impl Recording {
    fn write(format: &'static Format, entries: &[Record], name: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        let options = WriteOptions { ns: true, direction: true, ..WriteOptions::new(format, &path) };
        let mut writer = Writer::open(&options).unwrap();
        NAMES.iter().for_each(|name| assert!(writer.interface(name).is_ok()));
        entries.iter().for_each(|entry| writer.frame(entry).unwrap());
        writer.finish().unwrap();
        Self { _folder: folder, path }
    }

    /// The file to damage: of a data set the part of can0, if there is one.
    fn file(&self, format: &Format) -> Option<PathBuf> {
        if !format.writes_folder() {
            return Some(self.path.clone());
        }
        let date = fs::read_dir(self.path.join("vehicle=unknown")).ok()?.next()?.unwrap().path();
        Some(fs::read_dir(date.join("bus=can0")).ok()?.next()?.unwrap().path())
    }
}

/// A classic, an extended, a remote and an FD frame, on one bus.
fn records() -> Vec<Record> {
    let frames = [
        Frame::classic(Identifier::Sff(0x123), &[1, 2, 3]).unwrap(),
        Frame::classic(Identifier::Eff(0x1234_5678), &[0xa5; 8]).unwrap(),
        Frame::rtr(Identifier::Sff(0x7), 2).unwrap(),
        Frame::fd(Identifier::Sff(0x7ff), &[0x5a; 12], 1).unwrap(),
    ];
    let record = |(n, frame)| Record {
        stamp_ns: 1_700_000_000_000_000_001 + n * 1_000_000,
        bus: BusId(0),
        frame,
        direction: Some(Direction::Received),
    };
    (0u64..).zip(frames).map(record).collect()
}

/// A frame with its stamp, the name of its interface and its direction.
type Kept = (u64, String, Frame, Option<Direction>);

/// The result of reading a file: its frames, whether it was cut off, and the error.
struct Seen {
    frames: Vec<Kept>,
    cut: bool,
    error: Option<String>,
    /// Entries that are not frames.
    skipped: u64,
    skipped_by_kind: Vec<(&'static str, u64)>,
    /// Frames whose fields contradict each other, by kind.
    flawed: Vec<(&'static str, u64)>,
    salvaged: Option<String>,
}

fn seen(bytes: &[u8]) -> Seen {
    Seen::read(Reader::from_read("test", Box::new(Cursor::new(bytes.to_vec())), FORMATS))
}

impl Seen {
    fn read(reader: crate::Result<Reader>) -> Self {
        let mut seen = Self {
            frames: Vec::new(),
            cut: false,
            error: None,
            skipped: 0,
            skipped_by_kind: Vec::new(),
            flawed: Vec::new(),
            salvaged: None,
        };
        let mut reader = match reader {
            Ok(reader) => reader,
            Err(failure) => {
                seen.error = Some(failure.to_string());
                return seen;
            }
        };
        loop {
            match reader.next_record() {
                Ok(Some(entry)) => {
                    let name = reader.name(entry.bus).to_owned();
                    seen.frames.push((entry.stamp_ns, name, entry.frame, entry.direction));
                }
                Ok(None) => break,
                Err(failure) => {
                    seen.error = Some(failure.to_string());
                    break;
                }
            }
        }
        seen.cut = reader.cut().is_some();
        seen.skipped_by_kind = reader.skipped().iter().collect();
        seen.skipped = seen.skipped_by_kind.iter().map(|(_, count)| count).sum();
        seen.flawed = reader.flawed().iter().collect();
        seen.salvaged = reader.salvaged();
        seen
    }
}

/// Returns the frame as the format keeps it.
fn kept(format: &Format, entry: &Record) -> Kept {
    let keeps = format.keeps.unwrap();
    let (mut frame, mut direction) = (entry.frame, entry.direction);
    if keeps.direction == Directions::Known {
        direction = if frame.is_error() { None } else { direction.or(Some(Direction::Received)) };
    }
    if keeps.direction == Directions::None {
        direction = None;
    }
    if !keeps.dlc_above_8 {
        frame.len8_dlc = 0;
    }
    if keeps.error_frames == ErrorFrames::Presence && frame.is_error() {
        frame = crate::fields::error_frame();
    }
    (entry.stamp_ns, NAMES[entry.bus.index()].to_owned(), frame, direction)
}

/// Whether a format's files begin with the first frame.
fn is_without_head(format: &'static Format) -> bool {
    fs::metadata(Recording::write(format, &[], "file").path).is_ok_and(|file| file.len() == 0)
}

/// Sorts frames in the order that a format keeps: MDF and Parquet have a stream for each bus, MDF for each kind too,
/// and of frames with the same stamp those of one stream come first.
fn in_order(format: &Format, mut frames: Vec<Kept>) -> Vec<Kept> {
    let kind = |frame: &Frame| (frame.is_error(), frame.is_rtr(), frame.is_fd());
    match format.name {
        "mf4" => frames.sort_by_key(|(stamp, name, frame, _)| (*stamp, name.clone(), kind(frame))),
        "parquet" => frames.sort_by_key(|(stamp, name, ..)| (*stamp, name.clone())),
        _ => {}
    }
    frames
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_format_reads_back_the_written_frames(entries in any_entries(40), packed: bool) {
        for format in all() {
            let name = if packed && format.grows && cfg!(feature = "zstd") { "file.zst" } else { "file" };
            let recording = Recording::write(format, &entries, name);
            if entries.is_empty() && (format.writes_folder() || is_without_head(format)) {
                continue; // no part, no data set; without a head and frames, an empty file
            }
            let seen = Seen::read(crate::open(&recording.path));
            prop_assert_eq!(seen.error, None);
            prop_assert!(!seen.cut);
            prop_assert!(seen.frames.is_sorted_by_key(|frame| frame.0), "{}", format.name);
            let want: Vec<_> = entries.iter().map(|entry| kept(format, entry)).collect();
            prop_assert_eq!(in_order(format, seen.frames), in_order(format, want), "{}", format.name);
        }
    }

    #[test]
    fn a_file_cut_off_anywhere_keeps_its_complete_frames(entries in any_entries(12), share in 0.0..1.0f64) {
        for format in all() {
            let Some(file) = Recording::write(format, &entries, "file").file(format).map(fs::read) else { continue };
            let bytes = file.unwrap();
            let at = (bytes.len() as f64 * share) as usize;
            let seen = seen(&bytes[..at]);
            let want: Vec<_> = entries.iter().map(|entry| kept(format, entry)).collect();
            prop_assert!(want.starts_with(&seen.frames), "{}", format.name);
            // Without its header a file is not recognised.
            prop_assert!(seen.error.is_none() || seen.frames.is_empty() && at < 200, "{:?}", seen.error);
            prop_assert!(at > 0 || seen.error.is_some(), "an empty file is no recording");
            // Text may end after any line, and pcapng after any block, without a sign of the cut.
            let sign = at > 0
                && match format.name {
                    // `End TriggerBlock` marks the last line, with or without a line break.
                    "asc" => bytes[at - 1] != b'\n' && !bytes[at..].trim_ascii().is_empty(),
                    _ if is_text(&bytes) => bytes[at - 1] != b'\n',
                    "pcapng" => false,
                    // Padding may be missing.
                    "blf" | "mf4" => bytes[at..].iter().any(|&byte| byte != 0),
                    _ => true,
                };
            prop_assert!(!sign || seen.cut || seen.error.is_some(), "{} at {at}", format.name);
        }
    }

    #[test]
    fn a_damaged_file_never_panics_and_an_error_names_the_place(
        entries in any_entries(20),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        for format in all() {
            let Some(file) = Recording::write(format, &entries, "file").file(format).map(fs::read) else { continue };
            let mut bytes = file.unwrap();
            for (place, value) in &damage {
                let at = place.index(bytes.len().max(1));
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = *value;
                }
            }
            let seen = seen(&bytes);
            if let Some(error) = seen.error {
                let place = [": line ", ": byte ", ": row ", ": read: "].iter().any(|place| error.contains(place));
                prop_assert!(place && error.lines().count() == 1, "{error}");
            }
        }
    }

    #[test]
    fn no_bytes_make_a_reader_panic(
        magic in any::<prop::sample::Index>(),
        rest in prop::collection::vec(any::<u8>(), 0..400),
    ) {
        let magics: [&[u8]; 11] = [
            &[0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a],
            b"LOGG\x90\0\0\0",
            &[0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0x14, 1, 0, 0],
            &[0xa1, 0xb2, 0x3c, 0x4d, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 227],
            b"date Sun Nov 22 00:50:03.408 2026\n 0.1 1 123 Rx d ",
            b"(1700000000.000000) can0 ",
            &[0x28, 0xb5, 0x2f, 0xfd],
            &[0x1f, 0x8b, 8, 0],
            b"MDF     4.11    canter  \0\0\0\0\x9b\x01\0\0",
            b"PAR1",
            b"stamp,interface,id,extended,rtr,fd,brs,esi,error,dlc,len,data,direction\n1.0,can0,",
        ];
        let heads = SEED_HEADS.iter().map(|head| &head[..24.min(head.len())]);
        let magics: Vec<&[u8]> = magics.into_iter().chain(heads).collect();
        seen(&[magic.get(&magics), &rest[..]].concat());
    }
}

#[test]
fn each_seed_is_recognised_as_its_own_format_only() {
    for format in FORMATS {
        for seed in seeds(format.name) {
            let head = head_of(&seed);
            let rows = FORMATS.iter().filter(|row| row.recognise.is_some_and(|is| is(&head)));
            let names: Vec<_> = rows.map(|row| row.name).collect();
            assert_eq!(names, [format.name], "{}", seed.display());
        }
    }
}

fn entries(text: &str) -> Vec<String> {
    let seen = seen(text.as_bytes());
    assert_eq!(seen.error, None);
    let line = |(stamp, name, frame, direction): &(u64, String, Frame, Option<Direction>)| {
        let direction = match direction {
            None => "",
            Some(Direction::Received) => " R",
            Some(Direction::Sent) => " T",
        };
        format!("{stamp} {name} {frame}{direction}")
    };
    seen.frames.iter().map(line).collect()
}

#[test]
fn every_notation_of_asc_events_is_read() {
    let text = "\
date Tue Nov 14 10:13:20.500 pm 2023
base dec  timestamps relative
no internal events logged
// version 7.0.0
   0.100000 1  291             Rx   d 2 17 255  Length = 0 BitCount = 64 ID = 291
   0.100000 2  291x            Tx   r
   0.000001 1  EngineData      Rx   d 0  Length = 0 BitCount = 64 ID = 300x
   0.000001 2  ErrorFrame	ECC: 10100010
   0.000000 1  Statistic: D 0 R 0 XD 0 XR 0 E 0 O 0 B 0.00%
   0.000000 CANFD   1 Tx        16  SomeName    0 1 9 12 1 2 3 4 5 6 7 8 9 10 11 12   130000  130   205040 0 0 0 0 0
   0.000000 CANFD   1 Rx        16              0 0 3 3 1 2 3   130000  130     0 0 0 0 0 0
   0.000000 1  291             TxRq d 1 1
End TriggerBlock
";
    assert_eq!(
        entries(text),
        [
            "1700000000600000000 can0 123#11FF R",
            "1700000000700000000 can1 00000123#R T",
            "1700000000700001000 can0 0000012C# R",
            "1700000000700002000 can1 20000080#0000000000000000",
            "1700000000700002000 can0 010##60102030405060708090A0B0C T",
            "1700000000700002000 can0 010#010203 R",
        ]
    );
}

#[test]
fn a_message_of_an_asc_whose_name_looks_like_a_number_has_the_identifier_at_the_end_of_its_line() {
    let text = "date Tue Nov 14 10:13:20.500 pm 2023\nbase hex timestamps absolute\n\
        0.1 1  AC   Rx   d 1 07  Length = 0 BitCount = 64 ID = 291\n\
        0.2 1  AC   Rx   d 1 07\n\
        0.3 1  200  Rx   d 1 07  Length = 0 BitCount = 64 ID = 291\n";
    let frames: Vec<String> =
        entries(text).iter().map(|line| line.split(' ').nth(2).unwrap().into()).collect();
    assert_eq!(frames, ["123#07", "0AC#07", "200#07"]);
}

#[test]
fn an_error_names_the_line_and_the_remedy() {
    let error = |text: &str| seen(text.as_bytes()).error.unwrap_or_default();
    assert_eq!(
        error("(1.000000) can0 123#\n(2.000000) can0 123#1\n"),
        "test: line 2: position 21: expected a hex digit (delete the line to read the rest)"
    );
    assert_eq!(
        error("date Sun Nov 22 00:50:03 2026\nbase hex timestamps absolute\n0.1 1 123 Rx d 3 1 2\n"),
        "test: line 3: a frame with less data than its length (delete the line to read the rest)"
    );
    assert!(error("hello\n").starts_with("test: read: no recording that canter reads"));
}

#[test]
fn an_empty_file_is_no_recording() {
    let empty_gz = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    for bytes in [&b""[..], &empty_gz] {
        let error = seen(bytes).error.unwrap_or_default();
        assert_eq!(error, "test: read: is empty: not a recording");
    }
    let error = seen(&empty_gz[..5]).error.unwrap_or_default();
    assert_eq!(error, "test: read: is cut off before its first byte is unpacked: nothing of it can be read");
    for blank in [&b"\n"[..], b" \r\n\n"] {
        assert!(seen(blank).error.unwrap_or_default().starts_with("test: read: no recording"), "{blank:?}");
    }
    // A log of comments is one without frames.
    let comments = seen(b"# nothing was on the bus\n");
    assert!(comments.error.is_none() && comments.frames.is_empty() && !comments.cut);
}

#[cfg(feature = "zstd")]
#[test]
fn a_zstd_file_that_asks_for_a_large_window_is_refused_with_the_way_out() {
    // A frame header with a window of 128 MiB, and a block of one comment.
    let frame = |window: u8| [&[0x28, 0xb5, 0x2f, 0xfd, 0, window, 0x11, 0, 0], &b"#\n"[..]].concat();
    assert_eq!(seen(&frame((25 - 10) << 3)).error, None);
    let error = seen(&frame((27 - 10) << 3)).error.unwrap_or_default();
    assert!(
        error.ends_with(": packed with a window above 32 MiB (unpack it with zstd -d --long=31)"),
        "{error}"
    );
}

#[test]
fn a_name_that_a_format_cannot_hold_is_refused_and_all_others_read_back() {
    let folder = tempfile::tempdir().unwrap();
    for (at, name) in
        ["a\nb", "left rear", "a-name-of-16-byte", "can0/1", "ü, \"1\"", "", "can0"].iter().enumerate()
    {
        for format in all() {
            let path = folder.path().join(format!("{at}-{}", format.name));
            let mut writer = Writer::open(&WriteOptions::new(format, &path)).unwrap();
            let bus = match writer.interface(name) {
                Ok(bus) => bus,
                Err(error) => {
                    assert!(error.to_string().contains("--interfaces OLD=NEW"), "{error}");
                    assert_ne!(*name, "can0");
                    continue;
                }
            };
            let frame = "123#11".parse().unwrap();
            writer
                .frame(&Record { stamp_ns: 1_700_000_000_000_000_000, bus, frame, direction: None })
                .unwrap();
            writer.finish().unwrap();
            let seen = Seen::read(crate::open(&path));
            assert_eq!(seen.error, None, "{} {name:?}", format.name);
            assert_eq!(seen.frames[0].1, *name, "{}", format.name);
        }
    }
}

#[test]
fn dropcount_lines_are_counted_and_can_xl_frames_are_skipped() {
    let text = "\
(1.000000) can0 123#00
DROPCOUNT: dropped 12 CAN frames on 'can0' socket (total drops 12)
DROPCOUNT: dropped 1 CAN frame on 'can0' socket (total drops 13)
(2.000000) can0 01123#81:03:00000000#1122
(3.000000) can0 123#00 R
(4.000000) can0 123#";
    let mut reader = Reader::from_read("test", Box::new(Cursor::new(text)), FORMATS).unwrap();
    let mut frames = 0;
    while reader.next_record().unwrap().is_some() {
        frames += 1;
    }
    assert_eq!((frames, reader.lost()), (2, 13));
    assert_eq!(reader.skipped().iter().collect::<Vec<_>>(), [("CAN XL frames", 1)]);
    assert_eq!(reader.cut(), Some("test: line 6: cut off after 2 frames"));
}

/// The frame `123#1122` in LINKTYPE_CAN_SOCKETCAN.
const PACKET: [u8; 16] = [0, 0, 1, 0x23, 2, 0, 0, 0, 0x11, 0x22, 0, 0, 0, 0, 0, 0];

#[test]
fn a_pcap_of_a_big_endian_machine_is_read_to_the_ns() {
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<u8>>();
    let head = words(&[0xa1b2_3c4d, 2 << 16 | 4, 0, 0, 65535, 227]);
    let packet = [words(&[1_700_000_000, 123_456_789, 16, 16]), PACKET.to_vec()].concat();
    let seen = seen(&[head, packet.clone(), packet[..20].to_vec()].concat());
    assert!(seen.cut && seen.error.is_none());
    let [(stamp_ns, name, frame, None)] = seen.frames.as_slice() else { panic!("{:?}", seen.frames) };
    assert_eq!(
        (*stamp_ns, name.as_str(), frame.to_string().as_str()),
        (1_700_000_000_123_456_789, "any", "123#1122")
    );
}

/// Returns a block of a big-endian pcapng file; the length of its body is a multiple of 4.
fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let length = (12 + body.len() as u32).to_be_bytes();
    [&kind.to_be_bytes()[..], &length, body, &length].concat()
}

#[test]
fn each_pcapng_interface_has_a_name_unit_and_offset_until_the_section_ends() {
    let section =
        block(0x0a0d_0d0a, &[0x1a, 0x2b, 0x3c, 0x4d, 0, 1, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255]);
    // An interface with units of 2^-10 s and an offset of 5 s, and one with the default unit, µs.
    let binary =
        [&[0, 227, 0, 0, 0, 0, 0, 0, 0, 2, 0, 2][..], b"bb\0\0", &[0, 9, 0, 1, 0x8a, 0, 0, 0]].concat();
    let offset = [&[0, 14, 0, 8, 0, 0, 0, 0, 0, 0, 0, 5][..], &[0, 0, 0, 0]].concat();
    let binary = block(1, &[binary, offset].concat());
    let plain = block(1, &[&[0, 227, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1][..], b"a\0\0\0", &[0; 4]].concat());
    let ethernet = block(1, &[0, 1, 0, 0, 0, 0, 0, 0]);
    let packet = |interface: u8, stamp: u8, flags: &[u8]| {
        let head = [0, 0, 0, interface, 0, 0, 0, 0, 0, 0, 0, stamp, 0, 0, 0, 16, 0, 0, 0, 16];
        block(6, &[&head[..], &PACKET, flags].concat())
    };
    let sent = [0, 2, 0, 4, 0, 0, 0, 2, 0, 0, 0, 0];
    let file = [
        section.clone(),
        ethernet,
        binary,
        plain.clone(),
        packet(1, 0x40, &sent),
        packet(0, 1, &[]),
        packet(2, 7, &[]),
        section.clone(),
        plain,
        packet(0, 9, &[]),
        packet(1, 9, &[]),
    ]
    .concat();
    let seen = seen(&file);
    let frames: Vec<_> =
        seen.frames.iter().map(|(stamp, name, _, direction)| (*stamp, name.as_str(), *direction)).collect();
    assert_eq!(
        frames,
        [(5_062_500_000, "bb", Some(Direction::Sent)), (7_000, "a", None), (9_000, "a", None)]
    );
    assert_eq!(
        seen.error.as_deref(),
        Some("test: byte 396: a packet of interface 1, which is not in the file")
    );
}

/// Checks the table of formats in lib.rs against the rows.
#[test]
fn the_first_page_lists_every_format_as_its_row_does() {
    let page = include_str!("lib.rs");
    for format in FORMATS {
        let line = page.lines().find(|line| line.starts_with(&format!("//! | `{}` |", format.name)));
        let can_write = format.write.is_some();
        let row = [format.read.is_some(), can_write, can_write && format.grows, format.append.is_some()];
        let cells = row.map(|cell| if cell { " yes |" } else { " |" }).concat();
        let wanted = format!("//! | `{}` | {} |{cells}", format.name, format.about);
        let line = line.unwrap_or_else(|| panic!("lib.rs: the table under `# Formats` lacks {wanted}"));
        let yes: Vec<bool> = line.split('|').skip(3).take(4).map(|cell| cell.trim() == "yes").collect();
        assert_eq!(yes, row, "lib.rs: {wanted}");
    }
}

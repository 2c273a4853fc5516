//@ machine: host
//! Uses a format that this crate does not know: the table plus one row. The toy is a text file: `toy 1`, then lines of
//! stamp, bus and frame, `1700000000000000000 can0 123#11`.

use canter_formats::{
    BusId, Direction, Error, FORMATS, Format, Reader, Record, WriteOptions, Writer, Written, by_extension,
    format::{Context, Decode, Detail, Directions, Keeps, NotKept, Output, Sink, Source, Trouble, Write},
    named,
};
use std::{
    io::{self, Cursor},
    sync::{Arc, Mutex},
};

/// The row: all that another crate has to know of the toy.
static TOY: Format = Format {
    name: "toy",
    title: "toy",
    about: "A line a frame, for tests",
    extensions: &["toy"],
    recognise: Some(|head| head.starts_with(b"toy 1\n")),
    read: Some(|_path| Box::new(ToyDecoder { line: 0 })),
    write: Some(Write::File(|output, _options| Ok(Box::new(ToyEncoder::new(output))))),
    grows: true,
    keeps: Some(Keeps { direction: Directions::None, ..Keeps::ALL }),
    ..Format::PLAIN
};

fn formats() -> Vec<Format> {
    [FORMATS, &[TOY]].concat()
}

struct ToyDecoder {
    line: u64,
}

/// `1700000000000000000 can0 123#11`, or `None`.
fn parse(line: &str) -> Option<(u64, &str, canter_formats::Frame)> {
    let mut words = line.split(' ');
    Some((words.next()?.parse().ok()?, words.next()?, words.next()?.parse().ok()?))
}

impl Decode for ToyDecoder {
    fn next(
        &mut self,
        source: &mut Source,
        context: &mut Context,
        entry: &mut Record,
    ) -> Result<bool, Trouble> {
        loop {
            let Some(length) = source.whole_line(&mut self.line)? else { return Ok(false) };
            let line = String::from_utf8_lossy(&source.buffered()[..length]).into_owned();
            source.consume(length + 1);
            if self.line == 1 {
                continue; // the header
            }
            if line.starts_with('#') {
                context.skipped.count("comments");
                continue;
            }
            let Some((stamp_ns, name, frame)) = parse(&line) else {
                return Err(Trouble::Wrong("not a stamp, a bus and a frame".to_owned()));
            };
            *entry = Record { stamp_ns, bus: context.names.number(name)?, frame, direction: None };
            return Ok(true);
        }
    }

    fn place(&self, _source: &Source) -> String {
        format!("line {}", self.line)
    }
}

struct ToyEncoder {
    output: Output,
    names: Vec<String>,
    not_kept: NotKept,
}

impl ToyEncoder {
    fn new(mut output: Output) -> Self {
        output.buffer().extend_from_slice(b"toy 1\n");
        Self { output, names: Vec::new(), not_kept: NotKept::default() }
    }
}

impl Sink for ToyEncoder {
    fn interface(&mut self, name: &str) -> io::Result<()> {
        self.names.push(name.to_owned());
        Ok(())
    }

    fn frame(&mut self, entry: &Record) -> io::Result<()> {
        if entry.direction.is_some() {
            self.not_kept.count(Detail::Other("the direction (a toy has none)"));
        }
        let line = format!("{} {} {}\n", entry.stamp_ns, self.names[entry.bus.index()], entry.frame);
        self.output.buffer().extend_from_slice(line.as_bytes());
        self.output.ready()
    }

    fn finish(self: Box<Self>) -> io::Result<Written> {
        Ok(Written { bytes: self.output.finish()?, files: 1, not_kept: self.not_kept })
    }
}

/// Two frames on two buses.
fn records() -> [Record; 2] {
    let record = |n: u32, text: &str, direction| Record {
        stamp_ns: 1_700_000_000_000_000_000 + u64::from(n),
        bus: BusId(n),
        frame: text.parse().unwrap(),
        direction,
    };
    [record(0, "123#1122", None), record(1, "12345678##5AA", Some(Direction::Sent))]
}

fn write(writer: &mut Writer) {
    for name in ["can0", "drive"] {
        writer.interface(name).unwrap();
    }
    for record in records() {
        writer.frame(&record).unwrap();
    }
}

fn lines(mut reader: Reader) -> Vec<String> {
    let mut lines = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        lines.push(format!("{} {} {}", record.stamp_ns, reader.name(record.bus), record.frame));
    }
    lines
}

const LINES: [&str; 2] = ["1700000000000000000 can0 123#1122", "1700000000000000001 drive 12345678##5AA"];

#[test]
fn a_toy_and_the_built_in_formats_are_found_by_name_and_extension() {
    let formats = formats();
    assert_eq!(named("toy", &formats).unwrap().about, TOY.about);
    assert_eq!(by_extension("a.TOY.zst", &formats).unwrap().name, "toy");
    assert_eq!(by_extension("a.blf", &formats).unwrap().name, "blf");
    assert!(named("toy", FORMATS).is_none());
}

#[test]
fn a_toy_that_was_written_reads_back_compressed_or_not_and_counts_what_it_cannot_keep() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["drive.toy", "drive.toy.zst"] {
        let path = folder.path().join(name);
        if name.ends_with(".zst") && !cfg!(feature = "zstd") {
            let refused = Writer::open(&WriteOptions::new(&TOY, &path)).err().unwrap();
            assert!(refused.to_string().contains("feature `zstd`"), "{refused}");
            continue;
        }
        let mut writer = Writer::open(&WriteOptions::new(&TOY, &path)).unwrap();
        write(&mut writer);
        assert!(!path.exists(), "it gets its name at the end");
        let written = writer.finish().unwrap();
        let not_kept: Vec<_> =
            written.not_kept.iter().map(|(what, count)| (what.to_string(), count)).collect();
        assert_eq!(not_kept, [("the direction (a toy has none)".to_owned(), 1)]);
        assert_eq!(written.bytes, path.metadata().unwrap().len());

        let reader = Reader::open(&path, &formats()).unwrap();
        assert_eq!(reader.format().name, "toy");
        assert_eq!(lines(reader), LINES);
        let unknown = canter_formats::open(&path).err().unwrap();
        assert!(matches!(unknown, Error::Unknown { .. }), "{unknown}");
    }
}

#[test]
fn a_recording_is_created_by_its_extension_and_an_unknown_one_is_refused_with_those_that_there_are() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("drive.csv");
    canter_formats::create(&path).unwrap().finish().unwrap();
    assert!(canter_formats::open(&path).unwrap().next_record().unwrap().is_none());
    // A candump log has no header: without frames it is an empty file, which is no recording.
    let log = folder.path().join("drive.log");
    canter_formats::create(&log).unwrap().finish().unwrap();
    assert!(matches!(canter_formats::open(&log), Err(Error::Unknown { .. })));
    let exists = canter_formats::create(&path).err().unwrap();
    assert!(matches!(exists, Error::Io { .. }), "{exists}");
    let unknown = canter_formats::create(folder.path().join("drive.toy")).err().unwrap().to_string();
    assert!(unknown.contains("the extension names no format (.log, .pcapng, "), "{unknown}");
}

/// Memory that a writer owns and a test can look at.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl io::Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn formats_that_grow_can_be_written_to_memory_and_the_others_are_refused() {
    for format in &formats() {
        let format: &'static Format = Box::leak(Box::new(*format));
        let memory = Memory::default();
        let options = WriteOptions { ns: true, ..WriteOptions::new(format, "memory") };
        match Writer::to_stream(Box::new(memory.clone()), &options) {
            Ok(mut writer) => {
                write(&mut writer);
                writer.finish().unwrap();
                let bytes = memory.0.lock().unwrap().clone();
                let reader = Reader::from_read("memory", Box::new(Cursor::new(bytes)), &formats()).unwrap();
                assert_eq!((reader.format().name, format.grows), (format.name, true));
                assert_eq!(lines(reader), LINES, "{}", format.name);
            }
            Err(error) => {
                assert!(matches!(error, Error::Unsuitable { .. }), "{error}");
                assert!(!format.grows || format.write.is_none(), "{error}");
                assert!(memory.0.lock().unwrap().is_empty());
            }
        }
    }
}

#[test]
fn a_damaged_toy_is_an_error_with_its_place_and_a_cut_one_is_reported() {
    let read =
        |text: &'static str| Reader::from_read("a.toy", Box::new(Cursor::new(text)), &formats()).unwrap();
    let mut damaged = read("toy 1\n# hello\nx\n");
    let error = damaged.next_record().unwrap_err();
    assert_eq!(error.to_string(), "a.toy: line 3: not a stamp, a bus and a frame");
    assert_eq!(damaged.skipped().iter().collect::<Vec<_>>(), [("comments", 1)]);
    let mut cut = read("toy 1\n1 can0 123#\n2 can0 12");
    assert!(cut.next_record().unwrap().is_some());
    assert!(cut.next_record().unwrap().is_none());
    assert_eq!(cut.cut(), Some("a.toy: line 3: cut off after 1 frames"));
}

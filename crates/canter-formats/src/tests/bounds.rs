//! What an input may cost: no input takes much memory, and one that is twice as long takes about twice the processor time.

use super::{Recording, records};
use crate::{BusId, FORMATS, Frame, Reader, Record, named};
use canter_frame::Identifier;
use std::{
    env,
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

/// The address space of the process that reads each input, in KiB.
const ADDRESS_SPACE_KIB: u64 = 512 << 10;
/// The folder with the inputs of that process.
const INPUTS: &str = "CANTER_TEST_INPUTS";
/// Frames that are read of one input: packed text may hold billions.
const FRAMES_MAX: usize = 200_000;

/// Reads an input to its end, past its damage, too; the number of its frames.
fn read(reader: crate::Result<Reader>) -> usize {
    let Ok(reader) = reader else { return 0 };
    let mut reader = reader.salvage(true);
    let mut frames = 0;
    while frames < FRAMES_MAX && matches!(reader.next_record(), Ok(Some(_))) {
        frames += 1;
    }
    frames
}

/// Writes a file that zstd has packed: `head`, then `mib` MiB of `byte`.
#[cfg(feature = "zstd")]
fn packed(folder: &Path, name: &str, head: &[u8], byte: u8, mib: usize) {
    let mut packer = zstd::Encoder::new(File::create(folder.join(name)).unwrap(), 3).unwrap();
    packer.write_all(head).unwrap();
    (0..mib).for_each(|_| packer.write_all(&vec![byte; 1 << 20]).unwrap());
    packer.finish().unwrap();
}

/// Makes files that ask for more memory than they have bytes.
fn craft(folder: &Path) {
    let put = |name: &str, bytes: &[u8]| fs::write(folder.join(name), bytes).unwrap();
    let written = |name: &str| {
        let format = named(name, FORMATS).unwrap();
        let recording = Recording::write(format, &records(), "file");
        fs::read(recording.file(format).unwrap()).unwrap()
    };
    #[cfg(feature = "zstd")]
    for (name, head) in [
        ("line.log.zst", &b"(1.000000) can0 123#"[..]),
        ("comment.log.zst", b"(1.000000) can0 123#\n#"),
        (
            "line.asc.zst",
            b"date Tue Nov 14 10:13:20.500 pm 2023\nbase hex timestamps absolute\n0.1 1 123 Rx d 8",
        ),
        ("line.csv.zst", b"stamp,interface,id,extended,rtr,fd,brs,esi,error,dlc,len,data,direction\n1.0,\""),
        ("block.pcapng.zst", &written("pcapng")),
        ("object.blf.zst", &written("blf")),
        ("zeros.mf4.zst", &written("mf4")),
    ] {
        packed(folder, name, head, b' ', 1024);
    }
    // Lengths that are the largest of their fields.
    for name in ["pcapng", "blf", "mf4"] {
        let bytes = written(name);
        for (at, value) in
            (0..bytes.len().min(4096)).step_by(4).flat_map(|at| [(at, 0x7fff_fff0_u32), (at, u32::MAX)])
        {
            let mut changed = bytes.clone();
            let end = bytes.len().min(at + 4);
            changed[at..end].copy_from_slice(&value.to_le_bytes()[..end - at]);
            put(&format!("{name}-{at}-{value:x}"), &changed);
        }
    }
    #[cfg(feature = "mdf")]
    put("shared-text.mf4", &shared_text(written("mf4")));
    #[cfg(feature = "parquet")]
    parquet_row(&folder.join("value.parquet"), "", Some(300_000_000));
}

/// Adds 1500 channels to the first group of an MDF, whose name is the same text of 1 MiB.
#[cfg(feature = "mdf")]
fn shared_text(mut file: Vec<u8>) -> Vec<u8> {
    // A block begins with its type, its length and the number of its links (mdf/read/blocks.rs).
    let block = |kind: &[u8], links: &[u64], data: &[u8]| {
        let length = (24 + 8 * links.len() + data.len()) as u64;
        let head =
            [&b"##"[..], kind, &[0; 4], &length.to_le_bytes(), &(links.len() as u64).to_le_bytes()].concat();
        [head, links.iter().flat_map(|link| link.to_le_bytes()).collect(), data.to_vec()].concat()
    };
    let group = memchr::memmem::find(&file, b"##CG").unwrap();
    let first_channel = group + 24 + 8..group + 24 + 16;
    let mut next = u64::from_le_bytes(file[first_channel.clone()].try_into().unwrap());
    let text = file.len() as u64;
    file.extend(block(b"TX", &[], &vec![b'a'; 1 << 20]));
    for _ in 0..1500 {
        let at = file.len() as u64;
        file.extend(block(b"CN", &[next, 0, text, 0, 0, 0, 0, 0], &[0; 72]));
        next = at;
    }
    file[first_channel].copy_from_slice(&next.to_le_bytes());
    file
}

/// Writes a Parquet file with one row: a frame without data and direction, or with this number of zeros in each, which takes
/// a few kB. `others`: columns beside those of a frame.
#[cfg(feature = "parquet")]
pub fn parquet_row(path: &Path, others: &str, zeros: Option<usize>) {
    use parquet::{
        basic::{Compression, ZstdLevel},
        column::writer::ColumnWriter,
        data_type::ByteArray,
        file::{properties::WriterProperties, writer::SerializedFileWriter},
        schema::parser::parse_message_type,
    };
    let columns = "required int64 stamp; required int32 id; required boolean extended;
        required boolean rtr; required boolean fd; required boolean brs; required boolean esi; required boolean error;
        required int32 dlc; required int32 len; required binary data; optional binary direction;";
    let schema = format!("message frame {{ {columns} {others} }}");
    let zstd = Compression::ZSTD(ZstdLevel::try_new(3).unwrap());
    let properties = WriterProperties::builder().set_compression(zstd).set_dictionary_enabled(false).build();
    let schema = parse_message_type(&schema).unwrap().into();
    let mut writer =
        SerializedFileWriter::new(File::create(path).unwrap(), schema, properties.into()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    while let Some(mut column) = group.next_column().unwrap() {
        match column.untyped() {
            ColumnWriter::Int64ColumnWriter(column) => _ = column.write_batch(&[1], None, None).unwrap(),
            ColumnWriter::Int32ColumnWriter(column) => _ = column.write_batch(&[0], None, None).unwrap(),
            ColumnWriter::BoolColumnWriter(column) => _ = column.write_batch(&[false], None, None).unwrap(),
            ColumnWriter::ByteArrayColumnWriter(column) => {
                let value = ByteArray::from(vec![0; zeros.unwrap_or(0)]);
                column.write_batch(&[value], Some(&[zeros.is_some().into()]), None).unwrap();
            }
            _ => unreachable!("no column of another type"),
        }
        column.close().unwrap();
    }
    group.close().unwrap();
    writer.close().unwrap();
}

fn files(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// The test runs itself again in a process with a limit.
#[test]
fn no_input_takes_more_than_512_mib_of_address_space() {
    if let Some(folder) = env::var_os(INPUTS) {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
        let readers = FORMATS.iter().filter(|format| format.read.is_some()).map(|format| format.name);
        let folders = readers.chain(["packed"]).map(|name| corpus.join(name)).chain([folder.into()]);
        for path in folders.flat_map(|folder| files(&folder)) {
            println!("reads {}", path.display()); // the last line that a process prints that is aborted
            read(crate::open(&path));
        }
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    craft(folder.path());
    let name = "tests::bounds::no_input_takes_more_than_512_mib_of_address_space";
    let limited = Command::new("bash")
        .args(["-c", &format!("ulimit -v {ADDRESS_SPACE_KIB}; exec \"$@\""), "-"])
        .arg(env::current_exe().unwrap())
        .args(["--exact", "--nocapture", "--test-threads=1", name])
        .env(INPUTS, folder.path())
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&limited.stdout);
    let last = printed.lines().rev().find(|line| line.contains("reads ")).unwrap_or_default();
    assert!(
        limited.status.success(),
        "{last}: {}: {}",
        limited.status,
        String::from_utf8_lossy(&limited.stderr)
    );
    let last_crafted = if cfg!(feature = "parquet") { "value.parquet" } else { "pcapng-0-" };
    assert!(printed.contains(last_crafted), "the crafted files were read: {printed}");
}

/// Processor time of this thread, in ns: the first number of schedstat (proc_pid_schedstat(5)).
fn processor_ns() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split(' ').next().unwrap().parse().unwrap()
}

/// The processor time of reading an input once, in ns. The kernel adds it up at its ticks, so that an input is read as often
/// as they need.
fn cost_ns(bytes: &Arc<[u8]>) -> u64 {
    let (before, mut readings) = (processor_ns(), 0);
    while processor_ns() < before + MEASURED_NS {
        let input = std::io::Cursor::new(Arc::clone(bytes));
        read(Reader::from_read("input", Box::new(input), FORMATS));
        readings += 1;
    }
    (processor_ns() - before) / readings
}

/// The least of several costs of each of two inputs, by turns: on a virtual machine what the host takes away is in them, and
/// it takes away for longer than one measurement.
fn costs_ns(inputs: [Vec<u8>; 2]) -> [u64; 2] {
    const TURNS: usize = 5;
    let inputs = inputs.map(Arc::from);
    let turn = |least: [u64; 2], _| {
        let [short, long] = &inputs;
        [least[0].min(cost_ns(short)), least[1].min(cost_ns(long))]
    };
    (0..TURNS).fold([u64::MAX; 2], turn)
}

/// How long the readings of an input take together, in ns: many ticks.
const MEASURED_NS: u64 = 60_000_000;

/// A recording of `count` frames on one bus.
fn frames(name: &str, count: u64) -> Vec<u8> {
    let format = named(name, FORMATS).unwrap();
    let entry = |at: u64| Record {
        stamp_ns: 1_700_000_000_000_000_000 + at * 100_000,
        bus: BusId(0),
        frame: Frame::classic(Identifier::Sff(at as u16 & 0x7ff), &at.to_le_bytes()).unwrap(),
        direction: None,
    };
    let entries: Vec<Record> = (0..count).map(entry).collect();
    let recording = Recording::write(format, &entries, "file");
    fs::read(recording.file(format).unwrap()).unwrap()
}

/// Inputs of a size, each made of parts that repeat.
fn inputs(size: usize) -> Vec<(String, Vec<u8>)> {
    let log = |line: &str| format!("(1.000000) can0 123#\n{}", line.repeat(size)).into_bytes();
    let asc = |line: &str| {
        let head = "date Tue Nov 14 10:13:20.500 pm 2023\nbase hex timestamps absolute\n";
        format!("{head}{}", line.repeat(size)).into_bytes()
    };
    let torn = |name: &str, at: usize| {
        let mut bytes = frames(name, 8 * size as u64); // a BLF of several containers
        let at = at.min(bytes.len() - 1);
        bytes[at] ^= 0x55;
        bytes
    };
    let mut inputs = vec![
        ("comments that might have frames".to_owned(), log(&format!("#{}\n", "(1.0) a ".repeat(50)))),
        ("damaged lines of a log".to_owned(), log("(1.000000) can0 123#1\n")),
        ("damaged lines of an ASC".to_owned(), asc("0.1 1 123 Rx d 8 1 2\n")),
        ("long lines of an ASC".to_owned(), asc(&format!("0.1 1 x {}\n", "0.1 1 x ".repeat(50)))),
        ("a damaged BLF".to_owned(), torn("blf", 200)),
        ("a damaged pcapng".to_owned(), torn("pcapng", 200)),
    ];
    let written = FORMATS.iter().filter(|format| format.write.is_some());
    inputs.extend(written.map(|format| (format!("a {}", format.name), frames(format.name, size as u64))));
    inputs
}

/// How many times an input is doubled.
const DOUBLED: u32 = 3;

#[test]
fn an_input_that_is_twice_as_long_costs_at_most_two_and_a_half_times_as_much() {
    const SIZE: usize = 1000;
    for ((name, short), (_, long)) in inputs(SIZE).into_iter().zip(inputs(SIZE << DOUBLED)) {
        let [short_ns, long_ns] = costs_ns([short, long]);
        let ratio = long_ns as f64 / short_ns as f64;
        let most = 2.5f64.powi(DOUBLED as i32);
        assert!(
            ratio <= most,
            "{name}: {short_ns} ns, and {} times as long {long_ns} ns: {ratio:.1} times",
            1 << DOUBLED
        );
    }
}

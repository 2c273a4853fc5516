//! Recordings: writing and reading each format, in a file system in memory, from opening to the complete file.

use canter_benches::{
    comparison::Comparisons,
    traffic::{BUSES, Traffic, interface},
};
use canter_formats::{FORMATS, RawRecord, WriteOptions, Writer, named};
use std::path::Path;

/// Where Linux has a file system in memory, so that no disk is measured.
const MEMORY: &str = "/dev/shm";

/// Measures every format that can be written, of classic and of FD frames.
pub fn bench(comparisons: &mut Comparisons) {
    let folder = tempfile::tempdir_in(MEMORY).expect("a folder in memory");
    for (kind, traffic) in [("classic", Traffic::classic()), ("FD", Traffic::fd())] {
        for name in writable() {
            let path = folder.path().join(format!("{kind}.{name}"));
            comparisons.measure(&format!("write {name}, {kind}"), &traffic, || write(&path, name, &traffic));
            write(&path, name, &traffic);
            comparisons.measure(&format!("read {name}, {kind}"), &traffic, || read(&path, &traffic));
        }
    }
    append(comparisons, &Traffic::classic());
}

/// The formats that can be written, and one of them compressed.
fn writable() -> impl Iterator<Item = &'static str> {
    FORMATS.iter().filter(|format| format.write.is_some()).map(|format| format.name).chain(["pcapng.zst"])
}

/// Writes the frames as a file.
fn write(path: &Path, name: &str, traffic: &Traffic) {
    let format = named(name.trim_end_matches(".zst"), FORMATS).expect("a row of the table");
    let options = WriteOptions { overwrite: true, ..WriteOptions::new(format, path) };
    let mut writer = Writer::open(&options).expect("memory has room");
    for bus in 0..BUSES {
        writer.interface(&interface(bus)).expect("all formats hold the name");
    }
    for record in &traffic.records {
        writer.frame(record).expect("memory has room");
    }
    writer.finish().expect("memory has room");
}

/// Reads all frames of a file.
fn read(path: &Path, traffic: &Traffic) {
    let mut reader = canter_formats::open(path).expect("the file was written");
    while reader.next_ref().expect("the file is not damaged").is_some() {}
    assert_eq!(reader.frames(), traffic.records.len() as u64);
}

/// Measures what the recorder does of a frame as the kernel wrote it.
fn append(comparisons: &mut Comparisons, traffic: &Traffic) {
    for format in FORMATS.iter().filter(|format| format.append.is_some()) {
        let mut out = Vec::new();
        let make = format.append.expect("rows without it are left out");
        comparisons.measure(&format!("append {}", format.name), traffic, || {
            let mut appender = make(false);
            out.clear();
            appender.begin(&mut out);
            (0..BUSES).for_each(|bus| appender.interface(&mut out, &interface(bus)));
            let frames = traffic.bytes.chunks(traffic.mtu());
            for (record, bytes) in traffic.records.iter().zip(frames) {
                appender.frame(&mut out, &RawRecord::new(record.stamp_ns, record.bus, bytes), false);
            }
        });
    }
}

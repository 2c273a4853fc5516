//! Recordings in a file system in memory, so that no disk is measured.

use canter_benches::traffic::{BUSES, Traffic, interface};
use canter_formats::{FORMATS, WriteOptions, Writer, named};
use std::path::Path;
use tempfile::TempDir;

/// A new folder in memory.
pub fn folder() -> TempDir {
    tempfile::tempdir_in("/dev/shm").expect("a folder in memory")
}

/// Writes the frames of the buses that are `wanted` in a format, which `.zst` behind its name compresses.
pub fn write(path: &Path, name: &str, traffic: &Traffic, wanted: impl Fn(u32) -> bool) {
    let format = named(name.trim_end_matches(".zst"), FORMATS).expect("a row of the table");
    let options = WriteOptions { overwrite: true, ..WriteOptions::new(format, path) };
    let mut writer = Writer::open(&options).expect("memory has room");
    for bus in 0..BUSES {
        writer.interface(&interface(bus)).expect("all formats hold the name");
    }
    for record in traffic.records.iter().filter(|record| wanted(record.bus.0)) {
        writer.frame(record).expect("memory has room");
    }
    writer.finish().expect("memory has room");
}

/// Reads all frames of a file, and returns how many there are.
pub fn read(path: &Path) -> u64 {
    let mut reader = canter_formats::open(path).expect("the file was written");
    while reader.next_ref().expect("the file is not damaged").is_some() {}
    reader.frames()
}

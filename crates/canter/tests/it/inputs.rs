//@ machine: host
//! Reads again what the fuzzer starts with and what it has found (fuzz/README.md): seeds are read without an error, and
//! nothing makes a reader panic.

use canter::inputs::INPUTS;
use canter_formats::{FORMATS, Format, Reader};
use std::{
    collections::BTreeSet,
    fs,
    io::Cursor,
    path::{Path, PathBuf},
};

/// Frames that are read of one input: packed text may hold billions.
const FRAMES_MAX: usize = 200_000;

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus")
}

/// The inputs of a reader, with their names.
fn inputs(reader: &str) -> Vec<(String, Vec<u8>)> {
    let folder = fs::read_dir(corpus().join(reader));
    let folder =
        folder.unwrap_or_else(|error| panic!("fuzz/corpus/{reader} (seeds for it, please): {error}"));
    let read =
        |entry: fs::DirEntry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap());
    let mut inputs: Vec<_> = folder.map(|entry| read(entry.unwrap())).collect();
    inputs.sort();
    inputs
}

/// Reads a recording in one of these formats to its end; returns the number of its frames.
fn frames(bytes: Vec<u8>, formats: &[Format], salvage: bool) -> Result<usize, canter_formats::Error> {
    let reader = Reader::from_read("input", Box::new(Cursor::new(bytes)), formats)?;
    let mut reader = reader.salvage(salvage);
    let mut frames = 0;
    while frames < FRAMES_MAX && reader.next_record()?.is_some() {
        frames += 1;
    }
    Ok(frames)
}

#[test]
fn every_reader_of_recordings_reads_its_seeds_and_panics_at_nothing() {
    let one = |format: &Format| (format.name, vec![*format]);
    let readers = FORMATS.iter().filter(|format| format.read.is_some()).map(one);
    for (name, formats) in readers.chain([("packed", FORMATS.to_vec())]) {
        let mut seeds = 0;
        for (file, bytes) in inputs(name) {
            let read = frames(bytes.clone(), &formats, false);
            let _ = frames(bytes, &formats, true);
            if file.starts_with("seed") {
                assert!(matches!(read, Ok(1..)), "{name}/{file}: {read:?}");
                seeds += 1;
            }
        }
        assert!(seeds > 0, "fuzz/corpus/{name} has no seed");
    }
}

#[test]
fn no_other_input_makes_its_reader_panic() {
    for input in INPUTS {
        let files = inputs(input.name);
        assert!(
            files.iter().any(|(file, _)| file.starts_with("seed")),
            "fuzz/corpus/{} has no seed",
            input.name
        );
        files.iter().for_each(|(_, bytes)| (input.read)(bytes));
    }
}

#[test]
fn the_corpus_has_a_folder_for_each_reader_and_no_other() {
    let readers = FORMATS.iter().filter(|format| format.read.is_some()).map(|format| format.name);
    let readers: BTreeSet<_> =
        readers.chain(["packed"]).chain(INPUTS.iter().map(|input| input.name)).collect();
    let folders: Vec<_> = fs::read_dir(corpus())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(folders.iter().map(String::as_str).collect::<BTreeSet<_>>(), readers);
}

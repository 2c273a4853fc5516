//! Recordings of 20 buses as one, merged by stamp: frames of all buses in turn, and frames of one bus in long runs. Beside it
//! the same files one after another, which only reads them.

use crate::file;
use canter::recordings::{Inputs, Merge, Opening};
use canter_benches::{
    comparison::Comparisons,
    traffic::{BUSES, FRAMES, Traffic},
};
use std::path::{Path, PathBuf};

/// The format that is quickest to read.
const FORMAT: &str = "pcapng";
/// Frames of a bus before those of the next one.
const RUN: u32 = 100;
/// Frames are held back for this time of stamps when they are sorted.
const WINDOW_NS: u64 = 1_000_000;

/// Measures merging in each order.
pub fn bench(comparisons: &mut Comparisons) {
    let folder = file::folder();
    let (turns, runs) = (Traffic::classic(), Traffic::in_runs(RUN));
    let in_turn = write_each_bus(&folder.path().join("turns"), &turns);
    let in_runs = write_each_bus(&folder.path().join("runs"), &runs);
    comparisons.measure("merge: none, 20 files", &turns, || read(&in_turn));
    comparisons.measure("merge: 20 files, frames in turn", &turns, || merge(&in_turn, None));
    comparisons.measure("merge: 20 files, runs of 100", &runs, || merge(&in_runs, None));
    comparisons.measure("merge: 20 files, sorted", &turns, || merge(&in_turn, Some(WINDOW_NS)));
    let one = [folder.path().join("one")];
    file::write(&one[0], FORMAT, &turns, |_| true);
    comparisons.measure("merge: none, 1 file", &turns, || read(&one));
    comparisons.measure("merge: 1 file", &turns, || merge(&one, None));
}

fn write_each_bus(folder: &Path, traffic: &Traffic) -> Vec<PathBuf> {
    std::fs::create_dir(folder).expect("a new folder");
    let file = |bus: u32| {
        let path = folder.join(bus.to_string());
        file::write(&path, FORMAT, traffic, |one| one == bus);
        path
    };
    (0..BUSES).map(file).collect()
}

/// Reads the files one after another.
fn read(paths: &[PathBuf]) {
    assert_eq!(paths.iter().map(|path| file::read(path)).sum::<u64>(), FRAMES as u64);
}

fn merge(paths: &[PathBuf], window_ns: Option<u64>) {
    let inputs = Inputs::open(paths, Opening::default()).expect("the files were written");
    let mut merge = Merge::new(inputs, window_ns);
    let mut frames = 0;
    while merge.next().expect("no file is damaged").is_some() {
        frames += 1;
    }
    assert_eq!((frames, merge.backwards()), (FRAMES as u64, 0));
}

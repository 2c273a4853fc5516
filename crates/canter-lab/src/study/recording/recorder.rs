//! Recorders, as rows: canter's, and those that people use, each with the command that records all buses.

use crate::study;
use canter_cli::failure::{self, Failure};
use canter_formats::{FORMATS, Reader};
use canter_measure::result::Ledger;
use std::path::Path;

pub struct Recorder {
    /// The recorder's name in study files and results.
    pub name: &'static str,
    /// The name of the recorder's file; a `*` at the end stands for what the program appends.
    pub file: &'static str,
    words: fn(&Assignment<'_>) -> Vec<String>,
    /// Checks the losses that the exit code reports against the truth.
    pub agrees: fn(i32, &Ledger) -> Result<(), String>,
}

/// The buses, the file and the memory of a recorder.
pub struct Assignment<'a> {
    pub nodes: &'a [String],
    pub file: &'a Path,
    /// The memory in which frames may wait, in MiB.
    pub mebibytes: u32,
}

static RECORDERS: [Recorder; 4] = [
    Recorder { name: "canter", file: "all.pcapng", words: canter, agrees: canters_account_is_true },
    Recorder { name: "candump", file: "candump-*", words: candump, agrees: says_nothing },
    Recorder { name: "dumpcap", file: "all.pcapng", words: dumpcap, agrees: says_nothing },
    Recorder { name: "tcpdump", file: "all.pcap", words: tcpdump, agrees: says_nothing },
];

pub fn find(name: &str) -> Result<&'static Recorder, String> {
    RECORDERS.iter().find(|row| row.name == name).ok_or_else(|| {
        let known: Vec<_> = RECORDERS.iter().map(|row| row.name).collect();
        format!("{name}: no such recorder (there are {})", known.join(", "))
    })
}

impl Recorder {
    /// The recorder's command.
    pub fn words(&self, assignment: &Assignment<'_>) -> failure::Result<Vec<String>> {
        let mut words = (self.words)(assignment);
        if words[0] == "canter" {
            words[0] = study::program()?.to_string_lossy().into_owned();
        }
        Ok(words)
    }
}

fn words<'a>(words: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    words.into_iter().map(str::to_owned).collect()
}

/// canter's command, with four fifths of the memory for the kernel's ring and the rest for canter's queue.
fn canter(assignment: &Assignment<'_>) -> Vec<String> {
    let queue = assignment.mebibytes / 5;
    let mut all = words(["canter", "capture"]);
    all.extend_from_slice(assignment.nodes);
    all.extend(words(["-o", &assignment.file.to_string_lossy(), "--quiet"]));
    all.extend([format!("--ring={}M", assignment.mebibytes - queue), format!("--buffer={queue}M")]);
    all
}

/// candump's command for `any` interface, because it takes at most 16 by name; one socket has all of the memory.
fn candump(assignment: &Assignment<'_>) -> Vec<String> {
    words(["candump", "-l", "-r", &(u64::from(assignment.mebibytes) << 20).to_string(), "any"])
}

/// dumpcap's command, with a thread and a ring for each interface.
fn dumpcap(assignment: &Assignment<'_>) -> Vec<String> {
    let each = (assignment.mebibytes / assignment.nodes.len() as u32).max(1).to_string();
    let mut all = words(["dumpcap", "-q", "-n", "-B", &each]);
    assignment.nodes.iter().for_each(|node| all.extend(words(["-i", node])));
    all.extend(words(["-w", &assignment.file.to_string_lossy()]));
    all
}

/// tcpdump's command for `any` interface, because it takes only one by name.
fn tcpdump(assignment: &Assignment<'_>) -> Vec<String> {
    let kibibytes = (assignment.mebibytes << 10).to_string();
    words([
        "tcpdump",
        "-i",
        "any",
        "-n",
        "-Z",
        "root",
        "-B",
        &kibibytes,
        "-w",
        &assignment.file.to_string_lossy(),
    ])
}

fn says_nothing(_: i32, _: &Ledger) -> Result<(), String> {
    Ok(())
}

/// Whether canter's exit code is true: 0: complete; 3: a frame is missing.
fn canters_account_is_true(code: i32, ledger: &Ledger) -> Result<(), String> {
    match (code, ledger.lost.total()) {
        (0, 0) | (3, 1..) => Ok(()),
        (code, lost) => {
            Err(format!("{lost} of {} frames are missing, and it ended with {code}", ledger.sent))
        }
    }
}

/// The number of frames in a recorder's file in this folder.
pub fn frames_in(folder: &Path, recorder: &Recorder) -> failure::Result<u64> {
    let wrong = |why: String| Failure::failed(format!("study: {}: {why}", recorder.name));
    let beginning = recorder.file.trim_end_matches('*');
    let entries = folder.read_dir().map_err(|error| wrong(format!("{}: {error}", folder.display())))?;
    let mut files = entries.flatten().map(|entry| entry.path()).filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if recorder.file.ends_with('*') { name.starts_with(beginning) } else { name == recorder.file }
    });
    let path = files.next().ok_or_else(|| wrong(format!("no file {}", recorder.file)))?;
    let mut reader = Reader::open(&path, FORMATS)?;
    let mut frames = 0;
    while reader.next_record()?.is_some() {
        frames += 1;
    }
    Ok(frames)
}

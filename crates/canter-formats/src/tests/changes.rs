//! No reader drops or invents a frame in silence: whichever byte of a file is another, and wherever the file ends, there are
//! as many frames as before, or the reader says that something is left out.

use super::{Recording, Seen, is_text, records, seeds, seen};
use crate::{FORMATS, named};
use std::{fs, os::unix::fs::FileExt};

/// The changes of a byte.
const KINDS: usize = 16;

/// The changes of a file that are tried, about. The fuzzer makes others of the same files.
const CHANGES_MAX: usize = 1 << 13;

/// What a byte may become: one bit is another, a limit, or in a text what separates its parts.
fn others(old: u8) -> impl Iterator<Item = u8> {
    let bits = (0..8).map(move |bit| old ^ 1 << bit);
    bits.chain([0, 0xff, b'\n', b' ', b'/', b'#', b'-', b'9']).filter(move |&new| new != old)
}

/// Whether the reader says that more is left out or wrong than in the intact file.
fn is_reported(seen: &Seen, intact: &Seen) -> bool {
    let count = |seen: &Seen, kind| {
        seen.skipped_by_kind.iter().find(|(known, _)| *known == kind).map_or(0, |(_, count)| *count)
    };
    let left_out = seen.skipped_by_kind.iter().any(|&(kind, frames)| frames > count(intact, kind));
    seen.error.is_some() || seen.cut || left_out || !seen.flawed.is_empty()
}

/// Whether the file of a format that grows may end here: behind a line or a block.
fn may_end(name: &str, file: &[u8], end: usize) -> bool {
    let bytes = &file[..end];
    let number =
        |at: usize| bytes.get(at..at + 4).map(|four| u32::from_le_bytes(four.try_into().unwrap()) as usize);
    let blocks = |first: usize, length: fn(usize) -> usize, field: usize| {
        let mut at = first;
        while let Some(stated) = number(at + field) {
            at += length(stated);
        }
        at == bytes.len()
    };
    match name {
        _ if is_text(file) => bytes.ends_with(b"\n"),
        "pcapng" => blocks(0, |stated| stated, 4),
        "pcap" => blocks(24, |stated| 16 + stated, 8),
        _ => false,
    }
}

fn is_only_read(name: &str) -> bool {
    named(name, FORMATS).is_some_and(|format| format.write.is_none())
}

/// A file to change, and the frames in it.
struct Subject {
    name: String,
    format: &'static str,
    bytes: Vec<u8>,
    intact: Seen,
}

impl Subject {
    fn new(name: String, format: &'static str, bytes: Vec<u8>) -> Self {
        let intact = seen(&bytes);
        assert!(
            intact.error.is_none() && !intact.cut && !intact.frames.is_empty(),
            "{name}: {:?}",
            intact.error
        );
        Self { name, format, bytes, intact }
    }

    /// Whether a change of the file removed or added a frame, and the reader did not say so.
    fn is_silent(&self, seen: &Seen) -> bool {
        seen.frames.len() != self.intact.frames.len() && !is_reported(seen, &self.intact)
    }

    /// Whether a changed TRC has a frame in a comment, which nobody can know: behind one that has lost its line break, or in a
    /// line that begins as one.
    fn makes_a_comment(&self, at: usize, changed: &[u8]) -> bool {
        let begin =
            self.bytes[..at].iter().rposition(|&byte| byte == b'\n').map_or(0, |line_break| line_break + 1);
        let begins = |bytes: &[u8]| bytes[begin..].trim_ascii_start().starts_with(b";");
        self.format == "trc" && begins(changed) && (self.bytes[at] == b'\n' || !begins(&self.bytes))
    }

    /// Which changes of a byte and which ends of the file remove or add a frame in silence.
    fn silent_changes(&self) -> Vec<String> {
        let mut silent = Vec::new();
        let mut bytes = self.bytes.clone();
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(&file, &bytes).unwrap();
        let change = |at: usize, byte: u8| file.as_file().write_all_at(&[byte], at as u64).unwrap();
        // Of a long file each byte has some of its changes, and each change is made to some bytes.
        let one_of = (bytes.len() * KINDS).div_ceil(CHANGES_MAX).min(KINDS);
        for at in 0..bytes.len() {
            let old = bytes[at];
            let some = |(n, _): &(usize, u8)| (n + at).is_multiple_of(one_of);
            for (_, new) in others(old).enumerate().filter(some) {
                bytes[at] = new;
                if self.makes_a_comment(at, &bytes) {
                    continue;
                }
                change(at, new);
                let seen = Seen::read(crate::open(file.path()));
                if self.is_silent(&seen) {
                    silent.push(format!("byte {at}: {old:#04x} → {new:#04x}: {} frames", seen.frames.len()));
                }
            }
            bytes[at] = old;
            change(at, old);
        }
        silent.extend(self.silent_ends());
        silent
    }

    fn silent_ends(&self) -> Vec<String> {
        let mut silent = Vec::new();
        let is_text_of_others = is_only_read(self.format) && str::from_utf8(&self.bytes).is_ok();
        let may_end = |end: usize| match is_text_of_others {
            // With or without the line break, and SavvyCAN's comma before it.
            true => {
                let rest = &self.bytes[end..];
                rest.starts_with(b"\n") || rest.starts_with(b",\n") || self.bytes[..end].ends_with(b"\n")
            }
            false => may_end(self.format, &self.bytes, end),
        };
        for end in (0..self.bytes.len()).filter(|&end| !may_end(end)) {
            let seen = seen(&self.bytes[..end]);
            if self.is_silent(&seen) {
                silent.push(format!("cut at {end}: {} frames", seen.frames.len()));
            }
        }
        // What a logger leaves that is stopped may end behind each of its records, and nowhere else.
        let may_end_behind_records = self.bytes.starts_with(b"UnFinMF ");
        if may_end_behind_records && silent.len() == self.intact.frames.len() {
            silent.clear();
        }
        silent
    }

    fn check(&self) {
        let silent = self.silent_changes();
        assert!(
            silent.is_empty(),
            "{}: {} changes of {} frames in silence: {:#?}\n{}",
            self.name,
            silent.len(),
            self.intact.frames.len(),
            &silent[..silent.len().min(20)],
            String::from_utf8_lossy(&self.bytes)
        );
    }
}

/// Checks canter's own file of a format, and the seeds of the fuzzer: files of other programs, too.
fn check(name: &'static str) {
    if let Some(format) = named(name, FORMATS).filter(|format| format.write.is_some()) {
        let recording = Recording::write(format, &records(), "file");
        let bytes = fs::read(recording.file(format).unwrap()).unwrap();
        Subject::new(format!("a new {name}"), name, bytes).check();
    }
    for path in seeds(name) {
        Subject::new(path.display().to_string(), name, fs::read(path).unwrap()).check();
    }
}

#[test]
fn of_each_format() {
    std::thread::scope(|scope| {
        for name in FORMATS.iter().map(|format| format.name).chain(["packed"]) {
            scope.spawn(move || check(name));
        }
    });
}

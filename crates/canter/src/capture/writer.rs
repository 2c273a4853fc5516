//! The writer's thread: queue → merge → format → file. A disk error stops the writing at the last whole entry, not
//! the counting.

use super::{
    formats::{Closing, Format},
    merge::Merge,
    queue::{Item, Queue},
    receiver::Live,
};
use std::{
    collections::VecDeque,
    fs::File,
    io::{self, Write},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

/// How often it looks at the queue.
const LOOK: Duration = Duration::from_millis(50);
/// What is formatted is written when it is that much…
const WRITE_BYTES: usize = 256 << 10;
/// …or that old. With the merge's window and a block's time this keeps the promise of one second.
const WRITE_AGE: Duration = Duration::from_millis(750);
/// After so many looks in vain, no frame can precede those that are held back. Looks and not time: while the whole
/// process is stopped, time passes and the ring fills.
const QUIET_LOOKS: u32 = 3;

/// What was written.
#[derive(Debug, Default)]
pub struct Report {
    /// Frames in the file, of each interface.
    pub in_file: Vec<u64>,
    /// Frames that the disk did not take, of each interface.
    pub lost: Vec<u64>,
    /// Frames behind the last that was asked for, of each interface.
    pub beyond: Vec<u64>,
    /// Frames behind younger ones.
    pub late: u64,
    /// The size of the file.
    pub bytes: u64,
    /// Why it stopped writing.
    pub error: Option<String>,
}

/// Formats entries and writes them in large pieces.
struct Output {
    file: File,
    path: PathBuf,
    format: Box<dyn Format>,
    buffer: Vec<u8>,
    /// Where each entry in the buffer ends, and of which interface it is; `NO_FRAME`: of none.
    entries: Vec<(u32, u32)>,
    report: Report,
    written: Instant,
    /// How many frames may still come.
    left: u64,
}

const NO_FRAME: u32 = u32::MAX;

impl Output {
    fn note(&mut self, interface: u32) {
        self.entries.push((self.buffer.len() as u32, interface));
    }

    fn interface(&mut self, name: &str) {
        self.format.interface(&mut self.buffer, name);
        self.report.in_file.push(0);
        self.report.lost.push(0);
        self.report.beyond.push(0);
        self.note(NO_FRAME);
    }

    #[inline]
    fn frame(&mut self, record: &canter_io::capture_ring::Record<'_>, late: bool) {
        if self.left == 0 {
            return if let Some(beyond) = self.report.beyond.get_mut(record.interface as usize) {
                *beyond += 1;
            };
        }
        self.left -= 1;
        self.format.frame(&mut self.buffer, record, late);
        self.note(record.interface);
        if self.buffer.len() >= WRITE_BYTES {
            self.write();
        }
    }

    /// Writes the buffer, or counts it as lost.
    fn write(&mut self) {
        let mut whole = 0;
        if self.report.error.is_none() {
            let (taken, error) = write_counting(&mut self.file, &self.buffer);
            whole = taken;
            if let Some(error) = error {
                // What was cut off is no use to a reader.
                let ends = self.entries.iter().map(|&(end, _)| end as usize);
                whole = ends.take_while(|&end| end <= taken).last().unwrap_or(0);
                let _ = self.file.set_len(self.report.bytes + whole as u64);
                self.fail(crate::trouble::of_file(&self.path, "write", error).message);
            }
            self.report.bytes += whole as u64;
        }
        for &(end, interface) in &self.entries {
            let counts = if end as usize <= whole { &mut self.report.in_file } else { &mut self.report.lost };
            if let Some(count) = counts.get_mut(interface as usize) {
                *count += 1;
            }
        }
        self.buffer.clear();
        self.entries.clear();
        self.written = Instant::now();
    }

    fn fail(&mut self, error: String) {
        eprintln!("canter: {error}; frames are counted on, not written");
        self.report.error = Some(error);
    }

    /// Whether somebody removed or replaced the file: then nobody can read what was written.
    fn check_still_there(&mut self) {
        let same = |path: &Path, file: &File| {
            let (there, ours) = (std::fs::metadata(path)?, file.metadata()?);
            io::Result::Ok((there.dev(), there.ino()) == (ours.dev(), ours.ino()))
        };
        if self.report.error.is_none() && !same(&self.path, &self.file).unwrap_or(false) {
            self.fail(format!("{}: was removed while it was written", self.path.display()));
            for (lost, in_file) in self.report.lost.iter_mut().zip(&mut self.report.in_file) {
                *lost += std::mem::take(in_file);
            }
        }
    }

    fn finish(mut self, late: u64, closings: &[Closing], verdict: &str) -> Report {
        self.write();
        self.format.finish(&mut self.buffer, closings, verdict);
        self.note(NO_FRAME);
        self.write();
        if self.report.error.is_none() && self.file.metadata().is_ok_and(|about| about.is_file()) {
            if let Err(error) = self.file.sync_data() {
                self.fail(format!("{}: sync: {error}", self.path.display()));
            }
            self.check_still_there();
        }
        self.report.late = late;
        self.report
    }
}

/// Writes until all is written or an error comes, and answers how much was.
fn write_counting(file: &mut impl Write, bytes: &[u8]) -> (usize, Option<io::Error>) {
    let mut taken = 0;
    while taken < bytes.len() {
        match file.write(&bytes[taken..]) {
            Ok(0) => return (taken, Some(io::ErrorKind::WriteZero.into())),
            Ok(count) => taken += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (taken, Some(error)),
        }
    }
    (taken, None)
}

/// Writes what comes through `queue` until its end, but no more than `frames_max`; then it says that it is enough.
pub fn run(
    queue: &Queue,
    live: &Live,
    file: File,
    path: &Path,
    mut format: Box<dyn Format>,
    frames_max: u64,
) -> Report {
    let mut buffer = Vec::with_capacity(2 * WRITE_BYTES);
    format.begin(&mut buffer);
    let (entries, report) = (Vec::new(), Report::default());
    let (path, written) = (path.to_owned(), Instant::now());
    let mut output = Output { file, path, format, buffer, entries, report, written, left: frames_max };
    output.note(NO_FRAME);
    let (mut merge, mut items, mut in_vain) = (Merge::default(), VecDeque::new(), 0);
    loop {
        let complete_ns = queue.complete_until();
        queue.take(&mut items, LOOK);
        in_vain = if items.is_empty() { in_vain + 1 } else { 0 };
        for item in items.drain(..) {
            let freed = match item {
                Item::Chunk(chunk) => {
                    merge.add(chunk);
                    merge.ripe(complete_ns, |record, late| output.frame(record, late))
                }
                Item::Interface(name) => {
                    output.interface(&name);
                    0
                }
                Item::ClockStep => merge.restart(|record, late| output.frame(record, late)),
                Item::End(closings, verdict) => {
                    queue.release(merge.all(|record, late| output.frame(record, late)));
                    return output.finish(merge.late(), &closings, &verdict);
                }
            };
            queue.release(freed);
        }
        if in_vain >= QUIET_LOOKS {
            queue.release(merge.quiet(complete_ns, |record, late| output.frame(record, late)));
        }
        if output.left == 0 {
            live.enough.store(true, Ordering::Relaxed);
        }
        if output.written.elapsed() > WRITE_AGE && !output.buffer.is_empty() {
            output.write();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes so many bytes and then none.
    struct Full(usize);

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let taken = self.0.min(bytes.len()).min(7);
            self.0 -= taken;
            if taken == 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(taken) }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_disk_that_fills_up_says_how_much_it_took() {
        let (taken, error) = write_counting(&mut Full(20), &[0; 64]);
        assert_eq!((taken, error.unwrap().kind()), (20, io::ErrorKind::StorageFull));
        assert!(matches!(write_counting(&mut Full(64), &[0; 64]), (64, None)));
    }
}

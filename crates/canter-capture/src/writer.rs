//! The writer's thread: queue → merge → format → files. A disk error stops the writing at the last whole entry, not
//! the counting.

use crate::{
    Error,
    account::Written,
    files::Files,
    live::Live,
    merge::{Merge, Piece},
    queue::{Item, Queue},
};
use canter_formats::{Append, Closing, Format};
use canter_frame::RawRecord;
use std::{
    collections::VecDeque,
    sync::{PoisonError, atomic::Ordering},
    time::{Duration, Instant},
};

/// How often it looks at the queue.
const LOOK: Duration = Duration::from_millis(100);
/// What is formatted is written when it is that much, or as old as the flush interval allows. No more than stays in a
/// processor's cache.
const WRITE_BYTES: usize = 64 << 10;
/// How old a frame may be when it is written because it is time: a block's time (60 ms), a look until it is taken, those
/// in vain behind the last frame, and one more, since time is looked at that often.
const HOLD: Duration = Duration::from_millis(480);
/// After so many looks in vain, no frame can precede those that are held back. Looks and not time: while the whole
/// process is stopped, time passes and the ring fills.
const QUIET_LOOKS: u32 = 2;
/// How hard zstd tries: the fastest level takes a fifth off the disk's load at the least cost a frame.
const ZSTD_LEVEL: i32 = 1;

/// What was written.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Frames in the files, of each interface.
    pub in_file: Vec<u64>,
    /// Frames that the disk did not take, of each interface.
    pub lost: Vec<u64>,
    /// Frames behind the last that was asked for, of each interface.
    pub beyond: Vec<u64>,
    /// Frames behind younger ones.
    pub late: u64,
    /// The size of all files.
    pub bytes: u64,
    /// Why it stopped writing.
    pub error: Option<String>,
    /// The files, and those that made room for others.
    pub files: Vec<Written>,
    pub deleted: crate::account::Deleted,
}

/// How it writes.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    pub format: &'static Format,
    /// Makes the format's appender.
    pub append: canter_formats::format::MakeAppend,
    /// In a log, stamps of 9 digits.
    pub ns: bool,
    pub zstd: bool,
    /// No more frames than this.
    pub frames_max: u64,
    /// A file is followed by another from this size on, in bytes…
    pub rotate_bytes: Option<u64>,
    /// …or at this age.
    pub rotate_age: Option<Duration>,
    pub flush: Duration,
}

/// Formats entries and writes them in large pieces.
struct Output<'a> {
    style: Style,
    files: Files,
    live: &'a Live,
    format: Box<dyn Append>,
    packer: Option<zstd::bulk::Compressor<'static>>,
    names: Vec<String>,
    buffer: Vec<u8>,
    /// The buffer is written from this size on.
    write_at: usize,
    /// Where each entry in the buffer ends, and of which interface it is; `NO_FRAME`: of none.
    entries: Vec<(u32, u32)>,
    /// How many of the entries are frames of each interface.
    pending: Vec<u64>,
    report: Report,
    /// What is in the current file, and its frames of each interface.
    current: Written,
    in_current: Vec<u64>,
    last_ns: u64,
    began: Instant,
    written: Instant,
    /// How many frames may still come.
    left: u64,
}

const NO_FRAME: u32 = u32::MAX;

impl<'a> Output<'a> {
    fn new(files: Files, style: Style, live: &'a Live) -> Self {
        let mut output = Self {
            style,
            files,
            live,
            format: (style.append)(style.ns),
            packer: None,
            names: Vec::new(),
            buffer: Vec::with_capacity(2 * WRITE_BYTES),
            write_at: WRITE_BYTES,
            entries: Vec::new(),
            pending: Vec::new(),
            report: Report::default(),
            current: Written::default(),
            in_current: Vec::new(),
            last_ns: 0,
            began: Instant::now(),
            written: Instant::now(),
            left: style.frames_max,
        };
        if style.zstd {
            let packer = zstd::bulk::Compressor::new(ZSTD_LEVEL).and_then(|mut packer| {
                packer.include_checksum(true)?;
                Ok(packer)
            });
            match packer {
                Ok(packer) => output.packer = Some(packer),
                Err(error) => output.fail(format!("zstd: {error}")),
            }
        }
        output.begin();
        output
    }

    /// The head of a file.
    fn begin(&mut self) {
        self.format = (self.style.append)(self.style.ns);
        self.format.begin(&mut self.buffer);
        for name in &self.names {
            self.format.interface(&mut self.buffer, name);
        }
        self.note(NO_FRAME);
        (self.current, self.began) = (Written::default(), Instant::now());
        self.in_current.fill(0);
        self.set_write_at();
    }

    fn note(&mut self, interface: u32) {
        self.entries.push((self.buffer.len() as u32, interface));
    }

    fn interface(&mut self, name: String) {
        self.format.interface(&mut self.buffer, &name);
        self.names.push(name);
        let Report { in_file, lost, beyond, .. } = &mut self.report;
        let all = [in_file, lost, beyond, &mut self.in_current, &mut self.pending];
        all.into_iter().for_each(|counts| counts.push(0));
        self.note(NO_FRAME);
    }

    fn frames(&mut self, Piece { chunk, places, late }: Piece<'_>) {
        let taken = self.left.min(places.len() as u64);
        self.left -= taken;
        let until = places.start + taken as usize;
        chunk.each(places.start..until, |record| self.frame(record, late));
        chunk.each(until..places.end, |record| {
            if let Some(beyond) = self.report.beyond.get_mut(record.bus.index()) {
                *beyond += 1;
            }
        });
    }

    #[inline]
    fn frame(&mut self, record: &RawRecord<'_>, late: bool) {
        self.format.frame(&mut self.buffer, record, late);
        self.note(record.bus.0);
        if let Some(count) = self.pending.get_mut(record.bus.index()) {
            *count += 1;
        }
        if self.current.first_ns == 0 {
            self.current.first_ns = record.stamp_ns;
        }
        self.last_ns = record.stamp_ns;
        if self.buffer.len() >= self.write_at {
            self.write();
            self.rotate_when_full();
        }
    }

    fn rotate_when_full(&mut self) {
        let full = self.style.rotate_bytes.is_some_and(|most| self.files.bytes() >= most);
        if full && self.report.error.is_none() {
            self.rotate();
        }
    }

    /// A file that is not packed ends with the very frame that makes it large enough.
    fn set_write_at(&mut self) {
        let most = self.style.rotate_bytes.filter(|_| self.packer.is_none());
        let left = most.map_or(WRITE_BYTES as u64, |most| most.saturating_sub(self.files.bytes()));
        self.write_at = left.min(WRITE_BYTES as u64) as usize;
    }

    /// Writes the buffer, or counts it as lost.
    fn write(&mut self) {
        let whole = if self.report.error.is_none() { self.write_buffer() } else { 0 };
        let lost = self.entries.iter().rev().take_while(|&&(end, _)| end as usize > whole);
        for &(_, interface) in lost.filter(|&&(_, interface)| interface != NO_FRAME) {
            self.report.lost[interface as usize] += 1;
            self.pending[interface as usize] -= 1;
        }
        for (at, frames) in self.pending.iter_mut().enumerate() {
            let frames = std::mem::take(frames);
            self.report.in_file[at] += frames;
            self.in_current[at] += frames;
            self.current.frames += frames;
        }
        self.current.last_ns = self.last_ns;
        self.buffer.clear();
        self.entries.clear();
        self.written = Instant::now();
        self.set_write_at();
        self.publish();
    }

    /// Answers how much of the buffer is in the file, in whole entries.
    fn write_buffer(&mut self) -> usize {
        let packed = self.packer.as_mut().map(|packer| packer.compress(&self.buffer));
        let before = self.files.bytes();
        let (whole, error) = match packed {
            Some(Err(error)) => (0, Some(error)),
            // A frame of zstd is whole or of no use.
            Some(Ok(packed)) => match self.files.write(&packed) {
                (_, None) => (self.buffer.len(), None),
                (taken, error) => {
                    self.files.cut(taken);
                    (0, error)
                }
            },
            None => match self.files.write(&self.buffer) {
                (taken, None) => (taken, None),
                (taken, error) => {
                    let ends = self.entries.iter().map(|&(end, _)| end as usize);
                    let whole = ends.take_while(|&end| end <= taken).last().unwrap_or(0);
                    self.files.cut(taken - whole);
                    (whole, error)
                }
            },
        };
        self.report.bytes += self.files.bytes() - before;
        if let Some(error) = error {
            self.fail(Error::file(self.files.path(), "write", error).to_string());
        }
        whole
    }

    /// Lets others see how far it is, even if the next write never ends.
    fn publish(&self) {
        let mut shown = self.live.written.lock().unwrap_or_else(PoisonError::into_inner);
        shown.clone_from(&self.report);
        drop(shown);
    }

    fn fail(&mut self, error: String) {
        self.live.say(format!("{error}; frames are counted on, not written"));
        self.report.error = Some(error);
    }

    fn check_still_there(&mut self) {
        if self.report.error.is_none() && !self.files.is_there() {
            self.fail(format!("{}: was removed while it was written", self.files.path().display()));
            for (at, frames) in self.in_current.iter_mut().enumerate() {
                self.report.in_file[at] -= *frames;
                self.report.lost[at] += std::mem::take(frames);
            }
            self.report.bytes -= self.files.bytes();
        }
    }

    /// Ends a file: its statistics, then the disk.
    fn close(&mut self, closings: &[Closing], verdict: &str) {
        self.write();
        self.format.finish(&mut self.buffer, closings, verdict);
        self.note(NO_FRAME);
        self.write();
        self.check_still_there();
        let path = self.files.path().display().to_string();
        if let Err(error) = self.files.close(std::mem::take(&mut self.current)) {
            self.fail(format!("{path}: sync: {error}"));
        }
    }

    /// The next file, which is as whole as the one before.
    fn rotate(&mut self) {
        let (started_ns, ended_ns) = (self.current.first_ns, self.last_ns);
        let closing = Closing { started_ns, ended_ns, received: None, lost: None };
        let about = "the recording goes on in the next file, the account is in the last";
        self.close(&vec![closing; self.names.len()], about);
        if self.report.error.is_some() {
            return;
        }
        match self.files.next() {
            Ok(()) => self.begin(),
            Err(error) => self.fail(error.to_string()),
        }
    }

    /// What time asks for.
    fn tick(&mut self) {
        if self.report.error.is_some() {
            if !self.buffer.is_empty() {
                self.write();
            }
            return;
        }
        let age = self.style.flush.saturating_sub(HOLD);
        if self.written.elapsed() > age {
            self.check_still_there();
            if !self.buffer.is_empty() {
                self.write();
                self.rotate_when_full();
            }
            self.written = Instant::now();
        }
        if self.style.rotate_age.is_some_and(|age| self.began.elapsed() >= age) && self.current.first_ns != 0
        {
            self.rotate();
        }
    }

    fn finish(mut self, late: u64, closings: &[Closing], verdict: &str) -> Report {
        self.close(closings, verdict);
        self.report.late = late;
        (self.report.files, self.report.deleted) = self.files.closed();
        self.report
    }
}

/// Writes what comes through `queue` until its end, but no more than was asked for; then it says that it is enough.
pub fn run(queue: &Queue, live: &Live, files: Files, style: Style) -> Report {
    let mut output = Output::new(files, style, live);
    let (mut merge, mut items, mut in_vain) = (Merge::default(), VecDeque::new(), 0);
    loop {
        let complete_ns = queue.complete_until();
        queue.take(&mut items, LOOK);
        in_vain = if items.is_empty() { in_vain + 1 } else { 0 };
        for item in items.drain(..) {
            let freed = match item {
                Item::Chunk(chunk) => {
                    merge.add(chunk);
                    merge.ripe(complete_ns, |piece| output.frames(piece))
                }
                Item::Interface(name) => {
                    output.interface(name);
                    0
                }
                Item::ClockStep(said) => {
                    let freed = merge.restart(|piece| output.frames(piece));
                    output.format.remark(&said);
                    freed
                }
                Item::End(closings, verdict) => {
                    queue.release(merge.all(|piece| output.frames(piece)));
                    return output.finish(merge.late(), &closings, &verdict);
                }
            };
            queue.release(freed);
        }
        if in_vain >= QUIET_LOOKS {
            queue.release(merge.quiet(complete_ns, |piece| output.frames(piece)));
        }
        queue.recycle(merge.spare());
        if output.left == 0 {
            live.enough.store(true, Ordering::Relaxed);
        }
        output.tick();
    }
}

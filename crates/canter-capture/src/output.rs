//! Formats frames and writes them to files in large pieces. After a disk error the file ends with the last whole entry, and
//! frames are still counted; the recording continues in another file as soon as one can be written.

use crate::{
    Error,
    account::Written,
    files::{Files, State},
    live::{Current, Live, Progress},
    merge::Piece,
    queue::Ending,
    rest::{Entry, NO_FRAME, Rest},
    syncer::Syncer,
};
use canter_formats::{Append, Closing, Format};
use canter_frame::{BusId, RawRecord};
use canter_io::clock;
use std::{
    io,
    path::Path,
    sync::PoisonError,
    time::{Duration, Instant},
};

/// Formatted frames are written when they have this size in bytes, or the age that the flush interval allows. The size
/// fits into a processor's cache.
const WRITE_BYTES: usize = 64 << 10;
/// The age that a frame may already have when the flush timer runs: 60 ms until the kernel hands over its block, one
/// look of the writer until the block is taken, two looks without a message after the last frame, and one until the timer
/// is checked.
const HOLD: Duration = Duration::from_millis(480);
/// How often a recording that could not be written tries to continue in another file.
const RETRY: Duration = Duration::from_secs(1);
/// A recording continues in another file only when the disk has this much room, in bytes: a disk that is filled again at
/// once must not get thousands of tiny files.
const ROOM_BYTES: u64 = 1 << 20;
/// The zstd level: the fastest one costs least per frame and reduces the data written by a fifth.
const ZSTD_LEVEL: i32 = 1;

/// The part of the settings that the writer needs.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    pub format: &'static Format,
    /// Creates the format's appender.
    pub append: canter_formats::format::MakeAppend,
    /// In a log, stamps with 9 digits after the decimal point.
    pub ns: bool,
    pub zstd: bool,
    /// The frame limit.
    pub frames_max: u64,
    /// Start the next file when the current one has this size, in bytes.
    pub rotate_bytes: Option<u64>,
    /// Start the next file when the current one has this age.
    pub rotate_age: Option<Duration>,
    pub flush: Duration,
    /// How often the file is synced to the disk.
    pub sync: Duration,
}

#[cfg(test)]
impl Style {
    /// One file without limits, flushed and synced as often as by default.
    pub fn plain(format: &'static Format) -> Self {
        Self {
            format,
            append: format.append.expect("a format that grows"),
            ns: false,
            zstd: false,
            frames_max: u64::MAX,
            rotate_bytes: None,
            rotate_age: None,
            flush: Duration::from_millis(500),
            sync: Duration::from_secs(5),
        }
    }
}

/// Formats entries and writes them in large pieces.
pub struct Output<'a> {
    style: Style,
    files: Files,
    live: &'a Live,
    /// `None`: files are synced only when they are closed.
    syncer: Option<Syncer>,
    /// When the last sync began, and the size of the file then, in bytes.
    synced: (Instant, u64),
    format: Box<dyn Append>,
    packer: Option<zstd::bulk::Compressor<'static>>,
    names: Vec<String>,
    buffer: Vec<u8>,
    /// The buffer is written when it has this size, in bytes.
    write_at: usize,
    /// Each entry in the buffer.
    entries: Vec<Entry>,
    /// How many frames of each interface are in the buffer.
    pending: Vec<u64>,
    pub report: Progress,
    /// The account of the current file, and its frames of each interface.
    current: Written,
    in_current: Vec<u64>,
    last_ns: u64,
    began: Instant,
    began_ns: u64,
    written: Instant,
    /// When it was last checked that the file is still in its place.
    checked: Instant,
    /// How many frames may still be written before the limit.
    pub left: u64,
    /// Whether files are those of windows.
    has_windows: bool,
    /// Whether no file is to be written now: with triggers, between windows.
    is_idle: bool,
    /// The files of the current window, and its frames in them.
    event: (Vec<String>, u64),
    /// Since the disk failed.
    outage: Option<Outage>,
    /// When the recording continued in another file the last time.
    continued: Option<Instant>,
}

/// A time in which frames cannot be written.
struct Outage {
    began: Instant,
    lost_before: u64,
    retry: Instant,
}

impl<'a> Output<'a> {
    /// Begins the file, or waits for the first event if there is none yet.
    pub fn new(files: Files, style: Style, live: &'a Live, syncer: Option<Syncer>) -> Self {
        let mut output = Self {
            style,
            files,
            live,
            syncer,
            synced: (Instant::now(), 0),
            format: (style.append)(style.ns),
            packer: None,
            names: Vec::new(),
            buffer: Vec::with_capacity(2 * WRITE_BYTES),
            write_at: WRITE_BYTES,
            entries: Vec::new(),
            pending: Vec::new(),
            report: Progress::default(),
            current: Written::default(),
            in_current: Vec::new(),
            last_ns: 0,
            began: Instant::now(),
            began_ns: clock::realtime_ns(),
            written: Instant::now(),
            checked: Instant::now(),
            left: style.frames_max,
            has_windows: false,
            is_idle: false,
            event: (Vec::new(), 0),
            outage: None,
            continued: None,
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
        output.has_windows = output.files.is_closed();
        output.is_idle = output.has_windows;
        if !output.is_idle {
            output.begin();
        }
        output
    }

    /// Formats the header of a file.
    fn begin(&mut self) {
        let mut buffer = std::mem::take(&mut self.buffer);
        self.format = self.begin_format(&mut buffer);
        self.buffer = buffer;
        self.note(NO_FRAME);
        if self.has_windows {
            self.event.0.push(self.files.path().display().to_string());
        }
        (self.current, self.began) = (Written::default(), Instant::now());
        self.began_ns = clock::realtime_ns();
        self.synced = (Instant::now(), 0);
        if let Some(syncer) = &mut self.syncer {
            syncer.next_file();
        }
        self.in_current.fill(0);
        self.set_write_at();
    }

    /// Formats how a file begins, with all interfaces so far.
    fn begin_format(&self, buffer: &mut Vec<u8>) -> Box<dyn Append> {
        let mut format = (self.style.append)(self.style.ns);
        format.begin(buffer);
        self.names.iter().for_each(|name| format.interface(buffer, name));
        format
    }

    fn note(&mut self, interface: u32) {
        self.entries.push((self.buffer.len() as u32, interface));
    }

    /// The next interface.
    pub fn interface(&mut self, name: String) {
        if !self.is_idle {
            self.format.interface(&mut self.buffer, &name);
            self.note(NO_FRAME);
        }
        self.names.push(name);
        let Progress { in_file, lost, beyond, outside, window_lost, .. } = &mut self.report;
        let all = [in_file, lost, beyond, outside, window_lost, &mut self.in_current, &mut self.pending];
        all.into_iter().for_each(|counts| counts.push(0));
    }

    /// Keeps a comment for the next frame.
    pub fn remark(&mut self, text: &str) {
        self.format.remark(text);
    }

    /// The path of the current file, or of the last one.
    pub fn path(&self) -> &Path {
        self.files.path()
    }

    /// Begins the file of a window.
    pub fn begin_event(&mut self) {
        (self.is_idle, self.event) = (false, (Vec::new(), 0));
        if self.report.error.is_some() {
            return; // as for the frames of the window before
        }
        match self.files.next() {
            Ok(()) => self.begin(),
            Err(error) => self.fail(error.to_string()),
        }
    }

    /// Ends the file of a window. A disk error of it says nothing about the next one.
    pub fn end_event(&mut self, about: &str) {
        if self.report.error.is_none() {
            self.close(&self.part_closings(), about);
        } else {
            self.write();
            self.leave();
        }
        self.is_idle = true;
        if self.may_continue() {
            (self.outage, self.report.error) = (None, None);
        }
        self.delete_surplus();
    }

    /// The files of the current window, or of the last one.
    pub fn event_files(&self) -> Vec<String> {
        self.event.0.clone()
    }

    /// The frames of the window in its files.
    pub fn event_frames(&self) -> u64 {
        self.event.1
    }

    /// Takes a frame of a window, unless the frame limit is reached.
    #[inline]
    pub fn frame_within_limit(&mut self, record: &RawRecord<'_>, late: bool) {
        if self.left == 0 {
            self.report.beyond[record.bus.index()] += 1;
            return;
        }
        self.left -= 1;
        self.frame(record, late);
    }

    /// Counts a frame outside of all windows.
    #[inline]
    pub fn leave_out(&mut self, bus: BusId) {
        self.report.outside[bus.index()] += 1;
    }

    /// Takes a frame that was left out and belongs to a window that has begun.
    pub fn take_in(&mut self, record: &RawRecord<'_>, late: bool) {
        self.report.outside[record.bus.index()] -= 1;
        self.frame_within_limit(record, late);
    }

    /// Counts frames of a window as lost that were counted as outside of all windows before.
    pub fn lose_waiting(&mut self, bus: BusId, frames: u64) {
        self.report.outside[bus.index()] -= frames;
        self.lose_to_window(bus, frames, "the window buffer was full");
    }

    /// Counts frames of a window as lost, for this reason.
    pub fn lose_to_window(&mut self, bus: BusId, frames: u64, why: &str) {
        self.report.window_lost[bus.index()] += frames;
        let name = &self.names[bus.index()];
        self.live.alarm(format!("{name}: {frames} frames of a window were lost, because {why}"));
    }

    /// Writes what is in memory.
    pub fn flush(&mut self) {
        if !self.buffer.is_empty() {
            self.write();
        }
    }

    /// Takes frames without windows.
    pub fn frames(&mut self, Piece { chunk, places, late }: Piece<'_>) {
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

    #[inline(always)]
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

    /// Limits the buffer so that an uncompressed file ends with the frame that reaches the rotation size.
    fn set_write_at(&mut self) {
        let most = self.style.rotate_bytes.filter(|_| self.packer.is_none());
        let left = most.map_or(WRITE_BYTES as u64, |most| most.saturating_sub(self.files.bytes()));
        self.write_at = left.min(WRITE_BYTES as u64) as usize;
    }

    /// Writes the buffer, or counts its frames as lost. Those that the file has no room for go into the next one.
    fn write(&mut self) {
        let (whole, error) = if self.report.error.is_none() { self.write_buffer() } else { (0, None) };
        let is_too_large = error.as_ref().is_some_and(|error| error.kind() == io::ErrorKind::FileTooLarge);
        let rest = is_too_large.then(|| self.take_rest(whole));
        self.account_for_buffer(whole);
        if let Some(error) = error {
            self.fail_to_write(error);
        }
        if let Some(rest) = rest.filter(|rest| !rest.is_empty()) {
            self.continue_with(&rest);
        }
    }

    /// Takes the frames behind the first `whole` bytes out of the buffer.
    fn take_rest(&mut self, whole: usize) -> Rest {
        let mut head = Vec::new();
        self.begin_format(&mut head);
        let rest = Rest::split_off(&self.buffer, &mut self.entries, whole, &head);
        rest.interfaces().for_each(|interface| self.pending[interface as usize] -= 1);
        self.last_ns = rest.before_ns.unwrap_or(self.last_ns);
        rest
    }

    /// Begins the next file with these frames, or counts them as lost if there is none.
    fn continue_with(&mut self, rest: &Rest) {
        self.try_to_continue();
        let is_lost = self.report.error.is_some();
        let counts = if is_lost { &mut self.report.lost } else { &mut self.pending };
        rest.interfaces().for_each(|interface| counts[interface as usize] += 1);
        if !is_lost {
            rest.append_to(&mut self.buffer, &mut self.entries);
            self.last_ns = rest.last_ns.unwrap_or(self.last_ns);
            self.current.first_ns = rest.first_ns.unwrap_or(self.last_ns);
        }
        self.publish();
    }

    /// Counts the frames of the buffer, of whose bytes `written` are in the file, and empties it.
    fn account_for_buffer(&mut self, written: usize) {
        let lost = self.entries.iter().rev().take_while(|&&(end, _)| end as usize > written);
        for &(_, interface) in lost.filter(|&&(_, interface)| interface != NO_FRAME) {
            self.report.lost[interface as usize] += 1;
            self.pending[interface as usize] -= 1;
        }
        for (at, frames) in self.pending.iter_mut().enumerate() {
            let frames = std::mem::take(frames);
            self.report.in_file[at] += frames;
            self.in_current[at] += frames;
            self.current.frames += frames;
            self.event.1 += frames;
        }
        self.current.last_ns = self.last_ns;
        self.buffer.clear();
        self.entries.clear();
        self.written = Instant::now();
        self.set_write_at();
        self.publish();
    }

    /// Writes the buffer. Returns how many of its bytes are in the file, up to the last whole entry, and what went wrong.
    fn write_buffer(&mut self) -> (usize, Option<io::Error>) {
        let packed = self.packer.as_mut().map(|packer| packer.compress(&self.buffer));
        let before = self.files.bytes();
        let (whole, error) = match packed {
            Some(Err(error)) => (0, Some(error)),
            // A reader cannot use an incomplete zstd frame.
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
        (whole, error)
    }

    fn fail_to_write(&mut self, error: io::Error) {
        let is_full = error.kind() == io::ErrorKind::StorageFull;
        self.fail(Error::file(self.files.path(), "write", error).to_string());
        if let Some(outage) = self.outage.as_mut().filter(|_| is_full) {
            outage.retry = outage.began + RETRY;
        }
    }

    /// Publishes the account so far, in case the next write stalls.
    fn publish(&self) {
        let mut shown = self.live.written.lock().unwrap_or_else(PoisonError::into_inner);
        shown.clone_from(&self.report);
        shown.current = (!self.files.is_closed()).then(|| Current {
            name: self.files.path().display().to_string(),
            bytes: self.files.bytes(),
            since_ns: self.began_ns,
        });
        drop(shown);
    }

    fn fail(&mut self, error: String) {
        let until = match self.may_continue() {
            true => "until another file can be written",
            false => "from now on",
        };
        self.live.alarm(format!("{error}; {until} frames are counted but not written"));
        self.report.error = Some(error);
        let (began, lost_before) = (Instant::now(), self.report.lost.iter().sum());
        // The first time at once: a file that was removed or is too large says nothing against the disk.
        let retry = self.continued.map_or(began, |continued| continued + RETRY);
        self.outage.get_or_insert(Outage { began, lost_before, retry });
    }

    fn may_continue(&self) -> bool {
        self.files.may_continue() && self.packer.is_some() == self.style.zstd
    }

    /// Continues in another file after an error, when it is time to look, and the disk has room.
    fn try_to_continue(&mut self) {
        let Some(outage) = self.outage.as_mut().filter(|outage| outage.retry <= Instant::now()) else {
            return;
        };
        outage.retry = Instant::now() + RETRY;
        self.leave();
        if !self.may_continue() || !self.files.make_room(ROOM_BYTES) || self.files.next().is_err() {
            return;
        }
        let Some(Outage { began, lost_before, .. }) = self.outage.take() else { return };
        (self.report.error, self.continued) = (None, Some(Instant::now()));
        self.begin();
        let (path, seconds) = (self.files.path().display(), began.elapsed().as_secs());
        let lost = self.report.lost.iter().sum::<u64>() - lost_before;
        self.live.alarm(format!("{path}: the recording continues here, {lost} frames and {seconds} s later"));
        self.write(); // its header shows whether the disk takes it
    }

    /// Leaves the file as an error left it.
    fn leave(&mut self) {
        self.settle();
        self.check_file();
        let current = std::mem::take(&mut self.current);
        if let Err(error) = self.files.leave(current) {
            self.lose_file(Error::file(self.files.path(), "sync", error).to_string());
        }
    }

    /// A file that was removed, replaced or changed while it was open, also during an outage, has taken its frames with it.
    fn check_file(&mut self) {
        let what = match self.files.state() {
            State::Intact => return,
            State::Removed => "was removed while it was written",
            State::Changed => "was truncated or written by another program while it was written",
        };
        self.lose_file(format!("{}: {what}", self.files.path().display()));
        self.report.bytes -= self.files.give_up();
    }

    /// Syncs the file when it is time, in another thread, with all frames so far: what that has synced outlives a power cut. A
    /// new file is synced at once, so that the folder names it.
    fn sync(&mut self) {
        if let Some(Err(error)) = self.syncer.as_mut().and_then(Syncer::result) {
            self.lose_unsynced(error);
            return;
        }
        let is_due = self.synced.0.elapsed() >= self.style.sync || self.files.is_new();
        if !is_due || self.syncer.as_ref().is_none_or(Syncer::is_busy) {
            return;
        }
        if !self.buffer.is_empty() {
            self.write();
        }
        let bytes = self.files.bytes();
        let has_more = bytes != self.synced.1 || self.files.is_new();
        self.synced = (Instant::now(), bytes);
        if self.report.error.is_none()
            && has_more
            && let Some(syncer) = &mut self.syncer
            && let Some(job) = self.files.unsynced()
        {
            syncer.begin(job);
        }
    }

    /// Waits until the disk has answered, before the file is closed.
    fn settle(&mut self) {
        if let Some(Err(error)) = self.syncer.as_mut().map(Syncer::settle) {
            self.lose_unsynced(error);
        }
    }

    /// A failed sync means that the disk need not have any frame of the file. The kernel says so once only: the sync at its
    /// end could succeed.
    fn lose_unsynced(&mut self, error: io::Error) {
        self.lose_file(Error::file(self.files.path(), "sync", error).to_string());
        self.files.close_unsynced(std::mem::take(&mut self.current));
    }

    /// Counts the frames of the current file as lost, for this reason.
    fn lose_file(&mut self, why: String) {
        match self.report.error.is_none() {
            true => self.fail(why),
            false => self.live.alarm(why),
        }
        for (at, frames) in self.in_current.iter_mut().enumerate() {
            self.report.in_file[at] -= *frames;
            self.event.1 = self.event.1.saturating_sub(*frames);
            self.report.lost[at] += std::mem::take(frames);
        }
    }

    /// Ends a file: writes its statistics, then syncs it to the disk.
    fn close(&mut self, closings: &[Closing], verdict: &str) {
        self.write();
        self.settle();
        self.format.finish(&mut self.buffer, closings, verdict);
        self.note(NO_FRAME);
        self.write();
        self.check_file();
        if let Err(error) = self.files.close(std::mem::take(&mut self.current)) {
            self.lose_file(Error::file(self.files.path(), "sync", error).to_string());
        }
    }

    /// The statistics of a file that is not the last one: the interfaces' counters are those of the whole recording.
    fn part_closings(&self) -> Vec<Closing> {
        let (started_ns, ended_ns) = (self.current.first_ns, self.last_ns);
        let closing = Closing { started_ns, ended_ns, received: None, lost: None, lost_by_system: None };
        vec![closing; self.names.len()]
    }

    /// Ends the current file and begins the next; each file is complete.
    fn rotate(&mut self) {
        let about = "the recording continues in the next file; the account is in the last file";
        self.close(&self.part_closings(), about);
        if self.report.error.is_some() {
            return;
        }
        match self.files.next() {
            Ok(()) => self.begin(),
            Err(error) => self.fail(error.to_string()),
        }
        self.delete_surplus();
    }

    /// Deletes the closed files that are not to stay.
    pub fn delete_surplus(&mut self) {
        if let Some(error) = self.files.delete_surplus() {
            self.live.alarm(format!("{error}; it stays, and other files are deleted in its place"));
        }
    }

    /// Flushes and rotates by time.
    pub fn tick(&mut self) {
        if self.is_idle {
            self.publish();
            return;
        }
        if self.report.error.is_some() {
            if !self.buffer.is_empty() {
                self.write();
            }
            self.try_to_continue();
            return;
        }
        let age = self.style.flush.saturating_sub(HOLD);
        // By its own timer: on a busy bus the buffer is always younger than the flush interval.
        if self.checked.elapsed() > age {
            self.check_file();
            self.checked = Instant::now();
        }
        if self.written.elapsed() > age {
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
        if self.report.error.is_none() {
            self.sync();
        }
    }

    /// Frames that were taken and are in a file, lost, beyond the limit, outside of windows, or in the buffer.
    pub fn placed(&self) -> u64 {
        let Progress { in_file, lost, beyond, outside, window_lost, .. } = &self.report;
        [in_file, lost, beyond, outside, window_lost, &self.pending].into_iter().flatten().sum()
    }

    /// Ends the recording.
    pub fn finish(mut self, late: u64, ending: Ending) -> Progress {
        (self.report.late, self.report.names) = (late, self.names.clone());
        if !self.is_idle {
            self.end_last(ending);
        }
        (self.report.files, self.report.deleted) = self.files.closed();
        self.report
    }

    /// Ends the last file, with a verdict that is made when the disk has taken, or lost, all frames.
    fn end_last(&mut self, ending: Ending) {
        self.write();
        self.settle();
        if self.report.error.is_none()
            && let Some(Err(error)) = self.files.unsynced().map(|job| job.sync())
        {
            self.lose_unsynced(error);
        }
        let (closings, verdict) = ending(&self.report);
        self.close(&closings, &verdict);
    }
}

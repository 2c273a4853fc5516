//! Bytes of a recording, decompressed, with a window that grows to what a format asks for.

use crate::{trouble::Trouble, zst};
use flate2::read::MultiGzDecoder;
use std::{
    fs::File,
    io::{self, Read, Write},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// How much of a file's beginning a format is recognised by, in bytes.
pub const SNIFF_BYTES: usize = 512;
/// How much is read at once.
const READ_BYTES: usize = 256 << 10;
/// No text line of any format is longer, in bytes.
pub const LINE_BYTES_MAX: usize = 64 << 10;

/// Counts what is read from the file itself.
struct Counting {
    input: Box<dyn Read + Send>,
    bytes: Arc<AtomicU64>,
}

impl Read for Counting {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buffer)?;
        self.bytes.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// The temporary file's trouble, not the input's.
fn unspooled(error: io::Error) -> io::Error {
    let folder = std::env::temp_dir();
    io::Error::new(error.kind(), format!("{}: {error} (TMPDIR names another place)", folder.display()))
}

/// A file that is read at any place.
pub struct Whole {
    /// The file.
    pub file: File,
    /// Its length in bytes.
    pub length: u64,
    taken: Arc<AtomicU64>,
}

impl Whole {
    /// Fills `bytes` from offset `at` on.
    ///
    /// # Errors
    /// What the operating system reports; `UnexpectedEof` if the file ends before.
    pub fn read(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        read_at(&self.file, at, bytes)?;
        self.taken.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(())
    }
}

/// Fills `bytes` from offset `at` on, by one system call where there is one for it.
pub(crate) fn read_at(file: &File, at: u64, bytes: &mut [u8]) -> io::Result<()> {
    #[cfg(unix)]
    return std::os::unix::fs::FileExt::read_exact_at(file, bytes, at);
    #[cfg(not(unix))]
    {
        let mut file = file;
        io::Seek::seek(&mut file, io::SeekFrom::Start(at))?;
        file.read_exact(bytes)
    }
}

/// The bytes of a recording, decompressed: a window that grows to what a format asks for.
pub struct Source {
    input: Box<dyn Read + Send>,
    packed: bool,
    packed_bytes: Arc<AtomicU64>,
    /// The file itself, where there is one that can be read anywhere.
    file: Option<File>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    offset: u64,
    ended: bool,
}

/// A text line.
pub enum Line {
    /// Its length in bytes, without the line break.
    Whole(usize),
    /// Its length in bytes; the file ends without a line break.
    Last(usize),
}

impl Source {
    /// Reads anything; decompresses zstd and gzip, which it recognises by their first bytes.
    pub(crate) fn unpacking(input: Box<dyn Read + Send>) -> io::Result<Self> {
        let packed_bytes = Arc::new(AtomicU64::new(0));
        let mut plain = Counting { input, bytes: Arc::clone(&packed_bytes) };
        let mut head = Vec::new();
        plain.by_ref().take(4).read_to_end(&mut head)?;
        let (zstd, gzip) = (head == [0x28, 0xb5, 0x2f, 0xfd], head.starts_with(&[0x1f, 0x8b]));
        let whole = io::Cursor::new(head).chain(plain);
        let input: Box<dyn Read + Send> = match (zstd, gzip) {
            (true, _) => zst::unpack(Box::new(whole))?,
            (_, true) => Box::new(MultiGzDecoder::new(io::BufReader::new(whole))),
            _ => Box::new(whole),
        };
        let (buffer, packed) = (vec![0; READ_BYTES], zstd || gzip);
        Ok(Self {
            input,
            packed,
            packed_bytes,
            file: None,
            buffer,
            start: 0,
            end: 0,
            offset: 0,
            ended: false,
        })
    }

    /// Reads a file; pipes and devices are read as they come.
    pub(crate) fn of_file(file: File) -> io::Result<Self> {
        let same = if file.metadata()?.is_file() { Some(file.try_clone()?) } else { None };
        let mut source = Self::unpacking(Box::new(file))?;
        source.file = same.filter(|_| !source.packed);
        Ok(source)
    }

    /// The file, for formats that are not read from beginning to end: what comes through a pipe or is compressed goes
    /// into an unnamed temporary file first. Call it before anything is consumed; afterwards the source is empty.
    ///
    /// # Errors
    /// What the operating system reports.
    pub fn whole(&mut self) -> io::Result<Whole> {
        self.ended = true;
        let file = match self.file.take() {
            Some(file) => file,
            None => self.spool()?,
        };
        // What was spooled is counted already.
        let taken = if self.start == self.end { Arc::default() } else { Arc::clone(&self.packed_bytes) };
        Ok(Whole { length: file.metadata()?.len(), file, taken })
    }

    fn spool(&mut self) -> io::Result<File> {
        let mut file = tempfile::tempfile().map_err(unspooled)?;
        loop {
            file.write_all(&self.buffer[self.start..self.end]).map_err(unspooled)?;
            (self.start, self.end) = (0, 0);
            match self.input.read(&mut self.buffer) {
                Ok(0) => return Ok(file),
                Ok(count) => self.end = count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Counts bytes that a decoder read elsewhere.
    pub fn count(&self, bytes: u64) {
        self.packed_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn is_packed(&self) -> bool {
        self.packed
    }

    pub(crate) fn packed_bytes(&self) -> u64 {
        self.packed_bytes.load(Ordering::Relaxed)
    }

    /// The offset of the next byte, decompressed.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The window.
    pub fn buffered(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// The window, with at least `count` bytes unless the file ends before.
    ///
    /// # Errors
    /// What the operating system, or the decompressor, reports.
    #[inline]
    pub fn want(&mut self, count: usize) -> io::Result<&[u8]> {
        if self.end - self.start < count {
            self.fill(count)?;
        }
        Ok(self.buffered())
    }

    #[cold]
    fn fill(&mut self, count: usize) -> io::Result<()> {
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        if self.buffer.len() < count {
            self.buffer.resize(count.next_multiple_of(READ_BYTES), 0);
        }
        while self.end < count && !self.ended {
            match self.input.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.ended = true,
                Ok(count) => self.end += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Takes bytes off the window's start.
    #[inline]
    pub fn consume(&mut self, count: usize) {
        let count = count.min(self.end - self.start);
        self.start += count;
        self.offset += count as u64;
    }

    /// Skips bytes; `false` if the file ends before.
    ///
    /// # Errors
    /// What the operating system, or the decompressor, reports.
    pub fn skip(&mut self, mut count: u64) -> io::Result<bool> {
        while count > 0 {
            let there = self.want(1)?.len().min(usize::try_from(count).unwrap_or(usize::MAX));
            if there == 0 {
                return Ok(false);
            }
            self.consume(there);
            count -= there as u64;
        }
        Ok(true)
    }

    /// As [`line`](Self::line), and counts it; a last line without its line break is cut off.
    /// Answers the line's length in bytes without its line break: the line is `buffered()[..length]`, and
    /// `consume(length + 1)` passes over it.
    ///
    /// # Errors
    /// When the line is cut off, or cannot be read.
    #[inline]
    pub fn whole_line(&mut self, number: &mut u64) -> Result<Option<usize>, Trouble> {
        let Some(line) = self.line()? else { return Ok(None) };
        *number += 1;
        match line {
            Line::Whole(length) => Ok(Some(length)),
            Line::Last(_) => Err(Trouble::Cut),
        }
    }

    /// The line at the window's start, or `None` at the end of the file. A line that is too long is answered with its
    /// first [`LINE_BYTES_MAX`] bytes. [`consume`](Self::consume) one byte more than its length.
    ///
    /// # Errors
    /// What the operating system, or the decompressor, reports.
    #[inline]
    pub fn line(&mut self) -> io::Result<Option<Line>> {
        let mut searched = 0;
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.buffered()[searched..]) {
                return Ok(Some(Line::Whole(searched + at)));
            }
            searched = self.end - self.start;
            if searched >= LINE_BYTES_MAX {
                return Ok(Some(Line::Whole(searched)));
            }
            if self.want(searched + 1)?.len() == searched {
                return Ok((searched > 0).then_some(Line::Last(searched)));
            }
        }
    }
}

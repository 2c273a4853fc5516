//! Bytes of a file, unpacked, with a window that grows to what a format asks for.

use super::Trouble;
use flate2::read::MultiGzDecoder;
use std::{
    fs::File,
    io::{self, Read, Write},
    os::unix::fs::FileExt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// How much of a file tells its format.
pub const SNIFF_BYTES: usize = 512;
/// How much is read at once.
const READ_BYTES: usize = 256 << 10;
/// No text line of any format is longer.
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

/// A file that is read here and there.
pub struct Whole {
    pub file: File,
    /// Bytes.
    pub length: u64,
    taken: Arc<AtomicU64>,
}

impl Whole {
    /// Fills `bytes` from `at` on.
    pub fn read(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(bytes, at)?;
        self.taken.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(())
    }
}

/// A window on the bytes.
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
    /// These bytes, without the line break.
    Whole(usize),
    /// The file ends without a line break, behind so many bytes.
    Last(usize),
}

impl Source {
    /// Unpacks zstd and gzip, told by their first bytes.
    pub fn unpacking(input: Box<dyn Read + Send>) -> io::Result<Self> {
        let packed_bytes = Arc::new(AtomicU64::new(0));
        let mut plain = Counting { input, bytes: Arc::clone(&packed_bytes) };
        let mut head = Vec::new();
        plain.by_ref().take(4).read_to_end(&mut head)?;
        let (zstd, gzip) = (head == [0x28, 0xb5, 0x2f, 0xfd], head.starts_with(&[0x1f, 0x8b]));
        let whole = io::Cursor::new(head).chain(plain);
        let input: Box<dyn Read + Send> = match (zstd, gzip) {
            (true, _) => Box::new(zstd::stream::read::Decoder::new(whole)?),
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

    /// A file; pipes and devices are read as they come.
    pub fn of_file(file: File) -> io::Result<Self> {
        let same = if file.metadata()?.is_file() { Some(file.try_clone()?) } else { None };
        let mut source = Self::unpacking(Box::new(file))?;
        source.file = same.filter(|_| !source.packed);
        Ok(source)
    }

    /// The file, for formats that are not read from their beginning to their end: what comes through a pipe or is
    /// packed goes into an unnamed temporary file first. Nothing may have been consumed; nothing is read here any more.
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

    /// Counts bytes as read that were read elsewhere.
    pub fn count(&self, bytes: u64) {
        self.packed_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub fn is_packed(&self) -> bool {
        self.packed
    }

    pub fn packed_bytes(&self) -> u64 {
        self.packed_bytes.load(Ordering::Relaxed)
    }

    /// Of the next byte, unpacked.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// What is in the window.
    pub fn buffered(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// The window, with `count` bytes at least unless the file ends before.
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

    /// Takes bytes off the window.
    #[inline]
    pub fn consume(&mut self, count: usize) {
        let count = count.min(self.end - self.start);
        self.start += count;
        self.offset += count as u64;
    }

    /// Takes bytes off the file; whether there were as many.
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

    /// As [`line`](Self::line), and counts it; a last line without its end is cut.
    #[inline]
    pub fn whole_line(&mut self, number: &mut u64) -> Result<Option<usize>, Trouble> {
        let Some(line) = self.line()? else { return Ok(None) };
        *number += 1;
        match line {
            Line::Whole(length) => Ok(Some(length)),
            Line::Last(_) => Err(Trouble::Cut),
        }
    }

    /// How long the line at the window's start is, or `None` at the end of the file. A line that is too long is
    /// answered with its first bytes.
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

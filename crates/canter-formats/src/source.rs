//! The bytes of a recording, decompressed, in a window that grows to the size that a decoder requests.

use crate::{trouble::Trouble, zst};
use flate2::read::MultiGzDecoder;
use std::{
    cell::RefCell,
    fs::File,
    io::{self, Read, Write},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// The length of the beginning by which a format is recognised, in bytes.
pub const SNIFF_BYTES: usize = 512;
/// The size of the window at first, and of its growth, in bytes.
const READ_BYTES: usize = 256 << 10;
/// The longest text line of any format, in bytes.
pub const LINE_BYTES_MAX: usize = 64 << 10;
/// The most unpacked bytes of a temporary file, for each packed byte. Recordings pack to a tenth, those of a bus with one
/// frame to a hundredth; 33 kB of zeros unpack to 1 GiB.
const SPOOLED_RATIO_MAX: u64 = 1000;
/// The unpacked bytes that a temporary file may have whatever its ratio is.
const SPOOLED_BYTES_FREE: u64 = 16 << 20;

/// Counts the bytes read from the file, before decompression.
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

/// An error of the temporary file, not of the input.
fn spool_error(error: io::Error) -> io::Error {
    let folder = std::env::temp_dir();
    io::Error::new(error.kind(), format!("{}: {error} (set TMPDIR to another folder)", folder.display()))
}

/// A file for random access.
pub struct Whole {
    /// The file.
    pub file: File,
    /// The file's length in bytes.
    pub length: u64,
    taken: Arc<AtomicU64>,
    window: RefCell<Window>,
}

/// The part of a file that was read last: a format of small blocks asks for each by itself.
#[derive(Default)]
struct Window {
    at: u64,
    bytes: Vec<u8>,
}

/// The length of a window in bytes. Longer reads go past it.
const WINDOW_BYTES: usize = 4096;

impl Whole {
    /// Fills `bytes` from offset `at` on.
    ///
    /// # Errors
    /// What the operating system reports; `UnexpectedEof` if the file ends before.
    pub fn read(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        let left = usize::try_from(self.length.saturating_sub(at)).unwrap_or(usize::MAX);
        let most = WINDOW_BYTES.min(left);
        if bytes.len() > most {
            read_at(&self.file, at, bytes)?;
        } else {
            let mut window = self.window.borrow_mut();
            if window.part(at, bytes.len()).is_none() {
                window.fill(&self.file, at, most)?;
            }
            let part = window.part(at, bytes.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
            bytes.copy_from_slice(part);
        }
        self.taken.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(())
    }
}

impl Window {
    fn part(&self, at: u64, length: usize) -> Option<&[u8]> {
        let from = usize::try_from(at.checked_sub(self.at)?).ok()?;
        self.bytes.get(from..from.checked_add(length)?)
    }

    fn fill(&mut self, file: &File, at: u64, length: usize) -> io::Result<()> {
        self.bytes.resize(length, 0);
        self.at = at;
        let filled = read_at(file, at, &mut self.bytes);
        if filled.is_err() {
            self.bytes.clear(); // a part may have changed
        }
        filled
    }
}

/// Fills `bytes` from offset `at` on; on Unix by one system call.
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

/// The bytes of a recording, decompressed: a window that grows to the size that a decoder requests.
pub struct Source {
    input: Box<dyn Read + Send>,
    packed: bool,
    packed_bytes: Arc<AtomicU64>,
    /// The file, if it allows random access.
    file: Option<File>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    offset: u64,
    ended: bool,
    /// The source is read from beginning to end: a decoder has not taken the whole file.
    sequential: bool,
}

/// A text line.
pub enum Line {
    /// The length of a line in bytes, without the line break.
    Whole(usize),
    /// The length in bytes of the last line, when the file ends without a line break.
    Last(usize),
}

/// Whether bytes begin a zstd frame, or one that readers skip (RFC 8878): pzstd writes such a one first.
fn is_zstd(head: &[u8]) -> bool {
    matches!(head, [0x28, 0xb5, 0x2f, 0xfd] | [0x50..=0x5f, 0x2a, 0x4d, 0x18])
}

impl Source {
    /// Reads anything; decompresses zstd and gzip, which it recognises by their first bytes.
    pub(crate) fn unpacking(input: Box<dyn Read + Send>) -> io::Result<Self> {
        let packed_bytes = Arc::new(AtomicU64::new(0));
        let mut plain = Counting { input, bytes: Arc::clone(&packed_bytes) };
        let mut head = Vec::new();
        plain.by_ref().take(4).read_to_end(&mut head)?;
        let (zstd, gzip) = (is_zstd(&head), head.starts_with(&[0x1f, 0x8b]));
        let input = io::Cursor::new(head).chain(plain);
        let input: Box<dyn Read + Send> = match (zstd, gzip) {
            (true, _) => zst::unpack(Box::new(input))?,
            (_, true) => Box::new(MultiGzDecoder::new(io::BufReader::new(input))),
            _ => Box::new(input),
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
            sequential: true,
        })
    }

    /// Nothing: the decoder opens files.
    pub(crate) fn none() -> io::Result<Self> {
        Ok(Self { sequential: false, ..Self::unpacking(Box::new(io::empty()))? })
    }

    /// Reads a file; pipes and devices are read sequentially.
    pub(crate) fn from_file(file: File) -> io::Result<Self> {
        let seekable = if file.metadata()?.is_file() { Some(file.try_clone()?) } else { None };
        let mut source = Self::unpacking(Box::new(file))?;
        source.file = seekable.filter(|_| !source.packed);
        Ok(source)
    }

    /// The file, for formats that are not read from beginning to end: a pipe or a compressed file is copied to an
    /// unnamed temporary file first. Call it before anything is consumed; afterwards the source is empty.
    ///
    /// # Errors
    /// What the operating system reports, and a compressed file that unpacks to more than a thousand times its size.
    pub fn whole_file(&mut self) -> io::Result<Whole> {
        (self.ended, self.sequential) = (true, false);
        let file = match self.file.take() {
            Some(file) => file,
            None => self.spool()?,
        };
        // Bytes that were spooled are counted already.
        let taken = if self.start == self.end { Arc::default() } else { Arc::clone(&self.packed_bytes) };
        Ok(Whole { length: file.metadata()?.len(), file, taken, window: RefCell::default() })
    }

    fn spool(&mut self) -> io::Result<File> {
        let mut file = tempfile::tempfile().map_err(spool_error)?;
        let mut spooled = 0;
        loop {
            spooled += (self.end - self.start) as u64;
            if self.packed && spooled > SPOOLED_BYTES_FREE.max(self.packed_bytes() * SPOOLED_RATIO_MAX) {
                let reason = "more than 1000 times its size when it is unpacked (a damaged file? unpack it with zstd -d or gzip -d)";
                return Err(io::Error::other(reason));
            }
            file.write_all(&self.buffer[self.start..self.end]).map_err(spool_error)?;
            (self.start, self.end) = (0, 0);
            match self.input.read(&mut self.buffer) {
                Ok(0) => return Ok(file),
                Ok(count) => self.end = count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Counts bytes that a decoder read from another file.
    pub fn count(&self, bytes: u64) {
        self.packed_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn is_packed(&self) -> bool {
        self.packed
    }

    pub(crate) fn is_sequential(&self) -> bool {
        self.sequential
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

    /// Removes bytes from the window's start.
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
            let available = self.want(1)?.len().min(usize::try_from(count).unwrap_or(usize::MAX));
            if available == 0 {
                return Ok(false);
            }
            self.consume(available);
            count -= available as u64;
        }
        Ok(true)
    }

    /// Skips everything up to the end of the file, or to where it cannot be unpacked.
    pub(crate) fn skip_rest(&mut self) {
        while self.want(1).is_ok_and(|bytes| !bytes.is_empty()) {
            self.consume(usize::MAX);
        }
    }

    /// Skips the line at the window's start with its line break, however long it is.
    ///
    /// # Errors
    /// What the operating system, or the decompressor, reports.
    pub fn skip_line(&mut self) -> io::Result<()> {
        while !self.want(1)?.is_empty() {
            match memchr::memchr(b'\n', self.buffered()) {
                Some(at) => {
                    self.consume(at + 1);
                    return Ok(());
                }
                None => self.consume(usize::MAX),
            }
        }
        Ok(())
    }

    /// Like [`line`](Self::line), and increments `number`; a last line without line break counts as cut off, a long one as
    /// damage.
    /// Returns the line's length in bytes without its line break: the line is `buffered()[..length]`, and
    /// `consume(length + 1)` removes it.
    ///
    /// # Errors
    /// When the line is cut off, or cannot be read.
    #[inline]
    pub fn whole_line(&mut self, number: &mut u64) -> Result<Option<usize>, Trouble> {
        match self.line(number)? {
            None => Ok(None),
            Some(Line::Whole(length)) => Ok(Some(length)),
            Some(Line::Last(_)) => Err(Trouble::Cut),
        }
    }

    /// The line at the window's start, which counts in `number`; `None` at the end of the file. [`consume`](Self::consume)
    /// one byte more than its length.
    ///
    /// # Errors
    /// A line of more than [`LINE_BYTES_MAX`] bytes, which no format has; and what the operating system, or the decompressor,
    /// reports.
    #[inline]
    pub fn line(&mut self, number: &mut u64) -> Result<Option<Line>, Trouble> {
        let mut searched = 0;
        let line = loop {
            if let Some(at) = memchr::memchr(b'\n', &self.buffered()[searched..]) {
                break Line::Whole(searched + at);
            }
            searched = self.end - self.start;
            if searched > LINE_BYTES_MAX {
                break Line::Whole(searched);
            }
            if self.want(searched + 1)?.len() == searched {
                match searched {
                    0 => return Ok(None),
                    length => break Line::Last(length),
                }
            }
        };
        *number += 1;
        match line {
            Line::Whole(length) if length > LINE_BYTES_MAX => {
                Err(Trouble::Wrong("a line of more than 64 KiB (a damaged file?)".to_owned()))
            }
            line => Ok(Some(line)),
        }
    }
}

//! Reads a recording frame by frame, in bounded memory: [`Reader::open`], then [`Reader::next_record`] until `None`.

use crate::{
    Error, Result, Zone,
    error::plain,
    format::{Context, Decode, Events, Flawed, Folder, Format, SNIFF_BYTES, Skipped, Source, Trouble},
    table::WITHOUT,
};
use canter_frame::{BusId, ControllerStamp, Record};
use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

/// A recording being read. The format is recognised by the file's content, not by its name; `.zst` and `.gz` are
/// decompressed on the way. Nothing in a file makes it panic.
///
/// A file that was cut off yields all frames that are complete, and then [`cut`](Self::cut) says where it ends. Entries
/// that are not frames are counted by kind ([`skipped`](Self::skipped)). Any other damage is an error that names the
/// file and the line or the byte.
pub struct Reader {
    path: String,
    format: Format,
    size: u64,
    source: Source,
    decoder: Box<dyn Decode>,
    context: Context,
    entry: Record,
    frames: u64,
    cut: Option<String>,
    salvaged: Salvaged,
    ended: bool,
}

/// What was skipped of a damaged file.
#[derive(Default)]
struct Salvaged {
    /// The first place and its damage.
    first: Option<(String, String)>,
    places: u64,
    bytes: u64,
}

impl Reader {
    /// Opens a recording; `-` is the standard input, a folder is a data set.
    ///
    /// # Errors
    /// When it cannot be opened, is empty, or is in none of these formats.
    pub fn open(path: impl AsRef<Path>, formats: &[Format]) -> Result<Self> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let failed = |step, error| Error::io(path, step, error);
        if path.as_os_str() == "-" {
            return Self::from_read(&name, Box::new(io::stdin()), formats);
        }
        if path.is_dir() {
            return Self::folder(path, formats);
        }
        let file = File::open(path).map_err(|error| failed("open", error))?;
        let size = file.metadata().map_or(0, |about| about.len());
        let source = Source::from_file(file).map_err(|error| failed("read", error))?;
        Ok(Self { size, ..Self::recognise(&name, source, formats)? })
    }

    /// Reads a recording from any stream; `name` is its name in errors.
    ///
    /// # Errors
    /// When it cannot be read, or is in none of these formats.
    pub fn from_read(name: &str, input: Box<dyn Read + Send>, formats: &[Format]) -> Result<Self> {
        let source = Source::unpacking(input).map_err(|error| Error::io(Path::new(name), "read", error))?;
        Self::recognise(name, source, formats)
    }

    /// Opens a folder with the first format that accepts it.
    fn folder(path: &Path, formats: &[Format]) -> Result<Self> {
        let name = path.display().to_string();
        let unknown = |reason: String| Error::Unknown { thing: name.clone(), reason };
        let failed = |error| Error::io(path, "open", error);
        for format in formats {
            let Some(Folder { decoder, bytes }) = (match format.read_folder.map(|read| read(path)) {
                None => None,
                Some(Ok(folder)) => folder,
                Some(Err(Trouble::Wrong(reason))) => return Err(unknown(format!("open: {reason}"))),
                Some(Err(Trouble::Io(error))) => return Err(failed(error)),
                Some(Err(Trouble::Cut)) => return Err(failed(io::ErrorKind::UnexpectedEof.into())),
            }) else {
                continue;
            };
            let source = Source::none().map_err(failed)?;
            return Ok(Self { size: bytes, ..Self::new(&name, *format, source, decoder) });
        }
        let titles: Vec<_> =
            formats.iter().filter(|row| row.read_folder.is_some()).map(|row| row.title).collect();
        let without =
            if titles.is_empty() { String::new() } else { format!(" without {} files", titles.join(" or ")) };
        Err(unknown(format!("open: is a folder{without} (give its recordings by name{WITHOUT})")))
    }

    /// Recognises the format by the beginning of the source.
    fn recognise(name: &str, mut source: Source, formats: &[Format]) -> Result<Self> {
        let path = Path::new(name);
        let (head, cut) = match source.want(SNIFF_BYTES) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => (source.buffered(), true),
            head => (head.map_err(|error| Error::io(path, "read", error))?, false),
        };
        let head = &head[..head.len().min(SNIFF_BYTES)];
        let found = formats.iter().find(|format| format.recognise.is_some_and(|recognise| recognise(head)));
        if let Some((format, read)) = found.and_then(|format| Some((format, format.read?))) {
            return Ok(Self::new(name, *format, source, read(path)));
        }
        let reason = match head {
            [] if cut => "is cut off before its first byte is unpacked: nothing of it can be read".to_owned(),
            [] => "is empty: not a recording".to_owned(),
            _ => {
                let titles = formats.iter().filter(|row| row.read.is_some()).map(|row| row.title);
                let titles = titles.collect::<Vec<_>>().join(", ");
                let packed = if cfg!(feature = "zstd") { ".zst or .gz" } else { ".gz" };
                format!("no recording that canter reads ({titles}; each also as {packed}{WITHOUT})")
            }
        };
        Err(Error::Unknown { thing: name.to_owned(), reason: format!("read: {reason}") })
    }

    fn new(name: &str, format: Format, source: Source, decoder: Box<dyn Decode>) -> Self {
        Self {
            path: name.to_owned(),
            format,
            size: 0,
            source,
            decoder,
            context: Context::default(),
            entry: Record::default(),
            frames: 0,
            cut: None,
            salvaged: Salvaged::default(),
            ended: false,
        }
    }

    /// Reads what is readable of a damaged file: damage ends the file, or its line or its block where the format has a sign of
    /// the next one, and is no error. [`salvaged`](Self::salvaged) says what was skipped.
    ///
    /// ```
    /// # fn main() -> canter_formats::Result<()> {
    /// let text = "(1.000000) can0 123#11\n(2.000000) can0 123#1\n(3.000000) can0 123#33\n";
    /// let mut reader = canter_formats::Reader::from_read("a.log", Box::new(text.as_bytes()), canter_formats::FORMATS)?.salvage(true);
    /// let mut frames = 0;
    /// while reader.next_record()?.is_some() {
    ///     frames += 1;
    /// }
    /// assert_eq!(frames, 2);
    /// let skipped = "a.log: 2 frames were read, 22 bytes from line 2, byte 23 on were skipped: position 21: expected a hex digit";
    /// assert_eq!(reader.salvaged().as_deref(), Some(skipped));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn salvage(mut self, salvage: bool) -> Self {
        self.context.salvage = salvage;
        self
    }

    /// Takes dates that name no zone, those in the headers of ASC and BLF, for dates in this one instead of UTC. What canter
    /// writes says that it is in UTC.
    #[must_use]
    pub fn zone(mut self, zone: Zone) -> Self {
        self.context.zone = zone;
        self
    }

    /// Whether the stamps of frames that were read count from a date without a zone: [`zone`](Self::zone) chooses it.
    pub fn zone_used(&self) -> bool {
        self.context.zone_used
    }

    /// The next frame, or `None` after the last complete one.
    ///
    /// # Errors
    /// The damage of the file and its place; the file cannot be read any further.
    #[inline]
    pub fn next_record(&mut self) -> Result<Option<Record>> {
        self.next_ref().map(Option::<&Record>::copied)
    }

    /// Reads the next frame as [`next_record`](Self::next_record) does, and lends it.
    ///
    /// # Errors
    /// The same.
    pub fn next_ref(&mut self) -> Result<Option<&Record>> {
        Ok(if self.advance()? { Some(&self.entry) } else { None })
    }

    /// Reads the next frame into `entry`; `false`: there is none.
    fn advance(&mut self) -> Result<bool> {
        if self.ended {
            return Ok(false);
        }
        loop {
            match self.decoder.next(&mut self.source, &mut self.context, &mut self.entry) {
                Ok(true) => {
                    self.frames += 1;
                    return Ok(true);
                }
                Err(trouble) if self.context.salvage && self.skip(&trouble) => continue,
                Err(trouble) if !self.context.salvage => {
                    self.ended = true;
                    self.explain(trouble)?;
                }
                _ => self.ended = true,
            }
            return Ok(false);
        }
    }

    /// Skips damage, and notes what; `false`: no frames follow.
    #[cold]
    fn skip(&mut self, trouble: &Trouble) -> bool {
        let (mut place, from) = (self.decoder.place(&self.source), self.source.offset());
        if self.source.is_sequential() && !place.starts_with("byte ") {
            place.push_str(&format!(", byte {from}"));
        }
        let reason = match trouble {
            Trouble::Cut => "cut off".to_owned(),
            // Salvage has skipped the damage, so the hint in parentheses no longer applies.
            Trouble::Wrong(reason) => {
                reason.split(" (delete ").next().unwrap_or_default().replace(" (a damaged file?)", "")
            }
            Trouble::Io(error) => format!("{}: {}", self.step(), plain(error)),
        };
        let goes_on = self.decoder.resume(&mut self.source).unwrap_or(false);
        if !goes_on && self.source.is_sequential() {
            self.source.skip_rest();
        }
        let salvaged = &mut self.salvaged;
        salvaged.first.get_or_insert((place, reason));
        salvaged.places += 1;
        salvaged.bytes += self.source.offset() - from;
        goes_on
    }

    /// What fails when bytes do not come.
    fn step(&self) -> &'static str {
        if self.source.is_packed() { "unpack" } else { "read" }
    }

    fn explain(&mut self, trouble: Trouble) -> Result<()> {
        let (path, place) = (&self.path, self.decoder.place(&self.source));
        match trouble {
            Trouble::Cut => self.cut = Some(format!("{path}: {place}: cut off after {} frames", self.frames)),
            Trouble::Wrong(reason) => {
                return Err(Error::Malformed { thing: path.clone(), place, reason });
            }
            Trouble::Io(error) => {
                return Err(Error::io(Path::new(&format!("{path}: {place}")), self.step(), error));
            }
        }
        Ok(())
    }

    /// The file's name.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The format that the file is in.
    pub fn format(&self) -> &Format {
        &self.format
    }

    /// The names of the buses found so far, by number.
    pub fn names(&self) -> &[String] {
        self.context.names.list()
    }

    /// The name of a record's bus.
    pub fn name(&self, bus: BusId) -> &str {
        self.names().get(bus.index()).map_or("?", String::as_str)
    }

    /// Frames read so far.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Bytes of the file, compressed if it is; 0 when they are not known.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Bytes of the file read so far, compressed if it is.
    pub fn bytes(&self) -> u64 {
        self.source.packed_bytes()
    }

    /// Entries that are not classic or FD frames.
    pub fn skipped(&self) -> &Skipped {
        &self.context.skipped
    }

    /// Frames whose fields contradict each other, so that nobody can tell whether they are whole: a DLC of 64 bytes beside a
    /// length of 8. They are read, and a program that must not lose data treats them like a loss.
    pub fn flawed(&self) -> &Flawed {
        &self.context.flawed
    }

    /// Events that the recording reports, so far: causes of its windows, clocks that were set (comments of a pcapng).
    pub fn events(&self) -> &Events {
        &self.context.events
    }

    /// The controller's stamp of the frame that [`next_record`](Self::next_record) returned last, if the recording has one: a
    /// pcapng of `canter capture --hw-stamps` or `--clock-align`.
    #[inline]
    pub fn controller_stamp(&self) -> Option<ControllerStamp> {
        self.context.controller
    }

    /// Frames that the recording reports as lost (candump's DROPCOUNT lines, pcapng's interface statistics).
    pub fn lost(&self) -> u64 {
        self.context.lost
    }

    /// What [`salvage`](Self::salvage) skipped, if it did, as a sentence that names the file, the bytes, the place and the
    /// damage. Complete after the last frame.
    pub fn salvaged(&self) -> Option<String> {
        let Salvaged { first: Some((place, reason)), places, bytes } = &self.salvaged else { return None };
        let (path, frames) = (&self.path, self.frames);
        let what = match (places, bytes) {
            (1, 0) => format!("what follows {place} was skipped"),
            (1, _) => format!("{bytes} bytes from {place} on were skipped"),
            (_, 0) => format!("{places} damaged places were skipped, the first at {place}"),
            _ => format!("{places} damaged places of {bytes} bytes were skipped, the first at {place}"),
        };
        Some(format!("{path}: {frames} frames were read, {what}: {reason}"))
    }

    /// Where the file was cut off, if it was, as a sentence: `drive.blf: byte 18848: cut off after 1465 frames`. Known
    /// after the last frame. How many frames are missing behind that place is not known. With [`salvage`](Self::salvage) it
    /// is a part of [`salvaged`](Self::salvaged) instead.
    pub fn cut(&self) -> Option<&str> {
        self.cut.as_deref()
    }
}

//! Writes a recording: [`Writer::open`], [`Writer::interface`] for each bus, [`Writer::frame`], [`Writer::finish`].

use crate::{
    Error, Result,
    format::{Format, Output, Sink, Write, WriteOptions, Written},
    output,
};
use canter_frame::{BusId, Record};
use std::{io, path::PathBuf};

/// A recording being written. The file gets its name in [`finish`](Self::finish): a writer that is dropped before
/// leaves no file. Pipes and devices receive bytes immediately.
pub struct Writer {
    path: PathBuf,
    format: &'static Format,
    sink: Box<dyn Sink>,
    buses: u32,
}

impl Writer {
    /// Creates a file, or a folder if the format writes folders; `-` is the standard output.
    ///
    /// # Errors
    /// When the file exists and may not be replaced, cannot be created, or the format cannot be written there.
    pub fn open(options: &WriteOptions) -> Result<Self> {
        let path = &options.path;
        let sink = match options.format.write {
            None => return Err(unsuitable(options, "can only be read")),
            Some(Write::Folder(_)) if output::is_zst(path) => {
                return Err(unsuitable(options, "is a folder and cannot be compressed"));
            }
            Some(Write::Folder(create)) => create(options),
            Some(Write::File(encode)) => {
                refuse_unless_growing(options, output::is_zst(path), output::is_stream(path))?;
                Output::create(path, options.overwrite).and_then(|output| encode(output, options))
            }
        };
        Self::new(options, sink)
    }

    /// Writes to any stream: a socket, memory. Errors name it by the options' path; if the path ends in `.zst`, the
    /// output is compressed.
    ///
    /// # Errors
    /// When the format cannot be written from beginning to end ([`Format::grows`](crate::Format::grows)).
    pub fn to_stream(stream: Box<dyn io::Write>, options: &WriteOptions) -> Result<Self> {
        let Some(Write::File(encode)) = options.format.write else {
            return Err(unsuitable(options, "cannot be written to a stream"));
        };
        let zst = output::is_zst(&options.path);
        refuse_unless_growing(options, zst, true)?;
        Self::new(options, Output::stream(stream, zst).and_then(|output| encode(output, options)))
    }

    fn new(options: &WriteOptions, sink: io::Result<Box<dyn Sink>>) -> Result<Self> {
        let sink = sink.map_err(|error| Error::io(&options.path, "open", error))?;
        Ok(Self { path: options.path.clone(), format: options.format, sink, buses: 0 })
    }

    /// Adds a bus by its interface's name, and returns the [`BusId`] for its frames; the ids count from 0.
    ///
    /// A bus may be added at any time before its first frame. So a copy of a recording adds each bus when the reader meets
    /// it, and then the ids of both are the same:
    ///
    /// ```no_run
    /// # fn main() -> canter_formats::Result<()> {
    /// let mut reader = canter_formats::open("drive.blf")?;
    /// let mut writer = canter_formats::create("drive.log")?;
    /// let mut buses = 0;
    /// while let Some(record) = reader.next_record()? {
    ///     for name in &reader.names()[buses..] {
    ///         writer.interface(name)?;
    ///         buses += 1;
    ///     }
    ///     writer.frame(&record)?;
    /// }
    /// for (what, frames) in writer.finish()?.not_kept.iter() {
    ///     eprintln!("not kept of {frames} frames: {what}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// What the operating system reports, or that the format cannot hold the name.
    pub fn interface(&mut self, name: &str) -> Result<BusId> {
        if !(self.format.holds_name)(name) {
            let thing = self.path.display().to_string();
            let way_out = "give the interface another one: canter convert --interfaces OLD=NEW";
            let reason = format!("write: a {} cannot hold the name {name:?} ({way_out})", self.format.title);
            return Err(Error::Unsuitable { thing, reason });
        }
        self.sink.interface(name).map_err(|error| self.failed(error))?;
        self.buses += 1;
        Ok(BusId(self.buses - 1))
    }

    /// Adds a frame of a bus that was added before.
    ///
    /// # Errors
    /// What the operating system reports; nothing more can be written then.
    #[inline]
    pub fn frame(&mut self, record: &Record) -> Result<()> {
        self.sink.frame(record).map_err(|error| self.failed(error))
    }

    #[cold]
    fn failed(&self, error: io::Error) -> Error {
        Error::io(&self.path, "write", error)
    }

    /// The channel number of a bus, in formats that number buses.
    pub fn channel(&self, bus: BusId) -> Option<u32> {
        self.sink.channel(bus)
    }

    /// Ends the recording and gives it its name.
    ///
    /// # Errors
    /// What the operating system reports; the recording does not exist then.
    pub fn finish(self) -> Result<Written> {
        let Self { path, sink, .. } = self;
        sink.finish().map_err(|error| Error::io(&path, "write", error))
    }
}

/// Refuses compression and streams for a format whose beginning is written at the end.
fn refuse_unless_growing(options: &WriteOptions, zst: bool, stream: bool) -> Result<()> {
    if options.format.grows || !zst && !stream {
        return Ok(());
    }
    let refused = if zst { "cannot be compressed" } else { "cannot go into a pipe or a device" };
    Err(unsuitable(options, &format!("changes its first bytes at the end and {refused} (name a plain file)")))
}

fn unsuitable(options: &WriteOptions, what: &str) -> Error {
    let thing = options.path.display().to_string();
    Error::Unsuitable { thing, reason: format!("{} {what}", options.format.name) }
}

//! The output file: a temporary file in the same folder that gets its name when complete, compressed if the name ends
//! in `.zst`.

use crate::zst;
use std::{
    fs::File,
    io::{self, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};
use tempfile::NamedTempFile;

/// The buffer is written when it has this size, in bytes.
const WRITE_BYTES: usize = 256 << 10;

/// The destination of the bytes.
enum To {
    /// A file that gets its name at the end.
    New(NamedTempFile, PathBuf),
    /// A pipe, a device, or a stream that the caller passes.
    Stream(Box<dyn Write>),
}

/// The output of an encoder: a buffer, and the file or stream that it is written to.
pub struct Output {
    buffer: Vec<u8>,
    packer: Option<zst::Packer>,
    to: To,
    overwrite: bool,
    /// Bytes taken from the buffer, before compression.
    taken: u64,
    written: u64,
}

/// Creates a temporary file in the folder of `path`.
pub(crate) fn beside(path: &Path) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".canter-convert-");
    // The permissions of any new file: those that the umask allows.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.tempfile_in(folder_of(path))
}

/// Whether a path ends in `.zst`.
pub(crate) fn is_zst(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "zst")
}

/// Whether a path is the standard output, a pipe or a device, where bytes cannot be changed once written.
pub(crate) fn is_stream(path: &Path) -> bool {
    path.as_os_str() == "-" || path.metadata().is_ok_and(|about| !about.is_file() && !about.is_dir())
}

impl Output {
    /// Opens a file; `-` is the standard output.
    pub(crate) fn create(path: &Path, overwrite: bool) -> io::Result<Self> {
        let to = if path.as_os_str() == "-" {
            To::Stream(Box::new(io::stdout().lock()))
        } else {
            match path.metadata() {
                Ok(about) if about.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
                Ok(about) if !about.is_file() => {
                    To::Stream(Box::new(File::options().write(true).open(path)?))
                }
                Ok(_) if !overwrite => return Err(io::ErrorKind::AlreadyExists.into()),
                Ok(about) => {
                    let file = beside(path)?;
                    file.as_file().set_permissions(about.permissions())?; // nobody new may read it
                    To::New(file, path.to_owned())
                }
                Err(_) => To::New(beside(path)?, path.to_owned()),
            }
        };
        Self::new(to, is_zst(path), overwrite)
    }

    /// A stream.
    pub(crate) fn stream(stream: Box<dyn Write>, zst: bool) -> io::Result<Self> {
        Self::new(To::Stream(stream), zst, false)
    }

    fn new(to: To, zst: bool, overwrite: bool) -> io::Result<Self> {
        let packer = if zst { Some(zst::Packer::new()?) } else { None };
        let buffer = Vec::with_capacity(2 * WRITE_BYTES);
        Ok(Self { buffer, packer, to, overwrite, taken: 0, written: 0 })
    }

    /// The buffer to append to; call [`ready`](Self::ready) after each frame.
    #[inline]
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// The offset of the next byte.
    pub fn position(&self) -> u64 {
        self.taken + self.buffer.len() as u64
    }

    /// Writes the buffer when it is large enough.
    ///
    /// # Errors
    /// What the operating system reports.
    #[inline]
    pub fn ready(&mut self) -> io::Result<()> {
        if self.buffer.len() < WRITE_BYTES { Ok(()) } else { self.write(false) }
    }

    #[cold]
    fn write(&mut self, end: bool) -> io::Result<()> {
        self.taken += self.buffer.len() as u64;
        let (to, written) = (&mut self.to, &mut self.written);
        let mut put = |bytes: &[u8]| {
            *written += bytes.len() as u64;
            match to {
                To::New(file, _) => file.as_file_mut().write_all(bytes),
                To::Stream(stream) => stream.write_all(bytes),
            }
        };
        match &mut self.packer {
            Some(packer) => packer.pack(&self.buffer, end, put)?,
            None => put(&self.buffer)?,
        }
        self.buffer.clear();
        Ok(())
    }

    /// Replaces bytes that were written before, for formats whose header is complete only at the end.
    ///
    /// # Errors
    /// What the operating system reports; `NotSeekable` for a stream.
    pub fn patch(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.write(false)?;
        match &mut self.to {
            To::New(file, _) => {
                let file = file.as_file_mut();
                file.seek(SeekFrom::Start(at))?;
                file.write_all(bytes)?;
                file.seek(SeekFrom::End(0)).map(drop)
            }
            To::Stream(_) => Err(io::ErrorKind::NotSeekable.into()),
        }
    }

    /// Writes the rest and gives the file its name; returns its size in bytes.
    ///
    /// # Errors
    /// What the operating system reports.
    pub fn finish(mut self) -> io::Result<u64> {
        self.write(true)?;
        match self.to {
            To::New(file, path) => place(file, &path, self.overwrite)?,
            To::Stream(mut stream) => stream.flush()?,
        }
        Ok(self.written)
    }
}

/// Gives a complete file its name, and the name to the disk.
fn place(file: NamedTempFile, path: &Path, overwrite: bool) -> io::Result<()> {
    file.as_file().sync_data()?;
    let placed = if overwrite { file.persist(path) } else { file.persist_noclobber(path) };
    placed.map_err(|error| error.error)?;
    #[cfg(unix)]
    match File::open(folder_of(path))?.sync_all() {
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {} // a file system whose folders cannot be synced
        synced => synced?,
    }
    Ok(())
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

//! The file that is written: beside its place under another name until it is whole, packed if its name says so.

use std::{
    fs::{self, File},
    io::{self, Write},
    os::unix::fs::{FileExt, PermissionsExt},
    path::{Path, PathBuf},
};
use tempfile::NamedTempFile;

/// How much is gathered before it is written.
const WRITE_BYTES: usize = 256 << 10;

/// Where the bytes go.
enum To {
    /// A file that gets its name at the end.
    New(NamedTempFile, PathBuf),
    /// A pipe or a device.
    Stream(Box<dyn Write>),
}

/// A buffer and the file behind it.
pub struct Output {
    buffer: Vec<u8>,
    packer: Option<zstd::stream::raw::Encoder<'static>>,
    packed: Vec<u8>,
    to: To,
    overwrite: bool,
    /// Bytes handed over, as they were before packing.
    taken: u64,
    written: u64,
}

/// A file beside `path` that will be there when it is whole.
pub fn beside(path: &Path) -> io::Result<NamedTempFile> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // As any new file: what the umask allows.
    tempfile::Builder::new()
        .prefix(".canter-convert-")
        .permissions(fs::Permissions::from_mode(0o666))
        .tempfile_in(folder)
}

impl Output {
    /// `-` is the standard output.
    pub fn create(path: &Path, overwrite: bool) -> io::Result<Self> {
        let to = if path.as_os_str() == "-" {
            To::Stream(Box::new(io::stdout().lock()))
        } else {
            match path.metadata() {
                Ok(about) if about.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
                Ok(about) if !about.is_file() => {
                    To::Stream(Box::new(File::options().write(true).open(path)?))
                }
                Ok(_) if !overwrite => return Err(io::ErrorKind::AlreadyExists.into()),
                _ => To::New(beside(path)?, path.to_owned()),
            }
        };
        let packer = match path.extension() {
            Some(extension) if extension == "zst" => Some(zstd::stream::raw::Encoder::new(3)?),
            _ => None,
        };
        let (buffer, packed) = (Vec::with_capacity(2 * WRITE_BYTES), Vec::new());
        Ok(Self { buffer, packer, packed, to, overwrite, taken: 0, written: 0 })
    }

    /// Where to append; [`ready`](Self::ready) from time to time.
    #[inline]
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Where the next byte will stand.
    pub fn position(&self) -> u64 {
        self.taken + self.buffer.len() as u64
    }

    /// Writes the buffer when it is large enough.
    #[inline]
    pub fn ready(&mut self) -> io::Result<()> {
        if self.buffer.len() < WRITE_BYTES { Ok(()) } else { self.write() }
    }

    #[cold]
    fn write(&mut self) -> io::Result<()> {
        self.taken += self.buffer.len() as u64;
        if self.packer.is_some() {
            self.pack(false)?;
        } else {
            put(&mut self.to, &self.buffer)?;
            self.written += self.buffer.len() as u64;
        }
        self.buffer.clear();
        Ok(())
    }

    fn pack(&mut self, end: bool) -> io::Result<()> {
        use zstd::stream::raw::{InBuffer, Operation, OutBuffer};
        let Some(packer) = &mut self.packer else { return Ok(()) };
        self.packed.resize(WRITE_BYTES, 0);
        let mut input = InBuffer::around(&self.buffer);
        loop {
            let mut output = OutBuffer::around(self.packed.as_mut_slice());
            let left =
                if end { packer.finish(&mut output, true)? } else { packer.run(&mut input, &mut output)? };
            let count = output.pos();
            put(&mut self.to, &self.packed[..count])?;
            self.written += count as u64;
            if if end { left == 0 } else { input.pos() == self.buffer.len() } {
                return Ok(());
            }
        }
    }

    /// Writes over bytes that were written before; only where the format was let through as one that does so.
    pub fn patch(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.write()?;
        match &self.to {
            To::New(file, _) => file.as_file().write_all_at(bytes, at),
            To::Stream(_) => Err(io::ErrorKind::NotSeekable.into()),
        }
    }

    /// Writes the rest and puts the file in its place; answers its size.
    pub fn finish(mut self) -> io::Result<u64> {
        self.write()?;
        if self.packer.is_some() {
            self.pack(true)?;
        }
        match self.to {
            To::New(file, path) => place(file, &path, self.overwrite)?,
            To::Stream(mut stream) => stream.flush()?,
        }
        Ok(self.written)
    }
}

/// Gives a file that is whole its name.
pub fn place(file: NamedTempFile, path: &Path, overwrite: bool) -> io::Result<()> {
    file.as_file().sync_data()?;
    if overwrite { file.persist(path) } else { file.persist_noclobber(path) }
        .map(drop)
        .map_err(|error| error.error)
}

fn put(to: &mut To, bytes: &[u8]) -> io::Result<()> {
    match to {
        To::New(file, _) => file.as_file_mut().write_all(bytes),
        To::Stream(stream) => stream.write_all(bytes),
    }
}

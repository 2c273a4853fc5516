//! The files of a recording: one file, or with rotation numbered files, of which the oldest may be deleted. After a disk
//! error, a recording continues in a numbered file, too.

use crate::account::{Deleted, Written};
use crate::{Error, Result};
use canter_io::file;
use std::{
    collections::VecDeque,
    fs::{self, File},
    io::{self, Write},
    os::{fd::AsFd, unix::fs::MetadataExt},
    path::{Path, PathBuf},
};

/// Digits of a file's number: with one file per second, names sort correctly for eleven days.
const DIGITS: usize = 6;

/// The current file, and the list of the files written before it.
pub struct Files {
    target: PathBuf,
    keep: usize,
    number: u64,
    /// `None`: closed or left.
    file: Option<File>,
    path: PathBuf,
    /// The size of the current file in bytes.
    bytes: u64,
    closed: VecDeque<Written>,
    deleted: Deleted,
}

impl Files {
    /// Creates the first file. With `numbered`, it has a number as those that follow, of which at most `keep` are kept.
    ///
    /// # Errors
    /// When it cannot be created, or exists and `overwrite` is not set.
    pub fn create(target: &Path, numbered: bool, keep: Option<usize>, overwrite: bool) -> Result<Self> {
        let path = if numbered { numbered_path(target, 1) } else { target.to_owned() };
        if numbered {
            for earlier in numbered_files(target) {
                if !overwrite {
                    return Err(Error::file(&earlier, "open", io::ErrorKind::AlreadyExists.into()));
                }
                fs::remove_file(&earlier).map_err(|error| Error::file(&earlier, "remove", error))?;
            }
        }
        // Writing to a device or pipe replaces nothing.
        let may_replace = overwrite || path.metadata().is_ok_and(|about| !about.is_file());
        let file = open(&path, may_replace).map_err(|error| Error::file(&path, "open", error))?;
        Ok(Self {
            target: target.to_owned(),
            keep: keep.unwrap_or(usize::MAX),
            number: 1,
            file: Some(file),
            path,
            bytes: 0,
            closed: VecDeque::new(),
            deleted: Deleted::default(),
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The size of the current file in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Writes until all bytes are written or an error occurs, and returns how many were written. The caller removes an
    /// incomplete entry with `cut`.
    pub fn write(&mut self, bytes: &[u8]) -> (usize, Option<io::Error>) {
        let Some(file) = &mut self.file else { return (0, Some(io::ErrorKind::BrokenPipe.into())) };
        let (taken, error) = write_counting(file, bytes);
        self.bytes += taken as u64;
        (taken, error)
    }

    /// Removes the last `bytes`, which a reader could not use.
    pub fn cut(&mut self, bytes: usize) {
        self.bytes -= bytes as u64;
        if let Some(file) = &self.file {
            let _ = file.set_len(self.bytes);
        }
    }

    /// Whether the path still names the file that is being written: it was neither removed nor replaced.
    pub fn is_in_place(&self) -> bool {
        if is_stdout(&self.path) {
            return true;
        }
        let same = |path: &Path, file: &File| {
            let (named, open) = (fs::metadata(path)?, file.metadata()?);
            io::Result::Ok((named.dev(), named.ino()) == (open.dev(), open.ino()))
        };
        self.file.as_ref().is_some_and(|file| same(&self.path, file).unwrap_or(false))
    }

    /// Whether no file is open: the last one was closed, left or given up.
    pub fn is_closed(&self) -> bool {
        self.file.is_none()
    }

    /// Closes a file that has no name any more; returns its size in bytes.
    pub fn give_up(&mut self) -> u64 {
        self.file = None;
        std::mem::take(&mut self.bytes)
    }

    /// Syncs the file to the disk, and adds it to the list.
    ///
    /// # Errors
    /// The error of fdatasync(2).
    pub fn close(&mut self, mut about: Written) -> io::Result<()> {
        let Some(file) = self.file.take() else { return Ok(()) };
        about.name = self.path.display().to_string();
        about.bytes = self.bytes;
        self.closed.push_back(about);
        let plain = file.metadata().is_ok_and(|about| about.is_file());
        if plain { file.sync_data().and_then(|()| sync_folder_of(&self.path)) } else { Ok(()) }
    }

    /// Leaves a file as an error left it. One without frames that continues a recording is removed.
    pub fn leave(&mut self, about: Written) {
        if self.is_closed() {
            return;
        }
        if about.frames > 0 || self.number == 1 {
            let _ = self.close(about); // the disk has failed already
        } else {
            let _ = fs::remove_file(&self.path);
            self.file = None;
        }
    }

    /// Whether the recording can continue in another file: it does not go to a device or a pipe.
    pub fn may_continue(&self) -> bool {
        !is_stdout(&self.target) && self.target.metadata().map_or(true, |about| about.is_file())
    }

    /// Whether `bytes` of room are on the disk. If only a limited number of files is kept, deletes the oldest files first
    /// until there is room.
    pub fn make_room(&mut self, bytes: u64) -> bool {
        let folder = folder_of(&self.target).to_owned();
        let has_room = || file::room(&folder).is_ok_and(|room| room >= bytes);
        while self.keep < usize::MAX && !has_room() && !self.closed.is_empty() {
            if self.delete_oldest().is_err() {
                break;
            }
        }
        has_room()
    }

    fn delete_oldest(&mut self) -> Result<()> {
        let Some(oldest) = self.closed.pop_front() else { return Ok(()) };
        let path = Path::new(&oldest.name);
        match fs::remove_file(path) {
            // A file that was moved away is not deleted, but counts as deleted here.
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::file(path, "remove", error)),
            _ => {
                self.deleted.add(&oldest);
                Ok(())
            }
        }
    }

    /// Creates the next file after the current one was closed or left, and deletes the oldest files above the limit.
    ///
    /// # Errors
    /// When a file cannot be deleted or created.
    pub fn next(&mut self) -> Result<()> {
        while self.closed.len() >= self.keep {
            self.delete_oldest()?;
        }
        let path = numbered_path(&self.target, self.number + 1);
        let created = open(&path, false);
        let taken = |error: &io::Error| error.kind() == io::ErrorKind::AlreadyExists;
        if created.is_ok() || created.as_ref().is_err_and(taken) {
            self.number += 1; // a name that is taken stays so: the next attempt takes the next
        }
        self.file = Some(created.map_err(|error| Error::file(&path, "open", error))?);
        (self.path, self.bytes) = (path, 0);
        Ok(())
    }

    /// The closed files that still exist, and the sum over the deleted ones.
    pub fn closed(&self) -> (Vec<Written>, Deleted) {
        (self.closed.iter().cloned().collect(), self.deleted)
    }
}

/// Whether the recording goes to standard output.
pub fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Syncs the folder of a file, so that the file's name outlives a power cut.
///
/// # Errors
/// The error of open(2) or fsync(2).
pub fn sync_folder_of(path: &Path) -> io::Result<()> {
    match File::open(folder_of(path))?.sync_all() {
        // A file system without folders that can be synced.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        synced => synced,
    }
}

fn open(path: &Path, may_replace: bool) -> io::Result<File> {
    if is_stdout(path) {
        return Ok(io::stdout().as_fd().try_clone_to_owned()?.into());
    }
    let mut options = File::options();
    options.write(true);
    if may_replace {
        options.create(true).truncate(true)
    } else {
        options.create_new(true)
    };
    options.open(path)
}

/// The parts of a file's name before and after its number: `drive` and `.pcapng.zst`.
fn split_name(target: &Path) -> (String, String) {
    let name = target.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let bare = name.strip_suffix(".zst").unwrap_or(&name);
    let stem = bare.rfind('.').filter(|&at| at > 0).unwrap_or(bare.len());
    (name[..stem].to_owned(), name[stem..].to_owned())
}

fn numbered_path(target: &Path, number: u64) -> PathBuf {
    let (stem, end) = split_name(target);
    target.with_file_name(format!("{stem}-{number:0DIGITS$}{end}"))
}

/// The existing files with numbered names of this target.
fn numbered_files(target: &Path) -> Vec<PathBuf> {
    let (stem, end) = split_name(target);
    let numbered = |name: &str| {
        let middle = name.strip_prefix(&stem)?.strip_prefix('-')?.strip_suffix(&end)?;
        (middle.len() >= DIGITS && middle.bytes().all(|byte| byte.is_ascii_digit())).then_some(())
    };
    let entries = fs::read_dir(folder_of(target)).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries
        .filter(|entry| entry.file_name().to_str().and_then(numbered).is_some())
        .map(|entry| entry.path())
        .collect();
    files.sort();
    files
}

/// Writes until all bytes are written or an error occurs, and returns how many were written.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Accepts this number of bytes and then none.
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
    fn a_write_to_a_full_disk_returns_the_bytes_written() {
        let (taken, error) = write_counting(&mut Full(20), &[0; 64]);
        assert_eq!((taken, error.unwrap().kind()), (20, io::ErrorKind::StorageFull));
        assert!(matches!(write_counting(&mut Full(64), &[0; 64]), (64, None)));
    }

    #[test]
    fn the_number_is_inserted_before_the_extension_and_names_sort() {
        let path = |target: &str, number| numbered_path(Path::new(target), number).display().to_string();
        assert_eq!(path("/a.b/drive.pcapng.zst", 7), "/a.b/drive-000007.pcapng.zst");
        assert_eq!(path("drive.v2.log", 999_999), "drive.v2-999999.log");
        assert_eq!(path("drive", 1), "drive-000001");
        assert!(path("d.log", 9) < path("d.log", 10) && path("d.log", 99_999) < path("d.log", 100_000));
    }

    #[test]
    fn rotation_keeps_the_newest_files_and_replaces_an_older_recording_only_with_overwrite() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("d.log");
        let names = || {
            let entries = fs::read_dir(folder.path()).unwrap();
            let mut names: Vec<String> =
                entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        };
        let mut files = Files::create(&target, true, Some(2), false).unwrap();
        for _ in 0..3 {
            assert!(matches!(files.write(b"12345"), (5, None)));
            files.close(Written { frames: 2, ..Written::default() }).unwrap();
            files.next().unwrap();
        }
        assert_eq!(names(), ["d-000003.log", "d-000004.log"]);
        let (closed, deleted) = files.closed();
        assert_eq!((closed.len(), deleted), (1, Deleted { files: 2, frames: 4, bytes: 10 }));
        assert!(files.is_in_place());

        fs::write(folder.path().join("d-mine.log"), "").unwrap();
        let refused = Files::create(&target, true, None, false).err().unwrap();
        assert!(refused.to_string().contains("d-000003.log: open: "), "{refused}");
        let exists = |source: &io::Error| source.kind() == io::ErrorKind::AlreadyExists;
        assert!(matches!(&refused, Error::File { source, .. } if exists(source)));
        Files::create(&target, true, None, true).unwrap();
        assert_eq!(names(), ["d-000001.log", "d-mine.log"]);
        assert!(!files.is_in_place());
    }
}

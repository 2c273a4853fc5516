//! The files of a recording: one file, or with rotation numbered files, of which the oldest may be deleted. After a disk
//! error, a recording continues in a numbered file, too.

use crate::account::{Account, Deleted, Written};
use crate::{Error, Result};
use canter_io::file;
use std::{
    collections::{HashSet, VecDeque},
    ffi::OsString,
    fs::{self, File, Permissions},
    io::{self, Write},
    os::{
        fd::AsFd,
        unix::fs::{MetadataExt, PermissionsExt},
    },
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// Digits of a file's number: with one file per second, names sort correctly for eleven days. Later numbers have one more.
const DIGITS: usize = 6;

/// What has become of the file that is being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The path names the file, and the file has the bytes that were written.
    Intact,
    /// The path names no file, or another one.
    Removed,
    /// The size is another: another program has truncated the file or writes it, too.
    Changed,
}

/// Which closed files of a rotation stay.
#[derive(Clone, Copy, Debug, Default)]
pub struct Retention {
    /// The most files, the current one included.
    pub files: Option<usize>,
    /// The least room on the disk, in bytes.
    pub free_bytes: Option<u64>,
    /// Files that were closed less than this ago.
    pub age: Option<Duration>,
}

impl Retention {
    /// Whether files are deleted at all.
    pub fn deletes(&self) -> bool {
        self.files.is_some() || self.free_bytes.is_some() || self.age.is_some()
    }
}

/// A file to sync, and its path while its folder need not name it after a power cut.
pub struct Unsynced {
    file: File,
    /// `None`: the folder was synced.
    pub folder_of: Option<PathBuf>,
}

impl Unsynced {
    /// Syncs it to the disk.
    ///
    /// # Errors
    /// The error of fdatasync(2), or of the folder.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()?;
        self.folder_of.as_deref().map_or(Ok(()), sync_folder_of)
    }
}

/// A file that was closed.
struct Closed {
    about: Written,
    when: Instant,
}

/// The current file, and the list of the files written before it.
pub struct Files {
    target: PathBuf,
    retention: Retention,
    number: u64,
    /// `None`: closed or left.
    file: Option<File>,
    path: PathBuf,
    /// The size of the current file in bytes.
    bytes: u64,
    /// A file of a disk, no device and no pipe.
    is_plain: bool,
    /// The folder names the file, also after a power cut.
    is_named: bool,
    closed: VecDeque<Closed>,
    /// Closed files that could not be deleted.
    undeletable: Vec<Written>,
    deleted: Deleted,
}

impl Files {
    /// Creates the first file. With `numbered`, it has a number as those that follow, of which `retention` says how many stay.
    ///
    /// # Errors
    /// When it cannot be created, when it exists and `overwrite` is not set, and when another recording writes it.
    pub fn create(target: &Path, numbered: bool, retention: Retention, overwrite: bool) -> Result<Self> {
        let path = if numbered { numbered_path(target, 1) } else { target.to_owned() };
        if numbered {
            remove_earlier(target, overwrite)?;
        }
        let file = open(&path, overwrite).map_err(|error| Error::file(&path, "open", error))?;
        Ok(Self {
            target: target.to_owned(),
            retention,
            number: 1,
            is_plain: file.metadata().is_ok_and(|about| about.is_file()) && !is_stdout(&path),
            file: Some(file),
            path,
            bytes: 0,
            is_named: false,
            closed: VecDeque::new(),
            undeletable: Vec::new(),
            deleted: Deleted::default(),
        })
    }

    /// Creates no file yet: the first call of [`next`](Self::next) does, which gives it the number 1.
    ///
    /// # Errors
    /// When files of an earlier recording exist and `overwrite` is not set.
    pub fn create_later(target: &Path, retention: Retention, overwrite: bool) -> Result<Self> {
        remove_earlier(target, overwrite)?;
        Ok(Self {
            target: target.to_owned(),
            retention,
            number: 0,
            file: None,
            path: target.to_owned(),
            bytes: 0,
            is_plain: false,
            is_named: false,
            closed: VecDeque::new(),
            undeletable: Vec::new(),
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
        if is_changed(&self.path, file, self.bytes) {
            return (0, Some(io::Error::other("another program has truncated it or writes it, too")));
        }
        let (taken, error) = write_counting(file, bytes);
        self.bytes += taken as u64;
        (taken, error)
    }

    /// Removes the last `bytes`, which a reader could not use.
    pub fn cut(&mut self, bytes: usize) {
        self.bytes -= bytes as u64;
        if let Some(file) = self.file.as_ref().filter(|_| bytes > 0) {
            let _ = file.set_len(self.bytes);
        }
    }

    /// What has become of the file that is being written.
    pub fn state(&self) -> State {
        let Some(file) = self.file.as_ref().filter(|_| !is_stdout(&self.path)) else { return State::Intact };
        let identity = |about: &fs::Metadata| (about.dev(), about.ino());
        match (fs::metadata(&self.path), file.metadata()) {
            (Ok(named), Ok(open)) if identity(&named) == identity(&open) => {
                if is_changed(&self.path, file, self.bytes) { State::Changed } else { State::Intact }
            }
            _ => State::Removed,
        }
    }

    /// Whether no file is open: the last one was closed, left or given up.
    pub fn is_closed(&self) -> bool {
        self.file.is_none()
    }

    /// Closes a file that is no longer what was written; returns its size in bytes.
    pub fn give_up(&mut self) -> u64 {
        self.file = None;
        std::mem::take(&mut self.bytes)
    }

    /// The current file, to be synced by another thread; `None`: it is closed, or not on a disk.
    pub fn unsynced(&mut self) -> Option<Unsynced> {
        let file = self.file.as_ref().filter(|_| self.is_plain)?.try_clone().ok()?;
        let folder_of = (!self.is_named).then(|| self.path.clone());
        self.is_named = true;
        Some(Unsynced { file, folder_of })
    }

    /// Whether the current file was created and not synced yet.
    pub fn is_new(&self) -> bool {
        self.is_plain && !self.is_named && self.file.is_some()
    }

    /// Closes a file whose sync has failed: the disk need not have any of its frames.
    pub fn close_unsynced(&mut self, about: Written) {
        if self.file.take().is_some() {
            self.list(Written { frames: 0, ..about });
        }
    }

    /// Adds the current file to those that are closed.
    fn list(&mut self, mut about: Written) {
        about.name = self.path.display().to_string();
        about.bytes = self.bytes;
        self.closed.push_back(Closed { about, when: Instant::now() });
    }

    /// Syncs the file to the disk, and adds it to the list.
    ///
    /// # Errors
    /// The error of fdatasync(2): the disk need not have any of its frames. The list has the file without frames then.
    pub fn close(&mut self, mut about: Written) -> io::Result<()> {
        let Some(file) = self.file.take() else { return Ok(()) };
        let is_plain = file.metadata().is_ok_and(|about| about.is_file());
        let synced =
            if is_plain { file.sync_data().and_then(|()| sync_folder_of(&self.path)) } else { Ok(()) };
        if synced.is_err() {
            about.frames = 0;
        }
        self.list(about);
        synced
    }

    /// Leaves a file as an error left it. One without frames that continues a recording is removed.
    ///
    /// # Errors
    /// As [`close`](Self::close).
    pub fn leave(&mut self, about: Written) -> io::Result<()> {
        if self.is_closed() {
            return Ok(());
        }
        if about.frames > 0 || self.number == 1 {
            return self.close(about);
        }
        let _ = fs::remove_file(&self.path);
        self.file = None;
        Ok(())
    }

    /// Whether the recording can continue in another file: it does not go to a device or a pipe.
    pub fn may_continue(&self) -> bool {
        !is_stdout(&self.target) && self.target.metadata().map_or(true, |about| about.is_file())
    }

    /// Whether `bytes` of room are on the disk. If files are deleted at all, deletes the oldest ones first until there is
    /// room.
    pub fn make_room(&mut self, bytes: u64) -> bool {
        let folder = folder_of(&self.target).to_owned();
        let has_room = || file::room(&folder).is_ok_and(|room| room >= bytes);
        while self.retention.deletes() && !has_room() && !self.closed.is_empty() {
            let _ = self.delete_oldest(); // one that stays makes no room, another may
        }
        has_room()
    }

    /// Deletes the closed files that are not to stay, the oldest first. One that cannot be deleted stays, and keeps no other
    /// one: returns the first of such errors.
    pub fn delete_surplus(&mut self) -> Option<Error> {
        let mut failed = None;
        while self.is_oldest_surplus() {
            if let Err(error) = self.delete_oldest() {
                failed.get_or_insert(error);
            }
        }
        failed
    }

    fn is_oldest_surplus(&self) -> bool {
        let Some(oldest) = self.closed.front() else { return false };
        let Retention { files, free_bytes, age } = self.retention;
        let lacks_room = |least| file::room(folder_of(&self.target)).is_ok_and(|room| room < least);
        // The current file is one of those that are kept.
        files.is_some_and(|most| self.closed.len() + usize::from(!self.is_closed()) > most.max(1))
            || age.is_some_and(|most| oldest.when.elapsed() > most)
            || free_bytes.is_some_and(lacks_room)
    }

    fn delete_oldest(&mut self) -> Result<()> {
        let Some(Closed { about: oldest, .. }) = self.closed.pop_front() else { return Ok(()) };
        let path = Path::new(&oldest.name);
        match fs::remove_file(path) {
            // A file that was moved away is not deleted, but counts as deleted here.
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                let error = Error::file(path, "remove", error);
                self.undeletable.push(oldest);
                Err(error)
            }
            _ => {
                self.deleted.add(&oldest);
                Ok(())
            }
        }
    }

    /// Creates the next file after the current one was closed or left.
    ///
    /// # Errors
    /// When it cannot be created.
    pub fn next(&mut self) -> Result<()> {
        loop {
            let path = numbered_path(&self.target, self.number + 1);
            let file = match open(&path, false) {
                // Somebody else's.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    self.number += 1;
                    continue;
                }
                opened => opened.map_err(|error| Error::file(&path, "open", error))?,
            };
            self.number += 1;
            (self.file, self.path, self.bytes) = (Some(file), path, 0);
            (self.is_plain, self.is_named) = (true, false);
            return Ok(());
        }
    }

    /// The closed files that still exist, and the sum over the deleted ones.
    pub fn closed(&self) -> (Vec<Written>, Deleted) {
        let closed = self.closed.iter().map(|closed| &closed.about);
        (self.undeletable.iter().chain(closed).cloned().collect(), self.deleted)
    }
}

/// Whether the recording goes to standard output.
pub fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}

/// The folder of a file.
pub fn folder_of(path: &Path) -> &Path {
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

/// Whether a file, which this program alone writes, has another size.
fn is_changed(path: &Path, file: &File, bytes: u64) -> bool {
    !is_stdout(path) && file.metadata().is_ok_and(|about| about.is_file() && about.len() != bytes)
}

/// Creates a file and locks it, so that no other recording writes it.
fn open(path: &Path, overwrite: bool) -> io::Result<File> {
    if is_stdout(path) {
        return Ok(io::stdout().as_fd().try_clone_to_owned()?.into());
    }
    match fs::metadata(path) {
        // A device or pipe.
        Ok(about) if !about.is_file() => return File::options().write(true).open(path),
        Ok(about) if overwrite => return replace(path, about.permissions()),
        _ => {}
    }
    // Appends: after another program's truncation, the next bytes do not leave a hole before them.
    let file = File::options().append(true).create_new(true).open(path)?;
    lock(&file)?;
    Ok(file)
}

/// Gives the name of a file to a new, empty one. A program that still writes the old file can see that it was replaced.
fn replace(path: &Path, permissions: Permissions) -> io::Result<File> {
    lock(&File::open(path)?)?;
    let beside = tempfile::Builder::new()
        .append(true)
        .permissions(Permissions::from_mode(0o600))
        .tempfile_in(folder_of(path))?;
    lock(beside.as_file())?;
    beside.as_file().set_permissions(permissions)?;
    Ok(beside.persist(path)?)
}

/// Locks a file that this program is going to write.
fn lock(file: &File) -> io::Result<()> {
    match file::try_lock(file) {
        Ok(false) => Err(io::Error::other("another recording writes it")),
        // Network file systems need not have locks.
        Ok(true) | Err(_) => Ok(()),
    }
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

/// Removes the numbered files of an earlier recording to this target: those that its account lists, and those from number
/// 1 on without a gap.
///
/// # Errors
/// There is one and `overwrite` is not set, or one may be something else; then nothing was removed.
fn remove_earlier(target: &Path, overwrite: bool) -> Result<()> {
    let existing = numbered_files(target);
    let listed = listed_files(target);
    let counted =
        (1..).map(|number| numbered_path(target, number)).take_while(|path| existing.contains(path));
    let counted: HashSet<PathBuf> = counted.collect();
    let is_earlier =
        |path: &PathBuf| counted.contains(path) || path.file_name().is_some_and(|name| listed.contains(name));
    if let Some(first) = existing.iter().find(|path| !overwrite || !is_earlier(path)) {
        let reason = match overwrite {
            false => io::ErrorKind::AlreadyExists.into(),
            true => io::Error::other("no account says that it is of an earlier recording: move it away"),
        };
        return Err(Error::file(first, "open", reason));
    }
    existing
        .iter()
        .try_for_each(|path| fs::remove_file(path).map_err(|error| Error::file(path, "remove", error)))
}

/// The names of the files in the account of an earlier recording to this target.
fn listed_files(target: &Path) -> HashSet<OsString> {
    let text = fs::read(Account::path(target)).unwrap_or_default();
    let account: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
    let files = account["files"].as_array().cloned().unwrap_or_default();
    let names = files.iter().filter_map(|file| Path::new(file["name"].as_str()?).file_name());
    names.map(OsString::from).collect()
}

/// The existing files with numbered names of this target, in the order of their numbers.
fn numbered_files(target: &Path) -> Vec<PathBuf> {
    let (stem, end) = split_name(target);
    let is_numbered = |name: &str| {
        let middle = name.strip_prefix(&stem).and_then(|name| name.strip_prefix('-')?.strip_suffix(&end));
        middle.is_some_and(is_number)
    };
    let entries = fs::read_dir(folder_of(target)).into_iter().flatten().flatten();
    let names = entries.filter(|entry| entry.file_name().to_str().is_some_and(is_numbered));
    let mut files: Vec<PathBuf> = names.map(|entry| target.with_file_name(entry.file_name())).collect();
    files.sort_by(|one, other| {
        one.as_os_str().len().cmp(&other.as_os_str().len()).then_with(|| one.cmp(other))
    });
    files
}

/// Whether this is the number of a file: six digits, or seven from the millionth file on. Eight are a date.
fn is_number(digits: &str) -> bool {
    let is_long = digits.len() == DIGITS + 1 && !digits.starts_with('0');
    (digits.len() == DIGITS || is_long) && digits.bytes().all(|byte| byte.is_ascii_digit())
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
        let mut files =
            Files::create(&target, true, Retention { files: Some(2), ..Retention::default() }, false)
                .unwrap();
        for _ in 0..3 {
            assert!(matches!(files.write(b"12345"), (5, None)));
            files.close(Written { frames: 2, ..Written::default() }).unwrap();
            files.next().unwrap();
            assert!(files.delete_surplus().is_none());
        }
        assert_eq!(names(), ["d-000003.log", "d-000004.log"]);
        let (closed, deleted) = files.closed();
        assert_eq!((closed.len(), deleted), (1, Deleted { files: 2, frames: 4, bytes: 10 }));
        assert_eq!(files.state(), State::Intact);

        fs::write(folder.path().join("d-mine.log"), "").unwrap();
        let refused = Files::create(&target, true, Retention::default(), false).err().unwrap();
        assert!(refused.to_string().contains("d-000003.log: open: "), "{refused}");
        let exists = |source: &io::Error| source.kind() == io::ErrorKind::AlreadyExists;
        assert!(matches!(&refused, Error::File { source, .. } if exists(source)));
        // The oldest were deleted: only its account says that these belong to it.
        let refused = Files::create(&target, true, Retention::default(), true).err().unwrap();
        assert!(refused.to_string().contains("d-000003.log: open: no account says"), "{refused}");
        let account = r#"{"files":[{"name":"elsewhere/d-000003.log"},{"name":"d-000004.log"}]}"#;
        fs::write(Account::path(&target), account).unwrap();
        Files::create(&target, true, Retention::default(), true).unwrap();
        assert_eq!(names(), ["d-000001.log", "d-mine.log", "d.log.account.json"]);
        assert_eq!(files.state(), State::Removed);
    }

    #[test]
    fn a_recording_that_is_named_by_its_date_is_no_file_of_a_rotation() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("drive.log");
        let others = ["drive-20261124.log", "drive-26.log"].map(|name| folder.path().join(name));
        others.iter().for_each(|path| fs::write(path, "mine").unwrap());
        Files::create(&target, true, Retention::default(), false).unwrap();
        Files::create(&target, true, Retention::default(), true).unwrap();
        assert!(others.iter().all(|path| fs::read(path).unwrap() == b"mine"));
        let short_date = folder.path().join("drive-261124.log");
        fs::write(&short_date, "mine").unwrap();
        let refused = Files::create(&target, true, Retention::default(), true).err().unwrap();
        assert!(refused.to_string().contains("drive-261124.log: open: no account says"), "{refused}");
        assert!(short_date.exists() && numbered_path(&target, 1).exists(), "nothing was removed");
    }

    #[test]
    fn a_rotation_continues_behind_its_millionth_file() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("d.log");
        let names = |target| numbered_files(target).into_iter().map(|path| path.display().to_string());
        let numbered = |number| numbered_path(&target, number).display().to_string();
        let retention = Retention { files: Some(3), ..Retention::default() };
        let mut files = Files::create(&target, true, retention, false).unwrap();
        files.number = 999_997;
        fs::write(numbered_path(&target, 1_000_001), "of somebody else").unwrap();
        for _ in 0..4 {
            assert!(matches!(files.write(b"12345"), (5, None)));
            files.close(Written { frames: 1, ..Written::default() }).unwrap();
            files.next().unwrap();
            assert!(files.delete_surplus().is_none());
        }
        let left: Vec<String> = [999_999, 1_000_000, 1_000_001, 1_000_002].map(numbered).into();
        assert_eq!(names(&target).collect::<Vec<_>>(), left);
        assert_eq!(fs::read(numbered_path(&target, 1_000_001)).unwrap(), b"of somebody else");
        // Those of seven digits are as much of an earlier recording as the others.
        fs::remove_file(numbered_path(&target, 999_999)).unwrap();
        let refused = Files::create(&target, true, retention, false).err().unwrap();
        assert!(refused.to_string().contains("d-1000000.log: open: "), "{refused}");
        let listed =
            r#"{"files":[{"name":"d-1000000.log"},{"name":"d-1000001.log"},{"name":"d-1000002.log"}]}"#;
        fs::write(Account::path(&target), listed).unwrap();
        drop(Files::create(&target, true, retention, true).unwrap());
        assert_eq!(names(&target).collect::<Vec<_>>(), [numbered(1)]);
    }

    #[test]
    fn no_two_recordings_write_one_file_and_a_replaced_one_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("d.log");
        let files = Files::create(&target, false, Retention::default(), false).unwrap();
        let refused = Files::create(&target, false, Retention::default(), true).err().unwrap();
        assert!(refused.to_string().ends_with("d.log: open: another recording writes it"), "{refused}");
        fs::remove_file(&target).unwrap();
        assert_eq!(files.state(), State::Removed);
        drop(files);
        fs::write(&target, "old").unwrap();
        fs::set_permissions(&target, Permissions::from_mode(0o640)).unwrap();
        let files = Files::create(&target, false, Retention::default(), true).unwrap();
        let about = fs::metadata(&target).unwrap();
        assert_eq!((about.len(), about.mode() & 0o777, files.state()), (0, 0o640, State::Intact));
    }

    #[test]
    fn a_file_that_another_program_truncates_or_writes_is_noticed_before_the_next_byte() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("d.log");
        let mut files = Files::create(&target, false, Retention::default(), false).unwrap();
        assert!(matches!(files.write(b"12345"), (5, None)));
        File::options().write(true).open(&target).unwrap().set_len(0).unwrap();
        assert_eq!(files.state(), State::Changed);
        let (taken, error) = files.write(b"67890");
        assert_eq!((taken, error.unwrap().kind()), (0, io::ErrorKind::Other));
        files.cut(0);
        assert_eq!(fs::metadata(&target).unwrap().len(), 0, "nothing was written");
    }

    /// Closes three files of a rotation, each with a frame, and begins a fourth.
    fn rotated(target: &Path, retention: Retention) -> Files {
        let mut files = Files::create(target, true, retention, false).unwrap();
        for _ in 0..3 {
            files.close(Written { frames: 1, ..Written::default() }).unwrap();
            files.next().unwrap();
        }
        files
    }

    fn count(target: &Path) -> usize {
        numbered_files(target).len()
    }

    #[test]
    fn files_go_when_the_disk_has_too_little_room_or_they_are_too_old() {
        let retentions = [
            (Retention { free_bytes: Some(u64::MAX), ..Retention::default() }, 1),
            (Retention { free_bytes: Some(1), ..Retention::default() }, 4),
            (Retention { age: Some(Duration::ZERO), ..Retention::default() }, 1),
            (Retention { age: Some(Duration::from_secs(3600)), ..Retention::default() }, 4),
            (Retention { age: Some(Duration::from_secs(3600)), files: Some(2), free_bytes: None }, 2),
        ];
        for (retention, left) in retentions {
            let folder = tempfile::tempdir().unwrap();
            let target = folder.path().join("d.log");
            let mut files = rotated(&target, retention);
            assert!(files.delete_surplus().is_none());
            assert_eq!(count(&target), left, "{retention:?}");
            assert_eq!(files.closed().1.files as usize, 4 - left, "{retention:?}");
        }
    }

    #[test]
    fn a_file_that_cannot_be_deleted_keeps_no_other_one_and_stays_in_the_list() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("d.log");
        let mut files = rotated(&target, Retention { files: Some(1), ..Retention::default() });
        // remove_file() refuses folders, also to root.
        fs::remove_file(numbered_path(&target, 2)).unwrap();
        fs::create_dir(numbered_path(&target, 2)).unwrap();
        let failed = files.delete_surplus().unwrap().to_string();
        assert!(failed.contains("d-000002.log: remove: "), "{failed}");
        assert!(files.delete_surplus().is_none(), "the error is reported once");
        let (listed, deleted) = files.closed();
        assert_eq!((listed.len(), deleted.files, count(&target)), (1, 2, 2));
        assert!(listed[0].name.ends_with("d-000002.log"));
    }

    #[test]
    fn names_that_are_taken_cost_no_time() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("d.log");
        let mut files = Files::create(&target, false, Retention::default(), false).unwrap();
        (2..8).for_each(|number| fs::write(numbered_path(&target, number), "").unwrap());
        files.close(Written::default()).unwrap();
        files.next().unwrap();
        assert_eq!(files.path(), numbered_path(&target, 8));
    }
}

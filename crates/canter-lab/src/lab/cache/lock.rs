//! A lock for each entry of the cache, in a folder that only its owner can open, so that nobody else can hold one. A lab
//! that makes or removes an entry holds the lock alone; labs that use the entry hold it together. The kernel releases a
//! lock when its process ends.

use canter_io::file;
use std::{
    fs::{self, DirBuilder, File},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    time::SystemTime,
};

/// Whether others may hold a lock too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holders {
    One,
    Many,
}

/// A held lock; dropping it releases it.
#[derive(Debug)]
pub struct Lock {
    path: PathBuf,
    file: File,
}

/// The folder of the locks.
pub struct Locks(PathBuf);

impl Locks {
    /// Makes the folder, for its owner only.
    pub fn open(folder: PathBuf) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        if fs::metadata(&folder)?.mode() & 0o077 != 0 {
            fs::set_permissions(&folder, fs::Permissions::from_mode(0o700))?;
        }
        Ok(Self(folder))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name.replace('/', "-"))
    }

    /// Takes the lock of the entry `name`; `None` when somebody else holds it.
    pub fn try_take(&self, name: &str, holders: Holders) -> io::Result<Option<Lock>> {
        let path = self.path(name);
        loop {
            let mut file = open(&path)?;
            let taken = match holders {
                Holders::One => file::try_lock(&file)?,
                Holders::Many => file::try_lock_shared(&file)?,
            };
            if !taken {
                return Ok(None);
            }
            // Whoever removes an entry removes its lock, too: then this file is not the lock any more.
            if fs::metadata(&path).is_ok_and(|now| file.metadata().is_ok_and(|own| own.ino() == now.ino())) {
                let _ = file.set_len(0).and_then(|()| write!(file, "{}", std::process::id())); // only for `holder`
                return Ok(Some(Lock { path, file }));
            }
        }
    }

    /// The process that took the lock last, if it still runs.
    pub fn holder(&self, name: &str) -> Option<u32> {
        let process = fs::read_to_string(self.path(name)).ok()?.parse().ok()?;
        Path::new(&format!("/proc/{process}")).exists().then_some(process)
    }

    /// The time at which the lock was last taken.
    pub fn last_taken(&self, name: &str) -> Option<SystemTime> {
        fs::metadata(self.path(name)).ok()?.modified().ok()
    }
}

impl Lock {
    /// Releases a lock whose entry is gone, and removes its file.
    pub fn remove(self) {
        let _ = fs::remove_file(&self.path); // it would only be a file too many
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        let _ = file::unlock(&self.file); // otherwise it is when the last process has closed the file
    }
}

/// Opens a lock; for reading only if root has made it, as in a lab by sudo.
fn open(path: &Path) -> io::Result<File> {
    let open = |write| File::options().read(true).write(write).create(write).truncate(false).open(path);
    open(true).or_else(|error| open(false).map_err(|_| error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_hold_a_lock_together_and_one_holds_it_alone() {
        let folder = tempfile::tempdir().unwrap();
        let locks = Locks::open(folder.path().join("locks")).unwrap();
        let take = |holders| locks.try_take("kernels/a", holders).unwrap();
        let (first, second) = (take(Holders::Many), take(Holders::Many));
        assert!(first.is_some() && second.is_some() && take(Holders::One).is_none());
        drop(first);
        assert!(take(Holders::One).is_none());
        drop(second);
        let alone = take(Holders::One);
        assert!(alone.is_some() && take(Holders::Many).is_none() && take(Holders::One).is_none());
        assert!(locks.try_take("kernels/b", Holders::One).unwrap().is_some(), "another entry's lock is free");
        alone.unwrap().remove();
        assert!(take(Holders::Many).is_some());
    }

    /// Between its fork and its exec, a process that another thread starts has every file of this one open.
    #[test]
    fn a_lock_is_released_although_another_process_has_its_file_open() {
        let folder = tempfile::tempdir().unwrap();
        let locks = Locks::open(folder.path().join("locks")).unwrap();
        let lock = locks.try_take("a", Holders::One).unwrap().unwrap();
        let _inherited = lock.file.try_clone().unwrap();
        drop(lock);
        assert!(locks.try_take("a", Holders::One).unwrap().is_some());
    }

    #[test]
    fn the_holder_is_named_while_it_runs() {
        let folder = tempfile::tempdir().unwrap();
        let locks = Locks::open(folder.path().join("locks")).unwrap();
        assert_eq!(locks.holder("a"), None);
        let _lock = locks.try_take("a", Holders::One).unwrap();
        assert_eq!(locks.holder("a"), Some(std::process::id()));
        let mut ended = std::process::Command::new("true").spawn().unwrap();
        ended.wait().unwrap();
        fs::write(locks.path("a"), ended.id().to_string()).unwrap();
        assert_eq!(locks.holder("a"), None);
    }

    /// flock(2) needs no permission to write: whoever can open a file for reading can lock it.
    #[test]
    fn only_the_owner_can_open_a_lock() {
        let folder = tempfile::tempdir().unwrap();
        let earlier = folder.path().join("locks");
        fs::create_dir(&earlier).unwrap();
        fs::set_permissions(&earlier, fs::Permissions::from_mode(0o755)).unwrap();
        Locks::open(earlier.clone()).unwrap();
        assert_eq!(fs::metadata(&earlier).unwrap().mode() & 0o777, 0o700);
    }

    #[test]
    fn a_lock_whose_file_was_removed_meanwhile_is_not_held() {
        let folder = tempfile::tempdir().unwrap();
        let locks = Locks::open(folder.path().join("locks")).unwrap();
        let old = locks.try_take("a", Holders::One).unwrap().unwrap();
        fs::remove_file(locks.path("a")).unwrap();
        let new = locks.try_take("a", Holders::One).unwrap();
        assert!(new.is_some(), "another file has that name now");
        drop(old);
        assert!(locks.try_take("a", Holders::Many).unwrap().is_none());
    }
}

//! Files that the lab keeps between runs: kernels, headers, modules, roots, verdicts. An entry is a folder that is made
//! under a temporary name, gets a list of its files (`listing`), and is renamed when complete. A damaged entry is made
//! again. A lab holds a lock (`lock`) on each entry that it uses, so that others wait before they make it again, and
//! `sweep` removes only what nobody uses.

mod listing;
mod lock;
mod sweep;

pub use sweep::{MACHINES, QEMU, clean};

use super::{lab_failure, progress::Progress, signals::Signals};
use canter_cli::failure::{Failure, Result};
use lock::{Holders, Lock, Locks};
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The period at which a lab that waits for another one checks whether it may go on, and for a signal.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// Prefixes of the names of an unfinished entry, and of a damaged one until it is removed.
const TEMPORARY: [&str; 2] = [NEW, OLD];
const NEW: &str = ".new-";
const OLD: &str = ".old-";

pub struct Cache<'a> {
    root: PathBuf,
    locks: Locks,
    /// The signals that end a wait.
    signals: Option<&'a Signals>,
}

/// An entry in use: nobody removes it before this is dropped.
#[derive(Debug)]
pub struct Entry {
    path: PathBuf,
    _lock: Lock,
}

impl Entry {
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// An entry that is being made; nobody else makes it meanwhile. Dropping this leaves nothing.
pub struct Reservation<'a> {
    cache: &'a Cache<'a>,
    name: String,
    made: tempfile::TempDir,
    _lock: Lock,
}

impl Reservation<'_> {
    /// The folder to fill.
    pub fn path(&self) -> &Path {
        self.made.path()
    }

    /// Gives the entry its name, in place of a damaged one, and removes entries that nobody has used for long.
    pub fn keep(self, progress: &Progress) -> Result<()> {
        let path = &self.cache.path(&self.name);
        let step = |name: &'static str| move |e: io::Error| failed(path, name, &e);
        listing::write(self.path()).map_err(step("list"))?;
        fs::set_permissions(self.path(), fs::Permissions::from_mode(0o755)).map_err(step("chmod"))?;
        let old = self.cache.temporary(&self.name, OLD);
        if path.exists() {
            fs::rename(path, &old).map_err(step("rename"))?;
        }
        fs::rename(self.path(), path).map_err(step("rename"))?;
        let _renamed = self.made.keep();
        let _ = fs::remove_dir_all(old); // otherwise the next sweep removes it
        sweep::after(self.cache, &self.name, progress);
        Ok(())
    }
}

impl<'a> Cache<'a> {
    /// Opens the cache in `$CANTER_CACHE`, else `$XDG_CACHE_HOME/canter`, else `~/.cache/canter`.
    pub fn open(signals: Option<&'a Signals>) -> Result<Self> {
        let root = folder(|name| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from))
            .ok_or_else(|| lab_failure("cache: no folder (set CANTER_CACHE, XDG_CACHE_HOME or HOME)"))?;
        let root = std::path::absolute(&root).unwrap_or(root);
        Self::open_at(&root, signals).map_err(|e| {
            lab_failure(format!("cache {}: {e} (CANTER_CACHE names another folder)", root.display()))
        })
    }

    fn open_at(root: &Path, signals: Option<&'a Signals>) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(root)?;
        let locks = Locks::open(root.join("locks"))?;
        Ok(Self { root: root.to_owned(), locks, signals })
    }

    #[cfg(test)]
    pub fn at(root: &Path) -> Self {
        Self::open_at(root, None).unwrap_or_else(|e| panic!("{}: {e}", root.display()))
    }

    /// The path of an entry, which may not exist.
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// The folder `name`. Unless it exists and is whole, `make(temporary folder)` fills it.
    pub fn entry(
        &self,
        name: &str,
        progress: &Progress,
        make: impl Fn(&Path) -> Result<()>,
    ) -> Result<Entry> {
        let path = self.root.join(name);
        let mut made = false;
        loop {
            let exists = path.exists();
            // Another lab may make it while this one waits, and go on to use it.
            let is_made = || !exists && path.exists();
            if exists
                && let Some(lock) = self.wait_for(name, Holders::Many, progress, is_made)?
                && listing::check(&path).is_ok()
            {
                return Ok(Entry { path, _lock: lock });
            }
            let Some(lock) = self.wait_for(name, Holders::One, progress, is_made)? else { continue };
            if let Err(why) = listing::check(&path) {
                if path.exists() && made {
                    return Err(failed(&path, "check", &io::Error::other(why)));
                }
                if path.exists() {
                    progress.say(&format!("cache {}: {why}: making it again", path.display()));
                }
                let reservation = self.reserve_locked(name, lock)?;
                make(reservation.path())?;
                reservation.keep(progress)?;
                made = true;
            }
        }
    }

    /// The entry `name`, if it exists and nobody is making or removing it. Waits for nobody. An error says why the entry
    /// cannot be used.
    pub fn find(&self, name: &str) -> std::result::Result<Option<Entry>, String> {
        let path = self.root.join(name);
        if !path.exists() {
            return Ok(None);
        }
        let lock = self.locks.try_take(name, Holders::Many).map_err(|e| format!("lock: {e}"))?;
        let Some(lock) = lock else { return Ok(None) };
        listing::check(&path)?;
        Ok(Some(Entry { path, _lock: lock }))
    }

    /// A folder to make the entry `name` in, if nobody makes or uses it. Waits for nobody.
    pub fn reserve(&self, name: &str) -> Result<Option<Reservation<'_>>> {
        let lock = self.locks.try_take(name, Holders::One);
        let lock = lock.map_err(|e| failed(&self.root.join(name), "lock", &e))?;
        lock.map(|lock| self.reserve_locked(name, lock)).transpose()
    }

    fn reserve_locked(&self, name: &str, lock: Lock) -> Result<Reservation<'_>> {
        let path = self.root.join(name);
        let step = |e: io::Error| failed(&path, "create", &e);
        let parent = path.parent().unwrap_or(&self.root);
        fs::create_dir_all(parent).map_err(step)?;
        // Under the lock nobody else uses these names: existing folders are left over from a killed lab.
        for prefix in TEMPORARY {
            let _ = fs::remove_dir_all(self.temporary(name, prefix));
        }
        let new = self.temporary(name, NEW);
        let new = new.file_name().unwrap_or_default();
        let made = tempfile::Builder::new().prefix(new).rand_bytes(0).tempdir_in(parent).map_err(step)?;
        Ok(Reservation { cache: self, name: name.to_owned(), made, _lock: lock })
    }

    /// The temporary name of the entry `name`, before it is complete or while it is removed.
    fn temporary(&self, name: &str, prefix: &str) -> PathBuf {
        let (folder, entry) = name.rsplit_once('/').unwrap_or(("", name));
        self.root.join(folder).join(format!("{prefix}{entry}"))
    }

    /// Takes the lock of an entry; waits while somebody else holds it. `None`: it need not wait any more.
    fn wait_for(
        &self,
        name: &str,
        holders: Holders,
        progress: &Progress,
        is_over: impl Fn() -> bool,
    ) -> Result<Option<Lock>> {
        let step = |e: io::Error| failed(&self.root.join(name), "lock", &e);
        if let Some(lock) = self.locks.try_take(name, holders).map_err(step)? {
            return Ok(Some(lock));
        }
        let holder = self.locks.holder(name);
        let own = holder == Some(std::process::id());
        let lab = match holder {
            Some(_) if own => "another machine of this run".to_owned(),
            Some(process) => format!("the lab of process {process}"),
            None => "another lab".to_owned(),
        };
        let does = if holders == Holders::Many { "makes" } else { "makes or uses" };
        // The other machine of this run says itself what it does.
        let _step = (!own).then(|| progress.step(&format!("waiting for {lab}, which {does} {name}")));
        loop {
            if self.signals.is_some_and(|signals| signals.caught().is_some()) {
                return Err(lab_failure(format!("interrupted while waiting for {lab}")));
            }
            std::thread::sleep(LOOK_AGAIN); // flock(2) itself would be restarted after a signal
            if let Some(lock) = self.locks.try_take(name, holders).map_err(step)? {
                return Ok(Some(lock));
            }
            if is_over() {
                return Ok(None);
            }
        }
    }
}

fn failed(path: &Path, step: &str, error: &io::Error) -> Failure {
    lab_failure(format!("cache {}: {step}: {error} (CANTER_CACHE names another folder)", path.display()))
}

fn folder(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    variable("CANTER_CACHE")
        .or_else(|| variable("XDG_CACHE_HOME").map(|p| p.join("canter")))
        .or_else(|| variable("HOME").map(|p| p.join(".cache/canter")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_three_variables_names_the_folder() {
        let all = [("CANTER_CACHE", "/c"), ("XDG_CACHE_HOME", "/x"), ("HOME", "/h")];
        for (skip, want) in
            [(0, Some("/c")), (1, Some("/x/canter")), (2, Some("/h/.cache/canter")), (3, None)]
        {
            let found = folder(|name| {
                all[skip..].iter().find(|(n, _)| *n == name).map(|(_, path)| PathBuf::from(path))
            });
            assert_eq!(found, want.map(PathBuf::from));
        }
    }

    /// Makes or finds `kernels/a`, whose one file has this content.
    fn obtain(cache: &Cache, content: &str) -> String {
        let entry = cache.entry("kernels/a", &Progress::new(true), |new| {
            assert_eq!(fs::read_dir(new).unwrap().count(), 0);
            fs::write(new.join("whole"), content).unwrap();
            Ok(())
        });
        fs::read_to_string(entry.unwrap().path().join("whole")).unwrap()
    }

    #[test]
    fn an_entry_is_made_once_and_a_failed_one_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path());
        let failed = cache.entry("kernels/a", &Progress::new(true), |new| {
            fs::write(new.join("half"), "x").unwrap();
            Err(lab_failure("broken off"))
        });
        assert!(failed.is_err());
        assert_eq!(fs::read_dir(folder.path().join("kernels")).unwrap().count(), 0);
        fs::create_dir_all(folder.path().join("kernels/.new-a/left by a killed lab")).unwrap();
        assert_eq!(obtain(&cache, "first"), "first");
        assert_eq!(obtain(&cache, "second"), "first");
        assert_eq!(fs::read_dir(folder.path().join("kernels")).unwrap().count(), 1);
    }

    #[test]
    fn a_damaged_entry_is_made_again_and_stays_when_that_fails() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path());
        let file = folder.path().join("kernels/a/whole");
        obtain(&cache, "first");
        fs::write(&file, "cut").unwrap();
        let failed = cache.entry("kernels/a", &Progress::new(true), |_| Err(lab_failure("no network")));
        assert_eq!(failed.unwrap_err().message, "lab: no network");
        assert_eq!(fs::read_to_string(&file).unwrap(), "cut");
        assert_eq!(obtain(&cache, "second"), "second");
        // Half-made by an earlier version, which had no lists.
        fs::remove_file(folder.path().join("kernels/a/.canter")).unwrap();
        assert_eq!(obtain(&cache, "third"), "third");
    }

    #[test]
    fn a_lab_that_waits_while_another_makes_an_entry_uses_it_together_with_that_one() {
        let folder = tempfile::tempdir().unwrap();
        let (begun, is_begun) = std::sync::mpsc::channel();
        let (permission, is_permitted) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let maker = scope.spawn(|| {
                let cache = Cache::at(folder.path());
                let make = move |new: &Path| {
                    begun.send(()).unwrap();
                    is_permitted.recv().unwrap();
                    fs::write(new.join("whole"), "made").unwrap();
                    Ok(())
                };
                cache.entry("kernels/a", &Progress::new(true), make).unwrap()._lock
            });
            is_begun.recv().unwrap();
            let other = scope.spawn(|| obtain(&Cache::at(folder.path()), "a second time"));
            permission.send(()).unwrap();
            let used = maker.join().unwrap();
            let deadline = std::time::Instant::now() + Duration::from_secs(60);
            while !other.is_finished() && std::time::Instant::now() < deadline {
                std::thread::sleep(LOOK_AGAIN);
            }
            let is_together = other.is_finished();
            drop(used);
            assert_eq!(
                (other.join().unwrap().as_str(), is_together),
                ("made", true),
                "while the first one uses it"
            );
        });
    }

    #[test]
    fn a_damaged_entry_in_use_is_made_again_when_nobody_uses_it_any_more() {
        let folder = tempfile::tempdir().unwrap();
        let quiet = Progress::new(true);
        let cache = Cache::at(folder.path());
        let used = cache.entry("kernels/a", &quiet, |new| {
            fs::write(new.join("whole"), "used").unwrap();
            Ok(())
        });
        let file = folder.path().join("kernels/a/whole");
        fs::remove_file(&file).unwrap();
        let interrupted = Signals::already(signal_hook::consts::SIGINT);
        let other = Cache::open_at(folder.path(), Some(&interrupted)).unwrap();
        let waited = other.entry("kernels/a", &quiet, |_| panic!("it is in use")).unwrap_err();
        assert_eq!(waited.message, "lab: interrupted while waiting for another machine of this run");
        assert!(!file.exists());
        drop(used);
        assert_eq!(obtain(&cache, "again"), "again");
    }
}

//! Files that the lab keeps between runs: kernels, drivers, verdicts. An entry is made under a temporary name and
//! renamed when complete. When two labs need the same entry, a lock makes the second one wait for it.

use super::{lab_failure, progress::Progress};
use crate::failure::Result;
use canter_io::file as lock;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

pub struct Cache {
    root: PathBuf,
}

impl Cache {
    /// `$CANTER_CACHE`, else `$XDG_CACHE_HOME/canter`, else `~/.cache/canter`.
    pub fn open() -> Result<Self> {
        let root = folder(|name| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from))
            .ok_or_else(|| lab_failure("cache: no folder (set CANTER_CACHE, XDG_CACHE_HOME or HOME)"))?;
        let root = std::path::absolute(&root).unwrap_or(root);
        fs::create_dir_all(&root).map_err(|e| {
            lab_failure(format!("cache {}: {e} (CANTER_CACHE names another folder)", root.display()))
        })?;
        Ok(Self { root })
    }

    #[cfg(test)]
    pub fn at(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// The path of an entry, which may not exist.
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// The folder `name`. Unless it exists, `make(temporary folder, final path)` fills it.
    pub fn entry(
        &self,
        name: &str,
        progress: &Progress,
        make: impl FnOnce(&Path, &Path) -> Result<()>,
    ) -> Result<PathBuf> {
        let path = self.root.join(name);
        if path.exists() {
            return Ok(path);
        }
        let step =
            |name: &str, e: std::io::Error| lab_failure(format!("cache {}: {name}: {e}", path.display()));
        let parent = path.parent().unwrap_or(&self.root);
        fs::create_dir_all(parent).map_err(|e| step("create", e))?;
        let _lock = self.lock(name, progress).map_err(|e| step("lock", e))?;
        if path.exists() {
            return Ok(path); // another lab made it while this one waited
        }
        // Under the lock nobody else uses this name: an existing folder is left over from a killed lab.
        let name = format!(".new-{}", path.file_name().unwrap_or_default().to_string_lossy());
        let _ = fs::remove_dir_all(parent.join(&name));
        let new = tempfile::Builder::new().prefix(&name).rand_bytes(0).tempdir_in(parent);
        let new = new.map_err(|e| step("create", e))?;
        make(new.path(), &path)?;
        fs::set_permissions(new.path(), fs::Permissions::from_mode(0o755)).map_err(|e| step("chmod", e))?;
        fs::rename(new.path(), &path).map_err(|e| step("rename", e))?;
        let _renamed = new.keep();
        Ok(path)
    }

    /// The kernel releases the lock when the file is closed, also when the process is killed.
    fn lock(&self, name: &str, progress: &Progress) -> std::io::Result<File> {
        let folder = self.root.join("locks");
        fs::create_dir_all(&folder)?;
        let file = File::create(folder.join(name.replace('/', "-")))?;
        if !lock::try_lock(&file)? {
            let _step = progress.step(&format!("waiting for another lab that makes {name}"));
            lock::lock(&file)?;
        }
        Ok(file)
    }
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

    #[test]
    fn an_entry_is_made_once_and_a_failed_one_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path());
        let quiet = Progress::new(true);
        let failed = cache.entry("kernels/a", &quiet, |new, _| {
            fs::write(new.join("half"), "x").unwrap();
            Err(lab_failure("broken off"))
        });
        assert!(failed.is_err());
        assert_eq!(fs::read_dir(folder.path().join("kernels")).unwrap().count(), 0);
        fs::create_dir_all(folder.path().join("kernels/.new-a/left by a killed lab")).unwrap();
        let made = cache.entry("kernels/a", &quiet, |new, to| {
            assert_eq!(fs::read_dir(new).unwrap().count(), 0);
            assert_eq!(to, folder.path().join("kernels/a"));
            fs::write(new.join("whole"), "x").unwrap();
            Ok(())
        });
        assert!(made.unwrap().join("whole").exists());
        let again = cache.entry("kernels/a", &quiet, |_, _| panic!("it is there"));
        assert!(again.unwrap().join("whole").exists());
    }
}

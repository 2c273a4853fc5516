//! The folders of a data set, in the notation of Hive that DuckDB, Spark and others read: `vehicle=V/date=YYYY-MM-DD/bus=can0`.

use jiff::{Timestamp, tz::TimeZone};
use std::{
    fs, io,
    path::{Path, PathBuf},
};
use tempfile::TempPath;

/// The ns of a day.
pub const NS_OF_DAY: u64 = 86_400_000_000_000;

/// Encodes a partition's value: `%2F` for what a folder's name must not have.
pub fn encoded(value: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let part = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    value.bytes().map(part).collect()
}

/// The date of a day since 1970 in UTC: `2026-11-24`; `unknown` beyond the year 9999.
pub fn date(day: u64) -> String {
    let stamp = i128::from(day) * i128::from(NS_OF_DAY);
    Timestamp::from_nanosecond(stamp)
        .map_or_else(|_| "unknown".to_owned(), |stamp| stamp.to_zoned(TimeZone::UTC).date().to_string())
}

/// The folders that a data set has created. Dropping this removes those that are empty, so that nothing is left of a data set
/// that could not be written; [`keep`](Self::keep) keeps them.
#[derive(Debug, Default)]
pub struct Folders {
    /// A folder comes before those in it.
    created: Vec<PathBuf>,
}

impl Folders {
    /// Creates a folder and those above it that do not exist.
    ///
    /// # Errors
    /// What the operating system reports.
    pub fn create(&mut self, path: &Path) -> io::Result<()> {
        let is_missing = |path: &&Path| !path.as_os_str().is_empty() && !path.exists();
        let missing: Vec<&Path> = path.ancestors().take_while(is_missing).collect();
        self.created.extend(missing.into_iter().rev().map(Path::to_owned));
        fs::create_dir_all(path)
    }

    /// Keeps all of them, those without a file too.
    pub fn keep(mut self) {
        self.created.clear();
    }
}

impl Drop for Folders {
    fn drop(&mut self) {
        for folder in self.created.iter().rev() {
            let _ = fs::remove_dir(folder); // fails for a folder that has content, which stays
        }
    }
}

/// Gives complete files their names, all of them or none: when one fails, those before are removed, unless they have replaced a
/// file.
///
/// # Errors
/// The file that has no name, and what the operating system reports.
pub fn place(parts: Vec<(TempPath, PathBuf)>, overwrite: bool) -> Result<(), (PathBuf, io::Error)> {
    let mut placed = Vec::new();
    for (beside, path) in parts {
        let is_new = !path.exists();
        let result = if overwrite { beside.persist(&path) } else { beside.persist_noclobber(&path) };
        if let Err(error) = result {
            for path in placed {
                let _ = fs::remove_file(path); // the first error counts
            }
            return Err((path, error.error));
        }
        placed.extend(is_new.then_some(path));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|one| one.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn folders_go_again_unless_they_have_content_or_are_kept() {
        let place = tempfile::tempdir().unwrap();
        let (old, full, kept) =
            (place.path().join("old"), place.path().join("full"), place.path().join("kept"));
        fs::create_dir(&old).unwrap();
        let mut folders = Folders::default();
        for folder in ["new/date=1/bus=a", "old/date=1", "new/date=2/bus=b", "full/bus=a"] {
            folders.create(&place.path().join(folder)).unwrap();
        }
        fs::write(full.join("part"), "content").unwrap();
        drop(folders);
        assert_eq!(content(place.path()), ["full", "old"]);
        assert_eq!((content(&old), content(&full)), (vec![], vec!["part".to_owned()]));
        let mut folders = Folders::default();
        folders.create(&kept).unwrap();
        folders.keep();
        assert!(kept.exists());
        assert!(Folders::default().create(&full.join("part")).is_err(), "it is a file");
    }

    #[test]
    fn of_files_that_cannot_all_be_placed_none_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let part = |name: &str| {
            let beside = tempfile::NamedTempFile::new_in(folder.path()).unwrap().into_temp_path();
            (beside, folder.path().join(name))
        };
        fs::write(folder.path().join("b"), "other").unwrap();
        let (path, _) = place(vec![part("a"), part("b"), part("c")], false).unwrap_err();
        assert_eq!((path, content(folder.path())), (folder.path().join("b"), vec!["b".to_owned()]));
        assert!(place(vec![part("a"), part("b"), part("c")], true).is_ok());
        assert_eq!(content(folder.path()), ["a", "b", "c"]);
        assert!(fs::read(folder.path().join("b")).unwrap().is_empty());
    }
}

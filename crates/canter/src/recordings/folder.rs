//! A folder of recordings as one: its files whose names end like recordings, in folders below it too, by name.

use canter_cli::failure::{self, Exit, Failure};
use canter_formats::{FORMATS, by_extension, list_extensions};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// The most folders below each other: links must not make a search endless.
const DEPTH_MAX: usize = 16;

/// The files to read for the paths of a command line.
pub struct Files {
    /// Files, data sets and `-`.
    pub paths: Vec<PathBuf>,
    /// Files of folders that are left out, because their names are not those of recordings.
    pub left_out: u64,
}

impl Files {
    /// Replaces each folder by its recordings. A data set, which is a folder, stays.
    pub fn find(given: &[PathBuf]) -> failure::Result<Self> {
        let mut files = Self { paths: Vec::new(), left_out: 0 };
        for path in given {
            if !path.is_dir() || canter_formats::open(path).is_ok() {
                files.paths.push(path.clone());
                continue;
            }
            let before = files.paths.len();
            let failed = |error: io::Error| canter_cli::trouble::file_failure(path, "open", error);
            files.add(path, 0).map_err(failed)?;
            if files.paths.len() == before {
                let names = list_extensions(FORMATS, |format| format.read.is_some(), "or");
                let reason = format!("is a folder without recordings (their names end in {names})");
                return Err(Failure::new(Exit::Usage, format!("{}: {reason}", path.display())));
            }
        }
        Ok(files)
    }

    fn add(&mut self, folder: &Path, depth: usize) -> io::Result<()> {
        let mut entries =
            fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
        entries.sort();
        for path in entries {
            if path.is_dir() && depth < DEPTH_MAX {
                self.add(&path, depth + 1)?;
            } else if is_named_as_recording(&path) {
                self.paths.push(path);
            } else {
                self.left_out += 1;
            }
        }
        Ok(())
    }
}

fn is_named_as_recording(path: &Path) -> bool {
    let name = path.with_extension("");
    let is_packed = path.extension().is_some_and(|extension| extension == "gz");
    by_extension(if is_packed { &name } else { path }, FORMATS).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_its_recordings_by_name_and_the_rest_is_counted() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir_all(path("0002/deep")).unwrap();
        for name in
            ["b.log", "a.BLF", "0002/deep/c.pcapng.zst", "d.asc.gz", "b.log.account.json", "notes.txt"]
        {
            fs::write(path(name), "").unwrap();
        }
        let files = Files::find(&[folder.path().to_owned(), path("notes.txt")]).unwrap();
        let names = ["0002/deep/c.pcapng.zst", "a.BLF", "b.log", "d.asc.gz", "notes.txt"];
        assert_eq!((files.paths, files.left_out), (names.map(path).to_vec(), 2));
        let empty = tempfile::tempdir().unwrap();
        let failure = Files::find(&[empty.path().to_owned()]).err().unwrap();
        assert!(
            failure.message.contains("is a folder without recordings (their names end in .log"),
            "{failure}"
        );
    }
}

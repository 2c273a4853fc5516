//! Finds result files. A file that is named must be readable; other JSON files in a folder are skipped.

use canter_cli::failure::{self, Failure};
use canter_measure::{result::ResultFile, verdicts};
use std::{fs, path::Path, path::PathBuf};

/// The files that the arguments name.
#[derive(Default)]
pub struct FoundResults {
    pub results: Vec<ResultFile>,
    /// Named files that cannot be read: the page shows the others, and the exit code is 1.
    pub refused: Vec<String>,
    /// Folders that have verdicts beside their results.
    pub with_verdicts: Vec<PathBuf>,
    /// Files of a folder that are not result files.
    skipped: Vec<String>,
}

impl FoundResults {
    /// Fails when there is no result file; prints the files that it skips.
    pub fn of(paths: &[PathBuf]) -> failure::Result<Self> {
        let mut found = Self::default();
        for path in paths {
            found.add(path);
        }
        for why in &found.skipped {
            eprintln!("canter: {why}: skipped");
        }
        if found.results.is_empty() {
            let mut refused = found.refused.drain(..);
            let nothing =
                || "report: no result file found (canter latency --json FILE writes one)".to_owned();
            return Err(Failure::failed(refused.next().unwrap_or_else(nothing)));
        }
        Ok(found)
    }

    /// The reason why one of the files, named or in a folder, cannot be read.
    pub fn unreadable(&self) -> Option<&str> {
        self.refused.iter().chain(&self.skipped).map(String::as_str).next()
    }

    fn add(&mut self, path: &Path) {
        if path.is_dir() {
            return self.add_folder(path);
        }
        match ResultFile::load(path) {
            Ok(result) => self.results.push(result),
            Err(failure) => self.refused.push(failure.message),
        }
    }

    /// Adds the folder's `*.json` and those of its subfolders, by name; does not follow links to folders.
    fn add_folder(&mut self, folder: &Path) {
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) => return self.skipped.push(format!("{}: {error}", folder.display())),
        };
        let mut entries: Vec<_> = entries.flatten().collect();
        entries.sort_by_cached_key(|entry| natural(&entry.file_name().to_string_lossy()));
        for entry in entries {
            let path = entry.path();
            if entry.file_name() == verdicts::FILE {
                self.with_verdicts.push(folder.to_owned());
                continue;
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                self.add_folder(&path);
            } else if path.extension().is_some_and(|extension| extension == "json") {
                match ResultFile::load(&path) {
                    Ok(result) => self.results.push(result),
                    Err(failure) => self.skipped.push(failure.message),
                }
            }
        }
    }
}

/// A sort key in natural order: fig5 before fig12, 6.1 before 6.1-rt before 6.12.
pub fn natural(name: &str) -> Vec<(u64, String)> {
    let stem = name.strip_suffix(".json").unwrap_or(name);
    let mut parts: Vec<(u64, String)> = Vec::new();
    for character in stem.chars() {
        match (character.to_digit(10).map(u64::from), parts.last_mut()) {
            (Some(digit), Some((number, text))) if text.is_empty() => {
                *number = number.saturating_mul(10).saturating_add(digit);
            }
            (Some(digit), _) => parts.push((digit, String::new())),
            (None, Some((_, text))) => text.push(character),
            (None, None) => parts.push((u64::MAX, character.into())), // letters after digits
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_in_natural_order() {
        let sorted = [
            "2010-fig5.6.12-rt.json",
            "2010-fig12.json",
            "2011-fig11.6.1.json",
            "2011-fig11.6.1-rt.json",
            "2011-fig11.6.12.json",
            "bench.json",
            "payload.json",
            "payload-fd.json",
        ];
        let mut names = sorted;
        names.reverse();
        names.sort_by_cached_key(|name| natural(name));
        assert_eq!(names, sorted);
    }
}

//! Result files: named ones must be readable, those of a folder are taken as they come.

use crate::failure::{self, Failure};
use crate::measure::result::ResultFile;
use std::{fs, path::Path, path::PathBuf};

/// What the arguments led to.
#[derive(Default)]
pub struct Found {
    pub results: Vec<ResultFile>,
    /// Files that were named and cannot be read: the page is made of the others, the exit code tells.
    pub refused: Vec<String>,
    /// Files of a folder that are something else.
    skipped: Vec<String>,
}

impl Found {
    /// Fails when there is no result at all; names what it skips.
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
                || "report: no result file there (canter latency --json FILE writes one)".to_owned();
            return Err(Failure::failed(refused.next().unwrap_or_else(nothing)));
        }
        Ok(found)
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

    /// Its `*.json` and those of its folders, by name; links to folders are not followed.
    fn add_folder(&mut self, folder: &Path) {
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) => return self.skipped.push(format!("{}: {error}", folder.display())),
        };
        let mut entries: Vec<_> = entries.flatten().collect();
        entries.sort_by_cached_key(|entry| natural(&entry.file_name().to_string_lossy()));
        for entry in entries {
            let path = entry.path();
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

/// A name in the order that a reader expects: fig5 before fig12, 6.1 before 6.1-rt before 6.12.
fn natural(name: &str) -> Vec<(u64, String)> {
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
    fn files_come_as_a_reader_counts() {
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

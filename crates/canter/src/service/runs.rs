//! `{run}` in a service's output is the number of the start, so that a restarted service overwrites no recording, even when
//! the clock was set back. The names sort by start.

use crate::{
    failure::{self, Exit, Failure},
    trouble,
};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// The placeholder of the number.
pub const RUN: &str = "{run}";

/// The output of the next run. Deletes files of older runs so that `keep` runs stay, including this one.
///
/// # Errors
/// The folder cannot be read, or an old file cannot be removed.
pub fn next(template: &str, keep: Option<u32>) -> failure::Result<String> {
    let Some((folder, before, after)) = split(template)? else { return Ok(template.to_owned()) };
    let unreadable = |error| trouble::of_file(&folder, "read", error);
    let entries = fs::read_dir(&folder).map_err(unreadable)?.flatten();
    let files: Vec<(u32, PathBuf)> = entries
        .filter_map(|entry| Some((run_of(entry.file_name().to_str()?, before, after)?, entry.path())))
        .collect();
    let number = files.iter().map(|&(run, _)| run).max().unwrap_or(0) + 1;
    for (run, path) in files {
        if keep.is_some_and(|keep| u64::from(run) + u64::from(keep) <= u64::from(number)) {
            fs::remove_file(&path).map_err(|error| trouble::of_file(&path, "remove", error))?;
        }
    }
    Ok(template.replacen(RUN, &format!("{number:04}"), 1))
}

/// The folder, and the parts of the file's name before and after the number.
fn split(template: &str) -> failure::Result<Option<(PathBuf, &str, &str)>> {
    let (folder, name) = template.rsplit_once('/').unwrap_or((".", template));
    if folder.contains(RUN) {
        let message = format!("{template}: {RUN} is allowed only in the name of the file, not in its folder");
        return Err(Failure::new(Exit::Usage, message));
    }
    let folder = if folder.is_empty() { Path::new("/") } else { Path::new(folder) };
    Ok(name.split_once(RUN).map(|(before, after)| (folder.to_owned(), before, after)))
}

/// The run of a file: of a recording, of one of its rotated files (`-000001`), or of its account.
fn run_of(name: &str, before: &str, after: &str) -> Option<u32> {
    let rest = name.strip_prefix(before)?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (number, rest) = rest.split_at(digits);
    let rest = rest.strip_suffix(".account.json").unwrap_or(rest);
    let rotation = rest.strip_suffix(after)?;
    let is_rotated =
        rotation.strip_prefix('-').is_some_and(|n| n.len() >= 6 && n.bytes().all(|c| c.is_ascii_digit()));
    (number.len() >= 4 && (rotation.is_empty() || is_rotated)).then(|| number.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_run_has_the_next_number_and_the_oldest_are_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        let names = || {
            let mut names: Vec<_> =
                fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
            names.sort();
            names
        };
        let template = path("drive-{run}.pcapng");
        assert_eq!(next(&template, Some(2)).unwrap(), path("drive-0001.pcapng"));
        for name in [
            "drive-0001.pcapng",
            "drive-0001.pcapng.account.json",
            "drive-0007-000001.pcapng",
            "drive-0008.pcapng",
            "drive-9999.log",
            "drive-12.pcapng",
            "drive-0003-notes.pcapng",
            "other-0100.pcapng",
        ] {
            fs::write(path(name), "").unwrap();
        }
        assert_eq!(next(&template, None).unwrap(), path("drive-0009.pcapng"));
        assert_eq!(names().len(), 8);
        assert_eq!(next(&template, Some(2)).unwrap(), path("drive-0009.pcapng"));
        let left = ["drive-0003-notes.pcapng", "drive-0008.pcapng", "drive-12.pcapng", "drive-9999.log"];
        assert_eq!(names(), [&left[..], &["other-0100.pcapng"]].concat());
    }

    #[test]
    fn a_name_without_a_number_is_unchanged_and_a_folder_with_one_is_refused() {
        assert_eq!(next("/nowhere/x.log", Some(1)).unwrap(), "/nowhere/x.log");
        assert!(
            next("/var/{run}/x.log", None)
                .unwrap_err()
                .message
                .contains("is allowed only in the name of the file")
        );
        assert!(next("/nowhere/{run}.log", None).unwrap_err().message.starts_with("/nowhere: read: "));
    }
}

//! What is removed from the cache: builds that nobody has used for long, without being asked, and everything by
//! `canter lab --clean`. What a lab makes or uses stays.

use super::{Cache, Holders, TEMPORARY};
use crate::lab::progress::Progress;
use std::{
    cmp::Reverse,
    fs, io,
    os::unix::fs::MetadataExt,
    path::Path,
    time::{Duration, SystemTime},
};

/// The folders of the cache that have entries and no bound.
const UNBOUNDED: [&str; 5] = ["apt", "headers", "kernels", "roots", "sources"];
/// The folder of saved machines.
pub const MACHINES: &str = "machines";
/// Folders with an entry for each change of a source or a kernel, which would grow without bound.
const BOUNDED: [Bounded; 4] = [
    Bounded { folder: "builds", noun: "module build", most: 64, reports: Progress::say },
    Bounded { folder: "drivers", noun: "module build", most: 64, reports: Progress::say },
    Bounded { folder: "images", noun: "kernel image", most: 64, reports: Progress::say },
    Bounded { folder: MACHINES, noun: "saved machine", most: 64, reports: Progress::detail }, // 100 MB each
];
/// The folder of QEMU's version.
pub const QEMU: &str = "qemu";
/// The verdicts about KVM, and QEMU's version; no lab needs them after its start.
const ANSWERS: [&str; 2] = ["kvm", QEMU];
/// Entries of these folders that no lab has used for this time are removed.
const UNUSED_MAX: Duration = Duration::from_secs(30 * 24 * 3600);

/// A folder of the cache that is kept small.
#[derive(Clone, Copy)]
struct Bounded {
    folder: &'static str,
    /// The noun for an entry, in messages.
    noun: &'static str,
    /// The maximum number of entries; those used last stay.
    most: usize,
    /// Reports a removal; of what nobody has asked for, such as a saved machine, only with -v.
    reports: fn(&Progress, &str),
}

/// The number and size of removed entries.
#[derive(Debug, Default, PartialEq, Eq)]
struct Removed {
    entries: usize,
    bytes: u64,
}

/// Removes old entries and leftovers beside the entry `made`, if its folder is kept small.
pub fn after(cache: &Cache, made: &str, progress: &Progress) {
    let Some(bounded) = BOUNDED.iter().find(|bounded| Path::new(made).starts_with(bounded.folder)) else {
        return;
    };
    let Removed { entries, bytes } = prune(cache, bounded, SystemTime::now());
    if entries > 0 {
        let (Bounded { noun, most, .. }, days) = (bounded, UNUSED_MAX.as_secs() / 86400);
        let (number, size) = (counted(entries, noun), size(bytes));
        (bounded.reports)(
            progress,
            &format!("cache: removed {number} ({size}): not used for {days} days, or more than {most}"),
        );
    }
}

/// The folders of the cache that have entries.
fn folders() -> impl Iterator<Item = &'static str> {
    BOUNDED.iter().map(|bounded| bounded.folder).chain(UNBOUNDED)
}

fn prune(cache: &Cache, bounded: &Bounded, now: SystemTime) -> Removed {
    let mut removed = Removed::default();
    let last_used = |name: &String| {
        let made = || fs::metadata(cache.path(name)).ok()?.modified().ok();
        cache.locks.last_taken(name).or_else(made).unwrap_or(SystemTime::UNIX_EPOCH)
    };
    let mut names = entries(cache, bounded.folder);
    names.sort_by_cached_key(|name| Reverse(last_used(name)));
    let is_old = |name: &String| now.duration_since(last_used(name)).is_ok_and(|unused| unused > UNUSED_MAX);
    for (_, name) in names.iter().enumerate().filter(|(place, name)| *place >= bounded.most || is_old(name)) {
        // What is in use, or cannot be removed, stays until the next time.
        if let Ok(Some(bytes)) = remove(cache, name) {
            removed.entries += 1;
            removed.bytes += bytes;
        }
    }
    removed
}

/// The entries in a folder of the cache, as `drivers/canwire-…`.
fn entries(cache: &Cache, folder: &str) -> Vec<String> {
    let names = fs::read_dir(cache.path(folder)).into_iter().flatten().flatten();
    let names = names.filter_map(|entry| entry.file_name().into_string().ok()).map(|name| {
        let whole = TEMPORARY.iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(&name);
        format!("{folder}/{whole}")
    });
    let mut names: Vec<_> = names.collect();
    names.sort();
    names.dedup();
    names
}

/// Removes an entry and what killed labs have left of it; returns its size, or `None` when a lab makes or uses it.
fn remove(cache: &Cache, name: &str) -> io::Result<Option<u64>> {
    let Some(lock) = cache.locks.try_take(name, Holders::One)? else { return Ok(None) };
    let [new, old] = TEMPORARY.map(|prefix| cache.temporary(name, prefix));
    let mut bytes = remove_folder(&old)? + remove_folder(&new)?;
    // Under its own name an entry is always whole.
    if fs::rename(cache.path(name), &old).is_ok() {
        bytes += remove_folder(&old)?;
    }
    lock.remove();
    Ok(Some(bytes))
}

/// Removes a folder, which may not exist; returns its size on the disk.
fn remove_folder(folder: &Path) -> io::Result<u64> {
    if !folder.exists() {
        return Ok(0);
    }
    let bytes = bytes_below(folder);
    fs::remove_dir_all(folder)?;
    Ok(bytes)
}

fn bytes_below(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes = entries.filter_map(|entry| {
        let about = entry.metadata().ok()?;
        let below = if about.is_dir() { bytes_below(&entry.path()) } else { 0 };
        Some(about.blocks() * 512 + below)
    });
    sizes.sum()
}

/// Removes everything that no lab makes or uses; returns a line for the user for each thing that was done or not.
pub fn clean(cache: &Cache) -> Vec<String> {
    let (mut removed, mut kept) = (Removed::default(), Vec::new());
    for name in folders().flat_map(|folder| entries(cache, folder)) {
        match remove(cache, &name) {
            Ok(Some(bytes)) => {
                removed.entries += 1;
                removed.bytes += bytes;
            }
            Ok(None) => kept.push(match cache.locks.holder(&name) {
                Some(process) => format!("kept {name}: the lab of process {process} uses it"),
                None => format!("kept {name}: a lab uses it"),
            }),
            Err(error) => kept.push(format!("kept {name}: remove: {error}")),
        }
    }
    removed.bytes += ANSWERS.iter().filter_map(|folder| remove_folder(&cache.path(folder)).ok()).sum::<u64>();
    for folder in folders() {
        let _ = fs::remove_dir(cache.path(folder)); // stays when something in it stays
    }
    let others = fs::read_dir(&cache.root).into_iter().flatten().flatten();
    let mut others: Vec<_> = others.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    others.sort();
    others.retain(|name| name != "locks" && folders().all(|folder| folder != name));
    kept.extend(others.iter().map(|name| format!("kept {name}: the lab did not make it")));
    let Removed { entries, bytes } = removed;
    let done = format!("removed {}, {}: {}", counted(entries, "entry"), size(bytes), cache.root.display());
    [vec![done], kept].concat()
}

/// A number with its noun: `1 entry`, `2 entries`.
fn counted(number: usize, noun: &str) -> String {
    match (number, noun.strip_suffix('y')) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) => format!("{number} {stem}ies"),
        (_, None) => format!("{number} {noun}s"),
    }
}

/// A size for messages: `12 MB`.
fn size(bytes: u64) -> String {
    format!("{} MB", bytes.div_ceil(1_000_000))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    const DAY: Duration = Duration::from_secs(24 * 3600);

    /// A cache with these entries, each made and used now.
    fn with(names: &[&str]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("cache");
        for name in names {
            use_entry(&root, name);
        }
        (folder, root)
    }

    fn use_entry(root: &Path, name: &str) -> crate::lab::cache::Entry {
        let make = |new: &Path| {
            fs::write(new.join("a.ko"), [7; 10_000]).unwrap();
            Ok(())
        };
        Cache::at(root).entry(name, &Progress::new(true), make).unwrap()
    }

    fn used(root: &Path, name: &str, ago: Duration) {
        let lock = fs::File::options().write(true).open(root.join("locks").join(name.replace('/', "-")));
        lock.unwrap().set_modified(SystemTime::now() - ago).unwrap();
    }

    fn left(root: &Path, folder: &str) -> Vec<String> {
        entries(&Cache::at(root), folder)
    }

    #[test]
    fn builds_that_nobody_has_used_for_a_month_are_removed_and_kernels_stay() {
        let (_folder, root) = with(&["drivers/a", "drivers/b", "builds/c", "kernels/d"]);
        fs::create_dir(root.join("drivers/.new-left by a killed lab")).unwrap();
        used(&root, "drivers/a", 31 * DAY);
        used(&root, "drivers/b", 29 * DAY);
        used(&root, "builds/c", 31 * DAY);
        used(&root, "kernels/d", 300 * DAY);
        let [builds, drivers, ..] = BOUNDED;
        let removed = [builds, drivers].map(|bounded| prune(&Cache::at(&root), &bounded, SystemTime::now()));
        assert!(removed[0].bytes >= 10_000, "{removed:?}");
        assert_eq!(removed.map(|one| one.entries), [1, 2]);
        assert_eq!(left(&root, "drivers"), ["drivers/b"]);
        assert!(left(&root, "builds").is_empty() && left(&root, "kernels") == ["kernels/d"]);
        assert!(!root.join("locks/drivers-a").exists());
    }

    #[test]
    fn of_too_many_builds_those_used_last_stay_and_so_does_one_in_use() {
        let (_folder, root) = with(&["drivers/a", "drivers/b", "drivers/c", "drivers/d"]);
        let held = use_entry(&root, "drivers/a");
        for (name, days) in [("drivers/a", 4), ("drivers/b", 3), ("drivers/c", 1), ("drivers/d", 2)] {
            used(&root, name, days * DAY);
        }
        let two = Bounded { folder: "drivers", noun: "module build", most: 2, reports: Progress::say };
        assert_eq!(prune(&Cache::at(&root), &two, SystemTime::now()).entries, 1);
        assert_eq!(left(&root, "drivers"), ["drivers/a", "drivers/c", "drivers/d"]);
        drop(held);
    }

    #[test]
    fn a_new_build_prunes_old_ones_and_using_one_does_not() {
        let (_folder, root) = with(&["drivers/a", "drivers/b"]);
        used(&root, "drivers/a", 31 * DAY);
        use_entry(&root, "drivers/b");
        use_entry(&root, "kernels/c");
        assert_eq!(left(&root, "drivers"), ["drivers/a", "drivers/b"]);
        use_entry(&root, "drivers/c");
        assert_eq!(left(&root, "drivers"), ["drivers/b", "drivers/c"]);
    }

    #[test]
    fn cleaning_removes_what_no_lab_uses_and_names_the_rest() {
        let (_folder, root) = with(&["drivers/a", "kernels/b", "headers/c"]);
        fs::create_dir_all(root.join("debug-kernel/tree")).unwrap();
        ANSWERS.iter().for_each(|folder| fs::create_dir_all(root.join(folder)).unwrap());
        let held = use_entry(&root, "kernels/b");
        let lines = clean(&Cache::at(&root));
        assert!(lines[0].starts_with("removed 2 entries, 1 MB: "), "{lines:?}");
        let process = std::process::id();
        let kept = [
            format!("kept kernels/b: the lab of process {process} uses it"),
            "kept debug-kernel: the lab did not make it".to_owned(),
        ];
        assert_eq!(lines[1..], kept);
        drop(held);
        assert!(clean(&Cache::at(&root))[0].starts_with("removed 1 entry, "));
        let mut names: Vec<_> =
            fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["debug-kernel", "locks"]);
        assert_eq!(fs::read_dir(root.join("locks")).unwrap().count(), 0);
    }
}

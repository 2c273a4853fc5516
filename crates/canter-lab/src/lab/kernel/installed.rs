//! Kernels installed on the host, for a host without apt: /lib/modules/RELEASE has the packed kernel, its configuration,
//! its modules and the link `build` to its headers, as on Fedora.

use super::{Kernel, Packed};
use crate::lab::{apt::Series, cache::Cache, lab_failure, progress::Progress};
use canter_cli::failure::Result;
use std::{fs, path::Path};

/// The newest installed kernel of a series; `root` is the host's root.
pub fn find(root: &Path, series: &Series, cache: &Cache, progress: &Progress) -> Result<Kernel> {
    let modules = root.join("lib/modules");
    let entries = fs::read_dir(&modules).into_iter().flatten().flatten();
    let releases = entries.filter(|entry| entry.path().join("vmlinuz").exists());
    let releases: Vec<_> = releases.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    let Some(release) = newest(&releases, series) else {
        return Err(lab_failure(format!(
            "kernel {}: not installed, and there is no apt to download it (--kernel {}; or --kernel DIR, a kernel's \
             folder)",
            series.name(),
            series_of(&releases)
        )));
    };
    let folder = modules.join(release);
    let (image, config) = (folder.join("vmlinuz"), folder.join("config"));
    let build = folder.join("build");
    let packed = Packed { release: release.clone(), image, config, modules };
    let kernel = packed.unpack(cache, progress)?;
    Ok(Kernel { build_tree: build.join("Makefile").exists().then_some(build), ..kernel })
}

/// The series of the installed kernels.
pub fn names() -> Vec<String> {
    let entries = fs::read_dir("/lib/modules").into_iter().flatten().flatten();
    let releases = entries.filter(|entry| entry.path().join("vmlinuz").exists());
    let mut names: Vec<_> = releases.filter_map(|entry| name(entry.file_name().to_str()?)).collect();
    names.sort();
    names.dedup();
    names
}

/// The newest release of a series: `6.12.7-200.fc41.x86_64` of 6.12.
fn newest<'a>(releases: &'a [String], series: &Series) -> Option<&'a String> {
    let of_series = |release: &&String| name(release).as_deref() == Some(&*series.name());
    releases.iter().filter(of_series).max_by_key(|release| numbers(release))
}

/// The series of these releases, for a message.
fn series_of(releases: &[String]) -> String {
    let mut names: Vec<_> = releases.iter().filter_map(|release| name(release)).collect();
    names.sort();
    names.dedup();
    if names.is_empty() { "SERIES of one that is installed".to_owned() } else { names.join(" or ") }
}

/// The name of a release's series: `6.12`, `6.12-rt`.
fn name(release: &str) -> Option<String> {
    let [major, minor, ..] = numbers(release)[..] else { return None };
    let words = release.split(|c: char| !c.is_ascii_alphanumeric());
    let is_realtime = |word: &str| {
        word == "realtime"
            || word.strip_prefix("rt").is_some_and(|rest| rest.bytes().all(|c| c.is_ascii_digit()))
    };
    let realtime = if words.into_iter().any(is_realtime) { "-rt" } else { "" };
    let begin = format!("{major}.{minor}");
    release.starts_with(&begin).then(|| begin + realtime)
}

/// All numbers of a release, to sort by.
fn numbers(release: &str) -> Vec<u64> {
    release.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::arch::Arch;

    /// Releases as Fedora has them in /lib/modules.
    const FEDORA: [&str; 5] = [
        "6.11.4-301.fc41.x86_64",
        "6.12.9-200.fc41.x86_64",
        "6.12.11-200.fc41.x86_64",
        "6.12.10-200.fc41.x86_64",
        "6.12.10-200.rt14.fc41.x86_64",
    ];

    fn series(name: &str) -> Series {
        Series::parse(name, Arch::default()).unwrap()
    }

    #[test]
    fn the_newest_installed_kernel_of_a_series_is_chosen() {
        let releases = FEDORA.map(str::to_owned);
        for (name, release) in [
            ("6.12", Some("6.12.11-200.fc41.x86_64")),
            ("6.11", Some("6.11.4-301.fc41.x86_64")),
            ("6.12-rt", Some("6.12.10-200.rt14.fc41.x86_64")),
            ("6.1", None),
        ] {
            assert_eq!(newest(&releases, &series(name)).map(String::as_str), release, "{name}");
        }
        assert_eq!(series_of(&releases), "6.11 or 6.12 or 6.12-rt");
    }

    /// Makes the /lib/modules of a Fedora whose configuration lacks PVH, so that nothing is unpacked.
    fn host() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for release in FEDORA {
            let folder = root.path().join("lib/modules").join(release);
            fs::create_dir_all(folder.join("build")).unwrap();
            for file in ["vmlinuz", "config", "modules.builtin", "build/Makefile"] {
                fs::write(folder.join(file), "").unwrap();
            }
            fs::write(folder.join("modules.dep"), "kernel/net/can/can-raw.ko.xz:\n").unwrap();
        }
        fs::create_dir(root.path().join("lib/modules/6.13.1-200.fc41.x86_64")).unwrap(); // removed, but for its folder
        root
    }

    #[test]
    fn an_installed_kernel_has_its_modules_and_headers_beside_it() {
        let (root, folder) = (host(), tempfile::tempdir().unwrap());
        let find = |name| find(root.path(), &series(name), &Cache::at(folder.path()), &Progress::new(true));
        let kernel = find("6.12").unwrap();
        let at = root.path().join("lib/modules/6.12.11-200.fc41.x86_64");
        assert_eq!((kernel.image, kernel.build_tree), (at.join("vmlinuz"), Some(at.join("build"))));
        assert!(kernel.index.has("can-raw") && kernel.modules == Some(root.path().join("lib/modules")));
        let failure = find("6.13").unwrap_err();
        assert!(failure.message.contains("kernel 6.13: not installed"), "{failure}");
        assert!(failure.message.contains("(--kernel 6.11 or 6.12 or 6.12-rt;"), "{failure}");
    }
}

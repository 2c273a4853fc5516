//! What a line's result depends on, as one number: a line that passed with the same number need not run again.
//!
//! In doubt something belongs to the key: the price is a repetition. So all of the machine's packages and every variable that
//! looks like one that a test reads are a part of each key, and a host's test may read any file but another crate's sources.

use crate::commands;
use std::{
    collections::HashMap,
    env, fs,
    hash::Hasher,
    io::{self, Read},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::Command,
};

use twox_hash::XxHash64;

/// The files of the repository on which a line depends.
#[derive(Clone, Debug, PartialEq)]
pub enum Inputs {
    Everything,
    /// All but documents and results.
    Sources,
    /// Files whose path begins with one of these words.
    Below(&'static [&'static str]),
    /// Tests on the host: they read documents, results, and the sources of their own crate.
    Host,
    /// Tests in a guest: neither documents nor results, but the tour.
    Guest,
    /// Tests in a guest, or that start one, and that use these modules of the program only: their sources, and those of all other
    /// crates and of the tests.
    Commands(Vec<String>),
}

impl Inputs {
    fn has(&self, path: &str, package: &str) -> bool {
        match self {
            Self::Everything => true,
            Self::Sources => is_of_guest(path),
            Self::Below(starts) => starts.iter().any(|start| path.starts_with(start)),
            Self::Host => {
                !path.ends_with(".rs")
                    || path.strip_prefix("crates/").is_some_and(|rest| below(rest, package))
            }
            Self::Guest => !path.ends_with(".rs") && is_of_guest(path),
            Self::Commands(modules) => {
                is_of_guest(path)
                    && path.strip_prefix(commands::SOURCES).is_none_or(|source| {
                        modules.iter().any(|module| module == commands::module_of(source))
                    })
            }
        }
    }
}

/// Whether tests in a guest may depend on this file.
fn is_of_guest(path: &str) -> bool {
    path == "docs/tour.md" || !path.ends_with(".md") && !path.starts_with("results/")
}

fn below(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

pub struct Keys {
    /// The variables and versions that every line depends on.
    common: u64,
    /// The repository's files.
    files: Vec<(String, u64)>,
    others: HashMap<PathBuf, u64>,
    /// Where keys of lines that passed are kept.
    passed: PathBuf,
}

/// What a line depends on, when it was read.
pub struct Key {
    hash: u64,
    paths: Vec<PathBuf>,
    stamp: u64,
}

impl Keys {
    /// Reads all files; nothing in an unpacked archive, where git cannot list them.
    pub fn read(passed: &Path) -> Option<Self> {
        let list = output("git", &["ls-files", "-z", "--cached", "--others", "--exclude-standard"])?;
        let mut files = Vec::new();
        for path in list.split('\0').filter(|path| !path.is_empty()) {
            // One that is removed, but not yet for git, is none.
            if let Ok(hash) = hash_file(Path::new(path)) {
                files.push((path.to_owned(), hash));
            }
        }
        files.sort();
        files.dedup();
        fs::create_dir_all(passed).ok()?;
        Some(Self { common: common(env::vars()), files, others: HashMap::new(), passed: passed.to_owned() })
    }

    /// The key of a line: its words, the files that it depends on in the repository and `others`, such as its executable.
    pub fn key(
        &mut self,
        words: &[String],
        package: &str,
        inputs: &Inputs,
        others: &[PathBuf],
    ) -> Option<Key> {
        let (mut hash, mut paths) = (XxHash64::with_seed(self.common), others.to_vec());
        words.iter().for_each(|word| put(&mut hash, word));
        for (path, file_hash) in self.files.iter().filter(|(path, _)| inputs.has(path, package)) {
            put(&mut hash, path);
            hash.write_u64(*file_hash);
            paths.push(PathBuf::from(path));
        }
        for path in others {
            let file_hash = match self.others.get(path) {
                Some(&known) => known,
                None => hash_file(path).ok()?,
            };
            self.others.insert(path.clone(), file_hash);
            hash.write_u64(file_hash);
        }
        Some(Key { hash: hash.finish(), stamp: stamp(&paths), paths })
    }

    /// The number of tests that passed when the line passed with this key.
    pub fn passed(&self, id: &str, key: &Key) -> Option<usize> {
        let text = fs::read_to_string(self.passed.join(file_name(id))).ok()?;
        let (known, passed) = text.trim().split_once(' ')?;
        passed.parse().ok().filter(|_| known == with_kernels(key.hash))
    }

    /// Keeps the key of a line that passed, unless a file that it depends on was written meanwhile.
    pub fn remember(&self, id: &str, key: &Key, passed: usize) {
        if stamp(&key.paths) == key.stamp {
            let text = format!("{} {passed}\n", with_kernels(key.hash));
            fs::write(self.passed.join(file_name(id)), text).ok();
        }
    }

    pub fn forget(&self, id: &str) {
        fs::remove_file(self.passed.join(file_name(id))).ok();
    }
}

/// Lengths of files, and when they were written last.
fn stamp(paths: &[PathBuf]) -> u64 {
    let mut hash = XxHash64::with_seed(0);
    for path in paths {
        let kept = fs::symlink_metadata(path).ok().map(|file| (file.len(), file.mtime(), file.mtime_nsec()));
        put(&mut hash, &format!("{kept:?}"));
    }
    hash.finish()
}

/// A line's id as a file's name.
pub fn file_name(id: &str) -> String {
    id.chars()
        .map(|letter| if letter.is_alphanumeric() || "-._".contains(letter) { letter } else { '_' })
        .collect()
}

/// The key with the kernels of the lab's cache, which may have been fetched by the line itself.
fn with_kernels(key: u64) -> String {
    let mut hash = XxHash64::with_seed(key);
    let cache = |name: &str, rest: &str| env::var_os(name).map(|folder| Path::new(&folder).join(rest));
    let cache = cache("CANTER_CACHE", "")
        .or_else(|| cache("XDG_CACHE_HOME", "canter"))
        .or_else(|| cache("HOME", ".cache/canter"));
    let entries = cache.and_then(|cache| fs::read_dir(cache.join("kernels")).ok());
    let mut names: Vec<_> = entries.into_iter().flatten().flatten().map(|entry| entry.file_name()).collect();
    names.sort();
    names.iter().for_each(|name| put(&mut hash, &name.to_string_lossy()));
    format!("{:016x}", hash.finish())
}

/// Variables that tests read, and versions of what they use.
fn common(variables: impl Iterator<Item = (String, String)>) -> u64 {
    let mut hash = XxHash64::with_seed(0);
    let mut variables: Vec<_> = variables.filter(|(name, _)| is_read(name)).collect();
    variables.sort();
    for (name, value) in variables {
        put(&mut hash, &name);
        put(&mut hash, &value);
    }
    let versions: [(&str, &[&str]); 5] = [
        ("rustc", &["-vV"]),
        ("python3", &["-VV"]),
        ("qemu-system-x86_64", &["--version"]),
        ("dpkg-query", &["-W"]),
        ("uname", &["-a"]),
    ];
    for (program, arguments) in versions {
        put(&mut hash, &output(program, arguments).unwrap_or_default());
    }
    hash.finish()
}

/// Whether a test may read this variable.
fn is_read(name: &str) -> bool {
    const STARTS: [&str; 5] = ["CANTER_", "PROPTEST_", "RUST", "INSTA_", "PYTEST"];
    const NAMES: [&str; 14] = [
        "SEED",
        "SEEDS",
        "CASES",
        "KEEP",
        "UPDATE",
        "SLOWNESS",
        "SOAK_FRAMES",
        "CONTENDED",
        "LAB",
        "LINE",
        "CPUS",
        "CANTER",
        "PATH",
        "NO_COLOR",
    ];
    // How deep rustup's commands are nested.
    name != "RUST_RECURSION_COUNT"
        && (STARTS.iter().any(|start| name.starts_with(start)) || NAMES.contains(&name))
}

fn put(hash: &mut XxHash64, text: &str) {
    hash.write_usize(text.len());
    hash.write(text.as_bytes());
}

fn hash_file(path: &Path) -> io::Result<u64> {
    let mut hash = XxHash64::with_seed(0);
    if path.is_symlink() {
        put(&mut hash, &fs::read_link(path)?.to_string_lossy());
        return Ok(hash.finish());
    }
    let (mut file, mut part) = (fs::File::open(path)?, vec![0; 1 << 20]);
    loop {
        match file.read(&mut part)? {
            0 => return Ok(hash.finish()),
            length => hash.write(&part[..length]),
        }
    }
}

/// What a program prints, when it succeeds.
pub fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output =
        Command::new(program).args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(files: &[(&str, u64)], passed: &Path) -> Keys {
        let files = files.iter().map(|(path, hash)| ((*path).to_owned(), *hash)).collect();
        Keys { common: 1, files, others: HashMap::new(), passed: passed.to_owned() }
    }

    #[test]
    fn each_kind_of_line_depends_on_what_it_may_read() {
        let has = |inputs: Inputs, path: &str| inputs.has(path, "canter");
        assert!(has(Inputs::Host, "docs/papers.md") && has(Inputs::Host, "crates/canter/src/lib.rs"));
        assert!(
            !has(Inputs::Host, "crates/canter-io/src/lib.rs")
                && !has(Inputs::Guest, "crates/canter/src/lib.rs")
        );
        assert!(
            has(Inputs::Guest, "kernel/canwire/bits.c")
                && has(Inputs::Guest, "docs/tour.md")
                && has(Inputs::Guest, "docs/car.toml")
        );
        let commands = || Inputs::Commands(vec!["cli".to_owned(), "wire".to_owned()]);
        for path in [
            "crates/canter/src/wire/names.rs",
            "crates/canter-io/src/lib.rs",
            "crates/canter/tests/it/wait.rs",
        ] {
            assert!(has(commands(), path), "{path}");
        }
        assert!(!has(commands(), "crates/canter/src/capture.rs") && !has(commands(), "docs/wire.md"));
        assert!(!has(Inputs::Guest, "docs/papers.md") && !has(Inputs::Guest, "results/2014/a.json"));
        assert!(has(Inputs::Sources, "crates/canter-io/src/lib.rs") && has(Inputs::Sources, "Makefile"));
        assert!(!has(Inputs::Sources, "tests/runs.md") && !has(Inputs::Sources, "results/2014/a.json"));
        assert!(
            has(Inputs::Below(&["kernel/"]), "kernel/compat.h")
                && !has(Inputs::Below(&["kernel/"]), "kernels")
        );
    }

    #[test]
    fn a_changed_input_changes_the_key_and_another_file_does_not() {
        let one = |files: &[(&str, u64)], words: &str| {
            keys(files, Path::new("/"))
                .key(&[words.to_owned()], "canter", &Inputs::Below(&["kernel/"]), &[])
                .unwrap()
                .hash
        };
        let key = one(&[("kernel/a", 1), ("docs", 1)], "lab");
        assert_eq!(key, one(&[("kernel/a", 1), ("docs", 2)], "lab"));
        assert_ne!(key, one(&[("kernel/a", 2)], "lab"));
        assert_ne!(key, one(&[("kernel/b", 1)], "lab"));
        assert_ne!(key, one(&[("kernel/a", 1)], "lab --cpus 2"));
    }

    #[test]
    fn an_executable_is_a_part_of_the_key_and_one_that_is_missing_has_none() {
        let path = env::temp_dir().join(format!("xtask-keys-{}", std::process::id()));
        let key = || {
            keys(&[], Path::new("/"))
                .key(&[], "", &Inputs::Everything, std::slice::from_ref(&path))
                .map(|key| key.hash)
        };
        assert_eq!(key(), None);
        fs::write(&path, "one").unwrap();
        let first = key();
        fs::write(&path, "two").unwrap();
        assert!(first.is_some() && first != key());
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn variables_that_tests_read_are_a_part_of_the_key() {
        let hash_of_variable =
            |name: &str, value: &str| common([(name.to_owned(), value.to_owned())].into_iter());
        for name in
            ["CANTER_STRESS_ROUNDS", "SEED", "CASES", "PROPTEST_CASES", "KEEP", "UPDATE", "RUST_BACKTRACE"]
        {
            assert_ne!(hash_of_variable(name, "1"), hash_of_variable(name, "2"), "{name}");
        }
        assert_eq!(hash_of_variable("WINDOWID", "1"), hash_of_variable("WINDOWID", "2"));
    }

    #[test]
    fn a_line_that_passed_is_known_by_its_key_until_it_is_forgotten() {
        let folder = env::temp_dir().join(format!("xtask-passed-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let input = folder.join("input");
        fs::write(&input, "1").unwrap();
        let mut keys = keys(&[], &folder);
        let mut key = |word: &str| {
            keys.key(&[word.to_owned()], "", &Inputs::Everything, std::slice::from_ref(&input)).unwrap()
        };
        let (key, other) = (key("lab"), key("lab --cpus 2"));
        keys.remember("canter::capture --cpus 2", &key, 34);
        assert_eq!(keys.passed("canter::capture --cpus 2", &key), Some(34));
        assert_eq!(keys.passed("canter::capture --cpus 2", &other), None);
        keys.forget("canter::capture --cpus 2");
        assert_eq!(keys.passed("canter::capture --cpus 2", &key), None);
        fs::write(&input, "written during the run").unwrap();
        keys.remember("canter::capture", &key, 34);
        assert_eq!(keys.passed("canter::capture", &key), None);
        fs::remove_dir_all(&folder).unwrap();
    }
}

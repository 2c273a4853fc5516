//! What identifies a build: its commit and a number of its sources, which results and journals carry.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

fn main() {
    println!("cargo::rustc-env=CANTER_SOURCES={:016x}", sources());
    println!("cargo::rustc-env=CANTER_COMMIT={}", commit());
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_default()
}

/// A number of what measures: all sources but studies and tests, the versions of the libraries, the compiler and its
/// options. Journals carry it, so that a run never continues with another program.
fn sources() -> u64 {
    let package = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    let root = package.join("../..");
    let mut files = Vec::new();
    let crates = fs::read_dir(root.join("crates")).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = crates.map(|entry| entry.path().join("src")).collect();
    folders.push(package.join("src"));
    folders.extend(["baremetal", "kernel"].map(|name| root.join(name)));
    for folder in folders.iter().filter(|folder| folder.is_dir()) {
        println!("cargo::rerun-if-changed={}", folder.display());
        find(folder, &mut files);
    }
    files.push(root.join("Cargo.lock"));
    files.sort();
    files.dedup();
    let mut number = Fnv::new();
    for file in files.iter().filter(|file| file.is_file()) {
        number.add(file.file_name().unwrap_or_default().as_encoded_bytes());
        number.add(&fs::read(file).unwrap_or_default());
    }
    let compiler = Command::new(variable("RUSTC")).arg("-vV").output();
    let compiler = compiler.map(|output| output.stdout).unwrap_or_default();
    // Not the machine that compiles: both machines of a study may have built it.
    let same_everywhere = |line: &&[u8]| !line.starts_with(b"host:");
    compiler.split(|&byte| byte == b'\n').filter(same_everywhere).for_each(|line| number.add(line));
    for option in ["PROFILE", "OPT_LEVEL", "DEBUG", "CARGO_ENCODED_RUSTFLAGS"] {
        number.add(variable(option).as_bytes());
    }
    number.0
}

/// The commit that this is built from, with `+` when sources differ from it; empty outside of a repository. What is no
/// release is not built again for a new commit: its commit is that of its last change.
fn commit() -> String {
    let package = variable("CARGO_MANIFEST_DIR");
    let git = |arguments: &[&str]| {
        let done = Command::new("git").args(["-C", &package]).args(arguments).output().ok();
        let text = done.filter(|done| done.status.success())?.stdout;
        Some(String::from_utf8_lossy(&text).trim().to_owned())
    };
    let tracked = git(&["ls-files", "--", "Cargo.toml"]).is_some_and(|files| !files.is_empty());
    let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"]).filter(|_| tracked) else {
        return String::new();
    };
    if let Some(log) = git(&["rev-parse", "--path-format=absolute", "--git-path", "logs/HEAD"])
        .filter(|log| variable("PROFILE") == "release" && Path::new(log).exists())
    {
        println!("cargo::rerun-if-changed={log}");
    }
    let sources = ["status", "--porcelain", "--untracked-files=no", "--", "../../crates", "../../kernel"];
    let changed = git(&[&sources[..], &["../../baremetal", "../../Cargo.lock"]].concat());
    format!("{commit}{}", if changed.is_some_and(|list| list.is_empty()) { "" } else { "+" })
}

/// Every source file below a folder.
fn find(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name();
        if path.is_dir() {
            if name != "target" && name != "tests" {
                find(&path, files);
            }
        } else if path
            .extension()
            .is_some_and(|end| ["rs", "c", "h", "ld", "toml"].iter().any(|one| end == *one))
        {
            files.push(path);
        }
    }
}

/// Fowler, Noll and Vo's hash, 1a, 64 bits.
struct Fnv(u64);

impl Fnv {
    fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

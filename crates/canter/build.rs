//! What the program carries, besides Rust: all of it is below carried/, as links into the repository that Cargo follows
//! when it packages.
//!
//! The gateway without an operating system (baremetal/) is built here, for x86-64 alone, by rustc itself: two libraries and
//! two programs that need no crate from a registry. The path of the one that the program carries is in
//! BARE_METAL_BESIDE, that of the one that boots without Linux, for the tests, in BARE_METAL_IMAGE; other machines have
//! neither.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

fn main() {
    let carried = PathBuf::from(variable("CARGO_MANIFEST_DIR")).join("carried");
    let built = PathBuf::from(variable("OUT_DIR"));
    list_studies(&carried.join("studies"), &built.join("studies.rs"));
    println!("cargo::rustc-env=CANTER_SOURCES={:016x}", sources());
    println!("cargo::rustc-env=CANTER_COMMIT={}", commit());
    println!("cargo::rustc-check-cfg=cfg(has_bare_metal)");
    // Not on a musl or Android target, where the linker is another one.
    if variable("TARGET") != "x86_64-unknown-linux-gnu" {
        return;
    }
    let (chip, gateway) = (carried.join("sja1000"), carried.join("baremetal"));
    for source in [&chip, &gateway] {
        println!("cargo::rerun-if-changed={}", source.display());
    }
    library("sja1000", &chip.join("src/lib.rs"), &built, &[]);
    library("canter_bare", &gateway.join("src/lib.rs"), &built, &["sja1000"]);
    for name in ["beside", "image"] {
        let program = program(name, &gateway, &built);
        println!("cargo::rustc-env=BARE_METAL_{}={}", name.to_uppercase(), program.display());
    }
    println!("cargo::rustc-cfg=has_bare_metal");
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_default()
}

/// rustc with what all parts have in common. No machine moves these programs to another address.
fn rustc(name: &str, source: &Path, built: &Path, uses: &[&str]) -> Command {
    let mut rustc = Command::new(variable("RUSTC"));
    rustc.args(["--edition", "2024", "--target", "x86_64-unknown-linux-gnu", "--crate-name", name]);
    for option in ["opt-level=3", "codegen-units=1", "panic=abort", "relocation-model=static"] {
        rustc.args(["-C", option]);
    }
    for used in uses {
        rustc.arg("--extern").arg(format!("{used}={}", built.join(format!("lib{used}.rlib")).display()));
    }
    rustc.arg("-L").arg(built).arg(source);
    rustc
}

fn library(name: &str, source: &Path, built: &Path, uses: &[&str]) {
    let mut rustc = rustc(name, source, built, uses);
    run(name, rustc.args(["--crate-type", "rlib", "--out-dir"]).arg(built));
}

/// A program laid out by a script of its own, that begins without the C library.
fn program(name: &str, gateway: &Path, built: &Path) -> PathBuf {
    let program = built.join(name);
    let source = gateway.join("src/bin").join(name).with_extension("rs");
    let mut rustc = rustc(name, &source, built, &["sja1000", "canter_bare"]);
    rustc.args(["--crate-type", "bin", "-C", "lto=fat", "-o"]).arg(&program);
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        rustc.arg("-C").arg(format!("linker={linker}"));
    }
    let layout = gateway.join(name).with_extension("ld");
    rustc.arg("-C").arg(format!("link-arg=-T{}", layout.display()));
    for argument in ["-nostartfiles", "-nostdlib", "-static", "-no-pie", "-Wl,--build-id=none"] {
        rustc.arg("-C").arg(format!("link-arg={argument}"));
    }
    if name == "beside" {
        rustc.args(["-C", "link-arg=-Wl,--oformat=binary"]); // its bytes as they lie in memory, nothing about them
    }
    run(name, &mut rustc);
    program
}

fn run(name: &str, rustc: &mut Command) {
    let done = rustc.status().unwrap_or_else(|error| panic!("{name}: {}: {error}", variable("RUSTC")));
    assert!(done.success(), "{name}: rustc: {done}");
}

/// A number of what measures: all sources but studies and tests, the versions of the libraries, the compiler and its
/// options. Journals carry it, so that a run never continues with another program.
fn sources() -> u64 {
    let own = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    let root = own.join("../..");
    let mut files = Vec::new();
    let crates = fs::read_dir(root.join("crates")).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = crates.map(|entry| entry.path().join("src")).collect();
    folders.push(own.join("src"));
    folders.extend(["baremetal", "sja1000", "kernel"].map(|name| own.join("carried").join(name)));
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
    number.add(&compiler.map(|output| output.stdout).unwrap_or_default());
    for option in ["PROFILE", "OPT_LEVEL", "DEBUG", "CARGO_ENCODED_RUSTFLAGS"] {
        number.add(variable(option).as_bytes());
    }
    number.0
}

/// The commit that this is built from, with `+` when sources differ from it; empty outside of a repository. What is no
/// release is not built again for a new commit: its commit is that of its last change.
fn commit() -> String {
    let own = variable("CARGO_MANIFEST_DIR");
    let git = |arguments: &[&str]| {
        let done = Command::new("git").args(["-C", &own]).args(arguments).output().ok();
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

/// Writes the list of all studies: name and text of each, by name.
fn list_studies(folder: &Path, list: &Path) {
    println!("cargo::rerun-if-changed={}", folder.display());
    let files = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = files.map(|file| file.expect("an entry of the folder").path()).collect();
    files.retain(|file| file.extension().is_some_and(|ending| ending == "toml"));
    files.sort();
    let entry = |file: &PathBuf| {
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        format!("    ({name:?}, include_str!({:?})),\n", file.display().to_string())
    };
    let entries: String = files.iter().map(entry).collect();
    let text = format!("pub static FILES: &[(&str, &str)] = &[\n{entries}];\n");
    fs::write(list, text).unwrap_or_else(|error| panic!("{}: {error}", list.display()));
}

//! What the program carries: the studies, each a file in the folder STUDIES, and the gateway without an operating system.
//!
//! The gateway without an operating system (baremetal/) is carried in this program: it is built here, by Cargo, for x86-64
//! alone. Its path is in BARE_METAL_BESIDE, and that of the image which boots by itself, for the tests, in
//! BARE_METAL_IMAGE; other machines have neither.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

/// The folder of the study files, seen from this package.
const STUDIES: &str = "../../studies";

fn main() {
    let of_cargo = |name: &str| env::var(name).unwrap_or_default();
    let package = PathBuf::from(of_cargo("CARGO_MANIFEST_DIR"));
    list_studies(&package.join(STUDIES), &PathBuf::from(of_cargo("OUT_DIR")).join("studies.rs"));
    let root = package.join("../..");
    for input in ["baremetal", "crates/sja1000/src", "crates/sja1000/Cargo.toml"] {
        println!("cargo::rerun-if-changed={}", root.join(input).display());
    }
    println!("cargo::rustc-check-cfg=cfg(has_bare_metal)");
    // Not on a musl or Android target, where the linker is another one.
    if of_cargo("TARGET") != "x86_64-unknown-linux-gnu" {
        return;
    }
    let built = PathBuf::from(of_cargo("OUT_DIR")).join("baremetal");
    build(&root.join("baremetal"), &built, &of_cargo("CARGO"));
    println!("cargo::rustc-cfg=has_bare_metal");
    for (name, program) in [("BESIDE", "beside"), ("IMAGE", "image")] {
        let path = built.join("x86_64-unknown-linux-gnu/release").join(program);
        println!("cargo::rustc-env=BARE_METAL_{name}={}", path.display());
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

/// With the settings in its own folder, and none of those that this build was given.
fn build(source: &Path, to: &Path, cargo: &str) {
    let mut command = Command::new(cargo);
    command
        .args(["build", "--release", "--locked", "--offline", "--quiet"])
        .args(["--target", "x86_64-unknown-linux-gnu", "--target-dir"])
        .arg(to)
        .current_dir(source);
    for (name, _) in env::vars_os() {
        let name = name.to_string_lossy();
        let ours = name.starts_with("CARGO_PROFILE") || name.starts_with("CARGO_BUILD");
        let flags = name.ends_with("RUSTFLAGS") || name.starts_with("RUSTC_") && name.ends_with("WRAPPER");
        if ours || flags || name.starts_with("CARGO_TARGET") {
            command.env_remove(&*name);
        }
    }
    let done = command.status().unwrap_or_else(|error| panic!("{cargo}: {error}"));
    assert!(done.success(), "baremetal: cargo build: {done}");
}

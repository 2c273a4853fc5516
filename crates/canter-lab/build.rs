//! The list of the studies that the laboratory carries, below carried/ as links into the repository that Cargo follows when
//! it packages.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

fn main() {
    let folder = |name| PathBuf::from(env::var_os(name).unwrap_or_default());
    list_studies(
        &folder("CARGO_MANIFEST_DIR").join("carried/studies"),
        &folder("OUT_DIR").join("studies.rs"),
    );
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

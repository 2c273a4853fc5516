//@ machine: host
//! What packages say of themselves: version and homepage are the workspace's, and README names what `make dist` makes.

use std::{fs, path::Path};

fn file(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The text between `before` and the next quote or end of the line.
#[track_caller]
fn value(path: &str, before: &str) -> String {
    let text = file(path);
    let line = text.lines().find_map(|line| line.strip_prefix(before));
    let line = line.unwrap_or_else(|| panic!("{path}: no line begins with {before:?}"));
    line.split('"').next().unwrap().trim().to_owned()
}

#[test]
fn every_package_has_the_homepage_and_the_version_of_the_workspace() {
    let homepage = value("Cargo.toml", "homepage = \"");
    assert!(homepage.starts_with("https://"), "{homepage}");
    for (path, before) in [
        ("python/Cargo.toml", "homepage = \""),
        ("python/pyproject.toml", "Homepage = \""),
        ("debian/control", "Homepage: "),
    ] {
        assert_eq!(value(path, before), homepage, "{path}");
    }
    for folder in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("..")).unwrap() {
        let manifest = format!("crates/{}/Cargo.toml", folder.unwrap().file_name().to_string_lossy());
        for inherited in ["homepage.workspace = true", "version.workspace = true"] {
            assert!(file(&manifest).lines().any(|line| line == inherited), "{manifest}: no {inherited}");
        }
    }
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(value("python/Cargo.toml", "version = \""), version);
    let debian = file("debian/changelog");
    assert!(debian.starts_with(&format!("canter ({version}-")), "debian/changelog: {debian:.20}");
}

//! The header packages of a Debian kernel, extracted into the cache, to build modules against. Installing them would
//! also install the matching kernel image and an initramfs.

use super::{apt, cache::Cache, lab_failure, programs, progress::Progress};
use crate::failure::Result;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The folder for `make -C` of a Debian kernel.
pub fn build_folder(release: &str, cache: &Cache, progress: &Progress) -> Result<PathBuf> {
    let package = format!("linux-headers-{release}");
    let root = cache.entry(&format!("headers/{release}"), progress, |new, to| {
        if !apt::is_offered(&apt::HOST, &package) {
            return Err(lab_failure(format!("{package}: not offered by apt (apt-get update first?)")));
        }
        let parts = apt::depends(&package)?;
        let parts =
            parts.iter().filter(|n| n.starts_with("linux-headers-") || n.starts_with("linux-kbuild-"));
        for name in parts.chain([&package]) {
            apt::extract(&apt::HOST, name, new, progress)?;
        }
        let folder = new.join("usr/src").join(&package);
        // vmlinux serves only for the modules' type information (BTF), which needs pahole; the lab does not use it.
        let _ = fs::remove_file(folder.join("vmlinux"));
        relocate(&folder.join("Makefile"), to)
    })?;
    Ok(root.join("usr/src").join(package))
}

/// The one absolute path in these packages: `include /usr/src/linux-headers-…-common/Makefile`.
fn relocate(makefile: &Path, to: &Path) -> Result<()> {
    let wrong = |e: std::io::Error| lab_failure(format!("{}: {e}", makefile.display()));
    let text = fs::read_to_string(makefile).map_err(wrong)?;
    fs::write(makefile, text.replace("include /usr/", &format!("include {}/usr/", to.display())))
        .map_err(wrong)
}

/// Builds the modules in `source` against `build`.
pub fn make(build: &Path, source: &Path, settings: &[&str]) -> Result<()> {
    programs::require(&[programs::MAKE, programs::GCC])?;
    let output = Command::new("make")
        .arg("-C")
        .arg(build)
        .arg(format!("M={}", source.display()))
        .args(settings)
        .arg("modules")
        .env_remove("MAKEFLAGS") // set by a make that runs the lab: its job server is not for this make
        .stdin(Stdio::null())
        .output()
        .map_err(|e| lab_failure(format!("make: {e}")))?;
    if output.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<_> = stderr.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = lines[lines.len().saturating_sub(8)..].join("\n  make: ");
    Err(lab_failure(format!("modules in {} against {}:\n  make: {last}", source.display(), build.display())))
}

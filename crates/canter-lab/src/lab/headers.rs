//! The header packages of a Debian kernel, extracted into the cache, to build modules against. Installing them would
//! also install the matching kernel image and an initramfs. Those of another Debian release need its libc and its compiler:
//! `host_tools` and `compiler` adapt them to the host.

mod compiler;
mod host_tools;

use super::{
    apt,
    cache::{Cache, Entry},
    kernel::Kernel,
    lab_failure, programs,
    progress::Progress,
};
use canter_cli::failure::Result;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// The headers of a Debian kernel.
fn find(release: &str, cache: &Cache, progress: &Progress) -> Result<Entry> {
    if programs::find(programs::APT).is_none() {
        return Err(lab_failure(format!(
            "kernel {release}: no headers in /lib/modules/{release}/build to build modules against (on Fedora: \
             dnf install kernel-devel-{release})"
        )));
    }
    let package = package(release);
    cache.entry(&format!("headers/{release}"), progress, |new| {
        let apt = apt::with_package(&package, cache, progress)?;
        let parts = apt::depends(&apt, &package)?;
        let parts =
            parts.iter().filter(|n| n.starts_with("linux-headers-") || n.starts_with(host_tools::PACKAGE));
        for name in parts.clone().chain([&package]) {
            apt::extract(&apt, name, new, progress)?;
        }
        let folder = new.join("usr/src").join(&package);
        host_tools::adapt(&apt, &parts.collect::<Vec<_>>(), new, progress)?;
        compiler::adapt(&folder)?;
        // vmlinux serves only for the modules' type information (BTF), which needs pahole; the lab does not use it.
        let _ = fs::remove_file(folder.join("vmlinux"));
        relocate(&folder.join("Makefile"))
    })
}

fn package(release: &str) -> String {
    format!("linux-headers-{release}")
}

/// Builds the modules in `source` for a kernel: against its build tree if it has one, or else its header packages.
pub fn build(
    kernel: &Kernel,
    source: &Path,
    settings: &[&str],
    cache: &Cache,
    progress: &Progress,
) -> Result<()> {
    let headers = match kernel.build_tree {
        Some(_) => None,
        None => Some(find(&kernel.release, cache, progress)?),
    };
    let of_package = |headers: &Entry| headers.path().join("usr/src").join(package(&kernel.release));
    let build = headers.as_ref().map(of_package).or(kernel.build_tree.clone()).unwrap_or_default();
    let _step = progress.step(&format!("building modules for {}", kernel.release));
    make(&build, source, settings)
}

/// Makes the packages' absolute paths (`include /usr/src/linux-headers-…-common/Makefile`, and since 6.19
/// `KBUILD_OUTPUT=/usr/src/linux-headers-…`) relative to the Makefile, so that a cache can be moved.
fn relocate(makefile: &Path) -> Result<()> {
    let wrong = |e: std::io::Error| lab_failure(format!("{}: {e}", makefile.display()));
    let text = fs::read_to_string(makefile).map_err(wrong)?;
    fs::write(makefile, relocated(&text)).map_err(wrong)
}

fn relocated(makefile: &str) -> String {
    const BESIDE: &str = "$(dir $(realpath $(lastword $(MAKEFILE_LIST))))../";
    let lines = makefile.lines().map(|line| {
        line.replace("include /usr/src/", &format!("include {BESIDE}"))
            // At once: the last of the files that make reads is another one later.
            .replace("KBUILD_OUTPUT=/usr/src/", &format!("KBUILD_OUTPUT := {BESIDE}"))
    });
    lines.fold(String::new(), |text, line| text + &line + "\n")
}

fn has_space(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().iter().any(u8::is_ascii_whitespace)
}

/// Builds the modules in `source` against `build`.
fn make(build: &Path, source: &Path, settings: &[&str]) -> Result<()> {
    if let Some(path) = [build, source].into_iter().find(|path| has_space(path)) {
        return Err(lab_failure(format!(
            "{}: the kernel's build takes no path with spaces (CANTER_CACHE=FOLDER: a cache elsewhere)",
            path.display()
        )));
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_names_no_absolute_folder_any_more() {
        for makefile in [
            "include /usr/src/linux-headers-6.12-common/Makefile\n",
            "KBUILD_OUTPUT=/usr/src/linux-headers-7.3-amd64\ninclude /usr/src/linux-headers-7.3-common/Makefile\n",
        ] {
            let text = relocated(makefile);
            assert!(!text.contains("/usr/src") && text.lines().count() == makefile.lines().count(), "{text}");
        }
    }

    #[test]
    fn a_path_with_a_space_is_refused_with_the_way_out() {
        for [build, source] in [["/a b/headers", "/c"], ["/headers", "/a b/c"]] {
            let failure = make(Path::new(build), Path::new(source), &[]).unwrap_err();
            assert!(
                failure.message.contains("/a b/") && failure.message.contains("CANTER_CACHE"),
                "{failure}"
            );
        }
    }
}

//! The driver of the CAN FD cards. Debian's kernels lack ctucanfd, but Debian's source package has it: the lab builds
//! it from there on first use and keeps it. A kernel that has the driver is left as it is.

use super::{
    apt::{self, Image},
    cache::{Cache, Entry},
    headers,
    kernel::{Extra, Kernel},
    lab_failure,
    progress::Progress,
};
use canter_cli::failure::Result;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// The driver of the FD cards.
pub const MODULE: &str = "ctucanfd_pci";
/// The modules to load for the FD cards, in order.
const MODULES: [&str; 2] = ["ctucanfd.ko", "ctucanfd_pci.ko"];
const FOLDER: &str = "drivers/net/can/ctucanfd";
const SETTINGS: [&str; 2] = ["CONFIG_CAN_CTUCANFD=m", "CONFIG_CAN_CTUCANFD_PCI=m"];

/// Adds the driver to a kernel that has none.
pub fn add(kernel: &mut Kernel, cache: &Cache, progress: &Progress) -> Result<()> {
    if kernel.index.has(MODULE) {
        return Ok(());
    }
    let name = match kernel.build_tree {
        // The key, because a tree is built again under the same release.
        Some(_) => format!("drivers/ctucanfd-{}-{}", kernel.release, kernel.key),
        None => format!("drivers/ctucanfd-{}", kernel.release),
    };
    let built = cache.entry(&name, progress, |new| {
        match &kernel.build_tree {
            Some(tree) => copy(&tree.join(FOLDER), new)?,
            None => {
                let series = series(&kernel.release)?;
                copy(&source(&series, cache, progress)?.path().join(package(&series)).join(FOLDER), new)?;
            }
        }
        headers::build(kernel, new, &SETTINGS, cache, progress)
    })?;
    kernel.extra_modules.extend(MODULES.map(|module| Extra::new(built.path().join(module))));
    kernel.in_use.push(built);
    Ok(())
}

/// The series of a Debian kernel: `6.12`.
fn series(release: &str) -> Result<String> {
    let image = Image::parse(&format!("linux-image-{release}")).ok_or_else(|| {
        lab_failure(format!("kernel {release}: --fd-cards needs CONFIG_CAN_CTUCANFD_PCI or a Debian kernel"))
    })?;
    Ok(image.series.version)
}

fn package(series: &str) -> String {
    format!("linux-source-{series}")
}

/// The driver's folder of the kernel's source package, below the package's name.
fn source(series: &str, cache: &Cache, progress: &Progress) -> Result<Entry> {
    let package = package(series);
    cache.entry(&format!("sources/ctucanfd-{series}"), progress, |new| {
        let apt = apt::with_package(&package, cache, progress)?;
        let deb = apt::download(&apt, &package, new, progress)?;
        let _step = progress.step(&format!("extracting {FOLDER} from {package}"));
        unpack(&deb, &package, new)?;
        fs::remove_file(&deb).map_err(|e| lab_failure(format!("{}: remove: {e}", deb.display())))
    })
}

/// Extracts the driver's folder: an archive in an archive.
fn unpack(deb: &Path, package: &str, to: &Path) -> Result<()> {
    const PIPE: &str =
        r#"dpkg-deb --fsys-tarfile "$1" | tar xO "./usr/src/$2.tar.xz" | tar xJ -C "$3" "$2/$4""#;
    let output = Command::new("sh")
        .args(["-c", PIPE, "sh"])
        .arg(deb)
        .arg(package)
        .arg(to)
        .arg(FOLDER)
        .stdin(Stdio::null())
        .output()
        .map_err(|e| lab_failure(format!("sh: {e}")))?;
    if output.status.success() && to.join(package).join(FOLDER).is_dir() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(lab_failure(format!("{}: extract {FOLDER}: {}", deb.display(), stderr.trim())))
}

/// The sources and the Makefile.
fn copy(from: &Path, to: &Path) -> Result<()> {
    let wrong = |e: std::io::Error| lab_failure(format!("{}: {e}", from.display()));
    for entry in fs::read_dir(from).map_err(wrong)? {
        let path = entry.map_err(wrong)?.path();
        let name = path.file_name().unwrap_or_default();
        let wanted = name == "Makefile" || path.extension().is_some_and(|e| e == "c" || e == "h");
        if wanted && !name.to_string_lossy().ends_with(".mod.c") {
            fs::copy(&path, to.join(name)).map_err(wrong)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sources_are_copied_to_be_built() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for name in ["Makefile", "a.c", "a.h", "a.o", "a.mod.c", "Kconfig"] {
            fs::write(from.path().join(name), name).unwrap();
        }
        copy(from.path(), to.path()).unwrap();
        let mut names: Vec<_> = fs::read_dir(to.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["Makefile", "a.c", "a.h"]);
    }
}

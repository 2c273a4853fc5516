//! The analyzer's plugin: its source is in this program, gcc builds it for the host's QEMU on first use, and QEMU loads it.
//! The guest gets a folder that it shares with the plugin.

use super::{
    apt,
    arch::Arch,
    cache::{Cache, Entry},
    distribution::{Family, Packages},
    lab_failure,
    machine::{Clock, Machine},
    programs,
    progress::Progress,
};
use crate::analyzer::{board::Board, session::BOARD};
use canter_cli::failure::{Failure, Result};
use std::{
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

const SOURCES: [(&str, &str); 9] = [
    ("plugin.h", include_str!("../../carried/analyzer/plugin.h")),
    ("cost.h", include_str!("../../carried/analyzer/cost.h")),
    ("cost.c", include_str!("../../carried/analyzer/cost.c")),
    ("processor.h", include_str!("../../carried/analyzer/processor.h")),
    ("x86.c", include_str!("../../carried/analyzer/x86.c")),
    ("arm64.c", include_str!("../../carried/analyzer/arm64.c")),
    ("qemu.h", include_str!("../../carried/analyzer/qemu.h")),
    ("qemu.c", include_str!("../../carried/analyzer/qemu.c")),
    ("analyzer.c", include_str!("../../carried/analyzer/analyzer.c")),
];
/// The headers of the C library, which a kernel module does not need.
const HEADERS: Packages = Packages { debian: "libc6-dev", fedora: "glibc-devel" };
const PLUGIN: &str = "analyzer.so";
const FLAGS: &[&str] = &["-std=gnu11", "-O2", "-Wall", "-shared", "-fPIC", "-fvisibility=hidden"];

/// What QEMU needs to load the plugin.
#[derive(Clone, Debug)]
pub struct Loaded {
    pub plugin: PathBuf,
    /// The folder that plugin and guest share.
    pub folder: PathBuf,
    /// Whose costs it counts besides instructions.
    pub cost: Option<Board>,
}

/// The plugin in the cache, in use.
pub struct Built {
    entry: Entry,
    cost: Option<Board>,
}

impl Built {
    /// The plugin with a fresh folder for one boot.
    pub fn with_folder(&self, parent: &Path) -> Result<Loaded> {
        let folder = parent.join("analyzer");
        let failed = |e| lab_failure(format!("{}: {e}", folder.display()));
        fs::create_dir(&folder).map_err(failed)?;
        if let Some(board) = self.cost {
            fs::write(folder.join(BOARD), board.name()).map_err(failed)?;
        }
        Ok(Loaded { plugin: self.entry.path().join(PLUGIN), folder, cost: self.cost })
    }
}

/// Builds the plugin for this version of QEMU, unless it is in the cache; `None` for a machine without analyzer.
pub fn build(
    machine: &Machine,
    qemu_version: &str,
    cache: &Cache,
    progress: &Progress,
) -> Result<Option<Built>> {
    if !machine.analyzer {
        return Ok(None);
    }
    if machine.clock != Clock::Virtual {
        return Err(Failure::unable("lab: analyzer: needs the virtual clock"));
    }
    let interface = interface_version(qemu_version);
    if !has_plugins(&programs::path(machine.arch.qemu()))? {
        let why = format!("lab: analyzer: QEMU {qemu_version} is built without plugins (Debian's has them)");
        return Err(Failure::unable(why));
    }
    programs::require(&[programs::GCC])?;
    let mut hasher = DefaultHasher::new();
    (SOURCES, FLAGS).hash(&mut hasher);
    let name = format!("drivers/analyzer-{}-{:016x}-{interface}", machine.arch.debian(), hasher.finish());
    let entry = cache.entry(&name, progress, |new| {
        let _step = progress.step(&format!("building the analyzer for QEMU {qemu_version}"));
        compile(new, machine.arch, interface)
    })?;
    Ok(Some(Built { entry, cost: machine.cost }))
}

/// The version of the plugin interface to build for: that of QEMU, at most 3, which all later ones accept.
/// <https://www.qemu.org/docs/master/devel/tcg-plugins.html>
fn interface_version(qemu_version: &str) -> u8 {
    let mut numbers = qemu_version.split('.').map(|number| number.parse().unwrap_or(0));
    match (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) {
        (0..=8, _) => 1,
        (9, 0) => 2,
        _ => 3,
    }
}

/// Whether QEMU has the option `-plugin`, which it has only when it was built with plugins.
fn has_plugins(qemu: &Path) -> Result<bool> {
    let output = apt::run(&qemu.to_string_lossy(), &["--help"], Path::new("/"))?;
    Ok(String::from_utf8_lossy(&output.stdout).lines().any(|line| line.starts_with("-plugin ")))
}

/// The source of what differs between processors.
fn processor(arch: Arch) -> &'static str {
    match arch {
        Arch::Amd64 => "x86.c",
        Arch::Arm64 => "arm64.c",
    }
}

fn compile(folder: &Path, arch: Arch, interface: u8) -> Result<()> {
    for (name, text) in SOURCES {
        let file = folder.join(name);
        fs::write(&file, text).map_err(|e| lab_failure(format!("{}: {e}", file.display())))?;
    }
    let output = Command::new(programs::path(programs::GCC))
        .args(FLAGS)
        .args([&format!("-DAPI={interface}"), "-o", PLUGIN, "analyzer.c", "cost.c", "qemu.c"])
        .arg(processor(arch))
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .map_err(|e| lab_failure(format!("gcc: {e}")))?;
    if output.status.success() {
        return Ok(());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    if errors.contains("fatal error: ") {
        let install = Family::host().install(&[HEADERS]);
        return Err(lab_failure(format!("analyzer: gcc finds no headers of the C library ({install})")));
    }
    let lines: Vec<_> = errors.lines().filter(|line| !line.trim().is_empty()).take(8).collect();
    Err(lab_failure(format!("analyzer in {}:\n  gcc: {}", folder.display(), lines.join("\n  gcc: "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_qemu_gets_an_interface_that_it_accepts() {
        for (qemu, interface) in [("7.2.22", 1), ("8.2.4", 1), ("9.0.1", 2), ("9.1.0", 3), ("10.0.2", 3)] {
            assert_eq!(interface_version(qemu), interface, "{qemu}");
        }
    }

    #[test]
    fn the_plugin_compiles_for_every_interface_and_processor() {
        for (interface, arch) in (1..=3).flat_map(|interface| Arch::ALL.map(|arch| (interface, arch))) {
            let folder = tempfile::tempdir().unwrap();
            compile(folder.path(), arch, interface).unwrap();
            assert!(folder.path().join(PLUGIN).is_file());
        }
    }

    #[test]
    fn a_qemu_without_plugins_is_recognised_by_its_help() {
        let folder = tempfile::tempdir().unwrap();
        let qemu = folder.path().join("qemu");
        for (help, has) in [("-plugin [file=]<file>[,<argname>=<argvalue>]", true), ("-pidfile file", false)]
        {
            fs::write(&qemu, format!("#!/bin/sh\necho '{help}'\n")).unwrap();
            fs::set_permissions(&qemu, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
            assert_eq!(has_plugins(&qemu).unwrap(), has, "{help}");
        }
    }
}

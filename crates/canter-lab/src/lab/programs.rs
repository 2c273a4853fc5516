//! The programs of the host that the lab needs. One check covers all, so that one message lists all missing ones.

use super::{
    distribution::{Family, Packages},
    lab_failure,
};
use canter_cli::failure::Result;
use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// A program and the packages that contain it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Program {
    pub name: &'static str,
    pub packages: Packages,
}

const fn program(name: &'static str, debian: &'static str, fedora: &'static str) -> Program {
    Program { name, packages: Packages { debian, fedora } }
}

pub const QEMU: Program = program("qemu-system-x86_64", "qemu-system-x86", "qemu-system-x86-core");
pub const QEMU_ARM: Program = program("qemu-system-aarch64", "qemu-system-arm", "qemu-system-aarch64-core");
pub const BUSYBOX: Program = program("busybox", "busybox-static", "busybox");
pub const DEPMOD: Program = program("depmod", "kmod", "kmod");
pub const XZ: Program = program("xz", "xz-utils", "xz");
pub const ZSTD: Program = program("zstd", "zstd", "zstd");
/// Ends QEMU when the lab is killed: `PR_SET_PDEATHSIG` without a line of unsafe code.
pub const SETPRIV: Program = program("setpriv", "util-linux", "util-linux");
/// What a test in a container sets interfaces up by.
pub const IP: Program = program("ip", "iproute2", "iproute");
pub const APT: Program = program("apt-cache", "apt", "apt");
pub const MAKE: Program = program("make", "make", "make");
pub const GCC: Program = program("gcc", "gcc", "gcc");

/// The programs that every lab needs in addition to QEMU.
pub const ALWAYS: &[Program] = &[BUSYBOX, DEPMOD, XZ, ZSTD, SETPRIV];

/// A program's path, also in folders that are often only in root's PATH.
pub fn find(program: Program) -> Option<PathBuf> {
    in_path(program.name)
}

/// The path of a program by its name.
pub fn in_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin", "/sbin"].map(PathBuf::from));
    folders.map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// The path of a program that `require` has found.
pub fn path(program: Program) -> PathBuf {
    find(program).unwrap_or_else(|| PathBuf::from(program.name))
}

/// Fails with one message that lists all missing programs and their packages.
pub fn require(programs: &[Program]) -> Result<()> {
    match complaint(programs, Family::host(), |program| find(program).is_some()) {
        Some(complaint) => Err(lab_failure(complaint)),
        None => Ok(()),
    }
}

/// Installs the packages of missing programs, as root of a container in which nothing is installed yet.
pub fn install(programs: &[Program]) -> Result<()> {
    let missing: Vec<_> = programs.iter().copied().filter(|program| find(*program).is_none()).collect();
    let knows_packages = Path::new("/var/lib/apt/lists").read_dir().is_ok_and(|lists| {
        lists.flatten().any(|list| list.file_name().to_string_lossy().ends_with("_Packages"))
    });
    if missing.is_empty() && knows_packages {
        return Ok(());
    }
    if Family::host() != Family::Debian {
        return require(programs);
    }
    apt(&["update"])?;
    if missing.is_empty() {
        return Ok(());
    }
    let packages: Vec<&str> = missing.iter().map(|program| program.packages.debian).collect();
    eprintln!("lab: installing {}", packages.join(" "));
    // The keyring checks the lists of other suites, and --no-install-recommends leaves it out.
    apt(&[&["install", "-y", "--no-install-recommends", "debian-archive-keyring"], &packages[..]].concat())
}

/// Runs apt-get(8), whose messages appear only when it fails.
fn apt(arguments: &[&str]) -> Result<()> {
    let failed = |why: &str| lab_failure(format!("apt-get {}: {why}", arguments.join(" ")));
    let mut command = Command::new("apt-get");
    command.arg("-q").args(arguments).env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null());
    let output = command.output().map_err(|error| failed(&error.to_string()))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("failed");
    if output.status.success() { Ok(()) } else { Err(failed(last)) }
}

fn complaint(programs: &[Program], family: Family, has: impl Fn(Program) -> bool) -> Option<String> {
    let missing: Vec<_> = programs.iter().copied().filter(|program| !has(*program)).collect();
    if missing.is_empty() {
        return None;
    }
    let names: Vec<_> = missing.iter().map(|program| program.name).collect();
    let packages: Vec<_> = missing.iter().map(|program| program.packages).collect();
    Some(format!("missing programs: {} ({})", names.join(", "), family.install(&packages)))
}

/// Whether an ELF program has no interpreter (PT_INTERP), and so runs without libraries.
pub fn is_static(program: &Path) -> bool {
    const PT_INTERP: u32 = 3;
    let Ok(bytes) = std::fs::read(program) else { return false };
    let number = |at: usize, width: usize| {
        let field = bytes.get(at..at + width)?;
        Some(field.iter().rev().fold(0_u64, |value, byte| value << 8 | u64::from(*byte)) as usize)
    };
    let headers = (|| Some((number(0x20, 8)?, number(0x36, 2)?, number(0x38, 2)?)))();
    let Some((start, size, count)) = headers else { return false };
    bytes.starts_with(b"\x7fELF")
        && (0..count).all(|i| number(start + i * size, 4) != Some(PT_INTERP as usize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_lists_all_missing_programs_and_their_packages() {
        let missing = |family| complaint(&[QEMU, BUSYBOX, XZ], family, |program| program == BUSYBOX);
        let wanted = "missing programs: qemu-system-x86_64, xz (apt-get install qemu-system-x86 xz-utils)";
        assert_eq!(missing(Family::Debian).as_deref(), Some(wanted));
        let wanted = "missing programs: qemu-system-x86_64, xz (dnf install qemu-system-x86-core xz)";
        assert_eq!(missing(Family::Fedora).as_deref(), Some(wanted));
        assert!(complaint(&[QEMU], Family::Debian, |_| true).is_none());
    }

    #[test]
    fn a_program_with_an_interpreter_is_not_static() {
        assert!(!is_static(&std::env::current_exe().unwrap()));
        assert!(!is_static(Path::new("/etc/passwd")));
    }
}

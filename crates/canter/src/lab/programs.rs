//! The programs of the host that the lab needs. One check covers all, so that one message lists all missing ones.

use super::lab_failure;
use crate::failure::Result;
use std::path::{Path, PathBuf};

/// A program and the Debian package that contains it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Program(pub &'static str, pub &'static str);

pub const QEMU: Program = Program("qemu-system-x86_64", "qemu-system-x86");
pub const QEMU_ARM: Program = Program("qemu-system-aarch64", "qemu-system-arm");
pub const BUSYBOX: Program = Program("busybox", "busybox-static");
pub const DEPMOD: Program = Program("depmod", "kmod");
pub const XZ: Program = Program("xz", "xz-utils");
pub const ZSTD: Program = Program("zstd", "zstd");
/// Ends QEMU when the lab is killed: `PR_SET_PDEATHSIG` without a line of unsafe code.
pub const SETPRIV: Program = Program("setpriv", "util-linux");
pub const MAKE: Program = Program("make", "make");
pub const GCC: Program = Program("gcc", "gcc");

/// What every lab needs in addition to QEMU.
pub const ALWAYS: &[Program] = &[BUSYBOX, DEPMOD, XZ, ZSTD, SETPRIV];

/// A program's path. Also searches folders that are often only in root's PATH.
pub fn find(program: Program) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin", "/sbin"].map(PathBuf::from));
    folders.map(|folder| folder.join(program.0)).find(|file| file.is_file())
}

/// The path of a program that `require` has found.
pub fn path(program: Program) -> PathBuf {
    find(program).unwrap_or_else(|| PathBuf::from(program.0))
}

/// Fails with one message that lists all missing programs and their packages.
pub fn require(programs: &[Program]) -> Result<()> {
    match complaint(programs, |program| find(program).is_some()) {
        Some(complaint) => Err(lab_failure(complaint)),
        None => Ok(()),
    }
}

fn complaint(programs: &[Program], has: impl Fn(Program) -> bool) -> Option<String> {
    let missing: Vec<_> = programs.iter().copied().filter(|program| !has(*program)).collect();
    if missing.is_empty() {
        return None;
    }
    let names: Vec<_> = missing.iter().map(|p| p.0).collect();
    let packages: Vec<_> = missing.iter().map(|p| p.1).collect();
    Some(format!("missing programs: {} (apt-get install {})", names.join(", "), packages.join(" ")))
}

/// Whether an ELF program has no interpreter (PT_INTERP): then it runs without libraries.
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
        let complaint = complaint(&[QEMU, BUSYBOX, XZ], |program| program == BUSYBOX);
        let wanted = "missing programs: qemu-system-x86_64, xz (apt-get install qemu-system-x86 xz-utils)";
        assert_eq!(complaint.as_deref(), Some(wanted));
        assert!(super::complaint(&[QEMU], |_| true).is_none());
    }

    #[test]
    fn a_program_with_an_interpreter_is_not_static() {
        assert!(!is_static(&std::env::current_exe().unwrap()));
        assert!(!is_static(Path::new("/etc/passwd")));
    }
}

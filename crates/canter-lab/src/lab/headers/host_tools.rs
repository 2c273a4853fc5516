//! The programs that a kernel's build runs (modpost, objtool). Debian builds them for its own release; on an older one the
//! libc lacks what they need. Each such program is then started by the loader of its own release's libc, which lies beside.

use crate::lab::{
    apt::{self, Apt},
    lab_failure,
    progress::Progress,
};
use canter_cli::failure::Result;
use std::{
    collections::BTreeSet,
    fs,
    io::{self, Read},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// The package with the programs.
pub const PACKAGE: &str = "linux-kbuild-";
/// The folder in the headers' entry with the libc and its loader.
const LIBC: &str = "libc";
/// The end of the name of a program that a script of its name starts.
const PROGRAM: &str = ".elf";

/// Makes the programs of the extracted `packages` run on this host.
pub fn adapt(apt: &Apt, packages: &[&String], entry: &Path, progress: &Progress) -> Result<()> {
    let failed = |e: io::Error| lab_failure(format!("{}: programs of the build: {e}", entry.display()));
    let programs = programs(&entry.join("usr/lib")).map_err(failed)?;
    let programs: Vec<_> = programs.into_iter().filter(|program| lacks_a_library(program)).collect();
    let Some(package) = packages.iter().find(|name| name.starts_with(PACKAGE)) else { return Ok(()) };
    if programs.is_empty() {
        return Ok(());
    }
    let libc = entry.join(LIBC);
    fs::create_dir(&libc).map_err(failed)?;
    for library in libraries(apt, package)? {
        apt::extract(apt, &library, &libc, progress)?;
    }
    let loader = find(&libc, &|name| name.starts_with("ld-linux") && name.contains(".so"));
    let loader = loader.ok_or_else(|| lab_failure(format!("{}: no ld-linux in libc6", libc.display())))?;
    let loader = loader.strip_prefix(entry).unwrap_or(&loader);
    programs.iter().try_for_each(|program| start_by(loader, program, entry)).map_err(failed)
}

/// The packages with the libraries that a package's programs need.
fn libraries(apt: &Apt, package: &str) -> Result<BTreeSet<String>> {
    let is_library = |name: &String| name.starts_with("lib") || name.starts_with("zlib");
    let mut found = BTreeSet::new();
    let mut next = vec![package.to_owned()];
    while let Some(package) = next.pop() {
        for library in apt::depends(apt, &package)?.into_iter().filter(is_library) {
            if found.insert(library.clone()) {
                next.push(library);
            }
        }
    }
    Ok(found)
}

/// The ELF programs below `folder`.
fn programs(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut programs = Vec::new();
    for entry in fs::read_dir(folder)? {
        let (entry, mut start) = (entry?, [0; 4]);
        let about = entry.metadata()?;
        if about.is_dir() {
            programs.extend(self::programs(&entry.path())?);
        } else if about.is_file() && about.permissions().mode() & 0o100 != 0 {
            let read = fs::File::open(entry.path())?.read(&mut start)?;
            if read == 4 && start == *b"\x7fELF" {
                programs.push(entry.path());
            }
        }
    }
    Ok(programs)
}

/// Whether the host's loader finds a library, or a version of one, that the program lacks. ld.so(8): with
/// LD_TRACE_LOADED_OBJECTS a program lists its libraries instead of running.
fn lacks_a_library(program: &Path) -> bool {
    let output = Command::new(program)
        .env("LD_TRACE_LOADED_OBJECTS", "1")
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output();
    output.is_ok_and(|output| {
        [output.stdout, output.stderr].iter().any(|text| String::from_utf8_lossy(text).contains("not found"))
    })
}

/// Puts a script in the program's place that starts it by `loader`, a path below `entry`. The entry can be moved.
fn start_by(loader: &Path, program: &Path, entry: &Path) -> io::Result<()> {
    let below = program.strip_prefix(entry).unwrap_or(program);
    let (loader, below) = (loader.display(), below.display());
    let mut elf = program.as_os_str().to_owned();
    elf.push(PROGRAM);
    fs::rename(program, &elf)?;
    let script = format!(
        "#!/bin/sh\n# {below} needs the libc of its Debian release.\nprogram=$(readlink -f \"$0\")\n\
         entry=${{program%/{below}}}\nloader=$entry/{loader}\n\
         exec \"$loader\" --library-path \"${{loader%/*}}\" \"$program{PROGRAM}\" \"$@\"\n"
    );
    fs::write(program, script)?;
    fs::set_permissions(program, fs::Permissions::from_mode(0o755))
}

/// The first file below `folder` with a name that fits, links included, folders by name first.
fn find(folder: &Path, fits: &dyn Fn(&str) -> bool) -> Option<PathBuf> {
    let mut entries: Vec<_> = fs::read_dir(folder).ok()?.flatten().collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    let (folders, files): (Vec<_>, Vec<_>) =
        entries.iter().partition(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let file = files.iter().find(|entry| {
        fits(&entry.file_name().to_string_lossy()) && entry.file_type().is_ok_and(|kind| kind.is_file())
    });
    file.map(|entry| entry.path()).or_else(|| folders.iter().find_map(|entry| find(&entry.path(), fits)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program of the host, its own loader, and the program's place in a package.
    fn entry(root: &Path) -> (PathBuf, PathBuf) {
        let program = root.join("usr/lib/linux-kbuild-7.3/scripts/mod/echo");
        fs::create_dir_all(program.parent().unwrap()).unwrap();
        fs::copy("/bin/echo", &program).unwrap();
        let loader = ["/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"];
        let loader = loader.into_iter().find(|file| Path::new(file).exists()).unwrap();
        let libraries = fs::canonicalize(loader).unwrap();
        std::os::unix::fs::symlink(libraries.parent().unwrap(), root.join(LIBC)).unwrap();
        (program, Path::new(LIBC).join(libraries.file_name().unwrap()))
    }

    #[test]
    fn a_program_starts_by_the_loader_beside_it_also_by_a_link_and_in_a_moved_entry() {
        let folder = tempfile::tempdir().unwrap();
        let (new, moved) = (folder.path().join(".new"), folder.path().join("headers"));
        let (program, loader) = entry(&new);
        assert!(!lacks_a_library(&program));
        assert_eq!(programs(&new.join("usr/lib")).unwrap(), std::slice::from_ref(&program));
        start_by(&loader, &program, &new).unwrap();
        fs::rename(&new, &moved).unwrap();
        std::os::unix::fs::symlink("lib/linux-kbuild-7.3/scripts", moved.join("usr/scripts")).unwrap();
        let output = Command::new(moved.join("usr/scripts/mod/echo")).arg("a  b").output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "a  b\n");
    }
}

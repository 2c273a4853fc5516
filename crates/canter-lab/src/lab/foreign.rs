//! The root of a machine of another architecture: Debian's packages of that architecture from the host's own apt
//! sources, extracted, never installed and never configured. Enough for a shell, `ip`, can-utils and our tests.

use super::{
    apt::{Apt, state::State},
    arch::Arch,
    cache::{Cache, Entry},
    lab_failure,
    progress::Progress,
};
use canter_cli::failure::Result;
use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// The packages of the root; with their dependencies, about 60.
const PACKAGES: &[&str] = &[
    "base-files",
    "bash",
    "busybox-static",
    "can-utils",
    "coreutils",
    "findutils",
    "grep",
    "iproute2",
    "kmod",
    "libgcc-s1",
    "mount",
    "procps",
    "sed",
    "util-linux",
];
/// Folders that are links into /usr since Debian's usrmerge.
const JOINED: &[&str] = &["bin", "lib", "sbin"];

/// The apt of another architecture, with a state of its own and the host's sources.
pub fn apt(arch: Arch, cache: &Cache, progress: &Progress) -> Result<Apt> {
    let name = arch.debian().to_owned();
    State { lists: name.clone(), name, arch, sources: None }.open(cache, progress)
}

fn failed(path: &Path, step: &str, error: std::io::Error) -> canter_cli::failure::Failure {
    lab_failure(format!("{}: {step}: {error}", path.display()))
}

/// The root of another architecture, made once.
pub fn root(arch: Arch, cache: &Cache, progress: &Progress) -> Result<Entry> {
    cache.entry(&format!("roots/{}", arch.debian()), progress, |new| {
        let apt = apt(arch, cache, progress)?;
        let debs = download(&apt, new, progress)?;
        let _step = progress.step(&format!("extracting {} packages", debs.len()));
        for name in JOINED {
            fs::create_dir_all(new.join("usr").join(name)).map_err(|e| failed(new, "create", e))?;
            symlink(format!("usr/{name}"), new.join(name)).map_err(|e| failed(new, "link", e))?;
        }
        debs.iter().try_for_each(|deb| unpack(deb, new))?;
        fs::remove_dir_all(new.join(DOWNLOADS)).map_err(|e| failed(new, "remove", e))?;
        // A package's script would make this link, but scripts are not run.
        if !new.join("usr/bin/sh").exists() {
            symlink("bash", new.join("usr/bin/sh")).map_err(|e| failed(new, "link", e))?;
        }
        fs::write(new.join("etc/passwd"), "root:x:0:0:root:/root:/bin/bash\n")
            .map_err(|e| failed(new, "write", e))
    })
}

const DOWNLOADS: &str = ".downloads";

fn download(apt: &Apt, folder: &Path, progress: &Progress) -> Result<Vec<PathBuf>> {
    let _step = progress.step("downloading a root file system");
    let downloads = folder.join(DOWNLOADS);
    fs::create_dir_all(downloads.join("partial")).map_err(|e| failed(folder, "create", e))?;
    let place = format!("Dir::Cache::archives={}", downloads.display());
    let mut arguments =
        vec!["install", "-y", "-q", "--no-install-recommends", "--download-only", "-o", place.as_str()];
    arguments.extend(PACKAGES);
    apt.run("apt-get", &arguments, folder)?;
    let entries = fs::read_dir(&downloads).map_err(|e| failed(&downloads, "read", e))?;
    let files = entries.flatten().map(|entry| entry.path());
    let mut debs: Vec<_> = files.filter(|path| path.extension().is_some_and(|e| e == "deb")).collect();
    debs.sort();
    Ok(debs)
}

/// Extracts a package; unlike `dpkg-deb -x`, leaves links to folders as they are.
fn unpack(deb: &Path, root: &Path) -> Result<()> {
    let pack = Command::new("dpkg-deb").arg("--fsys-tarfile").arg(deb).stdout(Stdio::piped()).spawn();
    let mut pack = pack.map_err(|e| failed(deb, "dpkg-deb", e))?;
    let tar = pack.stdout.take().map_or_else(Stdio::null, Stdio::from);
    let unpacked = Command::new("tar")
        .args(["-x", "--keep-directory-symlink", "--no-same-owner", "-C"])
        .arg(root)
        .stdin(tar)
        .output()
        .map_err(|e| failed(deb, "tar", e))?;
    let packed = pack.wait().map_err(|e| failed(deb, "dpkg-deb", e))?;
    if unpacked.status.success() && packed.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&unpacked.stderr);
    Err(lab_failure(format!(
        "{}: unpack: {}",
        deb.display(),
        stderr.lines().last().unwrap_or("dpkg-deb failed")
    )))
}

/// The folder of canter for another architecture, if Cargo has built it beside this program.
pub fn program_folder(arch: Arch) -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let profile = program.parent()?;
    let folder = profile.parent()?.join(arch.target()).join(profile.file_name()?);
    folder.join("canter").is_file().then_some(folder)
}

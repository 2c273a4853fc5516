//! One run of a command: its folder on the host, and a boot or, where the first one fails early, two.

use super::{
    apt,
    arch::Arch,
    guest::{self, Boot, Outcome},
    here::Here,
    initramfs,
    kernel::Kernel,
    lab_failure,
    machine::{Ended, Machine},
    progress::Progress,
    signals::Signals,
    streams::Streams,
};
use crate::failure::Result;
use canter_io::sys::file;
use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

/// All that is the same in every boot of one run.
pub struct Run<'a> {
    pub kernel: &'a Kernel,
    pub here: &'a Here,
    pub root: &'a Path,
    pub read_only: &'a [(&'static str, PathBuf)],
    pub folder: &'a Path,
    pub token: &'a str,
    pub qemu_version: &'a str,
    pub signals: &'a Signals,
}

impl Run<'_> {
    /// About one boot in a hundred with several emulated processors dies early (code patching): once more, then.
    pub fn boot_twice(
        &self,
        machine: &Machine,
        command: &[String],
        streams: impl Fn() -> Result<Streams>,
        progress: &Progress,
    ) -> Result<Ended> {
        let outcome = self.boot(machine, command, "first", streams()?, progress)?;
        let outcome = match outcome {
            Outcome::NotBegun(_) => {
                progress.say("boot failed before the command, trying once more");
                self.boot(machine, command, "second", streams()?, progress)?
            }
            outcome => outcome,
        };
        match outcome {
            Outcome::Ended(ended) => Ok(ended),
            Outcome::NotBegun(failure) | Outcome::Failed(failure) => Err(failure),
        }
    }

    /// One boot in a folder of its own.
    pub fn boot(
        &self,
        machine: &Machine,
        command: &[String],
        name: &str,
        streams: Streams,
        progress: &Progress,
    ) -> Result<Outcome> {
        let folder = self.folder.join(name);
        fs::create_dir(&folder).map_err(|e| lab_failure(format!("{}: {e}", folder.display())))?;
        let (here, token) = (self.here, self.token);
        let session = initramfs::Session {
            command,
            folder: &here.folder,
            shares: &here.shares,
            token,
            root: self.root,
            read_only: self.read_only,
        };
        let initramfs = folder.join("initramfs");
        fs::write(&initramfs, initramfs::build(machine, self.kernel, &session, progress)?)
            .map_err(|e| lab_failure(format!("{}: {e}", initramfs.display())))?;
        let console = match &machine.console {
            Some(file) => std::path::absolute(file).unwrap_or_else(|_| file.clone()),
            None => folder.join("console"),
        };
        File::create(&console).map_err(|e| lab_failure(format!("console {}: {e}", console.display())))?;
        let boot = Boot {
            machine,
            kernel: &self.kernel.image,
            initramfs: &initramfs,
            shares: &here.shares,
            root: self.root,
            read_only: self.read_only,
            folder: &folder,
            console: &console,
            token,
            qemu_version: self.qemu_version,
            signals: self.signals,
        };
        guest::boot(&boot, streams)
    }
}

const RUN_FOLDER: &str = "canter-lab-";

/// A folder for one run, and a lock on it that ends with us however we end: folders without a holder are swept away.
pub fn folder() -> io::Result<(tempfile::TempDir, File)> {
    for entry in fs::read_dir(std::env::temp_dir())?.flatten() {
        let ours = entry.file_name().to_string_lossy().starts_with(RUN_FOLDER);
        if ours
            && File::open(entry.path().join("lock")).is_ok_and(|lock| file::try_lock(&lock).unwrap_or(false))
        {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    let folder = tempfile::Builder::new().prefix(RUN_FOLDER).tempdir()?;
    // Locked before it has its name, so that nobody finds it without its holder.
    let lock = File::create(folder.path().join("new"))?;
    file::try_lock(&lock)?;
    fs::rename(folder.path().join("new"), folder.path().join("lock"))?;
    Ok((folder, lock))
}

/// Ends a stream: beginning with characters that text does not have, and random, so that no output contains it.
pub fn token() -> io::Result<String> {
    let random = fs::read_to_string("/proc/sys/kernel/random/uuid")?;
    Ok(format!("\u{1}\u{4}{}", random.trim()))
}

pub fn qemu_version(arch: Arch) -> Result<String> {
    let qemu = arch.qemu().0;
    let output = apt::run(qemu, &["--version"], Path::new("/"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let version = text.split("version ").nth(1).and_then(|rest| rest.split_whitespace().next());
    version.map(str::to_owned).ok_or_else(|| lab_failure(format!("{qemu} --version: {}", text.trim())))
}

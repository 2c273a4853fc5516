//! One run of a command, from the kernel to the exit code: its folder on the host, and one boot, or two when the first
//! fails before the command begins.

use super::{
    analyzer::{self, Built},
    arch, bring_up,
    cache::{Cache, Entry},
    fd_driver, foreign,
    guest::{self, Boot, Outcome, Start},
    here::Here,
    initramfs,
    kernel::{self, Kernel},
    kvm, lab_failure,
    machine::{Ended, Machine},
    memory, out_of_tree, programs,
    progress::Progress,
    qemu_version,
    saved::Description,
    signals::Signals,
    streams::Streams,
    usb_stick,
};
use crate::analyzer::profile;
use canter_cli::failure::{Failure, Result};
use canter_io::file;
use std::{
    fs::{self, File},
    io,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
};

impl Machine {
    /// Runs a command with this process's streams; returns how it ended. `Err` is a failure of the lab.
    pub fn run(&self, command: &[String]) -> Result<Ended> {
        let streams = || Streams::inherited().map_err(|e| lab_failure(format!("standard streams: {e}")));
        self.run_with(command, streams)
    }

    /// Runs a command with the streams that `streams` makes; called again when a boot is repeated.
    ///
    /// A single word is a line for bash; several words are a program and its arguments. The command runs in the current
    /// folder. Files that it writes there are kept; all other changes are discarded. Blocks until the end; SIGINT,
    /// SIGTERM and SIGHUP end the guest.
    pub fn run_with(&self, command: &[String], streams: impl Fn() -> Result<Streams>) -> Result<Ended> {
        if let Some(why) = arch::obstacle(std::env::consts::ARCH) {
            return Err(Failure::unable(format!("lab: {why}")));
        }
        programs::require(&[&[self.arch.qemu()], programs::ALWAYS].concat())?;
        let progress = Progress::new(self.quiet).verbose(self.verbose);
        let signals = Signals::catch()?;
        let done = self.prepare_and_run(command, streams, &signals, &progress);
        match signals.caught() {
            // Ctrl-C during a download or a build ends that first.
            Some(signal) if done.is_err() => Ok(Ended::Interrupted(signal)),
            _ => done,
        }
    }

    fn prepare_and_run(
        &self,
        command: &[String],
        streams: impl Fn() -> Result<Streams>,
        signals: &Signals,
        progress: &Progress,
    ) -> Result<Ended> {
        let cache = Cache::open(Some(signals))?;
        let mut kernel = kernel::find(&self.kernel, self.arch, &cache, progress)?;
        if self.fd_cards > 0 {
            fd_driver::add(&mut kernel, &cache, progress)?;
        }
        for chosen in &self.modules {
            out_of_tree::add(chosen, &mut kernel, &cache, progress)?;
        }
        let here = Here::find(command, &self.shares, progress)?;
        let foreign = match self.arch.is_host() {
            true => None,
            false => Some(foreign::root(self.arch, &cache, progress)?),
        };
        let root = foreign.as_ref().map_or(Path::new("/"), Entry::path);
        let read_only = self.read_only(&kernel, progress);
        let qemu_version = qemu_version::find(self.arch, &cache)?;
        let analyzer = analyzer::build(self, &qemu_version, &cache, progress)?;
        let (folder, _held) = run_folder()
            .map_err(|e| lab_failure(format!("folder for the run: {e} (TMPDIR names another)")))?;
        let run = Run {
            cache: &cache,
            kernel: &kernel,
            here: &here,
            root,
            read_only: &read_only,
            folder: folder.path(),
            token: &token().map_err(|e| lab_failure(format!("random number: {e}")))?,
            qemu_version: &qemu_version,
            analyzer: analyzer.as_ref(),
            signals,
        };
        let key = kvm::Key { qemu_version: run.qemu_version, kernel: &kernel };
        let accel = kvm::choose(self, &cache, &key, progress, |machine, streams| {
            let nothing = ["true".to_owned(), String::new()];
            match run.boot(machine, Start::Boot, &nothing, "probe", streams, progress)? {
                Outcome::Ended(ended) => Ok(Some(ended)),
                Outcome::NotBegun(_) | Outcome::NotRestored(_) | Outcome::Failed(_) => Ok(None),
            }
        })?;
        let mut machine = Self { accel, ..self.clone() };
        bring_up::adapt(&mut machine, &kernel);
        if !kernel.packages.is_empty() {
            machine.append.push(format!("canter.packages={}", kernel.packages));
        }
        run.restore_or_boot(&machine, command, streams, progress)
    }

    /// Folders that the guest mounts read-only, because its root is not the host's.
    fn read_only(&self, kernel: &Kernel, progress: &Progress) -> Vec<(&'static str, PathBuf)> {
        if self.arch.is_host() {
            return Vec::new();
        }
        let modules = kernel.modules.clone().map(|folder| ("modules", folder));
        let program = foreign::program_folder(self.arch).map(|folder| ("program", folder));
        if program.is_none() && !self.quiet {
            let target = self.arch.target();
            progress.say(&format!("the guest has no canter (cargo build --target {target} builds it)"));
        }
        modules.into_iter().chain(program).collect()
    }
}

/// The data that all boots of one run share.
struct Run<'a> {
    cache: &'a Cache<'a>,
    kernel: &'a Kernel,
    here: &'a Here,
    root: &'a Path,
    read_only: &'a [(&'static str, PathBuf)],
    folder: &'a Path,
    token: &'a str,
    qemu_version: &'a str,
    analyzer: Option<&'a Built>,
    signals: &'a Signals,
}

impl Run<'_> {
    /// Restores the machine if it was saved; otherwise boots it.
    fn restore_or_boot(
        &self,
        machine: &Machine,
        command: &[String],
        streams: impl Fn() -> Result<Streams>,
        progress: &Progress,
    ) -> Result<Ended> {
        if !machine.can_be_saved() {
            if machine.saved.is_some() {
                progress.detail("QEMU cannot save this machine: it boots");
            }
            return self.boot_twice(machine, Start::Boot, command, streams, progress);
        }
        if let Some(host) = memory::host_has_only(&machine.memory) {
            let wanted = &machine.memory;
            return Err(lab_failure(format!(
                "the guest's memory, {wanted}, is more than this host's {host}M (--memory)"
            )));
        }
        let description = Description::new(machine, self.kernel, self.here.shares.len(), self.qemu_version)?;
        match description.find(self.cache) {
            Ok(Some(saved)) => {
                progress.detail(&format!("restoring {} (--boot boots)", description.name()));
                match self.boot(machine, Start::Restore(&saved), command, "restored", streams()?, progress)? {
                    Outcome::Ended(ended) => return Ok(ended),
                    Outcome::Failed(failure) => return Err(failure),
                    Outcome::NotRestored(why) => progress.detail(&format!("{why}: the machine boots")),
                    Outcome::NotBegun(failure) => {
                        progress.detail(&format!("{}: the machine boots", failure.message));
                    }
                }
            }
            Ok(None) => {}
            Err(why) => progress.detail(&format!("{}: {why}: the machine boots", description.name())),
        }
        self.boot_twice(machine, Start::Save(&description, self.cache), command, streams, progress)
    }

    /// Boots, and boots once more after an early failure: with several emulated processors about one boot in a hundred
    /// fails, by code patching.
    fn boot_twice(
        &self,
        machine: &Machine,
        start: Start,
        command: &[String],
        streams: impl Fn() -> Result<Streams>,
        progress: &Progress,
    ) -> Result<Ended> {
        let outcome = self.boot(machine, start, command, "first", streams()?, progress)?;
        let outcome = match outcome {
            Outcome::NotBegun(_) => {
                progress.say("boot failed before the command began: booting once more");
                self.boot(machine, start, command, "second", streams()?, progress)?
            }
            outcome => outcome,
        };
        match outcome {
            Outcome::Ended(ended) => Ok(ended),
            Outcome::NotBegun(failure) | Outcome::Failed(failure) => Err(failure),
            Outcome::NotRestored(_) => unreachable!("it was to boot"),
        }
    }

    /// Boots once, with a folder of its own.
    fn boot(
        &self,
        machine: &Machine,
        start: Start,
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
            visible: &here.visible,
            token,
            read_only: self.read_only,
        };
        let initramfs = folder.join("initramfs");
        // QEMU reads it before it restores a machine, which has no more use for it.
        let first_files = match start {
            Start::Restore(_) => Vec::new(),
            Start::Boot | Start::Save(..) => initramfs::boot(machine, self.kernel, self.root, progress)?,
        };
        fs::write(&initramfs, first_files)
            .map_err(|e| lab_failure(format!("{}: {e}", initramfs.display())))?;
        let analyzer = self.analyzer.map(|built| built.with_folder(&folder)).transpose()?;
        let usb_stick = folder.join("usb-stick");
        if machine.usb_stick {
            usb_stick::make(&usb_stick).map_err(|e| lab_failure(format!("{}: {e}", usb_stick.display())))?;
        }
        let console = match &machine.console {
            Some(file) => std::path::absolute(file).unwrap_or_else(|_| file.clone()),
            None => folder.join("console"),
        };
        File::create(&console).map_err(|e| lab_failure(format!("console {}: {e}", console.display())))?;
        let boot = Boot {
            machine,
            start,
            session: &initramfs::session(machine, self.kernel, &session),
            kernel: &self.kernel.image,
            initramfs: &initramfs,
            shares: &here.shares,
            root: self.root,
            read_only: self.read_only,
            analyzer: analyzer.as_ref(),
            usb_stick: machine.usb_stick.then_some(&usb_stick),
            folder: &folder,
            console: &console,
            token,
            qemu_version: self.qemu_version,
            signals: self.signals,
            progress,
        };
        let outcome = guest::boot(&boot, streams)?;
        if let (Outcome::Ended(_), Some(to), Some(loaded)) = (&outcome, &machine.profile, &analyzer) {
            keep_profile(&loaded.folder, to)?;
        }
        Ok(outcome)
    }
}

/// Keeps the profile that the guest has left in the analyzer's folder. A command that was interrupted has none.
fn keep_profile(folder: &Path, to: &Path) -> Result<()> {
    match fs::copy(folder.join(profile::FILE), to) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(lab_failure(format!("profile: {}: {error}", to.display())))
        }
        _ => Ok(()),
    }
}

const RUN_FOLDER: &str = "canter-lab-";

/// A folder for one run, for this user only, with a lock that the kernel releases when this process ends.
fn run_folder() -> io::Result<(tempfile::TempDir, File)> {
    let temporary = std::env::temp_dir();
    remove_leftovers(&temporary)?;
    let only_own = fs::Permissions::from_mode(0o700);
    let folder = tempfile::Builder::new().prefix(RUN_FOLDER).permissions(only_own).tempdir_in(temporary)?;
    // Locked before it gets its name, so that another lab never finds it unlocked.
    let lock = File::create(folder.path().join("new"))?;
    file::try_lock(&lock)?;
    fs::rename(folder.path().join("new"), folder.path().join("lock"))?;
    Ok((folder, lock))
}

/// Removes unlocked folders of this user's earlier runs. Anybody may make entries of any kind in a temporary folder, so
/// opening a lock does not wait, as it would on a FIFO.
fn remove_leftovers(temporary: &Path) -> io::Result<()> {
    let user = fs::metadata("/proc/self")?.uid();
    for entry in fs::read_dir(temporary)?.flatten() {
        let is_ours = entry.metadata().is_ok_and(|about| about.is_dir() && about.uid() == user);
        if !is_ours || !entry.file_name().to_string_lossy().starts_with(RUN_FOLDER) {
            continue;
        }
        let lock = file::open_at_once(&entry.path().join("lock"));
        if lock.is_ok_and(|lock| file::try_lock(&lock).unwrap_or(false)) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    Ok(())
}

/// Marks the end of a stream. Control characters and random digits: no output contains it by chance.
fn token() -> io::Result<String> {
    let random = fs::read_to_string("/proc/sys/kernel/random/uuid")?;
    Ok(format!("\u{1}\u{4}{}", random.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn nobody_elses_entry_in_the_temporary_folder_is_waited_for_or_removed() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = |name: &str| {
            let path = temporary.path().join(format!("{RUN_FOLDER}{name}"));
            fs::create_dir(&path).unwrap();
            path
        };
        let [left, running, unlocked, fifo] = ["left", "running", "unlocked", "fifo"].map(folder);
        File::create(left.join("lock")).unwrap();
        let held = File::create(running.join("lock")).unwrap();
        assert!(file::try_lock(&held).unwrap());
        assert!(Command::new("mkfifo").arg(fifo.join("lock")).status().unwrap().success());
        let link = temporary.path().join(format!("{RUN_FOLDER}link"));
        std::os::unix::fs::symlink(&unlocked, &link).unwrap();
        remove_leftovers(temporary.path()).unwrap();
        assert!(!left.exists() && running.exists() && unlocked.exists() && link.is_symlink());
    }
}

//! The virtual machine: what it is, and what one run of a command in it takes, from the kernel to the exit code.

use super::{
    arch::Arch,
    cache::Cache,
    fd_driver, foreign,
    guest::Outcome,
    here::Here,
    kernel::{self, Kernel},
    kvm, lab_failure,
    module::Chosen,
    out_of_tree, programs,
    progress::Progress,
    run::{self, Run},
    signals::Signals,
    streams::Streams,
};
use crate::failure::{Failure, Result};
use clap::ValueEnum;
use std::{path::PathBuf, time::Duration};

/// What a second is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Clock {
    Real,    // the host's time; figures are as noisy as the host
    Virtual, // counted instructions (QEMU's icount); figures repeat
}

/// What executes the guest's instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Accel {
    Auto,
    Tcg,
    Kvm,
}

impl Accel {
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto | Self::Tcg => "tcg",
            Self::Kvm => "kvm",
        }
    }
}

/// A machine to run commands in.
#[derive(Clone, Debug)]
pub struct Machine {
    /// A series (`6.12-rt`) or the path of a tree.
    pub kernel: String,
    pub arch: Arch,
    pub clock: Clock,
    /// In the virtual clock an instruction takes 2^shift ns.
    pub shift: u8,
    pub cpus: u8,
    /// As QEMU reads it: `2G`.
    pub memory: String,
    /// SJA1000 cards, 0…5.
    pub cards: u8,
    /// CAN FD cards of two channels, 0…2.
    pub fd_cards: u8,
    /// Kernel modules of ours, in the order to load them.
    pub modules: Vec<Chosen>,
    /// Two network cards on one hub.
    pub net: bool,
    /// systemd is process 1.
    pub systemd: bool,
    /// Folders, beside the current one, in which changes stay.
    pub shares: Vec<PathBuf>,
    pub accel: Accel,
    /// Words for the kernel's command line.
    pub append: Vec<String>,
    /// For one boot, from its start to the end of the command.
    pub timeout: Duration,
    pub console: Option<PathBuf>,
    pub quiet: bool,
    pub verbose: bool,
}

impl Default for Machine {
    fn default() -> Self {
        Self {
            kernel: "6.12".to_owned(),
            arch: Arch::Amd64,
            clock: Clock::Real,
            shift: 0,
            cpus: 1,
            memory: "2G".to_owned(),
            cards: 5,
            fd_cards: 0,
            modules: Vec::new(),
            net: false,
            systemd: false,
            shares: Vec::new(),
            accel: Accel::Auto,
            append: Vec::new(),
            timeout: Duration::from_secs(600),
            console: None,
            quiet: false,
            verbose: false,
        }
    }
}

/// How a command in the lab ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// With its exit code: 128 + N when signal N ended it.
    Exit(u8),
    /// This signal reached us, and the guest was ended.
    Interrupted(i32),
    /// Nobody reads our output any more, and the guest was ended.
    OutputClosed,
}

impl Ended {
    /// The exit code as a shell would tell it.
    pub fn code(self) -> u8 {
        let of_signal = |signal: i32| 128 + u8::try_from(signal).unwrap_or(0);
        match self {
            Self::Exit(code) => code,
            Self::Interrupted(signal) => of_signal(signal),
            Self::OutputClosed => of_signal(signal_hook::consts::SIGPIPE),
        }
    }
}

impl Machine {
    /// Runs a command with our own streams and tells how it ended; an `Err` is a failure of the lab.
    pub fn run(&self, command: &[String]) -> Result<Ended> {
        let streams = || Streams::inherited().map_err(|e| lab_failure(format!("standard streams: {e}")));
        self.run_with(command, streams)
    }

    /// Runs a command with the streams that `streams` makes: once, or twice when a boot has to be tried again.
    ///
    /// One word is a line for bash, several are a program and its arguments. The command's folder is the current
    /// one; what it writes there stays, all else is thrown away. Blocks until the end; SIGINT, SIGTERM and SIGHUP end
    /// the guest.
    pub fn run_with(&self, command: &[String], streams: impl Fn() -> Result<Streams>) -> Result<Ended> {
        if !cfg!(target_arch = "x86_64") {
            let here = std::env::consts::ARCH;
            return Err(Failure::unable(format!(
                "lab: this machine is {here}: the lab's machine is an x86-64 PC"
            )));
        }
        programs::require(&[&[self.arch.qemu()], programs::ALWAYS].concat())?;
        let progress = Progress::new(self.quiet);
        let signals = Signals::catch()?;
        let done = self.prepare_and_run(command, streams, &signals, &progress);
        match signals.caught() {
            // Ctrl-C while a package is downloaded or a driver built ends that first.
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
        let cache = Cache::open()?;
        let mut kernel = kernel::find(&self.kernel, self.arch, &cache, progress)?;
        if self.fd_cards > 0 {
            fd_driver::add(&mut kernel, &cache, progress)?;
        }
        for chosen in &self.modules {
            out_of_tree::add(chosen, &mut kernel, &cache, progress)?;
        }
        let here = Here::find(&self.shares, progress)?;
        let (root, read_only) = self.root(&kernel, &cache, progress)?;
        let (folder, _held) = run::folder()
            .map_err(|e| lab_failure(format!("folder for the run: {e} (TMPDIR names another)")))?;
        let run = Run {
            kernel: &kernel,
            here: &here,
            root: &root,
            read_only: &read_only,
            folder: folder.path(),
            token: &run::token().map_err(|e| lab_failure(format!("random number: {e}")))?,
            qemu_version: &run::qemu_version(self.arch)?,
            signals,
        };
        let accel = kvm::choose(self, &cache, run.qemu_version, progress, |machine, streams| {
            let nothing = ["true".to_owned(), String::new()];
            match run.boot(machine, &nothing, "probe", streams, progress)? {
                Outcome::Ended(ended) => Ok(Some(ended)),
                Outcome::NotBegun(_) | Outcome::Failed(_) => Ok(None),
            }
        })?;
        run.boot_twice(&Self { accel, ..self.clone() }, command, streams, progress)
    }

    /// Adds a module, unless the machine has it.
    pub fn load(&mut self, chosen: Chosen) {
        if !self.modules.iter().any(|one| one.module.name() == chosen.module.name()) {
            self.modules.push(chosen);
        }
    }

    /// What the guest finds as its root; and what else it reads, where that is not the host's.
    fn root(
        &self,
        kernel: &Kernel,
        cache: &Cache,
        progress: &Progress,
    ) -> Result<(PathBuf, Vec<(&'static str, PathBuf)>)> {
        if self.arch.is_host() {
            return Ok((PathBuf::from("/"), Vec::new()));
        }
        let root = foreign::root(self.arch, cache, progress)?;
        let modules = kernel.modules.clone().map(|folder| ("modules", folder));
        let program = foreign::program_folder(self.arch).map(|folder| ("program", folder));
        if program.is_none() && !self.quiet {
            let target = self.arch.target();
            progress.say(&format!("no canter in this machine: cargo build --target {target} makes it"));
        }
        Ok((root, modules.into_iter().chain(program).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_has_the_exit_code_that_a_shell_would_tell() {
        let table = [
            (Ended::Exit(7), 7),
            (Ended::Interrupted(2), 130),
            (Ended::Interrupted(15), 143),
            (Ended::OutputClosed, 141),
        ];
        for (ended, code) in table {
            assert_eq!(ended.code(), code);
        }
    }
}

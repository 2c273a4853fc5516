//! The description of the virtual machine, and how a command in it ended.

use super::{arch::Arch, memory, module::Chosen};
use crate::analyzer::board::Board;
use clap::ValueEnum;
use std::{num::NonZero, path::PathBuf, thread, time::Duration};

/// The clock of the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Clock {
    Real,    // the host's time; figures are as noisy as the host
    Virtual, // counted instructions (QEMU's icount); figures repeat
}

/// The accelerator that executes the guest's instructions.
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
    /// The kernel: a series (`6.12-rt`) or the path of a tree.
    pub kernel: String,
    pub arch: Arch,
    pub clock: Clock,
    /// The duration of an instruction in the virtual clock: 2^shift ns.
    pub shift: u8,
    pub cpus: u8,
    /// The size of the memory as QEMU reads it: `2G`.
    pub memory: String,
    /// The number of SJA1000 cards, 0…5.
    pub cards: u8,
    /// The number of CAN FD cards of two channels, 0…2.
    pub fd_cards: u8,
    /// Our kernel modules, in the order to load them.
    pub modules: Vec<Chosen>,
    /// Whether the machine has two network cards on one hub.
    pub net: bool,
    /// Whether the machine has a USB stick.
    pub usb_stick: bool,
    /// Whether systemd is process 1.
    pub systemd: bool,
    /// Folders whose changes are kept, in addition to the current one.
    pub shares: Vec<PathBuf>,
    pub accel: Accel,
    /// The number of the saved machine to restore; machines of different numbers are saved from separate boots. `None`: a
    /// boot of its own.
    pub saved: Option<u32>,
    /// Whether QEMU loads the analyzer's plugin.
    pub analyzer: bool,
    /// Whose costs the analyzer counts besides instructions.
    pub cost: Option<Board>,
    /// Where the profile of the command is written, if it has one; it needs the analyzer.
    pub profile: Option<PathBuf>,
    /// Whether the command has a terminal, whose size follows the host's.
    pub terminal: bool,
    /// Words for the kernel's command line.
    pub append: Vec<String>,
    /// Timeout of one boot, from its start to the end of the command.
    pub timeout: Duration,
    pub console: Option<PathBuf>,
    pub quiet: bool,
    pub verbose: bool,
}

impl Default for Machine {
    fn default() -> Self {
        Self {
            kernel: "6.12".to_owned(),
            arch: Arch::default(),
            clock: Clock::Real,
            shift: 0,
            cpus: 1,
            memory: "2048M".to_owned(),
            cards: 5,
            fd_cards: 0,
            modules: Vec::new(),
            net: false,
            usb_stick: false,
            systemd: false,
            shares: Vec::new(),
            accel: Accel::Auto,
            saved: Some(0),
            analyzer: false,
            cost: None,
            profile: None,
            terminal: false,
            append: Vec::new(),
            timeout: Duration::from_secs(600),
            console: None,
            quiet: false,
            verbose: false,
        }
    }
}

/// The number of machines that the host runs without one waiting for another: one for each processor, if its memory is enough.
pub fn at_once() -> usize {
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    let guests = memory::guests_of(&Machine::default().memory).and_then(|count| usize::try_from(count).ok());
    processors.min(guests.unwrap_or(1)).max(1)
}

/// How a command in the lab ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The command ended with this exit code: 128 + N when signal N ended it.
    Exit(u8),
    /// The lab received this signal and ended the guest.
    Interrupted(i32),
    /// The reader of the lab's output closed it, and the lab ended the guest.
    OutputClosed,
}

impl Ended {
    /// The exit code as a shell reports it.
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
    /// Whether QEMU can save this machine: a PC without the host's own processor.
    pub fn can_be_saved(&self) -> bool {
        self.saved.is_some() && self.arch == Arch::Amd64 && self.arch.is_host() && self.accel != Accel::Kvm
    }

    /// Adds a module, unless the machine has it.
    pub fn load(&mut self, chosen: Chosen) {
        if !self.modules.iter().any(|one| one.module.name() == chosen.module.name()) {
            self.modules.push(chosen);
            // Those that need others come behind them.
            self.modules.sort_by_key(|one| !one.loading.needs.is_empty());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_has_the_exit_code_that_a_shell_reports() {
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

//! What differs between the architectures of the lab's machine. An architecture other than the host's gets a root made
//! of Debian's packages (`foreign`); the rest is the same.

use super::programs::{self, Program};
use clap::ValueEnum;

/// An architecture, by Debian's name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Arch {
    /// A PC (q35) with the host's root
    #[default]
    Amd64,
    /// An emulated Arm board (QEMU's virt, Cortex-A53) with the same cards and its own Debian root
    Arm64,
}

impl Arch {
    pub const ALL: [Self; 2] = [Self::Amd64, Self::Arm64];

    /// Its name in Debian's packages.
    pub fn debian(self) -> &'static str {
        match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
        }
    }

    /// The folder below `target` in which Cargo builds for it.
    pub fn target(self) -> &'static str {
        match self {
            Self::Amd64 => "x86_64-unknown-linux-gnu",
            Self::Arm64 => "aarch64-unknown-linux-gnu",
        }
    }

    pub fn qemu(self) -> Program {
        match self {
            Self::Amd64 => programs::QEMU,
            Self::Arm64 => programs::QEMU_ARM,
        }
    }

    /// QEMU's name of the board.
    pub fn board(self) -> &'static str {
        match self {
            Self::Amd64 => "q35",
            Self::Arm64 => "virt",
        }
    }

    /// The processor that QEMU emulates when it does not use the host's.
    pub fn processor(self) -> &'static str {
        match self {
            Self::Amd64 => "max",
            Self::Arm64 => "cortex-a53",
        }
    }

    pub fn console(self) -> &'static str {
        match self {
            Self::Amd64 => "ttyS0",
            Self::Arm64 => "ttyAMA0",
        }
    }

    /// Whether programs of the host run in the machine.
    pub fn is_host(self) -> bool {
        self == Self::Amd64
    }
}

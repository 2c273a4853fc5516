//! What differs between the architectures of the lab's machine. The host's architecture gets the host's root, another one
//! a root made of Debian's packages (`foreign`).

use super::programs::{self, Program};
use clap::ValueEnum;
use serde::Deserialize;

/// An architecture, by Debian's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arch {
    /// A PC (q35)
    Amd64,
    /// An Arm board (QEMU's virt, Cortex-A53) with the same cards
    Arm64,
}

impl Default for Arch {
    /// The host's architecture; where the lab does not run, a PC.
    fn default() -> Self {
        Self::host().unwrap_or(Self::Amd64)
    }
}

impl Arch {
    pub const ALL: [Self; 2] = [Self::Amd64, Self::Arm64];

    /// The host's architecture; `None`: the lab has no machine for it.
    pub fn host() -> Option<Self> {
        Self::named(std::env::consts::ARCH)
    }

    /// The architecture with this name in Rust.
    fn named(processor: &str) -> Option<Self> {
        match processor {
            "x86_64" => Some(Self::Amd64),
            "aarch64" => Some(Self::Arm64),
            _ => None,
        }
    }

    /// The architecture's name in Debian's packages.
    pub fn debian(self) -> &'static str {
        match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
        }
    }

    /// The folder below `target` in which Cargo builds for the architecture.
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

    /// The processor that QEMU emulates when it does not use the host's. A PC's has no ERMS and no FSRM: with them, Linux
    /// clears a page by one instruction that QEMU counts 4 096 times, once for each byte; without, by 512 of eight bytes each.
    pub fn processor(self) -> &'static str {
        match self {
            Self::Amd64 => "max,-erms,-fsrm",
            Self::Arm64 => "cortex-a53",
        }
    }

    /// Words for the kernel's command line on the processor that QEMU emulates.
    ///
    /// `clearcpuid=141`: the kernel does not use `cmpxchg16b`. QEMU before 8.0 leaves another instruction's operands in the
    /// flags after it. An interrupt right behind it, in the allocator, returned with them; string instructions then ran
    /// backwards, and the kernel died of the memory that they overwrote. Programs see the feature: NumPy does not start
    /// without it.
    ///
    /// `nokaslr`: with a kernel at a random place, Linux maps it into no program (KPTI), on a processor that has no need of it.
    /// A PC's kernel is at a fixed place here, too.
    pub fn kernel_words(self) -> &'static str {
        match self {
            Self::Amd64 => " clearcpuid=141",
            Self::Arm64 => " nokaslr",
        }
    }

    /// Words for the kernel's command line on a machine whose programs have to be at different addresses: of an arm64
    /// kernel's usual 18 random bits, one pair of programs in fifty is not.
    pub fn random_addresses(self) -> &'static str {
        match self {
            Self::Amd64 => "",
            Self::Arm64 => " sysctl.vm.mmap_rnd_bits=28",
        }
    }

    pub fn console(self) -> &'static str {
        match self {
            Self::Amd64 => "ttyS0",
            Self::Arm64 => "ttyAMA0",
        }
    }

    /// The path of the kernel in a build tree.
    pub fn built_image(self) -> &'static str {
        match self {
            Self::Amd64 => "arch/x86/boot/bzImage",
            Self::Arm64 => "arch/arm64/boot/Image",
        }
    }

    /// Whether QEMU starts the uncompressed kernel that a packed one contains.
    pub fn unpacks(self) -> bool {
        self == Self::Amd64
    }

    /// Whether programs of the host run in the machine.
    pub fn is_host(self) -> bool {
        Self::host() == Some(self)
    }
}

/// The reason why the lab does not run on this host.
pub fn obstacle(processor: &str) -> Option<String> {
    match Arch::named(processor) {
        Some(_) => None,
        None => Some(format!("this machine is {processor}: the lab needs an x86-64 or arm64 machine")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pc_and_an_arm64_host_get_their_own_board_and_others_a_reason() {
        let board = |processor| Arch::named(processor).map(|arch| (arch.board(), arch.qemu().name));
        assert_eq!(board("x86_64"), Some(("q35", "qemu-system-x86_64")));
        assert_eq!(board("aarch64"), Some(("virt", "qemu-system-aarch64")));
        assert_eq!(obstacle("aarch64"), None);
        for other in ["arm", "riscv64", "x86"] {
            assert_eq!(board(other), None);
            let wanted = format!("this machine is {other}: the lab needs an x86-64 or arm64 machine");
            assert_eq!(obstacle(other), Some(wanted));
        }
    }
}

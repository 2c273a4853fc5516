//! The interfaces of a testbed before a study: bit rates, and the processor that handles the interrupts.

use canter_cli::failure::{self, Failure};
use canter_io::{
    Interface,
    interface::{BitTiming, Kind},
};
use std::fs;

/// The sender's processor.
pub const SENDER_CPU: usize = 0;

/// The bit rates of a testbed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    Classic,
    Fd,
    /// Frames on canchar's virtual devices take no time.
    Timeless,
}

impl Rate {
    /// The papers' bit rate.
    const NOMINAL: u32 = 1_000_000;
    const DATA: u32 = 4_000_000;

    pub fn of(fd: bool) -> Self {
        if fd { Self::Fd } else { Self::Classic }
    }

    fn timing(self) -> BitTiming {
        match self {
            Self::Classic => BitTiming::classic(Self::NOMINAL),
            Self::Fd => BitTiming::fd(Self::NOMINAL, Self::DATA),
            Self::Timeless => BitTiming::classic(0),
        }
    }

    fn is_of(self, interface: &Interface) -> bool {
        let data = if self == Self::Fd { Some(Self::DATA) } else { None };
        let nominal = if self == Self::Timeless { None } else { Some(Self::NOMINAL) };
        interface.bitrate() == nominal && interface.data_bitrate() == data
    }
}

/// Brings an interface up at the papers' bit rate.
pub fn set_up(name: &str, rate: Rate) -> failure::Result<Interface> {
    let mut interface = match Interface::find(name) {
        Err(_) if name.starts_with("vcan") => Interface::create_vcan(name)?,
        found => found?,
    };
    if matches!(interface.kind, Kind::Can | Kind::Canchar) && !rate.is_of(&interface) {
        interface.down()?;
        interface.set_bit_timing(&rate.timing())?;
    }
    interface.up()?;
    Ok(interface)
}

/// Routes the interrupts of these interfaces to one processor.
pub fn place_interrupts(interfaces: &[&str], processor: usize) -> failure::Result<()> {
    let table = fs::read_to_string("/proc/interrupts")
        .map_err(|error| Failure::failed(format!("/proc/interrupts: read: {error}")))?;
    for line in interrupts_of(&table, interfaces) {
        let path = format!("/proc/irq/{line}/smp_affinity_list");
        fs::write(&path, processor.to_string())
            .map_err(|error| Failure::unable(format!("{path}: write {processor}: {error} (needs root)")))?;
    }
    Ok(())
}

/// The numbers of the lines in /proc/interrupts whose last column names one of `interfaces`.
fn interrupts_of<'a>(table: &'a str, interfaces: &[&str]) -> Vec<&'a str> {
    let named = |line: &&str| {
        let mut names = line.rsplit("  ").next().unwrap_or_default().split([',', ' ']);
        names.any(|name| interfaces.contains(&name))
    };
    table.lines().filter(named).filter_map(|line| line.trim_start().split(':').next()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrupts_are_found_by_the_interface_that_owns_them() {
        let table = "           CPU0       CPU1       \n  \
                     16:        120          0   IO-APIC  16-fasteoi   can4\n  \
                     20:          0          0   IO-APIC  20-fasteoi   can0, virtio2\n \
                     NMI:          0          0   Non-maskable interrupts\n";
        assert_eq!(interrupts_of(table, &["can0", "can1"]), ["20"]);
        assert_eq!(interrupts_of(table, &["can4"]), ["16"]);
        assert!(interrupts_of(table, &["can"]).is_empty());
    }
}

//! canchar in the guest: the module, virtual devices, and cards that it drives instead of the kernel's own driver.

use super::{
    Kernel,
    cache::Cache,
    out_of_tree::{self, Source, sources},
    progress::Progress,
    topology,
};
use crate::failure::Result;
use std::path::PathBuf;

/// Devices on one bus that `virtual` stands for.
const VIRTUAL: u8 = 2;

/// Every file that it is built from.
pub(super) const SOURCE: Source = Source {
    name: "canchar",
    folder: "canchar",
    files: sources! {
        "uapi/canchar.h" "canchar/Kbuild" "canchar/canchar.h" "compat.h" "canchar/ring.h" "canchar/main.c" "canchar/core.c"
        "canchar/send.c" "canchar/device.c" "canchar/chip.h"
        "canchar/file.c" "canchar/ioctl.c" "canchar/queue.c" "canchar/sysfs.c" "canchar/chip_sja1000.h"
        "canchar/chip_sja1000_hot.h" "canchar/chip_sja1000.c" "canchar/chip_sja1000_setup.c" "canchar/chip_virtual.h"
        "canchar/chip_virtual.c" "canchar/board_kvaser_pci.h" "canchar/board_kvaser_pci.c" "canchar/board_virtual.c"
    },
};

/// Which devices there are, in their order: `virtual,3,4` makes canchar0 and canchar1, canchar2 of can3, canchar3 of
/// can4.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Devices {
    with_virtual: bool,
    cards: Vec<u8>,
}

impl std::str::FromStr for Devices {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let mut devices = Self { with_virtual: false, cards: Vec::new() };
        for (at, item) in text.split(',').enumerate() {
            match item.parse::<u8>() {
                _ if item == "virtual" && at == 0 => devices.with_virtual = true,
                Ok(card) if devices.cards.contains(&card) => return Err(format!("card {card} twice")),
                Ok(card) if usize::from(card) < topology::SJA1000_CARDS.len() => devices.cards.push(card),
                _ => return Err("virtual, numbers of SJA1000 cards (0…4), or both: virtual,3,4".to_owned()),
            }
        }
        Ok(devices)
    }
}

impl Devices {
    /// The largest number of cards that the machine must have.
    pub fn cards_needed(&self) -> u8 {
        self.cards.iter().max().map_or(0, |card| card + 1)
    }

    /// The module's parameters.
    pub fn parameters(&self) -> String {
        format!("virtual={}", if self.with_virtual { VIRTUAL } else { 0 })
    }

    /// The PCI addresses of the cards.
    pub fn addresses(&self) -> String {
        let address = |&card: &u8| topology::card_address(card);
        self.cards.iter().map(address).collect::<Vec<_>>().join(" ")
    }
}

/// The module for this kernel.
pub fn module(kernel: &Kernel, cache: &Cache, progress: &Progress) -> Result<PathBuf> {
    out_of_tree::build(&SOURCE, kernel, cache, progress)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cards_are_named_by_their_numbers_and_bound_by_their_addresses() {
        let devices: Devices = "virtual,3,4".parse().unwrap();
        assert_eq!(devices.parameters(), "virtual=2");
        assert_eq!(devices.addresses(), "0000:00:07.0 0000:00:1a.0");
        assert_eq!(devices.cards_needed(), 5);
        for text in ["", "5", "3,3", "3,virtual", "can3"] {
            assert!(text.parse::<Devices>().is_err(), "{text}");
        }
    }
}

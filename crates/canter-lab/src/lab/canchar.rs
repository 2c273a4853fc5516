//! canchar in the guest: the module, virtual devices, and cards that it drives instead of the kernel's own driver.

use super::{
    module::{Choice, Loading, Module, Source, sources},
    topology,
};

/// The number of devices on one bus that `virtual` makes.
const VIRTUAL: u8 = 2;

/// Every source file of the module.
const SOURCE: Source = Source {
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

pub(super) const MODULE: Module = Module {
    load,
    driver: "canchar_kvaser_pci",
    ..Module::plain(
        SOURCE,
        Choice::Value("canchar", "LIST"),
        "Load the module canchar: `virtual` for two virtual devices, numbers of SJA1000 cards that it drives",
    )
};

/// Reads the list of devices: `virtual,3,4` makes canchar0 and canchar1 (virtual), canchar2 of can3, canchar3 of can4.
fn load(text: &str) -> Result<Loading, String> {
    let (mut devices, mut cards) = (0, Vec::new());
    for (at, item) in text.split(',').enumerate() {
        match item.parse::<u8>() {
            _ if item == "virtual" && at == 0 => devices = VIRTUAL,
            Ok(card) if cards.contains(&card) => return Err(format!("card {card} is given twice")),
            Ok(card) if usize::from(card) < topology::SJA1000_CARDS.len() => cards.push(card),
            _ => {
                return Err(
                    "expected virtual, numbers of SJA1000 cards (0…4), or both: virtual,3,4".to_owned()
                );
            }
        }
    }
    Ok(Loading { parameters: format!("virtual={devices}"), cards })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_virtual_ones_and_then_cards_by_their_numbers() {
        let loading = |parameters: &str, cards: &[u8]| {
            Ok(Loading { parameters: parameters.to_owned(), cards: cards.to_vec() })
        };
        assert_eq!(load("virtual,3,4"), loading("virtual=2", &[3, 4]));
        assert_eq!(load("4,0"), loading("virtual=0", &[4, 0]));
        for text in ["", "5", "3,3", "3,virtual", "can3"] {
            assert!(load(text).is_err(), "{text}");
        }
    }
}

//! canchar in the guest: the module, virtual devices, nodes of canwire in place of their interfaces, and cards that it
//! drives instead of the kernel's own driver.

use super::{
    module::{Choice, Loading, Module, Source, sources},
    topology, wire,
};

/// The number of devices on one bus that `virtual` makes.
const VIRTUAL: u8 = 2;

/// Every source file of the module.
const SOURCE: Source = Source {
    name: "canchar",
    folder: "canchar",
    files: sources! {
        "uapi/canchar.h" "canchar/Kbuild" "canchar/canchar.h" "compat.h" "canchar/ring.h" "canchar/main.c" "canchar/core.c"
        "canchar/bit_timing.h" "canwire/driver.h" "canchar/send.c" "canchar/device.c" "canchar/thread.c" "canchar/chip.h"
        "canchar/file.c" "canchar/ioctl.c" "canchar/queue.c" "canchar/memory.c" "canchar/sysfs.c" "canchar/chip_sja1000.h"
        "canchar/chip_sja1000_hot.h" "canchar/chip_sja1000.c" "canchar/chip_sja1000_setup.c" "canchar/chip_virtual.h"
        "canchar/chip_virtual.c" "canchar/chip_wire.h" "canchar/chip_wire.c" "canchar/board_kvaser_pci.h"
        "canchar/board_kvaser_pci.c" "canchar/board_virtual.c" "canchar/board_wire.c"
    },
};

pub(super) const MODULE: Module = Module {
    load,
    driver: "canchar_kvaser_pci",
    ..Module::plain(
        SOURCE,
        Choice::Value("canchar", "LIST"),
        "Load the module canchar: `virtual` for two virtual devices, nodes of wires (`wcan1`, with --bus wire) and \
         numbers of SJA1000 cards that it drives",
    )
};

/// Reads the list of devices: `virtual,wcan1,3` makes canchar0 and canchar1 (virtual), canchar2 of wcan1, canchar3 of can3.
fn load(text: &str) -> Result<Loading, String> {
    let (mut devices, mut nodes, mut cards) = (0, Vec::new(), Vec::new());
    for (at, item) in text.split(',').enumerate() {
        match item.parse::<u8>() {
            _ if item == "virtual" && at == 0 => devices = VIRTUAL,
            _ if nodes.contains(&item) => return Err(format!("node {item} is given twice")),
            _ if wire::has_node(item) && cards.is_empty() => nodes.push(item),
            Ok(card) if cards.contains(&card) => return Err(format!("card {card} is given twice")),
            Ok(card) if usize::from(card) < topology::SJA1000_CARDS.len() => cards.push(card),
            _ => {
                return Err(
                    "expected virtual, nodes of wires (wcan0…wcan4), numbers of SJA1000 cards (0…4), or \
                            several in this order: virtual,wcan1,3"
                        .to_owned(),
                );
            }
        }
    }
    let virtual_devices = format!("virtual={devices}");
    Ok(match nodes.is_empty() {
        true => Loading { parameters: virtual_devices, cards, needs: "" },
        false => {
            let parameters = format!("{virtual_devices} wire={}", nodes.join(","));
            Loading { parameters, cards, needs: wire::MODULE.source.name }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_virtual_ones_then_nodes_and_then_cards_by_their_numbers() {
        let loading = |parameters: &str, cards: &[u8]| {
            Ok(Loading { parameters: parameters.to_owned(), cards: cards.to_vec(), needs: "" })
        };
        assert_eq!(load("virtual,3,4"), loading("virtual=2", &[3, 4]));
        assert_eq!(load("4,0"), loading("virtual=0", &[4, 0]));
        let of_wires =
            |parameters: &str, cards: &[u8]| Ok(Loading { needs: "canwire", ..loading(parameters, cards)? });
        assert_eq!(load("wcan1,wcan3"), of_wires("virtual=0 wire=wcan1,wcan3", &[]));
        assert_eq!(load("virtual,wcan0,3"), of_wires("virtual=2 wire=wcan0", &[3]));
        for text in ["", "5", "3,3", "3,virtual", "can3", "wcan5", "wcan1,wcan1", "3,wcan1", "wcan1,virtual"]
        {
            assert!(load(text).is_err(), "{text}");
        }
    }
}

//! Kvaser's PCI cards. Source: Linux, drivers/net/can/sja1000/kvaser_pci.c; QEMU's `-device kvaser_pci` is one with a single
//! controller.

use super::board::Board;

/// PCIcan: up to four controllers behind an AMCC S5920, and a Xilinx in the third region that nothing here needs.
pub const PCICAN: Board = Board {
    name: "Kvaser PCIcan",
    ids: &[(0x10e8, 0x8406), (0x1a07, 0x0008)], // under AMCC's vendor, and under Kvaser's own
    bridge_region: 0,
    channels_region: 1,
    channels_max: 4,
    crystal_hz: 16_000_000,
    output: 0xda, // normal output mode, both outputs push-pull
    clock: 0x47,  // input comparator bypassed, clock output not divided
};

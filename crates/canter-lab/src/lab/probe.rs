//! canprobe, the exact instrument on SJA1000 cards, built for the guest's kernel and loaded there. It uses no card
//! until `canter latency --instrument probe` gives it two.

use super::module::{Choice, Module, Source, sources};

/// Every source file of the module; it shares the chip with canchar, and the pair of cards with canbare.
const SOURCE: Source = Source {
    name: "canprobe",
    folder: "probe",
    files: sources! {
        "uapi/canprobe.h" "uapi/canchar.h" "canchar/chip_sja1000.h" "canchar/chip_sja1000_setup.c" "canchar/bit_timing.h"
        "canchar/board_kvaser_pci.h" "card_pair.h" "card_pair.c" "compat.h" "probe/Kbuild" "probe/probe.h" "probe/main.c"
        "probe/instrument.c" "probe/handler.c"
    },
};

pub(super) const MODULE: Module = Module::plain(
    SOURCE,
    Choice::Bus("probe"),
    "as sja1000, with the module canprobe for `canter latency --instrument probe`",
);

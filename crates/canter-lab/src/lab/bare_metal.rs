//! A processor without an operating system beside the guest's Linux, and canbare, which starts it: built for the
//! guest's kernel and loaded there. It starts nothing until `canter gateway --method bare-metal` requests it.

use super::{
    arch::Arch,
    module::{Choice, Module, Source, sources},
};

/// Every source file of the module; the card and its chip's registers are canchar's.
const SOURCE: Source = Source {
    name: "canbare",
    folder: "canbare",
    files: sources! {
        "uapi/canbare.h" "uapi/canchar.h" "canchar/chip_sja1000.h" "canchar/board_kvaser_pci.h" "canbare/Kbuild"
        "canbare/canbare.h" "canbare/main.c" "canbare/processor.c" "card_pair.h" "card_pair.c"
    },
};

/// Keeps Linux on its own processors, and off the memory where the other one starts (CANBARE_MEMORY).
fn kernel_words(processors: u8) -> String {
    format!("maxcpus={processors} memmap=64K$0x10000")
}

pub(super) const MODULE: Module = Module {
    arch: Some(Arch::Amd64),
    processors: 1,
    kernel_words,
    ..Module::plain(
        SOURCE,
        Choice::Flag("bare-metal"),
        "Add a processor that Linux does not use, and load the module canbare: for --method bare-metal",
    )
};

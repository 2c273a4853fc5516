//! canwire, the virtual bus with bit timing, built for the guest's kernel from the sources in this program, and loaded
//! with the nodes of the papers' testbed.

use super::module::{Choice, Loading, Module, Source, sources};

/// The nodes and their buses, wired like can0…can4, which also exist.
const NODES: &str = "wcan0:A,wcan1:A,wcan2:B,wcan3:A,wcan4:B";

/// Whether there is a node of this name.
pub(super) fn has_node(name: &str) -> bool {
    NODES.split(',').any(|node| node.split(':').next() == Some(name))
}

/// The frames that each tap keeps: 4 MiB a bus. A measurement reads them after its last frame.
const TAP_RECORDS: u32 = 32_768;

/// Every source file of the module.
const SOURCE: Source = Source {
    name: "canwire",
    folder: "canwire",
    files: sources! {
        "uapi/canwire.h" "canwire/Kbuild" "canwire/bits.c" "canwire/bits.h" "canwire/bus.h"
        "compat.h" "canwire/controller.c" "canwire/driver.c" "canwire/driver.h" "canwire/faults.c" "canwire/handover.c" "canwire/main.c"
        "canwire/netlink.c" "canwire/netlink.h" "canwire/netlink_get.c" "canwire/netlink_source.c"
        "canwire/node.c" "canwire/node.h" "canwire/rest.c" "canwire/source.c" "canwire/source.h" "canwire/tap.c"
        "canwire/tap.h" "canwire/wire.c" "canwire/wire.h"
    },
};

pub(super) const MODULE: Module = Module {
    load: |_| {
        Ok(Loading { parameters: format!("nodes={NODES} tap_records={TAP_RECORDS}"), ..Loading::default() })
    },
    ..Module::plain(
        SOURCE,
        Choice::Bus("wire"),
        "also wcan0…wcan4 on buses A and B of canwire, which has bits, arbitration and hardware stamps",
    )
};

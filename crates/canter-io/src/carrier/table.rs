//! The register of carriers: a row each, and the functions that fill its columns.

use super::{
    Access, Carrier, PciCard, Remedies, UsualMethods, canchar, network, port, refuse_to_delete, sim,
};
use crate::frame_counters;

/// Every carrier. The network is the last one, since its names begin with anything.
pub static CARRIERS: &[&Carrier] = &[&SIM, &CANCHAR, &PORT, &NETWORK];

/// Interfaces of the kernel's network: `can0`, `vcan0`.
pub static NETWORK: Carrier = Carrier {
    name: "network",
    about: "an interface of the network",
    prefix: "",
    access: Access::Sockets,
    usual: UsualMethods { receive: "read", receive_spinning: "recvmmsg/spin", transmit: "write" },
    card: Some(PciCard { driver: Some("kvaser_pci"), name: network::name_of_card }),
    remedies: Remedies {
        up: network::up_by,
        needs_rate: |interface| interface.controller.is_some(),
        restart: network::restart_by,
        restart_always: network::restart_always_by,
    },
    find: network::find,
    refresh: network::refresh,
    refresh_state: network::refresh,
    counters: network::counters,
    frame_counters: |one| frame_counters::read(one.index, &one.name),
    set_up: network::set_up,
    set_mtu: network::set_mtu,
    set_tx_queue_len: network::set_tx_queue_len,
    set_bit_timing: network::set_bit_timing,
    delete: network::delete,
};

/// Devices of the module canchar: `/dev/canchar0`.
pub static CANCHAR: Carrier = Carrier {
    name: "canchar",
    about: "a canchar device",
    prefix: canchar::DEVICES,
    access: Access::File,
    usual: UsualMethods { receive: "canchar", receive_spinning: "canchar/spin", transmit: "canchar" },
    card: Some(PciCard { driver: Some("canchar_kvaser_pci"), name: canchar::name_of_card }),
    remedies: Remedies {
        up: canchar::up_by,
        needs_rate: canchar::needs_rate,
        restart: canchar::restart_by,
        restart_always: canchar::restart_always_by,
    },
    find: canchar::find,
    refresh: canchar::refresh,
    refresh_state: canchar::refresh_state,
    counters: canchar::counters,
    set_up: canchar::set_up,
    set_bit_timing: canchar::set_bit_timing,
    delete: refuse_to_delete,
    ..Carrier::PLAIN
};

/// Channels of cards that this process controls: `port:0000:00:07.0`.
pub static PORT: Carrier = Carrier {
    name: "port",
    about: "a card without a driver",
    prefix: port::PREFIX,
    usual: UsualMethods { receive: "port", receive_spinning: "port", transmit: "port" },
    card: Some(PciCard { driver: None, name: port::name_of_card }),
    find: port::find,
    refresh: port::refresh,
    refresh_state: port::refresh,
    counters: port::counters,
    set_up: port::set_up,
    set_bit_timing: port::set_bit_timing,
    delete: refuse_to_delete,
    ..Carrier::PLAIN
};

/// Buses in the memory of this process: `sim:world/bus`.
pub static SIM: Carrier = Carrier {
    name: "sim",
    about: "a simulated bus",
    prefix: sim::PREFIX,
    usual: UsualMethods { receive: "sim", receive_spinning: "sim", transmit: "sim" },
    find: sim::find,
    ..Carrier::PLAIN
};

/// The built-in carrier of an interface of this name; a name that no other prefix fits is the network's.
pub fn carrier_of(name: &str) -> &'static Carrier {
    Carrier::find_in(name, CARRIERS).unwrap_or(&NETWORK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_its_carrier_whether_it_exists_or_not() {
        for (name, carrier) in [
            ("can0", "network"),
            ("canchar0", "network"),
            ("", "network"),
            ("/dev/canchar7", "canchar"),
            ("port:0000:00:07.0,1@250000", "port"),
            ("sim:world/bus", "sim"),
        ] {
            assert_eq!(carrier_of(name).name, carrier, "{name:?}");
        }
    }

    #[test]
    fn only_the_last_row_fits_every_name_and_names_of_rows_are_unique() {
        let (last, others) = CARRIERS.split_last().unwrap();
        assert!(last.prefix.is_empty() && others.iter().all(|row| !row.prefix.is_empty()));
        for (at, row) in CARRIERS.iter().enumerate() {
            assert!(CARRIERS[..at].iter().all(|other| other.name != row.name), "{row:?} twice");
        }
    }
}

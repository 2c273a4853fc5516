//! Commands that make an interface carry frames again. They depend on its carrier: `ip` for network interfaces, sysfs
//! attributes for canchar devices.

use crate::{
    Error,
    carrier::{Interface, table},
    netlink::controller::State,
};
use std::io;

impl Interface {
    /// Why no frame can pass through it now, with the remedy: `is down (ip link set can0 up)`. `None` when frames can
    /// pass.
    pub fn not_ready(&self) -> Option<String> {
        if !self.up {
            return Some(format!("is down ({})", bring_up(self)));
        }
        let state = self.controller.as_ref().and_then(|controller| controller.state);
        (state == Some(State::BusOff)).then(|| format!("is bus-off ({})", restart(&self.name)))
    }
}

/// The command that brings an interface up or starts a device; with `rate`, it also sets a bit rate.
pub fn up(name: &str, rate: bool) -> String {
    (table::carrier_of(name).remedies.up)(name, rate)
}

/// The command that brings this interface up, with a bit rate if it needs one.
pub fn bring_up(interface: &Interface) -> String {
    let remedies = &interface.carrier.remedies;
    (remedies.up)(&interface.name, (remedies.needs_rate)(interface))
}

/// The command that restarts a controller after bus-off.
pub fn restart(name: &str) -> String {
    (table::carrier_of(name).remedies.restart)(name)
}

/// The command that makes a controller restart automatically, 100 ms after bus-off.
pub fn restart_by_itself(name: &str) -> String {
    (table::carrier_of(name).remedies.restart_always)(name)
}

impl Error {
    /// An error of receiving or sending, with the remedy that its error number suggests.
    pub fn moving(interface: &str, step: &'static str, source: io::Error) -> Self {
        let way_out = match source.raw_os_error() {
            Some(libc::ENETDOWN) => {
                format!("it is down: {}, and start again", up(interface, false))
            }
            Some(libc::ENODEV | libc::ENXIO) => "it has disappeared".to_owned(),
            Some(libc::EPERM | libc::EACCES) => "needs CAP_NET_RAW: run as root".to_owned(),
            _ => String::new(),
        };
        Self::new(interface, step, source).hint(way_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_set_by_its_attributes_and_an_interface_by_ip() {
        assert_eq!(up("can0", false), "ip link set can0 up");
        assert_eq!(up("/dev/canchar2", false), "echo 1 > /sys/class/canchar/canchar2/running");
        assert_eq!(restart("can0"), "ip link set can0 type can restart");
        assert_eq!(restart("/dev/canchar2"), "echo 1 > /sys/class/canchar/canchar2/running");
        assert_eq!(restart_by_itself("/dev/canchar2"), "echo 100 > /sys/class/canchar/canchar2/restart_ms");
    }
}

//! What is to be typed so that frames move through an interface again: `ip` for those of the network, attributes for
//! canchar devices.

use super::{Interface, Kind, State, canchar::DEVICES};

impl Interface {
    /// Why no frame can move through it now, and the way out: `is down (ip link set can0 up)`. `None` when frames can.
    pub fn not_ready(&self) -> Option<String> {
        let name = &self.name;
        if !self.up && self.kind != Kind::Sim {
            let needs_rate = match self.kind {
                Kind::Canchar => self.driver.as_deref() != Some("virtual") && self.bitrate().is_none(),
                _ => self.controller.is_some(),
            };
            return Some(format!("is down ({})", up(name, needs_rate)));
        }
        let state = self.controller.as_ref().and_then(|controller| controller.state);
        (state == Some(State::BusOff)).then(|| format!("is off the bus ({})", restart(name)))
    }
}

/// The attributes of the device of this path, if it is one.
fn attributes(name: &str) -> Option<String> {
    name.strip_prefix(DEVICES).map(|number| format!("/sys/class/canchar/canchar{number}"))
}

/// What brings an interface up, or starts a device, of which the bit rate is known; with `rate`, what sets one too.
pub fn up(name: &str, rate: bool) -> String {
    match (attributes(name), rate) {
        (None, false) => format!("ip link set {name} up"),
        (None, true) => format!("ip link set {name} up type can bitrate 500000"),
        (Some(attributes), false) => format!("echo 1 > {attributes}/running"),
        (Some(attributes), true) => {
            format!("echo 500000 > {attributes}/bitrate; echo 1 > {attributes}/running")
        }
    }
}

/// What starts a controller again that is off the bus.
pub fn restart(name: &str) -> String {
    attributes(name).map_or_else(
        || format!("ip link set {name} type can restart"),
        |attributes| format!("echo 1 > {attributes}/running"),
    )
}

/// What has a controller start again by itself, 100 ms after it went off the bus.
pub fn restart_by_itself(name: &str) -> String {
    attributes(name).map_or_else(
        || format!("ip link set {name} down; ip link set {name} up type can restart-ms 100"),
        |attributes| format!("echo 100 > {attributes}/restart_ms"),
    )
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

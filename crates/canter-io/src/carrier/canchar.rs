//! canchar devices as interfaces: `/dev/canchar0`, listed in /sys/class/canchar.

use super::{Carrier, Interface, Kind};
use crate::{
    Error, Result,
    frame::CAN_MTU,
    netlink::{
        controller::{BitTiming, Controller, State, Timing},
        counters::Counters,
    },
    pci,
    sys::canchar::{Device, Statistics},
};
use std::{fs, io, path::Path};

/// The prefix of a canchar device's name.
pub(super) const DEVICES: &str = "/dev/canchar";
/// The default length of a file's transmit queue in frames.
const SLOTS: u32 = 64;
/// Set in the index of a device: no network interface has such an index.
const INDEX: u32 = 0x8000_0000;

/// The device of this path.
pub(super) fn find(path: &str, carrier: &'static Carrier) -> Result<Interface> {
    const STEP: &str = "find";
    let number = path.strip_prefix(DEVICES).and_then(|number| number.parse::<u32>().ok());
    let gone = || io::Error::from_raw_os_error(libc::ENODEV);
    let number = number.ok_or_else(|| Error::new(path, STEP, gone()).hint(whereabouts()))?;
    let attribute = |name: &str| {
        let text = fs::read_to_string(attribute_path(number, name));
        text.map(|text| text.trim().to_owned())
            .map_err(|_| Error::new(path, STEP, gone()).hint(whereabouts()))
    };
    let running = attribute("running")? == "1";
    let controller = Controller {
        chip: attribute("chip")?,
        state: state(&attribute("state")?),
        timing: Timing { bitrate: attribute("bitrate")?.parse().unwrap_or(0), ..Timing::default() },
        restart_ms: attribute("restart_ms")?.parse().unwrap_or(0),
        ..Controller::default()
    };
    Ok(Interface {
        name: path.to_owned(),
        index: INDEX | number,
        mtu: CAN_MTU as u32,
        kind: Kind::Canchar,
        up: running,
        running: running && controller.state != Some(State::BusOff),
        echo: false,
        driver: Some(attribute("board")?),
        qdisc: String::new(),
        tx_queue_len: SLOTS,
        peer: None,
        controller: Some(controller),
        carrier,
    })
}

fn attribute_path(number: u32, name: &str) -> String {
    format!("/sys/class/canchar/canchar{number}/{name}")
}

fn state(name: &str) -> Option<State> {
    match name {
        "error-active" => Some(State::ErrorActive),
        "error-warning" => Some(State::ErrorWarning),
        "error-passive" => Some(State::ErrorPassive),
        "bus-off" => Some(State::BusOff),
        "stopped" => Some(State::Stopped),
        _ => None,
    }
}

/// All devices.
pub(crate) fn list(carrier: &'static Carrier) -> Vec<Interface> {
    paths().iter().filter_map(|path| find(path, carrier).ok()).collect() // skips one that disappears meanwhile
}

/// The node of a virtual wire that the device drives; `None` for any other interface too.
pub(crate) fn node(device: &Interface) -> Option<String> {
    if device.index & INDEX == 0 {
        return None;
    }
    let name = fs::read_to_string(attribute_path(device.index & !INDEX, "node")).ok()?;
    Some(name.trim().to_owned())
}

fn paths() -> Vec<String> {
    let names = fs::read_dir("/sys/class/canchar").into_iter().flatten().flatten();
    let mut paths: Vec<_> =
        names.map(|entry| format!("/dev/{}", entry.file_name().to_string_lossy())).collect();
    paths.sort_by_key(|path| (path.len(), path.clone()));
    paths
}

fn whereabouts() -> String {
    let names = paths();
    if names.is_empty() {
        "is the module canchar loaded? canter lab --canchar virtual has two devices".into()
    } else {
        format!("devices: {}", names.join(", "))
    }
}

fn set_attribute(interface: &Interface, name: &str, value: &str, step: &'static str) -> Result<()> {
    let number = interface.index & !INDEX;
    fs::write(attribute_path(number, name), value).map_err(|error| {
        let way_out = match error.raw_os_error() {
            Some(libc::EINVAL) if name == "running" => "set a bit rate first".to_owned(),
            Some(libc::EBUSY) => format!("stop it first: echo 0 > {}", attribute_path(number, "running")),
            Some(libc::EACCES | libc::EPERM) => "needs root".to_owned(),
            _ => String::new(),
        };
        // sysfs returns ENOENT for a device that has disappeared.
        let gone = matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENODEV));
        let error = if gone { io::Error::from_raw_os_error(libc::ENODEV) } else { error };
        Error::new(&interface.name, step, error).hint(way_out)
    })
}

pub(super) fn refresh(interface: &mut Interface) -> Result<()> {
    *interface = find(&interface.name, interface.carrier)?;
    Ok(())
}

/// Reads only one attribute, in a sixth of the time of all.
pub(super) fn refresh_state(interface: &mut Interface) -> Result<()> {
    let gone = |_| Error::new(&interface.name, "refresh", io::Error::from_raw_os_error(libc::ENODEV));
    let text = fs::read_to_string(attribute_path(interface.index & !INDEX, "state")).map_err(gone)?;
    if let Some(controller) = &mut interface.controller {
        controller.state = state(text.trim());
    }
    Ok(())
}

pub(super) fn set_up(interface: &mut Interface, up: bool) -> Result<()> {
    let (value, step) = if up { ("1", "up") } else { ("0", "down") };
    set_attribute(interface, "running", value, step)?;
    refresh(interface)
}

pub(super) fn set_bit_timing(interface: &mut Interface, timing: &BitTiming) -> Result<()> {
    const STEP: &str = "set bit rate";
    if timing.data_bitrate.is_some() {
        let why = "canchar supports classic controllers only, not FD";
        return Err(Error::unsupported(&interface.name, STEP, why));
    }
    set_attribute(interface, "bitrate", &timing.bitrate.to_string(), STEP)?;
    refresh(interface)
}

pub(super) fn counters(interface: &Interface) -> Result<Counters> {
    let step = |error| Error::new(&interface.name, "counters", error);
    let device = Device::open(Path::new(&interface.name), true).map_err(step)?;
    Ok(Counters::from(&device.statistics().map_err(step)?))
}

/// The device that the driver has made of a card.
pub(super) fn name_of_card(address: &str, _bitrate: u32) -> Result<String> {
    Ok(format!("/dev/{}", pci::device(address, "canchar")?))
}

/// The folder of a device's attributes.
fn attributes(path: &str) -> String {
    format!("/sys/class/canchar/canchar{}", path.trim_start_matches(DEVICES))
}

pub(super) fn up_by(path: &str, set_rate: bool) -> String {
    let attributes = attributes(path);
    if set_rate {
        format!("echo 500000 > {attributes}/bitrate; echo 1 > {attributes}/running")
    } else {
        format!("echo 1 > {attributes}/running")
    }
}

/// The virtual board runs without a bit rate: its frames take no time then.
pub(super) fn needs_rate(interface: &Interface) -> bool {
    interface.driver.as_deref() != Some("virtual") && interface.bitrate().is_none()
}

pub(super) fn restart_by(path: &str) -> String {
    format!("echo 1 > {}/running", attributes(path))
}

pub(super) fn restart_always_by(path: &str) -> String {
    format!("echo 100 > {}/restart_ms", attributes(path))
}

impl From<&Statistics> for Counters {
    /// The counters of the device, not of the file.
    fn from(counted: &Statistics) -> Self {
        Self {
            rx_frames: counted.rx_frames,
            tx_frames: counted.tx_frames,
            rx_over_errors: counted.rx_overruns,
            tx_aborted: counted.tx_aborted,
            bus_off: counted.bus_off as u32,
            restarts: counted.restarts as u32,
            ..Self::default()
        }
    }
}

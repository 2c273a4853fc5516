//! canchar devices as interfaces: `/dev/canchar0`, known by /sys/class/canchar.

use super::{BitTiming, Controller, Counters, Interface, Kind, State, Timing};
use crate::{
    Error, Result,
    frame::CAN_MTU,
    sys::canchar::{Device, Statistics},
};
use std::{fs, io, path::Path};

/// How the name of a canchar device begins.
pub(super) const DEVICES: &str = "/dev/canchar";
/// Frames in a file's transmit queue unless asked otherwise.
const SLOTS: u32 = 64;
/// Set in the index of a device, which no interface of the kernel has.
const INDEX: u32 = 0x8000_0000;

/// The device of this path.
pub(super) fn find(path: &str) -> Result<Interface> {
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

/// All devices that are there.
pub(super) fn list() -> Vec<Interface> {
    paths().iter().filter_map(|path| find(path).ok()).collect() // one may go meanwhile
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

impl Interface {
    fn set_attribute(&self, name: &str, value: &str, step: &'static str) -> Result<()> {
        fs::write(attribute_path(self.index & !INDEX, name), value).map_err(|error| {
            let way_out = match error.raw_os_error() {
                Some(libc::EINVAL) if name == "running" => "set a bit rate first".to_owned(),
                Some(libc::EBUSY) => {
                    format!("stop it first: echo 0 > {}", attribute_path(self.index & !INDEX, "running"))
                }
                Some(libc::EACCES | libc::EPERM) => "needs root".to_owned(),
                _ => String::new(),
            };
            // sysfs says ENOENT of a device that has gone.
            let gone = matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENODEV));
            let error = if gone { io::Error::from_raw_os_error(libc::ENODEV) } else { error };
            Error::new(&self.name, step, error).hint(way_out)
        })
    }

    pub(super) fn canchar_run(&mut self, run: bool) -> Result<()> {
        let (value, step) = if run { ("1", "up") } else { ("0", "down") };
        self.set_attribute("running", value, step)?;
        *self = find(&self.name)?;
        Ok(())
    }

    pub(super) fn canchar_set_bit_timing(&mut self, timing: &BitTiming) -> Result<()> {
        const STEP: &str = "set bit rate";
        if timing.data_bitrate.is_some() {
            return Err(Error::unsupported(&self.name, STEP, "canchar drives classic controllers: no FD"));
        }
        self.set_attribute("bitrate", &timing.bitrate.to_string(), STEP)?;
        *self = find(&self.name)?;
        Ok(())
    }

    pub(super) fn canchar_refresh_state(&mut self) -> Result<()> {
        let gone = |_| Error::new(&self.name, "refresh", io::Error::from_raw_os_error(libc::ENODEV));
        let text = fs::read_to_string(attribute_path(self.index & !INDEX, "state")).map_err(gone)?;
        if let Some(controller) = &mut self.controller {
            controller.state = state(text.trim());
        }
        Ok(())
    }

    pub(super) fn canchar_counters(&self) -> Result<Counters> {
        let step = |error| Error::new(&self.name, "counters", error);
        let device = Device::open(Path::new(&self.name), true).map_err(step)?;
        Ok(Counters::from(&device.statistics().map_err(step)?))
    }
}

impl From<&Statistics> for Counters {
    /// What the device has counted, not the file.
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

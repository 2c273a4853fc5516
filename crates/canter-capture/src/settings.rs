//! What is recorded, where to and how.

use crate::{Error, Result, source::Wish, writer::Style};
use canter_formats::{FORMATS, Format, by_extension};
use canter_io::{Interface, InterfaceFilters, carrier::Access};
use std::{path::PathBuf, time::Duration};

pub use canter_io::capture_ring::RING_BYTES;

/// Memory for what a stalled disk cannot take, in bytes, unless asked otherwise.
pub const QUEUE_BYTES: usize = 256 << 20;
/// How old a frame may become before it is in the file, unless asked otherwise.
pub const FLUSH: Duration = Duration::from_secs(1);
/// And at least.
pub const FLUSH_MIN: Duration = Duration::from_millis(500);

/// What is recorded, and how. [`Settings::new`] has what is usual; change what is not.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Interfaces, and canchar devices by their paths, with candump's filters; `any` stands for all of the network, later
    /// ones too. Without filters everything is kept.
    pub interfaces: Vec<InterfaceFilters>,
    /// The file. With rotation, a number goes before its last extension.
    pub output: PathBuf,
    /// The format, one that can be recorded live; `None`: by the end of the file's name, `.log` or `.pcapng`.
    pub format: Option<&'static Format>,
    /// Compress by zstd, as it is without asking where the name ends in `.zst`.
    pub zstd: bool,
    /// Write over files that are there.
    pub overwrite: bool,
    /// In a log, stamps of 9 digits.
    pub ns: bool,
    /// No more frames than this.
    pub frames_max: u64,
    /// Memory that the kernel fills while this program cannot run, in bytes.
    pub ring_bytes: usize,
    /// Memory for what a stalled disk cannot take, in bytes.
    pub queue_bytes: usize,
    /// A next file from this size on, in bytes.
    pub rotate_bytes: Option<u64>,
    /// A next file at this age.
    pub rotate_age: Option<Duration>,
    /// How many files stay, the youngest.
    pub keep: Option<usize>,
    /// A frame is in the file when it is as old as this, at least half a second.
    pub flush: Duration,
    /// Tell received from sent frames, by sockets.
    pub direction: bool,
    /// Keep controllers' own stamps too, by sockets; in pcapng only.
    pub hardware_stamps: bool,
    /// Do not ask that interfaces are there, or up, at the beginning.
    pub wait_for_interfaces: bool,
    /// Work out how busy each bus is, which costs some hundred instructions a frame.
    pub bus_load: bool,
}

impl Settings {
    /// Records `interfaces` to `output` with the defaults of this crate.
    pub fn new(interfaces: Vec<InterfaceFilters>, output: impl Into<PathBuf>) -> Self {
        Self {
            interfaces,
            output: output.into(),
            format: None,
            zstd: false,
            overwrite: false,
            ns: false,
            frames_max: u64::MAX,
            ring_bytes: RING_BYTES,
            queue_bytes: QUEUE_BYTES,
            rotate_bytes: None,
            rotate_age: None,
            keep: None,
            flush: FLUSH,
            direction: false,
            hardware_stamps: false,
            wait_for_interfaces: false,
            bus_load: false,
        }
    }

    pub(crate) fn rotates(&self) -> bool {
        self.rotate_bytes.is_some() || self.rotate_age.is_some()
    }

    /// How to write, when the settings make sense.
    pub(crate) fn style(&self) -> Result<Style> {
        let packed = self.output.extension().is_some_and(|end| end == "zst");
        let format = self.format.or_else(|| by_extension(&self.output, FORMATS));
        let Some((format, append)) = format.and_then(|format| Some((format, format.append?))) else {
            return Err(Error::UnknownFormat(self.output.clone()));
        };
        if self.keep.is_some() && !self.rotates() {
            return Err(Error::KeepWithoutRotation);
        }
        if self.hardware_stamps && !format.keeps.is_some_and(|keeps| keeps.hardware_stamps) {
            return Err(Error::NoHardwareStamps(self.output.clone()));
        }
        if self.flush < FLUSH_MIN {
            return Err(Error::FlushTooShort(FLUSH_MIN));
        }
        Ok(Style {
            format,
            append,
            ns: self.ns,
            zstd: self.zstd || packed,
            frames_max: self.frames_max,
            rotate_bytes: self.rotate_bytes,
            rotate_age: self.rotate_age,
            flush: self.flush,
        })
    }

    /// The interfaces that are asked for: those named, and with `any` all others.
    pub(crate) fn find(&self) -> Result<Vec<Interface>> {
        let mut found: Vec<Interface> = Vec::new();
        for (at, InterfaceFilters { interface: name, .. }) in self.interfaces.iter().enumerate() {
            if self.interfaces[..at].iter().any(|one| one.interface == *name) {
                return Err(Error::NamedTwice(name.clone()));
            }
            if name == "any" {
                continue;
            }
            match Interface::find(name) {
                Ok(interface) => {
                    if interface.carrier.access == Access::Process {
                        let reason = format!("{} has no ring", interface.carrier.about);
                        let interface = name.clone();
                        return Err(Error::Unsupported { interface, reason });
                    }
                    if !self.wait_for_interfaces {
                        refuse_unready(&interface)?;
                    }
                    found.push(interface);
                }
                Err(error)
                    if self.wait_for_interfaces && error.kind() != std::io::ErrorKind::InvalidInput => {}
                Err(error) => return Err(error.into()),
            }
        }
        if self.any() {
            let named: Vec<u32> = found.iter().map(|one| one.index).collect();
            found.extend(Interface::list()?.into_iter().filter(|one| !named.contains(&one.index)));
        }
        Ok(found)
    }

    fn any(&self) -> bool {
        self.interfaces.iter().any(|one| one.interface == "any")
    }

    pub(crate) fn wish(&self, found: &[Interface]) -> Wish {
        let names = self.interfaces.iter().map(|one| one.interface.clone());
        let (devices, network): (Vec<_>, Vec<_>) = names.partition(|name| name.starts_with("/dev/"));
        let there = found.iter().any(Interface::has_sockets);
        let single = match network.as_slice() {
            [one] if !self.any() && there => Some(one.clone()),
            _ => None,
        };
        Wish {
            network: !network.is_empty(),
            single,
            devices,
            fd: self.any() || self.wait_for_interfaces || found.iter().any(Interface::supports_fd),
            bytes: self.ring_bytes,
            direction: self.direction,
            hardware_stamps: self.hardware_stamps,
        }
    }
}

/// Reports an interface that is down before anything is opened: nothing would ever arrive.
fn refuse_unready(interface: &Interface) -> Result<()> {
    match interface.not_ready() {
        Some(reason) => Err(Error::NotReady { interface: interface.name.clone(), reason }),
        None => Ok(()),
    }
}

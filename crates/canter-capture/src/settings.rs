//! Which interfaces are recorded, to which file and how.

use crate::{
    Error, Result,
    files::{Retention, is_stdout},
    source::SourceOptions,
    writer::Style,
};
use canter_formats::{FORMATS, Format, by_extension};
use canter_io::{Interface, InterfaceFilters, carrier::Access};
use std::{path::PathBuf, sync::OnceLock, time::Duration};

pub use canter_io::capture_ring::RING_BYTES;

/// The default size of the RAM queue, in bytes: frames wait there while the disk stalls.
pub const QUEUE_BYTES: usize = 256 << 20;

/// The default sizes of the ring and of the RAM queue on this machine, in bytes: [`RING_BYTES`] and [`QUEUE_BYTES`], or as
/// much less as both need to fit into a quarter of its memory.
pub fn default_sizes() -> (usize, usize) {
    static SIZES: OnceLock<(usize, usize)> = OnceLock::new();
    *SIZES.get_or_init(|| {
        sizes_for(std::fs::read_to_string("/proc/meminfo").ok().as_deref().and_then(memory_kib))
    })
}

/// What `/proc/meminfo` says about all memory.
fn memory_kib(text: &str) -> Option<usize> {
    text.lines()
        .find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB")?.trim().parse().ok())
}

fn sizes_for(memory_kib: Option<usize>) -> (usize, usize) {
    const ALL_KIB: usize = (RING_BYTES + QUEUE_BYTES) >> 10;
    let most_kib = memory_kib.map_or(ALL_KIB, |kib| ALL_KIB.min(kib / 4));
    let share = |bytes: usize| ((bytes >> 10) * most_kib / ALL_KIB).next_multiple_of(256).max(1024) << 10;
    (share(RING_BYTES), share(QUEUE_BYTES))
}
/// The default flush interval: the greatest age of a frame that is not in the file yet.
pub const FLUSH: Duration = Duration::from_secs(1);
/// The shortest flush interval.
pub const FLUSH_MIN: Duration = Duration::from_millis(500);

/// The default sync interval: a power cut loses at most the frames of this time and of the flush interval.
pub const SYNC: Duration = Duration::from_secs(5);

/// The settings of a recording. [`Settings::new`] sets defaults; change the fields that differ.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Network interfaces by name, and canchar devices by path, with candump's filters. `any` stands for all network
    /// interfaces, also those created later. Without filters all frames are recorded.
    pub interfaces: Vec<InterfaceFilters>,
    /// The output file; `-`: standard output. With rotation, a number is inserted before its extension.
    pub output: PathBuf,
    /// The format, one that can be recorded live; `None`: chosen by the extension of the output file, `.log` or `.pcapng`.
    pub format: Option<&'static Format>,
    /// Compress with zstd. An output file whose name ends in `.zst` is always compressed.
    pub zstd: bool,
    /// Replace existing files.
    pub overwrite: bool,
    /// In a log, write stamps with 9 digits after the decimal point (ns) instead of 6 (µs).
    pub ns: bool,
    /// End the recording after this number of frames.
    pub frames_max: u64,
    /// The size of the kernel's ring, in bytes: frames wait there while this program cannot run.
    pub ring_bytes: usize,
    /// The size of the RAM queue, in bytes: frames wait there while the disk stalls.
    pub queue_bytes: usize,
    /// Start the next file when the current one has this size, in bytes.
    pub rotate_bytes: Option<u64>,
    /// Start the next file when the current one has this age.
    pub rotate_age: Option<Duration>,
    /// With rotation, keep this number of files and delete older ones; `None`: keep all.
    pub keep: Option<usize>,
    /// With rotation, delete the oldest files of this recording while less than this is free on the disk, in bytes.
    pub keep_free_bytes: Option<u64>,
    /// With rotation, delete files that were closed longer than this ago.
    pub keep_age: Option<Duration>,
    /// The greatest age of a frame that is not in the file yet; at least [`FLUSH_MIN`].
    pub flush: Duration,
    /// The interval at which the file is synced to the disk, so that what was synced outlives a power cut; `None`: only
    /// when it is closed.
    pub sync: Option<Duration>,
    /// Record whether each frame was received or sent. Uses sockets instead of the ring.
    pub direction: bool,
    /// Also record the controllers' hardware stamps; pcapng only. Uses sockets instead of the ring.
    pub hardware_stamps: bool,
    /// Start even if an interface does not exist or is down.
    pub wait_for_interfaces: bool,
    /// Compute the load of each bus, which costs about a hundred instructions per frame.
    pub bus_load: bool,
}

impl Settings {
    /// Records `interfaces` to `output` with the defaults of this crate.
    pub fn new(interfaces: Vec<InterfaceFilters>, output: impl Into<PathBuf>) -> Self {
        let (ring_bytes, queue_bytes) = default_sizes();
        Self {
            interfaces,
            output: output.into(),
            format: None,
            zstd: false,
            overwrite: false,
            ns: false,
            frames_max: u64::MAX,
            ring_bytes,
            queue_bytes,
            rotate_bytes: None,
            rotate_age: None,
            keep: None,
            keep_free_bytes: None,
            keep_age: None,
            flush: FLUSH,
            sync: Some(SYNC),
            direction: false,
            hardware_stamps: false,
            wait_for_interfaces: false,
            bus_load: false,
        }
    }

    pub(crate) fn rotates(&self) -> bool {
        self.rotate_bytes.is_some() || self.rotate_age.is_some()
    }

    /// Checks that the settings do not contradict each other; touches no interface and no file.
    ///
    /// # Errors
    /// The first contradiction.
    pub fn check(&self) -> Result<()> {
        self.style().map(drop)
    }

    /// Which closed files of a rotation stay.
    pub(crate) fn retention(&self) -> Retention {
        Retention { files: self.keep, free_bytes: self.keep_free_bytes, age: self.keep_age }
    }

    /// How to write, if the settings do not contradict each other.
    pub(crate) fn style(&self) -> Result<Style> {
        let packed = self.output.extension().is_some_and(|end| end == "zst");
        let format = self.format.or_else(|| by_extension(&self.output, FORMATS));
        let Some((format, append)) = format.and_then(|format| Some((format, format.append?))) else {
            return Err(Error::UnknownFormat(self.output.clone()));
        };
        if self.interfaces.is_empty() {
            return Err(Error::NoInterface);
        }
        let mut names: Vec<&str> = self.interfaces.iter().map(|one| one.interface.as_str()).collect();
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Error::NamedTwice(twice[0].to_owned()));
        }
        if self.retention().deletes() && !self.rotates() {
            return Err(Error::KeepWithoutRotation);
        }
        if self.rotates() && is_stdout(&self.output) {
            return Err(Error::RotatesStdout);
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
            sync: self.sync.unwrap_or(Duration::MAX),
        })
    }

    /// The interfaces that the settings name, and with `any` all others.
    pub(crate) fn find(&self) -> Result<Vec<Interface>> {
        let mut found: Vec<Interface> = Vec::new();
        for InterfaceFilters { interface: name, .. } in &self.interfaces {
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

    pub(crate) fn source_options(&self, found: &[Interface]) -> SourceOptions {
        let names = self.interfaces.iter().map(|one| one.interface.clone());
        let (devices, network): (Vec<_>, Vec<_>) = names.partition(|name| name.starts_with("/dev/"));
        let exists = found.iter().any(Interface::has_sockets);
        let single = match network.as_slice() {
            [one] if !self.any() && exists => Some(one.clone()),
            _ => None,
        };
        let existing = Interface::list().unwrap_or_default();
        let is_found = |index| found.iter().any(|one| one.index == index);
        SourceOptions {
            unwanted: existing.iter().map(|one| one.index).filter(|&index| !is_found(index)).collect(),
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

/// Refuses an interface that is down or bus-off before a file is created: no frame would arrive.
fn refuse_unready(interface: &Interface) -> Result<()> {
    match interface.not_ready() {
        Some(reason) => Err(Error::NotReady { interface: interface.name.clone(), reason }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_sizes_are_a_quarter_of_a_small_machine_s_memory() {
        let sizes = |text: &str| sizes_for(memory_kib(text));
        assert_eq!(sizes("MemTotal:        8048576 kB\nMemFree: 1 kB"), (RING_BYTES, QUEUE_BYTES));
        assert_eq!(sizes("nothing"), (RING_BYTES, QUEUE_BYTES));
        let (ring, queue) = sizes("MemTotal:         443392 kB"); // a Raspberry Pi Zero 2
        assert_eq!((ring, queue), (87 << 18, 347 << 18));
        assert!(ring + queue <= (443_392 << 8) + (1 << 19));
    }

    #[test]
    fn settings_that_contradict_each_other_are_refused_before_anything_is_touched() {
        let usual = |output: &str| Settings::new(vec![InterfaceFilters::parse("can0").unwrap()], output);
        assert!(usual("d.log").check().is_ok());
        let refused = [
            Settings { keep: Some(3), ..usual("d.log") },
            Settings { keep_free_bytes: Some(3), ..usual("d.log") },
            Settings { keep_age: Some(Duration::from_secs(1)), ..usual("d.log") },
        ];
        for settings in refused {
            assert!(matches!(settings.check(), Err(Error::KeepWithoutRotation)));
            assert!(Settings { rotate_bytes: Some(1), ..settings }.check().is_ok());
        }
        let [one, two] = [usual("d.log"), usual("d.log")].map(|settings| settings.interfaces);
        let twice = Settings { interfaces: [one, two].concat(), ..usual("d.log") };
        assert!(matches!(twice.check(), Err(Error::NamedTwice(name)) if name == "can0"));
    }

    #[test]
    fn a_recording_of_no_interface_is_refused_because_its_account_would_say_complete() {
        let refused = Settings::new(Vec::new(), "drive.pcapng").style();
        assert!(matches!(refused, Err(Error::NoInterface)));
    }
}

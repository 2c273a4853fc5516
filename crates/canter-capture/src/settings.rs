//! Which interfaces are recorded, to which file and how.

use crate::{
    Error, Result,
    files::{Retention, is_stdout},
    output::Style,
    source::SourceOptions,
    trigger::Triggers,
    waiting::{CLASSIC_BYTES, OTHER_BYTES, SLACK_BYTES},
};
use canter_formats::{FORMATS, Format, by_extension};
use canter_frame::{Filters, Frame, Identifier};
use canter_io::{BitRate, Interface, InterfaceFilters, carrier::Access};
use std::{path::PathBuf, sync::OnceLock, time::Duration};

pub use canter_io::capture_ring::RING_BYTES;

/// The default size of the RAM queue, in bytes: frames wait there while the disk stalls.
pub const QUEUE_BYTES: usize = 256 << 20;

/// The default sizes of the ring and of the RAM queue on this machine, in bytes: [`RING_BYTES`] and [`QUEUE_BYTES`], or as
/// much less as both need to fit into a quarter of its memory.
pub fn default_sizes() -> (usize, usize) {
    static SIZES: OnceLock<(usize, usize)> = OnceLock::new();
    *SIZES.get_or_init(|| sizes_for(memory_kib("MemTotal")))
}

/// What `/proc/meminfo` says under this name.
fn memory_kib(name: &str) -> Option<usize> {
    kib_of(&std::fs::read_to_string("/proc/meminfo").ok()?, name)
}

fn kib_of(text: &str, name: &str) -> Option<usize> {
    let value = |line: &str| {
        line.strip_prefix(name)?.strip_prefix(':')?.trim().strip_suffix(" kB")?.trim().parse().ok()
    };
    text.lines().find_map(value)
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
    /// Stamp frames on the system's clock by the controllers' hardware stamps where there are some, with a bound of the error.
    /// Implies [`hardware_stamps`](Self::hardware_stamps).
    pub clock_align: bool,
    /// Start even if an interface does not exist or is down.
    pub wait_for_interfaces: bool,
    /// Keep only the time around events, a file for each; `None`: keep everything.
    pub triggers: Option<Triggers>,
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
            clock_align: false,
            wait_for_interfaces: false,
            triggers: None,
            bus_load: false,
        }
    }

    fn records_hardware_stamps(&self) -> bool {
        self.hardware_stamps || self.clock_align
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
        if self.retention().deletes() && !self.rotates() && self.triggers.is_none() {
            return Err(Error::KeepWithoutRotation);
        }
        if self.rotates() && is_stdout(&self.output) {
            return Err(Error::RotatesStdout);
        }
        self.check_triggers()?;
        if self.records_hardware_stamps() && !format.keeps.is_some_and(|keeps| keeps.hardware_stamps) {
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

    /// Refuses triggers that no frame could meet.
    fn check_triggers(&self) -> Result<()> {
        let Some(Triggers { conditions, .. }) = &self.triggers else { return Ok(()) };
        if conditions.is_empty() {
            return Err(Error::NoCondition);
        }
        if is_stdout(&self.output) {
            return Err(Error::TriggersStdout);
        }
        for condition in conditions {
            let is_meant = |one: &&InterfaceFilters| {
                let wanted = condition.interface.as_deref();
                wanted.is_none_or(|wanted| one.interface == wanted || one.interface == "any")
            };
            let mut meant = self.interfaces.iter().filter(is_meant).peekable();
            if let (None, Some(interface)) = (meant.peek(), &condition.interface) {
                let (condition, interface) = (condition.text.clone(), interface.clone());
                return Err(Error::NotRecorded { condition, interface });
            }
            let lacks_errors =
                |one: &InterfaceFilters| one.filters != Filters::default() && one.filters.error_mask == 0;
            if condition.when.needs_error_frames() && meant.all(lacks_errors) {
                return Err(Error::NoErrorFrames(condition.text.clone()));
            }
        }
        Ok(())
    }

    /// The memory for frames that wait for an event, in bytes, with a sentence about it.
    ///
    /// # Errors
    /// The machine does not have it.
    pub(crate) fn window_buffer(&self, found: &[Interface]) -> Result<Option<(usize, String)>> {
        let Some(Triggers { before, buffer_bytes, .. }) = &self.triggers else { return Ok(None) };
        let (mut rate, mut frames) = (0, 0);
        found.iter().map(highest_rate).for_each(|(bus_frames, bus_bytes)| {
            (rate, frames) = (rate + bus_bytes, frames + bus_frames);
        });
        // Without any interface yet, as for one.
        let rate = if found.is_empty() { HIGHEST.1 } else { rate };
        let frames = if found.is_empty() { HIGHEST.0 } else { frames };
        let needed = u128::from(rate) * before.as_nanos() / 1_000_000_000 + SLACK_BYTES as u128;
        let bytes = buffer_bytes.map_or(needed, |bytes| bytes as u128);
        let queues = (self.ring_bytes + self.queue_bytes) as u128;
        let free = memory_kib("MemAvailable").map(|kib| (kib as u128) << 10);
        let left = free.map_or(u128::MAX, |free| free.saturating_sub(queues));
        if bytes > left.min(usize::MAX as u128) {
            let longest = left.saturating_sub(SLACK_BYTES as u128) / u128::from(rate.max(1));
            let longest = Duration::from_secs(longest as u64);
            return Err(Error::WindowTooLong { before: *before, bytes, left, longest });
        }
        let (mb, buses) = (bytes.div_ceil(1_000_000), found.len().max(1));
        let text = format!(
            "capture: nothing is written before an event; {before:?} before it take at most {mb} MB of memory \
             ({buses} buses, {frames} frames/s)"
        );
        Ok(Some((bytes as usize, text)))
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
        // One that is down takes no room, and each frame's sender would pay for it in the kernel's filter; that it comes up is
        // reported.
        let is_unwanted = |one: &&Interface| one.up && found.iter().all(|wanted| wanted.index != one.index);
        SourceOptions {
            unwanted: existing.iter().filter(is_unwanted).map(|one| one.index).collect(),
            network: !network.is_empty(),
            single,
            devices,
            fd: self.any() || self.wait_for_interfaces || found.iter().any(Interface::supports_fd),
            bytes: self.ring_bytes,
            direction: self.direction,
            hardware_stamps: self.records_hardware_stamps(),
        }
    }
}

/// Frames per second of a full bus of 1 Mbit/s, and the memory in bytes per second that they take while they wait.
const HIGHEST: (u64, u64) = (21_277, 21_277 * CLASSIC_BYTES as u64);

/// The most frames of an interface per second, and the most memory in bytes per second that its frames take while they wait.
/// An interface without a bit rate counts as one of 1 Mbit/s.
fn highest_rate(interface: &Interface) -> (u64, u64) {
    let nominal = interface.bitrate().unwrap_or(1_000_000);
    let rate = BitRate { nominal, data: interface.data_bitrate().unwrap_or(0) };
    let id = Identifier::Sff(0x555); // few stuff bits
    let per_second = |frame: Option<Frame>| {
        let ns = frame.map_or(0, |frame| frame.duration_with_interframe_ns(rate));
        1_000_000_000u64.checked_div(ns).unwrap_or_default() + 1
    };
    let classic = per_second(Frame::classic(id, &[]).ok());
    let fd = if interface.supports_fd() { per_second(Frame::fd(id, &[], 1).ok()) } else { 0 };
    let bytes = (classic * CLASSIC_BYTES as u64).max(fd * OTHER_BYTES as u64);
    (classic.max(fd), bytes)
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
        let sizes = |text: &str| sizes_for(kib_of(text, "MemTotal"));
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

//! The account of a recording: the frames that each interface has counted and those in the file, the frames lost at each
//! place, and a verdict. `docs/capture.md` explains each field.

use crate::{
    bounds::BoundSpan,
    lost::Lost,
    verdict::{Method, Verdict},
};
use serde::Serialize;
use std::{collections::BTreeMap, fmt};

/// The value of [`Account::schema`].
pub(super) const SCHEMA: &str = "canter-capture/1";

/// A file of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Written {
    /// The path of the file.
    pub name: String,
    /// Frames in it.
    pub frames: u64,
    /// The size of the file in bytes.
    pub bytes: u64,
    /// The stamp of its first frame, in ns since 1970 (UTC); 0 for a file without frames.
    pub first_ns: u64,
    /// The stamp of its last frame, in ns since 1970 (UTC).
    pub last_ns: u64,
}

/// The sum over the files that rotation has deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Deleted {
    /// How many files.
    pub files: u64,
    /// Frames that were in them.
    pub frames: u64,
    /// Their size in bytes.
    pub bytes: u64,
}

impl Deleted {
    /// Adds a file.
    pub fn add(&mut self, file: &Written) {
        self.files += 1;
        self.frames += file.frames;
        self.bytes += file.bytes;
    }
}

/// An event during the recording: an interface went down, the disk is full.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Event {
    /// When it happened, in ns of the real-time clock.
    pub at_ns: u64,
    /// A sentence that begins with the interface or file.
    pub what: String,
}

/// The windows of a recording with triggers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Triggered {
    /// The conditions, as the user wrote them.
    pub conditions: Vec<String>,
    /// How much was kept before an event, in ns.
    pub before_ns: u64,
    /// How much was kept after an event, in ns.
    pub after_ns: u64,
    /// How often a condition was met.
    pub events: u64,
    /// The first thousand windows, each with its file.
    pub windows: Vec<Window>,
    /// Windows that are not in `windows`.
    pub windows_left_out: u64,
    /// Memory for frames that wait for an event, in bytes.
    pub buffer_bytes: u64,
    /// The most of it that was in use, in bytes.
    pub buffer_high_water_bytes: u64,
}

/// The time around one or several events, of which every frame is in the files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Window {
    /// The files of the window; several when a file reached the rotation size, or the disk failed.
    pub files: Vec<String>,
    /// The beginning, in ns of the real-time clock; not before the recording's first frame.
    pub from_ns: u64,
    /// The end, in ns of the real-time clock; not after the last frame.
    pub until_ns: u64,
    /// Whether the recording ended before the window.
    #[serde(rename = "cut")]
    pub is_cut: bool,
    /// Frames in the files.
    pub frames: u64,
    /// The first hundred events.
    pub causes: Vec<Event>,
    /// Events that are not in `causes`.
    pub causes_left_out: u64,
}

/// How a controller's clock was brought onto the system's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Alignment {
    /// Frames stamped by the controller's clock; the others have the kernel's stamp.
    pub frames: u64,
    /// How much the system's clock gains on the controller's, in parts per billion; `None`: there were too few frames.
    pub drift_ppb: Option<i64>,
    /// How far a stamp may be from the time at which the controller took its own, at the end, in ns.
    pub bound_ns: u32,
    /// The greatest such bound, in ns: it is that of the first frames.
    pub bound_max_ns: u32,
    /// The bound of each second.
    pub bounds: Vec<BoundSpan>,
    /// How late the kernel's stamp may be, in ns, of a frame that has no stamp of a controller.
    pub kernel_bound_ns: u32,
    /// How often the controller's clock was set or began anew.
    pub restarts: u64,
}

/// What the kernel says about its clock, by the words of the program that keeps it: chrony, ntpd or ptp4l.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SystemClock {
    /// Whether it is kept.
    pub synchronized: bool,
    /// The error that the keeper estimates, in ns.
    pub error_ns: u64,
    /// The greatest error that the keeper allows for, in ns.
    pub error_max_ns: u64,
    /// Which programs of those that keep clocks ran at the end: `chronyd`, `ntpd`, `ptp4l`, `phc2sys`, `timemaster`,
    /// `systemd-timesyncd`. None need be visible from the recorder's container.
    pub programs: Vec<String>,
}

/// An interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Bus {
    /// The interface's name when the recorder first found it.
    pub name: String,
    /// Frames in the file.
    pub in_file: u64,
    /// Frames that came out of the ring.
    pub seen: u64,
    /// Error frames among them.
    pub error_frames: u64,
    /// How often error frames reported each kind of error.
    pub errors: BTreeMap<String, u64>,
    /// Rejected by a filter.
    pub filtered: u64,
    /// Received after the frame limit (`--count`) was reached.
    pub beyond: u64,
    /// Received outside of all windows of triggers, and deliberately not kept.
    pub outside: u64,
    /// Frames that the interface has counted during the recording; `None`: it was removed and its counters are unknown.
    pub counted: Option<u64>,
    /// Received but not counted by the interface: error frames and echoes, which drivers do not count.
    pub uncounted: u64,
    /// So close to the start or end that the interface may have counted them before or after the recording.
    pub ambiguous: u64,
    /// Frames that the interface has sent; it does not count their echoes as received.
    pub sent: u64,
    /// Frames that may be missing without a trace, because as many frames are ambiguous or uncounted.
    pub doubtful: u64,
    /// Overruns of its controller or driver: events, each of at least one frame.
    pub overrun_events: u64,
    /// Frames discarded by its driver or the network stack.
    pub driver_lost: u64,
    /// Lost in the ring, in the socket or in the device's queue; `None`: the ring lost frames of unknown interfaces.
    pub ring_lost: Option<u64>,
    /// Lost because the RAM queue was full.
    pub queue_lost: u64,
    /// Not written because of a disk error.
    pub disk_lost: u64,
    /// Lost because the memory for frames before an event was full.
    pub window_lost: u64,
    /// How the controller's clock was brought onto the system's; `None`: stamps are the kernel's.
    pub alignment: Option<Alignment>,
    /// Lost in the queue of its own socket or device file; `None`: it shares the ring.
    #[serde(skip)]
    pub(super) own_lost: Option<u64>,
    /// Whether this is a canchar device.
    #[serde(skip)]
    pub(super) is_device: bool,
    /// Whether frames of another interface, which got this one's index, may be among its frames.
    #[serde(skip)]
    pub(super) is_mixed: bool,
    /// Whether it counts a frame that is dropped later as received.
    #[serde(skip)]
    pub(super) drops: Drops,
    /// Whether its driver counts error frames as received: that of a vcan does, those of controllers do not.
    #[serde(skip)]
    pub(super) counts_errors: bool,
}

/// Whether an interface counts a frame as received that the network stack then drops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Drops {
    /// Some drivers count a frame before they hand it over, others afterwards.
    #[default]
    Unknown,
    /// A vcan counts each frame before netif_rx() (`vcan_rx` in drivers/net/can/vcan.c).
    Counted,
    /// A vxcan counts a frame only if netif_rx() took it (`vxcan_xmit` in drivers/net/can/vxcan.c), as canchar does.
    Uncounted,
}

/// The account of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Account {
    /// The name and version of this structure.
    pub schema: String,
    /// The output file as given in the settings.
    pub file: String,
    /// The name of the file's format.
    pub format: String,
    /// How frames were received; `None`: the recording has not ended.
    pub method: Option<Method>,
    /// When counting began, in ns of the real-time clock.
    pub started_ns: u64,
    /// When counting ended, in ns of the real-time clock.
    pub ended_ns: u64,
    /// Whether every frame that passes the filters is in the files. In JSON, `verdict` is a sentence and `complete` a bool.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// Frames in the files.
    pub frames: u64,
    /// The size of all files in bytes, deleted ones included.
    pub bytes: u64,
    /// Frames that are in the file after frames with younger stamps.
    pub late: u64,
    /// How often the real-time clock was set during the recording.
    pub clock_steps: u64,
    /// What keeps the real-time clock, at the end; `None`: the kernel does not say.
    pub system_clock: Option<SystemClock>,
    /// Frames lost, by place.
    pub lost: Lost,
    /// How many more may be missing without a trace.
    pub doubtful: u64,
    /// Each interface.
    pub buses: Vec<Bus>,
    /// The files, oldest first; with `keep` only the youngest.
    pub files: Vec<Written>,
    /// The files that rotation has deleted; `frames` includes their frames.
    pub deleted: Deleted,
    /// The first thousand events of the recording, and of those about losses a thousand more.
    pub events: Vec<Event>,
    /// Events that are not in `events`.
    pub events_left_out: u64,
    /// The windows of triggers; `None`: the recording has no triggers, and keeps everything.
    pub triggered: Option<Triggered>,
    /// Size of the ring, or of all sockets' queues, in bytes.
    pub ring_bytes: u64,
    /// Size of the RAM queue in bytes.
    pub queue_bytes: u64,
    /// The most memory of the RAM queue that was in use, in bytes.
    pub queue_high_water_bytes: u64,
    /// Why the recording ended early or stopped writing; empty when it ended on request.
    pub failure: String,
}

impl Bus {
    /// Frames that the interface has counted and the recorder has not received: at least so many are missing.
    pub(super) fn missing(&self) -> u64 {
        self.counted.map_or(0, |counted| counted.saturating_sub(self.seen))
    }

    /// The most frames that may be missing: frames were received that the interface has not counted.
    pub(super) fn possibly_missing(&self) -> u64 {
        let Some(counted) = self.counted else { return 0 };
        (counted + self.uncounted_at_most()).saturating_sub(self.seen).min(counted)
    }

    /// Frames that were received although neither the interface's counters nor echoes and error frames explain them.
    pub(super) fn surplus(&self) -> u64 {
        self.counted.map_or(0, |counted| self.seen.saturating_sub(counted + self.uncounted_at_most()))
    }

    fn uncounted_at_most(&self) -> u64 {
        self.sent + self.error_frames + self.ambiguous
    }

    /// Frames that are in the file, or not and the account says why.
    pub(super) fn placed(&self) -> u64 {
        let lost = self.queue_lost + self.disk_lost + self.window_lost;
        self.in_file + self.filtered + self.beyond + self.outside + lost
    }
}

impl fmt::Display for Account {
    /// A table with one row per bus, then the verdict.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.buses.iter().map(|bus| bus.name.len()).max().unwrap_or(0).max("interface".len());
        writeln!(
            f,
            "{:<width$} {:>12} {:>12} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
            "interface", "counted", "in file", "filtered", "errors", "overruns", "ring", "queue", "disk"
        )?;
        for bus in &self.buses {
            let number = |value: Option<u64>| value.map_or("?".to_owned(), |value| value.to_string());
            writeln!(
                f,
                "{:<width$} {:>12} {:>12} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
                bus.name,
                number(bus.counted),
                bus.in_file,
                bus.filtered,
                bus.error_frames,
                bus.overrun_events,
                number(bus.ring_lost),
                bus.queue_lost,
                bus.disk_lost
            )?;
        }
        for bus in self.buses.iter().filter(|bus| !bus.errors.is_empty()) {
            let kinds: Vec<String> =
                bus.errors.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
            writeln!(f, "{}: {}", bus.name, kinds.join(", "))?;
        }
        match (self.files.len(), self.deleted.files) {
            (0 | 1, 0) => write!(f, "{} frames, {} bytes in {}", self.frames, self.bytes, self.file)?,
            (files, deleted) => {
                write!(
                    f,
                    "{} frames, {} bytes in {} files",
                    self.frames,
                    self.bytes,
                    files as u64 + deleted
                )?;
                if let Some(last) = self.files.last() {
                    write!(f, " up to {}", last.name)?;
                }
                if deleted > 0 {
                    let frames = self.deleted.frames;
                    write!(f, "; the oldest {deleted}, with {frames} frames, were deleted")?;
                }
            }
        }
        if self.late > 0 {
            write!(f, ", {} of them late", self.late)?;
        }
        if let Some(triggered) = &self.triggered {
            let (events, windows) =
                (triggered.events, triggered.windows.len() as u64 + triggered.windows_left_out);
            let outside: u64 = self.buses.iter().map(|bus| bus.outside).sum();
            write!(f, "; {events} events in {windows} windows, {outside} frames outside of them not kept")?;
        }
        if self.clock_steps > 0 {
            write!(f, "; the clock was set {} times", self.clock_steps)?;
        }
        write!(f, "\ncapture: {}", self.verdict)
    }
}

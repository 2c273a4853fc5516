//! The account of a recording: the frames that each interface has counted and those in the file, the frames lost at each
//! place, and a verdict. `docs/capture.md` explains each field.

use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

/// The value of [`Account::schema`].
pub(super) const SCHEMA: &str = "canter-capture/1";

/// Where frames were lost, and how many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lost {
    /// Overruns of a controller or driver: events, each of at least one frame.
    pub overrun_events: u64,
    /// Discarded by a driver or the network stack on reception.
    pub driver: u64,
    /// A processor's backlog was full; counts frames of every interface, also Ethernet.
    pub backlog: u64,
    /// The recorder's ring, or one of its sockets, was full.
    pub ring: u64,
    /// The receive queue of a canchar device's open file was full.
    #[serde(default)]
    pub device: u64,
    /// The RAM queue (`--buffer`) was full.
    pub queue: u64,
    /// Not written because of a disk error.
    pub disk: u64,
    /// Counted by an interface, never received by the recorder, and not counted at any other place.
    pub unaccounted: u64,
}

/// A file of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// Its path.
    pub name: String,
    /// Frames in it.
    pub frames: u64,
    /// Its size in bytes.
    pub bytes: u64,
    /// The stamp of its first frame, in ns since 1970 (UTC); 0 for a file without frames.
    pub first_ns: u64,
    /// The stamp of its last frame, in ns since 1970 (UTC).
    pub last_ns: u64,
}

/// The sum over the files that rotation has deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// When it happened, in ns of the real-time clock.
    pub at_ns: u64,
    /// A sentence that begins with the interface or file.
    pub what: String,
}

/// An interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bus {
    /// Its name when the recorder first found it.
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
    /// Frames that the interface has counted during the recording; `None`: it was removed and its counters are unknown.
    pub counted: Option<u64>,
    /// Received but not counted by the interface: error frames and echoes, which drivers do not count.
    pub uncounted: u64,
    /// So close to the start or end that the interface may have counted them before or after the recording.
    pub ambiguous: u64,
    /// Frames that the interface has sent; it does not count their echoes as received.
    #[serde(default)]
    pub sent: u64,
    /// Frames that may be missing without a trace, because as many frames are ambiguous or uncounted.
    #[serde(default)]
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
    /// It is a canchar device, whose queue counts its own losses.
    #[serde(skip)]
    pub(super) own_queue: bool,
}

/// The account of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// The name and version of this structure.
    pub schema: String,
    /// The output file as given in the settings.
    pub file: String,
    /// Its format.
    pub format: String,
    /// How frames were received: `ring`, `sockets`, `devices`, or a combination (`ring+devices`).
    pub method: String,
    /// When counting began, in ns of the real-time clock.
    pub started_ns: u64,
    /// When counting ended, in ns of the real-time clock.
    pub ended_ns: u64,
    /// `complete`, `ambiguous: …`, or the places where frames were lost.
    pub verdict: String,
    /// Whether every frame that passes the filters is in the files; false also when that cannot be proved.
    pub complete: bool,
    /// Frames in the files.
    pub frames: u64,
    /// The size of all files in bytes, deleted ones included.
    pub bytes: u64,
    /// Frames that are in the file after frames with younger stamps.
    pub late: u64,
    /// How often the real-time clock was set during the recording.
    pub clock_steps: u64,
    /// Frames lost, by place.
    pub lost: Lost,
    /// How many more may be missing without a trace.
    #[serde(default)]
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
    #[serde(default)]
    pub events_left_out: u64,
    /// Size of the ring, or of all sockets' queues, in bytes.
    pub ring_bytes: u64,
    /// Size of the RAM queue in bytes.
    pub queue_bytes: u64,
    /// The most memory of the RAM queue that was in use, in bytes.
    pub queue_high_water_bytes: u64,
    /// Why the recording ended early or stopped writing; empty when it ended on request.
    pub failure: String,
}

impl Account {
    /// Computes the sums over all buses, and the verdict.
    pub(super) fn close(&mut self) {
        let sockets = self.method.starts_with(SOCKETS);
        let sum = |of: fn(&Bus) -> u64| self.buses.iter().map(of).sum::<u64>();
        let known = self.buses.iter().all(|bus| bus.counted.is_some());
        let dropped = sum(|bus| bus.driver_lost);
        // A full backlog counts at the interface too; the rest are frames of other networks.
        let backlog = if known { self.lost.backlog.min(dropped) } else { self.lost.backlog };
        // Sockets and devices count their own losses, by bus; the ring only all.
        let own = |bus: &&Bus| sockets || bus.own_queue;
        let of_own: u64 = self.buses.iter().filter(own).map(Bus::missing_beyond_own).sum();
        let of_ring: u64 = self.buses.iter().filter(|bus| !own(bus)).map(Bus::missing).sum();
        let ring = if sockets { 0 } else { self.lost.ring };
        let lost = Lost {
            overrun_events: sum(|bus| bus.overrun_events),
            driver: dropped.saturating_sub(backlog),
            backlog,
            queue: sum(|bus| bus.queue_lost),
            disk: sum(|bus| bus.disk_lost),
            unaccounted: (of_own + of_ring.saturating_sub(ring)).saturating_sub(backlog),
            ..self.lost
        };
        let frames = sum(|bus| bus.in_file);
        (self.lost, self.frames) = (lost, frames);
        if !sockets {
            self.share_ring_losses();
        }
        self.buses.iter_mut().for_each(|bus| bus.doubtful = bus.doubt());
        let gone: Vec<&str> =
            self.buses.iter().filter(|bus| bus.counted.is_none()).map(|bus| bus.name.as_str()).collect();
        self.verdict = lost.verdict(&gone, self.failure.as_str(), &self.method);
        self.complete = self.verdict == COMPLETE;
        // The ring may have counted some of those that the interfaces' counters do not show to be missing.
        let doubtful = |own_queue| {
            let of = |bus: &&Bus| own(bus) == own_queue;
            self.buses.iter().filter(of).map(|bus| bus.doubtful).sum::<u64>()
        };
        self.doubtful = doubtful(true) + (of_ring + doubtful(false)).saturating_sub(of_ring.max(ring));
        match self.doubt() {
            Some(doubt) if self.complete => (self.verdict, self.complete) = (doubt, false),
            Some(_) if self.doubtful > 0 => {
                let reasons: BTreeSet<_> =
                    self.buses.iter().filter(|bus| bus.doubtful > 0).map(Bus::why_doubtful).collect();
                let reasons = reasons.into_iter().collect::<Vec<_>>().join(", or ");
                let more = format!("; up to {} more may be missing: {reasons}", self.doubtful);
                self.verdict.push_str(&more);
            }
            _ => {}
        }
    }

    /// Whether no frame is known to be lost, but it cannot be proved that none is.
    pub fn is_ambiguous(&self) -> bool {
        self.verdict.starts_with(AMBIGUOUS)
    }

    /// Why it cannot be proved that no frame is missing.
    fn doubt(&self) -> Option<String> {
        let doubtful = self.buses.iter().filter(|bus| bus.doubtful > 0);
        let reason = |bus: &Bus| {
            let reason = bus.why_doubtful();
            format!("up to {} frames of {} may be missing: {reason}", bus.doubtful, bus.name)
        };
        let reasons: Vec<String> = doubtful.map(reason).collect();
        (!reasons.is_empty()).then(|| format!("{AMBIGUOUS} {}", reasons.join("; ")))
    }
}

impl Account {
    /// Assigns the ring's losses to the buses, if the frames missing on the buses add up to the ring's count.
    fn share_ring_losses(&mut self) {
        let of_ring = || |bus: &&mut Bus| !bus.own_queue;
        let missing: u64 = self.buses.iter_mut().filter(of_ring()).map(|bus| bus.missing()).sum();
        for bus in self.buses.iter_mut().filter(of_ring()) {
            bus.ring_lost = match self.lost.ring {
                0 => Some(0),
                all if all == missing => Some(bus.missing()),
                _ => None,
            };
        }
    }
}

const COMPLETE: &str = "complete";
const AMBIGUOUS: &str = "ambiguous:";
/// The value of [`Account::method`] for a ring.
const RING: &str = "ring";
const SOCKETS: &str = "sockets";

impl Bus {
    /// Frames that the interface has counted and the recorder has not received: at least so many are missing.
    pub(super) fn missing(&self) -> u64 {
        self.counted.map_or(0, |counted| counted.saturating_sub(self.seen))
    }

    /// The most frames that may be missing: frames were received that the interface has not counted.
    pub(super) fn possibly_missing(&self) -> u64 {
        let Some(counted) = self.counted else { return 0 };
        let uncounted_at_most = self.sent + self.error_frames + self.ambiguous;
        (counted + uncounted_at_most).saturating_sub(self.seen).min(counted)
    }

    fn missing_beyond_own(&self) -> u64 {
        self.missing().saturating_sub(self.ring_lost.unwrap_or_default())
    }

    fn why_doubtful(&self) -> &'static str {
        match self.ambiguous {
            0 => "as many echoes or error frames, which its driver does not count, would hide them",
            _ => "as many came too close to the start or end to be compared with its counters",
        }
    }

    /// Frames that may be missing beyond those that are. Equal counts leave no doubt: echoes and error frames would have to
    /// make up for the losses to the frame.
    fn doubt(&self) -> u64 {
        let equal = self.ambiguous == 0 && self.counted == Some(self.seen);
        if equal { 0 } else { self.possibly_missing() - self.missing() }
    }
}

impl Lost {
    /// The number of frames known to be lost.
    pub fn frames(&self) -> u64 {
        self.places(RING).iter().map(|(_, frames)| frames).sum()
    }

    fn places(&self, method: &str) -> [(&'static str, u64); 7] {
        let ring = if method.starts_with(SOCKETS) { "the sockets" } else { "the ring" };
        [
            ("the driver", self.driver),
            ("the backlog", self.backlog),
            (ring, self.ring),
            ("the device's queue", self.device),
            ("the RAM queue", self.queue),
            ("the disk", self.disk),
            ("an unknown place", self.unaccounted),
        ]
    }

    fn verdict(&self, gone: &[&str], failure: &str, method: &str) -> String {
        let places = self.places(method).into_iter().filter(|&(_, frames)| frames > 0);
        let places: Vec<String> = places.map(|(place, frames)| format!("{place} ({frames})")).collect();
        let frames = format!("{} frames lost at {}", self.frames(), places.join(", "));
        let mut parts = Vec::new();
        if self.overrun_events > 0 {
            let events = self.overrun_events;
            parts.push(format!("incomplete: at least {events} overrun events, number of frames unknown"));
        }
        if !gone.is_empty() {
            parts.push(format!("incomplete: {} removed, counters unknown", gone.join(", ")));
        }
        if !places.is_empty() {
            parts.push(frames);
        }
        if parts.is_empty() && !failure.is_empty() {
            parts.push(format!("incomplete: {failure}"));
        }
        if parts.is_empty() { COMPLETE.to_owned() } else { parts.join("; ") }
    }
}

impl fmt::Display for Account {
    /// A table with one row per bus, then the verdict.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.buses.iter().map(|bus| bus.name.len()).max().unwrap_or(0).max("interface".len());
        writeln!(
            f,
            "{:<width$} {:>12} {:>12} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
            "interface", "counted", "in file", "filtered", "errors", "overruns", RING, "queue", "disk"
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
        if self.clock_steps > 0 {
            write!(f, "; the clock was set {} times", self.clock_steps)?;
        }
        write!(f, "\ncapture: {}", self.verdict)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn account(ring: u64, buses: &[(u64, u64)]) -> Account {
        let bus = |&(counted, seen): &(u64, u64)| Bus { counted: Some(counted), seen, ..Bus::default() };
        let lost = Lost { ring, ..Lost::default() };
        let mut account = Account { lost, buses: buses.iter().map(bus).collect(), ..Account::default() };
        account.close();
        account
    }

    #[test]
    fn equal_counts_are_complete_and_more_received_than_counted_is_no_loss() {
        assert_eq!(account(0, &[(5, 5), (7, 9)]).verdict, "complete");
    }

    #[test]
    fn ring_losses_are_reported_by_bus_when_the_missing_frames_add_up() {
        let exact = account(5, &[(10, 8), (10, 7)]);
        assert_eq!(exact.verdict, "5 frames lost at the ring (5)");
        assert_eq!(exact.buses.iter().map(|bus| bus.ring_lost).collect::<Vec<_>>(), [Some(2), Some(3)]);
        let unclear = account(5, &[(10, 8), (10, 9)]);
        assert_eq!(unclear.buses[0].ring_lost, None);
        assert_eq!((unclear.lost.frames(), unclear.complete), (5, false));
    }

    #[test]
    fn losses_of_a_device_are_not_counted_as_losses_of_the_ring() {
        let of = |counted, seen| Bus { counted: Some(counted), seen, ..Bus::default() };
        let device = Bus { ring_lost: Some(3), own_queue: true, ..of(10, 7) };
        let lost = Lost { ring: 2, device: 3, ..Lost::default() };
        let method = "ring+devices".to_owned();
        let mut account = Account { method, lost, buses: vec![of(10, 8), device], ..Account::default() };
        account.close();
        assert_eq!(account.buses.iter().map(|bus| bus.ring_lost).collect::<Vec<_>>(), [Some(2), Some(3)]);
        assert_eq!(account.verdict, "5 frames lost at the ring (2), the device's queue (3)");
    }

    #[test]
    fn ambiguous_frames_of_one_bus_hide_no_loss_of_another() {
        let of = |counted, seen, ambiguous| Bus { counted: Some(counted), seen, ambiguous, ..Bus::default() };
        let mut account = Account { buses: vec![of(10, 15, 7), of(10, 7, 0)], ..Account::default() };
        account.close();
        let more = "up to 2 more may be missing: as many came too close to the start or end";
        let expected = format!("3 frames lost at an unknown place (3); {more}");
        assert!(account.verdict.starts_with(&expected), "{account}");
        assert_eq!(account.doubtful, 2);
    }

    #[test]
    fn what_the_ring_counted_beyond_the_counters_is_no_longer_in_doubt() {
        let mut echoing = Bus { counted: Some(100), seen: 60, sent: 20, ..Bus::default() };
        let verdict = |ring, bus: &Bus| {
            let lost = Lost { ring, ..Lost::default() };
            let mut account = Account { lost, buses: vec![bus.clone()], ..Account::default() };
            account.close();
            (account.lost.frames(), account.doubtful, account.verdict.contains("more may be missing"))
        };
        // 40 are missing, or up to 60, if some of those that were seen were echoes.
        assert_eq!(verdict(40, &echoing), (40, 20, true));
        assert_eq!(verdict(53, &echoing), (53, 7, true));
        assert_eq!(verdict(60, &echoing), (60, 0, false));
        echoing.sent = 0;
        assert_eq!(verdict(40, &echoing), (40, 0, false));
    }

    #[test]
    fn what_cannot_be_proved_is_ambiguous_and_not_complete() {
        let of =
            |counted, seen| Bus { name: "can0".to_owned(), counted: Some(counted), seen, ..Bus::default() };
        let verdict = |bus: Bus| {
            let mut account = Account { buses: vec![bus], ..Account::default() };
            account.close();
            assert_eq!(account.complete, account.verdict == COMPLETE);
            assert_eq!(account.is_ambiguous(), account.verdict.starts_with("ambiguous: up to "), "{account}");
            account.verdict
        };
        // Every sent frame has an echo, and no error frame is counted: nothing can hide a loss.
        assert_eq!(verdict(Bus { sent: 4, error_frames: 1, ..of(10, 15) }), "complete");
        // A frame at the end, and one of ten is missing: the numbers are the same.
        assert!(verdict(Bus { ambiguous: 1, ..of(10, 10) }).starts_with("ambiguous: up to 1 frames of can0"));
        // Two of the four sent frames have no echo, or two received frames are missing.
        assert!(verdict(Bus { sent: 4, ..of(10, 12) }).starts_with("ambiguous: up to 2 frames of can0"));
        assert_eq!(verdict(Bus { sent: 4, ..of(10, 10) }), "complete", "no echo at all");
        assert_eq!(verdict(Bus { ambiguous: 2, ..of(10, 12) }), "complete", "both were counted later");
    }

    #[test]
    fn a_backlog_full_of_ethernet_frames_is_no_loss_of_the_recording() {
        let bus = Bus { counted: Some(5), seen: 5, driver_lost: 2, ..Bus::default() };
        let lost = Lost { backlog: 9, ..Lost::default() };
        let mut account = Account { lost, buses: vec![bus], ..Account::default() };
        account.close();
        assert_eq!(account.verdict, "2 frames lost at the backlog (2)");
        account.buses[0].driver_lost = 0;
        account.close();
        assert_eq!(account.verdict, "complete");
    }

    #[test]
    fn unexplained_losses_are_reported_at_an_unknown_place() {
        assert_eq!(account(1, &[(10, 7)]).verdict, "3 frames lost at the ring (1), an unknown place (2)");
    }

    #[test]
    fn overruns_are_events_and_never_frames() {
        let lost = Lost { overrun_events: 3, disk: 2, ..Lost::default() };
        let verdict = lost.verdict(&["can7"], "", RING);
        assert_eq!(
            verdict,
            "incomplete: at least 3 overrun events, number of frames unknown; \
             incomplete: can7 removed, counters unknown; 2 frames lost at the disk (2)"
        );
    }

    proptest! {
        #[test]
        fn an_account_with_missing_frames_is_never_complete(
            ring in 0u64..9, buses in prop::collection::vec((0u64..100, 0u64..100), 0..6),
        ) {
            let account = account(ring, &buses);
            let missing: u64 = buses.iter().map(|(counted, seen)| counted.saturating_sub(*seen)).sum();
            prop_assert_eq!(account.complete, missing == 0 && ring == 0);
            prop_assert_eq!(account.lost.frames(), missing.max(ring));
            let text = serde_json::to_string(&account).unwrap();
            prop_assert_eq!(serde_json::from_str::<Account>(&text).unwrap(), account);
        }
    }
}

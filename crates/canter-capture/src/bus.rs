//! A bus of a recording: the interface that carries it now, the interfaces that carried it before, and the counts of
//! its frames.

use crate::{
    aligner::{Aligned, Aligner},
    bounds::Bounds,
    counting::{Span, clock_offset_ns},
};
use canter_frame::{RawRecord, frame::ERR_FLAG};
use canter_io::{
    BitRate, Filters, Interface,
    captured::Captured,
    carrier::Access,
    error_frame::ErrorFrame,
    interface::{FrameCounters, Kind},
};
use std::collections::{BTreeMap, VecDeque};

/// How many of the interfaces that carried a bus before are known: more than come and go while frames wait in the kernel.
const FORMER_MAX: usize = 64;

/// A recorded interface and the counts of its frames.
pub struct Bus {
    /// The name in the file: the interface's when it was found; for a device, without `/dev/`.
    pub name: String,
    pub interface: Interface,
    /// The indexes of the interfaces that carried it before, the last one last: their last frames may still wait in the kernel.
    pub former: VecDeque<u32>,
    /// The frames to record; `None`: all, error frames included.
    pub filters: Option<Filters>,
    /// The interface's counters when its counting began; `None`: the interface does not exist here now.
    pub counters: Option<FrameCounters>,
    /// The interface's counts up to its last removal; `None`: unknown.
    pub past: Option<FrameCounters>,
    /// Which stamps belong to the recording.
    pub span: Span,
    /// Frames of another interface, which got this one's index, may be among its frames.
    pub is_mixed: bool,
    /// The bit rate; `None`: unknown, or the bus load is not computed.
    pub rate: Option<BitRate>,
    pub busy_ns: u64,
    /// Whether there is a socket or a device file for it, if the source uses these.
    pub is_received: bool,
    /// Frames lost in its sockets or device files that are closed now.
    pub own_lost: u64,
    /// How often its error frames reported each kind of error.
    pub errors: BTreeMap<&'static str, u64>,
    pub tally: Tally,
    /// Stamps frames by the controller's clock; `None`: by the kernel's stamps.
    pub aligner: Option<Aligner>,
    /// How far these stamps may be wrong.
    pub bounds: Bounds,
}

/// The counts of an interface's frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Frames received from the kernel.
    pub seen: u64,
    /// Error frames among them.
    pub errors: u64,
    /// Rejected by a filter.
    pub filtered: u64,
    /// Lost because the queue of its socket or device file was full.
    pub own_lost: u64,
    /// Lost because the RAM queue was full.
    pub queue_lost: u64,
    /// So close to the start or end that the interface may have counted them before or after the recording.
    pub ambiguous: u64,
    /// The interface's counts from start to end; `None`: it was removed and its counters are unknown.
    pub counted: Option<FrameCounters>,
}

/// The name of an interface in files: `canchar0` for /dev/canchar0.
pub fn name_in_file(name: &str) -> &str {
    name.strip_prefix("/dev/").unwrap_or(name)
}

pub fn is_device(interface: &Interface) -> bool {
    interface.carrier.access == Access::File
}

impl Bus {
    pub fn new(interface: Interface, name: String, filters: Option<Filters>, rate: Option<BitRate>) -> Self {
        Self {
            name,
            interface,
            filters,
            counters: None,
            past: Some(FrameCounters::default()),
            span: Span::default(),
            former: VecDeque::new(),
            is_mixed: false,
            rate,
            busy_ns: 0,
            is_received: false,
            own_lost: 0,
            errors: BTreeMap::new(),
            tally: Tally::default(),
            aligner: None,
            bounds: Bounds::default(),
        }
    }

    /// The frame on the system's clock, by its controller's stamp if it has one and that is wanted.
    pub fn aligned<'r>(&mut self, record: RawRecord<'r>) -> RawRecord<'r> {
        match &mut self.aligner {
            Some(aligner) if record.hardware_ns != 0 => {
                let Aligned { stamp_ns, bound_ns } = aligner.align(record.hardware_ns, record.stamp_ns);
                self.bounds.add(stamp_ns, bound_ns);
                RawRecord { stamp_ns, bound_ns, ..record }
            }
            _ => record,
        }
    }

    /// Whether its interface exists here now.
    pub fn is_present(&self) -> bool {
        self.counters.is_some()
    }

    /// Whether it is a canchar device, not a network interface.
    pub fn is_device(&self) -> bool {
        is_device(&self.interface)
    }

    /// Whether its driver reports sent frames by an echo that it does not count as received. The echo of a vcan is
    /// counted.
    pub fn has_uncounted_echo(&self) -> bool {
        self.interface.kind != Kind::Vcan
    }

    /// Notes that the interface was removed; `counters` are the last ones.
    pub fn lose_interface(&mut self, counters: Option<FrameCounters>) {
        self.add_counted(counters);
        self.is_received = false;
        self.former.push_back(self.interface.index);
        if self.former.len() > FORMER_MAX {
            self.former.pop_front();
        }
    }

    /// Adds the interface's counts to `past`, because it was removed or the recording ends.
    pub fn add_counted(&mut self, counters: Option<FrameCounters>) {
        if let Some(begun) = self.counters.take() {
            let grown = counters.map(|counters| counters.since(&begun));
            self.past = self.past.zip(grown).map(|(past, grown)| past.plus(&grown));
        }
    }

    /// Adds what the interface has counted so far, so that its counters may wrap any number of times.
    pub fn count_on(&mut self) {
        if self.is_present()
            && let Ok(counters) = self.interface.frame_counters()
        {
            self.add_counted(Some(counters));
            self.counters = Some(counters);
        }
    }

    /// Counts a frame, and returns whether to record it. Inlined, because a call would cost a tenth of receiving the frame.
    #[inline(always)]
    pub fn wants(&mut self, record: &Captured<'_>) -> bool {
        let stamp_ns = record.stamp_ns;
        if self.span.is_near_limit(stamp_ns) && !self.is_inside(stamp_ns) {
            return false;
        }
        self.tally.seen += 1;
        // struct can_frame: the identifier and its flags are the first word.
        let can_id = record.bytes.first_chunk().map_or(0, |word| u32::from_ne_bytes(*word));
        if can_id & ERR_FLAG != 0 {
            self.count_error(record);
        }
        let plain = self.rate.is_none() && self.filters.is_none();
        plain || self.add_load_and_filter(record)
    }

    /// Whether a frame near the start or the end of the recording belongs to it.
    #[cold]
    fn is_inside(&mut self, stamp_ns: u64) -> bool {
        let inside = self.span.is_inside(stamp_ns, clock_offset_ns);
        self.tally.ambiguous += u64::from(inside && self.span.is_ambiguous(stamp_ns));
        inside
    }

    /// Adds the frame's duration to the bus load, and returns whether the frame passes the filters.
    fn add_load_and_filter(&mut self, record: &Captured<'_>) -> bool {
        let frame = record.frame();
        if let Some(rate) = self.rate {
            self.busy_ns += frame.duration_with_interframe_ns(rate);
        }
        let passes = self.filters.as_ref().is_none_or(|filters| filters.matches(&frame));
        self.tally.filtered += u64::from(!passes);
        passes
    }

    #[cold]
    fn count_error(&mut self, record: &Captured<'_>) {
        self.tally.errors += 1;
        for kind in ErrorFrame::from_frame(&record.frame()).iter().flat_map(ErrorFrame::kinds) {
            *self.errors.entry(kind).or_default() += 1;
        }
    }
}

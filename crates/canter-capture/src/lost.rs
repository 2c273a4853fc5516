//! The places where a recording loses frames.

use serde::Serialize;

/// Where frames were lost, and how many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
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
    pub device: u64,
    /// The RAM queue (`--buffer`) was full.
    pub queue: u64,
    /// Not written because of a disk error.
    pub disk: u64,
    /// The memory for frames before an event (`--window-buffer`) was full.
    pub window: u64,
    /// Counted by an interface, never received by the recorder, and not counted at any other place.
    pub unaccounted: u64,
}

impl Lost {
    /// The number of frames known to be lost.
    pub fn frames(&self) -> u64 {
        self.places("").iter().map(|(_, frames)| frames).sum()
    }

    /// Each place with its frames; `network_queue` names the queue between kernel and recorder.
    pub(super) fn places(&self, network_queue: &'static str) -> [(&'static str, u64); 8] {
        [
            ("the driver", self.driver),
            ("the backlog", self.backlog),
            (network_queue, self.ring),
            ("the device's queue", self.device),
            ("the RAM queue", self.queue),
            ("the disk", self.disk),
            ("the window buffer", self.window),
            ("an unknown place", self.unaccounted),
        ]
    }
}

//! The places where a recording loses frames, and where each is counted. `judge::lost` adds them up.
//!
//! No place here, and yet never a complete recording: a frame of an interface that has no name for it (`Buses::copy_wanted_to`:
//! in doubt, as `judge::judge` adds; the doubts of each bus are `judge::doubts`), one that is nowhere in the balance
//! (`Fault::Inside`), those of an interface that was removed before its counters were read (`Fault::Removed`), a reception that
//! failed or a receiver that panicked (`Fault::Failed`; `Account::of_written` in balance.rs), and a process that was killed
//! (`Fault::Unfinished`, the verdict of an account until its end).
//!
//! Counted, and no loss: frames that a filter leaves out (`filtered`), those after the last one that was asked for (`beyond`),
//! those outside of all windows of triggers (`outside`), and files that a rotation deleted.

use serde::Serialize;

/// Where frames were lost, and how many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Lost {
    /// Overruns of a controller or driver: events, each of at least one frame (`Bus::add_counted`, the growth of
    /// `FrameCounters::overruns`).
    pub overrun_events: u64,
    /// Discarded by a driver or the network stack on reception: the growth of the interface's `dropped`
    /// (`Bus::add_counted`), without the backlog's.
    pub driver: u64,
    /// A processor's backlog was full; counts frames of every interface, also Ethernet (`canter_io::loss::Watch`): at most
    /// what the recorded interfaces dropped, unless one was removed before its counters were read. Where they cannot be
    /// read, these are among the driver's.
    pub backlog: u64,
    /// The recorder's ring, or one of its sockets, was full (`Lane::drops` and `CaptureSockets::drops` of canter-io).
    pub ring: u64,
    /// The receive queue of a canchar device's open file was full (`CaptureDevices::drops` of canter-io).
    pub device: u64,
    /// The RAM queue (`--buffer`) was full (`Keeper::keep`).
    pub queue: u64,
    /// Not written because of a disk error (`Output::write`), in a file that could not be synchronised, was removed or was changed
    /// by somebody (`Output::lose_file`), or because the disk still stalled at the end or the writer panicked
    /// (`Account::given_up` in balance.rs).
    pub disk: u64,
    /// Frames of a window that are not in its file: the memory for frames before an event (`--window-buffer`) was full, or
    /// they came when the file was closed (`Output::lose_to_window`).
    pub window: u64,
    /// Counted by an interface, never received by the recorder, and not counted at any other place (`judge::Unexplained`): so is
    /// a packet of no frame's size, which the ring's reader skips.
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

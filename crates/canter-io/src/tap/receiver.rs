//! A tap as a receiver, for measurements: frames with the times at which they were on the wire.

use super::{Record, Tap};
use crate::{
    Batch, Meta,
    batch::{Clock, Origin},
    method::Receive,
};
use std::{
    io,
    os::fd::{AsFd, BorrowedFd},
};

/// Which time of a frame is its stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// The start of SOF.
    Start,
    /// The end of EOF.
    End,
    /// When receivers get the frame: its end, and however late the wire's timer ran.
    Delivery,
}

/// Receives the complete frames of a wire, with stamps in ns of `CLOCK_MONOTONIC`. It never waits.
pub struct TapReceiver<F> {
    tap: Tap,
    edge: Edge,
    /// Selects the frames to receive.
    keep: F,
}

impl<F: FnMut(&Record) -> bool + Send> TapReceiver<F> {
    /// Reads `tap` and receives the frames for which `keep` returns true.
    pub fn new(tap: Tap, edge: Edge, keep: F) -> Self {
        Self { tap, edge, keep }
    }
}

impl<F: FnMut(&Record) -> bool + Send> Receive for TapReceiver<F> {
    fn receive(&mut self, batch: &mut Batch) -> io::Result<usize> {
        let mut count = 0;
        while batch.room() > 0 {
            let Some(record) = self.tap.next_record() else { break };
            if record.error.is_some() || !(self.keep)(&record) {
                continue;
            }
            let stamp_ns = match self.edge {
                Edge::Start => record.sof_ns,
                Edge::End => record.end_ns,
                Edge::Delivery => record.delivery_ns(),
            };
            let interface = record.sender.unwrap_or_default();
            let (clock, origin) = (Clock::Hardware, Origin::Bus);
            batch.push(&record.frame, Meta { stamp_ns, interface, drops: 0, clock, origin });
            count += 1;
        }
        Ok(count)
    }

    fn drops(&mut self) -> io::Result<u64> {
        Ok(self.tap.missed())
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.tap.as_fd())
    }
}

//! A node on a canchar device: one open file, without waiting calls.

use super::{CALL_FRAMES, NodeOptions, Received};
use crate::{
    Error, Filters, Frame, Interface, Result,
    interface::Counters,
    method::{ReceiveOptions, Wait, can_raw::SENT_FRAME_BYTES, canchar},
    sys::canchar::{Device, ECHO, RawFrame, SLOTS_MAX},
};
use std::{
    io,
    os::fd::{AsFd, BorrowedFd},
    sync::OnceLock,
};

/// How long a node that is closed waits for frames that are not sent yet: as close(2) of a file that may wait.
const LINGER_NS: u64 = 1_000_000_000;
/// A frame's place in a queue.
const SLOT_BYTES: u32 = size_of::<RawFrame>() as u32;

#[derive(Debug)]
pub(super) struct OpenDevice {
    device: Device,
    index: u32,
    /// What was counted when it was closed.
    last: OnceLock<Tally>,
    slots: u32,
}

/// Frames that the file's queue has lost, and the device's counters.
#[derive(Clone, Debug)]
pub(super) struct Tally {
    pub lost: u64,
    pub counters: Counters,
}

impl OpenDevice {
    pub fn open(interface: &Interface, options: &NodeOptions) -> Result<Self> {
        let step = |step: &'static str| move |error| Error::new(&interface.name, step, error);
        let receive = ReceiveOptions {
            filters: options.filters.clone(),
            stamps: true,
            own_frames: options.own_frames && options.echo, // as CAN_RAW has it
            queue_frames: options.queue_bytes.map(slots),
            ..ReceiveOptions::default()
        };
        let device = canchar::open_receiver(interface, &receive, Wait::Poll)?;
        if options.echo {
            device.change(|set| set.flags |= ECHO).map_err(step("set options"))?;
        }
        let slots = device.options().map_err(step("options"))?.rx_slots;
        Ok(Self { device, index: interface.index, last: OnceLock::new(), slots })
    }

    pub fn set_filters(&self, name: &str, filters: &Filters) -> Result<()> {
        self.device.set_filters(filters).map_err(|error| Error::new(name, "set filters", error))
    }

    pub fn receive(&self, raw: &mut [RawFrame], to: &mut impl Extend<Received>) -> io::Result<usize> {
        let count = self.device.read(&mut raw[..CALL_FRAMES])?;
        to.extend(raw[..count].iter().map(|raw| self.received(raw)));
        Ok(count)
    }

    fn received(&self, raw: &RawFrame) -> Received {
        let mut received = Received::default();
        canchar::from_raw(raw, self.index, true, &mut received.frame, &mut received.meta);
        received
    }

    pub fn send(&self, frame: &Frame) -> io::Result<()> {
        self.device.write(&[canchar::to_raw(frame)?]).map(drop)
    }

    pub fn tally(&self) -> io::Result<Tally> {
        let now = || Ok(Tally { lost: self.device.lost()?, counters: (&self.device.statistics()?).into() });
        // In this order, because it may be closed meanwhile.
        now().or_else(|error| self.last.get().cloned().ok_or(error))
    }

    pub fn queue_bytes(&self) -> u32 {
        self.slots * SLOT_BYTES
    }

    /// Errors of sending or counting at the end are ignored.
    pub fn close(&self) {
        self.device.wait_sent(LINGER_NS).ok();
        if let Ok(tally) = self.tally() {
            self.last.set(tally).ok();
        }
        self.device.close().ok();
    }
}

impl AsFd for OpenDevice {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

/// Places for as many frames as a socket's queue of `bytes` holds.
fn slots(bytes: u32) -> u32 {
    (bytes / SENT_FRAME_BYTES).clamp(2, SLOTS_MAX).next_power_of_two()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_holds_what_a_socket_s_of_the_same_bytes_holds_in_a_power_of_two_of_slots() {
        for (bytes, expected) in [(0, 2), (100_000, 128), (4 << 20, 4096), (u32::MAX, 4096)] {
            assert_eq!(slots(bytes), expected, "{bytes} bytes");
        }
    }
}

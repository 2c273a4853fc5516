//! canchar devices for recording: one open file per device, with the longest possible queue and all error frames.
//!
//! The kernel does not report devices that appear or disappear, as rtnetlink does for interfaces. When a card is
//! removed, its open file returns an error on reading, and still has the device's counters and the losses of its own
//! queue.

use crate::{
    Filters, Interface, Result,
    captured::Captured,
    filter::EVERY_ERROR,
    frame::CAN_MTU,
    interface::{Counters, FrameCounters},
    method::{ReceiveOptions, Wait, canchar},
    sys::{
        canchar::{Device, RawFrame, SLOTS_MAX},
        clock,
    },
};
use std::{
    io,
    os::fd::{AsFd, BorrowedFd},
};

/// The most frames per system call.
const CALL_FRAMES: usize = 256;
/// The most consecutive system calls for one device, so that a busy device does not delay the others.
const CALLS_IN_A_ROW: usize = 16;

/// Whether frames can be read from a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Running,
    /// Stopped. poll(2) cannot wait for a stopped device, but reports an error until the device is started.
    Down,
    /// Removed: the driver has lost the card.
    Gone,
}

struct Open {
    device: Device,
    index: u32,
    standing: Standing,
}

/// Receives from any number of canchar devices.
pub struct CaptureDevices {
    open: Vec<Open>,
    raw: Box<[RawFrame]>,
    frames: Box<[[u8; CAN_MTU]]>,
    /// All frames with stamps below this, in ns, have been handed out; without a device, always all.
    complete_until_ns: u64,
}

impl Default for CaptureDevices {
    fn default() -> Self {
        Self {
            open: Vec::new(),
            raw: vec![RawFrame::default(); CALL_FRAMES].into(),
            frames: vec![[0; CAN_MTU]; CALL_FRAMES].into(),
            complete_until_ns: 0,
        }
    }
}

impl CaptureDevices {
    /// Starts to receive from a device, error frames too. It may be stopped.
    ///
    /// # Errors
    /// The error of open(2) and ioctl(2), with the step; `ENODEV` when it is gone.
    pub fn add(&mut self, interface: &Interface) -> Result<()> {
        let options = ReceiveOptions {
            filters: Filters { error_mask: EVERY_ERROR, ..Filters::default() },
            stamps: true,
            queue_frames: Some(SLOTS_MAX),
            ..ReceiveOptions::default()
        };
        let device = canchar::open_receiver(interface, &options, Wait::Poll)?;
        self.open.push(Open { device, index: interface.index, standing: Standing::Running });
        Ok(())
    }

    /// Closes the file of the device with this index. While it is open, a card that is plugged in again gets another
    /// number.
    pub fn remove(&mut self, index: u32) {
        self.open.retain(|one| one.index != index);
    }

    /// Whether there is no device.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Whether there is a file of the device with this index.
    pub fn is_open(&self, index: u32) -> bool {
        self.find(index).is_some()
    }

    /// All devices, by their indexes.
    pub fn indexes(&self) -> impl Iterator<Item = u32> {
        self.open.iter().map(|one| one.index)
    }

    /// The indexes of the devices whose cards were removed.
    pub fn gone(&self) -> impl Iterator<Item = u32> {
        self.open.iter().filter(|one| one.standing == Standing::Gone).map(|one| one.index)
    }

    /// Tries stopped devices again from now on.
    pub fn wake(&mut self) {
        let down = self.open.iter_mut().filter(|one| one.standing == Standing::Down);
        down.for_each(|one| one.standing = Standing::Running);
    }

    /// Frames lost in the file's queue of the device with this index, up to date at each call; 0 for an unknown device.
    ///
    /// # Errors
    /// The error of ioctl(2).
    pub fn drops(&self, index: u32) -> io::Result<u64> {
        self.find(index).map_or(Ok(0), |one| one.device.lost())
    }

    /// The counters of the device with this index, also after its card was removed.
    pub fn counters(&self, index: u32) -> Option<FrameCounters> {
        self.find(index)?.device.statistics().ok().map(|counted| Counters::from(&counted).into())
    }

    /// The size of the files' queues in bytes.
    pub fn bytes(&self) -> usize {
        self.open.len() * SLOTS_MAX as usize * size_of::<RawFrame>()
    }

    /// The file descriptors that poll(2) can wait for.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let running = self.open.iter().filter(|one| one.standing == Standing::Running);
        running.map(|one| one.device.as_fd())
    }

    /// Every frame with a stamp below this, in ns, has been handed out.
    pub fn complete_until_ns(&self) -> u64 {
        if self.is_empty() { clock::realtime_ns() } else { self.complete_until_ns }
    }

    /// Passes the waiting frames to `take`, device by device, in order per device; does not wait.
    ///
    /// # Errors
    /// The error of read(2), except for a device that is stopped or gone.
    pub fn next(&mut self, mut take: impl FnMut(&[Captured<'_>])) -> io::Result<()> {
        let now_ns = clock::realtime_ns(); // read first: frames that arrive after the check are younger
        let mut all = true;
        for one in &mut self.open {
            all &= one.empty(&mut self.raw, &mut self.frames, &mut take)?;
        }
        if all {
            self.complete_until_ns = now_ns;
        }
        Ok(())
    }

    fn find(&self, index: u32) -> Option<&Open> {
        self.open.iter().find(|one| one.index == index)
    }
}

impl Open {
    /// Receives the waiting frames; true when none is left.
    fn empty(
        &mut self,
        raw: &mut [RawFrame],
        frames: &mut [[u8; CAN_MTU]],
        take: &mut impl FnMut(&[Captured<'_>]),
    ) -> io::Result<bool> {
        for _ in 0..CALLS_IN_A_ROW {
            let count = match self.device.read(raw) {
                Ok(count) => count,
                Err(error) => match error.raw_os_error() {
                    Some(libc::EINTR) => continue,
                    Some(libc::EAGAIN) => return Ok(true),
                    Some(libc::ENETDOWN) => {
                        self.standing = Standing::Down;
                        return Ok(true);
                    }
                    Some(libc::ENODEV) => {
                        self.standing = Standing::Gone;
                        return Ok(true);
                    }
                    _ => return Err(error),
                },
            };
            let received = raw[..count].iter().zip(frames.iter_mut());
            let records: Vec<Captured<'_>> =
                received.map(|(raw, bytes)| record(raw, bytes, self.index)).collect();
            take(&records);
            if count < raw.len() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// A frame of a device as a ring hands it out: `struct can_frame`.
fn record<'a>(raw: &RawFrame, bytes: &'a mut [u8; CAN_MTU], index: u32) -> Captured<'a> {
    bytes[..4].copy_from_slice(&raw.can_id.to_ne_bytes());
    bytes[4..8].copy_from_slice(&[raw.len, 0, 0, 0]);
    bytes[8..].copy_from_slice(&raw.data);
    Captured { origin: canchar::origin(raw), ..Captured::new(raw.stamp_ns, index, bytes) }
}

impl std::fmt::Debug for CaptureDevices {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CaptureDevices").field("devices", &self.open.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{batch::Origin, sys::canchar::FRAME_LOCAL};

    #[test]
    fn a_frame_of_a_device_is_the_frame_that_a_ring_would_have_handed_out() {
        let raw = RawFrame {
            stamp_ns: 7,
            can_id: 0x123,
            len: 2,
            flags: FRAME_LOCAL,
            data: [0xAA, 0xBB, 0, 0, 0, 0, 0, 0],
            ..RawFrame::default()
        };
        let mut bytes = [0xFF; CAN_MTU];
        let record = record(&raw, &mut bytes, 5);
        assert_eq!((record.stamp_ns, record.interface, record.origin), (7, 5, Origin::Local));
        assert_eq!(record.frame(), "123#AABB".parse().unwrap());
    }
}

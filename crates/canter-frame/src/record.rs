//! A frame in a recording: its stamp, its bus and its direction.
//!
//! [`Record`] owns its frame; readers hand it out. [`RawRecord`] borrows the bytes as the kernel wrote them, for
//! recorders that write a frame without unpacking it.

use crate::Frame;
use std::fmt;

/// A bus of a recording: its position, from 0, in the recording's list of buses. It is not the kernel's interface index,
/// which changes when an interface is created again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BusId(pub u32);

impl BusId {
    /// The place of the bus in a list of buses.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for BusId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// The direction of a frame, seen from the machine that recorded it (`candump -x`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Received from the bus; candump writes `R`.
    Received,
    /// Sent by this machine; candump writes `T`.
    Sent,
}

/// A frame of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Nanoseconds since 1970 (UTC) where the recording has a date, else since its beginning.
    pub stamp_ns: u64,
    /// Which bus it was on.
    pub bus: BusId,
    /// The frame; error frames as Linux has them.
    pub frame: Frame,
    /// Whether it was received or sent; `None` if the recording does not have the direction.
    pub direction: Option<Direction>,
}

/// What a recording keeps of the stamp that a controller took of a frame, beside its [`Record`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ControllerStamp {
    /// The controller's own stamp in nanoseconds of the controller's clock.
    pub hardware_ns: u64,
    /// When the record's `stamp_ns` was made from the controller's stamp: how far it may be from the time of that, in
    /// nanoseconds; else 0.
    pub bound_ns: u32,
}

/// A frame of a recording, as the kernel wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawRecord<'a> {
    /// Nanoseconds of the real-time clock, read when the driver handed the frame over.
    pub stamp_ns: u64,
    /// Which bus it was on.
    pub bus: BusId,
    /// `struct can_frame` (16 bytes) or `struct canfd_frame` (72 bytes), in this machine's byte order.
    pub bytes: &'a [u8],
    /// Whether it was received or sent, if the method of recording can distinguish.
    pub direction: Option<Direction>,
    /// The controller's own stamp in nanoseconds of the controller's clock; 0 where there is none.
    pub hardware_ns: u64,
    /// When `stamp_ns` was made from the controller's stamp: how far it may be from the time of that, in nanoseconds; else 0.
    pub bound_ns: u32,
}

impl<'a> RawRecord<'a> {
    /// A frame without direction and hardware stamp.
    #[inline]
    pub fn new(stamp_ns: u64, bus: BusId, bytes: &'a [u8]) -> Self {
        Self { stamp_ns, bus, bytes, direction: None, hardware_ns: 0, bound_ns: 0 }
    }

    /// The frame, unpacked.
    pub fn frame(&self) -> Frame {
        Frame::from_kernel_bytes(self.bytes)
    }

    /// The record with its frame unpacked; the hardware stamp is left out.
    pub fn unpack(&self) -> Record {
        Record { stamp_ns: self.stamp_ns, bus: self.bus, frame: self.frame(), direction: self.direction }
    }
}

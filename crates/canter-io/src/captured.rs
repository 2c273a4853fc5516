//! A frame as the kernel handed it to a recorder: by a block ring, by a socket or by a device.

use crate::batch::Origin;
use canter_frame::{BusId, Direction, Frame, RawRecord};

/// A frame as the kernel received it. It borrows memory of the ring or of the recorder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Captured<'a> {
    /// Nanoseconds of the real-time clock, read when the driver handed the frame over.
    pub stamp_ns: u64,
    /// The index of its interface.
    pub interface: u32,
    /// `struct can_frame` (16 bytes) or `struct canfd_frame` (72 bytes), as the kernel wrote it.
    pub bytes: &'a [u8],
    /// Who sent it, as far as the method can distinguish: a ring cannot.
    pub origin: Origin,
    /// The controller's own stamp in nanoseconds of the controller's clock; 0 where there is none.
    pub hardware_ns: u64,
}

impl<'a> Captured<'a> {
    /// A frame of unknown origin, without hardware stamp.
    #[inline]
    pub fn new(stamp_ns: u64, interface: u32, bytes: &'a [u8]) -> Self {
        Self { stamp_ns, interface, bytes, origin: Origin::Unknown, hardware_ns: 0 }
    }

    /// The frame, unpacked.
    pub fn frame(&self) -> Frame {
        Frame::from_kernel_bytes(self.bytes)
    }

    /// This frame as a recording keeps it, with `bus` for its interface.
    #[inline]
    pub fn on_bus(&self, bus: BusId) -> RawRecord<'a> {
        let Self { stamp_ns, bytes, hardware_ns, .. } = *self;
        RawRecord { stamp_ns, bus, bytes, direction: self.origin.direction(), hardware_ns, bound_ns: 0 }
    }
}

impl Origin {
    /// Whether the frame was received or sent; `None` when the method cannot distinguish.
    #[inline]
    pub fn direction(self) -> Option<Direction> {
        match self {
            Self::Unknown => None,
            Self::Bus => Some(Direction::Received),
            Self::Local | Self::Own => Some(Direction::Sent),
        }
    }
}

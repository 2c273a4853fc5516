//! Frames from one controller to another, until told to stop.

use crate::card::Channel;
use sja1000::Status;

/// Looks at a full transmit buffer before its frame is dropped: an input that is not looked at loses frames as well, and
/// those are harder to count.
const LOOKS_MAX: u32 = 1 << 12;

/// What became of the frames: `received = transmitted + dropped`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Counts {
    /// Taken out of the first controller.
    pub received: u64,
    /// Handed to the second one.
    pub transmitted: u64,
    /// Found no room there.
    pub dropped: u64,
    /// Times that the first controller's FIFO was full, each of which cost at least one frame.
    pub overruns: u64,
    /// Times that a controller was off the bus, and brought back.
    pub bus_offs: u64,
}

/// What the gateway asks when it has nothing to do.
pub trait Idle {
    /// Whether it goes on; it is told what has been counted.
    fn goes_on(&mut self, counts: &Counts) -> bool;
}

impl<F: FnMut(&Counts) -> bool> Idle for F {
    #[inline]
    fn goes_on(&mut self, counts: &Counts) -> bool {
        self(counts)
    }
}

/// A controller no longer answers: its card has gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone;

/// A controller, and whether it is known to be off the bus.
#[derive(Debug)]
struct Side {
    controller: Channel,
    off: bool,
}

/// The two controllers, and what has been counted.
#[derive(Debug)]
pub struct Gateway {
    from: Side,
    to: Side,
    /// What became of the frames.
    pub counts: Counts,
}

impl Gateway {
    /// One that has counted nothing yet.
    pub fn new(from: Channel, to: Channel) -> Self {
        let side = |controller| Side { controller, off: false };
        Self { from: side(from), to: side(to), counts: Counts::default() }
    }

    /// Hands frames over until `idle` ends it. It is asked when no frame waits, and when one found no room.
    ///
    /// # Errors
    /// A card has gone.
    #[inline]
    pub fn run(&mut self, idle: &mut impl Idle) -> Result<(), Gone> {
        loop {
            let status = self.from.controller.status();
            if status.trouble() || self.from.off {
                self.see_to_input(status)?;
            }
            if status.received() && self.hand_over()? {
                continue;
            }
            if !idle.goes_on(&self.counts) {
                return Ok(());
            }
        }
    }

    /// False: the frame found no room.
    #[inline]
    fn hand_over(&mut self) -> Result<bool, Gone> {
        let frame = self.from.controller.take();
        self.counts.received += 1;
        for _ in 0..LOOKS_MAX {
            let status = self.to.controller.status();
            if status.bus_off() || self.to.off {
                self.counts.bus_offs += self.to.look(status)?;
            } else if status.buffer_free() {
                self.to.controller.put(&frame);
                self.counts.transmitted += 1;
                return Ok(true);
            }
            core::hint::spin_loop();
        }
        self.counts.dropped += 1;
        Ok(false)
    }

    #[cold]
    fn see_to_input(&mut self, status: Status) -> Result<(), Gone> {
        self.counts.bus_offs += self.from.look(status)?;
        if status.overrun() {
            self.from.controller.clear_overrun();
            self.counts.overruns += 1;
        }
        Ok(())
    }

    /// Takes both off the bus.
    pub fn stop(&mut self) {
        let _ = self.from.controller.stop(); // one that has gone is off the bus
        let _ = self.to.controller.stop();
    }
}

impl Side {
    /// Brings it back when it is off the bus, and counts that once. The chip says that it is off until it is back.
    #[cold]
    fn look(&mut self, status: Status) -> Result<u64, Gone> {
        if !self.controller.answers() {
            return Err(Gone);
        }
        let has_gone_off = status.bus_off() && !self.off;
        self.off = status.bus_off();
        if has_gone_off {
            self.controller.recover().map_err(|_| Gone)?;
        }
        Ok(has_gone_off.into())
    }
}

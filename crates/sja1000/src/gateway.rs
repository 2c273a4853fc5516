//! A gateway: frames from one controller to another, by polling, with an account of every frame.
//!
//! canter's `bare-metal` gateway runs it on a processor without an operating system; it works in any program that may
//! poll two controllers.

use crate::{Controller, Registers, Status};

/// How often the gateway checks a full transmit buffer before it drops the frame. While the gateway waits for room, it
/// does not empty the input, and frames lost in the input's FIFO are harder to count than frames that the gateway
/// drops.
const POLLS_MAX: u32 = 1 << 12;

/// The account of the frames: `received = transmitted + dropped`.
///
/// Five numbers in this order, as `struct canbare_counts` of canter's kernel/uapi/canbare.h has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Counts {
    /// Frames taken out of the first controller.
    pub received: u64,
    /// Frames handed to the second controller.
    pub transmitted: u64,
    /// Frames that found no room in the second controller.
    pub dropped: u64,
    /// Times that the first controller's FIFO was full; each cost at least one frame.
    pub overruns: u64,
    /// Times that a controller went bus-off and was brought back.
    pub bus_offs: u64,
}

/// Called by the gateway when no frame waits.
pub trait Idle {
    /// Whether the gateway keeps running; `counts` is its account so far.
    fn keep_running(&mut self, counts: &Counts) -> bool;
}

impl<F: FnMut(&Counts) -> bool> Idle for F {
    #[inline]
    fn keep_running(&mut self, counts: &Counts) -> bool {
        self(counts)
    }
}

/// A controller no longer answers: its card has been removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone;

impl core::fmt::Display for Gone {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("a controller no longer answers")
    }
}

impl core::error::Error for Gone {}

/// A controller, and whether the gateway knows it to be bus-off.
#[derive(Debug)]
struct Side<R> {
    controller: Controller<R>,
    off: bool,
}

/// Two controllers and the account of the frames from the first to the second.
#[derive(Debug)]
pub struct Gateway<R> {
    from: Side<R>,
    to: Side<R>,
    /// The account so far.
    pub counts: Counts,
}

impl<R: Registers> Gateway<R> {
    /// A gateway from `from` to `to`, both already on their buses. All counts are 0.
    pub fn new(from: Controller<R>, to: Controller<R>) -> Self {
        let side = |controller| Side { controller, off: false };
        Self { from: side(from), to: side(to), counts: Counts::default() }
    }

    /// Forwards frames until `idle` ends it. The gateway calls `idle` when no frame waits, and after a frame that found
    /// no room.
    ///
    /// # Errors
    /// [`Gone`].
    #[inline]
    pub fn run(&mut self, idle: &mut impl Idle) -> Result<(), Gone> {
        loop {
            let status = self.from.controller.status();
            if status.trouble() || self.from.off {
                self.handle_input(status)?;
            }
            if status.received() && self.forward()? {
                continue;
            }
            if !idle.keep_running(&self.counts) {
                return Ok(());
            }
        }
    }

    /// False: the frame found no room.
    #[inline]
    fn forward(&mut self) -> Result<bool, Gone> {
        let frame = self.from.controller.take();
        self.counts.received += 1;
        for _ in 0..POLLS_MAX {
            let status = self.to.controller.status();
            if status.bus_off() || self.to.off {
                self.counts.bus_offs += self.to.check_bus_off(status)?;
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
    fn handle_input(&mut self, status: Status) -> Result<(), Gone> {
        self.counts.bus_offs += self.from.check_bus_off(status)?;
        if status.overrun() {
            self.from.controller.clear_overrun();
            self.counts.overruns += 1;
        }
        Ok(())
    }

    /// Takes both controllers off their buses.
    pub fn stop(&mut self) {
        let _ = self.from.controller.stop(); // a removed controller is off the bus
        let _ = self.to.controller.stop();
    }
}

impl<R: Registers> Side<R> {
    /// Starts recovery when the controller is bus-off. Returns 1 the first time, otherwise 0: the chip reports bus-off
    /// until it has recovered.
    #[cold]
    fn check_bus_off(&mut self, status: Status) -> Result<u64, Gone> {
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

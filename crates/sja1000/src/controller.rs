//! The controller: start, stop, send, receive, status and error counters.

use crate::{Frame, Registers, Timing, register as r};

/// The settings with which a controller starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bus {
    /// The bit timing.
    pub timing: Timing,
    /// OCR: how the board wires the outputs.
    pub output: u8,
    /// CDR: how the board uses the clock output. The driver adds the bit for PeliCAN mode.
    pub clock: u8,
    /// The controller receives and acknowledges nothing.
    pub listen_only: bool,
}

/// Why a controller does not start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The bit rate cannot be made of the crystal, or the registers cannot hold the timing.
    Timing,
    /// The chip does not enter or leave reset mode: there is no chip, or the board holds it in reset.
    NoAnswer,
}

impl core::fmt::Display for Error {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Timing => "the bit rate cannot be made from the controller's clock",
            Self::NoAnswer => "no SJA1000 answers",
        })
    }
}

impl core::error::Error for Error {}

/// The status register (SR).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status(pub u8);

impl Status {
    /// At least one frame waits in the FIFO.
    #[inline]
    pub fn received(self) -> bool {
        self.0 & r::SR_RECEIVED != 0
    }

    /// A frame was lost because the FIFO was full. Stays set until [`Controller::clear_overrun`].
    #[inline]
    pub fn overrun(self) -> bool {
        self.0 & r::SR_OVERRUN != 0
    }

    /// The transmit buffer can take a frame. Not in bus-off: there the chip reports a free buffer, but its addresses are
    /// those of the acceptance filter until recovery begins (6.4.15), and a frame would go out only after it.
    #[inline]
    pub fn buffer_free(self) -> bool {
        self.0 & (r::SR_BUFFER_FREE | r::SR_BUS_OFF) == r::SR_BUFFER_FREE
    }

    /// The last frame has been sent.
    #[inline]
    pub fn sent(self) -> bool {
        self.0 & r::SR_SENT != 0
    }

    /// An error counter has reached the limit of 96.
    #[inline]
    pub fn error_warning(self) -> bool {
        self.0 & r::SR_ERROR != 0
    }

    /// The controller is bus-off; [`Controller::recover`] brings it back.
    #[inline]
    pub fn bus_off(self) -> bool {
        self.0 & r::SR_BUS_OFF != 0
    }

    /// Overrun or bus-off: a receiver must handle both in addition to frames.
    #[inline]
    pub fn trouble(self) -> bool {
        self.0 & (r::SR_OVERRUN | r::SR_BUS_OFF) != 0
    }
}

/// A set of interrupts: the bits of IR and IER, [`register`](crate::register)`::IR_…`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupts(pub u8);

impl Interrupts {
    /// No interrupt.
    pub const NONE: Self = Self(0);
    /// The receive interrupt: a frame waits.
    pub const RECEIVED: Self = Self(r::IR_RECEIVED);

    /// Whether at least one of `others` is in this set.
    pub fn has(self, others: Self) -> bool {
        self.0 & others.0 != 0
    }
}

/// The error counters REC and TEC of ISO 11898-1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ErrorCounters {
    /// Receive errors.
    pub receive: u8,
    /// Transmit errors.
    pub transmit: u8,
}

/// Attempts to set reset mode before the driver concludes that no chip answers.
const TRIES: u32 = 100;
/// Frames that a FIFO of 64 bytes can hold, of 3 bytes each.
const FIFO_FRAMES_MAX: u32 = 21;

/// A controller, driven through `R`.
#[derive(Debug)]
pub struct Controller<R> {
    registers: R,
}

impl<R: Registers> Controller<R> {
    /// The controller behind `registers`. Accesses none of them yet.
    pub fn new(registers: R) -> Self {
        Self { registers }
    }

    /// Gives the registers back. The controller stays as it is.
    pub fn into_registers(self) -> R {
        self.registers
    }

    /// Goes on the bus with these settings. All frames pass the acceptance filter, no interrupt is enabled, the FIFO is
    /// empty and the error counters are 0.
    ///
    /// A controller that was left in bus-off recovers first, as after [`recover`](Self::recover): [`Status::bus_off`]
    /// says so until it has.
    ///
    /// # Errors
    /// [`Error::Timing`], before any register is accessed; [`Error::NoAnswer`].
    pub fn start(&mut self, bus: &Bus) -> Result<(), Error> {
        if !bus.timing.is_possible() {
            return Err(Error::Timing);
        }
        self.stop()?;
        self.registers.write(r::CDR, bus.clock | r::CDR_PELICAN);
        for at in 0..4 {
            self.registers.write(r::ACR + at, 0x00);
            self.registers.write(r::AMR + at, 0xff);
        }
        self.registers.write(r::BTR0, bus.timing.btr0());
        self.registers.write(r::BTR1, bus.timing.btr1());
        self.registers.write(r::OCR, bus.output);
        // In bus-off a written TXERR would end it after 11 recessive bits instead of 128 times as many (6.4.12).
        if !self.status().bus_off() {
            self.registers.write(r::TXERR, 0);
            self.registers.write(r::RXERR, 0);
        }
        self.set_mode(if bus.listen_only { r::MOD_LISTEN_ONLY } else { 0 })?;
        // Leaving reset mode empties the FIFO (6.4.3, note 3); QEMU keeps it.
        for _ in 0..FIFO_FRAMES_MAX {
            if !self.status().received() {
                break;
            }
            self.registers.write(r::CMR, r::CMR_RELEASE);
        }
        self.clear_overrun();
        Ok(())
    }

    /// Leaves the bus: disables interrupts and sets reset mode. Breaks off a frame that is being sent.
    ///
    /// # Errors
    /// [`Error::NoAnswer`].
    pub fn stop(&mut self) -> Result<(), Error> {
        self.registers.write(r::IER, 0);
        self.set_mode(r::MOD_RESET)
    }

    /// Starts recovery from bus-off: the controller is back after 128 times 11 recessive bits, which the chip counts.
    /// Keeps the mode (listen-only).
    ///
    /// # Errors
    /// [`Error::NoAnswer`].
    pub fn recover(&mut self) -> Result<(), Error> {
        let mode = self.registers.read(r::MOD) & !r::MOD_RESET;
        self.set_mode(mode)
    }

    fn set_mode(&mut self, mode: u8) -> Result<(), Error> {
        for _ in 0..TRIES {
            self.registers.write(r::MOD, mode);
            let now = self.registers.read(r::MOD);
            if now != 0xff && now & r::MOD_RESET == mode & r::MOD_RESET {
                return Ok(());
            }
        }
        Err(Error::NoAnswer)
    }

    /// Whether the chip still answers: without a chip, every register reads 0xff.
    pub fn answers(&mut self) -> bool {
        self.registers.read(r::MOD) != 0xff
    }

    /// Reads the status. One access.
    #[inline]
    pub fn status(&mut self) -> Status {
        Status(self.registers.read(r::SR))
    }

    /// Takes the oldest frame out of the FIFO. One access when there is none, 13 for a standard frame of 8 bytes.
    #[inline]
    pub fn receive(&mut self) -> Option<Frame> {
        self.status().received().then(|| self.take())
    }

    /// Receives a frame without reading the status, unlike [`receive`](Self::receive): call it only after
    /// [`Status::received`] was true.
    #[inline]
    pub fn take(&mut self) -> Frame {
        let frame = Frame::read(&mut self.registers);
        self.registers.write(r::CMR, r::CMR_RELEASE);
        frame
    }

    /// Gives a frame to the chip for transmission; false when the previous frame still waits for the bus. 13 accesses
    /// for a standard frame of 8 bytes.
    #[inline]
    pub fn transmit(&mut self, frame: &Frame) -> bool {
        let free = self.status().buffer_free();
        if free {
            self.put(frame);
        }
        free
    }

    /// Sends a frame without reading the status, unlike [`transmit`](Self::transmit): call it only after
    /// [`Status::buffer_free`] was true.
    #[inline]
    pub fn put(&mut self, frame: &Frame) {
        frame.write(&mut self.registers);
        self.registers.sends();
        self.registers.write(r::CMR, r::CMR_SEND);
    }

    /// Withdraws the frame handed over last, unless the controller is sending it.
    pub fn abort(&mut self) {
        self.registers.write(r::CMR, r::CMR_ABORT);
    }

    /// Clears [`Status::overrun`].
    pub fn clear_overrun(&mut self) {
        self.registers.write(r::CMR, r::CMR_CLEAR_OVERRUN);
    }

    /// Reads the interrupts since the last call, and so acknowledges all but [`Interrupts::RECEIVED`], which stays
    /// while a frame waits.
    pub fn interrupts(&mut self) -> Interrupts {
        Interrupts(self.registers.read(r::IR))
    }

    /// Chooses the interrupts that drive the interrupt line. On QEMU an earlier event drives it only with the next
    /// event.
    pub fn enable_interrupts(&mut self, wanted: Interrupts) {
        self.registers.write(r::IER, wanted.0);
    }

    /// Reads the error counters. Above 127 the controller is error-passive.
    pub fn error_counters(&mut self) -> ErrorCounters {
        ErrorCounters { receive: self.registers.read(r::RXERR), transmit: self.registers.read(r::TXERR) }
    }
}

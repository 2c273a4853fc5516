//! The controller: start, stop, send, receive, and how it stands.

use crate::{Frame, Registers, Timing, register as r};

/// What it is started with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bus {
    /// How long a bit is.
    pub timing: Timing,
    /// OCR: how the board has wired the outputs. Kvaser PCI: 0xda.
    pub output: u8,
    /// CDR: what the board does with the clock output; PeliCAN mode is added. Kvaser PCI: 0x47.
    pub clock: u8,
    /// Hears the bus and acknowledges nothing.
    pub listen_only: bool,
}

/// Why it did not start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The bit rate cannot be made of the crystal, or the registers cannot hold the timing.
    Timing,
    /// It does not enter or leave reset mode: there is no chip, or it is held in reset.
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

/// The status register (SR), by its bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status(pub u8);

impl Status {
    /// A frame waits.
    #[inline]
    pub fn received(self) -> bool {
        self.0 & r::SR_RECEIVED != 0
    }

    /// A frame was lost: the FIFO was full. So until [`Controller::clear_overrun`].
    #[inline]
    pub fn overrun(self) -> bool {
        self.0 & r::SR_OVERRUN != 0
    }

    /// A frame can be handed over.
    #[inline]
    pub fn buffer_free(self) -> bool {
        self.0 & r::SR_BUFFER_FREE != 0
    }

    /// The last frame handed over has been on the bus.
    #[inline]
    pub fn sent(self) -> bool {
        self.0 & r::SR_SENT != 0
    }

    /// An error counter has reached the limit of 96.
    #[inline]
    pub fn error_warning(self) -> bool {
        self.0 & r::SR_ERROR != 0
    }

    /// Off the bus; [`Controller::recover`] brings it back.
    #[inline]
    pub fn bus_off(self) -> bool {
        self.0 & r::SR_BUS_OFF != 0
    }

    /// Something that a receiver must see to, beside frames: overrun or bus-off.
    #[inline]
    pub fn trouble(self) -> bool {
        self.0 & (r::SR_OVERRUN | r::SR_BUS_OFF) != 0
    }
}

/// A set of interrupts: bits of IR and IER.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupts(pub u8);

impl Interrupts {
    /// None.
    pub const NONE: Self = Self(0);
    /// A frame waits.
    pub const RECEIVED: Self = Self(r::IR_RECEIVED);

    /// Whether it has one of these.
    pub fn has(self, others: Self) -> bool {
        self.0 & others.0 != 0
    }
}

/// REC and TEC, which count as ISO 11898-1 says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ErrorCounters {
    /// Receive errors.
    pub receive: u8,
    /// Transmit errors.
    pub transmit: u8,
}

/// How often reset mode is asked for before there is no chip.
const TRIES: u32 = 100;
/// Frames that a FIFO of 64 bytes can hold, of 3 bytes each.
const FIFO_FRAMES_MAX: u32 = 21;

/// A controller.
#[derive(Debug)]
pub struct Controller<R> {
    registers: R,
}

impl<R: Registers> Controller<R> {
    /// The controller behind these registers, which it does not touch yet.
    pub fn new(registers: R) -> Self {
        Self { registers }
    }

    /// The registers back.
    pub fn into_registers(self) -> R {
        self.registers
    }

    /// Goes on the bus with these settings: all frames pass the acceptance filter, no interrupt is enabled, the FIFO is
    /// empty and the error counters are 0.
    ///
    /// # Errors
    /// [`Error`]; it is in reset mode then, if it is there.
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
        self.registers.write(r::TXERR, 0);
        self.registers.write(r::RXERR, 0);
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

    /// Leaves the bus: interrupts off, reset mode. A frame that is being sent is broken off.
    ///
    /// # Errors
    /// [`Error::NoAnswer`].
    pub fn stop(&mut self) -> Result<(), Error> {
        self.registers.write(r::IER, 0);
        self.set_mode(r::MOD_RESET)
    }

    /// Back from bus-off, when 128 times 11 recessive bits have passed; the chip counts them.
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

    /// Whether the chip still answers: where none is, every register reads 0xff.
    pub fn answers(&mut self) -> bool {
        self.registers.read(r::MOD) != 0xff
    }

    /// The status. One access.
    #[inline]
    pub fn status(&mut self) -> Status {
        Status(self.registers.read(r::SR))
    }

    /// Takes the oldest frame that waits. A standard frame of 8 bytes is 13 accesses, none 1.
    #[inline]
    pub fn receive(&mut self) -> Option<Frame> {
        self.status().received().then(|| self.take())
    }

    /// The same when [`Status::received`] has just said that one waits.
    #[inline]
    pub fn take(&mut self) -> Frame {
        let frame = Frame::read(&mut self.registers);
        self.registers.write(r::CMR, r::CMR_RELEASE);
        frame
    }

    /// Hands a frame over; false when the last one still waits for the bus. A standard frame of 8 bytes is 13 accesses.
    #[inline]
    pub fn transmit(&mut self, frame: &Frame) -> bool {
        let free = self.status().buffer_free();
        if free {
            self.put(frame);
        }
        free
    }

    /// The same when [`Status::buffer_free`] has just said so.
    #[inline]
    pub fn put(&mut self, frame: &Frame) {
        frame.write(&mut self.registers);
        self.registers.write(r::CMR, r::CMR_SEND);
    }

    /// Takes back the frame handed over last, unless it is on its way.
    pub fn abort(&mut self) {
        self.registers.write(r::CMR, r::CMR_ABORT);
    }

    /// Forgets that frames were lost in the FIFO.
    pub fn clear_overrun(&mut self) {
        self.registers.write(r::CMR, r::CMR_CLEAR_OVERRUN);
    }

    /// What has happened since the last call; acknowledges all but a frame that waits.
    pub fn interrupts(&mut self) -> Interrupts {
        Interrupts(self.registers.read(r::IR))
    }

    /// Which of them pull the interrupt line. What happened before pulls it on QEMU only with the next event.
    pub fn enable_interrupts(&mut self, wanted: Interrupts) {
        self.registers.write(r::IER, wanted.0);
    }

    /// The error counters. Beyond 127 the controller is error-passive.
    pub fn error_counters(&mut self) -> ErrorCounters {
        ErrorCounters { receive: self.registers.read(r::RXERR), transmit: self.registers.read(r::TXERR) }
    }
}

//! The SJA1000 CAN controller in PeliCAN mode, without an operating system: one [`Controller`] over [`Registers`], which
//! are 32 bytes behind I/O ports, in memory, or in a test.
//!
//! Source of every register and bit: *SJA1000 Stand-alone CAN controller, Product specification*, Philips
//! Semiconductors, 2000-01-04, whose sections are named beside them. Where QEMU's model of the chip behaves otherwise
//! (hw/net/can/can_sja1000.c, seen in 7.2), that is said, because the driver must work on both.
//!
//! It never waits, allocates or touches an interrupt line. Who calls it decides when to look.
//!
//! ```
//! use sja1000::{Bus, Controller, Frame, Identifier, Registers, Timing};
//! # #[derive(Default)]
//! # struct Card([u8; 32]);
//! # impl Registers for Card {
//! #     fn read(&mut self, register: u8) -> u8 {
//! #         if register == sja1000::register::SR { 0x0c } else { self.0[register as usize] }
//! #     }
//! #     fn write(&mut self, register: u8, value: u8) { self.0[register as usize] = value }
//! # }
//! # let card = Card::default();
//! let timing = Timing::of(16_000_000, 500_000)?; // a crystal of 16 MHz
//! let mut controller = Controller::new(card);
//! controller.start(&Bus { timing, output: 0xda, clock: 0x47, listen_only: false })?;
//! let sent = controller.transmit(&Frame::data(Identifier::Standard(0x123), &[1, 2, 3]));
//! assert!(sent);
//! while let Some(frame) = controller.receive() {
//!     println!("{frame:?}");
//! }
//! # Ok::<(), sja1000::Error>(())
//! ```
#![no_std]
#![forbid(unsafe_code)]

mod controller;
mod frame;
pub mod register;
mod timing;

pub use controller::{Bus, Controller, Error, ErrorCounters, Interrupts, Status};
pub use frame::{Frame, Identifier, LEN_MAX};
pub use timing::Timing;

/// How many registers there are.
pub const REGISTERS: u8 = 32;

/// The chip's 32 registers of one byte (section 6.4.1).
///
/// Reading has effects: of [`register::IR`] it clears every interrupt but the receive one. So an implementation neither
/// repeats nor reorders what it is told.
pub trait Registers {
    /// Reads a register, 0…31. Where no chip is, all bits are 1.
    fn read(&mut self, register: u8) -> u8;
    /// Writes a register, 0…31.
    fn write(&mut self, register: u8, value: u8);
}

impl<R: Registers + ?Sized> Registers for &mut R {
    fn read(&mut self, register: u8) -> u8 {
        (**self).read(register)
    }

    fn write(&mut self, register: u8, value: u8) {
        (**self).write(register, value);
    }
}

//! A driver for the SJA1000 CAN controller in PeliCAN mode, without an operating system: a [`Controller`] sends and
//! receives frames over [`Registers`], a trait of two functions that you implement for your access to the chip's 32
//! registers: I/O ports, memory, a test.
//!
//! ```
//! use sja1000::{Bus, Controller, Error, Frame, Identifier, REGISTERS, Registers, Timing, register};
//!
//! /// Your way to the chip. This one is a chip in memory whose frames come back to it.
//! struct Loopback {
//!     registers: [u8; REGISTERS as usize],
//!     frames: u8,
//! }
//!
//! impl Registers for Loopback {
//!     fn read(&mut self, register: u8) -> u8 {
//!         match register {
//!             register::SR => register::SR_BUFFER_FREE | self.frames,
//!             _ => self.registers[register as usize],
//!         }
//!     }
//!
//!     fn write(&mut self, register: u8, value: u8) {
//!         match (register, value) {
//!             (register::CMR, register::CMR_SEND) => self.frames = 1,
//!             (register::CMR, register::CMR_RELEASE) => self.frames = 0,
//!             _ => self.registers[register as usize] = value,
//!         }
//!     }
//! }
//!
//! fn main() -> Result<(), Error> {
//!     let mut controller = Controller::new(Loopback { registers: [0; 32], frames: 0 });
//!     controller.start(&Bus {
//!         timing: Timing::new(16_000_000, 500_000)?, // a crystal of 16 MHz, 500 kbit/s
//!         output: 0xda,                             // OCR and CDR: how the board wires the chip
//!         clock: 0x47,
//!         listen_only: false,
//!     })?;
//!
//!     let frame = Frame::data(Identifier::Standard(0x123), &[0xde, 0xad]);
//!     assert!(controller.transmit(&frame)); // false: the last frame still waits for the bus
//!     while let Some(received) = controller.receive() {
//!         assert_eq!(received, frame);
//!         println!("{received:?}");
//!     }
//!     Ok(())
//! }
//! ```
//!
//! # Contents
//! | | |
//! | --- | --- |
//! | [`Controller`] | start, stop, send, receive, status, interrupts, bus-off recovery |
//! | [`Timing`] | the bit timing for a crystal and a bit rate, exact |
//! | [`register`] | addresses and bits, by the data sheet's names |
//! | [`boards`] | PCI cards with this chip: a card is a row of a table |
//! | [`gateway`] | frames from one controller to another, by polling, every frame counted |
//!
//! # Platforms
//! Everything that Rust's `core` exists for: no standard library, no allocation, no dependencies, no features, no
//! unsafe code. Rust 1.88.
//!
//! The driver never waits and never touches an interrupt line: the caller decides when to poll. It is not
//! synchronised: one thread, or a lock around the controller.
//!
//! # Sources
//! Every register and bit: *SJA1000 Stand-alone CAN controller, Product specification*, Philips Semiconductors,
//! 2000-01-04; its sections are named beside them. The documentation notes where QEMU's model of the chip
//! (hw/net/can/can_sja1000.c, seen in 7.2) behaves otherwise, because the driver must work on both. It is tested on
//! QEMU's model and on a chip in memory that keeps the data sheet's rules, with bus-off and all error states, on no real
//! card yet.
#![no_std]
#![forbid(unsafe_code)]

pub mod boards;
mod controller;
mod frame;
pub mod gateway;
pub mod register;
mod timing;

pub use controller::{Bus, Controller, Error, ErrorCounters, Interrupts, Status};
pub use frame::{Frame, Identifier, LEN_MAX};
pub use timing::Timing;

/// How many registers the chip has.
pub const REGISTERS: u8 = 32;

/// The chip's 32 registers of one byte (section 6.4.1).
///
/// Reading has effects: reading [`register::IR`] clears every interrupt but the receive interrupt. So an implementation
/// neither repeats nor reorders accesses.
pub trait Registers {
    /// Reads a register, 0…31. Where no chip is, all bits are 1.
    fn read(&mut self, register: u8) -> u8;
    /// Writes a register, 0…31.
    fn write(&mut self, register: u8, value: u8);
    /// Called just before the command to send a frame, for an implementation that marks the moment.
    #[inline]
    fn sends(&mut self) {}
}

impl<R: Registers + ?Sized> Registers for &mut R {
    fn read(&mut self, register: u8) -> u8 {
        (**self).read(register)
    }

    fn write(&mut self, register: u8, value: u8) {
        (**self).write(register, value);
    }

    #[inline]
    fn sends(&mut self) {
        (**self).sends();
    }
}

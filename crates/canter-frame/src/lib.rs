//! CAN frames, classic and FD: their content, their exact duration on the wire, candump's notation, and filters.
//! Runs on any operating system, needs no CAN hardware, has no unsafe code and no dependencies.
//!
//! ```
//! use canter_frame::{BitRate, Filters, Frame, Identifier};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // The notation of candump and cansend, both ways.
//! let frame: Frame = "123#DEADBEEF".parse()?;
//! assert_eq!(frame.id(), Identifier::Sff(0x123));
//! assert_eq!(frame.id().to_string(), "123");
//! assert_eq!(frame.data(), [0xDE, 0xAD, 0xBE, 0xEF]);
//! assert_eq!(frame.to_string(), "123#DEADBEEF");
//!
//! // Exactly how long it is on the wire: 78 bits, 2 of them stuff bits.
//! assert_eq!(frame.bits().total(), 78);
//! assert_eq!(frame.bits().duration_ns(BitRate::classic(500_000)), 156_000);
//!
//! // FD, with a faster data phase.
//! let fd = Frame::fd(Identifier::Eff(0x18DA_F110), &[0x55; 64], canter_frame::BRS)?;
//! let rate = BitRate { nominal: 500_000, data: 2_000_000 };
//! assert!(fd.bits().duration_ns(rate) < 500_000);
//!
//! // candump's filters: identifier and mask, inverted ones, error classes.
//! let filters: Filters = "100:700,200~7FF".parse()?;
//! assert!(filters.matches(&frame));
//! # Ok(())
//! # }
//! ```
//!
//! | module | content |
//! | --- | --- |
//! | [`frame`] | [`Frame`], laid out as Linux lays out `struct canfd_frame`, so that I/O converts nothing |
//! | [`bits`] | the exact length of a frame in bits and in ns |
//! | [`notation`] | frames and log lines as candump and cansend write them |
//! | [`filter`] | identifier and mask, as the kernel applies them |
//! | [`error_frame`] | a driver's error frames in words, those of `candump -e` |
//! | [`record`] | a frame in a recording: [`Record`], [`BusId`], [`Direction`] |
//!
//! # Features
//! - `embedded-can`: [`Frame`] implements the trait `embedded_can::Frame`, and identifiers convert both ways.
//!
//! # Platforms
//! Any that has `std`, WebAssembly included. Frames are read from Linux by the crate `canter-io`, and from files by
//! `canter-formats`.
#![forbid(unsafe_code)]

pub mod bits;
#[cfg(feature = "embedded-can")]
mod embedded;
pub mod error_frame;
pub mod filter;
pub mod frame;
pub mod notation;
pub mod record;

pub use bits::{BitRate, FrameBits, INTERFRAME_BITS};
pub use filter::{Filter, Filters, InterfaceFilters};
pub use frame::{BRS, ESI, Frame, FrameError, Identifier};
pub use notation::{CandumpLine, LogLine, TextError};
pub use record::{BusId, ControllerStamp, Direction, RawRecord, Record};

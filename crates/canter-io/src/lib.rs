//! Every way to send and receive CAN frames on Linux, behind one seam.
//!
//! A *method* is a row of a table: [`method::table::RECEIVERS`] and [`method::table::TRANSMITTERS`]. Each method opens
//! an [`Interface`] and then moves [`Frame`]s in [`Batch`]es. The caller decides what happens when a queue is full.
//!
//! | module | purpose |
//! | --- | --- |
//! | [`method`] | receive and send frames |
//! | [`interface`], [`netlink`] | find, create and configure interfaces; jobs of the kernel's gateway can-gw |
//! | [`tap`] | read the frames on a virtual wire, with start and end of each in ns |
//! | [`capture_ring`], [`capture_sockets`], [`capture_devices`] | receive for recording |
//! | [`loss`] | count lost frames by the place where they were lost |
//! | [`kernel_threads`] | whose work the kernel's threads do, and how urgent they are |
//! | [`node`] | one socket that sends and receives, for a program that takes part in a bus |
//! | [`tun`] | interfaces that pass for CAN, for tests of recording on a kernel without CAN |
//!
//! Frames, notation and filters are those of the crate `canter-frame`.
//!
//! ```
//! use canter_io::{Batch, Frame, Interface, method::{Pair, ReceiveOptions, TransmitOptions, sim}};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // A bus in memory; on a machine with CAN, "can0" and "ring/spin+write".
//! let interface = Interface::find("sim:example/bus")?;
//! let pair: Pair = "sim+sim".parse()?;
//! let mut receiver = pair.receive.open(&interface, &ReceiveOptions::default())?;
//! let mut sender = pair.transmit.open(&interface, &TransmitOptions::default())?;
//!
//! let frame: Frame = "123#DEADBEEF".parse()?;
//! let taken = sender.transmit(&[frame])?; // fewer than passed: a queue is full
//! sender.flush()?; // sends the frames that the method has gathered
//! sim::world("example").advance(1_000_000); // a simulated bus has its own clock: 1 ms passes
//!
//! let mut batch = Batch::new(64);
//! receiver.receive(&mut batch)?;
//! assert_eq!((taken, batch.frames()), (1, &[frame][..]));
//! assert_eq!(receiver.drops()?, 0); // frames that the receiver's queue has lost
//! # Ok(())
//! # }
//! ```
//!
//! # Who imports whom
//! From the bottom up: a module imports only modules in lines above its own (`tests/it/layers.rs` checks this):
//!
//! ```text
//! uapi error batch packet_filter kernel_threads
//! sys
//! pci netlink
//! port
//! frame_counters
//! carrier
//! carrier::network carrier::canchar carrier::port carrier::sim
//! carrier::table
//! interface
//! monitor
//! method
//! method::can_raw
//! method::read_write
//! method::mmsg method::packet_ring method::uring method::canchar method::port method::sim
//! method::canchar_ring
//! method::table
//! captured
//! capture_ring loss tap node
//! capture_sockets capture_devices
//! ```
#![deny(unsafe_code)]

pub mod batch;
pub mod capture_devices;
pub mod capture_ring;
pub mod capture_sockets;
pub mod captured;
pub mod carrier;
pub mod error;
mod frame_counters;
/// Frames: the crate `canter-frame`.
pub mod frame {
    pub use canter_frame::{
        bits::{BitRate, FrameBits, INTERFRAME_BITS},
        frame::*,
    };
}
pub mod interface;
pub mod kernel_threads;
pub mod loss;
pub mod method;
pub mod monitor;
pub mod netlink;
pub mod node;
pub mod packet_filter;
pub mod pci;
pub(crate) mod port;
pub(crate) mod sys;
pub mod tap;
pub(crate) mod uapi;

pub use batch::{Batch, Meta};
pub use canter_frame::{
    BitRate, CandumpLine, Direction, Filter, Filters, Frame, FrameBits, Identifier, InterfaceFilters,
    LogLine, TextError, error_frame, filter, notation, record,
};
pub use error::{Error, Result};
pub use interface::Interface;

/// For this crate's tests and benches, which compare methods with a plain socket.
#[doc(hidden)]
pub use sys::socket;
#[doc(inline)]
pub use sys::{
    canbare, canchar, canprobe, clock, ethtool, event, file, link_flags, marker, poll, process, thread, tun,
};

//! Every way to send and receive CAN frames on Linux, behind one seam.
//!
//! A *method* is a row of a table: [`method::RECEIVERS`] and [`method::TRANSMITTERS`]. Each opens on an
//! [`Interface`] and then moves [`Frame`]s in [`Batch`]es; what happens on a full queue is the caller's policy.
#![deny(unsafe_code)]

pub mod batch;
pub mod error;
pub mod filter;
pub mod frame;
pub mod text;

pub use batch::{Batch, Meta};
pub use error::{Error, Result};
pub use filter::{Filter, Filters};
pub use frame::{Frame, Identifier};

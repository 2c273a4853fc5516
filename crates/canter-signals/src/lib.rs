//! Signals: from the bytes of a CAN frame to named values with units, and back, as a DBC database describes them.
//! Runs on any operating system and has no unsafe code.
//!
//! ```
//! use canter_signals::{Codebook, Database};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let database = Database::parse(
//!     "BO_ 291 Engine: 4 ECU\n SG_ Speed : 0|16@1+ (0.25,0) [0|16000] \"rpm\" Dash\n SG_ Heat : 23|8@0- (1,40) [0|0] \"C\" Dash\n",
//! )?;
//! let codebook = Codebook::new(&[&database]);
//! let frame: canter_frame::Frame = "123#A00FF600".parse()?;
//! let message = codebook.message(frame.id()).ok_or("an unknown identifier")?;
//! let values: Vec<_> = message.values(frame.data()).map(|(signal, value)| format!("{}={value}{}", signal.name, signal.unit)).collect();
//! assert_eq!(values, ["Speed=1000rpm", "Heat=30C"]);
//! assert_eq!(message.encode(&[("Speed", 1000.into()), ("Heat", 30.into())])?, frame.data());
//! # Ok(())
//! # }
//! ```
//!
//! | module | content |
//! | --- | --- |
//! | [`database`] | [`Database`]: messages of a file, and what in it contradicts itself |
//! | [`message`] | [`Message`]: signals of an identifier; decodes and encodes |
//! | [`signal`] | [`Signal`]: place, type, unit, value table |
//! | [`value`] | [`Value`]: exact integers and floats; the conversion between raw and physical values |
//! | [`batch`] | [`Batch`]: many payloads, decoded signal by signal |
//! | [`codebook`] | [`Codebook`]: which message an identifier means, J1939's groups included |
//! | [`transport`] | J1939 messages of several frames, put together |
#![forbid(unsafe_code)]

pub mod batch;
pub mod codebook;
pub mod database;
mod dbc;
mod field;
pub mod message;
pub mod signal;
pub mod transport;
pub mod value;

pub use batch::{Batch, Values};
pub use codebook::{Codebook, parameter_group};
pub use database::{Database, DatabaseError};
pub use message::{EncodeError, Fit, Message, Payload};
pub use signal::{ByteOrder, Kind, Signal};
pub use transport::{Transport, Transported};
pub use value::{Column, Value};

//! Capture: records all frames of any number of interfaces, and proves that none is missing or says where.
//!
//! `source` (the kernel's ring, or sockets) → `receiver` (thread: counts, copies) → `queue` → `writer` (thread: `merge`,
//! `formats`, `files`) → `account`. `recording` puts them together, `command` is what is typed.
//!
//! ```no_run
//! use canter::capture::{Recording, Settings};
//! use canter_io::InterfaceFilters;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let interfaces = vec![InterfaceFilters::parse("can0")?, InterfaceFilters::parse("can1,123:7FF")?];
//! let mut settings = Settings::new(interfaces, "drive.pcapng");
//! settings.rotate_bytes = Some(100 << 20);
//! let recording = Recording::start(&settings)?;
//! std::thread::sleep(std::time::Duration::from_secs(60));
//! let account = recording.finish();
//! println!("{account}");
//! assert!(account.complete, "{}", account.verdict);
//! # Ok(())
//! # }
//! ```

mod account;
mod buses;
mod chunk;
mod command;
mod files;
mod live;
mod merge;
mod queue;
mod receiver;
mod recording;
mod size;
mod source;
mod writer;

pub use crate::formats::Kind;
pub use account::{Account, Bus, Deleted, Event, Lost, Written};
pub(crate) use command::{Arguments, run};
pub use live::Busy;
pub use recording::{Recording, Settings};

//! Records all frames of any number of CAN interfaces on Linux and accounts for every frame: either the recording is
//! complete, or its account lists how many frames were lost and at which place.
//!
//! ```no_run
//! use canter_capture::{Account, InterfaceFilters, Recording, Settings};
//! use std::{thread, time::Duration};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Interfaces with candump's filters; "any" records all, also those created later.
//! let interfaces = vec![InterfaceFilters::parse("can0")?, InterfaceFilters::parse("can1,123:7FF")?];
//! let mut settings = Settings::new(interfaces, "drive.pcapng");
//! settings.rotate_bytes = Some(100 << 20);
//!
//! let mut recording = Recording::start(&settings)?; // frames are recorded from here on
//! thread::sleep(Duration::from_secs(60));
//! for event in recording.events() {
//!     println!("{}", event.what); // an interface went down, the disk is full
//! }
//! let account = recording.finish();
//! println!("{account}");
//! account.save(Account::path("drive.pcapng"))?;
//! assert!(account.verdict.is_complete(), "{}", account.verdict);
//! # Ok(())
//! # }
//! ```
//!
//! # Modules
//! `source` (the kernel's ring, or sockets) → `keeper` (copies frames and counts them, in the thread of `receiver`) →
//! `queue` → `writer` (a thread that sorts them by `merge`) → `output` (formats them and writes `files`) → `balance` →
//! `account`. With triggers, `windows` stands before `output`: `watch` looks for conditions, and frames wait in `waiting`.
//! Beside the writer, `syncer` (a thread) syncs the file to the disk.
//! `recording` starts the threads.
//!
//! # Who imports whom
//! From the bottom up: a module imports only modules in lines above its own (`tests/it/layers.rs` checks this):
//!
//! ```text
//! aligner bounds error lost chunk counting rest trigger waiting
//! verdict watch
//! account
//! live
//! bus queue merge files judge
//! buses syncer
//! output
//! windows
//! keeper ring writer
//! source
//! receiver settings
//! balance recording
//! ```
//!
//! # Platforms
//! Linux; tested on 6.1 and 6.12. Without `CAP_NET_RAW` the recording uses sockets instead of the ring, at a higher cost
//! per frame (docs/capture.md in the repository has the figures).
#![forbid(unsafe_code)]

mod account;
mod aligner;
mod balance;
mod bounds;
mod bus;
mod buses;
mod chunk;
mod counting;
mod error;
mod files;
mod judge;
mod keeper;
mod live;
mod lost;
mod merge;
mod output;
mod queue;
mod receiver;
mod recording;
mod rest;
mod ring;
mod settings;
mod source;
mod syncer;
mod trigger;
mod verdict;
mod waiting;
mod watch;
mod windows;
mod writer;

pub use account::{Account, Alignment, Bus, Deleted, Event, SystemClock, Triggered, Window, Written};
pub use aligner::{Aligned, Aligner};
pub use bounds::BoundSpan;
pub use canter_frame::{InterfaceFilters, TextError};
pub use error::{Error, Result};
pub use live::{Busy, Current};
pub use lost::Lost;
pub use recording::{LostSoFar, Observer, Recording, Status};
pub use settings::{FLUSH, FLUSH_MIN, QUEUE_BYTES, RING_BYTES, SYNC, Settings, default_sizes};
pub use trigger::{AFTER, BEFORE, Condition, Content, ErrorKind, Pattern, Test, Triggers, When};
pub use verdict::{Cause, Doubt, Fault, Method, Verdict};

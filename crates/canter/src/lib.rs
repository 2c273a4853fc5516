//! canter: measures, routes and captures CAN on Linux. The program is [`main`]; its commands are the rows of
//! `cli/table.rs`. Other programs use the crates below it: canter-frame, canter-formats, canter-io, canter-capture.
#![forbid(unsafe_code)]
#[macro_use(eprint, eprintln, print, println)]
extern crate canter_cli;

mod align;
mod analyze;
mod capture;
mod cli;
mod convert;
mod databases;
mod decode;
mod doctor;
mod dump;
mod format_names;
mod gaps;
mod generate;
mod info;
#[cfg(feature = "lab")]
#[doc(hidden)]
pub mod inputs;
mod latency;
mod live;
mod manual;
mod methods;
mod ping;
#[doc(hidden)]
#[allow(clippy::len_without_is_empty, clippy::should_implement_trait, reason = "public for benches only")]
pub mod recordings;
mod replay;
mod service;
mod status;
mod status_socket;
mod top;
mod wire;

pub use canter_cli::failure::{Exit, Failure};
pub use cli::main;

//! canter: measures, routes and captures CAN on Linux. The program is [`main`]; its commands are the rows of
//! `cli/table.rs`. Other programs use the crates below it: canter-frame, canter-formats, canter-io, canter-capture.
#![forbid(unsafe_code)]
#[macro_use]
mod printing;

mod analyze;
mod canwire;
mod capture;
mod cli;
mod convert;
mod doctor;
mod duration;
mod failure;
mod format_names;
mod gateway;
mod generate;
#[doc(hidden)]
pub mod inputs;
mod interrupt;
mod lab;
mod manual;
mod measure;
mod meter;
mod methods;
mod options;
mod program;
mod recordings;
mod reminder;
mod replay;
mod report;
mod rules;
mod service;
mod study;
mod supervisor;
mod terminal;
mod top;
mod traffic;
mod trouble;
mod units;
mod whole_file;
mod wire;

pub use cli::main;
pub use failure::{Exit, Failure};

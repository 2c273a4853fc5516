//! `canter capture`: records all frames of any number of interfaces. The crate `canter-capture` records; this module has
//! the command line, the live line and the summary.

mod account_file;
mod command;
mod condition;
mod errors;
mod fifo;
mod signal_condition;
mod signals;

pub use command::{Arguments, run};

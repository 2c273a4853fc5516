//! `canter capture`: records all frames of any number of interfaces. The recording itself is the crate
//! `canter-capture`; here are the command line, the live line and the end.

mod command;
mod size;

pub use command::{Arguments, run};

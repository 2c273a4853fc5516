//! What every command of canter needs: its exit code and its error line, the options that all commands have, numbers with
//! their units, tables in 80 columns, errors of interfaces and files in the same words everywhere.
#![forbid(unsafe_code)]
#[macro_use]
pub mod printing;

pub mod complaint;
pub mod document;
pub mod duration;
pub mod failure;
pub mod interrupt;
pub mod options;
pub mod program;
pub mod reminder;
pub mod size;
pub mod supervisor;
pub mod terminal;
pub mod trouble;
pub mod units;
pub mod whole_file;

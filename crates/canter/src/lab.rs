//! The lab: a QEMU machine with CAN cards, booted for one command.

use crate::{failure, options::Common};
use clap::Args;

/// Run a command in a virtual machine that has CAN
#[derive(Args)]
pub struct Arguments {
    /// The command and its arguments
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

pub fn run(_arguments: Arguments, _common: &Common) -> failure::Result {
    Err(failure::Failure::unable("lab: not there yet"))
}

//! `canter wire`: creates virtual CAN buses with real timing (kernel module canwire), lists them, generates traffic and
//! injects faults.

mod fault;
mod list;
mod node;
mod source;

use canter_cli::{failure, options::Common};
use clap::{Args, Subcommand};

/// Create virtual CAN buses with real timing: bit rates, arbitration, errors
#[derive(Args)]
#[command(after_help = "\
A bus exists as long as it has nodes. A node is a CAN controller with its own interface; ip-link(8) sets its bit rates,
modes and restart as on hardware. `ip link delete` has no effect on a node; use `canter wire delete`.

Examples:
  canter wire add wcan0 --bus A --bitrate 500000        a node, up
  canter wire add wcan1 --bus A --bitrate 500000 --dbitrate 2000000
  canter wire list
  canter wire source start A --frame 123#1122 --traffic load=50% --count 10000
  canter wire fault inject A --error crc --count 5
  canter analyze wcan0                                  each frame on the wire, with its start and end
  canter wire delete --all
Needs the kernel module canwire (kernel/README.md); `canter lab --bus wire` has it, with wcan0…wcan4.")]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    Add(node::AddArguments),
    Delete(node::DeleteArguments),
    List(list::Arguments),
    Set(node::SetArguments),
    Fault(fault::Arguments),
    Source(source::Arguments),
}

pub fn run(arguments: Arguments, common: &Common) -> failure::Result {
    match arguments.action {
        Action::Add(add) => node::add(&add),
        Action::Delete(delete) => node::delete(&delete),
        Action::List(list) => list::run(&list, common),
        Action::Set(set) => node::set(&set),
        Action::Fault(fault) => fault::run(&fault),
        Action::Source(source) => source::run(source, common),
    }
}

//! `canter latency`: how late a gateway is, by an experiment (the laboratory's, with the feature `lab`) or from a
//! recording of both of its buses.

mod profile;
mod reading;
mod recorded;
mod runs;

use canter_cli::{
    failure,
    options::Common,
    program::{Program, arguments},
};
use clap::{ArgMatches, Args};
use reading::{Gateway, Recorded};
use std::path::PathBuf;

/// Options of both.
pub fn describe(command: clap::Command) -> clap::Command {
    #[cfg(feature = "lab")]
    let command = {
        let command = canter_lab::meter::latency::Arguments::augment_args(command);
        command.mut_arg("send", |send| send.required(false).required_unless_present("files"))
    };
    #[cfg(not(feature = "lab"))]
    let command = reading::Ends::augment_args(command);
    let command = Recorded::augment_args(command);
    #[cfg(feature = "lab")]
    let command = command.mut_arg("files", |files| {
        files.conflicts_with_all(["send", "through", "sweep", "first_loss", "null", "handler", "timeline"])
    });
    command.about("Measure how late a gateway is, by an experiment or from a recording").after_help(EXAMPLES)
}

#[cfg(feature = "lab")]
const EXAMPLES: &str = concat!(
    "Examples:
  canter latency drive.pcapng --direct can1 --routed can2      from a recording of both buses
  canter latency drive.pcapng --direct can1 --routed can2 --rules r.toml   of a gateway that changes frames
",
    "  canter latency --send can0 --direct can1 --routed can2       1000 frames, one at a time
  canter latency --send can0 --routed can2 --traffic load=50%  the sender's echo gives the first stamp
  canter latency --send can0 --routed can2 --traffic period=120us --len 8 --count 10000
  canter latency --send can0 --direct can1 --routed can3 --null  the meter's floor, on one bus
  canter latency --instrument wire --send A --routed B         from the end on bus A to the start on bus B
  canter latency --send can0 --routed can2 --traffic period --sweep 160us..120us
  canter latency --instrument wire --send A --routed B --through wcan3,wcan4 --method all --first-loss
  canter latency --instrument probe --send can0 --routed can2  stamps by the interrupt handlers of two cards
Exit code 0; 3 when frames were lost; 4 when this machine cannot measure it."
);
#[cfg(not(feature = "lab"))]
const EXAMPLES: &str = "\
Examples:
  canter latency drive.pcapng --direct can1 --routed can2      from a recording of both buses
  canter latency drive.pcapng --direct can1 --routed can2 --rules r.toml   of a gateway that changes frames
Exit code 0; 3 when frames were lost.";

/// Runs the experiment, or the analysis of the recordings that are given.
pub fn run(given: &ArgMatches, common: &Common, _: &Program<'_>) -> failure::Result {
    #[cfg(feature = "lab")]
    if !given.contains_id("files") {
        reading::refuse_options(given)?;
        return canter_lab::meter::latency::run(arguments(given)?, common);
    }
    let bus = |name: &str| given.get_one::<String>(name).cloned();
    let rules = given.get_one::<PathBuf>("rules").map(PathBuf::as_path);
    let gateway = Gateway::new(bus("direct"), bus("routed"), rules)?;
    recorded::run(&arguments(given)?, &gateway, common)
}

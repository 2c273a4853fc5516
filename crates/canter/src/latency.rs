//! `canter latency`: how late a gateway is, by an experiment (the laboratory's, with the feature `lab`) or from a
//! recording of both of its buses.

mod profile;
mod reading;
mod recorded;
mod runs;
mod stamps;

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
    let command = command.mut_arg("files", |files| files.conflicts_with_all(experiment_only()));
    command
        .about("Measure how late a gateway is, by an experiment or from a recording")
        .after_help(examples())
}

/// The options of the experiment that say nothing of a recording.
#[cfg(feature = "lab")]
fn experiment_only() -> Vec<clap::Id> {
    let options = canter_lab::meter::latency::Arguments::augment_args(clap::Command::default());
    let names = options.get_arguments().map(clap::Arg::get_id).cloned();
    names.filter(|name| !["direct", "routed", "rules"].contains(&name.as_str())).collect()
}

#[cfg(feature = "lab")]
use canter_lab::meter::latency::EXAMPLES as MEASURED;
#[cfg(not(feature = "lab"))]
const MEASURED: &str = "";
const RECORDED: &str =
    "  canter latency drive.pcapng --direct can1 --routed can2      from a recording of both buses
  canter latency drive.pcapng --direct can1 --routed can2 --rules r.toml   of a gateway that changes frames
  canter latency drive.pcapng --direct can1 --routed can2 --stamps controller   by the clock of a card with both
";

fn examples() -> String {
    let unable = if MEASURED.is_empty() { "" } else { "; 4 when this machine cannot measure it" };
    format!("Examples:\n{RECORDED}{MEASURED}Exit code 0; 3 when frames were lost{unable}.")
}

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

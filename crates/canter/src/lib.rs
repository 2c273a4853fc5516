//! canter: measures, routes and captures CAN on Linux. The program is [`main`]: parse, run, exit code. Beside it, what
//! other programs can use: [`capture`].
#![forbid(unsafe_code)]
#[macro_use]
mod say;

mod analyze;
mod capture;
mod convert;
mod doctor;
mod duration;
mod failure;
mod format_names;
mod gateway;
mod generate;
mod lab;
mod manual;
mod measure;
mod meter;
mod methods;
mod options;
mod replay;
mod report;
mod rules;
mod service;
mod study;
mod terminal;
mod top;
mod traffic;
mod trouble;
mod units;
mod wire;

use clap::Parser;
use options::{Command, Options};

pub use failure::{Exit, Failure};

/// The program.
pub fn main() -> std::process::ExitCode {
    match run(Options::parse()) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            eprintln!("canter: {failure}");
            failure.exit.into()
        }
    }
}

/// Runs a command.
fn run(options: Options) -> failure::Result {
    match options.command {
        Command::Methods(arguments) => methods::run(arguments, &options.common),
        Command::Syscalls(arguments) => meter::syscalls::run(arguments, &options.common),
        Command::Gateway(arguments) => gateway::run(arguments, &options.common),
        Command::Rules(arguments) => rules::run(arguments, &options.common),
        Command::Latency(arguments) => meter::latency::run(arguments, &options.common),
        Command::Ping(arguments) => meter::ping::run(arguments, &options.common),
        Command::Pong(arguments) => meter::pong::run(arguments, &options.common),
        Command::Capture(arguments) => capture::run(arguments, &options.common),
        Command::Convert(arguments) => convert::run(arguments, &options.common),
        Command::Generate(arguments) => generate::run(arguments, &options.common),
        Command::Replay(arguments) => replay::run(arguments, &options.common),
        Command::Top(arguments) => top::run(arguments, &options.common),
        Command::Doctor(arguments) => doctor::run(arguments, &options.common),
        Command::Wire(arguments) => wire::run(arguments, &options.common),
        Command::Analyze(arguments) => analyze::run(arguments, &options.common),
        Command::Study(arguments) => study::run(arguments, &options.common),
        Command::Report(arguments) => report::run(arguments, &options.common),
        Command::Manual(arguments) => manual::run(arguments),
        Command::Service(arguments) => service::run(arguments, &options.common),
        Command::Lab(arguments) => lab::run(arguments, &options.common),
    }
}

//! canter: measures, routes and captures CAN on Linux. Parse, run, exit code.
#![forbid(unsafe_code)]
mod capture;
mod doctor;
mod failure;
mod gateway;
mod lab;
mod manual;
mod measure;
mod meter;
mod methods;
mod options;
mod report;
mod study;
mod traffic;
mod trouble;

use clap::Parser;
use options::{Command, Options};

fn main() -> std::process::ExitCode {
    let options = Options::parse();
    let done = match options.command {
        Command::Methods(arguments) => methods::run(arguments, &options.common),
        Command::Syscalls(arguments) => meter::syscalls::run(arguments, &options.common),
        Command::Gateway(arguments) => gateway::run(arguments, &options.common),
        Command::Latency(arguments) => meter::latency::run(arguments, &options.common),
        Command::Capture(arguments) => capture::run(arguments, &options.common),
        Command::Doctor(arguments) => doctor::run(arguments, &options.common),
        Command::Study(arguments) => study::run(arguments, &options.common),
        Command::Report(arguments) => report::run(arguments, &options.common),
        Command::Manual(arguments) => manual::run(arguments),
        Command::Lab(arguments) => lab::run(arguments, &options.common),
    };
    match done {
        Ok(exit) => exit.into(),
        Err(failure) => {
            eprintln!("canter: {failure}");
            failure.exit.into()
        }
    }
}

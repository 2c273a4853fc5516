//! canter: measures, routes and captures CAN on Linux. Parse, run, exit code.
#![forbid(unsafe_code)]

#![allow(dead_code, reason = "the first parts of a foundation")]

mod failure;
mod lab;
mod measure;
mod options;
mod report;

use clap::Parser;
use failure::Exit;
use options::{Command, Options};

fn main() -> std::process::ExitCode {
    let options = Options::parse();
    let done = match options.command {
        Command::Lab(arguments) => lab::run(arguments, &options.common),
        Command::Report(arguments) => report::run(arguments, &options.common),
    };
    match done {
        Ok(exit) => exit.into(),
        Err(failure) => {
            eprintln!("canter: {failure}");
            failure.exit.into()
        }
    }
}

//! `canter lab` without canter's other commands: tests that need a machine and not the program run by it, because it stays the
//! same when those commands change.
//!
//!     cargo run -p canter-lab --example lab -- lab -- uname -r
#![forbid(unsafe_code)]
#[macro_use(eprintln)]
extern crate canter_cli;

use canter_cli::program::{Command, Group, Program, arguments};
use canter_lab::lab;
use clap::Args;
use std::{env, ffi::OsString, process::ExitCode};

const COMMANDS: &[Command] = &[Command {
    name: "lab",
    group: Group::WithoutHardware,
    describe: lab::Arguments::augment_args,
    run: |given, common, _| lab::run(arguments(given)?, common),
}];

fn main() -> ExitCode {
    let (program, words) = (Program(COMMANDS), env::args_os().collect::<Vec<OsString>>());
    let given = match program.read(&words) {
        Ok(given) => given,
        Err(error) => return program.explain(&words, &error).into(),
    };
    match program.run(&given) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            eprintln!("canter: {failure}");
            failure.exit.into()
        }
    }
}

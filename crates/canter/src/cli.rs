//! The command line: reads it, runs its command and exits with its code (`failure::Exit`).

mod table;

use canter_cli::program::Program;
use canter_measure::identity::Build;
use std::{env, ffi::OsString, process::ExitCode};

pub use table::COMMANDS;

/// The program.
pub fn main() -> ExitCode {
    Build { commit: env!("CANTER_COMMIT"), sources: env!("CANTER_SOURCES") }.announce();
    let program = Program(COMMANDS);
    let words: Vec<OsString> = env::args_os().collect();
    let given = match program.read(&words) {
        Ok(given) => given,
        Err(error) => return program.explain(&words, &error).into(),
    };
    match table::refuse_unused_json(&given).and_then(|()| program.run(&given)) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            if !failure.message.is_empty() {
                eprintln!("canter: {failure}");
            }
            failure.exit.into()
        }
    }
}

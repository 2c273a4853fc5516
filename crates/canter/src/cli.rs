//! The command line: reads it, runs its command and exits with its code (`failure::Exit`).

mod table;

use canter_cli::program::Program;
use canter_measure::identity::Build;
use std::{env, process::ExitCode};

pub use table::COMMANDS;

/// The program.
pub fn main() -> ExitCode {
    Build { commit: env!("CANTER_COMMIT"), sources: env!("CANTER_SOURCES") }.announce();
    let program = Program(COMMANDS);
    let given = program.read(env::args_os()).unwrap_or_else(|error| error.exit());
    match program.run(&given) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            if !failure.message.is_empty() {
                eprintln!("canter: {failure}");
            }
            failure.exit.into()
        }
    }
}

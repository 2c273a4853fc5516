//! The table of commands, in the order of `canter --help`.

use crate::{analyze, capture, convert, doctor, generate, manual, methods, ping, replay, service, top, wire};
use canter_cli::program::{Command, arguments};
#[cfg(feature = "lab")]
use canter_lab::{lab, meter, report, study};
use canter_route::{gateway, rules};
use clap::Args;

/// A command that needs its own options and the common ones: a module with `Arguments` and `run`.
macro_rules! command {
    ($name:literal, $($module:ident)::+) => {
        Command {
            name: $name,
            describe: $($module)::+::Arguments::augment_args,
            run: |given, common, _| $($module)::+::run(arguments(given)?, common),
        }
    };
}

/// To add a command: a module, and a row here.
pub const COMMANDS: &[Command] = &[
    command!("methods", methods),
    #[cfg(feature = "lab")]
    command!("syscalls", meter::syscalls),
    command!("gateway", gateway),
    command!("rules", rules::command),
    #[cfg(feature = "lab")]
    command!("latency", meter::latency),
    command!("ping", ping),
    command!("pong", ping::pong),
    command!("capture", capture),
    Command {
        name: "service",
        describe: service::Arguments::augment_args,
        run: |given, common, program| service::run(arguments(given)?, common, program),
    },
    command!("doctor", doctor),
    command!("top", top),
    command!("generate", generate),
    command!("replay", replay),
    command!("convert", convert),
    command!("wire", wire),
    command!("analyze", analyze),
    #[cfg(feature = "lab")]
    command!("study", study),
    #[cfg(feature = "lab")]
    command!("report", report),
    #[cfg(feature = "lab")]
    command!("lab", lab),
    Command {
        name: "manual",
        describe: manual::Arguments::augment_args,
        run: |given, _, program| manual::run(arguments(given)?, program),
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use canter_cli::{failure::Exit, program::Program};

    #[derive(Args)]
    struct Toy {
        #[arg(long)]
        lost: bool,
    }

    const TOY: Command = Command {
        name: "toy",
        describe: Toy::augment_args,
        run: |given, common, _| {
            let toy: Toy = arguments(given)?;
            assert!(common.quiet, "the common options reach a command");
            Ok(if toy.lost { Exit::Lost } else { Exit::Done })
        },
    };

    #[test]
    fn a_command_is_a_row() {
        let rows = [COMMANDS, &[TOY]].concat();
        let program = Program(&rows);
        program.definition().debug_assert();
        let help = program.definition().render_help().to_string();
        assert!(help.contains("\n  toy"), "{help}");
        let run = |words: &[&str]| program.read(words).map(|given| program.run(&given).unwrap());
        assert_eq!(run(&["canter", "toy", "--quiet", "--lost"]).unwrap(), Exit::Lost);
        assert_eq!(run(&["canter", "--quiet", "toy"]).unwrap(), Exit::Done);
        assert!(run(&["canter", "toi"]).unwrap_err().to_string().contains("'toy'"));
    }

    #[test]
    fn no_two_commands_have_the_same_name() {
        let mut names: Vec<_> = COMMANDS.iter().map(|row| row.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), COMMANDS.len());
    }
}

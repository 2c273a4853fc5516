//! The table of commands, in the order of `canter --help`.

use crate::{
    align, analyze, capture, convert, decode, doctor, dump, generate, info, latency, manual, methods, ping,
    replay, service, status, top, wire,
};
use canter_cli::{
    failure::{self, Exit, Failure},
    program::{Command, Group, arguments},
};
#[cfg(feature = "lab")]
use canter_lab::{lab, meter, report, study};
use canter_route::{gateway, rules};
use clap::{ArgMatches, Args};
use std::path::PathBuf;

/// A command that needs its own options and the common ones: a module with `Arguments` and `run`.
macro_rules! command {
    ($name:literal, $group:ident, $($module:ident)::+) => {
        Command {
            name: $name,
            group: Group::$group,
            describe: $($module)::+::Arguments::augment_args,
            run: |given, common, _| $($module)::+::run(arguments(given)?, common),
        }
    };
}

/// To add a command: a module, and a row here.
pub const COMMANDS: &[Command] = &[
    command!("methods", Measure, methods),
    #[cfg(feature = "lab")]
    command!("syscalls", Measure, meter::syscalls),
    command!("gateway", Route, gateway),
    command!("rules", Route, rules::command),
    Command { name: "latency", group: Group::Measure, describe: latency::describe, run: latency::run },
    command!("ping", Measure, ping),
    command!("pong", Measure, ping::pong),
    command!("capture", Record, capture),
    Command {
        name: "service",
        group: Group::Record,
        describe: service::Arguments::augment_args,
        run: |given, common, program| service::run(arguments(given)?, common, program),
    },
    command!("status", Record, status),
    command!("doctor", Measure, doctor),
    command!("dump", Measure, dump),
    command!("info", Measure, info),
    command!("top", Measure, top),
    command!("generate", Route, generate),
    command!("replay", Record, replay),
    command!("convert", Record, convert),
    command!("align", Record, align),
    command!("decode", Record, decode),
    command!("plot", Record, decode::plot),
    command!("wire", WithoutHardware, wire),
    command!("analyze", WithoutHardware, analyze),
    #[cfg(feature = "lab")]
    command!("study", Papers, study),
    #[cfg(feature = "lab")]
    command!("report", Papers, report),
    #[cfg(feature = "lab")]
    command!("lab", WithoutHardware, lab),
    Command {
        name: "manual",
        group: Group::Other,
        describe: manual::Arguments::augment_args,
        run: |given, _, program| manual::run(arguments(given)?, program),
    },
];

/// The commands that write a document to `--json`, with their subcommands.
const WITH_DOCUMENT: &[&str] = &[
    "methods",
    "syscalls",
    "gateway",
    "rules list",
    "rules check",
    "latency",
    "ping",
    "pong",
    "capture",
    "status",
    "doctor",
    "dump", // which says what has one instead
    "info",
    "top",
    "generate",
    "replay",
    "convert",
    "align",
    "decode",
    "plot",
    "wire list",
    "analyze",
    "study verdicts",
    "lab", // whose command has the option
];

/// Refuses `--json` for a command that writes no document, instead of ignoring it.
pub fn refuse_unused_json(given: &ArgMatches) -> failure::Result<()> {
    if given.get_one::<PathBuf>("json").is_none() {
        return Ok(());
    }
    let (mut name, mut inner) = (String::new(), given.subcommand());
    while let Some((word, given)) = inner {
        name = if name.is_empty() { word.to_owned() } else { format!("{name} {word}") };
        inner = given.subcommand();
    }
    if WITH_DOCUMENT.contains(&name.as_str()) {
        return Ok(());
    }
    Err(Failure::new(Exit::Usage, format!("{name}: --json: it writes no document (leave out --json)")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use canter_cli::program::Program;

    #[derive(Args)]
    struct Toy {
        #[arg(long)]
        lost: bool,
    }

    const TOY: Command = Command {
        name: "toy",
        group: Group::Other,
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
    fn every_command_with_a_document_exists() {
        let definition = Program(COMMANDS).definition();
        for name in WITH_DOCUMENT {
            let inner = name.split(' ').try_fold(&definition, |command, word| command.find_subcommand(word));
            assert!(inner.is_some() || cfg!(not(feature = "lab")), "{name}");
        }
    }

    #[test]
    fn no_two_commands_have_the_same_name() {
        let mut names: Vec<_> = COMMANDS.iter().map(|row| row.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), COMMANDS.len());
    }
}

//! A program is a table of commands. A row has a command's name, its options and its function; the command line, the man
//! pages and a service's configuration read the rows.

use crate::{
    failure::{self, Exit, Failure},
    options::Common,
    terminal::wrapped,
};
use clap::{ArgMatches, Args, FromArgMatches};
use std::ffi::OsString;

/// The purpose of a command, by which `canter --help` groups commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Commands that write or read recordings.
    Record,
    /// Commands that move or send frames.
    Route,
    /// Commands that observe buses or measure.
    Measure,
    /// Commands that replace hardware: virtual wires and machines.
    WithoutHardware,
    /// Commands that repeat the papers' experiments.
    Papers,
    /// Commands about canter itself.
    Other,
}

impl Group {
    const ALL: [Self; 6] =
        [Self::Record, Self::Route, Self::Measure, Self::WithoutHardware, Self::Papers, Self::Other];

    fn heading(self) -> &'static str {
        match self {
            Self::Record => "Record, convert, replay",
            Self::Route => "Route",
            Self::Measure => "Look and measure",
            Self::WithoutHardware => "Without hardware",
            Self::Papers => "The papers' experiments",
            Self::Other => "Other",
        }
    }

    /// A command to begin with.
    fn example(self) -> &'static str {
        match self {
            Self::Record => "canter capture any -o drive.pcapng",
            Self::Route => "canter gateway can0 can1 --both",
            Self::Measure => "canter top any",
            Self::WithoutHardware => "canter lab -- canter methods",
            Self::Papers => "canter study run 2014-fig4.2",
            Self::Other => "",
        }
    }
}

/// A command: a row of the table.
#[derive(Clone, Copy)]
pub struct Command {
    /// The word on the command line.
    pub name: &'static str,
    /// The heading under which `--help` lists the command.
    pub group: Group,
    /// Adds the command's description and its options.
    pub describe: fn(clap::Command) -> clap::Command,
    /// Runs the command with its options, the common ones and the table.
    pub run: fn(&ArgMatches, &Common, &Program<'_>) -> failure::Result,
}

/// All commands, in the order of `--help`.
#[derive(Clone, Copy)]
pub struct Program<'a>(pub &'a [Command]);

impl Program<'_> {
    /// The definition of the command line for clap.
    pub fn definition(&self) -> clap::Command {
        let commands: Vec<_> =
            self.0.iter().map(|row| (row.describe)(clap::Command::new(row.name))).collect();
        Common::augment_args(clap::Command::new("canter"))
            .about("Measures, routes and captures CAN on Linux") // last: the common options have a sentence too
            .version(env!("CARGO_PKG_VERSION"))
            .max_term_width(100)
            .help_template(TEMPLATE)
            .before_help(self.list(&commands))
            .after_help("Every command in ten minutes, without hardware: docs/tour.md")
            .subcommand_required(true)
            .arg_required_else_help(true)
            .subcommands(commands)
    }

    /// The commands by their groups, each with its sentence, and an example for each group.
    fn list(&self, commands: &[clap::Command]) -> String {
        let longest = self.0.iter().map(|row| row.name.len()).max().unwrap_or(0);
        let indent = " ".repeat(longest + 4);
        let mut list = String::new();
        for group in Group::ALL {
            let members: Vec<_> = self.0.iter().zip(commands).filter(|(row, _)| row.group == group).collect();
            if members.is_empty() {
                continue;
            }
            list += &format!("{}:\n", group.heading());
            for (row, command) in members {
                let name = format!("  {:longest$}  ", row.name);
                let Some(about) = command.get_about() else {
                    list += &format!("{}\n", name.trim_end());
                    continue;
                };
                list += &format!("{name}{}\n", wrapped(&about.to_string(), indent.len(), indent.len()));
            }
            if !group.example().is_empty() {
                list += &format!("{indent}$ {}\n", group.example());
            }
            list.push('\n');
        }
        list.trim_end().to_owned()
    }

    /// Reads a command line; its first word is the program's name.
    ///
    /// # Errors
    /// A command line that clap refuses. Requests for help and version are such errors too.
    pub fn read<W: Into<OsString> + Clone>(
        &self,
        words: impl IntoIterator<Item = W>,
    ) -> Result<ArgMatches, clap::Error> {
        self.definition().try_get_matches_from(words)
    }

    /// Runs the command of a command line that was read.
    pub fn run(&self, given: &ArgMatches) -> failure::Result {
        let command = given.subcommand().and_then(|(name, options)| {
            let row = self.0.iter().find(|row| row.name == name)?;
            Some((row, options))
        });
        let (row, options) = command.ok_or_else(|| Failure::new(Exit::Usage, "no command"))?;
        (row.run)(options, &arguments(given)?, self)
    }
}

/// The list of commands stands before the options, in place of clap's own.
const TEMPLATE: &str = "{about}\n\n{usage-heading} {usage}\n\n{before-help}Options:\n{options}{after-help}";

/// The options of a command line as the structure that declares them.
pub fn arguments<A: FromArgMatches>(given: &ArgMatches) -> failure::Result<A> {
    A::from_arg_matches(given).map_err(|error| Failure::new(Exit::Usage, error.to_string()))
}

//! A program is a table of commands. A row has a command's name, its options and its function; the command line, the man
//! pages and a service's configuration read the rows.

use crate::{
    failure::{self, Exit, Failure},
    options::Common,
};
use clap::{ArgMatches, Args, FromArgMatches};
use std::ffi::OsString;

/// A row of the table.
#[derive(Clone, Copy)]
pub struct Command {
    pub name: &'static str,
    /// Adds the command's description and its options.
    pub describe: fn(clap::Command) -> clap::Command,
    pub run: fn(&ArgMatches, &Common, &Program<'_>) -> failure::Result,
}

/// All commands.
#[derive(Clone, Copy)]
pub struct Program<'a>(pub &'a [Command]);

impl Program<'_> {
    /// The definition of the command line for clap.
    pub fn definition(&self) -> clap::Command {
        let commands = self.0.iter().map(|row| (row.describe)(clap::Command::new(row.name)));
        Common::augment_args(clap::Command::new("canter"))
            .about("Measures, routes and captures CAN on Linux") // last: the common options have a sentence too
            .version(env!("CARGO_PKG_VERSION"))
            .max_term_width(100)
            .subcommand_required(true)
            .arg_required_else_help(true)
            .subcommands(commands)
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
        let row = given.subcommand().and_then(|(name, own)| {
            let row = self.0.iter().find(|row| row.name == name)?;
            Some((row, own))
        });
        let (row, own) = row.ok_or_else(|| Failure::new(Exit::Usage, "no command"))?;
        (row.run)(own, &arguments(given)?, self)
    }
}

/// The options of a command line as the structure that declares them.
pub fn arguments<A: FromArgMatches>(given: &ArgMatches) -> failure::Result<A> {
    A::from_arg_matches(given).map_err(|error| Failure::new(Exit::Usage, error.to_string()))
}

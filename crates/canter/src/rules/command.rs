//! `canter rules`: a rule file and the kernel's own gateway, and a recording through the rules.

mod apply;
mod check;
mod import;
mod list;

use super::read::routes;
use crate::{failure, options::Common};
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Put rules into the kernel's own gateway (can-gw), compare, list and check them
#[derive(Args)]
#[command(after_help = "\
Examples:
  canter rules diff rules.toml                what apply would change
  canter rules apply rules.toml               can-gw's jobs become those of the file, or stay
  canter rules list                           the jobs as a file for apply, with counters
  canter rules check rules.toml drive.log     what the rules do to a recording
  cangw -L | canter rules import - > rules.toml
The file is described in docs/rules.md; `canter gateway --rules` routes by the same file in user space.
Exit codes: 0 done (diff: nothing differs), 1 failed or something differs, 2 the file is wrong, 4 can-gw
cannot do it.")]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Make can-gw's jobs those of the file: add what is missing, delete what is not in it
    Apply {
        file: PathBuf,
        /// Leave jobs alone that are not in the file
        #[arg(long)]
        keep: bool,
    },
    /// Say what apply would change
    Diff { file: PathBuf },
    /// Print can-gw's jobs as a file, with their counters
    List,
    /// Delete all of can-gw's jobs
    Clear,
    /// Run a candump log through the rules: what is handed on, changed and dropped, and which rules are never used
    Check {
        file: PathBuf,
        /// A log as candump -L or -l writes it; none: only the file is checked, and whether can-gw can do it
        log: Option<PathBuf>,
        /// Print the frames that come out, as a log
        #[arg(long)]
        frames: bool,
    },
    /// Make a rule file of what cangw -L prints (-: standard input)
    Import { file: PathBuf },
}

pub fn run(arguments: Arguments, common: &Common) -> failure::Result {
    match arguments.command {
        Command::Apply { file, keep } => apply::run(&file, &routes(&file)?, keep, common),
        Command::Diff { file } => apply::diff(&file, &routes(&file)?, common),
        Command::List => list::run(common),
        Command::Clear => apply::clear(common),
        Command::Check { file, log, frames } => check::run(&file, log.as_deref(), frames, common),
        Command::Import { file } => import::run(&file, common),
    }
}

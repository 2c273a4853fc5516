//! `canter rules`: installs a rule file in the kernel's gateway, and applies one to a recording.

mod apply;
mod check;
pub mod import;
mod list;

use super::read::routes;
use canter_cli::{failure, options::Common};
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Install rules in the kernel's gateway (can-gw); compare, list and check them
#[derive(Args)]
#[command(after_help = "\
Examples:
  canter rules diff rules.toml                what apply would change
  canter rules apply rules.toml               give can-gw the jobs of the file; all of them or none
  canter rules list                           can-gw's jobs as a file for apply, with counters
  canter rules check rules.toml drive.log     apply the rules to a recording, and count
  cangw -L | canter rules import - > rules.toml
docs/rules.md describes the file; `canter gateway --rules` routes by the same file in user space.
Exit codes: 0 done (diff: nothing differs), 1 failed or something differs, 2 the file is wrong, 3 the recording
is cut off or has doubtful frames, 4 can-gw cannot do it.")]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Give can-gw the jobs of the file: add missing jobs, delete all others
    Apply {
        file: PathBuf,
        /// Keep jobs that are not in the file
        #[arg(long)]
        keep: bool,
    },
    /// Print what apply would change
    Diff { file: PathBuf },
    /// Print can-gw's jobs as a file, with their counters
    List,
    /// Delete all of can-gw's jobs
    Clear,
    /// Apply the rules to a recording: count forwarded, changed and dropped frames, and report rules that are never used
    Check {
        file: PathBuf,
        /// A recording in any format that canter convert reads; without it, check only the file, and whether can-gw
        /// supports it
        recording: Option<PathBuf>,
        /// Print the resulting frames as a log
        #[arg(long)]
        frames: bool,
    },
    /// Convert the output of cangw -L into a rule file (-: standard input)
    Import { file: PathBuf },
}

pub fn run(arguments: Arguments, common: &Common) -> failure::Result {
    match arguments.command {
        Command::Apply { file, keep } => apply::run(&file, &routes(&file)?, keep, common),
        Command::Diff { file } => apply::diff(&file, &routes(&file)?, common),
        Command::List => list::run(common),
        Command::Clear => apply::clear(common),
        Command::Check { file, recording, frames } => check::run(&file, recording.as_deref(), frames, common),
        Command::Import { file } => import::run(&file, common),
    }
}

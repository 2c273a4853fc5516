//! `canter rules`: a rule file and the kernel's own gateway, and a recording through the rules.

mod check;
mod import;
pub mod install;
mod list;

use crate::{
    failure::{self, Exit, Failure},
    gateway::rules::read,
    options::Common,
};
use canter_io::netlink::can_gw;
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
        Command::Apply { file, keep } => install::apply(&file, &routes(&file)?, keep, common),
        Command::Diff { file } => install::diff(&file, &routes(&file)?, common),
        Command::List => list::run(common),
        Command::Clear => clear(common),
        Command::Check { file, log, frames } => check::run(&file, log.as_deref(), frames, common),
        Command::Import { file } => import::run(&file, common),
    }
}

/// The routes of a file; one that has none is for another command.
pub fn routes(file: &std::path::Path) -> failure::Result<crate::gateway::rules::RuleSet> {
    let set = read::file(file)?;
    if set.loose.is_some() {
        let why = "has rules and no route (write [[route]] with from and to, or give it to canter gateway)";
        return Err(Failure::new(Exit::Usage, format!("{}: {why}", file.display())));
    }
    Ok(set)
}

fn clear(common: &Common) -> failure::Result {
    can_gw::available()?;
    let count = can_gw::list()?.len();
    if count > 0 {
        can_gw::flush()?; // the kernel refuses to delete nothing
    }
    if !common.quiet {
        eprintln!("rules: {count} jobs deleted");
    }
    Ok(Exit::Done)
}

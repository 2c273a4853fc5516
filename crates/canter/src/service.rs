//! `canter service`: what canter's systemd units run. A part of `/etc/canter/canter.toml` is a command line
//! (`configuration`); a recording that starts anew never writes over the last one (`runs`); can-gw's rules are put back
//! when their interfaces come (`rules`).

mod configuration;
mod rules;
mod runs;

use crate::{
    failure::{self, Exit, Failure},
    options::Common,
    program::Program,
};
use clap::{Args, Subcommand};
use configuration::{CAPTURE, Configuration, GATEWAY};
use std::path::PathBuf;

/// Run what /etc/canter/canter.toml describes, as the systemd units do
#[derive(Args)]
#[command(after_help = "\
Examples:
  canter service check                  what the file stands for, as command lines; or what is wrong with it
  systemctl enable --now canter-capture@drive       records as [capture.drive] says, from boot on
  systemctl enable --now canter-gateway@diagnosis   routes as [gateway.diagnosis] says
  systemctl enable --now canter-rules               the kernel's gateway has the rules of [rules]
  canter service capture drive --config ./canter.toml     the same by hand, until Ctrl-C
A key of [capture.NAME] and [gateway.NAME] is the long name of an option of canter capture and canter gateway.
Interfaces that are not there are waited for, which is said once a minute. docs/services.md has all of it.")]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// The configuration
    #[arg(long, value_name = "FILE", global = true, default_value = "/etc/canter/canter.toml")]
    config: PathBuf,
}

#[derive(Subcommand)]
enum Command {
    /// Record as [capture.NAME] says
    Capture { name: String },
    /// Route as [gateway.NAME] says
    Gateway { name: String },
    /// Keep can-gw's jobs as the file of [rules] says, whatever interfaces come and go
    Rules,
    /// Print the command lines that the file stands for
    Check,
}

pub fn run(arguments: Arguments, common: &Common, program: &Program<'_>) -> failure::Result {
    let configuration = Configuration::read(&arguments.config, program)?;
    match arguments.command {
        Command::Capture { name } => start(capture(&configuration, &name)?, program),
        Command::Gateway { name } => start(configuration.part(GATEWAY, &name)?.words, program),
        Command::Rules => match configuration.rules()? {
            Some(wanted) => rules::run(&wanted, common),
            None => {
                let message = format!("{}: no [rules]", arguments.config.display());
                Err(Failure::new(Exit::Usage, message))
            }
        },
        Command::Check => check(&configuration),
    }
}

/// Runs a command line that is known to be understood.
fn start(words: Vec<String>, program: &Program<'_>) -> failure::Result {
    let given = program.read(["canter".to_owned()].into_iter().chain(words));
    program.run(&given.map_err(|error| Failure::new(Exit::Usage, error.to_string()))?)
}

const OUTPUT: &str = "--output=";

/// The command line of a recording, its output named for this run.
fn capture(configuration: &Configuration<'_>, name: &str) -> failure::Result<Vec<String>> {
    let mut part = configuration.part(CAPTURE, name)?;
    refuse_to_stumble(name, &part.words)?;
    for word in &mut part.words {
        if let Some(output) = word.strip_prefix(OUTPUT) {
            *word = format!("{OUTPUT}{}", runs::next(output, part.keep_runs)?);
        }
    }
    Ok(part.words)
}

/// The second start would find the file of the first.
fn refuse_to_stumble(name: &str, words: &[String]) -> failure::Result<()> {
    let numbered = words.iter().any(|word| word.starts_with(OUTPUT) && word.contains(runs::RUN));
    if numbered || words.iter().any(|word| word == "--overwrite") {
        return Ok(());
    }
    let message = format!(
        "[capture.{name}]: a service starts again and again: write {} into output, or overwrite = true",
        runs::RUN
    );
    Err(Failure::new(Exit::Usage, message))
}

fn check(configuration: &Configuration<'_>) -> failure::Result {
    for kind in [CAPTURE, GATEWAY] {
        for name in configuration.names(kind)? {
            let part = configuration.part(kind, &name)?;
            if kind == CAPTURE {
                refuse_to_stumble(&name, &part.words)?;
            }
            println!("canter-{kind}@{name}: canter {}", part.words.join(" "));
        }
    }
    if let Some(rules) = configuration.rules()? {
        let set = crate::rules::read::file(rules.file.as_ref())?;
        let routes = set.routes.len();
        println!("canter-rules: {routes} routes of {}", rules.file);
    }
    Ok(Exit::Done)
}

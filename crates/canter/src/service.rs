//! `canter service`: run by canter's systemd units. A part of `/etc/canter/canter.toml` is a command line
//! (`configuration`); each start of a recording writes to a new file (`runs`); can-gw's jobs are installed again when
//! their interfaces appear (`rules`). Methods that need more than a unit's rights need a drop-in (`rights`).

pub mod configuration;
mod rights;
mod rules;
mod runs;

use canter_cli::{
    failure::{self, Exit, Failure},
    options::Common,
    program::{self, Program},
    supervisor::Supervisor,
};
use canter_route::gateway;
use clap::{ArgMatches, Args, Subcommand};
use configuration::{CAPTURE, Configuration, GATEWAY};
use runs::Run;
use std::path::{Path, PathBuf};

/// Run a part of /etc/canter/canter.toml, as the systemd units do
#[derive(Args)]
#[command(after_help = "\
Examples:
  canter service check                  print the file as command lines, or its errors
  systemctl enable --now canter-capture@drive       record by [capture.drive], from boot on
  systemctl enable --now canter-gateway@diagnosis   route by [gateway.diagnosis]
  systemctl enable --now canter-rules               install the rules of [rules] in the kernel's gateway
  canter service capture drive --config ./canter.toml     record without systemd, until Ctrl-C
A key of [capture.NAME] and [gateway.NAME] is the long name of an option of canter capture and canter gateway.
A service waits for interfaces that do not exist, and logs that once a minute. See docs/services.md.")]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// Configuration file
    #[arg(long, value_name = "FILE", global = true, default_value = "/etc/canter/canter.toml")]
    config: PathBuf,
}

#[derive(Subcommand)]
enum Command {
    /// Record by [capture.NAME]
    Capture { name: String },
    /// Route by [gateway.NAME]
    Gateway { name: String },
    /// Keep the jobs of the file in [rules] in can-gw while interfaces appear and disappear
    Rules,
    /// Print the configuration as command lines
    Check,
}

pub fn run(arguments: Arguments, common: &Common, program: &Program<'_>) -> failure::Result {
    let configuration = Configuration::read(&arguments.config, program)?;
    match arguments.command {
        Command::Capture { name } => capture(&configuration, &name, program),
        Command::Gateway { name } => gateway(&configuration, &name, program),
        Command::Rules => match configuration.rules()? {
            Some(wanted) => rules::run(&wanted, common),
            None => {
                let message = format!("{}: no [rules]", arguments.config.display());
                Err(Failure::new(Exit::Usage, message))
            }
        },
        Command::Check => check(&configuration, program),
    }
}

/// Reads a command line without the program's name.
fn read(words: &[String], program: &Program<'_>) -> failure::Result<ArgMatches> {
    let line = ["canter"].into_iter().chain(words.iter().map(String::as_str));
    program.read(line).map_err(|error| Failure::new(Exit::Usage, error.to_string()))
}

/// Runs a command line.
fn start(words: &[String], program: &Program<'_>) -> failure::Result {
    program.run(&read(words, program)?)
}

const OUTPUT: &str = "--output=";

/// Records, the output named for this run.
fn capture(configuration: &Configuration<'_>, name: &str, program: &Program<'_>) -> failure::Result {
    let mut part = configuration.part(CAPTURE, name)?;
    refuse_same_output(name, &part.words)?;
    for word in &mut part.words {
        if let Some(output) = word.strip_prefix(OUTPUT) {
            let run = Run::next(output)?;
            *word = format!("{OUTPUT}{}", run.output);
            if let Some(keep) = part.keep_runs {
                run.keep(keep);
            }
        }
    }
    start(&part.words, program)
}

fn gateway(configuration: &Configuration<'_>, name: &str, program: &Program<'_>) -> failure::Result {
    let words = configuration.part(GATEWAY, name)?.words;
    // Started by hand, it has the rights of its user.
    if Supervisor::find().is_present() {
        check_rights(name, &words, program)?;
    }
    start(&words, program)
}

/// Refuses a gateway whose unit lacks a right.
fn check_rights(name: &str, words: &[String], program: &Program<'_>) -> failure::Result<()> {
    let given = read(words, program)?;
    let (_, options) = given.subcommand().expect("a command line has a command");
    let arguments: gateway::Arguments = program::arguments(options)?;
    rights::check(name, &arguments.methods()?, Path::new("/"))
}

/// Refuses an output whose file would exist already at the second start.
fn refuse_same_output(name: &str, words: &[String]) -> failure::Result<()> {
    let numbered = words.iter().any(|word| word.starts_with(OUTPUT) && word.contains(runs::RUN));
    if numbered || words.iter().any(|word| word == "--overwrite") {
        return Ok(());
    }
    let message = format!(
        "[capture.{name}]: output: the file exists when the service starts again (add {} to its name, or overwrite = true)",
        runs::RUN
    );
    Err(Failure::new(Exit::Usage, message))
}

/// Prints each part as a command line, or its error.
fn check(configuration: &Configuration<'_>, program: &Program<'_>) -> failure::Result {
    let mut failures = Vec::new();
    for kind in [CAPTURE, GATEWAY] {
        for name in configuration.names(kind)? {
            match checked(configuration, kind, &name, program) {
                Ok(words) => println!("canter-{kind}@{name}: canter {}", words.join(" ")),
                Err(failure) => failures.push(failure),
            }
        }
    }
    if let Some(rules) = configuration.rules()? {
        match canter_route::rules::read::file(rules.file.as_ref()) {
            Ok(set) => println!("canter-rules: {} routes of {}", set.routes.len(), rules.file),
            Err(failure) => failures.push(failure),
        }
    }
    let Some(last) = failures.pop() else { return Ok(Exit::Done) };
    for failure in failures {
        eprintln!("canter: {failure}");
    }
    Err(last)
}

fn checked(
    configuration: &Configuration<'_>,
    kind: &str,
    name: &str,
    program: &Program<'_>,
) -> failure::Result<Vec<String>> {
    let words = configuration.part(kind, name)?.words;
    if kind == CAPTURE {
        refuse_same_output(name, &words)?;
    } else {
        check_rights(name, &words, program)?;
    }
    Ok(words)
}

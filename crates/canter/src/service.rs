//! `canter service`: run by canter's systemd units. A part of `/etc/canter/canter.toml` is a command line
//! (`configuration`); each start of a recording writes to a new file (`runs`); can-gw's jobs are installed again when
//! their interfaces appear (`rules`). Methods that need more than a unit's rights need a drop-in (`rights`).

pub mod configuration;
mod rights;
mod rules;
mod runs;

use crate::capture;
use canter_cli::{
    failure::{self, Exit, Failure},
    options::Common,
    program::{self, Program},
    supervisor::Supervisor,
};
use canter_route::gateway;
use clap::{ArgMatches, Args, Subcommand};
use configuration::{CAPTURE, Configuration, GATEWAY, Part};
use runs::{Retention, Run};
use std::{
    path::{Path, PathBuf},
    time::Duration,
};

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
        Command::Capture { name } => record(&configuration, &name, common, program),
        Command::Gateway { name } => gateway(&configuration, &name, program),
        Command::Rules => match configuration.rules()? {
            Some(wanted) => rules::run(&wanted, common),
            None => {
                let message = format!("{}: no [rules]", arguments.config.display());
                Err(Failure::new(Exit::Usage, message))
            }
        },
        Command::Check => check(&configuration, common, program),
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
fn record(
    configuration: &Configuration<'_>,
    name: &str,
    common: &Common,
    program: &Program<'_>,
) -> failure::Result {
    let mut part = configuration.part(CAPTURE, name)?;
    let retention = check_recording(name, &part, common, program)?;
    for word in &mut part.words {
        if let Some(output) = word.strip_prefix(OUTPUT) {
            let run = Run::next(output)?;
            *word = format!("{OUTPUT}{}", run.output);
            run.retain(retention);
        }
    }
    start(&part.words, program)
}

/// Refuses a recording that cannot start, or whose keys have no effect, at the check as at the start; returns which earlier
/// runs stay.
fn check_recording(
    name: &str,
    part: &Part,
    common: &Common,
    program: &Program<'_>,
) -> failure::Result<Retention> {
    let refusal = |why: &str| Failure::new(Exit::Usage, format!("[capture.{name}]: {why}"));
    let output = part.words.iter().find_map(|word| word.strip_prefix(OUTPUT)).unwrap_or_default();
    if output == "-" {
        return Err(refusal("output: a service has no standard output for frames (name a file)"));
    }
    let is_numbered = Run::is_numbered(output)?;
    if !is_numbered && !part.words.iter().any(|word| word == "--overwrite") {
        return Err(refusal(&format!(
            "output: the file exists when the service starts again (add {} to its name, or overwrite = true)",
            runs::RUN
        )));
    }
    if !is_numbered && part.keep_runs.is_some() {
        return Err(refusal(&format!(
            "keep-runs: each start overwrites the file of the one before (add {} to the output's name)",
            runs::RUN
        )));
    }
    let given = read(&part.words, program)?;
    let (_, options) = given.subcommand().expect("a command line has a command");
    let arguments: capture::Arguments = program::arguments(options)?;
    arguments
        .check(common)
        .map_err(|failure| Failure::new(failure.exit, format!("[capture.{name}]: {failure}")))?;
    let (free_bytes, age_ns) = arguments.retention();
    Ok(Retention { runs: part.keep_runs, free_bytes, age: age_ns.map(Duration::from_nanos) })
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

/// Prints each part as a command line, or its error.
fn check(configuration: &Configuration<'_>, common: &Common, program: &Program<'_>) -> failure::Result {
    let mut failures = Vec::new();
    for kind in [CAPTURE, GATEWAY] {
        for name in configuration.names(kind)? {
            match checked(configuration, kind, &name, common, program) {
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
    common: &Common,
    program: &Program<'_>,
) -> failure::Result<Vec<String>> {
    let part = configuration.part(kind, name)?;
    if kind == CAPTURE {
        check_recording(name, &part, common, program)?;
    } else {
        check_rights(name, &part.words, program)?;
    }
    Ok(part.words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        common: Common,
    }

    #[test]
    fn the_check_of_a_recording_refuses_what_its_start_refuses() {
        let program = Program(crate::cli::COMMANDS);
        let common = Line::parse_from(["canter"]).common;
        let refused = |keys: &str| {
            let text = format!("[capture.a]\ninterfaces = ['can0']\n{keys}");
            let configuration = Configuration::new(Path::new("c.toml"), text, &program);
            let checked = checked(&configuration, CAPTURE, "a", &common, &program).map(drop);
            let started = record(&configuration, "a", &common, &program).map(drop);
            let (checked, started) = (checked.unwrap_err(), started.unwrap_err());
            assert_eq!(checked.message, started.message, "{keys}");
            assert_eq!(checked.exit, Exit::Usage, "{checked}");
            checked.message
        };
        let overwrite = "output = 'd.log'\noverwrite = true\n";
        let run = "output = 'd-{run}.log'\n";
        for (keys, expected) in [
            ("output = 'd.log'".to_owned(), "output: the file exists when the service starts again"),
            ("output = '-'\noverwrite = true".to_owned(), "output: a service has no standard output"),
            ("output = '{run}/d.log'".to_owned(), "is allowed only in the name of the file"),
            ("output = 'd-{run}.mp3'".to_owned(), "d-{run}.mp3: unknown format"),
            (format!("{overwrite}keep-runs = 3"), "keep-runs: each start overwrites the file"),
            (format!("{run}keep = 3"), "--keep, --keep-free and --keep-age: need --rotate-size"),
            (format!("{run}keep-age = '30d'"), "--keep, --keep-free and --keep-age: need --rotate-size"),
            (format!("{run}flush-interval = '1ms'"), "--flush-interval: must be at least 500 ms"),
            (format!("{run}hw-stamps = true"), "a log has no place for hardware stamps"),
        ] {
            let message = refused(&keys);
            assert!(message.contains("[capture.a]: ") || message.starts_with("{run}"), "{message}");
            assert!(message.contains(expected), "{keys}: {message}");
        }
    }
}

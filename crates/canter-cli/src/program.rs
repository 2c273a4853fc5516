//! A program is a table of commands. A row has a command's name, its options and its function; the command line, the man
//! pages and a service's configuration read the rows.

use crate::{
    complaint::{Complaint, is_request, named},
    failure::{self, Exit, Failure},
    options::Common,
    terminal::{COLUMNS_MAX, wrapped},
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
        self.definition_with(|_| true)
    }

    /// The definition with the descriptions and options of some commands, and the names of the others.
    fn definition_with(&self, is_wanted: impl Fn(&Command) -> bool) -> clap::Command {
        let command = |row: &Command| {
            let named = clap::Command::new(row.name);
            if is_wanted(row) { with_fitting_help((row.describe)(named)) } else { named }
        };
        let commands: Vec<_> = self.0.iter().map(command).collect();
        Common::augment_args(clap::Command::new("canter"))
            .about("Measures, routes and captures CAN on Linux") // last: the common options have a sentence too
            .version(env!("CARGO_PKG_VERSION"))
            .max_term_width(COLUMNS_MAX)
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
    pub fn read<W: Into<OsString>>(
        &self,
        words: impl IntoIterator<Item = W>,
    ) -> Result<ArgMatches, clap::Error> {
        let words: Vec<OsString> = words.into_iter().map(Into::into).collect();
        // To describe all commands takes longer than most of them run, so a complaint or a help alone has all.
        let few = self.definition_with(|row| words.iter().any(|word| word == row.name));
        few.try_get_matches_from(&words).or_else(|_| self.definition().try_get_matches_from(&words))
    }

    /// Prints why a command line was refused, or the help that it asked for, and returns the exit code.
    pub fn explain(&self, words: &[OsString], error: &clap::Error) -> Exit {
        let definition = self.definition();
        // `canter capture help` is a request too.
        let asks_for_help = words.len() > 2 && words.last().is_some_and(|word| word == "help");
        if asks_for_help && !is_request(error) {
            let mut definition = definition;
            definition.build(); // so that each command knows its name with the program's
            print!("{}", named(&definition, words).1.clone().render_help());
            return Exit::Done;
        }
        if is_request(error) {
            // An error of the terminal cannot be reported anywhere.
            let _ = error.print();
            return if error.use_stderr() { Exit::Usage } else { Exit::Done };
        }
        let Complaint { line, example, .. } = Complaint::new(&definition, words, error);
        eprintln!("canter: {line}");
        example.iter().for_each(|example| eprintln!("{example}"));
        Exit::Usage
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

/// A command, and those below it, with the text behind the options in lines that fit a terminal.
fn with_fitting_help(mut command: clap::Command) -> clap::Command {
    let names: Vec<String> = command.get_subcommands().map(|inner| inner.get_name().to_owned()).collect();
    for name in names {
        command = command.mut_subcommand(name, with_fitting_help);
    }
    match command.get_after_help().map(ToString::to_string) {
        Some(text) => command.after_help(fitting(&text)),
        None => command,
    }
}

/// Joins the lines of paragraphs and breaks them anew. An example that is too long has its explanation below it.
fn fitting(text: &str) -> String {
    let (mut out, mut paragraph) = (String::new(), String::new());
    let end = |paragraph: &mut String, out: &mut String| {
        if !paragraph.is_empty() {
            *out += &wrapped(paragraph, 0, 0);
            out.push('\n');
            paragraph.clear();
        }
    };
    for line in text.lines() {
        let is_prose = !line.is_empty() && !line.starts_with(' ') && !line.ends_with(':');
        if is_prose {
            paragraph = [paragraph.as_str(), line].join(" ").trim_start().to_owned();
            continue;
        }
        end(&mut paragraph, &mut out);
        let (example, about) = line.trim_end().rsplit_once("   ").unwrap_or((line, ""));
        match line.trim_end() {
            line if line.chars().count() <= COLUMNS_MAX => out += line,
            _ if example.trim().is_empty() || about.is_empty() => out += line,
            _ => out += &format!("{}\n      {}", example.trim_end(), wrapped(about.trim_start(), 6, 6)),
        }
        out.push('\n');
    }
    end(&mut paragraph, &mut out);
    out.trim_end().to_owned()
}

/// The list of commands stands before the options, in place of clap's own.
const TEMPLATE: &str = "{about}\n\n{usage-heading} {usage}\n\n{before-help}Options:\n{options}{after-help}";

/// The options of a command line as the structure that declares them.
pub fn arguments<A: FromArgMatches>(given: &ArgMatches) -> failure::Result<A> {
    A::from_arg_matches(given).map_err(|error| Failure::new(Exit::Usage, error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_are_broken_anew_and_long_examples_explained_below() {
        let long = "word ".repeat(30);
        let text = format!(
            "Examples:\n  canter a   what it does\n  canter b {}   why it is so long\n{long}\nend.",
            "x".repeat(70)
        );
        let fitted = fitting(&text);
        let lines: Vec<&str> = fitted.lines().collect();
        assert_eq!(lines[..2], ["Examples:", "  canter a   what it does"]);
        assert!(lines[2].ends_with("xxx") && lines[3] == "      why it is so long", "{fitted}");
        assert!(lines[4..].iter().all(|line| line.chars().count() <= COLUMNS_MAX), "{fitted}");
        assert!(fitted.ends_with(" end."), "{fitted}");
    }
}

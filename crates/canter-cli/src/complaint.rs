//! Errors of a command line in canter's words: one line that names the command, the option and the way out, and an example
//! from the command's help. clap finds the errors; its texts, made for every program, stay inside.

use clap::{
    Command, Error,
    error::{ContextKind, ContextValue, ErrorKind},
};
use std::{error::Error as _, ffi::OsString};

/// What is wrong with a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// The command, the option, what is wrong, the way out.
    pub line: String,
    /// An example of the command, with what it does.
    pub example: Option<String>,
    /// The option: `--output`; empty when the error has none.
    pub option: String,
}

/// What to say of an option that is missing, by command and option: the way out that an example does not show.
const MISSING: &[(&str, &str, &str)] = &[
    ("capture", "--output", "-o drive.pcapng; canter dump prints frames instead"),
    ("convert", "--output", "-o drive.blf, or -o - with --format"),
];

/// The standard library's words for a text that is no number.
const NO_NUMBER: &[&str] = &[
    "invalid digit found in string",
    "cannot parse integer from empty string",
    "number too large to fit in target type",
    "number too small to fit in target type",
];

/// Whether an error is a request, such as `--help`, whose text is the answer.
pub fn is_request(error: &Error) -> bool {
    use ErrorKind::{DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand, DisplayVersion};
    matches!(error.kind(), DisplayHelp | DisplayHelpOnMissingArgumentOrSubcommand | DisplayVersion)
}

/// The command that a command line names, and its name with those above it: `wire add`. `words` begin with the program's.
pub fn named<'a>(program: &'a Command, words: &[OsString]) -> (String, &'a Command) {
    let (mut command, mut name) = (program, Vec::new());
    for word in words.iter().skip(1).filter_map(|word| word.to_str()) {
        if let Some(inner) = command.find_subcommand(word) {
            name.push(inner.get_name());
            command = inner;
        }
    }
    (name.join(" "), command)
}

impl Complaint {
    /// Explains an error of `program`'s command line.
    pub fn new(program: &Command, words: &[OsString], error: &Error) -> Self {
        let (name, command) = named(program, words);
        let subject = if name.is_empty() { String::new() } else { format!("{name}: ") };
        let line = format!("{subject}{}", reason(&name, error));
        let option = text(error, ContextKind::InvalidArg).unwrap_or_default();
        let option = flag(&option).to_owned();
        Self { line, example: example(command, &name, &option), option }
    }
}

/// The value of a context as text; several values as a list.
fn text(error: &Error, kind: ContextKind) -> Option<String> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(text.clone()),
        ContextValue::Strings(list) => Some(list.join(", ")),
        ContextValue::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// An option's name without its value's: `--output <FILE>` becomes `--output`.
fn flag(option: &str) -> &str {
    option.split([' ', '=', ',']).next().unwrap_or_default()
}

fn reason(command: &str, error: &Error) -> String {
    let option = text(error, ContextKind::InvalidArg).unwrap_or_default();
    let value = text(error, ContextKind::InvalidValue).unwrap_or_default();
    let help =
        if command.is_empty() { "canter --help".to_owned() } else { format!("canter {command} --help") };
    match error.kind() {
        ErrorKind::MissingRequiredArgument => {
            let way_out = MISSING.iter().find(|row| row.0 == command && row.1 == flag(&option));
            let way_out = way_out.map_or(String::new(), |row| format!(" ({})", row.2));
            format!("{}: is missing{way_out}", option.replace("...", ""))
        }
        ErrorKind::UnknownArgument if option.starts_with('-') => {
            let tip = text(error, ContextKind::SuggestedArg)
                .map_or(String::new(), |arg| format!("did you mean {arg}? "));
            format!("{option}: no such option ({tip}{help} lists them)")
        }
        ErrorKind::UnknownArgument => format!("{option}: is one argument too many ({help})"),
        ErrorKind::InvalidSubcommand => {
            let word = text(error, ContextKind::InvalidSubcommand).unwrap_or_default();
            let tip = text(error, ContextKind::SuggestedSubcommand);
            let tip = tip.map_or(String::new(), |name| format!("did you mean {name}? "));
            format!("{word}: no such command ({tip}{help} lists them)")
        }
        ErrorKind::MissingSubcommand => format!("no command is given ({help} lists them)"),
        ErrorKind::InvalidValue if value.is_empty() => format!("{option}: its value is missing ({help})"),
        ErrorKind::InvalidValue => {
            let known = text(error, ContextKind::ValidValue).unwrap_or_default();
            format!("{}: {value:?} is not known (there are {known})", plain_name(&option))
        }
        ErrorKind::ValueValidation => {
            let source = error.source().map_or_else(String::new, ToString::to_string);
            let source = if NO_NUMBER.contains(&source.as_str()) {
                "is not a whole number".to_owned()
            } else {
                source
            };
            let name = plain_name(&option);
            if source.contains(value.as_str()) {
                format!("{name}: {source}")
            } else {
                format!("{name} {value:?}: {source}")
            }
        }
        ErrorKind::ArgumentConflict => {
            let other = text(error, ContextKind::PriorArg).unwrap_or_default();
            let other =
                if other.is_empty() { "another option".to_owned() } else { plain_name(&other).to_owned() };
            match plain_name(&option) {
                same if same == other => format!("{same}: is given twice"),
                name => format!("{name}: cannot be combined with {other}"),
            }
        }
        _ => {
            let rendered = error.to_string();
            let first = rendered.lines().next().unwrap_or_default();
            format!("{} ({help})", first.trim_start_matches("error: "))
        }
    }
}

/// An option without the name of its value; an argument as the help shows it.
fn plain_name(option: &str) -> &str {
    if option.starts_with('-') { flag(option) } else { option.trim_end_matches("...") }
}

/// The first example of a command that has the option, otherwise the first one.
fn example(command: &Command, name: &str, option: &str) -> Option<String> {
    if name.is_empty() {
        return None;
    }
    let help = command.get_after_help()?.to_string();
    let first = name.split(' ').next().unwrap_or_default();
    let is_example = |line: &&str| line.starts_with(&format!("  canter {first} "));
    let examples: Vec<&str> = help.lines().filter(is_example).collect();
    let short =
        command.get_arguments().find(|arg| arg.get_long().is_some_and(|long| option == format!("--{long}")));
    let short = short.and_then(|arg| arg.get_short()).map(|letter| format!(" -{letter} "));
    let has_option = |line: &&&str| {
        option.starts_with('-')
            && (line.contains(&format!("{option} "))
                || short.as_ref().is_some_and(|short| line.contains(short)))
    };
    examples.iter().find(has_option).or(examples.first()).map(|line| (*line).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Arg;

    fn program() -> Command {
        let number = |text: &str| text.parse::<u8>().map_err(|_| format!("{text:?} is not a number (7)"));
        let capture = Command::new("capture")
            .arg(Arg::new("interfaces").value_name("IFACE").required(true))
            .arg(Arg::new("output").long("output").short('o').value_name("FILE").required(true))
            .arg(Arg::new("count").long("count").value_name("N").value_parser(number))
            .arg(Arg::new("kind").long("kind").value_parser(["one", "two"]))
            .after_help(
                "Examples:\n  canter capture can0 -o drive.pcapng\n  canter capture can0 --count 7 -o x.log",
            );
        Command::new("canter").subcommand_required(true).subcommand(capture)
    }

    fn complaint(line: &str) -> (String, String) {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let error = program().try_get_matches_from(&words).unwrap_err();
        let complaint = Complaint::new(&program(), &words, &error);
        (complaint.line, complaint.example.unwrap_or_default())
    }

    #[test]
    fn each_kind_of_error_is_one_line_with_a_way_out() {
        let first = "  canter capture can0 -o drive.pcapng";
        for (line, said, example) in [
            (
                "canter captrue",
                "captrue: no such command (did you mean capture? canter --help lists them)",
                "",
            ),
            (
                "canter capture can0",
                "capture: --output <FILE>: is missing (-o drive.pcapng; canter dump prints frames instead)",
                first,
            ),
            (
                "canter capture can0 -o x --dbc y",
                "capture: --dbc: no such option (canter capture --help lists them)",
                first,
            ),
            (
                "canter capture can0 -o x --cuont 7",
                "capture: --cuont: no such option (did you mean --count? canter capture --help lists them)",
                first,
            ),
            (
                "canter capture can0 -o x can1",
                "capture: can1: is one argument too many (canter capture --help)",
                first,
            ),
            (
                "canter capture can0 -o x --count many",
                "capture: --count: \"many\" is not a number (7)",
                "  canter capture can0 --count 7 -o x.log",
            ),
            (
                "canter capture can0 -o x --kind three",
                "capture: --kind: \"three\" is not known (there are one, two)",
                first,
            ),
            ("canter capture can0 -o x -o y", "capture: --output: is given twice", first),
        ] {
            assert_eq!(complaint(line), (said.to_owned(), example.to_owned()), "{line}");
        }
    }
}

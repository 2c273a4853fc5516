//! `/etc/canter/canter.toml`: each part is a command line. A key is the long name of an option or the name of a positional
//! argument, so every option is defined once, by its command.

use canter_cli::{
    complaint::Complaint,
    document::{Document, instead, whole_number},
    failure::{Exit, Failure, Result},
    program::Program,
    trouble,
};
use canter_route::gateway::kind::Method;
use clap::{Arg, Command};
use std::{ffi::OsString, fmt::Display, ops::Range, path::Path};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

/// The kinds of parts.
pub const CAPTURE: &str = "capture";
pub const GATEWAY: &str = "gateway";
pub const RULES: &str = "rules";

/// A key of the service, not of the command: how many runs' files to keep.
pub const KEEP_RUNS: &str = "keep-runs";

/// Options that a service refuses: a signal ends it, and it has no terminal.
const EXCLUDED_OPTIONS: &[&str] = &["help", "version", "duration", "count"];

/// A configuration file, parsed when a part is requested.
pub struct Configuration<'p> {
    program: Program<'p>,
    file: String,
    text: String,
}

/// The part `[rules]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    pub file: String,
    /// Keep jobs that are not in the file.
    pub keep: bool,
}

/// A part that becomes a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// The command and its arguments, without the program.
    pub words: Vec<String>,
    /// Number of runs whose files are kept; `None`: all.
    pub keep_runs: Option<u32>,
}

impl<'p> Configuration<'p> {
    /// Reads a file. One that cannot be read is a wrong configuration: another start does not mend it.
    pub fn read(path: &Path, program: &Program<'p>) -> Result<Self> {
        let text = trouble::read_text(path).map_err(|failure| Failure::new(Exit::Usage, failure.message))?;
        Ok(Self::new(path, text, program))
    }

    /// Takes a text; `path` is its name in errors.
    pub fn new(path: &Path, text: String, program: &Program<'p>) -> Self {
        Self { program: *program, file: path.display().to_string(), text }
    }

    fn document(&self) -> Document<'_> {
        Document::new(&self.file, &self.text)
    }

    /// An error at a position.
    fn fault<T>(&self, span: &Range<usize>, message: impl Display) -> Result<T> {
        Err(self.document().failure(span, message))
    }

    /// The parts of a kind by their names, each a table.
    fn parts<'t, 'a>(
        &self,
        root: &'t DeTable<'a>,
        kind: &str,
    ) -> Result<Vec<(&'t str, &'t DeTable<'a>, Range<usize>)>> {
        let Some((key, value)) = root.get_key_value(kind) else { return Ok(Vec::new()) };
        let not_named =
            format!("the part needs a name: [{kind}.NAME], for systemctl start canter-{kind}@NAME");
        let DeValue::Table(parts) = value.get_ref() else {
            return self.fault(&key.span(), not_named);
        };
        let part = |(name, value): (&'t Spanned<_>, &'t Spanned<DeValue<'a>>)| match value.get_ref() {
            DeValue::Table(table) => {
                let name: &'t std::borrow::Cow<'a, str> = name.get_ref();
                Ok((name.as_ref(), table, value.span()))
            }
            _ => self.fault(&name.span(), not_named.clone()),
        };
        parts.iter().map(part).collect()
    }

    /// Parses the file; refuses unknown parts.
    fn root(&self) -> Result<DeTable<'_>> {
        let known = [CAPTURE, GATEWAY, RULES];
        let root = self.document().parse()?;
        match root.keys().find(|key| !known.contains(&key.get_ref().as_ref())) {
            None => Ok(root),
            Some(key) => {
                let message = format!("{:?}: unknown part{}", key.get_ref(), instead(key.get_ref(), &known));
                self.fault(&key.span(), message)
            }
        }
    }

    /// The names of all parts of a kind.
    pub fn names(&self, kind: &str) -> Result<Vec<String>> {
        let root = self.root()?;
        let parts = self.parts(&root, kind)?;
        Ok(parts.into_iter().map(|(name, ..)| name.to_owned()).collect())
    }

    /// `[kind.name]` as a command line that its command understands.
    pub fn part(&self, kind: &str, name: &str) -> Result<Part> {
        let root = self.root()?;
        let parts = self.parts(&root, kind)?;
        let Some((_, table, span)) = parts.iter().find(|(known, ..)| *known == name) else {
            let known: Vec<&str> = parts.iter().map(|(known, ..)| *known).collect();
            let others = if known.is_empty() { String::new() } else { instead(name, &known) };
            return Err(Failure::new(Exit::Usage, format!("{}: no [{kind}.{name}]{others}", self.file)));
        };
        let mut program = self.program.definition();
        program.build(); // so that each command has the common options too
        let command = program.find_subcommand(kind).expect("each kind is a command");
        let part = self.words(command, table)?;
        self.check_command_line(&part.words).map_err(|Complaint { line, option, .. }| {
            // A value that its option refuses has a place of its own.
            let value = table.get(option.trim_start_matches('-'));
            let place = value.map_or_else(|| span.clone(), Spanned::span);
            self.document().failure(&place, line)
        })?;
        Ok(part)
    }

    /// The command's error.
    fn check_command_line(&self, words: &[String]) -> std::result::Result<(), Complaint> {
        let line: Vec<OsString> =
            ["canter"].into_iter().chain(words.iter().map(String::as_str)).map(Into::into).collect();
        let Err(error) = self.program.read(&line) else { return Ok(()) };
        Err(Complaint::new(&self.program.definition(), &line, &error))
    }

    fn words(&self, command: &Command, table: &DeTable<'_>) -> Result<Part> {
        let mut arguments: Vec<&Arg> = command.get_arguments().filter(|arg| !is_excluded(arg)).collect();
        // Positional arguments first, in their order.
        arguments.sort_by_key(|arg| arg.get_index().unwrap_or(usize::MAX));
        let mut part = Part { words: vec![command.get_name().to_owned()], keep_runs: None };
        for (key, value) in table.iter() {
            let name = key.get_ref().as_ref();
            if command.get_name() == CAPTURE && name == KEEP_RUNS {
                part.keep_runs = Some(self.positive(value)?);
            } else if !arguments.iter().any(|arg| key_of(arg) == name) {
                let known: Vec<&str> = arguments.iter().map(|arg| key_of(arg)).collect();
                let message = format!("{name:?}: unknown key{}", instead(name, &known));
                return self.fault(&key.span(), message);
            }
        }
        for arg in &arguments {
            match table.get(key_of(arg)) {
                Some(value) => self.add(arg, value, &mut part.words)?,
                None if key_of(arg) == "wait-for-interface" && !cannot_wait(table) => {
                    part.words.push("--wait-for-interface".to_owned());
                }
                None => {}
            }
        }
        Ok(part)
    }

    fn positive(&self, value: &Spanned<DeValue<'_>>) -> Result<u32> {
        match value.get_ref().as_str().is_none().then(|| text(value.get_ref())).flatten().map(|n| n.parse()) {
            Some(Ok(number @ 1..)) => Ok(number),
            _ => self.fault(&value.span(), format!("{KEEP_RUNS}: must be a number from 1")),
        }
    }

    /// A value as words of the command line.
    fn add(&self, arg: &Arg, value: &Spanned<DeValue<'_>>, words: &mut Vec<String>) -> Result<()> {
        let key = key_of(arg);
        let fault = |expected: &str| self.fault(&value.span(), format!("{key}: must be {expected}"));
        let takes_value = arg.get_action().takes_values();
        match value.get_ref() {
            DeValue::Boolean(on) if !takes_value => words.extend(on.then(|| format!("--{key}"))),
            _ if !takes_value => return fault("true or false"),
            DeValue::Array(list) => {
                for item in list.iter() {
                    match text(item.get_ref()) {
                        Some(text) => words.push(word(arg, &text)),
                        None => return fault("a list of strings"),
                    }
                }
            }
            other => match text(other) {
                Some(text) => words.push(word(arg, &text)),
                None => return fault("a string or a number"),
            },
        }
        Ok(())
    }

    /// The part `[rules]`, if there is one.
    pub fn rules(&self) -> Result<Option<Rules>> {
        let root = self.root()?;
        let Some((key, value)) = root.get_key_value(RULES) else { return Ok(None) };
        let DeValue::Table(table) = value.get_ref() else {
            return self.fault(&key.span(), "rules must be a table: [rules] with file = \"…\"");
        };
        let document = self.document();
        let table = document.table(table, value.span(), &["file", "keep"])?;
        let (file, _) = table.needed_text("file")?;
        Ok(Some(Rules { file: file.to_owned(), keep: table.flag("keep")?.unwrap_or(false) }))
    }
}

/// The key of an argument in the file.
fn key_of(arg: &Arg) -> &str {
    arg.get_long().unwrap_or_else(|| arg.get_id().as_str())
}

fn is_excluded(arg: &Arg) -> bool {
    EXCLUDED_OPTIONS.contains(&key_of(arg))
}

fn word(arg: &Arg, text: &str) -> String {
    match arg.get_long() {
        Some(long) => format!("--{long}={text}"),
        None => text.to_owned(),
    }
}

/// Whether the part is a gateway that cannot wait for interfaces. With can-gw, canter-rules.service waits instead.
fn cannot_wait(table: &DeTable<'_>) -> bool {
    let method = table.get("method").and_then(|value| value.get_ref().as_str());
    let method = method.and_then(|name| name.parse::<Method>().ok());
    method.is_some_and(|method| !method.kind.waits_for_interfaces)
}

fn text(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(_) => whole_number(value).map(|number| number.to_string()),
        DeValue::Float(number) => Some(number.as_str().to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn configuration(text: &str) -> Configuration<'static> {
        Configuration {
            program: Program(crate::cli::COMMANDS),
            file: "c.toml".to_owned(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn a_part_becomes_a_command_line() {
        let file = configuration(
            r#"
            [capture.drive]
            interfaces = ["can0,123:7FF", "can1"]
            output = "/var/lib/canter/drive-{run}.pcapng.zst"
            rotate-size = "100M"
            keep = 50
            keep-runs = 3
            hw-stamps = true
            direction = false
            realtime = 80

            [gateway.diagnosis]
            from = "can0"
            to = "can1"
            both = true
            wait-for-interface = false

            [gateway.fast]
            from = "can0"
            to = "can1"
            method = "can-gw"
            "#,
        );
        let part = file.part(CAPTURE, "drive").unwrap();
        let mut words = part.words.clone();
        words[3..].sort();
        let expected = "capture can0,123:7FF can1 --hw-stamps --keep=50 --output=/var/lib/canter/drive-{run}.pcapng.zst \
            --realtime=80 --rotate-size=100M --wait-for-interface";
        assert_eq!((words.join(" ").as_str(), part.keep_runs), (expected, Some(3)));
        assert_eq!(file.part(GATEWAY, "diagnosis").unwrap().words, ["gateway", "can0", "can1", "--both"]);
        assert_eq!(file.part(GATEWAY, "fast").unwrap().words, ["gateway", "can0", "can1", "--method=can-gw"]);
        assert_eq!(file.names(GATEWAY).unwrap(), ["diagnosis", "fast"]);
    }

    #[test]
    fn errors_are_one_line_with_their_place_and_the_way_out() {
        let table = [
            ("x = ", "c.toml:1:"),
            ("[captur.a]", r#"c.toml:1:2: "captur": unknown part (did you mean "capture"?)"#),
            ("[capture]\ninterfaces = ['can0']", "c.toml:2:1: the part needs a name: [capture.NAME]"),
            ("[capture.b]", "c.toml: no [capture.a] (did you mean \"b\"?)"),
            ("[capture.a]\noutptu = 'x'", r#"c.toml:2:1: "outptu": unknown key (did you mean "output"?)"#),
            ("[capture.a]\ninterfaces = 'can0'", "c.toml:1:1: capture: --output <FILE>: is missing"),
            (
                "[capture.a]\ninterfaces = 'can0'\noutput = 'x.log'\nkeep = 'many'",
                r#"c.toml:4:8: capture: --keep "many": is not a whole number"#,
            ),
            ("[capture.a]\nns = 3", "c.toml:2:6: ns: must be true or false"),
            ("[capture.a]\nkeep-runs = 0", "c.toml:2:13: keep-runs: must be a number from 1"),
            ("[capture.a]\nduration = '1s'", r#""duration": unknown key"#),
            ("[capture.a]\noutput = {}", "c.toml:2:10: output: must be a string or a number"),
        ];
        for (text, expected) in table {
            let failure = configuration(text).part(CAPTURE, "a").unwrap_err();
            assert!(failure.message.contains(expected), "{text}: {failure}");
            assert_eq!((failure.exit, failure.message.lines().count()), (Exit::Usage, 1), "{failure}");
        }
        let failure = configuration("[rules]\nfiel = 'x'").rules().unwrap_err();
        assert!(failure.message.contains(r#"did you mean "file"?"#), "{failure}");
    }

    #[test]
    fn the_rules_have_a_file() {
        let rules = configuration("[rules]\nfile = '/r'").rules().unwrap();
        assert_eq!(rules, Some(Rules { file: "/r".into(), keep: false }));
        assert_eq!(configuration("").rules().unwrap(), None);
    }
}

//@ machine: host
//! Man pages and completions: every command has a page, and bash understands its completions.

use std::{
    fs::File,
    process::{Command, Output, Stdio},
};

fn canter(arguments: &[&str]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_canter")).args(arguments).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    output
}

fn commands() -> Vec<String> {
    let help = String::from_utf8(canter(&["--help"]).stdout).unwrap();
    let (list, _) = help.split_once("\nOptions:\n").unwrap();
    let indented = list.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    indented.map(|line| line.split_whitespace().next().unwrap().to_owned()).collect()
}

#[test]
fn every_command_has_a_page_with_its_examples() {
    let folder = tempfile::tempdir().unwrap();
    canter(&["manual", "--pages", folder.path().to_str().unwrap()]);
    let commands = commands();
    assert!(commands.iter().any(|name| name == "capture"), "{commands:?}");
    for name in commands {
        let page = std::fs::read_to_string(folder.path().join(format!("canter-{name}.1"))).unwrap();
        assert!(page.contains("xample") || name == "study", "canter-{name}.1 has no examples");
    }
}

/// The commands below a command, from its own help.
fn subcommands(name: &str) -> Vec<String> {
    let help = String::from_utf8(canter(&[name, "--help"]).stdout).unwrap();
    let Some((_, list)) = help.split_once("\nCommands:\n") else { return Vec::new() };
    let lines = list.lines().take_while(|line| !line.is_empty()).filter(|line| !line.starts_with("   "));
    let names = lines.filter_map(|line| line.split_whitespace().next().map(str::to_owned));
    names.filter(|name| name != "help").collect()
}

#[test]
fn help_fits_80_columns() {
    let mut below = 0;
    for name in commands() {
        let pages = subcommands(&name);
        below += pages.len();
        let pages = pages.iter().map(|page| vec![name.as_str(), page.as_str()]);
        for page in [vec![name.as_str()]].into_iter().chain(pages) {
            for help in ["-h", "--help"] {
                let text = String::from_utf8(canter(&[&page[..], &[help]].concat()).stdout).unwrap();
                let long = text.lines().find(|line| line.chars().count() > 80);
                assert!(long.is_none(), "canter {page:?} {help}: {long:?}");
            }
        }
    }
    assert!(below > 10, "rules, service, study and wire have commands: {below} found");
}

#[test]
fn bash_understands_its_completions() {
    let completions = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(completions.path(), canter(&["manual", "--completions", "bash"]).stdout).unwrap();
    let script = format!(
        "source {} && COMP_WORDS=(canter capture --dur) COMP_CWORD=2 && _canter canter --dur capture && echo ${{COMPREPLY[@]}}",
        completions.path().display()
    );
    let output = Command::new("bash").args(["-c", &script]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "--duration", "{output:?}");
    for shell in ["zsh", "fish"] {
        assert!(!canter(&["manual", "--completions", shell]).stdout.is_empty());
    }
}

#[test]
fn what_prints_needs_no_reader_but_a_file_that_takes_it() {
    for words in [&["study", "list"][..], &["methods"], &["manual", "--completions", "bash"]] {
        let start = |output: Stdio| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_canter"));
            command.args(words).stdout(output).stderr(Stdio::piped()).spawn().unwrap()
        };
        let mut unread = start(Stdio::piped());
        drop(unread.stdout.take());
        let unread = unread.wait_with_output().unwrap();
        assert!(!String::from_utf8_lossy(&unread.stderr).contains("panicked"), "{words:?}: {unread:?}");
        let full = start(File::options().write(true).open("/dev/full").unwrap().into());
        let full = full.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&full.stderr).into_owned();
        assert!(
            full.status.code() == Some(1) && said.contains("canter: standard output: write: No space"),
            "{said}"
        );
    }
}

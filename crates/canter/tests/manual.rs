//! Man pages and completions: every command has a page, and bash understands its completions.
#![allow(clippy::unwrap_used, reason = "a test may")]

use std::process::{Command, Output};

fn canter(arguments: &[&str]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_canter")).args(arguments).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    output
}

fn commands() -> Vec<String> {
    let help = String::from_utf8(canter(&["--help"]).stdout).unwrap();
    let list = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let indented = list.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    indented
        .map(|line| line.split_whitespace().next().unwrap().to_owned())
        .filter(|name| name != "help")
        .collect()
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

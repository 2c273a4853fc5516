//! docs/tour.md in the lab: every command of its `console` blocks runs in order and must print the page's lines.
//!
//! On the page `$ ` begins a command, `> ` continues it, and all other lines of a block are output. Output matches when
//! its lines do, where a line `…` stands for any number of lines, and figures may differ: a number, a time, a byte in
//! hexadecimal, a bar or `–` matches any of these, with or without a unit.
#![allow(clippy::unwrap_used, reason = "a test may")]

mod testbed;

use std::{fs, path::Path, time::Duration};
use testbed::{DEADLINE, alone, program, start};

/// A hang is longer: in the virtual clock time passes while the guest waits for a program from the host's disk.
const LIMIT: Duration = DEADLINE.saturating_mul(10);

/// A command of the page, and the lines that it prints there.
#[derive(Debug, Default, PartialEq)]
struct Step {
    command: String,
    output: Vec<String>,
}

fn steps(page: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for block in page.split("```console\n").skip(1) {
        for line in block.split_once("```").unwrap().0.lines() {
            if let Some(command) = line.strip_prefix("$ ") {
                steps.push(Step { command: command.to_owned(), output: Vec::new() });
            } else if let Some(more) = line.strip_prefix("> ") {
                steps.last_mut().unwrap().command += &format!("\n{more}");
            } else {
                steps.last_mut().unwrap().output.push(line.to_owned());
            }
        }
    }
    steps
}

/// A line with its figures replaced by `#`, each run of them by one.
fn without_figures(line: &str) -> String {
    let mut words: Vec<&str> = Vec::new();
    for word in line.split_whitespace() {
        let byte = word.len() == 2 && word.bytes().all(|c| matches!(c, b'0'..=b'9' | b'A'..=b'F'));
        let bar = word.chars().all(|c| ('▁'..='█').contains(&c));
        let number = word.chars().find(|c| c.is_alphanumeric()).is_some_and(|c| c.is_ascii_digit());
        let unit = matches!(word.trim_end_matches([',', ')']), "ns" | "µs" | "ms" | "s" | "kB" | "MB");
        let after_figure = words.last() == Some(&"#");
        if byte || bar || number || word == "–" || unit {
            if !after_figure {
                words.push("#");
            }
        } else {
            words.push(word);
        }
    }
    words.join(" ")
}

/// Whether the printed lines are the page's.
fn same(page: &[String], printed: &[String]) -> bool {
    match (page.first(), printed.first()) {
        (None, None) => true,
        (Some(line), _) if line == "…" => {
            (0..=printed.len()).any(|from| same(&page[1..], &printed[from..]))
        }
        (Some(line), Some(other)) => {
            without_figures(line) == without_figures(other) && same(&page[1..], &printed[1..])
        }
        _ => false,
    }
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

#[test]
#[ignore = "needs the lab: --bus wire --clock virtual"]
fn every_command_of_the_tour_prints_the_lines_of_the_page() {
    let _alone = alone();
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let steps = steps(&fs::read_to_string(root.join("docs/tour.md")).unwrap());
    assert!(steps.len() >= 8, "{steps:?}");
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("docs")).unwrap();
    fs::copy(root.join("docs/car.toml"), folder.path().join("docs/car.toml")).unwrap();
    let programs = Path::new(program()).parent().unwrap().display();
    for Step { command, output } in steps {
        let script = format!(
            "cd {} && PATH={programs}:$PATH && exec 2>&1 && set -eo pipefail\n{command}",
            folder.path().display()
        );
        let ended = start("bash", &["-c", &script]).ended(LIMIT);
        let printed = lines(&ended.stdout);
        assert_eq!(ended.code, Some(0), "{command}\n{}", ended.stdout);
        assert!(same(&output, &printed), "{command}\n{}\nthe page has\n{}", ended.stdout, output.join("\n"));
    }
}

#[test]
fn a_block_is_commands_with_their_output() {
    let page = "a\n```console\n$ cat > f <<E\n> line\n> E\n$ echo 1\n1\n…\n```\nb\n```sh\n$ no\n```\n";
    let step = |command: &str, output: &[&str]| Step {
        command: command.to_owned(),
        output: output.iter().map(ToString::to_string).collect(),
    };
    assert_eq!(steps(page), [step("cat > f <<E\nline\nE", &[]), step("echo 1", &["1", "…"])]);
}

#[test]
fn figures_may_differ_and_nothing_else() {
    let page =
        lines("wcan1 0C9  8  96.0  10.0 ms  FA 00\nmedian 13.9 µs, 1.12× can-gw\n  read  ███▂▁\n…\nlast");
    let printed = |text: &str| same(&page, &lines(text));
    assert!(printed("wcan1 1F5  7  –  895 µs  DD\nmedian 9 ms, 1× can-gw\n  read  █\na\nb\nlast"));
    assert!(printed("wcan1 1\nmedian 2 1× can-gw\nread █\nlast"));
    assert!(!printed("wcan2 1\nmedian 2 1× can-gw\nread █\nlast"), "another name");
    assert!(!printed("wcan1 1\nread █\nlast"), "a line is missing");
    assert!(!printed("wcan1 1\nmedian 2 1× can-gw\nread █\nlast\nmore"), "a line too many");
    assert!(!printed("wcan1 1\nmedian 2 1× can-gw\nread\nlast"), "a figure is missing");
}

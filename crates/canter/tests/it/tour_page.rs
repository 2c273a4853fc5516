//@ machine: host
//! The blocks of docs/tour.md: commands and their output, and what counts as the same output.
//!
//! On the page `$ ` begins a command, `> ` continues it, and all other lines of a block are output. Output matches when
//! its lines do, where a line `…` stands for any number of lines, and figures may differ: a number, a time, a byte in
//! hexadecimal, a bar or `–` matches any of these, with or without a unit.

/// A command of the page, and the lines that it prints there.
#[derive(Debug, Default, PartialEq)]
pub struct Step {
    pub command: String,
    pub output: Vec<String>,
}

pub fn steps(page: &str) -> Vec<Step> {
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

/// Whether the printed lines match those of the page.
pub fn matches_page(page: &[String], printed: &[String]) -> bool {
    match (page.first(), printed.first()) {
        (None, None) => true,
        (Some(line), _) if line == "…" => {
            (0..=printed.len()).any(|from| matches_page(&page[1..], &printed[from..]))
        }
        (Some(line), Some(other)) => {
            without_figures(line) == without_figures(other) && matches_page(&page[1..], &printed[1..])
        }
        _ => false,
    }
}

pub fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
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
    let printed = |text: &str| matches_page(&page, &lines(text));
    assert!(printed("wcan1 1F5  7  –  895 µs  DD\nmedian 9 ms, 1× can-gw\n  read  █\na\nb\nlast"));
    assert!(printed("wcan1 1\nmedian 2 1× can-gw\nread █\nlast"));
    assert!(!printed("wcan2 1\nmedian 2 1× can-gw\nread █\nlast"), "another name");
    assert!(!printed("wcan1 1\nread █\nlast"), "a line is missing");
    assert!(!printed("wcan1 1\nmedian 2 1× can-gw\nread █\nlast\nmore"), "a line too many");
    assert!(!printed("wcan1 1\nmedian 2 1× can-gw\nread\nlast"), "a figure is missing");
}

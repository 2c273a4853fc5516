//! `canter lab` without a command: a shell on a terminal of the guest, with the cards up and a line that says what to try.
//! The host's terminal hands each key through; stty(1) switches it and back, since this crate has no unsafe code.

use super::{
    lab_failure,
    machine::{Ended, Machine},
    shell::quote,
};
use canter_cli::failure::Result;
use std::{
    env,
    io::{self, IsTerminal},
    process::{Command, Stdio},
};

/// The guest's file that names the shell's terminal.
pub const TERMINAL: &str = "/run/canter-lab.terminal";
/// The bit rate of the cards.
const BITRATE: &str = "500000";

/// What the shell reads first: the cards come up, and the first line says what is there.
const RC: &str = r#"[ -r /etc/bash.bashrc ] && . /etc/bash.bashrc
case $TERM in
dumb) bold= plain= PS1='lab:\w\$ ' ;;
*) bold=$'\e[1m' plain=$'\e[0m' PS1='\[\e[1;36m\]lab\[\e[0m\]:\w\$ ' ;;
esac
alias ls='ls --color=auto' ip='ip --color=auto'
for card in /sys/class/net/can*; do
    [ -e "$card" ] && ip link set "${card##*/}" up type can bitrate BITRATE 2> /dev/null
done
if [ -e /sys/class/net/can4 ]; then
    echo 'can0 can1 can3 are on bus A, can2 can4 on bus B, at 500 kbit/s.'
fi
echo "Try: ${bold}canter generate can0 -I 123 -g 10 -q & canter top$plain    (exit ends the lab)"
"#;

/// Whether a person is there: a shell needs a terminal at both ends.
pub fn has_terminal() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Runs the shell.
pub fn run(machine: &Machine) -> Result<Ended> {
    let _terminal = Terminal::take()?;
    let line = guest_line(&terminal_size(), &env::var("TERM").unwrap_or_else(|_| "linux".to_owned()));
    Machine { terminal: true, ..machine.clone() }.run(&[line])
}

/// The line for the guest's shell: script(1) has a terminal, on which bash is interactive.
fn guest_line((rows, columns): &(String, String), term: &str) -> String {
    let rc = RC.replace("BITRATE", BITRATE);
    let inner = format!(
        "tty > {TERMINAL}; stty rows {rows} cols {columns}; exec bash --rcfile /run/canter-lab.rc -i"
    );
    format!(
        "printf %s {} > /run/canter-lab.rc; TERM={} SHELL=/bin/bash exec script -qec {} /dev/null",
        quote(&rc),
        quote(term),
        quote(&inner)
    )
}

/// The host's terminal, which gets its settings back when this is dropped.
struct Terminal {
    settings: String,
}

/// The host's rows and columns; 24 and 80 of a terminal that does not know its size.
pub fn terminal_size() -> (String, String) {
    let size = stty(&["size"]).unwrap_or_default();
    let (rows, columns) = size.split_once(' ').filter(|(rows, _)| *rows != "0").unwrap_or(("24", "80"));
    (rows.to_owned(), columns.to_owned())
}

impl Terminal {
    /// Hands keys through without an echo. Output is still processed, so that the lab's own lines look right.
    fn take() -> Result<Self> {
        let settings = stty(&["-g"])?;
        let terminal = Self { settings };
        stty(&["-icanon", "-echo", "-isig", "-ixon", "-icrnl", "-iexten", "min", "1", "time", "0"])?;
        Ok(terminal)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = stty(&[&self.settings]); // nothing else can be done for the terminal
    }
}

/// What stty(1) prints for this process's terminal.
fn stty(arguments: &[&str]) -> Result<String> {
    let failed = |why: String| lab_failure(format!("terminal: stty: {why}"));
    let output = Command::new("stty").args(arguments).stdin(Stdio::inherit()).output();
    let output = output.map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guests_line_is_one_that_a_shell_reads() {
        let line = guest_line(&("40".to_owned(), "100".to_owned()), "xterm-256color");
        let output = Command::new("bash").args(["-n", "-c", &line]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let rc = RC.replace("BITRATE", BITRATE);
        let output = Command::new("bash").args(["-n", "-c", &rc]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        assert!(line.contains("stty rows 40 cols 100"), "{line}");
    }
}

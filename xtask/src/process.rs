//! A process in a group of its own, whose output comes line by line, and which is ended with all that it started.

use std::{
    io::{self, BufRead, BufReader, PipeReader},
    os::unix::process::CommandExt,
    process::{Command, ExitStatus, Stdio},
    sync::mpsc::{Receiver, Sender, channel},
    thread,
    time::Duration,
};

/// Output that a grandchild outside of the group holds open is not waited for longer than this.
const OUTPUT_WAIT: Duration = Duration::from_secs(5);

/// What happens while processes run; the number is the one given to [`start`].
#[derive(Debug)]
pub enum Event {
    Output(usize, String),
    Ended(usize, io::Result<ExitStatus>),
    Interrupted,
}

/// A process group.
#[derive(Clone, Copy, Debug)]
pub struct Group(u32);

impl Group {
    /// Sends a signal to every process of the group: `TERM` or `KILL`.
    pub fn signal(self, name: &str) {
        // By the shell's own command: without another crate, and without unsafe code.
        let command = format!("kill -s {name} -- -{} 2>/dev/null", self.0);
        Command::new("sh").args(["-c", &command]).status().ok();
    }
}

/// Starts a process; `merged`: lines of its standard error are a part of its output. Each of both has a pipe: in a common one,
/// what a guest prints on one stands in the middle of a line of the other.
pub fn start(number: usize, mut command: Command, merged: bool, events: &Sender<Event>) -> io::Result<Group> {
    let (output, input) = io::pipe()?;
    command.stdin(Stdio::null()).stdout(input).process_group(0);
    let mut outputs = vec![output];
    if merged {
        let (errors, input) = io::pipe()?;
        command.stderr(input);
        outputs.push(errors);
    }
    let mut child = command.spawn()?;
    drop(command); // with its ends of the pipes
    let group = Group(child.id());
    let read: Vec<_> = outputs.into_iter().map(|output| read(number, output, events.clone())).collect();
    let events = events.clone();
    thread::spawn(move || {
        let ended = child.wait();
        group.signal("KILL");
        read.iter().for_each(|ended| _ = ended.recv_timeout(OUTPUT_WAIT));
        events.send(Event::Ended(number, ended)).ok();
    });
    Ok(group)
}

/// Sends each line as an event; the answer's other end is dropped when there are no more.
fn read(number: usize, output: PipeReader, events: Sender<Event>) -> Receiver<()> {
    let (end, ended) = channel();
    thread::spawn(move || {
        let _end: Sender<()> = end;
        let (mut output, mut line) = (BufReader::new(output), Vec::new());
        while output.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
            let text = String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n']).to_owned();
            if events.send(Event::Output(number, text)).is_err() {
                return;
            }
            line.clear();
        }
    });
    ended
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_on_standard_error_does_not_cut_one_of_the_output() {
        let (sender, events) = channel();
        let mut shell = Command::new("sh");
        shell.args(["-c", "printf 'test result: '; echo a note >&2; echo 'ok. 1 passed; 0 failed'"]);
        start(0, shell, true, &sender).unwrap();
        let mut lines = Vec::new();
        while let Event::Output(_, line) = events.recv().unwrap() {
            lines.push(line);
        }
        lines.sort();
        assert_eq!(lines, ["a note", "test result: ok. 1 passed; 0 failed"]);
    }
}

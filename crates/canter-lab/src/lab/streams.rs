//! The command's streams: their ends on the host, and the threads that carry them to the guest and back.

use std::{
    fs::{self, File},
    io::{self, ErrorKind, IsTerminal, Read, Write},
    net::Shutdown,
    os::{fd::AsFd, unix::net::UnixStream},
    sync::mpsc::Sender,
    thread::JoinHandle,
};

const STREAM_BYTES: usize = 64 * 1024;

/// The standard input of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// The command's standard input is empty.
    Null,
    /// This process's standard input, to its end.
    Inherited,
}

/// The source and the destinations of the command's streams.
pub struct Streams {
    pub stdin: Input,
    pub stdout: Box<dyn Write + Send>,
    pub stderr: Box<dyn Write + Send>,
}

impl Streams {
    /// This process's three streams, unbuffered.
    pub fn inherited() -> io::Result<Self> {
        let duplicate = |stream: &dyn AsFdObject| stream.duplicate();
        Ok(Self {
            stdin: if reads_input() { Input::Inherited } else { Input::Null },
            stdout: Box::new(duplicate(&io::stdout())?),
            stderr: Box::new(duplicate(&io::stderr())?),
        })
    }
}

trait AsFdObject {
    fn duplicate(&self) -> io::Result<File>;
}

impl<T: AsFd> AsFdObject for T {
    fn duplicate(&self) -> io::Result<File> {
        Ok(File::from(self.as_fd().try_clone_to_owned()?))
    }
}

/// Whether this process may read from its terminal: the kernel stops a background job that does (SIGTTIN).
fn reads_input() -> bool {
    !io::stdin().is_terminal() || in_foreground(&fs::read_to_string("/proc/self/stat").unwrap_or_default())
}

/// Whether fields 5 and 8 of proc_pid_stat(5) are equal: this process group and the terminal's foreground group.
fn in_foreground(stat: &str) -> bool {
    let behind_name = stat.rsplit(") ").next().unwrap_or_default();
    let fields: Vec<_> = behind_name.split(' ').collect();
    matches!(fields[..], [_state, _parent, group, _session, _terminal, foreground, ..] if group == foreground)
}

/// Events from the threads that carry the streams.
pub enum Event {
    /// A line of the control port.
    Control(String),
    /// The stream of this port ended with its mark.
    Complete(&'static str),
    /// This process's output cannot be written.
    OutputFailed(io::Error),
}

/// Copies the stream of a port up to its end mark.
pub fn relay(
    port: &'static str,
    mut from: UnixStream,
    mut to: Box<dyn Write + Send>,
    token: Vec<u8>,
    events: Sender<Event>,
) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut end = EndMark::new(token);
        let mut chunk = vec![0; STREAM_BYTES];
        loop {
            let count = match from.read(&mut chunk) {
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => 0,
            };
            let passed = if count == 0 { end.rest() } else { end.pass(&chunk[..count]) };
            if let Err(error) = to.write_all(&passed).and_then(|()| to.flush()) {
                let _ = events.send(Event::OutputFailed(error));
                return;
            }
            if end.seen {
                let _ = events.send(Event::Complete(port));
            }
            if count == 0 || end.seen {
                return;
            }
        }
    })
}

/// Finds the mark at the end of a stream and removes it from the output.
struct EndMark {
    mark: Vec<u8>,
    /// Bytes that may be the beginning of the mark.
    held: Vec<u8>,
    seen: bool,
}

impl EndMark {
    fn new(mark: Vec<u8>) -> Self {
        Self { mark, held: Vec::new(), seen: false }
    }

    /// Takes the next bytes; returns those that can be passed on.
    fn pass(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut all = std::mem::take(&mut self.held);
        all.extend_from_slice(bytes);
        self.seen = all.ends_with(&self.mark);
        let longest = self.mark.len().min(all.len());
        let held = (1..=longest).rev().find(|&length| all.ends_with(&self.mark[..length])).unwrap_or(0);
        self.held = all.split_off(all.len() - held);
        all
    }

    /// The bytes held back when the stream ended without its mark.
    fn rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held)
    }
}

pub fn listen_to(control: UnixStream, events: Sender<Event>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        for line in io::BufRead::lines(io::BufReader::new(control)).map_while(io::Result::ok) {
            if events.send(Event::Control(line)).is_err() {
                return;
            }
        }
    })
}

/// Carries this process's input to the guest. The thread may still be in read(2) when the guest ends.
pub fn feed(mut to: UnixStream, input: Input) {
    std::thread::spawn(move || {
        if matches!(input, Input::Inherited) {
            let _ = io::copy(&mut io::stdin().lock(), &mut to);
        }
        // Only this half: if both were closed, QEMU would discard bytes that it has not read.
        let _ = to.shutdown(Shutdown::Write);
        // The other half ends with QEMU.
        let _ = to.read(&mut [0]);
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// All bytes but the mark arrive, however the stream is cut into reads.
        #[test]
        fn a_stream_comes_through_whole_without_its_mark(
            bytes in proptest::collection::vec(0_u8..4, 0..200),
            cuts in proptest::collection::vec(1_usize..9, 1..60),
        ) {
            let mark = vec![1, 2, 1, 3];
            let stream: Vec<u8> = bytes.iter().chain(&mark).copied().collect();
            let mut end = EndMark::new(mark.clone());
            let (mut passed, mut rest, mut sizes) = (Vec::new(), &stream[..], cuts.iter().cycle());
            while !rest.is_empty() {
                let size = (*sizes.next().unwrap()).min(rest.len());
                passed.extend(end.pass(&rest[..size]));
                rest = &rest[size..];
                if end.seen && !rest.is_empty() {
                    return Ok(()); // the mark in the data: improbable with a random token
                }
            }
            prop_assert!(end.seen);
            prop_assert_eq!(passed, bytes);
        }
    }

    #[test]
    fn bytes_held_back_are_passed_on_when_the_guest_dies() {
        let mut end = EndMark::new(b"MARK".to_vec());
        assert_eq!(end.pass(b"data MA"), b"data ");
        assert_eq!(end.rest(), b"MA");
        assert!(!end.seen);
    }

    #[test]
    fn a_background_job_is_distinguished_from_a_foreground_job() {
        assert!(in_foreground("12 (a) b) S 1 12 10 34816 12 4194304"));
        assert!(!in_foreground("12 (canter) S 1 12 10 34816 10 4194304"));
        assert!(!in_foreground(""));
    }
}

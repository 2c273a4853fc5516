//! The command's streams: where they come from and go to on the host, and the threads that carry them to the guest and
//! back.

use std::{
    fs::{self, File},
    io::{self, ErrorKind, IsTerminal, Read, Write},
    net::Shutdown,
    os::{fd::AsFd, unix::net::UnixStream},
    sync::mpsc::Sender,
    thread::JoinHandle,
};

const STREAM_BYTES: usize = 64 * 1024;

/// What the command in the guest reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// Nothing.
    Null,
    /// Our own standard input, to its end.
    Inherited,
}

/// Where the command's streams come from and go to.
pub struct Streams {
    pub stdin: Input,
    pub stdout: Box<dyn Write + Send>,
    pub stderr: Box<dyn Write + Send>,
}

impl Streams {
    /// Our own three, without a buffer between.
    pub fn inherited() -> io::Result<Self> {
        let own = |stream: &dyn AsFdObject| stream.duplicate();
        Ok(Self {
            stdin: if reads_input() { Input::Inherited } else { Input::Null },
            stdout: Box::new(own(&io::stdout())?),
            stderr: Box::new(own(&io::stderr())?),
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

/// A job in the background must not read from its terminal: it would be stopped (SIGTTIN).
fn reads_input() -> bool {
    !io::stdin().is_terminal() || in_foreground(&fs::read_to_string("/proc/self/stat").unwrap_or_default())
}

/// Fields 5 and 8 of proc_pid_stat(5): our process group is that of the terminal's foreground.
fn in_foreground(stat: &str) -> bool {
    let behind_name = stat.rsplit(") ").next().unwrap_or_default();
    let fields: Vec<_> = behind_name.split(' ').collect();
    matches!(fields[..], [_state, _parent, group, _session, _terminal, foreground, ..] if group == foreground)
}

/// What the threads that carry the streams tell.
pub enum Event {
    /// A line of the control port.
    Control(String),
    /// A stream came to its end, with its mark.
    Complete,
    /// Our own output cannot be written to.
    OutputFailed(io::Error),
}

/// Copies a stream as it comes, up to the mark that ends it.
pub fn relay(
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
                let _ = events.send(Event::Complete);
            }
            if count == 0 || end.seen {
                return;
            }
        }
    })
}

/// Finds the mark at the end of a stream and keeps it out of what is passed on.
struct EndMark {
    mark: Vec<u8>,
    /// What may be the beginning of the mark.
    held: Vec<u8>,
    seen: bool,
}

impl EndMark {
    fn new(mark: Vec<u8>) -> Self {
        Self { mark, held: Vec::new(), seen: false }
    }

    /// What of the stream so far can be passed on.
    fn pass(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut all = std::mem::take(&mut self.held);
        all.extend_from_slice(bytes);
        self.seen = all.ends_with(&self.mark);
        let longest = self.mark.len().min(all.len());
        let held = (1..=longest).rev().find(|&length| all.ends_with(&self.mark[..length])).unwrap_or(0);
        self.held = all.split_off(all.len() - held);
        all
    }

    /// What was held back when the stream ended without its mark.
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

/// Carries our input to the guest's. The thread may stay in its read when the guest ends.
pub fn feed(mut to: UnixStream, input: Input) {
    std::thread::spawn(move || {
        if matches!(input, Input::Inherited) {
            let _ = io::copy(&mut io::stdin().lock(), &mut to);
        }
        // Half of it only: QEMU would throw away what it has not read when both halves are closed.
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
        /// However the bytes are cut, all come through but the mark.
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
                    return Ok(()); // the mark within the data: a random token makes that improbable
                }
            }
            prop_assert!(end.seen);
            prop_assert_eq!(passed, bytes);
        }
    }

    #[test]
    fn what_was_held_back_is_passed_on_when_the_guest_dies() {
        let mut end = EndMark::new(b"MARK".to_vec());
        assert_eq!(end.pass(b"data MA"), b"data ");
        assert_eq!(end.rest(), b"MA");
        assert!(!end.seen);
    }

    #[test]
    fn a_background_job_is_told_from_one_in_the_foreground() {
        assert!(in_foreground("12 (a) b) S 1 12 10 34816 12 4194304"));
        assert!(!in_foreground("12 (canter) S 1 12 10 34816 10 4194304"));
        assert!(!in_foreground(""));
    }
}

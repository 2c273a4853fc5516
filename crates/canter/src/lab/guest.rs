//! One boot: QEMU, what the guest reports on its control port, and the ways in which a boot can end.

use super::{
    lab_failure,
    machine::{Ended, Machine},
    programs,
    signals::Signals,
    streams::{Event, Input, Streams, feed, listen_to, relay},
    topology,
};
use crate::failure::{Failure, Result};
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// How often the loop checks for signals, the deadline and QEMU's exit. Events of the guest wake it at once.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);
const CONSOLE_LINES: usize = 15;
/// How long the guest's kernel may hold processes that were killed when the command had ended: longer than any disk is busy.
const STUCK_LIMIT: Duration = Duration::from_secs(30);

/// Inputs of a boot: the machine's description and the files of this run.
pub struct Boot<'a> {
    pub machine: &'a Machine,
    pub kernel: &'a Path,
    pub initramfs: &'a Path,
    pub shares: &'a [PathBuf],
    pub root: &'a Path,
    pub read_only: &'a [(&'static str, PathBuf)],
    /// A fresh folder for sockets and logs.
    pub folder: &'a Path,
    pub console: &'a Path,
    pub token: &'a str,
    pub qemu_version: &'a str,
    pub signals: &'a Signals,
}

/// How a boot ended.
pub enum Outcome {
    Ended(Ended),
    /// The guest ended before the command began.
    NotBegun(Failure),
    Failed(Failure),
}

/// Boots, runs, and leaves no process behind.
pub fn boot(boot: &Boot, streams: Streams) -> Result<Outcome> {
    let paths = topology::Paths {
        kernel: boot.kernel,
        initramfs: boot.initramfs,
        console: boot.console,
        sockets: boot.folder,
        shares: boot.shares,
        root: boot.root,
        read_only: boot.read_only,
    };
    let listeners = topology::PORTS.map(|name| listen(&boot.folder.join(name)));
    let [stdout, stderr, stdin, control] = listeners;
    let listeners = [stdout?, stderr?, stdin?, control?];
    let errors = boot.folder.join("qemu");
    let log = fs::File::create(&errors).map_err(|e| lab_failure(format!("{}: {e}", errors.display())))?;
    // QEMU gets a separate process group: Ctrl-C at the terminal reaches only canter, which then ends QEMU.
    let child = Command::new(programs::path(programs::SETPRIV))
        .args(["--pdeathsig", "KILL"])
        .arg(programs::path(boot.machine.arch.qemu()))
        .args(topology::qemu_arguments(boot.machine, &paths, boot.qemu_version))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .process_group(0)
        .spawn()
        .map_err(|e| lab_failure(format!("{}: {e}", boot.machine.arch.qemu().name)))?;
    let mut guest = Guest { child, boot, deadline: Instant::now() + boot.machine.timeout, errors };
    match guest.connect(&listeners)? {
        Ok(connected) => guest.attend(connected, streams),
        Err(outcome) => Ok(outcome),
    }
}

fn listen(path: &Path) -> Result<UnixListener> {
    let listener = UnixListener::bind(path).and_then(|listener| {
        listener.set_nonblocking(true)?;
        Ok(listener)
    });
    listener.map_err(|e| lab_failure(format!("{}: {e} (TMPDIR names another folder)", path.display())))
}

/// A running QEMU; dropping this ends it.
struct Guest<'a> {
    child: Child,
    boot: &'a Boot<'a>,
    deadline: Instant,
    errors: PathBuf,
}

impl Drop for Guest<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Guest<'_> {
    /// Accepts QEMU's four connections, in the order of its ports.
    fn connect(
        &mut self,
        listeners: &[UnixListener; 4],
    ) -> Result<std::result::Result<[UnixStream; 4], Outcome>> {
        let mut connected = Vec::new();
        while connected.len() < listeners.len() {
            match listeners[connected.len()].accept() {
                Ok((stream, _)) => connected.push(stream),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if let Some(outcome) = self.early_end(false)? {
                        return Ok(Err(outcome));
                    }
                    std::thread::sleep(Duration::from_millis(2));
                }
                Err(error) => return Err(lab_failure(format!("connection from QEMU: {error}"))),
            }
        }
        Ok(Ok(connected.try_into().expect("as many as there are listeners")))
    }

    /// Carries the streams until the guest has sent its exit code and all output.
    fn attend(&mut self, connected: [UnixStream; 4], streams: Streams) -> Result<Outcome> {
        let [stdout, stderr, stdin, control] = connected;
        let (sender, events) = mpsc::channel();
        let token = self.boot.token.as_bytes();
        let relays = [
            relay(stdout, streams.stdout, token.to_vec(), sender.clone()),
            relay(stderr, streams.stderr, token.to_vec(), sender.clone()),
            listen_to(control, sender),
        ];
        let mut state = State { input: Some((stdin, streams.stdin)), ..State::default() };
        loop {
            state.take(&events, CHECK_INTERVAL);
            if let Some(outcome) = state.outcome(self) {
                return Ok(outcome);
            }
            if self.child.try_wait().map_err(|e| lab_failure(format!("qemu: {e}")))?.is_some() {
                // Its sockets are closed, so the threads end after the last of its output.
                relays.into_iter().for_each(|thread| drop(thread.join()));
                while state.take(&events, Duration::ZERO) {}
                let outcome = state.outcome(self);
                return Ok(outcome.unwrap_or_else(|| self.died(state.begun)));
            }
            if let Some(outcome) = self.early_end(state.begun)? {
                return Ok(outcome);
            }
        }
    }

    /// The outcome, when a signal, the deadline or the exit of QEMU ended the run.
    fn early_end(&mut self, begun: bool) -> Result<Option<Outcome>> {
        if let Some(signal) = self.boot.signals.caught() {
            return Ok(Some(Outcome::Ended(Ended::Interrupted(signal))));
        }
        if Instant::now() >= self.deadline {
            let limit = self.boot.machine.timeout.as_secs_f64();
            let step = if begun { "the command" } else { "the boot" };
            let message = format!("{step} did not end within {limit} s (--timeout)");
            return Ok(Some(Outcome::Failed(self.failure(&message))));
        }
        match self.child.try_wait() {
            Ok(None) => Ok(None),
            Ok(Some(_)) => Ok(Some(self.died(begun))),
            Err(error) => Err(lab_failure(format!("qemu: {error}"))),
        }
    }

    fn died(&mut self, begun: bool) -> Outcome {
        let status = self.child.wait().ok();
        let refused = status.is_some_and(|status| status.code().is_some_and(|code| code != 0));
        if begun {
            return Outcome::Failed(
                self.failure(&format!("the guest ended without a result{}", exit_status(status))),
            );
        }
        if refused {
            return Outcome::Failed(self.failure(&format!("QEMU refused to start{}", exit_status(status))));
        }
        Outcome::NotBegun(
            self.failure(&format!("the guest ended before the command began{}", exit_status(status))),
        )
    }

    /// The reason, with QEMU's messages and the last lines of the console.
    fn failure(&self, reason: &str) -> Failure {
        let mut message = reason.to_owned();
        let qemu = fs::read_to_string(&self.errors).unwrap_or_default();
        for line in qemu.lines() {
            message += &format!("\n  qemu: {line}");
        }
        let console = fs::read(self.boot.console).unwrap_or_default();
        for line in last_lines(&console, CONSOLE_LINES) {
            message += &format!("\n  console: {line}");
        }
        lab_failure(message)
    }
}

fn exit_status(status: Option<ExitStatus>) -> String {
    status.filter(|status| !status.success()).map_or(String::new(), |status| format!(" (QEMU: {status})"))
}

/// The events so far of a running guest.
#[derive(Default)]
struct State {
    begun: bool,
    exit: Option<u8>,
    failed: Option<String>,
    complete: u32,
    /// Processes that the kernel does not let go after the command has ended, and since when they are the same.
    stuck: Option<(Instant, String)>,
    output_failed: Option<io::Error>,
    input: Option<(UnixStream, Input)>,
}

impl State {
    /// Handles one event; false when none came within `wait`.
    fn take(&mut self, events: &Receiver<Event>, wait: Duration) -> bool {
        match events.recv_timeout(wait) {
            Ok(Event::Complete) => self.complete += 1,
            Ok(Event::OutputFailed(error)) => self.output_failed = Some(error),
            Ok(Event::Control(line)) => self.control(&line),
            Err(RecvTimeoutError::Timeout) => return false,
            Err(RecvTimeoutError::Disconnected) => {
                std::thread::sleep(wait); // all threads have ended: QEMU is about to exit
                return false;
            }
        }
        true
    }

    fn control(&mut self, line: &str) {
        match line.split_once(' ').unwrap_or((line, "")) {
            ("begin", _) => {
                self.begun = true;
                // Not earlier: when a boot is repeated, none of the input may be missing.
                if let Some((stream, input)) = self.input.take() {
                    feed(stream, input);
                }
            }
            ("exit", code) => self.exit = code.parse().ok(),
            ("stuck", "") => self.stuck = None,
            ("stuck", processes) => self.stuck = Some((Instant::now(), processes.to_owned())),
            ("fail", reason) => self.failed = Some(reason.to_owned()),
            _ => {}
        }
    }

    fn outcome(&self, guest: &Guest) -> Option<Outcome> {
        const OUTPUTS: u32 = 2;
        if let Some(reason) = &self.failed {
            return Some(Outcome::Failed(guest.failure(&format!("in the guest: {reason}"))));
        }
        if let Some((since, processes)) = &self.stuck
            && since.elapsed() >= STUCK_LIMIT
        {
            let reason = format!("the command ended, but the guest's kernel does not let go of {processes}");
            return Some(Outcome::Failed(guest.failure(&reason)));
        }
        match &self.output_failed {
            Some(error) if error.kind() == ErrorKind::BrokenPipe => {
                return Some(Outcome::Ended(Ended::OutputClosed));
            }
            Some(error) => {
                return Some(Outcome::Failed(lab_failure(format!("output of the command: {error}"))));
            }
            None => {}
        }
        let code = self.exit.filter(|_| self.complete == OUTPUTS)?;
        Some(Outcome::Ended(Ended::Exit(code)))
    }
}

/// The last lines of a console without control characters, after the line that names the cause.
fn last_lines(console: &[u8], count: usize) -> Vec<String> {
    const CAUSES: [&str; 3] = ["Oops", "BUG:", "Kernel panic"];
    let text = String::from_utf8_lossy(console);
    let clean = |line: &str| line.chars().filter(|c| !c.is_control()).collect::<String>();
    let lines: Vec<_> = text.lines().map(clean).filter(|line| !line.trim().is_empty()).collect();
    let (before, last) = lines.split_at(lines.len().saturating_sub(count));
    let causes = before.iter().filter(|line| CAUSES.iter().any(|cause| line.contains(cause)));
    causes.chain(last).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_console_has_no_empty_lines_and_no_control_characters() {
        let console = b"one\r\n\r\n\x1b[0mtwo\r\nthree\xff\r\n";
        assert_eq!(last_lines(console, 2), ["[0mtwo", "three\u{fffd}"]);
        let console = b"Kernel panic - not syncing: x\nCall Trace:\n y\n z\n";
        assert_eq!(last_lines(console, 2), ["Kernel panic - not syncing: x", " y", " z"]);
    }
}

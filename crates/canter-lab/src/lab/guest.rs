//! One boot: QEMU, what the guest reports on its control port, and the ways in which a boot can end.

use super::{
    analyzer::Loaded,
    cache::Cache,
    lab_failure,
    machine::{Ended, Machine},
    memory::{Memory, Shared},
    monitor::Monitor,
    playground, programs,
    progress::Progress,
    saved::{Description, Saved},
    signals::Signals,
    streams::{Event, Input, Streams, feed, listen_to, relay},
    topology,
};
use canter_cli::failure::Failure;
use std::convert::Infallible;
use std::fs;
use std::io::{self, ErrorKind, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{
    Arc, Mutex, PoisonError,
    mpsc::{self, Receiver, RecvTimeoutError, Sender},
};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often the loop checks for signals, the deadline and QEMU's exit. Events of the guest wake it at once.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);
/// Timeout of a restored machine's answer, which comes at once unless the host is very busy.
const ARRIVAL_LIMIT: Duration = Duration::from_secs(60);
/// The port by which a machine sends its symbols before it is saved.
const SYMBOLS_PORT: &str = "symbols";
const CONSOLE_LINES: usize = 15;
/// How long the guest's kernel may hold killed processes after the end of the command: longer than a disk is busy.
const STUCK_LIMIT: Duration = Duration::from_secs(30);

/// Inputs of a boot: the machine's description and the files of this run.
pub struct Boot<'a> {
    pub machine: &'a Machine,
    pub start: Start<'a>,
    /// The kernel's image and its first files; a restored machine has them already.
    pub kernel: &'a Path,
    pub initramfs: &'a Path,
    /// The scripts and the command, which the guest gets when it is ready.
    pub session: &'a [u8],
    pub shares: &'a [PathBuf],
    pub root: &'a Path,
    pub read_only: &'a [(&'static str, PathBuf)],
    pub analyzer: Option<&'a Loaded>,
    pub usb_stick: Option<&'a Path>,
    /// A fresh folder for sockets and logs.
    pub folder: &'a Path,
    pub console: &'a Path,
    pub token: &'a str,
    pub qemu_version: &'a str,
    pub signals: &'a Signals,
    pub progress: &'a Progress,
}

/// How the guest gets to the point where it waits for its session.
#[derive(Clone, Copy)]
pub enum Start<'a> {
    /// The guest boots.
    Boot,
    /// The guest boots, and is saved then, unless another lab saves it.
    Save(&'a Description, &'a Cache<'a>),
    /// The guest is restored.
    Restore(&'a Saved),
}

/// How a boot ended.
pub enum Outcome {
    Ended(Ended),
    /// The guest ended before the command began.
    NotBegun(Failure),
    /// The saved machine could not be restored, for this reason.
    NotRestored(String),
    Failed(Failure),
}

/// Boots a guest, runs the command, and leaves no process behind.
pub fn boot(boot: &Boot, streams: Streams) -> Result<Outcome, Failure> {
    let (shared, copy) = match boot.start {
        Start::Boot => (None, None),
        Start::Save(..) => {
            let shared = Shared::new().map_err(|e| lab_failure(format!("the guest's memory: {e}")))?;
            (Some(shared), None)
        }
        Start::Restore(saved) => (None, Some(saved.memory())),
    };
    let copied = copy.as_deref().map(|file| Memory { file, shared: false });
    let paths = topology::Paths {
        kernel: boot.kernel,
        initramfs: boot.initramfs,
        console: boot.console,
        sockets: boot.folder,
        shares: boot.shares,
        root: boot.root,
        memory: copied.or(shared.as_ref().map(Shared::of_qemu)),
        read_only: boot.read_only,
        analyzer: boot.analyzer,
        usb_stick: boot.usb_stick,
    };
    let listeners = topology::PORTS.map(|name| listen(&boot.folder.join(name)));
    let listeners: Vec<_> = listeners.into_iter().collect::<Result<_, _>>()?;
    let monitor = match boot.machine.can_be_saved() {
        true => Some(listen(&boot.folder.join(topology::MONITOR))?),
        false => None,
    };
    let errors = boot.folder.join("qemu");
    let log = fs::File::create(&errors).map_err(|e| lab_failure(format!("{}: {e}", errors.display())))?;
    let waits: &[&str] = if matches!(boot.start, Start::Restore(_)) { &["-incoming", "defer"] } else { &[] };
    // QEMU gets a separate process group: Ctrl-C at the terminal reaches only canter, which then ends QEMU.
    let child = Command::new(programs::path(programs::SETPRIV))
        .args(["--pdeathsig", "KILL"])
        .arg(programs::path(boot.machine.arch.qemu()))
        .args(topology::qemu_arguments(boot.machine, &paths, boot.qemu_version))
        .args(waits)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .process_group(0)
        .spawn()
        .map_err(|e| lab_failure(format!("{}: {e}", boot.machine.arch.qemu().name)))?;
    let deadline = Instant::now() + boot.machine.timeout;
    let mut guest = Guest { child, boot, memory: shared, deadline, errors };
    // While QEMU starts.
    if let Start::Restore(saved) = boot.start
        && let Some(damage) = saved.damage()
    {
        return Ok(Outcome::NotRestored(damage));
    }
    let Err(end) = guest.run(&listeners, monitor.as_ref(), streams);
    match end {
        End::Outcome(outcome) => Ok(outcome),
        End::Failure(failure) => Err(failure),
    }
}

/// The reason why a guest has ended.
enum End {
    Outcome(Outcome),
    Failure(Failure),
}

impl From<Outcome> for End {
    fn from(outcome: Outcome) -> Self {
        Self::Outcome(outcome)
    }
}

impl From<Failure> for End {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

/// The text received so far from the port for symbols.
#[derive(Clone, Default)]
struct Symbols(Arc<Mutex<Vec<u8>>>);

impl Symbols {
    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Write for Symbols {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The connections of a running guest.
struct Link {
    state: State,
    events: Receiver<Event>,
    sender: Sender<Event>,
    threads: Vec<JoinHandle<()>>,
    /// The other half of the control port, for the guest to read.
    requests: UnixStream,
}

impl Link {
    /// Sends what the guest waits for on its control port.
    fn request(&mut self, bytes: &[u8]) -> Result<(), End> {
        self.requests.write_all(bytes).map_err(|e| lab_failure(format!("control port: {e}")).into())
    }
}

fn listen(path: &Path) -> Result<UnixListener, Failure> {
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
    /// The memory of a machine that is to be saved.
    memory: Option<Shared>,
    deadline: Instant,
    errors: PathBuf,
}

impl Drop for Guest<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Restores a machine into a QEMU that waits for it.
fn restore(saved: &Saved, monitor: UnixStream, folder: &Path) -> Result<(), End> {
    let restored =
        Monitor::new(monitor).and_then(|mut monitor| monitor.restore(&saved.state(), &folder.join("state")));
    restored.map_err(|error| Outcome::NotRestored(error.to_string()).into())
}

impl Guest<'_> {
    /// Drives the guest from its start to its end.
    fn run(
        &mut self,
        listeners: &[UnixListener],
        monitor: Option<&UnixListener>,
        streams: Streams,
    ) -> Result<Infallible, End> {
        // In the order in which QEMU connects.
        let monitor = monitor.map(|listener| self.accept(listener)).transpose()?;
        let ports: Vec<_> =
            listeners.iter().map(|listener| self.accept(listener)).collect::<Result<_, _>>()?;
        let Ok([stdout, stderr, stdin, control, symbols]) = <[UnixStream; 5]>::try_from(ports) else {
            unreachable!("a connection for each port")
        };
        let requests = control.try_clone().map_err(|e| lab_failure(format!("control port: {e}")))?;
        let (sender, events) = mpsc::channel();
        let threads = vec![
            self.relay("stdout", stdout, streams.stdout, &sender),
            self.relay("stderr", stderr, streams.stderr, &sender),
            listen_to(control, sender.clone()),
        ];
        let state = State { input: Some((stdin, streams.stdin)), ..State::default() };
        let mut link = Link { state, events, sender, threads, requests };
        match (&self.boot.start, monitor) {
            (Start::Restore(saved), Some(monitor)) => {
                restore(saved, monitor, self.boot.folder)?;
                link.request(b"session\n")?;
                let restored = Instant::now();
                self.until(&mut link, |state| state.arrived || restored.elapsed() > ARRIVAL_LIMIT)?;
                if !link.state.arrived {
                    return Err(Outcome::NotRestored("it does not answer".to_owned()).into());
                }
            }
            (start, monitor) => {
                self.until(&mut link, |state| state.ready.is_some())?;
                if let (Start::Save(description, cache), Some(monitor)) = (start, monitor) {
                    self.save(&mut link, description, cache, monitor, symbols)?;
                }
                link.request(b"session\n")?;
            }
        }
        link.request(self.boot.session)?;
        loop {
            self.until(&mut link, |_| false)?;
        }
    }

    /// Accepts a connection of QEMU.
    fn accept(&mut self, listener: &UnixListener) -> Result<UnixStream, End> {
        loop {
            match listener.accept() {
                Ok((stream, _)) => return Ok(stream),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if let Some(outcome) = self.early_end(false)? {
                        return Err(outcome.into());
                    }
                    std::thread::sleep(Duration::from_millis(2));
                }
                Err(error) => return Err(lab_failure(format!("connection from QEMU: {error}")).into()),
            }
        }
    }

    fn relay(
        &self,
        port: &'static str,
        from: UnixStream,
        to: Box<dyn Write + Send>,
        sender: &Sender<Event>,
    ) -> JoinHandle<()> {
        relay(port, from, to, self.boot.token.as_bytes().to_vec(), sender.clone())
    }

    /// Carries the streams until the guest has reached a state, or has ended.
    fn until(&mut self, link: &mut Link, reached: impl Fn(&State) -> bool) -> Result<(), End> {
        while !reached(&link.state) {
            link.state.take(&link.events, CHECK_INTERVAL);
            if let Some(outcome) = link.state.outcome(self) {
                return Err(outcome.into());
            }
            if self.child.try_wait().map_err(|e| lab_failure(format!("qemu: {e}")))?.is_some() {
                // Its sockets are closed, so the threads end after the last of its output.
                link.threads.drain(..).for_each(|thread| drop(thread.join()));
                while link.state.take(&link.events, Duration::ZERO) {}
                let outcome = link.state.outcome(self);
                return Err(outcome.unwrap_or_else(|| self.died(link.state.begun)).into());
            }
            if let Some(outcome) = self.early_end(link.state.begun)? {
                return Err(outcome.into());
            }
            if self.boot.machine.terminal && link.state.begun && self.boot.signals.resized() {
                let (rows, columns) = playground::terminal_size();
                link.request(format!("{rows} {columns}\n").as_bytes())?;
            }
        }
        Ok(())
    }

    /// Saves the guest, which waits for its session, unless another lab saves it. A machine that cannot be saved continues.
    fn save(
        &mut self,
        link: &mut Link,
        description: &Description,
        cache: &Cache,
        monitor: UnixStream,
        symbols: UnixStream,
    ) -> Result<(), End> {
        if link.state.ready.as_deref() != Some("yes") {
            return self.not_saved("its kernel would repeat random numbers (CONFIG_VMGENID)");
        }
        let place = match description.reserve(cache) {
            Ok(Some(place)) => place,
            Ok(None) => return Ok(()),
            Err(failure) => return self.not_saved(&failure.message),
        };
        let text = Symbols::default();
        link.threads.push(self.relay(SYMBOLS_PORT, symbols, Box::new(text.clone()), &link.sender));
        link.state.ready = None;
        link.request(format!("symbols {}\n", self.boot.token).as_bytes())?;
        self.until(link, |state| state.symbols && state.ready.is_some())?;
        let socket = self.boot.folder.join("state");
        let Some(memory) = &self.memory else { return Ok(()) };
        let monitor = Monitor::new(monitor).map_err(|e| lab_failure(format!("QEMU's monitor: {e}")));
        let saved = monitor.and_then(|mut monitor| {
            place.save(&mut monitor, &socket, memory, &text.take(), self.boot.progress)
        });
        saved.or_else(|failure| self.not_saved(&failure.message))
    }

    fn not_saved(&self, why: &str) -> Result<(), End> {
        self.boot
            .progress
            .detail(&format!("the machine is not saved, so the next one will boot, too: {why}"));
        Ok(())
    }
    /// The outcome, when a signal, the deadline or the exit of QEMU ended the run.
    fn early_end(&mut self, begun: bool) -> Result<Option<Outcome>, Failure> {
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

    /// The failure for a reason, with QEMU's messages and the last lines of the console.
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
    /// Set when the guest waits for a request. `yes`: its kernel's random numbers notice another start of QEMU.
    ready: Option<String>,
    symbols: bool,
    /// Set when the guest takes its session.
    arrived: bool,
    begun: bool,
    exit: Option<u8>,
    failed: Option<String>,
    complete: u32,
    /// Processes that the kernel still holds after the end of the command, and since when these have not changed.
    stuck: Option<(Instant, String)>,
    output_failed: Option<io::Error>,
    input: Option<(UnixStream, Input)>,
}

impl State {
    /// Handles one event; false when none came within `wait`.
    fn take(&mut self, events: &Receiver<Event>, wait: Duration) -> bool {
        match events.recv_timeout(wait) {
            Ok(Event::Complete(SYMBOLS_PORT)) => self.symbols = true,
            Ok(Event::Complete(_)) => self.complete += 1,
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
            ("ready", reseeds) => self.ready = Some(reseeds.to_owned()),
            ("arrived", _) => self.arrived = true,
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

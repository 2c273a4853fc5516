//! QEMU's monitor (QMP): saves a stopped machine to a file, and restores it into another QEMU. The machine's state passes
//! through `zstd`, which checks it: a machine whose file is damaged never continues.
//! QEMU's protocol: <https://www.qemu.org/docs/master/interop/qemu-qmp-ref.html>

use super::programs;
use serde_json::{Value, json};
use std::{
    fs::File,
    io::{self, BufRead, BufReader, ErrorKind, Write},
    os::{
        fd::OwnedFd,
        unix::net::{UnixListener, UnixStream},
    },
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// Time for one answer of QEMU, which takes half a second to save a machine.
const ANSWER: Duration = Duration::from_secs(60);
/// The speed of saving, in bytes per second. With QEMU's default of 128 MiB/s, saving would take as long as a boot.
const BANDWIDTH: u64 = 10_000_000_000;

/// A connection to the monitor of a running QEMU.
pub struct Monitor(BufReader<UnixStream>);

impl Monitor {
    /// Takes QEMU's connection and asks for the events of saving and restoring.
    pub fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_read_timeout(Some(ANSWER))?;
        stream.set_write_timeout(Some(ANSWER))?;
        let mut monitor = Self(BufReader::new(stream));
        monitor.message()?; // the greeting
        monitor.execute("qmp_capabilities", json!({}))?;
        let events = json!({"capabilities": [{"capability": "events", "state": true}]});
        monitor.execute("migrate-set-capabilities", events)?;
        Ok(monitor)
    }

    /// Stops the machine, writes its state to `file`, and lets the machine continue, even after an error.
    pub fn save(&mut self, file: &Path, socket: &Path) -> io::Result<()> {
        self.execute("stop", json!({}))?;
        let saved = self.write_state(file, socket);
        self.execute("cont", json!({}))?;
        saved
    }

    fn write_state(&mut self, file: &Path, socket: &Path) -> io::Result<()> {
        self.execute("migrate-set-parameters", json!({"max-bandwidth": BANDWIDTH}))?;
        let listener = UnixListener::bind(socket)?;
        listener.set_nonblocking(true)?;
        self.execute("migrate", json!({"uri": uri(socket)}))?;
        let stream = accept(&listener)?;
        let packer =
            Packer::start(&["-q", "-1", "-c"], OwnedFd::from(stream).into(), File::create(file)?.into())?;
        self.migrated()?;
        packer.finish()
    }

    /// Restores the state in `file`, and lets the machine continue.
    pub fn restore(&mut self, file: &Path, socket: &Path) -> io::Result<()> {
        self.execute("migrate-incoming", json!({"uri": uri(socket)}))?;
        let stream = UnixStream::connect(socket)?;
        let packer =
            Packer::start(&["-q", "-d", "-c"], File::open(file)?.into(), OwnedFd::from(stream).into())?;
        let migrated = self.migrated();
        packer.finish()?;
        migrated?;
        self.execute("cont", json!({}))
    }

    /// Waits until QEMU has written or read the whole state.
    fn migrated(&mut self) -> io::Result<()> {
        loop {
            let message = self.message()?;
            match (message["event"].as_str(), message["data"]["status"].as_str()) {
                (Some("MIGRATION"), Some("completed")) => return Ok(()),
                (Some("MIGRATION"), Some("failed")) => {
                    return Err(io::Error::other("QEMU failed to transfer it"));
                }
                _ => {}
            }
        }
    }

    /// Executes a command and waits for its end.
    fn execute(&mut self, command: &str, arguments: Value) -> io::Result<()> {
        let line = json!({"execute": command, "arguments": arguments});
        self.0.get_mut().write_all(format!("{line}\n").as_bytes())?;
        loop {
            let message = self.message()?;
            if message.get("return").is_some() {
                return Ok(());
            }
            if let Some(error) = message.get("error") {
                let reason = error["desc"].as_str().unwrap_or_default();
                return Err(io::Error::other(format!("QEMU refused {command}: {reason}")));
            }
        }
    }

    /// The next message: an answer or an event.
    fn message(&mut self) -> io::Result<Value> {
        let mut line = String::new();
        if self.0.read_line(&mut line)? == 0 {
            return Err(io::Error::new(ErrorKind::UnexpectedEof, "QEMU ended"));
        }
        serde_json::from_str(&line).map_err(|e| io::Error::other(format!("answer of QEMU: {e}")))
    }
}

fn uri(socket: &Path) -> String {
    format!("unix:{}", socket.display())
}

/// Takes QEMU's connection. QEMU does not report a failure to connect, so this has a timeout.
fn accept(listener: &UnixListener) -> io::Result<UnixStream> {
    let deadline = Instant::now() + ANSWER;
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false)?;
                return Ok(stream);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock && Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(error) => return Err(error),
        }
    }
}

/// A running `zstd`; dropping this ends it.
struct Packer(Child);

impl Packer {
    fn start(options: &[&str], from: Stdio, to: Stdio) -> io::Result<Self> {
        let zstd = Command::new(programs::path(programs::ZSTD))
            .args(options)
            .stdin(from)
            .stdout(to)
            .stderr(Stdio::piped())
            .spawn()?;
        Ok(Self(zstd))
    }

    /// Waits for the end of zstd, and fails with zstd's message.
    fn finish(mut self) -> io::Result<()> {
        let errors = self.0.stderr.take().map(io::read_to_string).transpose()?.unwrap_or_default();
        match self.0.wait()?.success() {
            true => Ok(()),
            false => Err(io::Error::other(errors.trim().replace('\n', "; "))),
        }
    }
}

impl Drop for Packer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

//! QEMU's monitor (QMP): saves the state of a stopped machine to a file, and restores it into another QEMU. The memory is a
//! file of its own ([`super::memory`]), which QEMU leaves out of the state.
//! QEMU's protocol: <https://www.qemu.org/docs/master/interop/qemu-qmp-ref.html>

use serde_json::{Value, json};
use std::{
    fs::File,
    io::{self, BufRead, BufReader, ErrorKind, Write},
    os::unix::net::{UnixListener, UnixStream},
    path::Path,
    time::{Duration, Instant},
};

/// Time for one answer of QEMU, which comes at once unless the host is very busy.
const ANSWER: Duration = Duration::from_secs(60);

/// A connection to the monitor of a running QEMU.
pub struct Monitor(BufReader<UnixStream>);

impl Monitor {
    /// Takes QEMU's connection and asks for the events of saving and restoring, and for states
    /// without shared memory.
    pub fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_read_timeout(Some(ANSWER))?;
        stream.set_write_timeout(Some(ANSWER))?;
        let mut monitor = Self(BufReader::new(stream));
        monitor.message()?; // the greeting
        monitor.execute("qmp_capabilities", json!({}))?;
        let enabled = |name: &str| json!({"capability": name, "state": true});
        let capabilities = json!({"capabilities": [enabled("events"), enabled("x-ignore-shared")]});
        monitor.execute("migrate-set-capabilities", capabilities)?;
        Ok(monitor)
    }

    /// Stops the machine, writes its state to `file`, saves its memory, and lets the machine continue, even after an error.
    pub fn save(
        &mut self,
        file: &Path,
        socket: &Path,
        memory: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<()> {
        self.execute("stop", json!({}))?;
        let saved = self.write_state(file, socket).and_then(|()| memory());
        self.execute("cont", json!({}))?;
        saved
    }

    fn write_state(&mut self, file: &Path, socket: &Path) -> io::Result<()> {
        let listener = UnixListener::bind(socket)?;
        listener.set_nonblocking(true)?;
        self.execute("migrate", json!({"uri": uri(socket)}))?;
        let mut stream = accept(&listener)?;
        stream.set_read_timeout(Some(ANSWER))?;
        io::copy(&mut stream, &mut File::create(file)?)?;
        self.migrated()
    }

    /// Restores the state in `file`, and lets the machine continue.
    pub fn restore(&mut self, file: &Path, socket: &Path) -> io::Result<()> {
        self.execute("migrate-incoming", json!({"uri": uri(socket)}))?;
        let mut stream = UnixStream::connect(socket)?;
        stream.set_write_timeout(Some(ANSWER))?;
        let copied = io::copy(&mut File::open(file)?, &mut stream);
        drop(stream); // QEMU does not wait for more
        self.migrated()?;
        copied?;
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

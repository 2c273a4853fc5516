//! What a running recording says of itself: a document to everybody who connects to its socket. The socket has a name in the
//! abstract namespace (unix(7)), which needs no folder and no disk, and disappears with the process.

use canter_capture::{Observer, Status};
use canter_cli::options::Common;
use serde::{Deserialize, Serialize};
use std::{
    fs,
    io::{self, Read, Write},
    os::{
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixListener, UnixStream},
    },
    process, thread,
    time::Duration,
};

/// What the names of all such sockets begin with; the process id follows.
const PREFIX: &str = "canter-capture/";
/// How long either side waits for the other.
const PATIENCE: Duration = Duration::from_secs(2);
/// The longest document that is read, in bytes.
const DOCUMENT_MAX: u64 = 1 << 20;

/// The document.
#[derive(Serialize)]
struct Answer {
    schema: &'static str,
    version: &'static str,
    pid: u32,
    #[serde(flatten)]
    status: Status,
}

/// Answers in a thread of its own until the process ends. A recording without it is a recording: what fails is printed.
pub fn answer(observer: &Observer, common: &Common) {
    let observer = observer.clone();
    let name = format!("{PREFIX}{}", process::id());
    let listening =
        SocketAddr::from_abstract_name(name).and_then(|address| UnixListener::bind_addr(&address));
    let started = listening.and_then(|listener| {
        let serve = move || {
            let _ = canter_io::thread::stand_back(); // frames go first
            listener.incoming().flatten().for_each(|stream| drop(send(stream, &observer)));
        };
        thread::Builder::new().name("canter-status".to_owned()).spawn(serve)
    });
    if let (Err(error), false) = (started, common.quiet) {
        eprintln!("canter: status: {error}; canter status does not see this recording");
    }
}

fn send(mut stream: UnixStream, observer: &Observer) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let answer = Answer {
        schema: "canter-status/1",
        version: env!("CARGO_PKG_VERSION"),
        pid: process::id(),
        status: observer.status(),
    };
    stream.write_all(&serde_json::to_vec(&answer)?)
}

/// A bus of a recording.
#[derive(Clone, Debug, Deserialize)]
pub struct Bus {
    pub name: String,
    pub frames: u64,
    /// `None`: the bit rate is unknown.
    pub busy_ns: Option<u64>,
}

/// A file of a recording.
#[derive(Clone, Debug, Deserialize)]
pub struct File {
    pub name: String,
    pub bytes: u64,
    pub since_ns: u64,
}

/// The parts of a document that are printed.
#[derive(Clone, Debug, Deserialize)]
pub struct Report {
    pub pid: u32,
    pub output: String,
    pub monotonic_ns: u64,
    pub at_ns: u64,
    pub started_ns: u64,
    pub frames: u64,
    pub lost: Lost,
    pub buses: Vec<Bus>,
    pub queue_used_bytes: u64,
    pub queue_high_water_bytes: u64,
    pub queue_bytes: u64,
    pub frames_in_files: u64,
    pub frames_outside: u64,
    pub file: Option<File>,
    pub free_bytes: Option<u64>,
    pub triggers: Option<Vec<String>>,
    pub triggered_events: u64,
    pub trouble: String,
}

/// Frames lost so far.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Lost {
    pub ring: u64,
    pub queue: u64,
    pub disk: u64,
    pub window: u64,
}

impl Lost {
    pub fn frames(self) -> u64 {
        self.ring + self.queue + self.disk + self.window
    }
}

/// The process ids of all recordings in this network namespace.
///
/// # Errors
/// `/proc/net/unix` cannot be read.
pub fn recordings() -> io::Result<Vec<u32>> {
    let text = fs::read_to_string("/proc/net/unix")?;
    // Of each listening socket and of each connection to it, a line.
    let name =
        |line: &str| line.split_whitespace().nth(7)?.strip_prefix('@')?.strip_prefix(PREFIX)?.parse().ok();
    let mut all: Vec<u32> = text.lines().filter_map(name).collect();
    all.sort_unstable();
    all.dedup();
    Ok(all)
}

/// Asks the recording of a process: its document, and the parts of it that are printed.
///
/// # Errors
/// The process does not answer, or not with a status.
pub fn ask(pid: u32) -> io::Result<(serde_json::Value, Report)> {
    let address = SocketAddr::from_abstract_name(format!("{PREFIX}{pid}"))?;
    let stream = UnixStream::connect_addr(&address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut text = Vec::new();
    stream.take(DOCUMENT_MAX).read_to_end(&mut text)?;
    let document: serde_json::Value = serde_json::from_slice(&text)?;
    let report = Report::deserialize(&document)?;
    Ok((document, report))
}

//! What the lab tests of `canter capture` share: a disk and cables of their own, numbered frames, a capture as a process.
#![allow(dead_code, reason = "each test file uses a part")]
#![allow(clippy::unwrap_used, reason = "a test may")]

#[path = "../skip/mod.rs"]
mod skip;

use canter_io::{
    Frame, Identifier, Interface, LogLine,
    method::{Transmit, TransmitMethod, TransmitOptions},
    process,
};
use serde_json::Value;
use std::{
    collections::HashMap,
    fs,
    io::{BufRead, BufReader, Read},
    path::PathBuf,
    process::{Child, ChildStderr, Command, Stdio},
    time::{Duration, Instant},
};

/// No child lives longer than this.
pub const DEADLINE: Duration = Duration::from_secs(120);

/// In the virtual clock a large program takes minutes to start, while the host reads its files.
const SHELL_SECONDS: &str = "600";

pub fn sh(line: &str) -> String {
    let done = Command::new("timeout").args([SHELL_SECONDS, "bash", "-c", line]).output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(
        done.status.success(),
        "{line}: {}: {} {said}",
        done.status,
        String::from_utf8_lossy(&done.stderr)
    );
    said.into_owned()
}

pub fn has(program: &str) -> bool {
    let found = Command::new("bash")
        .args(["-c", &format!("command -v {program}")])
        .output()
        .unwrap()
        .status
        .success();
    if !found {
        skip::skip(&format!("there is no {program} here (make setup installs it)"));
    }
    found
}

/// A small disk of its own, gone with the test.
pub struct Disk(pub PathBuf);

impl Disk {
    pub fn new(name: &str, size: &str) -> Self {
        let path = PathBuf::from(format!("/tmp/capture-{name}"));
        fs::create_dir_all(&path).unwrap();
        sh(&format!("mount -t tmpfs -o size={size} none {}", path.display()));
        Self(path)
    }

    pub fn file(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// Cables: frames sent to the first end of each come out of the second.
pub struct Cables(pub Vec<(Interface, Interface)>);

impl Cables {
    pub fn new(prefix: &str, count: usize) -> Self {
        let cable = |n| {
            let (near, far) = (format!("{prefix}s{n}"), format!("{prefix}{n}"));
            let mut near = Interface::create_vxcan(&near, &far).unwrap();
            let mut far = Interface::find(&far).unwrap();
            for end in [&mut near, &mut far] {
                end.set_mtu(72).unwrap();
                end.up().unwrap();
            }
            (near, far)
        };
        Self((0..count).map(cable).collect())
    }

    pub fn names(&self) -> Vec<String> {
        self.0.iter().map(|(_, far)| far.name.clone()).collect()
    }

    pub fn senders(&self) -> Vec<Box<dyn Transmit>> {
        let method: TransmitMethod = "sendmmsg".parse().unwrap();
        let open =
            |(near, _): &(Interface, Interface)| method.open(near, &TransmitOptions::default()).unwrap();
        self.0.iter().map(open).collect()
    }
}

impl Drop for Cables {
    fn drop(&mut self) {
        for (near, _) in &self.0 {
            let _ = near.clone().delete();
        }
    }
}

/// Frame `number` of a bus; every fifth is FD.
pub fn numbered(bus: usize, number: u32) -> Frame {
    let id = Identifier::Sff(bus as u16);
    let data = number.to_be_bytes();
    if number % 5 == 4 { Frame::fd(id, &data, 1) } else { Frame::classic(id, &data) }.unwrap()
}

/// Sends frames `from..to` to every cable, a burst of some on each in turn.
pub fn send(senders: &mut [Box<dyn Transmit>], from: u32, to: u32) {
    const BURST: u32 = 10;
    let started = Instant::now();
    for start in (from..to).step_by(BURST as usize) {
        for (bus, sender) in senders.iter_mut().enumerate() {
            let frames: Vec<Frame> = (start..to.min(start + BURST)).map(|n| numbered(bus, n)).collect();
            let mut rest = frames.as_slice();
            while !rest.is_empty() {
                let taken = sender.transmit(rest).unwrap();
                rest = &rest[taken..];
                assert!(started.elapsed() < DEADLINE, "the senders are stuck");
            }
        }
    }
}

/// A capture that runs.
pub struct Capture {
    pub child: Child,
    pub stderr: BufReader<ChildStderr>,
}

pub struct Ended {
    pub code: Option<i32>,
    pub said: String,
}

impl Capture {
    pub fn start(arguments: &[&str]) -> Self {
        Self::start_by(&[], arguments)
    }

    /// `before` is a command that runs it.
    pub fn start_by(before: &[&str], arguments: &[&str]) -> Self {
        Self::start_for("110", before, arguments)
    }

    /// `seconds` is how long it lives at most.
    pub fn start_for(seconds: &str, before: &[&str], arguments: &[&str]) -> Self {
        let mut child = Command::new("timeout")
            .args(["--foreground", "--signal=KILL", seconds])
            .args(before)
            .args([env!("CARGO_BIN_EXE_canter"), "capture"])
            .args(arguments)
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        while !said.contains("Ctrl-C ends it") {
            assert!(stderr.read_line(&mut said).unwrap() > 0, "it did not start: {said}");
        }
        Self { child, stderr }
    }

    /// The next line that it says.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.stderr.read_line(&mut line).unwrap();
        line
    }

    /// The process behind `timeout`.
    pub fn id(&self) -> String {
        let id = self.child.id();
        sh(&format!("cat /proc/{id}/task/{id}/children")).trim().to_owned()
    }

    pub fn signal(&self, name: &str) {
        sh(&format!("kill -{name} {}", self.id()));
    }

    pub fn wait(mut self) -> Ended {
        let mut said = String::new();
        self.stderr.read_to_string(&mut said).unwrap();
        Ended { code: self.child.wait().unwrap().code(), said }
    }

    pub fn stop(self) -> Ended {
        process::terminate(&self.child).unwrap(); // timeout passes it on
        self.wait()
    }
}

pub fn account(file: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(format!("{file}.account.json")).unwrap()).unwrap()
}

/// Reads a log: the frames' numbers by interface. Stamps must not step back.
pub fn numbers(file: &str) -> HashMap<String, Vec<u32>> {
    let mut numbers: HashMap<String, Vec<u32>> = HashMap::new();
    let mut last = 0;
    for line in fs::read_to_string(file).unwrap().lines() {
        let line = LogLine::parse(line).unwrap().unwrap();
        assert!(line.stamp_ns >= last, "{line} steps back");
        last = line.stamp_ns;
        let number = u32::from_be_bytes(line.frame.data().try_into().unwrap());
        numbers.entry(line.interface.to_owned()).or_default().push(number);
    }
    numbers
}

pub fn assert_all(file: &str, names: &[String], count: u32) {
    let numbers = numbers(file);
    for name in names {
        let got = numbers.get(name).map(Vec::as_slice).unwrap_or_default();
        assert!(
            got.iter().copied().eq(0..count),
            "{name}: {} frames: {:?}…",
            got.len(),
            &got[..got.len().min(20)]
        );
    }
    assert_eq!(numbers.len(), names.len());
}

/// A capture that must not start.
pub fn refused(arguments: &[&str]) -> Ended {
    let done = Command::new("timeout")
        .args(["20", env!("CARGO_BIN_EXE_canter"), "capture"])
        .args(arguments)
        .output()
        .unwrap();
    Ended { code: done.status.code(), said: String::from_utf8_lossy(&done.stderr).into_owned() }
}

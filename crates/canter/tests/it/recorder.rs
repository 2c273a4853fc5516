//! What the tests of `canter capture` share: a disk and buses of their own, numbered frames, a capture as a process.

pub mod returning;

pub use crate::wait::{eventually, state};

use crate::{testbed::program, wait};

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
use tempfile::TempDir;

/// The longest life of a child.
pub const DEADLINE: Duration = Duration::from_secs(120);

/// How long a program may take at most, for timeout(1). Without a limit in the virtual clock, where hours pass in a second while
/// the guest waits for the host's files, and in a long run of `make soak`: what hangs there is ended by the lab, whose limit is in
/// real time.
fn life() -> String {
    let is_virtual =
        fs::read_to_string("/proc/cmdline").is_ok_and(|line| line.contains("canter.clock=virtual"));
    let is_long = std::env::var_os("SOAK_FRAMES").is_some();
    if is_virtual || is_long { "0".to_owned() } else { DEADLINE.as_secs().to_string() }
}

pub fn sh(line: &str) -> String {
    let done = Command::new("timeout").args([&life(), "bash", "-c", line]).output().unwrap();
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
        crate::skip::skip(&format!("there is no {program} here (make setup installs it)"));
    }
    found
}

/// A small disk of its own, gone with the test; the second is the folder where it is mounted.
pub struct Disk(pub PathBuf, #[expect(dead_code, reason = "its folder is removed with it")] TempDir);

impl Disk {
    pub fn new(name: &str, size: &str) -> Self {
        let folder = tempfile::Builder::new().prefix(&format!("capture-{name}-")).tempdir().unwrap();
        sh(&format!("mount -t tmpfs -o size={size} none {}", folder.path().display()));
        Self(folder.path().to_owned(), folder)
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

/// Buses whose frames can be recorded.
pub trait Buses {
    /// Creates `count` buses. Their interfaces are named by the prefix and a number from 0 on; they are up and have FD.
    fn new(prefix: &str, count: usize) -> Self;

    /// The names of the interfaces.
    fn names(&self) -> Vec<String>;

    /// A sender on each bus.
    fn senders(&self) -> Vec<Box<dyn Transmit>>;
}

/// Cables: frames sent to the first end of each come out of the second.
pub struct Cables(pub Vec<(Interface, Interface)>);

/// A processor's backlog, in frames, that holds any burst of these tests. Debian's 6.1 has lost frames in one of 1000: there a
/// sender and ksoftirqd, which empties the backlog, compete for the processor.
const BACKLOG_FRAMES: &str = "100000";

impl Buses for Cables {
    fn new(prefix: &str, count: usize) -> Self {
        fs::write("/proc/sys/net/core/netdev_max_backlog", BACKLOG_FRAMES).unwrap();
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

    fn names(&self) -> Vec<String> {
        self.0.iter().map(|(_, far)| far.name.clone()).collect()
    }

    fn senders(&self) -> Vec<Box<dyn Transmit>> {
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
    /// The lines that the capture has printed since its start, as far as they were read.
    said: String,
}

/// A capture that has ended, and the lines that it printed after its start.
pub struct Ended {
    pub code: Option<i32>,
    pub said: String,
}

impl Capture {
    pub fn start(arguments: &[&str]) -> Self {
        Self::start_by(&[], arguments)
    }

    /// Starts a capture by the command `before`.
    pub fn start_by(before: &[&str], arguments: &[&str]) -> Self {
        let mut child = Command::new("timeout")
            .args(["--foreground", "--signal=KILL", &life()])
            .args(before)
            .args([program(), "capture"])
            .args(arguments)
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        // A FIFO without a reader has a line that ends in `(Ctrl-C ends it)`: the recording has not begun then.
        while !said.contains("; Ctrl-C ends it") {
            assert!(stderr.read_line(&mut said).unwrap() > 0, "it did not start: {said}");
        }
        Self { child, stderr, said: String::new() }
    }

    /// The next line that the capture prints.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.stderr.read_line(&mut line).unwrap();
        self.said += &line;
        line
    }

    /// Waits for lines with these texts, in any order; the capture is killed before that takes too long.
    #[track_caller]
    pub fn until_it_says(&mut self, texts: &[&str]) {
        let mut missing = texts.to_vec();
        while !missing.is_empty() {
            let line = self.line();
            assert!(!line.is_empty(), "it ended without {missing:?}: {}", self.said);
            missing.retain(|text| !line.contains(text));
        }
    }

    /// The process that `timeout` started.
    pub fn id(&self) -> String {
        let id = self.child.id();
        sh(&format!("cat /proc/{id}/task/{id}/children")).trim().to_owned()
    }

    pub fn signal(&self, name: &str) {
        wait::signal(&self.id(), name);
    }

    pub fn wait(mut self) -> Ended {
        self.stderr.read_to_string(&mut self.said).unwrap();
        Ended { code: self.child.wait().unwrap().code(), said: self.said }
    }

    pub fn stop(self) -> Ended {
        process::terminate(&self.child).unwrap(); // timeout passes it on
        self.wait()
    }
}

/// Causes more reports of a network interface than the kernel keeps for a program that does not read them: it drops the later
/// ones.
pub fn drop_reports(interface: &str) {
    let line = format!("echo link set {interface} down; echo link set {interface} up");
    sh(&format!("for n in $(seq 600); do {line}; done | ip -batch -"));
}

/// Waits until a step of the clock leaves no frame in doubt. When the clock is set within the first 2 s of a recording, frames
/// may have waited in the kernel since before the first reading of the counters (a test of counting.rs shows that).
pub fn wait_until_a_clock_step_is_certain() {
    std::thread::sleep(Duration::from_millis(2100));
}

/// Asserts that a recording has ended as it should, and that its account has every frame.
#[track_caller]
pub fn is_complete(ended: &Ended, account: &Value) {
    assert_eq!((ended.code, account["verdict"].as_str()), (Some(0), Some("complete")), "{}", ended.said);
}

/// The events of an account, a line each.
pub fn events(account: &Value) -> String {
    let text = |event: &Value| event["what"].as_str().unwrap().to_owned();
    account["events"].as_array().unwrap().iter().map(text).collect::<Vec<_>>().join("\n")
}

pub fn account(file: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(format!("{file}.account.json")).unwrap()).unwrap()
}

/// The numbers of a log's frames by interface, in the order of its lines, and how many frames are behind younger ones.
pub fn numbers_of_lines(log: &str) -> (HashMap<String, Vec<u32>>, u64) {
    let mut numbers: HashMap<String, Vec<u32>> = HashMap::new();
    let (mut youngest_ns, mut behind) = (0, 0);
    for line in log.lines() {
        let line = LogLine::parse(line).unwrap().unwrap();
        behind += u64::from(line.stamp_ns < youngest_ns);
        youngest_ns = line.stamp_ns.max(youngest_ns);
        let number = u32::from_be_bytes(line.frame.data().try_into().unwrap());
        numbers.entry(line.interface.to_owned()).or_default().push(number);
    }
    (numbers, behind)
}

/// Reads a log: the frames' numbers by interface. Frames behind younger ones are those that the account counts as late; there are
/// some when the host keeps a processor of the guest from running.
pub fn numbers(file: &str) -> HashMap<String, Vec<u32>> {
    let (numbers, behind) = numbers_of_lines(&fs::read_to_string(file).unwrap());
    // A recording that was killed, or whose disk is full, has none.
    let account = fs::read_to_string(format!("{file}.account.json")).unwrap_or_default();
    let late = serde_json::from_str(&account).map_or(0, |account: Value| account["late"].as_u64().unwrap());
    assert_eq!(behind, late, "{file}: frames behind younger ones, and those that were counted as late");
    numbers
}

/// Waits until a log has `count` lines: the recorder writes what it has at the flush interval, a second.
#[track_caller]
pub fn wait_for_lines(file: &str, count: usize) {
    let lines = || fs::read(file).map_or(0, |bytes| bytes.iter().filter(|&&byte| byte == b'\n').count());
    eventually(&format!("{count} lines in {file}"), || lines() >= count);
}

/// Waits until a pcapng has `count` frames: enhanced packet blocks, type 6.
#[track_caller]
pub fn wait_for_packets(file: &str, count: usize) {
    let packets = || {
        let bytes = fs::read(file).unwrap_or_default();
        let word = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().unwrap()));
        let (mut at, mut packets) = (0, 0);
        while let (Some(kind), Some(length)) = (word(at), word(at + 4)) {
            let next = at + length as usize;
            if length == 0 || next > bytes.len() {
                break;
            }
            packets += usize::from(kind == 6);
            at = next;
        }
        packets
    };
    eventually(&format!("{count} frames in {file}"), || packets() >= count);
}

#[track_caller]
pub fn assert_all(file: &str, names: &[String], count: u32) {
    assert_each(&numbers(file), names, count);
}

/// Each of these interfaces, and no other, has the frames from 0 on in their order.
#[track_caller]
pub fn assert_each(numbers: &HashMap<String, Vec<u32>>, names: &[String], count: u32) {
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
    let done = Command::new("timeout").args(["20", program(), "capture"]).args(arguments).output().unwrap();
    Ended { code: done.status.code(), said: String::from_utf8_lossy(&done.stderr).into_owned() }
}

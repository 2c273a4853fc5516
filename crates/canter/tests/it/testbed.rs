//! What the lab tests of the command line share: children that end by a deadline, the guest's cards and virtual
//! interfaces, a gateway as a subprocess, and candump, which records the gateway's output.
//!
//! There is one kernel for all tests of a file, so each begins with [`alone`].

pub use crate::{
    skip::skip,
    wait::{DEADLINE, asleep_in, eventually},
};

use crate::wait::{self, Moment, patience};
use canter_io::{
    interface::{BitTiming, Interface},
    netlink::wire::{self, NodeOptions},
};
use serde_json::Value;
use std::{
    fmt, fs,
    io::{Read, Write},
    os::unix::process::ExitStatusExt,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    thread::JoinHandle,
    time::{Duration, Instant},
};

/// Timeout of a program. In the virtual clock a large program takes minutes to start while a busy host reads its files.
const PROGRAM: Duration = Duration::from_secs(600);

/// Timeout of a gateway that was stopped, or whose interface was deleted.
pub const PROMPT: Duration = Duration::from_secs(2);

/// A time longer than a frame takes through any gateway of the lab.
const QUIET: Duration = Duration::from_millis(200);

/// Ways to wait on any interface, and the kernel's gateway.
pub const WAITS: &[&str] = &[
    "read+write",
    "read/poll+write",
    "read/spin+write",
    "recvmmsg+sendmmsg",
    "recvmmsg/poll+sendmmsg",
    "recvmmsg/spin+sendmmsg",
    "ring+ring",
    "ring/spin+ring",
    "can-gw",
];

/// Bus A is can0, can1, can3; bus B is can2, can4.
pub const CARDS: [&str; 5] = ["can0", "can1", "can2", "can3", "can4"];

/// Lets one test run at a time, on any number of threads, and deletes the jobs of can-gw that a failed test has left.
pub fn alone() -> MutexGuard<'static, ()> {
    static KERNEL: Mutex<()> = Mutex::new(());
    let alone = KERNEL.lock().unwrap_or_else(PoisonError::into_inner);
    start("cangw", &["-F"]).ended(DEADLINE); // its exit code says nothing
    alone
}

/// Lets one test run at a time, and fails it at its end if the kernel logged a warning, an oops, or a report of KASAN or
/// lockdep.
pub struct Watched {
    _alone: MutexGuard<'static, ()>,
}

impl Watched {
    pub fn alone() -> Self {
        Self { _alone: alone() }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let log = output("dmesg", &[]);
        let alarms = ["WARNING:", "BUG:", "Oops", "Call Trace", "nobody cared", "detected stall"];
        // A kernel with KCSAN reports its own data races, too; those of our modules name one.
        let ours = |line: &str| !line.contains("BUG: KCSAN") || line.contains("[can");
        let complaint = log.lines().find(|line| ours(line) && alarms.iter().any(|word| line.contains(word)));
        if std::thread::panicking() {
            let last: Vec<_> = log.lines().rev().take(20).collect();
            eprintln!("the kernel's last lines, newest first:\n{}", last.join("\n"));
        } else {
            assert!(complaint.is_none(), "{complaint:?}");
        }
    }
}

/// A child, ended when this is dropped.
pub struct Running {
    child: Child,
    words: String,
    stdout: Stream,
    stderr: Stream,
}

/// A child that has ended.
pub struct Ended {
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    pub words: String,
}

struct Stream {
    text: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Stream {
    fn new(mut source: impl Read + Send + 'static) -> Self {
        let text = Arc::new(Mutex::new(Vec::new()));
        let collected = Arc::clone(&text);
        let reader = std::thread::spawn(move || {
            let mut part = [0; 4096];
            while let Ok(count @ 1..) = source.read(&mut part) {
                collected.lock().unwrap().extend_from_slice(&part[..count]);
            }
        });
        Self { text, reader }
    }

    fn so_far(&self) -> String {
        String::from_utf8_lossy(&self.text.lock().unwrap()).into_owned()
    }

    fn into_text(self) -> String {
        self.reader.join().unwrap();
        String::from_utf8_lossy(&self.text.lock().unwrap()).into_owned()
    }
}

/// Starts a program.
pub fn start(program: &str, arguments: &[&str]) -> Running {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{program}: {error}"));
    let stdout = Stream::new(child.stdout.take().unwrap());
    let stderr = Stream::new(child.stderr.take().unwrap());
    let name = program.rsplit('/').next().unwrap();
    Running { child, words: format!("{name} {}", arguments.join(" ")), stdout, stderr }
}

/// The physical memory of a process, in KiB.
pub fn resident_kib(process: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// How many frames a long run has: those that `make soak` asks for, or as `usual`.
pub fn soak_frames(usual: u32) -> u32 {
    std::env::var("SOAK_FRAMES").map_or(usual, |count| count.parse().unwrap())
}

/// Starts canter.
pub fn canter(arguments: &[&str]) -> Running {
    start(program(), arguments)
}

/// The program. In the virtual clock it is a copy in the guest's memory, because reading a page of the program from the
/// host takes milliseconds at any time. A test of punctual programs also gives --realtime, which locks their memory.
pub fn program() -> &'static str {
    const HOST_PATH: &str = env!("CARGO_BIN_EXE_canter");
    const COPY: &str = "/tmp/canter";
    static PLACE: OnceLock<&str> = OnceLock::new();
    PLACE.get_or_init(|| match fs::read_to_string("/proc/cmdline") {
        Ok(words) if words.contains("canter.clock=virtual") => {
            fs::copy(HOST_PATH, COPY).map(|_| COPY).unwrap()
        }
        _ => HOST_PATH,
    })
}

/// The standard output of a program, which must succeed.
#[track_caller]
pub fn output(program: &str, arguments: &[&str]) -> String {
    let ended = start(program, arguments).ended(PROGRAM);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended.stdout
}

/// Runs `ip` with a line of arguments.
#[track_caller]
pub fn ip(line: &str) {
    output("ip", &line.split_whitespace().collect::<Vec<_>>());
}

/// The time that a thread has had a processor, in ns (Documentation/scheduler/sched-stats.rst), by its folder in /proc; `None`:
/// it has ended.
pub fn processor_ns(thread: &std::path::Path) -> Option<u64> {
    let text = fs::read_to_string(thread.join("schedstat")).ok()?;
    Some(text.split(' ').next().unwrap().parse().unwrap())
}

impl Running {
    pub fn signal(&self, name: &str) {
        wait::signal(&self.child.id().to_string(), name);
    }

    /// The memory that the child has in use, in KiB.
    pub fn resident_kib(&self) -> u64 {
        resident_kib(&self.child.id().to_string())
    }

    /// The time that the child's threads have had a processor, in ns.
    pub fn processor_ns(&self) -> u64 {
        let threads = fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap().flatten();
        threads.filter_map(|thread| processor_ns(&thread.path())).sum()
    }

    /// Whether all threads of the child sleep.
    pub fn is_asleep(&self) -> bool {
        let threads = fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap().flatten();
        threads.into_iter().all(|thread| wait::state(&thread.path()) == 'S')
    }

    /// Whether the child handles SIGINT.
    pub fn catches_interrupts(&self) -> bool {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
        u64::from_str_radix(caught.trim(), 16).unwrap() & 2 != 0 // its number is 2: bit 1
    }

    /// Whether the child has mapped a file whose path ends with `end`, such as the tap of a bus.
    pub fn has_mapped(&self, end: &str) -> bool {
        let maps = fs::read_to_string(format!("/proc/{}/maps", self.child.id())).unwrap_or_default();
        maps.lines().any(|line| line.ends_with(end))
    }

    /// The priority of each thread under SCHED_FIFO, by the thread's name; 0: another policy (proc_pid_stat(5)).
    pub fn priorities(&self) -> Vec<(String, u8)> {
        let threads = fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap().flatten();
        let text = threads.map(|thread| fs::read_to_string(thread.path().join("stat")).unwrap());
        text.map(|text| {
            let (head, fields) = text.rsplit_once(") ").unwrap();
            let priority = fields.split(' ').nth(40 - 3).unwrap().parse().unwrap();
            (head.split_once('(').unwrap().1.to_owned(), priority)
        })
        .collect()
    }

    /// The text on standard error so far.
    pub fn said(&self) -> String {
        self.stderr.so_far()
    }

    /// The text on standard output so far.
    pub fn printed(&self) -> String {
        self.stdout.so_far()
    }

    /// Waits until standard error has `text`.
    #[track_caller]
    pub fn until_it_says(&mut self, text: &str) {
        let since = Moment::now();
        while !self.stderr.so_far().contains(text) {
            let gone = self.child.try_wait().unwrap().is_some();
            assert!(!gone && !since.is_over(patience(DEADLINE)), "{}: {}", self.words, self.stderr.so_far());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits for the child's end. After `limit` the child is killed and the test fails.
    #[track_caller]
    pub fn ended(mut self, limit: Duration) -> Ended {
        let since = Moment::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if since.is_over(patience(limit)) {
                let said = (self.stdout.so_far(), self.stderr.so_far());
                panic!("{}: has not ended after {limit:?}: {said:?}", self.words); // drop kills it
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let empty = || Stream::new(std::io::empty());
        let stdout = std::mem::replace(&mut self.stdout, empty()).into_text();
        let stderr = std::mem::replace(&mut self.stderr, empty()).into_text();
        Ended { code: status.code(), signal: status.signal(), stdout, stderr, words: self.words.clone() }
    }
}

impl Drop for Running {
    /// Asks first: a gateway in the kernel would outlive a kill.
    fn drop(&mut self) {
        let since = Instant::now();
        if let Ok(None) = self.child.try_wait() {
            let _ = canter_io::process::terminate(&self.child);
        }
        while let Ok(None) = self.child.try_wait() {
            if since.elapsed() > PROMPT {
                let _ = self.child.kill();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl fmt::Debug for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { words, code, signal, stdout, stderr } = self;
        let end = stdout.len().saturating_sub(800);
        let stdout = stdout.get(end..).unwrap_or(stdout);
        write!(f, "{words}: exit code {code:?}, signal {signal:?}\nstdout: {stdout}\nstderr: {stderr}")
    }
}

impl Ended {
    /// The document that `--json -` wrote. Standard output must have nothing else.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The only error line, without `canter: `. Lines that begin with `gateway: ` do not count.
    #[track_caller]
    pub fn complaint(&self) -> &str {
        let lines: Vec<_> = self.stderr.lines().filter(|line| !line.starts_with("gateway: ")).collect();
        let [line] = lines[..] else { panic!("not one line: {self:?}") };
        line.strip_prefix("canter: ").unwrap_or_else(|| panic!("not canter's: {self:?}"))
    }
}

/// Brings up the five cards at 1 Mbit/s. can0 has a long queue, because cangen and canplayer give up when it is full.
pub fn cards() {
    cards_up(&CARDS);
}

/// Brings up some of the cards, as [`cards`] does.
pub fn cards_up(names: &[&str]) {
    for &name in names {
        let mut card = Interface::find(name).unwrap();
        card.set_tx_queue_len(if name == "can0" { 1000 } else { 10 }).unwrap();
        if card.bitrate() != Some(1_000_000) {
            card.down().unwrap();
            card.set_bit_timing(&BitTiming::classic(1_000_000)).unwrap();
        }
        card.up().unwrap();
    }
}

/// Virtual interfaces, up, deleted when this is dropped.
pub struct Virtual(Vec<Interface>);

impl Virtual {
    pub fn vcan(names: &[&str], mtu: u32) -> Self {
        let made = names.iter().map(|name| up(Interface::create_vcan(name).unwrap(), mtu));
        Self(made.collect())
    }

    /// Two cables, vx0=vx1 and vx2=vx3: a gateway goes from vx1 to vx2.
    pub fn cables(mtu: u32) -> Self {
        let cable = |near, far| {
            let near = up(Interface::create_vxcan(near, far).unwrap(), mtu);
            up(Interface::find(far).unwrap(), mtu);
            near
        };
        Self(vec![cable("vx0", "vx1"), cable("vx2", "vx3")])
    }
}

/// Creates another cable, which is deleted when this is dropped.
pub fn cable(near: &str, far: &str) -> Virtual {
    let made = up(Interface::create_vxcan(near, far).unwrap(), 16);
    up(Interface::find(far).unwrap(), 16);
    Virtual(vec![made])
}

fn up(mut interface: Interface, mtu: u32) -> Interface {
    interface.set_mtu(mtu).unwrap();
    interface.up().unwrap();
    interface
}

impl Drop for Virtual {
    fn drop(&mut self) {
        for interface in self.0.drain(..) {
            let _ = interface.delete(); // a test may have deleted it
        }
    }
}

/// Nodes of a virtual wire, deleted when this is dropped.
pub struct Nodes(Vec<String>);

impl Nodes {
    /// Nodes that the test itself adds.
    pub fn named(names: &[&str]) -> Self {
        Self(names.iter().map(|&name| name.to_owned()).collect())
    }

    /// Adds nodes to a bus and brings them up.
    pub fn up(names: &[&str], bus: &str, timing: &BitTiming) -> Self {
        Self::up_with(names, bus, &NodeOptions::default(), timing)
    }

    /// Adds nodes with these options to a bus and brings them up.
    pub fn up_with(names: &[&str], bus: &str, options: &NodeOptions, timing: &BitTiming) -> Self {
        let nodes = Self::named(names);
        for name in names {
            wire::add(name, bus, options).unwrap();
            let mut interface = Interface::find(name).unwrap();
            interface.set_bit_timing(timing).unwrap();
            interface.set_tx_queue_len(1000).unwrap();
            interface.up().unwrap();
        }
        nodes
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        self.0.iter().for_each(|name| drop(wire::delete(name))); // a test may have deleted it
    }
}

/// Whether an interface exists.
pub fn exists(interface: &str) -> bool {
    std::path::Path::new("/sys/class/net").join(interface).exists()
}

/// `canter gateway` as a subprocess, which routes as soon as [`Gateway::start`] returns.
pub struct Gateway(Running);

impl Gateway {
    #[track_caller]
    pub fn start(from: &str, to: &str, method: &str, options: &[&str]) -> Self {
        let arguments = ["gateway", from, to, "--method", method, "--json", "-"];
        let mut running = canter(&[&arguments, options].concat());
        running.until_it_says("gateway: ");
        Self(running)
    }

    /// Waits until the gateway has handled all frames: its threads sleep, and had no processor since the last check.
    #[track_caller]
    pub fn until_idle(&self) {
        let mut worked_ns = 0;
        eventually("the gateway is idle", || {
            let before_ns = std::mem::replace(&mut worked_ns, self.0.processor_ns());
            worked_ns == before_ns && self.0.is_asleep()
        });
    }

    /// Ends the gateway by a signal, within [`PROMPT`].
    #[track_caller]
    pub fn stop(self, signal: &str) -> Ended {
        self.0.signal(signal);
        self.0.ended(PROMPT)
    }

    /// Waits until the gateway ends without a signal, within [`PROMPT`].
    #[track_caller]
    pub fn ended(self) -> Ended {
        self.0.ended(PROMPT)
    }
}

/// Received, transmitted, filtered and dropped frames of a gateway's account, which must balance.
#[track_caller]
pub fn counts(ended: &Ended) -> [u64; 4] {
    let account = ended.json();
    let [received, transmitted, filtered, dropped] = ["received", "transmitted", "filtered", "dropped"]
        .map(|name| account["counts"][name].as_u64().unwrap_or_else(|| panic!("{name}: {account}")));
    assert_eq!(received, transmitted + filtered + dropped, "{account}");
    [received, transmitted, filtered, dropped]
}

/// A running candump.
pub struct Candump(Running);

impl Candump {
    /// Starts candump on an interface, with filters in its notation: `can1,123:7FF`.
    pub fn start(interface_and_filters: &str) -> Self {
        let mut parts = interface_and_filters.split(',');
        let interface = parts.next().unwrap();
        let filters = parts.filter(|part| *part != "J").count();
        let wanted = listeners(interface) + filters.max(1);
        let running = start("candump", &["-L", interface_and_filters]);
        eventually("candump listens", || listeners(interface) >= wanted);
        Self(running)
    }

    /// The text that candump has printed so far.
    pub fn so_far(&self) -> String {
        self.0.stdout.so_far()
    }

    /// The frames in cansend's notation, after `count` of them have come and no more follow.
    #[track_caller]
    pub fn frames(self, count: usize) -> Vec<String> {
        let lines = || self.0.stdout.so_far().lines().count();
        let since = Moment::now();
        while lines() < count && !since.is_over(DEADLINE / 3) {
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(QUIET);
        let text = self.0.stdout.so_far();
        let frame = |line: &str| line.split_whitespace().nth(2).map(str::to_owned);
        text.lines().map(|line| frame(line).unwrap_or_else(|| panic!("not a log line: {line}"))).collect()
    }
}

/// The number of receivers that the kernel has on an interface.
pub fn listeners(interface: &str) -> usize {
    let list = |kind| fs::read_to_string(format!("/proc/net/can/rcvlist_{kind}")).unwrap_or_default();
    let count =
        |text: String| text.lines().filter(|line| line.split_whitespace().next() == Some(interface)).count();
    ["all", "fil", "inv", "sff", "eff", "err"].into_iter().map(|kind| count(list(kind))).sum()
}

/// Sends `frames` to `interface` by canplayer, `gap_us` apart.
#[track_caller]
pub fn play(frames: &[impl AsRef<str>], interface: &str, gap_us: usize) {
    let mut log = tempfile::NamedTempFile::new().unwrap();
    for (at, frame) in frames.iter().enumerate() {
        let us = at * gap_us;
        writeln!(log, "({}.{:06}) log {}", us / 1_000_000, us % 1_000_000, frame.as_ref()).unwrap();
    }
    let path = log.path().to_str().unwrap().to_owned();
    output("canplayer", &["-I", &path, "-g", "1", &format!("{interface}=log")]);
}

/// The series of all cases in the events that `canter study inside` printed, in their order.
pub fn series(events: &[Value]) -> Vec<Value> {
    assert!(events.last().unwrap().get("end").is_some(), "{events:?}");
    let cases = events.iter().filter_map(|event| event.get("case"));
    cases.flat_map(|case| case["case"]["series"].as_array().unwrap().clone()).collect()
}

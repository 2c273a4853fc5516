//! What recording a frame costs, against the recorders that people use, in one run: 20 cables whose far ends are in
//! another network namespace, a sender there, 20 000 frames/s evenly spaced in turn, everything as it comes by default.
//!
//! The cost is what all processors spent on tasks (`/proc/schedstat`) with the recorder less the same with none, by
//! frame: delivery in the kernel, wake-ups, system calls, formatting, writing. What each costs in as long a time without
//! frames is taken off both, and told by second: a recorder that looks around ten times a second does so at any rate. In
//! the lab's virtual clock all is in instructions. Each recording is counted frame for frame; a figure of one that lost
//! some says so.
#![allow(clippy::unwrap_used, reason = "a bench may")]

use canter_io::{
    Frame, Identifier, Interface, clock,
    method::{Transmit, TransmitMethod, TransmitOptions},
    process,
};
use std::{
    collections::BTreeMap,
    fs,
    process::{Child, Command, ExitCode, Stdio},
    time::{Duration, Instant},
};

const BUSES: usize = 20;
const FRAMES: u64 = 10_000;
/// Frames before the measurement, which therefore contains nothing that is done once.
const WARM_UP: u64 = 1_000;
const PERIOD_NS: u64 = 50_000;
/// Time after the last frame, in which a recorder writes all frames to its file.
const SETTLE: Duration = Duration::from_millis(1500);
/// The command that is measured first; its cost is subtracted.
const NOTHING: &str = "sleep 1000";
const FOLDER: &str = "/tmp/record-bench";
const SPACE: &str = "recordbench";

/// A recorder: what it is called, its command, how its frames are counted, and what it may cost.
struct Recorder {
    name: &'static str,
    command: String,
    /// A line of shell that succeeds once the recorder records. Its standard error is in the file `said`.
    ready: &'static str,
    /// A line of shell that prints how many frames the recorder's file has.
    count: &'static str,
    /// What a frame may cost in the recorder's threads, in ns. Delivery, the same for all, is a difference of the sender's times
    /// and uncertain by 1 % of them.
    ceiling: Option<u64>,
}

fn recorders() -> Vec<Recorder> {
    // Another build of the program, such as that of `make dist`, is measured with CANTER=PATH in the environment.
    let canter = std::env::var("CANTER").unwrap_or_else(|_| env!("CARGO_BIN_EXE_canter").to_owned());
    // For a shell: the folder's name may have spaces.
    let canter = format!("'{}'", canter.replace('\'', r"'\''"));
    let each = |before: &str| (0..BUSES).map(|bus| format!(" {before}rb{bus}")).collect::<String>();
    let ours = |name, file: &str, count, ceiling| {
        let command = format!("{canter} capture{} -o {file}", each(""));
        Recorder { name, command, ready: "grep -q '^capture: ' said", count, ceiling }
    };
    let theirs =
        |name, command: String, ready, count| Recorder { name, command, ready, count, ceiling: None };
    let packets = "tshark -r file 2>/dev/null | wc -l";
    vec![
        ours("canter .pcapng", "file.pcapng", "tshark -r file.pcapng 2>/dev/null | wc -l", Some(300)),
        // A window from the first frame on, while the conditions are looked for.
        ours(
            "canter .pcapng --trigger",
            "file.pcapng --after 1h --trigger 'new after 0s' --trigger bus-off --trigger 0C9#40:C0 \
             --trigger 'missing 0C9 > 50ms'",
            "tshark -r file-000001.pcapng 2>/dev/null | wc -l",
            Some(320),
        ),
        // Fifty times as often as by default, which is not once in this measurement.
        ours(
            "canter .pcapng --sync-interval",
            "file.pcapng --sync-interval 100ms",
            "tshark -r file.pcapng 2>/dev/null | wc -l",
            None,
        ),
        ours("canter .log", "file.log", "wc -l < file.log", Some(450)),
        ours(
            "canter .pcapng.zst",
            "file.pcapng.zst",
            "zstd -dc file.pcapng.zst > f; tshark -r f 2>/dev/null | wc -l",
            None,
        ),
        ours("canter .log --direction", "file.log --direction", "wc -l < file.log", None),
        theirs(
            "candump -l any",
            "candump -l any".into(),
            "grep -q any /proc/net/can/rcvlist_all",
            "cat candump-*.log | wc -l",
        ),
        theirs(
            "dumpcap, 20 × -i",
            format!("dumpcap -q{} -w file", each("-i ")),
            "grep -q '^File: ' said",
            packets,
        ),
        theirs("tcpdump -i any", "tcpdump -i any -w file".into(), "grep -q 'listening on' said", packets),
    ]
}

/// The recorders that the command line names; all when it names none.
fn chosen(recorders: Vec<Recorder>) -> Vec<Recorder> {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let wanted = |one: &Recorder| words.is_empty() || words.iter().any(|word| word == one.name);
    recorders.into_iter().filter(wanted).collect()
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.iter().position(|argument| argument == "--send") {
        Some(at) => {
            send(arguments[at + 1].parse().unwrap());
            ExitCode::SUCCESS
        }
        // `cargo test` runs benches too, where there is no CAN.
        None if !arguments.iter().any(|argument| argument == "--bench") => {
            println!("record: skipped: `make bench` runs it in the lab");
            ExitCode::SUCCESS
        }
        None => compare(),
    }
}

/// The sender, in the other namespace: one frame every 50 µs, the buses in turn, or those of all buses together with TOGETHER=1 in
/// the environment. A sender that waits before each frame takes nine times as long as the recording, and 1 % of that hides small differences
/// between two versions; but together, frames cost recorders that wake up for each less than on a real bus.
fn send(frames: u64) {
    let method: TransmitMethod = "write".parse().unwrap();
    let open = |bus| {
        let interface = Interface::find(&format!("sb{bus}")).unwrap();
        method.open(&interface, &TransmitOptions::default()).unwrap()
    };
    let mut senders: Vec<Box<dyn Transmit>> = (0..BUSES).map(open).collect();
    let together = std::env::var_os("TOGETHER").is_some();
    let begin_ns = clock::monotonic_ns() + 1_000_000;
    for number in 0..frames {
        let bus = number as usize % BUSES;
        let frame = Frame::classic(Identifier::Sff(0x100 + bus as u16), &number.to_be_bytes()).unwrap();
        if bus == 0 || !together {
            clock::sleep_until_ns(begin_ns + number * PERIOD_NS);
        }
        assert_eq!(senders[bus].transmit(&[frame]).unwrap(), 1, "a cable has no queue");
    }
}

fn sh(line: &str) -> String {
    let done = Command::new("bash").args(["-c", line]).current_dir(FOLDER).output().unwrap();
    String::from_utf8_lossy(&done.stdout).trim().to_owned()
}

fn cable() {
    fs::create_dir_all(FOLDER).unwrap();
    sh(&format!("mount -t tmpfs none {FOLDER}"));
    sh(&format!("ip netns add {SPACE}; mkdir -p /run/netns"));
    for bus in 0..BUSES {
        let made = sh(&format!(
            "ip link add rb{bus} type vxcan peer name sb{bus} && ip link set sb{bus} netns {SPACE} &&
             ip link set rb{bus} up && ip netns exec {SPACE} ip link set sb{bus} up && echo made"
        ));
        assert_eq!(made, "made", "cable {bus}");
    }
}

/// What all processors have spent on tasks so far, in ns: the seventh figure of each (Documentation/scheduler/
/// sched-stats.rst).
fn spent_ns() -> u64 {
    let text = fs::read_to_string("/proc/schedstat").unwrap();
    let processors = text.lines().filter(|line| line.starts_with("cpu"));
    processors.map(|line| line.split_whitespace().nth(7).unwrap().parse::<u64>().unwrap()).sum()
}

fn run_sender(frames: u64) {
    let myself = std::env::current_exe().unwrap();
    let mut command = Command::new("ip");
    command.args(["netns", "exec", SPACE]).arg(myself).args(["--send", &frames.to_string()]);
    assert!(command.status().unwrap().success(), "the sender failed");
}

/// What each thread of a process has spent so far, in ns, by its name: the first figure of its schedstat.
fn threads_ns(process: u32) -> BTreeMap<String, u64> {
    let mut spent = BTreeMap::new();
    for task in fs::read_dir(format!("/proc/{process}/task")).unwrap().flatten() {
        let read = |file| fs::read_to_string(task.path().join(file)).unwrap();
        let ns: u64 = read("schedstat").split_whitespace().next().unwrap().parse().unwrap();
        *spent.entry(read("comm").trim().to_owned()).or_default() += ns;
    }
    spent
}

/// What was spent in a time, in ns: by all processors, and in each thread of the recorder.
struct Spent {
    all_ns: u64,
    threads_ns: BTreeMap<String, u64>,
}

impl Spent {
    /// What the recorder and everything else spend while `work` runs.
    fn during(recorder: u32, work: impl FnOnce()) -> Self {
        let (all_ns, threads_ns) = (spent_ns(), threads_ns(recorder));
        work();
        let before = Self { all_ns, threads_ns };
        Self { all_ns: spent_ns(), threads_ns: self::threads_ns(recorder) }.less(&before)
    }

    fn less(self, other: &Self) -> Self {
        let less = |(name, ns): (String, u64)| {
            let other_ns = other.threads_ns.get(&name).copied().unwrap_or(0);
            (name, ns.saturating_sub(other_ns))
        };
        let threads_ns = self.threads_ns.into_iter().map(less).collect();
        Self { all_ns: self.all_ns.saturating_sub(other.all_ns), threads_ns }
    }

    fn recorder_ns(&self) -> u64 {
        self.threads_ns.values().sum()
    }
}

/// What a run of the sender costs while a recorder runs. What is not the recorder's is delivery, in the sender's context.
struct Cost {
    /// What the frames alone cost.
    frames: Spent,
    /// What the recorder spends without frames, in ns a second.
    idle_ns: u64,
}

impl Cost {
    /// The cost per frame in the recorder's threads, in ns.
    fn recorder_ns(&self) -> u64 {
        self.frames.recorder_ns() / FRAMES
    }

    /// The parts of the cost per frame, in ns: `delivery 600, canter-write 300`.
    fn split(&self, alone_ns: u64) -> String {
        let delivery_ns = self.frames.all_ns.saturating_sub(alone_ns + self.frames.recorder_ns());
        let parts = self.frames.threads_ns.iter().map(|(name, ns)| (name.clone(), *ns));
        let all = [("delivery".to_owned(), delivery_ns)].into_iter().chain(parts);
        let shown = all.filter(|(_, ns)| *ns > FRAMES).map(|(name, ns)| format!("{name} {}", ns / FRAMES));
        format!("{}; without frames {} a second", shown.collect::<Vec<_>>().join(", "), self.idle_ns)
    }
}

/// Starts a recorder and measures it. The recorder still runs afterwards.
fn measure(command: &str, ready: &str) -> (Cost, Child) {
    let mut child = Command::new("bash")
        .args(["-c", &format!("exec {command} 2> said")])
        .current_dir(FOLDER)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    // In the virtual clock a program that is still being read from the host's disk takes no time of its own, so no
    // sleep is long enough.
    while sh(&format!("{ready} && echo ready")) != "ready" {
        assert!(child.try_wait().unwrap().is_none(), "{command}: has ended: {}", sh("cat said"));
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(SETTLE);
    assert!(child.try_wait().unwrap().is_none(), "{command}: has ended: {}", sh("cat said"));
    run_sender(WARM_UP);
    std::thread::sleep(SETTLE);
    let begun = Instant::now();
    let with_frames = Spent::during(child.id(), || {
        run_sender(FRAMES);
        std::thread::sleep(SETTLE);
    });
    let took = begun.elapsed();
    let idle = Spent::during(child.id(), || std::thread::sleep(took));
    let idle_ns = (idle.recorder_ns() as f64 / took.as_secs_f64()) as u64;
    (Cost { frames: with_frames.less(&idle), idle_ns }, child)
}

fn end(child: &mut Child) {
    process::terminate(child).unwrap();
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() && begun.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn compare() -> ExitCode {
    cable();
    let (Cost { frames: Spent { all_ns: alone_ns, .. }, .. }, mut child) = measure(NOTHING, "true");
    end(&mut child);
    println!("without a recorder the sender takes {} ns a frame", alone_ns / FRAMES);
    println!("{:<24} {:>12} {:>12}", "recorder", "ns a frame", "bytes a frame");
    let mut kept = true;
    for Recorder { name, command, ready, count, ceiling } in chosen(recorders()) {
        sh("rm -f file* f said candump-*");
        let (cost, mut child) = measure(&command, ready);
        end(&mut child);
        let per_frame = cost.frames.all_ns.saturating_sub(alone_ns) / FRAMES;
        let recorded = sh(count);
        let is_complete = recorded == (WARM_UP + FRAMES).to_string();
        if !is_complete {
            kept &= ceiling.is_none();
        }
        let bytes: f64 =
            sh("cat $(ls file* candump-* 2>/dev/null | grep -v account) | wc -c").parse().unwrap();
        let verdict = match ceiling {
            _ if !is_complete => format!("LOST: {recorded} of {} frames recorded", WARM_UP + FRAMES),
            Some(most) => {
                let (own, is_kept) = (cost.recorder_ns(), cost.recorder_ns() <= most);
                kept &= is_kept;
                format!("{own} of its own, ceiling {most}: {}", if is_kept { "kept" } else { "EXCEEDED" })
            }
            None => String::new(),
        };
        println!("{name:<24} {per_frame:>12} {:>12.1}  {verdict}", bytes / (WARM_UP + FRAMES) as f64);
        println!("    {}", cost.split(alone_ns));
    }
    sh(&format!("ip netns delete {SPACE}; umount -l {FOLDER}"));
    if kept { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

//! What recording a frame costs, against the recorders that people use, in one run: 20 cables whose far ends are in
//! another network namespace, a sender there, 20 000 frames/s evenly spaced in turn, everything as it comes by default.
//!
//! The cost is what all processors spent on tasks (`/proc/schedstat`) with the recorder less the same with none, by
//! frame: delivery in the kernel, wake-ups, system calls, formatting, writing. What each costs in as long a time without
//! frames is taken off both, and told by second: a recorder that looks around ten times a second does so at any rate. In
//! the lab's virtual clock all is in instructions. Each recording is counted frame for frame; one that lost some has no
//! figures. Beside them stands what copying a frame's bytes costs, which formatting cannot go below.
//!
//! The standard output is the table of README.md; the ceilings stand in crates/canter-lab/src/study/ceilings.toml.
#![allow(clippy::unwrap_used, reason = "a bench may")]

use canter_io::{
    Frame, Identifier, Interface, clock,
    method::{Transmit, TransmitMethod, TransmitOptions},
    process,
};
use std::{
    collections::BTreeMap,
    fs,
    hint::black_box,
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

/// A recorder: its program, what it writes, its command, and how its frames are counted.
struct Recorder {
    name: &'static str,
    file: &'static str,
    command: String,
    /// A line of shell that succeeds once the recorder records. Its standard error is in the file `said`.
    ready: &'static str,
    /// A line of shell that prints how many frames the recorder's file has.
    count: &'static str,
}

fn recorders() -> Vec<Recorder> {
    // Another build of the program, such as that of `make dist`, is measured with CANTER=PATH in the environment.
    let canter = std::env::var("CANTER").unwrap_or_else(|_| env!("CARGO_BIN_EXE_canter").to_owned());
    // For a shell: the folder's name may have spaces.
    let canter = format!("'{}'", canter.replace('\'', r"'\''"));
    let each = |before: &str| (0..BUSES).map(|bus| format!(" {before}rb{bus}")).collect::<String>();
    let ours = |file, options: &str, count| {
        let command = format!("{canter} capture{} -o {options}", each(""));
        Recorder { name: "canter", file, command, ready: "grep -q '^capture: ' said", count }
    };
    let theirs = |name, command: String, ready, count| Recorder { name, file: "", command, ready, count };
    let packets = "tshark -r file 2>/dev/null | wc -l";
    vec![
        ours(".pcapng", "file.pcapng", "tshark -r file.pcapng 2>/dev/null | wc -l"),
        // A window from the first frame on, while the conditions are looked for.
        ours(
            ".pcapng --trigger",
            "file.pcapng --after 1h --trigger 'new after 0s' --trigger bus-off --trigger 0C9#40:C0 \
             --trigger 'missing 0C9 > 50ms'",
            "tshark -r file-000001.pcapng 2>/dev/null | wc -l",
        ),
        // Fifty times as often as by default, which is not once in this measurement.
        ours(
            ".pcapng --sync-interval",
            "file.pcapng --sync-interval 100ms",
            "tshark -r file.pcapng 2>/dev/null | wc -l",
        ),
        ours(".log", "file.log", "wc -l < file.log"),
        ours(
            ".pcapng.zst",
            "file.pcapng.zst",
            "zstd -dc file.pcapng.zst > f; tshark -r f 2>/dev/null | wc -l",
        ),
        ours(".log --direction", "file.log --direction", "wc -l < file.log"),
        theirs(
            "candump",
            "candump -l any".into(),
            "grep -q any /proc/net/can/rcvlist_all",
            "cat candump-*.log | wc -l",
        ),
        theirs("dumpcap", format!("dumpcap -q{} -w file", each("-i ")), "grep -q '^File: ' said", packets),
        theirs("tcpdump", "tcpdump -i any -w file".into(), "grep -q 'listening on' said", packets),
    ]
}

/// The recorders whose program or file the command line names; all when it names none.
fn chosen(recorders: Vec<Recorder>) -> Vec<Recorder> {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let wanted =
        |one: &Recorder| words.is_empty() || words.iter().any(|word| *word == one.name || *word == one.file);
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

    /// The cost per frame in the recorder's thread of this name, in ns.
    fn thread_ns(&self, name: &str) -> u64 {
        self.frames.threads_ns.get(name).copied().unwrap_or(0) / FRAMES
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

/// The columns of the table: of the cost of a frame in ns the whole, delivery, all threads of the recorder, and each of
/// ours; what the recorder spends in a second without frames; what copying a frame's bytes costs.
const HEADINGS: &str =
    "recorder\tfile\tinstructions\tbytes\tdelivery\tprogram\treceiver\twriter\tcommand\tidle\tcopy";

/// The threads of canter in the order of their columns, as the kernel names them.
const THREADS: [&str; 3] = ["canter-capture", "canter-write", "canter"];

fn compare() -> ExitCode {
    cable();
    let (alone, mut child) = measure(NOTHING, "true");
    end(&mut child);
    println!("# Cost of a recording\n{HEADINGS}");
    let mut is_complete = true;
    for recorder in chosen(recorders()) {
        sh("rm -f file* f said candump-*");
        let (cost, mut child) = measure(&recorder.command, recorder.ready);
        end(&mut child);
        let Recorder { name, file, count, .. } = recorder;
        let recorded = sh(count);
        if recorded == (WARM_UP + FRAMES).to_string() {
            println!("{name}\t{file}\t{}", cells(&cost, alone.frames.all_ns));
        } else {
            eprintln!("record: {name} {file}: LOST: {recorded} of {} frames recorded", WARM_UP + FRAMES);
            is_complete &= name != "canter";
        }
    }
    sh(&format!("ip netns delete {SPACE}; umount -l {FOLDER}"));
    if is_complete { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The numbers of a recorder's line. What the threads of other programs are called is theirs.
fn cells(cost: &Cost, alone_ns: u64) -> String {
    let all_ns = cost.frames.all_ns.saturating_sub(alone_ns);
    let bytes: f64 = sh("cat $(ls file* candump-* 2>/dev/null | grep -v account) | wc -c").parse().unwrap();
    let bytes = bytes / (WARM_UP + FRAMES) as f64;
    let delivery_ns = all_ns.saturating_sub(cost.frames.recorder_ns()) / FRAMES;
    let threads = THREADS.map(|name| cost.thread_ns(name).to_string()).join("\t");
    let (all_ns, program_ns, idle_ns) = (all_ns / FRAMES, cost.recorder_ns(), cost.idle_ns);
    let copy_ns = copy_ns(bytes.round() as usize);
    format!("{all_ns}\t{bytes:.1}\t{delivery_ns}\t{program_ns}\t{threads}\t{idle_ns}\t{copy_ns}")
}

/// What copying this many bytes costs, in ns.
fn copy_ns(bytes: usize) -> u64 {
    const COPIES: u64 = 10_000;
    let (from, mut to) = (vec![0x55_u8; bytes], vec![0; bytes]);
    let begin_ns = clock::monotonic_ns();
    for _ in 0..COPIES {
        black_box(&mut to).copy_from_slice(black_box(&from));
    }
    (clock::monotonic_ns() - begin_ns) / COPIES
}

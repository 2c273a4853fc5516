//@ machine: lab
//@ commands: none
//@ also: all --kernel 6.1
//@ parts: 2
//! `canter rules` and `canter gateway --rules` in the lab: the kernel's gateway and ours do the same with the same
//! file, and what is applied is what is there.

mod random;

use crate::testbed::{DEADLINE, Ended, Gateway, Virtual, alone, canter, counts, output, soak_frames, start};
use canter_io::{
    Batch, Frame, Interface,
    method::{Receive, ReceiveMethod, ReceiveOptions, Transmit, TransmitMethod, TransmitOptions},
};
use random::Random;
use std::{
    io::Write as _,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};
use tempfile::NamedTempFile;

/// Time without a frame after which no more frames come.
const QUIET: Duration = Duration::from_millis(150);

pub fn file(text: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

pub fn rules(arguments: &[&str]) -> Ended {
    canter(&[&["rules"], arguments].concat()).ended(DEADLINE)
}

fn apply(text: &str) -> Ended {
    let file = file(text);
    rules(&["apply", file.path().to_str().unwrap()])
}

/// The jobs of can-gw as a rule file, without the counters.
fn listed() -> String {
    let ended = rules(&["list"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended.stdout.lines().filter(|line| !line.starts_with('#')).map(|line| format!("{line}\n")).collect()
}

/// A receiver of an interface's frames.
struct Listener(Box<dyn Receive>);

impl Listener {
    fn open(interface: &str) -> Self {
        let method: ReceiveMethod = "recvmmsg/spin".parse().unwrap();
        let options = ReceiveOptions { queue_frames: Some(20_000), ..ReceiveOptions::default() };
        Self(method.open(&Interface::find(interface).unwrap(), &options).unwrap())
    }

    /// All frames, after no more come.
    fn frames(&mut self) -> Vec<Frame> {
        let mut batch = Batch::new(256);
        let (mut frames, mut last) = (Vec::new(), Instant::now());
        while last.elapsed() < QUIET {
            batch.clear();
            if self.0.receive(&mut batch).unwrap() > 0 {
                frames.extend_from_slice(batch.frames());
                last = Instant::now();
            } else {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        assert_eq!(self.0.drops().unwrap(), 0, "the test's own queue overran");
        frames
    }
}

/// A sender to an interface.
struct Sender(Box<dyn Transmit>);

impl Sender {
    fn open(interface: &str) -> Self {
        let method: TransmitMethod = "write".parse().unwrap();
        Self(method.open(&Interface::find(interface).unwrap(), &TransmitOptions::default()).unwrap())
    }

    fn send(&mut self, frames: &[Frame]) {
        for frame in frames {
            while self.0.transmit(std::slice::from_ref(frame)).unwrap() == 0 {
                std::thread::sleep(Duration::from_micros(100));
            }
        }
    }
}

fn send(interface: &str, frames: &[Frame]) {
    Sender::open(interface).send(frames);
}

/// The number of rule files to try.
fn cases() -> u64 {
    std::env::var("CASES").ok().and_then(|count| count.parse().ok()).unwrap_or(24)
}

/// Every bit that a receiver can see.
fn visible(frame: &Frame) -> (u32, u8, u8, u8, Vec<u8>) {
    let data = frame.data[..usize::from(frame.len)].to_vec();
    (frame.can_id, frame.len, frame.flags, frame.len8_dlc, data)
}

#[test]
#[ignore = "needs the lab: make test ONLY=rules"]
fn the_kernel_and_the_engine_make_the_same_frames_of_the_same_rules() {
    let _alone = alone();
    let _cables = Virtual::cables(72);
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let mut compared = 0;
    for case in 0..cases() {
        let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ ((seed << 32) | (case + 1)));
        let (text, ordered) = random.route();
        let frames: Vec<_> = (0..100).map(|_| random.frame()).collect();
        let mut listener = Listener::open("vx3");

        let applied = apply(&text);
        assert_eq!(applied.code, Some(0), "case {case}: {applied:?}\n{text}");
        send("vx0", &frames);
        let mut kernel_frames: Vec<_> = listener.frames().iter().map(visible).collect();
        assert_eq!(rules(&["clear"]).code, Some(0));

        let rule_file = file(&text);
        let gateway =
            Gateway::start("vx1", "vx2", "read+write", &["--rules", rule_file.path().to_str().unwrap()]);
        send("vx0", &frames);
        let ended = gateway.stop("TERM"); // which sends what has come before it ends
        let mut engine_frames: Vec<_> = listener.frames().iter().map(visible).collect();
        assert_eq!(ended.json()["counts"]["received"], frames.len(), "{ended:?}");

        if !ordered {
            // The kernel has an order of its own among the copies of a frame.
            kernel_frames.sort();
            engine_frames.sort();
        }
        compared += kernel_frames.len();
        assert_eq!(engine_frames, kernel_frames, "case {case} of seed {seed}:\n{text}");
    }
    println!("{compared} forwarded frames compared");
    assert!(compared as u64 > 30 * cases(), "{compared}: the rules let too little through to prove anything");
}

const TWO_RULES: &str = r#"
[[route]]
from = "vx1"
to = "vx2"
match = "all"
[[route.rule]]
frames = "classic"
filter = ["123"]
set = { id = "456" }
xor-checksum = { from = 0, to = 6, result = 7, init = 0xA5 }
[[route.rule]]
filter = ["200-2FF"]
hops = 1
"#;

#[test]
#[ignore = "needs the lab: make test ONLY=rules"]
fn what_is_listed_is_what_was_applied_and_applies_without_a_change() {
    let _alone = alone();
    let _cables = Virtual::cables(72);
    let applied = apply(TWO_RULES);
    assert_eq!(applied.code, Some(0), "{applied:?}");
    assert!(
        applied.stderr.contains("0 jobs unchanged, 3 to add, 0 to change in place, 0 to delete"),
        "{applied:?}"
    );
    send("vx0", &["123#11".parse().unwrap(), "210##1".parse().unwrap(), "300#".parse().unwrap()]);
    let list = rules(&["list"]);
    assert!(list.stdout.contains("# 1 handled, 0 dropped, 0 deleted\n"), "{list:?}");
    assert!(list.stdout.contains("# fd: 1 handled, 0 dropped, 0 deleted\n"), "{list:?}");
    let again = file(&list.stdout);
    let path = again.path().to_str().unwrap();
    let unchanged = rules(&["diff", path]);
    assert_eq!((unchanged.code, unchanged.stdout.as_str()), (Some(0), ""), "{unchanged:?}");
    assert!(rules(&["apply", path]).stderr.contains("3 jobs unchanged, 0 to add"), "nothing to do");

    // One rule less, one changed in place.
    let changed =
        TWO_RULES.replace("\"456\"", "\"457\"").split("[[route.rule]]\nfilter").next().unwrap().to_owned();
    let changed = file(&changed);
    let path = changed.path().to_str().unwrap();
    let differs = rules(&["diff", path]);
    assert_eq!(differs.code, Some(1), "{differs:?}");
    assert!(
        differs.stderr.contains("0 jobs unchanged, 0 to add, 1 to change in place, 2 to delete"),
        "{differs:?}"
    );
    assert!(differs.stdout.lines().all(|line| line.starts_with(['~', '-'])), "{differs:?}");
    assert_eq!(rules(&["apply", path]).code, Some(0));
    assert_eq!(rules(&["diff", path]).code, Some(0));
    assert!(listed().contains("set = { id = \"457\" }"), "{}", listed());
    assert_eq!(rules(&["clear"]).code, Some(0));
    assert_eq!(listed(), "");
}

#[test]
#[ignore = "needs the lab: make test ONLY=rules"]
fn a_file_that_is_refused_in_part_changes_nothing() {
    let _alone = alone();
    let _cables = Virtual::cables(72);
    assert_eq!(apply(TWO_RULES).code, Some(0));
    let before = listed();
    // The kernel refuses more hops than its module was loaded for, which only it knows.
    let hops = TWO_RULES.replace("hops = 1", "hops = 200").replace("\"456\"", "\"457\"");
    let refused = apply(&hops);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(
        refused.complaint().contains("max_hops") && refused.complaint().contains("nothing was changed"),
        "{refused:?}"
    );
    assert_eq!(listed(), before);
    // What can-gw cannot do is said with its place before anything is done.
    let limited = TWO_RULES.replace("hops = 1", "limit = \"100/s\"");
    let refused = apply(&limited);
    assert_eq!(refused.code, Some(4), "{refused:?}");
    assert!(refused.complaint().contains(":11:1: can-gw cannot limit rates"), "{refused:?}");
    assert_eq!(listed(), before);
    let malformed = apply(&TWO_RULES.replace("result = 7", "result = 8"));
    assert_eq!(malformed.code, Some(2), "{malformed:?}");
    assert!(malformed.complaint().contains(":10:45: result: must be -8…7"), "{malformed:?}");
    assert_eq!(listed(), before);
}

#[test]
#[ignore = "needs the lab: make test ONLY=rules"]
fn what_cangw_prints_is_imported_as_the_same_jobs() {
    let _alone = alone();
    let _cables = Virtual::cables(72);
    let fd = format!("SET:FL:000.1.0C.{}", "00".repeat(64));
    for options in [
        &["-e", "-f", "123:C00007FF", "-m", "SET:IL:456.4.0000000000000000", "-x", "0:-2:-1:A5"][..],
        &["-t", "-l", "1", "-f", "12345678~1FFFFFFF"],
        &["-X", "-M", &fd],
    ] {
        output("cangw", &[&["-A", "-s", "vx1", "-d", "vx2"], options].concat());
    }
    let printed = start("cangw", &["-L"]).ended(DEADLINE).stdout;
    let printed = file(&printed);
    let imported = rules(&["import", printed.path().to_str().unwrap()]);
    assert_eq!(imported.code, Some(0), "{imported:?}");
    let imported = file(&imported.stdout);
    let unchanged = rules(&["diff", imported.path().to_str().unwrap()]);
    assert_eq!(unchanged.code, Some(0), "{unchanged:?}\n{}", listed());
}

/// Sends numbered frames while `during` runs; returns how many were sent, and the numbers that came out.
fn numbers_during(during: impl FnOnce()) -> (u32, Vec<u32>) {
    let mut listener = Listener::open("vx3");
    let stop = AtomicBool::new(false);
    let sent = std::thread::scope(|scope| {
        let sender = scope.spawn(|| {
            let (mut sender, mut number) = (Sender::open("vx0"), 0u32);
            while !stop.load(Ordering::Acquire) {
                sender.send(&[format!("123#{number:08X}").parse().unwrap()]);
                number += 1;
                std::thread::sleep(Duration::from_millis(1)); // others are to have the processor, too
            }
            number
        });
        during();
        stop.store(true, Ordering::Release);
        sender.join().unwrap()
    });
    let number = |frame: &Frame| u32::from_be_bytes(frame.data[..4].try_into().unwrap());
    (sent, listener.frames().iter().map(number).collect())
}

#[test]
#[ignore = "needs the lab: make test ONLY=rules"]
fn a_change_loses_no_frame_and_one_in_place_doubles_none() {
    let _alone = alone();
    let _cables = Virtual::cables(16);
    let one = |rule: &str| format!("[[route]]\nfrom = \"vx1\"\nto = \"vx2\"\nframes = \"classic\"\n{rule}\n");
    let change = |a: &str, b: &str| {
        let (a, b) = (file(&one(a)), file(&one(b)));
        let [a, b] = [&a, &b].map(|file| file.path().to_str().unwrap());
        assert_eq!(rules(&["apply", a]).code, Some(0));
        let (sent, came) = numbers_during(|| {
            for path in [b, a].into_iter().cycle().take(6) {
                let applied = rules(&["apply", path]);
                assert_eq!(applied.code, Some(0), "{applied:?}");
            }
        });
        let mut once = came.clone();
        once.dedup();
        assert_eq!(once, (0..sent).collect::<Vec<_>>(), "every frame, in order");
        (sent, came.len() - once.len())
    };
    // Another filter is another job, which is there before the old one is gone.
    let (sent, doubled) = change("filter = [\"123\"]", "filter = [\"120-12F\"]");
    println!("6 changes by adding and deleting: {doubled} of {sent} frames twice");
    // Other modifications take the place of those that are there.
    let (sent, doubled) = change("or = { data = \"0000000001\" }", "or = { data = \"0000000002\" }");
    println!("6 changes in place: {doubled} of {sent} frames twice");
    assert_eq!(doubled, 0);
}

#[test]
#[ignore = "needs the lab: make test ONLY=rules"]
fn new_rules_are_read_on_sighup_and_no_frame_is_lost() {
    let _alone = alone();
    let _cables = Virtual::cables(16);
    let text = |mark: u8| format!("[[rule]]\nor = {{ data = \"00000000{mark:02X}\" }}\n");
    let rule_file = file(&text(1));
    let path = rule_file.path().to_str().unwrap().to_owned();
    let mut gateway = canter(&["gateway", "vx1", "vx2", "--rules", &path, "--json", "-"]);
    gateway.until_it_says("gateway: vx1");
    let (sent, came) = numbers_during(|| {
        for mark in 2..8 {
            std::fs::write(&path, text(mark)).unwrap();
            gateway.signal("HUP");
            std::thread::sleep(Duration::from_millis(30)); // the pace of the changes
        }
    });
    assert_eq!(came, (0..sent).collect::<Vec<_>>());
    // A broken file is said, and the rules stay.
    std::fs::write(&path, "[[rule]]\nor = { dat = \"00\" }\n").unwrap();
    gateway.signal("HUP");
    gateway.until_it_says(":2:8: \"dat\": unknown key (did you mean \"data\"?); the rules stay unchanged");
    gateway.signal("TERM");
    let ended = gateway.ended(DEADLINE);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stderr.matches("read again").count() >= 1, "{ended:?}");
    assert_eq!(counts(&ended)[..2], [u64::from(sent); 2]);
}

/// The frames each way of a long run, unless `make soak` asks for more.
const USUAL: u32 = 5_000;

#[test]
#[ignore = "needs the lab: make test ONLY=rules"]
fn a_long_run_both_ways_accounts_for_every_frame_and_needs_no_more_memory() {
    let _alone = alone();
    let _cables = Virtual::cables(72);
    let mut random = Random(0x5eed);
    let (there, _) = random.route();
    let (back, _) = random.route();
    let there = there.replacen("match", "hops = 1\nmatch", 1);
    let back = back.replacen("from = \"vx1\"\nto = \"vx2\"", "from = \"vx2\"\nto = \"vx1\"\nhops = 1", 1);
    let rule_file = file(&format!("{there}{back}"));
    let path = rule_file.path().to_str().unwrap();
    let mut gateway = canter(&["gateway", "--rules", path, "--queue", "2000", "--json", "-"]);
    gateway.until_it_says("gateway: vx1");
    let (mut far, mut near) = (Listener::open("vx3"), Listener::open("vx0"));
    let (mut to_near, mut to_far) = (Sender::open("vx0"), Sender::open("vx3"));
    let (mut sent, mut came, mut early_kib) = (0, 0, 0);
    let rounds = soak_frames(USUAL).div_ceil(500);
    for round in 0..rounds {
        let frames: Vec<_> = (0..500).map(|_| random.frame()).collect();
        to_near.send(&frames);
        to_far.send(&frames);
        sent += 2 * frames.len();
        came += far.frames().len() + near.frames().len();
        if round == rounds / 10 {
            early_kib = gateway.resident_kib();
        }
    }
    let grown_kib = gateway.resident_kib().saturating_sub(early_kib);
    gateway.signal("TERM");
    let ended = gateway.ended(DEADLINE);
    came += far.frames().len() + near.frames().len();
    let count = |name: &str| ended.json()["counts"][name].as_u64().unwrap();
    assert_eq!(count("received") + count("overrun"), sent as u64, "{ended:?}");
    assert_eq!(
        count("received") + count("copied"),
        count("transmitted") + count("filtered") + count("dropped")
    );
    assert_eq!(count("transmitted"), came as u64, "{ended:?}");
    println!("{sent} frames sent, {came} came out, memory grew by {grown_kib} KiB");
    assert!(grown_kib <= 256, "{grown_kib} KiB more after {sent} frames");
}

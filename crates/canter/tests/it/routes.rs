//@ machine: lab
//@ commands: none
//@ also: all --kernel 6.1
//@ parts: 2
//! `canter gateway` over several routes and under trouble, in the lab: two directions, chains, full outputs, interfaces
//! that come and go.

use crate::testbed::{
    self, Candump, DEADLINE, Gateway, Virtual, alone, canter, cards, counts, eventually, ip, output,
};
use canter_io::{
    Frame, Identifier, Interface,
    method::{TransmitMethod, TransmitOptions, table::PAPER_PAIRS},
};

/// The pairs that work on a driver without NAPI.
fn pairs() -> impl Iterator<Item = &'static str> {
    let works_here = |ours: &&str| !ours.contains("busy-poll") && !ours.contains("canchar");
    PAPER_PAIRS.iter().map(|(_, ours)| *ours).filter(works_here)
}

/// The number of frames that come at once.
const BURST: u16 = 64;

fn burst() -> Vec<Frame> {
    let numbered = |at: u16| Frame::classic(Identifier::Sff(0x100 + at), &at.to_be_bytes()).unwrap();
    (0..BURST).map(numbered).collect()
}

/// Sends all frames in one system call.
fn send_at_once(interface: &str, frames: &[Frame]) {
    let sender: TransmitMethod = "sendmmsg".parse().unwrap();
    let interface = Interface::find(interface).unwrap();
    let mut sender = sender.open(&interface, &TransmitOptions::default()).unwrap();
    assert_eq!(sender.transmit(frames).unwrap(), frames.len());
}

/// Frames of both directions, those of each side with identifiers of its own.
fn two_sides(count: u16) -> [Vec<Frame>; 2] {
    [0x100u16, 0x200].map(|base| {
        let numbered = |at: u16| Frame::classic(Identifier::Sff(base + at), &at.to_be_bytes()).unwrap();
        (0..count).map(numbered).collect()
    })
}

#[test]
#[ignore = "needs the lab: make test ONLY=routes"]
fn two_directions_hand_on_each_frame_once_and_never_echo() {
    two_directions(|interface, method| match interface {
        "can3" => method % 2 == 0,
        "vx1" => method % 2 == 1,
        _ => method % 4 == 0,
    });
}

/// Routes both ways, on the chosen of three kinds of interface by the chosen methods, by their numbers.
pub fn two_directions(chosen: impl Fn(&str, usize) -> bool) {
    let _alone = alone();
    cards();
    let _cables = Virtual::cables(72);
    let _vcan = Virtual::vcan(&["vcan7", "vcan8"], 72);
    let places = [
        ("can3", "can4", "can0", "can2"),
        ("vx1", "vx2", "vx0", "vx3"),
        ("vcan7", "vcan8", "vcan7", "vcan8"),
    ];
    for (a, b, near, far) in places {
        for (number, method) in pairs().chain(["can-gw", "io-uring+io-uring"]).enumerate() {
            let reaches_nobody = a == "vcan7" && method.ends_with("+ring");
            if reaches_nobody || !chosen(a, number) {
                continue;
            }
            let gateway = Gateway::start(a, b, method, &["--both"]);
            let [there, back] = two_sides(10);
            let (at_far, at_near) = (Candump::start(far), Candump::start(near));
            let send_each = |frames: &[Frame], interface: &str| {
                frames.iter().for_each(|frame| {
                    send_at_once(interface, std::slice::from_ref(frame));
                    std::thread::sleep(std::time::Duration::from_millis(1));
                });
            };
            send_each(&there, near);
            send_each(&back, far);
            let texts = |frames: &[Frame]| frames.iter().map(Frame::to_string).collect::<Vec<_>>();
            // On a vcan the far side also hears what it sends itself.
            let expected = if a == "vcan7" { 20 } else { 10 };
            let frames_from = |heard: &[String], side: char| {
                heard.iter().filter(|frame| frame.starts_with(side)).cloned().collect::<Vec<_>>()
            };
            let (at_far, at_near) = (at_far.frames(expected), at_near.frames(expected));
            assert_eq!((at_far.len(), at_near.len()), (expected, expected), "{method} {a} ↔ {b}: an echo");
            assert_eq!(frames_from(&at_far, '1'), texts(&there), "{method} {a} → {b}");
            assert_eq!(frames_from(&at_near, '2'), texts(&back), "{method} {b} → {a}");
            let ended = gateway.stop("TERM");
            // On a vcan each job of can-gw hears what the other has sent, and its hop limit stops it.
            let stopped = if a == "vcan7" && method == "can-gw" { 20 } else { 0 };
            assert_eq!(counts(&ended), [20 + stopped, 20, stopped, 0], "{method} {a} ↔ {b}: {ended:?}");
            assert_eq!(ended.code, Some(0), "{ended:?}");
        }
    }
}

/// A rule file with routes between pairs of interfaces, each with the same line.
fn rule_file(interfaces: &[(String, String)], line: &str) -> tempfile::NamedTempFile {
    let route =
        |(from, to): &(String, String)| format!("[[route]]\nfrom = \"{from}\"\nto = \"{to}\"\n{line}\n");
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), interfaces.iter().map(route).collect::<String>()).unwrap();
    file
}

/// Starts a gateway with all routes of a file.
fn start_by_rules(file: &tempfile::NamedTempFile, options: &[&str]) -> testbed::Running {
    let path = file.path().to_str().unwrap();
    let mut gateway = canter(&[&["gateway", "--json", "-", "--rules", path], options].concat());
    gateway.until_it_says("gateway: ");
    gateway
}

fn ended(gateway: testbed::Running) -> testbed::Ended {
    gateway.signal("TERM");
    gateway.ended(DEADLINE)
}

#[test]
#[ignore = "needs the lab: make test ONLY=routes"]
fn a_chain_of_eight_routes_in_one_process_hands_on_every_frame() {
    let _alone = alone();
    let _cables: Vec<_> = (0..9).map(|at| testbed::cable(&format!("in{at}"), &format!("out{at}"))).collect();
    let hops: Vec<_> = (0..8).map(|at| (format!("out{at}"), format!("in{}", at + 1))).collect();
    let file = rule_file(&hops, "");
    for method in ["read+write", "ring+ring", "can-gw"] {
        let gateway = start_by_rules(&file, &["--method", method]);
        let (routed, [frames, _]) = (Candump::start("out8"), two_sides(20));
        send_at_once("in0", &frames);
        assert_eq!(routed.frames(20), frames.iter().map(Frame::to_string).collect::<Vec<_>>(), "{method}");
        let ended = ended(gateway);
        assert_eq!(counts(&ended), [160, 160, 0, 0], "{ended:?}");
        assert_eq!(ended.json()["routes"].as_array().map(Vec::len), Some(8));
    }
}

#[test]
#[ignore = "needs the lab: make test ONLY=routes"]
fn can_gw_hands_a_frame_on_as_often_as_its_hop_limit_says() {
    let _alone = alone();
    let names: Vec<_> = (0..8).map(|at| format!("vcan1{at}")).collect();
    let _vcan = Virtual::vcan(&names.iter().map(String::as_str).collect::<Vec<_>>(), 16);
    let hops: Vec<_> = names.windows(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect();
    for limit in 1..=6 {
        output("rmmod", &["can-gw"]);
        output("modprobe", &["can-gw", "max_hops=6"]);
        let file = rule_file(&hops, &format!("frames = \"classic\"\nhops = {limit}\necho = true"));
        let gateway = start_by_rules(&file, &["--method", "can-gw"]);
        let last = Candump::start(&names[limit]);
        let beyond = Candump::start(&names[limit + 1]);
        send_at_once(&names[0], &two_sides(3)[0]);
        assert_eq!((last.frames(3).len(), beyond.frames(0).len()), (3, 0), "hops = {limit}");
        ended(gateway);
    }
    output("rmmod", &["can-gw"]);
    output("modprobe", &["can-gw"]);
}

#[test]
#[ignore = "needs the lab: make test ONLY=routes"]
fn a_full_output_costs_the_frames_that_its_policy_says() {
    let _alone = alone();
    let _cables = Virtual::cables(16);
    ip("link set vx2 txqueuelen 10");
    let tbf = "qdisc add dev vx2 root tbf rate 16kbit burst 160 limit 160"; // 8 ms a frame
    output("tc", &tbf.split(' ').collect::<Vec<_>>());
    // The most urgent come last.
    let frames: Vec<_> = burst().into_iter().rev().collect();
    for method in ["read+write", "recvmmsg+sendmmsg", "ring+ring"] {
        for (policy, priority) in
            [("drop-new", false), ("drop-old", false), ("drop-new", true), ("drop-old", true)]
        {
            let options = ["--backlog", "8", "--when-full", policy, "--priority"];
            let options = if priority { &options[..] } else { &options[..4] };
            let gateway = Gateway::start("vx1", "vx2", method, options);
            let routed = Candump::start("vx3");
            send_at_once("vx0", &frames);
            gateway.until_idle();
            let ended = gateway.stop("TERM");
            let [received, transmitted, _, dropped] = counts(&ended);
            let came = routed.frames(transmitted as usize); // some are still in the interface's queue
            assert_eq!((received, transmitted), (64, came.len() as u64), "{ended:?}");
            if method != "ring+ring" {
                assert!(dropped > 0, "{ended:?}"); // a ring holds 512 itself
                assert_eq!(ended.code, Some(3), "{ended:?}");
            }
            assert_eq!(ended.json()["counts"]["drops"]["no_room"], dropped, "{ended:?}");
            let last = frames[63].to_string();
            if method == "ring+ring" {
                continue; // it may hold the last one still when it is told to end
            }
            if policy == "drop-old" || priority {
                assert!(came.contains(&last), "{method} {options:?}: {came:?}");
            } else if dropped > 0 {
                assert!(!came.contains(&last), "{method} {options:?}: {came:?}");
            }
        }
    }
}

#[test]
#[ignore = "needs the lab: make test ONLY=routes"]
fn interfaces_that_are_missing_are_waited_for_and_their_loss_is_survived() {
    let _alone = alone();
    for method in ["read+write", "ring/spin+write", "io-uring+io-uring"] {
        let arguments = [
            "gateway",
            "vx1",
            "vx2",
            "--wait-for-interface",
            "--json",
            "-",
            "--stats",
            "50ms",
            "--method",
            method,
        ];
        let mut gateway = canter(&arguments);
        gateway.until_it_says("vx1: find: no such device");
        for round in 1..=2 {
            let cables = Virtual::cables(16);
            eventually("it routes", || gateway.said().matches("vx1 → vx2: routing").count() == round);
            let routed = Candump::start("vx3");
            send_at_once("vx0", &two_sides(5)[0]);
            assert_eq!(routed.frames(5).len(), 5, "{method}");
            drop(cables);
            eventually("it says so", || gateway.said().matches("waiting for it").count() == round);
        }
        let ended = ended(gateway);
        assert_eq!(counts(&ended)[..2], [10, 10], "{method}: {ended:?}");
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(ended.stderr.contains("gateway: vx1 → vx2: 5 received = 5 transmitted"), "{ended:?}");
    }
}

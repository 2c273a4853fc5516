//@ machine: lab
//@ commands: capture
//@ also: all --kernel 6.1
//@ parts: 3
//! `canter gateway` in the lab, with can-utils on both sides: what goes in comes out once, in order, unchanged.

use crate::testbed::{
    Candump, DEADLINE, Gateway, Virtual, WAITS, alone, canter, cards, cards_up, counts, eventually, ip,
    output, play, program, start,
};
use canter_io::{
    Frame, Identifier, Interface,
    method::{TransmitMethod, TransmitOptions, table::PAPER_PAIRS},
};

/// The pairs that work on a driver without NAPI, by their names in the 2014 paper and by ours; and one of today's.
fn pairs() -> impl Iterator<Item = (&'static str, &'static str)> {
    let works_here = |(_, ours): &(&str, &str)| !ours.contains("busy-poll") && !ours.contains("canchar");
    PAPER_PAIRS.iter().copied().filter(works_here).chain([("io-uring+io-uring", "io-uring+io-uring")])
}

#[test]
#[ignore = "needs the lab: make test ONLY=gateway"]
fn every_pair_hands_on_every_frame_once_in_order_and_unchanged() {
    let _alone = alone();
    cards();
    let signals = ["INT", "TERM"].into_iter().cycle();
    for ((paper, ours), signal) in pairs().chain([("kernel", "can-gw")]).zip(signals) {
        let gateway = Gateway::start("can3", "can4", paper, &[]);
        let (sent, routed) = (Candump::start("can1"), Candump::start("can2"));
        let generate = ["-g", "1", "-n", "100", "-I", "i", "-L", "i", "-D", "r"];
        output("cangen", &[&["can0"], &generate[..]].concat());
        output("cangen", &[&["can0", "-e"], &generate[..]].concat());
        output("cansend", &["can0", "7FF#"]);
        let (sent, routed) = (sent.frames(201), routed.frames(201));
        let ended = gateway.stop(signal);
        assert_eq!(sent.len(), 201, "{ours}");
        assert_eq!(routed, sent, "{ours}");
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert_eq!(ended.json()["method"], ours);
        assert_eq!(counts(&ended), [201, 201, 0, 0], "{ours}");
    }
}

#[test]
#[ignore = "needs the lab: make test ONLY=gateway"]
fn an_idle_gateway_ends_at_once_however_it_waits() {
    let _alone = alone();
    cards();
    for method in WAITS {
        for signal in ["INT", "TERM"] {
            let ended = Gateway::start("can3", "can4", method, &[]).stop(signal);
            assert_eq!(ended.code, Some(0), "{ended:?}");
            assert_eq!(counts(&ended), [0; 4], "{method}");
            assert_eq!(ended.stderr.lines().count(), 2, "announced and counted: {ended:?}");
        }
    }
}

/// Identifiers around those that the filters name, of both lengths.
const IDENTIFIERS: &[&str] =
    &["123", "122", "000", "7FF", "323", "400", "410", "4FF", "00000123", "12345678", "1FFFFFFF", "00000400"];

#[test]
#[ignore = "needs the lab: make test ONLY=gateway"]
fn a_filter_lets_through_what_candump_lets_through() {
    filters_let_through(|filter, method| match method {
        "read+write" => filter % 4 == 0,
        "can-gw" => filter % 4 == 2,
        _ => true,
    });
}

/// Routes through the chosen filters, by their numbers, by the chosen methods.
pub fn filters_let_through(chosen: impl Fn(usize, &str) -> bool) {
    let _alone = alone();
    cards();
    let filters = [
        "",
        "123:7FF",
        "123:C00007FF",
        "12345678:DFFFFFFF",
        "123~7FF",
        "400:700,123:7FF",
        "000:000",
        "100:100,020:020,J",
    ];
    let frames: Vec<String> = (0..36).map(|at| format!("{}#{at:02X}", IDENTIFIERS[at % 12])).collect();
    for method in ["read+write", "ring/spin+write", "can-gw"] {
        for (number, filter) in filters.into_iter().enumerate() {
            let of_two = method == "can-gw" && filter.contains(','); // one filter a job
            if of_two || !chosen(number, method) {
                continue;
            }
            let (wanted, options) = match filter {
                "" => ("can1".to_owned(), vec![]),
                _ => (format!("can1,{filter}"), vec!["--filter", filter]),
            };
            let gateway = Gateway::start("can3", "can4", method, &options);
            let (all, wanted, routed) =
                (Candump::start("can1"), Candump::start(&wanted), Candump::start("can2"));
            play(&frames, "can0", 1000);
            assert_eq!(all.frames(frames.len()), frames);
            let wanted = wanted.frames(0);
            assert_eq!(routed.frames(wanted.len()), wanted, "{method} {filter}");
            let ended = gateway.stop("TERM");
            assert_eq!(ended.code, Some(0), "{ended:?}");
            let passed = wanted.len() as u64;
            assert_eq!(counts(&ended)[..2], [passed, passed], "{method} {filter}");
        }
    }
}

/// What only an FD interface carries, and what QEMU's SJA1000 cannot.
fn mixed_frames() -> Vec<String> {
    let byte = |at: usize| format!("{:02X}", at as u8);
    let mut frames = Vec::new();
    for len in 0..=8 {
        frames.push(format!("{:03X}#{}", 0x100 + len, (0..len).map(byte).collect::<String>()));
        frames.push(format!(
            "{:03X}#R{}",
            0x200 + len,
            if len == 0 { String::new() } else { len.to_string() }
        ));
        frames.push(format!(
            "{:08X}#R{}",
            0x1234_5600 + len,
            if len == 0 { String::new() } else { len.to_string() }
        ));
    }
    for (at, len) in [0, 1, 8, 12, 16, 20, 24, 32, 48, 64].into_iter().enumerate() {
        let data: String = (0..len).map(byte).collect();
        frames.push(format!("{:03X}##{}{data}", 0x300 + len, at % 4)); // flags: none, BRS, ESI, both
        frames.push(format!("{:08X}##{}{data}", 0x1ABC_0000 + len, 3 - at % 4));
        frames.push(format!("{:03X}#{:02X}", 0x400 + at, at));
    }
    frames
}

#[test]
#[ignore = "needs the lab: make test ONLY=gateway"]
fn fd_and_remote_frames_keep_their_flags_and_their_order() {
    let _alone = alone();
    let _cables = Virtual::cables(72);
    let frames = mixed_frames();
    let methods =
        ["read+write", "recvmmsg+sendmmsg", "ring+ring", "ring/spin+write", "read/spin+ring", "can-gw"];
    for method in methods {
        let gateway = Gateway::start("vx1", "vx2", method, &[]);
        let (sent, routed) = (Candump::start("vx1"), Candump::start("vx3"));
        play(&frames, "vx0", 500);
        let (sent, routed) = (sent.frames(frames.len()), routed.frames(frames.len()));
        let ended = gateway.stop("INT");
        assert_eq!(sent.len(), frames.len());
        assert_eq!(routed, sent, "{method}");
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert_eq!(counts(&ended)[1], frames.len() as u64, "{method}");
    }
}

#[test]
#[ignore = "needs the lab: make test ONLY=gateway"]
fn an_fd_frame_that_the_output_cannot_carry_is_dropped_and_the_others_pass() {
    let _alone = alone();
    let _cables = Virtual::cables(72);
    ip("link set vx2 down");
    ip("link set vx2 mtu 16");
    ip("link set vx2 up");
    let methods = ["read+write", "read/poll+write", "recvmmsg+sendmmsg", "ring+ring", "can-gw"];
    for method in methods {
        let gateway = Gateway::start("vx1", "vx2", method, &[]);
        let routed = Candump::start("vx3");
        play(&["100#01", "101##102030405", "102#0304", "103##0", "104#"], "vx0", 500);
        assert_eq!(routed.frames(3), ["100#01", "102#0304", "104#"], "{method}");
        let ended = gateway.stop("INT");
        if method == "can-gw" {
            assert_eq!(counts(&ended), [3, 3, 0, 0], "no job takes FD frames there: {ended:?}");
        } else {
            assert_eq!(counts(&ended), [5, 3, 0, 2], "{method}");
            assert_eq!(ended.code, Some(3), "{ended:?}");
        }
    }
}

#[test]
#[ignore = "needs the lab: make test ONLY=gateway"]
fn a_vcan_routes_to_a_vcan_whose_local_sockets_hear_it() {
    let _alone = alone();
    let _vcan = Virtual::vcan(&["vcan7", "vcan8"], 72);
    let frames = ["123#11", "12345678#R", "124##3AABB"];
    for method in ["read+write", "recvmmsg/spin+sendmmsg", "ring+write", "can-gw"] {
        let gateway = Gateway::start("vcan7", "vcan8", method, &[]);
        let (sent, routed) = (Candump::start("vcan7"), Candump::start("vcan8"));
        play(&frames, "vcan7", 1000);
        let (sent, routed) = (sent.frames(3), routed.frames(3));
        assert_eq!(sent.len(), 3);
        assert_eq!(routed, sent, "{method}");
        assert_eq!(gateway.stop("TERM").code, Some(0), "{method}");
    }
    let refused = canter(&["gateway", "vcan7", "vcan8", "--method", "ring+ring"]).ended(DEADLINE);
    assert_eq!(refused.code, Some(4), "{refused:?}");
    assert_eq!(
        refused.complaint(),
        "vcan8: ring: what a packet socket sends reaches nobody on a vcan (use write, or a vxcan pair)"
    );
}

/// A thread that reads controllers, rules and counts must not delay a frame.
#[test]
#[ignore = "needs the lab: make test ONLY=gateway"]
fn under_a_realtime_priority_only_what_is_in_a_frames_way_has_it() {
    let _alone = alone();
    cards();
    let recorded = tempfile::tempdir().unwrap();
    let file = recorded.path().join("a.log").display().to_string();
    let commands = [
        (vec!["gateway", "can3", "can4", "--both", "--method", "read+write", "--stats", "1s"], "gateway"),
        (vec!["capture", "can0", "-o", &file], "canter-capture"),
    ];
    for (words, way) in commands {
        let mut running = canter(&[&words[..], &["--realtime", "50"]].concat());
        running.until_it_says("Ctrl-C ends it");
        let others = |(name, priority): &(String, u8)| name == way || *priority <= 1;
        eventually("threads beside the way stand back", || running.priorities().iter().all(others));
        let priorities = running.priorities();
        let in_the_way: Vec<_> = priorities.iter().filter(|(name, _)| name == way).collect();
        assert!(
            !in_the_way.is_empty() && in_the_way.iter().all(|(_, priority)| *priority == 50),
            "{priorities:?}"
        );
        assert!(priorities.len() > in_the_way.len() + 1, "there are others: {priorities:?}");
        running.signal("INT");
        assert_eq!(running.ended(DEADLINE).code, Some(0), "{words:?}");
    }
}

#[test]
#[ignore = "needs the lab: make test ONLY=gateway"]
fn can_gw_has_its_jobs_in_the_kernel_while_it_runs_and_no_longer() {
    let _alone = alone();
    let jobs = || {
        let list = start("cangw", &["-L"]).ended(DEADLINE); // its exit code says nothing
        list.stdout.lines().filter(|line| line.starts_with("cangw -A")).count()
    };
    for (mtu, expected) in [(16, 1), (72, 2)] {
        let _cables = Virtual::cables(mtu);
        assert_eq!(jobs(), 0);
        let gateway = Gateway::start("vx1", "vx2", "can-gw", &["--filter", "123:7FF"]);
        assert_eq!(jobs(), expected, "mtu {mtu}");
        let second =
            canter(&["gateway", "vx1", "vx2", "--method", "can-gw", "--filter", "123:7FF"]).ended(DEADLINE);
        assert_eq!(second.code, Some(1), "{second:?}");
        assert_eq!(
            second.complaint(),
            "vx1 → vx2: add can-gw job: the kernel has this job already (cangw -L lists jobs, cangw -F deletes all)"
        );
        assert_eq!(jobs(), expected, "the refused one took none along");
        assert_eq!(gateway.stop("INT").code, Some(0));
        assert_eq!(jobs(), 0);
    }
}

/// The number of frames that come at once.
const BURST: u16 = 64;

fn burst() -> Vec<Frame> {
    let numbered = |at: u16| Frame::classic(Identifier::Sff(0x100 + at), &at.to_be_bytes()).unwrap();
    (0..BURST).map(numbered).collect()
}

fn burst_text() -> Vec<String> {
    (0..BURST).map(|at| format!("{:03X}#{at:04X}", 0x100 + at)).collect()
}

/// Sends all frames in one system call.
fn send_at_once(interface: &str, frames: &[Frame]) {
    let sender: TransmitMethod = "sendmmsg".parse().unwrap();
    let interface = Interface::find(interface).unwrap();
    let mut sender = sender.open(&interface, &TransmitOptions::default()).unwrap();
    assert_eq!(sender.transmit(frames).unwrap(), frames.len());
}

/// An output of half a millisecond a frame whose queue holds ten.
fn slow_output() -> Virtual {
    let cables = Virtual::cables(16);
    ip("link set vx2 txqueuelen 10");
    let tbf = "qdisc add dev vx2 root tbf rate 256kbit burst 160 limit 160";
    output("tc", &tbf.split(' ').collect::<Vec<_>>());
    cables
}

#[test]
#[ignore = "needs the lab: make test ONLY=gateway"]
fn a_burst_into_a_slow_output_waits_in_the_gateway_and_nothing_is_lost() {
    let _alone = alone();
    let _cables = slow_output();
    for (_, method) in pairs() {
        let gateway = Gateway::start("vx1", "vx2", method, &[]);
        let routed = Candump::start("vx3");
        send_at_once("vx0", &burst());
        assert_eq!(routed.frames(BURST.into()), burst_text(), "{method}");
        let ended = gateway.stop("INT");
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert_eq!(counts(&ended), [64, 64, 0, 0], "{method}");
    }
}

#[test]
#[ignore = "needs the lab: make test ONLY=gateway"]
fn can_gw_cannot_wait_for_a_slow_output_and_counts_what_it_drops() {
    let _alone = alone();
    let _cables = slow_output();
    let gateway = Gateway::start("vx1", "vx2", "can-gw", &[]);
    let routed = Candump::start("vx3");
    send_at_once("vx0", &burst());
    let passed = routed.frames(1).len() as u64;
    let ended = gateway.stop("INT");
    assert!(passed < 64, "the queue holds ten");
    assert_eq!(counts(&ended), [64, passed, 0, 64 - passed]);
    assert_eq!(ended.code, Some(3), "{ended:?}");
}

#[test]
#[ignore = "needs the lab: make test ONLY=gateway"]
fn a_gateway_stopped_while_its_output_is_stuck_counts_what_it_could_not_send() {
    let _alone = alone();
    let _cables = slow_output();
    output(
        "tc",
        &"qdisc replace dev vx2 root tbf rate 8bit burst 160 limit 160".split(' ').collect::<Vec<_>>(),
    );
    for (_, method) in pairs() {
        let gateway = Gateway::start("vx1", "vx2", method, &[]);
        send_at_once("vx0", &burst());
        eventually("the output's queue is full", || {
            !output("tc", &["-s", "qdisc", "show", "dev", "vx2"]).contains("backlog 0b 0p")
        });
        let ended = gateway.stop("TERM");
        let [received, transmitted, _, dropped] = counts(&ended);
        assert!(received > 0 && transmitted < 64 && dropped > 0, "{ended:?}");
        assert_eq!(ended.code, Some(3), "{ended:?}");
    }
}

#[test]
#[ignore = "needs the lab: make test ONLY=gateway"]
fn frames_that_the_gateways_own_queue_lost_are_counted() {
    let _alone = alone();
    let _cables = slow_output();
    for method in ["read+write", "recvmmsg+sendmmsg", "ring+write"] {
        let gateway = Gateway::start("vx1", "vx2", method, &["--queue", "8", "--batch", "8"]);
        let routed = Candump::start("vx3");
        for _ in 0..4 {
            send_at_once("vx0", &burst());
        }
        let passed = routed.frames(8).len() as u64;
        let ended = gateway.stop("INT");
        let [received, transmitted, ..] = counts(&ended);
        let overrun = ended.json()["counts"]["overrun"].as_u64().unwrap();
        assert_eq!((received, transmitted), (passed, passed), "{ended:?}");
        assert_eq!(received + overrun, 256, "{ended:?}");
        assert_eq!(ended.code, Some(3), "{ended:?}");
    }
}

#[test]
#[ignore = "needs the lab: make test ONLY=gateway"]
fn error_frames_go_to_virtual_buses_and_never_onto_a_real_one() {
    let _alone = alone();
    cards_up(&["can3", "can4"]);
    let _cables = Virtual::cables(16);
    let refused = start(program(), &["gateway", "vx1", "can4", "--filter", "#1FFFFFFF"]).ended(DEADLINE);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.complaint().starts_with("can4: error frames cannot be sent on a bus"), "{refused:?}");
    let candump = Candump::start("vx3,0:0,#FFFFFFFF");
    let gateway = Gateway::start("vx1", "vx2", "read+write", &["--filter", "#1FFFFFFF"]);
    output("cansend", &["vx0", "20000004#0004000000000000"]);
    assert_eq!(candump.frames(1), ["20000004#0004000000000000"]);
    gateway.stop("TERM");
}

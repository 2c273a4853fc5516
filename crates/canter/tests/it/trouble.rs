//@ machine: lab
//@ commands: analyze latency methods wire
//! What goes wrong, in the lab: one line that names the thing and the way out, and the right exit code, soon.

use crate::testbed::{
    self, Candump, DEADLINE, Ended, Gateway, PROMPT, Running, Virtual, WAITS, alone, canter, cards, counts,
    eventually, exists, ip, output, start,
};
use canter_io::Interface;
use std::time::Duration;

/// A command that is refused.
struct Case {
    command: &'static str,
    code: i32,
    /// What the line must have, in this order.
    parts: &'static [&'static str],
}

const fn case(command: &'static str, code: i32, parts: &'static [&'static str]) -> Case {
    Case { command, code, parts }
}

#[track_caller]
pub fn has_in_order(text: &str, parts: &[&str], ended: &Ended) {
    let mut rest = text;
    for part in parts {
        let Some((_, after)) = rest.split_once(part) else { panic!("no {part:?} in its place: {ended:?}") };
        rest = after;
    }
}

#[track_caller]
fn refused(running: Running, code: i32, parts: &[&str]) {
    let ended = running.ended(DEADLINE);
    assert_eq!(ended.code, Some(code), "{ended:?}");
    assert_eq!(ended.stdout, "", "{ended:?}");
    has_in_order(ended.complaint(), parts, &ended);
    assert!(!ended.stderr.contains("os error"), "the kernel's number is no help: {ended:?}");
}

pub fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// vcan7 is up and classic, vcan8 up and for FD, vcan9 down; can0…can4 are up.
const REFUSED: &[Case] = &[
    case(
        "gateway can9 can4",
        1,
        &["can9: find: no such device (CAN interfaces: can0, can1, can2, ", "vcan7"],
    ),
    case("gateway can3 can9", 1, &["can9: find: no such device (CAN interfaces: can0"]),
    case("methods -i can9", 1, &["can9: find: no such device (CAN interfaces: can0"]),
    case("syscalls -i can9", 1, &["can9: find: no such device (CAN interfaces: can0"]),
    case("latency --send can0 --routed can9", 1, &["can9: find: no such device (CAN interfaces: can0"]),
    case("gateway lo can4", 2, &["lo: find: not a CAN interface (CAN interfaces: can0"]),
    case("latency --send can0 --direct lo --routed can2", 2, &["lo: find: not a CAN interface"]),
    case("gateway vcan9 can4", 1, &["vcan9: is down (ip link set vcan9 up)"]),
    case("gateway can3 vcan9", 1, &["vcan9: is down (ip link set vcan9 up)"]),
    case("latency --send vcan9 --routed can2", 1, &["vcan9: is down (ip link set vcan9 up)"]),
    case("syscalls -i vcan9", 1, &["vcan9: is down (ip link set vcan9 up)"]),
    case("syscalls -i can3", 2, &["can3: is no virtual interface"]),
    case(
        "gateway can3 can4 --method read/busy-poll+write",
        4,
        &["can3: SO_BUSY_POLL: has no effect on can3"],
    ),
    case("gateway can3 can4 --method readbusy-write", 4, &["can3: SO_BUSY_POLL: has no effect on can3"]),
    case("gateway vcan7 vcan8 --method ring+ring", 4, &["vcan8: ring: ", "(use write, or a vxcan pair)"]),
    case("gateway can3 can4 --method sim+sim", 4, &["can3: ", "sim"]),
    case(
        "gateway can3 can4 --method can-gw --filter 123:7FF,200:700",
        4,
        &["can-gw: ", "one filter", "user-space pair"],
    ),
    case(
        "latency --send vcan7 --routed vcan8 --fd",
        4,
        &["vcan7: cannot carry FD frames (ip link set vcan7 mtu 72"],
    ),
    case("latency --send can0 --routed can2 --fd", 4, &["can0: cannot carry FD frames ("]),
    case("latency --send can0 --routed can2 --len 1", 2, &["--len 1: must be at least 2"]),
    case("latency --send can0 --routed can2 --len 9", 2, &["123, 9 bytes: "]),
    case("latency --send can0 --routed can2 --id 800", 2, &["800"]),
    case("latency --send can0 --routed can2 --id 20000000", 2, &["20000000"]),
    case("latency --send can0 --routed can2 --id xyz", 2, &["--id xyz: is not a hexadecimal number"]),
    case("latency --send vcan8 --routed can0 --fd --len 9", 2, &["9 bytes"]),
    case("latency --send can0 --routed can0", 2, &["can0", "--null"]),
    case("latency --send can0 --direct can1 --routed can1", 2, &["can1", "--null"]),
    case(
        "latency --send can0 --direct can1 --routed can3 --count 20",
        4,
        &["can3: has the frames before a gateway could have sent them (is it on the bus of can1?", "--null"],
    ),
    case("latency --send can0 --routed can3 --count 20", 4, &["can3: has the frames", "the bus of can0?"]),
    case("syscalls --frames 0", 2, &["--frames, --batch and --queue must be at least 1"]),
    case("syscalls --frames 300000", 2, &["--frames: at most 200000"]),
    case(
        "syscalls --methods read,nap",
        2,
        &["nap: no such method (canter methods lists them; read(2) and write(2) are the plain calls)"],
    ),
    case(
        "syscalls --json /nowhere/result.json",
        1,
        &["/nowhere/result.json: write: no such file or directory"],
    ),
    case(
        "latency --send can0 --routed can2 --json /nowhere/result.json",
        1,
        &["/nowhere/result.json: write: no such file"],
    ),
    case("gateway can3 can4 --json /nowhere/result.json", 1, &["/nowhere/result.json: write: no such file"]),
    case("gateway can3 can4 --json /tmp", 1, &["/tmp: write: is a directory"]),
    case("methods --json /nowhere/result.json", 1, &["/nowhere/result.json: write: no such file"]),
    case("gateway can3 can4 --cpu 99", 4, &["--cpu 99: ", "(nproc prints the number of processors)"]),
    case(
        "latency --send can0 --routed can2 --cpu 5000",
        4,
        &["--cpu 5000: ", "(nproc prints the number of processors)"],
    ),
    case(
        "study inside 2014-fig9.9",
        2,
        &["2014-fig9.9: no such study (there are 2010-bursts, 2010-bursts-canchar, "],
    ),
    case("report /nowhere/it.json", 1, &["/nowhere/it.json: read: no such file or directory"]),
    case(
        "study run 2014-fig9.9",
        2,
        &["2014-fig9.9: no such study (there are 2010-bursts, 2010-bursts-canchar, "],
    ),
];

#[test]
#[ignore = "needs the lab: make test ONLY=trouble"]
fn what_cannot_be_done_is_refused_in_one_line() {
    let _alone = alone();
    cards();
    let _classic = Virtual::vcan(&["vcan7", "vcan9"], 16);
    let _fd = Virtual::vcan(&["vcan8"], 72);
    ip("link set vcan9 down");
    for Case { command, code, parts } in REFUSED {
        refused(canter(&words(command)), *code, parts);
    }
}

#[test]
#[ignore = "needs the lab: make test ONLY=trouble"]
fn a_card_that_is_down_is_named_with_its_bit_rate() {
    let _alone = alone();
    cards();
    ip("link set can3 down");
    refused(
        canter(&["gateway", "can3", "can4"]),
        1,
        &["can3: is down (ip link set can3 up type can bitrate "],
    );
}

/// Runs canter as a user without any rights.
fn as_nobody(command: &str) -> Running {
    let nobody = "--reuid 65534 --regid 65534 --clear-groups --bounding-set -all --inh-caps -all";
    start("setpriv", &[&words(nobody), &[env!("CARGO_BIN_EXE_canter")][..], &words(command)].concat())
}

#[test]
#[ignore = "needs the lab: make test ONLY=trouble"]
fn whoever_lacks_a_permission_is_told_which() {
    let _alone = alone();
    cards();
    for (command, parts) in [
        ("gateway can3 can4 --method ring+write", &["can3: PF_PACKET socket: ", "needs CAP_NET_RAW"][..]),
        ("gateway can3 can4 --method read+ring", &["can4: PF_PACKET socket: ", "needs CAP_NET_RAW"]),
        ("gateway can3 can4 --method can-gw", &["can3 → can4: add can-gw job: ", "CAP_NET_ADMIN"]),
        ("gateway can3 can4 --realtime 50", &["--realtime 50: ", "needs CAP_SYS_NICE"]),
        ("syscalls", &["canter-v: create: ", "CAP_NET_ADMIN"]),
    ] {
        refused(as_nobody(command), 4, parts);
    }
    // Raw sockets are everybody's.
    let mut gateway = as_nobody("gateway can3 can4 --method recvmmsg+sendmmsg --json -");
    gateway.until_it_says("gateway: ");
    let routed = Candump::start("can2");
    output("cansend", &["can0", "123#11"]);
    assert_eq!(routed.frames(1), ["123#11"]);
    gateway.signal("INT");
    assert_eq!(counts(&gateway.ended(PROMPT)), [1, 1, 0, 0]);
    let methods = as_nobody("methods -i can3 --json -").ended(DEADLINE);
    let rows = methods.json();
    let ring = rows.as_array().unwrap().iter().find(|row| row["name"] == "ring").unwrap();
    assert!(ring["unavailable"].as_str().unwrap().contains("CAP_NET_RAW"), "{ring}");
}

#[test]
#[ignore = "needs the lab: make test ONLY=trouble"]
fn a_kernel_without_can_gw_is_told_how_to_get_it() {
    let _alone = alone();
    cards();
    output("rmmod", &["can_gw"]);
    let command = canter(&["gateway", "can3", "can4", "--method", "can-gw"]);
    let methods = canter(&["methods", "-i", "can3", "--json", "-"]).ended(DEADLINE).json();
    output("modprobe", &["can_gw"]);
    refused(command, 4, &["can-gw: ", "(modprobe can-gw, or run in canter lab)"]);
    let command = canter(&["gateway", "can3", "can4", "--method", "bare-metal"]);
    refused(command, 4, &["bare-metal: the module canbare is not loaded (", "canter lab --bare-metal)"]);
    let row = methods.as_array().unwrap().iter().find(|row| row["name"] == "can-gw").unwrap();
    assert!(row["unavailable"].as_str().unwrap().contains("modprobe can-gw"), "{row}");
}

/// Asserts that the gateway has ended without a signal: it began, its counts balance, and one line has the reason.
#[track_caller]
fn broken(gateway: Gateway, parts: &[&str]) {
    let ended = gateway.ended();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    has_in_order(ended.complaint(), parts, &ended);
    assert_eq!(ended.stderr.lines().count(), 3, "{ended:?}");
    assert!(ended.stderr.lines().nth(1).unwrap().starts_with("gateway: 1 received = "), "{ended:?}");
    let account = ended.json();
    assert_eq!(account["failure"], ended.complaint());
    assert_eq!(counts(&ended)[0], 1, "{ended:?}");
}

#[track_caller]
fn routes(from: &str, to: &str) {
    let routed = Candump::start(to);
    output("cansend", &[from, "123#1122"]);
    assert_eq!(routed.frames(1), ["123#1122"]);
}

#[test]
#[ignore = "needs the lab: make test ONLY=trouble"]
fn a_gateway_whose_input_goes_down_ends_and_names_it() {
    let _alone = alone();
    for method in WAITS {
        cards();
        let gateway = Gateway::start("can3", "can4", method, &[]);
        routes("can0", "can2");
        ip("link set can3 down");
        broken(gateway, &["can3: ", "down", "ip link set can3 up"]);
    }
    cards();
}

#[test]
#[ignore = "needs the lab: make test ONLY=trouble"]
fn a_gateway_whose_input_is_deleted_ends_and_names_it() {
    let _alone = alone();
    for method in WAITS {
        let _cables = Virtual::cables(72);
        let gateway = Gateway::start("vx1", "vx2", method, &[]);
        routes("vx0", "vx3");
        if *method == "can-gw" {
            std::thread::sleep(Duration::from_millis(1500)); // its counters go with it, so it looks every second
        }
        ip("link delete vx0");
        broken(gateway, &["vx1: ", "(it has disappeared)"]);
    }
}

#[test]
#[ignore = "needs the lab: make test ONLY=trouble"]
fn a_gateway_whose_output_breaks_says_so_with_the_next_frame() {
    let _alone = alone();
    for method in WAITS {
        for (breaks, part) in
            [("link set vx2 down", "ip link set vx2 up"), ("link delete vx2", "(it has disappeared)")]
        {
            let _cables = Virtual::cables(16);
            let gateway = Gateway::start("vx1", "vx2", method, &[]);
            ip(breaks);
            if !method.contains("can-gw") {
                output("cansend", &["vx0", "123#1122"]);
            }
            let ended = gateway.ended();
            assert_eq!(ended.code, Some(1), "{ended:?}");
            has_in_order(ended.complaint(), &["vx2: ", part], &ended);
            let [received, transmitted, ..] = counts(&ended);
            assert_eq!((received, transmitted), (u64::from(*method != "can-gw"), 0), "{ended:?}");
        }
    }
}

#[test]
#[ignore = "needs the lab: make test ONLY=trouble"]
fn a_can_gw_job_that_somebody_deletes_ends_its_gateway() {
    let _alone = alone();
    cards();
    let gateway = Gateway::start("can3", "can4", "can-gw", &[]);
    start("cangw", &["-F"]).ended(DEADLINE);
    let ended = gateway.ended();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(
        ended.complaint().starts_with("can3 → can4: read can-gw counters: the job no longer exists"),
        "{ended:?}"
    );
}

#[test]
#[ignore = "needs the lab: make test ONLY=trouble"]
fn a_measurement_whose_interface_breaks_ends_and_names_it() {
    let _alone = alone();
    for traffic in ["one-at-a-time", "period=5ms", "flood"] {
        for (breaks, broken, part) in [
            ("link set vx3 down", "vx3: ", "ip link set vx3 up"),
            ("link set vx0 down", "vx0: ", "ip link set vx0 up"),
            ("link delete vx3", "vx3: ", "(it has disappeared)"),
        ] {
            let _cables = Virtual::cables(16);
            let _gateway = Gateway::start("vx1", "vx2", "read+write", &[]);
            let options = ["latency", "--send", "vx0", "--routed", "vx3", "--count", "1000000"];
            let meter = canter(&[&options[..], &["--traffic", traffic]].concat());
            let received = || Interface::find("vx3").unwrap().counters().unwrap().rx_frames;
            eventually("it measures", || received() > 3);
            ip(breaks);
            let ended = meter.ended(PROMPT);
            assert_eq!(ended.code, Some(1), "{ended:?}");
            assert_eq!(ended.stdout, "", "{ended:?}");
            has_in_order(ended.complaint(), &[broken, part], &ended);
        }
    }
    assert!(!exists("vx0"));
}

#[test]
#[ignore = "needs the lab: make test ONLY=trouble"]
fn without_canwire_its_commands_say_what_is_missing() {
    let _alone = alone();
    if std::path::Path::new("/sys/module/canwire").exists() {
        return testbed::skip("this lab has canwire");
    }
    for arguments in [
        &["wire", "list"][..],
        &["wire", "add", "wcan0", "--bus", "A"],
        &["wire", "source", "stop", "A"],
        &["analyze", "can0"],
        &["latency", "--instrument", "wire", "--send", "A", "--routed", "B"],
    ] {
        let ended = canter(arguments).ended(DEADLINE);
        assert_eq!(ended.code, Some(4), "{ended:?}");
        let says = "canwire: find: the kernel module canwire is not loaded (modprobe canwire";
        assert!(ended.complaint().starts_with(says), "{ended:?}");
    }
}

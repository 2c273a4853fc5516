//@ machine: host
//! Command lines that need no CAN: those that make no sense, and the list of studies.

use crate::{
    testbed::{DEADLINE, canter, output, program},
    trouble::{has_in_order, words},
};

/// What clap refuses, in canter's words, with an example of the command below.
const MISUSED: &[(&str, &[&str])] = &[
    ("gateway can3", &["gateway: <OUT>: is missing", "\n  canter gateway "]),
    ("gateway can3 can4 --method nap", &["nap", "not a pair RECEIVER+TRANSMITTER", "can-gw", "read+write"]),
    ("gateway can3 can4 --method nap+write", &["no such receiver", "read, recvmmsg, ring"]),
    ("gateway can3 can4 --method ring/nap+write", &["no such wait", "ring/poll, ring/spin"]),
    ("gateway can3 can4 --method ring+nap", &["no such transmitter", "write, sendmmsg, ring"]),
    ("gateway can3 can4 --filter what", &["--filter", "what"]),
    ("gateway can3 can4 --filter 123:7FF,400:", &["--filter"]),
    ("gateway can3 can4 --filter 123:7FF:700", &["--filter"]),
    ("gateway can3 can4 --batch 0", &["1…1024 frames"]),
    ("gateway can3 can4 --batch 1025", &["1…1024 frames"]),
    ("gateway can3 can4 --realtime 100", &["100 is not in 1..=99"]),
    ("latency --send can0 --routed can2 --count 0", &["0 is not in 1.."]),
    ("latency --send can0 --routed can2 --gap soon", &["not a duration"]),
    ("latency --send can0 --routed can2 --gap 5", &["not a duration"]),
    ("latency --send can0 --routed can2 --traffic period=0s", &["a time must be more than 0"]),
    ("latency --send can0 --routed can2 --traffic period=120", &["not a duration"]),
    ("latency --send can0 --routed can2 --traffic load=101%", &["1…100 %"]),
    (
        "latency --send can0 --routed can2 --traffic rain",
        &["one-at-a-time, period=120us, load=50%, burst=20/100ms", "or flood"],
    ),
    ("latency --send can0 --routed can2 --brs", &["--fd", "is missing"]),
    ("syscalls --len 9", &["9 is not in 0..=8"]),
    ("walk", &["walk: no such command (", "canter --help lists them)"]),
];

#[test]
fn a_command_line_that_makes_no_sense_has_exit_code_2_and_says_why() {
    for (command, parts) in MISUSED {
        let ended = canter(&words(command)).ended(DEADLINE);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stderr.starts_with("canter: "), "{ended:?}");
        assert!(ended.stderr.lines().count() <= 2, "{ended:?}");
        has_in_order(&ended.stderr, parts, &ended);
    }
}

#[test]
fn a_gateway_that_took_orders_over_tcp_names_what_replaced_it() {
    for command in [
        "study role gateway --interfaces can0,can1 --listen 0.0.0.0 --token-file t",
        "study run 2011-fig8 --interfaces can0,can1,can2 --gateway 192.168.1.5",
        "study run 2011-fig8 --interfaces can0,can1,can2 --gateway can3,can4 --token-file t",
    ] {
        let out = tempfile::tempdir().unwrap();
        let out = ["--out", out.path().to_str().unwrap()];
        let ended = canter(&[&words(command), &out[..]].concat()).ended(DEADLINE);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        has_in_order(ended.complaint(), &["is replaced by --gateway IN,OUT --gateway-by 'ssh HOST'"], &ended);
    }
}

#[test]
fn options_of_the_lab_that_make_no_sense_have_exit_code_2() {
    for options in [
        &["--shift", "2"][..],
        &["--clock", "virtual", "--shift", "11"],
        &["--cards", "6"],
        &["--timeout", "soon"],
        &["--memory", "lots"],
        &["--clock", "virtual", "--accel", "kvm"],
        &["--json", "-"],
        &["--clean"],
    ] {
        let ended = canter(&[&["lab"], options, &["--", "true"]].concat()).ended(DEADLINE);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(!ended.stderr.is_empty(), "{options:?}");
    }
}

#[test]
fn the_papers_experiments_are_listed() {
    let list = output(program(), &["study", "list"]);
    for name in ["2014-fig4.1 ", "2014-fig4.2 "] {
        assert!(list.lines().any(|line| line.starts_with(name)), "{list}");
    }
}

//@ machine: lab
//! `canter dump` beside candump: the same lines for the same frames; a frame comes at once; losses and interfaces that go.

use crate::testbed::{DEADLINE, Virtual, alone, canter, eventually, ip, listeners, output, program, start};
use canter_io::Interface;

/// Frames of every kind, as cansend takes them.
const FRAMES: [&str; 8] = [
    "123#DEAD41",
    "7FF#R",
    "123##3001122334455667788AABBCC",
    "12345678#1122334455667788",
    "123#",
    "123#41424344",
    "001##1",
    "20000204#0001000000000000",
];

/// The lines of a command that ends after all of [`FRAMES`].
#[track_caller]
fn lines(program: &str, arguments: &[&str]) -> Vec<String> {
    let before = listeners("dmp0");
    let running = start(program, arguments);
    eventually("it listens", || listeners("dmp0") > before);
    for frame in FRAMES {
        output("cansend", &["dmp0", frame]);
    }
    let ended = running.ended(DEADLINE);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended.stdout.lines().map(str::to_owned).collect()
}

#[test]
#[ignore = "needs the lab: make test ONLY=dump"]
fn lines_are_those_of_candump() {
    let _alone = alone();
    let _bus = Virtual::vcan(&["dmp0"], 72);
    for options in [&[][..], &["-a"], &["-x"], &["-a", "-x"]] {
        let theirs = lines("candump", &[&["-e", "-n", "8"], options, &["dmp0,0:0,#FFFFFFFF"]].concat());
        let ours = lines(program(), &[&["dump", "-e", "-n", "8"], options, &["dmp0"]].concat());
        // candump explains an error in words of its version; ours are tested beside it in canter-frame.
        let shown = |lines: Vec<String>| -> Vec<String> {
            lines
                .into_iter()
                .filter(|line| !line.starts_with('\t'))
                .map(|line| line.trim_end().to_owned())
                .collect()
        };
        assert_eq!(shown(ours), shown(theirs), "{options:?}");
    }
    // The log, without its stamps.
    let frames = |lines: Vec<String>| -> Vec<String> {
        lines.iter().map(|line| line.rsplit(' ').next().unwrap().to_owned()).collect()
    };
    let theirs = frames(lines("candump", &["-L", "-n", "8", "dmp0,0:0,#FFFFFFFF"]));
    assert_eq!(frames(lines(program(), &["dump", "-L", "-n", "8", "dmp0"])), theirs);
}

#[test]
#[ignore = "needs the lab: make test ONLY=dump"]
fn stamps_are_those_of_candump() {
    let _alone = alone();
    let _bus = Virtual::vcan(&["dmp0"], 72);
    for stamps in ["a", "d", "z"] {
        let candump = start("candump", &["-t", stamps, "-n", "3", "dmp0"]);
        eventually("candump listens", || listeners("dmp0") > 0);
        let before = listeners("dmp0");
        let dump = canter(&["dump", "-t", stamps, "-n", "3", "dmp0"]);
        eventually("it listens", || listeners("dmp0") > before);
        (0..3).for_each(|n| drop(output("cansend", &["dmp0", &format!("123#0{n}")])));
        let [ours, theirs] = [dump, candump].map(|one| one.ended(DEADLINE).stdout);
        assert_eq!(ours, theirs, "-t {stamps}");
    }
}

#[test]
#[ignore = "needs the lab: make test ONLY=dump"]
fn a_frame_is_printed_before_the_next_one_is_sent() {
    let _alone = alone();
    let _bus = Virtual::vcan(&["dmp0"], 16);
    let before = listeners("dmp0");
    let dump = canter(&["dump", "dmp0,123"]);
    eventually("it listens", || listeners("dmp0") > before);
    for n in 0..3 {
        output("cansend", &["dmp0", &format!("123#0{n}")]);
        output("cansend", &["dmp0", "124#"]);
        eventually("the frame is printed", || dump.printed().lines().count() == n + 1);
    }
    dump.signal("INT");
    assert_eq!(dump.ended(DEADLINE).code, Some(0));
}

#[test]
#[ignore = "needs the lab: make test ONLY=dump"]
fn a_time_without_frames_and_an_interface_that_goes_end_it() {
    let _alone = alone();
    let bus = Virtual::vcan(&["dmp0"], 16);
    let ended = canter(&["dump", "dmp0", "-T", "50"]).ended(DEADLINE);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""), "{ended:?}");
    let mut dump = canter(&["dump", "dmp0"]);
    eventually("it listens", || listeners("dmp0") > 0);
    ip("link set dmp0 down");
    dump.until_it_says("dmp0: is down");
    ip("link set dmp0 up");
    output("cansend", &["dmp0", "123#"]);
    eventually("the frame is printed", || dump.printed().lines().count() == 1);
    drop(bus);
    let ended = dump.ended(DEADLINE);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("no interface is left"), "{ended:?}");
}

#[test]
#[ignore = "needs the lab: make test ONLY=dump"]
fn frames_that_a_slow_reader_loses_are_told() {
    let _alone = alone();
    let _bus = Virtual::vcan(&["dmp0"], 16);
    let before = listeners("dmp0");
    let dump = canter(&["dump", "dmp0"]);
    eventually("it listens", || listeners("dmp0") > before);
    dump.signal("STOP");
    // None has the identifier of the last frame.
    output("cangen", &["dmp0", "-g", "0", "-i", "-n", "60000", "-I", "123", "-L", "8"]);
    dump.signal("CONT");
    output("cansend", &["dmp0", "7FF#"]);
    eventually("the last frame is printed", || dump.printed().contains("  7FF  "));
    // cangen -i ignores frames that it could not send.
    let sent = Interface::find("dmp0").unwrap().counters().unwrap().tx_frames;
    dump.signal("INT");
    let ended = dump.ended(DEADLINE);
    assert_eq!(ended.code, Some(3), "{ended:?}");
    // `canter: dmp0: 51 261 frames lost …`, in its queue and before it.
    let number = |line: &str| -> u64 {
        let (before, _) = line.split_once(" frames lost").unwrap();
        let (_, number) = before.split_once("dmp0: ").unwrap();
        number.chars().filter(char::is_ascii_digit).collect::<String>().parse().unwrap()
    };
    let lost: u64 = ended.stderr.lines().map(number).sum();
    assert_eq!(ended.stdout.lines().count() as u64 + lost, sent, "every frame is printed or lost: {ended:?}");
}

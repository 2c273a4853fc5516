//@ machine: --clock virtual
//@ commands: convert generate latency replay top
//@ parts: 2
//! `canter generate`, `replay` and `top` in the lab, with cangen, canplayer and candump as peers. In the virtual clock
//! times are asserted too; in the real one those checks are skipped.

use crate::testbed::{
    self, DEADLINE, Running, Virtual, alone, canter, eventually, exists, ip, listeners, output, program,
    start,
};
use canter_io::{Frame, LogLine};
use serde_json::Value;
use std::{collections::BTreeMap, fs};

const MS: u64 = 1_000_000;

/// The latest that a thread of an idle machine wakes up in the virtual clock, where an instruction takes 1 ns. Reading a
/// program from the host for the first time may keep the guest's only processor for longer, so a test of times first runs
/// everything once without asserting.
const PUNCTUAL_NS: u64 = 200_000;

fn in_virtual_clock() -> bool {
    let is_virtual = fs::read_to_string("/proc/cmdline").unwrap().contains("canter.clock=virtual");
    if !is_virtual {
        testbed::skip("times are asserted in the virtual clock only");
    }
    is_virtual
}

/// A frame that candump has seen: stamp in ns, interface, text.
type Seen = (u64, String, String);

/// A candump that ends when it has seen a number of frames.
struct Witness(Running);

impl Witness {
    fn start(interfaces: &[&str], count: usize) -> Self {
        let before: Vec<usize> = interfaces.iter().map(|name| listeners(name)).collect();
        // 8 MB of queue: nothing is lost while it cannot run.
        let options = ["-L", "-r", "8388608", "-n", &count.to_string()].map(str::to_owned);
        let arguments: Vec<&str> =
            options.iter().map(String::as_str).chain(interfaces.iter().copied()).collect();
        let running = start("candump", &arguments);
        eventually("candump listens", || {
            interfaces.iter().zip(&before).all(|(name, before)| listeners(name) > *before)
        });
        Self(running)
    }

    #[track_caller]
    fn seen(self) -> Vec<Seen> {
        let mut seen = parse(&self.0.ended(DEADLINE).stdout);
        // candump takes what its sockets hold one socket after the other; the order on the buses is that of the stamps.
        seen.sort_by_key(|one| one.0);
        seen
    }
}

fn parse(log: &str) -> Vec<Seen> {
    let line = |line| LogLine::parse(line).unwrap().unwrap();
    let seen = |line: LogLine<'_>| (line.stamp_ns, line.interface.to_owned(), line.frame.to_string());
    log.lines().map(|text| seen(line(text))).collect()
}

fn texts(seen: &[Seen]) -> Vec<&str> {
    seen.iter().map(|(.., text)| text.as_str()).collect()
}

/// The document that a command writes to `--json -`; the command must end with `code`.
#[track_caller]
fn json(arguments: &[&str], code: i32) -> Value {
    let ended = canter(&[arguments, &["--json", "-"]].concat()).ended(DEADLINE);
    assert_eq!(ended.code, Some(code), "{ended:?}");
    ended.json()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("not a number: {value}"))
}

#[test]
#[ignore = "needs the lab: make test ONLY=traffic"]
fn frames_that_need_no_chance_are_those_that_cangen_sends() {
    let _alone = alone();
    let _buses = Virtual::vcan(&["tra0"], 72);
    for options in [
        &["-I", "42A", "-L", "1", "-D", "i"][..],
        &["-e", "-I", "1234567", "-L", "i", "-D", "11223344DEADBEEF"],
        &["-I", "i", "-L", "8", "-D", "i"],
        &["-I", "7FE", "-L", "i", "-D", "i"],
        &["-R", "-I", "7", "-L", "4"],
        &["-f", "-I", "123", "-L", "i", "-D", "AB"],
        &["-b", "-I", "123", "-L", "20", "-D", "i"],
        &["-e", "-I", "i", "-L", "0", "-c", "3"],
    ] {
        let arguments = [&["tra0", "-g", "1", "-n", "20"], options].concat();
        let witness = Witness::start(&["tra0"], 20);
        output("cangen", &arguments);
        let theirs = witness.seen();
        let witness = Witness::start(&["tra0"], 20);
        output(program(), &[&["generate"], &arguments[..]].concat());
        assert_eq!(texts(&witness.seen()), texts(&theirs), "{options:?}");
    }
}

#[test]
#[ignore = "needs the lab: make test ONLY=traffic"]
fn every_frame_comes_at_its_time_by_every_method_and_pattern() {
    let _alone = alone();
    let _cables = Virtual::cables(72);
    let timed = in_virtual_clock();
    let due_ns = |traffic: &str, n: u64| match traffic {
        "period=1ms" => n * MS,
        "burst=20/100ms" => n / 20 * 100 * MS,
        "ramp=0..1000/1s" => ((2.0 * n as f64 / 1000.0).sqrt() * 1e9) as u64,
        _ => unreachable!(),
    };
    let late = |traffic: &str, method: &str| {
        let witness = Witness::start(&["vx1"], 400);
        let options = ["-n", "400", "-L", "8", "--traffic", traffic, "--method", method, "--realtime", "50"];
        let account = json(&[&["generate", "vx0"], &options[..]].concat(), 0);
        let one = &account["interfaces"][0];
        let counts = [&one["sent"], &one["refused"], &one["late_ns"]["count"]].map(number);
        assert_eq!(counts, [400, 0, 400], "{traffic} {method}: {one}");
        let seen = witness.seen();
        assert_eq!(seen.len(), 400);
        let off = |(n, seen_ns): (u64, u64)| (seen_ns - seen[0].0).abs_diff(due_ns(traffic, n));
        let most = (0..).zip(seen.iter().map(|(stamp_ns, ..)| *stamp_ns)).map(off).max().unwrap();
        (most, number(&one["late_ns"]["p99"]))
    };
    late("period=1ms", "write"); // warms up
    for method in ["write", "sendmmsg", "ring"] {
        for traffic in ["period=1ms", "burst=20/100ms", "ramp=0..1000/1s"] {
            let (most, p99) = late(traffic, method);
            assert!(
                !timed || most < 2 * PUNCTUAL_NS && p99 < PUNCTUAL_NS,
                "{traffic} {method}: late by {most} ns at worst, by {p99} ns in 99 %"
            );
        }
    }
}

#[test]
#[ignore = "needs the lab: make test ONLY=traffic"]
fn a_load_is_what_was_asked_for_in_exact_bits() {
    let _alone = alone();
    let _buses = Virtual::vcan(&["tra0"], 16);
    let arguments = ["generate", "tra0", "--traffic", "load=37%", "--bitrate", "250k", "-n", "2000", "-e"];
    let account = json(&arguments, 0);
    let load = account["interfaces"][0]["load_percent"].as_f64().unwrap();
    assert!(!in_virtual_clock() || (load - 37.0).abs() < 0.05, "{load}");
    assert!(load < 37.1, "never more: {load}");
}

#[test]
#[ignore = "needs the lab: make test ONLY=traffic"]
fn every_identifier_of_a_car_keeps_its_period() {
    let _alone = alone();
    let _buses = Virtual::vcan(&["tra0", "tra1"], 16);
    let car = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/car.toml");
    // In 2 s: 200 and 200 and 80 and at least 1 on the first bus, 20 and 4 and 10 and at least 1 on the second.
    let most_off = || {
        let witness = Witness::start(&["tra0", "tra1"], 515);
        let arguments =
            ["generate", "--car", car, "--duration", "2s", "tra0=can0", "tra1=can2", "--realtime", "50"];
        let account = json(&arguments, 0);
        let sent = account["interfaces"].as_array().unwrap().iter().map(|one| number(&one["sent"]));
        assert!(sent.sum::<u64>() >= 515, "{account}");
        let mut stamps: BTreeMap<(String, String), Vec<u64>> = BTreeMap::new();
        for (stamp_ns, bus, text) in witness.seen() {
            let id = text.split('#').next().unwrap().to_owned();
            stamps.entry((bus, id)).or_default().push(stamp_ns);
        }
        let mut most = 0;
        for (bus, id, period_ms, jitter_ns) in [
            ("tra0", "0C9", 10, 0),
            ("tra0", "1A0", 10, 500_000),
            ("tra0", "1F5", 25, 0),
            ("tra1", "130", 100, 0),
            ("tra1", "21A", 200, 0),
        ] {
            let stamps = &stamps[&(bus.to_owned(), id.to_owned())];
            assert!(stamps.len() as u64 >= 1900 / period_ms, "{id}: {}", stamps.len());
            let off = |pair: &[u64]| (pair[1] - pair[0]).abs_diff(period_ms * MS).saturating_sub(jitter_ns);
            most = stamps.windows(2).map(off).max().unwrap().max(most);
        }
        most
    };
    most_off(); // warms up
    let most = most_off();
    assert!(!in_virtual_clock() || most < PUNCTUAL_NS, "{most} ns off at worst");
}

#[test]
#[ignore = "needs the lab: make test ONLY=traffic"]
fn every_message_of_a_database_keeps_its_cycle_time_and_its_signals_move() {
    let _alone = alone();
    let _buses = Virtual::vcan(&["tra0"], 16);
    let database = "/tmp/traffic-car.dbc";
    let text = "BO_ 256 Fast: 2 ECU\n SG_ Speed : 0|16@1+ (1,0) [0|10000] \"\" X\n\n\
                BO_ 512 Slow: 8 ECU\n SG_ Heat : 0|8@1- (0.5,-10) [-10|20] \"\" X\n\n\
                BO_ 768 Never: 1 ECU\n SG_ Flag : 0|1@1+ (1,0) [0|1] \"\" X\n\n\
                BA_DEF_ BO_ \"GenMsgCycleTime\" INT 0 10000;\nBA_DEF_DEF_ \"GenMsgCycleTime\" 0;\n\
                BA_ \"GenMsgCycleTime\" BO_ 256 10;\nBA_ \"GenMsgCycleTime\" BO_ 512 250;\n";
    fs::write(database, text).unwrap();
    // In 5 s, half of a ramp, 500 and 20 frames. A frame of the first second may be late: the program is read then.
    let witness = Witness::start(&["tra0"], 519);
    let arguments = ["generate", "tra0", "--dbc", database, "--duration", "5s", "--realtime", "50"];
    let ended = canter(&arguments).ended(DEADLINE);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stderr.contains("1 message without a cycle time (GenMsgCycleTime): not sent"), "{ended:?}");
    let seen = witness.seen();
    let values = |id: &str| -> Vec<(u64, u16)> {
        let data = |text: &str| {
            text.split_once('#').filter(|(sent, _)| *sent == id).map(|(_, data)| data.to_owned())
        };
        let value = |data: String| u16::from_str_radix(&data[..4], 16).unwrap().swap_bytes();
        seen.iter().filter_map(|(ns, _, text)| Some((*ns, value(data(text)?)))).collect()
    };
    let (fast, slow) = (values("100"), values("200"));
    assert!(fast.len() >= 499 && slow.len() >= 19 && fast.len() + slow.len() == 519, "{}", fast.len());
    for (frames, period_ms) in [(&fast, 10), (&slow, 250)] {
        let off = |pair: &[(u64, u16)]| (pair[1].0 - pair[0].0).abs_diff(period_ms * MS);
        let most = frames.windows(2).filter(|pair| pair[0].0 > frames[0].0 + 1000 * MS).map(off).max();
        assert!(!in_virtual_clock() || most < Some(PUNCTUAL_NS), "{period_ms} ms: {most:?} ns off at worst");
    }
    // A ramp takes 10 s from the lowest value to the highest: 10 more each 10 ms.
    for (n, (_, value)) in fast.iter().enumerate() {
        assert!((*value).abs_diff(n as u16 * 10) <= 1, "frame {n}: {value}");
    }
}

/// A log of two buses whose frames alternate in no regular way: `count` frames, about a ms apart.
fn log(name: &str, count: u64) -> String {
    let line = |n: u64| {
        let (stamp_us, bus) = (n * 1000 + n * n % 700, if n % 7 < 3 { "can0" } else { "can1" });
        let frame = match n % 5 {
            0 => format!("{:08X}#{n:08X}", n * 977 % 0x1fff_ffff),
            1 => "123#R3".to_owned(),
            2 => format!("{:03X}##5{}", n % 0x7ff, "5A".repeat(24)),
            _ => format!("{:03X}#{n:016X}", n * 31 % 0x7ff),
        };
        format!("({}.{:06}) {bus} {frame}\n", 1_700_000_000 + stamp_us / 1_000_000, stamp_us % 1_000_000)
    };
    let path = format!("/tmp/traffic-{name}.log");
    fs::write(&path, (0..count).map(line).collect::<String>()).unwrap();
    path
}

#[test]
#[ignore = "needs the lab: make test ONLY=traffic"]
fn two_buses_are_replayed_frame_for_frame_in_order_as_canplayer_does_and_in_time() {
    let _alone = alone();
    let _buses = Virtual::vcan(&["tra0", "tra1"], 72);
    let path = log("order", 1000);
    let recorded = parse(&fs::read_to_string(&path).unwrap());
    let assigned: Vec<(&str, &str)> = recorded
        .iter()
        .map(|(_, bus, text)| (if bus == "can0" { "tra0" } else { "tra1" }, text.as_str()))
        .collect();
    let replayed = || {
        let witness = Witness::start(&["tra0", "tra1"], 1000);
        let account = json(&["replay", &path, "tra0=can0", "tra1=can1", "--realtime", "50"], 0);
        (account, witness.seen())
    };
    let off = |seen: &[Seen]| {
        let due = recorded.iter().map(|one| one.0 - recorded[0].0);
        due.zip(seen).map(|(due_ns, one)| (one.0 - seen[0].0).abs_diff(due_ns)).max().unwrap()
    };
    replayed(); // warms up
    let (account, seen) = replayed();
    assert!(!in_virtual_clock() || off(&seen) < PUNCTUAL_NS, "{} ns off at worst", off(&seen));
    let frames = |seen: &'_ [Seen]| -> Vec<(String, String)> {
        seen.iter().map(|(_, bus, text)| (bus.clone(), text.clone())).collect()
    };
    assert!(frames(&seen).iter().map(|(bus, text)| (bus.as_str(), text.as_str())).eq(assigned));
    assert_eq!([&account["read"], &account["passed"], &account["unsent"]].map(number), [1000, 1000, 0]);

    let witness = Witness::start(&["tra0", "tra1"], 1000);
    output("canplayer", &["-I", &path, "tra0=can0", "tra1=can1"]);
    assert_eq!(frames(&witness.seen()), frames(&seen), "canplayer sends the same");

    if in_virtual_clock() {
        let worst =
            account["interfaces"].as_array().unwrap().iter().map(|one| number(&one["late_ns"]["max"]));
        assert!(worst.max().unwrap() < PUNCTUAL_NS, "{account}");
    }

    // What was replayed and recorded is replayed and recorded again: still the same.
    let again = format!("{path}.again");
    let lines = |(stamp_ns, bus, text): &Seen| {
        format!("({}.{:06}) {bus} {text}\n", stamp_ns / 1_000_000_000, stamp_ns / 1000 % 1_000_000)
    };
    fs::write(&again, seen.iter().map(lines).collect::<String>()).unwrap();
    let witness = Witness::start(&["tra0", "tra1"], 1000);
    json(&["replay", &again, "--speed", "4"], 0);
    assert_eq!(frames(&witness.seen()), frames(&seen));
}

/// Recordings of other programs' kinds, of the same frames: each is replayed as the log is.
#[test]
#[ignore = "needs the lab: make test ONLY=traffic"]
fn recordings_of_every_format_are_replayed_frame_for_frame() {
    let _alone = alone();
    let _buses = Virtual::vcan(&["tra0", "tra1"], 72);
    let path = log("formats", 300);
    let frames = |seen: Vec<Seen>| -> Vec<(String, String)> {
        seen.into_iter().map(|(_, bus, text)| (bus, text)).collect()
    };
    let assigned = |bus: &str| bus.replace("can", "tra");
    let want = frames(parse(&fs::read_to_string(&path).unwrap()));
    for end in ["asc", "blf", "pcapng", "pcapng.zst", "mf4", "csv", "parquet"] {
        let file = format!("{path}.{end}");
        output(program(), &["convert", &path, "-o", &file, "-q"]);
        let witness = Witness::start(&["tra0", "tra1"], 300);
        json(&["replay", &file, "tra0=can0", "tra1=can1", "--speed", "4"], 0);
        let want = want.iter().map(|(bus, text)| (assigned(bus), text.clone()));
        assert!(frames(witness.seen()).into_iter().eq(want), "{end}");
    }
    // What tcpdump -i any recorded beside candump; its interfaces are numbers.
    let recordings = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/recordings");
    let candump = parse(&fs::read_to_string(format!("{recordings}/candump.log")).unwrap());
    let witness = Witness::start(&["tra0", "tra1"], candump.len());
    let pcap = format!("{recordings}/tcpdump-any.pcap");
    json(&["replay", &pcap, "tra0=if8", "tra1=if7", "--speed", "100"], 0);
    let want = candump.into_iter().map(|(_, bus, text)| (bus.replace("vx", "tra"), text));
    assert!(frames(witness.seen()).into_iter().eq(want), "pcap");
}

#[test]
#[ignore = "needs the lab: make test ONLY=traffic"]
fn only_what_is_asked_for_is_replayed_and_the_rest_is_counted() {
    let _alone = alone();
    let _buses = Virtual::vcan(&["can8", "can9"], 72);
    let path = log("part", 1000);
    let frames = |account: &Value| {
        let sent: u64 =
            account["interfaces"].as_array().unwrap().iter().map(|one| number(&one["sent"])).sum();
        let [read, unassigned, filtered, outside] =
            ["read", "unassigned", "filtered", "outside"].map(|name| number(&account[name]));
        assert_eq!(read, sent + unassigned + filtered + outside, "{account}");
        [sent, unassigned, filtered, outside]
    };
    let both_buses = ["replay", &path, "can8=can0", "can9=can1", "-t"];
    assert_eq!(frames(&json(&both_buses, 0)), [1000, 0, 0, 0]);
    assert_eq!(frames(&json(&["replay", &path, "can8=can0", "-t"], 0)), [429, 571, 0, 0]);
    let rtr = [&both_buses[..], &["--filter", "040000123:C00007FF", "--loop", "3"]].concat();
    assert_eq!(frames(&json(&rtr, 0)), [600, 0, 2400, 0]);
    let part = ["replay", &path, "can8=can0", "can9=can1", "--from", "100ms", "--to", "200ms"];
    let [sent, .., outside] = frames(&json(&part, 0));
    assert!((98..=102).contains(&sent) && outside == 1000 - sent, "{sent}");
    // Without an assignment they would go to can0 and can1 themselves; nothing of what was asked for is there.
    for (arguments, says) in [
        (
            &["replay", &path, "can8=cam0"][..],
            "no frame of 1000 was selected for sending (it has can0, can1)",
        ),
        (&["replay", &path, "can8=can0", "can9=cam1", "-t"], "unknown source cam1 (did you mean \"can1\"?)"),
    ] {
        let ended = canter(&[arguments, &["-q"]].concat()).ended(DEADLINE);
        assert!(ended.code != Some(0) && ended.complaint().contains(says), "{ended:?}");
    }
}

#[test]
#[ignore = "needs the lab: make test ONLY=traffic"]
fn of_a_recording_that_is_cut_off_or_damaged_the_readable_frames_are_sent_and_the_exit_code_is_3() {
    let _alone = alone();
    let _buses = Virtual::vcan(&["tra0", "tra1"], 72);
    let text = fs::read_to_string(log("cut", 100)).unwrap();
    let file = |name: &str, text: &str| {
        let path = format!("/tmp/traffic-{name}.log");
        fs::write(&path, text).unwrap();
        path
    };
    let replay = |path: &str, options: &[&str]| {
        canter(&[&["replay", path, "tra0=can0", "tra1=can1", "-t", "--json", "-"], options].concat())
            .ended(DEADLINE)
    };
    let sent = |json: &str| -> u64 {
        let account: Value = serde_json::from_str(json).unwrap();
        account["interfaces"].as_array().unwrap().iter().map(|one| number(&one["sent"])).sum()
    };
    let cut = replay(&file("cut", &text[..text.len() - 3]), &[]);
    assert_eq!((cut.code, sent(&cut.stdout)), (Some(3), 99), "{cut:?}");
    assert!(cut.stderr.contains("line 100: cut off after 99 frames: all frames before were read"), "{cut:?}");

    let middle = text.match_indices('\n').nth(49).unwrap().0 + 1;
    let damaged = file("damaged", &[&text[..middle], "(1.0) ?\n", &text[middle..]].concat());
    let ended = replay(&damaged, &[]);
    assert_eq!((ended.code, sent(&ended.stdout)), (Some(1), 50), "{ended:?}");
    assert!(ended.complaint().ends_with("; --salvage skips what is damaged"), "{ended:?}");
    let salvaged = replay(&damaged, &["--salvage"]);
    assert_eq!((salvaged.code, sent(&salvaged.stdout)), (Some(3), 100), "{salvaged:?}");
    assert!(salvaged.stderr.contains("100 frames were read, 8 bytes from line 51, byte "), "{salvaged:?}");
}

#[test]
#[ignore = "needs the lab: make test ONLY=traffic"]
fn a_timing_error_beyond_the_stated_limit_is_a_failure() {
    let _alone = alone();
    let _buses = Virtual::vcan(&["tra0", "tra1"], 72);
    let path = log("fidelity", 50);
    let replay = |limit| {
        let assigned = ["replay", &path, "tra0=can0", "tra1=can1"];
        canter(&[&assigned[..], &["-q", "--max-error", limit]].concat()).ended(DEADLINE)
    };
    let ended = replay("1ns");
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.complaint().ends_with("50 of 50 frames beyond --max-error 1 ns"), "{ended:?}");
    assert_eq!(replay("30s").code, Some(0));
}

#[test]
#[ignore = "needs the lab: make test ONLY=traffic"]
fn a_bus_that_goes_down_is_waited_for_once_and_the_other_goes_on() {
    let _alone = alone();
    let _buses = Virtual::vcan(&["tra0", "tra1"], 72);
    let path = log("down", 3000);
    let recorded = parse(&fs::read_to_string(&path).unwrap());
    let (first, other): (Vec<Seen>, Vec<Seen>) = recorded.into_iter().partition(|(_, bus, _)| bus == "can0");
    let witness = Witness::start(&["tra1"], other.len());
    let arguments = ["replay", &path, "tra0=can0", "tra1=can1", "--wait", "100ms", "--json", "-"];
    let mut running = canter(&arguments);
    let sent =
        || fs::read_to_string("/sys/class/net/tra0/statistics/tx_packets").unwrap().trim().parse::<u64>();
    eventually("it replays", || sent().unwrap() > 100);
    ip("link set tra0 down");
    running.until_it_says("tra0: send: no room for 100 ms (it is down: ip link set tra0 up)");
    ip("link set tra0 up");
    let ended = running.ended(DEADLINE);
    assert_eq!(ended.code, Some(3), "{ended:?}");
    let account = ended.json();
    let count = |at: usize, name: &str| number(&account["interfaces"][at][name]);
    let [down, up] = if account["interfaces"][0]["interface"] == "tra0" { [0, 1] } else { [1, 0] };
    assert_eq!(count(down, "sent") + count(down, "refused"), first.len() as u64);
    assert_eq!((count(up, "sent"), count(up, "refused")), (other.len() as u64, 0));
    assert!(count(down, "refused") > 0 && count(down, "sent") > 100);
    assert_eq!(texts(&witness.seen()), texts(&other), "the other bus has them all, in order");
}

#[test]
#[ignore = "needs the lab: make test ONLY=traffic"]
fn an_interface_that_is_deleted_meanwhile_ends_it_with_one_line() {
    let _alone = alone();
    let _buses = Virtual::vcan(&["tra0"], 72);
    let running = canter(&["generate", "tra0", "-g", "1", "-q"]);
    let sent =
        || fs::read_to_string("/sys/class/net/tra0/statistics/tx_packets").unwrap().trim().parse::<u64>();
    eventually("it sends", || sent().unwrap() > 10);
    ip("link delete tra0");
    let ended = running.ended(DEADLINE);
    assert_eq!((ended.code, ended.complaint()), (Some(1), "tra0: send: no such device (it has disappeared)"));
}

#[test]
#[ignore = "needs the lab: make test ONLY=traffic"]
fn a_full_queue_refuses_what_does_not_wait_and_holds_up_what_does() {
    let _alone = alone();
    let _cables = Virtual::vcan(&["tra0"], 72);
    // Slower than what is sent: a queue of ten frames that lets 100 of 16 bytes out in a second.
    ip("link set tra0 txqueuelen 10");
    output(
        "tc",
        &"qdisc add dev tra0 root tbf rate 12800 burst 160 limit 160".split(' ').collect::<Vec<_>>(),
    );
    let account = json(&["generate", "tra0", "-g", "1", "-n", "200", "-i", "-L", "8"], 0);
    let one = &account["interfaces"][0];
    let [sent, refused] = ["sent", "refused"].map(|name| number(&one[name]));
    assert!(sent + refused == 200 && refused > 50, "{one}");
    let flooded = json(&["generate", "tra0", "-g", "0", "-n", "60", "-L", "8"], 0);
    assert_eq!(number(&flooded["interfaces"][0]["sent"]), 60, "a flood waits: {flooded}");
}

#[test]
#[ignore = "needs the lab: make test ONLY=traffic"]
fn what_is_interrupted_says_so_unless_it_has_no_end_of_its_own() {
    let _alone = alone();
    let _buses = Virtual::vcan(&["tra0", "tra1"], 72);
    let path = log("interrupted", 1000);
    for (arguments, code) in [
        (&["generate", "tra0", "-g", "1"][..], 0),
        (&["generate", "tra0", "-g", "1", "-n", "1000000"], 130),
        (&["generate", "tra0", "-g", "3600000", "-n", "5"], 130),
        (&["replay", &path, "tra0=can0", "tra1=can1", "--speed", "0.01"], 130),
        (&["replay", &path, "tra0=can0", "tra1=can1", "--loop", "forever"], 0),
        (&["top", "--interval", "1s"], 0),
    ] {
        let running = canter(arguments);
        eventually("it catches signals", || running.catches_interrupts());
        running.signal("INT");
        let ended = running.ended(testbed::PROMPT);
        assert_eq!(ended.code, Some(code), "{ended:?}");
    }
}

#[test]
#[ignore = "needs the lab: make test ONLY=traffic"]
fn what_cannot_be_done_is_one_line_before_anything_is_sent() {
    let _alone = alone();
    let _buses = Virtual::vcan(&["tra0"], 16);
    let path = log("trouble", 10);
    fs::write("/tmp/traffic-bad.toml", "[[bus]]\ninterface = 'tra0'\n[[bus.frame]]\nid = 1\nperod = '1ms'\n")
        .unwrap();
    for (arguments, code, says) in [
        (
            &["generate", "tra0", "--traffic", "load=50%"][..],
            2,
            "tra0: --traffic load: its bit rate is unknown",
        ),
        (&["generate", "tra0", "--traffic", "one-at-a-time"], 2, "canter latency does"),
        (&["generate", "tra0", "tra0"], 2, "tra0: is given twice"),
        (&["generate", "tra0", "-I", "800"], 2, "identifier 800: more than 11 bits (-e makes it extended)"),
        (&["generate", "tra0", "-f"], 4, "tra0: cannot carry FD frames"),
        (&["generate", "can0"], 1, "can0: is down"),
        (&["generate", "tra9"], 1, "tra9: find: no such device"),
        (&["generate", "--car", "/nowhere.toml"], 1, "/nowhere.toml: read: no such file"),
        (
            &["generate", "--car", "/tmp/traffic-bad.toml"],
            2,
            "/tmp/traffic-bad.toml:5:1: \"perod\": unknown key",
        ),
        (&["replay", "/nowhere.log"], 1, "/nowhere.log: open: no such file"),
        (&["replay", &path, "-q", "tra9=can0"], 1, "tra9: find: no such device"),
        (&["replay", "-", "--loop", "2"], 2, "the standard input can be read only once"),
        (&["replay", "tra0=can0"], 2, "no FILE given"),
        (&["replay", &path, "--from", "2s", "--to", "1s"], 2, "--to: is not after --from"),
        (&["top", "tra9"], 1, "tra9: find: no such device"),
    ] {
        let ended = canter(arguments).ended(DEADLINE);
        assert_eq!(ended.code, Some(code), "{ended:?}");
        assert!(ended.complaint().contains(says), "{ended:?}");
    }
    let sent = fs::read_to_string("/sys/class/net/tra0/statistics/tx_packets").unwrap();
    assert_eq!(sent.trim(), "0");
}

#[test]
#[ignore = "needs the lab: make test ONLY=traffic"]
fn top_shows_what_is_on_the_buses() {
    let _alone = alone();
    let _buses = Virtual::vcan(&["tra0", "tra1"], 72);
    let _sender = canter(&[
        "generate",
        "tra0",
        "-g",
        "10",
        "-I",
        "123",
        "-L",
        "8",
        "-D",
        "1122334455667788",
        "--realtime",
        "50",
    ]);
    let _other = canter(&[
        "generate",
        "tra1",
        "-g",
        "20",
        "-f",
        "-I",
        "456",
        "-L",
        "12",
        "-D",
        "i",
        "--realtime",
        "50",
    ]);
    let sent = |name| fs::read_to_string(format!("/sys/class/net/{name}/statistics/tx_packets")).unwrap();
    eventually("both send", || ["tra0", "tra1"].iter().all(|name| sent(name).trim() != "0"));
    let document = json(&["top", "tra0", "tra1", "--once", "--bitrate", "500k", "--interval", "2s"], 0);
    let [first, second] = [&document["identifiers"][0], &document["identifiers"][1]];
    assert_eq!(
        (first["interface"].as_str(), first["frame"].as_str()),
        (Some("tra0"), Some("123#1122334455667788"))
    );
    assert!(second["frame"].as_str().unwrap().starts_with("456##4"), "{second}");
    if in_virtual_clock() {
        let frame: Frame = "123#1122334455667788".parse().unwrap();
        let bits = f64::from(frame.bits().total() + canter_io::frame::INTERFRAME_BITS);
        let load = document["buses"][0]["load_percent"].as_f64().unwrap();
        assert!((load - bits * 100.0 / 500_000.0 * 100.0).abs() < 0.05, "{load} % for {bits} bits at 100/s");
        assert!(number(&first["period_ns"]).abs_diff(10 * MS) < PUNCTUAL_NS, "{first}");
        assert!(number(&first["longest_ns"]) < 11 * MS, "{first}");
    }
    // Without the right to open rings it hears by sockets, and shows the same.
    let canter = program();
    let table = output(
        "setpriv",
        &["--reuid", "65534", "--clear-groups", canter, "top", "--once", "--filter", "123"],
    );
    let [.., bus, row] = table.lines().collect::<Vec<_>>()[..] else { panic!("{table}") };
    assert!(bus.starts_with("tra0 ") && bus.contains(" frames/s  0 errors  0 lost  up"), "{table}");
    assert!(row.starts_with("123 ") && row.ends_with("11 22 33 44 55 66 77 88"), "{table}");
}

/// The process that tmux has started on the terminal of top.
fn pane_process() -> String {
    output("tmux", &["-L", "top", "display-message", "-p", "-t", "top", "#{pane_pid}"]).trim().to_owned()
}

#[test]
#[ignore = "needs the lab: make test ONLY=traffic"]
fn top_gives_the_terminal_back_however_it_ends() {
    if !exists("lo") || start("tmux", &["-V"]).ended(DEADLINE).code != Some(0) {
        return testbed::skip("there is no tmux here (make setup installs it)");
    }
    let _alone = alone();
    let _buses = Virtual::vcan(&["tra0"], 72);
    let canter = program();
    for end in ["q", "TERM"] {
        let line = format!(
            "echo before; '{canter}' top tra0; echo ended with $?; stty -a | grep -o '.icanon'; sleep 1000"
        );
        output("tmux", &["-L", "top", "new-session", "-d", "-s", "top", "-x", "90", "-y", "20", &line]);
        let pane = || start("tmux", &["-L", "top", "capture-pane", "-p", "-t", "top"]).ended(DEADLINE).stdout;
        eventually("top is on the screen", || {
            pane().contains("0 errors  0 lost  up") && pane().contains("q quit")
        });
        assert!(!pane().contains("before"), "it has a screen of its own");
        output("tmux", &["-L", "top", "resize-window", "-t", "top", "-x", "50", "-y", "9"]);
        eventually("it fits the new size", || {
            pane().trim_end().lines().count() == 9
                && pane().lines().nth(8).is_some_and(|line| line.starts_with("q quit"))
        });
        match end {
            "q" => drop(output("tmux", &["-L", "top", "send-keys", "-t", "top", "q"])),
            _ => drop(output("pkill", &["-TERM", "-P", &pane_process()])),
        }
        eventually("the shell goes on", || pane().contains("ended with 0"));
        assert!(pane().contains("before") && !pane().contains("-icanon"), "{}", pane());
        output("tmux", &["-L", "top", "kill-server"]);
        eventually("tmux is gone", || start("tmux", &["-L", "top", "ls"]).ended(DEADLINE).code != Some(0));
    }
}

#[test]
#[ignore = "needs the lab: make test ONLY=traffic"]
fn top_names_messages_and_its_filter_finds_signals() {
    let _alone = alone();
    let _buses = Virtual::vcan(&["tra0"], 72);
    let database = "BO_ 291 Engine: 8 ECU\n SG_ Speed : 8|16@1+ (0.25,0) [0|0] \"rpm\" Dash\n \
                    SG_ Heat : 24|8@1+ (1,-40) [0|0] \"C\" Dash\n";
    fs::write("/tmp/traffic-top.dbc", database).unwrap();
    let send = |id| canter(&["generate", "tra0", "-g", "20", "-I", id, "-L", "8", "-D", "1122334455667788"]);
    let _senders = [send("123"), send("456")];
    let document = || json(&["top", "tra0", "--dbc", "tra0=/tmp/traffic-top.dbc", "--once"], 0);
    eventually("both identifiers are there", || document()["identifiers"].as_array().unwrap().len() == 2);
    let identifiers = &document()["identifiers"];
    let speed = &identifiers[0]["signals"][0];
    assert_eq!((identifiers[0]["name"].as_str(), speed["name"].as_str()), (Some("Engine"), Some("Speed")));
    assert_eq!((speed["value"].as_f64(), speed["unit"].as_str()), (Some(3272.5), Some("rpm")));
    assert!(identifiers[1]["name"].is_null() && identifiers[1]["signals"].is_null(), "{identifiers}");
    let table =
        output(program(), &["top", "tra0", "--dbc", "/tmp/traffic-top.dbc", "--once", "--filter", "heat"]);
    let [.., row, signals] = table.lines().collect::<Vec<_>>()[..] else { panic!("{table}") };
    assert!(row.starts_with("123      Engine "), "{table}");
    assert_eq!(signals, "  Heat 28 C");

    if !exists("lo") || start("tmux", &["-V"]).ended(DEADLINE).code != Some(0) {
        return testbed::skip("there is no tmux here (make setup installs it)");
    }
    let line = format!("'{}' top tra0 --dbc /tmp/traffic-top.dbc", program());
    output("tmux", &["-L", "top", "new-session", "-d", "-s", "top", "-x", "80", "-y", "12", &line]);
    let pane = || start("tmux", &["-L", "top", "capture-pane", "-p", "-t", "top"]).ended(DEADLINE).stdout;
    let has = |text: &str| pane().lines().any(|line| line.trim_end() == text);
    eventually("top shows both signals", || {
        has("  Speed 3272.50 rpm         Heat 28 C") && pane().contains("\n456 ")
    });
    output("tmux", &["-L", "top", "send-keys", "-t", "top", "/", "SPEED", "Enter"]);
    eventually("only the signal is left", || has("  Speed 3272.50 rpm") && !pane().contains("\n456 "));
    output("tmux", &["-L", "top", "send-keys", "-t", "top", "v"]);
    eventually("only the name is left", || {
        pane().contains("\n123      Engine") && !pane().contains("3272.50")
    });
    let process = pane_process();
    let name = || fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
    assert_eq!(name(), "canter\n");
    output("tmux", &["-L", "top", "kill-server"]);
    eventually("top has ended with its terminal", || name().is_empty());
}

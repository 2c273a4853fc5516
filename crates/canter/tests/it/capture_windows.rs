//@ machine: host
//@ also: all --kernel 6.1 --cpus 2
//@ or: --cpus 2
//! `canter capture --trigger` on buses of TUN devices: a plain recording beside it has all frames, and says which of them
//! belong to a window.

use crate::namespaces::ran_in_namespaces;
use crate::recorder::*;
use crate::tun_bus::{TunBuses, Uncounted};
use canter_formats::{Reader, Record};
use canter_io::{Frame, Identifier, method::Transmit};
use serde_json::Value;
use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

/// The identifier of events; the other frames have the number of their bus.
const EVENT: u16 = 0x700;
/// Stamps of two recordings of one frame differ by less than this.
const STAMP_NS: u64 = 20_000_000;

/// A frame of a recording: its stamp, its bus, and its number.
type Numbered = (u64, String, u32);

fn frames(file: &str) -> Vec<Numbered> {
    let mut reader = Reader::open(file, canter_formats::FORMATS).unwrap();
    let mut frames = Vec::new();
    while let Some(Record { stamp_ns, bus, frame, .. }) = reader.next_record().unwrap() {
        if !frame.is_error() {
            let number = u32::from_be_bytes(frame.data()[..4].try_into().unwrap());
            frames.push((stamp_ns, reader.names()[bus.index()].clone(), number));
        }
    }
    frames
}

/// Sends numbered frames, one on each bus, then a pause, and every so often a frame with the identifier of events.
fn drive(senders: &mut [Box<dyn Transmit>], count: u32, pause: Duration, events: &[u32]) {
    for number in 0..count {
        for (bus, sender) in senders.iter_mut().enumerate() {
            let id = if bus == 0 && events.contains(&number) { EVENT } else { bus as u16 };
            let frame = Frame::classic(Identifier::Sff(id), &number.to_be_bytes()).unwrap();
            assert_eq!(sender.transmit(&[frame]).unwrap(), 1);
        }
        std::thread::sleep(pause); // the traffic
    }
}

fn windows(account: &Value) -> Vec<Value> {
    account["triggered"]["windows"].as_array().unwrap().clone()
}

fn paths(window: &Value) -> Vec<String> {
    window["files"].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect()
}

/// Every frame that was received is in a file, filtered, lost, or was outside of all windows.
#[track_caller]
fn adds_up(account: &Value) {
    for bus in account["buses"].as_array().unwrap() {
        let fields = ["in_file", "filtered", "beyond", "outside", "queue_lost", "disk_lost", "window_lost"];
        let sum: u64 = fields.iter().map(|field| bus[field].as_u64().unwrap()).sum();
        assert_eq!(bus["seen"].as_u64().unwrap(), sum, "{bus}");
    }
}

/// The window's files have all frames of `all` that are clearly in it, and none that is clearly outside.
#[track_caller]
fn has_its_frames(window: &Value, all: &[Numbered]) {
    let kept: Vec<Numbered> = paths(window).iter().flat_map(|file| frames(file)).collect();
    let [from, until] = ["from_ns", "until_ns"].map(|field| window[field].as_u64().unwrap());
    let is_kept =
        |wanted: &Numbered| kept.iter().any(|(_, bus, number)| (bus, number) == (&wanted.1, &wanted.2));
    for frame in all {
        if frame.0 > from + STAMP_NS && frame.0 + STAMP_NS < until {
            assert!(is_kept(frame), "{frame:?} is missing: {window}");
        } else if frame.0 + STAMP_NS < from || frame.0 > until + STAMP_NS {
            assert!(!is_kept(frame), "{frame:?} is outside: {window}");
        }
    }
}

#[test]
fn each_event_has_a_file_with_the_time_around_it_and_nothing_else_is_kept() {
    if ran_in_namespaces() {
        return;
    }
    let (disk, buses) = (Disk::new("windows", "64M"), TunBuses::new("wa", 3));
    let (plain, event) = (disk.file("all.pcapng"), disk.file("event.pcapng"));
    let everything = Capture::start(&["any", "-o", &plain]);
    let capture = Capture::start(&[
        "any",
        "-o",
        &event,
        "--before",
        "400ms",
        "--after",
        "200ms",
        "--trigger",
        "wa0,700",
    ]);
    // Three windows: the events 500 and 540 are 200 ms apart or more, so that their windows join.
    drive(&mut buses.senders(), 1200, Duration::from_millis(4), &[200, 500, 540, 1190]);
    let (everything, ended) = (everything.stop(), capture.stop());
    is_complete(&everything, &account(&plain));
    is_complete(&ended, &account(&event));
    let (account, all) = (account(&event), frames(&plain));
    adds_up(&account);
    let windows = windows(&account);
    let causes = |window: &Value| window["causes"].as_array().unwrap().len();
    assert_eq!(windows.iter().map(causes).collect::<Vec<_>>(), [1, 2, 1], "{account}");
    windows.iter().for_each(|window| has_its_frames(window, &all));
    let written: u64 = windows.iter().map(|window| window["frames"].as_u64().unwrap()).sum();
    let outside: u64 =
        account["buses"].as_array().unwrap().iter().map(|bus| bus["outside"].as_u64().unwrap()).sum();
    assert_eq!((written + outside, account["frames"].as_u64()), (3600, Some(written)));
    // The cause is in the file, at the frame that caused it, and in its name's order.
    let first = &paths(&windows[0])[0];
    assert!(
        first.ends_with("event-000001.pcapng")
            && ended.said.contains("event 1: wa0,700: wa0 700#000000C8 → ")
    );
    if has("tshark") {
        let line = format!(
            "tshark -r {first} -Y 'frame.comment contains \"event 1\"' -T fields -e can.id -e frame.comment"
        );
        let said = sh(&line);
        assert!(said.contains("1792\tevent 1: wa0,700: wa0 700#000000C8"), "{said}");
    }
}

#[test]
fn no_frame_of_twenty_buses_that_are_flooded_is_lost_inside_a_window() {
    if ran_in_namespaces() {
        return;
    }
    const FRAMES: u32 = 10_000;
    let (disk, buses) = (Disk::new("flood", "64M"), TunBuses::new("we", 20));
    let file = disk.file("event.pcapng");
    let mut arguments =
        vec!["any", "-o", &file, "--before", "60s", "--after", "60s", "--window-buffer", "64M"];
    for condition in ["we0,700", "bus-off", "0C9#40:C0", "missing we1,001 > 10s"] {
        arguments.extend(["--trigger", condition]);
    }
    let capture = Capture::start(&arguments);
    // One bus after the other without a pause. The first half waits in memory, the second is written as it comes.
    drive(&mut buses.senders(), FRAMES, Duration::ZERO, &[FRAMES / 2]);
    let ended = capture.stop();
    let account = account(&file);
    is_complete(&ended, &account);
    adds_up(&account);
    let [window] = &windows(&account)[..] else { panic!("{account}") };
    let kept = paths(window).iter().flat_map(|file| frames(file)).collect::<Vec<_>>();
    for name in buses.names() {
        let numbers = kept.iter().filter(|(_, bus, _)| *bus == name).map(|(_, _, number)| *number);
        assert!(numbers.eq(0..FRAMES), "{name}: not each frame once and in order");
    }
    assert_eq!(account["frames"], 20 * FRAMES, "{account}");
}

#[test]
fn errors_missed_periods_new_identifiers_data_signals_and_a_signal_are_events() {
    if ran_in_namespaces() {
        return;
    }
    let (disk, buses) = (Disk::new("causes", "64M"), TunBuses::new("wb", 1));
    let file = disk.file("event.pcapng");
    let database = disk.file("car.dbc");
    fs::write(&database, "BO_ 256 Engine: 4 ECU\n SG_ Speed : 0|16@1+ (0.5,0) [0|0] \"rpm\" Dash\n").unwrap();
    let uncounted = Uncounted::onto("wb0", "wbe");
    let mut arguments = vec!["wb0", "-o", &file, "--before", "10ms", "--after", "1ms", "--dbc", &database];
    for condition in [
        "Engine.Speed > 1000",
        "0C9#40:C0",
        "wb0,bus-off",
        "error-passive",
        "overrun",
        "missing 0CA > 300ms",
        "new after 200ms",
        "SIGUSR1",
    ] {
        arguments.extend(["--trigger", condition]);
    }
    let mut capture = Capture::start(&arguments);
    let mut sender = buses.senders().remove(0);
    let mut send = |text: &str| {
        let frame: Frame = text.parse().unwrap();
        assert_eq!(sender.transmit(&[frame]).unwrap(), 1);
    };
    let texts = ["100#D0070000", "0C9#00", "0CA#00", "0CB#00"];
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(300) {
        texts.iter().for_each(|text| send(text));
        std::thread::sleep(Duration::from_millis(20)); // the traffic, of which the identifiers are learned
    }
    send("100#D1070000");
    send("0C9#7F");
    for text in ["20000040#0000000000000000", "20000004#0020000000000000", "20000004#0001000000000000"] {
        uncounted.send(&text.parse().unwrap());
    }
    send("0CC#00");
    capture.signal("USR1");
    capture.until_it_says(&[
        "Engine.Speed > 1000: wb0 100#D1070000: Engine.Speed = 1000.5 rpm",
        "0C9#40:C0: wb0 0C9#7F",
        "wb0,bus-off: wb0 20000040#",
        "error-passive: wb0 20000004#",
        "overrun: wb0 20000004#",
        "missing 0CA > 300ms: wb0: none for 300ms",
        "new after 200ms: wb0 0CC#00",
        "SIGUSR1",
    ]);
    let ended = capture.stop();
    let account = account(&file);
    adds_up(&account);
    assert_eq!(account["triggered"]["events"], 8, "{}", ended.said);
}

#[test]
fn an_open_window_is_ended_by_sigterm_and_the_account_says_that_it_was_cut() {
    if ran_in_namespaces() {
        return;
    }
    let (disk, buses) = (Disk::new("cut", "16M"), TunBuses::new("wc", 1));
    let file = disk.file("event.log");
    let mut capture = Capture::start(&["wc0", "-o", &file, "--after", "1h", "--trigger", "700"]);
    drive(&mut buses.senders(), 50, Duration::from_millis(1), &[30]);
    capture.until_it_says(&["event 1: 700"]);
    let ended = capture.stop();
    let account = account(&file);
    is_complete(&ended, &account);
    let window = &windows(&account)[0];
    assert_eq!((&window["cut"], &window["frames"]), (&Value::Bool(true), &Value::from(50)), "{account}");
    assert_each(&numbers_of_lines(&fs::read_to_string(&paths(window)[0]).unwrap()).0, &buses.names(), 50);
}

#[test]
fn without_an_event_no_file_is_made_and_every_frame_is_accounted_for() {
    if ran_in_namespaces() {
        return;
    }
    let (disk, buses) = (Disk::new("none", "16M"), TunBuses::new("wd", 2));
    let file = disk.file("event.pcapng");
    let capture = Capture::start(&["any", "-o", &file, "--before", "1s", "--trigger", "700"]);
    send(&mut buses.senders(), 0, 500);
    let ended = capture.stop();
    let account = account(&file);
    is_complete(&ended, &account);
    adds_up(&account);
    let names: Vec<_> = fs::read_dir(&disk.0).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["event.pcapng.account.json"]);
    assert!(
        ended.said.contains("0 events in 0 windows, 1000 frames outside of them not kept"),
        "{}",
        ended.said
    );
}

#[test]
fn a_full_disk_in_a_window_loses_frames_of_that_window_and_says_so_and_the_next_window_is_whole() {
    if ran_in_namespaces() {
        return;
    }
    let (disk, buses) = (Disk::new("fulldisk", "2M"), TunBuses::new("we", 1));
    let file = disk.file("event.pcapng");
    let mut capture =
        Capture::start(&["we0", "-o", &file, "--before", "0s", "--after", "100ms", "--trigger", "700"]);
    let hog = disk.file("hog");
    sh(&format!("head -c 4M /dev/zero > {hog} || true"));
    let mut senders = buses.senders();
    drive(&mut senders, 20, Duration::from_millis(1), &[5]);
    capture.until_it_says(&["no space left on device", "the window is over"]);
    fs::remove_file(&hog).unwrap();
    drive(&mut senders, 20, Duration::from_millis(1), &[]);
    // The first window's file is closed a second after its end, because a late frame may belong to it.
    std::thread::sleep(Duration::from_millis(1200));
    drive(&mut senders, 20, Duration::from_millis(1), &[5]);
    capture.until_it_says(&["event 2: 700"]);
    let ended = capture.stop();
    let account = account(&file);
    adds_up(&account);
    let lost = account["lost"]["disk"].as_u64().unwrap();
    assert!(ended.code == Some(3) && lost > 0, "{}", ended.said);
    let windows = windows(&account);
    assert_eq!(windows.len(), 2, "{account}");
    assert_eq!(windows[1]["frames"], 15, "{account}");
    assert!(
        account["verdict"].as_str().unwrap().contains(&format!("{lost} frames lost at the disk")),
        "{account}"
    );
}

#[test]
fn triggers_that_cannot_work_are_refused_by_one_line() {
    if ran_in_namespaces() {
        return;
    }
    let (disk, _buses) = (Disk::new("refused", "16M"), TunBuses::new("wf", 2));
    let file = disk.file("event.pcapng");
    let table: &[(&[&str], i32, &str)] = &[
        (&["wf0", "--trigger", "bus_off"], 2, "\"bus_off\" is no condition"),
        (&["wf0", "--trigger", "wf1,700"], 2, "trigger \"wf1,700\": wf1 is not recorded (record it, too"),
        (&["wf0,700:7FF", "--trigger", "bus-off"], 2, "pass no error frames (add #FFFFFFFF to them)"),
        (&["wf0", "--trigger", "Speed > 3"], 2, "--trigger \"Speed > 3\": needs --dbc FILE"),
        (&["wf0", "--before", "10000h", "--trigger", "700"], 4, "MB are free (at most"),
        (&["wf0", "--before", "1s"], 2, "--trigger"),
        (&["wf0", "--trigger", "700", "--dbc", "/nowhere.dbc"], 1, "/nowhere.dbc: read: "),
    ];
    for &(arguments, code, says) in table {
        let ended = refused(&[arguments, &["-o", &file][..]].concat());
        assert!(
            ended.code == Some(code) && ended.said.contains(says),
            "{arguments:?}: {:?} {}",
            ended.code,
            ended.said
        );
        assert_eq!(
            ended.said.lines().filter(|line| line.starts_with("canter: ")).count(),
            1,
            "{}",
            ended.said
        );
        assert!(!Path::new(&format!("{file}.account.json")).exists(), "{arguments:?}");
    }
    let ended = refused(&["wf0", "--trigger", "700", "-o", "-", "--format", "pcapng"]);
    assert!(ended.code == Some(2) && ended.said.contains("each event has a file"), "{}", ended.said);
}

//@ machine: --clock virtual
//@ parts: 2
//! `canter capture` in trouble, in the lab: each time a line that says what is wrong, and an account that closes.

use crate::{recorder::*, testbed};
use canter_io::{Interface, interface::BitTiming};
use serde_json::Value;
use std::{
    fs,
    time::{Duration, Instant},
};

const SECOND: Duration = Duration::from_secs(1);

#[test]
#[ignore = "needs the lab: make test ONLY=capture_trouble"]
fn an_interface_that_is_removed_and_made_again_is_recorded_as_the_same_and_all_is_counted() {
    returning::removed_and_made_again::<Cables>("ta", &[&["--direction"]]); // by sockets
}

#[test]
#[ignore = "needs the lab: make test ONLY=capture_trouble"]
fn interfaces_that_come_later_are_waited_for() {
    // By sockets.
    returning::made_later::<Cables>("tb", &[&["tb0", "tb1", "tb2", "--wait-for-interface", "--direction"]]);
}

#[test]
#[ignore = "needs the lab: make test ONLY=capture_trouble"]
fn without_the_permission_for_rings_sockets_record_and_count_their_losses_by_bus() {
    let (disk, cables) = (Disk::new("plain", "16M"), Cables::new("td", 2));
    let names = cables.names();
    sh(&format!("chmod 777 {}", disk.0.display()));
    let plain = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--reuid=65534"];
    let file = disk.file("a.log");
    let capture = Capture::start_by(&plain, &["td0", "td1", "-o", &file]);
    let mut senders = cables.senders();
    for start in (0..1000).step_by(50) {
        send(&mut senders, start, start + 50);
        std::thread::sleep(Duration::from_millis(20));
    }
    let ended = capture.stop();
    let document = account(&file);
    is_complete(&ended, &document);
    assert_all(&file, &names, 1000);
    assert_eq!(document["method"], "sockets");
    assert!(events(&document).contains("without CAP_NET_RAW"), "{document}");

    // While it is stopped, each bus has its own queue, as long as the system permits, and its own count.
    let file = disk.file("b.log");
    let capture = Capture::start_by(&plain, &["td0", "td1", "-o", &file]);
    capture.signal("STOP");
    send(&mut senders[..1], 0, 1000);
    send(&mut senders, 1000, 1100);
    capture.signal("CONT");
    let ended = capture.stop();
    let document = account(&file);
    let [one, other] = [0, 1].map(|at| document["buses"][at]["ring_lost"].as_u64().unwrap());
    assert_eq!((ended.code, other), (Some(3), 0), "{}", ended.said);
    assert!(one > 100, "{document}");
    assert_eq!(document["verdict"], format!("{one} frames lost at the sockets ({one})"));
    assert_eq!(document["buses"][0]["in_file"], 1100 - one, "{document}");
    assert_eq!(document["buses"][1]["in_file"], 100, "{document}");
}

#[test]
#[ignore = "needs the lab: make test ONLY=capture_trouble"]
fn sockets_tell_who_sent_a_frame_and_readers_understand_it() {
    let disk = Disk::new("way", "16M");
    sh("ip link add te0 type vxcan peer name te1 && ip link set te0 up && ip link set te1 up");
    for end in ["log", "pcapng"] {
        let file = disk.file(&format!("a.{end}"));
        let capture = Capture::start(&["te0", "-o", &file, "--direction"]);
        sh("cansend te0 111#01; cansend te1 222#02; cansend te1 333#03");
        let ended = capture.stop();
        let account = account(&file);
        is_complete(&ended, &account);
        if end == "log" {
            let lines = fs::read_to_string(&file).unwrap();
            let tails: Vec<&str> = lines.lines().map(|line| line.split_once(' ').unwrap().1).collect();
            assert_eq!(tails, ["te0 111#01 T", "te0 222#02 R", "te0 333#03 R"]);
            assert_eq!(sh(&format!("canplayer -I {file} stdout=te0 2>&1 | grep -c '#'")).trim(), "3");
        } else if has("tshark") {
            let read = sh(&format!("tshark -r {file} -T fields -e can.id -e frame.packet_flags_direction"));
            let pairs: Vec<Vec<u32>> =
                read.lines().map(|line| line.split_whitespace().map(number).collect()).collect();
            assert_eq!(pairs, [[0x111, 2], [0x222, 1], [0x333, 1]], "{read}");
        }
    }
    let refused = refused(&["te0", "-o", "/tmp/stamps.log", "--hw-stamps"]);
    assert!(
        refused.code == Some(2) && refused.said.contains("no place for hardware stamps"),
        "{}",
        refused.said
    );
    sh("ip link delete te0");
}

fn number(text: &str) -> u32 {
    text.strip_prefix("0x").map_or_else(|| text.parse().unwrap(), |hex| u32::from_str_radix(hex, 16).unwrap())
}

#[test]
#[ignore = "needs the lab: make test ONLY=capture_trouble"]
fn error_frames_are_kept_and_counted_by_kind_in_candumps_words() {
    let disk = Disk::new("errors", "16M");
    sh("ip link add tf0 type vcan && ip link set tf0 up");
    let log: String = (0..9u32)
        .flat_map(|class| (0..9u32).map(move |bit| (1u32 << class, 1u32 << bit >> 1)))
        .map(|(class, bit)| {
            let data = format!("{:02X}{bit:02X}{bit:02X}{:02X}0000{:02X}{bit:02X}", bit, bit % 29, 0);
            format!("(1700000000.000000) tf0 {:08X}#{data}\n", 0x2000_0000 | class)
        })
        .collect();
    let (list, said) = (disk.file("list.log"), disk.file("said"));
    fs::write(&list, &log).unwrap();
    let file = disk.file("a.log");
    for others in [&[][..], &["--direction"]] {
        let mut arguments = vec!["tf0", "-o", &file, "--overwrite"];
        arguments.extend(others);
        let capture = Capture::start(&arguments);
        sh(&format!(
            "candump -n 81 -e -x tf0,0~0,#FFFFFFFF > {said} &
             until grep -q ' tf0 ' /proc/net/can/rcvlist_inv; do sleep 0.02; done; canplayer -t -I {list}; wait $!"
        ));
        let ended = capture.stop();
        let account = account(&file);
        assert_eq!(account["frames"], 81, "{}", ended.said);
        assert_eq!(account["buses"][0]["errors"]["bus-off"], 9, "{account}");
        assert_eq!(account["buses"][0]["errors"]["rx-overflow"], 1, "{account}");
    }
    // candump's words, one class a line, are ours.
    let text = fs::read_to_string(&said).unwrap();
    let theirs: Vec<String> = text
        .split("ERRORFRAME")
        .skip(1)
        .map(|part| {
            let lines = part.lines().skip(1).filter(|line| line.starts_with('\t'));
            lines.map(str::trim).collect::<Vec<_>>().join(", ")
        })
        .collect();
    let ours: Vec<String> = log
        .lines()
        .map(|line| {
            let frame = canter_io::LogLine::parse(line).unwrap().unwrap().frame;
            canter_io::error_frame::ErrorFrame::from_frame(&frame).unwrap().to_string()
        })
        .collect();
    assert_eq!(theirs.len(), 81, "{text}");
    for (theirs, ours) in theirs.iter().zip(&ours) {
        assert_eq!(theirs, ours);
    }
    sh("ip link delete tf0");
}

#[test]
#[ignore = "needs the lab: make test ONLY=capture_trouble"]
fn a_clock_that_is_set_back_is_marked_and_no_stamp_rewritten() {
    let (disk, cables) = (Disk::new("clock", "16M"), Cables::new("tg", 1));
    let file = disk.file("a.pcapng");
    let mut capture = Capture::start(&["tg0", "-o", &file]);
    send(&mut cables.senders(), 0, 50);
    wait_for_packets(&file, 50); // what it has not read yet when the clock is set would be behind the mark
    wait_until_a_clock_step_is_certain();
    sh("date -s \"@$(( $(date +%s) - 3600 ))\"");
    capture.until_it_says(&["the clock was set back by"]);
    send(&mut cables.senders(), 50, 100);
    let ended = capture.stop();
    sh("date -s \"@$(( $(date +%s) + 3600 ))\"");
    let account = account(&file);
    is_complete(&ended, &account);
    assert_eq!(
        (account["clock_steps"].as_u64(), account["frames"].as_u64(), account["late"].as_u64()),
        (Some(1), Some(100), Some(0)),
        "{account}"
    );
    // An hour, and up to a second, since `date` counts whole ones.
    assert!(events(&account).contains("the clock was set back by 360"), "{account}");
    assert!(ended.said.contains("the clock was set 1 times"), "{}", ended.said);
    if has("tshark") {
        let steps = sh(&format!("tshark -r {file} -T fields -e frame.time_delta"));
        let back: Vec<&str> = steps.lines().filter(|delta| delta.starts_with('-')).collect();
        // Set to a whole second an hour ago, about a second after the frame before.
        let hour = |delta: &str| (-3610.0..-3500.0).contains(&delta.parse::<f64>().unwrap());
        assert!(back.len() == 1 && hour(back[0]), "{back:?}");
        let marks = sh(&format!("tshark -r {file} -T fields -e frame.number -e frame.comment | grep clock"));
        assert!(marks.starts_with("51\tthe clock was set back"), "{marks}");
    }
}

/// A file system that can be frozen.
struct Image(String);

impl Image {
    fn new(name: &str) -> Self {
        let folder = format!("/tmp/image-{name}");
        sh(&format!(
            "modprobe -a loop ext4; mkdir -p {folder} && truncate -s 64M {folder}.img && mkfs.ext4 -q -F {folder}.img &&
             mount -o loop {folder}.img {folder}"
        ));
        Self(folder)
    }

    fn freeze(&self, on: bool) {
        sh(&format!("fsfreeze {} {}", if on { "-f" } else { "-u" }, self.0));
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        let folder = &self.0;
        sh(&format!("fsfreeze -u {folder} 2>/dev/null; umount -l {folder}; rm -f {folder}.img; true"));
    }
}

#[test]
#[ignore = "needs the lab: make test ONLY=capture_trouble"]
fn a_disk_that_is_frozen_for_ten_seconds_costs_no_frame() {
    let (image, cables) = (Image::new("frozen"), Cables::new("tj", 2));
    let file = format!("{}/a.log", image.0);
    let capture = Capture::start(&["tj0", "tj1", "-o", &file]);
    let mut senders = cables.senders();
    send(&mut senders, 0, 1000);
    wait_for_lines(&file, 2000);
    image.freeze(true);
    let frozen = Instant::now();
    let mut next = 1000;
    while frozen.elapsed() < 10 * SECOND {
        send(&mut senders, next, next + 500);
        next += 500;
        std::thread::sleep(Duration::from_millis(100)); // the load: 500 frames on each bus, ten times a second
    }
    image.freeze(false);
    let ended = capture.stop();
    let account = account(&file);
    is_complete(&ended, &account);
    assert_all(&file, &cables.names(), next);
    assert!(account["queue_high_water_bytes"].as_u64().unwrap() > 1 << 20, "{account}");
}

#[test]
#[ignore = "needs the lab: make test ONLY=capture_trouble"]
fn an_end_during_a_stall_waits_says_so_and_gives_up_when_told_again() {
    let (image, cables) = (Image::new("stall"), Cables::new("tk", 1));
    let file = format!("{}/a.log", image.0);
    let mut capture = Capture::start(&["tk0", "-o", &file, "--json", "/tmp/capture-stall.json"]);
    send(&mut cables.senders(), 0, 100);
    wait_for_lines(&file, 100);
    image.freeze(true);
    send(&mut cables.senders(), 100, 200);
    let id = capture.id();
    eventually("the writer is stuck in the frozen disk", || {
        sh(&format!("cat /proc/{id}/task/*/stat")).lines().any(|line| line.contains(") D "))
    });
    capture.signal("INT");
    let line = capture.line();
    assert!(line.contains("waiting for the disk") && line.contains("Ctrl-C discards them"), "{line}");
    capture.signal("INT");
    let mut said = String::new();
    while !said.contains("canter: ") {
        let line = capture.line();
        assert!(!line.is_empty(), "{said}");
        said += &line;
    }
    assert!(said.contains("capture: 100 frames lost at the disk (100)"), "{said}");
    image.freeze(false); // before that, no process leaves a write to a frozen file system
    let ended = capture.wait();
    assert_eq!(ended.code, Some(3), "{}", ended.said);
    let account: Value =
        serde_json::from_str(&fs::read_to_string("/tmp/capture-stall.json").unwrap()).unwrap();
    assert_eq!(
        (account["frames"].as_u64(), account["lost"]["disk"].as_u64()),
        (Some(100), Some(100)),
        "{account}"
    );
    assert!(account["failure"].as_str().unwrap().contains("ended before"), "{account}");
}

#[test]
#[ignore = "needs the lab: make test ONLY=capture_trouble"]
fn what_an_sja1000_loses_is_told_of_as_overrun_events() {
    let disk = Disk::new("card", "16M");
    for name in ["can0", "can1"] {
        let mut card = Interface::find(name).unwrap();
        let _ = card.down();
        card.set_bit_timing(&BitTiming { bitrate: 500_000, ..BitTiming::default() }).unwrap();
        card.up().unwrap();
    }
    let file = disk.file("a.log");
    let capture = Capture::start(&["can1", "-o", &file]);
    // Nothing paces the emulated bus, so the 64 bytes of the other controller's FIFO overrun.
    sh("ip link set can0 txqueuelen 1000; cangen can0 -g 0 -n 3000 -p 10 -I 123 -L 8 -D i; sleep 1");
    let ended = capture.stop();
    let account = account(&file);
    let events = account["lost"]["overrun_events"].as_u64().unwrap();
    // Whether it does depends on the host; capture_wire.rs has a controller that is sure to.
    if account["frames"] == 3000 {
        assert_eq!((events, ended.code), (0, Some(0)), "{account}");
        return;
    }
    assert_eq!(ended.code, Some(3), "{}", ended.said);
    let verdict = format!("incomplete: at least {events} overrun events, number of frames unknown");
    assert!(account["verdict"].as_str().unwrap().starts_with(&verdict), "{account}");
    assert_eq!(account["buses"][0]["errors"]["rx-overflow"], events, "each is an error frame too: {account}");
}

#[test]
#[ignore = "needs the lab: make test ONLY=capture_trouble"]
fn a_full_backlog_is_named_as_the_place_of_the_loss_with_the_way_out() {
    let (disk, _cables) = (Disk::new("backlog", "16M"), Cables::new("tm", 1));
    // One frame makes 40 before the processor comes to the first of them: all wait in its backlog.
    sh("modprobe -a vcan can-gw; ip link add tmin type vcan && ip link set tmin up
        for n in $(seq 40); do cangw -A -s tmin -d tms0; done");
    let limit = "/proc/sys/net/core/netdev_max_backlog";
    for frames_max in [8, 1000] {
        fs::write(limit, frames_max.to_string()).unwrap();
        let file = disk.file(&format!("{frames_max}.log"));
        let capture = Capture::start(&["tm0", "-o", &file]);
        sh("cansend tmin 123#11");
        let ended = capture.stop();
        let account = account(&file);
        if frames_max == 1000 {
            is_complete(&ended, &account);
            assert_eq!(account["frames"], 40, "{account}");
            continue;
        }
        let lost = 40 - account["frames"].as_u64().unwrap();
        assert!(lost > 20, "{account}");
        assert_eq!((ended.code, account["lost"]["backlog"].as_u64()), (Some(3), Some(lost)), "{account}");
        let verdict = format!("{lost} frames lost at the backlog ({lost})");
        assert_eq!(account["verdict"], verdict);
        let remedy = "(a longer backlog prevents this: sysctl -w net.core.netdev_max_backlog=2000)";
        assert!(ended.said.ends_with(&format!("{file}: {verdict} {remedy}\n")), "{}", ended.said);
    }
    sh("cangw -F; ip link delete tmin");
}

#[test]
#[ignore = "needs the lab: make test ONLY=capture_trouble"]
fn while_the_kernel_lets_nobody_ask_for_interfaces_a_recording_goes_on_and_ends() {
    sh("modprobe tun");
    // With the option it looks at its interfaces once a second.
    for options in [&[][..], &["--wait-for-interface"]] {
        let (disk, cables) = (Disk::new("held", "16M"), Cables::new("tr", 2));
        let file = disk.file("a.log");
        let mut senders = cables.senders();
        let capture = Capture::start(&[&["tr0", "tr1", "-o", &file], options].concat());
        send(&mut senders, 0, 100);
        let holder = testbed::start("python3", &[concat!(env!("CARGO_MANIFEST_DIR"), "/tests/hold_rtnl.py")]);
        eventually("the mutex is held", || holder.printed().contains("held"));
        let asked = testbed::start("ip", &["link", "show", "tr0"]);
        if !options.is_empty() {
            std::thread::sleep(Duration::from_secs(2)); // nothing shows that it has looked
        }
        send(&mut senders, 100, 200);
        let ended = capture.stop();
        let document = account(&file);
        assert_eq!(asked.printed(), "", "nobody is answered meanwhile");
        is_complete(&ended, &document);
        assert_all(&file, &cables.names(), 200);
        holder.signal("KILL");
    }
}

#[test]
#[ignore = "needs the lab: make test ONLY=capture_trouble"]
fn a_frame_of_an_interface_that_the_kernel_does_not_name_keeps_a_recording_from_nothing() {
    sh("modprobe tun; ip link add busy type vcan");
    let (disk, cables) = (Disk::new("unnamed", "16M"), Cables::new("tn", 2));
    let file = disk.file("a.log");
    let mut senders = cables.senders();
    let capture = Capture::start(&["any", "-o", &file]);
    send(&mut senders, 0, 100);
    capture.signal("STOP");
    drop_reports("busy");
    let new = Cables::new("tm", 1);
    let received = || sh("cat /sys/class/net/tm0/statistics/rx_packets").trim().parse::<u64>().unwrap();
    // Until the kernel has seen that both ends are up, it drops what is sent.
    eventually("the new interface has a frame", || {
        send(&mut new.senders(), 0, 1);
        received() > 0
    });
    let holder = testbed::start("python3", &[concat!(env!("CARGO_MANIFEST_DIR"), "/tests/hold_rtnl.py")]);
    eventually("the mutex is held", || holder.printed().contains("held"));
    capture.signal("CONT");
    send(&mut senders, 100, 200);
    capture.signal("TERM");
    eventually("the account is final", || account(&file)["ended_ns"] != 0);
    // Until now the kernel keeps the thread that asks, and so what the recorder prints to.
    holder.signal("KILL");
    let ended = capture.wait();
    let account = account(&file);
    assert_eq!((ended.code, &account["doubtful"]), (Some(0), &received().into()), "{account:#}");
    assert_all(&file, &cables.names(), 200);
    sh("ip link delete busy");
}

#[test]
#[ignore = "needs the lab: make test ONLY=capture_trouble"]
fn a_recorder_that_may_open_no_file_more_keeps_what_it_has_and_is_not_complete() {
    sh("ip link add busy type vcan");
    let (disk, cables) = (Disk::new("files", "16M"), Cables::new("tf", 2));
    let file = disk.file("a.log");
    let mut senders = cables.senders();
    let capture = Capture::start(&["any", "-o", &file]);
    send(&mut senders, 0, 100);
    wait_for_lines(&file, 200);
    let id = capture.id();
    sh(&format!("prlimit --pid {id} --nofile=$(ls /proc/{id}/fd | wc -l)"));
    capture.signal("STOP");
    drop_reports("busy");
    capture.signal("CONT");
    send(&mut senders, 100, 200);
    let ended = capture.stop();
    let account = account(&file);
    assert_eq!(ended.code, Some(3), "{}", ended.said);
    let verdict = account["verdict"].as_str().unwrap();
    assert!(verdict.contains("unknown (removed, or not to be read)"), "{verdict}");
    assert_all(&file, &cables.names(), 200);
    sh("ip link delete busy");
}

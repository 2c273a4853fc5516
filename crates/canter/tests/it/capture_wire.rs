//@ machine: --bus wire --clock virtual
//! `canter capture` on canwire's controllers: what a controller loses, a controller that leaves the bus, and the
//! controllers' own stamps. All of it happens when the test says so.

use crate::{
    overrun::{PERIOD_NS, send_to_nobody, source, wait_for_source},
    recorder::*,
    testbed::{Nodes, program},
};
use canter_io::{
    Frame, LogLine,
    interface::BitTiming,
    netlink::wire::{self, Fifo, NodeOptions},
};
use std::{fs, time::Duration};

#[test]
#[ignore = "needs the lab: make test ONLY=capture_wire"]
fn a_controller_that_overruns_is_told_of_by_events_and_not_by_a_number_of_frames() {
    let disk = Disk::new("overrun", "16M");
    let options = NodeOptions { fifo: Some(Fifo::Frames(5)), ..NodeOptions::default() };
    let _nodes = Nodes::up_with(&["to0", "to1"], "O", &options, &BitTiming::classic(500_000));
    for name in ["a.pcapng", "a.log"] {
        let file = disk.file(name);
        let capture = Capture::start(&["to0", "-o", &file]);
        send_to_nobody("to0", "O", 9);
        if name == "a.log" {
            wait_for_lines(&file, 6)
        } else {
            wait_for_packets(&file, 6)
        }
        let ended = capture.stop();
        let document = account(&file);
        let bus = &document["buses"][0];
        assert_eq!((ended.code, &bus["in_file"]), (Some(3), &6.into()), "5 frames, 1 error: {document}");
        assert_eq!(
            (&document["lost"]["overrun_events"], &bus["overrun_events"]),
            (&1.into(), &1.into()),
            "{document}"
        );
        assert_eq!((&bus["errors"]["rx-overflow"], &bus["ring_lost"]), (&1.into(), &0.into()), "{document}");
        let verdict = "incomplete: at least 1 overrun events, number of frames unknown";
        assert_eq!(document["verdict"], verdict);
        let remedy = "(canter doctor finds what delays this machine's interrupts)";
        assert!(ended.said.ends_with(&format!("a.{}: {verdict} {remedy}\n", &name[2..])), "{}", ended.said);
    }
}

#[test]
#[ignore = "needs the lab: make test ONLY=capture_wire"]
fn a_controller_that_goes_off_the_bus_and_comes_back_is_recorded_on_both_sides() {
    let disk = Disk::new("busoff", "16M");
    let _nodes = Nodes::up(&["tp0", "tp1"], "P", &BitTiming::classic(500_000));
    let file = disk.file("a.log");
    let mut capture = Capture::start(&["tp0", "-o", &file]);
    sh("cansend tp1 101#01; cansend tp1 102#02");
    let canter = program();
    // Its own frame fails until its error counter has reached 256; the fault ends with the count.
    sh(&format!("'{canter}' wire fault inject P --error bit --node tp0 --count 40 && cansend tp0 103#03"));
    capture.until_it_says(&["tp0: is off the bus"]);
    sh(&format!("'{canter}' wire fault clear P && ip link set tp0 type can restart"));
    capture.until_it_says(&["tp0: is on the bus again"]);
    sh("cansend tp1 104#04; cansend tp1 105#05");
    eventually("tp0 has heard the last", || fs::read_to_string(&file).unwrap().contains("105#05"));
    let ended = capture.stop();
    let document = account(&file);
    assert_eq!((ended.code, &document["verdict"]), (Some(0), &"complete".into()), "{document}");
    assert_eq!(document["buses"][0]["errors"]["bus-off"], 1, "{document}");
    let text = fs::read_to_string(&file).unwrap();
    let frames: Vec<Frame> = text.lines().map(|line| LogLine::parse(line).unwrap().unwrap().frame).collect();
    let data: Vec<String> = frames.iter().filter(|frame| !frame.is_error()).map(Frame::to_string).collect();
    assert_eq!(data, ["101#01", "102#02", "104#04", "105#05"]);
    // Bus off and restarted: 0x040 and 0x100 of linux/can/error.h.
    let place = |class: u32| frames.iter().position(|frame| frame.is_error() && frame.can_id & class != 0);
    assert!(place(0x40).unwrap() < place(0x100).unwrap(), "{text}");
}

#[test]
#[ignore = "needs the lab: make test ONLY=capture_wire"]
fn the_controllers_stamp_is_kept_beside_the_kernels_and_the_order_is_the_kernels() {
    let disk = Disk::new("stamps", "16M");
    let timing = BitTiming::classic(500_000);
    let _one = Nodes::up(&["tq0", "tq1"], "Q", &timing);
    let _other = Nodes::up(&["tr0", "tr1"], "R", &timing);
    let file = disk.file("a.pcapng");
    let capture = Capture::start(&["tq0", "tr0", "-o", &file, "--hw-stamps"]);
    for bus in ["Q", "R"] {
        wire::start(bus, &source(50)).unwrap();
    }
    ["Q", "R"].into_iter().for_each(wait_for_source);
    wait_for_packets(&file, 100); // the last frame is on the wire when its source has ended
    let ended = capture.stop();
    let document = account(&file);
    assert_eq!(
        (ended.code, &document["verdict"], &document["late"]),
        (Some(0), &"complete".into(), &0.into()),
        "{document}"
    );
    assert_eq!(document["frames"], 100);
    let read = sh(&format!(
        "tshark -r {file} -T fields -e frame.interface_name -e frame.time_epoch -e frame.comment"
    ));
    let rows: Vec<Vec<&str>> = read.lines().map(|line| line.split('\t').collect()).collect();
    let ns = |text: &str| text.replace('.', "").parse::<u64>().unwrap();
    let kernel: Vec<u64> = rows.iter().map(|row| ns(row[1])).collect();
    assert!(kernel.is_sorted() && kernel.len() == 100, "{read}");
    for bus in ["tq0", "tr0"] {
        let bus_rows = rows.iter().filter(|row| row[0] == bus);
        let hardware: Vec<u64> =
            bus_rows.map(|row| ns(row[2].strip_prefix("hardware stamp ").expect("a second stamp"))).collect();
        // The wire keeps its time to the ns, whatever the machine does.
        assert!(hardware.windows(2).all(|pair| pair[1] - pair[0] == PERIOD_NS), "{bus}: {hardware:?}");
        assert_eq!(hardware.len(), 50);
    }
}

#[test]
#[ignore = "needs the lab: make test ONLY=capture_wire"]
fn aligned_stamps_keep_the_wires_distances_and_no_bound_is_wrong() {
    const FRAMES: u32 = 2000;
    let disk = Disk::new("aligned", "16M");
    let timing = BitTiming::classic(500_000);
    let _one = Nodes::up(&["ts0", "ts1"], "S", &timing);
    let _other = Nodes::up(&["tt0", "tt1"], "T", &timing);
    let file = disk.file("a.pcapng");
    let capture = Capture::start(&["ts0", "tt0", "-o", &file, "--clock-align"]);
    for bus in ["S", "T"] {
        wire::start(bus, &source(FRAMES)).unwrap();
    }
    ["S", "T"].into_iter().for_each(wait_for_source);
    wait_for_packets(&file, 2 * FRAMES as usize);
    let ended = capture.stop();
    let document = account(&file);
    is_complete(&ended, &document);
    for bus in document["buses"].as_array().unwrap() {
        let alignment = &bus["alignment"];
        assert_eq!((&alignment["frames"], &alignment["restarts"]), (&FRAMES.into(), &0.into()), "{bus}");
        assert!(alignment["bound_ns"].as_u64() < alignment["bound_max_ns"].as_u64(), "{bus}");
        assert_eq!(alignment["kernel_bound_ns"], 20_000_000, "{bus}");
        let bounds: Vec<u64> = alignment["bounds"]
            .as_array()
            .unwrap()
            .iter()
            .map(|span| span["bound_ns"].as_u64().unwrap())
            .collect();
        assert!(bounds.iter().max() >= alignment["bound_max_ns"].as_u64().as_ref(), "{bus}");
        assert!(bounds.last() >= alignment["bound_ns"].as_u64().as_ref(), "{bus}");
    }
    assert!(document["system_clock"]["error_max_ns"].is_u64(), "{document}");
    assert!(document["system_clock"]["programs"].is_array(), "{document}");
    let read = sh(&format!(
        "tshark -r {file} -T fields -e frame.interface_name -e frame.time_epoch -e frame.comment"
    ));
    let ns = |text: &str| text.replace('.', "").parse::<i64>().unwrap();
    for bus in ["ts0", "tt0"] {
        let rows = read.lines().map(|line| line.split('\t').collect::<Vec<_>>()).filter(|row| row[0] == bus);
        let parsed = |row: Vec<&str>| {
            let (hardware, rest) = row[2].strip_prefix("hardware stamp ").unwrap().split_once(';').unwrap();
            let bound = rest.split_once('±').unwrap().1.strip_suffix(" ns").unwrap();
            (ns(row[1]) - ns(hardware), bound.parse::<i64>().unwrap())
        };
        // The difference of the clocks is constant here: some value is within all bounds.
        let offsets: Vec<(i64, i64)> = rows.map(parsed).collect();
        let least = offsets.iter().map(|(offset, bound)| offset - bound).max().unwrap();
        let most = offsets.iter().map(|(offset, bound)| offset + bound).min().unwrap();
        assert!(least <= most && offsets.len() == FRAMES as usize, "{bus}: {least} {most}");
        let late = || offsets[FRAMES as usize / 2..].iter().map(|(offset, _)| offset);
        let spread = late().max().unwrap() - late().min().unwrap();
        assert!(spread <= 10_000, "{bus}: {spread} ns");
    }
}

#[test]
#[ignore = "needs the lab: make test ONLY=capture_wire"]
fn killed_it_leaves_what_is_older_than_the_flush_interval_compressed_or_not() {
    let (disk, cables) = (Disk::new("flush", "16M"), Cables::new("kc", 1));
    for (end, interval, wait) in [("log", "500ms", 700), ("log.zst", "500ms", 700), ("log.zst", "1s", 1200)] {
        let file = disk.file(&format!("{interval}.{end}"));
        let capture = Capture::start(&["kc0", "-o", &file, "--flush-interval", interval]);
        send(&mut cables.senders(), 0, 300);
        std::thread::sleep(Duration::from_millis(wait)); // the time that the recorder has
        capture.signal("KILL");
        capture.wait();
        let bare = disk.file("bare");
        let read = if end.ends_with("zst") { "zstd -qdc" } else { "cat" };
        sh(&format!("{read} {file} > {bare}"));
        assert_all(&bare, &cables.names(), 300);
    }
}

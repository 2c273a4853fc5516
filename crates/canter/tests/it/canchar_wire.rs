//@ machine: --bus wire --canchar wcan1,wcan3 --clock virtual
//@ commands: generate latency ping wire
//@ also: all --kernel 6.1 --bus wire --canchar wcan1,wcan3 --clock virtual
//@ also: all --kernel 7.3 --bus wire --canchar wcan1,wcan3 --clock virtual
//@ also: all --kernel 7.3-rt --bus wire --canchar wcan1,wcan3 --clock virtual
//! canchar on nodes of canwire: frames take their bits, a FIFO of five overruns, and tools work as on an interface.
//! On its machine canchar0 is wcan1 and canchar1 is wcan3; both are on bus A, and so is the interface wcan0.

use crate::testbed::{
    DEADLINE, Nodes, Watched, asleep_in, canter, eventually, output, processor_ns, program,
};
use canter_io::{
    Filter, Filters, Frame, Identifier, Interface,
    canchar::{ADAPTIVE, Device, POLL_CHIP, RawFrame},
    frame::{BitRate, EFF_FLAG, EFF_MASK, ERR_FLAG, INTERFRAME_BITS, RTR_FLAG},
    interface::BitTiming,
    netlink::wire::{self, Pace, Source},
    tap::{Record, Tap},
    thread::Worker,
};
use std::{
    fs, io,
    path::Path,
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

const NEAR: &str = "/dev/canchar0";
const FAR: &str = "/dev/canchar1";
const BITRATE: u32 = 500_000;
/// The controller's FIFO, in frames.
const FIFO: usize = 5;

/// Both devices on the bus, and the interface wcan0. The test fails at its end if the kernel logged a warning.
struct Bench {
    _watched: Watched,
}

impl Bench {
    fn new(bitrate: u32) -> Self {
        let bench = Self { _watched: Watched::alone() };
        for name in [NEAR, FAR] {
            let mut device = Interface::find(name).unwrap();
            device.down().unwrap();
            fs::write(attribute(name, "bitrate"), bitrate.to_string()).unwrap();
            device.up().unwrap();
        }
        let mut interface = Interface::find("wcan0").unwrap();
        interface.down().unwrap();
        interface.set_bit_timing(&BitTiming::classic(bitrate)).unwrap();
        interface.up().unwrap();
        bench
    }
}

fn attribute(device: &str, name: &str) -> String {
    format!("/sys/class/canchar/{}/{name}", device.trim_start_matches("/dev/"))
}

fn open(name: &str) -> Device {
    Device::open(Path::new(name), true).unwrap()
}

/// Receives frames until there are `count`.
fn receive(device: &Device, count: usize) -> Vec<RawFrame> {
    let (mut frames, since) = (Vec::new(), Instant::now());
    while frames.len() < count {
        assert!(since.elapsed() < DEADLINE, "{} of {count} frames came", frames.len());
        frames.extend(waiting(device));
    }
    frames
}

/// The frames that wait.
fn waiting(device: &Device) -> Vec<RawFrame> {
    let mut some = [RawFrame::default(); 64];
    match device.read(&mut some) {
        Ok(came) => some[..came].to_vec(),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Vec::new(),
        Err(error) => panic!("{error}"),
    }
}

fn records(tap: &mut Tap, count: usize) -> Vec<Record> {
    let mut records = Vec::new();
    eventually("the tap has the frames", || {
        records.extend(std::iter::from_fn(|| tap.next_record()));
        records.len() >= count
    });
    records
}

/// Frames of every format and length, with stuff bits and without.
fn mixed() -> Vec<RawFrame> {
    let ids = [0, 0x123, 0x7ff, EFF_FLAG, EFF_FLAG | 0x1555_5555, RTR_FLAG | 0x55];
    let frame = |can_id, len, byte| RawFrame {
        can_id,
        len,
        data: std::array::from_fn(
            |at| if at < usize::from(len) && can_id & RTR_FLAG == 0 { byte } else { 0 },
        ),
        ..RawFrame::default()
    };
    let of_id = |&id: &u32| (0..=8).flat_map(move |len| [0, 0x55, 0xff].map(|byte| frame(id, len, byte)));
    ids.iter().flat_map(of_id).collect()
}

#[test]
#[ignore = "needs the lab: make test ONLY=canchar_wire"]
fn a_frame_of_a_device_takes_the_bits_that_the_tap_has() {
    let _bench = Bench::new(BITRATE);
    let (near, far, mut tap) = (open(NEAR), open(FAR), Tap::open("A").unwrap());
    let listed = output(program(), &["wire", "list"]);
    assert!(listed.contains("wcan1 by /dev/canchar0  A    ERROR-ACTIVE  500000"), "{listed}");
    let frames = mixed();
    let (mut sent, mut came) = (0, Vec::new());
    let since = Instant::now();
    while came.len() < frames.len() {
        assert!(since.elapsed() < DEADLINE, "{} of {} frames came", came.len(), frames.len());
        sent += near.write(&frames[sent..]).or_else(none_when_full).unwrap();
        came.extend(waiting(&far));
    }
    let content = |frame: &RawFrame| (frame.can_id, frame.len, frame.data);
    assert_eq!(came.iter().map(content).collect::<Vec<_>>(), frames.iter().map(content).collect::<Vec<_>>());
    let sender = Interface::find("wcan1").unwrap().index;
    let bit_ns = 1_000_000_000 / u64::from(BITRATE);
    let mut before: Option<(u64, u64)> = None;
    let records = records(&mut tap, frames.len());
    for (record, frame) in records.iter().zip(&came) {
        let rate = BitRate { nominal: BITRATE, data: 0 };
        assert_eq!((record.sender, record.error), (Some(sender), None), "{record:?}");
        assert_eq!(record.nominal_bits, record.frame.bits().nominal, "{record:?}");
        assert_eq!(record.duration_ns(), record.frame.duration_ns(rate), "{record:?}");
        assert_eq!(
            (record.frame.can_id, usize::from(record.frame.len)),
            (frame.can_id, usize::from(frame.len))
        );
        if let Some((end_ns, stamp_ns)) = before {
            // One transmit buffer, which the interrupt handler fills again.
            let gap_ns = record.sof_ns - end_ns;
            assert!(gap_ns >= u64::from(INTERFRAME_BITS) * bit_ns, "{gap_ns} ns before {record:?}");
            // The handler's own time in both stamps is nearly the same.
            let apart = (frame.stamp_ns - stamp_ns).abs_diff(record.end_ns - end_ns);
            assert!(apart < 20_000, "{apart} ns between stamps and wire: {record:?}");
        }
        before = Some((record.end_ns, frame.stamp_ns));
    }
}

fn none_when_full(error: io::Error) -> io::Result<usize> {
    if error.kind() == io::ErrorKind::WouldBlock { Ok(0) } else { Err(error) }
}

#[test]
#[ignore = "needs the lab: make test ONLY=canchar_wire"]
fn a_controller_that_nobody_reads_keeps_five_frames_and_counts_the_loss_of_the_others() {
    const BURST: u32 = 9;
    let _bench = Bench::new(1_000_000);
    let (far, mut tap) = (open(FAR), Tap::open("A").unwrap());
    let errors = Filters { list: vec![Filter { id: 0, mask: 0 }], error_mask: EFF_MASK, join: false };
    far.set_filters(&errors).unwrap();
    far.change(|options| options.flags |= POLL_CHIP).unwrap();
    let (node, counted) = (wire::node("wcan3").unwrap().stats, far.statistics().unwrap());
    // A look masks the interrupts of frames for 2 ms at least; nine frames of 2 bytes take 0.7 ms.
    let frame = Frame::classic(Identifier::Sff(0x123), &[1, 2]).unwrap();
    let source = Source {
        frame,
        pace: Pace::Always,
        count: Some(BURST),
        number: true,
        delay_ns: Some(300_000),
        ..Source::default()
    };
    wire::start("A", &source).unwrap();
    assert_eq!(far.wait(1, 1).unwrap(), 0, "it comes after this look");
    let records = records(&mut tap, BURST as usize);
    let came = receive(&far, FIFO + 1);
    let slot = 1 << wire::node("wcan3").unwrap().slot;
    let overrun: Vec<_> = records.iter().map(|record| record.overrun & slot != 0).collect();
    assert_eq!(overrun, [[false; FIFO].as_slice(), &[true; BURST as usize - FIFO]].concat());
    let numbers: Vec<_> =
        came.iter().filter(|one| one.can_id & ERR_FLAG == 0).map(|one| one.data[0]).collect();
    assert_eq!(numbers, [0, 1, 2, 3, 4]);
    let [error] = came.iter().filter(|one| one.can_id & ERR_FLAG != 0).collect::<Vec<_>>()[..] else {
        panic!("one error frame: {came:?}")
    };
    assert_eq!((error.can_id & 0x7ff, error.data[1]), (4, 1), "CAN_ERR_CRTL, RX_OVERFLOW: {error:?}");
    let node_now = wire::node("wcan3").unwrap().stats;
    assert_eq!(node_now.overruns - node.overruns, u64::from(BURST) - FIFO as u64);
    assert_eq!(far.statistics().unwrap().rx_overruns - counted.rx_overruns, 1);
    // Read by its interrupt handler, it loses nothing. Nobody polls: interrupts are unmasked after 2 to 4 ms.
    drop(far);
    let far = open(FAR);
    far.change(|options| options.rx_slots = 256).unwrap();
    std::thread::sleep(Duration::from_millis(10));
    wire::start("A", &Source { count: Some(200), ..source }).unwrap();
    let mut numbers = Vec::new();
    eventually("all frames came", || {
        numbers.extend(waiting(&far).iter().map(|frame| frame.data[0]));
        numbers.len() >= 200
    });
    assert_eq!(numbers, (0..200).collect::<Vec<_>>());
}

#[test]
#[ignore = "needs the lab: make test ONLY=canchar_wire"]
fn devices_and_an_interface_that_contend_lose_no_frame() {
    const COUNT: &str = "400";
    let _bench = Bench::new(1_000_000);
    let _witness = Nodes::up(&["t0"], "A", &BitTiming::classic(1_000_000));
    let far = open(FAR);
    far.change(|options| options.rx_slots = 4096).unwrap();
    let sender = |name, id| {
        canter(&[
            "generate",
            name,
            "-n",
            COUNT,
            "--traffic",
            "flood",
            "-I",
            id,
            "-L",
            "8",
            "-D",
            "i",
            "--quiet",
        ])
    };
    let mut tap = Tap::open("A").unwrap();
    let senders = [sender(NEAR, "200"), sender("wcan0", "100")];
    for sender in senders {
        let ended = sender.ended(DEADLINE);
        assert_eq!(ended.code, Some(0), "{ended:?}");
    }
    let came = receive(&far, 800);
    for id in [0x100, 0x200] {
        let numbers: Vec<u64> = came
            .iter()
            .filter(|frame| frame.can_id == id)
            .map(|frame| u64::from_le_bytes(frame.data))
            .collect();
        assert_eq!(numbers, (0..400).collect::<Vec<_>>(), "{id:x}");
    }
    let records = records(&mut tap, 800);
    let contended = records.iter().filter(|record| record.pending.count_ones() > 1).count();
    assert!(contended > 100, "{contended} of {} frames contended", records.len());
    assert_eq!(
        records.iter().map(|record| record.frame.can_id).collect::<Vec<_>>(),
        came.iter().map(|frame| frame.can_id).collect::<Vec<_>>()
    );
}

/// The priorities under SCHED_FIFO of the threads with this name (proc_pid_stat(5)).
fn priorities_of(thread: &str) -> Vec<u8> {
    let processes = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
    let stats = processes.filter_map(|path| fs::read_to_string(path.join("stat")).ok());
    let theirs = stats.filter(|stat| stat.contains(&format!("({thread})")));
    theirs
        .map(|stat| {
            let words: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
            assert_eq!(words[38], "1", "SCHED_FIFO: {stat}");
            words[37].parse().unwrap()
        })
        .collect()
}

#[test]
#[ignore = "needs the lab: make test ONLY=canchar_wire"]
fn an_interrupt_handler_in_a_thread_has_its_priority_and_loses_nothing() {
    let _bench = Bench::new(1_000_000);
    let set = |name, value: &str| fs::write(attribute(FAR, name), value);
    assert!(priorities_of("irq/canchar1").is_empty(), "off unless asked for");
    set("threaded", "1").unwrap();
    assert_eq!(priorities_of("irq/canchar1"), [50]);
    set("thread_priority", "60").unwrap();
    assert_eq!(priorities_of("irq/canchar1"), [60]);
    for wrong in ["0", "100", "-1", "x"] {
        assert!(set("thread_priority", wrong).is_err(), "{wrong}");
    }
    let far = open(FAR);
    far.change(|options| options.rx_slots = 512).unwrap();
    let source = Source {
        frame: Frame::classic(Identifier::Sff(0x123), &[0, 0]).unwrap(),
        pace: Pace::Always,
        count: Some(200),
        number: true,
        ..Source::default()
    };
    let before = far.statistics().unwrap();
    wire::start("A", &source).unwrap();
    let numbers: Vec<_> = receive(&far, 200).iter().map(|frame| frame.data[0]).collect();
    assert_eq!(numbers, (0..200).collect::<Vec<_>>());
    let after = far.statistics().unwrap();
    assert_eq!(after.rx_overruns, before.rx_overruns);
    // One transmit buffer: each further frame is sent when the thread has seen that it is free.
    let near = open(NEAR);
    far.write(&mixed()[..60]).unwrap();
    far.wait_sent(1_000_000_000).unwrap();
    assert_eq!(receive(&near, 60).len(), 60);
    // Between the handler and the thread and back, in the middle of traffic.
    wire::start("A", &Source { count: Some(400), ..source }).unwrap();
    let mut came = Vec::new();
    for turn in 0..20 {
        set("threaded", if turn % 2 == 0 { "0" } else { "1" }).unwrap();
        came.extend(waiting(&far));
    }
    came.extend(receive(&far, 400 - came.len()));
    let numbers: Vec<_> =
        came.iter().map(|frame| u16::from_le_bytes([frame.data[0], frame.data[1]])).collect();
    assert_eq!(numbers, (0..400).collect::<Vec<_>>());
    set("threaded", "0").unwrap();
    set("thread_priority", "50").unwrap();
    assert!(priorities_of("irq/canchar1").is_empty());
}

/// Both frames of each ping, by the tap, against the round-trip times that `canter ping` measures.
#[test]
#[ignore = "needs the lab: make test ONLY=canchar_wire"]
fn a_round_trip_is_the_time_of_two_frames_and_what_the_two_ends_execute() {
    const COUNT: usize = 100;
    /// The longest time of both ends, in ns: twice a handler, a wake-up and a call.
    const ENDS_NS_MAX: u64 = 60_000;
    let _bench = Bench::new(1_000_000);
    for threaded in ["0", "1"] {
        for name in [NEAR, FAR] {
            fs::write(attribute(name, "threaded"), threaded).unwrap();
        }
        let mut tap = Tap::open("A").unwrap();
        let mut pong = canter(&["pong", FAR, "--realtime", "60"]);
        pong.until_it_says("pong: ");
        let words = [
            "ping",
            NEAR,
            "--realtime",
            "60",
            "--interval",
            "2ms",
            "--count",
            "100",
            "--json",
            "-",
            "--quiet",
        ];
        let ended = canter(&words).ended(DEADLINE);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let latency = &ended.json()["series"][0]["latency_ns"];
        let [least, most] = ["min", "max"].map(|name| latency[name].as_u64().unwrap());
        let records = records(&mut tap, 2 * COUNT);
        assert_eq!(records.len(), 2 * COUNT);
        let wire_ns = |pair: &[Record]| pair[0].duration_ns() + pair[1].duration_ns();
        let times: Vec<u64> = records.chunks_exact(2).map(wire_ns).collect();
        let [shortest, longest] = [*times.iter().min().unwrap(), *times.iter().max().unwrap()];
        println!("threaded={threaded}: wire {shortest}…{longest} ns, round trips {least}…{most} ns");
        assert!(least > shortest && most < longest + ENDS_NS_MAX, "{shortest}…{longest}: {latency}");
        drop(pong);
    }
    for name in [NEAR, FAR] {
        fs::write(attribute(name, "threaded"), "0").unwrap();
    }
}

/// How often this thread has slept (proc_pid_status(5)).
fn sleeps() -> u32 {
    let text = fs::read_to_string("/proc/thread-self/status").unwrap();
    let count = text.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    count.unwrap().trim().parse().unwrap()
}

fn ran_ns() -> u64 {
    processor_ns(Path::new("/proc/thread-self")).unwrap()
}

/// How often a reader of as many frames sleeps, and its share of the processor.
fn reading(flags: u32, period: Duration, count: u32) -> (u32, f64) {
    let far = Device::open(Path::new(FAR), false).unwrap();
    far.change(|options| options.flags |= flags).unwrap();
    let reader = asleep_in(move || {
        let mut one = [RawFrame::default()];
        assert_eq!(far.read(&mut one).unwrap(), 1);
        let (began, slept, ran) = (Instant::now(), sleeps(), ran_ns());
        for _ in 1..count {
            assert_eq!(far.read(&mut one).unwrap(), 1);
        }
        let share = (ran_ns() - ran) as f64 / began.elapsed().as_nanos() as f64;
        (sleeps() - slept, share)
    });
    let frame = Frame::classic(Identifier::Sff(0x123), &[1, 2]).unwrap();
    let pace = Pace::Period(period.as_nanos() as u64);
    wire::start("A", &Source { frame, pace, count: Some(count), ..Source::default() }).unwrap();
    reader.join().unwrap()
}

#[test]
#[ignore = "needs the lab: make test ONLY=canchar_wire"]
fn an_adaptive_reader_looks_while_frames_come_often_and_only_while_nobody_else_wants_the_processor() {
    let _bench = Bench::new(1_000_000);
    for period in [75, 200, 700].map(Duration::from_micros) {
        let (sleeps, _) = reading(ADAPTIVE, period, 200);
        assert!(sleeps < 20, "{sleeps} for 200 frames, one every {period:?}");
    }
    let (_, share) = reading(ADAPTIVE, Duration::from_millis(100), 11);
    assert!(share < 0.01, "{share} of the processor for ten frames a second");
    let hog = Worker::start("hog", |stop| {
        while !stop.load(Ordering::Relaxed) {
            canter_io::thread::relax();
        }
    });
    let [adaptive, asleep] = [ADAPTIVE, 0].map(|flags| reading(flags, Duration::from_micros(200), 200).1);
    drop(hog.unwrap());
    assert!(
        adaptive < 1.5 * asleep,
        "{adaptive} of the processor beside somebody who wants all of it, not {asleep}"
    );
}

//@ machine: --bus wire --clock virtual
//! `canter capture --clock-align` against the truth: controllers' clocks that gain and lose 100 ppm, stamps of the kernel that
//! are up to 5 ms late, and a gateway between two buses. The wire's own time is known: a stamp of such a clock is undone.
//!
//! `FRAMES`: how many on each bus (20 000).

use crate::{
    overrun::{PERIOD_NS, source},
    recorder::{Capture, Disk, account, eventually, is_complete, sh},
};
use canter_io::{
    Interface, clock,
    interface::BitTiming,
    netlink::wire::{self, Fifo, NodeOptions},
    thread,
};
use std::{
    env, fs,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

/// What the clocks of both recorded controllers gain, in ppb.
const DRIFTS_PPB: [i64; 2] = [100_000, -100_000];
/// The longest that the kernel's stamp is late.
const DELAY_MAX: Duration = Duration::from_millis(5);

/// Ends the nodes and what they have threads for.
struct Nodes;

impl Nodes {
    /// A source's bus K and the bus L behind a gateway; recorded are the frames that `k0` and `l1` receive.
    fn up() -> Self {
        let timing = BitTiming::classic(500_000);
        let drifts = [DRIFTS_PPB[0], 0, 0, DRIFTS_PPB[1]];
        for ((name, bus), drift) in
            [("k0", "K"), ("k1", "K"), ("l0", "L"), ("l1", "L")].into_iter().zip(drifts)
        {
            let options = NodeOptions {
                fifo: Some(Fifo::Frames(256)),
                clock_drift_ppb: drift.try_into().unwrap(),
                ..NodeOptions::default()
            };
            wire::add(name, bus, &options).unwrap();
            let mut interface = Interface::find(name).unwrap();
            interface.set_bit_timing(&timing).unwrap();
            interface.up().unwrap();
        }
        for name in ["k0", "l1"] {
            fs::write(format!("/sys/class/net/{name}/threaded"), "1").unwrap(); // the hog delays such a thread
        }
        sh("ip link set l0 txqueuelen 1000; modprobe can-gw; cangw -A -s k0 -d l0 -e");
        Self
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        sh("cangw -F");
        ["k0", "k1", "l0", "l1"].into_iter().for_each(|name| drop(wire::delete(name)));
    }
}

/// Keeps the processor for up to 5 ms at random moments, before all threads of common priority.
fn hog(stop: &AtomicBool) {
    thread::set_realtime(40).unwrap();
    let mut random = 2014_u64;
    let mut below = |limit: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % limit
    };
    while !stop.load(Ordering::Relaxed) {
        let (since, busy) = (Instant::now(), Duration::from_nanos(below(DELAY_MAX.as_nanos() as u64)));
        while since.elapsed() < busy {
            std::hint::spin_loop();
        }
        std::thread::sleep(Duration::from_micros(below(40_000))); // the pause is the scenario
    }
}

/// What the real-time clock is ahead of the wire's, in ns: of many tries the one that was interrupted least.
fn ahead_ns() -> i64 {
    let once = || {
        let (before, real, after) = (clock::monotonic_ns(), clock::realtime_ns(), clock::monotonic_ns());
        (after - before, (real - (before + after) / 2).cast_signed())
    };
    (0..100).map(|_| once()).min().unwrap().1
}

/// A frame of a recording: its bus, its stamp, that of its controller, and the bound of the error (0 without
/// `--clock-align`), all in ns.
struct Stamped {
    bus: usize,
    ns: i64,
    hardware_ns: i64,
    bound_ns: i64,
}

/// The frames of a pcapng with comments, in its order.
fn stamped(file: &str) -> Vec<Stamped> {
    let bytes = fs::read(file).unwrap();
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    let (mut frames, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let (kind, length) = (word(at), word(at + 4));
        if kind == 6 {
            let option = at + 28 + word(at + 20).next_multiple_of(4);
            let text = String::from_utf8_lossy(&bytes[option..at + length]);
            let (_, stamp) = text.split_once("hardware stamp ").expect("a comment");
            let digits = |one: &char| one.is_ascii_digit() || *one == '.';
            let hardware: String = stamp.chars().take_while(digits).collect();
            let bound = stamp.split_once('±').and_then(|(_, bound)| bound.split_once(" ns"));
            frames.push(Stamped {
                bus: word(at + 8),
                ns: ((word(at + 12) as i64) << 32) + word(at + 16) as i64,
                hardware_ns: hardware.replace('.', "").parse().unwrap(),
                bound_ns: bound.map_or(0, |(bound, _)| bound.parse().unwrap()),
            });
        }
        at += length;
    }
    frames
}

impl Stamped {
    /// How far its stamp is from the end of the frame on the wire, in ns.
    fn error_ns(&self, ahead_ns: i64) -> i64 {
        let gained = i128::from(self.hardware_ns) * i128::from(DRIFTS_PPB[self.bus])
            / i128::from(1_000_000_000 + DRIFTS_PPB[self.bus]);
        self.ns - (self.hardware_ns - gained as i64 + ahead_ns)
    }
}

/// Sends so many frames through the gateway.
fn forward(frames: usize) {
    let handed_over = || wire::node("l1").unwrap().stats.handed_over;
    let before = handed_over();
    wire::start("K", &source(frames.try_into().unwrap())).unwrap();
    std::thread::sleep(Duration::from_nanos(PERIOD_NS * frames as u64)); // so long the source takes
    eventually("all frames went through the gateway", || handed_over() == before + frames as u64);
}

#[test]
#[ignore = "needs the lab: make test ONLY=capture_clocks"]
fn stamps_of_drifting_clocks_are_within_their_bounds_and_a_forwarded_frame_follows_its_original() {
    let frames: usize = env::var("FRAMES").map_or(20_000, |text| text.parse().unwrap());
    let disk = Disk::new("clocks", "2G");
    let _nodes = Nodes::up();
    let file = disk.file("a.pcapng");
    let by_kernel = disk.file("kernel.pcapng");
    let beside = Capture::start(&["k0", "l1", "-o", &by_kernel, "--hw-stamps"]);
    let capture = Capture::start(&["k0", "l1", "-o", &file, "--clock-align"]);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| hog(&stop));
        forward(frames);
        stop.store(true, Ordering::Relaxed);
    });
    let ahead_ns = ahead_ns();
    is_complete(&beside.stop(), &account(&by_kernel));
    let ended = capture.stop();
    let document = account(&file);
    is_complete(&ended, &document);
    assert_eq!(document["frames"], 2 * frames, "{document}");

    // The shortest time from the end of a frame to the kernel's stamp: from inside of a machine it cannot be seen.
    let by_kernel = stamped(&by_kernel);
    let delays =
        |bus| by_kernel.iter().filter(move |frame| frame.bus == bus).map(|frame| frame.error_ns(ahead_ns));
    let read = stamped(&file);
    let of = |bus: usize| read.iter().filter(move |frame| frame.bus == bus);
    for bus in 0..2 {
        let errors: Vec<i64> = of(bus).map(|frame| frame.error_ns(ahead_ns)).collect();
        let (shortest, longest) = (delays(bus).min().unwrap(), delays(bus).max().unwrap());
        let close = errors.iter().filter(|error| error.abs() <= 10_000).count();
        let wrong = of(bus).zip(&errors).filter(|(frame, error)| error.abs() > frame.bound_ns).count();
        let most = errors.iter().map(|error| error.abs()).max().unwrap();
        let narrowest = of(bus).map(|frame| frame.bound_ns).min().unwrap();
        println!(
            "bus {bus}: the kernel's stamps are {shortest} to {longest} ns late; of {} aligned ones {close} are within 10 µs, \
             all within {most} ns; bounds from {narrowest} ns, {wrong} of them wrong",
            errors.len()
        );
        assert!(longest > 4_000_000, "the hog delayed no stamp: {longest} ns");
        assert_eq!(wrong, 0, "bounds are wrong");
        assert!(close as f64 >= 0.99 * errors.len() as f64, "{close} are within 10 µs");
    }
    // Nothing is lost, so that the n-th frame on L is the n-th of K.
    let early = of(0).zip(of(1)).filter(|(original, forwarded)| forwarded.ns < original.ns).count();
    assert_eq!(early, 0, "forwarded frames before their original");
}

/// Tells the kernel what chrony or ptp4l tell it: the clock is kept, 40 µs off as they think, and 2.5 ms at most.
const KEEP_CLOCK: &str = r#"python3 -c '
import ctypes, struct
about = bytearray(208)  # struct timex
struct.pack_into("=I", about, 0, 0x1c)  # ADJ_MAXERROR, ADJ_ESTERROR, ADJ_STATUS
struct.pack_into("=qqi", about, 24, 2500, 40, 1)  # in us; STA_PLL without STA_UNSYNC
address = (ctypes.c_char * len(about)).from_buffer(about)
assert ctypes.CDLL(None).adjtimex(address) >= 0'"#;

#[test]
#[ignore = "needs the lab: make test ONLY=capture_clocks"]
fn what_keeps_the_system_clock_is_in_the_account() {
    let disk = Disk::new("discipline", "16M");
    let said = |name: &str| {
        let file = disk.file(name);
        let capture = Capture::start(&["any", "-o", &file]);
        capture.stop();
        account(&file)["system_clock"].clone()
    };
    let before = said("before.pcapng");
    assert_eq!((&before["synchronized"], &before["programs"]), (&false.into(), &serde_json::json!([])));
    sh(KEEP_CLOCK);
    // A process of that name; what it tells the kernel is above.
    let daemon = disk.file("ptp4l");
    sh(&format!("cp /bin/sleep {daemon}"));
    let mut daemon = std::process::Command::new(daemon).arg("1000").spawn().unwrap();
    let kept = said("kept.pcapng");
    daemon.kill().unwrap();
    daemon.wait().unwrap();
    assert_eq!((&kept["synchronized"], &kept["error_ns"]), (&true.into(), &40_000.into()), "{kept}");
    assert!(kept["error_max_ns"].as_u64() >= Some(2_500_000), "{kept}");
    assert_eq!(kept["programs"], serde_json::json!(["ptp4l"]));
}

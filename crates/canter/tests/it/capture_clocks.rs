//@ machine: --bus wire --clock virtual
//! `canter capture --clock-align` against the truth: controllers' clocks that gain and lose 100 ppm, stamps of the kernel that
//! are up to 5 ms late, and a gateway between two buses. The wire's own time is known: a stamp of such a clock is undone.
//!
//! `FRAMES`: how many on each bus (20 000).

use crate::{
    overrun::{PERIOD_NS, source},
    random::Random,
    recorder::{Capture, Disk, account, eventually, is_complete, sh},
    testbed::Nodes,
};
use canter_formats::{ControllerStamp, Reader, Record};
use canter_io::{
    clock,
    interface::BitTiming,
    netlink::wire::{self, Fifo, NodeOptions},
    thread,
};
use std::{
    env, fs,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

/// What the clocks of both recorded controllers gain, in ppb.
const DRIFTS_PPB: [i64; 2] = [100_000, -100_000];
/// The longest that the kernel's stamp is late.
const DELAY_MAX: Duration = Duration::from_millis(5);

/// A source's bus K, and the bus L behind a gateway; recorded are the frames that `k0` and `l1` receive.
fn buses() -> [Nodes; 4] {
    let node = |name, bus, clock_drift_ppb: i64| {
        let options = NodeOptions {
            fifo: Some(Fifo::Frames(256)),
            clock_drift_ppb: clock_drift_ppb.try_into().unwrap(),
            ..NodeOptions::default()
        };
        Nodes::up_with(&[name], bus, &options, &BitTiming::classic(500_000))
    };
    let [first, second] = DRIFTS_PPB;
    let nodes = [node("k0", "K", first), node("k1", "K", 0), node("l0", "L", 0), node("l1", "L", second)];
    for name in ["k0", "l1"] {
        fs::write(format!("/sys/class/net/{name}/threaded"), "1").unwrap(); // the hog delays such a thread
    }
    sh("modprobe can-gw; cangw -A -s k0 -d l0 -e"); // the job goes with its interfaces
    nodes
}

/// Keeps the processor for up to 5 ms at random moments, before all threads of common priority.
fn hog(stop: &AtomicBool) {
    thread::set_realtime(40).unwrap();
    let mut random = Random(2014);
    while !stop.load(Ordering::Relaxed) {
        let (since, busy) = (Instant::now(), Duration::from_nanos(random.below(DELAY_MAX.as_nanos() as u64)));
        while since.elapsed() < busy {
            thread::relax();
        }
        std::thread::sleep(Duration::from_micros(random.below(40_000))); // the pause is the scenario
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

/// A frame of a recording: its bus, its stamp in ns, and that of its controller with the bound of the error.
struct Stamped {
    bus: usize,
    ns: i64,
    controller: ControllerStamp,
}

/// The frames of a recording, in its order.
fn stamped(file: &str) -> Vec<Stamped> {
    let mut reader = Reader::open(Path::new(file), canter_formats::FORMATS).unwrap();
    let next = || {
        let Record { bus, stamp_ns, .. } = reader.next_record().unwrap()?;
        let controller = reader.controller_stamp().expect("a controller's stamp");
        Some(Stamped { bus: bus.index(), ns: stamp_ns.cast_signed(), controller })
    };
    std::iter::from_fn(next).collect()
}

impl Stamped {
    /// How far its stamp is from the end of the frame on the wire, in ns.
    fn error_ns(&self, ahead_ns: i64) -> i64 {
        let (hardware_ns, drift) =
            (i128::from(self.controller.hardware_ns), i128::from(DRIFTS_PPB[self.bus]));
        let wire_ns = hardware_ns - hardware_ns * drift / (1_000_000_000 + drift);
        self.ns - (wire_ns as i64 + ahead_ns)
    }

    fn bound_ns(&self) -> i64 {
        i64::from(self.controller.bound_ns)
    }
}

/// The frames of a recording that are of this bus.
fn frames_on(bus: usize, recording: &[Stamped]) -> impl Iterator<Item = &Stamped> {
    recording.iter().filter(move |frame| frame.bus == bus)
}

/// Sends this number of frames through the gateway.
fn forward(frames: usize) {
    let handed_over = || wire::node("l1").unwrap().stats.handed_over;
    let before = handed_over();
    wire::start("K", &source(frames.try_into().unwrap())).unwrap();
    std::thread::sleep(Duration::from_nanos(PERIOD_NS * frames as u64)); // the time that the source takes
    eventually("all frames went through the gateway", || handed_over() == before + frames as u64);
}

#[test]
#[ignore = "needs the lab: make test ONLY=capture_clocks"]
fn stamps_of_drifting_clocks_are_within_their_bounds_and_a_forwarded_frame_follows_its_original() {
    let frames: usize = env::var("FRAMES").map_or(20_000, |text| text.parse().unwrap());
    let disk = Disk::new("clocks", "2G");
    let _nodes = buses();
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

    let (by_kernel, aligned) = (stamped(&by_kernel), stamped(&file));
    for bus in 0..2 {
        // The shortest time from the end of a frame to the kernel's stamp cannot be seen from inside of a machine.
        let delays: Vec<i64> = frames_on(bus, &by_kernel).map(|frame| frame.error_ns(ahead_ns)).collect();
        let (shortest, longest) = (delays.iter().min().unwrap(), *delays.iter().max().unwrap());
        let errors: Vec<i64> = frames_on(bus, &aligned).map(|frame| frame.error_ns(ahead_ns).abs()).collect();
        let bounds: Vec<i64> = frames_on(bus, &aligned).map(Stamped::bound_ns).collect();
        let close = errors.iter().filter(|&&error| error <= 10_000).count();
        // Number, error and bound of each.
        let wrong: Vec<_> =
            (0..).zip(errors.iter().zip(&bounds)).filter(|(_, (error, bound))| error > bound).collect();
        let (most, narrowest) = (errors.iter().max().unwrap(), bounds.iter().min().unwrap());
        println!(
            "bus {bus}: the kernel's stamps are {shortest} to {longest} ns late; of {} aligned ones {close} are within 10 µs, \
             all within {most} ns; bounds from {narrowest} ns",
            errors.len()
        );
        assert!(longest > 4_000_000, "the hog delayed no stamp: {longest} ns");
        assert!(wrong.is_empty(), "bounds are wrong: {wrong:?}");
        assert!(close as f64 >= 0.99 * errors.len() as f64, "{close} are within 10 µs");
    }
    // Nothing is lost, so that the n-th frame on L is the n-th of K.
    let forwarded = frames_on(0, &aligned).zip(frames_on(1, &aligned));
    let early = forwarded.filter(|(original, copy)| copy.ns < original.ns).count();
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

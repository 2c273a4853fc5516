//! A controller of a virtual wire that overruns for certain, on a machine with one processor.

use canter_io::{
    Frame,
    netlink::wire::{self, Pace, Source},
    thread,
};
use std::{
    fs,
    time::{Duration, Instant},
};

/// Between two frames.
pub const PERIOD_NS: u64 = 500_000;
/// The longest that a source may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Sends `count` equal frames.
pub fn source(count: u32) -> Source {
    let frame: Frame = "100#1122334455667788".parse().unwrap();
    Source { frame, pace: Pace::Period(PERIOD_NS), count: Some(count), ..Source::default() }
}

pub fn wait_for_source(bus: &str) {
    let since = Instant::now();
    while wire::bus(bus).unwrap().source.running {
        assert!(since.elapsed() < PATIENCE, "the source of {bus} does not end");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Starts the source while nothing but this thread can run, so that nobody takes frames out of the controllers' FIFOs.
pub fn send_to_nobody(node: &str, bus: &'static str, count: u32) {
    fs::write(format!("/sys/class/net/{node}/threaded"), "1").unwrap(); // its NAPI is a thread of common priority now
    let busy = move || {
        thread::set_realtime(40).unwrap();
        wire::start(bus, &source(count)).unwrap();
        let since = Instant::now();
        while since.elapsed() < Duration::from_millis(50) {
            thread::relax();
        }
    };
    std::thread::spawn(busy).join().unwrap();
    wait_for_source(bus);
}

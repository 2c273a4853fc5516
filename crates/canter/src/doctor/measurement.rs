//! What the doctor measures for its report, without sending a frame: a recording of all buses, what it costs, and how late
//! this machine wakes a thread that waits for a point in time.

use super::machine::Machine;
use canter_capture::{Account, Recording, Settings};
use canter_cli::failure::{self, Failure};
use canter_frame::InterfaceFilters;
use canter_io::clock;
use canter_measure::{histogram::Histogram, result::Latency};
use serde::Serialize;
use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// Time between two wake-ups that are measured.
const PERIOD_NS: u64 = 1_000_000;
/// Size of the recording's files, of which only the last one is kept, in bytes.
const FILE_BYTES: u64 = 16 << 20;

/// The measurement of a report.
#[derive(Default, Serialize)]
pub struct Measurement {
    /// The duration of the measurement, in ns.
    duration_ns: u64,
    /// How late the thread ran that waited for a point in time, in ns.
    wake_up_ns: Latency,
    /// The recording; absent without an interface that is up, or when it did not start.
    recording: Option<Recorded>,
    /// Why there is no recording; empty when there is one.
    unavailable: String,
}

#[derive(Serialize)]
struct Recorded {
    account: Account,
    /// Processor time of the recorder's threads, in ns; absent where the kernel does not count it.
    processor_ns: Option<u64>,
}

impl Measurement {
    /// Measures for `duration_ns`, or until `stop` is set.
    ///
    /// # Errors
    /// When there is no temporary folder.
    pub fn run(machine: &Machine, duration_ns: u64, stop: &Arc<AtomicBool>) -> failure::Result<Self> {
        let folder =
            tempfile::tempdir().map_err(|error| Failure::failed(format!("temporary folder: {error}")))?;
        let names = machine.interfaces.iter().map(|patient| &patient.interface.name);
        let interfaces: Result<Vec<_>, _> = names.map(|name| InterfaceFilters::parse(name)).collect();
        let started = match interfaces {
            Ok(interfaces) if interfaces.is_empty() => Err("no CAN interface is up".to_owned()),
            Ok(interfaces) => {
                let mut settings = Settings::new(interfaces, folder.path().join("measurement.pcapng"));
                settings.rotate_bytes = Some(FILE_BYTES);
                settings.keep = Some(1);
                Recording::start(&settings).map_err(|error| error.to_string())
            }
            Err(error) => Err(error.to_string()),
        };
        let begin_ns = clock::monotonic_ns();
        // Without the buckets, which nobody would read before sending the report.
        let wake_up_ns =
            Latency { buckets: Vec::new(), ..wake_ups(begin_ns + duration_ns, stop).to_latency() };
        let duration_ns = clock::monotonic_ns() - begin_ns;
        let (recording, unavailable) = match started {
            Ok(recording) => {
                let processor_ns = recorder_ns();
                let account = without_paths(recording.finish());
                (Some(Recorded { account, processor_ns }), String::new())
            }
            Err(why) => (None, why),
        };
        Ok(Self { duration_ns, wake_up_ns, recording, unavailable })
    }
}

/// How late this thread wakes, every [`PERIOD_NS`].
fn wake_ups(end_ns: u64, stop: &AtomicBool) -> Histogram {
    let mut histogram = Histogram::new();
    let mut next_ns = clock::monotonic_ns() + PERIOD_NS;
    while next_ns < end_ns && !stop.load(Ordering::Relaxed) {
        clock::sleep_until_ns(next_ns);
        let now_ns = clock::monotonic_ns();
        histogram.record(now_ns as i64 - next_ns as i64);
        // A late thread waits for the next whole period, so that a stall counts once.
        next_ns += PERIOD_NS * (1 + now_ns.saturating_sub(next_ns) / PERIOD_NS);
    }
    histogram
}

/// Processor time of the recorder's threads so far: the first number of their `schedstat`
/// (Documentation/scheduler/sched-stats.rst).
fn recorder_ns() -> Option<u64> {
    let tasks = fs::read_dir("/proc/self/task").ok()?.flatten();
    let text = |path: std::path::PathBuf| fs::read_to_string(path).unwrap_or_default();
    let recorders = tasks.filter(|task| text(task.path().join("comm")).starts_with("canter-"));
    let ns = |task: fs::DirEntry| text(task.path().join("schedstat")).split(' ').next()?.parse::<u64>().ok();
    let spent: Option<Vec<u64>> = recorders.map(ns).collect();
    spent.map(|spent| spent.iter().sum()).filter(|&ns| ns > 0)
}

/// Paths of files on this machine are nobody else's concern.
fn without_paths(account: Account) -> Account {
    Account { file: String::new(), files: Vec::new(), ..account }
}

//! Figure 4.4 of the 2014 paper as a table: latency and loss against the traffic, for gateways that handle one frame
//! at a time and for batching ones. Kept in `tests/golden/simulation.txt`; `UPDATE=1` rewrites it.

use super::testbed::{MEGABIT, Measured, Service, Testbed};
use canter_route::traffic::{
    pattern::Traffic,
    template::{self, Template},
};
use std::{env, fmt::Write, fs, path::Path, sync::LazyLock};

const SERVICES_US: [u64; 3] = [20, 60, 180];
const TRAFFIC: [Traffic; 8] = [
    Traffic::OneAtATime,
    Traffic::Period(500_000),
    Traffic::Period(160_000),
    Traffic::Period(127_000),
    Traffic::Period(120_000),
    Traffic::Load(50),
    Traffic::Load(100),
    Traffic::Flood,
];
const KINDS: [(&str, ServiceOf); 2] =
    [("one at a time", Service::one_at_a_time), ("batching", Service::batching)];
const FRAMES: u64 = 1000;
const QUEUE_FRAMES: u32 = 32;

const HEAD: &str = "\
Latency and loss of simulated gateways. 2-byte SFF frames, 1 Mbit/s on both buses, 32 frames of room in the
gateway's receive queue; a frame takes the gateway the given time and by chance up to a tenth more, a further frame
of a batch takes a tenth. Every row: sent = received + lost.

                                    latency, µs                            lost, frames            received
gateway         µs  traffic          median        p90        max    sent  queue  output  other   frames/s
";

/// A gateway that takes this many ns per frame.
type ServiceOf = fn(u64) -> Service;

struct Row {
    kind: &'static str,
    service_us: u64,
    traffic: Traffic,
    measured: Measured,
}

static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| {
    let mut rows = Vec::new();
    for (kind, service) in KINDS {
        for service_us in SERVICES_US {
            let service = Service { jitter_ns: service_us * 100, ..service(service_us * 1000) };
            for traffic in TRAFFIC {
                let testbed = Testbed::new(service, traffic, FRAMES);
                let measured = Testbed { queue_frames: QUEUE_FRAMES, ..testbed }.run();
                rows.push(Row { kind, service_us, traffic, measured });
            }
        }
    }
    rows
});

impl Row {
    /// The time between two frames, in ns.
    fn gap_ns(&self) -> u64 {
        let frame_ns = template::mean_ns(&Template::classic(2).frame().unwrap(), FRAMES, MEGABIT);
        let alone = self.traffic == Traffic::OneAtATime;
        self.traffic.period_ns(frame_ns).unwrap_or(if alone { u64::MAX } else { frame_ns })
    }

    /// The latency of that rank, in ns.
    fn percentile(&self, percent: usize) -> i64 {
        let mut latencies: Vec<_> = self.measured.arrivals.iter().map(|arrival| arrival.latency_ns).collect();
        latencies.sort_unstable();
        latencies[(latencies.len() * percent).div_ceil(100) - 1]
    }

    /// The number of frames received per second.
    fn throughput(&self) -> u64 {
        let last_ns = self.measured.arrivals.iter().map(|arrival| arrival.passage.routed_ns).max();
        self.measured.tally.received * 1_000_000_000 / last_ns.unwrap()
    }

    fn text(&self) -> String {
        let Self { kind, service_us, traffic, measured } = self;
        let mut text = format!("{kind:<13} {service_us:>4}  {:<14}", traffic.to_string());
        for percent in [50, 90, 100] {
            write!(text, " {:>10.1}", self.percentile(percent) as f64 / 1000.0).unwrap();
        }
        let lost = measured.ledger.lost;
        write!(
            text,
            "  {:>6} {:>6} {:>7} {:>6}",
            measured.tally.sent, lost.socket, lost.gateway, lost.unaccounted
        )
        .unwrap();
        write!(text, " {:>10}", self.throughput()).unwrap();
        text
    }
}

#[test]
fn only_gateways_slower_than_the_traffic_that_handle_one_frame_at_a_time_lose_frames() {
    for row in &*ROWS {
        let overrun = row.kind == "one at a time" && row.service_us * 1000 > row.gap_ns();
        let tally = row.measured.tally;
        assert_eq!(
            tally.lost > 0,
            overrun,
            "{}, {} µs, {}: {tally:?}",
            row.kind,
            row.service_us,
            row.traffic
        );
        let queue_ns = u64::from(QUEUE_FRAMES) * row.service_us * 1000;
        assert_eq!(row.percentile(50) > queue_ns as i64, overrun, "then a frame waits for all in the queue");
    }
}

#[test]
fn latencies_and_losses_are_those_of_the_kept_table() {
    let mut now = HEAD.to_owned();
    for row in &*ROWS {
        assert!(row.measured.ledger.balances());
        now += &(row.text() + "\n");
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/simulation.txt");
    if env::var_os("UPDATE").is_some() {
        fs::write(&path, &now).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    let first = kept.lines().zip(now.lines()).find(|(kept, now)| kept != now);
    assert!(kept == now, "{}: differs from the kept table; first difference: {first:#?}", path.display());
}

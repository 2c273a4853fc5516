//! Result files that nobody measured, for tests of the report: the size of the 2011 paper's matrix, and one of every
//! kind of figure. The same every time.

pub mod claims;

use serde_json::{Value, json};
use std::{collections::BTreeMap, fs, path::Path};

const KERNELS: [&str; 5] = ["2.6.33-amd64", "2.6.33-rt31-amd64", "2.6.36-amd64", "3.0-amd64", "3.0-rt-amd64"];
const LOADS: [(&str, f64); 3] = [("none", 1.0), ("cpu", 1.8), ("ethernet-receive", 9.0)];
const TRAFFICS: [(&str, u32, f64); 3] = [("one-at-a-time", 0, 1.0), ("load", 50, 0.9), ("flood", 0, 1.4)];
const METHODS: [&str; 15] = [
    "can-gw",
    "read+write",
    "read/spin+write",
    "ring+ring",
    "ring+write",
    "ring/spin+ring",
    "ring/spin+write",
    "read/spin+ring",
    "recvmmsg+sendmmsg",
    "io-uring+io-uring",
    "canchar+canchar",
    "canchar-ring+canchar-ring",
    "port+port",
    "bpf",
    "bare-metal",
];

/// How many experiments the 2011 paper made.
pub const MATRIX: usize = 653;

/// A fixed sequence of numbers in 0…1 (xorshift).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Mostly near `ns`, with a tail that a timer and bad luck make.
    pub fn latency(&mut self, ns: f64) -> u64 {
        let body = ns * (1.0 + 0.15 * self.next() * self.next() + 0.04 * self.next());
        let late = if self.next() < 0.01 { ns * 0.8 * self.next() } else { 0.0 };
        let very = if self.next() < 0.0008 { ns * 6.0 * self.next() } else { 0.0 };
        ((body + late + very) / 8.0) as u64 * 8
    }
}

/// A distribution as docs/result.md has it.
pub fn distribution(mut sample: Vec<u64>) -> Value {
    sample.sort_unstable();
    let n = sample.len();
    let rank = |per_mille: usize| (n * per_mille).div_ceil(1000).max(1) - 1;
    let quantile = |per_mille: usize| sample.get(rank(per_mille)).copied().unwrap_or(0);
    let mut buckets: BTreeMap<u64, u64> = BTreeMap::new();
    sample.iter().for_each(|ns| *buckets.entry(*ns).or_default() += 1);
    json!({
        "count": n, "min": quantile(0), "p50": quantile(500), "p90": quantile(900), "p99": quantile(990),
        "p999": quantile(999), "max": quantile(1000),
        "negative": 0, "buckets": buckets.into_iter().collect::<Vec<_>>(),
    })
}

pub fn ledger(sent: u64, lost: u64) -> Value {
    json!({
        "sent": sent, "received": sent - lost, "duplicated": 0, "reordered": 0,
        "lost": {"controller": 0, "backlog": 0, "socket": lost, "qdisc": 0, "gateway": 0, "unaccounted": 0},
    })
}

pub fn condition(traffic: &str, load: &str) -> Value {
    json!({
        "traffic": traffic, "period_ns": 0, "load_percent": 0, "direction": "", "batch": 0, "frames": 10_000,
        "len": 2, "load": load, "interfaces": ["can0", "can1", "can2"],
    })
}

pub fn series(method: &str, condition: Value, latencies: Vec<u64>, lost: u64) -> Value {
    let sent = latencies.len() as u64 + lost;
    json!({
        "method": method, "paper_name": "", "condition": condition, "unavailable": "",
        "latency_ns": distribution(latencies), "ledger": ledger(sent, lost), "floor_ns": 1_500,
    })
}

pub fn file(study: &str, title: &str, kernel: &str, series: Vec<Value>) -> Value {
    json!({
        "schema": 1, "study": study, "title": title, "command": format!("canter study run {study}"),
        "environment": {
            "kernel": format!("{kernel} #1 SMP"), "cmdline": "canter.clock=virtual canter.shift=0",
            "cpu": "QEMU TCG CPU version 2.5+", "processors": 2, "clock": "virtual", "qemu": "QEMU 7.2.22",
            "canter": "0.1.0", "date": "2026-11-21T21:03:11Z", "interfaces": ["can0: kvaser_pci, 1000000 bit/s"],
        },
        "series": series,
    })
}

/// A result file a kernel, [`MATRIX`] series in all, `frames` each.
pub fn matrix(folder: &Path, frames: usize) {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut left = MATRIX;
    let groups = KERNELS.len() * LOADS.len() * TRAFFICS.len();
    for (k, kernel) in KERNELS.iter().enumerate() {
        let mut all = Vec::new();
        for (l, (load, slower)) in LOADS.iter().enumerate() {
            for (t, (traffic, percent, factor)) in TRAFFICS.iter().enumerate() {
                let group = (k * LOADS.len() + l) * TRAFFICS.len() + t;
                let methods = left.div_ceil(groups - group).min(METHODS.len());
                left -= methods;
                for (m, method) in METHODS.iter().take(methods).enumerate() {
                    let realtime = if kernel.contains("-rt") { 1.5 } else { 1.0 };
                    let ns = 12_000.0 * (1.0 + 0.09 * m as f64) * slower * factor * realtime;
                    let lost = if *traffic == "flood" && m % 4 == 1 { frames / 20 * l } else { 0 };
                    let latencies = (lost..frames).map(|_| random.latency(ns)).collect();
                    let mut condition = condition(traffic, load);
                    condition["load_percent"] = (*percent).into();
                    all.push(series(method, condition, latencies, lost as u64));
                }
            }
        }
        let file = file("2011-matrix", "Every gateway under every condition", kernel, all);
        fs::write(folder.join(format!("matrix-{k}.json")), file.to_string()).expect("a file of the matrix");
    }
    assert_eq!(left, 0);
}

/// Result files with every kind of drawing, and their names.
pub fn showcase(folder: &Path) -> Vec<&'static str> {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let files = [
        ("sweep", sweep(&mut random)),
        ("filters", filters(&mut random)),
        ("timeline", timeline(&mut random)),
        ("ping", ping(&mut random)),
        ("load", load()),
    ];
    let kept = files.iter().map(|(name, file)| {
        fs::write(folder.join(format!("{name}.json")), file.to_string()).expect("a file of the showcase");
        *name
    });
    kept.collect()
}

/// The 2014 paper's figure 4.4: methods that write saturate, and then they lose.
fn sweep(random: &mut Random) -> Value {
    let mut all = Vec::new();
    for period in [120_u64, 125, 130, 135, 140, 145, 150, 155, 160, 500] {
        for (method, ns, limit) in [
            ("can-gw", 49e3, 100),
            ("read+write", 180e3, 152),
            ("ring+write", 120e3, 127),
            ("ring+ring", 130e3, 110),
        ] {
            let behind = (limit as f64 - period as f64).max(0.0);
            let lost = (behind * 9.0) as usize;
            let ns = ns * (1.0 + behind * 3.0);
            let mut condition = condition("period", "none");
            condition["period_ns"] = (period * 1000).into();
            all.push(series(
                method,
                condition,
                (lost..800).map(|_| random.latency(ns)).collect(),
                lost as u64,
            ));
        }
    }
    file("2014-fig4.4", "Latency and loss against the period", "6.12.1-amd64", all)
}

/// The 2011 paper's figure 9, with repeats.
fn filters(random: &mut Random) -> Value {
    let mut all = Vec::new();
    for filters in [1_u64, 16, 64, 128, 512, 2048] {
        for (variant, each) in [("EFF", 55.0), ("SFF", 0.4)] {
            let ns = 12_000.0 + each * filters as f64;
            let mut condition = condition("one-at-a-time", "none");
            condition["variant"] = variant.into();
            condition["varied"] = json!({"name": "filters", "unit": "", "value": filters});
            all.push(series("can-gw", condition, (0..500).map(|_| random.latency(ns)).collect(), 0));
        }
    }
    file("2011-fig9", "What filters cost", "6.12.1-amd64", all)
}

/// The 2011 paper's figure 6: a frame late every second, and a burst of losses under load.
fn timeline(random: &mut Random) -> Value {
    let (slot_ns, slots) = (10_000_000_u64, 800_u64);
    let mut drawn = Vec::new();
    let mut latencies = Vec::new();
    for slot in 0..slots {
        let burst = (400..430).contains(&slot);
        let mut arrived: Vec<u64> = (0..5).map(|_| random.latency(35_000.0)).collect();
        if slot % 100 == 40 {
            arrived.push(random.latency(115_000.0));
        }
        if burst {
            arrived.truncate(2);
        }
        let (min, max) = (arrived.iter().min().copied(), arrived.iter().max().copied());
        let lost = if burst { 3 } else { 0 };
        drawn.push([slot, arrived.len() as u64, min.unwrap_or(0), max.unwrap_or(0), lost]);
        latencies.append(&mut arrived);
    }
    let busy: Vec<[u64; 2]> =
        (1..=80).map(|n| [n * 100_000_000, if (38..48).contains(&n) { 940 } else { 120 }]).collect();
    let mut one = series("can-gw", condition("period", "cpu"), latencies, 90);
    one["condition"]["period_ns"] = 2_000_000.into();
    one["timeline"] = json!({"slot_ns": slot_ns, "slots": drawn, "load": busy});
    one["paper"] = json!({"source": "2011, figure 6", "machine": "MPC5200", "ns": 40_000, "min": 35_000, "max": 140_000});
    file("2011-fig6", "The simple gateway in time", "6.12.1-amd64", vec![one])
}

/// Round-trip times, three repeats of one method.
fn ping(random: &mut Random) -> Value {
    let mut all: Vec<Value> = (0..3)
        .map(|_| {
            let latencies = (0..300).map(|_| random.latency(52_000.0)).collect();
            series("read+write", condition("one-at-a-time", "none"), latencies, 0)
        })
        .collect();
    let latencies = (0..300).map(|_| random.latency(31_000.0)).collect();
    all.push(series("canchar+canchar", condition("one-at-a-time", "none"), latencies, 0));
    all.iter_mut().for_each(|series| series["quantity"] = "round-trip".into());
    file("2010-fig5", "Round-trip time", "6.12.1-amd64", all)
}

/// The processor's load against the rate of frames.
fn load() -> Value {
    let curve = |method: &str, each: u64| {
        let points: Vec<[u64; 2]> = [1000_u64, 5000, 10_000, 15_000, 21_277]
            .map(|rate| [rate, (rate * each / 10_000).min(1000)])
            .into();
        json!({
            "method": method, "paper_name": "", "condition": condition("receive", "none"), "unavailable": "",
            "curve": {
                "quantity": "processor load", "unit": "%", "decimals": 1, "against": "rate",
                "against_unit": "frames/s", "points": points,
            },
            "ledger": ledger(0, 0),
        })
    };
    let curves = vec![curve("read", 460), curve("canchar", 210), curve("canchar-ring", 120)];
    file("wccd-fig3", "What receiving costs a processor", "6.12.1-amd64", curves)
}

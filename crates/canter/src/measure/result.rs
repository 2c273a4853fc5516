//! The result file: one JSON document per run, schema version 1, described in docs/result.md.
//!
//! All times are integers of nanoseconds of the clock that `environment.clock` names.

use serde::{Deserialize, Serialize};

/// The version that this program writes and reads.
pub const SCHEMA: u32 = 1;

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResultFile {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Which experiment: `2014-fig4.2`; empty when none.
    pub study: String,
    /// What the experiment shows, one sentence.
    pub title: String,
    /// The command that made it, as typed.
    pub command: String,
    pub environment: Environment,
    pub series: Vec<Series>,
}

/// Where it was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// `uname -r` and the version line.
    pub kernel: String,
    pub cmdline: String,
    /// The processor's model name.
    pub cpu: String,
    pub processors: u32,
    pub clock: ClockKind,
    /// `QEMU 7.2.22`; empty on hardware.
    pub qemu: String,
    /// The version of this program.
    pub canter: String,
    /// When it was measured, RFC 3339, UTC.
    pub date: String,
    /// The interfaces that took part, a line each: `can0: kvaser_pci, 1000000 bit/s, txqueuelen 10`.
    pub interfaces: Vec<String>,
}

/// Which clock the nanoseconds are of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClockKind {
    /// The machine's.
    #[default]
    Real,
    /// QEMU's instruction counter: a nanosecond is an instruction (or a fixed number of ns is one; see `cmdline`).
    Virtual,
    /// A simulated bus's.
    Simulated,
}

/// One method under one condition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// The method or pair, as typed: `ring/spin+write`.
    pub method: String,
    /// What the 2014 paper calls it: `mmapbusy-write`; empty when it has no name there.
    pub paper_name: String,
    pub condition: Condition,
    /// Why there are no figures; empty when there are.
    pub unavailable: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub latency_ns: Option<Latency>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cost_ns: Option<Cost>,
    pub ledger: Ledger,
    /// What the instrument itself adds, measured by a null test; `None` when none was made.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub floor_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub paper: Option<Paper>,
}

/// Under what it was measured. Zero or empty: not applicable.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Condition {
    /// `one-at-a-time`, `period`, `load`, `flood`; for system calls `send`, `receive`.
    pub traffic: String,
    pub period_ns: u64,
    /// Share of the bus that the traffic takes, in per cent.
    pub load_percent: u32,
    /// For system calls: `send` or `receive`.
    pub direction: String,
    /// Frames per system call.
    pub batch: u32,
    /// How many frames were sent.
    pub frames: u64,
    /// Payload in bytes.
    pub len: u32,
    /// What else the machine was doing: `none`, `cpu`, `ethernet-receive`, …
    pub load: String,
    pub interfaces: Vec<String>,
}

/// A distribution of latencies.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    pub count: u64,
    pub min: u64,
    pub p50: u64,
    pub p90: u64,
    pub p99: u64,
    pub p999: u64,
    pub max: u64,
    /// Latencies that came out negative (the two stamps were taken in the wrong order); counted as 0.
    pub negative: u64,
    /// `[ns, count]`, ascending; finer than 1 µs up to 100 ms.
    pub buckets: Vec<[u64; 2]>,
}

/// What a system call costs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Of the call itself, per frame.
    pub per_frame: u64,
    /// Receivers: what the sender's call grew by because this receiver was open, per frame. Negative when less.
    pub delivery: i64,
    /// `per_frame` and `delivery` together.
    pub total: i64,
    /// The figures behind it: `[frames, ns in all]`.
    pub points: Vec<[u64; 2]>,
    /// A straight line through them.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub fit: Option<Fit>,
}

/// `ns = intercept + slope · frames`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Fit {
    pub intercept: i64,
    /// ns per 1000 frames, so that it stays an integer.
    pub slope_per_1000: i64,
}

/// Every frame is accounted for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    pub sent: u64,
    pub received: u64,
    pub lost: Lost,
    pub duplicated: u64,
    pub reordered: u64,
}

/// Where frames were lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lost {
    /// In a controller's FIFO.
    pub controller: u64,
    /// In a processor's backlog (softnet).
    pub backlog: u64,
    /// In a socket's or ring's queue.
    pub socket: u64,
    /// At an output queue.
    pub qdisc: u64,
    /// The gateway says that it dropped them.
    pub gateway: u64,
    /// Nobody says where.
    pub unaccounted: u64,
}

impl Lost {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.controller + self.backlog + self.socket + self.qdisc + self.gateway + self.unaccounted
    }
}

/// What the paper reports for the same thing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Paper {
    /// Where: `2014, figure 4.2`.
    pub source: String,
    /// The paper's machine: `MPC5200, 400 MHz, Linux 3.12`.
    pub machine: String,
    /// The median, or the cost per frame.
    pub ns: u64,
}

//! The result file: one JSON document per run, schema version 1, described in docs/result.md.
//!
//! All times are integers of nanoseconds of the clock that `environment.clock` names.

mod layout;
#[cfg(test)]
mod tests;

use crate::work::{Times, Work};
use canter_cli::{
    failure::{self, Failure},
    trouble,
    units::us,
    whole_file,
};
pub use layout::Layout;
use serde::{Deserialize, Serialize};
use std::{fs, path::Path};

/// The version that this program writes and reads.
pub const SCHEMA: u32 = 1;

/// The quantity of a series that has a ledger alone: what a recorder of many buses lost.
pub const RECORDING: &str = "recording";
/// The quantity of a series of frames that a gateway receives and sends nowhere: a ledger, and the processor's load over time.
pub const RECEIVING: &str = "load of receiving";
/// The quantity of the run times of an interrupt's handler.
pub const HANDLER_TIME: &str = "handler time";
/// The quantity of how far the latency of each frame by sockets is from that by the analyzer.
pub const BESIDE_SOCKETS: &str = "difference of sockets and analyzer";

const NO_RESULT: &str = "not a result file of canter (--json FILE writes one)";

/// Where JSON is not what it should be; nothing for a text that is no JSON at all, such as a recording.
fn place(text: &str, error: &serde_json::Error) -> String {
    match (text.trim_start().starts_with('{'), error.is_syntax()) {
        (false, _) => "; canter info shows recordings".to_owned(),
        (true, true) => format!(": not JSON at line {}, column {}", error.line(), error.column()),
        (true, false) => ": its fields are those of another document".to_owned(),
    }
}

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResultFile {
    /// The version of the document: [`SCHEMA`].
    pub schema: u32,
    /// The experiment: `2014-fig4.2`; empty when none.
    pub study: String,
    /// What the experiment shows, one sentence.
    pub title: String,
    /// The command that wrote the file, as typed.
    pub command: String,
    /// The machine that was measured on.
    pub environment: Environment,
    /// The measured series and the unavailable ones, in the order of measuring.
    pub series: Vec<Series>,
}

impl ResultFile {
    /// Reads a result file. The error names the file and the remedy.
    pub fn load(path: &Path) -> failure::Result<Self> {
        Self::read(path, fs::read(path).map_err(|error| trouble::file_failure(path, "read", error))?)
    }

    /// Reads the bytes of a result file; `path` is its name in errors.
    pub fn read(path: &Path, bytes: Vec<u8>) -> failure::Result<Self> {
        let fail = |why: String| Failure::failed(format!("{}: {why}", path.display()));
        let text = String::from_utf8(bytes).map_err(|_| fail(format!("{NO_RESULT}: it is not text")))?;
        if text.trim().is_empty() {
            return Err(fail("is empty (measure it again)".to_owned()));
        }
        let head: Head = serde_json::from_str(&text).map_err(|error| match error.is_eof() {
            true => fail(format!("is cut off at line {} (copy it again, or measure it again)", error.line())),
            false => fail(NO_RESULT.to_owned() + place(&text, &error).as_str()),
        })?;
        if head.schema != SCHEMA {
            let way_out = if head.schema > SCHEMA { "use a newer canter" } else { "measure it again" };
            return Err(fail(format!("schema {}, this canter reads {SCHEMA} ({way_out})", head.schema)));
        }
        serde_json::from_str(&text)
            .map_err(|error| fail(format!("a damaged result file (docs/result.md has the fields): {error}")))
    }

    /// Writes a temporary file and renames it to `path`, so that the result is always complete; makes the folder.
    pub fn save(&self, path: &Path) -> failure::Result<()> {
        whole_file::write(path, "write the result", &self.to_json())
    }

    /// The document as [`ResultFile::save`] writes it: a field per line, lists of numbers packed.
    pub fn to_json(&self) -> String {
        Layout::document(self)
    }
}

/// The fields that identify a result file.
#[derive(Deserialize)]
struct Head {
    schema: u32,
    #[serde(rename = "series")]
    _series: Vec<serde::de::IgnoredAny>,
}

/// The environment of the measurement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// `uname -r` and the version line.
    pub kernel: String,
    /// The kernel's command line.
    pub cmdline: String,
    /// The processor's model name.
    pub cpu: String,
    /// The number of online processors.
    pub processors: u32,
    /// The clock of all times in the file.
    pub clock: ClockKind,
    /// `QEMU 7.2.22`; empty on hardware.
    pub qemu: String,
    /// The version of this program.
    pub canter: String,
    /// The commit that canter was built from, `+` behind it when sources differed; empty when canter was built outside of
    /// its repository.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub commit: String,
    /// The identity of the boot (`boot_id` of the kernel): machines restored from one saved machine have the same.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub boot: String,
    /// The time of the measurement, RFC 3339, UTC.
    pub date: String,
    /// The interfaces of the measurement, a line each: `can0: kvaser_pci, 1000000 bit/s, txqueuelen 10`.
    pub interfaces: Vec<String>,
}

/// The clock of the nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClockKind {
    /// The machine's clock.
    #[default]
    Real,
    /// QEMU's instruction counter: an instruction takes 1 ns, or another fixed time (`canter.shift` in `cmdline`).
    Virtual,
    /// The clock of a simulated bus.
    Simulated,
}

impl ClockKind {
    /// The clock's word in result files and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Real => "real",
            Self::Virtual => "virtual",
            Self::Simulated => "simulated",
        }
    }
}

/// One method under one condition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// The method or pair, as typed: `ring/spin+write`.
    pub method: String,
    /// The method's name in the 2014 paper: `mmapbusy-write`; empty when it has none there.
    pub paper_name: String,
    /// The traffic, and all else that the method was measured under.
    pub condition: Condition,
    /// The reason why nothing was measured; empty when something was.
    pub unavailable: String,
    /// The quantity of `latency_ns`: `round-trip`, `interrupt latency`; empty: the latency of a gateway.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub quantity: String,
    /// The distribution of the latencies, in ns.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub latency_ns: Option<Latency>,
    /// The cost of a system call, in ns.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cost_ns: Option<Cost>,
    /// A quantity that depends on another one: the processor's load against the rate of frames.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub curve: Option<Curve>,
    /// The latencies in the order of time.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub timeline: Option<Timeline>,
    /// What became of each sent frame.
    pub ledger: Ledger,
    /// The instrument's floor, measured by a null test; `None` without one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub floor_ns: Option<u64>,
    /// What the instructions of the frames' ways were executed for; `None` without the analyzer.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub stages: Option<Stages>,
    /// Whether the virtual wires kept their time; `None` without wires.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub wire: Option<WireKept>,
    /// The paper's numbers for the same measurement, if it has some.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub paper: Option<Paper>,
}

impl Series {
    /// A series of a method that could not be measured, with the reason.
    pub fn unavailable(method: &str, condition: Condition, reason: impl Into<String>) -> Self {
        let (method, unavailable) = (method.to_owned(), reason.into());
        Self { method, condition, unavailable, ..Self::default() }
    }

    /// The instrument's name, also of what needs no name in a file.
    pub fn instrument(&self) -> &str {
        match (self.condition.instrument.as_str(), self.quantity.as_str(), &self.cost_ns) {
            ("", _, Some(_)) => "system calls",
            ("", "", None) => "sockets",
            ("", quantity, None) => quantity,
            (instrument, ..) => instrument,
        }
    }

    /// Whether the series was measured and its numbers do not contradict each other.
    pub fn is_valid(&self) -> bool {
        self.unavailable.is_empty() && self.fault().is_none()
    }

    /// The contradiction in the numbers, if there is one: then nothing of the series may be drawn.
    pub fn fault(&self) -> Option<String> {
        let latency = self.latency_ns.as_ref().and_then(Latency::fault);
        let stages = self.stages.as_ref().and_then(Stages::fault);
        self.ledger
            .fault()
            .or(latency)
            .or(stages)
            .or_else(|| self.timeline.as_ref().and_then(Timeline::fault))
    }

    /// A report mentions late frames when more than one of this number of frames was late.
    pub const LATE_ONE_IN: u64 = 1000;

    /// The reason why the series decides nothing, if more than one of `one_in` frames was late.
    pub fn lateness(&self, one_in: u64) -> Option<String> {
        let Ledger { late, sent, .. } = self.ledger;
        (late > sent / one_in).then(|| {
            format!("{late} of {sent} frames were late, so the traffic was not quite that of its condition")
        })
    }
}

/// The condition of a measurement. A field that does not apply is 0 or empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Condition {
    /// `one-at-a-time`, `period`, `load`, `burst`, `ramp`, `flood`; for system calls `send`, `receive`.
    pub traffic: String,
    /// The time between the starts of two frames.
    pub period_ns: u64,
    /// Bus load of the traffic, in per cent.
    pub load_percent: u32,
    /// For system calls: `send` or `receive`.
    pub direction: String,
    /// Frames per system call.
    pub batch: u32,
    /// Frames sent.
    pub frames: u64,
    /// Payload in bytes.
    pub len: u32,
    /// The load of the machine, such as `none`, `cpu` or `ethernet-receive`.
    pub load: String,
    /// The names of the interfaces that the frames pass.
    pub interfaces: Vec<String>,
    /// Another difference of this condition, as text: `checksum`.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub variant: String,
    /// A number that was varied from series to series: 2048 filters, 3 hops.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub varied: Option<Varied>,
    /// The instrument: `wire`, `probe`; empty: sockets.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub instrument: String,
    /// The processors that sender, meter, gateway and their interrupts are bound to; empty: nobody bound them.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub bound: String,
}

/// A number that was varied, the horizontal axis of a drawing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Varied {
    /// The number's name: `filters`.
    pub name: String,
    /// The number's unit: `frames/s`; empty for a plain count.
    pub unit: String,
    /// The number itself, in `unit`.
    pub value: u64,
}

/// The account of the frames' ways: each ns belongs to one stage, so the sums are exact.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stages {
    /// The number of frames in the account.
    pub frames: u64,
    /// The latency of the median frame, exact to the ns.
    pub median_frame_ns: u64,
    /// The latencies of all frames, summed up.
    pub total_ns: u64,
    /// How often functions of the kernel were entered, on the ways of all frames together. 0: not counted.
    #[serde(default)]
    pub entries: u64,
    /// The first part of the ways: from a frame's arrival until the gateway's program runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reception: Option<Reception>,
    /// Every stage.
    pub stages: Vec<Stage>,
    /// The ways on a board whose caches, registers and kernel entries take time; `None` without `canter lab --cost`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Model>,
}

/// The frames' ways by a model of a board: instructions, and what the virtual clock has no time for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Model {
    /// The board's name: `cortex-a72`.
    pub board: String,
    /// What the board takes.
    #[serde(flatten)]
    pub times: Times,
    /// The latency of the frame that is the median by the model, without the instrument's part.
    pub median_frame_ns: u64,
    /// The stages of that frame that are not empty.
    pub stages: Vec<ModelStage>,
}

/// A stage of the median frame by the model, and what was counted in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelStage {
    /// The stage's name: `soft interrupt`.
    pub name: String,
    /// The sum of what the counts below take; of `idle` also the time in which nothing was executed.
    pub time_ns: u64,
    /// What was executed.
    #[serde(flatten)]
    pub work: Work,
}

/// The receptions of frames: from the arrival at the gateway's controller until the gateway's program runs, without what the
/// meter executes meanwhile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reception {
    /// The number of frames whose reception was seen.
    pub frames: u64,
    /// The receptions of these frames, summed up.
    pub total_ns: u64,
    /// The part in interrupts and soft interrupts: before a task is woken.
    pub aside_ns: u64,
}

/// A stage of the frames' ways.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stage {
    /// The stage's name: `soft interrupt`.
    pub name: String,
    /// The stage's time on the way of the median frame.
    pub median_frame_ns: u64,
    /// The stage's time on the ways of all frames.
    pub total_ns: u64,
}

impl Stages {
    /// The time of a stage on the way of the median frame; 0 without such a stage.
    pub fn median_frame_ns_of(&self, name: &str) -> u64 {
        self.stages.iter().find(|stage| stage.name == name).map_or(0, |stage| stage.median_frame_ns)
    }

    /// The time of a stage on all ways; 0 without such a stage.
    pub fn total_ns_of(&self, name: &str) -> u64 {
        self.stages.iter().find(|stage| stage.name == name).map_or(0, |stage| stage.total_ns)
    }

    fn fault(&self) -> Option<String> {
        let sum = |part: fn(&Stage) -> u64| {
            self.stages.iter().fold(0_u64, |sum, stage| sum.saturating_add(part(stage)))
        };
        let sums = [sum(|stage| stage.median_frame_ns), sum(|stage| stage.total_ns)];
        let whole = [self.median_frame_ns, self.total_ns];
        (sums != whole).then(|| format!("its stages take {sums:?} ns, its frames {whole:?} ns"))
    }
}

/// How well both virtual wires of a measurement kept their time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WireKept {
    /// The median delay from the end of a frame to its delivery by the direct wire's timer. No latency includes this
    /// delay, because each counts from the frame's delivery. (In results with a `floor_ns` above 0, each includes it.)
    pub late_ns_p50: u64,
    /// The largest of the delays whose median is `late_ns_p50`.
    pub late_ns_max: u64,
    /// How often a wire waited because its timer was too late to catch up.
    pub slips: u64,
    /// How long the wires waited in `slips`, in total.
    pub slip_ns: u64,
    /// Frames that a node lost to a full receive FIFO.
    pub overruns: u64,
    /// Frames that were destroyed or not acknowledged, and repeated.
    pub errors: u64,
}

impl WireKept {
    /// Whether the wires never waited for the machine, and no frame on them was destroyed.
    pub fn kept_time(&self) -> bool {
        self.slips == 0 && self.errors == 0
    }
}

impl std::fmt::Display for WireKept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { late_ns_p50, late_ns_max, slips, slip_ns, overruns, errors } = *self;
        write!(
            f,
            "Instrument wire: frames delivered {:.2} µs after their end (at most {:.2}; not in the latencies); \
             {slips} slips, {:.1} µs in total; {overruns} overruns, {errors} errors on the wire",
            us(late_ns_p50),
            us(late_ns_max),
            us(slip_ns)
        )
    }
}

/// A distribution of latencies.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// The number of latencies.
    pub count: u64,
    /// The shortest latency, in ns; exact.
    pub min: u64,
    /// The median, in ns.
    pub p50: u64,
    /// The 90th percentile, in ns.
    pub p90: u64,
    /// The 99th percentile, in ns.
    pub p99: u64,
    /// The 99.9th percentile, in ns.
    pub p999: u64,
    /// The longest latency, in ns; exact.
    pub max: u64,
    /// Negative latencies (the two stamps were taken in the wrong order); counted as 0.
    pub negative: u64,
    /// `[ns, count]`, ascending; finer than 1 µs up to 100 ms.
    pub buckets: Vec<[u64; 2]>,
}

impl Latency {
    /// The latency of a rank, counted from 1, in ascending order; 0 when there are none.
    pub fn at_rank(&self, rank: u64) -> u64 {
        let mut seen = 0_u64;
        let bucket = self.buckets.iter().find(|bucket| {
            seen = seen.saturating_add(bucket[1]);
            seen >= rank
        });
        bucket.map_or(0, |bucket| bucket[0])
    }

    /// A percentile by nearest rank.
    pub fn at_per_mille(&self, per_mille: u64) -> u64 {
        self.at_rank((u128::from(self.count) * u128::from(per_mille)).div_ceil(1000) as u64)
    }

    fn fault(&self) -> Option<String> {
        let held = self.buckets.iter().fold(0_u64, |sum, bucket| sum.saturating_add(bucket[1]));
        let ascends = [self.min, self.p50, self.p90, self.p99, self.p999, self.max].is_sorted();
        if held != self.count {
            return Some(format!("it counts {} latencies, its buckets contain {held}", self.count));
        }
        if !ascends || !self.buckets.is_sorted_by(|a, b| a[0] < b[0]) {
            return Some("its percentiles or buckets do not ascend".to_owned());
        }
        None
    }
}

/// A quantity at several values of another one, in whole steps: 12.5 % is 125 with one decimal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Curve {
    /// The quantity: `processor load`.
    pub quantity: String,
    /// The quantity's unit: `%`. For `ns` the report selects a suitable one.
    pub unit: String,
    /// The number of decimals of a value.
    pub decimals: u8,
    /// The quantity of the horizontal axis: `rate`.
    pub against: String,
    /// The unit of the horizontal axis: `frames/s`.
    pub against_unit: String,
    /// `[against, value]`, ascending.
    pub points: Vec<[u64; 2]>,
}

/// Latencies against time, thinned: time is cut into slots of equal length, and each keeps its minimum and maximum.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeline {
    /// The length of a slot.
    pub slot_ns: u64,
    /// The slots, ascending; slots without a frame are left out.
    pub slots: Vec<Slot>,
    /// `[ns, tenths of a per cent]`: the processors' load since the previous point; may be empty.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub load: Vec<[u64; 2]>,
}

impl Timeline {
    fn fault(&self) -> Option<String> {
        let ascends =
            self.slots.is_sorted_by(|a, b| a.number < b.number) && self.load.is_sorted_by(|a, b| a[0] < b[0]);
        let sound = ascends && self.slots.iter().all(|slot| slot.min_ns <= slot.max_ns);
        (!sound).then(|| "its timeline is out of order".to_owned())
    }
}

/// The frames of a slot of a [`Timeline`]; in a file `[number, arrived, min ns, max ns, lost]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "[u64; 5]", into = "[u64; 5]")]
pub struct Slot {
    /// The slot's number, counted from 0.
    pub number: u64,
    /// The number of frames that arrived.
    pub arrived: u64,
    /// The shortest latency, in ns; 0 when no frame arrived.
    pub min_ns: u64,
    /// The longest latency, in ns; 0 when no frame arrived.
    pub max_ns: u64,
    /// The number of lost frames.
    pub lost: u64,
}

impl Slot {
    /// The frames of both slots, in this one's place.
    pub fn merge(self, other: Self) -> Self {
        let (min_ns, max_ns) = match (self.arrived, other.arrived) {
            (0, _) => (other.min_ns, other.max_ns),
            (_, 0) => (self.min_ns, self.max_ns),
            _ => (self.min_ns.min(other.min_ns), self.max_ns.max(other.max_ns)),
        };
        Self {
            number: self.number,
            arrived: self.arrived.saturating_add(other.arrived),
            min_ns,
            max_ns,
            lost: self.lost.saturating_add(other.lost),
        }
    }
}

impl From<[u64; 5]> for Slot {
    fn from([number, arrived, min_ns, max_ns, lost]: [u64; 5]) -> Self {
        Self { number, arrived, min_ns, max_ns, lost }
    }
}

impl From<Slot> for [u64; 5] {
    fn from(Slot { number, arrived, min_ns, max_ns, lost }: Slot) -> Self {
        [number, arrived, min_ns, max_ns, lost]
    }
}

/// The cost of a system call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// The cost of the call, per frame.
    pub per_frame: u64,
    /// Receivers: the additional cost of the sender's call while this receiver was open, per frame, in the longest run. With
    /// thousands of frames held this is mostly the kernel's allocator at work. May be negative.
    pub delivery: i64,
    /// `delivery` while at most a few dozen frames are held, as in a program that keeps up.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub delivery_few: Option<i64>,
    /// `per_frame` and `delivery` together.
    pub total: i64,
    /// The measured points: `[frames, total ns]`.
    pub points: Vec<[u64; 2]>,
    /// A straight line through the points and the origin.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub fit: Option<Fit>,
}

/// `ns = intercept + slope · frames`. The intercept of a result of today is 0: no call costs something without a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Fit {
    /// ns without a frame.
    pub intercept: i64,
    /// ns per 1000 frames: per frame, it would not be an integer.
    pub slope_per_1000: i64,
}

/// The account of every frame that was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    /// Frames that the meter sent.
    pub sent: u64,
    /// Frames that arrived behind the gateway.
    pub received: u64,
    /// Frames that did not arrive, by the place of the loss.
    pub lost: Lost,
    /// Frames that arrived again.
    pub duplicated: u64,
    /// Frames that arrived after a frame that was sent later.
    pub reordered: u64,
    /// Frames that were sent more than a tenth of their period after they were due, or that a wire delivered more than a
    /// tenth of a frame's duration after its end: the traffic was not quite that of the condition.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub late: u64,
}

impl Ledger {
    /// Whether every frame is accounted for. Otherwise the series is invalid.
    pub fn balances(&self) -> bool {
        self.missing() == 0
    }

    /// The number of frames without an account; negative: too many frames are accounted for.
    pub fn missing(&self) -> i128 {
        i128::from(self.sent) - i128::from(self.received) - i128::from(self.lost.total())
    }

    fn fault(&self) -> Option<String> {
        if self.lost.meter > 0 {
            return Some(format!(
                "the meter itself lost frames, so the gateway's are unknown: {}",
                self.lost.meter
            ));
        }
        if self.balances() {
            return None;
        }
        let difference = match self.missing() {
            missing @ 0.. => format!("{missing} missing"),
            missing => format!("{} too many", missing.unsigned_abs()),
        };
        Some(format!("its ledger does not balance, frames: {difference}"))
    }
}

/// Lost frames by place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lost {
    /// Frames lost in a controller's FIFO.
    pub controller: u64,
    /// Frames lost in a processor's backlog (softnet).
    pub backlog: u64,
    /// Frames lost in a socket's or ring's queue.
    pub socket: u64,
    /// Frames lost at an output queue.
    pub qdisc: u64,
    /// Frames dropped by the gateway, by its counters.
    pub gateway: u64,
    /// Frames lost in the meter's own queues: the gateway's share of the losses is unknown, and the series invalid.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub meter: u64,
    /// Lost frames that no counter explains.
    pub unaccounted: u64,
}

impl Lost {
    /// The number of lost frames, over all places.
    pub fn total(&self) -> u64 {
        let Self { controller, backlog, socket, qdisc, gateway, meter, unaccounted } = *self;
        [controller, backlog, socket, qdisc, gateway, meter, unaccounted]
            .into_iter()
            .fold(0, u64::saturating_add)
    }
}

/// The paper's numbers for the same measurement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Paper {
    /// The source: `2014, figure 4.2`.
    pub source: String,
    /// The paper's machine: `MPC5200, 400 MHz, Linux 3.12`.
    pub machine: String,
    /// The median, or the cost per frame.
    pub ns: u64,
    /// The shortest latency, in ns; 0 when the paper has none.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub min: u64,
    /// The 90th percentile, in ns; 0 when the paper has none.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub p90: u64,
    /// The longest latency, in ns; 0 when the paper has none.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub max: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

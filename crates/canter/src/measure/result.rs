//! The result file: one JSON document per run, schema version 1, described in docs/result.md.
//!
//! All times are integers of nanoseconds of the clock that `environment.clock` names.

use crate::{
    failure::{self, Failure},
    trouble,
};
use serde::{Deserialize, Serialize};
use std::{fs, io, io::Write, path::Path};

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

impl ResultFile {
    /// Reads one. The error names the file and says what to do.
    pub fn load(path: &Path) -> failure::Result<Self> {
        let fail = |why: String| Failure::failed(format!("{}: {why}", path.display()));
        let text = fs::read_to_string(path).map_err(|error| trouble::of_file(path, "read", error))?;
        let head: Head = serde_json::from_str(&text).map_err(|error| {
            fail(format!("not a result file of canter (--json FILE writes one): {error}"))
        })?;
        if head.schema != SCHEMA {
            let way_out = if head.schema > SCHEMA { "use a newer canter" } else { "measure it again" };
            return Err(fail(format!("schema {}, this canter reads {SCHEMA}: {way_out}", head.schema)));
        }
        serde_json::from_str(&text)
            .map_err(|error| fail(format!("a damaged result file (docs/result.md has the fields): {error}")))
    }

    /// Writes it beside `path` and renames it, so that there is never half a result; makes the folder.
    pub fn save(&self, path: &Path) -> failure::Result<()> {
        let fail = |error: io::Error| trouble::of_file(path, "write the result", error);
        let name = path.file_name().ok_or_else(|| fail(io::ErrorKind::IsADirectory.into()))?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        fs::create_dir_all(folder).map_err(fail)?;
        let unfinished = folder.join(format!(".{}.{}", name.to_string_lossy(), std::process::id()));
        let written = fs::File::create(&unfinished).and_then(|mut file| {
            file.write_all(self.to_json().as_bytes())?;
            file.sync_all()
        });
        written.and_then(|()| fs::rename(&unfinished, path)).map_err(|error| {
            let _ = fs::remove_file(&unfinished); // the first error is the one to tell
            fail(error)
        })
    }

    /// The document as [`ResultFile::save`] writes it: a field per line, lists of numbers packed.
    pub fn to_json(&self) -> String {
        let mut json = Vec::new();
        let mut serializer = serde_json::Serializer::with_formatter(&mut json, Layout::default());
        self.serialize(&mut serializer).expect("plain structures of numbers and strings, written to memory");
        json.push(b'\n');
        String::from_utf8(json).expect("serde_json writes UTF-8")
    }
}

/// What tells a result file from any other JSON.
#[derive(Deserialize)]
struct Head {
    schema: u32,
    #[serde(rename = "series")]
    _series: Vec<serde::de::IgnoredAny>,
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

impl Series {
    /// A method that could not be measured here, and why.
    pub fn unavailable(method: &str, condition: Condition, reason: impl Into<String>) -> Self {
        let (method, unavailable) = (method.to_owned(), reason.into());
        Self { method, condition, unavailable, ..Self::default() }
    }
}

/// Under what it was measured. Zero or empty: not applicable.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Condition {
    /// `one-at-a-time`, `period`, `load`, `burst`, `ramp`, `flood`; for system calls `send`, `receive`.
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

impl Ledger {
    /// Is every frame accounted for? When not, the figures beside it prove nothing.
    pub fn balances(&self) -> bool {
        u128::from(self.sent) == u128::from(self.received) + u128::from(self.lost.total())
    }
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
        let places = [self.controller, self.backlog, self.socket, self.qdisc, self.gateway, self.unaccounted];
        places.into_iter().fold(0, u64::saturating_add)
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

/// JSON with a field per line and an object per line, but numbers and short strings of a list side by side.
#[derive(Default)]
struct Layout {
    open: Vec<Open>,
}

/// What the next value is in.
enum Open {
    Object,
    List { values: usize, of_objects: bool },
}

impl Layout {
    /// So many values of a list share a line.
    const VALUES_PER_LINE: usize = 8;

    fn line(&self, writer: &mut (impl Write + ?Sized)) -> io::Result<()> {
        write!(writer, "\n{:1$}", "", 2 * self.open.len())
    }
}

impl serde_json::ser::Formatter for Layout {
    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open.push(Open::List { values: 0, of_objects: false });
        writer.write_all(b"[")
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if !first {
            writer.write_all(b",")?;
        }
        let Some(Open::List { values, of_objects }) = self.open.last_mut() else { return Ok(()) };
        *values += 1;
        if *values > 1 && *values % Self::VALUES_PER_LINE == 1 && !*of_objects {
            self.line(writer)?;
        }
        Ok(())
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        if let Some(Open::List { of_objects: true, .. }) = self.open.pop() {
            self.line(writer)?;
        }
        writer.write_all(b"]")
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        if let Some(Open::List { of_objects, .. }) = self.open.last_mut() {
            *of_objects = true;
            self.line(writer)?;
        }
        self.open.push(Open::Object);
        writer.write_all(b"{")
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open.pop();
        self.line(writer)?;
        writer.write_all(b"}")
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if !first {
            writer.write_all(b",")?;
        }
        self.line(writer)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> ResultFile {
        let latency = Latency { count: 2, buckets: vec![[5, 1]; 11], ..Latency::default() };
        let series = Series { method: "read+write".into(), latency_ns: Some(latency), ..Series::default() };
        let none = Series::unavailable("bpf", Condition::default(), "no CAP_NET_ADMIN");
        let environment = Environment { clock: ClockKind::Virtual, ..Environment::default() };
        let (study, title, command) = ("x".into(), "y".into(), "canter latency".into());
        ResultFile { schema: SCHEMA, study, title, command, environment, series: vec![series, none] }
    }

    #[test]
    fn what_is_saved_loads_again() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let path = folder.path().join("new/deep/result.json");
        example().save(&path).expect("it saves");
        assert_eq!(ResultFile::load(&path).expect("it loads"), example());
        let files = fs::read_dir(path.parent().expect("it has a folder")).expect("it is there");
        assert_eq!(files.count(), 1, "nothing unfinished is left behind");
    }

    #[test]
    fn buckets_share_lines_and_fields_do_not() {
        let json = example().to_json();
        assert!(json.contains("[5,1],[5,1],[5,1]"), "{json}");
        assert!(json.contains("\n  \"study\": \"x\",\n"), "{json}");
        assert!(json.lines().all(|line| line.len() < 120), "{json}");
    }

    #[test]
    fn an_error_names_the_file_and_the_way_out() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let path = folder.path().join("it.json");
        for (text, says) in [
            ("{", "not a result file of canter"),
            ("{\"schema\": 1}", "not a result file of canter"),
            ("{\"schema\": 99, \"series\": []}", "schema 99, this canter reads 1: use a newer canter"),
            ("{\"schema\": 0, \"series\": []}", "measure it again"),
            ("{\"schema\": 1, \"series\": []}", "a damaged result file"),
        ] {
            fs::write(&path, text).expect("it writes");
            let error = ResultFile::load(&path).expect_err(text).to_string();
            assert!(error.starts_with(&path.display().to_string()) && error.contains(says), "{error}");
        }
        let error = ResultFile::load(Path::new("/nowhere/it.json")).expect_err("no file").to_string();
        assert!(error.starts_with("/nowhere/it.json: read: no such file"), "{error}");
    }

    #[test]
    fn the_documented_example_is_what_is_written() {
        let page = include_str!("../../../../docs/result.md");
        let example = page.split("```json\n").nth(1).and_then(|rest| rest.split("```").next());
        let example = example.expect("docs/result.md has an example");
        let result: ResultFile = serde_json::from_str(example).expect("it is a result file");
        assert_eq!(result.to_json(), example);
        assert!(result.series[0].ledger.balances());
    }

    #[test]
    fn every_field_is_documented() {
        let page = include_str!("../../../../docs/result.md");
        let fields = include_str!("result.rs").split("/// JSON with a field").next().expect("the schema");
        let fields = fields.lines().filter_map(|line| line.trim().strip_prefix("pub ")?.split_once(": "));
        for (field, _) in fields.filter(|(field, _)| !field.contains(['(', ' '])) {
            assert!([".", "`"].iter().any(|end| page.contains(&format!("{field}{end}"))), "{field}");
        }
    }

    #[test]
    fn a_ledger_balances_when_every_frame_is_accounted_for() {
        let lost = Lost { socket: 2, unaccounted: 1, ..Lost::default() };
        assert!(Ledger { sent: 10, received: 7, lost, ..Ledger::default() }.balances());
        assert!(!Ledger { sent: 10, received: 8, lost, ..Ledger::default() }.balances());
        let absurd = Lost { socket: u64::MAX, qdisc: u64::MAX, ..Lost::default() };
        assert!(!Ledger { sent: 1, received: u64::MAX, lost: absurd, ..Ledger::default() }.balances());
    }
}

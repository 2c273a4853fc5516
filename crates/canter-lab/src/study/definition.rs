//! Study files: the measurement of an experiment, its machine, and the paper's figures.

use super::{
    amount::Amount,
    catalogue,
    claim::Claim,
    plan::{Case, LatencyFile, LatencyPlan},
    recording::RecordingPlan,
    throughput::ThroughputPlan,
    writes::WritesPlan,
};
use crate::{analyzer::board::Board, lab::Arch, meter::syscalls};
use canter_cli::{
    document::Document,
    duration,
    failure::{self, Exit, Failure},
    trouble,
};
use canter_io::method::Pair;
use canter_measure::result::Paper;
use canter_route::traffic::pattern::Traffic;
use serde::Deserialize;
use std::{collections::BTreeMap, path::Path};

/// An experiment.
#[derive(Clone)]
pub struct Study {
    pub name: String,
    /// The name or file by which the study was found.
    pub file: String,
    pub title: String,
    pub set: Set,
    pub lab: Lab,
    pub kind: Kind,
    /// The paper's claims, and how to decide them.
    pub claims: Vec<Claim>,
    /// A number that identifies the text of the study.
    pub text_number: u64,
    source: String,
    paper: PaperFigures,
}

/// The kind of measurement.
#[derive(Clone)]
pub enum Kind {
    /// The costs of system calls.
    Syscalls(syscalls::Setup),
    /// The latencies of gateways.
    Latency(LatencyPlan),
    /// Round-trip times.
    Ping(PingPlan),
    /// The losses of recorders on full buses.
    Recording(RecordingPlan),
    /// The times of writes on a wire.
    Writes(WritesPlan),
    /// The costs and highest rates of gateways between many wires.
    Throughput(ThroughputPlan),
    /// No measurement, with the reason: a figure of the papers that this version cannot measure.
    Missing(String),
}

/// The set of studies that a study belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Set {
    /// A figure or table of the papers: `--all`.
    #[default]
    Figure,
    /// The complete 2011 paper: `--matrix`.
    Matrix,
    /// No figure of the papers: run by name only.
    Bench,
}

/// The bus that connects the interfaces of the papers' testbed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Bus {
    /// QEMU's CAN bus between the cards, on which a frame takes no time.
    #[default]
    Sja1000,
    /// canwire's buses: bits, arbitration, hardware stamps.
    Wire,
    /// QEMU's CAN bus as in sja1000, with canprobe as the instrument.
    Probe,
    /// QEMU's CAN bus between CAN FD cards, whose driver has NAPI; for the analyzer.
    Fd,
}

impl Bus {
    /// The lab's module for the bus or its instrument.
    pub fn module(self) -> Option<&'static str> {
        match self {
            Self::Sja1000 | Self::Fd => None,
            Self::Wire => Some("canwire"),
            Self::Probe => Some("canprobe"),
        }
    }
}

/// The machine for the measurement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lab {
    /// The kernels; one run and one result file for each.
    pub kernels: Vec<String>,
    /// The clock: `real` or `virtual`.
    pub clock: ClockName,
    /// The machine's architecture; unless given, the host's.
    #[serde(default)]
    pub arch: Arch,
    pub cpus: u8,
    /// Runs of each kernel, each with another seed of the jitter and a result file of its own.
    #[serde(default = "one_boot")]
    pub boots: u32,
    /// The duration of an instruction in the virtual clock: 2^shift ns.
    #[serde(default)]
    pub shift: u8,
    /// The bus of the testbed's interfaces.
    #[serde(default)]
    pub bus: Bus,
    /// Devices of canchar, as `canter lab --canchar` takes them.
    #[serde(default)]
    pub canchar: Option<String>,
    /// Words for the kernel's command line: `nohz=off`, `preempt=none`.
    #[serde(default)]
    pub append: Vec<String>,
    /// Whether the lab's analyzer measures, from outside the machine.
    #[serde(default)]
    pub analyzer: bool,
    /// The board whose time is modelled too, by the analyzer.
    #[serde(default)]
    pub cost: Option<Board>,
    /// Whether the machine has a USB stick, for the load of that name.
    #[serde(default)]
    pub usb_stick: bool,
}

fn one_boot() -> u32 {
    1
}

impl Lab {
    /// Refuses a machine on which this cannot be measured.
    fn suits(&self, kind: &Kind) -> Result<(), String> {
        let plan = if let Kind::Latency(plan) = kind { Some(plan) } else { None };
        let asks = |what: fn(&LatencyPlan) -> bool| plan.is_some_and(what);
        let own_cards = self.bus == Bus::Sja1000 && self.canchar.is_none();
        let in_a_row = asks(|plan| plan.cases().iter().any(|case| case.traffic != Traffic::OneAtATime));
        let untimed = self.bus == Bus::Probe || self.clock == ClockName::Real;
        let analyzed = |wrong: bool| self.analyzer && wrong;
        let rules = [
            (
                !matches!(kind, Kind::Missing(_))
                    && (self.kernels.is_empty() || self.cpus == 0 || self.boots == 0),
                "[lab]: needs at least one kernel, one processor and one boot",
            ),
            (asks(|plan| plan.cases().is_empty()), "[latency]: each list needs a value"),
            (asks(|plan| plan.handler.is_some()) && self.bus != Bus::Probe, "handler: needs bus = \"probe\""),
            (
                asks(|plan| plan.beside_sockets) && !(self.analyzer && own_cards),
                "beside_sockets: needs analyzer = true, on the cards of bus = \"sja1000\"",
            ),
            (
                asks(|plan| plan.beside_sockets && plan.timeline),
                "beside_sockets: measures no latencies, which timeline = true keeps",
            ),
            (
                self.bus == Bus::Fd && self.canchar.is_some(),
                "[lab] bus = \"fd\": canchar does not drive these cards",
            ),
            (
                !self.arch.is_host() && !own_cards,
                "[lab] arch: another one has bus = \"sja1000\" only, without canchar",
            ),
            (
                self.cost.is_some() && !self.analyzer,
                "[lab] cost: needs analyzer = true, which counts what costs",
            ),
            (analyzed(plan.is_none()), "[lab] analyzer: measures [latency] only"),
            (analyzed(in_a_row), "[lab] analyzer: measures traffic = [\"one-at-a-time\"] only"),
            (
                analyzed(untimed),
                "[lab] analyzer: needs bus = \"sja1000\", \"wire\" or \"fd\", and clock = \"virtual\"",
            ),
        ];
        match rules.into_iter().find(|(broken, _)| *broken) {
            Some((_, why)) => Err(why.to_owned()),
            None => Ok(()),
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClockName {
    Real,
    #[default]
    Virtual,
}

/// Round-trip times between two interfaces of one bus, by several pairs of methods.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PingPlan {
    pub count: u64,
    pub len: u8,
    /// Priority under SCHED_FIFO of both ends.
    pub realtime: u8,
    /// The largest random addition to the time between two pings, ns.
    #[serde(default, deserialize_with = "duration::deserialize")]
    pub jitter: u64,
    /// The seed of the random additions: another one for each boot.
    #[serde(skip, default = "seed")]
    pub seed: u64,
    /// The names of loads, as in [`super::load::Load`].
    #[serde(default = "super::plan::no_load")]
    pub loads: Vec<String>,
    #[serde(default = "super::plan::as_it_is")]
    pub tuning: Vec<super::tuning::Tuning>,
    /// Whether frames on canchar's virtual devices take no time, as on a vcan, instead of that of 1 Mbit/s.
    #[serde(default)]
    pub timeless: bool,
    pub pairs: Vec<PingPair>,
}

fn seed() -> u64 {
    canter_route::traffic::random::SEED
}

/// The two ends of a ping, and its methods.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PingPair {
    pub method: String,
    pub from: String,
    pub to: String,
}

const ONE_KIND: &str =
    "needs one of [syscalls], [latency], [ping], [recording], [writes], [throughput] and missing";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    title: String,
    source: String,
    #[serde(default)]
    set: Set,
    /// The reason why the study cannot be measured.
    missing: Option<String>,
    #[serde(default)]
    lab: Lab,
    syscalls: Option<SyscallsPlan>,
    latency: Option<LatencyFile>,
    ping: Option<PingPlan>,
    recording: Option<RecordingPlan>,
    writes: Option<WritesPlan>,
    throughput: Option<ThroughputPlan>,
    #[serde(default)]
    paper: PaperFigures,
    /// The ceilings that an earlier version had in study files.
    ceiling: Option<toml::Value>,
    #[serde(default)]
    claim: Vec<Claim>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SyscallsPlan {
    /// Devices of a module outside of the network stack; unless given, canter makes virtual interfaces.
    interface: Option<String>,
    frames: Vec<u64>,
    batch: Vec<usize>,
    queue: Option<u64>,
    #[serde(default = "one_reader")]
    readers: Vec<usize>,
    len: u8,
}

fn one_reader() -> Vec<usize> {
    vec![1]
}

#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct PaperFigures {
    machine: String,
    /// The median or cost of each method, by canter's name, under the study's first condition.
    #[serde(default)]
    ns: BTreeMap<String, u64>,
    /// The paper's figures for other conditions, or more of a distribution.
    #[serde(default)]
    point: Vec<Point>,
}

/// A figure of the paper. A missing key matches every condition.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Point {
    method: Option<String>,
    load: Option<String>,
    traffic: Option<String>,
    rules: Option<String>,
    #[serde(default)]
    ns: u64,
    #[serde(default)]
    min: u64,
    #[serde(default)]
    p90: u64,
    #[serde(default)]
    max: u64,
}

impl Study {
    /// All studies.
    pub fn all() -> failure::Result<Vec<Self>> {
        let all: failure::Result<Vec<Self>> =
            catalogue::FILES.iter().map(|(name, text)| Self::read(name, text)).collect();
        let mut all = all?;
        all.sort_by_key(Self::order);
        Ok(all)
    }

    /// The paper and the figure or table: `2011, figure 8`; empty for those of no paper.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The sort key: the paper, the numbers of its figures, the name; studies of no paper come last.
    fn order(&self) -> (bool, String, Vec<u32>, String) {
        let (paper, figures) = self.source.split_once(',').unwrap_or((&self.source, ""));
        let numbers = figures.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok());
        (self.source.is_empty(), paper.to_owned(), numbers.collect(), self.name.clone())
    }

    /// The study of this name or file.
    pub fn find(name: &str) -> failure::Result<Self> {
        if name.ends_with(".toml") {
            let path = Path::new(name);
            let text = trouble::read_text(path)?;
            return Self::read(name, &text);
        }
        if let Some((name, text)) = catalogue::FILES.iter().find(|(known, _)| *known == name) {
            return Self::read(name, text);
        }
        let known: Vec<String> = Self::all()?.into_iter().map(|study| study.name).collect();
        Err(Failure::new(Exit::Usage, format!("{name}: no such study (there are {})", known.join(", "))))
    }

    /// Reads a study; `name` is its name in errors.
    pub fn read(name: &str, text: &str) -> failure::Result<Self> {
        let wrong = |reason: String| Failure::failed(format!("{name}: study file: {reason}"));
        let file: File = Document::new(name, text).read().map_err(|wrong| Failure::failed(wrong.message))?;
        let kinds = [
            file.syscalls.map(|plan| Ok(Kind::Syscalls(plan.setup()))),
            file.latency.map(|plan| plan.plan().map(Kind::Latency)),
            file.ping.map(|plan| plan.checked().map(Kind::Ping)),
            file.recording.map(|plan| plan.checked().map(Kind::Recording)),
            file.writes.map(|plan| plan.checked().map(Kind::Writes)),
            file.throughput.map(|plan| plan.checked().map(Kind::Throughput)),
            file.missing.map(|why| Ok(Kind::Missing(why))),
        ];
        let mut kinds = kinds.into_iter().flatten();
        let (Some(kind), None) = (kinds.next(), kinds.next()) else {
            return Err(wrong(ONE_KIND.to_owned()));
        };
        let kind = kind.map_err(wrong)?;
        let File { name: own, title, source, set, lab, paper, ceiling, claim: claims, .. } = file;
        if ceiling.is_some() {
            return Err(wrong("[[ceiling]] is replaced by canter report --compare BEFORE AFTER".to_owned()));
        }
        if own.is_empty() || !own.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c)) {
            return Err(wrong(format!(
                "name {own:?}: only letters, digits, points, hyphens and underscores are allowed"
            )));
        }
        let mut names: Vec<_> = claims.iter().map(|claim: &Claim| &claim.name).collect();
        names.sort();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(wrong(format!("claim {:?}: there are two of this name", twice[0])));
        }
        lab.suits(&kind).map_err(wrong)?;
        Ok(Self {
            name: own,
            file: name.to_owned(),
            title,
            set,
            lab,
            kind,
            claims,
            text_number: number_of(text),
            source,
            paper,
        })
    }

    /// This study with another number of frames; the frames of [syscalls] stay.
    #[must_use]
    pub fn with_frames(mut self, amount: Amount) -> Self {
        match &mut self.kind {
            Kind::Latency(plan) => plan.count = amount.frames(plan.count),
            Kind::Ping(plan) => plan.count = amount.frames(plan.count),
            Kind::Recording(plan) => plan.frames = amount.frames(plan.frames),
            Kind::Writes(plan) => plan.count = amount.frames(plan.count),
            Kind::Throughput(plan) => plan.frames = amount.frames(plan.frames),
            Kind::Syscalls(_) | Kind::Missing(_) => {}
        }
        self
    }

    /// This study with the time on a board, unless that is `None`.
    pub fn on_board(mut self, board: Option<Board>) -> failure::Result<Self> {
        if board.is_some() && !self.lab.analyzer {
            let why = format!("study: {}: --cost: is for studies that the analyzer measures", self.name);
            return Err(Failure::new(Exit::Usage, why));
        }
        self.lab.cost = board.or(self.lab.cost);
        Ok(self)
    }

    /// This study in the boot of this number, counted from 1, with another seed of the jitter for each boot.
    #[must_use]
    pub fn in_boot(mut self, number: u32) -> Self {
        match &mut self.kind {
            Kind::Latency(plan) => plan.seed += u64::from(number - 1),
            Kind::Ping(plan) => plan.seed += u64::from(number - 1),
            _ => {}
        }
        self
    }

    /// The paper's figures for a method under the first condition, if it has any.
    pub fn paper_of(&self, method: &str) -> Option<Paper> {
        let ns = *self.paper.ns.get(method)?;
        Some(Paper { ns, ..self.paper_without_figures() })
    }

    /// The paper's figures for a case.
    pub fn paper_of_case(&self, case: &Case, first: bool) -> Option<Paper> {
        let is_wanted =
            |wanted: &Option<String>, there: &str| wanted.as_deref().is_none_or(|one| one == there);
        let point = self.paper.point.iter().find(|point| {
            is_wanted(&point.method, &case.method)
                && is_wanted(&point.load, case.load.name())
                && is_wanted(&point.traffic, &case.traffic.to_string())
                && is_wanted(&point.rules, &case.rules.to_string())
        });
        match point {
            Some(&Point { ns, min, p90, max, .. }) => {
                Some(Paper { ns, min, p90, max, ..self.paper_without_figures() })
            }
            None if first => self.paper_of(&case.method),
            None => None,
        }
    }

    fn paper_without_figures(&self) -> Paper {
        Paper { source: self.source.clone(), machine: self.paper.machine.clone(), ..Paper::default() }
    }
}

impl SyscallsPlan {
    fn setup(self) -> syscalls::Setup {
        let Self { interface, frames, batch, queue, readers, len } = self;
        syscalls::Setup { interface, frames, batch, queue, readers, methods: Vec::new(), len }
    }
}

impl PingPlan {
    fn checked(self) -> Result<Self, String> {
        for pair in &self.pairs {
            pair.method.parse::<Pair>().map_err(|error| error.to_string())?;
        }
        self.loads.iter().try_for_each(|load| load.parse::<super::load::Load>().map(drop))?;
        Ok(self)
    }

    /// The number of series of the plan.
    pub fn cases(&self) -> usize {
        self.loads.len() * self.tuning.len() * self.pairs.len()
    }
}

/// A number that identifies a text, in every version of the compiler: the hash of Fowler, Noll and Vo, 1a, 64 bits.
fn number_of(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |number, byte| (number ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use canter_route::gateway::kind::Method;

    #[test]
    fn every_study_file_is_valid_and_has_the_name_of_its_file() {
        for (name, text) in catalogue::FILES {
            let study = Study::read(name, text).unwrap_or_else(|failure| panic!("{failure}"));
            assert_eq!(study.name, *name);
        }
    }

    #[test]
    fn studies_are_in_the_order_of_the_papers_and_of_their_figures() {
        let studies = Study::all().unwrap_or_else(|failure| panic!("{failure}"));
        let place = |name: &str| studies.iter().position(|study| study.name == name);
        let order =
            ["2010-fig5", "2010-fig12", "2011-fig4", "2011-fig10", "2014-fig4.2", "wccd-table1", "wccd-fig7"];
        let places: Vec<_> = order.map(|name| place(name).unwrap_or_else(|| panic!("{name}"))).into();
        assert!(places.is_sorted(), "{places:?}");
        assert_eq!(studies.last().map(|study| study.source.as_str()), Some(""), "those of no paper are last");
    }

    #[test]
    fn a_study_names_each_method_once_and_can_gw_first() {
        let study = Study::find("2014-fig4.2").unwrap_or_else(|failure| panic!("{failure}"));
        let Kind::Latency(plan) = study.kind else { panic!("figure 4.2 shows latencies") };
        assert_eq!(plan.methods[0], "can-gw");
        let known = plan.methods.iter().filter(|name| name.parse::<Method>().is_ok());
        assert!(known.count() >= 10);
        let mut once = plan.methods.clone();
        once.sort();
        once.dedup();
        assert_eq!(once.len(), plan.methods.len());
    }

    const STUDY: &str = "name = \"x\"\ntitle = \"t\"\nsource = \"s\"\n\
                         [lab]\nkernels = [\"6.12\"]\nclock = \"virtual\"\ncpus = 1\n";

    #[test]
    fn the_error_names_the_fault_in_a_study_file() {
        let latency = "[latency]\nmethods = [\"can-gw\"]\ncount = 1\nlens = [2]\n";
        let recording =
            "[recording]\nbuses = 2\nframes = 9\nlens = [8]\nmemory = 5\nrecorders = [\"canter\"]\n";
        for (more, expected) in [
            ("", ONE_KIND),
            (&recording.replace("[8]", "[]"), "[recording] lens: at least one"),
            (&recording.replace("[8]", "[8, 9]"), "[recording] lens: at most 8 bytes"),
            (&recording.replace("= 5", "= 4"), "[recording] memory: 5…1024 MiB"),
            (&latency.replace("can-gw", "can-gv"), "can-gv"),
            (&latency.replace("\"can-gw\"", ""), "[latency]: each list needs a value"),
            (&format!("{latency}loads = [\"rain\"]\n"), "rain: no such load (none, busy-processes, cpu, "),
            (&format!("{latency}traffic = [\"rain\"]\n"), "traffic: must be one-at-a-time, "),
            (&format!("{latency}rules = [\"eff=0\"]\n"), "eff=0: "),
            (&latency.replace("[2]", "[1]"), "lens: "),
            (
                &format!("{latency}lans = [1]\n"),
                "x.toml:12:1: \"lans\": unknown key (did you mean \"lens\"?)",
            ),
            ("cpu = 1\n", "x.toml:8:1: \"cpu\": unknown key (did you mean \"cpus\"?)"),
            (
                &format!("analyzer = true\n{latency}traffic = [\"flood\"]\n"),
                "[lab] analyzer: measures traffic",
            ),
            (&format!("analyzer = true\nbus = \"probe\"\n{latency}"), "[lab] analyzer: needs bus"),
            (&format!("cost = \"desktop\"\n{latency}"), "[lab] cost: needs analyzer"),
            (
                &format!("analyzer = true\n{latency}beside_sockets = true\ntimeline = true\n"),
                "beside_sockets: measures no latencies",
            ),
            (&format!("arch = \"arm64\"\nbus = \"wire\"\n{latency}"), "[lab] arch: another one has bus"),
            (
                &format!("canchar = \"3,4\"\nbus = \"fd\"\n{latency}"),
                "[lab] bus = \"fd\": canchar does not drive",
            ),
            ("bus = \"wir\"\n", "x.toml:8:7: \"wir\": unknown word (did you mean \"wire\"?)"),
        ] {
            let error = Study::read("x.toml", &format!("{STUDY}{more}")).err().map(|failure| failure.message);
            let error = error.unwrap_or_else(|| panic!("{more} was taken"));
            assert!(error.starts_with("x.toml:") && error.contains(expected), "{more}: {error}");
            assert_eq!(error.lines().count(), 1, "{error}");
        }
    }
}

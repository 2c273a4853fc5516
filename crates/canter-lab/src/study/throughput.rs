//! Gateways between many virtual wires at once: what a frame costs the processor at a given rate, or the highest rate that a
//! gateway keeps up with. One gateway has a route for each bus, and each route has the same rules.

mod flows;

use super::{load_curve, rules::Rules};
use crate::meter::sweep;
use canter_cli::failure::{self, Exit, Failure};
use canter_io::Interface;
use canter_measure::result::{Condition, Curve, Ledger, Lost, Series, WireKept};
use canter_route::gateway::{child, kind::Method, table::paper_name};
use flows::{BUSES_MAX, Carried, Flows, Load, Usage};
use serde::Deserialize;
use std::{collections::BTreeSet, fs};

/// The method's name for wires without a gateway: what the sources, the wires and the drivers take, and the control that the
/// wires carry the rate.
const NO_GATEWAY: &str = "none";
/// A period at which a second run does not keep up is longer by this part of it, as the search is exact to this part.
const SEARCHED_TO: u64 = 100;
/// The word after a method whose routes share a thread.
const ONE_THREAD: &str = " --one-thread";

/// The plan: every method with all rules between all numbers of buses.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThroughputPlan {
    /// The numbers of buses from which frames come.
    pub buses: Vec<u32>,
    /// The number of input buses for each output bus.
    #[serde(default = "one")]
    pub share: u32,
    /// The values of `canter gateway --method`, with ` --one-thread` where its routes share a thread.
    pub methods: Vec<String>,
    /// The rules of each route, as in `[latency]`.
    #[serde(default = "all_frames")]
    pub rules: Vec<Rules>,
    /// The number of bytes of each frame.
    pub len: u8,
    /// The number of frames of each bus.
    pub frames: u64,
    /// The time between two frames of a bus, in ns; unless given, the shortest without loss is searched.
    #[serde(default, deserialize_with = "canter_cli::duration::deserialize")]
    pub period: u64,
}

fn one() -> u32 {
    1
}

fn all_frames() -> Vec<Rules> {
    vec![Rules::All]
}

/// A gateway with its rules, between all numbers of buses.
struct Case<'a> {
    method: &'a str,
    rules: &'a Rules,
}

/// A gateway between a number of buses.
struct Point {
    buses: u64,
    /// The period of each bus.
    period_ns: u64,
    carried: Carried,
    /// The resident memory of the gateway's process, in KiB.
    memory_kib: u64,
}

impl ThroughputPlan {
    pub fn checked(self) -> Result<Self, String> {
        for method in self.methods.iter().filter(|method| *method != NO_GATEWAY) {
            split(method).0.parse::<Method>().map_err(|error| error.to_string())?;
        }
        let fits = |&buses: &u32| buses > 0 && buses + buses.div_ceil(self.share.max(1)) <= BUSES_MAX;
        if self.share == 0 || !self.buses.iter().all(fits) {
            return Err(format!("[throughput]: at most {BUSES_MAX} input and output buses together"));
        }
        let frames_max = flows::FRAMES_MAX / u64::from(self.share);
        if !(2..=8).contains(&self.len) || !(4..=frames_max).contains(&self.frames) {
            return Err(format!("[throughput]: 2…8 bytes, 4…{frames_max} frames"));
        }
        Ok(self)
    }

    /// The number of cases.
    pub fn cases(&self) -> usize {
        self.methods.len() * self.rules.len()
    }

    fn all(&self) -> impl Iterator<Item = Case<'_>> {
        self.rules.iter().flat_map(move |rules| self.methods.iter().map(move |method| Case { method, rules }))
    }
}

/// A method, and whether its routes share a thread.
fn split(method: &str) -> (&str, bool) {
    method.strip_suffix(ONE_THREAD).map_or((method, false), |method| (method, true))
}

/// One bus, for the environment of the result.
pub fn interfaces() -> failure::Result<Vec<Interface>> {
    let flows = Flows::new(1, 1)?;
    Ok(vec![Interface::find(flows.routes()[0].0)?])
}

/// Every gateway with all rules, but for the cases whose number is `known`.
pub fn measure(
    plan: &ThroughputPlan,
    known: &BTreeSet<usize>,
    done: &mut dyn FnMut(usize, &str, Vec<Series>),
) -> failure::Result<()> {
    for (number, case) in plan.all().enumerate().filter(|(number, _)| !known.contains(number)) {
        let points: failure::Result<Vec<Point>> =
            plan.buses.iter().map(|&buses| point(plan, &case, buses)).collect();
        let series = match points {
            Err(Failure { exit: Exit::Unable, message }) => {
                vec![Series::unavailable(case.method, condition(plan, &case), message)]
            }
            points => series(plan, &case, &points?),
        };
        done(number, &format!("{}, {}", case.method, case.rules), series);
    }
    Ok(())
}

/// Measures between this number of buses: at the period of the plan, or at the shortest that the gateway keeps up with.
fn point(plan: &ThroughputPlan, case: &Case<'_>, buses: u32) -> failure::Result<Point> {
    let flows = Flows::new(buses, plan.share)?;
    let (method, one_thread) = split(case.method);
    let gateway =
        if method == NO_GATEWAY { None } else { Some(start(&flows, method, one_thread, case.rules)?) };
    let memory_kib = gateway.as_ref().map_or(0, |gateway| resident_kib(gateway.process_id()));
    let load = Load::new(case.rules.frame_id(), plan.len, plan.frames, gateway.is_some())?;
    let mut period_ns = match plan.period {
        0 => shortest_period(&flows, &load)?,
        period_ns => period_ns,
    };
    let mut carried = flows.carry(&load, period_ns, Usage::Measured)?;
    // At the edge a second run may lose a frame that the first did not.
    while plan.period == 0 && !carried.keeps_up() {
        period_ns += period_ns / SEARCHED_TO;
        carried = flows.carry(&load, period_ns, Usage::Measured)?;
    }
    if let Some(gateway) = gateway {
        gateway.stop()?;
    }
    if carried.wire.slips > 0 {
        let slips = carried.wire.slips;
        return Err(Failure::unable(format!(
            "the machine is too slow for {buses} buses: the wires waited {slips} times"
        )));
    }
    Ok(Point { buses: buses.into(), period_ns, carried, memory_kib })
}

/// The shortest period at which the gateway loses no frame and falls no farther behind, to a hundredth.
fn shortest_period(flows: &Flows, load: &Load) -> failure::Result<u64> {
    let ends = sweep::search(load.frame_ns(), |period_ns| {
        let carried = flows.carry(load, period_ns, Usage::Ignored)?;
        Ok(Some(!carried.keeps_up()))
    })?;
    Ok(ends.last().copied().unwrap_or_default())
}

/// Starts the gateway of all flows with these rules.
fn start(flows: &Flows, method: &str, one_thread: bool, rules: &Rules) -> failure::Result<child::Gateway> {
    let wrong = |error: std::io::Error| Failure::failed(format!("study: rule file: {error}"));
    let file = tempfile::Builder::new().suffix(".toml").tempfile().map_err(wrong)?;
    let text: String = flows.routes().iter().map(|(from, to)| rules.routes(from, to)).collect();
    fs::write(file.path(), text).map_err(wrong)?;
    // The gateway has read the file when it routes, and reads it again on SIGHUP only.
    child::Gateway::start(&child::Order {
        ends: None,
        method,
        rules: Some(file.path()),
        cpu: None,
        realtime: 0,
        one_thread,
    })
}

/// The resident memory of a process that no file backs, in KiB (proc_pid_status(5)).
fn resident_kib(process: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}

fn condition(plan: &ThroughputPlan, case: &Case<'_>) -> Condition {
    let mut condition = Condition {
        traffic: if plan.period > 0 { "period" } else { "" }.to_owned(),
        period_ns: plan.period,
        load: "none".to_owned(),
        frames: plan.frames,
        len: plan.len.into(),
        instrument: "wire".to_owned(),
        ..Condition::default()
    };
    case.rules.mark(&mut condition);
    condition
}

/// The curves of a gateway: at the plan's period its cost, latency and memory; else its highest rate and the cost there.
fn series(plan: &ThroughputPlan, case: &Case<'_>, points: &[Point]) -> Vec<Series> {
    let cost = curve("processor time of a frame", "ns", points, |point| point.carried.processor_ns);
    let curves = if plan.period > 0 {
        let latency = curve("median latency", "ns", points, |point| point.carried.latency.median_ns());
        let memory = curve("memory of the gateway", "KiB", points, |point| Some(point.memory_kib));
        [cost, latency, memory]
    } else {
        let rate = |point: &Point| 1_000_000_000_u64.checked_div(point.period_ns);
        let highest = curve("highest rate of each bus", "frames/s", points, rate);
        [highest, cost, Curve::default()]
    };
    let series = |curve| Series {
        method: case.method.to_owned(),
        paper_name: paper_name(split(case.method).0).to_owned(),
        condition: condition(plan, case),
        curve: Some(curve),
        ledger: ledger(points),
        wire: Some(wire(points)),
        floor_ns: Some(0),
        ..Series::default()
    };
    curves.into_iter().filter(|curve| !curve.points.is_empty()).map(series).collect()
}

fn curve(quantity: &str, unit: &str, points: &[Point], value: impl Fn(&Point) -> Option<u64>) -> Curve {
    let points = points.iter().filter_map(|point| Some([point.buses, value(point)?])).collect();
    load_curve::against_buses(quantity, unit, points)
}

/// The frames of all points; those that were lost have no place.
fn ledger(points: &[Point]) -> Ledger {
    let sum = |figure: fn(&Carried) -> u64| points.iter().map(|point| figure(&point.carried)).sum::<u64>();
    let (sent, received) = (sum(|carried| carried.sent), sum(|carried| carried.received));
    Ledger {
        sent,
        received,
        late: sum(|carried| carried.late),
        lost: Lost { unaccounted: sent - received, ..Lost::default() },
        ..Ledger::default()
    }
}

fn wire(points: &[Point]) -> WireKept {
    points.iter().map(|point| &point.carried.wire).fold(WireKept::default(), |all, one| WireKept {
        late_ns_p50: all.late_ns_p50.max(one.late_ns_p50),
        late_ns_max: all.late_ns_max.max(one.late_ns_max),
        slips: all.slips + one.slips,
        slip_ns: all.slip_ns + one.slip_ns,
        overruns: all.overruns + one.overruns,
        errors: all.errors + one.errors,
    })
}

//! Flows: input buses whose sources send evenly in turn, output buses that a running source acknowledges without a node, and
//! the taps of all, which say what became of each frame.

use crate::{
    meter::deliveries::Deliveries,
    study::{
        nodes::{self, Nodes},
        processor::Moment,
    },
};
use canter_cli::failure;
use canter_io::{
    BitRate, Frame, clock,
    netlink::wire::{self, Pace, Source},
    tap::{Record, Tap},
};
use canter_measure::{matcher::Passage, result::WireKept};
use canter_route::traffic::template::{self, Template};
use std::collections::{HashMap, VecDeque};

/// The most buses: those of canwire without the two of the lab.
pub const BUSES_MAX: u32 = 30;
/// The most frames on a bus: a tap keeps as many until it is read.
pub const FRAMES_MAX: u64 = 16_000;
/// Bits per second of every bus.
const BITRATE: u32 = 1_000_000;
/// The time from the command to the first frame, in which all sources are started.
const AHEAD_NS: u64 = 30_000_000;
/// A source that waits this long acknowledges, and sends nothing.
const NEVER_NS: u64 = 3_600_000_000_000;
/// The time without a frame after which the frames still missing count as lost.
const PATIENCE_NS: u64 = 100_000_000;
/// A gateway falls behind when its latencies grow by more than this part of the run's duration.
const GROWTH_PART: u64 = 100;

pub struct Flows {
    inputs: Nodes,
    outputs: Nodes,
    share: usize,
}

/// Whether a run measures the processors' time, which takes as long again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usage {
    Measured,
    Ignored,
}

/// What the sources send.
pub struct Load {
    frame: Frame,
    frames: u64,
    /// Whether a gateway forwards the frames.
    routed: bool,
}

/// Latencies in the order of the frames' delivery.
#[derive(Default)]
pub struct Latencies(Vec<(u64, u64)>);

/// What the wires and the gateway did with the frames of a run.
#[derive(Default)]
pub struct Carried {
    pub sent: u64,
    pub received: u64,
    /// Frames that the input wires delivered late.
    pub late: u64,
    pub latency: Latencies,
    duration_ns: u64,
    /// The processors' time of a frame, without that of the wires' timers; `None`: not measured, or no time is idle.
    pub processor_ns: Option<u64>,
    pub wire: WireKept,
}

impl Load {
    pub fn new(id: &'static str, len: u8, frames: u64, routed: bool) -> failure::Result<Self> {
        Ok(Self { frame: Template::new(id, len, false).frame()?, frames, routed })
    }

    /// The mean time of a frame on its bus.
    pub fn frame_ns(&self) -> u64 {
        template::mean_ns(&self.frame, self.frames, BitRate::classic(BITRATE))
    }
}

impl Latencies {
    pub fn median_ns(&self) -> Option<u64> {
        median(&self.0)
    }

    /// By how much the median of the last quarter exceeds that of the first.
    fn growth_ns(&self) -> u64 {
        let quarter = self.0.len() / 4;
        let (first, last) = (&self.0[..quarter], &self.0[self.0.len() - quarter..]);
        median(last).unwrap_or_default().saturating_sub(median(first).unwrap_or_default())
    }
}

fn median(latencies: &[(u64, u64)]) -> Option<u64> {
    let mut values: Vec<u64> = latencies.iter().map(|(_, latency_ns)| *latency_ns).collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}

impl Carried {
    /// Whether no frame was lost, no wire had to wait for the machine, and the gateway did not fall behind, which a queue would
    /// hide.
    pub fn keeps_up(&self) -> bool {
        self.received == self.sent
            && self.wire.slips == 0
            && self.latency.growth_ns() <= self.duration_ns / GROWTH_PART
    }
}

impl Flows {
    /// Makes `count` input buses, and an output bus for each `share` of them.
    pub fn new(count: u32, share: u32) -> failure::Result<Self> {
        let inputs = Nodes::new("flow", count, BITRATE)?;
        let outputs = Nodes::new("sink", count.div_ceil(share), BITRATE)?;
        for bus in outputs.names() {
            let pace = Pace::Period(NEVER_NS);
            let never = Source { pace, count: Some(1), delay_ns: Some(NEVER_NS), ..Source::default() };
            wire::start(bus, &never)?;
        }
        Ok(Self { inputs, outputs, share: share as usize })
    }

    /// The input and the output of each route.
    pub fn routes(&self) -> Vec<(&str, &str)> {
        let output = |at: usize| self.outputs.names()[at / self.share].as_str();
        self.inputs.names().iter().enumerate().map(|(at, input)| (input.as_str(), output(at))).collect()
    }

    /// Sends frames on all input buses, and reads what became of them when all are through.
    pub fn carry(&self, load: &Load, period_ns: u64, usage: Usage) -> failure::Result<Carried> {
        let open = |buses: &[String]| buses.iter().map(|bus| Tap::open(bus)).collect::<Result<Vec<_>, _>>();
        let (mut inputs, mut outputs) = (open(self.inputs.names())?, open(self.outputs.names())?);
        let before = self.totals()?;
        let begin_ns = self.start(load, period_ns)?;
        let begun = Moment::now()?;
        let lasts_ns = load.frames * period_ns.max(load.frame_ns());
        clock::sleep_until_ns(begin_ns + lasts_ns + lasts_ns / 100);
        self.wait(load, &inputs, &outputs);
        let ended = Moment::now()?;
        let totals = self.totals()?;
        let mut carried = Carried { duration_ns: lasts_ns, ..Carried::default() };
        for (at, output) in outputs.iter_mut().enumerate() {
            let first = at * self.share;
            let last = (first + self.share).min(inputs.len());
            carried.add(&mut inputs[first..last], output, load);
        }
        carried.latency.0.sort_unstable();
        carried.wire =
            WireKept { late_ns_p50: carried.wire.late_ns_p50, ..since(&totals.kept, &before.kept) };
        if usage == Usage::Measured {
            let timers_ns = totals.timers_ns - before.timers_ns;
            carried.processor_ns = used_ns(&begun, &ended, timers_ns)?.map(|ns| ns / carried.sent.max(1));
        }
        Ok(carried)
    }

    /// Starts all sources, their first frames evenly spread over a period; returns when the first one is sent.
    fn start(&self, load: &Load, period_ns: u64) -> failure::Result<u64> {
        let begin_ns = clock::monotonic_ns() + AHEAD_NS;
        let outputs = self.outputs.names().len();
        for (at, bus) in self.inputs.names().iter().enumerate() {
            let places = outputs * self.share;
            let first_ns = begin_ns + turn(at, self.share, outputs) as u64 * period_ns / places as u64;
            let source = Source {
                frame: load.frame,
                pace: Pace::Period(period_ns),
                count: Some(load.frames as u32), // at most FRAMES_MAX
                number: true,
                delay_ns: Some(first_ns.saturating_sub(clock::monotonic_ns())),
                ..Source::default()
            };
            wire::start(bus, &source)?;
        }
        Ok(begin_ns)
    }

    /// Waits until every frame has passed, or none has for a while.
    fn wait(&self, load: &Load, inputs: &[Tap], outputs: &[Tap]) {
        let sum = |taps: &[Tap]| taps.iter().map(Tap::written).sum::<u64>();
        let all = load.frames * inputs.len() as u64;
        let (mut before, mut since_ns) = (0, clock::monotonic_ns());
        loop {
            let now = (sum(inputs), sum(outputs));
            let now_ns = clock::monotonic_ns();
            if now.0 >= all && (!load.routed || now.1 >= all) {
                return;
            }
            if now.0 + now.1 != before {
                (before, since_ns) = (now.0 + now.1, now_ns);
            } else if now_ns - since_ns > PATIENCE_NS {
                return;
            }
            clock::sleep_until_ns(now_ns + PATIENCE_NS / 10);
        }
    }

    fn totals(&self) -> failure::Result<Totals> {
        let mut totals = Totals::default();
        for bus in self.inputs.names().iter().chain(self.outputs.names()) {
            let stats = wire::bus(bus)?.stats;
            totals.timers_ns += stats.callback_ns;
            nodes::add(&mut totals.kept, &stats);
        }
        Ok(totals)
    }
}

/// The place of an input among the first frames of all: inputs that share an output are as far apart as can be.
fn turn(at: usize, share: usize, outputs: usize) -> usize {
    at % share * outputs + at / share
}

/// The counters of all buses since they were made.
#[derive(Default)]
struct Totals {
    /// The time spent in the wires' timers.
    timers_ns: u64,
    kept: WireKept,
}

/// What a run added to the counters of all buses.
fn since(after: &WireKept, before: &WireKept) -> WireKept {
    WireKept {
        late_ns_p50: 0,
        late_ns_max: after.late_ns_max,
        slips: after.slips - before.slips,
        slip_ns: after.slip_ns - before.slip_ns,
        overruns: after.overruns - before.overruns,
        errors: after.errors - before.errors,
    }
}

impl Carried {
    /// Adds the frames of an output bus and of its inputs. Frames that are alike leave in the order in which they came.
    fn add(&mut self, inputs: &mut [Tap], output: &mut Tap, load: &Load) {
        let mut waiting: HashMap<u16, VecDeque<u64>> = HashMap::new();
        let mut deliveries = Deliveries::default();
        let mut delivered: Vec<(u64, u16)> = Vec::new();
        let sent = inputs.iter_mut().flat_map(frames).filter(|record| record.sender.is_none());
        for record in sent {
            deliveries.count(record.late_ns.into(), record.duration_ns());
            delivered.push((record.delivery_ns(), number(&record)));
        }
        delivered.sort_unstable();
        self.late += deliveries.late();
        self.wire.late_ns_p50 = self.wire.late_ns_p50.max(deliveries.behind_ns().p50);
        self.sent += delivered.len() as u64;
        if !load.routed {
            self.received += delivered.len() as u64;
            return;
        }
        delivered.iter().for_each(|(ns, number)| waiting.entry(*number).or_default().push_back(*ns));
        for record in frames(output).iter().filter(|record| record.sender.is_some()) {
            let Some(came_ns) = waiting.get_mut(&number(record)).and_then(VecDeque::pop_front) else {
                continue;
            };
            self.received += 1;
            let passage = Passage { direct_ns: came_ns, routed_ns: record.sof_ns };
            self.latency.0.push((came_ns, passage.latency_ns(0).max(0) as u64));
        }
    }
}

/// The frames without errors that a tap has kept.
fn frames(tap: &mut Tap) -> Vec<Record> {
    std::iter::from_fn(|| tap.next_record()).filter(|record| record.error.is_none()).collect()
}

/// The number that the source has written into a frame.
fn number(record: &Record) -> u16 {
    u16::from_le_bytes([record.frame.data[0], record.frame.data[1]])
}

/// The processors' time between two moments, without what they take in as long a time without frames and without
/// `timers_ns`. `None` when no time is idle: a program spins.
fn used_ns(begun: &Moment, ended: &Moment, timers_ns: u64) -> failure::Result<Option<u64>> {
    let quiet = Moment::now()?;
    let lasts_ns = ended.since_ns(begun);
    clock::sleep_until_ns(clock::monotonic_ns() + lasts_ns);
    let quiet_ns = Moment::now()?.busy_ns_since(&quiet);
    let spins = quiet_ns > lasts_ns / 2;
    let used_ns = ended.busy_ns_since(begun).saturating_sub(quiet_ns + timers_ns);
    Ok((!spins).then_some(used_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn carried(received: u64, latency_ns: impl Fn(u64) -> u64) -> Carried {
        let latency = Latencies((0..1000).map(|at| (at * 1000, latency_ns(at))).collect());
        Carried { sent: 1000, received, latency, duration_ns: 1_000_000, ..Carried::default() }
    }

    #[test]
    fn a_gateway_that_loses_a_frame_or_falls_behind_does_not_keep_up() {
        assert!(carried(1000, |_| 5_000).keeps_up());
        assert!(!carried(999, |_| 5_000).keeps_up(), "one is lost");
        let wire = WireKept { slips: 1, ..WireKept::default() };
        assert!(!Carried { wire, ..carried(1000, |_| 5_000) }.keeps_up(), "a wire waited");
        assert!(carried(1000, |at| if at == 999 { 900_000 } else { 5_000 }).keeps_up(), "one was held up");
        assert!(carried(1000, |at| 5_000 + at * 10).keeps_up(), "behind by 1 %");
        assert!(!carried(1000, |at| 5_000 + at * 20).keeps_up(), "behind by 2 %");
    }

    #[test]
    fn inputs_of_one_output_are_half_a_period_apart() {
        assert_eq!([0, 1, 2, 3, 4].map(|at| turn(at, 2, 3)), [0, 3, 1, 4, 2]);
    }

    #[test]
    fn the_median_is_of_all_latencies() {
        assert_eq!(carried(1000, |at| 1000 - at).latency.median_ns(), Some(501));
        assert_eq!(Latencies::default().median_ns(), None);
    }
}

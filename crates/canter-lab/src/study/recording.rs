//! Recordings of many full buses at once: virtual wires, whose sources always have a frame ready, and one program that
//! records all of them. What its file holds is compared with what the sources sent.

mod buses;
mod highest;
mod program;
mod recorder;

use super::load_curve;
use buses::{Buses, Sent, Traffic};
use canter_cli::failure::{self, Exit, Failure};
use canter_io::Interface;
use canter_measure::result::{Condition, Curve, Ledger, Lost, RECORDING, Series, Varied};
use program::{RunningRecorder, failed};
use recorder::{Assignment, Recorder};
use serde::Deserialize;
use std::collections::BTreeSet;

/// The plan of a study of recorders: the buses, their bit rates, and the recorders. Without bit rates, the highest rate that a
/// recorder keeps up with is searched.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordingPlan {
    pub buses: u32,
    /// The bit rates of all buses, in bit/s.
    #[serde(default)]
    pub bitrates: Vec<u32>,
    /// The number of frames on each bus.
    pub frames: u64,
    /// The numbers of bytes of random data in each frame.
    pub lens: Vec<u8>,
    /// The memory in which frames may wait for the recorder, in the kernel and in its own queues together, in MiB.
    pub memory: u32,
    /// The names of the recorders.
    pub recorders: Vec<String>,
}

/// One recorder of frames of this length at one bit rate, or, without one, at its highest rate.
#[derive(Clone, Copy)]
struct Case {
    bitrate: Option<u32>,
    len: u8,
    recorder: &'static Recorder,
}

impl RecordingPlan {
    pub fn checked(self) -> Result<Self, String> {
        self.recorders.iter().try_for_each(|name| recorder::find(name).map(drop))?;
        // A MiB for each bus is the least that dumpcap takes, and five the least of which canter has a part for its queue.
        let least = self.buses.max(5);
        let kept = [
            ((1..=64).contains(&self.buses), "buses: 1…64".to_owned()),
            ((least..=1024).contains(&self.memory), format!("memory: {least}…1024 MiB, one for each bus")),
            (self.frames > 0, "frames: at least 1".to_owned()),
            (!self.lens.is_empty(), "lens: at least one".to_owned()),
            (self.lens.iter().all(|&len| len <= 8), "lens: at most 8 bytes".to_owned()),
            (!self.bitrates.contains(&0), "bitrates: above 0".to_owned()),
            (!self.recorders.is_empty(), "recorders: at least one".to_owned()),
        ];
        match kept.into_iter().find(|(kept, _)| !kept) {
            Some((_, rule)) => Err(format!("[recording] {rule}")),
            None => Ok(self),
        }
    }

    /// The number of series of the plan.
    pub fn cases(&self) -> usize {
        self.bitrates.len().max(1) * self.lens.len() * self.recorders.len()
    }

    fn all(&self) -> impl Iterator<Item = Case> {
        let recorders = || self.recorders.iter().filter_map(|name| recorder::find(name).ok());
        let searched = self.bitrates.is_empty().then_some(None);
        let bitrates = self.bitrates.iter().copied().map(Some).chain(searched);
        let buses = bitrates.flat_map(|bitrate| self.lens.iter().map(move |&len| (bitrate, len)));
        buses.flat_map(move |(bitrate, len)| recorders().map(move |recorder| Case { bitrate, len, recorder }))
    }
}

/// One bus, for the environment of the result.
pub fn interfaces(plan: &RecordingPlan) -> failure::Result<Vec<Interface>> {
    let buses = Buses::new(1, plan.bitrates.first().copied().unwrap_or(highest::BITRATE))?;
    Ok(vec![Interface::find(&buses.nodes()[0])?])
}

/// Every recorder at every bit rate or at its highest rate, but for the cases whose number is `known`.
pub fn measure(
    plan: &RecordingPlan,
    known: &BTreeSet<usize>,
    done: &mut dyn FnMut(usize, &str, Vec<Series>),
) -> failure::Result<()> {
    for (number, case) in plan.all().enumerate().filter(|(number, _)| !known.contains(number)) {
        let name = case.recorder.name;
        let (rate, measured) = match case.bitrate {
            Some(bitrate) => (format!("{bitrate} bit/s"), record(plan, case, bitrate)),
            None => ("the highest rate".to_owned(), highest::measure(plan, case)),
        };
        let series = match measured {
            Err(Failure { exit: Exit::Unable, message }) => {
                vec![Series::unavailable(name, condition(plan, case), message)]
            }
            measured => measured?,
        };
        done(
            number,
            &format!("{name} of {} buses, {} bytes a frame, at {rate}", plan.buses, case.len),
            series,
        );
    }
    Ok(())
}

/// The condition of full buses of the case's bit rate; without one, of buses at a rate that is searched.
fn condition(plan: &RecordingPlan, Case { bitrate, len, .. }: Case) -> Condition {
    let varied =
        |value: u32| Varied { name: "bit rate".to_owned(), unit: "bit/s".to_owned(), value: value.into() };
    Condition {
        traffic: bitrate.map_or("", |_| "flood").to_owned(),
        load_percent: if bitrate.is_some() { 100 } else { 0 },
        frames: plan.frames * u64::from(plan.buses),
        len: len.into(),
        variant: format!("{} buses", plan.buses),
        varied: bitrate.map(varied),
        instrument: "wire".to_owned(),
        ..Condition::default()
    }
}

/// What a recorder recorded of a run of the sources.
struct Run {
    sent: Sent,
    ledger: Ledger,
    /// The processor time of the recorder after the last frame.
    behind_ns: u64,
}

fn run(plan: &RecordingPlan, recorder: &Recorder, bitrate: u32, traffic: &Traffic) -> failure::Result<Run> {
    let name = recorder.name;
    let buses = Buses::new(plan.buses, bitrate)?;
    let folder = tempfile::tempdir().map_err(|error| failed(name, format!("a folder: {error}")))?;
    let file = folder.path().join(recorder.file);
    let assignment = Assignment { nodes: buses.nodes(), file: &file, mebibytes: plan.memory };
    let mut running = RunningRecorder::start(name, &recorder.words(&assignment)?, folder.path())?;
    let sent = buses.carry(traffic)?;
    let before = running.busy();
    running.wait_until_idle()?;
    let behind_ns = running.busy().saturating_sub(before).as_nanos() as u64;
    let code = running.end()?;
    let ledger = ledger(&sent, recorder::frames_in(folder.path(), recorder)?);
    (recorder.agrees)(code, &ledger).map_err(|why| failed(name, why))?;
    Ok(Run { sent, ledger, behind_ns })
}

/// Records buses that are full at this bit rate.
fn record(plan: &RecordingPlan, case: Case, bitrate: u32) -> failure::Result<Vec<Series>> {
    let traffic = Traffic { frames: plan.frames, len: case.len, period_ns: None };
    let Run { sent, ledger, .. } = run(plan, case.recorder, bitrate, &traffic)?;
    Ok(vec![Series {
        method: case.recorder.name.to_owned(),
        quantity: RECORDING.to_owned(),
        condition: condition(plan, case),
        ledger,
        wire: Some(sent.wire),
        ..Series::default()
    }])
}

/// The losses by place: no recorder could receive what a controller's FIFO lost; the rest was lost in sockets and rings.
fn ledger(sent: &Sent, received: u64) -> Ledger {
    let missing = sent.frames.saturating_sub(received);
    let controller = missing.min(sent.wire.overruns);
    Ledger {
        sent: sent.frames,
        received: received.min(sent.frames),
        duplicated: received.saturating_sub(sent.frames),
        lost: Lost { controller, socket: missing - controller, ..Lost::default() },
        ..Ledger::default()
    }
}

/// The share of frames that each recorder lost, against the bit rate.
pub fn curves(series: &[Series]) -> Vec<Series> {
    let mut curves: Vec<Series> = Vec::new();
    for one in series.iter().filter(|one| one.quantity == RECORDING && one.unavailable.is_empty()) {
        let Some(varied) = &one.condition.varied else { continue };
        let condition = Condition { varied: None, ..one.condition.clone() };
        let per_10_000 = 10_000 * one.ledger.lost.total() / one.ledger.sent.max(1);
        load_curve::points_of(&mut curves, one, condition, empty).push([varied.value, per_10_000]);
    }
    for curve in curves.iter_mut().filter_map(|series| series.curve.as_mut()) {
        curve.points.sort_unstable();
    }
    curves
}

fn empty() -> Curve {
    Curve {
        quantity: "frames lost".to_owned(),
        unit: "%".to_owned(),
        decimals: 2,
        against: "bit rate of each bus".to_owned(),
        against_unit: "bit/s".to_owned(),
        points: Vec::new(),
    }
}

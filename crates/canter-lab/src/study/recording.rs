//! Recordings of many full buses at once: virtual wires, whose sources always have a frame ready, and one program that
//! records all of them. What its file holds is compared with what the sources sent.

mod buses;
mod program;
mod recorder;

use super::load_curve;
use buses::{Buses, Sent};
use canter_cli::failure::{self, Exit, Failure};
use canter_io::Interface;
use canter_measure::result::{Condition, Curve, Ledger, Lost, RECORDING, Series, Varied};
use program::{RunningRecorder, failed};
use recorder::{Assignment, Recorder};
use serde::Deserialize;
use std::collections::BTreeSet;

/// The plan of a study of recorders: the buses, their bit rates, and the recorders.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordingPlan {
    pub buses: u32,
    /// The bit rates of all buses, in bit/s.
    pub bitrates: Vec<u32>,
    /// The number of frames on each bus.
    pub frames: u64,
    /// The number of bytes of random data in each frame.
    pub len: u8,
    /// The memory in which frames may wait for the recorder, in the kernel and in its own queues together, in MiB.
    pub memory: u32,
    /// The names of the recorders.
    pub recorders: Vec<String>,
}

/// One recorder at one bit rate.
struct Case {
    bitrate: u32,
    recorder: &'static Recorder,
}

impl RecordingPlan {
    pub fn checked(self) -> Result<Self, String> {
        self.recorders.iter().try_for_each(|name| recorder::find(name).map(drop))?;
        // A MiB for each bus is the least that dumpcap takes, and five the least of which canter has a part for its queue.
        let least = self.buses.max(5);
        let within = (1..=64).contains(&self.buses) && (least..=1024).contains(&self.memory) && self.len <= 8;
        if !within || self.bitrates.contains(&0) {
            return Err(format!(
                "[recording]: 1…64 buses, {least}…1024 MiB (one for each bus), at most 8 bytes, bit rates above 0"
            ));
        }
        Ok(self)
    }

    /// The number of series of the plan.
    pub fn cases(&self) -> usize {
        self.bitrates.len() * self.recorders.len()
    }

    fn all(&self) -> impl Iterator<Item = Case> {
        let recorders = || self.recorders.iter().filter_map(|name| recorder::find(name).ok());
        self.bitrates
            .iter()
            .flat_map(move |&bitrate| recorders().map(move |recorder| Case { bitrate, recorder }))
    }
}

/// One bus, for the environment of the result.
pub fn interfaces(plan: &RecordingPlan) -> failure::Result<Vec<Interface>> {
    let buses = Buses::new(1, plan.bitrates.first().copied().unwrap_or_default())?;
    Ok(vec![Interface::find(&buses.nodes()[0])?])
}

/// Every recorder at every bit rate, but for the cases whose number is `known`.
pub fn measure(
    plan: &RecordingPlan,
    known: &BTreeSet<usize>,
    done: &mut dyn FnMut(usize, &str, Series),
) -> failure::Result<()> {
    for (number, case) in plan.all().enumerate().filter(|(number, _)| !known.contains(number)) {
        let series = match record(plan, &case) {
            Err(Failure { exit: Exit::Unable, message }) => {
                Series::unavailable(case.recorder.name, condition(plan, &case), message)
            }
            recorded => recorded?,
        };
        done(
            number,
            &format!("{} of {} buses at {} bit/s", case.recorder.name, plan.buses, case.bitrate),
            series,
        );
    }
    Ok(())
}

fn condition(plan: &RecordingPlan, case: &Case) -> Condition {
    Condition {
        traffic: "flood".to_owned(),
        load_percent: 100,
        frames: plan.frames * u64::from(plan.buses),
        len: plan.len.into(),
        variant: format!("{} buses", plan.buses),
        varied: Some(Varied {
            name: "bit rate".to_owned(),
            unit: "bit/s".to_owned(),
            value: case.bitrate.into(),
        }),
        instrument: "wire".to_owned(),
        ..Condition::default()
    }
}

fn record(plan: &RecordingPlan, case: &Case) -> failure::Result<Series> {
    let name = case.recorder.name;
    let buses = Buses::new(plan.buses, case.bitrate)?;
    let folder = tempfile::tempdir().map_err(|error| failed(name, format!("a folder: {error}")))?;
    let file = folder.path().join(case.recorder.file);
    let assignment = Assignment { nodes: buses.nodes(), file: &file, mebibytes: plan.memory };
    let mut running = RunningRecorder::start(name, &case.recorder.words(&assignment)?, folder.path())?;
    let sent = buses.flood(plan.frames, plan.len)?;
    running.wait_until_idle()?;
    let code = running.end()?;
    if sent.wire.slips > 0 {
        let slips = sent.wire.slips;
        let why = format!("the machine is too slow for these buses: the wires waited {slips} times");
        return Err(Failure::unable(why));
    }
    let received = recorder::frames_in(folder.path(), case.recorder)?;
    let ledger = ledger(&sent, received);
    (case.recorder.agrees)(code, &ledger).map_err(|why| failed(name, why))?;
    Ok(Series {
        method: name.to_owned(),
        quantity: RECORDING.to_owned(),
        condition: condition(plan, case),
        ledger,
        wire: Some(sent.wire),
        ..Series::default()
    })
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

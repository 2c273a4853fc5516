//! The highest rate that a recorder keeps up with, and what a frame takes the processor at half of that rate.

use super::{Case, RecordingPlan, Run, buses::Traffic, condition, run};
use crate::{
    meter::{sweep, syscalls},
    study::load_curve,
};
use canter_cli::failure;
use canter_io::BitRate;
use canter_measure::result::Series;
use canter_route::traffic::template;

/// The bit rate of buses whose frames have a period.
pub const BITRATE: u32 = 1_000_000;
/// A recorder falls behind when its work after the last frame takes more than this part of the run.
const BEHIND_PART: u64 = 50;

impl Run {
    /// Whether no frame was lost and none waited when the sources ended, which the memory would hide.
    fn keeps_up(&self) -> bool {
        self.ledger.lost.total() == 0 && self.behind_ns <= self.sent.lasted_ns / BEHIND_PART
    }
}

/// The curves of a recorder: the highest rate, to a hundredth, and the processor's time of a frame at half that rate.
pub fn measure(plan: &RecordingPlan, case: Case) -> failure::Result<Vec<Series>> {
    let at = |period_ns| {
        let traffic = Traffic { frames: plan.frames, len: case.len, period_ns: Some(period_ns) };
        run(plan, case.recorder, BITRATE, &traffic)
    };
    let frame = syscalls::frame(case.len)?;
    let shortest_ns = template::mean_ns(&frame, plan.frames, BitRate::classic(BITRATE));
    let ends = sweep::search(shortest_ns, |period_ns| Ok(Some(!at(period_ns)?.keeps_up())))?;
    let period_ns = ends.last().copied().unwrap_or_default();
    let half = at(2 * period_ns)?;
    let rate = 1_000_000_000_u64.checked_div(period_ns).unwrap_or_default();
    let frame_ns = |ns: u64| ns / half.sent.frames.max(1);
    let (all_ns, timers_ns) = (frame_ns(half.sent.busy_ns), frame_ns(half.sent.timers_ns));
    let of_half = |quantity: &str| format!("{quantity} at half of that rate");
    let figures = [
        ("highest rate of each bus".to_owned(), "frames/s", rate),
        (of_half("processor time of a frame"), "ns", all_ns.saturating_sub(timers_ns)),
        (of_half("time of a frame in the wires' timers"), "ns", timers_ns),
    ];
    let series = |(quantity, unit, value): (String, &str, u64)| Series {
        method: case.recorder.name.to_owned(),
        condition: condition(plan, case),
        curve: Some(load_curve::against_buses(&quantity, unit, vec![[plan.buses.into(), value]])),
        ledger: half.ledger,
        wire: Some(half.sent.wire),
        ..Series::default()
    };
    Ok(figures.into_iter().map(series).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::recording::buses::Sent;
    use canter_measure::result::{Ledger, Lost, WireKept};

    fn kept(socket: u64, behind_ns: u64) -> bool {
        let sent =
            Sent { frames: 1000, wire: WireKept::default(), lasted_ns: 5_000, busy_ns: 0, timers_ns: 0 };
        let ledger = Ledger { sent: 1000, lost: Lost { socket, ..Lost::default() }, ..Ledger::default() };
        Run { sent, ledger, behind_ns }.keeps_up()
    }

    #[test]
    fn a_recorder_that_loses_a_frame_or_falls_behind_does_not_keep_up() {
        assert!(kept(0, 100));
        assert!(!kept(1, 0), "one is lost");
        assert!(!kept(0, 101), "more than a fiftieth of the run's work waited at its end");
    }
}

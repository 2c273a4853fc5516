//! The period at which a gateway begins to keep up: the shortest one from which on it loses no more than a share.

use super::{BoundSide, Bounds, digits, keeps_up::queue_grows};
use crate::study::claim::{
    evidence::Evidence,
    outcome::{Finding, Outcome},
    selector::Selector,
};
use canter_cli::units;
use canter_measure::{
    statistics::{self, Confidence, Estimate},
    verdicts::{Allowed, Plot, PlotLine, Quantity},
};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The knee of `of`, as a multiple of the knee of `over`: another machine has other periods, but their ratio remains.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Knee {
    of: Selector,
    /// The properties in which this series differs from `of`.
    over: Selector,
    /// The share of lost frames up to which a gateway keeps up.
    lost: f64,
    /// The instrument's own part of each period, in ns, which is taken off both knees.
    #[serde(default)]
    less_ns: u32,
    /// A gateway whose latencies grow does not keep up, though its queue holds all frames of the series.
    #[serde(default)]
    steady: bool,
    paper: f64,
    within: f64,
    #[serde(default)]
    side: BoundSide,
}

/// The frames of a gateway at one period.
#[derive(Default)]
struct Frames {
    lost: u64,
    sent: u64,
    late: u64,
    /// They wait for more and more others.
    grow: bool,
}

impl Frames {
    /// Whether too many are lost, or more and more wait. A late frame may have been lost because it was late.
    fn lose(&self, share: f64) -> bool {
        self.grow || self.lost.saturating_sub(self.late) as f64 > share * self.sent as f64
    }

    /// Whether too many may be lost: or a late one arrived because it was late.
    fn may_lose(&self, share: f64) -> bool {
        self.grow || self.lost > 0 && (self.lost + self.late) as f64 > share * self.sent as f64
    }
}

impl Knee {
    fn bounds(&self) -> Bounds {
        Bounds { paper: self.paper, within: self.within, side: self.side }
    }

    pub fn check(&self) -> Result<(), String> {
        self.bounds().check()?;
        match (0.0..1.0).contains(&self.lost) {
            true => Ok(()),
            false => Err("knee: lost: a share below 1".to_owned()),
        }
    }

    pub fn selectors(&self) -> Vec<Selector> {
        vec![self.of.clone(), self.over.on(&self.of)]
    }

    pub fn decide(&self, evidence: &Evidence<'_>) -> Result<Outcome, Outcome> {
        let (of, boots, line) = self.of_one(evidence, &self.of)?;
        let (over, others, other_line) = self.of_one(evidence, &self.over.on(&self.of))?;
        let less = f64::from(self.less_ns);
        let ratio = |of: f64, over: f64| (of - less) / (over - less);
        if of.low.min(over.low) <= less {
            return Err(Outcome::unclear(format!("knees within less_ns = {}", self.less_ns)));
        }
        let estimate = Estimate {
            value: ratio(of.value, over.value),
            low: ratio(of.low, over.high),
            high: ratio(of.high, over.low),
        };
        let bounds = self.bounds().range();
        let us = |one: Estimate| format!("{}…{} µs", digits(one.low / 1000.0), digits(one.high / 1000.0));
        let found = match self.less_ns {
            0 => format!("{} / {}", us(of), us(over)),
            less_ns => {
                format!("{} / {}, each less {} of the wires", us(of), us(over), units::span(less_ns.into()))
            }
        };
        Ok(Outcome {
            finding: Finding::judge(estimate, bounds),
            found,
            estimate: Some(estimate),
            bounds: Some(bounds),
            paper: Some(self.paper),
            boots: boots.min(others),
            plot: Some(Box::new(plot(vec![line, other_line], [over.low * bounds[0], over.high * bounds[1]]))),
        })
    }

    /// A gateway's knee: between the longest period at which it lost too many, and the next longer one.
    fn of_one(
        &self,
        evidence: &Evidence<'_>,
        selector: &Selector,
    ) -> Result<(Estimate, usize, PlotLine), Outcome> {
        let (mut frames, mut files) = (BTreeMap::<u64, Frames>::new(), std::collections::BTreeSet::new());
        for found in evidence.late_ones_too(selector)? {
            let (ledger, period_ns) = (&found.series.ledger, found.series.condition.period_ns);
            let of_period = frames.entry(period_ns).or_default();
            of_period.lost += ledger.lost.total();
            of_period.sent += ledger.sent;
            of_period.late += ledger.late;
            of_period.grow |= self.steady && found.series.timeline.as_ref().is_some_and(queue_grows);
            files.insert(found.file);
        }
        frames.retain(|period, frames| *period > 0 && frames.sent > 0);
        let longest = |fails: &dyn Fn(&Frames) -> bool| {
            frames.iter().rev().find(|(_, frames)| fails(frames)).map(|(period, _)| *period)
        };
        let losing = longest(&|frames| frames.lose(self.lost));
        let perhaps = longest(&|frames| frames.may_lose(self.lost));
        let kept = frames.keys().copied().find(|period| perhaps.is_none_or(|perhaps| *period > perhaps));
        let unclear = |why: String| Err(Outcome::unclear(format!("{}: {why}", evidence.complete(selector))));
        match (losing, kept) {
            (Some(losing), Some(kept)) => {
                let (low, high) = (losing as f64, kept as f64);
                let label = selector.method.clone().unwrap_or_default();
                let line = PlotLine { label, points: shares(&frames) };
                Ok((Estimate { value: (low * high).sqrt(), low, high }, files.len(), line))
            }
            (None, Some(kept)) => unclear(format!("loses none even at the shortest period, {kept} ns")),
            (Some(losing), None) => unclear(format!("loses frames even at the longest period, {losing} ns")),
            (None, None) => unclear("no series with a period".to_owned()),
        }
    }
}

/// The share of lost frames at each period, in µs.
fn shares(frames: &BTreeMap<u64, Frames>) -> Vec<[f64; 4]> {
    let points = frames.iter().filter_map(|(period, frames)| {
        let share = statistics::share(frames.lost, frames.sent, Confidence::ONE)?;
        Some([units::us(*period), share.value, share.low, share.high])
    });
    points.collect()
}

/// The losses of both gateways. The knee of the first one should lie between two periods in ns.
fn plot(lines: Vec<PlotLine>, [from, to]: [f64; 2]) -> Plot {
    let last = lines.iter().filter_map(|line| line.points.last()).map(|point| point[0]).fold(0.0, f64::max);
    let allowed = [from / 1000.0, (to / 1000.0).min(last)].map(|at| Allowed { at, from: 0.0, to: None });
    Plot::Course {
        quantity: Quantity::Share,
        statistic: "lost frames".to_owned(),
        against: "period, µs".to_owned(),
        lines,
        allowed: allowed.to_vec(),
    }
}

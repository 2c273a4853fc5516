//! The statistics of a series that claims and ceilings name: in one place their words, and how to read each.

use crate::analyzer::stage;
use canter_measure::{
    result::{HANDLER_TIME, Series, Stages},
    statistics::{self, Confidence, Estimate},
    verdicts::Quantity,
};
use serde::Deserialize;

/// A statistic of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Statistic {
    Min,
    P50,
    P90,
    P99,
    P999,
    /// The longest latency of a boot; needs [`BOOTS`](super::evidence::BOOTS) boots.
    Max,
    /// The median latency by the model of the study's board.
    Model,
    /// The cost of the system call per frame.
    Call,
    /// The cost of the kernel's delivery per frame.
    Delivery,
    /// The costs of the system call and of delivery together.
    Total,
    /// The processor's load, of a curve at the selector's rate.
    Load,
    /// How often an interrupt's handler ran, for each frame.
    Runs,
    /// The part of the receptions that is in interrupts and soft interrupts.
    Interrupts,
    /// The entries of functions of the kernel against all other instructions of the ways; an entry is one of 1 ns.
    Entries,
}

impl Statistic {
    pub fn name(self) -> &'static str {
        match self {
            Self::Min => "minimum",
            Self::P50 => "median",
            Self::P90 => "p90",
            Self::P99 => "p99",
            Self::P999 => "p99.9",
            Self::Max => "maximum",
            Self::Model => "median by the model",
            Self::Call => "call",
            Self::Delivery => "delivery",
            Self::Total => "call and delivery",
            Self::Load => "load",
            Self::Runs => "handler runs for each frame",
            Self::Interrupts => "in interrupts and soft interrupts",
            Self::Entries => "entries of functions",
        }
    }

    pub fn quantity(self) -> Quantity {
        match self {
            Self::Load | Self::Interrupts | Self::Entries => Quantity::Share,
            Self::Runs => Quantity::Ratio,
            _ => Quantity::Time,
        }
    }

    /// The statistic without the instrument's own time, as claims compare it.
    pub fn above_floor(self, series: &Series, rate: Option<u64>) -> Result<Estimate, String> {
        let estimate = self.as_measured(series, rate)?;
        if self.contains_the_floor(series) { less_floor(estimate, series) } else { Ok(estimate) }
    }

    /// The statistic with its 95 % interval within the series. An error says what the series lacks.
    pub fn as_measured(self, series: &Series, rate: Option<u64>) -> Result<Estimate, String> {
        let latency = || series.latency_ns.as_ref().filter(|one| one.count > 0).ok_or("no frame arrived");
        let cost = || series.cost_ns.as_ref().ok_or("has no cost of a system call");
        let rank = |per_mille: u64| {
            let latency = latency()?;
            statistics::percentile_beside(latency, per_mille, series.ledger.late, Confidence::ONE)
                .ok_or_else(|| format!("{} latencies are too few for this percentile", latency.count))
        };
        let estimate = match self {
            Self::Min => Estimate::exact(latency()?.min as f64),
            Self::P50 => rank(500)?,
            Self::P90 => rank(900)?,
            Self::P99 => rank(990)?,
            Self::P999 => rank(999)?,
            Self::Max => Estimate::exact(latency()?.max as f64),
            Self::Model => {
                let model = account(series)?.model.as_ref().ok_or("has no model of a board")?;
                Estimate::exact(model.median_frame_ns as f64)
            }
            Self::Call => Estimate::exact(cost()?.per_frame as f64),
            Self::Delivery => Estimate::exact(cost()?.delivery as f64),
            Self::Total => Estimate::exact(cost()?.total as f64),
            Self::Load => load(series, rate)?,
            Self::Runs if series.quantity != HANDLER_TIME => {
                return Err("has no run times of a handler".to_owned());
            }
            Self::Runs => Estimate::exact(latency()?.count as f64 / series.ledger.sent.max(1) as f64),
            Self::Interrupts => {
                let seen = account(series)?.reception.filter(|seen| seen.total_ns > 0);
                let seen = seen.ok_or("no reception was seen")?;
                Estimate::exact(seen.aside_ns as f64 / seen.total_ns as f64)
            }
            Self::Entries => {
                let account = account(series)?;
                let own_ns = account.total_ns_of(stage::Stage::Instrument.name());
                let others = account.total_ns.checked_sub(account.entries + own_ns).filter(|ns| *ns > 0);
                let others = others.ok_or("has more entries than instructions")?;
                if account.entries == 0 {
                    return Err("entries of functions were not counted".to_owned());
                }
                Estimate::exact(account.entries as f64 / others as f64)
            }
        };
        Ok(estimate)
    }
}

impl Statistic {
    /// Whether the statistic is of a gateway's latencies, which contain the instrument's own time.
    fn contains_the_floor(self, series: &Series) -> bool {
        let of_latencies = match self {
            Self::Min | Self::P50 | Self::P90 | Self::P99 | Self::P999 | Self::Max => true,
            Self::Model | Self::Call | Self::Delivery | Self::Total => false,
            Self::Load | Self::Runs | Self::Interrupts | Self::Entries => false,
        };
        of_latencies && series.quantity.is_empty()
    }
}

/// The largest share of a statistic that may be the instrument's own time and is simply taken off. A larger floor is an
/// uncertainty: it was measured without the gateway, and nobody knows how much of it remains beside one.
const FLOOR_SHARE_MAX: f64 = 0.2;

/// An estimate without the instrument's own time.
fn less_floor(estimate: Estimate, series: &Series) -> Result<Estimate, String> {
    let floor = series.floor_ns.ok_or("the floor of its instrument was not measured")? as f64;
    let less = |value: f64| (value - floor).max(0.0);
    let is_small = floor <= FLOOR_SHARE_MAX * estimate.value;
    let high = if is_small { less(estimate.high) } else { estimate.high };
    Ok(Estimate { value: less(estimate.value), low: less(estimate.low), high })
}

/// The account of the frames' ways.
fn account(series: &Series) -> Result<&Stages, String> {
    series.stages.as_ref().ok_or_else(|| "has no account of the analyzer".to_owned())
}

/// The kernel counts a processor's time in ticks of 10 ms (USER_HZ, proc(5)).
const TICK_S: f64 = 0.01;

/// A share of the processor, at a rate that was measured. A difference of two readings is exact to one tick.
fn load(series: &Series, rate: Option<u64>) -> Result<Estimate, String> {
    let curve = series.curve.as_ref().ok_or("has no curve")?;
    let rate = rate.ok_or("a load needs a rate")?;
    let point = curve.points.iter().find(|point| point[0] == rate);
    let [_, value] = point.ok_or_else(|| format!("was not measured at {rate} {}", curve.against_unit))?;
    let value = *value as f64 / 10_f64.powi(i32::from(curve.decimals)) / 100.0;
    if series.condition.frames == 0 {
        return Err("the result does not say how many frames each rate had".to_owned());
    }
    let tick = TICK_S * rate as f64 / series.condition.frames as f64;
    Ok(Estimate { value, low: (value - tick).max(0.0), high: value + tick })
}

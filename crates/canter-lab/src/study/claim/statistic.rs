//! The statistics of a series that claims and ceilings name: in one place their words, and how to read each.

use canter_measure::{
    result::Series,
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
    /// The cost of the system call per frame.
    Call,
    /// The cost of the kernel's delivery per frame.
    Delivery,
    /// The costs of the system call and of delivery together.
    Total,
    /// The processor's load, of a curve at the selector's rate.
    Load,
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
            Self::Call => "call",
            Self::Delivery => "delivery",
            Self::Total => "call and delivery",
            Self::Load => "load",
        }
    }

    pub fn quantity(self) -> Quantity {
        if self == Self::Load { Quantity::Share } else { Quantity::Time }
    }

    /// The statistic with its 95 % interval within the series. An error says what the series lacks.
    pub fn of(self, series: &Series, less_floor: bool, rate: Option<u64>) -> Result<Estimate, String> {
        let floor =
            if less_floor { series.floor_ns.ok_or("its floor was not measured")? as f64 } else { 0.0 };
        let less = |estimate: Estimate| {
            let less = |value: f64| (value - floor).max(0.0);
            Estimate { value: less(estimate.value), low: less(estimate.low), high: less(estimate.high) }
        };
        let latency = || series.latency_ns.as_ref().filter(|one| one.count > 0).ok_or("no frame arrived");
        let cost = || series.cost_ns.as_ref().ok_or("has no cost of a system call");
        let rank = |per_mille: u64| {
            let latency = latency()?;
            statistics::percentile(latency, per_mille, Confidence::ONE)
                .ok_or_else(|| format!("{} latencies are too few for this percentile", latency.count))
        };
        let estimate = match self {
            Self::Min => Estimate::exact(latency()?.min as f64),
            Self::P50 => rank(500)?,
            Self::P90 => rank(900)?,
            Self::P99 => rank(990)?,
            Self::P999 => rank(999)?,
            Self::Max => Estimate::exact(latency()?.max as f64),
            Self::Call => Estimate::exact(cost()?.per_frame as f64),
            Self::Delivery => Estimate::exact(cost()?.delivery as f64),
            Self::Total => Estimate::exact(cost()?.total as f64),
            Self::Load => return load(series, rate),
        };
        Ok(less(estimate))
    }
}

/// A share of the processor, at a rate that was measured.
fn load(series: &Series, rate: Option<u64>) -> Result<Estimate, String> {
    let curve = series.curve.as_ref().ok_or("has no curve")?;
    let rate = rate.ok_or("a load needs a rate")?;
    let point = curve.points.iter().find(|point| point[0] == rate);
    let [_, value] = point.ok_or_else(|| format!("was not measured at {rate} {}", curve.against_unit))?;
    Ok(Estimate::exact(*value as f64 / 10_f64.powi(i32::from(curve.decimals)) / 100.0))
}

//! Ceilings: figures that a change must not exceed. Ratios to another method in the same run, or instructions in the
//! virtual clock; never times of a real machine. A ceiling stands above the figure reached by a margin that derives from
//! the figure's spread over boots; beside it stands the figure's limit, where one is known.

mod bench_table;
mod comparison;
mod measured;

use super::rules::Rules;
use canter_cli::failure::{self, Failure};
use canter_measure::statistics;
pub use comparison::Comparison;
pub use measured::Measured;
use measured::{Boot, Selector};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The margin above the figure reached, in spreads.
const SPREADS: f64 = 2.0;
/// The smallest margin, as a share of the figure reached: less is not worth a look, even where boots do not differ.
const MARGIN_MIN: f64 = 0.01;

/// A bound on one figure of one method.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ceiling {
    /// The study whose results, or the bench whose table has the figure.
    pub study: String,
    method: String,
    /// A statistic of the series, or a column of the bench's table.
    figure: String,
    /// The series with these rules; unless given, the method's first series.
    rules: Option<Rules>,
    /// The method whose figure divides this one; without a divisor, the ceiling is in ns.
    over: Option<String>,
    /// The figure of the same method that divides this one.
    over_figure: Option<String>,
    /// The rules with which the method's own figure divides this one.
    over_rules: Option<Rules>,
    /// The rules with which the method's own figure is subtracted from this one.
    above_rules: Option<Rules>,
    /// The median of several boots.
    reached: f64,
    /// The largest of these boots less the smallest, in the unit of `reached`.
    spread: f64,
    /// The name of a limit in the table.
    #[serde(rename = "limit")]
    limit_name: Option<String>,
    #[serde(skip)]
    limit: Option<Limit>,
    /// The kernels to which the ceiling applies, as `6.12` or `6.12-rt`; all unless given.
    #[serde(default)]
    kernels: Vec<String>,
}

/// The figure that no change can go below on the same path: a number, or a figure of the same run with the ceiling's divisor.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Limit {
    number: Option<f64>,
    /// The method whose figure is the limit; unless given, the ceiling's own.
    method: Option<String>,
    /// The figure that is the limit; unless given, the ceiling's own.
    figure: Option<String>,
    /// The stages of the method's median frame that are the limit together, in place of a figure.
    #[serde(default)]
    stages: Vec<String>,
    /// The reason, as the table prints it.
    why: String,
}

/// A ceiling with the figure of some boots.
pub struct Check {
    /// The median of the boots, or the reason why it is missing, which counts as exceeded.
    today: Result<f64, String>,
    /// The largest boot less the smallest.
    spread: f64,
    limit: Option<f64>,
    /// The number of boots.
    boots: usize,
}

/// The place of a figure in relation to its ceiling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Kept,
    /// The figure is below the one reached by more than the margin, so the ceiling can be lowered.
    Lower,
    Exceeded,
    Missing,
}

impl Ceiling {
    /// The table of ceilings.
    pub fn all() -> failure::Result<Vec<Self>> {
        Self::of_text(include_str!("ceilings.toml"))
            .map_err(|why| Failure::failed(format!("ceilings.toml: {why}")))
    }

    fn of_text(text: &str) -> Result<Vec<Self>, String> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Table {
            #[serde(default)]
            limit: BTreeMap<String, Limit>,
            ceiling: Vec<Ceiling>,
        }
        let Table { limit, mut ceiling } =
            toml::from_str(text).map_err(|error| error.message().to_owned())?;
        for one in &mut ceiling {
            if let Some(name) = &one.limit_name {
                one.limit = Some(limit.get(name).ok_or_else(|| format!("no limit {name}"))?.clone());
            }
        }
        Ok(ceiling)
    }

    /// Whether the ceiling applies to this kernel, in the words of [`Environment`](canter_measure::result::Environment).
    fn is_for(&self, kernel: &str) -> bool {
        self.kernels.is_empty() || self.kernels.iter().any(|wanted| is_kernel(kernel, wanted))
    }

    /// The distance of the ceiling to the figure reached.
    fn margin(&self) -> f64 {
        (SPREADS * self.spread).max(MARGIN_MIN * self.reached)
    }

    /// The bound.
    fn at_most(&self) -> f64 {
        self.reached + self.margin()
    }

    fn is_ratio(&self) -> bool {
        self.over.is_some() || self.over_figure.is_some() || self.over_rules.is_some()
    }

    /// Compares the ceiling with boots of its study.
    fn check(&self, measured: &Measured) -> Check {
        let boots = measured.boots.len();
        let each = measured.boots.iter().map(|boot| self.figure_of(boot)).collect::<Result<Vec<_>, _>>();
        let limits = measured.boots.iter().map(|boot| self.limit_of(boot)).collect::<Result<Vec<_>, _>>();
        let (each, limits) = match (each, limits) {
            (Ok(each), Ok(limits)) => (each, limits),
            (Err(why), _) | (_, Err(why)) => return Check { boots, ..Check::missing(why) },
        };
        let limit = median(limits.into_iter().flatten().collect());
        Check { spread: spread(&each), today: median(each).ok_or_else(|| "no boot".to_owned()), limit, boots }
    }

    fn figure_of(&self, boot: &Boot) -> Result<f64, String> {
        self.related(boot, boot.figure(&self.selector(&self.method, &self.figure))?)
    }

    fn limit_of(&self, boot: &Boot) -> Result<Option<f64>, String> {
        let Some(limit) = &self.limit else { return Ok(None) };
        if limit.number.is_some() {
            return Ok(limit.number);
        }
        let method = limit.method.as_deref().unwrap_or(&self.method);
        let ns = match &limit.stages[..] {
            [] => boot.figure(&self.selector(method, limit.figure.as_deref().unwrap_or(&self.figure)))?,
            stages => boot.stages_ns(&self.selector(method, ""), stages)?,
        };
        self.related(boot, ns).map(Some)
    }

    fn selector<'a>(&'a self, method: &'a str, figure: &'a str) -> Selector<'a> {
        Selector { method, rules: self.rules.as_ref(), figure }
    }

    /// A figure of the ceiling's method as the ceiling counts it: divided by another one, or less another one.
    fn related(&self, boot: &Boot, value: f64) -> Result<f64, String> {
        let own = self.selector(&self.method, &self.figure);
        if let Some(rules) = &self.above_rules {
            return Ok(value - boot.figure(&Selector { rules: Some(rules), ..own })?);
        }
        if !self.is_ratio() {
            return Ok(value);
        }
        let divisor = Selector {
            method: self.over.as_deref().unwrap_or(&self.method),
            figure: self.over_figure.as_deref().unwrap_or(&self.figure),
            rules: self.over_rules.as_ref().or(self.rules.as_ref()),
        };
        Ok(value / boot.figure(&divisor)?)
    }
}

impl Check {
    fn missing(why: impl Into<String>) -> Self {
        Self { today: Err(why.into()), spread: 0.0, limit: None, boots: 0 }
    }

    fn verdict(&self, ceiling: &Ceiling) -> Verdict {
        match self.today {
            Err(_) => Verdict::Missing,
            Ok(today) if today > ceiling.at_most() => Verdict::Exceeded,
            Ok(today) if today < ceiling.reached - ceiling.margin() => Verdict::Lower,
            Ok(_) => Verdict::Kept,
        }
    }

    /// How many times the limit the figure is; none where the limit is not known.
    fn distance(&self) -> Option<f64> {
        let (today, limit) = (self.today.as_ref().ok()?, self.limit?);
        (limit > 0.0).then_some(today / limit)
    }
}

impl Verdict {
    fn is_kept(self) -> bool {
        matches!(self, Self::Kept | Self::Lower)
    }
}

/// Whether this kernel is of the series `wanted`, such as `6.12-rt`.
fn is_kernel(kernel: &str, wanted: &str) -> bool {
    let series = wanted.strip_suffix("-rt");
    let realtime = kernel.contains("PREEMPT_RT");
    kernel.starts_with(&format!("{}.", series.unwrap_or(wanted))) && realtime == series.is_some()
}

/// The median, of an even number the mean of both in the middle.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    statistics::middle(&values)
}

/// The largest less the smallest.
fn spread(values: &[f64]) -> f64 {
    let largest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let smallest = values.iter().copied().fold(f64::INFINITY, f64::min);
    (largest - smallest).max(0.0)
}

#[cfg(test)]
mod tests;

//! Recorded ceilings: what a change must not make slower. Ratios to another method in the same run, or instructions
//! in the virtual clock; never times of a real machine.

use crate::measure::result::{ResultFile, Series};
use serde::Deserialize;
use std::fmt;

/// A bound on one figure of one method.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ceiling {
    method: String,
    figure: Figure,
    /// The method it is divided by; without one it is a bound in ns.
    over: Option<String>,
    at_most: f64,
}

/// Which figure of a series.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Figure {
    /// The median latency.
    P50,
    /// A system call's own cost per frame.
    Call,
    /// The same with the kernel's delivery.
    Total,
}

impl Figure {
    fn of(self, series: &Series) -> Option<f64> {
        match self {
            Self::P50 => series.latency_ns.as_ref().map(|latency| latency.p50 as f64),
            Self::Call => series.cost_ns.as_ref().map(|cost| cost.per_frame as f64),
            Self::Total => series.cost_ns.as_ref().map(|cost| cost.total as f64),
        }
    }
}

/// A ceiling beside what was measured.
pub struct Check {
    ceiling: Ceiling,
    /// `None`: the figure is missing, which counts as passed over.
    measured: Option<f64>,
}

impl Ceiling {
    /// Holds it against a result. Of a method that receives and sends, the receiving series is meant.
    pub fn check(&self, result: &ResultFile) -> Check {
        let figure = |method: &str| {
            let series = result.series.iter().find(|series| series.method == method)?;
            self.figure.of(series)
        };
        let measured = match &self.over {
            None => figure(&self.method),
            Some(over) => figure(&self.method).zip(figure(over)).map(|(value, by)| value / by),
        };
        Check { ceiling: self.clone(), measured }
    }
}

impl Check {
    pub fn is_kept(&self) -> bool {
        self.measured.is_some_and(|measured| measured <= self.ceiling.at_most)
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ceiling { method, figure, over, at_most } = &self.ceiling;
        let what = match over {
            Some(over) => format!("{method} {figure:?} over {over}").to_lowercase(),
            None => format!("{method} {figure:?}, ns").to_lowercase(),
        };
        let verdict = if self.is_kept() { "kept" } else { "PASSED" };
        match self.measured {
            Some(measured) => write!(f, "{what:<42} {measured:>8.3}  ceiling {at_most:>6.2}  {verdict}"),
            None => write!(f, "{what:<42}  missing  ceiling {at_most:>6.2}  {verdict}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::result::{Environment, Latency, SCHEMA};

    fn result(medians: &[(&str, u64)]) -> ResultFile {
        let series = medians.iter().map(|(method, p50)| Series {
            method: (*method).to_owned(),
            latency_ns: Some(Latency { p50: *p50, ..Latency::default() }),
            ..Series::default()
        });
        ResultFile {
            schema: SCHEMA,
            study: String::new(),
            title: String::new(),
            command: String::new(),
            environment: Environment::default(),
            series: series.collect(),
        }
    }

    #[test]
    fn a_ceiling_is_kept_up_to_its_figure_and_passed_above_it() {
        let ceiling =
            Ceiling { method: "a".into(), figure: Figure::P50, over: Some("b".into()), at_most: 1.5 };
        assert!(ceiling.check(&result(&[("a", 150), ("b", 100)])).is_kept());
        assert!(!ceiling.check(&result(&[("a", 151), ("b", 100)])).is_kept());
    }

    #[test]
    fn a_figure_that_is_missing_does_not_keep_a_ceiling() {
        let ceiling =
            Ceiling { method: "a".into(), figure: Figure::P50, over: Some("b".into()), at_most: 1.5 };
        let check = ceiling.check(&result(&[("a", 150)]));
        assert!(!check.is_kept());
        assert!(check.to_string().contains("missing"));
    }
}

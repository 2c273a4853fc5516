//! The series of the given results that a claim rests on: a statistic of each boot, and what other studies found under the
//! same condition.

use super::{
    outcome::{Outcome, Word},
    selector::Selector,
    statistic::Statistic,
};
use canter_measure::{
    result::{Condition, ResultFile, Series},
    statistics::Estimate,
};

/// The minimum number of boots for a worst case.
pub const BOOTS: usize = 5;

/// The results that were given, and the claim's own study.
pub struct Evidence<'a> {
    pub results: &'a [ResultFile],
    pub study: &'a str,
    /// The study's first kernel.
    pub kernel: &'a str,
}

/// A series with the number of its result file.
#[derive(Clone, Copy)]
pub struct FoundSeries<'a> {
    pub file: usize,
    pub result: &'a ResultFile,
    pub series: &'a Series,
}

/// The estimates of a statistic.
pub struct Sample {
    pub boots: Vec<(usize, Estimate)>,
    /// The values of the statistic under an equal condition in other studies.
    pub elsewhere: Vec<f64>,
}

type Result<T> = std::result::Result<T, Outcome>;

fn not_measurable<T>(why: String) -> Result<T> {
    Err(Outcome::nothing_found(Word::NotMeasurable, why))
}

fn undecided<T>(why: String) -> Result<T> {
    Err(Outcome::nothing_found(Word::Undecided, why))
}

impl<'a> Evidence<'a> {
    /// A selector with the claim's study and kernel where it names none.
    pub fn complete(&self, selector: &Selector) -> Selector {
        let defaults = Selector {
            study: Some(self.study.into()),
            kernel: Some(self.kernel.into()),
            ..Selector::default()
        };
        selector.on(&defaults)
    }

    /// Every series that a selector names, valid and measured.
    pub fn all(&self, selector: &Selector) -> Result<Vec<FoundSeries<'a>>> {
        let wanted = self.complete(selector);
        let files = self.results.iter().enumerate().filter(|(_, result)| wanted.is_of(result));
        let series = files.flat_map(|(file, result)| {
            result.series.iter().map(move |series| FoundSeries { file, result, series })
        });
        let found: Vec<_> = series.filter(|found| wanted.matches(found.series)).collect();
        let measured: Vec<_> =
            found.iter().copied().filter(|found| found.series.unavailable.is_empty()).collect();
        match (found.first(), measured.is_empty()) {
            (None, _) => not_measurable(format!("no such series in these results: {wanted}")),
            (Some(first), true) => not_measurable(format!("{wanted}: {}", first.series.unavailable)),
            _ => match measured.iter().find_map(|found| found.series.fault().or(found.series.lateness())) {
                Some(fault) => undecided(format!("invalid series, {wanted}: {fault}")),
                None => Ok(measured),
            },
        }
    }

    /// The one series of each boot that a selector names.
    fn one_each(&self, selector: &Selector) -> Result<Vec<FoundSeries<'a>>> {
        let found = self.all(selector)?;
        let alike = |a: &FoundSeries<'_>, b: &FoundSeries<'_>| {
            a.series.condition == b.series.condition && a.series.method == b.series.method
        };
        match found.iter().find(|one| !alike(one, &found[0])) {
            None => Ok(found),
            Some(other) => not_measurable(format!(
                "{} names several series of {}: {} and others",
                self.complete(selector),
                other.result.study,
                other.series.method
            )),
        }
    }

    /// A statistic of the one series that a selector names; `less_floor`: without the instrument's own time.
    pub fn sample(&self, selector: &Selector, statistic: Statistic, less_floor: bool) -> Result<Sample> {
        let found = self.one_each(selector)?;
        let name = || self.complete(selector);
        let boots: Result<Vec<_>> = found
            .iter()
            .map(|one| match statistic.of(one.series, less_floor, selector.rate) {
                Ok(estimate) => Ok((one.file, estimate)),
                Err(why) => undecided(format!("{}: {why}", name())),
            })
            .collect();
        let boots = boots?;
        if statistic == Statistic::Max && boots.len() < BOOTS {
            return undecided(format!(
                "{}: a worst case needs {BOOTS} boots, there are {} (at worst {:.1} µs)",
                name(),
                boots.len(),
                boots.iter().map(|(_, one)| one.value).fold(0.0, f64::max) / 1000.0
            ));
        }
        Ok(Sample {
            boots,
            elsewhere: self.elsewhere(&found[0], |series| statistic.of(series, less_floor, selector.rate)),
        })
    }

    /// What other studies found on the same kernel, machine and instrument, under the same condition.
    fn elsewhere(
        &self,
        one: &FoundSeries<'_>,
        estimate: impl Fn(&Series) -> std::result::Result<Estimate, String>,
    ) -> Vec<f64> {
        let others = self.results.iter().filter(|other| {
            let (a, b) = (&one.result.environment, &other.environment);
            other.study != one.result.study
                && (a.kernel == b.kernel && a.clock == b.clock && a.processors == b.processors)
                && a.word("canter.shift=") == b.word("canter.shift=")
        });
        let series = others.flat_map(|other| &other.series);
        let same = series.filter(|other| {
            other.unavailable.is_empty()
                && other.method == one.series.method
                && other.quantity == one.series.quantity
                && same_condition(&other.condition, &one.series.condition)
        });
        same.filter_map(|other| estimate(other).ok()).map(|estimate| estimate.value).collect()
    }
}

/// Whether two conditions are equal but for the number of frames.
fn same_condition(a: &Condition, b: &Condition) -> bool {
    *a == Condition { frames: a.frames, ..b.clone() }
}

impl Sample {
    /// The median of all boots. From [`BOOTS`] boots on, the interval is that of the boots themselves (with five, it
    /// contains the median of all possible boots with 94 %); with fewer, the union of their own intervals. The values of
    /// other studies widen the interval.
    pub fn estimate(&self) -> Estimate {
        let estimates: Vec<_> = self.boots.iter().map(|(_, estimate)| *estimate).collect();
        widened(together(&estimates), &self.elsewhere)
    }
}

/// The estimate of several boots' estimates.
pub fn together(boots: &[Estimate]) -> Estimate {
    let mut values: Vec<_> = boots.iter().map(|boot| boot.value).collect();
    values.sort_by(f64::total_cmp);
    let value = (values[(values.len() - 1) / 2] + values[values.len() / 2]) / 2.0;
    if boots.len() >= BOOTS {
        return Estimate { value, low: values[0], high: values[values.len() - 1] };
    }
    let low = boots.iter().map(|boot| boot.low).fold(f64::INFINITY, f64::min);
    let high = boots.iter().map(|boot| boot.high).fold(f64::NEG_INFINITY, f64::max);
    Estimate { value, low, high }
}

/// The estimate with an interval that contains these values too.
fn widened(estimate: Estimate, values: &[f64]) -> Estimate {
    let low = values.iter().copied().fold(estimate.low, f64::min);
    let high = values.iter().copied().fold(estimate.high, f64::max);
    Estimate { low, high, ..estimate }
}

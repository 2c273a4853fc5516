//! The series of the given results that a claim rests on, and a statistic of each boot.

use super::{outcome::Outcome, selector::Selector, statistic::Statistic};
use canter_measure::{
    result::{ResultFile, Series},
    statistics::Estimate,
};
use std::collections::BTreeSet;

/// A series decides nothing when more than one of this number of frames was late. Fewer late frames widen the intervals, as if
/// nobody knew what became of them.
const LATE_ONE_IN: u64 = 20;

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

impl FoundSeries<'_> {
    /// Why the series decides nothing; `None`: it is valid.
    pub fn why_invalid(&self) -> Option<String> {
        let series = self.series;
        let unavailable = Some(&series.unavailable).filter(|why| !why.is_empty()).cloned();
        unavailable.or_else(|| series.fault()).or_else(|| series.lateness(LATE_ONE_IN))
    }
}

/// The estimates of a statistic, one for each boot. Machines that were restored from one saved machine are one boot.
pub struct Sample {
    pub boots: Vec<(usize, Estimate)>,
}

/// What a verdict rests on.
#[derive(Default)]
pub struct Basis {
    /// The largest number of frames of a series.
    pub frames: u64,
    pub kernels: BTreeSet<String>,
    pub instruments: BTreeSet<String>,
    /// The days of the measurements, UTC.
    pub days: BTreeSet<String>,
}

type Result<T> = std::result::Result<T, Outcome>;

fn missing<T>(why: String) -> Result<T> {
    Err(Outcome::missing(why))
}

fn unclear<T>(why: String) -> Result<T> {
    Err(Outcome::unclear(why))
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

    /// Every series that a selector names, valid and measured, and with few late frames.
    pub fn all(&self, selector: &Selector) -> Result<Vec<FoundSeries<'a>>> {
        let measured = self.late_ones_too(selector)?;
        match measured.iter().find_map(|found| found.series.lateness(LATE_ONE_IN)) {
            Some(why) => unclear(format!("invalid series, {}: {why}", self.complete(selector))),
            None => Ok(measured),
        }
    }

    /// Every series that a selector names, whatever became of it.
    pub fn series(&self, selector: &Selector) -> Vec<FoundSeries<'a>> {
        let wanted = self.complete(selector);
        let files = self.results.iter().enumerate().filter(|(_, result)| wanted.is_of(result));
        let series = files.flat_map(|(file, result)| {
            result.series.iter().map(move |series| FoundSeries { file, result, series })
        });
        series.filter(|found| wanted.matches(found.series)).collect()
    }

    /// Every series that a selector names, valid and measured.
    pub fn late_ones_too(&self, selector: &Selector) -> Result<Vec<FoundSeries<'a>>> {
        let wanted = self.complete(selector);
        let found = self.series(selector);
        let measured: Vec<_> =
            found.iter().copied().filter(|found| found.series.unavailable.is_empty()).collect();
        match (found.first(), measured.is_empty()) {
            (None, _) => missing(format!("no such series in these results: {wanted}")),
            (Some(first), true) => missing(format!("{wanted}: {}", first.series.unavailable)),
            _ => match measured.iter().find_map(|found| found.series.fault()) {
                Some(fault) => unclear(format!("invalid series, {wanted}: {fault}")),
                None => Ok(measured),
            },
        }
    }

    /// The frames, kernels and instruments of the series that selectors name.
    pub fn basis(&self, selectors: &[Selector]) -> Basis {
        let mut basis = Basis::default();
        for found in selectors.iter().filter_map(|selector| self.late_ones_too(selector).ok()).flatten() {
            basis.frames = basis.frames.max(found.series.condition.frames);
            basis.kernels.insert(found.result.environment.flavour());
            let model = found.series.stages.as_ref().and_then(|stages| stages.model.as_ref());
            basis.instruments.insert(match model {
                Some(model) => format!("by the model of {}", model.board),
                None => found.series.instrument().to_owned(),
            });
            basis.days.insert(found.result.environment.day().to_owned());
        }
        basis
    }

    /// The one series of each boot that a selector names.
    fn one_each(&self, selector: &Selector) -> Result<Vec<FoundSeries<'a>>> {
        let found = self.all(selector)?;
        let alike = |a: &FoundSeries<'_>, b: &FoundSeries<'_>| {
            a.series.condition == b.series.condition && a.series.method == b.series.method
        };
        let build = |found: &FoundSeries<'a>| found.result.environment.commit.as_str();
        if let Some(other) = found.iter().find(|one| build(one) != build(&found[0])) {
            let [first, other] = [build(&found[0]), build(other)];
            let wanted = self.complete(selector);
            return unclear(format!("{wanted}: measured by two builds of canter (\"{first}\", \"{other}\")"));
        }
        match found.iter().find(|one| !alike(one, &found[0])) {
            None => Ok(found),
            Some(other) => missing(format!(
                "{} names several series of {}: {} and others",
                self.complete(selector),
                other.result.study,
                other.series.method
            )),
        }
    }

    /// A statistic of the one series that a selector names, without the instrument's own time.
    pub fn sample(&self, selector: &Selector, statistic: Statistic) -> Result<Sample> {
        let found = self.one_each(selector)?;
        let name = || self.complete(selector);
        let boots: Result<Vec<_>> = found
            .iter()
            .map(|one| match statistic.above_floor(one.series, selector.rate) {
                Ok(estimate) => Ok((one.file, estimate)),
                Err(why) => unclear(format!("{}: {why}", name())),
            })
            .collect();
        let boots = distinct(boots?, &found);
        if let Some(groups) = groups(&boots).filter(|_| statistic != Statistic::Max) {
            let bound = match found[0].series.condition.bound.as_str() {
                "" => "nobody bound sender, meter and interrupts to processors",
                bound => bound,
            };
            return unclear(format!("{}: its boots fall into groups: {groups} ({bound})", name()));
        }
        if statistic == Statistic::Max && boots.len() < BOOTS {
            return unclear(format!(
                "{}: a worst case needs {BOOTS} boots, there are {} (at worst {:.1} µs)",
                name(),
                boots.len(),
                boots.iter().map(|(_, one)| one.value).fold(0.0, f64::max) / 1000.0
            ));
        }
        Ok(Sample { boots })
    }
}

/// The estimates without those of a boot that is there already.
fn distinct(boots: Vec<(usize, Estimate)>, found: &[FoundSeries<'_>]) -> Vec<(usize, Estimate)> {
    let mut seen = BTreeSet::new();
    let mut distinct = Vec::new();
    for (boot, found) in boots.into_iter().zip(found) {
        let identity = found.result.environment.boot.clone();
        if identity.is_empty() || seen.insert(identity) {
            distinct.push(boot);
        }
    }
    distinct
}

/// The least number of boots of a group; one boot alone is an outlier.
const GROUP_BOOTS: usize = 2;
/// Groups are farther apart than this share of the median, and than this many times what each extends over.
const GROUPS_APART: f64 = 0.05;
const GROUPS_NARROW: f64 = 4.0;

/// The two groups that boots fall into, in words: something differs from boot to boot that nobody set. `None`: they are
/// spread evenly, or too few.
fn groups(boots: &[(usize, Estimate)]) -> Option<String> {
    let mut values: Vec<f64> = boots.iter().map(|(_, estimate)| estimate.value).collect();
    values.sort_by(f64::total_cmp);
    let at = (GROUP_BOOTS..=values.len().checked_sub(GROUP_BOOTS)?)
        .max_by(|&a, &b| (values[a] - values[a - 1]).total_cmp(&(values[b] - values[b - 1])))?;
    let (lower, upper) = values.split_at(at);
    let apart = upper[0] - lower[lower.len() - 1];
    let extent = |group: &[f64]| group[group.len() - 1] - group[0];
    let widest = extent(lower).max(extent(upper));
    let median = values[values.len() / 2];
    (apart > GROUPS_APART * median && apart > GROUPS_NARROW * widest).then(|| {
        let group = |group: &[f64]| format!("{} at {:.2} µs", group.len(), group[group.len() / 2] / 1000.0);
        format!("{}, {}", group(lower), group(upper))
    })
}

impl Sample {
    /// The median of all boots. From [`BOOTS`] boots on, the interval is that of the boots themselves (with five, it
    /// contains the median of all possible boots with 94 %); with fewer, the union of their own intervals.
    pub fn estimate(&self) -> Estimate {
        let estimates: Vec<_> = self.boots.iter().map(|(_, estimate)| *estimate).collect();
        together(&estimates)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn boots(values: &[f64]) -> Vec<(usize, Estimate)> {
        values.iter().enumerate().map(|(file, &value)| (file, Estimate::exact(value))).collect()
    }

    #[test]
    fn boots_of_two_values_are_groups_and_an_outlier_is_not() {
        let two = groups(&boots(&[13_678.0, 15_992.0, 13_679.0, 15_997.0, 13_678.0]));
        assert_eq!(two.as_deref(), Some("3 at 13.68 µs, 2 at 16.00 µs"));
        for spread in [
            &[13_678.0, 13_679.0, 13_678.0, 13_680.0, 15_992.0][..], // one outlier
            &[10_000.0, 11_000.0, 12_000.0, 13_000.0, 14_000.0],
            &[13_678.0, 13_678.0, 13_690.0, 13_690.0], // nearer than anybody would care
            &[13_678.0, 15_992.0, 15_992.0],
            &[],
        ] {
            assert_eq!(groups(&boots(spread)), None, "{spread:?}");
        }
    }
}

//! What ceilings are compared with: the result files of a study on a kernel, or a bench's tables, one for each boot.

use super::{super::claim::Statistic, super::rules::Rules, bench_table::BenchTable};
use crate::report::FoundResults;
use canter_cli::failure;
use canter_measure::result::{ResultFile, Series};
use serde::{Deserialize, de::IntoDeserializer, de::value::Error};
use std::path::Path;

/// The boots of a study on one kernel, or of a bench.
pub struct Measured {
    /// The study's or the bench's name.
    pub study: String,
    pub title: String,
    /// The kernel in the words of [`Environment`](canter_measure::result::Environment); empty for a bench.
    pub kernel: String,
    pub boots: Vec<Boot>,
}

/// What one boot measured.
pub enum Boot {
    Result(Box<ResultFile>),
    Table(BenchTable),
}

/// The name of a figure: a statistic, or a curve's quantity at a place, such as `processor time of a frame at 20`.
pub struct Selector<'a> {
    pub method: &'a str,
    pub rules: Option<&'a Rules>,
    pub figure: &'a str,
}

impl Measured {
    /// The results of studies, the boots of each study and kernel together.
    pub fn of_results(results: Vec<ResultFile>) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for result in results {
            let (study, kernel) = (result.study.clone(), result.environment.kernel.clone());
            let title = result.title.clone();
            let boot = Boot::Result(Box::new(result));
            match all.iter_mut().find(|one| one.study == study && one.kernel == kernel) {
                Some(one) => one.boots.push(boot),
                None => all.push(Self { study, title, kernel, boots: vec![boot] }),
            }
        }
        all
    }

    /// The tables `NAME.boot1.tsv`, `NAME.boot2.tsv` … of a bench in a folder, or its only one, `NAME.tsv`. Of several,
    /// `NAME.tsv` becomes the table of medians. A bench without a table has none of them.
    pub fn of_bench(folder: &Path, name: &str) -> failure::Result<Option<Self>> {
        let one = folder.join(format!("{name}.tsv"));
        let mut tables = Vec::new();
        for boot in 1.. {
            let path = folder.join(format!("{name}.boot{boot}.tsv"));
            if !path.exists() {
                break;
            }
            tables.push(BenchTable::load(&path)?);
        }
        match tables.is_empty() {
            false => BenchTable::of_medians(&tables).save(&one)?,
            true if one.exists() => tables.push(BenchTable::load(&one)?),
            true => return Ok(None),
        }
        let title = tables[0].title.clone();
        let boots = tables.into_iter().map(Boot::Table).collect();
        Ok(Some(Self { study: name.to_owned(), title, kernel: String::new(), boots }))
    }

    /// The results of studies in a folder.
    pub fn of_folder(folder: &Path) -> failure::Result<Vec<Self>> {
        Ok(Self::of_results(FoundResults::of(&[folder.to_owned()])?.results))
    }

    /// The kernel's series as `6.12-rt`; empty for a bench.
    pub fn kernel_series(&self) -> String {
        let numbers: Vec<&str> = self.kernel.splitn(3, '.').take(2).collect();
        let realtime = if self.kernel.contains("PREEMPT_RT") { "-rt" } else { "" };
        numbers.join(".") + realtime
    }
}

impl Boot {
    /// A figure as measured. Of a method that receives and sends, the receiving series counts.
    pub fn figure(&self, of: &Selector) -> Result<f64, String> {
        match self {
            Self::Table(table) => table.figure(of.method, of.figure),
            Self::Result(result) => {
                if let Some((quantity, at)) = point(of.figure) {
                    return on_curve(result, of, quantity, at);
                }
                let series = series(result, of)?;
                statistic(of.figure)?.as_measured(series, None).map(|estimate| estimate.value)
            }
        }
    }

    /// The time of these stages on the way of the median frame.
    pub fn stages_ns(&self, of: &Selector, stages: &[String]) -> Result<f64, String> {
        let Self::Result(result) = self else { return Err("a bench has no stages".to_owned()) };
        let account = series(result, of)?.stages.as_ref().ok_or("has no account of the analyzer")?;
        Ok(stages.iter().map(|stage| account.median_frame_ns_of(stage)).sum::<u64>() as f64)
    }
}

impl Selector<'_> {
    fn is(&self, series: &Series) -> bool {
        series.method == self.method && self.rules.is_none_or(|rules| rules.are_of(&series.condition))
    }
}

fn series<'a>(result: &'a ResultFile, of: &Selector) -> Result<&'a Series, String> {
    result.series.iter().find(|series| of.is(series)).ok_or_else(|| "no such series".to_owned())
}

/// The quantity and the place on the horizontal axis that a figure names.
pub fn point(figure: &str) -> Option<(&str, u64)> {
    let (quantity, at) = figure.rsplit_once(" at ")?;
    Some((quantity, at.parse().ok()?))
}

fn on_curve(result: &ResultFile, of: &Selector, quantity: &str, at: u64) -> Result<f64, String> {
    let curves =
        result.series.iter().filter(|series| of.is(series)).filter_map(|series| series.curve.as_ref());
    let mut points = curves.filter(|curve| curve.quantity == quantity).flat_map(|curve| &curve.points);
    let [_, value] = points.find(|[place, _]| *place == at).ok_or("no such point of a curve")?;
    Ok(*value as f64)
}

/// The statistic of a series that this word names.
pub fn statistic(word: &str) -> Result<Statistic, String> {
    Statistic::deserialize(IntoDeserializer::<Error>::into_deserializer(word))
        .map_err(|error| error.to_string())
}

//! Measures studies on this machine. In the lab's guest it prints events, a line of JSON each, from which the host
//! keeps each case as soon as it is measured.

use super::{
    definition::{Kind, Study},
    pings, recording,
    side::{Local, Side},
    testbed::{self, Bed, TOGETHER},
    throughput,
    unit::{PING_WEIGHT, RECORDING_WEIGHT, SYSCALLS_WEIGHT},
    writes,
};
use crate::meter::syscalls;
use canter_cli::{
    failure::{self, Exit, Failure},
    units::{measured, us},
};
use canter_io::Interface;
use canter_measure::result::{Environment, Series};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeSet, fmt, str::FromStr};

/// An event that the guest reports to the host.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// A study begins on this machine.
    Begin { study: String, environment: Box<Environment> },
    /// A case has its series, or the reason why it has none.
    Case { study: String, case: Box<Case> },
    /// All cases of a study were tried.
    End { study: String },
    /// A study, or one of its cases, that failed: the same command tries it again.
    Failed { study: String, why: String },
}

impl Event {
    /// The name of the study that it belongs to.
    pub fn study(&self) -> &str {
        match self {
            Self::Begin { study, .. }
            | Self::Case { study, .. }
            | Self::End { study }
            | Self::Failed { study, .. } => study,
        }
    }
}

/// A case of a study: one combination of its conditions; all system calls together.
#[derive(Serialize, Deserialize)]
pub struct Case {
    /// The case's number within the study.
    pub number: usize,
    /// The description of the case, for the progress line.
    pub what: String,
    pub weight: u64,
    pub series: Vec<Series>,
}

/// The cases that a run has already: `2011-fig8=0,1,5`.
#[derive(Clone, Debug)]
pub struct Skip {
    study: String,
    numbers: BTreeSet<usize>,
}

impl Skip {
    pub fn new(study: &str, numbers: impl IntoIterator<Item = usize>) -> Self {
        Self { study: study.to_owned(), numbers: numbers.into_iter().collect() }
    }
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<_> = self.numbers.iter().map(usize::to_string).collect();
        write!(f, "{}={}", self.study, numbers.join(","))
    }
}

impl FromStr for Skip {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text}: STUDY=NUMBER,…");
        let (study, numbers) = text.split_once('=').ok_or_else(wrong)?;
        let numbers = numbers.split(',').map(|number| number.parse().map_err(|_| wrong()));
        Ok(Self { study: study.to_owned(), numbers: numbers.collect::<Result<_, _>>()? })
    }
}

/// Measures studies one after the other; continues after one that fails.
pub fn in_guest(studies: &[Study], skip: &[Skip]) -> failure::Result {
    for study in studies {
        let (bed, place) = testbed::of_lab(study);
        let known = skip.iter().find(|skip| skip.study == study.name);
        let known = known.map_or_else(BTreeSet::new, |skip| skip.numbers.clone());
        let print = |event: Event| println!("{}", serde_json::to_string(&event).unwrap_or_default());
        measure(study, &bed, &mut Local::new(place)?, &known, &mut { print })?;
    }
    Ok(Exit::Done)
}

/// Measures one study here, but for the cases that are `known`. A failure is reported; only an interruption is an error.
pub fn measure(
    study: &Study,
    bed: &Bed,
    side: &mut dyn Side,
    known: &BTreeSet<usize>,
    report: &mut dyn FnMut(Event),
) -> failure::Result<()> {
    let name = || study.name.clone();
    let measured = cases(study, bed, side, known, report);
    match measured {
        Ok(()) => report(Event::End { study: name() }),
        Err(failure) if failure.exit == Exit::Interrupted => return Err(failure),
        Err(failure) => report(Event::Failed { study: name(), why: failure.message }),
    }
    Ok(())
}

fn cases(
    study: &Study,
    bed: &Bed,
    side: &mut dyn Side,
    known: &BTreeSet<usize>,
    report: &mut dyn FnMut(Event),
) -> failure::Result<()> {
    let name = || study.name.clone();
    let begin = |interfaces: &[Interface]| Event::Begin {
        study: name(),
        environment: Box::new(Environment::read(interfaces)),
    };
    let case = |number: usize, what: String, weight: u64, series: Vec<Series>| Event::Case {
        study: name(),
        case: Box::new(Case { number, what, weight, series }),
    };
    match &study.kind {
        Kind::Syscalls(setup) if !known.contains(&0) => {
            let (mut series, interfaces) = syscalls::measure(setup)?;
            for one in &mut series {
                one.paper = study.paper_of(&one.method);
            }
            report(begin(&interfaces));
            report(case(0, format!("{} series", series.len()), SYSCALLS_WEIGHT, series));
        }
        Kind::Syscalls(_) => {}
        Kind::Latency(plan) => {
            let weight = plan.count.div_ceil(500);
            testbed::measure(study, plan, bed, side, known, &mut |step| match step {
                testbed::Step::Begun(interfaces) => report(begin(interfaces)),
                testbed::Step::Measured(number, one, series) => {
                    let what = format!("{}: {}", one.label(), outcome(&series));
                    report(case(number, what, one.weight() * weight, vec![*series]));
                }
                testbed::Step::Failed(one, why) => {
                    report(Event::Failed { study: name(), why: format!("{}: {why}", one.label()) });
                }
            })?;
        }
        Kind::Ping(plan) => {
            let interfaces = pings::interfaces(plan)?;
            let bound = if Environment::read(&interfaces).processors == 1 { TOGETHER } else { "" };
            report(begin(&interfaces));
            pings::measure(plan, known, &mut |number, what, mut one| {
                bound.clone_into(&mut one.condition.bound);
                if one.condition.load == "none" {
                    one.paper = study.paper_of(&one.method).filter(|_| one.unavailable.is_empty());
                }
                report(case(number, format!("{what}: {}", outcome(&one)), PING_WEIGHT, vec![one]));
            })?;
        }
        Kind::Recording(plan) => {
            report(begin(&recording::interfaces(plan)?));
            recording::measure(plan, known, &mut |number, what, series| {
                report(case(number, format!("{what}: {}", outcome(&series[0])), RECORDING_WEIGHT, series));
            })?;
        }
        Kind::Writes(plan) => {
            report(begin(&writes::interfaces(plan)?));
            writes::measure(plan, known, &mut |number, what, series| {
                let what = format!("{what}: {}", outcome(&series[series.len() - 1]));
                report(case(number, what, PING_WEIGHT, series));
            })?;
        }
        Kind::Throughput(plan) => {
            report(begin(&throughput::interfaces()?));
            throughput::measure(plan, known, &mut |number, what, series| {
                report(case(number, format!("{what}: {}", outcome(&series[0])), RECORDING_WEIGHT, series));
            })?;
        }
        Kind::Missing(why) => return Err(Failure::unable(format!("{}: {why}", study.name))),
    }
    Ok(())
}

/// The outcome of a series for the progress line.
fn outcome(series: &Series) -> String {
    if !series.unavailable.is_empty() {
        return format!("not measured: {}", series.unavailable);
    }
    if let Some(curve) = &series.curve {
        let [against, value] = curve.points.last().copied().unwrap_or_default();
        let value = measured(value, curve.decimals, &curve.unit);
        return format!("{} of {against} {} {value}", curve.quantity, curve.against);
    }
    let arrived = series.latency_ns.as_ref().filter(|latency| latency.count > 0);
    let figures = arrived.map_or(String::new(), |latency| {
        format!("median {:.1} µs, worst {:.1}", us(latency.p50), us(latency.max))
    });
    match series.ledger.lost.total() {
        0 if figures.is_empty() => format!("all {} recorded", series.ledger.sent),
        0 => figures,
        lost if figures.is_empty() => format!("{lost} of {} lost", series.ledger.sent),
        lost => format!("{figures}, {lost} of {} lost", series.ledger.sent),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use canter_measure::{
        histogram::Histogram,
        result::{Ledger, Lost},
    };

    #[test]
    fn a_gateway_that_loses_every_frame_has_a_loss_and_no_median() {
        let lost = |unaccounted| Lost { unaccounted, ..Lost::default() };
        let mut histogram = Histogram::new();
        let silent = Series {
            latency_ns: Some(histogram.to_latency()),
            ledger: Ledger { sent: 3, lost: lost(3), ..Ledger::default() },
            ..Series::default()
        };
        assert_eq!(outcome(&silent), "3 of 3 lost");
        histogram.record(2_000);
        let latency_ns = Some(histogram.to_latency());
        let ledger = Ledger { sent: 3, received: 1, lost: lost(2), ..Ledger::default() };
        let some = Series { latency_ns, ledger, ..Series::default() };
        assert_eq!(outcome(&some), "median 2.0 µs, worst 2.0, 2 of 3 lost");
    }
}

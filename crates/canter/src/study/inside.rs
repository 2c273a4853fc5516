//! Measures studies on this machine. In the lab's guest it prints events, a line of JSON each, from which the host
//! keeps each result as soon as it is measured.

use super::{
    definition::{Kind, Study},
    pings,
    side::{Local, Side},
    testbed::{self, Bed},
    unit::{PING_WEIGHT, SYSCALLS_WEIGHT},
};
use crate::{
    failure::{self, Exit, Failure},
    measure::{
        environment,
        result::{ResultFile, Series},
    },
    meter::syscalls,
};
use serde::{Deserialize, Serialize};

/// An event that the guest reports to the host.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// A step is done: its weight and description.
    Step {
        study: String,
        what: String,
        weight: u64,
    },
    Result(Box<ResultFile>),
    /// A study that could not be measured.
    Failed {
        study: String,
        why: String,
    },
}

/// Measures studies one after the other; continues after one that fails.
pub fn in_guest(studies: &[Study]) -> failure::Result {
    let print = |event: &Event| println!("{}", serde_json::to_string(event).unwrap_or_default());
    for study in studies {
        let (bed, place) = testbed::of_lab(study);
        let measured = measure(study, &bed, &mut Local::new(place), &mut |event| print(&event));
        match measured {
            Ok(result) => print(&Event::Result(Box::new(result))),
            Err(failure) if failure.exit == Exit::Interrupted => return Err(failure),
            Err(failure) => print(&Event::Failed { study: study.name.clone(), why: failure.message }),
        }
    }
    Ok(Exit::Done)
}

/// Measures one study here.
pub fn measure(
    study: &Study,
    bed: &Bed,
    side: &mut dyn Side,
    report: &mut dyn FnMut(Event),
) -> failure::Result<ResultFile> {
    let mut step =
        |what: String, weight: u64| report(Event::Step { study: study.name.clone(), what, weight });
    let (series, interfaces) = match &study.kind {
        Kind::Syscalls(setup) => {
            let (mut series, interfaces) = syscalls::measure(setup)?;
            for one in &mut series {
                one.paper = study.paper_of(&one.method);
            }
            step(format!("{} series", series.len()), SYSCALLS_WEIGHT);
            (series, interfaces)
        }
        Kind::Latency(plan) => {
            let weight = plan.count.div_ceil(500);
            let mut done = |case: &super::plan::Case, one: &Series| {
                step(format!("{}: {}", case.label(), outcome(one)), case.weight() * weight);
            };
            testbed::measure(study, plan, bed, side, &mut done)?
        }
        Kind::Ping(plan) => {
            let mut done = |what: &str, one: &Series| step(format!("{what}: {}", outcome(one)), PING_WEIGHT);
            let (mut series, interfaces) = pings::measure(plan, &mut done)?;
            for one in series.iter_mut().filter(|one| one.condition.load == "none") {
                one.paper = study.paper_of(&one.method).filter(|_| one.unavailable.is_empty());
            }
            (series, interfaces)
        }
        Kind::Missing(why) => return Err(Failure::unable(format!("{}: {why}", study.name))),
    };
    Ok(environment::result(&study.name, &study.title, &interfaces, series))
}

/// The outcome of a series for the progress line.
fn outcome(series: &Series) -> String {
    if !series.unavailable.is_empty() {
        return format!("not measured: {}", series.unavailable);
    }
    let us = |ns: u64| ns as f64 / 1000.0;
    let figures = series.latency_ns.as_ref().map_or(String::new(), |latency| {
        format!("median {:.1} µs, worst {:.1}", us(latency.p50), us(latency.max))
    });
    match series.ledger.lost.total() {
        0 => figures,
        lost => format!("{figures}, {lost} of {} lost", series.ledger.sent),
    }
}

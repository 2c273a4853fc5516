//! `canter study list`: all studies, with the kernels on which they run or the reason why they cannot run here.

use super::{
    definition::{Bus, Kind, Lab, Set, Study},
    ethernet, unit,
};
use crate::lab;
use canter_cli::failure::{self, Exit};

pub fn print() -> failure::Result {
    let studies = Study::all()?;
    let width = studies.iter().map(|study| study.name.len()).max().unwrap_or(0);
    for study in &studies {
        println!("{:<width$}  {}", study.name, study.title);
        println!("{:<width$}    {}", "", state(study));
    }
    Ok(Exit::Done)
}

/// The description of a study, `6.12, 6.12-rt; 12 series; --all`, or the reason why it cannot run.
fn state(study: &Study) -> String {
    let why = match &study.kind {
        Kind::Missing(why) => Some(why.clone()),
        kind => obstacle(&study.lab, unit::needs_ethernet(kind)),
    };
    if let Some(why) = why {
        return format!("not here: {why}");
    }
    let series = match &study.kind {
        Kind::Latency(plan) => format!("{} series", plan.cases().len()),
        Kind::Ping(plan) => format!("{} series", plan.cases()),
        Kind::Recording(plan) => format!("{} series", plan.cases()),
        Kind::Writes(plan) => format!("{} cases", plan.cases()),
        Kind::Throughput(plan) => format!("{} gateways", plan.cases()),
        Kind::Syscalls(_) | Kind::Missing(_) => "every system call".to_owned(),
    };
    let with = match study.set {
        Set::Figure => "; with --all",
        Set::Matrix => "; with --matrix",
        Set::Bench => "",
    };
    let each = if study.lab.kernels.len() > 1 { " each" } else { "" };
    format!("on {}: {series}{each}{with}", study.lab.kernels.join(", "))
}

/// The reason why this machine cannot run a study's lab.
fn obstacle(machine: &Lab, ethernet: bool) -> Option<String> {
    let builds = machine.bus != Bus::default() || machine.canchar.is_some();
    let lab = lab::obstacle(builds);
    lab.or_else(|| if ethernet { Some(ethernet::ping_is_there().err()?.message) } else { None })
}

//! Study files: what an experiment of the papers measures, and what the paper found.

use super::ceiling::Ceiling;
use crate::{
    failure::{self, Exit, Failure},
    lab::Bus,
    measure::{duration, result::Paper},
    meter::syscalls,
};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Every study, as its file has it.
static FILES: &[(&str, &str)] = &[
    ("2014-fig4.1", include_str!("../../../../studies/2014-fig4.1.toml")),
    ("2014-fig4.2", include_str!("../../../../studies/2014-fig4.2.toml")),
    ("2014-fig4.2-wire", include_str!("../../../../studies/2014-fig4.2-wire.toml")),
    ("bench-syscalls", include_str!("../../../../studies/bench-syscalls.toml")),
];

/// An experiment.
pub struct Study {
    pub name: String,
    pub title: String,
    pub lab: Lab,
    pub kind: Kind,
    /// What `canter study run --ceilings` watches.
    pub ceilings: Vec<Ceiling>,
    source: String,
    paper: PaperFigures,
}

/// What is measured.
pub enum Kind {
    /// What system calls cost.
    Syscalls(syscalls::Setup),
    /// How late gateways are.
    Latency(LatencyPlan),
}

/// The machine it is measured on.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lab {
    pub kernel: String,
    /// `real` or `virtual`.
    pub clock: String,
    pub cpus: u8,
    /// What joins the testbed's interfaces.
    #[serde(default)]
    pub bus: Bus,
}

/// Gateways to measure, one after the other under the same traffic.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LatencyPlan {
    pub traffic: String,
    pub count: u64,
    pub len: u8,
    gap: String,
    /// Whether the latencies are kept in the order of time too.
    #[serde(default)]
    pub timeline: bool,
    /// As `canter gateway --method` takes them.
    pub methods: Vec<String>,
}

impl LatencyPlan {
    /// One at a time: ns between the arrival of a frame and the sending of the next.
    pub fn gap_ns(&self) -> failure::Result<u64> {
        duration::parse_ns(&self.gap).map_err(|error| Failure::failed(format!("study: gap: {error}")))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    title: String,
    source: String,
    lab: Lab,
    syscalls: Option<SyscallsPlan>,
    latency: Option<LatencyPlan>,
    paper: PaperFigures,
    #[serde(default)]
    ceiling: Vec<Ceiling>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SyscallsPlan {
    frames: Vec<u64>,
    batch: Vec<usize>,
    queue: Option<u64>,
    len: u8,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PaperFigures {
    machine: String,
    /// Median or cost, by our name of the method.
    ns: BTreeMap<String, u64>,
}

impl Study {
    /// All there are.
    pub fn all() -> failure::Result<Vec<Self>> {
        FILES.iter().map(|(name, text)| Self::read(name, text)).collect()
    }

    /// The one of that name.
    pub fn find(name: &str) -> failure::Result<Self> {
        let file = FILES.iter().find(|(known, _)| *known == name);
        let (name, text) = file.ok_or_else(|| {
            let known: Vec<_> = FILES.iter().map(|(known, _)| *known).collect();
            Failure::new(Exit::Usage, format!("{name}: no such study (there are {})", known.join(", ")))
        })?;
        Self::read(name, text)
    }

    fn read(name: &str, text: &str) -> failure::Result<Self> {
        let wrong = |what: String| Failure::failed(format!("{name}: study file: {what}"));
        let file: File = toml::from_str(text).map_err(|error| wrong(error.to_string()))?;
        let kind = match (file.syscalls, file.latency) {
            (Some(plan), None) => Kind::Syscalls(plan.setup()),
            (None, Some(plan)) => Kind::Latency(plan),
            _ => return Err(wrong("needs either [syscalls] or [latency]".to_owned())),
        };
        let File { name, title, source, lab, paper, ceiling: ceilings, .. } = file;
        Ok(Self { name, title, lab, kind, ceilings, source, paper })
    }

    /// What the paper has for a method, if it has anything.
    pub fn paper_of(&self, method: &str) -> Option<Paper> {
        let ns = *self.paper.ns.get(method)?;
        Some(Paper {
            source: self.source.clone(),
            machine: self.paper.machine.clone(),
            ns,
            ..Paper::default()
        })
    }
}

impl SyscallsPlan {
    fn setup(self) -> syscalls::Setup {
        let Self { frames, batch, queue, len } = self;
        syscalls::Setup { interface: None, frames, batch, queue, methods: Vec::new(), len }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::Method;

    #[test]
    fn every_study_file_reads_and_bears_its_own_name() {
        for (name, text) in FILES {
            let study = Study::read(name, text).unwrap_or_else(|failure| panic!("{failure}"));
            assert_eq!(study.name, *name);
        }
    }

    #[test]
    fn a_study_names_each_method_once_and_can_gw_first() {
        let study = Study::find("2014-fig4.2").unwrap_or_else(|failure| panic!("{failure}"));
        let Kind::Latency(plan) = study.kind else { panic!("figure 4.2 shows latencies") };
        assert_eq!(plan.methods[0], "can-gw");
        let known = plan.methods.iter().filter(|name| name.parse::<Method>().is_ok());
        assert!(known.count() >= 10);
        let mut once = plan.methods.clone();
        once.sort();
        once.dedup();
        assert_eq!(once.len(), plan.methods.len());
    }
}

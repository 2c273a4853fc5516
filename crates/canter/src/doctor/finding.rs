//! What the doctor says: what is wrong, how it is known, why it matters and what to type.

use super::machine::Machine;
use serde::Serialize;

/// What a finding costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Cost {
    /// Frames get lost, or are changed.
    Frames,
    /// Frames come later than they could.
    Latency,
}

impl Cost {
    pub fn name(self) -> &'static str {
        match self {
            Self::Frames => "frames",
            Self::Latency => "latency",
        }
    }
}

/// Something that is wrong.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// The check that found it.
    pub check: &'static str,
    pub cost: Cost,
    /// An interface, or "machine".
    pub thing: String,
    /// What was read or counted here.
    pub evidence: String,
    /// Why that matters.
    pub reason: String,
    /// What to type or to do.
    pub remedy: String,
}

/// Something to look for.
pub struct Check {
    pub name: &'static str,
    /// What it looks at, in a few words.
    pub about: &'static str,
    pub cost: Cost,
    pub look: fn(&Machine) -> Vec<Symptom>,
}

/// A finding before its check's name is written on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symptom {
    pub thing: String,
    pub evidence: String,
    pub reason: String,
    pub remedy: String,
}

/// The thing of a finding that is about no interface.
pub const MACHINE: &str = "machine";

impl Check {
    pub fn findings(&self, machine: &Machine) -> impl Iterator<Item = Finding> + use<> {
        let (check, cost) = (self.name, self.cost);
        (self.look)(machine).into_iter().map(move |symptom| {
            let Symptom { thing, evidence, reason, remedy } = symptom;
            Finding { check, cost, thing, evidence, reason, remedy }
        })
    }
}

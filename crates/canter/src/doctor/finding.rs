//! Checks and their findings: the evidence, why it matters, and the command that fixes it.

use super::{
    advice::{self, Advice},
    machine::Machine,
};
use serde::Serialize;

/// What a finding costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Cost {
    /// Frames are lost or changed.
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

/// A setting or a loss that costs frames or latency.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// The name of the check.
    pub check: &'static str,
    pub cost: Cost,
    /// An interface, or "machine".
    pub thing: String,
    /// The value that was read or counted.
    pub evidence: String,
    /// Why the evidence matters.
    pub reason: String,
    /// The command to type, or what to change.
    pub remedy: String,
    #[serde(flatten)]
    pub advice: Advice,
}

/// A row of the table of checks.
pub struct Check {
    pub name: &'static str,
    /// What the check examines, in a few words.
    pub about: &'static str,
    pub cost: Cost,
    pub look: fn(&Machine) -> Vec<Symptom>,
}

/// A finding without the name and cost of its check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symptom {
    pub thing: String,
    pub evidence: String,
    pub reason: String,
    pub remedy: String,
}

/// `thing` of a finding that concerns the whole machine.
pub const MACHINE: &str = "machine";

impl Check {
    pub fn findings(&self, machine: &Machine) -> impl Iterator<Item = Finding> + use<> {
        let (check, cost) = (self.name, self.cost);
        (self.look)(machine).into_iter().map(move |symptom| {
            let Symptom { thing, evidence, reason, remedy } = symptom;
            Finding { check, cost, thing, evidence, reason, remedy, advice: advice::find(check) }
        })
    }
}

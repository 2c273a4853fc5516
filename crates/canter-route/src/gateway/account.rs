//! The account of a gateway: printed at its end, and the document of `--json`.

use super::plan::Direction;
use crate::rules::{counts::Counts, engine::RuleCounts};
use serde::{Deserialize, Serialize};

/// The counts of a gateway.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Account {
    pub from: String,
    pub to: String,
    pub method: String,
    /// Sum over all routes.
    pub counts: Counts,
    /// The error that ended the gateway; empty when a signal ended it.
    pub failure: String,
    #[serde(default)]
    pub routes: Vec<RouteAccount>,
}

/// The counts of one direction.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RouteAccount {
    pub from: String,
    pub to: String,
    pub counts: Counts,
    pub rules: Vec<RuleAccount>,
}

/// The counts of a rule.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RuleAccount {
    pub name: String,
    #[serde(flatten)]
    pub counts: RuleCounts,
}

impl RouteAccount {
    /// The account of a gateway that does not count by rule.
    pub fn new(direction: &Direction, counts: Counts) -> Self {
        let (from, to) = (direction.from.clone(), direction.to.clone());
        Self { from, to, counts, rules: Vec::new() }
    }
}

//! What a gateway leaves behind: printed, and as `--json` writes it.

use super::plan::Direction;
use crate::rules::{counts::Counts, engine::RuleCounts};
use serde::{Deserialize, Serialize};

/// What a gateway did.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Account {
    pub from: String,
    pub to: String,
    pub method: String,
    /// Of all routes together.
    pub counts: Counts,
    /// Why the gateway ended on its own; empty when a request ended it.
    pub failure: String,
    #[serde(default)]
    pub routes: Vec<RouteAccount>,
}

/// What one direction did.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RouteAccount {
    pub from: String,
    pub to: String,
    pub counts: Counts,
    pub rules: Vec<RuleAccount>,
}

/// What a rule did.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RuleAccount {
    pub name: String,
    #[serde(flatten)]
    pub counts: RuleCounts,
}

impl RouteAccount {
    /// Of a gateway whose rules count nothing.
    pub fn of(direction: &Direction, counts: Counts) -> Self {
        let (from, to) = (direction.from.clone(), direction.to.clone());
        Self { from, to, counts, rules: Vec::new() }
    }
}

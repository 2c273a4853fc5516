//! The series that a criterion speaks of, by the words of study and result files.

use super::super::rules::Rules;
use canter_cli::duration;
use canter_measure::result::{ResultFile, Series};
use serde::Deserialize;
use std::fmt;

/// Properties of a series; one that is not named may have any value.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Selector {
    /// The study; unless given, the claim's own.
    pub study: Option<String>,
    /// The kernel, as `6.12-rt`; unless given, the first kernel of the claim's study.
    pub kernel: Option<String>,
    pub method: Option<String>,
    /// What was measured, where it is no latency of a gateway: `start delay`.
    pub quantity: Option<String>,
    /// Other work on the machine: `cpu`.
    pub load: Option<String>,
    /// The kind of traffic, such as `one-at-a-time`, `flood` or `period`.
    pub traffic: Option<String>,
    /// The period of traffic `period`: `120us`.
    pub period: Option<Period>,
    /// The share of the bus in per cent of traffic `load`.
    pub percent: Option<u32>,
    pub rules: Option<Rules>,
    /// The kind of the varied rules, or a tuning: `masked EFF`, `irq-priority=90`; empty: none.
    pub variant: Option<String>,
    /// The direction of system calls: `send` or `receive`.
    pub direction: Option<String>,
    /// The frames per system call.
    pub batch: Option<u32>,
    pub len: Option<u32>,
    /// The number that was varied: filters, virtual interfaces.
    pub varied: Option<u64>,
    /// The point of a curve, in frames/s.
    pub rate: Option<u64>,
}

/// A time between two frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Period(pub u64);

impl TryFrom<String> for Period {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        duration::parse_ns(&text).map(Self).map_err(|error| error.to_string())
    }
}

impl Selector {
    /// This selector with the properties of `base` where it names none.
    pub fn on(&self, base: &Self) -> Self {
        let named = self.clone();
        Self {
            study: named.study.or_else(|| base.study.clone()),
            kernel: named.kernel.or_else(|| base.kernel.clone()),
            method: named.method.or_else(|| base.method.clone()),
            quantity: named.quantity.or_else(|| base.quantity.clone()),
            load: named.load.or_else(|| base.load.clone()),
            traffic: named.traffic.or_else(|| base.traffic.clone()),
            period: named.period.or(base.period),
            percent: named.percent.or(base.percent),
            rules: named.rules.or_else(|| base.rules.clone()),
            variant: named.variant.or_else(|| base.variant.clone()),
            direction: named.direction.or_else(|| base.direction.clone()),
            batch: named.batch.or(base.batch),
            len: named.len.or(base.len),
            varied: named.varied.or(base.varied),
            rate: named.rate.or(base.rate),
        }
    }

    /// This selector narrowed to one of the series that it names, by varied rules and period.
    pub fn at(&self, series: &Series) -> Self {
        let condition = &series.condition;
        Self {
            varied: condition.varied.as_ref().map(|varied| varied.value),
            period: (condition.period_ns > 0).then_some(Period(condition.period_ns)),
            ..self.clone()
        }
    }

    /// Whether a result file is of the selector's study and kernel.
    pub fn is_of(&self, result: &ResultFile) -> bool {
        self.study.as_ref().is_none_or(|study| *study == result.study)
            && self.kernel.as_ref().is_none_or(|kernel| *kernel == result.environment.flavour())
    }

    /// Whether a series has the properties. A result file's study and kernel are `is_of`'s.
    pub fn matches(&self, series: &Series) -> bool {
        // Each field by its name, so that a new one cannot be forgotten here and then match anything.
        let Self {
            study: _,
            kernel: _,
            method,
            quantity,
            load,
            traffic,
            period,
            percent,
            rules,
            variant,
            direction,
            batch,
            len,
            varied,
            rate,
        } = self;
        let there = &series.condition;
        let is_wanted =
            |wanted: &Option<String>, there: &str| wanted.as_deref().is_none_or(|one| one == there);
        is_wanted(method, &series.method)
            && is_wanted(quantity, &series.quantity)
            && is_wanted(load, &there.load)
            && is_wanted(traffic, &there.traffic)
            && period.is_none_or(|period| period.0 == there.period_ns)
            && percent.is_none_or(|percent| percent == there.load_percent)
            && rules.as_ref().is_none_or(|rules| rules.are_of(there))
            && is_wanted(variant, &there.variant)
            && is_wanted(direction, &there.direction)
            && batch.is_none_or(|batch| batch == there.batch)
            && len.is_none_or(|len| len == there.len)
            && rate.is_some() == series.curve.is_some()
            && varied.is_none_or(|value| there.varied.as_ref().is_some_and(|one| one.value == value))
    }
}

impl fmt::Display for Selector {
    /// Lists the properties: `2011-fig8, kernel 6.12, can-gw, load cpu`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = |name: &str, value: &Option<String>| value.as_ref().map(|value| format!("{name}{value}"));
        let words = [
            word("", &self.study),
            word("kernel ", &self.kernel),
            word("", &self.method),
            word("", &self.quantity),
            word("load ", &self.load),
            word("", &self.traffic),
            self.period.map(|period| format!("every {} ns", period.0)),
            self.percent.map(|percent| format!("{percent} %")),
            self.rules.as_ref().map(Rules::to_string),
            word("", &self.variant),
            word("", &self.direction),
            self.batch.map(|batch| format!("{batch} at once")),
            self.len.map(|len| format!("{len} bytes")),
            self.varied.map(|value| format!("with {value}")),
            self.rate.map(|rate| format!("{rate} frames/s")),
        ];
        let words: Vec<_> = words.into_iter().flatten().filter(|word| !word.is_empty()).collect();
        f.write_str(&words.join(", "))
    }
}

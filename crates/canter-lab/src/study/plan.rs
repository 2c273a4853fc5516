//! The plan of a latency study: every combination of its conditions is a case and makes a series.

use super::{load::Load, rules::Rules, tuning::Tuning};
use canter_cli::duration;
use canter_measure::result::Condition;
use canter_route::traffic::random::SEED;
use canter_route::{gateway::kind::Method, traffic::pattern::Traffic};
use serde::Deserialize;

/// The method name for no gateway with the exact instrument: its second card is on the bus of the first one, and the latency is
/// the time from an interrupt's cause to its handler.
pub const INTERRUPT: &str = "interrupt";

/// The method name for no gateway on cards: both stamps of the meter are taken on the sender's bus, and what lies between them
/// is its own.
pub const DIRECT: &str = "direct";

/// Whether a method of a study is no gateway.
pub fn has_no_gateway(method: &str) -> bool {
    [INTERRUPT, DIRECT].contains(&method)
}

/// The part `[latency]` of a study file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LatencyFile {
    /// The methods, as for `canter gateway --method`.
    methods: Vec<String>,
    #[serde(default = "one_at_a_time")]
    traffic: Vec<String>,
    #[serde(default = "no_load")]
    loads: Vec<String>,
    /// The rules, such as `all`, `eff=80`, `sff=2048`, `masked=80`, `hops=3` or `and`.
    #[serde(default = "all_frames")]
    rules: Vec<String>,
    lens: Vec<u8>,
    count: u64,
    #[serde(default)]
    fd: bool,
    /// The pause between the arrival of a frame and the sending of the next, of frames one at a time.
    #[serde(default = "gap")]
    gap: String,
    /// The largest random addition to the gap.
    #[serde(default = "nothing")]
    jitter: String,
    /// The priority of user-space gateways under SCHED_FIFO; 0: none.
    #[serde(default)]
    realtime: u8,
    /// The kernel settings of the gateway's machine.
    #[serde(default = "as_it_is")]
    tuning: Vec<Tuning>,
    /// Whether the latencies are also stored in order of time.
    #[serde(default)]
    timeline: bool,
    /// The card whose interrupt handler's run times are measured instead of latencies.
    handler: Option<End>,
    /// Whether sockets stamp the frames that the analyzer sees, and how far the two are apart is measured.
    #[serde(default)]
    beside_sockets: bool,
}

/// A gateway's card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    Input,
    Output,
}

impl End {
    /// The name of the card at this end, of a gateway between two cards.
    pub fn card(self, [input, output]: &[String; 2]) -> &str {
        match self {
            Self::Input => input,
            Self::Output => output,
        }
    }
}

fn one_at_a_time() -> Vec<String> {
    vec!["one-at-a-time".to_owned()]
}

pub fn no_load() -> Vec<String> {
    vec![Load::default().name().to_owned()]
}

fn all_frames() -> Vec<String> {
    vec![Rules::All.to_string()]
}

fn gap() -> String {
    "50us".to_owned()
}

fn nothing() -> String {
    "0ns".to_owned()
}

pub fn as_it_is() -> Vec<Tuning> {
    vec![Tuning::Usual]
}

/// Gateways to measure, one after the other, under every combination of the conditions.
#[derive(Clone, Debug)]
pub struct LatencyPlan {
    pub methods: Vec<String>,
    traffic: Vec<Traffic>,
    loads: Vec<Load>,
    rules: Vec<Rules>,
    lens: Vec<u8>,
    tuning: Vec<Tuning>,
    pub count: u64,
    pub fd: bool,
    pub gap_ns: u64,
    pub jitter_ns: u64,
    /// The seed of the jitter: another one for each boot.
    pub seed: u64,
    pub realtime: u8,
    pub timeline: bool,
    pub handler: Option<End>,
    pub beside_sockets: bool,
}

/// One combination of the conditions.
#[derive(Clone, Debug)]
pub struct Case {
    pub method: String,
    pub traffic: Traffic,
    pub load: Load,
    pub rules: Rules,
    pub len: u8,
    pub tuning: Tuning,
}

impl LatencyFile {
    pub fn plan(self) -> Result<LatencyPlan, String> {
        for method in &self.methods {
            if !has_no_gateway(method) {
                method.parse::<Method>().map_err(|error| error.to_string())?;
            }
        }
        let max = if self.fd { 64 } else { 8 };
        if let Some(len) = self.lens.iter().find(|&&len| !(2..=max).contains(&len)) {
            return Err(format!("lens: {len}: 2…{max} bytes, the first two are the frame's number"));
        }
        if self.count == 0 {
            return Err("count: at least 1".to_owned());
        }
        let traffic = |text: &String| text.parse().map_err(|error| format!("traffic: {error}"));
        let time =
            |what: &str, text: &str| duration::parse_ns(text).map_err(|error| format!("{what}: {error}"));
        Ok(LatencyPlan {
            gap_ns: time("gap", &self.gap)?,
            jitter_ns: time("jitter", &self.jitter)?,
            traffic: self.traffic.iter().map(traffic).collect::<Result<_, _>>()?,
            loads: self.loads.iter().map(|text| text.parse()).collect::<Result<_, _>>()?,
            rules: self.rules.iter().map(|text| text.parse()).collect::<Result<_, _>>()?,
            seed: SEED,
            methods: self.methods,
            lens: self.lens,
            tuning: self.tuning,
            count: self.count,
            fd: self.fd,
            realtime: self.realtime,
            timeline: self.timeline,
            handler: self.handler,
            beside_sockets: self.beside_sockets,
        })
    }
}

impl LatencyPlan {
    /// All combinations; methods vary fastest.
    pub fn cases(&self) -> Vec<Case> {
        let mut cases = Vec::new();
        for &load in &self.loads {
            for &traffic in &self.traffic {
                for rules in &self.rules {
                    for &len in &self.lens {
                        for &tuning in &self.tuning {
                            cases.extend(self.methods.iter().map(|method| Case {
                                method: method.clone(),
                                traffic,
                                load,
                                rules: rules.clone(),
                                len,
                                tuning,
                            }));
                        }
                    }
                }
            }
        }
        cases
    }

    /// Whether a load needs an Ethernet.
    pub fn needs_ethernet(&self) -> bool {
        self.loads.iter().any(|load| load.is_ethernet())
    }
}

impl Case {
    /// Writes the case's properties into a result's condition.
    pub fn mark(&self, condition: &mut Condition) {
        condition.load = self.load.name().to_owned();
        self.rules.mark(condition);
        if self.tuning != Tuning::Usual {
            let separator = if condition.variant.is_empty() { "" } else { ", " };
            condition.variant += &format!("{separator}{}", self.tuning);
        }
    }

    /// The case in words for the progress line: `can-gw, flood, load cpu, eff=80`.
    pub fn label(&self) -> String {
        let mut words = vec![self.method.clone(), self.traffic.to_string()];
        if !self.load.is_none() {
            words.push(format!("load {}", self.load.name()));
        }
        if self.rules != Rules::All {
            words.push(self.rules.to_string());
        }
        if self.tuning != Tuning::Usual {
            words.push(self.tuning.to_string());
        }
        words.push(format!("{} bytes", self.len));
        words.join(", ")
    }

    /// The duration relative to the simplest case, by experience, for the estimate of the remaining time.
    pub fn weight(&self) -> u64 {
        let work = if self.load.is_none() { 2 } else { 8 };
        work + self.rules.jobs() / 128
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_combination_is_a_case() {
        let text = "methods = [\"can-gw\", \"read+write\"]\ntraffic = [\"flood\", \"load=50%\"]\n\
                    loads = [\"none\", \"cpu\", \"disk\"]\nrules = [\"all\", \"eff=8\"]\nlens = [2, 8]\ncount = 1\n";
        let file: LatencyFile = toml::from_str(text).expect("it reads");
        let cases = file.plan().expect("it is sound").cases();
        assert_eq!(cases.len(), 2 * 2 * 3 * 2 * 2);
        let mut labels: Vec<String> = cases.iter().map(Case::label).collect();
        assert_eq!(labels[1], "read+write, flood, 2 bytes");
        labels.sort();
        labels.dedup();
        assert_eq!(labels.len(), cases.len());
    }
}

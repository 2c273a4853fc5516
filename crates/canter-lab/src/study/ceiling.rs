//! Ceilings: statistics that a change must not exceed. Ratios to another method in the same run, or instructions in the
//! virtual clock; never times of a real machine.

use super::{claim::Statistic, rules::Rules};
use canter_cli::failure::{self, Failure};
use canter_measure::result::{ResultFile, Series};
use serde::Deserialize;
use std::fmt;

/// A bound on one statistic of one method.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ceiling {
    pub study: String,
    method: String,
    #[serde(rename = "figure")]
    statistic: Statistic,
    /// The series with these rules; unless given, the method's first series.
    rules: Option<Rules>,
    /// The method whose statistic divides this one; unless given, the ceiling is in ns.
    over: Option<String>,
    /// The rules with which the method's own statistic divides this one.
    over_rules: Option<Rules>,
    /// The rules with which the method's own statistic is subtracted from this one.
    above_rules: Option<Rules>,
    at_most: f64,
    /// The kernels to which the ceiling applies, as `6.12` or `6.12-rt`; all unless given.
    #[serde(default)]
    kernels: Vec<String>,
}

/// A ceiling with the measured statistic.
pub struct Check {
    ceiling: Ceiling,
    /// The statistic, or the reason why it is missing, which counts as exceeded.
    measured: Result<f64, String>,
}

impl Ceiling {
    /// The table of ceilings.
    pub fn all() -> failure::Result<Vec<Self>> {
        #[derive(Deserialize)]
        struct Table {
            ceiling: Vec<Ceiling>,
        }
        let table: Table = toml::from_str(include_str!("ceilings.toml"))
            .map_err(|error| Failure::failed(format!("ceilings.toml: {}", error.message())))?;
        Ok(table.ceiling)
    }

    /// Whether the ceiling applies to this kernel, in the words of [`Environment`](canter_measure::result::Environment).
    pub fn is_for(&self, kernel: &str) -> bool {
        let is_this = |wanted: &String| {
            let series = wanted.strip_suffix("-rt");
            let realtime = kernel.contains("PREEMPT_RT");
            kernel.starts_with(&format!("{}.", series.unwrap_or(wanted))) && realtime == series.is_some()
        };
        self.kernels.is_empty() || self.kernels.iter().any(is_this)
    }

    /// Checks the ceiling against a result. Of a method that receives and sends, the receiving series counts.
    pub fn check(&self, result: &ResultFile) -> Check {
        Check { ceiling: self.clone(), measured: self.measured(result) }
    }

    fn measured(&self, result: &ResultFile) -> Result<f64, String> {
        let statistic = |method: &str, rules: Option<&Rules>| {
            let is_it = |series: &&Series| {
                series.method == method && rules.is_none_or(|rules| rules.are_of(&series.condition))
            };
            let series = result.series.iter().find(is_it).ok_or("no such series")?;
            self.statistic.as_measured(series, None).map(|estimate| estimate.value)
        };
        let (method, rules) = (self.method.as_str(), self.rules.as_ref());
        let value = statistic(method, rules)?;
        Ok(match (&self.over, &self.over_rules, &self.above_rules) {
            (None, None, None) => value,
            (None, None, above) => value - statistic(method, above.as_ref())?,
            (over, over_rules, _) => {
                value / statistic(over.as_deref().unwrap_or(method), over_rules.as_ref().or(rules))?
            }
        })
    }
}

impl Check {
    pub fn is_kept(&self) -> bool {
        self.measured.as_ref().is_ok_and(|&measured| measured <= self.ceiling.at_most)
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ceiling { method, statistic, rules, over, over_rules, above_rules, at_most, .. } = &self.ceiling;
        let mut name = format!("{method} {statistic:?}").to_lowercase();
        if let Some(rules) = rules {
            name += &format!(" {rules}");
        }
        name += &match (over, over_rules, above_rules) {
            (Some(over), ..) => format!(" over {over}"),
            (_, Some(rules), _) => format!(" over {rules}"),
            (.., Some(rules)) => format!(" above {rules}, ns"),
            _ => ", ns".to_owned(),
        };
        let verdict = if self.is_kept() { "kept" } else { "EXCEEDED" };
        match &self.measured {
            Ok(measured) => write!(f, "{name:<42} {measured:>8.3}  ceiling {at_most:>6.2}  {verdict}"),
            Err(why) => write!(f, "{name:<42}  missing ({why})  ceiling {at_most:>6.2}  {verdict}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::definition::{Kind, Study},
        *,
    };
    use canter_io::method::ReceiveMethod;
    use canter_measure::result::{Environment, Latency, SCHEMA};

    fn result(medians: &[(&str, u64)]) -> ResultFile {
        let series = medians.iter().map(|(method, p50)| Series {
            method: (*method).to_owned(),
            latency_ns: Some(Latency { count: 100, buckets: vec![[*p50, 100]], ..Latency::default() }),
            ..Series::default()
        });
        ResultFile {
            schema: SCHEMA,
            study: String::new(),
            title: String::new(),
            command: String::new(),
            environment: Environment::default(),
            series: series.collect(),
        }
    }

    fn ceiling(text: &str) -> Ceiling {
        toml::from_str(&format!("study = 'x'\n{text}")).expect("it reads")
    }

    #[test]
    fn every_ceiling_is_of_a_method_that_its_study_measures() {
        let all = Ceiling::all().unwrap_or_else(|failure| panic!("{failure}"));
        assert!(!all.is_empty());
        for ceiling in all {
            let study = Study::find(&ceiling.study).unwrap_or_else(|failure| panic!("{failure}"));
            let measures = match study.kind {
                Kind::Latency(plan) => plan.methods.contains(&ceiling.method),
                Kind::Syscalls(_) => ceiling.method.parse::<ReceiveMethod>().is_ok(),
                _ => false,
            };
            assert!(measures, "{ceiling:?}");
            assert!(ceiling.kernels.iter().all(|kernel| study.lab.kernels.contains(kernel)), "{ceiling:?}");
        }
    }

    #[test]
    fn statistics_of_one_method_with_different_rules_are_compared() {
        let mut result = result(&[("a", 1000), ("a", 1040), ("b", 7), ("a", 1100)]);
        for (series, rules) in result.series.iter_mut().zip(["all", "sff=80", "sff=80", "crc8"]) {
            rules.parse::<Rules>().expect("they are rules").mark(&mut series.condition);
        }
        let holds = |line: &str, at_most: &str| {
            let text = format!("method = 'a'\nfigure = 'p50'\n{line}\nat_most = {at_most}");
            ceiling(&text).check(&result).is_kept()
        };
        assert!(holds("rules = 'sff=80'\nover_rules = 'all'", "1.04"));
        assert!(!holds("rules = 'sff=80'\nover_rules = 'all'", "1.03"));
        assert!(holds("rules = 'crc8'\nabove_rules = 'sff=80'", "60.0"));
        assert!(!holds("rules = 'crc8'\nabove_rules = 'sff=80'", "59.0"));
        assert!(!holds("rules = 'sff=81'\nover_rules = 'all'", "9.0"), "not measured");
        assert!(
            toml::from_str::<Ceiling>(
                "study = 'x'\nmethod = 'a'\nfigure = 'p50'\nrules = 'rain'\nat_most = 1.0"
            )
            .is_err()
        );
    }

    #[test]
    fn a_ceiling_applies_to_the_kernels_that_it_names() {
        let text = "method = 'a'\nfigure = 'p50'\nover = 'b'\nat_most = 1.5\n";
        let some = ceiling(&format!("{text}kernels = ['6.12-rt', '6.1']"));
        let applies = |kernel: &str| some.is_for(kernel);
        assert!(
            applies("6.12.117-rt-amd64 #1 SMP PREEMPT_RT Debian")
                && applies("6.1.0-56-amd64 #1 SMP PREEMPT_DYNAMIC")
        );
        assert!(
            !applies("6.12.117-amd64 #1 SMP PREEMPT_DYNAMIC")
                && !applies("6.1.0-56-rt-amd64 #1 SMP PREEMPT_RT")
        );
        assert!(ceiling(text).is_for("7.2.0"));
    }

    #[test]
    fn a_ceiling_is_kept_up_to_its_bound_and_exceeded_above() {
        let ceiling = ceiling("method = 'a'\nfigure = 'p50'\nover = 'b'\nat_most = 1.5");
        assert!(ceiling.check(&result(&[("a", 150), ("b", 100)])).is_kept());
        assert!(!ceiling.check(&result(&[("a", 151), ("b", 100)])).is_kept());
    }

    #[test]
    fn a_missing_statistic_exceeds_its_ceiling() {
        let ceiling = ceiling("method = 'a'\nfigure = 'p50'\nover = 'b'\nat_most = 1.5");
        let check = ceiling.check(&result(&[("a", 150)]));
        assert!(!check.is_kept());
        assert!(check.to_string().contains("missing (no such series)"), "{check}");
    }
}

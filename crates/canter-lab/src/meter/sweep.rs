//! Latency and loss against the period between frames: at given periods (2014, figures 4.3 and 4.4), or at the
//! periods around the first loss, which a search finds.

use super::{
    instrument::{Setup, UNSET_PERIOD},
    measurement::{self, Measured},
    through::{self, Through},
};
use canter_cli::{
    duration,
    failure::{self, Exit, Failure},
    options::Common,
    terminal::{Ink, PLAIN, Table, YELLOW},
    units,
};
use canter_io::Interface;
use canter_measure::result::{Lost, Series};
use canter_route::traffic::pattern::Traffic;
use std::str::FromStr;

/// Periods, from the first to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sweep {
    from_ns: u64,
    to_ns: u64,
    step_ns: u64,
}

/// The number of steps of a sweep without a step.
const STEPS: u64 = 8;

/// The maximum number of periods: more mean a wrong unit.
const PERIODS_MAX: u64 = 1000;

impl FromStr for Sweep {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (range, step) = text.split_once('/').map_or((text, None), |(range, step)| (range, Some(step)));
        let (from, to) =
            range.split_once("..").ok_or("expected FROM..TO or FROM..TO/STEP: 160us..120us/5us")?;
        let (from_ns, to_ns) = (duration::parse_ns(from)?, duration::parse_ns(to)?);
        let range_ns = from_ns.abs_diff(to_ns);
        let step_ns = step.map_or(Ok((range_ns / STEPS).max(1)), duration::parse_ns)?;
        if from_ns.min(to_ns) == 0 || step_ns == 0 {
            return Err("periods and their step must be above 0".to_owned());
        }
        if range_ns / step_ns >= PERIODS_MAX {
            return Err(format!("at most {PERIODS_MAX} periods"));
        }
        Ok(Self { from_ns, to_ns, step_ns })
    }
}

impl Sweep {
    /// The periods of the sweep, in ns.
    fn periods(&self) -> Vec<u64> {
        let &Self { from_ns, to_ns, step_ns } = self;
        let steps = 0..=from_ns.abs_diff(to_ns) / step_ns;
        steps.map(|n| if from_ns > to_ns { from_ns - n * step_ns } else { from_ns + n * step_ns }).collect()
    }
}

/// The precision of the search: 1/100 of a period.
const SEARCHED_TO: u64 = 100;

/// The longest period of the search. A method that loses frames there loses them at any period.
const PERIOD_MAX_NS: u64 = 100_000_000;

/// Series with their interfaces.
#[derive(Default)]
pub struct Measurements {
    pub series: Vec<Series>,
    pub interfaces: Vec<Interface>,
    pub interrupted: bool,
}

impl Measurements {
    fn add(&mut self, measured: Measured) {
        self.interrupted |= measured.interrupted;
        for interface in measured.interfaces {
            if self.interfaces.iter().all(|known| known.name != interface.name) {
                self.interfaces.push(interface);
            }
        }
        self.series.push(measured.series);
    }
}

/// The methods and conditions to measure.
pub struct Campaign<'a> {
    pub setup: &'a Setup,
    pub through: &'a Through,
    /// The name of a gateway that canter did not start.
    pub name: &'a str,
    pub common: &'a Common,
}

impl Campaign<'_> {
    /// Measures every method with the traffic of the command line.
    pub fn once(&self) -> failure::Result<Measurements> {
        self.each(|method, found| self.measure(method, self.setup.traffic, found))
    }

    /// Measures every method at every period.
    pub fn sweep(&self, sweep: &Sweep) -> failure::Result<Measurements> {
        self.each(|method, found| {
            for period_ns in sweep.periods() {
                self.measure(method, Traffic::Period(period_ns), found)?;
                if found.interrupted {
                    break;
                }
            }
            Ok(())
        })
    }

    /// Measures two series per method: at the longest period with losses, and at the shortest period without, which is
    /// a hundredth longer. A method without losses has one series, at the bus's limit.
    pub fn first_loss(&self) -> failure::Result<Measurements> {
        let limit_ns = measurement::frame_ns(self.setup)?;
        self.each(|method, found| {
            let mut probes = Measurements::default();
            let ends = search(limit_ns, |period_ns| {
                self.measure(method, Traffic::Period(period_ns), &mut probes)?;
                let series = probes.series.last().expect("it was just measured");
                Ok((!probes.interrupted).then_some(series.ledger.lost.total() > 0))
            })?;
            let probed = |period_ns: &u64| {
                probes.series.iter().find(|series| series.condition.period_ns == *period_ns).cloned()
            };
            found.series.extend(ends.iter().filter_map(probed));
            found.interfaces = probes.interfaces;
            found.interrupted |= probes.interrupted;
            Ok(())
        })
    }

    fn each(
        &self,
        mut measure: impl FnMut(Option<&str>, &mut Measurements) -> failure::Result<()>,
    ) -> failure::Result<Measurements> {
        let mut found = Measurements::default();
        let methods = self.through.methods()?;
        let several = methods.len() > 1;
        for method in methods {
            match measure(method.as_deref(), &mut found) {
                // A method that cannot work here, or forwards nothing, gets the reason; the others are measured.
                Err(failure) if several && matches!(failure.exit, Exit::Unable | Exit::Lost) => {
                    let method = method.as_deref().unwrap_or(self.name);
                    found.series.push(through::unavailable(method, self.setup, failure.message));
                }
                outcome => outcome?,
            }
            if found.interrupted {
                break;
            }
        }
        Ok(found)
    }

    fn measure(
        &self,
        method: Option<&str>,
        traffic: Traffic,
        found: &mut Measurements,
    ) -> failure::Result<()> {
        let setup = Setup { traffic, ..self.setup.clone() };
        let mut measured = self.through.measure(method, &setup, self.common)?;
        if method.is_none() {
            measured.series.method = self.name.to_owned();
        }
        found.add(measured);
        Ok(())
    }
}

/// The longest period with losses and the shortest without, a hundredth apart. Only the latter when none are lost at
/// `limit_ns`; only the former when some are lost at [`PERIOD_MAX_NS`]. `loses` returns `None` to end the search.
pub fn search(
    limit_ns: u64,
    mut loses: impl FnMut(u64) -> failure::Result<Option<bool>>,
) -> failure::Result<Vec<u64>> {
    let (mut losing_ns, mut losing) = (limit_ns, loses(limit_ns)?);
    if losing != Some(true) {
        return Ok(vec![limit_ns]);
    }
    let mut kept_ns = limit_ns;
    while losing == Some(true) {
        losing_ns = kept_ns;
        if kept_ns >= PERIOD_MAX_NS {
            return Ok(vec![losing_ns]);
        }
        kept_ns = (2 * kept_ns).min(PERIOD_MAX_NS);
        losing = loses(kept_ns)?;
    }
    while losing.is_some() && kept_ns - losing_ns > (losing_ns / SEARCHED_TO).max(1) {
        let middle_ns = losing_ns.midpoint(kept_ns);
        losing = loses(middle_ns)?;
        match losing {
            Some(true) => losing_ns = middle_ns,
            Some(false) => kept_ns = middle_ns,
            None => {}
        }
    }
    Ok(vec![losing_ns, kept_ns])
}

/// The losses by place, in words: `12 controller, 3 gateway`.
fn places(lost: &Lost) -> String {
    let Lost { controller, backlog, socket, qdisc, gateway, meter, unaccounted } = *lost;
    let places = [
        (controller, "controller"),
        (backlog, "backlog"),
        (socket, "socket"),
        (qdisc, "qdisc"),
        (gateway, "gateway"),
        (meter, "meter"),
        (unaccounted, "unaccounted"),
    ];
    let lost = places.iter().filter(|(count, _)| *count > 0);
    lost.map(|(count, place)| format!("{} {place}", units::grouped(*count))).collect::<Vec<_>>().join(", ")
}

/// A line per series: period, latency in µs, losses by place.
pub fn table(series: &[Series]) -> String {
    let mut table = Table::new(&["<method", "period µs", "p50", "max", "lost", "<where"]);
    let us = |ns: u64| format!("{:.1}", units::us(ns));
    let plain = |text: String| (text, PLAIN);
    let mut last = "";
    for one in series {
        let latency = one.latency_ns.as_ref().filter(|latency| latency.count > 0);
        let figure = |figure: fn(&canter_measure::result::Latency) -> u64| {
            plain(latency.map_or(String::new(), |latency| us(figure(latency))))
        };
        let lost = one.ledger.lost.total();
        let losses =
            if one.unavailable.is_empty() { places(&one.ledger.lost) } else { one.unavailable.clone() };
        table.row([
            plain(if one.method == last { String::new() } else { one.method.clone() }),
            plain(if one.condition.period_ns == 0 { String::new() } else { us(one.condition.period_ns) }),
            figure(|latency| latency.p50),
            figure(|latency| latency.max),
            (units::grouped(lost), if lost > 0 { YELLOW } else { PLAIN }),
            plain(losses),
        ]);
        last = &one.method;
    }
    let mut text = String::new();
    table.print(&mut text, Ink::for_stdout());
    text
}

/// Refuses a period without a value, and `--sweep` or `--first-loss` with another traffic.
pub fn refuse_traffic(setup: &Setup, varies_period: bool) -> failure::Result<()> {
    let default = setup.traffic == Traffic::OneAtATime;
    let wrong = match setup.traffic {
        UNSET_PERIOD if !varies_period => {
            "--traffic period: no value (period=120us, or --sweep 160us..120us)"
        }
        traffic if varies_period && traffic != UNSET_PERIOD && !default => {
            "--sweep and --first-loss need --traffic period"
        }
        _ => return Ok(()),
    };
    Err(Failure::new(Exit::Usage, wrong))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_is_read_in_either_direction_and_has_both_ends() {
        let periods = |text: &str| text.parse::<Sweep>().map(|sweep| sweep.periods());
        let nine = (0..=8).map(|n| 160_000 - n * 5_000).collect::<Vec<_>>();
        assert_eq!(periods("160us..120us"), Ok(nine.clone()));
        assert_eq!(periods("120us..160us"), Ok(nine.into_iter().rev().collect()));
        assert_eq!(periods("1ms..1ms"), Ok(vec![1_000_000]));
        assert_eq!(periods("10us..20us/4us"), Ok(vec![10_000, 14_000, 18_000]));
        for text in ["", "160us", "160us..", "0us..9us", "1us..2us/0us", "1ms..2s/1us", "160..120"] {
            assert!(periods(text).is_err(), "{text}");
        }
    }

    /// The search's result for a gateway that loses frames up to a period, and its number of measurements.
    fn found(limit_ns: u64, loses_up_to_ns: u64) -> (Vec<u64>, u32) {
        let mut asked = 0;
        let periods = search(limit_ns, |period_ns| {
            asked += 1;
            Ok(Some(period_ns <= loses_up_to_ns))
        });
        (periods.unwrap_or_else(|failure| panic!("{failure}")), asked)
    }

    #[test]
    fn a_search_ends_a_hundredth_on_either_side_of_the_first_loss() {
        assert_eq!(found(67_000, 0), (vec![67_000], 1));
        for edge_ns in [67_000, 67_001, 100_000, 133_999, 134_000, 99_999_999] {
            let (periods, asked) = found(67_000, edge_ns);
            let [losing, kept] = periods[..] else { panic!("{periods:?}") };
            assert!(losing <= edge_ns && edge_ns < kept, "{periods:?}");
            assert!(kept - losing <= losing / 100 && asked < 20, "{periods:?}, {asked} measurements");
        }
        assert_eq!(found(67_000, u64::MAX), (vec![PERIOD_MAX_NS], 12));
    }

    #[test]
    fn an_interrupted_search_measures_nothing_more() {
        let mut asked = 0;
        let mut loses = |_| {
            asked += 1;
            Ok((asked < 3).then_some(true))
        };
        assert!(search(1_000, &mut loses).is_ok());
        assert_eq!(asked, 3);
    }

    #[test]
    fn losses_are_listed_by_place() {
        let lost = Lost { controller: 1200, gateway: 3, ..Lost::default() };
        assert_eq!(places(&lost), "1\u{202f}200 controller, 3 gateway");
        assert_eq!(places(&Lost::default()), "");
    }
}

//! Latencies and losses against the varied number: the data of the drawing in `sweep`.

use crate::report::ranking::{self, Latencies};
use canter_measure::result::Condition;

/// The minimum number of values for a drawing.
const VALUES_MIN: usize = 3;
/// A series at one value.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    pub at: u64,
    pub min: u64,
    pub p50: u64,
    pub p90: u64,
    /// Lost frames as a share of the sent frames.
    pub lost: f64,
}

/// One method under conditions that differ only in the varied number.
pub struct MethodLine {
    pub label: String,
    pub points: Vec<Point>,
}

/// The data of one drawing.
pub struct Sweep {
    /// The varied number's name: `period`, `filters`.
    pub axis: String,
    pub unit: String,
    pub condition: String,
    pub lines: Vec<MethodLine>,
}

impl Sweep {
    /// The sweeps in these latencies of a result.
    pub fn of(latencies: &[Latencies<'_>]) -> Vec<Self> {
        let mut sweeps: Vec<(Condition, Self)> = Vec::new();
        for group in latencies {
            let Some((axis, unit, at, rest)) = axis(group.condition) else { continue };
            let same = |sweep: &&mut (Condition, Self)| {
                sweep.1.axis == axis && ranking::same_condition(&sweep.0, &rest)
            };
            let sweep = match sweeps.iter_mut().find(same) {
                Some(sweep) => sweep,
                None => {
                    let condition =
                        ranking::describe(&Condition { traffic: described_traffic(&rest), ..rest.clone() });
                    sweeps.push((rest, Self { axis, unit, condition, lines: Vec::new() }));
                    sweeps.last_mut().expect("it was just pushed")
                }
            };
            sweep.1.add(group, at);
        }
        let mut sweeps: Vec<Self> = sweeps.into_iter().map(|(_, sweep)| sweep).collect();
        for sweep in &mut sweeps {
            sweep.lines.retain(|line| line.points.len() >= VALUES_MIN);
            sweep.lines.iter_mut().for_each(|line| line.points.sort_by_key(|point| point.at));
        }
        sweeps.retain(|sweep| !sweep.lines.is_empty());
        sweeps
    }

    fn add(&mut self, group: &Latencies<'_>, at: u64) {
        for row in group.rows.iter().filter(|row| row.repeat <= 1) {
            let label = ranking::label(row.series);
            let variant = &group.condition.variant;
            let label = if variant.is_empty() { label } else { format!("{label}, {variant}") };
            let place = self.lines.iter().position(|line| line.label == label).unwrap_or_else(|| {
                self.lines.push(MethodLine { label, points: Vec::new() });
                self.lines.len() - 1
            });
            let (latency, ledger) = (row.measured, &row.series.ledger);
            let lost = ledger.lost.total() as f64 / ledger.sent.max(1) as f64;
            self.lines[place].points.push(Point {
                at,
                min: latency.min,
                p50: latency.p50,
                p90: latency.p90,
                lost,
            });
        }
    }
}

/// The name, unit and value of the number that a condition varies, and the condition without it.
fn axis(condition: &Condition) -> Option<(String, String, u64, Condition)> {
    match &condition.varied {
        Some(varied) => {
            let rest = Condition { varied: None, variant: String::new(), ..condition.clone() };
            Some((varied.name.clone(), varied.unit.clone(), varied.value, rest))
        }
        None if condition.traffic == "period" => {
            let rest = Condition { period_ns: 0, variant: String::new(), ..condition.clone() };
            Some(("period".into(), "ns".into(), condition.period_ns, rest))
        }
        None => None,
    }
}

/// The traffic for the title; empty when its period is the axis.
fn described_traffic(rest: &Condition) -> String {
    if rest.traffic == "period" && rest.period_ns == 0 { String::new() } else { rest.traffic.clone() }
}

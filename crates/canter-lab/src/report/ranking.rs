//! The order of the series: grouped by condition, fastest first, each with its ratio to the reference row.

use crate::report::family::Family;
use canter_cli::units::{self, Unit};
use canter_measure::{
    drawing::plot,
    result::{Condition, Cost, Latency, RECEIVING, RECORDING, ResultFile, Series, Varied},
};

/// The reference for the others: the kernel's gateway, otherwise the simplest method.
const LATENCY_REFERENCES: [&str; 3] = ["can-gw", "read+write", "read"];
const COST_REFERENCES: [&str; 2] = ["read", "write"];

/// One measured series, at its rank.
pub struct Ranked<'a, Measured> {
    pub series: &'a Series,
    pub measured: &'a Measured,
    pub family: Family,
    /// The number of series of the same family before this one, which selects the line's shade and dashes.
    pub nth: usize,
    /// The index among all series of the page.
    pub id: usize,
    /// The number of the repeat, from 1; 0 without repeats.
    pub repeat: usize,
}

impl<Measured> Ranked<'_, Measured> {
    /// The method, with the batch where one call moves several frames.
    pub fn label(&self) -> String {
        match self.repeat {
            0 => label(self.series),
            n => format!("{} #{n}", label(self.series)),
        }
    }

    /// The class of the line, bar and badge.
    pub fn class(&self) -> String {
        plot::varied(&plot::varied(self.family.class(), "shade", self.nth % 3), "dash", self.nth / 3 % 4)
    }

    pub fn paper_ns(&self) -> Option<u64> {
        self.series.paper.as_ref().map(|paper| paper.ns).filter(|&ns| ns > 0)
    }
}

/// The latencies, or other times, under one condition.
pub struct Latencies<'a> {
    pub condition: &'a Condition,
    /// The measured quantity; empty: the latency of a gateway.
    pub quantity: &'a str,
    /// The series, ascending by median; without those whose numbers contradict each other.
    pub rows: Vec<Ranked<'a, Latency>>,
    /// Series of which no frame arrived.
    pub silent: Vec<&'a Series>,
    /// Series whose numbers contradict each other.
    pub faulty: Vec<&'a Series>,
}

impl<'a> Latencies<'a> {
    /// One group per condition, in order of occurrence; the result's first series has index `base` on the page.
    pub fn numbered(result: &'a ResultFile, base: usize) -> Vec<Self> {
        let mut groups: Vec<Self> = Vec::new();
        for (n, series) in
            result.series.iter().enumerate().filter(|(_, series)| series.unavailable.is_empty())
        {
            let Some(measured) = &series.latency_ns else { continue };
            let same = |group: &Self| {
                group.quantity == series.quantity && same_condition(group.condition, &series.condition)
            };
            let place = groups.iter().position(same).unwrap_or_else(|| {
                groups.push(Self::empty(series));
                groups.len() - 1
            });
            let group = &mut groups[place];
            match (series.fault(), measured.count) {
                (Some(_), _) => group.faulty.push(series),
                (None, 0) => group.silent.push(series),
                _ => group.rows.push(Ranked {
                    series,
                    measured,
                    family: Family::of(&series.method),
                    nth: 0,
                    id: base + n,
                    repeat: 0,
                }),
            }
        }
        for group in &mut groups {
            number_repeats(&mut group.rows);
            group.rows.sort_by_key(|row| row.measured.p50);
            number_families(&mut group.rows);
        }
        groups
    }

    fn empty(series: &'a Series) -> Self {
        let (condition, quantity) = (&series.condition, series.quantity.as_str());
        Self { condition, quantity, rows: Vec::new(), silent: Vec::new(), faulty: Vec::new() }
    }

    /// The name of the quantity: `latency`, `round-trip`.
    pub fn quantity(&self) -> &'a str {
        if self.quantity.is_empty() { "latency" } else { self.quantity }
    }

    /// The unit of all times of the group.
    pub fn unit(&self) -> Unit {
        Unit::for_smallest(self.rows.iter().map(|row| row.measured.p50))
    }

    /// Every measured series of the group: the rows, those of which no frame arrived, those with a fault.
    pub fn series(&self) -> impl Iterator<Item = &'a Series> {
        let others = self.silent.iter().chain(&self.faulty).copied();
        self.rows.iter().map(|row| row.series).chain(others)
    }

    pub fn reference(&self) -> Option<&Ranked<'a, Latency>> {
        let of_name = |name: &&str| self.rows.iter().find(|row| row.series.method == *name);
        LATENCY_REFERENCES.iter().find_map(of_name)
    }

    /// The label of the reference, `can-gw`; empty without one.
    pub fn reference_name(&self) -> &'a str {
        self.reference().map_or("", |row| row.series.method.as_str())
    }

    pub fn ratio(&self, row: &Ranked<'_, Latency>) -> Option<String> {
        units::ratio(row.measured.p50, self.reference()?.measured.p50)
    }

    pub fn paper_ratio(&self, row: &Ranked<'_, Latency>) -> Option<String> {
        units::ratio(row.paper_ns()?, self.reference()?.paper_ns()?)
    }

    /// A time of the paper, scaled so that the paper's reference equals ours: the ratio stays the same.
    pub fn paper_scaled(&self, row: &Ranked<'_, Latency>, paper_ns: Option<u64>) -> Option<u64> {
        let reference = self.reference()?;
        row.paper_ns()?;
        let scaled = u128::from(paper_ns?) * u128::from(reference.measured.p50);
        u64::try_from(scaled / u128::from(reference.paper_ns()?)).ok()
    }
}

/// The costs of system calls in one direction.
pub struct Costs<'a> {
    /// The direction: `receive` or `send`.
    pub direction: &'a str,
    /// The series, ascending by the cost of the call, as in the 2014 paper.
    pub rows: Vec<Ranked<'a, Cost>>,
}

impl<'a> Costs<'a> {
    /// The costs of each direction, in the order in which the directions occur.
    pub fn of(result: &'a ResultFile) -> Vec<Self> {
        let mut groups: Vec<Self> = Vec::new();
        for (id, series) in result.series.iter().enumerate().filter(|(_, series)| series.is_valid()) {
            let Some(measured) = &series.cost_ns else { continue };
            let direction = direction(&series.condition);
            let place = groups.iter().position(|group| group.direction == direction).unwrap_or_else(|| {
                groups.push(Self { direction, rows: Vec::new() });
                groups.len() - 1
            });
            let family = Family::of(&series.method);
            groups[place].rows.push(Ranked { series, measured, family, nth: 0, id, repeat: 0 });
        }
        for group in &mut groups {
            number_repeats(&mut group.rows);
            group.rows.sort_by_key(|row| row.measured.per_frame);
            group.rows.iter_mut().enumerate().for_each(|(n, row)| row.nth = n);
        }
        groups
    }

    /// The unit of all times of the group.
    pub fn unit(&self) -> Unit {
        Unit::for_calls(self.rows.iter().map(|row| row.measured.per_frame))
    }

    pub fn reference(&self) -> Option<&Ranked<'a, Cost>> {
        self.rows.iter().find(|row| COST_REFERENCES.contains(&row.series.method.as_str()))
    }

    pub fn ratio(&self, row: &Ranked<'_, Cost>) -> Option<String> {
        units::ratio(row.measured.per_frame, self.reference()?.measured.per_frame)
    }

    pub fn paper_ratio(&self, row: &Ranked<'_, Cost>) -> Option<String> {
        units::ratio(row.paper_ns()?, self.reference()?.paper_ns()?)
    }

    /// The class of a series: colours by rank, because the way of waiting hardly matters here.
    pub fn class(row: &Ranked<'_, Cost>) -> String {
        plot::line_class(row.nth)
    }
}

/// Series without measurements.
pub struct Missing<'a> {
    /// The first of these series.
    pub series: &'a Series,
    pub why: &'a str,
    /// The direction; or the conditions, if the method was measured under others.
    pub under: String,
}

/// Series without measurements, with the reason; grouped by method and reason.
pub fn missing(result: &ResultFile) -> Vec<Missing<'_>> {
    let mut groups: Vec<Vec<&Series>> = Vec::new();
    for series in result.series.iter().filter(|series| is_missing(series)) {
        let alike = |group: &&mut Vec<&Series>| {
            is_alike(group[0], series) && group[0].unavailable == series.unavailable
        };
        match groups.iter_mut().find(alike) {
            Some(group) => group.push(series),
            None => groups.push(vec![series]),
        }
    }
    groups
        .into_iter()
        .map(|group| Missing {
            series: group[0],
            why: match group[0].unavailable.as_str() {
                "" => "the result file has no measurements and no reason",
                reason => reason,
            },
            under: under(result, &group),
        })
        .collect()
}

fn is_missing(series: &Series) -> bool {
    // The curves of all rates show these.
    let is_point = [RECORDING, RECEIVING].contains(&series.quantity.as_str());
    let measured =
        series.latency_ns.is_some() || series.cost_ns.is_some() || series.curve.is_some() || is_point;
    !series.unavailable.is_empty() || !measured
}

fn is_alike(one: &Series, other: &Series) -> bool {
    label(one) == label(other) && one.condition.direction == other.condition.direction
}

fn under(result: &ResultFile, group: &[&Series]) -> String {
    if !group[0].condition.direction.is_empty() {
        return group[0].condition.direction.clone();
    }
    let alike: Vec<&Series> = result.series.iter().filter(|series| is_alike(series, group[0])).collect();
    if alike.iter().all(|series| is_missing(series)) {
        return String::new();
    }
    let conditions: Vec<&Condition> = alike.iter().map(|series| &series.condition).collect();
    let words = alike.iter().zip(distinguish(&conditions));
    let words = words.filter(|(series, _)| group.iter().any(|one| std::ptr::eq(*one, **series)));
    words.map(|(_, words)| words).collect::<Vec<_>>().join("; ")
}

/// Series whose numbers contradict each other, with the reason.
pub fn faulty(result: &ResultFile) -> Vec<(&Series, String)> {
    let fault = |series| Some((series, Series::fault(series)?));
    result.series.iter().filter_map(fault).collect()
}

pub fn label(series: &Series) -> String {
    match series.condition.batch {
        0 | 1 => series.method.clone(),
        batch => format!("{} ×{batch}", series.method),
    }
}

fn direction(condition: &Condition) -> &str {
    if condition.direction.is_empty() { &condition.traffic } else { &condition.direction }
}

pub fn same_condition(a: &Condition, b: &Condition) -> bool {
    let key = |c: &Condition| (c.period_ns, c.load_percent, c.len);
    let more = a.variant == b.variant && a.varied == b.varied;
    key(a) == key(b) && a.traffic == b.traffic && idle(&a.load) == idle(&b.load) && more
}

pub fn idle(load: &str) -> &str {
    if load.is_empty() { "none" } else { load }
}

/// Series of the same name under the same condition.
fn number_repeats<Measured>(rows: &mut [Ranked<'_, Measured>]) {
    let labels: Vec<String> = rows.iter().map(|row| label(row.series)).collect();
    for (n, row) in rows.iter_mut().enumerate() {
        if labels.iter().filter(|label| **label == labels[n]).count() > 1 {
            row.repeat = labels[..n].iter().filter(|label| **label == labels[n]).count() + 1;
        }
    }
}

fn number_families<Measured>(rows: &mut [Ranked<'_, Measured>]) {
    for n in 0..rows.len() {
        rows[n].nth = rows[..n].iter().filter(|row| row.family == rows[n].family).count();
    }
}

/// The condition, preceded by the quantity unless that is a gateway's latency.
pub fn full(group: &Latencies<'_>) -> String {
    let condition = describe(group.condition);
    if group.quantity.is_empty() { condition } else { format!("{}: {condition}", group.quantity) }
}

/// The condition in words: `one frame at a time, 2 bytes`.
pub fn describe(condition: &Condition) -> String {
    parts(condition).join(", ")
}

/// For each condition the parts that not all conditions share: `2 048 filters, SFF`; empty when there are none.
pub fn distinguish(conditions: &[&Condition]) -> Vec<String> {
    let all: Vec<Vec<String>> = conditions.iter().map(|condition| parts(condition)).collect();
    let distinguishing_parts = |one: &Vec<String>| {
        let parts = one.iter().filter(|part| !all.iter().all(|other| other.contains(part)));
        parts.cloned().collect::<Vec<_>>().join(", ")
    };
    all.iter().map(distinguishing_parts).collect()
}

fn parts(condition: &Condition) -> Vec<String> {
    let mut parts = vec![match condition.traffic.as_str() {
        "one-at-a-time" => "one frame at a time".to_owned(),
        "period" => format!("a frame every {}", units::round_span(condition.period_ns)),
        "load" => format!("{} % bus load", condition.load_percent),
        "flood" => "as many frames as fit (flood)".to_owned(),
        other => match other.strip_prefix("burst=") {
            Some(frames) => format!("bursts of {frames} frames"),
            None => other.to_owned(),
        },
    }];
    parts.extend(condition.varied.as_ref().map(varied));
    parts.push(condition.variant.clone());
    if condition.len > 0 {
        parts.push(units::counted(condition.len.into(), "byte"));
    }
    if idle(&condition.load) != "none" {
        parts.push(format!("under {} load", condition.load));
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// The varied number in words: `2 048 filters`, `rate 10 000 frames/s`.
pub fn varied(varied: &Varied) -> String {
    let value = units::grouped(varied.value);
    match varied.unit.as_str() {
        "" if varied.value == 1 => format!("{value} {}", varied.name.trim_end_matches('s')),
        "" => format!("{value} {}", varied.name),
        "ns" => format!("{} {}", varied.name, units::round_span(varied.value)),
        unit => format!("{} {value} {unit}", varied.name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use canter_measure::result::{Environment, Latency};

    #[test]
    fn a_method_without_measurements_is_listed_once_per_reason() {
        let series = |method: &str, traffic: &str, unavailable: &str| {
            let condition = Condition { traffic: traffic.to_owned(), ..Condition::default() };
            let latency_ns = unavailable.is_empty().then(Latency::default);
            Series { latency_ns, ..Series::unavailable(method, condition, unavailable) }
        };
        let all = [("a", ""), ("b", "deaf")].into_iter().flat_map(|(method, in_a_burst)| {
            let both = [("one-at-a-time", "deaf"), ("flood", "deaf"), ("burst", in_a_burst)];
            both.map(|(traffic, unavailable)| series(method, traffic, unavailable))
        });
        let result = ResultFile { series: all.collect(), ..empty() };
        let listed: Vec<_> =
            missing(&result).into_iter().map(|one| (one.series.method.clone(), one.why, one.under)).collect();
        let under = "one frame at a time; as many frames as fit (flood)".to_owned();
        assert_eq!(listed, [("a".to_owned(), "deaf", under), ("b".to_owned(), "deaf", String::new())]);
    }

    fn empty() -> ResultFile {
        let (study, title, command) = Default::default();
        ResultFile {
            schema: 1,
            study,
            title,
            command,
            environment: Environment::default(),
            series: Vec::new(),
        }
    }
}

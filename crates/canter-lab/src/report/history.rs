//! `canter report --history FOLDER`: the cost of a frame kernel by kernel, and the steps between kernels. A row is one
//! statistic of one series; plain kernels and those for real time stand apart, each in the order of their releases.

mod lines;
mod text;

pub use lines::{HistoryView, view};
pub use text::text;

use super::{compare::Bound, files::natural, ranking};
use canter_cli::failure::{self, Exit, Failure};
use canter_measure::{
    result::{ClockKind, ResultFile, Series},
    statistics::{self, Confidence},
};
use std::collections::BTreeMap;

/// The results of several kernels.
pub struct History {
    pub flavours: Vec<Flavour>,
    pub bound: Bound,
}

/// Kernels that follow each other: the plain ones, or those for real time.
pub struct Flavour {
    pub realtime: bool,
    pub kernels: Vec<Kernel>,
    pub groups: Vec<Group>,
}

/// A kernel of the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// The series; the version, where two kernels are of one series: `6.12`, `6.12.117`.
    pub name: String,
    pub release: String,
}

/// Rows of one quantity under one condition.
pub struct Group {
    pub heading: String,
    pub rows: Vec<Row>,
}

/// A statistic over the kernels.
pub struct Row {
    pub label: String,
    /// A cell for each kernel; `None`: not measured there.
    pub cells: Vec<Option<Cell>>,
}

/// A statistic on one kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    pub ns: u64,
    /// The change since the previous kernel that was measured, as a share; `None`: this one is the first.
    pub change: Option<f64>,
    /// Whether the change exceeds the bound.
    pub is_step: bool,
}

impl History {
    /// The history in these results; refuses results of which no two can be compared.
    pub fn from_results(results: &[ResultFile], bound: Bound) -> failure::Result<Self> {
        let refuse = |why: &str| Failure::new(Exit::Usage, format!("report: no history: {why}"));
        let clocks = |result: &ResultFile| {
            (result.environment.clock, result.environment.word("canter.shift=").to_owned())
        };
        if results.windows(2).any(|pair| clocks(&pair[0]) != clocks(&pair[1])) {
            return Err(refuse("the results have different clocks"));
        }
        let flavours = [false, true].map(|realtime| Flavour::from_results(results, realtime, bound));
        let flavours: Vec<_> = flavours.into_iter().filter(|flavour| !flavour.kernels.is_empty()).collect();
        if flavours.iter().all(|flavour| flavour.kernels.len() < 2) {
            return Err(refuse("it needs results of two kernels, both plain or both PREEMPT_RT"));
        }
        Ok(Self { flavours, bound })
    }

    /// Each step, with its row and the two kernels.
    pub fn steps(&self) -> impl Iterator<Item = Step<'_>> {
        self.flavours.iter().flat_map(|flavour| {
            let rows = flavour.groups.iter().flat_map(|group| group.rows.iter().map(move |row| (group, row)));
            rows.flat_map(|(group, row)| row.steps(group, &flavour.kernels))
        })
    }
}

/// A change above the bound between two kernels.
pub struct Step<'a> {
    pub group: &'a Group,
    pub row: &'a Row,
    pub before: (&'a Kernel, u64),
    pub after: (&'a Kernel, u64),
    pub change: f64,
}

impl Row {
    fn steps<'a>(&'a self, group: &'a Group, kernels: &'a [Kernel]) -> impl Iterator<Item = Step<'a>> {
        let measured = kernels.iter().zip(&self.cells).filter_map(|(kernel, cell)| Some((kernel, (*cell)?)));
        let measured: Vec<_> = measured.collect();
        let pairs: Vec<_> = measured.windows(2).map(|pair| (pair[0], pair[1])).collect();
        let is_step = |(_, (_, cell)): &((_, _), (_, Cell))| cell.is_step;
        pairs.into_iter().filter(is_step).map(move |((before, old), (after, new))| Step {
            group,
            row: self,
            before: (before, old.ns),
            after: (after, new.ns),
            change: new.change.unwrap_or(0.0),
        })
    }
}

impl Flavour {
    fn from_results(results: &[ResultFile], realtime: bool, bound: Bound) -> Self {
        let has_flavour = |result: &&ResultFile| result.environment.flavour().ends_with("-rt") == realtime;
        let mut results: Vec<_> = results.iter().filter(has_flavour).collect();
        // What people route by stands before what explains it.
        results.sort_by_key(|result| result.series.iter().any(|series| series.cost_ns.is_some()));
        let mut releases: Vec<_> =
            results.iter().map(|result| result.environment.release().to_owned()).collect();
        releases.sort_by_cached_key(|release| natural(release));
        releases.dedup();
        let kernels: Vec<_> = names(&releases).into_iter().zip(releases).collect();
        let kernels: Vec<_> = kernels.into_iter().map(|(name, release)| Kernel { name, release }).collect();
        let groups = groups(&results, &kernels, bound);
        Self { realtime, kernels, groups }
    }
}

/// Short names of releases: the series, or the whole version where a series has several.
fn names(releases: &[String]) -> Vec<String> {
    let version = |release: &str| release.split(['-', '+']).next().unwrap_or(release).to_owned();
    let series = |release: &str| version(release).split('.').take(2).collect::<Vec<_>>().join(".");
    let several = |name: &str| releases.iter().filter(|release| series(release) == name).count() > 1;
    let name = |release: &String| match series(release) {
        name if several(&name) => version(release),
        name => name,
    };
    releases.iter().map(name).collect()
}

/// The rows in the order in which they occur; repeats of a kernel become their median.
fn groups(results: &[&ResultFile], kernels: &[Kernel], bound: Bound) -> Vec<Group> {
    let mut order: Vec<(String, String)> = Vec::new();
    let mut measured: BTreeMap<(String, String), Vec<Vec<u64>>> = BTreeMap::new();
    for result in results {
        let Some(at) = kernels.iter().position(|kernel| kernel.release == result.environment.release())
        else {
            continue;
        };
        for series in result.series.iter().filter(|series| series.is_valid()) {
            for (statistic, ns) in statistics(series) {
                let key = (heading(series, statistic), ranking::label(series));
                let places = measured.entry(key.clone()).or_insert_with(|| {
                    order.push(key);
                    vec![Vec::new(); kernels.len()]
                });
                places[at].push(ns);
            }
        }
    }
    let mut groups: Vec<Group> = Vec::new();
    for key in order {
        let Some(places) = measured.remove(&key) else { continue };
        let (heading, label) = key;
        let row = Row { label, cells: cells(places, bound) };
        match groups.iter_mut().find(|group| group.heading == heading) {
            Some(group) => group.rows.push(row),
            None => groups.push(Group { heading, rows: vec![row] }),
        }
    }
    groups
}

fn cells(places: Vec<Vec<u64>>, bound: Bound) -> Vec<Option<Cell>> {
    let mut before: Option<u64> = None;
    let cell = |mut repeats: Vec<u64>| {
        repeats.sort_unstable();
        let ns = *repeats.get(repeats.len() / 2)?;
        let change = before.filter(|&before| before > 0).map(|before| ns as f64 / before as f64 - 1.0);
        before = Some(ns);
        Some(Cell { ns, change, is_step: change.is_some_and(|change| change.abs() > bound.0) })
    };
    places.into_iter().map(cell).collect()
}

/// The statistics of a series that have a history, each with the beginning of its heading.
fn statistics(series: &Series) -> Vec<(&'static str, u64)> {
    if let Some(latency) = series.latency_ns.as_ref().filter(|latency| latency.count > 0) {
        // Of a few hundred frames a handful lies above it, and those tell nothing of the kernel.
        let rare = statistics::percentile(latency, 990, Confidence::ONE);
        let rare = rare.map(|estimate| ("99th percentile", estimate.value as u64));
        return [("median", latency.p50)].into_iter().chain(rare).collect();
    }
    let Some(cost) = &series.cost_ns else { return Vec::new() };
    let delivery = u64::try_from(cost.delivery).ok().map(|ns| ("delivery", ns));
    [Some(("call", cost.per_frame)), delivery].into_iter().flatten().collect()
}

/// The heading of a statistic: what is measured, and under which condition.
fn heading(series: &Series, statistic: &str) -> String {
    let condition = &series.condition;
    match (&series.cost_ns, series.quantity.as_str()) {
        (Some(_), _) if statistic == "call" => format!("{}, the call per frame", condition.direction),
        (Some(_), _) => format!("{}, delivery of a frame", condition.direction),
        (None, quantity) => {
            let quantity = if quantity.is_empty() { "latency" } else { quantity };
            let under = ranking::describe(condition);
            let colon = if under.is_empty() { "" } else { ": " };
            format!("{quantity}, {statistic}{colon}{under}")
        }
    }
}

/// The sentence about the clock of all times.
pub fn about(results: &[ResultFile]) -> &'static str {
    match results.first().map(|result| result.environment.clock) {
        Some(ClockKind::Virtual) => {
            "ns in the virtual clock: instructions of a frame's way, without caches and bus cycles."
        }
        _ => "ns.",
    }
}

#[cfg(test)]
mod tests;

//! The ladder: the median of every gateway, one frame at a time, as a multiple of can-gw's in the same run, for each
//! kernel. Medians of one study and one instrument share a panel; panels have other floors and are not compared.

mod drawing;

use crate::report::files::natural;
use crate::report::numbers::Numbers;
use crate::report::ranking::{self, Latencies, Ranked};
use canter_cli::units;
use canter_measure::drawing::marks;
use canter_measure::result::Latency;
use canter_measure::result::{Condition, ResultFile, Series};
use serde::Serialize;
use std::collections::BTreeMap;

/// The method with which all others are compared.
const REFERENCE: &str = "can-gw";
/// The minimum number of gateways of a ladder.
const RUNGS_MIN: usize = 3;
/// The maximum number of panels, as many as fit on a screen.
const PANELS_MAX: usize = 2;

/// The condition that a panel's medians share.
#[derive(Clone, PartialEq)]
struct Setting<'a> {
    study: &'a str,
    instrument: &'a str,
    clock: &'a str,
    shift: &'a str,
    processors: u32,
    len: u32,
}

/// The gateways of one study, the fastest first.
struct Panel<'a> {
    setting: Setting<'a>,
    rungs: Vec<Rung>,
    /// Kernels on which can-gw has no median.
    without_reference: Vec<String>,
}

/// A gateway.
struct Rung {
    gateway: String,
    /// The marks of every boot, by kernel.
    marks: BTreeMap<String, Vec<Mark>>,
}

#[derive(Clone)]
enum Mark {
    Measured(Measurement),
    /// Nothing can be drawn, for this reason.
    Nothing(String),
}

#[derive(Clone)]
struct Measurement {
    median: u64,
    p99: u64,
    /// can-gw's median.
    reference: u64,
    floor: Option<u64>,
    lost: u64,
    sent: u64,
}

impl Measurement {
    fn ratio(&self, ns: u64) -> f64 {
        ns as f64 / self.reference.max(1) as f64
    }

    /// `3 of 100 frames lost`; empty when none is.
    fn loss(&self) -> String {
        match self.lost {
            0 => String::new(),
            lost => format!("{} of {} lost", units::grouped(lost), units::counted(self.sent, "frame")),
        }
    }
}

impl Rung {
    /// The mark of several boots: that of the boot without a median, if there is one, or of the boot in the middle.
    fn mark(&self, kernel: &str) -> Option<Mark> {
        let boots = self.marks.get(kernel)?;
        if let Some(nothing) = boots.iter().find(|mark| matches!(mark, Mark::Nothing(_))) {
            return Some(nothing.clone());
        }
        let all = boots.iter().filter_map(|mark| match mark {
            Mark::Measured(measured) => Some(measured),
            Mark::Nothing(_) => None,
        });
        let mut all: Vec<&Measurement> = all.collect();
        all.sort_by(|a, b| a.ratio(a.median).total_cmp(&b.ratio(b.median)));
        let lost = all.iter().map(|measured| measured.lost).max()?;
        let middle = all[(all.len() - 1) / 2];
        Some(Mark::Measured(Measurement { lost, ..middle.clone() }))
    }

    fn measurement(&self, kernel: &str) -> Option<Measurement> {
        match self.mark(kernel)? {
            Mark::Measured(measured) => Some(measured),
            Mark::Nothing(_) => None,
        }
    }
}

impl<'a> Panel<'a> {
    /// Every study that measured gateways and can-gw one frame at a time on an idle machine.
    fn of_all(all: &'a [Numbers<'a>]) -> Vec<Self> {
        let mut panels: Vec<Self> = Vec::new();
        for numbers in all {
            for group in numbers.latencies.iter().filter(|group| is_plain(group)) {
                let setting = setting(numbers.result, group.condition);
                let place = panels.iter().position(|panel| panel.setting == setting).unwrap_or_else(|| {
                    panels.push(Self { setting, rungs: Vec::new(), without_reference: Vec::new() });
                    panels.len() - 1
                });
                panels[place].add(group, numbers.result.environment.flavour());
            }
        }
        panels.retain(|panel| panel.rungs.len() >= RUNGS_MIN);
        panels
    }

    fn add(&mut self, group: &Latencies<'_>, kernel: String) {
        let Some(reference) = group.rows.iter().find(|row| row.series.method == REFERENCE) else {
            return self.without_reference.push(kernel);
        };
        let reference = reference.measured.p50;
        for row in &group.rows {
            self.rung(row.series, &kernel).push(measured(row, reference));
        }
        for series in &group.silent {
            let lost = format!("lost all {}", units::counted(series.ledger.sent, "frame"));
            self.rung(series, &kernel).push(Mark::Nothing(lost));
        }
        for series in &group.faulty {
            let fault = series.fault().unwrap_or_default();
            self.rung(series, &kernel).push(Mark::Nothing(format!("invalid: {fault}")));
        }
    }

    /// The gateway's marks on a kernel.
    fn rung(&mut self, series: &Series, kernel: &str) -> &mut Vec<Mark> {
        let gateway = ranking::label(series);
        let place = self.rungs.iter().position(|rung| rung.gateway == gateway).unwrap_or_else(|| {
            self.rungs.push(Rung { gateway, marks: BTreeMap::new() });
            self.rungs.len() - 1
        });
        self.rungs[place].marks.entry(kernel.to_owned()).or_default()
    }

    fn marks(&self) -> usize {
        self.rungs.iter().map(|rung| rung.marks.len()).sum()
    }

    /// The gateways that no other panel has.
    fn new_beside(&self, others: &[Self]) -> usize {
        let known = |rung: &&Rung| {
            others.iter().any(|panel| panel.rungs.iter().any(|other| other.gateway == rung.gateway))
        };
        self.rungs.iter().filter(|rung| !known(rung)).count()
    }

    /// Sorts by the median on `kernel`; without one, by that of the newest other kernel.
    fn sort(&mut self, kernel: &str) {
        let key = |rung: &Rung| {
            let on_others = || rung.marks.keys().rev().find_map(|other| rung.measurement(other));
            let measured = rung.measurement(kernel).or_else(on_others);
            measured.map_or(f64::INFINITY, |measured| measured.ratio(measured.median))
        };
        self.rungs.sort_by(|a, b| key(a).total_cmp(&key(b)));
    }

    fn instrument(&self) -> &'a str {
        match self.setting.instrument {
            "" => "sockets",
            "probe" => "canprobe",
            "wire" => "virtual wires",
            other => other,
        }
    }

    /// `canprobe (probe-gateways: 8 bytes, 1 processor)`.
    fn heading(&self) -> String {
        let Setting { study, processors, len, .. } = self.setting;
        let instrument = self.instrument();
        let bytes = units::counted(len.into(), "byte");
        format!("{instrument} ({study}: {bytes}, {})", units::counted(processors.into(), "processor"))
    }
}

fn setting<'a>(result: &'a ResultFile, condition: &'a Condition) -> Setting<'a> {
    let environment = &result.environment;
    Setting {
        study: &result.study,
        instrument: &condition.instrument,
        clock: environment.clock.name(),
        shift: environment.word("canter.shift="),
        processors: environment.processors,
        len: condition.len,
    }
}

/// Whether a series has the latencies of a gateway, one frame at a time, on an idle machine.
fn is_plain(group: &Latencies<'_>) -> bool {
    let condition = group.condition;
    group.quantity.is_empty()
        && condition.traffic == "one-at-a-time"
        && ranking::idle(&condition.load) == "none"
        && condition.variant.is_empty()
        && condition.varied.is_none()
}

fn measured(row: &Ranked<'_, Latency>, reference: u64) -> Mark {
    let ledger = &row.series.ledger;
    Mark::Measured(Measurement {
        median: row.measured.p50,
        p99: row.measured.p99,
        reference,
        floor: row.series.floor_ns,
        lost: ledger.lost.total(),
        sent: ledger.sent,
    })
}

/// The panels of the picture, and their kernels: plain ones first, older ones first.
struct Ladder<'a> {
    panels: Vec<Panel<'a>>,
    kernels: Vec<String>,
}

impl<'a> Ladder<'a> {
    /// The panel with the most medians, then those that add most gateways.
    fn of(all: &'a [Numbers<'a>]) -> Option<Self> {
        let mut others = Panel::of_all(all);
        let mut panels: Vec<Panel<'a>> = Vec::new();
        while panels.len() < PANELS_MAX {
            let value = |panel: &Panel<'_>| match panels.is_empty() {
                true => (1, panel.marks()),
                false => (panel.new_beside(&panels), panel.marks()),
            };
            let best = (0..others.len()).rev().max_by_key(|&n| value(&others[n]));
            let Some(best) = best.filter(|&n| value(&others[n]).0 > 0) else { break };
            panels.push(others.remove(best));
        }
        let rungs = panels.iter().flat_map(|panel| &panel.rungs);
        let mut kernels: Vec<String> = rungs.flat_map(|rung| rung.marks.keys().cloned()).collect();
        kernels.sort_by_cached_key(|kernel| (is_realtime(kernel), natural(kernel)));
        kernels.dedup();
        let mut ladder = Self { panels, kernels };
        let newest = ladder.newest_plain().to_owned();
        ladder.panels.iter_mut().for_each(|panel| panel.sort(&newest));
        (!ladder.panels.is_empty()).then_some(ladder)
    }

    /// The newest kernel without RT, after which the gateways are sorted.
    fn newest_plain(&self) -> &str {
        let plain = self.kernels.iter().rev().find(|kernel| !is_realtime(kernel));
        plain.or(self.kernels.last()).map_or("", String::as_str)
    }
}

fn is_realtime(kernel: &str) -> bool {
    kernel.ends_with("-rt")
}

/// The ladder for the template.
#[derive(Serialize)]
pub struct LadderView {
    drawing: String,
    kernels: Vec<Key>,
    sorted_by: String,
    panels: Vec<PanelView>,
    /// Whether some frames were lost, or a series is invalid.
    troubled: bool,
    has_floor: bool,
    virtual_clock: bool,
}

/// A kernel in the legend.
#[derive(Serialize)]
struct Key {
    kernel: String,
    class: String,
    shape: String,
}

#[derive(Serialize)]
struct PanelView {
    heading: String,
    unit: &'static str,
    rows: Vec<GatewayRow>,
    without_reference: String,
}

/// A gateway on a kernel, in the table.
#[derive(Serialize)]
struct GatewayRow {
    gateway: String,
    kernel: String,
    /// Median, its multiple of can-gw's, p99, floor.
    numbers: Option<[String; 4]>,
    trouble: String,
}

/// The ladder in these results, if gateways were measured one frame at a time beside can-gw.
pub fn view(all: &[Numbers<'_>]) -> Option<LadderView> {
    let ladder = Ladder::of(all)?;
    let key = |(n, kernel): (usize, &String)| Key {
        kernel: kernel.clone(),
        class: marks::class(n),
        shape: marks::shape(n).path(),
    };
    let panels: Vec<PanelView> = ladder.panels.iter().map(|panel| table(panel, &ladder.kernels)).collect();
    let rows = || panels.iter().flat_map(|panel| &panel.rows);
    let floors = |row: &GatewayRow| row.numbers.as_ref().is_some_and(|numbers| !numbers[3].is_empty());
    Some(LadderView {
        drawing: drawing::draw(&ladder),
        kernels: ladder.kernels.iter().enumerate().map(key).collect(),
        sorted_by: ladder.newest_plain().to_owned(),
        troubled: rows().any(|row| !row.trouble.is_empty()),
        has_floor: rows().any(floors),
        virtual_clock: ladder.panels.iter().any(|panel| panel.setting.clock == "virtual"),
        panels,
    })
}

fn table(panel: &Panel<'_>, kernels: &[String]) -> PanelView {
    let drawn = |rung: &Rung, kernel: &str| rung.measurement(kernel).map(|measured| measured.median);
    let medians = panel.rungs.iter().flat_map(|rung| kernels.iter().filter_map(|one| drawn(rung, one)));
    let unit = units::Unit::for_smallest(medians);
    let row = |rung: &Rung, kernel: &String| {
        let (numbers, trouble) = match rung.mark(kernel)? {
            Mark::Nothing(why) => (None, why),
            Mark::Measured(measured) => {
                let floor = measured.floor.map(|floor| unit.number(floor)).unwrap_or_default();
                let ratio = units::ratio(measured.median, measured.reference).unwrap_or_default();
                let numbers = [unit.number(measured.median), ratio, unit.number(measured.p99), floor];
                (Some(numbers), measured.loss())
            }
        };
        Some(GatewayRow { gateway: rung.gateway.clone(), kernel: kernel.clone(), numbers, trouble })
    };
    let of_rung = |rung| kernels.iter().filter_map(move |kernel| row(rung, kernel));
    PanelView {
        heading: panel.heading(),
        unit: unit.name,
        rows: panel.rungs.iter().flat_map(of_rung).collect(),
        without_reference: panel.without_reference.join(", "),
    }
}

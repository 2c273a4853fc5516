//! `check`: applies the rules to a recording, by the gateway's engine and with the recording's stamps as its clock.

use crate::rules::{
    RouteRules, RuleSet,
    counts::Counts,
    engine::{Engine, RuleCounts},
    jobs, read,
};
use canter_cli::{
    document::Place,
    failure::{self, Exit},
    options::Common,
    trouble,
};
use canter_formats::Reader;
use canter_io::{Batch, LogLine, Meta};
use serde::Serialize;
use std::{io::Write, path::Path};

/// The effect of a route's rules on the recording.
#[derive(Serialize)]
struct Checked {
    from: String,
    to: String,
    counts: Counts,
    rules: Vec<CheckedRule>,
}

#[derive(Serialize)]
struct CheckedRule {
    name: String,
    line: usize,
    #[serde(flatten)]
    counts: RuleCounts,
    /// Why can-gw cannot apply the rule; empty when it can.
    not_by_can_gw: String,
}

struct Route {
    rules: RouteRules,
    engine: Engine,
    counts: Counts,
}

/// What to say about the recording.
#[derive(Default)]
struct Notes {
    lines: Vec<String>,
    /// The recording ends in the middle of an entry, or has frames that may not be whole.
    doubtful: bool,
}

pub fn run(file: &Path, log: Option<&Path>, frames: bool, common: &Common) -> failure::Result {
    let mut routes = routes(read::file(file)?);
    let mut batch = Batch::new(1);
    let notes = match log {
        Some(log) => apply(log, &mut routes, &mut batch, frames)?,
        None => Notes::default(),
    };
    let checked: Vec<_> = routes.into_iter().map(Checked::from_route).collect();
    common.write_json(&checked)?;
    if common.shows_table() && !frames {
        checked.iter().for_each(|route| print(route, log.is_some()));
    }
    if !common.quiet {
        notes.lines.iter().for_each(|line| eprintln!("rules: {line}"));
    }
    Ok(if notes.doubtful { Exit::Lost } else { Exit::Done })
}

/// The routes of the file; rules without a route apply to every frame.
fn routes(set: RuleSet) -> Vec<Route> {
    let loose = set.loose.map(|policy| {
        let any = || "any".to_owned();
        RouteRules { from: any(), to: any(), policy, place: Place::default() }
    });
    let route = |rules: RouteRules| {
        let engine = Engine::new(&rules.policy, 1);
        Route { rules, engine, counts: Counts::default() }
    };
    set.routes.into_iter().chain(loose).map(route).collect()
}

/// Applies every route to the frames of its interface in the recording, and returns what to say about the recording:
/// where it is cut off, frames that may not be whole, and entries that are not frames.
fn apply(path: &Path, routes: &mut [Route], batch: &mut Batch, frames: bool) -> failure::Result<Notes> {
    let mut reader = canter_formats::open(path)?;
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let unwritten = |error| trouble::file_failure(Path::new("standard output"), "write", error);
    while let Some(record) = reader.next_record()? {
        if record.frame.is_error() {
            continue;
        }
        let interface = reader.name(record.bus);
        for route in routes.iter_mut().filter(|route| [interface, "any"].contains(&route.rules.from.as_str()))
        {
            batch.clear();
            batch.push(&record.frame, Meta::default());
            route.engine.apply(batch, |_| record.stamp_ns);
            route.counts.received += 1;
            route.counts.transmitted += route.engine.ready() as u64;
            if frames {
                for frame in route.engine.outgoing(batch) {
                    let (stamp_ns, direction) = (record.stamp_ns, record.direction);
                    let line = LogLine { stamp_ns, interface: &route.rules.to, frame: *frame, direction };
                    writeln!(out, "{line}").map_err(unwritten)?;
                }
            }
        }
    }
    out.flush().map_err(unwritten)?;
    Ok(Notes::from_reader(&reader))
}

impl Notes {
    fn from_reader(reader: &Reader) -> Self {
        let path = reader.path();
        let skipped = reader.skipped().iter();
        let mut lines: Vec<String> =
            skipped.map(|(entry, count)| format!("{path}: {count} {entry}: skipped")).collect();
        let flawed: Vec<_> = reader.flawed().iter().collect();
        lines.extend(flawed.iter().map(|(kind, count)| format!("{path}: {count} {kind}")));
        lines.extend(reader.cut().map(|cut| format!("{cut}: the rules were applied to all frames before")));
        Self { lines, doubtful: reader.cut().is_some() || !flawed.is_empty() }
    }
}

impl Checked {
    fn from_route(mut route: Route) -> Self {
        route.counts.take(&mut route.engine.outcome);
        route.counts.assert_balance();
        let RouteRules { from, to, policy, .. } = route.rules;
        let faults = jobs::inexpressible(&policy);
        let rules =
            policy.rules.iter().zip(route.engine.counts()).enumerate().map(|(at, (rule, (_, counts)))| {
                let faults =
                    faults.iter().filter(|fault| fault.rule == at).map(|fault| fault.reason.as_str());
                let not_by_can_gw = faults.collect::<Vec<_>>().join("; ");
                CheckedRule { name: rule.label(at), line: rule.place.line, counts, not_by_can_gw }
            });
        Self { from, to, counts: route.counts, rules: rules.collect() }
    }
}

fn print(route: &Checked, ran: bool) {
    println!("{} → {}", route.from, route.to);
    if ran {
        println!("  {}", route.counts.without_overrun());
    }
    let width = route.rules.iter().map(|rule| rule.name.chars().count()).max().unwrap_or(0);
    for CheckedRule { name, line, counts, not_by_can_gw } in &route.rules {
        let RuleCounts { matched, forwarded, changed } = counts;
        let used = match (ran, matched) {
            (false, _) => "well formed".to_owned(),
            (true, 0) => "never used".to_owned(),
            _ => format!("{matched} matched, {forwarded} forwarded, {changed} changed"),
        };
        println!("  {name:width$}  line {line:<4} {used}");
        if !not_by_can_gw.is_empty() {
            println!("  {:width$}  can-gw cannot apply it: {not_by_can_gw}", "");
        }
    }
}

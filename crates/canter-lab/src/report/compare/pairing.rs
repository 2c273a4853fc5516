//! Finds the pairs of series of two runs, and the reasons why two runs cannot be compared.

use crate::report::ranking;
use canter_measure::result::{ClockKind, Environment, Latency, ResultFile, Series};
use std::collections::BTreeMap;

/// A difference between two runs that is the object of the comparison, and therefore allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Across {
    /// Another kernel
    Kernel,
    /// Another machine: processor, number of processors, QEMU
    Machine,
}

/// A series that both sides may have, with every repeat.
pub struct Pair<'a> {
    /// The heading above the method: study, kernel and quantity.
    pub heading: String,
    pub label: String,
    pub a: Vec<&'a Series>,
    pub b: Vec<&'a Series>,
}

/// The series of both sides in pairs, in the order in which they occur.
pub fn pairs<'a>(a: &'a [ResultFile], b: &'a [ResultFile]) -> Vec<Pair<'a>> {
    let mut pairs: Vec<Pair<'a>> = Vec::new();
    let mut places: BTreeMap<(String, String), usize> = BTreeMap::new();
    for (first, results) in [(true, a), (false, b)] {
        for (result, heading) in headings(results) {
            for series in &result.series {
                let heading = format!("{heading}{}", condition(series));
                let label = ranking::label(series);
                let place = *places.entry((heading.clone(), label.clone())).or_insert_with(|| {
                    pairs.push(Pair { heading, label, a: Vec::new(), b: Vec::new() });
                    pairs.len() - 1
                });
                let side = if first { &mut pairs[place].a } else { &mut pairs[place].b };
                side.push(series);
            }
        }
    }
    pairs
}

/// Results with their study, and with their kernel where the study ran on several.
fn headings(results: &[ResultFile]) -> impl Iterator<Item = (&ResultFile, String)> {
    let flavours = |study: &str| {
        let of_study = results.iter().filter(|result| result.study == study);
        let mut flavours: Vec<String> = of_study.map(|result| result.environment.flavour()).collect();
        flavours.sort();
        flavours.dedup();
        flavours.len()
    };
    results.iter().map(move |result| {
        let kernel = match flavours(&result.study) {
            0 | 1 => String::new(),
            _ => format!(" on {}", result.environment.flavour()),
        };
        let study = if result.study.is_empty() { "" } else { &result.study };
        let colon = if study.is_empty() && kernel.is_empty() { "" } else { ": " };
        (result, format!("{study}{kernel}{colon}"))
    })
}

fn condition(series: &Series) -> String {
    let direction = &series.condition.direction;
    let condition = ranking::describe(&series.condition);
    let condition = if direction.is_empty() { condition } else { format!("{condition}, {direction}") };
    match (series.quantity.as_str(), &series.curve) {
        ("", Some(curve)) => format!("{}, {condition}", curve.quantity),
        ("", None) => condition,
        (quantity, _) => format!("{quantity}, {condition}"),
    }
}

/// The reasons why the runs cannot be compared, each once.
pub fn obstacles(a: &[ResultFile], b: &[ResultFile], across: &[Across]) -> Vec<String> {
    let mut obstacles = Vec::new();
    for a in a {
        let partners = b.iter().filter(|b| b.study == a.study);
        let several = partners.clone().any(|b| b.environment.flavour() == a.environment.flavour());
        for b in partners {
            let (a, b) = (&a.environment, &b.environment);
            if several && a.flavour() != b.flavour() {
                continue; // each kernel has its own partner
            }
            for obstacle in between(a, b, across) {
                if !obstacles.contains(&obstacle) {
                    obstacles.push(obstacle);
                }
            }
        }
    }
    obstacles
}

fn between(a: &Environment, b: &Environment, across: &[Across]) -> Vec<String> {
    let shift = |environment: &Environment| environment.word("canter.shift=").to_owned();
    let processors = |environment: &Environment| environment.processors.to_string();
    let release = |environment: &Environment| environment.release().to_owned();
    let clock = |environment: &Environment| environment.clock.name().to_owned();
    let virtual_ = a.clock == ClockKind::Virtual;
    let fields: [(&str, [String; 2], Option<Across>); 6] = [
        ("clock", [clock(a), clock(b)], None),
        ("ns of an instruction (canter.shift)", [shift(a), shift(b)], None),
        ("kernel", [release(a), release(b)], Some(Across::Kernel)),
        ("processors", [processors(a), processors(b)], Some(Across::Machine)),
        ("QEMU", [a.qemu.clone(), b.qemu.clone()], Some(Across::Machine)),
        // The virtual clock does not depend on the processor.
        (
            "processor",
            if virtual_ { Default::default() } else { [a.cpu.clone(), b.cpu.clone()] },
            Some(Across::Machine),
        ),
    ];
    let differ =
        fields.into_iter().filter(|(_, [a, b], by)| a != b && by.is_none_or(|by| !across.contains(&by)));
    differ.map(|(what, [a, b], by)| describe(what, &a, &b, by)).collect()
}

fn describe(what: &str, a: &str, b: &str, by: Option<Across>) -> String {
    let or_none = |text: &str| if text.is_empty() { "none".to_owned() } else { text.to_owned() };
    let way_out = match by {
        None => "",
        Some(Across::Kernel) => " (--across kernel allows it)",
        Some(Across::Machine) => " (--across machine allows it)",
    };
    format!("{what}: {} and {}{way_out}", or_none(a), or_none(b))
}

/// The latencies of all repeats, pooled.
pub fn together(repeats: &[&Series]) -> Latency {
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    for bucket in repeats.iter().filter_map(|series| series.latency_ns.as_ref()).flat_map(|one| &one.buckets)
    {
        *counts.entry(bucket[0]).or_default() += bucket[1];
    }
    let buckets: Vec<[u64; 2]> = counts.into_iter().map(|(ns, count)| [ns, count]).collect();
    Latency { count: buckets.iter().map(|bucket| bucket[1]).sum(), buckets, ..Latency::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(study: &str, kernel: &str, clock: ClockKind) -> ResultFile {
        let environment =
            Environment { kernel: kernel.into(), clock, processors: 1, ..Environment::default() };
        let series = vec![Series { method: "can-gw".into(), ..Series::default() }];
        let (title, command) = (String::new(), String::new());
        ResultFile { schema: 1, study: study.into(), title, command, environment, series }
    }

    #[test]
    fn another_clock_can_never_be_compared_and_another_kernel_when_asked() {
        let (a, b) = (run("x", "6.12.1 #1", ClockKind::Real), run("x", "6.13.0 #1", ClockKind::Virtual));
        let all = obstacles(&[a], &[b], &[Across::Kernel, Across::Machine]);
        assert_eq!(all, ["clock: real and virtual"]);
        let (a, b) = (run("x", "6.12.1 #1", ClockKind::Real), run("x", "6.12.2 #1", ClockKind::Real));
        let (a, b) = (std::slice::from_ref(&a), std::slice::from_ref(&b));
        assert_eq!(obstacles(a, b, &[]).len(), 1);
        assert!(obstacles(a, b, &[Across::Kernel]).is_empty());
    }

    #[test]
    fn a_virtual_clock_of_another_speed_is_another_clock() {
        let mut runs = [run("x", "6.12", ClockKind::Virtual), run("x", "6.12", ClockKind::Virtual)];
        runs[1].environment.cmdline = "quiet canter.shift=3".into();
        let all = obstacles(&runs[..1], &runs[1..], &[Across::Machine]);
        assert!(all.len() == 1 && all[0].contains("canter.shift"), "{all:?}");
    }

    #[test]
    fn a_study_on_several_kernels_is_paired_kernel_by_kernel() {
        let side = || ["6.1.5-amd64 #1", "6.1.5-rt-amd64 #1"].map(|kernel| run("x", kernel, ClockKind::Real));
        let (a, b) = (side(), side());
        assert!(obstacles(&a, &b, &[]).is_empty());
        let pairs = pairs(&a, &b);
        let headings: Vec<&str> = pairs.iter().map(|pair| pair.heading.as_str()).collect();
        assert_eq!(headings.len(), 2);
        assert!(headings[1].starts_with("x on 6.1-rt"), "{headings:?}");
        assert!(pairs.iter().all(|pair| (pair.a.len(), pair.b.len()) == (1, 1)));
    }
}

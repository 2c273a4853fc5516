//! The environments of a page's results, and the fields in which they differ.

use canter_cli::units;
use canter_measure::result::{ClockKind, Environment, ResultFile};
use serde::Serialize;

#[derive(Serialize)]
pub struct Field {
    name: &'static str,
    value: String,
    differs: bool,
}

pub const KERNEL: &str = "Kernel";
pub const INTERFACES: &str = "Interfaces";
/// The field that always differs, so that the page does not mark it.
const DATE: &str = "Date";

/// The number of results from which on a page says once what most of them share.
const MANY: usize = 3;

/// The fields in which results differ, and the values that most of many results share.
pub struct Differing {
    varying: Vec<Varying>,
    usual: Vec<(&'static str, String)>,
}

struct Varying {
    name: &'static str,
    /// The value of more than half of the results: the page marks the other values, or all values if there is none.
    usual: Option<String>,
}

impl Differing {
    pub fn of(results: &[ResultFile]) -> Self {
        let all: Vec<Vec<_>> = results
            .iter()
            .map(|result| {
                let interfaces = (INTERFACES, interfaces(&result.environment));
                environment(&result.environment).into_iter().chain([interfaces]).collect()
            })
            .collect();
        let fields = all.first().map_or(0, |fields| fields.len());
        let (mut varying, mut shared) = (Vec::new(), Vec::new());
        for n in 0..fields {
            let name = all[0][n].0;
            let values: Vec<&String> = all.iter().map(|fields| &fields[n].1).collect();
            let is_usual =
                |value: &&String| values.iter().filter(|other| other == &value).count() * 2 > values.len();
            let usual = values.iter().copied().find(is_usual).cloned();
            let in_sections = [DATE, INTERFACES].contains(&name) || values.len() < MANY;
            shared.extend(usual.clone().filter(|_| !in_sections).map(|value| (name, value)));
            if name != DATE && values.windows(2).any(|pair| pair[0] != pair[1]) {
                varying.push(Varying { name, usual });
            }
        }
        Self { varying, usual: shared }
    }

    /// What most results share, for the page; sections have the rest.
    pub fn usual(&self) -> Vec<Field> {
        let field =
            |(name, value): &(&'static str, String)| Field { name, value: value.clone(), differs: false };
        self.usual.iter().map(field).filter(|field| !field.value.is_empty()).collect()
    }

    /// The names of all fields.
    pub fn all(&self) -> Vec<&'static str> {
        self.varying.iter().map(|field| field.name).collect()
    }

    pub fn names(&self, name: &str) -> bool {
        self.varying.iter().any(|field| field.name == name)
    }

    pub fn marks(&self, name: &str, value: &str) -> bool {
        self.varying.iter().any(|field| field.name == name && field.usual.as_deref() != Some(value))
    }
}

pub fn interfaces(environment: &Environment) -> String {
    environment.interfaces.join("\n")
}

/// The fields of a result that the page has not told of most.
pub fn fields(of: &Environment, differing: &Differing) -> Vec<Field> {
    let field = |(name, value): (_, String)| Field { name, differs: differing.marks(name, &value), value };
    let is_told = |field: &Field| differing.usual.contains(&(field.name, field.value.clone()));
    let has_news = |field: &Field| !field.value.is_empty() && !is_told(field);
    environment(of).into_iter().map(field).filter(has_news).collect()
}

fn environment(environment: &Environment) -> [(&'static str, String); 7] {
    let clock = match environment.clock {
        ClockKind::Virtual => "virtual (instructions)",
        kind => kind.name(),
    };
    let processors = units::counted(environment.processors.into(), "processor");
    let cpu = match (environment.cpu.is_empty(), environment.processors) {
        (false, 0) => environment.cpu.clone(),
        (false, _) => format!("{}, {processors}", environment.cpu),
        (true, 0) => String::new(),
        (true, _) => processors,
    };
    let qemu = if environment.qemu.is_empty() { "none" } else { &environment.qemu };
    [
        (KERNEL, environment.kernel.clone()),
        ("Clock", clock.to_owned()),
        ("QEMU", qemu.to_owned()),
        ("CPU", cpu),
        (DATE, environment.date.clone()),
        ("canter", environment.canter.clone()),
        ("Kernel command line", command_line(&environment.cmdline)),
    ]
}

/// The words for the kernel. Most of those for the lab's guest say what other fields have.
fn command_line(words: &str) -> String {
    let is_told = |word: &&str| word.starts_with("canter.") && !word.starts_with("canter.shift=");
    words.split(' ').filter(|word| !is_told(word)).collect::<Vec<_>>().join(" ")
}

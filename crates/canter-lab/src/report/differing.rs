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
const COMMAND_LINE: &str = "Kernel command line";

/// The number of results from which on a page says once what most of them share.
const MANY: usize = 3;

/// The fields in which results differ, and the values that most of many results share.
pub struct Differing {
    varying: Vec<Varying>,
    usual: Vec<(&'static str, String)>,
    /// The words of the kernel's command line that most of many results have.
    shared_words: Vec<String>,
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
            let in_sections = [DATE, INTERFACES, COMMAND_LINE, KERNEL].contains(&name) || values.len() < MANY;
            shared.extend(usual.clone().filter(|_| !in_sections).map(|value| (name, value)));
            if name != DATE && values.windows(2).any(|pair| pair[0] != pair[1]) {
                varying.push(Varying { name, usual });
            }
        }
        shared.splice(0..0, kernels(results).into_iter().map(|kernel| (KERNEL, kernel)));
        let shared_words = shared_words(results);
        shared.push((COMMAND_LINE, shared_words.join(" ")));
        Self { varying, usual: shared, shared_words }
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

    /// The words of a command line that most results do not have, and the words that it alone lacks.
    fn further_words(&self, line: &str) -> String {
        let name = |word: &str| word.split('=').next().unwrap_or_default().to_owned();
        let words: Vec<&str> = line.split(' ').collect();
        let is_further = |word: &&str| !self.shared_words.iter().any(|shared| shared == word);
        let lacks = |shared: &&String| words.iter().all(|word| name(word) != name(shared));
        let further = words.iter().copied().filter(is_further).collect::<Vec<_>>().join(" ");
        let lacking: Vec<&str> = self.shared_words.iter().filter(lacks).map(String::as_str).collect();
        let without =
            if lacking.is_empty() { String::new() } else { format!("without {}", lacking.join(" ")) };
        [further, without].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
    }

    pub fn marks(&self, name: &str, value: &str) -> bool {
        self.varying.iter().any(|field| field.name == name && field.usual.as_deref() != Some(value))
    }
}

/// The kernel of each flavour, when there are many results: of several, the one of most results. Headings have the flavour.
fn kernels(results: &[ResultFile]) -> Vec<String> {
    let mut found: Vec<(String, &str, usize)> = Vec::new();
    for environment in results.iter().map(|result| &result.environment) {
        match found.iter_mut().find(|(_, kernel, _)| *kernel == environment.kernel) {
            Some((.., count)) => *count += 1,
            None => found.push((environment.flavour(), &environment.kernel, 1)),
        }
    }
    found.sort_by_key(|&(.., count)| std::cmp::Reverse(count));
    let is_first = |n: &usize| {
        let flavour = &found[*n].0;
        !flavour.is_empty() && found[..*n].iter().all(|(other, ..)| other != flavour)
    };
    let of_flavours = (0..found.len()).filter(is_first).map(|n| found[n].1.to_owned());
    if results.len() < MANY { Vec::new() } else { of_flavours.collect() }
}

/// The words that more than half of the kernels' command lines have, when there are many.
fn shared_words(results: &[ResultFile]) -> Vec<String> {
    if results.len() < MANY {
        return Vec::new();
    }
    let lines: Vec<String> = results.iter().map(|result| command_line(&result.environment.cmdline)).collect();
    let has = |line: &String, word: &str| line.split(' ').any(|other| other == word);
    let is_usual = |word: &&str| lines.iter().filter(|line| has(line, word)).count() * 2 > lines.len();
    let mut shared: Vec<String> = Vec::new();
    for word in lines.iter().flat_map(|line| line.split(' ')).filter(is_usual) {
        if !word.is_empty() && !shared.iter().any(|other| other == word) {
            shared.push(word.to_owned());
        }
    }
    shared
}

pub fn interfaces(environment: &Environment) -> String {
    environment.interfaces.join("\n")
}

/// The fields of a result that the page has not told of most.
pub fn fields(of: &Environment, differing: &Differing) -> Vec<Field> {
    let field = |(name, value): (_, String)| {
        let differs = differing.marks(name, &value);
        let value = if name == COMMAND_LINE { differing.further_words(&value) } else { value };
        Field { name, value, differs }
    };
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
        (COMMAND_LINE, command_line(&environment.cmdline)),
    ]
}

/// The words for the kernel. Most of those for the lab's guest say what other fields have.
fn command_line(words: &str) -> String {
    let is_told = |word: &&str| word.starts_with("canter.") && !word.starts_with("canter.shift=");
    words.split(' ').filter(|word| !is_told(word)).collect::<Vec<_>>().join(" ")
}

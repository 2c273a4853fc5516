//! Renders result files as one self-contained page. The drawings of `table` fill its sections; `page.html` and
//! `page.css` define the layout.

use crate::report::claims::{self, ClaimsView};
use crate::report::compare::{self, Comparison, ComparisonView};
use crate::report::differing::{self, Differing, Field, INTERFACES, KERNEL};
use crate::report::drawing::{Drawing, View, Views};
use crate::report::history::{self, History, HistoryView};
use crate::report::numbers::Numbers;
use crate::report::ranking::{self, Missing};
use crate::report::verdict;
use crate::report::ways::{self, Ways, WaysView};
use canter_measure::{drawing::svg::escape, result::ResultFile, verdicts::Verdicts};
use minijinja::{
    Environment as Templates, Error, Output, State, UndefinedBehavior, Value, escape_formatter,
    syntax::SyntaxConfig, value::Serde,
};
use serde::Serialize;

/// The beginning of a page.
#[derive(Clone, Copy)]
pub enum Beginning<'a> {
    /// A page begins with the verdicts of its results.
    Results,
    Comparison(&'a Comparison),
    /// A page begins with the cost of a frame kernel by kernel.
    History(&'a History),
    /// A page begins with the counts of the claims' verdicts, the account of frames' ways, and each claim.
    Claims(&'a Verdicts),
}

/// The templates beside those of the drawings.
const TEMPLATES: [(&str, &str); 6] = [
    ("page.html", include_str!("page.html")),
    ("contents.html", include_str!("contents.html")),
    ("claims.html", include_str!("claims.html")),
    ("history.html", include_str!("history/history.html")),
    ("macros.html", include_str!("macros.html")),
    ("page.css", include_str!("page.css")),
];

/// One self-contained HTML document with these drawings.
pub fn render(
    results: &[ResultFile],
    beginning: Beginning<'_>,
    drawings: &[Drawing],
) -> Result<String, Error> {
    let names: Vec<String> = drawings.iter().map(template).collect();
    let mut templates = Templates::new();
    templates.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
    templates.set_undefined_behavior(UndefinedBehavior::Strict);
    templates.set_formatter(escaped);
    for (name, text) in TEMPLATES {
        templates.add_template(name, text)?;
    }
    for (name, drawing) in names.iter().zip(drawings) {
        templates.add_template(name, drawing.template)?;
    }
    let template = templates.get_template("page.html")?;
    template.render(Value::from(Serde(view(results, beginning, drawings))))
}

/// The template's name. The extension makes minijinja escape values.
fn template(drawing: &Drawing) -> String {
    format!("{}.html", drawing.name)
}

/// Escapes a value, and replaces control characters, which a result file may have and HTML does not allow.
/// Unlike minijinja's own, it leaves slashes, which the names of methods are full of, as they are.
fn escaped(out: &mut Output, state: &mut State, value: &Value) -> Result<(), Error> {
    match value.as_str().filter(|_| !value.is_safe()) {
        Some(text) => Ok(out.write_str(&escape(text))?),
        None => escape_formatter(out, state, value),
    }
}

#[derive(Serialize)]
struct Page {
    version: &'static str,
    /// The window's title.
    name: String,
    /// The verdicts, grouped by experiment.
    experiments: Vec<Experiment>,
    sections: Vec<Section>,
    /// The number of result files.
    results: usize,
    /// The fields that differ between the results.
    differing: Vec<&'static str>,
    /// The environment that most results share, where there are many.
    usual: Vec<Field>,
    /// Whether the results have different clocks and cannot be compared.
    clocks: bool,
    /// Drawings for all results together.
    overview: Vec<Part>,
    comparison: Option<ComparisonView>,
    history: Option<HistoryView>,
    claims: Option<ClaimsView>,
    /// Which gateway to take; empty without an account of frames' ways.
    answer: String,
    /// The account of frames' ways above the claims.
    ways: Option<WaysView>,
}

/// A drawing's view, and the template that lays it out.
#[derive(Serialize)]
struct Part {
    template: String,
    view: Value,
}

#[derive(Serialize)]
struct Section {
    id: String,
    study: String,
    /// The kernel's flavour, where the results' kernels differ.
    flavour: String,
    /// The kernel's flavour, for the heading; empty when it is not known.
    kernel: String,
    title: String,
    verdict: String,
    invalid: bool,
    /// The number of boots of which the section shows the first.
    boots: usize,
    /// Whether frames were lost, and all are accounted for.
    lossy: bool,
    clock: &'static str,
    command: String,
    environment: Vec<Field>,
    interfaces: Vec<String>,
    interfaces_differ: bool,
    parts: Vec<Part>,
    unavailable: Vec<MissingView>,
}

/// An experiment's verdicts: several where it ran on several kernels.
#[derive(Serialize)]
struct Experiment {
    study: String,
    title: String,
    /// The indices of the verdicts' sections.
    sections: Vec<usize>,
}

#[derive(Serialize)]
struct MissingView {
    method: String,
    paper_name: String,
    under: String,
    reason: String,
}

fn view(results: &[ResultFile], beginning: Beginning<'_>, drawings: &[Drawing]) -> Page {
    let differing = Differing::of(results);
    let all = Numbers::of_all(results);
    let (mut answer, mut ways) = (String::new(), None);
    if let Beginning::Claims(_) = beginning {
        let found = ways::of_all(&all);
        answer = found.as_ref().and_then(Ways::answer).unwrap_or_default();
        ways = found.as_ref().map(ways::view);
    }
    let boots = match beginning {
        Beginning::Comparison(_) => vec![1; results.len()],
        _ => boots(results),
    };
    let (drawn, boots): (Vec<Numbers<'_>>, Vec<usize>) =
        all.into_iter().zip(boots).filter(|(_, boots)| *boots > 0).unzip();
    let section = |n| section(&drawn[n], n, boots[n], drawings, &differing);
    let sections: Vec<Section> = (0..drawn.len()).map(section).collect();
    let clock = |result: &ResultFile| result.environment.clock;
    let clocks = results.windows(2).any(|pair| clock(&pair[0]) != clock(&pair[1]));
    let of_page = |drawing: &Drawing| match drawing.views {
        Views::WholePage(of) => of(&drawn),
        Views::EachResult(_) | Views::EachCondition(_) => Vec::new(),
    };
    let (mut comparison, mut history, mut claims) = (None, None, None);
    match beginning {
        Beginning::Results => {}
        Beginning::Comparison(one) => comparison = Some(compare::view(one)),
        Beginning::History(one) => history = Some(history::view(one, history::about(results))),
        Beginning::Claims(verdicts) => {
            let ids: Vec<_> = sections.iter().map(|one| (one.study.as_str(), one.id.as_str())).collect();
            claims = Some(claims::view(verdicts, results, &ids));
        }
    }
    Page {
        version: env!("CARGO_PKG_VERSION"),
        name: window_title(&sections),
        experiments: experiments(&sections),
        sections,
        results: results.len(),
        differing: differing.all(),
        usual: differing.usual(),
        clocks,
        overview: parts(drawings, of_page),
        comparison,
        history,
        claims,
        answer,
        ways,
    }
}

/// The number of boots of the same experiment that each result stands for: the first for all, the others for none.
fn boots(results: &[ResultFile]) -> Vec<usize> {
    let again = |a: &ResultFile, b: &ResultFile| {
        let (one, other) = (&a.environment, &b.environment);
        (&a.study, &a.title, &one.kernel, &one.cmdline) == (&b.study, &b.title, &other.kernel, &other.cmdline)
            && !a.study.is_empty()
            && !one.boot.is_empty()
            && !other.boot.is_empty()
            && one.boot != other.boot
    };
    let mut boots = vec![1; results.len()];
    for n in 1..results.len() {
        if let Some(first) = (0..n).find(|&first| boots[first] > 0 && again(&results[first], &results[n])) {
            boots[first] += 1;
            boots[n] = 0;
        }
    }
    boots
}

/// The title of the only result, or the number of results; with their kernels.
fn window_title(sections: &[Section]) -> String {
    let mut kernels: Vec<&str> = Vec::new();
    for section in sections {
        if !section.kernel.is_empty() && !kernels.contains(&section.kernel.as_str()) {
            kernels.push(&section.kernel);
        }
    }
    let name = match sections {
        [only] => only.title.clone(),
        several => format!("{} results", several.len()),
    };
    match kernels.as_slice() {
        [] => format!("{name} · canter report"),
        kernels => format!("{name}, Linux {} · canter report", kernels.join(", ")),
    }
}

/// The views of each drawing with their templates.
fn parts(drawings: &[Drawing], views: impl Fn(&Drawing) -> Vec<View>) -> Vec<Part> {
    let drawing_parts = |drawing: &Drawing| {
        let part = |View(view)| Part { template: template(drawing), view };
        views(drawing).into_iter().map(part).collect::<Vec<_>>()
    };
    drawings.iter().flat_map(drawing_parts).collect()
}

fn experiments(sections: &[Section]) -> Vec<Experiment> {
    let same =
        |a: &Section, b: &Section| (&a.study, &a.title) == (&b.study, &b.title) && !a.flavour.is_empty();
    let mut next = 0;
    let experiment = |results: &[Section]| {
        let sections = (next..next + results.len()).collect();
        next += results.len();
        Experiment { study: results[0].study.clone(), title: results[0].title.clone(), sections }
    };
    sections.chunk_by(same).map(experiment).collect()
}

fn section(
    numbers: &Numbers<'_>,
    n: usize,
    boots: usize,
    drawings: &[Drawing],
    differing: &Differing,
) -> Section {
    let result = numbers.result;
    let or = |text: &str, instead: &str| if text.is_empty() { instead.to_owned() } else { text.to_owned() };
    let mut shown = parts(drawings, |drawing| drawing.across(numbers));
    shown.extend(parts(drawings, |drawing| drawing.by_condition(numbers)));
    Section {
        id: format!("r{}", n + 1),
        study: result.study.clone(),
        kernel: result.environment.flavour(),
        flavour: if differing.names(KERNEL) { result.environment.flavour() } else { String::new() },
        title: or(&result.title, &or(&result.study, "A measurement")),
        verdict: verdict::of(numbers),
        invalid: verdict::invalid(result).is_some(),
        boots,
        lossy: result.series.iter().any(|series| series.ledger.lost.total() > 0),
        clock: verdict::clock(result.environment.clock),
        command: result.command.clone(),
        environment: differing::fields(&result.environment, differing),
        interfaces: alike(&result.environment.interfaces),
        interfaces_differ: differing.marks(INTERFACES, &differing::interfaces(&result.environment)),
        parts: shown,
        unavailable: ranking::missing(result).into_iter().map(missing).collect(),
    }
}

/// Interfaces, `NAME: WHAT`, with the names of those that are alike in one line.
fn alike(interfaces: &[String]) -> Vec<String> {
    let mut lines: Vec<(Vec<&str>, &str)> = Vec::new();
    for interface in interfaces {
        let (name, what) = interface.split_once(": ").unwrap_or((interface, ""));
        match lines.iter_mut().find(|(_, other)| *other == what && !what.is_empty()) {
            Some((names, _)) => names.push(name),
            None => lines.push((vec![name], what)),
        }
    }
    let line = |(names, what): (Vec<&str>, &str)| match what {
        "" => names.join(", "),
        what => format!("{}: {what}", names.join(", ")),
    };
    lines.into_iter().map(line).collect()
}

fn missing(Missing { series, why, under }: Missing<'_>) -> MissingView {
    MissingView {
        method: ranking::label(series),
        paper_name: series.paper_name.clone(),
        under,
        reason: why.to_owned(),
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod toy;

//! Renders result files as one self-contained page. The drawings of `table` fill its sections; `page.html` and
//! `page.css` define the layout.

use crate::report::claims::{self, ClaimsView};
use crate::report::compare::{self, Comparison, ComparisonView};
use crate::report::differing::{self, Differing, Field, INTERFACES, KERNEL};
use crate::report::drawing::{Drawing, View, Views};
use crate::report::history::{self, History, HistoryView};
use crate::report::ladder::{self, LadderView};
use crate::report::numbers::Numbers;
use crate::report::ranking::{self, Missing};
use crate::report::verdict;
use canter_measure::{result::ResultFile, verdicts::Verdicts};
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
    /// A page begins with the counts of the claims' verdicts, the ladder of gateways, and each claim.
    Claims(&'a Verdicts),
}

/// The templates beside those of the drawings.
const TEMPLATES: [(&str, &str); 7] = [
    ("page.html", include_str!("page.html")),
    ("contents.html", include_str!("contents.html")),
    ("ladder.html", include_str!("ladder.html")),
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
    templates.set_formatter(without_control_characters);
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
fn without_control_characters(out: &mut Output, state: &mut State, value: &Value) -> Result<(), Error> {
    let bad = |c: char| c.is_control() && c != '\n';
    match value.as_str().filter(|text| text.contains(bad)) {
        Some(text) => {
            let text = text.replace(bad, "\u{fffd}");
            let clean = if value.is_safe() { Value::from_safe_string(text) } else { Value::from(text) };
            escape_formatter(out, state, &clean)
        }
        None => escape_formatter(out, state, value),
    }
}

#[derive(Serialize)]
struct Page {
    version: &'static str,
    /// The verdicts, grouped by experiment.
    experiments: Vec<Experiment>,
    sections: Vec<Section>,
    /// The fields that differ between the results.
    differing: Vec<&'static str>,
    /// Whether the results have different clocks and cannot be compared.
    clocks: bool,
    /// Drawings for all results together.
    overview: Vec<Part>,
    comparison: Option<ComparisonView>,
    history: Option<HistoryView>,
    claims: Option<ClaimsView>,
    /// The ladder above the claims.
    ladder: Option<LadderView>,
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
    title: String,
    verdict: String,
    invalid: bool,
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
    let section = |(n, numbers)| section(numbers, n, drawings, &differing);
    let sections: Vec<Section> = all.iter().enumerate().map(section).collect();
    let clock = |result: &ResultFile| result.environment.clock;
    let clocks = results.windows(2).any(|pair| clock(&pair[0]) != clock(&pair[1]));
    let of_page = |drawing: &Drawing| match drawing.views {
        Views::WholePage(of) => of(&all),
        Views::EachResult(_) | Views::EachCondition(_) => Vec::new(),
    };
    let (comparison, claims, ladder) = match beginning {
        Beginning::Results | Beginning::History(_) => (None, None, None),
        Beginning::Comparison(comparison) => (Some(compare::view(comparison)), None, None),
        Beginning::Claims(verdicts) => {
            let ids: Vec<_> = sections.iter().map(|one| (one.study.as_str(), one.id.as_str())).collect();
            (None, Some(claims::view(verdicts, results, &ids)), ladder::view(&all))
        }
    };
    let history = match beginning {
        Beginning::History(history) => Some(history::view(history, history::about(results))),
        Beginning::Results | Beginning::Comparison(_) | Beginning::Claims(_) => None,
    };
    Page {
        version: env!("CARGO_PKG_VERSION"),
        experiments: experiments(&sections),
        sections,
        differing: differing.all(),
        clocks,
        overview: parts(drawings, of_page),
        comparison,
        history,
        claims,
        ladder,
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

fn section(numbers: &Numbers<'_>, n: usize, drawings: &[Drawing], differing: &Differing) -> Section {
    let result = numbers.result;
    let or = |text: &str, instead: &str| if text.is_empty() { instead.to_owned() } else { text.to_owned() };
    let mut shown = parts(drawings, |drawing| drawing.across(numbers));
    shown.extend(parts(drawings, |drawing| drawing.by_condition(numbers)));
    Section {
        id: format!("result-{}", n + 1),
        study: result.study.clone(),
        flavour: if differing.names(KERNEL) { result.environment.flavour() } else { String::new() },
        title: or(&result.title, &or(&result.study, "A measurement")),
        verdict: verdict::of(numbers),
        invalid: verdict::invalid(result).is_some(),
        lossy: result.series.iter().any(|series| series.ledger.lost.total() > 0),
        clock: verdict::clock(result.environment.clock),
        command: result.command.clone(),
        environment: differing::fields(&result.environment, differing),
        interfaces: result.environment.interfaces.clone(),
        interfaces_differ: differing.marks(INTERFACES, &differing::interfaces(&result.environment)),
        parts: shown,
        unavailable: ranking::missing(result).into_iter().map(missing).collect(),
    }
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

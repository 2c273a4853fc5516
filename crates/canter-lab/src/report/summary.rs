//! A result in the terminal: drawings as text, methods that could not be measured, and the verdict. At most 80 columns
//! wide.

use crate::report::drawing::{Drawing, Views};
use crate::report::numbers::Numbers;
use crate::report::ranking::{self, Missing};
use crate::report::verdict;
use canter_cli::terminal::{BOLD, FAINT, Ink, RED, paragraph};

/// The summary of a result: title and kernel, drawings, unavailable methods, verdict.
pub fn of(numbers: &Numbers<'_>, drawings: &[Drawing], ink: Ink) -> String {
    let (result, mut out) = (numbers.result, String::new());
    let heading = [result.study.as_str(), result.title.as_str()];
    let heading: Vec<&str> = heading.into_iter().filter(|part| !part.is_empty()).collect();
    let mut heading = heading.join(": ");
    let kernel = result.environment.flavour();
    if !kernel.is_empty() {
        heading = format!("{heading} (Linux {kernel})").trim_start().to_owned();
    }
    paragraph(&mut out, &heading, 0, ink, BOLD);
    let (of_conditions, others): (Vec<&Drawing>, Vec<&Drawing>) =
        drawings.iter().partition(|drawing| matches!(drawing.views, Views::EachCondition(_)));
    out.extend(of_conditions.into_iter().chain(others).map(|drawing| (drawing.text)(numbers, ink)));
    for Missing { series, why, under } in ranking::missing(result) {
        let under = if under.is_empty() { under } else { format!(" ({under})") };
        let line = format!("{}{under}: unavailable: {why}", ranking::label(series));
        paragraph(&mut out, &line, 4, ink, FAINT);
    }
    let style = if verdict::invalid(result).is_some() { RED } else { BOLD };
    paragraph(&mut out, &verdict::of(numbers), 0, ink, style);
    paragraph(&mut out, verdict::clock(result.environment.clock), 0, ink, FAINT);
    out
}

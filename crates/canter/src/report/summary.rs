//! The terminal's view of a result: the verdict, and per condition an aligned table, ranked, with the paper beside it,
//! and the profiles. At most 80 columns wide.

use crate::measure::result::{ResultFile, Series};
use crate::report::ranking::{self, Costs, Latencies, Missing};
use crate::report::strips;
use crate::report::verdict;
use crate::terminal::{Ink, RED, Style, Table, YELLOW, paragraph};
use crate::units::{self, grouped};

/// So many conditions are shown in full; of a matrix the page shows the rest.
const CONDITIONS_MAX: usize = 6;

/// One result: title, a table per condition, what is missing, the verdict.
pub fn of(result: &ResultFile, ink: Ink) -> String {
    let mut out = String::new();
    let heading = [result.study.as_str(), result.title.as_str()];
    let heading: Vec<&str> = heading.into_iter().filter(|part| !part.is_empty()).collect();
    paragraph(&mut out, &heading.join(": "), "", ink, Style::Bold);
    let groups = Latencies::of(result);
    for group in groups.iter().take(CONDITIONS_MAX) {
        latencies(&mut out, group, ink);
    }
    if groups.len() > CONDITIONS_MAX {
        let more = groups.len() - CONDITIONS_MAX;
        let more = format!("{more} more conditions: canter report … -o page.html shows them.");
        paragraph(&mut out, &more, "", ink, Style::Faint);
    }
    for group in Costs::of(result) {
        costs(&mut out, &group, ink);
    }
    for series in result.series.iter().filter(|series| series.unavailable.is_empty()) {
        curve(&mut out, series, ink);
    }
    for Missing { series, why, under } in ranking::missing(result) {
        let under = if under.is_empty() { under } else { format!(" ({under})") };
        let line = format!("{}{under}: unavailable: {why}", ranking::label(series));
        paragraph(&mut out, &line, "    ", ink, Style::Faint);
    }
    let style = if verdict::invalid(result).is_some() { RED } else { Style::Bold };
    paragraph(&mut out, &verdict::of(result), "", ink, style);
    paragraph(&mut out, verdict::clock(result.environment.clock), "", ink, Style::Faint);
    out
}

fn latencies(out: &mut String, group: &Latencies<'_>, ink: Ink) {
    let unit = group.unit();
    let mut heading = ranking::describe(group.condition);
    if !group.quantity.is_empty() {
        heading = format!("{}, {heading}", group.quantity);
    }
    paragraph(out, &format!("{heading}, in {}:", unit.name), "", ink, Style::Plain);
    let ratio = format!("× {}", group.reference_name());
    let mut table = Table::new(&["<method", "min", "p50", "p90", "p99", "max", &ratio, "paper", "lost"]);
    for row in &group.rows {
        let figure = row.figure;
        let numbers = [figure.min, figure.p50, figure.p90, figure.p99, figure.max].map(|ns| unit.number(ns));
        let [min, p50, p90, p99, max] = numbers.map(|number| (number, Style::Plain));
        let paper = group.paper_ratio(row).or_else(|| row.paper_ns().map(units::round_span));
        let lost = row.series.ledger.lost.total();
        let ratio = group.ratio(row).filter(|_| group.rows.len() > 1).unwrap_or_default();
        table.row([
            (row.label(), Style::Plain),
            min,
            (p50.0, Style::Bold),
            p90,
            p99,
            max,
            (ratio, Style::Bold),
            (paper.unwrap_or_default(), Style::Faint),
            (grouped(lost), if lost > 0 { YELLOW } else { Style::Plain }),
        ]);
    }
    let others = group
        .silent
        .iter()
        .map(|series| (*series, "none"))
        .chain(group.faulty.iter().map(|series| (*series, "!")));
    for (series, mark) in others {
        let mut cells: [(String, Style); 9] = Default::default();
        cells[0] = (ranking::label(series), Style::Plain);
        cells[2] = (mark.to_owned(), RED);
        cells[8] = (grouped(series.ledger.lost.total()), RED);
        table.row(cells);
    }
    table.print(out, ink);
    out.push_str(&strips::of(group, ink));
}

fn costs(out: &mut String, group: &Costs<'_>, ink: Ink) {
    let unit = group.unit();
    let reference = group.reference().map_or("", |row| row.series.method.as_str());
    paragraph(out, &format!("{}, {} per frame:", group.direction, unit.name), "", ink, Style::Plain);
    let ratio = if reference.is_empty() { String::new() } else { format!("× {reference}") };
    let mut table = Table::new(&["<method", "batch", "call", "delivery", "total", &ratio, "paper", ""]);
    for row in &group.rows {
        let plain = |text: String| (text, Style::Plain);
        table.row([
            plain(row.series.method.clone()),
            plain(row.series.condition.batch.max(1).to_string()),
            plain(unit.number(row.figure.per_frame)),
            plain(unit.signed(row.figure.delivery)),
            (unit.signed(row.figure.total), Style::Bold),
            (group.ratio(row).unwrap_or_default(), Style::Bold),
            (row.paper_ns().map(units::round_span).unwrap_or_default(), Style::Faint),
            (group.paper_ratio(row).unwrap_or_default(), Style::Faint),
        ]);
    }
    table.print(out, ink);
}

/// So many points of a curve are shown.
const POINTS_MAX: usize = 8;

/// `processor load of read+write, %, against rate, frames/s:` and a table of points, side by side.
fn curve(out: &mut String, series: &Series, ink: Ink) {
    let Some(curve) = &series.curve else { return };
    let heading = format!(
        "{} of {}, {}, against {}:",
        curve.quantity,
        ranking::label(series),
        ranking::describe(&series.condition),
        curve.against
    );
    paragraph(out, &heading, "", ink, Style::Plain);
    let mut table = Table::new(&[&curve.against, &curve.quantity]);
    let every = curve.points.len().div_ceil(POINTS_MAX).max(1);
    for [against, figure] in curve.points.iter().step_by(every) {
        let against = units::measured(*against, 0, &curve.against_unit);
        table.row([
            (against, Style::Plain),
            (units::measured(*figure, curve.decimals, &curve.unit), Style::Bold),
        ]);
    }
    table.print(out, ink);
}

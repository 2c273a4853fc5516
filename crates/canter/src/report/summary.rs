//! The terminal's view of a result: an aligned table at most 100 columns wide, ranked, with the paper beside it.

use crate::measure::result::ResultFile;
use crate::report::ranking::{self, Costs, Latencies};
use crate::report::unit::{self, grouped};
use crate::report::verdict;

pub const COLUMNS_MAX: usize = 100;
const GAP: usize = 2;

/// One result: title, a table per condition, what is missing, the verdict. No colour codes.
pub fn of(result: &ResultFile) -> String {
    let mut out = String::new();
    let heading = [result.study.as_str(), result.title.as_str()];
    let heading: Vec<&str> = heading.into_iter().filter(|part| !part.is_empty()).collect();
    paragraph(&mut out, &heading.join(": "), "");
    for group in Latencies::of(result) {
        latencies(&mut out, &group);
    }
    for group in Costs::of(result) {
        costs(&mut out, &group);
    }
    for (series, reason) in ranking::unavailable(result) {
        let direction = Some(series.condition.direction.as_str()).filter(|direction| !direction.is_empty());
        let direction = direction.map(|direction| format!(" ({direction})")).unwrap_or_default();
        paragraph(&mut out, &format!("{}{direction}: unavailable: {reason}", ranking::label(series)), "    ");
    }
    paragraph(&mut out, &verdict::of(result), "");
    paragraph(&mut out, verdict::clock(result.environment.clock), "");
    plain(&out)
}

fn latencies(out: &mut String, group: &Latencies<'_>) {
    let unit = group.unit();
    paragraph(out, &format!("{}, in {}:", ranking::describe(group.condition), unit.name), "");
    let mut table = Table::new(&[
        "<method",
        "<in the paper",
        "min",
        "p50",
        "p90",
        "max",
        "× can-gw",
        "paper",
        "",
        "lost",
    ]);
    for row in &group.rows {
        let figure = row.figure;
        table.row([
            row.label(),
            row.series.paper_name.clone(),
            unit.number(figure.min),
            unit.number(figure.p50),
            unit.number(figure.p90),
            unit.number(figure.max),
            group.ratio(row).unwrap_or_default(),
            row.paper_ns().map(unit::round_span).unwrap_or_default(),
            group.paper_ratio(row).unwrap_or_default(),
            lost(row.series),
        ]);
    }
    for series in &group.silent {
        let mut cells: [String; 10] = Default::default();
        cells[0] = ranking::label(series);
        cells[1] = series.paper_name.clone();
        cells[3] = "none".into();
        cells[9] = lost(series);
        table.row(cells);
    }
    table.print(out);
}

fn lost(series: &crate::measure::result::Series) -> String {
    let mark = if series.ledger.balances() { "" } else { " !" };
    format!("{}{mark}", grouped(series.ledger.lost.total()))
}

fn costs(out: &mut String, group: &Costs<'_>) {
    let unit = group.unit();
    let reference = group.reference().map_or("", |row| row.series.method.as_str());
    paragraph(out, &format!("{}, {} per frame:", group.direction, unit.name), "");
    let ratio = if reference.is_empty() { String::new() } else { format!("× {reference}") };
    let mut table = Table::new(&["<method", "batch", "call", "delivery", "total", &ratio, "paper", ""]);
    for row in &group.rows {
        table.row([
            row.series.method.clone(),
            row.series.condition.batch.max(1).to_string(),
            unit.number(row.figure.per_frame),
            unit.signed(row.figure.delivery),
            unit.signed(row.figure.total),
            group.ratio(row).unwrap_or_default(),
            row.paper_ns().map(unit::round_span).unwrap_or_default(),
            group.paper_ratio(row).unwrap_or_default(),
        ]);
    }
    table.print(out);
}

/// Right-aligned columns; a heading that begins with `<` makes a left-aligned one, which also gives way when
/// the line gets too long. A column without any cell is left out.
struct Table {
    left: Vec<bool>,
    rows: Vec<Vec<String>>,
}

impl Table {
    fn new(headings: &[&str]) -> Self {
        let left = headings.iter().map(|heading| heading.starts_with('<')).collect();
        let headings = headings.iter().map(|heading| heading.trim_start_matches('<').to_owned()).collect();
        Self { left, rows: vec![headings] }
    }

    fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.into_iter().map(|cell| plain(&cell).replace('\n', " ")).collect());
    }

    fn widths(&self) -> Vec<usize> {
        let column = |n: usize| self.rows.iter().map(move |row| row[n].chars().count());
        let mut widths: Vec<usize> = (0..self.left.len())
            .map(|n| if column(n).skip(1).all(|width| width == 0) { 0 } else { column(n).max().unwrap_or(0) })
            .collect();
        let total: usize =
            2 * GAP + widths.iter().filter(|&&width| width > 0).map(|width| width + GAP).sum::<usize>();
        let mut excess = total.saturating_sub(COLUMNS_MAX + GAP + GAP);
        for n in (0..widths.len()).rev().filter(|&n| self.left[n]) {
            let give = excess.min(widths[n].saturating_sub(12));
            widths[n] -= give;
            excess -= give;
        }
        widths
    }

    fn print(&self, out: &mut String) {
        let widths = self.widths();
        for row in &self.rows {
            let mut line = String::new();
            for ((cell, &width), left) in row.iter().zip(&widths).zip(&self.left) {
                if width == 0 {
                    continue;
                }
                let cell = clip(cell, width);
                line.push_str(&" ".repeat(GAP));
                line.push_str(&if *left { format!("{cell:<width$}") } else { format!("{cell:>width$}") });
            }
            out.push_str(clip(line.trim_end(), COLUMNS_MAX).as_str());
            out.push('\n');
        }
        out.push('\n');
    }
}

/// At most `width` characters, the last one `…` when something is missing.
pub fn clip(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

/// Words in lines of at most [`COLUMNS_MAX`]; the lines after the first are indented.
fn paragraph(out: &mut String, text: &str, indent: &str) {
    let mut line = String::new();
    for word in text.split([' ', '\n', '\t']).filter(|word| !word.is_empty()) {
        let width = line.chars().count() + 1 + word.chars().count();
        if !line.is_empty() && width > COLUMNS_MAX {
            out.push_str(&line);
            out.push('\n');
            line = indent.to_owned();
        } else if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(&clip(word, COLUMNS_MAX - indent.len()));
    }
    if !line.is_empty() {
        out.push_str(&line);
        out.push('\n');
    }
}

/// Thin spaces become plain ones; a control character of a file's never reaches the terminal.
fn plain(text: &str) -> String {
    let plain = |character: char| match character {
        unit::THIN_SPACE => ' ',
        '\n' => '\n',
        _ if character.is_control() => '\u{fffd}',
        _ => character,
    };
    text.chars().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_give_way_when_a_line_gets_too_long() {
        let mut table = Table::new(&["<method", "<in the paper", "p50"]);
        table.row(["m".repeat(80), "p".repeat(60), "13.7".into()]);
        let mut out = String::new();
        table.print(&mut out);
        assert!(out.lines().all(|line| line.chars().count() <= COLUMNS_MAX), "{out}");
        assert!(out.contains("…  13.7"), "{out}");
    }

    #[test]
    fn escape_sequences_do_not_reach_the_terminal() {
        assert!(!plain("\u{1b}[31mred\u{9b}").contains(['\u{1b}', '\u{9b}']));
    }
}

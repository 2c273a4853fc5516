//! Text for a terminal of 80 columns: paragraphs, tables, and colour where a terminal reads it.

use crate::units;
use anstream::{AutoStream, ColorChoice};
pub use anstyle::Style;
use anstyle::{AnsiColor, Effects};

/// The width of all text, in characters.
pub const COLUMNS_MAX: usize = 80;
const GAP: usize = 2;

/// Text without a style.
pub const PLAIN: Style = Style::new();
/// Bold text.
pub const BOLD: Style = Style::new().effects(Effects::BOLD);
/// Faint text.
pub const FAINT: Style = Style::new().effects(Effects::DIMMED);
/// Red text.
pub const RED: Style = AnsiColor::Red.on_default();
/// Green text.
pub const GREEN: Style = AnsiColor::Green.on_default();
/// Yellow text.
pub const YELLOW: Style = AnsiColor::Yellow.on_default();
/// Blue text.
pub const BLUE: Style = AnsiColor::Blue.on_default();
/// Cyan text.
pub const CYAN: Style = AnsiColor::Cyan.on_default();
/// Magenta text.
pub const MAGENTA: Style = AnsiColor::Magenta.on_default();

/// Paints text, or leaves it plain.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ink(bool);

impl Ink {
    /// Paints on a terminal, unless NO_COLOR is set (no-color.org) or the terminal is dumb. CLICOLOR_FORCE paints into a
    /// pipe too.
    pub fn for_stdout() -> Self {
        Self(AutoStream::choice(&std::io::stdout()) != ColorChoice::Never)
    }

    /// Paints as [`Ink::for_stdout`] does, for the standard error.
    pub fn for_stderr() -> Self {
        Self(AutoStream::choice(&std::io::stderr()) != ColorChoice::Never)
    }

    /// Leaves all text plain.
    pub fn none() -> Self {
        Self(false)
    }

    /// Paints, whatever reads the output.
    pub fn always() -> Self {
        Self(true)
    }

    /// The text in a style.
    pub fn paint(self, style: Style, text: &str) -> String {
        if self.0 && !text.is_empty() { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }
}

/// A table of right-aligned columns. A heading that begins with `<` makes a left-aligned column, which is also clipped
/// when the line gets too long. Empty columns are left out.
pub struct Table {
    left: Vec<bool>,
    rows: Vec<Vec<(String, Style)>>,
}

impl Table {
    /// A table without rows.
    pub fn new(headings: &[&str]) -> Self {
        let left = headings.iter().map(|heading| heading.starts_with('<')).collect();
        let heading = |text: &&str| (text.trim_start_matches('<').to_owned(), FAINT);
        Self { left, rows: vec![headings.iter().map(heading).collect()] }
    }

    /// Appends a row.
    pub fn row<const N: usize>(&mut self, cells: [(String, Style); N]) {
        let cells = cells.into_iter().map(|(text, style)| (plain(&text).replace('\n', " "), style));
        self.rows.push(cells.collect());
    }

    fn widths(&self) -> Vec<usize> {
        let column = |n: usize| self.rows.iter().map(move |row| row[n].0.chars().count());
        let mut widths: Vec<usize> = (0..self.left.len())
            .map(|n| if column(n).skip(1).all(|width| width == 0) { 0 } else { column(n).max().unwrap_or(0) })
            .collect();
        let total: usize = widths.iter().filter(|&&width| width > 0).map(|width| width + GAP).sum();
        let mut excess = total.saturating_sub(COLUMNS_MAX);
        for n in (0..widths.len()).rev().filter(|&n| self.left[n]) {
            let give = excess.min(widths[n].saturating_sub(12));
            widths[n] -= give;
            excess -= give;
        }
        widths
    }

    /// Appends the text of the table to `out`.
    pub fn print(&self, out: &mut String, ink: Ink) {
        let widths = self.widths();
        for row in &self.rows {
            let (mut line, mut used, mut pending) = (String::new(), 0, 0);
            for (((cell, style), &width), left) in row.iter().zip(&widths).zip(&self.left) {
                if width == 0 {
                    continue;
                }
                let cell = clip(cell, width);
                let blank = width - cell.chars().count();
                let (before, after) = if *left { (0, blank) } else { (blank, 0) };
                pending += GAP + before;
                if !cell.is_empty() {
                    let room = COLUMNS_MAX.saturating_sub(used + pending);
                    let cell = clip(&cell, room);
                    if room > 0 {
                        line.push_str(&" ".repeat(pending));
                        line.push_str(&ink.paint(*style, &cell));
                    }
                    used += pending + cell.chars().count();
                    pending = 0;
                }
                pending += after;
            }
            out.push_str(&line);
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
    match width {
        0 => String::new(),
        _ => text.chars().take(width - 1).chain(['…']).collect(),
    }
}

/// Words in lines of at most [`COLUMNS_MAX`]. `begun` columns of the first line are taken; the others are indented.
pub fn wrapped(text: &str, begun: usize, indent: usize) -> String {
    let (mut lines, mut column) = (String::new(), begun);
    for word in text.split([' ', '\n', '\t']).filter(|word| !word.is_empty()) {
        let word = clip(word, COLUMNS_MAX - indent);
        let width = word.chars().count();
        if !lines.is_empty() && column + 1 + width > COLUMNS_MAX {
            lines += &format!("\n{:indent$}", "");
            column = indent;
        } else if !lines.is_empty() {
            lines.push(' ');
            column += 1;
        }
        lines += &word;
        column += width;
    }
    lines
}

/// A text in lines of at most [`COLUMNS_MAX`]; the first line is indented as the text is, the others by `indent`.
pub fn paragraph(out: &mut String, text: &str, indent: usize, ink: Ink, style: Style) {
    let lead = &text[..text.len() - text.trim_start_matches(' ').len()];
    // The thin spaces of numbers become plain ones last: no line breaks there.
    for line in plain(&format!("{lead}{}", wrapped(text, lead.len(), indent))).lines() {
        out.push_str(&ink.paint(style, line));
        out.push('\n');
    }
}

/// Replaces thin spaces by plain ones, and control characters, which a file may contain, by U+FFFD.
pub fn plain(text: &str) -> String {
    let plain = |character: char| match character {
        units::THIN_SPACE => ' ',
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
    fn left_aligned_columns_are_clipped_when_a_line_gets_too_long() {
        let mut table = Table::new(&["<method", "<in the paper", "p50"]);
        table.row(["m".repeat(80), "p".repeat(60), "13.7".into()].map(|cell| (cell, PLAIN)));
        let mut out = String::new();
        table.print(&mut out, Ink::none());
        assert!(out.lines().all(|line| line.chars().count() <= COLUMNS_MAX), "{out}");
        assert!(out.contains("…  13.7"), "{out}");
    }

    #[test]
    fn no_line_breaks_inside_a_number() {
        let mut out = String::new();
        let text = format!("{} 155\u{202f}760\u{202f}806 instructions", "w".repeat(COLUMNS_MAX - 6));
        paragraph(&mut out, &text, 0, Ink::none(), PLAIN);
        assert_eq!(out, format!("{}\n155 760 806 instructions\n", "w".repeat(COLUMNS_MAX - 6)));
    }

    #[test]
    fn escape_sequences_of_a_file_do_not_reach_the_terminal() {
        assert!(!plain("\u{1b}[31mred\u{9b}").contains(['\u{1b}', '\u{9b}']));
    }

    #[test]
    fn colour_changes_nothing_but_colour() {
        let mut out = [String::new(), String::new()];
        for (out, ink) in out.iter_mut().zip([Ink::none(), Ink::always()]) {
            let mut table = Table::new(&["<method", "p50"]);
            table.row([("can-gw".into(), RED), ("13.7".into(), BOLD)]);
            table.print(out, ink);
            paragraph(out, "one two", 0, ink, BOLD);
        }
        let mut stripped = out[1].clone();
        for code in ["[0m", "[1m", "[2m", "[31m"] {
            stripped = stripped.replace(&format!("\u{1b}{code}"), "");
        }
        assert_ne!(out[0], out[1]);
        assert_eq!(out[0], stripped);
    }
}

//! The latency profile in text: one row per method, whose height is the number of frames that took longer than t, on a
//! logarithmic scale; for a single method a plot of several lines.

use crate::report::family::Family;
use crate::report::ranking::{Latencies, Ranked};
use canter_cli::terminal::{BLUE, COLUMNS_MAX, FAINT, GREEN, Ink, MAGENTA, PLAIN, Style, YELLOW, clip};
use canter_cli::units;
use canter_measure::drawing::axis::Scale;
use canter_measure::drawing::plot;
use canter_measure::profile::Profile;
use canter_measure::result::Latency;

const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// The number of rows of the plot of a single method.
const ROWS: usize = 8;
const NAMES_MAX: usize = 25;

/// The profiles below the table of a group. Empty when no frame arrived.
pub fn of(group: &Latencies<'_>, ink: Ink) -> String {
    let Some(plot) = Plot::new(group) else { return String::new() };
    match group.rows.as_slice() {
        [row] => plot.single(row, ink),
        rows => plot.several(rows, ink),
    }
}

struct Plot {
    x: Scale,
    /// The number of columns for the names or numbers at the left.
    left: usize,
    width: usize,
}

impl Plot {
    fn new(group: &Latencies<'_>) -> Option<Self> {
        let least = group.rows.iter().map(|row| row.measured.min).min()?;
        let most = group.rows.iter().map(|row| row.measured.max).max()?;
        let names = group.rows.iter().map(|row| row.label().chars().count()).max()?.min(NAMES_MAX);
        let left = if group.rows.len() == 1 { 10 } else { names + 4 };
        let width = COLUMNS_MAX - left - 1;
        let x = plot::time_scale((least, most), (0.0, (width - 1) as f64), true);
        Some(Self { x, left, width })
    }

    /// The number of frames that took longer than the right edge, for each column; the last column has the worst frame.
    fn columns(&self, latency: &Latency, lost: u64) -> Vec<u64> {
        let profile = Profile::new(latency, lost);
        let mut slower = vec![profile.count; self.width];
        for &(t, m) in &profile.steps {
            let from = self.x.at(t as f64).round() as usize;
            slower[(from + 1).min(self.width)..].fill(m);
        }
        slower
    }

    fn several(&self, rows: &[Ranked<'_, Latency>], ink: Ink) -> String {
        let most =
            rows.iter().map(|row| row.measured.count.saturating_add(row.series.ledger.lost.total())).max();
        let mut out = String::new();
        for row in rows {
            let columns = self.columns(row.measured, row.series.ledger.lost.total());
            let strip: String = columns.iter().map(|&m| BLOCKS[level(m, most.unwrap_or(1), 8)]).collect();
            let name = clip(&row.label(), self.left - 4);
            out.push_str(&format!("  {name:<width$}  ", width = self.left - 4));
            out.push_str(&ink.paint(style(row.family), strip.trim_end()));
            out.push('\n');
        }
        out.push_str(&self.axis());
        out.push_str(&ink.paint(FAINT, "  the higher, the more frames took longer than t (by logarithm)"));
        out.push_str("\n\n");
        out
    }

    fn single(&self, row: &Ranked<'_, Latency>, ink: Ink) -> String {
        let lost = row.series.ledger.lost.total();
        let columns = self.columns(row.measured, lost);
        let most = row.measured.count.saturating_add(lost);
        let mut out = String::from("  frames that took longer than t:\n");
        for line in (0..ROWS).rev() {
            let strip: String = columns
                .iter()
                .map(|&m| BLOCKS[level(m, most, 8 * ROWS).saturating_sub(8 * line).min(8)])
                .collect();
            let label = match line {
                _ if line == ROWS - 1 => units::grouped(most),
                0 => "1".to_owned(),
                _ => String::new(),
            };
            out.push_str(&format!("{:>width$} ", clip(&label, self.left - 1), width = self.left - 1));
            out.push_str(&ink.paint(style(row.family), strip.trim_end()));
            out.push('\n');
        }
        out.push_str(&self.axis());
        let worst = format!("{:>width$} worst {}", "", units::span(row.measured.max), width = self.left - 1);
        let lost = if lost > 0 { format!(", {} never arrived", units::grouped(lost)) } else { String::new() };
        out.push_str(&format!("{worst}{lost}\n\n"));
        out
    }

    /// The times below the plot, as far as they fit.
    fn axis(&self) -> String {
        let mut line: Vec<char> = vec![' '; COLUMNS_MAX];
        let mut free = 0;
        for tick in self.x.ticks(self.width / 12) {
            let label = units::round_span(tick as u64);
            let at = self.left + self.x.at(tick).round() as usize;
            let long = label.chars().count() + 1;
            if at < free || at + long > COLUMNS_MAX {
                continue;
            }
            line[at] = '╵';
            line[at + 1..at + long]
                .iter_mut()
                .zip(label.chars())
                .for_each(|(place, character)| *place = character);
            free = at + long + 1;
        }
        let line: String = line.into_iter().collect();
        format!("{}\n", line.trim_end())
    }
}

/// The height of `m` on a scale up to `most`; at least 1 for any `m` above 0.
fn level(m: u64, most: u64, high: usize) -> usize {
    match m {
        0 => 0,
        _ => {
            let share = (m as f64 + 1.0).ln() / (most.max(m) as f64 + 1.0).ln();
            ((share * high as f64).round() as usize).clamp(1, high)
        }
    }
}

/// The terminal's nearest match to the page's colours.
fn style(family: Family) -> Style {
    match family {
        Family::BareMetal => MAGENTA,
        Family::Kernel | Family::Other => PLAIN,
        Family::Spin => BLUE,
        Family::Poll => GREEN,
        Family::Block => YELLOW,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_frame_can_be_seen_and_none_cannot() {
        assert_eq!([0, 1, 1000].map(|m| level(m, 1000, 8)), [0, 1, 8]);
        assert_eq!(level(u64::MAX, 1, 8), 8);
    }
}

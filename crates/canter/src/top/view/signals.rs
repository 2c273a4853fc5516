//! The signals of an identifier, below its row: names and values in cells that do not move while values change.

use super::{Line, Style};
use crate::top::names::{Shown, Signals};
use canter_cli::{terminal::clip, units::counted};

/// How long a changed value is highlighted.
const CHANGED_NS: u64 = 1_000_000_000;
/// The characters before the first cell.
const INDENT: usize = 2;
/// The least width of a cell, with the blanks behind it: a terminal of 80 columns has three in a line.
const CELL: usize = 25;
/// The blanks behind a cell.
const BETWEEN: usize = 2;

/// Cells in lines, as many as fit.
struct Cells {
    lines: Vec<Line>,
    /// The characters of a line without its indentation.
    room: usize,
    /// The width of a cell, with the blanks behind it.
    cell: usize,
    /// Characters in the last line.
    used: usize,
}

impl Cells {
    fn new(columns: usize) -> Self {
        let room = columns.saturating_sub(INDENT).max(1);
        let cell = room / (room / CELL).max(1);
        Self { lines: Vec::new(), room, cell, used: room }
    }

    /// Appends a cell, and begins a line when the last one has no room. `width` characters are kept free for its text.
    fn add(&mut self, pieces: Line, width: usize) {
        let length: usize = pieces.iter().map(|(_, text)| text.chars().count()).sum();
        let width = width.max(length);
        let mut at = self.used.div_ceil(self.cell) * self.cell;
        if at + width > self.room || self.lines.is_empty() {
            self.lines.push(vec![(Style::Plain, " ".repeat(INDENT))]);
            (self.used, at) = (0, 0);
        }
        let Some(line) = self.lines.last_mut() else { return };
        line.push((Style::Plain, " ".repeat(at - self.used)));
        line.extend(pieces);
        line.push((Style::Plain, " ".repeat(width - length + BETWEEN)));
        self.used = at + width + BETWEEN;
    }
}

/// The lines below a row, with those signals that are shown.
pub fn lines(
    signals: &Signals<'_>,
    shown: Vec<Shown<'_>>,
    now_ns: u64,
    columns: usize,
) -> impl Iterator<Item = Line> + use<> {
    let mut cells = Cells::new(columns);
    let since_ns = now_ns.saturating_sub(CHANGED_NS);
    for one in shown {
        let style = if one.changed_ns > since_ns { Style::Changed } else { Style::Plain };
        // On a narrow terminal the value is worth more than the end of the name.
        let name = clip(one.name, cells.room.saturating_sub(one.value.chars().count() + 1).max(1));
        let width = one.width.min(cells.room);
        cells.add(vec![(Style::Plain, format!("{name} ")), (style, one.value)], width);
    }
    for (frames, what) in [
        (signals.short, "shorter than the message"),
        (signals.unselected, "with a multiplexer value without signals"),
    ] {
        if frames > 0 {
            let text = format!("[{} {what}]", counted(frames, "frame"));
            cells.add(vec![(Style::Alarm, text)], 0);
        }
    }
    cells.lines.into_iter()
}

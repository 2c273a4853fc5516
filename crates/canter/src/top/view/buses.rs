//! The buses on the screen: a row each or, if the rows would leave too little room for identifiers, a short cell each.

use super::{Line, Style, width};
use crate::top::census::{Bus, Census};

/// How buses are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Buses {
    /// Rows if they leave half of the screen, otherwise cells.
    #[default]
    Fit,
    /// Always rows.
    Rows,
    Hidden,
}

impl Buses {
    /// The next setting, when the user presses the key.
    pub fn next(self) -> Self {
        match self {
            Self::Fit => Self::Rows,
            Self::Rows => Self::Hidden,
            Self::Hidden => Self::Fit,
        }
    }

    /// The lines of the buses, with a head. `room` is the number of lines for buses and identifiers together.
    pub fn lines(self, census: &Census, room: usize, columns: usize) -> Vec<Line> {
        match self {
            Self::Hidden => Vec::new(),
            Self::Fit if census.buses.len() + 1 > room / 2 => cells(census, room / 2, columns),
            Self::Fit | Self::Rows => rows(census),
        }
    }
}

/// The buses as they are shown: existing ones first, then by name, can2 before can10.
fn in_order(census: &Census) -> Vec<&Bus> {
    let mut buses: Vec<&Bus> = census.buses.values().collect();
    buses.sort_by_key(|bus| {
        let name = bus.interface.name.as_str();
        let word = name.trim_end_matches(|last: char| last.is_ascii_digit());
        (bus.gone, word, name[word.len()..].parse().unwrap_or(0u64), name)
    });
    buses
}

fn is_healthy(state: &str) -> bool {
    matches!(state, "up" | "ERROR-ACTIVE")
}

fn load(bus: &Bus) -> String {
    bus.load_percent.map_or("–".to_owned(), |load| format!("{load:.1} %"))
}

fn style(alarm: bool) -> Style {
    if alarm { Style::Alarm } else { Style::Plain }
}

fn rows(census: &Census) -> Vec<Line> {
    let width = width(census);
    let head = ["BIT/S", "LOAD", "FRAMES/S", "ERRORS", "LOST"].map(|name| format!("{name:>9}")).join(" ");
    let mut lines = vec![vec![(Style::Head, format!("{:width$} {:<14}{head}", "BUS", "STATE"))]];
    for bus in in_order(census) {
        let state = bus.state();
        let (errors, lost) = (bus.errors(), bus.lost());
        let rate = bus.rate.map_or("–".to_owned(), |rate| rate.nominal.to_string());
        lines.push(vec![
            (Style::Plain, format!("{:width$} ", bus.interface.name)),
            (style(!is_healthy(&state)), format!("{state:<14}")),
            (Style::Plain, format!("{rate:>9} {:>9} {:>9.1}", load(bus), bus.frames_per_s)),
            (style(errors > 0), format!(" {errors:>9}")),
            (style(lost > 0), format!(" {lost:>9}")),
        ]);
    }
    lines
}

/// The text of a cell after the name, and whether it is an alarm: load and frames/s, or a problem in their place.
fn cell(bus: &Bus) -> (bool, String) {
    let (state, errors, lost) = (bus.state(), bus.errors(), bus.lost());
    let load = load(bus);
    match (is_healthy(&state), lost, errors) {
        (false, ..) => (true, format!("{state:>16}")),
        (_, 1.., _) => (true, format!("{load:>7} {:>8}", format!("{lost} lost"))),
        (_, _, 1..) => (true, format!("{load:>7} {:>8}", format!("{errors} err"))),
        _ => (false, format!("{load:>7} {:>8.0}", bus.frames_per_s)),
    }
}

/// The lines of cells, as many in a line as fit, `room` lines at most. The last cell has the number of buses that are not
/// shown.
fn cells(census: &Census, room: usize, columns: usize) -> Vec<Line> {
    let (buses, width) = (in_order(census), width(census));
    let in_line = ((columns + 2) / (width + 19)).max(1);
    let cells_max = room.saturating_sub(1).max(1) * in_line;
    let shown = if buses.len() > cells_max { cells_max - 1 } else { buses.len() };
    let mut cells: Vec<(bool, String)> = Vec::new();
    for bus in &buses[..shown] {
        let (alarm, text) = cell(bus);
        cells.push((alarm, format!("{:width$} {text}", bus.interface.name)));
    }
    let hidden = &buses[shown..];
    if !hidden.is_empty() {
        let faulty = hidden.iter().filter(|bus| cell(bus).0).count();
        let more = format!("{} more (b), {faulty} faulty", hidden.len());
        cells.push((faulty > 0, format!("{more:width$}", width = width + 17)));
    }
    let head = format!("{:width$} {:>7} {:>8}", "BUS", "LOAD", "FRAMES/S");
    let mut lines = vec![vec![(Style::Head, vec![head; in_line.min(cells.len().max(1))].join("  "))]];
    for line in cells.chunks(in_line) {
        let between = |(at, (alarm, text)): (usize, &(bool, String))| {
            [(Style::Plain, if at > 0 { "  " } else { "" }.to_owned()), (style(*alarm), text.clone())]
        };
        lines.push(line.iter().enumerate().flat_map(between).collect());
    }
    lines
}

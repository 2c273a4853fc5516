//! The buses on the screen: a heading each above its identifiers; and, above the list, a row each or a short cell each.

use super::{Line, Style, width};
use crate::{
    recordings::natural_order,
    top::census::{Bus, Census},
};

/// How buses are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Buses {
    /// Cells above a list of headings that does not fit; above other lists rows, if they leave half of the screen.
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

    /// The lines of the buses, with a head. `room` is the number of lines for buses and identifiers together; `is_grouped` says
    /// that the buses are headings of the list, too.
    pub fn lines(self, census: &Census<'_>, room: usize, columns: usize, is_grouped: bool) -> Vec<Line> {
        match self {
            Self::Hidden => Vec::new(),
            Self::Fit if is_grouped => cells(census, room / 2, columns),
            Self::Fit if census.buses.len() + 1 > room / 2 => cells(census, room / 2, columns),
            Self::Fit | Self::Rows => rows(census),
        }
    }
}

/// The buses as they are shown: existing ones first, then by name, can2 before can10.
pub fn in_order<'a>(census: &'a Census<'_>) -> Vec<&'a Bus> {
    let mut buses: Vec<&Bus> = census.buses.values().collect();
    buses.sort_by_key(|bus| (bus.gone, natural_order(&bus.interface.name)));
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

/// Narrower screens have short headings.
const WIDE: usize = 76;

/// The heading of a bus above its identifiers, in columns that line up below each other. A narrow one begins with the state if
/// that is a problem.
pub fn heading(bus: &Bus, width: usize, columns: usize) -> Line {
    let (state, errors, lost) = (bus.state(), bus.errors(), bus.lost());
    let is_alarm = !is_healthy(&state);
    let head = format!("{:width$} {:>7}", bus.interface.name, load(bus));
    if columns < WIDE {
        let state = if is_alarm { format!("  {state}") } else { String::new() };
        return vec![
            (Style::Bus, format!("{head} {:>7.0}/s", bus.frames_per_s)),
            (Style::Alarm, state),
            (heading_style(errors > 0), format!("  {errors} err")),
            (heading_style(lost > 0), format!("  {lost} lost")),
        ];
    }
    let mut line = vec![
        (Style::Bus, format!("{head} {:>8.1} frames/s", bus.frames_per_s)),
        (heading_style(errors > 0), format!("  {errors} {}", if errors == 1 { "error" } else { "errors" })),
        (heading_style(lost > 0), format!("  {lost} lost")),
        (heading_style(is_alarm), format!("  {state}")),
    ];
    line.extend(bus.rate.map(|rate| (Style::Bus, format!("  {} bit/s", rate.nominal))));
    line
}

fn heading_style(alarm: bool) -> Style {
    if alarm { Style::Alarm } else { Style::Bus }
}

fn rows(census: &Census<'_>) -> Vec<Line> {
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
fn cells(census: &Census<'_>, room: usize, columns: usize) -> Vec<Line> {
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

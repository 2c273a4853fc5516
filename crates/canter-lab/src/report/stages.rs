//! What the instructions of the frames' ways were executed for: a stacked bar for each series, and a table of the median
//! frame, whose stages add up to its latency exactly.

use crate::analyzer::stage::{ALL, Stage};
use canter_cli::{
    terminal::{BLUE, BOLD, FAINT, GREEN, Ink, MAGENTA, PLAIN, RED, Style, Table, YELLOW, clip, paragraph},
    units::grouped,
};
use canter_measure::result::{Model, Series, Stages};

/// The width of the longest stacked bar, in characters.
const BAR: u64 = 46;
/// The width of the bar of a stage that takes all of the time, in characters.
const SHARE_BAR: u64 = 40;
const NAME: usize = 22;

/// The letter of a stage in a stacked bar, which tells stages apart without colour, and its colour.
fn look(stage: Stage) -> (char, Style) {
    match stage {
        Stage::Interrupt => ('I', RED),
        Stage::Driver => ('D', MAGENTA),
        Stage::SoftInterrupt => ('S', YELLOW),
        Stage::CanCore => ('C', BLUE),
        Stage::Socket => ('K', GREEN),
        Stage::Scheduler => ('H', RED),
        Stage::SystemCall => ('Y', BLUE),
        Stage::Gateway => ('G', BOLD),
        Stage::Load => ('L', FAINT),
        Stage::Instrument => ('M', FAINT),
        Stage::Idle => ('.', FAINT),
    }
}

/// The letter of a stage.
pub fn letter(stage: Stage) -> char {
    look(stage).0
}

/// The accounts of all series; empty when no series has one.
pub fn text(series: &[Series], ink: Ink) -> String {
    let accounts: Vec<_> =
        series.iter().filter_map(|series| Some((series, series.stages.as_ref()?))).collect();
    let mut out = String::new();
    let Some(longest_ns) = accounts.iter().map(|(_, stages)| stages.median_frame_ns).max() else {
        return out;
    };
    paragraph(&mut out, "Stages of the median frame, in ns (instructions at shift 0):", 0, ink, BOLD);
    for (series, stages) in &accounts {
        out += &stacked(series, stages, longest_ns, ink);
    }
    out.push('\n');
    for (series, stages) in &accounts {
        table(&mut out, series, stages, ink);
    }
    out
}

/// A line: the series' name, its stages side by side, and its median.
fn stacked(series: &Series, stages: &Stages, longest_ns: u64, ink: Ink) -> String {
    let column = |ns: u64| (u128::from(ns) * u128::from(BAR) / u128::from(longest_ns.max(1))) as usize;
    let (mut before_ns, mut bar, mut width) = (0, String::new(), 0);
    for stage in ALL {
        let ns = stages.median_frame_ns_of(stage.name());
        let cells = column(before_ns + ns) - column(before_ns);
        before_ns += ns;
        let (letter, style) = look(stage);
        bar += &ink.paint(style, &letter.to_string().repeat(cells));
        width += cells;
    }
    let blank = BAR as usize - width;
    format!(
        "  {:NAME$} {bar}{:blank$} {:>7}\n",
        clip(&series.method, NAME),
        "",
        grouped(stages.median_frame_ns)
    )
}

fn table(out: &mut String, series: &Series, stages: &Stages, ink: Ink) {
    let all_ns = stages.median_frame_ns.max(1);
    let mut table = Table::new(&["", &format!("<{}", series.method), "ns", "%", "<"]);
    for stage in ALL {
        let ns = stages.median_frame_ns_of(stage.name());
        if ns == 0 {
            continue;
        }
        let (letter, style) = look(stage);
        let share = u128::from(ns) * 100 / u128::from(all_ns);
        let cells = (u128::from(ns) * u128::from(SHARE_BAR)).div_ceil(u128::from(all_ns)) as usize;
        table.row([
            (letter.to_string(), style),
            (stage.name().to_owned(), PLAIN),
            (grouped(ns), PLAIN),
            (share.to_string(), FAINT),
            ("█".repeat(cells), style),
        ]);
    }
    let own_ns = stages.median_frame_ns_of(Stage::Instrument.name());
    let sum =
        [String::new(), "sum".to_owned(), grouped(stages.median_frame_ns), "100".to_owned(), String::new()];
    table.row(sum.map(|cell| (cell, BOLD)));
    table.print(out, ink);
    if own_ns > 0 {
        let text = format!(
            "Without the {} ns of the meter itself, {}'s median frame takes {} ns.\n",
            grouped(own_ns),
            series.method,
            grouped(stages.median_frame_ns - own_ns)
        );
        paragraph(out, &text, 0, ink, PLAIN);
    }
    if let Some(model) = &stages.model {
        on_board(out, series, model, ink);
    }
    for text in [reception(series, stages), entries(series, stages)].into_iter().flatten() {
        paragraph(out, &text, 0, ink, PLAIN);
    }
}

/// The frame that is the median on a board, by the model of that board.
fn on_board(out: &mut String, series: &Series, model: &Model, ink: Ink) {
    let heading = format!("<on {}", model.board);
    let columns = ["", &heading, "ns", "instructions", "code", "data", "memory", "registers", "entries"];
    let mut table = Table::new(&columns);
    for stage in model.stages.iter().filter(|stage| stage.name != Stage::Instrument.name()) {
        let (letter, style) = ALL.into_iter().find(|one| one.name() == stage.name).map_or((' ', PLAIN), look);
        let [time, instructions, code, data, memory, registers, entries] = [
            stage.time_ns,
            stage.work.instructions,
            stage.work.code_misses,
            stage.work.data_misses,
            stage.work.memory,
            stage.work.registers,
            stage.work.entries,
        ]
        .map(|count| (grouped(count), PLAIN));
        let (letter, name) = ((letter.to_string(), style), (stage.name.clone(), PLAIN));
        table.row([letter, name, time, instructions, code, data, memory, registers, entries]);
    }
    table.print(out, ink);
    let text = format!(
        "On {}, by the model, {}'s median frame takes {} ns. Beside the instructions are misses of the caches for code and \
         data, those of them that memory answers, reads and writes of devices' registers, and entries into the kernel.\n",
        model.board,
        series.method,
        grouped(model.median_frame_ns)
    );
    paragraph(out, &text, 0, ink, PLAIN);
}

/// What of a frame's reception is in interrupts; `None`: no frame's was seen.
fn reception(series: &Series, stages: &Stages) -> Option<String> {
    let seen = stages.reception.filter(|seen| seen.frames > 0 && seen.total_ns > 0)?;
    Some(format!(
        "From a frame's arrival until {}'s program runs: {} ns on average, of which {:.0} % in interrupts and soft interrupts.\n",
        series.method,
        grouped(seen.total_ns / seen.frames),
        100.0 * seen.aside_ns as f64 / seen.total_ns as f64
    ))
}

/// How many functions of the kernel a frame's way enters; `None`: nobody counted.
fn entries(series: &Series, stages: &Stages) -> Option<String> {
    let each = stages.entries.checked_div(stages.frames).filter(|each| *each > 0)?;
    Some(format!("{} enters {} functions of the kernel for a frame.\n", series.method, grouped(each)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use canter_measure::result;

    fn series(method: &str, parts: &[(Stage, u64)]) -> Series {
        let stage = |&(stage, ns): &(Stage, u64)| result::Stage {
            name: stage.name().to_owned(),
            median_frame_ns: ns,
            total_ns: ns,
        };
        let sum = parts.iter().map(|(_, ns)| ns).sum();
        let stages = Stages {
            frames: 1,
            median_frame_ns: sum,
            total_ns: sum,
            stages: parts.iter().map(stage).collect(),
            ..Stages::default()
        };
        Series { method: method.to_owned(), stages: Some(stages), ..Series::default() }
    }

    #[test]
    fn bars_are_as_long_as_their_medians_and_tables_have_every_stage() {
        let slow = [(Stage::Interrupt, 1000), (Stage::Gateway, 500), (Stage::Instrument, 500)];
        let all = [series("read+write", &slow), series("can-gw", &[(Stage::Driver, 1000)])];
        let text = text(&all, Ink::none());
        let bar = |method: &str| {
            let line = text.lines().find(|line| line.starts_with(&format!("  {method} "))).unwrap();
            line.split_whitespace().nth(1).unwrap().to_owned()
        };
        assert_eq!(bar("read+write"), "I".repeat(23) + &"G".repeat(11) + &"M".repeat(12));
        assert_eq!(bar("can-gw"), "D".repeat(23));
        assert!(text.contains("Without the 500 ns of the meter itself"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
}

//! Profiles of `canter lab --profile` as tables: one by function, or the difference of two, which names the functions that
//! became dearer.

use crate::analyzer::{
    board::Board,
    profile::{Profile, Row},
};
use canter_cli::{
    terminal::{BLUE, BOLD, FAINT, GREEN, Ink, PLAIN, RED, Table, paragraph},
    units::{grouped, span},
};
use std::collections::BTreeMap;

/// The number of rows of a table; the rest is one row.
const ROWS: usize = 25;
/// The width of the longest bar, in characters.
const BAR: u64 = 10;

/// A profile: the functions and programs with the most instructions.
pub fn table(profile: &Profile, ink: Ink) -> String {
    if let Some(board) = profile.board {
        return on_board(profile, board, ink);
    }
    let mut out = String::new();
    let heading = format!("{}: {} instructions", profile.command.join(" "), grouped(profile.instructions));
    paragraph(&mut out, &heading, 0, ink, BOLD);
    let mut rows = rows(profile);
    rows.sort_by_key(|(_, instructions)| std::cmp::Reverse(*instructions));
    let most = rows.first().map_or(1, |(_, instructions)| (*instructions).max(1));
    let mut table = Table::new(&["instructions", "%", "<function [module or file]", "<"]);
    let line = |name: &str, instructions: u64, bar: u64| {
        [
            (grouped(instructions), PLAIN),
            (percent(instructions, profile.instructions), FAINT),
            (name.to_owned(), PLAIN),
            ("█".repeat(bar as usize), BLUE),
        ]
    };
    for (name, instructions) in rows.iter().take(ROWS) {
        let bar = (u128::from(*instructions) * u128::from(BAR)).div_ceil(u128::from(most)) as u64;
        table.row(line(name, *instructions, bar));
    }
    let rest: u64 = rows.iter().skip(ROWS).map(|(_, instructions)| instructions).sum();
    if rest > 0 {
        table.row(line(&format!("{} others", rows.len() - ROWS), rest, 0));
    }
    table.print(&mut out, ink);
    if profile.idle_ns > 0 {
        let idle = format!("No processor executed anything for {}.", span(profile.idle_ns));
        paragraph(&mut out, &idle, 0, ink, FAINT);
    }
    out
}

/// A profile by the model of a board: the functions and programs with the most time, and what makes it.
fn on_board(profile: &Profile, board: Board, ink: Ink) -> String {
    let mut out = String::new();
    let mut rows: Vec<_> = profile.functions.iter().chain(&profile.programs).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.time_ns));
    let all_ns = rows.iter().filter_map(|row| row.time_ns).sum::<u64>();
    let heading = format!(
        "{}: {} on {} by the model, of {} instructions",
        profile.command.join(" "),
        span(all_ns),
        board.name(),
        grouped(profile.instructions)
    );
    paragraph(&mut out, &heading, 0, ink, BOLD);
    let mut table =
        Table::new(&["µs", "%", "instructions", "misses", "registers", "<function [module or file]"]);
    let line = |name: &str, time_ns: u64, [instructions, misses, registers]: [u64; 3]| {
        [
            (grouped(time_ns.div_ceil(1000)), PLAIN),
            (percent(time_ns, all_ns), FAINT),
            (grouped(instructions), PLAIN),
            (grouped(misses), PLAIN),
            (grouped(registers), PLAIN),
            (name.to_owned(), PLAIN),
        ]
    };
    let counts = |row: &Row| {
        let work = row.work.unwrap_or_default();
        [row.instructions, work.code_misses + work.data_misses, work.registers]
    };
    let (shown, rest) = rows.split_at(ROWS.min(rows.len()));
    for row in shown {
        table.row(line(&row.name, row.time_ns.unwrap_or(0), counts(row)));
    }
    if !rest.is_empty() {
        let sum = |at: usize| rest.iter().map(|row| counts(row)[at]).sum();
        let rest_ns = rest.iter().filter_map(|row| row.time_ns).sum();
        table.row(line(&format!("{} others", rest.len()), rest_ns, [sum(0), sum(1), sum(2)]));
    }
    table.print(&mut out, ink);
    out
}

/// A part in per cent, with one decimal.
fn percent(part: u64, whole: u64) -> String {
    let per_mille = u128::from(part) * 1000 / u128::from(whole.max(1));
    format!("{}.{}", per_mille / 10, per_mille % 10)
}

/// What B executes more than A, by function, the largest differences first.
pub fn difference(a: &Profile, b: &Profile, ink: Ink) -> String {
    let mut out = String::new();
    let side = |profile: &Profile| format!("{} on {}", profile.command.join(" "), profile.kernel);
    let heading = format!("A: {}. B: {}.", side(a), side(b));
    paragraph(&mut out, &heading, 0, ink, BOLD);
    let mut sums = BTreeMap::<String, [u64; 2]>::new();
    for (at, profile) in [a, b].into_iter().enumerate() {
        rows(profile).into_iter().for_each(|(name, count)| sums.entry(name).or_default()[at] += count);
    }
    let mut sums: Vec<_> = sums.into_iter().filter(|(_, [a, b])| a != b).collect();
    sums.sort_by_key(|(_, [a, b])| std::cmp::Reverse(a.abs_diff(*b)));
    let mut table = Table::new(&["B − A", "A", "B", "<function [module or file]"]);
    let line = |name: String, [a, b]: [u64; 2], style| {
        let sign = if b < a { "−" } else { "+" };
        let difference = format!("{sign}{}", grouped(a.abs_diff(b)));
        [(difference, style), (grouped(a), PLAIN), (grouped(b), PLAIN), (name, PLAIN)]
    };
    let rest = sums.split_off(ROWS.min(sums.len()));
    for (name, both) in sums {
        table.row(line(name, both, if both[1] > both[0] { RED } else { GREEN }));
    }
    if !rest.is_empty() {
        let sum = |at: usize| rest.iter().map(|(_, both)| both[at]).sum();
        table.row(line(format!("{} others", rest.len()), [sum(0), sum(1)], FAINT));
    }
    table.row(line("all".to_owned(), [a.instructions, b.instructions], BOLD));
    table.print(&mut out, ink);
    out
}

fn rows(profile: &Profile) -> Vec<(String, u64)> {
    let entry = |row: &Row| (row.name.clone(), row.instructions);
    profile.functions.iter().chain(&profile.programs).map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use canter_measure::work::Work;

    fn profile(functions: &[(&str, u64)]) -> Profile {
        let row = |&(name, instructions): &(&str, u64)| Row {
            name: name.to_owned(),
            instructions,
            ..Row::default()
        };
        Profile {
            command: vec!["true".to_owned()],
            kernel: "6.12".to_owned(),
            instructions: functions.iter().map(|(_, count)| count).sum(),
            functions: functions.iter().map(row).collect(),
            ..Profile::default()
        }
    }

    #[test]
    fn a_table_is_ranked_and_sums_up_what_it_leaves_out() {
        let many: Vec<_> = (1..=30_u64).map(|n| (format!("function{n}"), n)).collect();
        let many: Vec<_> = many.iter().map(|(name, count)| (name.as_str(), *count)).collect();
        let text = table(&profile(&many), Ink::none());
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "true: 465 instructions");
        assert!(lines[2].contains("function30"), "{text}");
        assert!(text.contains("15  3.2  5 others"), "{text}");
        assert!(lines.iter().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn on_a_board_what_takes_the_most_time_is_first() {
        let row = |name: &str, instructions, time_ns, code_misses| Row {
            name: name.to_owned(),
            instructions,
            time_ns: Some(time_ns),
            work: Some(Work { instructions, code_misses, registers: 3, ..Work::default() }),
        };
        let functions = vec![row("long", 900, 1_000_000, 1), row("missing", 100, 3_000_000, 77)];
        let profile = Profile { functions, board: Some(Board::CortexA72), ..profile(&[("true", 1000)]) };
        let text = table(&profile, Ink::none());
        let lines: Vec<Vec<_>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert!(
            text.starts_with("true: 4.00 ms on cortex-a72 by the model, of 1 000 instructions"),
            "{text}"
        );
        assert_eq!(lines[2], ["3", "000", "75.0", "100", "77", "3", "missing"], "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn a_difference_names_what_became_dearer_and_what_cheaper() {
        let a = profile(&[("same", 7), ("dearer", 10), ("cheaper", 50)]);
        let b = profile(&[("same", 7), ("dearer", 310), ("cheaper", 20), ("new", 5)]);
        let text = difference(&a, &b, Ink::none());
        let column = |n: usize| text.lines().nth(n).unwrap().split_whitespace().next().unwrap().to_owned();
        assert_eq!([column(2), column(3), column(4), column(5)], ["+300", "−30", "+5", "+275"], "{text}");
        assert!(!text.contains("same"), "{text}");
    }
}

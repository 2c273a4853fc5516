//! Profiles of `canter lab --profile` as tables: one by function, or the difference of two, which names the functions that
//! became dearer.

use crate::analyzer::profile::{Profile, Row};
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
    let mut out = String::new();
    let heading = format!("{}: {} instructions", profile.command.join(" "), grouped(profile.instructions));
    paragraph(&mut out, &heading, 0, ink, BOLD);
    let mut rows = rows(profile);
    rows.sort_by_key(|(_, instructions)| std::cmp::Reverse(*instructions));
    let most = rows.first().map_or(1, |(_, instructions)| (*instructions).max(1));
    let mut table = Table::new(&["instructions", "%", "<function [module or file]", "<"]);
    let line = |name: &str, instructions: u64, bar: u64| {
        let per_mille = u128::from(instructions) * 1000 / u128::from(profile.instructions.max(1));
        [
            (grouped(instructions), PLAIN),
            (format!("{}.{}", per_mille / 10, per_mille % 10), FAINT),
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

    fn profile(functions: &[(&str, u64)]) -> Profile {
        let row = |&(name, instructions): &(&str, u64)| Row { name: name.to_owned(), instructions };
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
    fn a_difference_names_what_became_dearer_and_what_cheaper() {
        let a = profile(&[("same", 7), ("dearer", 10), ("cheaper", 50)]);
        let b = profile(&[("same", 7), ("dearer", 310), ("cheaper", 20), ("new", 5)]);
        let text = difference(&a, &b, Ink::none());
        let column = |n: usize| text.lines().nth(n).unwrap().split_whitespace().next().unwrap().to_owned();
        assert_eq!([column(2), column(3), column(4), column(5)], ["+300", "−30", "+5", "+275"], "{text}");
        assert!(!text.contains("same"), "{text}");
    }
}

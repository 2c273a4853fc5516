//! The one table of `make bench`: each figure with its ceiling, today's value, its limit and the distance to it.

use super::{Ceiling, Check, Measured, Verdict, is_kernel};
use canter_cli::{
    failure,
    terminal::{self, BOLD, FAINT, GREEN, Ink, PLAIN, RED},
};
use std::{fmt::Write, path::Path};

/// The width of a figure's name.
const NAME_COLUMNS: usize = 46;

/// Ceilings beside what was measured.
pub struct Comparison {
    rows: Vec<Row>,
}

struct Row {
    ceiling: Ceiling,
    /// What the row is about, with all rows of the same study and kind of figure.
    heading: String,
    /// The kernel's series; empty for a bench.
    kernel: String,
    check: Check,
}

impl Comparison {
    /// The ceilings of everything that was measured.
    pub fn of_measured(ceilings: &[Ceiling], measured: &[Measured]) -> Self {
        Self { rows: ceilings.iter().flat_map(|ceiling| Row::of_measured(ceiling, measured)).collect() }
    }

    /// Every ceiling: one whose study was not measured, or not on its kernel, is missing.
    pub fn of_all(ceilings: &[Ceiling], folder: &Path) -> failure::Result<Self> {
        let (mut measured, no_results) = match Measured::of_folder(folder) {
            Ok(measured) => (measured, None),
            Err(failure) => (Vec::new(), Some(failure)),
        };
        let mut benches: Vec<&str> = ceilings.iter().map(|ceiling| ceiling.study.as_str()).collect();
        benches.dedup();
        for name in benches {
            measured.extend(Measured::of_bench(folder, name)?);
        }
        if let Some(failure) = no_results.filter(|_| measured.is_empty()) {
            return Err(failure);
        }
        let rows_of = |ceiling| {
            Row::of_measured(ceiling, &measured).into_iter().chain(Row::of_missing(ceiling, &measured))
        };
        Ok(Self { rows: ceilings.iter().flat_map(rows_of).collect() })
    }

    /// Whether no ceiling is exceeded and none is missing.
    pub fn is_kept(&self) -> bool {
        self.rows.iter().all(|row| row.verdict().is_kept())
    }

    /// The table for a terminal.
    pub fn text(&self, ink: Ink) -> String {
        let heading = format!(
            "{:NAME_COLUMNS$} {:>7} {:>7} {:>6} {:>7}   {:>7}",
            "", "ceiling", "today", "spread", "limit", "× limit"
        );
        let mut text = ink.paint(FAINT, &heading) + "\n";
        let (mut reasons, mut before): (Vec<&str>, &str) = (Vec::new(), "");
        for row in &self.rows {
            if row.heading != before {
                text += &(ink.paint(BOLD, &row.heading) + "\n");
                before = &row.heading;
            }
            text += &(row.text(&mut reasons, ink) + "\n");
        }
        if !reasons.is_empty() {
            text += "\nLimits, which no change can go below on the same path:\n";
        }
        for (number, why) in reasons.iter().enumerate() {
            let _ = writeln!(text, "{} {}", letter(number), terminal::wrapped(why, 2, 2));
        }
        text + "\n" + &self.summary(ink) + "\n"
    }

    /// How many ceilings are kept, and what the columns mean.
    fn summary(&self, ink: Ink) -> String {
        let count = |verdict| self.rows.iter().filter(|row| row.verdict() == verdict).count();
        let [exceeded, missing] = [count(Verdict::Exceeded), count(Verdict::Missing)];
        let boots = self.rows.iter().map(|row| row.check.boots).max().unwrap_or(0);
        let counted = format!("{} ceilings: {exceeded} exceeded, {missing} missing.", self.rows.len());
        let today = if boots == 1 { "one boot".to_owned() } else { format!("median of {boots} boots") };
        let style = if self.is_kept() { GREEN } else { RED };
        let means = format!(
            "Ratios have three decimals; other figures are instructions a frame. today: {today}; \
             spread: the largest boot less the smallest. A ceiling is the figure once reached, and twice its spread then, \
             at least 1 %. lower: below by as much, so its ceiling can be lowered."
        );
        ink.paint(style, &counted) + "\n" + &terminal::wrapped(&means, 0, 0)
    }

    /// The table for programs: a line for each row, cells separated by tabs.
    pub fn to_tsv(&self) -> String {
        let mut text = "study\tkernel\tfigure\tceiling\ttoday\tspread\tlimit\tdistance\tverdict\n".to_owned();
        for row in &self.rows {
            let Row { ceiling, kernel, check, .. } = row;
            let number = |value: Option<f64>| value.map_or(String::new(), |value| row.number(value));
            let cells = [
                ceiling.study.clone(),
                kernel.clone(),
                row.full_name(),
                row.number(ceiling.at_most()),
                number(check.today.clone().ok()),
                row.number(check.spread),
                number(check.limit),
                check.distance().map_or(String::new(), |distance| format!("{distance:.2}")),
                row.verdict().word().to_owned(),
            ];
            text += &(cells.join("\t") + "\n");
        }
        text
    }
}

impl Row {
    /// A row for each kernel on which the ceiling's study was measured.
    fn of_measured(ceiling: &Ceiling, measured: &[Measured]) -> Vec<Self> {
        let is_ours = |one: &&Measured| ceiling.study == one.study && ceiling.is_for(&one.kernel);
        let row = |one: &Measured| Self {
            ceiling: ceiling.clone(),
            heading: format!("{} ({}): {}", one.title, ceiling.study, ceiling.quantity()),
            kernel: one.kernel_series(),
            check: ceiling.check(one),
        };
        measured.iter().filter(is_ours).map(row).collect()
    }

    /// A row for each kernel of the ceiling on which its study was not measured.
    fn of_missing(ceiling: &Ceiling, measured: &[Measured]) -> Vec<Self> {
        let is_there = |kernel: &&String| {
            let is_it = |one: &Measured| kernel.is_empty() || is_kernel(&one.kernel, kernel);
            measured.iter().any(|one| one.study == ceiling.study && is_it(one))
        };
        let row = |kernel: &String| Self {
            ceiling: ceiling.clone(),
            heading: format!("{}: {}", ceiling.study, ceiling.quantity()),
            kernel: kernel.clone(),
            check: Check::missing("not measured"),
        };
        let every = [String::new()];
        let kernels = if ceiling.kernels.is_empty() { &every[..] } else { &ceiling.kernels };
        kernels.iter().filter(|kernel| !is_there(kernel)).map(row).collect()
    }

    fn verdict(&self) -> Verdict {
        self.check.verdict(&self.ceiling)
    }

    fn number(&self, value: f64) -> String {
        if self.ceiling.is_ratio() { format!("{value:.3}") } else { format!("{value:.0}") }
    }

    fn full_name(&self) -> String {
        format!("{}: {}", self.ceiling.name(), self.ceiling.quantity())
    }

    /// The row's line; a new reason of a limit is appended to `reasons`.
    fn text<'a>(&'a self, reasons: &mut Vec<&'a str>, ink: Ink) -> String {
        let Self { ceiling, check, .. } = self;
        let reason = ceiling.limit.as_ref().filter(|_| check.limit.is_some()).map(|limit| {
            let known = reasons.iter().position(|why| *why == limit.why);
            letter(known.unwrap_or_else(|| {
                reasons.push(&limit.why);
                reasons.len() - 1
            }))
        });
        let unknown = || "–".to_owned();
        let kernel = if ceiling.kernels.is_empty() { "" } else { &format!(", {}", self.kernel) };
        let name = terminal::clip(&format!("  {}{kernel}", ceiling.name()), NAME_COLUMNS);
        let verdict = self.verdict();
        let today = check.today.as_ref().map_or_else(|_| unknown(), |value| self.number(*value));
        let limit = check.limit.map_or_else(unknown, |value| self.number(value));
        let distance = check.distance().map_or_else(unknown, |value| format!("{value:.2}"));
        let line = format!(
            "{name:NAME_COLUMNS$} {:>7} {today:>7} {:>6} {limit:>7} {:1} {distance:>7}",
            self.number(ceiling.at_most()),
            self.number(check.spread),
            reason.unwrap_or(' '),
        );
        let why = check.today.as_ref().err().map_or(String::new(), |why| format!(" ({why})"));
        match verdict {
            Verdict::Kept => line,
            Verdict::Lower => format!("{line}  {}", ink.paint(PLAIN, verdict.word())),
            _ => format!("{line}  {}{why}", ink.paint(RED, verdict.word())),
        }
    }
}

impl Ceiling {
    /// The method, with its rules.
    fn name(&self) -> String {
        let rules = self.rules.as_ref().map_or(String::new(), |rules| format!(", {rules}"));
        self.method.clone() + &rules
    }

    /// What is measured of the method, such as `median, over can-gw`.
    fn quantity(&self) -> String {
        let name = |figure: &str| match super::measured::statistic(figure) {
            Ok(statistic) => statistic.name().to_owned(),
            Err(_) => figure.to_owned(),
        };
        let figure = name(&self.figure);
        match (&self.over, &self.over_figure, &self.over_rules, &self.above_rules) {
            (Some(over), ..) => format!("{figure}, over {over}"),
            (_, Some(over), ..) => format!("{figure}, over {}", name(over)),
            (.., Some(rules), _) => format!("{figure}, over rules {rules}"),
            (.., Some(rules)) => format!("{figure}, above rules {rules}"),
            _ => figure,
        }
    }
}

impl Verdict {
    fn word(self) -> &'static str {
        match self {
            Self::Kept => "",
            Self::Lower => "lower",
            Self::Exceeded => "EXCEEDED",
            Self::Missing => "MISSING",
        }
    }
}

/// The mark of a reason.
fn letter(number: usize) -> char {
    char::from_u32('a' as u32 + number as u32).unwrap_or('?')
}

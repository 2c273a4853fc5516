//! A comparison in the terminal: a sentence, then one line per figure.

use super::{Compared, Comparison, Figure, FigureKind, Verdict};
use canter_cli::terminal::{self, BOLD, FAINT, GREEN, Ink, PLAIN, RED, Style, Table, YELLOW};
use canter_cli::units;
use canter_measure::result::ClockKind;

impl Verdict {
    pub fn name(self) -> &'static str {
        match self {
            Self::Regression => "worse",
            Self::Improvement => "better",
            Self::Same => "same",
            Self::Undecided => "undecided",
            Self::OnlyInA => "only in A",
            Self::OnlyInB => "only in B",
            Self::Invalid => "invalid",
            Self::Nothing => "unavailable",
        }
    }

    /// The class of its style on the page.
    pub fn class(self) -> &'static str {
        match self {
            Self::Regression | Self::Invalid => "bad",
            Self::Improvement => "good",
            Self::Undecided | Self::OnlyInA | Self::OnlyInB => "open",
            Self::Same | Self::Nothing => "",
        }
    }

    fn style(self) -> Style {
        match self {
            Self::Regression | Self::Invalid => RED,
            Self::Improvement => GREEN,
            Self::Undecided | Self::OnlyInA | Self::OnlyInB => YELLOW,
            Self::Same | Self::Nothing => PLAIN,
        }
    }
}

/// The whole comparison, at most 80 columns wide.
pub fn text(comparison: &Comparison, ink: Ink) -> String {
    let mut out = String::new();
    let both: Vec<&Compared> = comparison.series.iter().filter(|series| !series.figures.is_empty()).collect();
    for group in both.chunk_by(|a, b| a.heading == b.heading) {
        terminal::paragraph(&mut out, &format!("{}:", group[0].heading), 0, ink, PLAIN);
        table(&mut out, group, ink);
    }
    for series in comparison.series.iter().filter(|series| series.figures.is_empty()) {
        let note = if series.note.is_empty() { String::new() } else { format!(" ({})", series.note) };
        let line = format!("{}, {}: {}{note}", series.heading, series.label, series.verdict.name());
        terminal::paragraph(&mut out, &line, 4, ink, series.verdict.style());
    }
    let bad = comparison.count(Verdict::Regression) + comparison.count(Verdict::Invalid) > 0;
    let style = if bad { RED } else { BOLD };
    terminal::paragraph(&mut out, &sentence(comparison), 0, ink, style);
    terminal::paragraph(&mut out, &method(comparison), 0, ink, FAINT);
    out
}

fn table(out: &mut String, group: &[&Compared], ink: Ink) {
    let mut table = Table::new(&["<series", "<figure", "A", "B", "B to A", "95 % interval", "<verdict"]);
    for series in group {
        for (n, figure) in series.figures.iter().enumerate() {
            let [a, b, change, interval] = numbers(figure);
            let label = if n == 0 { series.label.clone() } else { String::new() };
            let verdict = figure.verdict;
            let plain = |text: String| (text, PLAIN);
            table.row([
                plain(label),
                plain(figure.name.to_owned()),
                plain(a),
                plain(b),
                (change, verdict.style()),
                plain(interval),
                (verdict.name().to_owned(), verdict.style()),
            ]);
        }
    }
    table.print(out, ink);
}

/// A, B, the change and its interval, formatted.
pub fn numbers(figure: &Figure) -> [String; 4] {
    let change = &figure.change;
    let exact = change.low == change.high;
    match figure.kind {
        FigureKind::Ns | FigureKind::Ratio => {
            let ns = |value: f64| {
                if figure.kind == FigureKind::Ns { units::span(value as u64) } else { String::new() }
            };
            let times = |value: f64| format!("{value:.3}×");
            let interval = format!("{:.3}…{:.3}×", change.low, change.high);
            [ns(figure.a), ns(figure.b), times(change.value), if exact { String::new() } else { interval }]
        }
        FigureKind::Share => {
            let percent = |value: f64| format!("{:.2} %", value * 100.0);
            let signed = |value: f64| format!("{:+.2}", value * 100.0);
            let interval = format!("{}…{} %", signed(change.low), signed(change.high));
            [percent(figure.a), percent(figure.b), format!("{} %", signed(change.value)), interval]
        }
    }
}

/// `1 of 9 series is worse by more than 5 %: ring+ring (p50 1.093×). …`
pub fn sentence(comparison: &Comparison) -> String {
    let both = comparison.series.iter().filter(|series| !series.figures.is_empty()).count();
    let bound = format!("{} %", (comparison.bound.0 * 1e4).round() / 100.0);
    let worse = comparison.count(Verdict::Regression);
    let mut sentence = match worse {
        0 if both == 0 => "Nothing could be compared".to_owned(),
        0 => format!("Nothing is worse by more than {bound} in {both} compared series"),
        _ => {
            let verb = if worse == 1 { "is" } else { "are" };
            format!("{worse} of {both} series {verb} worse by more than {bound}: {}", worst(comparison))
        }
    };
    for (verdict, what) in [
        (Verdict::Improvement, "better"),
        (Verdict::Same, "the same"),
        (Verdict::Undecided, "undecided: measure more frames, or repeat"),
        (Verdict::OnlyInA, "only in A"),
        (Verdict::OnlyInB, "only in B"),
        (Verdict::Invalid, "invalid"),
    ] {
        let count = comparison.count(verdict);
        if count > 0 {
            sentence.push_str(&format!("; {count} {what}"));
        }
    }
    sentence + "."
}

/// The three figures that got worse most.
fn worst(comparison: &Comparison) -> String {
    let worse = |figure: &&Figure| figure.verdict == Verdict::Regression;
    let mut all: Vec<(&str, &Figure)> = (comparison.series.iter())
        .flat_map(|series| series.figures.iter().filter(worse).map(|figure| (series.label.as_str(), figure)))
        .collect();
    all.sort_by(|(_, a), (_, b)| b.change.value.total_cmp(&a.change.value));
    let named =
        all.iter().take(3).map(|(label, figure)| format!("{label} ({} {})", figure.name, numbers(figure)[2]));
    let named: Vec<String> = named.collect();
    let more = if all.len() > 3 { ", …" } else { "" };
    format!("{}{more}", named.join(", "))
}

/// The test, and what it ignores.
pub fn method(comparison: &Comparison) -> String {
    let both: Vec<&Compared> = comparison.series.iter().filter(|series| !series.figures.is_empty()).collect();
    let ranked = both.iter().filter(|series| series.repeats.iter().all(|&repeats| repeats >= 4)).count();
    if both.is_empty() {
        return String::new();
    }
    let mut text = match ranked {
        n if n == both.len() => "Test: ranks of the repeats (Mann–Whitney).".to_owned(),
        0 => "Test: order statistics of the frames.".to_owned(),
        _ => "Test: ranks of the repeats (Mann–Whitney); with fewer than four repeats per side, order \
        statistics of the frames."
            .to_owned(),
    };
    if ranked < both.len() && comparison.clock == ClockKind::Real {
        text.push_str(" These intervals ignore the spread between runs: repeat at least four times.");
    }
    text
}
